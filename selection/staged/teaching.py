"""The agents that teach: the fit to them, S and the first batch, and how far estimates err.

The theory is in ``selection/README.md``, “Staged assignment”.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from cachetools import LRUCache

from analytics.arrays import DECIMALS, FloatArray, IndexArray, Mask, read_only
from analytics.record.conditions import vouched_alone
from selection.bands import tasks_in_band
from selection.folds import CompleteAgents
from selection.intervals import MIN_SCAFFOLDS, components
from selection.staged.model import (
    StagedModel,
    added_variances,
    completed,
    estimate,
    estimates,
    fit,
    noisier,
)
from selection.staged.walks import Fit, Scale, Staging, recalled

FIRST = 0.2
N_RESIDUALS, PSEUDO_RESIDUALS = 19, 4
N_FOLDS = 20
N_KEPT = 200  # batches


@dataclass(frozen=True, eq=False)
class Refits:
    """What is made of one fit again and again, as asked for so far.

    models: fits without some of the agents, by their places.
    residuals: by the SHA-256 of what decides them.
    """

    models: dict[tuple[int, ...], StagedModel] = field(default_factory=dict)
    residuals: LRUCache[bytes, FloatArray] = field(default_factory=lambda: LRUCache(N_KEPT))


@dataclass(frozen=True)
class FullRun:
    """A teaching agent that ran everything.

    probability: π, that it ran everything.
    first, stopped: score and `model_se` (of `WalkEstimate`) after its first batch; and where the rule would
        have stopped it, had it not been drawn.
    vouched: verified or of a trusted account.
    """

    row: int
    score: float
    probability: float = 1.0
    first: tuple[float, float] | None = None
    stopped: tuple[float, float] | None = None
    scaffold: str = ""
    vouched: bool = True


@dataclass(frozen=True, eq=False)
class Teaching:
    """The teaching agents in the order in which they came, and the fit to them.

    outcomes: (n, m); NaN where not run.
    scores: (n,); full scores of those that ran everything; NaN for the others.
    noise: (n, m); s²(1/r − 1/R), what outcomes would vary by more with the r trials of a newcomer, 0 where it
        has as many; None: everywhere.
    """

    outcomes: FloatArray
    scores: FloatArray
    first: IndexArray
    full_runs: tuple[FullRun, ...]
    subset: IndexArray | None
    model: StagedModel
    staging: Staging
    refits: Refits = field(default_factory=Refits)
    noise: FloatArray | None = None

    @cached_property
    def of_newcomers(self) -> StagedModel:
        """The fit by which newcomers are estimated."""
        return self.model if self.noise is None else noisier(self.model, self.outcomes, self.noise)

    @cached_property
    def completed(self) -> FloatArray:
        """Outcomes, and the model's probabilities where not run, (n, m)."""
        return completed(self.model, self.outcomes)

    @cached_property
    def estimates(self) -> FloatArray:
        """Full scores as the board shows them, (n,): gaps are completed, whoever has them."""
        whole = ~np.isnan(self.outcomes).any(axis=1) & ~np.isnan(self.scores)
        return np.where(whole, self.scores, self.completed.mean(axis=1))

    @cached_property
    def bars(self) -> FloatArray:
        """Scores from the best down, (n,)."""
        return np.sort(np.round(self.estimates, DECIMALS))[::-1]

    @cached_property
    def ranking_tasks(self) -> IndexArray:
        """S: where it is not fixed, the band of the completed pass rates; empty where that is unsuited."""
        if self.subset is not None:
            return self.subset
        rule, rates = self.staging, self.completed.mean(axis=0)
        return tasks_in_band(rates, len(self.outcomes), lo=rule.lo, hi=rule.hi, widening=rule.widening)

    @cached_property
    def first_batch(self) -> IndexArray:
        """Tasks that every newcomer runs first, but for the audit tasks, ascending."""
        m = self.outcomes.shape[1]
        away = np.round(np.abs(self.completed[-self.staging.window :].mean(axis=0) - 0.5), DECIMALS)
        outside = ~np.isin(np.arange(m), self.ranking_tasks)
        return np.sort(np.lexsort((away, outside))[: first_size(m)])

    @cached_property
    def fit(self) -> Fit:
        """The fit and the errors by which a newcomer is judged."""
        bars, staging = self.bars, self.staging
        return Fit(
            model=self.of_newcomers,
            first_batch=self.first_batch,
            ranking_tasks=self.ranking_tasks,
            podium=float(bars[min(staging.podium, bars.size) - 1]),
            best=float(bars[0]),
            scale=self.scale,
            staging=staging,
            n_teaching=len(self.outcomes),
            n_replayable=sum(1 for one in self.full_runs if one.stopped or one.first is None),
        )

    @cached_property
    def recalled(self) -> IndexArray:
        """Rows of those that were stopped and have to run the rest; see `selection.staged.walks.recalled`."""
        errors = np.full(len(self.outcomes), np.nan)
        on_podium = np.round(self.estimates, DECIMALS) >= self.fit.podium
        for row in np.flatnonzero(np.isnan(self.scores) & on_podium).tolist():
            one = estimate(self.of_newcomers, self.outcomes[row], float(self.model.means[row]))
            errors[row] = self.scale.c * one.se
        return recalled(self.estimates, errors, self.staging)

    @cached_property
    def telling(self) -> tuple[FullRun, ...]:
        """Full runs whose errors count, by `vouched_alone`: others may have run the rest badly on purpose."""
        vouched = np.array([one.vouched for one in self.full_runs], dtype=np.bool_)
        here = vouched_alone(np.ones_like(vouched), vouched)
        return tuple(one for one, tells in zip(self.full_runs, here.tolist(), strict=True) if tells)

    @cached_property
    def scale(self) -> Scale:
        """C and ν of estimates from the first batch."""
        return self.scale_on(self.first_batch)

    def scale_on(self, batch: IndexArray, of: Mask | None = None) -> Scale:
        """Return c and ν of agents that ran these tasks alone.

        of: (m,); the tasks that the score is of; without them all, and estimates that were published come
            first.
        """
        drawn = [(one, one.stopped) for one in self.telling if one.stopped]
        as_they_came = [(one, one.first) for one in self.telling if one.first]
        for pairs in (drawn, as_they_came):
            if of is None and len(pairs) >= N_RESIDUALS:
                z = np.array([(one.score - score) / se for one, (score, se) in pairs])
                return scale_of(z, np.array([1.0 / one.probability for one, _ in pairs]))
        z = self._left_out(batch, of, np.arange(len(self.telling)) % N_FOLDS)
        return scale_of(z, np.array([1.0 / one.probability for one in self.telling]))

    def scale_for(
        self, scaffold: str, batch: IndexArray, of: Mask | None = None
    ) -> tuple[Scale, bool | None]:
        """Return the same for an agent of this scaffold, and whether no full run has it.

        None in place of True: with under five scaffolds its scale is that of the others.
        """
        known = self.scale_on(batch, of)
        scaffolds = [one.scaffold for one in self.telling]
        names = sorted(set(scaffolds))
        if scaffold in names:
            return known, False
        if len(names) < MIN_SCAFFOLDS:
            return known, None
        z = self._left_out(batch, of, np.array([names.index(one) for one in scaffolds]) % N_FOLDS)
        return Scale(max(components(z, scaffolds).s_cal, known.c), len(names) - 1), True

    def _left_out(self, batch: IndexArray, of: Mask | None, folds: IndexArray) -> FloatArray:
        """(y − est)/se of the full runs from these tasks, each by a fit without its fold."""
        rows = np.array([one.row for one in self.telling], dtype=np.intp)
        scores = np.array([one.score for one in self.telling], dtype=np.float64)
        known = (np.zeros(0) if one is None else one for one in (of, self.noise))
        decisive = (batch, *known, folds, rows, scores)
        digest = hashlib.sha256(repr([one.size for one in decisive]).encode())
        for one in decisive:
            digest.update(np.ascontiguousarray(one).data)
        residuals, key = self.refits.residuals, digest.digest()
        if key not in residuals:
            residuals[key] = read_only(self._residuals(batch, of, folds, rows, scores))
        return residuals[key]

    def _residuals(
        self, batch: IndexArray, of: Mask | None, folds: IndexArray, rows: IndexArray, scores: FloatArray
    ) -> FloatArray:
        truth = scores if of is None else np.nanmean(self.outcomes[rows][:, of], axis=1)
        z = np.zeros(rows.size)
        for f in range(int(folds.max(initial=-1)) + 1):
            out = np.flatnonzero(folds == f)
            seen = np.full((out.size, self.outcomes.shape[1]), np.nan)
            seen[:, batch] = self.outcomes[np.ix_(rows[out], batch)]
            stays = np.ones(len(self.outcomes), dtype=np.bool_)
            stays[rows[out]] = False
            model, means = self._without(stays), self.model.means[rows[out]]
            if self.noise is not None:
                model = noisier(model, self.outcomes[stays], self.noise[stays])
            of_score = slice(None) if of is None else of
            estimated, se, passing = estimates(model, seen, means, of_score)
            errors = truth[out] - estimated
            if self.noise is not None:
                added = added_variances(model, seen, passing, self.noise[rows[out]], of_score)
                errors = np.copysign(np.sqrt(errors**2 + added), errors)
            known = se > 0  # where nothing was left out there is no error
            z[out[known]] = errors[known] / se[known]
        return z

    def _without(self, stays: Mask) -> StagedModel:
        models, out = self.refits.models, tuple(np.flatnonzero(~stays).tolist())
        if out not in models:
            n_gone = np.cumsum(~stays)
            first = self.first - np.where(self.first > 0, n_gone[np.maximum(self.first - 1, 0)], 0)
            start = replace(self.model, abilities=self.model.abilities[stays])
            models[out] = fit(self.outcomes[stays], first[stays], start=start)
        return models[out]


