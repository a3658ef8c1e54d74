"""How far a long computation is, on stderr: a bar on a terminal, elsewhere a line every few seconds."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

EVERY = 5.0  # seconds between lines
STILL_AT_WORK = "still at work"
STILL = 12  # lines' time after which one that says the same as the last is written again

Progress = Callable[[int, int | None], None]


@contextmanager
def progress_bar(title: str, counted: str = "") -> Iterator[Progress]:
    """Yield a callback (done, in all or None) that moves a bar on stderr.

    Where stderr is no terminal, a line is written every few seconds: ``validation: 120 of 900 folds``; once a
    minute while nothing moves, with ``still at work`` behind it. What ends sooner is silent.

    counted: what is counted, in the plural.
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

    writer = Thread(target=write, daemon=True)
    writer.start()
    try:
        yield show
    finally:
        ended.set()
        writer.join()
