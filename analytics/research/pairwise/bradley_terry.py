"""Bradley and Terry's model: one strength for each agent, one position effect for each judge.

Model
-----
::

    P(a beats b) = σ(x),     x = β_a − β_b + π_q·o,     Σβ = 0

o = ±1 for a shown first or second, 0 where it is not known; π_q is the log odds that judge q adds to what it
is shown first. A tie is half a win to each: quasi-likelihood, so that β is right where the mean is, and
errors do not rest on the binomial variance. ::

    ℓ  = Σ [w log P + (n − w) log(1 − P)] − Σβ²/(2V)          V: the prior variance, where one is asked for
    H  = −∂²ℓ,   u_j = ∂ℓ_j of item j
    Σ̂  = H⁻¹ (Σ_j u_j u_jᵀ) H⁻¹ · m/(m − 1)                   clustered by item, m items

*Existence.* Without a prior a maximum exists only if each agent can be reached from each other by steps
"won or tied against" (Ford 1957). A position effect has none where the verdicts of its judge, together with
the strengths, are told apart without error: then ℓ rises for ever and H vanishes in that direction; where it
ends, vᵀHv ≤ max|x·v|·vᵀ∂ℓ, so that a least eigenvalue of the order of the last derivative is the mark.

A whole Newton step, with c the largest change of any x, raises ℓ by at least (1 − (e^c − c − 1)/c²)·sᵀH⁻¹s,
s the derivative, and so up to c = 1; a longer one is cut to log(1 + c)/c of it, which never lowers ℓ. After a
step of c ≤ 1e-4, H is the same to that part, and is not factored again. The end is where no
derivative exceeds 1e-11, or 1e-15 of an agent's comparisons, which is what rounding leaves.

Symbols
-------
======  ==================  =====================================  ============
symbol  code                shape                                  unit
======  ==================  =====================================  ============
β       ``strengths``       (n_agents,), Σβ = 0                    logits
π       ``positions``       (n_judges,)                            logits
Σ̂       ``covariance``      (n_agents + n_judges,) squared         logits²
H⁻¹     ``naive``           (n_agents + n_judges,) squared         logits²
Elo     ``elo(β)``          (n_agents,)                            points
======  ==================  =====================================  ============

Not done here: no tie parameter and no strength that differs by category. H⁻¹ alone is never an error: several
comparisons of an item are not independent (measured: 2 to 5 times too small on boards).

Source
------
Bradley & Terry, *Biometrika* 39 (1952) 324-345. Ford, *American Mathematical Monthly* 64 (1957) 28-33.
Davidson & Beaver, *Biometrics* 33 (1977) 693-702 (order). White, *Econometrica* 50 (1982) 1-25, and Cameron &
Miller, *J. Human Resources* 50 (2015) 317-372 (clustered sandwich). Step length: Sun & Tran-Dinh,
*Mathematical Programming* 178 (2019) 145-213. Messing, *Hidden Measurement Error in LLM Pipelines*, App. R.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.special import expit, log_expit

from analytics.arrays import FloatArray, read_only
from analytics.errors import CoreError
from analytics.research.pairwise.comparisons import Battles, Tallies, crossed, tallies_of_wins
from analytics.text import counted, cut

MAX_DERIVATIVE = 1e-11
MAX_DERIVATIVE_OF_MANY = 1e-6
ROUNDING = 1e-15
MIN_CURVATURE = 1e-8
SAME_CURVATURE = 1e-4
MAX_ITERATIONS = 200
MIN_PRIOR, MAX_PRIOR = 1e-9, 1e9
ELO_MEAN, ELO_SCALE = 1000.0, 400.0 / math.log(10.0)
N_CLASSES_LISTED = 4
N_NAMES_LISTED = 3


class StrengthsRefused(CoreError):
    """The comparisons do not tell the strengths.

    Codes: ``disconnected``, ``position``, ``one_agent``, ``prior``, ``few_items``, ``unfinished``.
    """


@dataclass(frozen=True, eq=False)
class Maximum:
    """Where ℓ is largest.

    parameters: (n_agents + n_judges,); β, then π.
    inverse: (n_agents + n_judges,) squared; H⁻¹ with Σβ = 0.
    p: (n_tallies,); P.
    log_likelihood: without the penalty.
    """

    parameters: FloatArray
    inverse: FloatArray
    p: FloatArray
    log_likelihood: float


@dataclass(frozen=True, eq=False)
class BradleyTerry:
    """Strengths and position effects with errors clustered by item.

    strengths: (n_agents,).
    positions: (n_judges,).
    covariance, naive: (n_agents + n_judges,) squared; σ̂ and H⁻¹.
    prior: V.
    """

    agents: tuple[str, ...]
    judges: tuple[str, ...]
    strengths: FloatArray
    positions: FloatArray
    covariance: FloatArray
    naive: FloatArray
    log_likelihood: float
    n_items: int
    n_comparisons: float
    prior: float | None

    @cached_property
    def se(self) -> FloatArray:
        """Standard errors of β, then π, shape (n_agents + n_judges,)."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def naive_se(self) -> FloatArray:
        """What they would be, were all comparisons independent."""
        return np.sqrt(np.diag(self.naive))


