"""How far judges of one tier disagree, tier by tier, on the same items.

Model
-----
One fit of §7's terms for each tier of judges::

    y = μ + λ_m + α_i + (αλ)_im [+ φ_v + (αφ)_iv + (φλ)_vm] + ρ,      λ_m the judges' fixed effects

and of each tier its components themselves and σ̂²_αλ/σ̂²_α, what judges disagree on an item against what
items differ by. (Shares of Var(θ̂) are of another total in each tier and do not compare.) The ratio's
interval is that of a parametric bootstrap. Whether tiers differ: the spread of σ̂²_αλ, largest minus
smallest, when the judges are dealt to tiers of these sizes in all other ways (at most 500 of them, drawn)::

    p = #{partitions with a spread at least as large} / #{partitions}           the one at hand included

Symbols: σ̂² ``components``; ratio ``ratio``, 1.

Not done here: under 20 partitions no p can be small, and none is given. Categories are not told apart from
items.

Source: Messing, *Hidden Measurement Error in LLM Pipelines*, App. Q.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from analytics.arrays import CodeArray, FloatArray
from analytics.errors import CoreError
from analytics.reml import RESIDUAL, VarianceFit, fit, refits
from analytics.resampling import generator

MIN_PARTITIONS, MAX_PARTITIONS = 20, 500
N_DRAWS = 400
SLACK = 1e-9


@dataclass(frozen=True)
class Tier:
    """One tier.

    components: σ̂², the residual among them.
    ratio, lower, upper: σ̂²_αλ/σ̂²_α with its 95% interval.
    """

    name: str
    judges: tuple[str, ...]
    components: Mapping[str, float]
    ratio: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Tiers:
    """All tiers, the spread of σ̂²_αλ, and whether other groups of these judges differ as much."""

    tiers: tuple[Tier, ...]
    spread: float
    p_value: float
    n_partitions: int


def tiers(
    item: CodeArray,
    judge: CodeArray,
    prompt: CodeArray,
    score: FloatArray,
    judges: Sequence[str],
    tier: Sequence[str],
    *,
    seed: int,
) -> Tiers:
    """Fit each tier and compare them.

    item, judge, prompt: (n_rows,); `judge` is a place in `judges`.
    score: (n_rows,).
    judges, tier: length n_judges; names, and the tier of each.
    Raises CoreError, and the refusals of `analytics.reml.fit`.
    """
    names = sorted(set(tier))
    groups = tuple(tuple(i for i, one in enumerate(tier) if one == name) for name in names)
    _check(names, groups)
    partitions = _partitions(tuple(range(len(judges))), tuple(sorted(map(len, groups))))
    if len(partitions) < MIN_PARTITIONS:
        raise CoreError(
            f"the judges can be dealt to such tiers in {len(partitions)} ways; under {MIN_PARTITIONS} no "
            "difference between tiers can be told",
            code="few_partitions",
        )
    rows = _TierRows(item, judge, prompt, score)
    fits = {group: rows.fitted(group) for group in groups}
    estimates = tuple(
        _tier(name, [judges[i] for i in group], fits[group], seed)
        for name, group in zip(names, groups, strict=True)
    )
    apart = {group: one.components["item:judge"] for group, one in fits.items()}
    spread = _spread([apart[group] for group in groups])
    own = frozenset(groups)
    others = [one for one in _drawn(partitions, seed) if one != own]
    for group in {group for one in others for group in one} - set(apart):
        apart[group] = rows.fitted(group).components["item:judge"]
    as_large = sum(_spread([apart[group] for group in one]) >= spread - SLACK for one in others)
    return Tiers(estimates, spread, (1 + as_large) / (1 + len(others)), len(partitions))


Partition = frozenset[tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class _TierRows:
    item: CodeArray
    judge: CodeArray
    prompt: CodeArray
    score: FloatArray

    def fitted(self, group: tuple[int, ...]) -> VarianceFit:
        """Fit the rows of these judges."""
        mask = np.isin(self.judge, group)
        columns = {"item": self.item[mask], "judge": self.judge[mask], "prompt": self.prompt[mask]}
        terms = ["item", "item:judge"]
        if np.unique(columns["prompt"]).size > 1:
            terms += ["prompt", "item:prompt", "prompt:judge"]
        return fit(columns, self.score[mask], random=" + ".join(terms), fixed="judge")


def _tier(name: str, judges: Sequence[str], fitted: VarianceFit, seed: int) -> Tier:
    rng = generator(seed, "tier", *name.encode("utf-8", "surrogatepass"))
    drawn = _ratio(refits(fitted, rng, N_DRAWS).parameters, fitted.names)
    lower, upper = np.quantile(drawn, [0.025, 0.975]).tolist()
    components = {**fitted.components, RESIDUAL: fitted.residual}
    return Tier(name, tuple(judges), components, float(_ratio(fitted.parameters, fitted.names)), lower, upper)


def _ratio(parameters: FloatArray, names: Sequence[str]) -> FloatArray:
    """σ̂²_αλ/σ̂²_α, of one fit or of many; a large number where items do not differ at all."""
    between, within = parameters[..., names.index("item:judge")], parameters[..., names.index("item")]
    return np.asarray(between / np.maximum(within, SLACK), dtype=np.float64)


def _spread(variances: Sequence[float]) -> float:
    return max(variances) - min(variances)


def _partitions(judges: tuple[int, ...], sizes: tuple[int, ...]) -> list[Partition]:
    """All ways to deal judges to groups of these sizes; groups have no names."""
    if not sizes:
        return [frozenset()]
    partitions: dict[Partition, None] = {}
    for group in combinations(judges, sizes[0]):
        rest = tuple(judge for judge in judges if judge not in group)
        for other in _partitions(rest, sizes[1:]):
            partitions[frozenset({group}) | other] = None
    return list(partitions)


def _drawn(partitions: list[Partition], seed: int) -> list[Partition]:
    if len(partitions) <= MAX_PARTITIONS:
        return partitions
    places = generator(seed, "partitions").choice(len(partitions), MAX_PARTITIONS, replace=False)
    return [partitions[place] for place in places.tolist()]


def _check(names: Sequence[str], groups: Sequence[tuple[int, ...]]) -> None:
    if len(names) < 2:
        raise CoreError(f"{len(names)} tier of judges; two are compared at least", code="one_tier")
    for name, group in zip(names, groups, strict=True):
        if len(group) < 2:
            raise CoreError(f"tier {name!r} has one judge, who disagrees with nobody", code="one_judge")
