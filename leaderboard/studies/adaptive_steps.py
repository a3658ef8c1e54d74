"""One step of an adaptive assignment by its study: one ability is estimated, so that a request may take it.

What the core is asked for is imported where it is used: intake names this module.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from leaderboard.studies.models import AdaptiveStudy
from selection.adaptive_told import Step as Step

if TYPE_CHECKING:
    from selection.adaptive_steps import Frozen

N_KEPT = 16  # studies that a process holds


def step(
    study: AdaptiveStudy,
    *,
    asked: Sequence[str],
    means: Mapping[str, float | None],
    active: Collection[str],
) -> Step:
    """Tell what an agent runs next; see `selection.adaptive_steps.step`."""
    from selection import adaptive_steps as core

    return core.step(_frozen(study.pk, study.created_at), asked=asked, means=means, active=active)


@lru_cache(maxsize=N_KEPT)
def _frozen(pk: int, created_at: datetime) -> "Frozen":
    """Read a study once: it never changes, but another database may have another one of its number."""
    from selection.adaptive_steps import Frozen

    return Frozen.from_plain(AdaptiveStudy.objects.get(pk=pk, created_at=created_at).result)
