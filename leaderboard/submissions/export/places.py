"""How many exports run at a time: each holds a connection to the database, and most of a thread."""

from contextlib import ExitStack
from threading import BoundedSemaphore

AT_ONCE = 2  # in one process
_free = BoundedSemaphore(AT_ONCE)


def enter(opened: ExitStack) -> bool:
    """Take a place, which is given back with what is open; False: there is none."""
    if not _free.acquire(blocking=False):
        return False
    opened.callback(_free.release)
    return True
