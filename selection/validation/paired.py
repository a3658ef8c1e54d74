"""Strategies on the same held-out agents: their differences, and what choosing among them would have given.

The theory is in ``selection/README.md``, “Nested validation”.

Source: Dawid, *Journal of the Royal Statistical Society A* 147 (1984) 278-292 (prequential). Efron &
Tibshirani 1993, ch. 11. The rule of choice is this project's own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from analytics.arrays import DECIMALS, FloatArray, IndexArray, Mask
from selection.held_out import HeldOutRecords
from selection.validation.figures import N_GROUPS_JACKKNIFE, jackknife, mean_known, shares

DEFAULT = "mid_range"
N_AGENTS_MET = 10


# value, jackknife error, and spread over seeds, of θ_a − θ_b; None where unknown
Difference = tuple[float | None, float | None, float | None]


@dataclass(frozen=True, eq=False)
class Replicates:
    """What one strategy is compared with another by.

    estimate, without: θ and θ_(g), (n_groups,); NaN or None where undefined.
    runs: (n_seeds,); θ of every random split; None elsewhere.
    shares: as `share_table` gives them, under the temporal protocol.
    """

    estimate: float = np.nan
    without: FloatArray | None = None
    runs: FloatArray | None = None
    shares: FloatArray | None = None


def share_table(records: HeldOutRecords, clear: Mask, groups: IndexArray) -> FloatArray:
    """Tabulate the shares of the records by agent, with everyone and with each group left out.

    records: at most one for each agent.
    clear: (n_agents, n_agents).
    groups: (n_agents,); codes from 0.
    Returns: (2, n_agents, 1 + n_groups), as in pairs_correct_full and in pairs_clear_full; in column 0 all
        agents are compared. NaN where the agent was not held out or has nobody to be compared with.
    """
    n = clear.shape[0]
    weights = np.column_stack([np.ones(n), groups[:, None] != np.arange(groups.max() + 1)]).astype(np.float64)
    compared = records.agreement_full >= 0
    tables = []
    for table in (compared, compared & clear[records.agents]):
        filled = np.full((n, weights.shape[1]), np.nan)
        filled[records.agents] = shares(records.agreement_full, records.agents, table, weights)
        tables.append(filled)
    return np.array(tables)


def difference(a: Replicates, b: Replicates) -> Difference:
    """θ_a − θ_b of one protocol, on the same held-out agents."""
    value = a.estimate - b.estimate
    if np.isnan(value):
        return None, None, None
    if a.runs is not None and b.runs is not None:
        by_seed = a.runs - b.runs
        by_seed = by_seed[~np.isnan(by_seed)]
        return value, None, float(np.std(by_seed, ddof=1)) if by_seed.size > 1 else None
    if a.without is None or b.without is None:
        return value, None, None
    return value, _known(jackknife((a.without - b.without)[:, None])[0]), None


def prequential(
    tables: Mapping[str, FloatArray], days: Sequence[Any], groups: IndexArray
) -> dict[str, Any] | None:
    """Score every agent by the strategy that had been best before it; None with fewer than two strategies.

    tables: of `share_table`, by strategy, in the order in which ties are broken.
    days, groups: of each agent.
    Returns: the figures, None where unknown; ``n``, agents scored; ``chosen``, agents met by each strategy;
        ``se``; ``notes``: why a figure is None.
    """
    if len(tables) < 2:
        return None
    names, figures = list(tables), ("pairs_correct_full", "pairs_clear_full", "random_difference")
    whole = np.array([tables[name][0, :, 0] for name in names])
    met: IndexArray = np.flatnonzero(~np.isnan(whole).any(axis=0))
    choice = np.full(met.size, names.index(DEFAULT) if DEFAULT in names else 0, dtype=np.intp)
    for position, i in enumerate(met):
        before = [j for j in met if days[j] < days[i]]
        if len(before) >= N_AGENTS_MET:
            choice[position] = int(np.argmax(np.round(whole[:, before].mean(axis=1), DECIMALS)))
    if not met.size:
        unmet = {"all": "no held-out agent was met by every strategy"}
        return dict.fromkeys(figures) | {"n": 0, "chosen": {}, "se": {}, "notes": unmet}
    each = np.array([tables[names[c]][:, i] for c, i in zip(choice, met, strict=True)])
    columns = dict(zip(figures, mean_known(each), strict=False))
    if "random" in tables:
        of_random = mean_known(tables["random"][0, met])
        columns["random_difference"] = columns["pairs_correct_full"] - of_random
    is_enough = np.unique(groups[met]).size >= N_GROUPS_JACKKNIFE
    errors = {
        name: _known(jackknife(column[1:, None])[0]) if is_enough else None
        for name, column in columns.items()
    }
    estimates = dict.fromkeys(figures) | {name: _known(column[0]) for name, column in columns.items()}
    notes = {} if is_enough else {"se": f"a jackknife needs {N_GROUPS_JACKKNIFE} groups of agents"}
    if estimates["pairs_clear_full"] is None:
        notes["pairs_clear_full"] = "no pair of agents differs by more than 1.96 standard errors"
    if "random" not in tables:
        notes["random_difference"] = "random tasks were not validated"
    return estimates | {
        "n": int(met.size),
        "chosen": {name: n for c, name in enumerate(names) if (n := int(np.count_nonzero(choice == c)))},
        "se": errors,
        "notes": notes,
    }


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
