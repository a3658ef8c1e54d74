"""How far a long computation has come: a bar on a terminal, now and then a line where stderr is a pipe."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

Progress = Callable[[int, int | None], None]
SECONDS = 5.0


@contextmanager
def progress_bar(title: str, *, seconds: float = SECONDS) -> Iterator[Progress]:
    """Yield a callback (done, in all or None) that shows on stderr how far it has come.

    Parameters
    ----------
    title : str
    seconds : float
        Between two lines, where stderr is no terminal; what takes less says nothing.
    """
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(title, seconds)
        return
    with Bar(console=console, transient=True) as bar:
        task = bar.add_task(escape(title), total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _lines(title: str, seconds: float) -> Progress:
    """Return the callback that writes a line whenever so many seconds have gone by."""
    last = monotonic()

    def show(done: int, total: int | None) -> None:
        nonlocal last
        if monotonic() - last >= seconds:
            last = monotonic()
            of = "" if total is None else f" of {total:,}"
            sys.stderr.write(f"{title}: {done:,}{of}\n")
            sys.stderr.flush()

    return show
