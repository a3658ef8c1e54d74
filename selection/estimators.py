"""Subset, calibration and protocols as scikit-learn knows them, for a `Pipeline` or `cross_validate`.

X holds the mean outcomes of complete agents, a row each, on all active tasks; y their full scores::

    Pipeline([("subset", MidRangeSelector()), ("score", FullScore())])

Under `LeaveOneAgentOut` the pipeline's predictions are those behind ``rho_calibrated`` of ``loao`` in
`selection.validation`. Where `validation` skips a fold without a subset or an agent with over a tenth of it
missing, an estimator refuses, and scikit-learn's ``error_score`` tells what becomes of the fold. Dates are in
no X, so that ``forecast`` refuses.
"""

from collections.abc import Iterator
from datetime import date
from typing import Any, ClassVar, Literal, Self

import numpy as np

try:
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.feature_selection import SelectorMixin
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import BaseCrossValidator
    from sklearn.utils.validation import (
        check_consistent_length,
        check_is_fitted,
        check_non_negative,
        validate_data,
    )
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "selection.estimators needs scikit-learn, which is not installed: pip install 'bandstand[sklearn]'",
        name=error.name,
    ) from error

from analytics.arrays import FloatArray, IndexArray, Mask, read_only
from selection import ridge
from selection.bands import HI, LO, N_AGENTS_PROVISIONAL, Band, mid_range
from selection.errors import SelectionError
from selection.folds import N_SEEDS, CompleteAgents, Fold, generator, plan
from selection.strategies import SEEDED, STRATEGIES, Training


class EstimatorRefused(SelectionError):
    """An estimator or a splitter cannot do this: name_unknown, no_subset, no_groups, no_folds."""


class _OfOutcomes(BaseEstimator):
    """What is fitted to mean outcomes: numbers from 0 to 1, or missing."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.positive_only = True
        return tags

    def _outcomes(self, X: Any, *, reset: bool, n_agents: int = 1) -> FloatArray:
        """X as numbers; from `n_agents` rows on. That none is above 1 is checked where they are used."""
        checked = validate_data(
            self, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan", ensure_min_samples=n_agents
        )
        check_non_negative(checked, type(self).__name__)
        return np.asarray(checked, dtype=np.float64)


class MidRangeSelector(SelectorMixin, _OfOutcomes):
    """Keep the tasks of mid-range pass rate, or as many by another strategy.

    lo, hi: first band of pass rates tried; a thin one widens (`selection.bands`).
    strategy: a key of `STRATEGIES`; all but ``mid_range`` choose as many tasks as the band holds.
    seed: what the draws of ``random`` and ``stratified`` start from.
    tasks_: (k,); selected columns, ascending.
    pass_rates_: (n_tasks,).
    """

    tasks_: IndexArray
    pass_rates_: FloatArray
    band_: Band

    def __init__(self, *, lo: float = LO, hi: float = HI, strategy: str = "mid_range", seed: int = 0) -> None:
        self.lo = lo
        self.hi = hi
        self.strategy = strategy
        self.seed = seed

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose tasks from the outcomes of at least 5 complete agents.

        X: array-like, (n_agents, n_tasks).
        y: array-like, (n_agents,); full scores, for ``greedy``; the rows' means over valid cells when not
            given.
        Raises SelectionError (outcome_range, band_range).
        Raises EstimatorRefused: when no strategy is called so, or the band holds too few tasks.
        Raises SelectionError: what the strategy says.
        """
        if self.strategy not in STRATEGIES:
            known = ", ".join(STRATEGIES)
            raise EstimatorRefused(f"no strategy {self.strategy!r}; there are {known}", code="name_unknown")
        outcomes = self._outcomes(X, reset=True, n_agents=N_AGENTS_PROVISIONAL)
        self.band_ = mid_range(outcomes, lo=self.lo, hi=self.hi)
        if not self.band_.suited:
            raise EstimatorRefused(self.band_.reason, code="no_subset")
        self.pass_rates_ = self.band_.pass_rates
        self.tasks_ = self.band_.tasks
        if self.strategy != "mid_range":
            scores = np.nanmean(outcomes, axis=1) if y is None else np.asarray(y, dtype=np.float64)
            training = Training.of(outcomes, scores, lo=self.lo, hi=self.hi)
            rng = generator(self.seed, self.strategy) if self.strategy in SEEDED else None
            self.tasks_ = STRATEGIES[self.strategy](training, self.band_.size, rng)
        return self

    def _get_support_mask(self) -> Mask:
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=np.bool_)
        mask[self.tasks_] = True
        return mask


