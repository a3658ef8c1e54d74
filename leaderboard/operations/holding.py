"""Whether a delivery is held for review: its agent's whole line is implausible beside verified agents.

Judged is what would count with it, and the same with what is held already, under the agent's lock: a delivery
in slices is judged like a whole one, and what waits for something else, or is checked, hides nothing.
"""

from collections.abc import Collection

from leaderboard.catalog.queries import operates
from leaderboard.operations.delivered import DeliveredRows
from leaderboard.studies.receipt import why_implausible
from leaderboard.submissions.models import Submission
from leaderboard.submissions.queries import held_for_review, is_verified


def why_held(delivered: DeliveredRows) -> str:
    """Say what is implausible of the agent with this delivery; empty where nothing is, or nobody judges."""
    submission = delivered.submission
    if not is_judged(submission, delivered.trusted) or (submission.pk and is_verified(submission)):
        return ""
    besides = [delivered.beside_counting()]
    if delivered.before.num_rows:
        awaiting = held_for_review(submission.agent.benchmark).filter(agent=submission.agent)
        if pks := set(awaiting.values_list("pk", flat=True)):
            besides.append(delivered.beside_counting(pks))
    for other in besides:
        if why := why_implausible(other.row, other.of_agent):
            return why
    return ""


def is_judged(submission: Submission, trusted: Collection[int]) -> bool:
    """Whether neither an operator delivered it nor one of the accounts that operators trust."""
    benchmark, token = submission.agent.benchmark, submission.token
    if submission.loaded or token is None or operates(token, benchmark):
        return False
    return submission.submitted_by_id not in trusted
