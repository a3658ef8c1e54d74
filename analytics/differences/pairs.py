"""Relative decisions: is agent a better than agent b, and by how much, for a target that is named.

Model
-----
d_j = X[a, j] − X[b, j] on the N tasks that both have, δ̂ = d̄. What both agents share (the tasks, and where
they ran under the same runs, prompts and judges the main effects of those) cancels in d_j; interactions with
the agent remain. Every error names its target::

    subset   expected mean over the k selected tasks       finite; only order and ties are claimed from it
    full     expected mean over all active tasks           finite where both are measured, else from ŷ
    domain   mean over the tasks these are a sample of     never from selected tasks

    domain               SE² = s_d²/N                                          ν = N − 1
      in task groups     SE² = G/(G−1)·Σ_g(Σ_{j∈g}(d_j − d̄))²/N²              ν = G − 1, shown beside
    finite, by the first rule that applies:
      repeated trials    SE² = Σ_j(s²_aj/R_aj + s²_bj/R_bj)/N²                 R ≥ 2 in both, all common tasks
      variance function  the same with ω̂·ȳ_a(1 − ȳ_a) for s²_aj where R_aj = 1   where ω̂ is known
      neyman             SE² = s_d²/N                                          ν = N − 1; an upper bound
    ŷ against ŷ          SE² = 2·s_loo², ν = n − 1; a measured agent has its finite SE² for one s_loo²

    ω̂ = Σ_ij s²_ij / Σ_i m_i·ȳ_i(1 − ȳ_i)       over agents with R ≥ 3 on at least 15 tasks, 3 or more such

With one trial in every cell of both, the variance function is SE² = ω̂·(ȳ_a(1 − ȳ_a) + ȳ_b(1 − ȳ_b))/N. An
agent with repeated trials that lost all but one of them on a few tasks keeps its own variances on the others.

To each finite or domain SE² come v_a + v_b, and for a facet the agents did *not* share its main effect too::

    v_a = σ²_agent:run/L + σ²_agent:prompt/V + σ²_agent:judge/M + v_link

A component that was never measured is left out and listed by name. Degrees of freedom of a sum of terms
SE² = Σ_q t_q are Satterthwaite's, ν = (Σ t_q)²/Σ(t_q²/ν_q), and intervals are δ̂ ± t_{ν,.975}·SE. An absolute
decision, one agent against a threshold, takes all terms: nothing cancels.

Symbols
-------
==============  =======================  ===========================  ===================
symbol          code                     shape                        unit
==============  =======================  ===========================  ===================
X               ``means``                (n_agents, n_tasks), NaN     0 to 1
s²_ij           ``trial_variances``      (n_agents, n_tasks), NaN     score²
R_ij            ``n_trials``             (n_agents, n_tasks), NaN     trials, effective
N               ``n_common``             (n_agents, n_agents)         tasks
SE²             ``se2``                  (n_agents, n_agents), NaN    score²
ω̂               ``omega``                scalar                       1
L, V, M         ``Row.levels``           by facet                     levels averaged over
σ²_agent:run …  ``Facet.with_agent``     scalar or None               score²
σ²_run …        ``Facet.main``           scalar or None               score²
==============  =======================  ===========================  ===================

Limits: R_ij is the number for which Var(X[i, j]) = s²_ij/R_ij; without settings, the number of trials. In
Satterthwaite's formula s²_ij counts R_ij − 1 degrees of freedom, exact without settings. A standard error of
0 (all d_j equal, all trials alike, both means at 0 or 1) is a lack of information: none is given then.

Not done here
-------------
No pair is called tied and no rank is given: `analytics.differences.domain_ranks` does that for all pairs at
once. The p-values of `benjamini_hochberg` answer single questions. No component is estimated.

Source
------
Messing, *Hidden Measurement Error in LLM Pipelines*, App. D (what cancels). Neyman 1923 and Imbens & Rubin,
*Causal Inference*, 2015, §6.5 (s_d²/N bounds the finite variance). Satterthwaite, *Biometrics Bulletin* 2
(1946) 110-114. Cameron & Miller, *J. Human Resources* 50 (2015) 317-372, §II (groups). Benjamini & Hochberg,
*JRSS B* 57 (1995) 289-300. The variance function and its rule are this project's own.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr, stdtrit

from analytics.arrays import CodeArray, FloatArray, Mask, read_only
from analytics.errors import CoreError

Target = Literal["subset", "full", "domain"]
Method = Literal["none", "repeated trials", "neyman", "variance function"]
METHODS: tuple[Method, ...] = ("none", "repeated trials", "neyman", "variance function")
NONE, REPEATED_TRIALS, NEYMAN, VARIANCE_FUNCTION = range(4)

N_AGENTS_OMEGA = 3
N_TASKS_OMEGA = 15
N_TRIALS_OMEGA = 3


class ShapesDiffer(CoreError):
    """Arrays of one set of agents and tasks differ in shape, or one of a pair is not given."""


class NoCommonTask(CoreError):
    """Two agents without a common task, or an agent without a valid cell, have no difference and no mean."""


class TargetRefused(CoreError):
    """Selected tasks are not a sample: nothing is said about other tasks from them alone."""


class ComponentRefused(CoreError):
    """A variance is finite and at least 0, and a facet was averaged over at least one level."""


@dataclass(frozen=True, eq=False)
class PairVariances:
    """Variances of all pair differences, components with the agent not included.

    Attributes
    ----------
    se2 : float array, shape (n_agents, n_agents)
        SE² of the difference of means over the common tasks, symmetric; NaN where `method` is 0.
    method : int8 array, shape (n_agents, n_agents)
        Position in `METHODS`; 0 on the diagonal and where no rule applies.
    n_common : int array, shape (n_agents, n_agents)
        Tasks with a valid cell of both.
    """

    se2: FloatArray
    method: npt.NDArray[np.int8]
    n_common: CodeArray


@dataclass(frozen=True)
class Facet:
    """What is known of a facet that outcomes were averaged over.

    Attributes
    ----------
    name : str
        "run", "prompt" or "judge".
    with_agent : float or None
        σ²_agent:facet, score²; None where never measured.
    main : float or None
        σ²_facet, score²; None where never measured.
    df_with_agent, df_main : float
        Degrees of freedom of the two; infinite counts as known.
    """

    name: str
    with_agent: float | None = None
    main: float | None = None
    df_with_agent: float = math.inf
    df_main: float = math.inf


NEVER_MEASURED = (Facet("run"), Facet("prompt"), Facet("judge"))


@dataclass(frozen=True, eq=False)
class Row:
    """One agent's cells and how they came about.

    Attributes
    ----------
    means, trial_variances, n_trials : float array, shape (n_tasks,)
        As in `OutcomeTable`; the last two None without repeated trials.
    one_trial : bool
        Trials are copies of one another: R counts as 1.
    levels : mapping of str to int
        Levels of each facet the means average over; 1 where not given.
    v_link : float
        Linking variance, score²; 0 for an agent ranked directly.
    df_link : float
        Its degrees of freedom.
    """

    means: FloatArray
    trial_variances: FloatArray | None = None
    n_trials: FloatArray | None = None
    one_trial: bool = False
    levels: Mapping[str, int] = field(default_factory=dict)
    v_link: float = 0.0
    df_link: float = math.inf


class Term(NamedTuple):
    """A part of a variance."""

    name: str
    variance: float
    df: float


@dataclass(frozen=True)
class Interval:
    """A standard error and the interval it gives.

    Attributes
    ----------
    se : float
        Standard error, in the unit of the score.
    df : float
        Degrees of freedom of the t quantile.
    lower, upper : float
        Two-sided 95% interval, not clipped.
    """

    se: float
    df: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Estimate:
    """A mean or a difference, its interval for a named target, and what the interval leaves out.

    Attributes
    ----------
    value : float
        Estimate, in the unit of the score.
    target : {"subset", "full", "domain"}
    method : str
        The rule that gave the variance over tasks or trials.
    interval : Interval or None
        None where no standard error can be given; `reason` says why.
    p_value : float or None
        Two-sided, of a difference of 0; None for a single mean or without an interval.
    grouped : Interval or None
        The same with tasks in groups; target domain only.
    n_tasks : int
        N.
    terms : tuple of Term
        The parts of SE².
    cancels : tuple of str
        Main effects that both agents share.
    omitted : tuple of str
        Components that were never measured.
    reason : str
        Empty where there is an interval.
    """

    value: float
    target: Target
    method: str
    interval: Interval | None
    p_value: float | None
    grouped: Interval | None
    n_tasks: int
    terms: tuple[Term, ...]
    cancels: tuple[str, ...]
    omitted: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class FullScore:
    """One side of a comparison for the full suite: measured, or predicted from the subset.

    Attributes
    ----------
    value : float
        y of a full run, or ŷ.
    se2 : float
        Finite SE² of y, or s_loo² of the calibration.
    df : float
        Degrees of freedom of `se2`; n − 1 of the calibration.
    measured : bool
    """

    value: float
    se2: float
    df: float
    measured: bool


# ----------------------------------------------------------------------------------------------- all pairs


def finite_variances(
    means: FloatArray,
    trial_variances: FloatArray | None = None,
    n_trials: FloatArray | None = None,
    *,
    one_trial: Mask | None = None,
    omega: float | None = None,
) -> PairVariances:
    """Finite-target variances of all pair differences, each by the first rule that applies.

    Parameters
    ----------
    means : float array, shape (n_agents, n_tasks)
        NaN where missing.
    trial_variances, n_trials : float array, shape (n_agents, n_tasks), optional
        s²_ij, NaN where no setting has two valid trials, and R_ij. Both or neither.
    one_trial : bool array, shape (n_agents,), optional
        Agents whose R counts as 1.
    omega : float, optional
        ω̂ of `trial_variance_ratio`. Without it pairs with a single trial are `neyman`, as validation has it.

    Returns
    -------
    PairVariances

    Raises
    ------
    ShapesDiffer
    ComponentRefused
        When `omega` is negative or not finite.

    Notes
    -----
    Six products of n × m by m × n. `neyman` needs 2 common tasks, the other rules 1. From means alone se2 is
    s_d²/N, which is also the variance for the target `domain`.
    """
    means, variances = _checked_cells(means, trial_variances, n_trials, one_trial)
    if omega is not None:
        _check_variance("omega", omega)
    valid = (~np.isnan(means)).astype(np.float64)
    x = np.where(valid > 0, means, 0.0)
    n_common = valid @ valid.T
    sums = x @ valid.T
    n_single = np.isnan(variances) * valid @ valid.T
    repeated = (n_single + n_single.T == 0) & (n_common > 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        se2 = _trial_noise(variances, valid, sums / n_common, n_single, omega or 0.0) / n_common**2
        if omega is None:
            se2 = np.where(repeated, se2, _neyman(x, valid, sums, n_common))
    other, n_needed = (NEYMAN, 2) if omega is None else (VARIANCE_FUNCTION, 1)
    method = np.where(n_common >= n_needed, other, NONE)
    method = np.where(repeated, REPEATED_TRIALS, method).astype(np.int8)
    np.fill_diagonal(method, NONE)
    return PairVariances(
        se2=read_only(np.where(method == NONE, np.nan, se2)),
        method=read_only(method),
        n_common=read_only(np.rint(n_common).astype(np.int64)),
    )


def trial_variance_ratio(
    means: FloatArray,
    trial_variances: FloatArray | None,
    n_trials: FloatArray | None,
    *,
    one_trial: Mask | None = None,
) -> float | None:
    """ω̂ = Σs²_ij / Σ_i m_i·ȳ_i(1 − ȳ_i): the share of a score's binomial variance that is trial noise.

    Parameters
    ----------
    means, trial_variances, n_trials, one_trial
        As in `finite_variances`.

    Returns
    -------
    float or None
        None unless at least 3 agents have R ≥ 3 on at least 15 tasks, and where all of them score 0 or 1.

    Notes
    -----
    m_i and ȳ_i are taken over the tasks on which agent i has a trial variance.
    """
    means, variances = _checked_cells(means, trial_variances, n_trials, one_trial)
    if trial_variances is None or n_trials is None:
        return None
    known = ~np.isnan(variances)
    often = np.count_nonzero(known & (n_trials >= N_TRIALS_OMEGA - 1e-9), axis=1) >= N_TASKS_OMEGA
    if np.count_nonzero(often) < N_AGENTS_OMEGA:
        return None
    known, m = known[often], known[often].sum(axis=1)
    rates = np.sum(np.where(known, means[often], 0.0), axis=1) / m
    binomial = float(np.sum(m * rates * (1 - rates)))
    return float(np.sum(trial_variances[often][known])) / binomial if binomial > 0 else None


# ---------------------------------------------------------------------------------------- one pair, one agent


def compare(
    a: Row,
    b: Row,
    target: Target,
    *,
    selected: bool = False,
    omega: float | None = None,
    facets: Sequence[Facet] = NEVER_MEASURED,
    shared: Mapping[str, bool] | None = None,
    groups: npt.ArrayLike | None = None,
) -> Estimate:
    """δ̂ = mean of X[a, j] − X[b, j] over the common tasks, with its interval for the target.

    Parameters
    ----------
    a, b : Row
        Cells on the same tasks in the same order.
    target : {"subset", "full", "domain"}
    selected : bool
        The tasks are a selected subset: only the target `subset` is answered from them.
    omega : float, optional
        ω̂; see `finite_variances`.
    facets : sequence of Facet
        Facets the outcomes depend on; by default run, prompt and judge, none of them measured.
    shared : mapping of str to bool, optional
        Whether both agents ran under the same levels of a facet; true where not given.
    groups : int or str array, shape (n_tasks,), optional
        Task groups; used for the target `domain`.

    Raises
    ------
    NoCommonTask, ShapesDiffer, TargetRefused, ComponentRefused
    """
    _check_target(target, selected)
    rows = _checked_pair(a, b)
    common = ~np.isnan(a.means) & ~np.isnan(b.means)
    if not common.any():
        raise NoCommonTask("two agents without a common task with valid outcomes have no difference")
    d = a.means[common] - b.means[common]
    cells = [_restricted(row, common) for row in rows]
    term, reason = _domain_term(d) if target == "domain" else _finite_term(cells, d, omega)
    added, cancels, omitted = _facet_terms(rows, facets, shared or {})
    terms = () if reason else (term, *added)
    value = float(d.mean())
    interval = _interval(value, terms)
    return Estimate(
        value=value,
        target=target,
        method=term.name,
        interval=interval,
        p_value=_p_value(value, interval),
        grouped=_grouped(d, groups, common, added) if target == "domain" and interval else None,
        n_tasks=d.size,
        terms=terms,
        cancels=cancels,
        omitted=omitted,
        reason=reason,
    )


def compare_full(a: FullScore, b: FullScore, n_tasks: int) -> Estimate:
    """δ̂ = ŷ_a − ŷ_b ± t_{n−1}·√2·s_loo for the full suite, at least one of the two predicted.

    Parameters
    ----------
    a, b : FullScore
        Two measured agents are compared task by task instead: `compare` with target `full`.
    n_tasks : int
        Active tasks.

    Raises
    ------
    TargetRefused
        When both are measured.
    ComponentRefused
        When an SE² is negative or not finite, or has less than one degree of freedom.

    Notes
    -----
    Both predicted: their errors come from one calibration, so that 2·s_loo² is one term of n − 1 degrees of
    freedom. One measured: two terms, Satterthwaite. s_loo holds the trial noise of a full run.
    """
    if a.measured and b.measured:
        raise TargetRefused("two measured agents are compared on their common tasks, not by their scores")
    for side in (a, b):
        _check_variance("SE² of a full score", side.se2)
        if not side.df >= 1:
            raise ComponentRefused(f"an SE² of a full score with {side.df} degrees of freedom")
    terms = _full_terms(a, b)
    value = a.value - b.value
    interval = _interval(value, terms)
    return Estimate(
        value=value,
        target="full",
        method="calibration",
        interval=interval,
        p_value=_p_value(value, interval),
        grouped=None,
        n_tasks=n_tasks,
        terms=terms,
        cancels=(),
        omitted=tuple(f"agent:{facet.name}" for facet in NEVER_MEASURED),
        reason="" if interval else "the calibration leaves no residual: its error is not known",
    )


def score(
    row: Row,
    target: Target,
    *,
    selected: bool = False,
    omega: float | None = None,
    facets: Sequence[Facet] = NEVER_MEASURED,
) -> Estimate:
    """ȳ over the agent's valid tasks with its absolute interval for the target: nothing cancels.

    Parameters
    ----------
    row : Row
    target, selected, omega, facets
        As in `compare`.

    Raises
    ------
    NoCommonTask
        When the agent has no valid cell.
    ShapesDiffer, TargetRefused, ComponentRefused

    Notes
    -----
    ``domain`` s/√N; finite by repeated trials N⁻²·Σ s²_j/R_j; with a single trial anywhere ȳ(1 − ȳ)/N, named
    "upper bound", or with ω̂ the variance function, ω̂·ȳ(1 − ȳ)/N where all are single. Every facet adds its
    interaction with the agent and its main effect.
    """
    _check_target(target, selected)
    _checked_pair(row, row)
    valid = ~np.isnan(row.means)
    if not valid.any():
        raise NoCommonTask("an agent without a valid outcome has no mean")
    cells = _restricted(row, valid)
    value = float(cells.means.mean())
    term, reason = _domain_term(cells.means) if target == "domain" else _one_agent_term(cells, omega)
    added, _, omitted = _facet_terms((row,), facets, {facet.name: False for facet in facets})
    terms = () if reason else (term, *added)
    return Estimate(
        value=value,
        target=target,
        method=term.name,
        interval=_interval(value, terms),
        p_value=None,
        grouped=None,
        n_tasks=cells.means.size,
        terms=terms,
        cancels=(),
        omitted=omitted,
        reason=reason,
    )


def agent_variance(row: Row, facets: Sequence[Facet] = NEVER_MEASURED) -> tuple[Term, ...]:
    """v_a = σ²_agent:run/L + σ²_agent:prompt/V + σ²_agent:judge/M + v_link, part by part.

    Parameters
    ----------
    row : Row
    facets : sequence of Facet
        Those never measured are left out.

    Raises
    ------
    ComponentRefused
    """
    terms = [
        Term(f"agent:{f.name}", f.with_agent / _n_levels(row, f.name), f.df_with_agent)
        for f in facets
        if f.with_agent is not None
    ]
    if row.v_link:
        terms.append(Term("linking", row.v_link, row.df_link))
    for term in terms:
        _check_variance(term.name, term.variance)
    return tuple(terms)


def benjamini_hochberg(p_values: npt.ArrayLike) -> FloatArray:
    """Benjamini-Hochberg adjusted p-values: min over larger p of p_(i)·n/i, at most 1.

    Parameters
    ----------
    p_values : float array, shape (n,)
        0 to 1.

    Returns
    -------
    float array, shape (n,)
        The smallest false discovery rate at which each would be declared.

    Raises
    ------
    ComponentRefused
        When a p-value is not from 0 to 1.
    """
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise ComponentRefused("p-values are a list of numbers from 0 to 1")
    from scipy.stats import false_discovery_control

    return np.asarray(false_discovery_control(p), dtype=np.float64) if p.size else p


# ---------------------------------------------------------------------------------------------- arithmetic


def _neyman(x: FloatArray, valid: FloatArray, sums: FloatArray, n_common: FloatArray) -> FloatArray:
    """(Σd² − (Σd)²/N)/(N(N − 1)) of all pairs, Σd² = Σx_a² + Σx_b² − 2·Σx_a·x_b over common tasks."""
    squares = x**2 @ valid.T
    sum_squares = squares + squares.T - 2 * (x @ x.T)
    centred = sum_squares - (sums - sums.T) ** 2 / n_common
    return np.asarray(np.maximum(centred, 0.0) / (n_common * (n_common - 1)), dtype=np.float64)


def _trial_noise(
    variances: FloatArray, valid: FloatArray, rates: FloatArray, n_single: FloatArray, omega: float
) -> FloatArray:
    """Σ_j(s²_aj/R_aj + s²_bj/R_bj) of all pairs over common tasks, ω̂·ȳ(1 − ȳ) in cells of one trial."""
    parts = np.where(np.isnan(variances), 0.0, variances) @ valid.T + omega * rates * (1 - rates) * n_single
    return np.asarray(parts + parts.T, dtype=np.float64)


class _Cells(NamedTuple):
    """Cells of one agent on the tasks that count: means, s²_j/R_j and R_j, NaN where R is 1."""

    means: FloatArray
    variances: FloatArray
    n_trials: FloatArray


def _restricted(row: Row, tasks: Mask) -> _Cells:
    means, variances = _checked_cells(
        row.means[None], *_as_tables(row), np.array([row.one_trial], dtype=np.bool_)
    )
    n_trials = np.full(row.means.shape, np.nan) if row.n_trials is None else row.n_trials
    return _Cells(means[0, tasks], variances[0, tasks], n_trials[tasks])


def _domain_term(values: FloatArray) -> tuple[Term, str]:
    """s²/N of the values, or the reason why there is none."""
    n = values.size
    if n < 2:
        return Term("domain", 0.0, 1.0), "one task tells nothing about the spread over tasks"
    term = Term("domain", float(np.var(values, ddof=1)) / n, n - 1)
    return _positive(term, f"the same value on all {n} tasks")


def _finite_term(cells: Sequence[_Cells], d: FloatArray, omega: float | None) -> tuple[Term, str]:
    """Return the variance of a pair's difference by the first rule that applies."""
    if omega is not None or not any(np.isnan(agent.variances).any() for agent in cells):
        return _trial_term(cells, omega or 0.0)
    term, reason = _domain_term(d)
    return term._replace(name="neyman"), reason


