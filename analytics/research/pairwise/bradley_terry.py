"""Bradley and Terry's model: one strength for each agent, one position effect for each judge.

The parameters θ are β, then π; x are the logits of tallies; ℓ is the log-likelihood and H its curvature.
Errors are clustered by item; H⁻¹ alone (``naive``) is never one: several comparisons of an item are not
independent (measured: 2 to 5 times too small on boards). No tie parameter, no strength that differs by
category.

Where the order decides all that a judge says, ℓ rises for ever and H vanishes in that direction; where the
search ends, vᵀHv ≤ max|x·v|·vᵀ∂ℓ, so that a least eigenvalue of the order of the last derivative is the mark.

Source: Bradley & Terry, *Biometrika* 39 (1952) 324-345. Ford, *American Mathematical Monthly* 64 (1957)
28-33. Davidson & Beaver, *Biometrics* 33 (1977) 693-702 (order). White, *Econometrica* 50 (1982) 1-25, and
Cameron & Miller, *J. Human Resources* 50 (2015) 317-372 (clustered sandwich). Step length: Sun & Tran-Dinh,
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
from analytics.names import first_names
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
    """The comparisons do not determine the strengths.

    Codes: ``disconnected``, ``position``, ``one_agent``, ``prior``, ``few_items``, ``unfinished``.
    """


@dataclass(frozen=True, eq=False)
class BradleyTerry:
    """Strengths and position effects with errors clustered by item.

    strengths, positions: (n_agents,) and (n_judges,).
    covariance, naive: (n_agents + n_judges,) squared; Σ̂ and H⁻¹.
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
    """Fit strengths, with V of a normal prior or none, and position effects; errors clustered by item."""
    tallies, n = battles.tallies, len(battles.agents)
    theta, inverse, logits = _maximum(tallies, battles.agents, battles.judges, prior)
    n_items, width = len(battles.items), theta.size
    if n_items < width:
        raise StrengthsRefused(
            f"{counted(n_items, 'item')}, and {width} strengths and position effects: errors need as many",
            code="few_items",
        )
    covariance = inverse @ battles.spread(expit(logits)) @ inverse * (n_items / (n_items - 1))
    return BradleyTerry(
        agents=battles.agents,
        judges=battles.judges,
        strengths=read_only(theta[:n]),
        positions=read_only(theta[n:]),
        covariance=read_only(covariance),
        naive=read_only(inverse),
        log_likelihood=float(tallies.won @ logits + tallies.n @ log_expit(-logits)),
        n_items=n_items,
        n_comparisons=float(tallies.n.sum()),
    )


def fit_wins(wins: FloatArray, prior: float | None = None) -> FloatArray:
    """Strengths of wins of row over column, a tie ½ to each, shape (n_agents,), Σβ = 0."""
    names = tuple(f"agent {i}" for i in range(len(wins)))
    return _maximum(tallies_of_wins(wins), names, (), prior)[0]


