"""Strategies on the same held-out agents: their differences, and what choosing among them would have given.

The theory is in ``selection/README.md``, “Nested validation”.

Source: Dawid, *Journal of the Royal Statistical Society A* 147 (1984) 278-292 (prequential). Efron &
Tibshirani 1993, ch. 11. The rule of choice is this project's own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from analytics.arrays import DECIMALS, FloatArray, IndexArray, Mask
from selection.held_out import HeldOutRecords
from selection.validation.figures import N_GROUPS_JACKKNIFE, jackknife, mean_known, shares

DEFAULT = "mid_range"
N_AGENTS_MET = 10


@dataclass(frozen=True, eq=False)
class ShareTable:
    """Shares of every held-out agent, each met once, as in pairs_correct_full and pairs_clear_full.

    correct, clear: (n_agents, 1 + n_groups); in column 0 all agents are compared, in the others one group is
        left out. NaN where the agent was not held out or has nobody to be compared with.
    """

    correct: FloatArray
    clear: FloatArray

    @classmethod
    def mean(cls, draws: "Sequence[ShareTable]") -> "ShareTable | None":
        """Return the mean over draws of what each knows; None without a draw."""
        if not draws:
            return None
        return cls(
            mean_known(np.array([draw.correct for draw in draws])),
            mean_known(np.array([draw.clear for draw in draws])),
        )


@dataclass(frozen=True, eq=False)
class Replicates:
    """What one strategy is compared with another by.

    estimate, without: θ and θ_(g), (n_groups,); NaN or None where undefined.
    runs: (n_seeds,); θ of every random split; None elsewhere.
    shares: under the temporal protocol.
    """

    estimate: float = np.nan
    without: FloatArray | None = None
    runs: FloatArray | None = None
    shares: ShareTable | None = None


@dataclass(frozen=True)
class PairedDifference:
    """θ_a − θ_b with its jackknife error, or its spread over seeds; None where unknown."""

    value: float | None = None
    se: float | None = None
    spread: float | None = None


@dataclass(frozen=True)
class PrequentialChoice:
    """What choosing the strategy on the agents met before would have given.

    n: agents scored.
    chosen: agents met by each strategy.
    notes: why a figure is None.
    """

    pairs_correct_full: float | None = None
    pairs_clear_full: float | None = None
    random_difference: float | None = None
    n: int = 0
    chosen: Mapping[str, int] = field(default_factory=dict)
    se: Mapping[str, float | None] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)


def share_table(records: HeldOutRecords, clear: Mask, groups: IndexArray) -> ShareTable:
    """Tabulate the shares of the records by agent, with everyone and with each group left out.

    records: at most one for each agent.
    clear: (n_agents, n_agents).
    groups: (n_agents,); codes from 0.
    """
    n = clear.shape[0]
    weights = np.column_stack([np.ones(n), groups[:, None] != np.arange(groups.max() + 1)]).astype(np.float64)
    compared = records.agreement_full >= 0
    tables = []
    for table in (compared, compared & clear[records.agents]):
        filled = np.full((n, weights.shape[1]), np.nan)
        filled[records.agents] = shares(records.agreement_full, records.agents, table, weights)
        tables.append(filled)
    return ShareTable(*tables)


def difference(a: Replicates, b: Replicates) -> PairedDifference:
    """θ_a − θ_b on the same held-out agents.

    a, b: of one protocol.
    """
    value = a.estimate - b.estimate
    if np.isnan(value):
        return PairedDifference()
    if a.runs is not None and b.runs is not None:
        by_seed = a.runs - b.runs
        by_seed = by_seed[~np.isnan(by_seed)]
        return PairedDifference(value, spread=float(np.std(by_seed, ddof=1)) if by_seed.size > 1 else None)
    if a.without is None or b.without is None:
        return PairedDifference(value)
    return PairedDifference(value, se=_known(jackknife((a.without - b.without)[:, None])[0]))


def prequential(
    tables: Mapping[str, ShareTable], days: Sequence[Any], groups: IndexArray
) -> PrequentialChoice | None:
    """Score every agent by the strategy that had been best before it; None with fewer than two strategies.

    tables: by strategy, in the order in which ties are broken.
    days, groups: of each agent.
    """
    if len(tables) < 2:
        return None
    names = list(tables)
    met: IndexArray = np.flatnonzero(~np.isnan([tables[name].correct[:, 0] for name in names]).any(axis=0))
    whole = np.array([tables[name].correct[:, 0] for name in names])
    choice = np.full(met.size, names.index(DEFAULT) if DEFAULT in names else 0, dtype=np.intp)
    for position, i in enumerate(met):
        before = [j for j in met if days[j] < days[i]]
        if len(before) >= N_AGENTS_MET:
            choice[position] = int(np.argmax(np.round(whole[:, before].mean(axis=1), DECIMALS)))
    correct, clear = (
        np.array([getattr(tables[names[c]], kind)[i] for c, i in zip(choice, met, strict=True)])
        for kind in ("correct", "clear")
    )
    if not met.size:
        return PrequentialChoice(notes={"all": "no held-out agent was met by every strategy"})
    columns = {"pairs_correct_full": mean_known(correct), "pairs_clear_full": mean_known(clear)}
    if "random" in tables:
        of_random = mean_known(tables["random"].correct[met])
        columns["random_difference"] = columns["pairs_correct_full"] - of_random
    is_enough = np.unique(groups[met]).size >= N_GROUPS_JACKKNIFE
    errors = {
        name: _known(jackknife(column[1:, None])[0]) if is_enough else None
        for name, column in columns.items()
    }
    estimates = {name: _known(column[0]) for name, column in columns.items()}
    notes = {} if is_enough else {"se": f"a jackknife needs {N_GROUPS_JACKKNIFE} groups of agents"}
    if estimates["pairs_clear_full"] is None:
        notes["pairs_clear_full"] = "no pair of agents differs by more than 1.96 standard errors"
    if "random_difference" not in estimates:
        notes["random_difference"] = "random tasks were not validated"
    return PrequentialChoice(
        **estimates,
        n=int(met.size),
        chosen={name: n for c, name in enumerate(names) if (n := int(np.count_nonzero(choice == c)))},
        se=errors,
        notes=notes,
    )


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