def _one_agent_term(cells: _Cells, omega: float | None) -> tuple[Term, str]:
    if omega is not None or not np.isnan(cells.variances).any():
        return _trial_term((cells,), omega or 0.0)
    n, rate = cells.means.size, float(cells.means.mean())
    return _positive(Term("upper bound", rate * (1 - rate) / n, max(n - 1, 1)), "the mean is 0 or 1")


def _trial_term(cells: Sequence[_Cells], omega: float) -> tuple[Term, str]:
    """N⁻²·Σ s²_j/R_j of the agents: R_j − 1 degrees of freedom each, N − 1 for the cells of one trial."""
    n = cells[0].means.size
    known = [~np.isnan(agent.variances) for agent in cells]
    own = np.concatenate([agent.variances[k] for agent, k in zip(cells, known, strict=True)]) / n**2
    dfs = np.concatenate([agent.n_trials[k] for agent, k in zip(cells, known, strict=True)]) - 1
    single = sum(_single_cells(agent, omega) for agent in cells) / n**2
    variance = float(own.sum()) + single
    inverse_df = float(np.sum(own**2 / dfs)) + single**2 / max(n - 1, 1)
    name = "repeated trials" if all(k.all() for k in known) else "variance function"
    df = variance**2 / inverse_df if inverse_df > 0 else 1.0
    return _positive(Term(name, variance, df), "trials that do not differ, or means at 0 or 1")


