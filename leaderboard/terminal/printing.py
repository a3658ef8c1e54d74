"""What commands print: bars on a terminal, faults as lines, a board as a table."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.base import CommandError
from django.db import ProgrammingError
from psycopg.errors import UndefinedTable
from rich.console import Console, RenderableType

from analytics.progress import progress_bar as progress_bar
from leaderboard.boards.models import Board, Entry, FullScoreSource
from leaderboard.boards.reading import (
    Gap,
    Line,
    choose_target,
    covers_text,
    ends,
    first_place,
    gaps,
    is_available,
    lines_at,
    savings_text,
)
from leaderboard.catalog.models import Strategy, Target
from leaderboard.errors import Faulty, Refusal
from leaderboard.studies.models import DriftCheck, ValidationStudy, VarianceStudy

LEGEND = (
    "Rank 95%: the ranks that an agent may hold, all of them right at once.  Ties: agents that it is neither "
    "better nor worse than, at 95% for all pairs at once; ties form no groups: A may be tied with B, and B "
    "with C, while A is better than C.",
    "± SE: standard error in points for this target.  naive: √(p(1−p)/n), as most boards print it; it "
    "answers another question and may be larger or smaller.",
)
ICC_LEGEND = "ICC: how alike repeated trials of a task are, from 0 to 1; with ? it is unreliable."
CALIBRATED_LEGEND = "~ calibrated from the subset, with its 95% interval; other full scores are measured."
TITLES = {
    "subset": "the tasks of the subset",
    "full": "all tasks",
    "domain": "tasks like these",
}
N_LINES = 50  # faults printed; their number is always told


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


def with_error(value: float | None, error: float | None) -> str:
    return percent(value) if error is None else f"{percent(value)} ±{percent(error)}"


def full_score(entry: Entry) -> str:
    """Measured with its standard error, or calibrated with its interval."""
    if entry.full_score_source != FullScoreSource.CALIBRATED:
        return with_error(entry.full_score, entry.targets.get("full", {}).get("se"))
    found = ends(entry.full_interval or {})
    return f"~{percent(entry.full_score)}" + (f" {percent(found[0])}–{percent(found[1])}" if found else "")


def places(line: Line) -> str:
    if line.places is None:
        return ""
    lower, upper = line.places
    return f"{lower}–{upper}" if lower < upper else str(lower)


def icc(entry: Entry) -> str:
    told = entry.icc or {}
    return f"{told['icc']:.2f}{' ?' if told['note'] else ''}" if "icc" in told else ""


def headline(board: Board) -> str:
    """The board in three lines."""
    tasks = f"{board.subset.members.count()} of {board.n_tasks}" if board.subset else f"all {board.n_tasks}"
    return (
        f"{board.benchmark.title}: board {board.number}, phase {board.get_phase_display().lower()}\n"
        f"Ranked on {tasks} tasks; {board.n_complete} agents have run all tasks.\n"
        f"{board.why}"
    )


def columns(board: Board, target: str) -> list[tuple[str, Callable[[Line], str]]]:
    """Head and cell of each column, in order."""
    if target == Target.SUBSET:
        score, other = "subset %", [("full %", lambda line: full_score(line.entry))]
    elif board.subset:
        score, other = "full %", [("subset %", lambda line: percent(line.entry.score))]
    else:
        score, other = "score %", []
    return [
        ("rank", lambda line: "" if line.rank is None else str(line.rank)),
        ("rank 95%", places),
        ("agent", lambda line: line.entry.name),
        (score, lambda line: ("~" if line.is_calibrated else "") + percent(line.score)),
        ("± SE", lambda line: percent(line.told.get("se"))),
        ("naive", lambda line: percent(line.told.get("naive_se"))),
        *other,
        ("ties", lambda line: str(len(line.tied)) if line.places else ""),
        ("ICC", lambda line: icc(line.entry)),
        ("tasks", lambda line: str(line.entry.n_scored)),
        ("trials", lambda line: str(line.entry.n_valid_trials)),
        ("marks", lambda line: ", ".join(line.entry.marks)),
    ]


def board_text(board: Board, entries: list[Entry], *, width: int, target: str = "") -> str:
    """Return the board for a target, by default the policy's, at most `width` characters a line."""
    target = choose_target(board, target)
    lines = lines_at(target, entries)
    text = io.StringIO()
    # A name is data: neither [bold] nor :smile: in it is a command.
    console = Console(file=text, width=width, highlight=False, markup=False, emoji=False)
    console.print(headline(board), soft_wrap=True)
    console.print(f"\nTarget {target}: {TITLES[target]}. {covers_text(board, target)}\n")
    console.print(_ranking(columns(board, target), lines))
    for part in _notes(board, target, lines, entries):
        console.print(f"\n{part}")
    console.print(f"\nDigest {board.digest}", soft_wrap=True)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def _ranking(columns: list[tuple[str, Callable[[Line], str]]], lines: list[Line]) -> RenderableType:
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    shown = [(head, cells) for head, cell in columns if any(cells := [cell(line) for line in lines])]
    for head, _ in shown:
        table.add_column(head, justify="left" if head in ("agent", "marks") else "right", overflow="fold")
    for row in zip(*(cells for _, cells in shown), strict=True):
        table.add_row(*row)
    return table


