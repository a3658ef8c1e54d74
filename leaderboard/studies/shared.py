"""What the agents of a record share, for those who may not ask the core."""

from collections import defaultdict
from collections.abc import Collection

from analytics import record
from leaderboard.studies.records import Snapshot
from selection.standings import words


def offer(now: Snapshot) -> str:
    """Offer to rank on common tasks, where fewer than half of the agents asked for all have them all."""
    return record.offer(now.record)


def shared_tasks(now: Snapshot) -> tuple[str, ...]:
    """Names of the tasks with an outcome from at least 95% of the agents that were asked for all."""
    return record.shared_tasks(now.record)


def told_of_load(now: Snapshot, loaded: Collection[str]) -> list[str]:
    """Say what does not count as it stands: absent trials, and outcomes of these agents under conditions."""
    found, lacking = now.record, list[str]()
    elsewhere: defaultdict[str, list[str]] = defaultdict(list)
    for about, condition, n in zip(found.about, found.condition, found.n_lacking.tolist(), strict=True):
        if condition and about.name in loaded:
            (lacking if n else elsewhere[condition]).append(about.name)
    told = [*found.uneven, words.compared_text(found.compared, found.left_out)]
    told += [
        words.uncounted_agents(ran, found.compared, names)
        for ran, names in sorted(elsewhere.items())
        if names
    ]
    told += [words.lacking_agents(found.compared, lacking)] if lacking else []
    return [words.sentence(one) for one in told if one]
