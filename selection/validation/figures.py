"""Figures of held-out records, their delete-one-group jackknife, and the coverage of intervals.

The theory is in ``selection/README.md``, “Nested validation”.

Source: Ndzomga, *Efficient Benchmarking of AI Agents*, §3.4, Eq. 3 (rho, tau, r2). Efron & Tibshirani, *An
Introduction to the Bootstrap*, 1993, ch. 11. The pair figures and rho_rest are this project's own.
"""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from analytics.arrays import DECIMALS, FloatArray, IndexArray, Mask, ratio
from analytics.differences.trial_variances import finite_variances
from analytics.drift.rank_correlation import kendall, midranks
from selection import full_scores, intervals
from selection.folds import CompleteAgents, Rule
from selection.held_out import HeldOutRecords, Subsets, nested_residuals
from selection.intervals import MIN_FOR_QUANTILE
from selection.rules import ESTIMATORS
from selection.staged.model import estimates
from selection.staged.teaching import of_full_runs

RANK_FIGURES = ("rho", "tau", "rho_calibrated", "r2", "rho_rest")
ERROR_FIGURES = tuple(f"rmse_{name}" for name in ESTIMATORS)
PAIR_FIGURES = ("pairs_correct", "pairs_clear", "pairs_correct_full", "pairs_clear_full", "full_difference")
FIGURES = RANK_FIGURES + ERROR_FIGURES + PAIR_FIGURES
N_OF_RECORDS = len(RANK_FIGURES + ERROR_FIGURES)  # figures that compare no pairs
N_GROUPS_JACKKNIFE = 10
Z_CLEAR = 1.96
MAX_DENSE = 500_000  # multiplications; fewer take less time than a sparse matrix takes to make


def clear_pairs(
    outcomes: FloatArray,
    scores: FloatArray,
    trial_variances: FloatArray | None = None,
    n_trials: FloatArray | None = None,
) -> Mask:
    """Pairs of agents with |y_i − y_j| > 1.96·SE_ij over their common tasks, (n_agents, n_agents).

    trial_variances, n_trials: (n_agents, n_tasks); s² and R of every cell. Where both agents have R ≥ 2 on
        all common tasks the repeated-trial formula holds, else Neyman's; False without a standard error.
    """
    squared = finite_variances(outcomes, trial_variances, n_trials)
    y = np.round(scores, DECIMALS)
    return np.asarray(np.abs(y[:, None] - y[None, :]) > Z_CLEAR * np.sqrt(squared), dtype=np.bool_)


def figures(records: HeldOutRecords, clear: Mask) -> FloatArray:
    """Compute the figures of one pool of records, in the order of `FIGURES`; NaN where undefined.

    clear: (n_agents, n_agents).
    """
    everyone = np.ones((clear.shape[0], 1))
    return np.concatenate(
        [_rank_figures(records), _errors(records, everyone)[0], _pair_figures(records, clear, everyone)[0]]
    )


def figures_without(records: HeldOutRecords, clear: Mask, groups: IndexArray) -> FloatArray:
    """Compute the figures with one group left out at a time, shape (n_groups, n_figures).

    clear: (n_agents, n_agents).
    groups: (n_agents,); the group of every complete agent, 0 to n_groups − 1.
    """
    weights = (groups[:, None] != np.arange(groups.max() + 1)).astype(np.float64)
    # Rank figures without the records of each group, (n_groups, 5); `member` is 1 in it
    member = 1.0 - weights[records.agents]
    y, r = _order(records.scores), _order(records.subset_means)
    centred = [_centred_ranks_without(signs, member) for signs in (y, r, _order(records.predictions))]
    known = ~np.isnan(records.rest_means)
    on_known = [
        _centred_ranks_without(signs, member[known])
        for signs in (r[np.ix_(known, known)], _order(records.rest_means[known]))
    ]
    concordance, n_y, n_r = (_sum_without(pairs, member) for pairs in (y * r, y * y, r * r))
    rank = np.column_stack(
        [
            _cosine(centred[0], centred[1]),
            ratio(concordance, np.sqrt(n_y * n_r)),
            _cosine(centred[0], centred[2]),
            _r2_without(records, y, member),
            _cosine(on_known[1], on_known[0]),
        ]
    )
    return np.column_stack([rank, _errors(records, weights), _pair_figures(records, clear, weights)])


def standard_errors(without: FloatArray, has_record: Mask) -> FloatArray:
    """Jackknife standard errors, shape (n_figures,); NaN under 10 groups or where some θ_(g) is undefined.

    without: (n_groups, n_figures).
    has_record: (n_groups,); groups with a held-out record.
    """
    if np.count_nonzero(has_record) < N_GROUPS_JACKKNIFE:
        return np.full(len(FIGURES), np.nan)
    of_records, of_pairs = without[has_record, :N_OF_RECORDS], without[:, N_OF_RECORDS:]
    return np.concatenate([jackknife(of_records), jackknife(of_pairs)])