class FullScore(RegressorMixin, _OfOutcomes):
    """Predict full scores from outcomes on the subset by scikit-learn's ``Ridge(alpha=1.0)``.

    coef_: (k,).
    """

    calibration_: ridge.RidgeFit
    coef_: FloatArray
    intercept_: float

    def __init__(self, *, estimator: str = "ridge") -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any) -> Self:
        """Calibrate on at least 2 agents.

        X: array-like, (n_agents, k); a missing cell counts as the mean of its column.
        y: array-like, (n_agents,); full scores.
        Raises SelectionError (outcome_range, task_unobserved).
        Raises EstimatorRefused: when no estimator is called so.
        """
        if self.estimator != "ridge":
            raise EstimatorRefused(f"no estimator {self.estimator!r}; there is ridge", code="name_unknown")
        _, scores = validate_data(
            self, X, y, y_numeric=True, ensure_all_finite="allow-nan", ensure_min_samples=2
        )
        outcomes, scores = ridge.checked_training(self._outcomes(X, reset=True), scores, ridge.ALPHA)
        means, fitted = SimpleImputer(), Ridge(alpha=ridge.ALPHA)
        fitted.fit(means.fit_transform(outcomes), scores)
        self.calibration_ = ridge.RidgeFit(
            intercept=float(fitted.intercept_),
            coefficients=read_only(fitted.coef_),
            column_means=read_only(means.statistics_),
            n=scores.size,
            alpha=ridge.ALPHA,
        )
        self.coef_, self.intercept_ = self.calibration_.coefficients, self.calibration_.intercept
        return self

    def predict(self, X: Any) -> FloatArray:
        """Predicted full scores, shape (n_agents,); neither rounded nor clipped.

        X: array-like, (n_agents, k).
        Raises SelectionError: outcome_range cells_missing: with the first agent that lacks over a tenth of
            the tasks.
        """
        check_is_fitted(self)
        return ridge.predict(self.calibration_, self._outcomes(X, reset=False))


class _Protocol(BaseCrossValidator):
    """The folds of `selection.folds`, rows of X in the place of the complete agents in name order."""

    protocol: ClassVar[str]
    by: ClassVar[Literal["", "scaffolds", "models", "dates"]] = ""

    n_seeds = N_SEEDS
    seed = 0

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[IndexArray, IndexArray]]:
        """Yield the rows trained on and the rows held out of each fold.

        groups: array-like, (n_agents,); what the protocol holds out by, where it does.
        Raises EstimatorRefused: without the groups that are needed, or with the sentence that says why there
            are no folds.
        """
        for fold in self._folds(X, y, groups):
            yield np.array(fold.training), np.array(fold.held_out)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds; what `split` needs, this needs."""
        return len(self._folds(X, y, groups))

    def _folds(self, X: Any, y: Any, groups: Any) -> tuple[Fold, ...]:
        first = next((rows for rows in (X, y, groups) if rows is not None), ())
        check_consistent_length(X, y, groups)
        if self.by and groups is None:
            wanted = f"{type(self).__name__} needs groups, the {self.by} of the agents"
            raise EstimatorRefused(wanted, code="no_groups")
        n = np.shape(first)[0]
        agents = CompleteAgents(
            names=tuple(map(str, range(n))),
            outcomes=np.empty((n, 0)),  # no plan asks for one
            scores=np.full(n, np.nan),
            dates=_days(groups) if self.by == "dates" else (None,) * n,
            scaffolds=tuple(map(str, groups)) if self.by == "scaffolds" else ("",) * n,
            models=tuple(map(str, groups)) if self.by == "models" else ("",) * n,
        )
        folds = plan(self.protocol, agents, n_seeds=self.n_seeds, base_seed=self.seed)
        if not folds.folds:
            reason = folds.reason or f"{self.n_seeds} splits are asked for"
            raise EstimatorRefused(f"{type(self).__name__}: {reason}", code="no_folds")
        return folds.folds


class _GroupedProtocol(_Protocol):
    # How a splitter says that it consumes groups, should metadata routing be on.
    __metadata_request__split: ClassVar[dict[str, bool]] = {"groups": True}


class LeaveOneAgentOut(_Protocol):
    """Each agent in turn, trained on all others: ``loao``."""

    protocol = "loao"


class RandomSplits(_Protocol):
    """A fifth of the agents held out at random, `n_seeds` times: ``random_80_20``."""

    protocol = "random_80_20"

    def __init__(self, *, n_seeds: int = N_SEEDS, seed: int = 0) -> None:
        self.n_seeds = n_seeds
        self.seed = seed


class WithinScaffold(_GroupedProtocol):
    """Each agent in turn, trained on the others of its scaffold, where it has 10 agents: ``within_scaffold``.

    `groups` are the agents' scaffolds.
    """

    protocol, by = "within_scaffold", "scaffolds"


class LeaveOneScaffoldOut(_GroupedProtocol):
    """Each scaffold in turn, where at least 5 agents remain: ``loso``; `groups` are the agents' scaffolds."""

    protocol, by = "loso", "scaffolds"


class LeaveOneModelOut(_GroupedProtocol):
    """Each model in turn: ``lomo``; `groups` are the agents' models."""

    protocol, by = "lomo", "models"


class TemporalSplit(_GroupedProtocol):
    """The agents of each date, trained on all of earlier dates from 10 on: ``temporal``.

    `groups` are the agents' dates: dates, datetimes, ISO texts or datetime64; a time of day is left off.
    """

    protocol, by = "temporal", "dates"


def _days(groups: Any) -> tuple[date | None, ...]:
    try:
        return tuple(np.asarray(groups, dtype="datetime64[D]").tolist())
    except ValueError as error:
        raise EstimatorRefused(f"groups are no dates: {error}", code="no_groups") from None
