"""What another judge, prompt or order would have said, by bootstraps of cells; and what people said.

A cell is a judge, a prompt variant and an order. A *single* cell judges everything; of a *panel* all cells
do. A single cell shows every pair in one order, so that its position effect stays in its strengths: none is
fitted there. Judges and prompts that were never tried are in neither error.

Source: Messing, *Hidden Measurement Error in LLM Pipelines*, App. R (rules of verdicts, Table 17). Efron &
Tibshirani, *An Introduction to the Bootstrap*, 1993, ch. 6. Owen, *Annals of Applied Statistics* 1 (2007)
386-411 (resampling two factors). Agresti & Min, *Statistics in Medicine* 24 (2005) 729-740.
"""

from typing import Any

import numpy as np
from scipy.special import stdtrit

from analytics.arrays import FloatArray, IndexArray, Mask
from analytics.differences.neyman_draws import pair_variances
from analytics.errors import CoreError
from analytics.programs import Progress
from analytics.resampling import generator, resampled_counts
from analytics.research.pairwise.bradley_terry import StrengthsRefused, again
from analytics.research.pairwise.comparisons import NO_VERDICT, Comparisons
from analytics.text import named

N_DRAWS = 300
MAX_LEFT_OUT = 0.1
PANEL = "panel"
WIN, TIE, LOSS = 1.0, 0.5, 0.0
PANEL_WINS, PANEL_LOSES = 0.55, 0.45
LIKERT_DECIDES = 0.5
ROUNDING = 1e-9


def bootstrap_cells(
    comparisons: Comparisons,
    *,
    seed: int,
    prior: float | None = None,
    n_draws: int = N_DRAWS,
    progress: Progress = lambda done, total: None,
) -> list[dict[str, Any]]:
    """Bootstrap items and cells, for a single cell and for the panel of all.

    prior: V of `analytics.research.pairwise.bradley_terry.fit`.
    Returns: of each `pipeline` the errors of agents by items and cells (`se`), and by items alone
        (`se_items`), logits; the median `ratio` of the two; empty and None where `reason` says why.
    """
    n_cells = len(comparisons.cells)
    if n_cells < 2:
        raise CoreError("not measured: all rows are of one judge, prompt and order", code="cells")
    items = resampled_counts(seed, "pairwise items", len(comparisons.items), n_draws).astype(np.float64)
    cells = resampled_counts(seed, "pairwise cells", n_cells, n_draws).astype(np.float64)
    cell = generator(seed, "pairwise cell").integers(n_cells, size=n_draws).tolist()
    panel = _Fits(comparisons, prior, comparisons.judges)
    single = [_Fits(comparisons.of_cell(c), prior, ()) for c in range(n_cells)]
    whole = [fits.strengths(None) for fits in single]
    of_single, of_panel = [], []  # strengths with another draw of cells, and without
    for draw, one in enumerate(cell):
        strengths = single[one].strengths(items[draw][single[one].comparisons.item])
        of_single.append((strengths, whole[one]))
        rows = items[draw][comparisons.item]
        of_panel.append((panel.strengths(rows * cells[draw][comparisons.cell]), panel.strengths(rows)))
        progress(draw + 1, n_draws)
    bootstraps = []
    for pipeline, draws in (("single", of_single), (PANEL, of_panel)):
        pairs = [(d, e) for d, e in draws if d is not None and e is not None]
        n_left_out = n_draws - len(pairs)
        ratio, se, se_items, reason = None, np.empty(0), np.empty(0), ""
        if n_left_out > MAX_LEFT_OUT * n_draws:
            reason = f"in {n_left_out} of {n_draws} draws the strengths have no maximum"
        else:
            drawn, by_item = (np.array(side) for side in zip(*pairs, strict=True))
            se, se_items = drawn.std(axis=0, ddof=1), by_item.std(axis=0, ddof=1)
            if pipeline == "single":
                se_items = np.sqrt(((drawn - by_item) ** 2).mean(axis=0))
            ratio = float(np.median(se / se_items))
        bootstraps.append(
            {
                "pipeline": pipeline,
                "ratio": ratio,
                "n_draws": n_draws,
                "n_left_out": n_left_out,
                "se": dict(zip(comparisons.agents, se.tolist(), strict=False)),
                "se_items": dict(zip(comparisons.agents, se_items.tolist(), strict=False)),
                "reason": reason,
            }
        )
    return bootstraps


