"""Held-out records: what each agent shows on a subset that was chosen, and calibrated, without it.

The theory is in ``selection/README.md``, “Nested validation”. Of the pair tables agreement[i, j] is 2, 1, 0
for a training agent j: the order of y, r_i = r_j, the opposite; −1: y_i = y_j; agreement_full is the same of
ŷ_i, by the first estimator asked for, against the measured y_j. A held-out agent with more than a tenth of S
missing is left out and counted. r, ŷ and y are rounded to 1e-9 before orders are compared.

Source: Ndzomga, *Efficient Benchmarking of AI Agents*, §3.4.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from analytics.arrays import DECIMALS, FloatArray, IndexArray, Mask, ratio, read_only
from selection import full_scores
from selection.errors import SelectionError
from selection.folds import (
    CompleteAgents,
    Fold,
    FoldBands,
    Rule,
    fold_bands,
    generator,
    membership,
    nested_plan,
    subset_sums,
)
from selection.strategies import SEEDED, STRATEGIES, Training


@dataclass(frozen=True, eq=False)
class Subsets:
    """What a strategy chose in the folds that have a band.

    folds: length n_folds; folds in which the strategy gave a subset.
    """

    folds: tuple[Fold, ...]
    tasks: tuple[IndexArray, ...]
    n_refused: int
    refusal: str


@dataclass(frozen=True, eq=False)
class HeldOutRecords:
    """Held-out records of one strategy under one protocol.

    agents, folds: (n_records,); positions of the held-out agent and of its fold.
    scores, subset_means, predictions, rest_means: (n_records,).
    estimates: (n_records,); ŷ by estimator; the first is that of the policy.
    agreement, agreement_full: (n_records, n_agents).
    n_left_out: (n_folds,); held-out agents with more than a tenth of the subset missing.
    """

    agents: IndexArray
    folds: IndexArray
    scores: FloatArray
    subset_means: FloatArray
    predictions: FloatArray
    rest_means: FloatArray
    estimates: Mapping[str, FloatArray]
    agreement: npt.NDArray[np.int8]
    agreement_full: npt.NDArray[np.int8]
    n_left_out: IndexArray

    @property
    def n(self) -> int:
        """Number of records."""
        return int(self.agents.size)

    def take(self, mask: Mask) -> "HeldOutRecords":
        """Return the records whose mask is true."""
        rows = np.flatnonzero(mask)
        names = {entry.name for entry in fields(self)} - {"estimates", "n_left_out"}
        taken: dict[str, Any] = {name: getattr(self, name)[rows] for name in names}
        estimates = {name: values[rows] for name, values in self.estimates.items()}
        return replace(self, estimates=estimates, **taken)


def choose(
    agents: CompleteAgents,
    bands: FoldBands,
    strategy: str,
    rule: Rule,
    base_seed: int,
    *what: str | int,
    each: Callable[[int], None] | None = None,
) -> Subsets:
    """Let a strategy choose a subset in every fold that has a band, as large as the band.

    It sees the rows of the agents that count in the fold, and nothing else.

    *what: protocol and number of the draw: what a draw's generator depends on, with the fold's name but for
        `random`, whose folds share one order of the tasks.
    each: called with the number of folds that have their subset.
    """
    if strategy == "mid_range":
        return _without_refusals(bands.folds, bands.tasks)
    answers: list[IndexArray | str] = []
    known = dict[tuple[int, bytes], IndexArray | str]()
    for fold, counted, rates, band in zip(bands.folds, bands.counted, bands.rates, bands.tasks, strict=True):
        is_shared, alike = strategy == "random", (band.size, np.isnan(rates).tobytes())
        if is_shared and alike in known:  # as many tasks of the same ones
            answer = known[alike]
        elif band.size:
            training = Training(
                all_outcomes=agents.outcomes,
                all_scores=agents.scores,
                rows=counted,
                pass_rates=rates,
                all_dates=agents.dates,
                lo=rule.lo,
                hi=rule.hi,
                fit_of=agents.fit_of,
                widening=rule.widening,
            )
            key = what if is_shared else (*what, fold.name)
            rng = generator(base_seed, strategy, *key) if strategy in SEEDED else None
            try:
                answer = STRATEGIES[strategy](training, band.size, rng)
            except SelectionError as refusal:
                answer = str(refusal)
            known[alike] = answer
        else:
            answer = band
        answers.append(answer)
        if each is not None:
            each(len(answers))
    return _without_refusals(bands.folds, answers)


def hold_out(
    agents: CompleteAgents, subsets: Subsets, estimators: Sequence[str] = ("ridge",)
) -> HeldOutRecords:
    """Score every held-out agent on its fold's subset.

    estimators: names of `selection.full_scores.ESTIMATORS`, that of the policy first.
    """
    members = membership(subsets.tasks, agents.outcomes.shape[1])
    means, rest_means, n_missing = _means(agents.outcomes, members)
    held_out = _scored(subsets, n_missing)
    rows = np.concatenate([*held_out, np.empty(0, dtype=np.intp)])
    folds = np.repeat(np.arange(len(held_out)), [part.size for part in held_out])
    ridge = _joined(full_scores.ridge_predictions(agents, subsets.folds, held_out, members))
    scored = [replace(fold, held_out=part) for fold, part in zip(subsets.folds, held_out, strict=True)]
    estimates = {
        name: ridge
        if name == "ridge"
        else _joined(full_scores.predictions(name, agents, scored, subsets.tasks))
        for name in estimators
    }
    is_training = membership([fold.training for fold in subsets.folds], agents.n)[folds]
    y, rounded = (np.round(values, DECIMALS) for values in (agents.scores, means))
    n_left_out = [fold.held_out.size - part.size for fold, part in zip(subsets.folds, held_out, strict=True)]
    return HeldOutRecords(
        agents=read_only(rows),
        folds=read_only(folds),
        scores=read_only(agents.scores[rows]),
        subset_means=read_only(means[rows, folds]),
        predictions=read_only(ridge),
        rest_means=read_only(rest_means[rows, folds]),
        estimates={name: read_only(values) for name, values in estimates.items()},
        agreement=read_only(agreement(y, rows, is_training, rounded[rows, folds], rounded.T[folds])),
        agreement_full=read_only(
            agreement(y, rows, is_training, np.round(estimates[estimators[0]], DECIMALS), y)
        ),
        n_left_out=read_only(np.array(n_left_out, dtype=np.intp)),
    )


def nested_residuals(
    agents: CompleteAgents,
    by: Literal["agent", "scaffold", "date"] = "agent",
    *,
    strategy: str = "mid_range",
    estimator: str = "ridge",
    rule: Rule | None = None,
    base_seed: int = 0,
) -> FloatArray:
    """Leave each agent, each scaffold, or all from a date on, out of a training matrix, selection repeated.

    by: scaffolds are left out where at least 5 agents remain, also when only one agent has them; by date the
        folds and draws are those of the temporal protocol, none where a date is missing.
    Returns: (n,); y − ŷ of each agent when it was left out; NaN where the fold has no subset, the strategy
        refuses, or over a tenth of the subset is missing.
    """
    rule = rule or Rule()
    bands = fold_bands(agents, nested_plan(agents, by), rule)
    what: tuple[str | int, ...] = ("temporal", 0) if by == "date" else ("nested", by)
    # Read off each agent's one fold; no pair is compared
    subsets = choose(agents, bands, strategy, rule, base_seed, *what)
    members = membership(subsets.tasks, agents.outcomes.shape[1])
    held_out = _scored(subsets, _means(agents.outcomes, members)[2])
    folds = [replace(fold, held_out=rows) for fold, rows in zip(subsets.folds, held_out, strict=True)]
    predicted = full_scores.predictions(estimator, agents, folds, subsets.tasks)
    predictions = np.full(agents.n, np.nan)
    for rows, of_fold in zip(held_out, predicted, strict=True):
        predictions[rows] = of_fold
    return read_only(agents.scores - predictions)


def _without_refusals(folds: Sequence[Fold], answers: Sequence[IndexArray | str]) -> Subsets:
    refusals = [answer for answer in answers if isinstance(answer, str)]
    pairs = [
        (fold, answer)
        for fold, answer in zip(folds, answers, strict=True)
        if not isinstance(answer, str) and answer.size
    ]
    return Subsets(
        folds=tuple(fold for fold, _ in pairs),
        tasks=tuple(tasks for _, tasks in pairs),
        n_refused=len(refusals),
        refusal=refusals[0] if refusals else "",
    )


def _scored(subsets: Subsets, n_missing: IndexArray) -> list[IndexArray]:
    if not n_missing.any():
        return [fold.held_out for fold in subsets.folds]
    return [
        fold.held_out[10 * n_missing[fold.held_out, f] <= subsets.tasks[f].size]
        for f, fold in enumerate(subsets.folds)
    ]


def _means(outcomes: FloatArray, members: Mask) -> tuple[FloatArray, FloatArray, IndexArray]:
    """Means of every agent inside and outside every subset, and cells missing inside: (n_agents, n_folds)."""
    valid = ~np.isnan(outcomes)
    filled = np.where(valid, outcomes, 0.0)
    sums, sizes = subset_sums(filled, members), np.count_nonzero(members, axis=1)
    if valid.all():
        counts = np.broadcast_to(sizes, sums.shape)
    else:
        counts = np.rint(subset_sums(valid.astype(np.float64), members)).astype(np.intp)
    outside = np.count_nonzero(valid, axis=1)[:, None] - counts
    rest = filled.sum(axis=1)[:, None] - sums
    return ratio(sums, counts), ratio(rest, outside), sizes - counts


def row_means(values: FloatArray) -> FloatArray:
    """Mean of every row over what is not NaN; NaN where all is."""
    return ratio(np.nansum(values, axis=1), np.count_nonzero(~np.isnan(values), axis=1))


def _joined(each: Sequence[FloatArray]) -> FloatArray:
    return np.concatenate([*each, np.empty(0)])


def agreement(
    y: FloatArray, rows: IndexArray, is_training: Mask, own: FloatArray, others: FloatArray
) -> npt.NDArray[np.int8]:
    """Fill a pair table, (n_records, n_agents), with rounded values of records beside those of agents."""
    own = own[:, None]
    by_score = np.sign(y[:, None] - y[None, :]).astype(np.int8)[rows]
    by_value = (own > others).astype(np.int8) - (own < others).astype(np.int8)
    counts = is_training & (by_score != 0) & ~np.isnan(others)
    return np.where(counts, by_score * by_value + np.int8(1), np.int8(-1))
