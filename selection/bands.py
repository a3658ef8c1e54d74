"""The mid-range band: the ranking tasks, by their pass rates.

The theory is in ``selection/README.md``, “The mid-range band”.

Source: Ndzomga, *Efficient Benchmarking of AI Agents*, §3.3 (band), §5.1 (widening, 10%). Hájek, comment in
*Foundations of Statistical Inference*, 1971. Kish, *Survey Sampling*, 1965, §11.7. The stages, the posterior
and its flags are this project's own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import betainc

from analytics.arrays import FloatArray, IndexArray, Mask, ratio, read_only
from analytics.outcome_table import OutcomeTable
from analytics.text import counted
from selection.errors import SelectionError

Stage = Literal["none", "provisional", "stable"]

LO, HI = 0.30, 0.70
WIDER_BANDS = ((0.25, 0.75), (0.15, 0.85))
EDGE_TOLERANCE = 1e-9
N_AGENTS_PROVISIONAL = 5
N_AGENTS_STABLE = 15
P_SELECTED_UNSURE = 0.8
P_LEFT_OUT_UNSURE = 0.2


class Attempt(NamedTuple):
    """A band that was tried, and the number of tasks found in it."""

    lo: float
    hi: float
    k: int


@dataclass(frozen=True, eq=False)
class Band:
    """The outcome of a selection by band; without a subset it says why.

    lo, hi: edges of the band used; of the widest one tried when unsuited.
    tasks: (k,); ascending; empty without a subset.
    widened: whether the first band was too thin, so that a wider one was tried.
    stage: under 5, 5 to 14, at least 15 complete agents; "none" and not `suited`: too few agents.
    pass_rates: (n_tasks,); NaN where no complete agent has a valid cell.
    p_in_band: (n_tasks,); posterior probability that the pass rate lies from `lo` to `hi`.
    flagged: tasks selected with P(in band) < 0.8 or left out with P(in band) > 0.2; empty unless "stable".
    """

    lo: float
    hi: float
    tasks: IndexArray
    widened: bool
    suited: bool
    reason: str
    stage: Stage
    n_complete: int
    n_tasks: int
    pass_rates: FloatArray
    p_in_band: FloatArray
    flagged: IndexArray
    tried: tuple[Attempt, ...]

    @property
    def size(self) -> int:
        """Number of selected tasks, k."""
        return int(self.tasks.size)

    def as_plain(self, tasks: Sequence[str]) -> dict[str, Any]:
        """Return what a command line says of it; `tasks`: the names of all tasks."""
        plain = {name: getattr(self, name) for name in ("lo", "hi", "size", "widened", "suited", "reason")}
        return plain | {"tasks": [tasks[j] for j in self.tasks]}


def pass_rates(outcomes: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Pass rates p_j = Σ_i w_i·X[i, j] / Σ_i w_i over the agents with a valid cell, (n_tasks,); NaN without.

    outcomes: (n_agents, n_tasks); mean outcomes of complete agents, 0 to 1; NaN where missing.
    weights: (n_agents,); 1/π_i; 1 for every agent when not given.
    """
    outcomes, weights = _checked(outcomes, weights)
    counts = _weighted_counts(outcomes, weights)
    return ratio(np.nansum(outcomes * weights[:, None], axis=0), counts)


def stage_of(n_complete: int) -> Stage:
    """Return how far `n_complete` complete agents carry: no subset, a provisional one, a stable one."""
    if n_complete < N_AGENTS_PROVISIONAL:
        return "none"
    return "provisional" if n_complete < N_AGENTS_STABLE else "stable"


def latest_agents(dates: Sequence[date | None], history_window: int | None) -> IndexArray:
    """Positions of the latest `history_window` agents by (date, position), ascending; all with None.

    dates: in name order; an agent without a date counts as older than every agent with one.
    Raises SelectionError (window_range): the window is below 1.
    """
    if history_window is not None and history_window < 1:
        raise SelectionError(f"a history window of {history_window} agents holds none", code="window_range")
    by_date = sorted(range(len(dates)), key=lambda i: (dates[i] or date.min, i))
    latest = by_date if history_window is None else by_date[-history_window:]
    return np.array(sorted(latest), dtype=np.intp)


