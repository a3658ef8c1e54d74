"""Draws of agents' errors: the critical value of the largest difference, and who could be the best.

Source: Hothorn, Bretz & Westfall, *Biometrical Journal* 50 (2008) 346-363 (maximum of t statistics). Hsu,
*Annals of Statistics* 9 (1981) 1026-1034; *Multiple Comparisons*, 1996, ch. 4 (multiple comparisons with the
best).
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import stdtrit

from analytics.arrays import DECIMALS, FloatArray, IndexArray, Mask, read_only
from analytics.differences.finite_errors import AgentError
from analytics.differences.neyman_draws import pooled_upper_point
from analytics.errors import CoreError
from analytics.resampling import generator

T_DF = 5
SLACK = 1e-9
MIN_SCALE = 1e-12
FEW_AGENTS = 32
MAX_PAIRS = 1 << 20  # at once: 8 MB
OwnDraws = Callable[..., FloatArray]


@dataclass(frozen=True, eq=False)
class ErrorDraws:
    """e, Û and e²/Û of agents, (n_agents, n_draws), and which pairs they judge, symmetric."""

    errors: FloatArray
    seen: FloatArray
    squares: FloatArray
    judged: Mask

    @cached_property
    def ends(self) -> Mask:
        """Agents of which each judged pair has one: those judged with half of all, where that will do."""
        most = 2 * np.count_nonzero(self.judged, axis=1) >= len(self.judged)
        is_enough = not self.judged[np.ix_(~most, ~most)].any()
        return np.asarray(most if is_enough else np.ones_like(most))


def own_draws(name: str, error: AgentError, *, seed: int, n_draws: int) -> FloatArray:
    """Draw e_a, and of Û_a what no agents share, V·χ²_ν/ν of the rest of V_a, shape (2, n_draws)."""
    place = name.encode("utf-8", "surrogatepass")
    e = math.sqrt(error.variance) * generator(seed, "rank error", *place).standard_normal(n_draws)
    if error.calibrated:
        t = generator(seed, "rank estimate", *place).standard_t(T_DF, n_draws)
        e += math.sqrt(error.calibrated * (T_DF - 2) / T_DF) * t
    alone = error.alone
    seen = alone.variance * _scale(generator(seed, "rank seen", *place), alone.df, n_draws)
    return np.array([e, seen])


def draw_errors(
    names: Sequence[str],
    errors: Sequence[AgentError],
    judged: Mask,
    *,
    seed: int,
    n_draws: int,
    own: OwnDraws = own_draws,
) -> ErrorDraws:
    """Draw the error of every agent; `own` is `own_draws`, or one that remembers them."""
    e, seen = np.zeros((len(names), n_draws)), np.ones((len(names), n_draws))
    df_of: dict[int, float] = {}
    for error in errors:
        df = error.calibration_df
        if error.calibrated and df_of.setdefault(error.calibration, df) != df:
            raise CoreError(
                f"calibration {error.calibration}: {df} and {df_of[error.calibration]} degrees of freedom",
                code="draws",
            )
    common = {c: _scale(generator(seed, "calibration", c), df, n_draws) for c, df in sorted(df_of.items())}
    of_facets = {
        name: _scale(generator(seed, "rank facet", *name.encode()), df, n_draws)
        for name, df in {one.name: one.df for error in errors for one in error.facets}.items()
    }
    for i in np.flatnonzero(judged.any(axis=1)).tolist():
        error = errors[i]
        e[i], seen[i] = own(names[i], error, seed=seed, n_draws=n_draws)
        seen[i] += sum(one.variance * of_facets[one.name] for one in error.facets)
        for one in error.facets:
            if not one.variance and math.isfinite(one.df):  # it may have been missed
                seen[i] = np.minimum(seen[i], error.variance * of_facets[one.name])
        if error.calibrated:
            seen[i] += error.calibrated * common[error.calibration]
    return ErrorDraws(read_only(e), read_only(seen), read_only(e**2 / seen), read_only(judged))


def upper_point(draws: ErrorDraws, others: FloatArray, place: int) -> float:
    """Return the place-th smallest, from 1, maximum of T² over pairs and of `others`, (n_draws,)."""
    agent, first, second = largest(draws.squares)
    every = np.arange(agent.size)
    errors, seen = draws.errors[agent, every], draws.seen[agent, every]
    least, most = np.zeros(every.size), (first + second) * (1 + SLACK)
    for e, u, judged in zip(draws.errors, draws.seen, draws.judged, strict=True):
        ratios = (e - errors) ** 2
        ratios /= u + seen
        np.maximum(least, np.where(judged[agent], ratios, 0.0), out=least)
    floor = float(np.partition(np.maximum(least, others), place - 1)[place - 1])
    rows = np.flatnonzero(np.maximum(most, others) >= floor)
    maxima = np.maximum(_maxima(draws, rows, floor), others[rows])
    return float(np.sort(maxima)[place - 1 - others.size])


def largest(squares: Iterable[FloatArray]) -> tuple[IndexArray, FloatArray, FloatArray]:
    """Return of every draw the agent with the largest z², that z² and the second largest, (n_draws,) each."""
    rows = iter(squares)
    first = next(rows).copy()
    second, agent = np.zeros(first.size), np.zeros(first.size, dtype=np.intp)
    for i, row in enumerate(rows, start=1):
        np.maximum(second, np.minimum(first, row), out=second)
        agent[row > first] = i
        np.maximum(first, row, out=first)
    return agent, first, second


def _scale(rng: np.random.Generator, df: float, n_draws: int) -> FloatArray:
    """χ²_ν/ν, never 0; ν is rounded to 1e-9, as below 2 the generator draws in another way."""
    if math.isinf(df):
        return np.ones(n_draws)
    return np.maximum(rng.chisquare(round(df, DECIMALS), n_draws) / df, MIN_SCALE)


def _maxima(draws: ErrorDraws, rows: IndexArray, floor: float) -> FloatArray:
    """T² of the pair with the largest in each of these draws, where that reaches the floor.

    Of few agents all pairs of many draws at once are faster than those of each draw that may reach it.
    """
    n = len(draws.errors)
    maxima = np.empty(rows.size)
    if n > FEW_AGENTS:
        for place, row in enumerate(rows.tolist()):
            squares = draws.squares[:, row]
            near = np.flatnonzero((squares + squares.max()) * (1 + SLACK) >= floor)
            ends = near[draws.ends[near]]
            ratios = np.subtract.outer(draws.errors[ends, row], draws.errors[near, row])
            ratios *= ratios
            ratios /= np.add.outer(draws.seen[ends, row], draws.seen[near, row])
            ratios *= draws.judged[np.ix_(ends, near)]
            maxima[place] = ratios.max(initial=0.0)
        return maxima
    for part in np.array_split(np.arange(rows.size), max(1, -(-rows.size * n * n // MAX_PAIRS))):
        errors, seen = draws.errors[:, rows[part]].T, draws.seen[:, rows[part]].T
        ratios = errors[:, :, None] - errors[:, None, :]
        ratios *= ratios
        ratios /= seen[:, :, None] + seen[:, None, :]
        ratios *= draws.judged
        maxima[part] = ratios.max(axis=(1, 2))
    return maxima


def may_be_first(
    draws: ErrorDraws, others: FloatArray, lead: FloatArray, place: int, *, least: FloatArray
) -> Mask:
    """Return who is not excluded, (n_agents,).

    others: (n_draws, n_agents); T_a² over pairs judged otherwise; 0 without any.
    lead, least: (n_agents,); ℓ_a, infinite for one that is excluded already; the least c_a.
    """
    best = largest(np.where(e > 0, z2, 0.0) for e, z2 in zip(draws.errors, draws.squares, strict=True))
    enough = len(others) - place
    return np.array(
        [
            one <= least[a]
            or (np.isfinite(one) and _n_reaching(draws, others[:, a], a, one**2, best, enough) > enough)
            for a, one in enumerate(lead.tolist())
        ],
        dtype=np.bool_,
    )


def may_be_first_by_tasks(ahead: FloatArray, lead: FloatArray, place: int, *, least: FloatArray) -> Mask:
    """Return who is not excluded where all pairs are judged by resampled tasks: `ahead` is T_a²."""
    n_reaching = np.count_nonzero(ahead >= np.maximum(lead, 0.0) ** 2, axis=0)
    return np.asarray((lead <= least) | (n_reaching > len(ahead) - place), dtype=np.bool_)


def least_by_tasks(ahead: FloatArray, df: float) -> float:
    """Return what c_a is at least where tasks judge: c̄ of T_a², (n_draws, n_agents), or t_{df,.95}."""
    return max(math.sqrt(pooled_upper_point(ahead)), float(stdtrit(df, 0.95)))


def _n_reaching(
    draws: ErrorDraws,
    others: FloatArray,
    a: int,
    reached: float,
    best: tuple[IndexArray, FloatArray, FloatArray],
    enough: int,
) -> int:
    """How many draws have T_a² at `reached` or above; above `enough` any such number will do."""
    agent, first, _ = best
    sure = (others >= reached) | (_one_sided(draws, a, agent, np.arange(agent.size)) >= reached)
    n_sure = int(np.count_nonzero(sure))
    behind = np.where(draws.errors[a] < 0, draws.squares[a], 0.0)
    unsure = np.flatnonzero(~sure & ((first + behind) * (1 + SLACK) >= reached))
    if n_sure > enough or n_sure + unsure.size <= enough:
        return n_sure
    reach = np.zeros(unsure.size)
    for b in np.flatnonzero(draws.judged[a]).tolist():
        np.maximum(reach, _one_sided(draws, a, b, unsure), out=reach)
    return n_sure + int(np.count_nonzero(reach >= reached))


def _one_sided(draws: ErrorDraws, a: int, b: IndexArray | int, columns: IndexArray) -> FloatArray:
    """T² of b over a in these draws, 0 where b is behind or the pair is judged otherwise."""
    gaps = np.maximum(draws.errors[b, columns] - draws.errors[a, columns], 0.0)
    ratios = gaps**2 / (draws.seen[b, columns] + draws.seen[a, columns])
    return np.asarray(np.where(draws.judged[a, b], ratios, 0.0), dtype=np.float64)
