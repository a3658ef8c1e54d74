"""How the levels of a design lie: blocks of levels, and a border. No outcome and no parameter changes them.

The blocks are chosen as in `analytics.reml.sparse.layout`. Unlike there the weights differ from cell to cell,
so that every block is factored on its own; blocks of one size, filled up with empty levels, are one batch.

Source: as in `analytics.reml.sparse`.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from analytics.arrays import CodeArray, FloatArray
from analytics.errors import CoreError
from analytics.reml.sparse.cells import Cells
from analytics.reml.sparse.layout import cheapest_blocks, filled, local_levels

MAX_CROSS_ENTRIES = 5 * 10**7


@dataclass(frozen=True, eq=False)
class LogitBatch:
    """Blocks of one (filled up) size.

    rows, entries: where the levels of its blocks, and their size² inner entries, stand among those of all
        batches.
    """

    size: int
    n_blocks: int
    rows: slice
    entries: slice

    @property
    def n_rows(self) -> int:
        """Levels of its blocks."""
        return self.n_blocks * self.size

    def blocks(self, matrix: FloatArray) -> FloatArray:
        """Rows of its blocks, shape (n_blocks, size, n_columns)."""
        return matrix[self.rows].reshape(self.n_blocks, self.size, matrix.shape[1])


@dataclass(frozen=True, eq=False)
class LogitLayout:
    """Blocks and border of a design.

    level_term: (n_levels,); term of each column of A: block levels, then border levels; n_terms for empty
        ones.
    incidence: sparse matrix, (n_cells, n_levels); A: the levels of each cell.
    inner, cross, border: sparse matrices, (n_entries, n_cells); the entries of A'WA, between levels of a
        block, of a block and the border, and of the border, as sums over cells of the weights.
    """

    cells: Cells
    batches: tuple[LogitBatch, ...]
    level_term: CodeArray
    n_block_levels: int
    incidence: sp.csr_array
    inner: sp.csr_array
    cross: sp.csr_array
    border: sp.csr_array

    @property
    def n_terms(self) -> int:
        """Random terms, the cell term among them."""
        return len(self.cells.levels)

    @property
    def n_border(self) -> int:
        """Border levels b."""
        return self.level_term.size - self.n_block_levels


def layout_of(cells: Cells) -> LogitLayout:
    """Choose the blocks and number the levels; refuse two crossed factors that are too large for memory."""
    block, inside = cheapest_blocks(cells)
    outside = [t for t in range(len(cells.levels)) if t not in inside and t != cells.cell_term]
    local, size = local_levels(block, [cells.levels[t] for t in inside], np.argsort(block, kind="stable"))
    size = filled(size)
    order = np.argsort(size, kind="stable")
    row_base, entry_base = _starts(size, order), _starts(size**2, order)
    rows = row_base[block][:, None] + local
    columns, n_border = _columns(cells, outside)
    n_block_levels = int(size.sum())
    if n_block_levels * n_border > MAX_CROSS_ENTRIES:
        raise CoreError(
            f"{n_block_levels} levels in blocks against {n_border} beside them: too many for a dense border",
            code="too_wide",
        )
    inner = entry_base[block][:, None, None] + local[:, :, None] * size[block][:, None, None]
    return LogitLayout(
        cells=cells,
        batches=_batches(size[order]),
        level_term=_level_terms(cells, rows, inside, outside, n_block_levels),
        n_block_levels=n_block_levels,
        incidence=_incidence(rows, columns + n_block_levels, n_block_levels + n_border),
        inner=_entries(inner + local[:, None, :], int(np.sum(size**2))),
        cross=_entries(rows[:, :, None] * n_border + columns[:, None, :], n_block_levels * n_border),
        border=_entries(columns[:, :, None] * n_border + columns[:, None, :], n_border**2),
    )


def _starts(size: CodeArray, order: CodeArray) -> CodeArray:
    start = np.empty_like(size)
    start[order] = np.cumsum(size[order]) - size[order]
    return start


def _columns(cells: Cells, outside: list[int]) -> tuple[CodeArray, int]:
    n_levels = np.array([cells.n_levels[t] for t in outside], dtype=np.int64)
    base = np.cumsum(n_levels) - n_levels
    columns = [cells.levels[t] + start for t, start in zip(outside, base.tolist(), strict=True)]
    stacked = np.stack(columns, axis=1) if columns else np.empty((cells.n_cells, 0), dtype=np.int64)
    return stacked, int(n_levels.sum())


def _batches(sizes: CodeArray) -> tuple[LogitBatch, ...]:
    batches, row, entry = [], 0, 0
    for size, n_blocks in zip(*(part.tolist() for part in np.unique(sizes, return_counts=True)), strict=True):
        rows, entries = slice(row, row + size * n_blocks), slice(entry, entry + size**2 * n_blocks)
        row, entry = rows.stop, entries.stop
        if size:
            batches.append(LogitBatch(size, n_blocks, rows, entries))
    return tuple(batches)


def _level_terms(
    cells: Cells, rows: CodeArray, inside: list[int], outside: list[int], n_block_levels: int
) -> CodeArray:
    terms = np.full(n_block_levels, len(cells.levels), dtype=np.int64)
    for column, t in enumerate(inside):
        terms[rows[:, column]] = t
    return np.concatenate([terms, *(np.full(cells.n_levels[t], t, dtype=np.int64) for t in outside)])


def _incidence(rows: CodeArray, columns: CodeArray, n_levels: int) -> sp.csr_array:
    levels = np.concatenate([rows, columns], axis=1)
    cell = np.repeat(np.arange(levels.shape[0]), levels.shape[1])
    return sp.csr_array((np.ones(levels.size), (cell, levels.ravel())), shape=(levels.shape[0], n_levels))


def _entries(position: CodeArray, n_entries: int) -> sp.csr_array:
    n_cells = position.shape[0]
    cell = np.repeat(np.arange(n_cells), position[0].size if n_cells else 0)
    ones: FloatArray = np.ones(position.size)
    return sp.csr_array((ones, (position.ravel(), cell)), shape=(n_entries, n_cells))
