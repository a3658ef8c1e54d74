"""One agent alone: its mean with an absolute interval for a target that is named.

Source: Imbens & Rubin, *Causal Inference*, 2015, §6.5. Satterthwaite, *Biometrics Bulletin* 2 (1946) 110-114.
The variance function is this project's own.
"""

from collections.abc import Sequence

import numpy as np

from analytics.arrays import FloatArray
from analytics.differences.estimates import Estimate, Target, interval_of
from analytics.differences.groups import METHODS, Groups, mean_variance
from analytics.differences.rows import NEVER_MEASURED, ErrorTerm, Facet, Row, check_variance, facet_terms
from analytics.differences.trial_variances import checked_cells
from analytics.errors import CoreError


def score(
    row: Row,
    target: Target,
    *,
    selected: bool = False,
    omega: float | None = None,
    facets: Sequence[Facet] = NEVER_MEASURED,
    groups: Groups | None = None,
) -> Estimate:
    """ȳ over the agent's valid tasks with its absolute interval for the target: nothing cancels.

    ``domain`` s/√N, or by groups of tasks; finite by repeated trials N⁻²·Σ s²_j/R_j, where a task of a single
    trial has the mean of the other s²; with single trials on more than half of the tasks ȳ(1 − ȳ)/N, named
    "upper bound", or with ω̂ the variance function, ω̂·ȳ(1 − ȳ)/N where all are single. Every facet adds its
    interaction with the agent and its main effect.

    selected: the tasks are a selected subset: only the target `subset` is answered from them.
    omega: ω̂ of these tasks; see `analytics.differences.trial_variances`.
    facets: facets the outcomes depend on; by default run, prompt and judge, none of them measured.
    groups: of the row's tasks, for the target ``domain``; by default they are independent.
    """
    if selected and target != "subset":
        raise CoreError(
            f"selected tasks are not a sample of all tasks: the target {target!r} cannot be told from them; "
            "its prediction can",
            code="target",
        )
    if row.means.ndim != 1:
        raise CoreError(f"an agent's cells of shape {row.means.shape}", code="shapes_differ")
    check_variance("linking", row.v_link)
    valid = ~np.isnan(row.means)
    if not valid.any():
        raise CoreError("an agent without a valid outcome has no mean", code="no_common_task")
    variances, n_trials = (
        None if part is None else part[None] for part in (row.trial_variances, row.n_trials)
    )
    once = np.array([row.one_trial], dtype=np.bool_)
    means, shares = (part[0] for part in checked_cells(row.means[None], variances, n_trials, once))
    counts = np.full(row.means.shape, np.nan) if row.n_trials is None else row.n_trials
    if not valid.all():
        means, shares, counts = means[valid], shares[valid], counts[valid]
    value = float(means.mean())
    if target == "domain":
        term, reason = domain_term(means, None if groups is None else groups.on(valid))
    else:
        term, reason = _finite_term(value, shares, counts, omega)
    added, _, omitted = facet_terms((row,), facets, {facet.name: False for facet in facets})
    terms = () if reason else (term, *added)
    return Estimate(
        value=value,
        target=target,
        method=term.name,
        interval=interval_of(value, terms),
        p_value=None,
        n_tasks=means.size,
        terms=terms,
        cancels=(),
        omitted=omitted,
        reason=reason,
    )


def domain_term(values: FloatArray, groups: Groups | None = None) -> tuple[ErrorTerm, str]:
    """Return s²/N of values on N tasks, or that of their groups, or the reason why there is none."""
    n = values.size
    if n < 2:
        return ErrorTerm("domain", 0.0, 1.0), "one task tells nothing about the spread over tasks"
    if groups is None:
        term = ErrorTerm("domain", float(np.var(values, ddof=1)) / n, n - 1)
    elif groups.fault:
        return ErrorTerm(METHODS[groups.role], 0.0, 1.0), groups.fault
    else:
        term = mean_variance(values, groups)
    return _positive(term, f"the same value on all {n} tasks")


def _finite_term(
    rate: float, variances: FloatArray, counts: FloatArray, omega: float | None
) -> tuple[ErrorTerm, str]:
    """Return the variance of the mean by the first rule that applies.

    By trials N⁻²·Σ s²_j/R_j: R_j − 1 degrees of freedom each, N − 1 for the cells of one trial where ω̂ is
    known.

    variances, counts: s²_j/R_j and R_j, NaN where R is 1.
    """
    n, known = variances.size, ~np.isnan(variances)
    own, n_trials, n_one = variances[known], counts[known], int(np.count_nonzero(~known))
    if omega is None and 2 * n_one > n:
        return _positive(ErrorTerm("upper bound", rate * (1 - rate) / n, max(n - 1, 1)), "the mean is 0 or 1")
    if omega is None:
        own, single = own * (1.0 + n_trials * n_one / own.size), 0.0
    else:
        single = omega * rate * (1 - rate) * n_one / n**2
    own = own / n**2
    variance = float(own.sum()) + single
    inverse_df = float(np.sum(own**2 / (n_trials - 1))) + single**2 / max(n - 1, 1)
    name = "repeated trials" if omega is None or not n_one else "variance function"
    df = variance**2 / inverse_df if inverse_df > 0 else 1.0
    return _positive(ErrorTerm(name, variance, df), "trials that do not differ, or means at 0 or 1")


def _positive(term: ErrorTerm, cause: str) -> tuple[ErrorTerm, str]:
    """Refuse a variance that is 0 to rounding: the data show no spread to measure it by."""
    if term.variance > 1e-20:
        return term, ""
    return term, f"{cause}: a standard error of 0 would say that the value is known exactly"
