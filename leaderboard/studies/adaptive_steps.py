"""One step of an adaptive assignment by its study: one ability is estimated, so that a request may take it.

What the core is asked for is imported where it is used: intake names this module.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from leaderboard.studies.models import AdaptiveStudy
from selection import adaptive_told

if TYPE_CHECKING:
    from selection.adaptive_steps import Frozen

N_KEPT = 16  # studies that a process holds


@dataclass(frozen=True)
class Step:
    """Where an agent stands, by names of tasks; see `selection.adaptive_steps.Step`."""

    waiting: list[str]
    batch: list[str]
    n_left: int
    look: int
    n_looks: int
    k: int | None
    score: float | None
    lower: float | None
    upper: float | None
    se: float | None
    rank_lower: int | None
    rank_upper: int | None
    done: bool
    reason: str

    @property
    def sentence(self) -> str:
        """Score, interval, and what is left."""
        found = adaptive_told.estimate_text(self.score, self.lower, self.upper, self.k)
        left = adaptive_told.left_text(
            n_waiting=len(self.waiting),
            n_next=len(self.batch),
            n_left=self.n_left,
            done=self.done,
            reason=self.reason,
        )
        return f"{found}; {left}"

    def as_plain(self) -> dict[str, Any]:
        """The same for a receipt."""
        names = ("look", "n_looks", "k", "score", "lower", "upper", "rank_lower", "rank_upper", "done")
        return {name: getattr(self, name) for name in names} | {
            "waiting": self.waiting,
            "n_left_at_most": self.n_left,
            "told": self.sentence,
        }


def step(
    study: AdaptiveStudy,
    *,
    asked: Sequence[str],
    means: Mapping[str, float | None],
    active: Collection[str],
) -> Step:
    """Tell what an agent runs next.

    `asked` are the tasks that it was asked for, in that order; `means` its mean outcomes on tasks that it has
    delivered, None where they are invalid; `active` the tasks that may be asked for now.
    """
    import numpy as np

    from selection import adaptive_steps as core

    frozen = _frozen(study.pk, study.created_at)
    place = {name: j for j, name in enumerate(frozen.tasks)}
    found = core.step(
        frozen,
        np.array([place[name] for name in asked], dtype=np.intp),
        np.array([means.get(name) for name in frozen.tasks], dtype=np.float64),
        np.array([name in means for name in frozen.tasks], dtype=np.bool_),
        np.array([name in active for name in frozen.tasks], dtype=np.bool_),
    )
    figures = {name: getattr(found, name) for name in Step.__dataclass_fields__}
    names = {name: [frozen.tasks[j] for j in figures[name]] for name in ("waiting", "batch")}
    return Step(**figures | names)


def mean_outcome(conditions: Sequence[Sequence[float | None]]) -> float | None:
    """The mean outcome of a task from its trials under each condition; None where one has no valid trial."""
    from selection.adaptive_steps import mean_outcome as mean

    return mean(conditions)


@lru_cache(maxsize=N_KEPT)
def _frozen(pk: int, created_at: datetime) -> "Frozen":
    """Read a study once: it never changes, but another database may have another one of its number."""
    from selection.adaptive_steps import Frozen

    return Frozen.from_plain(AdaptiveStudy.objects.get(pk=pk, created_at=created_at).result)
