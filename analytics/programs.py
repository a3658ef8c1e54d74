"""What our programs do and a library must not: hide pandas, end in order, compute with one thread.

pyarrow imports pandas, where it is installed, only to ask of a list or an array whether it is one of its own:
a second of a short command. Matrices are small: more threads of BLAS wait for each other, ten times as long
where cores are busy. All loaded libraries are looked through, in 1.5 ms, only after an import.
"""

import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


class _WithoutPandas(MetaPathFinder):
    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("this program uses no pandas", name=name)


def use_pandas() -> None:
    """Hide pandas no longer: this command reads by it."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _WithoutPandas)]


def use_no_pandas() -> None:
    """Hide pandas from this process, unless it is imported already."""
    sys.meta_path.insert(0, _WithoutPandas())


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


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread."""
    with _libraries(len(sys.modules)).limit(limits=1, user_api="blas"):
        yield


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> "ThreadpoolController":
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
