"""How the levels of a design lie: cells, blocks, border, patterns and cross products, whatever the outcome.

Rows that share the level of every term and the row of the design matrix form a cell; its count, its mean and
the sum of squares within cells are sufficient. A term with one level for each cell is the *cell term*: it
joins the residual on the diagonal of V̄ and has no columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from analytics.arrays import CodeArray, FloatArray
from analytics.reml.model import combined, first_rows


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


Matrix: TypeAlias = FloatArray | sp.csr_array

WIDEST_FULL_BORDER = 256


@dataclass(frozen=True, eq=False)
class BlockBatch:
    """Blocks of one (filled up) size, ordered by pattern.

    block_rows, pattern_rows, entries: where the levels of its blocks, the levels of its patterns, and its
        patterns' size² inner cross products stand among those of all batches.
    pattern_of, first_block: (n_blocks,), ascending, and (n_patterns,).
    """

    size: int
    block_rows: slice
    pattern_rows: slice
    entries: slice
    pattern_of: CodeArray
    first_block: CodeArray

    def blocks(self, matrix: FloatArray) -> FloatArray:
        """Rows of its blocks, shape (n_blocks, size, n_columns)."""
        return matrix[self.block_rows].reshape(self.pattern_of.size, self.size, matrix.shape[1])


@dataclass(frozen=True, eq=False)
class CrossProducts:
    """A'WA as a linear function of the weights of the weight groups.

    inner: (Σ n_patterns·size², n_groups); entries between levels of one pattern, batch after batch.
    cross: (n_entries, n_groups); entries between pattern levels and border columns.
    border: (b², n_groups); entries between border columns, summed over all cells.
    structure: of the cross entries in sparse rows; None where all are stored.
    """

    inner: Matrix
    cross: Matrix
    border: Matrix
    structure: tuple[CodeArray, CodeArray] | None


@dataclass(frozen=True, eq=False)
class BlockLayout:
    """Blocks, border and cross products of a design.

    incidence: sparse matrix, (n_cells, n_block_levels + b); A: block levels (empty ones included), then
        border levels, then the design's columns.
    column_term: (n_block_levels + b,); term of each column of A; n_terms for empty levels and columns of the
        design.
    pattern_term: (n_pattern_levels,); term of each level of the patterns; n_terms for empty levels.
    n_blocks_of: (n_pattern_levels,); blocks that have the level's pattern.
    group: (n_cells,); weight group of each cell: by count where there is a cell term, else all in one.
    group_count: (n_groups,); rows in a cell of the group; 1 where all are in one.
    """

    cells: Cells
    incidence: sp.csr_array
    column_term: CodeArray
    pattern_term: CodeArray
    n_blocks_of: FloatArray
    batches: tuple[BlockBatch, ...]
    cross_products: CrossProducts
    group: CodeArray
    group_count: FloatArray

    @property
    def n_block_levels(self) -> int:
        """Block levels, empty ones included."""
        return sum(batch.pattern_of.size * batch.size for batch in self.batches)

    @property
    def n_border(self) -> int:
        """Border columns b, the design's included."""
        return self.column_term.size - self.n_block_levels

    @property
    def method(self) -> str:
        """`patterns` for a narrow border, stored in full; `blocked` for a wide one, stored sparsely."""
        return "patterns" if self.cross_products.structure is None else "blocked"


