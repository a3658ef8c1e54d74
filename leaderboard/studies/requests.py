"""What an answer has to know of rerun requests. Nothing heavy is imported."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Reruns:
    """What is known of rerun requests: an open drift request and one that ran out, each in words, and the
    agents drawn at random since the subset in use was fixed, by id, with the probability of being drawn.

    `recalled` are the ids of agents whose remaining tasks are awaited, `overdue` of those whose did not come
    in time.
    """

    revalidating: str = ""
    not_revalidated: str = ""
    sampled: Mapping[int, float] = field(default_factory=dict)
    recalled: tuple[int, ...] = ()
    overdue: tuple[int, ...] = ()


NO_RERUNS = Reruns()
