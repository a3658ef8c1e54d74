from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from leaderboard.actions.watching import FIGURES, place_text
from leaderboard.called import PROGRAM
from leaderboard.catalog.models import Benchmark
from leaderboard.operations.models import Reselection
from leaderboard.operations.reselections import (
    LABELS,
    Comparison,
    NothingWouldChange,
    Variant,
    approve,
    open_proposal,
    propose,
)
from leaderboard.operations.reselections import reject as reject_proposal
from leaderboard.studies.answers import as_text, progress_bar, validated, words
from leaderboard.terminal.command import USAGE, BenchmarkCommand, required_reason

N_MOVED = 20  # of tasks, deltas and ranks; their number is always told

HINDSIGHT = (
    "Proposed tasks were chosen from the same results, so their figures are too good. Tasks chosen each "
    "time are chosen again after each agent, from earlier agents only."
)
Plain = dict[str, Any]


class Command(BenchmarkCommand):
    help = "Show, make or decide a proposal for other ranking tasks. They change only after approval."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--propose", metavar="REASON", help="compute a proposal; why, in words")
        what.add_argument("--approve", type=int, metavar="ID", help="activate a variant of this proposal")
        what.add_argument("--reject", type=int, metavar="ID", help="keep the ranking tasks in use")
        parser.add_argument("--variant", choices=list(LABELS), help="which ranking tasks to activate")
        parser.add_argument("--reason", default="", help="why it is approved or rejected; it is kept")

    def handle(
        self,
        *,
        benchmark: Benchmark,
        propose: str | None,
        approve: int | None,
        reject: int | None,
        variant: str | None,
        reason: str,
        **_: Any,
    ) -> None:
        if approve is not None:
            text = _approve(benchmark, approve, variant, required_reason(reason))
        elif reject is not None:
            why, proposal = required_reason(reason), _proposal(benchmark, reject)
            reject_proposal(reselection=proposal, by=None, reason=why, as_of=timezone.now())
            version = proposal.previous.number
            text = f"Proposal {reject} is rejected. Ranking tasks, version {version}, stay in use."
        elif propose is not None:
            text = _propose(benchmark, propose.strip())
        elif waiting := open_proposal(benchmark):
            text = comparison_text(Comparison(waiting))
        else:
            text = f"No proposal for {benchmark}.\nNext: {_making(benchmark)}"
        self.stdout.write(text)


def _propose(benchmark: Benchmark, reason: str) -> str:
    try:
        with progress_bar("Proposing") as progress:
            made = propose(
                benchmark=benchmark, by=None, reason=reason, as_of=timezone.now(), progress=progress
            )
    except NothingWouldChange as answer:
        return str(answer)
    return comparison_text(Comparison(made))


def _approve(benchmark: Benchmark, number: int, variant: str | None, reason: str) -> str:
    if variant is None:
        raise CommandError(f"--approve needs --variant {' or '.join(LABELS)}.", returncode=USAGE)
    proposal = _proposal(benchmark, number)
    subset = approve(reselection=proposal, variant=variant, by=None, reason=reason, as_of=timezone.now())
    return (
        f"Ranking tasks, version {subset.number}, are active: {subset.reason}.\n"
        f"Next: {PROGRAM} recompute {benchmark.slug} (to use them on the board)"
    )


def _making(benchmark: Benchmark) -> str:
    return f"{PROGRAM} reselect {benchmark.slug} --propose REASON"


def _proposal(benchmark: Benchmark, number: int) -> Reselection:
    proposal = benchmark.reselections.select_related("previous").filter(pk=number).first()
    if proposal is None:
        waiting = open_proposal(benchmark)
        hint = (
            f"The open one is {waiting.pk}." if waiting else f"None is open. Make one: {_making(benchmark)}"
        )
        raise CommandError(f"Unknown proposal {number} on {benchmark.slug}. {hint}")
    return proposal


# -------------------------- a proposal as text: figures and cost side by side, then what each variant changes