def elo(strengths: FloatArray) -> FloatArray:
    """Strengths in points: 1000 + (400/ln 10)·β."""
    return np.asarray(ELO_MEAN + ELO_SCALE * strengths, dtype=np.float64)


def fit(battles: Battles, prior: float | None = None) -> BradleyTerry:
    """Fit strengths and position effects, with errors clustered by item.

    prior: V, the variance of a normal prior of each strength; without it the maximum must exist.
    Raises StrengthsRefused.
    """
    agents, tallies = battles.agents, battles.tallies
    optimum = maximise(tallies, agents, battles.judges, prior)
    n_items, width = len(battles.items), optimum.parameters.size
    if n_items < width:
        raise StrengthsRefused(
            f"{counted(n_items, 'item')}, and {width} strengths and position effects: errors need as many",
            code="few_items",
        )
    covariance = optimum.inverse @ battles.spread(optimum.p) @ optimum.inverse * (n_items / (n_items - 1))
    return BradleyTerry(
        agents=agents,
        judges=battles.judges,
        strengths=read_only(optimum.parameters[: len(agents)]),
        positions=read_only(optimum.parameters[len(agents) :]),
        covariance=read_only(covariance),
        naive=read_only(optimum.inverse),
        log_likelihood=optimum.log_likelihood,
        n_items=n_items,
        n_comparisons=float(tallies.n.sum()),
        prior=prior,
    )


def fit_wins(wins: FloatArray, prior: float | None = None) -> FloatArray:
    """Strengths of a matrix of wins alone, shape (n_agents,), Σβ = 0.

    wins: (n_agents, n_agents); wins of the row's agent over the column's; a tie is ½ to each.
    prior: V.
    Raises StrengthsRefused.
    """
    names = tuple(f"agent {i}" for i in range(len(wins)))
    return maximise(tallies_of_wins(wins), names, (), prior).parameters


def maximise(
    tallies: Tallies, agents: tuple[str, ...], judges: tuple[str, ...], prior: float | None = None
) -> Maximum:
    """Find the maximum of ℓ.

    Raises StrengthsRefused.
    """
    _check(tallies, agents, prior)
    model = _BattleModel(tallies, len(agents), len(judges), prior)
    enough = max(MAX_DERIVATIVE, ROUNDING * model.most)
    theta = _climbed(model, model.started(), enough, judges)
    return _ended(model, theta, judges)


def again(
    tallies: Tallies,
    agents: tuple[str, ...],
    judges: tuple[str, ...],
    prior: float | None,
    start: FloatArray | None,
) -> FloatArray:
    """Strengths and position effects of one draw of many, shape (n_agents + n_judges,), to about 1e-8.

    tallies: a judge that the draw has left without comparisons keeps the effect it starts with.
    start: (n_agents + n_judges,).
    Raises StrengthsRefused.
    """
    _check(tallies, agents, prior)
    model = _BattleModel(tallies, len(agents), len(judges), prior)
    theta = _climbed(model, model.started() if start is None else start, MAX_DERIVATIVE_OF_MANY, judges)
    theta[: len(agents)] -= theta[: len(agents)].mean()
    return theta


# ---------------------------------------------------------------------------------------------- arithmetic


