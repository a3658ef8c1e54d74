"""Waiting that a signal ends.

A handler of signals sets a plain flag: an Event set by it could wait for a lock that the interrupted thread
holds.
"""

import time
from collections.abc import Callable

LOOK_EVERY = 0.2


def pause(seconds: float, ended: Callable[[], bool]) -> None:
    """Sleep, unless or until it is time to end."""
    end = time.monotonic() + seconds
    while not ended() and (left := end - time.monotonic()) > 0:
        time.sleep(min(left, LOOK_EVERY))