def comparison_text(comparison: Comparison) -> str:
    one, content, n_since = comparison.row, comparison.row.content, comparison.n_versions_since
    version = {"ranking tasks": f"Version {one.previous.number}, in use", "tasks": comparison.in_use["k"]}
    subsets = [version | _cost(comparison.in_use["cost"])]
    for new in comparison.variants:
        counts = {"enter": len(new.entering), "leave": len(new.leaving), "deltas": len(new.deltas)}
        row = {"ranking tasks": new.label, "tasks": new.k}
        subsets.append(row | counts | _cost(new.cost) if new.cost else row)
    rows: Plain = {
        "proposal": f"{one.pk}, {one.status}, {one.proposed_at:%Y-%m-%d}: {one.reason}",
        "alert": str(one.alert) if one.alert else None,
        "data": f"pass rates of {content['n_tasks']:,} tasks over "
        + words.counted(content["n_complete"], "agent")
        + (f"; the data have changed {words.counted(n_since, 'time')} since" if n_since else ""),
        "\nchoices": subsets,
        "\nreplays: the service simulated on this benchmark's full runs": list(comparison.replays) or None,
        "": HINDSIGHT if comparison.replays else None,
    }
    for protocol, rule in validated.PROTOCOLS.items():
        rows |= _figures(comparison, protocol, rule.label)
    for variant in comparison.variants:
        rows |= _variant(variant)
    known = {key: value for key, value in rows.items() if value is not None}
    return "\n".join([as_text(known), "", *_next(comparison)])


def _cost(cost: Mapping[str, Any]) -> Plain:
    run = cost["subset_run"]
    return {"US dollars per run of these tasks": run["median"] if run else None}


def _figures(comparison: Comparison, protocol: str, label: str) -> Plain:
    """One table, a line for each subset; the reason where there are no figures."""
    if protocol not in comparison.in_use["figures"]:
        return {}
    figures = comparison.in_use["figures"][protocol]
    if figures["reason"]:
        return {f"\n{label}": f"not available: {figures['reason']}"}
    rows = [(f"Version {comparison.row.previous.number}, in use", figures)]
    rows += [(one.label, one.figures[protocol]) for one in comparison.variants if one.figures]
    n_used = figures["n_folds"] - figures["n_skipped"]
    table = [
        {"ranking tasks": subset, **{validated.FIGURES[name]: of[name] for name in FIGURES}}
        | {"gained by full score": of["difference"]["value"], "SE": of["difference"]["se"], "agents": of["n"]}
        for subset, of in rows
    ]
    return {f"\n{label}, {n_used} of {figures['n_folds']} folds": table}


def _variant(one: Variant) -> Plain:
    if one.k is None:
        return {f"\n{one.label}": f"no ranking tasks: {one.reason}"}
    moved, other = [row for row in one.stands if row["moves"]], ""
    if one.target != one.target_before:
        other = f" (target {one.target} instead of {one.target_before})"
    return {
        f"\n{one.label}": one.reason,
        f"{one.label}: enter": _some([_moved_rows(row) for row in one.entering]),
        f"{one.label}: leave": _some([_moved_rows(row) for row in one.leaving]),
        f"{one.label}: would have to run": _some(
            [
                {"agent": row["agent"], "tasks": len(row["tasks"]), "": words.first_names(row["tasks"])}
                for row in one.deltas
            ]
        ),
        f"{one.label}: {len(moved):,} of {words.counted(len(one.stands), 'agent')} would change rank"
        f"{other}": _some(
            [
                {
                    "agent": row["agent"],
                    "rank": place_text(row["before"]),
                    "rank after": place_text(row["after"]),
                }
                for row in moved
            ]
        ),
    }


def _moved_rows(row: Plain) -> Plain:
    return {"task": row["task"], "pass rate when chosen": row["then"], "now": row["now"]}


def _some(rows: list[Plain]) -> list[Plain] | None:
    """The first rows, and how many more there are; None where there is none."""
    more = len(rows) - N_MOVED
    if more > 0:
        return [*rows[:N_MOVED], {next(iter(rows[0])): f"… and {more:,} more"}]
    return rows or None


def _next(comparison: Comparison) -> Iterator[str]:
    if comparison.obstacle:
        yield f"Cannot be approved: {comparison.obstacle}."
        yield f"Next: {_making(comparison.row.benchmark)}"
        return
    command = f"{PROGRAM} reselect {comparison.row.benchmark.slug}"
    for one in comparison.variants:
        if one.changes:
            yield f"Next: {command} --approve {comparison.row.pk} --variant {one.name} --reason REASON"
    yield f"  or: {command} --reject {comparison.row.pk} --reason REASON"
