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


def load_notes(now: Snapshot, loaded: Collection[str]) -> list[str]:
    """Say what does not count as it stands: absent trials, and outcomes of these agents under conditions."""
    record, lacking = now.record, list[str]()
    elsewhere: defaultdict[str, list[str]] = defaultdict(list)
    for about, condition, n in zip(record.about, record.condition, record.n_lacking.tolist(), strict=True):
        if condition and about.name in loaded:
            (lacking if n else elsewhere[condition]).append(about.name)
    sentences = [*record.uneven, words.compared_text(record.compared, record.left_out)]
    sentences += [
        words.uncounted_agents(ran, record.compared, names)
        for ran, names in sorted(elsewhere.items())
        if names
    ]
    sentences += [words.lacking_agents(record.compared, lacking)] if lacking else []
    return [words.sentence(one) for one in sentences if one]
