"""What our programs do and a library must not: import less, end in order, use one thread and tell progress.

pyarrow imports pandas, where it is installed, only to ask of a list or an array whether it is one of its own:
a second of a short command. scipy.special imports all of numpy by ``from numpy import *``: a third of its own
time. Matrices are small: more threads of BLAS wait for each other, ten times as long where cores are busy.
All loaded libraries are looked through, in 1.5 ms, only after an import. What a command imports stays: the
collector would go through it again and again, a tenth of a short command, and at the end, a fifth. Each large
array that is freed goes back to the system, which clears memory for the next one: a third of a large board.
"""

import atexit
import ctypes
import gc
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from threading import Event, Thread
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, NoReturn

EVERY = 5.0  # seconds between lines
STILL_AT_WORK = "still at work"
INTERRUPTED = 128 + signal.SIGINT
STILL = 12  # lines' time after which one that says the same as the last is written again
UNUSED = {"numpy.f2py", "numpy.testing"}  # of scipy.special
M_MMAP_THRESHOLD, M_TRIM_THRESHOLD = -3, -1  # of <malloc.h>

Progress = Callable[[int, int | None], None]


@contextmanager
def progress_bar(title: str, counted: str = "") -> Iterator[Progress]:
    """Yield a callback (done, in all or None) that moves a bar on stderr.

    Where stderr is no terminal, a line is written every few seconds: ``validation: 120 of 900 folds``; once a
    minute while nothing moves, with ``still at work`` behind it, and at the end. What ends sooner is silent.
    """
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    if not console.is_terminal:
        with _lines(title, counted) as show:
            yield show
        return
    with Bar(console=console, transient=True) as bar:
        task = bar.add_task(escape(title), total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def _lines(title: str, counted: str) -> Iterator[Progress]:
    """Write where the work stands from a thread of its own, so that one long step is no silence."""
    stand, ended = [f"{title}: {STILL_AT_WORK}, nothing to count yet"], Event()

    def show(done: int, total: int | None) -> None:
        of_all = f" of {total:,}" if total is not None else ""
        stand[0] = f"{title}: {done:,}{of_all} {counted}".rstrip()

    def write() -> None:
        line, n_silent = "", 0
        while not ended.wait(EVERY):
            n_silent = n_silent + 1 if stand[0] == line else STILL
            if n_silent >= STILL:
                again = f"; {STILL_AT_WORK}" if stand[0] == line and STILL_AT_WORK not in line else ""
                line, n_silent = stand[0], 0
                sys.stderr.write(f"{line}{again}\n")
                sys.stderr.flush()
        if line and stand[0] != line:  # a line was written: the last one says where the work ended
            sys.stderr.write(f"{stand[0]}\n")
            sys.stderr.flush()

    writer = Thread(target=write, daemon=True)
    writer.start()
    try:
        yield show
    finally:
        ended.set()
        writer.join()


if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


class _ImportLess(MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError("this program uses no pandas", name=name)
        spec = PathFinder.find_spec(name, path, target) if name in UNUSED else None
        if spec and spec.loader:
            spec.loader = LazyLoader(spec.loader)
        return spec


def use_pandas() -> None:
    """Hide pandas no longer: this command reads by it."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _ImportLess)]


def import_less() -> None:
    """Hide pandas from this process, and load parts of numpy when used, unless they are imported already."""
    sys.meta_path.insert(0, _ImportLess())


def _told_unless_interrupted(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    sys.__excepthook__(kind, error, trace)


def keep_freed_memory() -> None:
    """Let arrays of up to 256 MiB take memory that others left, where this is glibc of 2.35 or later."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt and mallopt(M_MMAP_THRESHOLD, 2**28):  # earlier ones take 32 MiB at most
        mallopt(M_TRIM_THRESHOLD, 2**29)


def begin_command() -> None:
    """Import and collect less, keep memory, and exit with 130 and no traceback after Ctrl-C."""
    import_less()
    keep_freed_memory()
    sys.excepthook = _told_unless_interrupted
    gc.set_threshold(10_000, 10, 10)
    atexit.register(gc.freeze)


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