class _BattleModel:
    """ℓ of tallies, its derivative and curvature."""

    def __init__(self, tallies: Tallies, n_agents: int, n_judges: int, prior: float | None) -> None:
        self.tallies, self.n_agents, self.n_judges = tallies, n_agents, n_judges
        self.penalty = 0.0 if prior is None else 1.0 / prior
        self.played = self._summed(tallies.n, tallies.n)
        self.most = float(self.played.max())

    def _summed(self, of_a: FloatArray, of_b: FloatArray) -> FloatArray:
        t, n = self.tallies, self.n_agents
        return np.asarray(np.bincount(t.a, of_a, n) + np.bincount(t.b, of_b, n), dtype=np.float64)

    def started(self) -> FloatArray:
        """Start at the log odds of each agent's points, with one more point each way."""
        t = self.tallies
        points, n = self._summed(t.won, t.n - t.won), self.played
        strengths = np.log((points + 1.0) / (n - points + 1.0))
        return np.concatenate([strengths - strengths.mean(), np.zeros(self.n_judges)])

    def logits(self, theta: FloatArray) -> FloatArray:
        """Return x, shape (n_tallies,)."""
        t = self.tallies
        x = theta[t.a] - theta[t.b]
        if self.n_judges:
            x += theta[self.n_agents + t.judge] * t.order
        return np.asarray(x, dtype=np.float64)

    def largest_change(self, step: FloatArray) -> float:
        """Return at least the largest change of x."""
        of_strengths, of_positions = step[: self.n_agents], step[self.n_agents :]
        change = float(of_strengths.max() - of_strengths.min())
        return change + float(np.abs(of_positions).max()) if self.n_judges else change

    def slope(self, theta: FloatArray, p: FloatArray) -> FloatArray:
        """Return ∂ℓ."""
        t = self.tallies
        beyond = t.won - t.n * p
        of_strengths = self._summed(beyond, -beyond) - self.penalty * theta[: self.n_agents]
        if not self.n_judges:
            return of_strengths
        return np.concatenate([of_strengths, np.bincount(t.judge, beyond * t.order, self.n_judges)])

    def curvature(self, p: FloatArray) -> FloatArray:
        """H, made definite where all strengths move together, or a draw has left a judge without a row."""
        n = self.n_agents
        curvature = crossed(self.tallies, self.tallies.n * p * (1.0 - p), n, self.n_judges)
        diagonal = curvature.ravel()[:: len(curvature) + 1]
        diagonal[n:] += diagonal[n:] == 0.0
        curvature[:n, :n] += float(diagonal[:n].sum()) / n**2
        diagonal[:n] += self.penalty
        return curvature


def _climbed(model: _BattleModel, start: FloatArray, enough: float, judges: tuple[str, ...]) -> FloatArray:
    """Take Newton's steps until no derivative exceeds `enough`.

    Raises StrengthsRefused.
    """
    theta, factor, change = start.copy(), None, math.inf
    for _ in range(MAX_ITERATIONS):
        p = expit(model.logits(theta))
        slope = model.slope(theta, p)
        if np.abs(slope).max() < enough:
            return theta
        if factor is None or change > SAME_CURVATURE:
            # Symmetric, so that its transpose is the same matrix in LAPACK's order, and none is copied.
            factor, failed = dpotrf(model.curvature(p).T, overwrite_a=True)
            if failed:
                raise _unidentified(judges)
        step, _ = dpotrs(factor, slope)
        change = model.largest_change(step)
        theta += (1.0 if change <= 1.0 else math.log1p(change) / change) * step
    raise StrengthsRefused(
        f"a derivative of {np.abs(slope).max():.1e} is left after {MAX_ITERATIONS} steps", code="unfinished"
    )


def _ended(model: _BattleModel, theta: FloatArray, judges: tuple[str, ...]) -> Maximum:
    """Return the maximum, if it is one.

    Raises StrengthsRefused.
    """
    n, logits, tallies = model.n_agents, model.logits(theta), model.tallies
    p = expit(logits)
    curvature = model.curvature(p)
    if judges:
        values, vectors = np.linalg.eigh(curvature)
        if values[0] < MIN_CURVATURE:
            raise _unidentified(judges, vectors[n:, 0])
    inverse = _inverse(curvature, judges)
    inverse[:n] -= inverse[:n].sum(axis=0) / n
    inverse[:, :n] -= inverse[:, :n].sum(axis=1, keepdims=True) / n
    ll = tallies.won @ logits + tallies.n @ log_expit(-logits)
    theta[:n] -= theta[:n].mean()
    return Maximum(theta, inverse, p, float(ll))


