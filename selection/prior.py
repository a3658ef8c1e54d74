"""What was decided or measured before an answer is asked for. A file starts with nothing given."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from analytics.differences.kept_draws import KeptDraws
from analytics.differences.rows import NEVER_MEASURED, Facet
from selection.full_scores import FitCache
from selection.ridge import RidgeFit


@dataclass(frozen=True)
class SubsetVersion:
    """A version of S that was fixed.

    tasks: by name, ascending; those retired since included.
    chosen_from: complete agents that it was chosen from, by name: the incumbents.
    arrival: the delivery that fixed it.
    """

    number: int
    tasks: tuple[str, ...]
    chosen_from: tuple[str, ...]
    arrival: int
    fixed_on: date
    lo: float
    hi: float
    widened: bool
    provisional: bool
    strategy: str
    reason: str
    n_complete: int
    n_tasks: int


@dataclass(frozen=True)
class FittedOn:
    """The agents that the calibration in use was fitted on, and their nested residuals y − ŷ.

    dates: as they were when it was fitted.
    residuals, scaffold_residuals, in_time: length n_agents; with the agent, or its whole scaffold, or all
        from its date on, left out and the selection repeated; None: no prediction.
    ridge: what was fitted then, where it is stored.
    """

    estimator: str
    tasks: tuple[str, ...]
    agents: tuple[str, ...]
    dates: tuple[date | None, ...]
    residuals: tuple[float | None, ...]
    scaffold_residuals: tuple[float | None, ...]
    in_time: tuple[float | None, ...]
    ridge: RidgeFit | None = None


@dataclass(frozen=True)
class Promise:
    """What was said of an agent's full score before the agent ran all tasks."""

    score: float
    interval: tuple[float, float] | None


OVER = "it was asked batch by batch, so that it is ranked by its estimated score on all tasks alone"
GOING_ON = "it is asked batch by batch, and not all of its tasks have arrived"
OVERDUE = (
    "it was asked for its remaining tasks, as it was drawn or stood on the podium by an estimate, and they "
    "have not all arrived in time"
)


@dataclass(frozen=True)
class Staged:
    """An agent that was asked batch by batch, and its estimated full score where it was stopped.

    study: which study its tasks were chosen by: data version and policy.
    reason: why it is placed on no task set, in words.
    k: tasks that its score rests on; None, as all that follow, while it is running.
    score, lower, upper, se: as of `WalkEstimate`.
    recalled: whether it was asked for the rest, as it came to stand on the podium.
    """

    study: tuple[int, int]
    n: int
    reason: str
    k: int | None = None
    score: float | None = None
    lower: float | None = None
    upper: float | None = None
    se: float | None = None
    degrees: int | None = None
    recalled: bool = False


@dataclass(frozen=True)
class PriorDecisions:
    """Decisions and measurements that stand.

    subsets: versions that were active, in order; the last is in use. Empty: S is chosen from the record.
    fitted: None: the calibration is fitted on the complete agents of the record.
    validation: `selection.validation.as_json` of the validation that stands.
    facets: what a variance study found of runs, prompts and judges; components None where never measured.
    promises: by agent, the latest estimated full score that a board showed.
    full_runs_only, revalidating, not_revalidated: why an operator asked for full runs only; the open drift
        request; that a monitor alarmed and not all runs asked for came in time; else empty.
    sampled: agents drawn at random for a full run since the version in use was fixed, with the probability π
        of being drawn. They count as sampled once they are complete.
    published: by agent that was stopped, and drawn or asked for the rest: its score then, and `se` (of
        `WalkEstimate`), as boards showed them.
    staged: agents that were asked for tasks chosen for them, by name.
    fits_asked_by: by agent that was asked batch by batch: the `selection.staged.study.staged_fit` behind it.
    podium: P, where staged assignment is in force and those on the podium are recalled.
    draws, fits: of earlier answers; they change no number and spare most of the work after one new agent.
    """

    subsets: tuple[SubsetVersion, ...] = ()
    fitted: FittedOn | None = None
    validation: Mapping[str, Any] | None = None
    facets: tuple[Facet, ...] = NEVER_MEASURED
    promises: Mapping[str, Promise] = field(default_factory=dict)
    full_runs_only: str = ""
    revalidating: str = ""
    not_revalidated: str = ""
    sampled: Mapping[str, float] = field(default_factory=dict)
    published: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    staged: Mapping[str, Staged] = field(default_factory=dict)
    fits_asked_by: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    podium: int | None = None
    draws: KeptDraws = field(default_factory=KeptDraws, compare=False, repr=False)
    fits: FitCache = field(default_factory=FitCache, compare=False, repr=False)