def _single_cells(agent: _Cells, omega: float) -> float:
    """ω̂·ȳ(1 − ȳ) for each cell of one trial."""
    rate = float(agent.means.mean())
    return omega * rate * (1 - rate) * int(np.count_nonzero(np.isnan(agent.variances)))


def _positive(term: Term, cause: str) -> tuple[Term, str]:
    """Refuse a variance that is 0 to rounding: the data show no spread to measure it by."""
    if term.variance > 1e-20:
        return term, ""
    return term, f"{cause}: a standard error of 0 would say that the value is known exactly"


def _facet_terms(
    rows: Sequence[Row], facets: Sequence[Facet], shared: Mapping[str, bool]
) -> tuple[tuple[Term, ...], tuple[str, ...], tuple[str, ...]]:
    """Terms of all agents beyond tasks and trials, main effects that cancel, components not measured."""
    terms = [term for row in rows for term in agent_variance(row, facets)]
    omitted = [f"agent:{f.name}" for f in facets if f.with_agent is None]
    apart = [f for f in facets if not shared.get(f.name, True)]
    for f in apart:
        if f.main is None:
            omitted.append(f.name)
            continue
        _check_variance(f.name, f.main)
        variance = sum(f.main / _n_levels(row, f.name) for row in rows)
        terms.append(Term(f.name, variance, f.df_main))
    cancels = tuple(f.name for f in facets if f not in apart)
    return _merged(terms), cancels, tuple(omitted)


