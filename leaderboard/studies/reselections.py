"""What could replace the subset in use, as it is kept with a proposal: agents by id, tasks by name."""

from typing import Any

from leaderboard.catalog.models import Assigning
from leaderboard.studies.board_inputs import BoardInputs
from leaderboard.studies.models import TaskSubset
from leaderboard.studies.records import Reader, Snapshot
from leaderboard.studies.rules import rules_sha256
from leaderboard.studies.staged_studies import IN_USE, Decisions, Progress, replays_of_subsets
from leaderboard.studies.subsets import fixing
from selection.standings.choice import band_of
from selection.standings.reselecting import proposals_of


def proposal_of(
    now: Snapshot,
    known: BoardInputs,
    subset: TaskSubset,
    decisions: Decisions,
    progress: Progress | None,
) -> dict[str, Any]:
    """Tell what approval would activate, by each rule, and what it would change.

    Beside what `selection.standings.reselecting` gives stand the rules and conditions that it was made
    under, and replays of the policy in force on each subset. Agents stand by id, so that what is kept does
    not name them.
    """
    # Pass rates when the subset was chosen: those stored with it, and of other tasks as the log has them
    rates_then: dict[str, float | None] = {}
    if then := Reader(subset.benchmark).at(fixing(subset), subset):
        rates = band_of(then.record, then.rules).pass_rates.tolist()
        both = zip(then.record.table.tasks, rates, strict=True)
        rates_then = {name: rate for name, rate in both if rate == rate}
    rates_then |= dict(subset.members.values_list("task__name", "pass_rate"))
    content = proposals_of(now.record, now.rules, known.prior_decisions(), rates_then, progress)
    proposed = {name: tuple(one["tasks"]) for name, one in content["variants"].items() if "tasks" in one}
    replays: dict[str, Any] = {}
    if proposed and now.policy.assignment != Assigning.FULL:
        tasks = {IN_USE: tuple(subset.members.values_list("task__name", flat=True))} | proposed
        replays = replays_of_subsets(now, decisions, tasks)
    ids = {agent.name: agent.pk for agent in now.agents}
    for row in _of_agents(content):
        row["agent"] = ids[row["agent"]]
    return content | {
        "chosen_from": [ids[name] for name in content["chosen_from"]],
        "compared": now.compared,
        "rules": rules_sha256(now.policy),
        "replays": replays,
    }


def renumber(content: dict[str, Any], *, by: int) -> dict[str, Any]:
    """The same where the ids of all agents have grown by this."""
    for row in _of_agents(content):
        row["agent"] += by
    return content | {"chosen_from": [pk + by for pk in content["chosen_from"]]}


def _of_agents(content: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        row
        for variant in content["variants"].values()
        for row in (*variant.get("deltas", ()), *variant.get("board", {}).get("agents", ()))
    ]