def mid_range(
    outcomes: FloatArray,
    weights: FloatArray | None = None,
    *,
    lo: float = LO,
    hi: float = HI,
    widening: bool = True,
    n_estimated: int = 0,
) -> Band:
    """Select the tasks whose pass rate over complete agents lies in the band, widened where it is thin.

    outcomes: (n_agents, n_tasks); mean outcomes of *complete* agents on the active tasks; NaN where missing.
    weights: (n_agents,); 1/π_i; 1 for every agent when not given.
    lo, hi: first band tried; of the wider ones 25-75% and 15-85%, those that contain it follow.
    n_estimated: agents whose outcomes are in part estimated; the reason says so.
    """
    outcomes, weights = _checked(outcomes, weights)
    _check_band(lo, hi)
    rates = pass_rates(outcomes, weights)
    n_complete = outcomes.shape[0]
    tried = _attempts(rates, n_complete, lo, hi, widening=widening)
    suited = _is_suited(tried, rates.size)
    lo, hi = tried[-1][:2] if tried else (lo, hi)
    tasks = np.flatnonzero(in_band(rates, lo, hi) & suited)
    # I_hi(s + ½, n − s + ½) − I_lo(s + ½, n − s + ½), s = n·p, with n = (Σw)²/Σw²
    n = ratio(_weighted_counts(outcomes, weights) ** 2, _weighted_counts(outcomes, weights**2))
    a, b = n * rates + 0.5, n - n * rates + 0.5
    p_in_band = np.asarray(betainc(a, b, hi) - betainc(a, b, lo), dtype=np.float64)
    unsure = np.zeros(rates.size, dtype=np.bool_)
    if stage_of(n_complete) == "stable" and tasks.size:
        unsure = p_in_band > P_LEFT_OUT_UNSURE
        unsure[tasks] = p_in_band[tasks] < P_SELECTED_UNSURE
    return Band(
        lo=lo,
        hi=hi,
        tasks=read_only(tasks),
        widened=len(tried) > 1,
        suited=suited,
        reason=_reason(tried, suited, rates, n_complete, widening=widening, n_estimated=n_estimated),
        stage=stage_of(n_complete),
        n_complete=n_complete,
        n_tasks=rates.size,
        pass_rates=read_only(rates),
        p_in_band=read_only(p_in_band),
        flagged=read_only(np.flatnonzero(unsure)),
        tried=tried,
    )


def tasks_in_band(
    pass_rates: FloatArray, n_complete: int, *, lo: float = LO, hi: float = HI, widening: bool = True
) -> IndexArray:
    """Tasks that `mid_range` selects, from the pass rates alone, (n_tasks,) to (k,); NaN: unknown."""
    used = band_used(pass_rates, n_complete, lo=lo, hi=hi, widening=widening)
    return np.flatnonzero(in_band(pass_rates, *used)) if used else np.empty(0, dtype=np.intp)


def band_used(
    pass_rates: FloatArray, n_complete: int, *, lo: float = LO, hi: float = HI, widening: bool = True
) -> tuple[float, float] | None:
    """Return the edges of the first band that holds enough tasks; None where there is no subset."""
    _check_band(lo, hi)
    tried = _attempts(pass_rates, n_complete, lo, hi, widening=widening)
    return tried[-1][:2] if _is_suited(tried, pass_rates.size) else None


def tasks_in_bands(
    pass_rates: FloatArray,
    n_complete: Sequence[int],
    *,
    lo: float = LO,
    hi: float = HI,
    widening: bool = True,
) -> list[IndexArray]:
    """Apply `tasks_in_band` to many rows; what the first band holds is told of all at once."""
    _check_band(lo, hi)
    inside = in_band(pass_rates, lo, hi)
    counts = np.count_nonzero(inside, axis=1)
    first = np.split(np.nonzero(inside)[1], np.cumsum(counts))[:-1]
    return [
        tasks
        if stage_of(n) != "none" and _is_enough(tasks.size, inside.shape[1])
        else tasks_in_band(row, n, lo=lo, hi=hi, widening=widening)
        for tasks, row, n in zip(first, pass_rates, n_complete, strict=True)
    ]


def table_band(
    table: OutcomeTable,
    *,
    lo: float = LO,
    hi: float = HI,
    widening: bool = True,
    history_window: int | None = None,
) -> Band:
    """Apply `mid_range` to the complete agents of a table, the latest `history_window` of them."""
    complete = np.flatnonzero(table.complete())
    rows = complete[latest_agents([table.dates[i] for i in complete], history_window)]
    return mid_range(table.means[rows], lo=lo, hi=hi, widening=widening)


def _weighted_counts(outcomes: FloatArray, weights: FloatArray) -> FloatArray:
    """Σ_i w_i over the agents with a valid cell, shape (n_tasks,)."""
    return np.asarray(np.sum(~np.isnan(outcomes) * weights[:, None], axis=0), dtype=np.float64)


def in_band(rates: FloatArray, lo: float, hi: float) -> Mask:
    """Return which tasks have a pass rate from lo to hi, both ends in to 1e-9; a missing rate is never in."""
    return np.asarray((rates >= lo - EDGE_TOLERANCE) & (rates <= hi + EDGE_TOLERANCE), dtype=np.bool_)


def _is_enough(k: int, n_tasks: int) -> bool:
    return 10 * k >= n_tasks