def _merged(terms: Sequence[Term]) -> tuple[Term, ...]:
    """Add over the agents the terms of one component: it was estimated once, with its degrees of freedom."""
    totals: dict[tuple[str, float], float] = {}
    for term in terms:
        key = (term.name, term.df)
        totals[key] = totals.get(key, 0.0) + term.variance
    return tuple(Term(name, variance, df) for (name, df), variance in totals.items())


def _full_terms(a: FullScore, b: FullScore) -> tuple[Term, ...]:
    if not (a.measured or b.measured):
        return (Term("calibration", a.se2 + b.se2, min(a.df, b.df)),)
    return tuple(Term("measured" if s.measured else "calibration", s.se2, s.df) for s in (a, b))


def _interval(value: float, terms: Sequence[Term]) -> Interval | None:
    """Value ± t_ν·√Σt, ν = (Σt)²/Σ(t²/ν_t); None where the sum is 0."""
    variance = sum(term.variance for term in terms)
    if variance <= 0:
        return None
    inverse_df = sum(term.variance**2 / term.df for term in terms)
    df = variance**2 / inverse_df if inverse_df > 0 else math.inf
    return _t_interval(value, math.sqrt(variance), df)


def _t_interval(value: float, se: float, df: float) -> Interval:
    half = float(stdtrit(df, 0.975)) * se
    return Interval(se=se, df=df, lower=value - half, upper=value + half)


