"""How a command ends when it is told to: everything that is open is closed, as on any exit."""

import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn


@contextmanager
def orderly_end() -> Iterator[None]:
    """Make SIGTERM an exit with 143, so that what is open is closed; else Python ends on the spot."""

    def end(number: int, frame: object) -> NoReturn:
        warnings.simplefilter("ignore")  # that work was cut off is no news
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
