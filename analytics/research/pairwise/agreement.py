"""Agreement with people: how often a pipeline's verdict on a battle is the human one.

Model
-----
A battle is an item and two agents. A pipeline says a, b or tie::

    pairwise   s = mean points of a over its rows:   a where s > .55, b where s < .45, else tie
    Likert     d = mean score of a − of b:           tie where |d| < .5, else the higher one

    Overall = share of battles with a human verdict on which both say the same, a tie being a verdict
    AB-only = the same over battles on which both say a or b

AB-only of two pipelines is over different battles: one that ties often is asked the easy ones alone. So two
pipelines are compared on the battles that people and *both* decide, paired by item::

    D = mean over items of (right_1 − right_2),   SE² = (ΣD_i² + 1 − (ΣD_i)²/(n + 2))/(n + 2)²,   t_{n−1}

Symbols
-------
======  ==================  ==============  ===========
symbol  code                shape           unit
======  ==================  ==============  ===========
s       ``share``           (n_battles,)    0 to 1
D       ``Lead.difference`` scalar          share
======  ==================  ==============  ===========

Not done here: nobody says how far people agree among themselves, which is the most that a pipeline can reach.

Source
------
Messing, *Hidden Measurement Error in LLM Pipelines*, App. R (rules of verdicts, Table 17). Agresti & Min,
*Statistics in Medicine* 24 (2005) 729-740.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from analytics.arrays import FloatArray, IndexArray, Mask
from analytics.differences.task_draws import pair_variances
from analytics.errors import CoreError
from analytics.research.pairwise.comparisons import NO_VERDICT, Comparisons
from analytics.text import named

PANEL = "panel"
WIN, TIE, LOSS = 1.0, 0.5, 0.0
PANEL_WINS, PANEL_LOSES = 0.55, 0.45
LIKERT_DECIDES = 0.5
ROUNDING = 1e-9


@dataclass(frozen=True)
class Agreed:
    """One pipeline beside people.

    pipeline: ``panel``, or the cell.
    category: None over all.
    n, n_ab: battles, and those that both decide.
    overall, ab_only: None without a battle.
    """

    pipeline: str
    category: str | None
    n: int
    overall: float | None
    n_ab: int
    ab_only: float | None


@dataclass(frozen=True)
class Lead:
    """How much more often one pipeline is right than another where both decide."""

    pipeline: str
    against: str
    n_items: int
    difference: float
    se: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Agreement:
    """All pipelines beside people, and the panel beside each cell."""

    pipelines: tuple[Agreed, ...]
    differences: tuple[Lead, ...]


def verdicts_of_shares(share: FloatArray) -> FloatArray:
    """Verdicts of mean points: 1 above .55, 0 below .45, else ½."""
    return np.where(share > PANEL_WINS + ROUNDING, WIN, np.where(share < PANEL_LOSES - ROUNDING, LOSS, TIE))


def verdicts_of_scores(a: FloatArray, b: FloatArray) -> FloatArray:
    """Verdicts of mean Likert scores: ½ where they differ by under .5."""
    d = np.asarray(a) - np.asarray(b)
    return np.where(np.abs(d) < LIKERT_DECIDES - ROUNDING, TIE, np.where(d > 0, WIN, LOSS))


def agreement(comparisons: Comparisons) -> Agreement:
    """Compare the panel and each cell with people.

    Raises CoreError: when nobody said anything, or a battle has two human verdicts.
    """
    people = _people(comparisons)
    first, _ = comparisons.battles
    categories = np.array(comparisons.categories)[comparisons.item[first]]
    verdicts = {PANEL: _verdicts(comparisons, np.ones(comparisons.points.size, dtype=np.bool_))}
    if len(comparisons.cells) > 1:
        verdicts |= {
            _cell_name(cell): _verdicts(comparisons, comparisons.cell == code)
            for code, cell in enumerate(comparisons.cells)
        }
    groups: list[tuple[str | None, Mask]] = [(None, np.ones(first.size, dtype=np.bool_))]
    groups += [(name, categories == name) for name in sorted(set(categories.tolist()) - {""})]
    items = comparisons.item[first]
    leads = [
        _lead(name, verdicts[PANEL], verdicts[name], people, items) for name in verdicts if name != PANEL
    ]
    return Agreement(
        tuple(
            _agreed(name, group, v[battles], people[battles])
            for name, v in verdicts.items()
            for group, battles in groups
        ),
        tuple(lead for lead in leads if lead is not None),
    )


def _people(comparisons: Comparisons) -> FloatArray:
    """Human verdict of each battle, −1 where there is none."""
    _, battle = comparisons.battles
    rows = np.flatnonzero(comparisons.human != NO_VERDICT)
    if not rows.size:
        raise CoreError("no row has a human verdict", code="human")
    people = np.full(int(battle.max()) + 1, NO_VERDICT)
    people[battle[rows[::-1]]] = comparisons.human[rows[::-1]]  # the first that is given
    other = rows[people[battle[rows]] != comparisons.human[rows]]
    if other.size:
        item = comparisons.items[comparisons.item[other[0]]]
        raise CoreError(
            f"row {int(other[0]) + 1}: item {named(item)} has two human verdicts on the same two agents",
            code="human",
        )
    return people


def _verdicts(comparisons: Comparisons, rows: Mask) -> FloatArray:
    """Verdict of these rows on each battle, −1 where there are none."""
    first, battle = comparisons.battles
    n = np.bincount(battle[rows], minlength=first.size)
    points = np.bincount(battle[rows], comparisons.points[rows], first.size)
    return np.where(n > 0, verdicts_of_shares(points / np.maximum(n, 1)), NO_VERDICT)


def _agreed(pipeline: str, category: str | None, verdicts: FloatArray, people: FloatArray) -> Agreed:
    both = (verdicts != NO_VERDICT) & (people != NO_VERDICT)
    decided = both & (verdicts != TIE) & (people != TIE)
    same = verdicts == people
    n, n_ab = int(both.sum()), int(decided.sum())
    return Agreed(
        pipeline=pipeline,
        category=category,
        n=n,
        overall=float(same[both].mean()) if n else None,
        n_ab=n_ab,
        ab_only=float(same[decided].mean()) if n_ab else None,
    )


def _lead(
    name: str, panel: FloatArray, cell: FloatArray, people: FloatArray, items: IndexArray
) -> Lead | None:
    """How far the panel is ahead of a cell; None where both decide under two items."""
    decided = np.ones(people.size, dtype=np.bool_)
    for verdicts in (panel, cell, people):
        decided &= (verdicts != NO_VERDICT) & (verdicts != TIE)
    _, code, n = np.unique(items[decided], return_inverse=True, return_counts=True)
    if n.size < 2:
        return None
    right = np.stack([np.bincount(code, (verdicts == people)[decided]) / n for verdicts in (panel, cell)])
    difference = float((right[0] - right[1]).mean())
    se = float(np.sqrt(pair_variances(right, np.zeros(2))[0, 1]))
    half = float(stdtrit(n.size - 1, 0.975)) * se
    return Lead(PANEL, name, n.size, difference, se, difference - half, difference + half)


def _cell_name(cell: tuple[str, str, str]) -> str:
    judge, prompt, first = cell
    levels = [("judge", judge), ("prompt", prompt)]
    names = [f"{what} {name}" for what, name in levels if name] + ([f"{first} first"] if first else [])
    return ", ".join(names) or "cell without a name"