def layout_of(cells: Cells) -> BlockLayout:
    """Choose the blocks and number everything that hangs on them."""
    n_terms = len(cells.levels)
    block, inside = cheapest_blocks(cells)
    outside = [t for t in range(n_terms) if t not in inside and t != cells.cell_term]
    border_code = _row_codes(cells, outside)
    order = np.lexsort((*cells.blocks, border_code, block))
    local, size = local_levels(block, [cells.levels[t] for t in inside], order)
    count = combined([cells.n_rows_in.astype(np.int64)], [int(cells.n_rows_in.max()) + 1])
    kinds = [border_code, count, *local.T]
    kind = combined(kinds, [int(codes.max()) + 1 for codes in kinds])
    size = filled(size)
    pattern = _patterns(kind[order], block[order], size)
    # border column and value of each cell's entries, (n_cells, n_outside + p), and the columns' terms
    p = cells.design.shape[1]
    widths = np.array([*(cells.n_levels[t] for t in outside), *([1] * p)], dtype=np.int64)
    within = [*(cells.levels[t] for t in outside), np.zeros(cells.design.shape, dtype=np.int64)]
    column = np.column_stack(within) + _starts(widths)
    value = np.column_stack([np.ones((cells.n_cells, len(outside))), cells.design])
    term = np.repeat(np.array([*outside, *([n_terms] * p)], dtype=np.int64), widths)
    group, group_count = np.zeros(cells.n_cells, dtype=np.int64), np.ones(1)
    if cells.cell_term is not None:
        group_count, group = np.unique(cells.n_rows_in, return_inverse=True)
    by_pattern = np.argsort(pattern, kind="stable")
    block_base = np.empty_like(size)
    block_base[by_pattern] = _starts(size[by_pattern])
    rows = block_base[block][:, None] + local
    pattern_size, n_block_levels = size[first_rows(pattern)], int(size.sum())
    pattern_rows = _starts(pattern_size)[pattern[block]][:, None] + local
    columns = np.column_stack([rows, n_block_levels + column])
    entries = np.column_stack([np.ones(rows.shape), value])
    indptr = np.arange(0, columns.size + 1, columns.shape[1])
    shape = (len(rows), n_block_levels + term.size)
    return BlockLayout(
        cells=cells,
        incidence=sp.csr_array((entries.ravel(), columns.ravel(), indptr), shape=shape),
        column_term=np.concatenate([terms_of(rows, inside, n_block_levels, n_terms), term]),
        pattern_term=terms_of(pattern_rows, inside, int(pattern_size.sum()), n_terms),
        n_blocks_of=np.repeat(np.bincount(pattern), pattern_size).astype(np.float64),
        batches=batches_of(pattern_size, np.sort(pattern)),
        cross_products=_cross_products(
            cells, block, local, size, pattern, pattern_rows, (column, value), group
        ),
        group=group.astype(np.int64),
        group_count=group_count,
    )


def cheapest_blocks(cells: Cells) -> tuple[CodeArray, list[int]]:
    """Return the partition with the fewest estimated operations, and the terms that refine it."""
    columns = [t for t in range(len(cells.levels)) if t != cells.cell_term]

    def n_operations(block: CodeArray) -> float:
        """Σ q³ + b²·Σ q + b³ over blocks of q levels and a border of b columns."""
        inside = refining(cells, columns, block)
        size = np.zeros(int(block.max()) + 1)
        for t in inside:
            size += np.bincount(block[first_rows(cells.levels[t])], minlength=size.size)
        n_border = cells.design.shape[1] + sum(cells.n_levels[t] for t in columns if t not in inside)
        return float(np.sum(size**3) + n_border**2 * np.sum(size) + float(n_border) ** 3)

    best = min([*cells.blocks, *(cells.levels[t] for t in columns)], key=n_operations)
    return best, refining(cells, columns, best)


def refining(cells: Cells, columns: list[int], block: CodeArray) -> list[int]:
    """Terms each of whose levels lies in one block."""
    return [t for t in columns if np.array_equal(block[first_rows(cells.levels[t])][cells.levels[t]], block)]


def _row_codes(cells: Cells, outside: list[int]) -> CodeArray:
    values = [np.unique(column, return_inverse=True) for column in cells.design.T]
    codes = [inverse.astype(np.int64) for _, inverse in values] + [cells.levels[t] for t in outside]
    return combined(codes, [distinct.size for distinct, _ in values] + [cells.n_levels[t] for t in outside])


def local_levels(block: CodeArray, levels: list[CodeArray], order: CodeArray) -> tuple[CodeArray, CodeArray]:
    """Return each level's number in its block, in order of term and appearance, and the blocks' sizes."""
    n_blocks = int(block.max()) + 1
    local = np.empty((block.size, len(levels)), dtype=np.int64)
    size = np.zeros(n_blocks, dtype=np.int64)
    for column, codes in enumerate(levels):
        appears = first_rows(codes[order])
        rank = np.empty_like(appears)
        rank[np.argsort(appears)] = np.arange(appears.size)
        n_levels = np.bincount(block[order][appears], minlength=n_blocks)
        before = np.cumsum(n_levels) - n_levels
        local[:, column] = rank[codes] + (size - before)[block]
        size += n_levels
    return local, size