def _notes(board: Board, target: str, lines: list[Line], entries: list[Entry]) -> Iterator[str]:
    """What stands under the table, a paragraph each."""
    if leader := first_place(lines):
        yield leader
    has_icc = any("icc" in (line.entry.icc or {}) for line in lines)
    is_calibrated = any(line.entry.full_score_source == FullScoreSource.CALIBRATED for line in lines)
    more = [ICC_LEGEND] * has_icc + [CALIBRATED_LEGEND] * is_calibrated
    yield "\n".join([*LEGEND, *more])
    if board.not_measured:
        yield f"Never measured, so in no interval: {'; '.join(board.not_measured)}."
    if missing := [f"{gap.what}: {_who(gap)}: {gap.reason}" for gap in gaps(board, target, lines)]:
        yield "\n".join(missing)
    if unranked := [f"Not ranked: {entry.name}: {entry.unranked}" for entry in entries if entry.rank is None]:
        yield "\n".join(unranked)
    if flags := [f"Flagged: {entry.name}: {'; '.join(entry.flags)}" for entry in entries if entry.flags]:
        yield "\n".join(flags)
    if board.savings:
        yield savings_text(board.savings)
    others = [other for other in Target.values if other != target and is_available(board, other)]
    if others:
        yield f"Other targets: {', '.join(f'--target {other}' for other in others)}"


def _who(gap: Gap) -> str:
    return ", ".join(gap.names) if len(gap.names) <= 2 else f"{len(gap.names)} agents"


def _table(heads: list[str], rows: list[list[str]]) -> str:
    """Columns aligned by their widest cell, the first to the left and the others to the right."""
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
    sides = ["<", *">" * (len(heads) - 1)]
    lines = [
        "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True))
        for row in [heads, *rows]
    ]
    return "\n".join(line.rstrip() for line in lines)


def figure(value: float | None, error: float | None = None) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" + (f" ±{error:.3f}" if error is not None else "")


PROTOCOLS = ("loao", "within_scaffold", "random_80_20", "loso", "lomo", "temporal")
SHOWN = {
    "pairs_correct": "pairs in order",
    "skill": "skill",
    "pairs_clear": "clear pairs",
    "rho_rest": "ρ with the rest",
    "rho": "ρ",
    "tau": "τ",
    "rho_calibrated": "ρ calibrated",
    "r2": "R²",
}