def _p_value(value: float, interval: Interval | None) -> float | None:
    return None if interval is None else 2 * float(stdtr(interval.df, -abs(value) / interval.se))


def _grouped(
    d: FloatArray, groups: npt.ArrayLike | None, common: Mask, added: Sequence[Term]
) -> Interval | None:
    """Interval with G/(G−1)·Σ_g(Σ_{j∈g}(d_j − d̄))²/N² for s_d²/N; None without two groups of tasks."""
    if groups is None:
        return None
    codes = np.asarray(groups)
    if codes.shape != common.shape:
        raise ShapesDiffer(f"groups {codes.shape} for {common.size} tasks")
    _, code = np.unique(codes[common], return_inverse=True)
    sums = np.bincount(code, weights=d - d.mean())
    n_groups = sums.size
    if n_groups < 2:
        return None
    variance = n_groups / (n_groups - 1) * float(np.sum(sums**2)) / d.size**2
    return _interval(float(d.mean()), (Term("groups", variance, n_groups - 1), *added))


# -------------------------------------------------------------------------------------------------- checks


def _check_variance(name: str, variance: float) -> None:
    if not (math.isfinite(variance) and variance >= 0):
        raise ComponentRefused(f"{name}: a variance of {variance} is not finite and at least 0")


def _n_levels(row: Row, facet: str) -> int:
    n_levels = row.levels.get(facet, 1)
    if n_levels < 1:
        raise ComponentRefused(f"{facet}: averaged over {n_levels} levels")
    return n_levels


