"""One step of an adaptive assignment by its study: one ability is estimated, so that a request may take it.

What the core is asked for is imported where it is used: intake names this module.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from leaderboard.studies.models import AdaptiveStudy

if TYPE_CHECKING:
    from selection.adaptive_steps import Frozen

N_KEPT = 16  # studies that a process holds


@dataclass(frozen=True)
class Step:
    """Where an agent stands, by names of tasks; see `selection.adaptive_steps.Step`."""

    waiting: list[str]
    batch: list[str]
    n_done: int
    n_most: int
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
        found = "No score is told yet"
        if self.score is not None and self.lower is not None and self.upper is not None:
            found = (
                f"Its score on all tasks is estimated at {100 * self.score:.1f}%, between "
                f"{100 * self.lower:.1f} and {100 * self.upper:.1f} with 95%, from {self.k:,} tasks"
            )
        return f"{found}; {self.left}"

    @property
    def left(self) -> str:
        """What is left, in words."""
        if self.done:
            return f"nothing is left to run: {self.reason}"
        if not self.waiting and not self.batch:
            return self.reason
        most = f"at most {self.n_most - self.n_done:,} tasks are left"
        if self.waiting:
            return f"{len(self.waiting):,} of those asked for have not arrived, {most}"
        return f"ask for the next {len(self.batch):,} tasks, {most}"

    def as_plain(self) -> dict[str, Any]:
        """The same for a receipt."""
        names = ("look", "n_looks", "k", "score", "lower", "upper", "rank_lower", "rank_upper", "done")
        return {name: getattr(self, name) for name in names} | {
            "waiting": self.waiting,
            "n_left_at_most": 0 if self.done else self.n_most - self.n_done,
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


@lru_cache(maxsize=N_KEPT)
def _frozen(pk: int, created_at: datetime) -> "Frozen":
    """Read a study once: it never changes, but another database may have another one of its number."""
    from selection.adaptive_steps import Frozen

    return Frozen.from_plain(AdaptiveStudy.objects.get(pk=pk, created_at=created_at).result)
