"""A proposal of another subset as text: figures and cost side by side, then what each variant changes."""

from collections.abc import Iterator, Mapping
from typing import Any

from leaderboard.called import PROGRAM
from leaderboard.operations.comparisons import Comparison, Moved, Stand, Variant
from leaderboard.studies.answers import as_text, validated, words

N_MOVED = 20  # of tasks, deltas and ranks; their number is always told
FIGURES = ("pairs_correct_full", "pairs_correct", "skill", "rho_rest")

HINDSIGHT = (
    "A subset proposed was chosen from these very runs, which flatters it; one chosen anew after each agent "
    "knows the agents before alone."
)
Plain = dict[str, Any]


def comparison_text(found: Comparison) -> str:
    """Set a proposal as text, with what to do next."""
    told: Plain = {
        "proposal": f"{found.id}, {found.status}, {found.proposed_at:%Y-%m-%d}: {found.reason}",
        "alert": found.alert or None,
        "rests on": f"{words.counted(found.n_complete, 'complete agent')}, {found.n_tasks:,} tasks"
        + _since(found),
        "\nsubsets": list(_subsets(found)),
        "\nreplays of the policy in force on this benchmark's own full runs": list(found.replays) or None,
        "": HINDSIGHT if found.replays else None,
    }
    for protocol, rule in validated.PROTOCOLS.items():
        told |= _figures(found, protocol, rule.label)
    for variant in found.variants:
        told |= _variant(variant)
    known = {key: value for key, value in told.items() if value is not None}
    return "\n".join([as_text(known), "", *_next(found)])


def _since(found: Comparison) -> str:
    n = found.n_versions_since
    return f"; the data have changed {words.counted(n, 'time')} since" if n else ""


def _subsets(found: Comparison) -> Iterator[Plain]:
    yield {"subset": f"Version {found.previous}, in use", "tasks": found.k} | _cost(found.cost)
    for one in found.variants:
        row = {"enter": len(one.entering), "leave": len(one.leaving), "deltas": len(one.deltas)}
        yield {"subset": one.label, "tasks": one.k} | (row | _cost(one.cost) if one.cost else {})


def _cost(cost: Mapping[str, Any]) -> Plain:
    run = cost["subset_run"]
    return {"a run, US dollars": run["median"] if run else None}


def _figures(found: Comparison, protocol: str, label: str) -> Plain:
    """One table, a line for each subset; the reason where there are no figures."""
    if protocol not in found.figures:
        return {}
    kept = found.figures[protocol]
    if kept["reason"]:
        return {f"\n{label}": f"not available: {kept['reason']}"}
    rows = [(f"Version {found.previous}, in use", kept)]
    rows += [(one.label, one.figures[protocol]) for one in found.variants if one.figures]
    n_used = kept["n_folds"] - kept["n_skipped"]
    return {f"\n{label}, {n_used} of {kept['n_folds']} folds": [_row(*row) for row in rows]}


def _row(label: str, told: Mapping[str, Any]) -> Plain:
    row = {"subset": label} | {validated.FIGURES[name]: told[name] for name in FIGURES}
    difference = told["difference"]
    return row | {"gained by full score": difference["value"], "±": difference["se"], "agents": told["n"]}


def _variant(one: Variant) -> Plain:
    if one.k is None:
        return {f"\n{one.label}": f"no subset: {one.reason}"}
    moved = [row for row in one.stands if row.moves]
    return {
        f"\n{one.label}": one.reason,
        f"{one.label}: enter": _some([_moved(row) for row in one.entering]),
        f"{one.label}: leave": _some([_moved(row) for row in one.leaving]),
        f"{one.label}: would have to run": _some(
            [
                {"agent": row.agent, "tasks": len(row.tasks), "": words.first_names(list(row.tasks))}
                for row in one.deltas
            ]
        ),
        f"{one.label}: {len(moved):,} of {words.counted(len(one.stands), 'agent')} would stand otherwise"
        + _target(one): _some([_stand(row) for row in moved]),
    }


def _target(one: Variant) -> str:
    if one.target == one.target_before:
        return ""
    return f", the board being ordered by the target {one.target} instead of {one.target_before}"


def _moved(row: Moved) -> Plain:
    return {"task": row.task, "pass rate when chosen": row.then, "now": row.now}


def _stand(row: Stand) -> Plain:
    return {"agent": row.agent, "rank": _placed(row.before), "rank after": _placed(row.after)}


def _placed(told: Mapping[str, Any]) -> str:
    if told["rank"] is None:
        return f"unranked, {told['how']}"
    return f"{told['rank']} ({told['rank_lower']} to {told['rank_upper']}), {told['how']}"


def _some(rows: list[Plain]) -> list[Plain] | None:
    """The first rows, and how many more there are; None where there is none."""
    more = len(rows) - N_MOVED
    if more > 0:
        return [*rows[:N_MOVED], {next(iter(rows[0])): f"… and {more:,} more"}]
    return rows or None


def _next(found: Comparison) -> Iterator[str]:
    if found.obstacle:
        yield f"It cannot be approved: {found.obstacle}."
        yield f"Next: {PROGRAM} reselect {found.slug} --propose REASON"
        return
    command = f"{PROGRAM} reselect {found.slug}"
    for one in found.variants:
        if one.changes:
            yield f"Next: {command} --approve {found.id} --variant {one.name} --reason REASON"
    yield f"  or: {command} --reject {found.id} --reason REASON"