def jackknife(without: FloatArray) -> FloatArray:
    """√((G − 1)/G · Σ_g (θ_(g) − θ̄)²) of each column.

    without: (n_groups, n_columns).
    """
    n_groups = len(without)
    squares = np.sum((without - without.mean(axis=0)) ** 2, axis=0)
    return np.asarray(np.sqrt((n_groups - 1) / n_groups * squares), dtype=np.float64)


def shares(
    agreement: npt.NDArray[np.int8], agents: IndexArray, compared: Mask, weights: FloatArray
) -> FloatArray:
    """Share_i of each record among the agents that each column keeps, (n_records, n_columns).

    agreement, compared: (n_records, n_agents).
    agents: (n_records,); the held-out agent of each record.
    weights: (n_agents, n_columns); 1 or 0.
    Returns: NaN where the agent itself is not kept, or nobody is to be compared with it.
    """
    agreeing, left_out = agreement * compared, 1.0 - weights
    n_compared = compared.sum(axis=-1, keepdims=True) - _product(compared, left_out)
    n_agreeing = (agreeing.sum(axis=-1, keepdims=True) - _product(agreeing, left_out)) / 2
    counts = (weights[agents] > 0) & (n_compared > 0)
    return np.asarray(np.where(counts, n_agreeing / np.maximum(n_compared, 1), np.nan), dtype=np.float64)


def _product(table: npt.NDArray[np.generic], columns: FloatArray) -> FloatArray:
    """Return table @ columns, most of which is 0; of whole numbers it is exact."""
    is_small = table.size * columns.shape[1] <= MAX_DENSE
    return np.asarray(table.astype(np.float64) @ (columns if is_small else csr_array(columns)))


def mean_known(values: FloatArray, axis: int = 0) -> FloatArray:
    """Mean along an axis of what is not NaN; NaN where all is."""
    known = ~np.isnan(values)
    n_known = known.sum(axis=axis)
    sums = np.where(known, values, 0.0).sum(axis=axis)
    return np.asarray(np.where(n_known > 0, sums / np.maximum(n_known, 1), np.nan), dtype=np.float64)


def _rank_figures(records: HeldOutRecords) -> FloatArray:
    y, r, p = records.scores, records.subset_means, records.predictions
    r2 = np.nan
    if y.size >= 2 and np.ptp(np.round(y, DECIMALS)) != 0.0:
        r2 = float(1.0 - np.sum((y - p) ** 2) / np.sum((y - y.mean()) ** 2))
    known = ~np.isnan(records.rest_means)
    rho = _spearman(np.array([y, r, p, records.rest_means if known.all() else r]))
    rest = rho if known.all() else _spearman(np.array([y, r, p, records.rest_means])[:, known])
    tau = kendall(r, y)
    return np.array([rho[0, 1], np.nan if tau is None else tau, rho[0, 2], r2, rest[1, 3]])


def _spearman(samples: FloatArray) -> FloatArray:
    """Spearman's ρ of every two rows, from one Gram matrix of centred midranks; NaN for a constant row."""
    ranks = midranks(samples) - (samples.shape[1] + 1) / 2
    gram = ranks @ ranks.T
    return ratio(gram, np.sqrt(np.outer(np.diag(gram), np.diag(gram))))


def _order(values: FloatArray) -> FloatArray:
    """Signs of the differences of every two values, rounded to 1e-9."""
    rounded = np.round(values, DECIMALS)
    return np.asarray(np.sign(rounded[:, None] - rounded), dtype=np.float64)


def _centred_ranks_without(signs: FloatArray, member: FloatArray) -> FloatArray:
    """Twice the centred midranks among the records that are not of the group; 0 for those that are."""
    without = signs.sum(axis=1)[:, None] - _product(signs, member)
    return np.asarray((1.0 - member) * without, dtype=np.float64)


def _cosine(a: FloatArray, b: FloatArray) -> FloatArray:
    """Σab/√(Σa²·Σb²) of each column; NaN where a column is 0."""
    scale = np.sqrt(np.sum(a * a, axis=0) * np.sum(b * b, axis=0))
    return ratio(np.sum(a * b, axis=0), scale)


def _sum_without(pairs: FloatArray, member: FloatArray) -> FloatArray:
    """Sum of a symmetric table without the rows and the columns of each group, (n_groups,)."""
    of_group = _product(pairs, member)
    return np.asarray(
        pairs.sum() - 2.0 * of_group.sum(axis=0) + np.sum(member * of_group, axis=0), dtype=np.float64
    )


