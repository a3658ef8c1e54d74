"""What another judge, prompt or order would have said: bootstraps of items and of cells.

Model
-----
A cell is a judge, a prompt variant and an order. Two pipelines can be had from rows that cross items with
cells, and each has its bootstrap, 300 draws::

    single   one cell judges everything      a draw: items with replacement, one cell of all C for all of them
    panel    all cells, as many rows         a draw: items with replacement, C cells with replacement

A cell drawn twice counts twice. Beside each stands the error by items alone, from the same draws of items::

    single   √ mean (β* − β̂_c)²,  β̂_c the strengths by the cell of that draw
    panel    sd of β* with all cells, once each

and the ratio of the two, its median over agents: what an error that knows of items alone leaves out. A single
cell shows every pair in one order, so that its position effect stays in its strengths: none is fitted there.

Items and cells at once count the noise of single verdicts three times where items alone count it once (Owen
2007): a panel's ratio up to √3 may be that noise, above it cells differ. The error is then too large, never
too small.

Draws in which the strengths have no maximum are left out and counted; beyond a tenth of them a pipeline has
no figure.

Symbols
-------
=======  =====================  ==================  ======
symbol   code                   shape               unit
=======  =====================  ==================  ======
C        ``n_cells``            scalar              cells
β*       ``draws``              (n_draws, n)        logits
ratio    ``ratio``              scalar              1
=======  =====================  ==================  ======

Not done here: judges and prompts that were never tried are in neither error. TEE draws a panel's cells anew
for *each* battle; what a judge does alike to all battles then averages out with their number, so that its
ratios of 1.01 and 1.08 tell nothing of it. Here a draw's cells are those of all its items.

Source: Messing, *Hidden Measurement Error in LLM Pipelines*, App. R.1. Efron & Tibshirani, *An Introduction
to the Bootstrap*, 1993, ch. 6. Owen, *Annals of Applied Statistics* 1 (2007) 386-411 (resampling two
factors).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from analytics.arrays import FloatArray, IndexArray
from analytics.errors import CoreError
from analytics.progress import Progress
from analytics.resampling import generator, resampled_counts
from analytics.research.pairwise.bradley_terry import StrengthsRefused, again
from analytics.research.pairwise.comparisons import Comparisons

N_DRAWS = 300
MAX_LEFT_OUT = 0.1
Pipeline = Literal["single", "panel"]


@dataclass(frozen=True, eq=False)
class CellBootstrap:
    """Errors of one pipeline with and without its choice of cells.

    pipeline: {"single", "panel"}.
    se, se_items: (n_agents,); by items and cells, and by items alone; logits. Empty where `reason` says why.
    ratio: median of se/se_items.
    """

    pipeline: Pipeline
    se: FloatArray
    se_items: FloatArray
    ratio: float | None
    n_draws: int
    n_left_out: int
    reason: str


def _silent(done: int, total: int | None) -> None:
    """Show nothing."""


def bootstrap_cells(
    comparisons: Comparisons,
    *,
    seed: int,
    prior: float | None = None,
    n_draws: int = N_DRAWS,
    progress: Progress = _silent,
) -> tuple[CellBootstrap, CellBootstrap]:
    """Bootstrap items and cells, for a single cell and for the panel of all.

    prior: V of `analytics.research.pairwise.bradley_terry.fit`.
    """
    n_cells = len(comparisons.cells)
    if n_cells < 2:
        raise CoreError("not measured: all rows are of one judge, prompt and order", code="cells")
    items = resampled_counts(seed, "pairwise items", len(comparisons.items), n_draws).astype(np.float64)
    cells = resampled_counts(seed, "pairwise cells", n_cells, n_draws).astype(np.float64)
    cell = generator(seed, "pairwise cell").integers(n_cells, size=n_draws)
    panel = _Fits(comparisons, prior, comparisons.judges)
    single = [_Fits(comparisons.of_cell(c), prior, ()) for c in range(n_cells)]
    whole = [fits.strengths(None) for fits in single]
    alone: list[FloatArray | None] = []
    mixed: list[tuple[FloatArray, FloatArray] | None] = []
    for draw in range(n_draws):
        alone.append(single[cell[draw]].strengths(items[draw][single[cell[draw]].comparisons.item]))
        rows = items[draw][comparisons.item]
        both = panel.strengths(rows * cells[draw][comparisons.cell]), panel.strengths(rows)
        mixed.append((both[0], both[1]) if both[0] is not None and both[1] is not None else None)
        progress(draw + 1, n_draws)
    return _of_single(alone, cell, whole), _of_panel(mixed)


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


def _of_single(
    draws: list[FloatArray | None], cell: IndexArray, whole: list[FloatArray | None]
) -> CellBootstrap:
    pairs = [
        (beta, centre)
        for beta, c in zip(draws, cell.tolist(), strict=True)
        if beta is not None and (centre := whole[c]) is not None
    ]
    return _bootstrap("single", pairs, len(draws), lambda d, e: np.sqrt(((d - e) ** 2).mean(axis=0)))


def _of_panel(draws: list[tuple[FloatArray, FloatArray] | None]) -> CellBootstrap:
    pairs = [pair for pair in draws if pair is not None]
    return _bootstrap("panel", pairs, len(draws), lambda d, e: e.std(axis=0, ddof=1))


def _bootstrap(
    pipeline: Pipeline,
    pairs: list[tuple[FloatArray, FloatArray]],
    n_draws: int,
    by_items: Callable[[FloatArray, FloatArray], FloatArray],
) -> CellBootstrap:
    n_left_out = n_draws - len(pairs)
    if n_left_out > MAX_LEFT_OUT * n_draws:
        reason = f"in {n_left_out} of {n_draws} draws the strengths have no maximum"
        return CellBootstrap(pipeline, np.empty(0), np.empty(0), None, n_draws, n_left_out, reason)
    drawn, by_item = (np.array(side) for side in zip(*pairs, strict=True))
    se, se_items = drawn.std(axis=0, ddof=1), by_items(drawn, by_item)
    return CellBootstrap(pipeline, se, se_items, float(np.median(se / se_items)), n_draws, n_left_out, "")
