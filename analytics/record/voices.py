"""Which agents what all agents share is learnt from: nobody gains a say by delivering more agents.

Those that are vouched for, and two agents of each other account: the first that ran everything, in the order
in which they had, and after these the others as they came.

Source: This project's own.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from analytics.arrays import CodeArray, Mask

MAX_VOICES = 2  # agents of one account


class Voter(NamedTuple):
    """Whose an agent is, see `About`, and its first delivery (−1: none)."""

    name: str
    account: str = ""
    vouched: bool = True
    arrival: int = 0


def voices(voters: Sequence[Voter], finished: Sequence[int] | CodeArray) -> Mask:
    """Mark the agents that have a say, (n_agents,).

    finished: the delivery with which an agent had run everything; −1: none yet.
    """
    heard = np.array([one.vouched for one in voters], dtype=np.bool_)
    n_heard: Counter[str] = Counter()

    def place(i: int) -> tuple[bool, bool, int, str]:
        never, (name, _, _, arrival) = finished[i] < 0, voters[i]
        return never, never and arrival < 0, arrival if never else int(finished[i]), name

    for i in sorted(np.flatnonzero(~heard).tolist(), key=place):
        heard[i] = n_heard[voters[i].account] < MAX_VOICES
        n_heard[voters[i].account] += 1
    return heard