def validation_text(study: ValidationStudy) -> str:
    """The figures by protocol and strategy; what a board is read for comes first."""
    result, policy = study.result, study.policy
    parts = [
        f"{study.benchmark}: {result['agents']} complete agents, {result['tasks']} tasks\n"
        "* marks the strategy in use; ± is a jackknife standard error, in random_80_20 the spread of draws.\n"
        "Pairs in order: of pairs whose full scores differ, the share that the subset orders alike; "
        "chance is 0.5.  Skill: what ρ has above its value without any difference between agents."
    ]
    if not result["subset"]["suited"]:
        parts.append(f"No subset: {result['subset']['reason']}.")
    known = result["protocols"]
    parts += [_protocol(name, known[name], policy.strategy) for name in PROTOCOLS if name in known]
    return "\n\n".join(parts)


def _protocol(name: str, protocol: dict[str, Any], in_use: str) -> str:
    if not protocol["available"]:
        return f"{name}: not available: {protocol['reason']}"
    known = protocol["strategies"]
    strategies = [(name, known[name]) for name in dict.fromkeys([in_use, *Strategy.values]) if name in known]
    rows = [
        [f"{'*' if strategy == in_use else ' '} {strategy}", *_figures(of), str(of["n"])]
        for strategy, of in strategies
    ]
    skipped = f", {protocol['n_skipped']} skipped" if protocol["n_skipped"] else ""
    title = f"{name}: {protocol['n_folds']} folds{skipped}, {protocol['k_mean']:.1f} tasks asked on average"
    return f"{title}\n{_table(['  strategy', *SHOWN.values(), 'agents'], rows)}"


def _figures(of: dict[str, Any]) -> list[str]:
    errors = of.get("se") or of.get("spread") or {}
    return [figure(of.get(key), errors.get(key)) for key in SHOWN]


def variance_text(study: VarianceStudy) -> str:
    """Components, what was never measured, and what more trials would do."""
    result = study.result
    if not result["available"]:
        return f"{study.benchmark}: no variance components: {result['reason']}."
    parts = [
        f"{study.benchmark}: {result['n_rows']:,} outcomes of {result['levels']['agent']:,} agents on "
        f"{result['levels']['task']:,} tasks\nREML, method {result['method']}; "
        f"{'converged' if result['converged'] else 'not converged'}: {result['message']}",
        _table(["component", "variance", "share", ""], [_component(part) for part in result["components"]]),
        f"Never measured: {'; '.join(result['not_measured']) or 'nothing that is asked for'}",
    ]
    if result["projections"]:
        steps = [
            [str(step["n_trials"]), *(_points(step[key]) for key in ("finite", "domain"))]
            for step in result["projections"]
        ]
        table = _table(["trials a task", "these tasks", "tasks like these"], steps)
        parts.append(f"Standard error of one agent's mean on all tasks, in points\n{table}")
    return "\n\n".join(parts)


def _component(part: dict[str, Any]) -> list[str]:
    told = [part["name"], f"{part['variance']:.5f}", f"{part['share']:.1%}"]
    return [*told, "at its boundary of 0" if part["boundary"] else ""]


def _points(error: float | None) -> str:
    return "–" if error is None else f"±{percent(error)}"


def drift_text(check: DriftCheck) -> str:
    """The state of each monitor, alerts first, and how often they cry wolf."""
    result = check.result
    if result["reason"]:
        return f"{check.benchmark}: {result['reason']}."
    order = ["alert", "warn"]
    monitors = sorted(result["monitors"], key=lambda one: one["state"] not in order)
    rows = [[one["state"], one["name"], one["reason"]] for one in monitors]
    widths = [max(len(row[i]) for row in rows) for i in range(2)]
    lines = [f"{state:<{widths[0]}}  {name:<{widths[1]}}  {reason}" for state, name, reason in rows]
    expected = f"False alerts expected in a year without any change: {result['false_alerts_a_year']:.2f}"
    return "\n".join([f"Drift of {check.subset}", "", *lines, "", expected])
