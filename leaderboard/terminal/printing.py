"""What commands print: bars on a terminal, faults as lines, a board as a table."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.base import CommandError
from django.db import ProgrammingError
from psycopg.errors import UndefinedTable
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from leaderboard.boards.models import Board
from leaderboard.catalog.models import Strategy
from leaderboard.errors import Faulty, Refusal
from leaderboard.studies.answers import Standings, printed
from leaderboard.studies.models import DriftCheck, ValidationStudy, VarianceStudy

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


def with_error(value: float | None, error: float | None) -> str:
    return percent(value) if error is None else f"{percent(value)} ±{percent(error)}"


def board_text(board: Board, standings: Standings, *, width: int, target: str) -> str:
    """Return the board for a target, prose at most `width` characters a line."""
    head = f"{board.benchmark.title}: board {board.number}"
    return f"{head}\n\n{printed.text(standings, target, width=width)}\n\nDigest {board.digest}"


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