def _inverse(curvature: FloatArray, judges: tuple[str, ...]) -> FloatArray:
    """Invert H by Cholesky's factor.

    Raises StrengthsRefused.
    """
    factor, failed = dpotrf(curvature.T, overwrite_a=True)
    if failed:
        raise _unidentified(judges)
    upper = dpotri(factor, overwrite_c=True)[0]  # below stay the zeros of the factor
    inverse = upper + upper.T
    inverse.ravel()[:: len(inverse) + 1] *= 0.5
    return np.asarray(inverse, dtype=np.float64)


def _unidentified(judges: tuple[str, ...], direction: FloatArray | None = None) -> StrengthsRefused:
    """Name the judge whose position effect has no maximum."""
    named = judges if direction is None else (judges[int(np.argmax(np.abs(direction)))],)
    return StrengthsRefused(
        f"the position effect of {_listed(named, N_NAMES_LISTED)} cannot be told from the strengths: the "
        "order in which answers were shown decides, or never varies; leave the column first out",
        code="position",
    )


# -------------------------------------------------------------------------------------------------- checks


def _check(tallies: Tallies, agents: tuple[str, ...], prior: float | None) -> None:
    if len(agents) < 2:
        raise StrengthsRefused(f"{len(agents)} agent; strengths are of two at least", code="one_agent")
    if prior is not None:
        if not MIN_PRIOR <= prior <= MAX_PRIOR:
            raise StrengthsRefused(
                f"a prior variance of {prior:g}; it lies between {MIN_PRIOR:g} and {MAX_PRIOR:g}",
                code="prior",
            )
        return
    if not _is_connected(tallies, len(agents)):
        classes = connected_classes(tallies, len(agents))
        shown = [
            f"{{{_listed([agents[i] for i in one], N_NAMES_LISTED)}}}" for one in classes[:N_CLASSES_LISTED]
        ]
        more = f" and {len(classes) - N_CLASSES_LISTED} more" if len(classes) > N_CLASSES_LISTED else ""
        raise StrengthsRefused(
            f"the strengths have no maximum: the agents fall into {len(classes)} classes, "
            f"{', '.join(shown)}{more}; between any two of them one side never won or tied; a prior "
            "(--prior 9) makes the strengths finite",
            code="disconnected",
        )


def _is_connected(tallies: Tallies, n_agents: int) -> bool:
    """Whether the first agent reaches, and is reached by, all others by steps "won or tied against"."""
    pair, size = tallies.pair(n_agents), n_agents * n_agents
    won = np.bincount(pair, tallies.won, size).reshape(n_agents, n_agents)
    lost = np.bincount(pair, tallies.n - tallies.won, size).reshape(n_agents, n_agents)
    beaten = ((won + lost.T) > 0).astype(np.float64)  # of numbers, whose products are quick
    return all(_reaches_all(steps) for steps in (beaten, beaten.T))


def _reaches_all(steps: FloatArray) -> bool:
    reached, n_before = steps[0] > 0, -1
    while len(steps) > (n_reached := int(np.count_nonzero(reached))) > n_before:
        n_before = n_reached
        reached |= reached @ steps > 0
    return n_reached == len(steps)


def connected_classes(tallies: Tallies, n_agents: int) -> list[list[int]]:
    """Classes of agents that reach each other by steps "won or tied against", by their first agent."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    up, down = tallies.won > 0, tallies.won < tallies.n
    winner = np.concatenate([tallies.a[up], tallies.b[down]])
    loser = np.concatenate([tallies.b[up], tallies.a[down]])
    graph = csr_array((np.ones(winner.size), (winner, loser)), shape=(n_agents, n_agents))
    _, label = connected_components(graph, directed=True, connection="strong")
    classes: dict[int, list[int]] = {}
    for agent, one in enumerate(label.tolist()):
        classes.setdefault(one, []).append(agent)
    return list(classes.values())


def _listed(names: tuple[str, ...] | list[str], most: int) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(cut, names[:most])) + more
