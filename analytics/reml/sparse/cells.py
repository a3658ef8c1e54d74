"""Rows collapsed to cells.

Rows that share the level of every term and the row of the design matrix form a cell. Within a cell the rows
are exchangeable, so that a cell's count, its mean and the sum of squares within cells are sufficient. A
term with one level for each cell is the *cell term*: it joins the residual on the diagonal of V̄ and has no
columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analytics.arrays import CodeArray, FloatArray
from analytics.reml.factors import combined, first_rows


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a design.

    of_row: (n_rows,); cell of each row.
    n_rows_in: (n_cells,); rows in each cell.
    levels: (n_cells,) each; level of each term; every level occurs.
    blocks: (n_cells,) each; partitions that may serve as blocks: the factors of the terms.
    """

    of_row: CodeArray
    n_rows_in: FloatArray
    levels: tuple[CodeArray, ...]
    n_levels: tuple[int, ...]
    blocks: tuple[CodeArray, ...]
    design: FloatArray

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self.n_rows_in.size

    @property
    def cell_term(self) -> int | None:
        """The term with one level for each cell, if there is one."""
        return self.n_levels.index(self.n_cells) if self.n_cells in self.n_levels else None


def cells_of(
    factors: Sequence[CodeArray],
    n_levels: Sequence[int],
    terms: Sequence[tuple[int, ...]],
    design: FloatArray,
) -> Cells:
    """Collapse rows to cells; factors (n_rows,) each, design (n_rows, p)."""
    used = sorted({factor for term in terms for factor in term})
    of_row = combined([factors[f] for f in used], [n_levels[f] for f in used])
    first = first_rows(of_row)
    if not np.array_equal(design[first][of_row], design):
        columns = [np.unique(column, return_inverse=True)[1] for column in design.T]
        of_row = combined([of_row, *columns], [first.size, *(int(c.max()) + 1 for c in columns)])
        first = first_rows(of_row)
    levels = tuple(combined([factors[f][first] for f in term], [n_levels[f] for f in term]) for term in terms)
    return Cells(
        of_row=of_row,
        n_rows_in=np.bincount(of_row).astype(np.float64),
        levels=levels,
        n_levels=tuple(int(codes.max()) + 1 for codes in levels),
        blocks=tuple(combined([factors[f][first]], [n_levels[f]]) for f in used),
        design=design[first],
    )
