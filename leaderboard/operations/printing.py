"""What commands print: bars on a terminal, faults as lines, a board as a table."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.core.management.base import CommandError
from django.db import ProgrammingError
from psycopg.errors import UndefinedTable
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from leaderboard.boards.models import Board, Entry
from leaderboard.errors import Faulty, Refusal

LEGEND = (
    "± and naive SE: √(p(1−p)/n) in points, which leaves out most sources of error.  "
    "~ calibrated from the subset; other full scores are measured."
)
N_LINES = 50  # faults printed; their number is always told


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[int, int | None], None]]:
    """Yield a callback (done, in all) that moves a bar on stderr; silent where that is no terminal."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task(escape(title), total=None)
        yield lambda done, total: progress.update(bar, completed=done, total=total)


@contextmanager
def refusals_as_errors() -> Iterator[None]:
    """Turn a refusal into the command's error, with a line for each fault."""
    try:
        yield
    except Faulty as faulty:
        raise CommandError("\n".join([str(faulty), *fault_lines(faulty)])) from faulty
    except Refusal as refusal:
        raise CommandError(str(refusal)) from refusal
    except ProgrammingError as error:
        if isinstance(error.__cause__, UndefinedTable):
            raise CommandError("The tables are not there yet; make them with `manage.py migrate`.") from error
        raise


def fault_lines(faulty: Faulty) -> list[str]:
    lines = [f"  {fault}" for fault in faulty.faults[:N_LINES]]
    if faulty.n_faults > len(lines):
        lines.append(f"  … and {faulty.n_faults - len(lines):,} more ({faulty.n_faults:,} in all)")
    return lines


def percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"


def full_score(entry: Entry) -> str:
    if entry.full_score is None:
        return ""
    if entry.full_score_source == "calibrated":
        return f"~{percent(entry.full_score)}"
    return f"{percent(entry.full_score)} ±{percent(entry.full_naive_se)}"


def headline(board: Board) -> str:
    """The board in three lines."""
    tasks = f"{board.subset.members.count()} of {board.n_tasks}" if board.subset else f"all {board.n_tasks}"
    return (
        f"{board.benchmark.title}: board {board.number}, phase {board.get_phase_display().lower()}\n"
        f"Ranked on {tasks} tasks; {board.n_complete} agents have run all tasks.\n"
        f"{board.why}"
    )


def columns(board: Board) -> list[tuple[str, Callable[[Entry], str]]]:
    """Head and cell of each column, in order."""
    score = "subset %" if board.subset else "score %"
    return [
        ("rank", lambda entry: "" if entry.rank is None else str(entry.rank)),
        ("agent", lambda entry: entry.name),
        (score, lambda entry: percent(entry.score)),
        ("naive SE", lambda entry: percent(entry.naive_se)),
        ("full %", full_score),
        ("tasks", lambda entry: str(entry.n_scored)),
        ("trials", lambda entry: str(entry.n_valid_trials)),
        ("date", lambda entry: f"{entry.submitted_at:%Y-%m-%d}" if entry.submitted_at else ""),
        ("marks", lambda entry: entry.unranked or ", ".join(entry.marks)),
    ]


def board_text(board: Board, entries: list[Entry], *, width: int) -> str:
    """Return the board as a table of at most `width` characters a line."""
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for head, _ in columns(board):
        is_text = head in ("agent", "marks", "date")
        table.add_column(head, justify="left" if is_text else "right", overflow="fold")
    for entry in entries:
        table.add_row(*(cell(entry) for _, cell in columns(board)))
    text = io.StringIO()
    # A name is data: neither [bold] nor :smile: in it is a command.
    console = Console(file=text, width=width, highlight=False, markup=False, emoji=False)
    for part in (headline(board), "", table, "", LEGEND, f"Digest {board.digest}"):
        console.print(part, soft_wrap=isinstance(part, str))
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())