def of_full_runs(agents: CompleteAgents, rows: IndexArray) -> Teaching:
    """Return some complete agents as those that teach, with the fit that all of them keep."""
    rows = agents.in_time(rows)
    runs = [
        FullRun(k, float(agents.scores[i]), scaffold=agents.scaffolds[i], vouched=agents.is_vouched(i))
        for k, i in enumerate(rows)
    ]
    return Teaching(
        outcomes=agents.outcomes[rows],
        scores=agents.scores[rows],
        first=agents.first_of(rows),
        full_runs=tuple(runs),
        subset=None,
        model=agents.model_of(np.sort(rows)),
        staging=Staging(),
    )


def scale_of(z: FloatArray, weights: FloatArray) -> Scale:
    """Return c and ν from residuals in units of se, and the weights of their agents."""
    c2 = (PSEUDO_RESIDUALS + float(weights @ z**2)) / (PSEUDO_RESIDUALS + float(weights.sum()))
    return Scale(float(np.sqrt(c2)), PSEUDO_RESIDUALS + z.size)


def taught(
    outcomes: FloatArray,
    scores: FloatArray,
    full_runs: Sequence[FullRun],
    staging: Staging,
    *,
    before: Teaching | None = None,
    first: IndexArray | None = None,
    subset: IndexArray | None = None,
    reselected: bool = False,
    fitted: tuple[StagedModel, Refits] | None = None,
    noise: FloatArray | None = None,
) -> Teaching:
    """Fit the model anew, from the fit before; fix S with the agent that reaches `subset_from`.

    `subset` is S where it was fixed otherwise; `reselected`: S is never fixed, but chosen with each fit;
    `fitted`: the fit, where it is known, and what was made of it.
    """
    first = np.arange(len(outcomes)) if first is None else first
    model, refits = fitted or (fit(outcomes, first, start=before.model if before else None), Refits())
    subset = before.subset if before and subset is None else subset
    teaching = Teaching(outcomes, scores, first, tuple(full_runs), subset, model, staging, refits, noise)
    is_fixed = not reselected and len(outcomes) >= staging.subset_from
    if is_fixed and teaching.subset is None and teaching.ranking_tasks.size:
        return replace(teaching, subset=teaching.ranking_tasks)
    return teaching


def first_size(m: int) -> int:
    """Return k₁, the tasks of a first batch."""
    return max(1, min(m // 2, max(10, round(FIRST * m))))
