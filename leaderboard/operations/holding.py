"""Whether a delivery is held for review: its agent's whole line is implausible beside verified agents.

All that stands for the agent is judged at once, under its lock, so that a delivery in slices is judged like a
whole one.
"""

from leaderboard.catalog.queries import operates
from leaderboard.operations.delivered import Delivered
from leaderboard.studies.plausibility import why_implausible
from leaderboard.submissions.models import Submission
from leaderboard.submissions.queries import trusted_accounts


def why_held(delivered: Delivered) -> str:
    """Say what is implausible of the agent with this delivery; empty where nothing is, or nobody judges."""
    if not is_judged(delivered.submission):
        return ""
    return why_implausible(delivered.row, delivered.of_agent)


def is_judged(submission: Submission) -> bool:
    """Whether neither an operator delivered it nor an account that operators trust."""
    benchmark, token = submission.agent.benchmark, submission.token
    if submission.loaded or token is None or operates(token, benchmark):
        return False
    return submission.submitted_by_id not in trusted_accounts(benchmark)