def filled(size: CodeArray) -> CodeArray:
    """Smallest number of two binary digits, followed by zeros, that is not below the size."""
    digits = np.ceil(np.log2(np.maximum(size, 1))).astype(np.int64)
    step = np.left_shift(1, np.maximum(digits - 2, 0))
    return np.asarray(-(-size // step) * step, dtype=np.int64)


def _patterns(kind: CodeArray, block: CodeArray, size: CodeArray) -> CodeArray:
    start = np.flatnonzero(np.diff(block, prepend=-1))
    number: dict[bytes, int] = {}
    pattern = np.array([number.setdefault(part.tobytes(), len(number)) for part in np.split(kind, start[1:])])
    by_size = np.lexsort((pattern, size))
    rank = np.empty(len(number), dtype=np.int64)
    rank[pattern[by_size]] = np.cumsum(np.diff(pattern[by_size], prepend=-1) != 0) - 1
    return np.asarray(rank[pattern], dtype=np.int64)


def _starts(lengths: CodeArray) -> CodeArray:
    return np.asarray(np.cumsum(lengths) - lengths, dtype=np.int64)


def batches_of(sizes: CodeArray, pattern: CodeArray) -> tuple[BlockBatch, ...]:
    """Join blocks to batches, from the size of each pattern and the pattern of each block, ascending."""
    batches, blocks, patterns, entries = [], 0, 0, 0
    for size in np.unique(sizes[sizes > 0]):
        chosen = np.flatnonzero(sizes == size)
        pattern_of = pattern[(pattern >= chosen[0]) & (pattern <= chosen[-1])] - chosen[0]
        batches.append(
            BlockBatch(
                size=int(size),
                block_rows=slice(blocks, blocks := blocks + pattern_of.size * int(size)),
                pattern_rows=slice(patterns, patterns := patterns + chosen.size * int(size)),
                entries=slice(entries, entries := entries + chosen.size * int(size) ** 2),
                pattern_of=pattern_of,
                first_block=first_rows(pattern_of),
            )
        )
    return tuple(batches)


def terms_of(rows: CodeArray, inside: list[int], n_rows: int, n_terms: int) -> CodeArray:
    """Return the term of each level of the blocks, (n_rows,); n_terms for empty levels."""
    term = np.full(n_rows, n_terms, dtype=np.int64)
    for column, t in enumerate(inside):
        term[rows[:, column]] = t
    return term


def _cross_products(
    cells: Cells,
    block: CodeArray,
    local: CodeArray,
    size: CodeArray,
    pattern: CodeArray,
    pattern_rows: CodeArray,
    border: tuple[CodeArray, FloatArray],
    group: CodeArray,
) -> CrossProducts:
    column, value = border
    n_groups, n_border = int(group.max()) + 1, int(column.max()) + 1
    weight = cells.n_rows_in if cells.cell_term is None else np.ones(cells.n_cells)
    pattern_size = size[first_rows(pattern)]
    spoken = np.flatnonzero(first_rows(pattern)[pattern[block]] == block)
    block, local = block[spoken], local[spoken]
    inner = _starts(pattern_size**2)[pattern[block]][:, None, None]
    inner = inner + local[:, :, None] * size[block][:, None, None] + local[:, None, :]
    cross = pattern_rows[spoken][:, :, None] * n_border + column[spoken][:, None, :]
    cross, n_entries, structure = _stored(cross, int(pattern_size.sum()), n_border)
    weighted = weight[:, None] * value
    return CrossProducts(
        inner=_by_group(
            inner, weight[spoken, None, None], group[spoken], int((pattern_size**2).sum()), n_groups
        ),
        cross=_by_group(cross, weighted[spoken][:, None, :], group[spoken], n_entries, n_groups),
        border=_by_group(
            column[:, :, None] * n_border + column[:, None, :],
            weighted[:, :, None] * value[:, None, :],
            group,
            n_border**2,
            n_groups,
        ),
        structure=structure,
    )


def _stored(
    position: CodeArray, n_rows: int, n_columns: int
) -> tuple[CodeArray, int, tuple[CodeArray, CodeArray] | None]:
    if n_columns <= WIDEST_FULL_BORDER:
        return position, n_rows * n_columns, None
    present, number = np.unique(position, return_inverse=True)
    indptr = np.searchsorted(present, np.arange(n_rows + 1) * n_columns)
    return number.reshape(position.shape), present.size, (present % n_columns, indptr)


def _by_group(
    position: CodeArray, value: FloatArray, group: CodeArray, n_entries: int, n_groups: int
) -> Matrix:
    value = np.broadcast_to(value, position.shape).ravel()
    column = np.broadcast_to(group[:, None, None], position.shape).ravel()
    if n_entries * n_groups <= 2 * position.size + 10**6:
        flat = position.ravel() * n_groups + column
        sums = np.bincount(flat, value, n_entries * n_groups).reshape(n_entries, n_groups)
        return np.asarray(sums, dtype=np.float64)
    return sp.csr_array((value, (position.ravel(), column)), shape=(n_entries, n_groups))
