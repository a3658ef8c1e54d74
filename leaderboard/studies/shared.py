"""What the agents of a record share, for those who may not ask the core."""

from analytics import record
from leaderboard.studies.records import Snapshot


def offer(now: Snapshot) -> str:
    """Offer to rank on common tasks, where fewer than half of the agents asked for all have them all."""
    return record.offer(now.record)


def shared_tasks(now: Snapshot) -> tuple[str, ...]:
    """Names of the tasks with an outcome from at least 95% of the agents that were asked for all."""
    return record.shared_tasks(now.record)