def _attempts(
    rates: FloatArray, n_complete: int, lo: float, hi: float, *, widening: bool
) -> tuple[Attempt, ...]:
    tried: list[Attempt] = []
    if stage_of(n_complete) == "none":
        return ()
    wider = [band for band in WIDER_BANDS if band[0] <= lo and hi <= band[1] and band != (lo, hi)]
    for low, high in [(lo, hi), *(wider if widening else ())]:
        tried.append(Attempt(low, high, int(np.count_nonzero(in_band(rates, low, high)))))
        if _is_enough(tried[-1].k, rates.size):
            break
    return tuple(tried)


def _is_suited(tried: tuple[Attempt, ...], n_tasks: int) -> bool:
    return bool(tried) and _is_enough(tried[-1].k, n_tasks)


def _range(attempt: Attempt) -> str:
    lo, hi = (f"{round(100 * edge, 4):g}%" for edge in (attempt.lo, attempt.hi))
    return f"from {lo} to {hi}"


def _share(k: int, n_tasks: int) -> str:
    """Whole percent, rounded down: what is under 10% never reads as 10%."""
    return f"{100 * k // n_tasks}%"


def _reason(
    tried: tuple[Attempt, ...],
    suited: bool,
    rates: FloatArray,
    n_complete: int,
    *,
    widening: bool,
    n_estimated: int,
) -> str:
    if not tried:
        complete = f"only {counted(n_complete, 'full run')}" if n_complete else "no full run yet"
        return f"{complete}; ranking tasks need at least {N_AGENTS_PROVISIONAL}"
    first, used, tasks = tried[0], tried[-1], counted(rates.size, "task")
    k, verb = used.k, "has" if used.k <= 1 else "have"
    if not suited:
        count = f"only {k} of {tasks} ({_share(k, rates.size)})" if k else f"none of {tasks}"
        sentence = f"{count} {verb} a pass rate {_range(used)}; {_needed(rates.size)}"
        sentence += "" if widening else " and the band is not widened"
    else:
        over = counted(n_complete, "agent")
        if n_estimated:
            over = f"{counted(n_complete, 'agent')}, {n_estimated} of them with estimates"
        sentence = f"{k} of {tasks} {verb} a pass rate {_range(used)} over {over}"
    if suited and len(tried) > 1:
        sentence += (
            f"; the band was widened, as only {first.k} ({_share(first.k, rates.size)}) "
            f"lie {_range(first)} and {_needed(rates.size)}"
        )
    n_unrated = int(np.count_nonzero(np.isnan(rates)))
    if not n_unrated:
        return sentence
    return f"{sentence}; {counted(n_unrated, 'task')} without a valid outcome cannot be chosen"


def _needed(n_tasks: int) -> str:
    n_needed = -(-n_tasks // 10)
    return f"at least {n_needed} (10%) {'is' if n_needed == 1 else 'are'} needed"


def checked_outcomes(
    outcomes: FloatArray, empty: str, axes: str = "(n_agents, n_tasks)", of: str = ""
) -> FloatArray:
    """Refuse what is no matrix of outcomes from 0 to 1 or missing, each with a row and a column.

    empty: what is said without a column.
    axes, of: what is said of the shape, and after the number of a task.
    Raises SelectionError (shape, no_tasks, outcome_range).
    """
    outcomes = np.asarray(outcomes, dtype=np.float64)
    if outcomes.ndim != 2:
        raise SelectionError(f"outcomes have shape {outcomes.shape}, not {axes}", code="shape")
    if outcomes.shape[1] == 0:
        raise SelectionError(empty, code="no_tasks")
    wrong = ~np.isnan(outcomes) & ~((outcomes >= 0.0) & (outcomes <= 1.0))
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        raise SelectionError(
            f"agent {i}, task {j}{of}: {outcomes[i, j]} is not from 0 to 1", code="outcome_range"
        )
    return outcomes


def _checked(outcomes: FloatArray, weights: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    outcomes = checked_outcomes(outcomes, "no active task to choose from")
    n_agents = outcomes.shape[0]
    weights = np.ones(n_agents) if weights is None else np.asarray(weights, dtype=np.float64)
    if weights.shape != (n_agents,):
        raise SelectionError(f"weights {weights.shape} for {n_agents} agents", code="shape")
    wrong = ~(np.isfinite(weights) & (weights > 0.0))
    if wrong.any():
        i = int(np.argmax(wrong))
        raise SelectionError(
            f"agent {i} has weight {weights[i]}; a weight is finite and above 0", code="weight_range"
        )
    return outcomes, weights


def _check_band(lo: float, hi: float) -> None:
    if not 0.0 <= lo < hi <= 1.0:
        raise SelectionError(f"a band from {lo} to {hi}: edges need 0 ≤ lo < hi ≤ 1", code="band_range")