def _check_target(target: Target, selected: bool) -> None:
    if selected and target != "subset":
        raise TargetRefused(
            f"selected tasks are not a sample of all tasks: the target {target!r} cannot be told from them; "
            "its prediction can"
        )


def _checked_pair(a: Row, b: Row) -> tuple[Row, Row]:
    if a.means.ndim != 1 or a.means.shape != b.means.shape:
        raise ShapesDiffer(f"two agents' cells of shapes {a.means.shape} and {b.means.shape}")
    for row in (a, b):
        _check_variance("linking", row.v_link)
    return a, b


def _as_tables(row: Row) -> tuple[FloatArray | None, FloatArray | None]:
    return (
        None if row.trial_variances is None else row.trial_variances[None],
        None if row.n_trials is None else row.n_trials[None],
    )


def _one_trial(one_trial: Mask | None, n_agents: int) -> Mask:
    mask = np.zeros(n_agents, dtype=np.bool_) if one_trial is None else np.asarray(one_trial)
    if mask.dtype != np.bool_ or mask.shape != (n_agents,):
        raise ShapesDiffer(f"one_trial: {mask.dtype} {mask.shape}, not bool ({n_agents},)")
    return mask


def _checked_cells(
    means: FloatArray,
    trial_variances: FloatArray | None,
    n_trials: FloatArray | None,
    one_trial: Mask | None,
) -> tuple[FloatArray, FloatArray]:
    """Means, and s²_ij/R_ij with NaN where the cell is missing or R counts as 1."""
    if means.ndim != 2:
        raise ShapesDiffer(f"means of shape {means.shape} are not agents by tasks")
    once = _one_trial(one_trial, len(means))
    if trial_variances is None and n_trials is None:
        return means, np.full(means.shape, np.nan)
    if trial_variances is None or n_trials is None:
        raise ShapesDiffer("trial variances and numbers of trials are given together")
    if not trial_variances.shape == n_trials.shape == means.shape:
        raise ShapesDiffer(
            f"trial variances {trial_variances.shape} and numbers of trials {n_trials.shape} "
            f"for means {means.shape}"
        )
    return means, np.where(once[:, None] | np.isnan(means), np.nan, trial_variances / n_trials)
