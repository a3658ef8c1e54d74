"""Products and inverses of matrices that are block-diagonal by pattern, with a border.

Notation as in the package: inner blocks by batch, a cross part with the patterns' levels as rows, a border.

Source: as in the package.
"""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from scipy.linalg import lapack

from analytics.arrays import CodeArray, FloatArray
from analytics.reml.sparse.layout import BlockBatch, BlockLayout, Matrix


class WeightedProducts:
    """A'WA at given group weights: inner blocks by batch, cross and border matrices."""

    def __init__(self, layout: BlockLayout, group_weight: FloatArray) -> None:
        products = layout.cross_products
        inner, cross = products.inner @ group_weight, products.cross @ group_weight
        self.inner = [inner[b.entries].reshape(-1, b.size, b.size) for b in layout.batches]
        shape = (layout.pattern_term.size, layout.n_border)
        self.cross: Matrix
        if products.structure is None:
            self.cross = cross.reshape(shape)
        else:
            self.cross = sp.csr_array((cross, *products.structure), shape=shape)
        self.border = (products.border @ group_weight).reshape(layout.n_border, layout.n_border)


def scaled_inverses(inner: FloatArray, scale: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Λ(ΛGΛ + I)⁻¹Λ and log|ΛGΛ + I| of a batch."""
    scales = scale[:, :, None] * scale[:, None, :]
    moment = scales * inner + np.eye(inner.shape[1])
    diagonals = np.einsum("pii->pi", np.linalg.cholesky(moment))
    return scales * np.linalg.inv(moment), 2.0 * np.sum(np.log(diagonals), axis=1)


def border_inverse(schur: FloatArray, scale: FloatArray, p: int) -> tuple[FloatArray, float]:
    """ΛB⁻¹Λ and log|B|, where B = ΛSΛ, plus I on all but the p columns of the design (scale 1)."""
    scales = scale[:, None] * scale[None, :]
    moment = scales * schur
    moment[np.arange(len(scale) - p), np.arange(len(scale) - p)] += 1.0
    factor, failed = lapack.dpotrf(moment, lower=1)
    if failed:
        raise np.linalg.LinAlgError(f"the border is not positive definite at column {failed - 1}")
    inverse, _ = lapack.dpotri(factor, lower=1)
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    return scales * inverse, 2.0 * float(np.sum(np.log(np.diag(factor))))


def in_blocks(rows: FloatArray, size: int) -> FloatArray:
    """Rows in blocks, shape (n_blocks, size, n_columns)."""
    return rows.reshape(-1, size, rows.shape[1])


def block_product(layout: BlockLayout, blocks: list[FloatArray], matrix: Matrix) -> Matrix:
    """Block-diagonal matrix, pattern after pattern, times a matrix with the patterns' levels as rows."""
    if isinstance(matrix, np.ndarray):
        pairs = zip(layout.batches, blocks, strict=True)
        parts = [block @ in_blocks(matrix[batch.pattern_rows], batch.size) for batch, block in pairs]
        return np.concatenate([part.reshape(-1, matrix.shape[1]) for part in parts]) if parts else matrix
    return sp.csr_array(_block_diagonal(layout.batches, blocks) @ matrix)


def _block_diagonal(batches: Sequence[BlockBatch], blocks: list[FloatArray]) -> sp.csr_array:
    columns = [
        np.repeat(np.arange(b.pattern_rows.start, b.pattern_rows.stop).reshape(-1, b.size), b.size, axis=0)
        for b in batches
    ]
    lengths = np.concatenate([np.full(b.pattern_rows.stop - b.pattern_rows.start, b.size) for b in batches])
    indptr = np.append(0, np.cumsum(lengths))
    data = np.concatenate([block.ravel() for block in blocks])
    return sp.csr_array((data, np.concatenate([c.ravel() for c in columns]), indptr))


def _rows_times(factor: FloatArray, matrix: Matrix) -> Matrix:
    if isinstance(matrix, np.ndarray):
        return factor[:, None] * matrix
    return sp.csr_array(sp.diags_array(factor) @ matrix)


def summed_product(layout: BlockLayout, left: Matrix, right: Matrix) -> FloatArray:
    """Σ left'right over all blocks, from rows for the levels of the patterns."""
    product = left.T @ _rows_times(layout.n_blocks_of, right)
    return np.asarray(product if isinstance(product, np.ndarray) else product.toarray(), dtype=np.float64)


def pattern_sums(layout: BlockLayout, columns: FloatArray) -> FloatArray:
    """Sum of the block levels' rows over the blocks of each pattern."""
    sums = np.empty((layout.pattern_term.size, columns.shape[1]))
    for batch in layout.batches:
        parts = np.add.reduceat(in_blocks(columns[batch.block_rows], batch.size), batch.first_block)
        sums[batch.pattern_rows] = parts.reshape(-1, columns.shape[1])
    return sums


def n_blocks_of(layout: BlockLayout, batch: BlockBatch) -> FloatArray:
    """Blocks of each pattern of the batch."""
    return layout.n_blocks_of[batch.pattern_rows][:: batch.size]


def group_sums(group: CodeArray, values: FloatArray, n_groups: int) -> FloatArray:
    """Sum of the values of each group, shape (n_groups,)."""
    return np.asarray(np.bincount(group, values, n_groups), dtype=np.float64)


def quadratic_forms(
    rows: Matrix, middle: FloatArray, weight: FloatArray, group: CodeArray, n_groups: int
) -> FloatArray:
    """Σ weight·r'Hr over the rows r of each group, shape (n_groups,)."""
    if isinstance(rows, np.ndarray):
        return group_sums(group, weight * np.sum((rows @ middle) * rows, axis=1), n_groups)
    forms = np.zeros(n_groups)
    for g in np.unique(group):
        chosen = rows[group == g]
        square = sp.coo_array(chosen.T @ _rows_times(weight[group == g], chosen))
        forms[g] = middle[square.coords] @ square.data
    return forms