class _Fits:
    """Strengths of reweighted rows, each fit begun where the first one ended."""

    def __init__(self, comparisons: Comparisons, prior: float | None, judges: tuple[str, ...]) -> None:
        self.comparisons, self.prior, self.judges = comparisons, prior, judges
        self.start: FloatArray | None = None

    def strengths(self, weight: FloatArray | None) -> FloatArray | None:
        """Strengths of rows that count `weight` times, (n_rows,); None where they have no maximum."""
        agents, tallies = self.comparisons.agents, self.comparisons.weighted(weight)
        try:
            parameters = again(tallies, agents, self.judges, self.prior, self.start)
        except StrengthsRefused:
            return None
        self.start = parameters if self.start is None else self.start
        return parameters[: len(agents)]


def verdicts_of_shares(share: FloatArray) -> FloatArray:
    """Verdicts of mean points: 1 above .55, 0 below .45, else ½."""
    return np.where(share > PANEL_WINS + ROUNDING, WIN, np.where(share < PANEL_LOSES - ROUNDING, LOSS, TIE))


def verdicts_of_scores(a: FloatArray, b: FloatArray) -> FloatArray:
    """Verdicts of mean Likert scores: ½ where they differ by under .5."""
    d = np.asarray(a) - np.asarray(b)
    return np.where(np.abs(d) < LIKERT_DECIDES - ROUNDING, TIE, np.where(d > 0, WIN, LOSS))


def agreement(comparisons: Comparisons) -> dict[str, list[dict[str, Any]]]:
    """Compare the panel and each cell with people, on battles: an item and two agents.

    How far people agree among themselves, the most that a pipeline can reach, nobody says.
    Returns: `pipelines`: the share of battles on which each says what people say (`overall`, of `n`; a tie is
    a verdict), and of those that both decide (`ab_only`, of `n_ab`), by category, None over all; and
    `differences`: by how much the panel is ahead of each cell on battles that all three decide.
    """
    people = _people(comparisons)
    first, battle = comparisons.battles

    def verdicts_of(rows: Mask) -> FloatArray:
        n = np.bincount(battle[rows], minlength=first.size)
        points = np.bincount(battle[rows], comparisons.points[rows], first.size)
        return np.where(n > 0, verdicts_of_shares(points / np.maximum(n, 1)), NO_VERDICT)

    verdicts = {PANEL: verdicts_of(np.ones(comparisons.points.size, dtype=np.bool_))}
    if len(comparisons.cells) > 1:
        for code, (judge, prompt, shown) in enumerate(comparisons.cells):
            names = [f"{what} {name}" for what, name in (("judge", judge), ("prompt", prompt)) if name]
            names += [f"{shown} first"] if shown else []
            verdicts[", ".join(names) or "cell without a name"] = verdicts_of(comparisons.cell == code)
    categories = np.array(comparisons.categories)[comparisons.item[first]]
    groups: list[tuple[str | None, Mask]] = [(None, np.ones(first.size, dtype=np.bool_))]
    groups += [(name, categories == name) for name in sorted(set(categories.tolist()) - {""})]
    pipelines = [
        {"pipeline": name, "category": group, **_shares(v[battles], people[battles])}
        for name, v in verdicts.items()
        for group, battles in groups
    ]
    leads = [
        {"pipeline": PANEL, "against": name} | lead
        for name, v in verdicts.items()
        if name != PANEL and (lead := _lead(verdicts[PANEL], v, people, comparisons.item[first]))
    ]
    return {"pipelines": pipelines, "differences": leads}


def _people(comparisons: Comparisons) -> FloatArray:
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


def _shares(verdicts: FloatArray, people: FloatArray) -> dict[str, float | None]:
    both = (verdicts != NO_VERDICT) & (people != NO_VERDICT)
    decided = both & (verdicts != TIE) & (people != TIE)
    same = verdicts == people
    n, n_ab = int(both.sum()), int(decided.sum())
    overall, ab_only = float(same[both].mean()) if n else None, float(same[decided].mean()) if n_ab else None
    return {"n": n, "overall": overall, "n_ab": n_ab, "ab_only": ab_only}


def _lead(panel: FloatArray, cell: FloatArray, people: FloatArray, items: IndexArray) -> dict[str, Any]:
    """How far the panel is ahead of a cell, paired by item; empty where both decide under two items."""
    decided = np.ones(people.size, dtype=np.bool_)
    for verdicts in (panel, cell, people):
        decided &= (verdicts != NO_VERDICT) & (verdicts != TIE)
    _, code, n = np.unique(items[decided], return_inverse=True, return_counts=True)
    if n.size < 2:
        return {}
    right = np.stack([np.bincount(code, (verdicts == people)[decided]) / n for verdicts in (panel, cell)])
    difference = float((right[0] - right[1]).mean())
    se = float(np.sqrt(pair_variances(right, np.zeros(2))[0, 1]))
    half = float(stdtrit(n.size - 1, 0.975)) * se
    ends = {"lower": difference - half, "upper": difference + half}
    return {"n_items": n.size, "difference": difference, "se": se, **ends}