def _r2_without(records: HeldOutRecords, order: FloatArray, member: FloatArray) -> FloatArray:
    """1 − Σ(y − ŷ)²/(Σ(y − c)² − (Σ(y − c))²/n) of the records kept, c the mean of all."""
    y, weights = records.scores - np.mean(records.scores), 1.0 - member
    about_mean = y**2 @ weights - (y @ weights) ** 2 / np.maximum(weights.sum(axis=0), 1.0)
    has_order = _sum_without(order * order, member) > 0
    errors = (records.scores - records.predictions) ** 2 @ weights
    return 1.0 - ratio(errors, np.where(has_order, about_mean, 0.0))


def _errors(records: HeldOutRecords, weights: FloatArray) -> FloatArray:
    """Root mean squared error of every estimator over what each column keeps, (n_columns, n_estimators)."""
    counts = np.where(weights[records.agents] > 0, 1.0, np.nan)
    unknown = np.full(records.n, np.nan)
    estimates = np.array([records.estimates.get(name, unknown) for name in ESTIMATORS])
    squares = (records.scores - estimates) ** 2
    return np.asarray(np.sqrt(mean_known(squares[:, :, None] * counts, axis=1)).T)


def _pair_figures(records: HeldOutRecords, clear: Mask, weights: FloatArray) -> FloatArray:
    """Mean shares over the agents that each column of `kept` keeps, shape (n_columns, n_pair_figures)."""
    means = []
    for agreement in (records.agreement, records.agreement_full):
        compared = agreement >= 0
        for table in (compared, compared & clear[records.agents]):
            means.append(mean_known(shares(agreement, records.agents, table, weights)))
    return np.column_stack([*means, means[2] - means[0]])


def covered(
    agents: CompleteAgents,
    subsets: Subsets,
    records: HeldOutRecords,
    strategy: str,
    rule: Rule,
    base_seed: int,
    estimator: str = "ridge",
) -> FloatArray:
    """Whether each record's interval holds its score, shape (n_records,); NaN where there is no interval."""
    if estimator == "completion":
        return _by_model(agents, subsets, records)
    answers = np.full(records.n, np.nan)

    def left_out(training: CompleteAgents, by: Literal["agent", "scaffold", "date"]) -> FloatArray:
        how: dict[str, Any] = {"strategy": strategy, "estimator": estimator}
        return nested_residuals(training, by, rule=rule, base_seed=base_seed, **how)

    for f, (fold, tasks) in enumerate(zip(subsets.folds, subsets.tasks, strict=True)):
        of_fold = np.flatnonzero(records.folds == f)
        rows = records.agents[of_fold]
        scaffolds = [agents.scaffolds[i] for i in rows]
        training = full_scores.fit(estimator, agents.take(fold.training, sharing=True), tasks)
        in_time = left_out(training.agents, "date")
        enough = np.count_nonzero(~np.isnan(in_time)) >= MIN_FOR_QUANTILE
        is_new = not set(scaffolds) <= set(training.agents.scaffolds)
        calibrator = intervals.calibrate(
            training,
            np.full(training.agents.n, np.nan) if enough else left_out(training.agents, "agent"),
            in_time=in_time,
            scaffolds=training.agents.scaffolds,
            scaffold_residuals=left_out(training.agents, "scaffold") if is_new else None,
        )
        ends_of = intervals.intervals(calibrator, agents.outcomes[np.ix_(rows, tasks)], scaffolds)
        for row, ends, y in zip(of_fold, ends_of, agents.scores[rows], strict=True):
            if not isinstance(ends, intervals.NoInterval):
                lower, score, upper = np.round([ends.lower, y, ends.upper], DECIMALS)
                answers[row] = float(lower <= score <= upper)
    return answers


def _by_model(agents: CompleteAgents, subsets: Subsets, records: HeldOutRecords) -> FloatArray:
    answers = np.empty(records.n)
    for f, (fold, tasks) in enumerate(zip(subsets.folds, subsets.tasks, strict=True)):
        of_fold = np.flatnonzero(records.folds == f)
        rows = records.agents[of_fold]
        taught = of_full_runs(agents, fold.training)
        seen = np.full((rows.size, agents.outcomes.shape[1]), np.nan)
        seen[:, tasks] = agents.outcomes[np.ix_(rows, tasks)]
        means = agents.means_after(taught.model, fold.training, rows)
        scores, se, _ = estimates(taught.model, seen, means)
        scales = [taught.scale_for(agents.scaffolds[i], tasks)[0] for i in rows]
        half = np.array([scale.quantile * scale.c for scale in scales]) * se
        apart = np.abs(agents.scores[rows] - scores)
        answers[of_fold] = np.round(apart, DECIMALS) <= np.round(half, DECIMALS)
    return answers
