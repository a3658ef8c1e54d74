"""How alike the repeated trials of one agent are: consistency, copies, and the facets that its mean is over.

Trials repeat only within one condition (prompt variant, judge, temperature); where several are compared there
is no consistency of all. An agent two of whose trials are copies, or whose trials only improve, has none.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Repeats:
    """What an agent's repeated trials tell; see `analytics.trials`.

    icc, lower, upper: intraclass correlation with its 95% interval; None: `reason` says why.
    trials_per_task: n₀.
    n_tasks: tasks with two or more valid trials under some condition.
    trials_needed, needed: trials of each task from which on the estimate settles, or None, and the same in
        words.
    copies: why its trials count as one, in words; else empty.
    cumulative: whether they count as one since hardly any task gets worse from one to a later one.
    gains: a latest delivery that is better on some tasks and worse on none, in words; else empty.
    levels: levels of "run", "prompt" and "judge" that the agent's mean is over.
    by_condition: where several conditions are compared, the fields up to `reason` under each.
    """

    icc: float | None = None
    lower: float | None = None
    upper: float | None = None
    sigma_w2: float | None = None
    trials_per_task: float | None = None
    n_tasks: int = 0
    trials_needed: int | None = None
    needed: str = ""
    note: str = ""
    reason: str = ""
    copies: str = ""
    cumulative: bool = False
    gains: str = ""
    levels: Mapping[str, int] = field(default_factory=dict)
    by_condition: tuple[Mapping[str, Any], ...] = ()

    def as_plain(self) -> dict[str, Any]:
        """Return the fields as objects of JSON."""
        parts = [dict(one) for one in self.by_condition]
        return vars(self) | {"levels": dict(self.levels), "by_condition": parts}

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> "Repeats":
        """Return what `as_plain` was made from."""
        return cls(**{**plain, "by_condition": tuple(plain.get("by_condition", ()))})