def _maximum(
    tallies: Tallies, agents: tuple[str, ...], judges: tuple[str, ...], prior: float | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """θ where ℓ is largest, H⁻¹ with Σβ = 0, and x of the tallies there."""
    model = _BattleModel(tallies, agents, judges, prior)
    theta = model.climbed(max(MAX_DERIVATIVE, ROUNDING * model.most))
    n, logits = len(agents), model.logits(theta)
    curvature = model.curvature(expit(logits))
    if judges:
        values, vectors = np.linalg.eigh(curvature)
        if values[0] < MIN_CURVATURE:
            raise _unidentified((judges[int(np.argmax(np.abs(vectors[n:, 0])))],))
    factor, failed = dpotrf(curvature.T, overwrite_a=True)
    if failed:
        raise _unidentified(judges)
    upper = dpotri(factor, overwrite_c=True)[0]  # below stay the zeros of the factor
    inverse = np.asarray(upper + upper.T, dtype=np.float64)
    inverse.ravel()[:: len(inverse) + 1] *= 0.5
    inverse[:n] -= inverse[:n].sum(axis=0) / n
    inverse[:, :n] -= inverse[:, :n].sum(axis=1, keepdims=True) / n
    theta[:n] -= theta[:n].mean()
    return theta, inverse, logits


def again(
    tallies: Tallies,
    agents: tuple[str, ...],
    judges: tuple[str, ...],
    prior: float | None,
    start: FloatArray | None,
) -> FloatArray:
    """Strengths and position effects of one draw of many, (n_agents + n_judges,), to about 1e-8.

    A judge that the draw has left without comparisons keeps the effect it starts with.
    """
    theta = _BattleModel(tallies, agents, judges, prior).climbed(MAX_DERIVATIVE_OF_MANY, start)
    theta[: len(agents)] -= theta[: len(agents)].mean()
    return theta


class _BattleModel:
    """ℓ of tallies, its derivative and curvature."""

    def __init__(
        self, tallies: Tallies, agents: tuple[str, ...], judges: tuple[str, ...], prior: float | None
    ) -> None:
        _check(tallies, agents, prior)
        self.tallies, self.judges, self.n_agents, self.n_judges = tallies, judges, len(agents), len(judges)
        self.penalty = 0.0 if prior is None else 1.0 / prior
        self.played = self._summed(tallies.n, tallies.n)
        self.most = float(self.played.max())

    def _summed(self, of_a: FloatArray, of_b: FloatArray) -> FloatArray:
        t, n = self.tallies, self.n_agents
        return np.asarray(np.bincount(t.a, of_a, n) + np.bincount(t.b, of_b, n), dtype=np.float64)

    def climbed(self, enough: float, start: FloatArray | None = None) -> FloatArray:
        """Take Newton's steps from a start, or smoothed log odds, until no derivative exceeds `enough`."""
        t = self.tallies
        if start is None:
            points, n = self._summed(t.won, t.n - t.won), self.played
            strengths = np.log((points + 1.0) / (n - points + 1.0))
            theta = np.concatenate([strengths - strengths.mean(), np.zeros(self.n_judges)])
        else:
            theta = start.copy()
        factor, change = None, math.inf
        for _ in range(MAX_ITERATIONS):
            p = expit(self.logits(theta))
            beyond = t.won - t.n * p
            slope = self._summed(beyond, -beyond) - self.penalty * theta[: self.n_agents]
            if self.n_judges:
                of_judges = np.bincount(t.judge, beyond * t.order, self.n_judges)
                slope = np.concatenate([slope, of_judges])
            if np.abs(slope).max() < enough:
                return theta
            if factor is None or change > SAME_CURVATURE:
                # Symmetric, so that its transpose is the same matrix in LAPACK's order, and none is copied.
                factor, failed = dpotrf(self.curvature(p).T, overwrite_a=True)
                if failed:
                    raise _unidentified(self.judges)
            step, _ = dpotrs(factor, slope)
            # at least the largest change of any logit
            change = float(np.ptp(step[: self.n_agents]))
            change += float(np.abs(step[self.n_agents :]).max(initial=0.0))
            theta += (1.0 if change <= 1.0 else math.log1p(change) / change) * step
        raise StrengthsRefused(
            f"a derivative of {np.abs(slope).max():.1e} is left after {MAX_ITERATIONS} steps",
            code="unfinished",
        )

    def logits(self, theta: FloatArray) -> FloatArray:
        """Return x, shape (n_tallies,)."""
        t = self.tallies
        x = theta[t.a] - theta[t.b]
        if self.n_judges:
            x += theta[self.n_agents + t.judge] * t.order
        return np.asarray(x, dtype=np.float64)

    def curvature(self, p: FloatArray) -> FloatArray:
        """H, made definite where all strengths move together, or a draw has left a judge without a row."""
        n = self.n_agents
        curvature = crossed(self.tallies, self.tallies.n * p * (1.0 - p), n, self.n_judges)
        diagonal = curvature.ravel()[:: len(curvature) + 1]
        diagonal[n:] += diagonal[n:] == 0.0
        curvature[:n, :n] += float(diagonal[:n].sum()) / n**2
        diagonal[:n] += self.penalty
        return curvature


def _unidentified(named: tuple[str, ...]) -> StrengthsRefused:
    names = first_names([cut(name) for name in named], N_NAMES_LISTED)
    return StrengthsRefused(
        f"the position effect of {names} cannot be told from the strengths: the "
        "order in which answers were shown decides, or never varies; leave the column first out",
        code="position",
    )


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
    # whether the first agent reaches, and is reached by, all others by steps "won or tied against"
    n = len(agents)
    pair, size = tallies.pair(n), n * n
    won = np.bincount(pair, tallies.won, size).reshape(n, n)
    lost = np.bincount(pair, tallies.n - tallies.won, size).reshape(n, n)
    beaten = ((won + lost.T) > 0).astype(np.float64)  # of numbers, whose products are quick
    if not all(_reaches_all(steps) for steps in (beaten, beaten.T)):
        classes = _connected_classes(beaten)
        shown = [f"{{{first_names([cut(agents[i]) for i in one], N_NAMES_LISTED)}}}" for one in classes]
        raise StrengthsRefused(
            f"the strengths have no maximum: the agents fall into {len(classes)} classes, "
            f"{first_names(shown, N_CLASSES_LISTED)}; between any two of them one side never won or tied; a "
            "prior (--prior 9) makes the strengths finite",
            code="disconnected",
        )


def _reaches_all(steps: FloatArray) -> bool:
    reached, n_before = steps[0] > 0, -1
    while len(steps) > (n_reached := int(np.count_nonzero(reached))) > n_before:
        n_before = n_reached
        reached |= reached @ steps > 0
    return n_reached == len(steps)


def _connected_classes(beaten: FloatArray) -> list[list[int]]:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    _, label = connected_components(csr_array(beaten), directed=True, connection="strong")
    classes: dict[int, list[int]] = {}
    for agent, one in enumerate(label.tolist()):
        classes.setdefault(one, []).append(agent)
    return list(classes.values())
