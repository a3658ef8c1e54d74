"""The restricted likelihood of a layout at given components, with gradient and average information.

Crossed and nested random intercepts on unbalanced designs, by blocks with a border. With e = P̄ȳ and z = A'e::

    criterion    (n − C)·log σ² + SSW/σ² + Σ log n_c − Σ log w_c + Σ log|M| + log|B| + ȳ'e + (n − p)·log 2π
    ∂/∂σ_t²      tr(Z_t'PZ_t) − |Z_t'e|²
    ∂/∂σ²        (n − p − Σ σ_t²·tr(Z_t'PZ_t))/σ² − SSW/σ⁴ − Σ e_c²/n_c

the trace of the residual from tr(PV) = n − p.

Source: Bates, Mächler, Bolker & Walker, *Fitting Linear Mixed-Effects Models Using lme4*, 2015, §3
(criterion). Searle, Casella & McCulloch, *Variance Components*, 1992, §6.6 and §8.3 (gradient). Gilmour,
Thompson & Cullis, *Biometrics* 51 (1995) 1440-1450 (average information).
"""

import copy
from collections.abc import Sequence
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.linalg import lapack

from analytics.arrays import CodeArray, FloatArray
from analytics.errors import CoreError
from analytics.programs import one_blas_thread
from analytics.reml.layout import BlockBatch, BlockLayout, Matrix, cells_of, layout_of

refuse = partial(CoreError, code="not_estimable")

SMALL_SHARE = 0.01


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


def border_inverse(schur: FloatArray, scale: FloatArray, p: int) -> tuple[FloatArray, float]:
    """ΛB⁻¹Λ and log|B|, where B = ΛSΛ, plus I on all but the p columns of the design (scale 1)."""
    scales = scale[:, None] * scale[None, :]
    moment = scales * schur
    moment[np.arange(len(scale) - p), np.arange(len(scale) - p)] += 1.0
    # .T: in the order of LAPACK, of a symmetric matrix
    factor, failed = lapack.dpotrf(moment.T, lower=1, overwrite_a=1)
    if failed:
        raise np.linalg.LinAlgError(f"the border is not positive definite at column {failed - 1}")
    log_determinant = 2.0 * float(np.sum(np.log(np.diag(factor))))
    inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
    # 0 above the diagonal
    np.fill_diagonal(inverse, np.diag(inverse) / 2.0)
    inverse = inverse + inverse.T
    inverse *= scales
    return inverse, log_determinant


def in_blocks(rows: FloatArray, size: int) -> FloatArray:
    """Rows in blocks, shape (n_blocks, size, n_columns)."""
    return rows.reshape(-1, size, rows.shape[1])


def block_product(layout: BlockLayout, blocks: list[FloatArray], matrix: Matrix) -> Matrix:
    """Block-diagonal matrix, pattern after pattern, times a matrix with the patterns' levels as rows."""
    if isinstance(matrix, np.ndarray):
        pairs = zip(layout.batches, blocks, strict=True)
        parts = [block @ in_blocks(matrix[batch.pattern_rows], batch.size) for batch, block in pairs]
        return np.concatenate([part.reshape(-1, matrix.shape[1]) for part in parts]) if parts else matrix
    columns = [
        np.repeat(np.arange(b.pattern_rows.start, b.pattern_rows.stop).reshape(-1, b.size), b.size, axis=0)
        for b in layout.batches
    ]
    lengths = np.concatenate(
        [np.full(b.pattern_rows.stop - b.pattern_rows.start, b.size) for b in layout.batches]
    )
    indptr = np.append(0, np.cumsum(lengths))
    data = np.concatenate([block.ravel() for block in blocks])
    return sp.csr_array(sp.csr_array((data, np.concatenate([c.ravel() for c in columns]), indptr)) @ matrix)


def _rows_times(factor: FloatArray, matrix: Matrix) -> Matrix:
    if isinstance(matrix, np.ndarray):
        return factor[:, None] * matrix
    return sp.csr_array(sp.diags_array(factor) @ matrix)


def summed_product(layout: BlockLayout, left: Matrix, right: Matrix) -> FloatArray:
    """Σ left'right over all blocks, from rows for the levels of the patterns."""
    product = left.T @ _rows_times(layout.n_blocks_of, right)
    return np.asarray(product if isinstance(product, np.ndarray) else product.toarray(), dtype=np.float64)


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


class Criterion:
    """The REML criterion of one design and one outcome, as a function of the components.

    y: (n_rows,).
    factors: (n_rows,) each; level codes 0, 1, …
    terms: factor indices of each random intercept term.
    design: (n_rows, p), of full rank; the intercept's column included.
    Raises CoreError: where the rows, the terms or the outcome do not identify the components.
    """

    def __init__(
        self,
        y: npt.ArrayLike,
        factors: Sequence[npt.ArrayLike],
        n_levels: Sequence[int],
        terms: Sequence[tuple[int, ...]],
        design: npt.ArrayLike,
    ) -> None:
        codes = tuple(np.asarray(factor, dtype=np.int64) for factor in factors)
        design = np.asarray(design, dtype=np.float64)
        _check_arguments(codes, n_levels, terms, design)
        with one_blas_thread():
            self.layout: BlockLayout = layout_of(cells_of(codes, n_levels, terms, design))
            _check_terms(self.layout, terms, len(design))
            self.means, self.within, self.offset = _outcome(self.layout, y)

    @property
    def n_terms(self) -> int:
        """Number of random terms."""
        return len(self.layout.cells.levels)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.layout.cells.of_row.size

    @property
    def method(self) -> str:
        """`patterns` or `blocked`."""
        return self.layout.method

    def with_outcome(self, y: npt.ArrayLike) -> "Criterion":
        """Return the criterion of another outcome on the same rows; nothing of the design is redone."""
        other = copy.copy(self)
        other.means, other.within, other.offset = _outcome(self.layout, y)
        return other

    def at(self, theta: npt.ArrayLike) -> "Evaluation":
        """Evaluate at θ = (σ_1², …, σ_T², σ²), shape (n_terms + 1,), the last one above 0."""
        return Evaluation(self, np.asarray(theta, dtype=np.float64))


class Evaluation:
    """One factorisation, and what follows from it; each part is computed when it is first asked for."""

    def __init__(self, criterion: Criterion, theta: FloatArray) -> None:
        self.criterion, self.theta = criterion, theta
        self.layout = layout = criterion.layout
        self.residual = float(theta[-1])
        counts, cell_term = layout.group_count, layout.cells.cell_term
        cell_variance = 0.0 if cell_term is None else theta[cell_term]
        self.group_weight = counts / (self.residual + counts * cell_variance)
        scale = layout.cells.n_rows_in if cell_term is None else 1.0
        self.weight = self.group_weight[layout.group] * scale
        p = layout.cells.design.shape[1]
        scale = np.sqrt(np.append(self.theta[:-1], 0.0))
        self._gram = WeightedProducts(layout, self.group_weight)
        self._inverses, self._log_determinant = [], 0.0
        for batch, inner in zip(layout.batches, self._gram.inner, strict=True):
            level_scale = scale[layout.pattern_term[batch.pattern_rows]].reshape(-1, batch.size)
            # Λ(ΛGΛ + I)⁻¹Λ and log|ΛGΛ + I|
            scales = level_scale[:, :, None] * level_scale[:, None, :]
            moment = scales * inner + np.eye(inner.shape[1])
            diagonals = np.einsum("pii->pi", np.linalg.cholesky(moment))
            log_determinants = 2.0 * np.sum(np.log(diagonals), axis=1)
            self._inverses.append(scales * np.linalg.inv(moment))
            self._log_determinant += float(n_blocks_of(layout, batch) @ log_determinants)
        self._solved = block_product(layout, self._inverses, self._gram.cross)
        self._schur = self._gram.border - summed_product(layout, self._gram.cross, self._solved)
        border_scale = scale[layout.column_term[layout.n_block_levels :]]
        border_scale[-p:] = 1.0
        self._border_inverse, log_determinant = border_inverse(self._schur, border_scale, p)
        self._log_determinant += log_determinant

    @cached_property
    def value(self) -> float:
        """The criterion, −2 log restricted likelihood."""
        cells, n = self.layout.cells, self.layout.cells.of_row.size
        within = (n - cells.n_cells) * np.log(self.residual) + self.criterion.within / self.residual
        diagonal = np.sum(np.log(cells.n_rows_in)) - np.sum(np.log(self.weight))
        constant = (n - cells.design.shape[1]) * np.log(2.0 * np.pi)
        quadratic = self.criterion.means @ self._projected
        return float(within + diagonal + self._log_determinant + quadratic + constant)

    @cached_property
    def gradient(self) -> FloatArray:
        """∂ criterion/∂θ, shape (n_terms + 1,)."""
        return self.traces - self.squares

    @cached_property
    def traces(self) -> FloatArray:
        """tr(P ∂V/∂θ): tr(Z_t'PZ_t) of each term, then tr(P), shape (n_terms + 1,)."""
        layout, n_terms = self.layout, len(self.layout.cells.levels)
        border_term = layout.column_term[layout.n_block_levels :]
        # Diagonal of G − G N_i G of each pattern: Z'V⁻¹Z as if there were no border
        diagonal = np.empty(self.layout.pattern_term.size)
        for batch, inverse, inner in zip(self.layout.batches, self._inverses, self._gram.inner, strict=True):
            own = np.einsum("pii->pi", inner) - np.sum((inner @ inverse) * inner, axis=2)
            diagonal[batch.pattern_rows] = own.ravel()
        traces = group_sums(layout.pattern_term, layout.n_blocks_of * diagonal, n_terms + 1)
        shared = self._gram.cross - block_product(layout, self._gram.inner, self._solved)
        traces -= quadratic_forms(
            shared, self._border_inverse, layout.n_blocks_of, layout.pattern_term, n_terms + 1
        )
        traces += group_sums(border_term, self._border_diagonal(self.theta[border_term]), n_terms + 1)
        if layout.cells.cell_term is not None:
            traces[layout.cells.cell_term] = self._cell_trace()
        cells, traces = self.layout.cells, traces[:n_terms]
        n_free = cells.of_row.size - cells.design.shape[1]
        return np.append(traces, (n_free - traces @ self.theta[:-1]) / self.residual)

    def _border_diagonal(self, variance: FloatArray) -> FloatArray:
        """Diagonal of S − SNS, which is (1 − N_ii/σ²)/σ² of a border level with variance σ², shape (b,)."""
        diagonal, inverse = np.diag(self._schur).copy(), np.diag(self._border_inverse)
        small = variance * diagonal < SMALL_SHARE
        rows = self._schur[small]
        diagonal[small] -= np.sum((rows @ self._border_inverse) * rows, axis=1)
        variance = variance[~small]
        diagonal[~small] = (1.0 - inverse[~small] / variance) / variance
        return diagonal

    @cached_property
    def squares(self) -> FloatArray:
        """y'P(∂V/∂θ)Py: |Z_t'Py|² of each term, then |Py|², shape (n_terms + 1,)."""
        cells, projected, n_terms = self.layout.cells, self._projected, len(self.layout.cells.levels)
        sums = np.square(self.layout.incidence.T @ projected)
        squares = group_sums(self.layout.column_term, sums, n_terms + 1)
        if cells.cell_term is not None:
            squares[cells.cell_term] = projected @ projected
        squares[n_terms] = self.criterion.within / self.residual**2
        squares[n_terms] += np.sum(np.square(projected) / cells.n_rows_in)
        return squares

    @cached_property
    def information(self) -> FloatArray:
        """Average information of the log restricted likelihood, ½·y'P V_s P V_t P y, (n_terms + 1)²."""
        cells, projected = self.layout.cells, self._projected
        vectors = np.empty((len(cells.levels) + 1, cells.n_cells))
        for t, codes in enumerate(cells.levels):
            vectors[t] = np.bincount(codes, weights=projected)[codes]
        vectors[-1] = projected / cells.n_rows_in
        weighted = self.weight * vectors
        sums = self.layout.incidence.T @ weighted.T
        information = weighted @ vectors.T - sums.T @ self._solve(sums)
        information[-1, -1] += self.criterion.within / self.residual**3
        return np.asarray((information + information.T) / 4.0, dtype=np.float64)

    @property
    def beta(self) -> FloatArray:
        """Generalised least-squares coefficients of the design, shape (p,)."""
        return self.criterion.offset + self._fitted[-self.criterion.offset.size :]

    @property
    def beta_covariance(self) -> FloatArray:
        """(X'V⁻¹X)⁻¹, shape (p, p)."""
        p = self.criterion.offset.size
        return self._border_inverse[-p:, -p:]

    @cached_property
    def _projected(self) -> FloatArray:
        """P̄ȳ = W(ȳ − Xβ̂ − fitted), shape (n_cells,)."""
        return np.asarray(
            self.weight * (self.criterion.means - self.layout.incidence @ self._fitted), dtype=np.float64
        )

    @cached_property
    def _fitted(self) -> FloatArray:
        """N A'Wȳ: predicted levels, then coefficients of the design less their offset."""
        weighted = self.layout.incidence.T @ (self.weight * self.criterion.means)
        return self._solve(weighted[:, None])[:, 0]

    def _solve(self, right: FloatArray) -> FloatArray:
        """N r for each column: c_b = Ŝ(r_b − Σ T'r_i), c_i = N_i r_i − T c_b."""
        layout, border_rows = self.layout, slice(self.layout.n_block_levels, None)
        solution = np.empty_like(right)
        # sums of the block levels' rows over the blocks of each pattern
        sums = np.empty((layout.pattern_term.size, right.shape[1]))
        for batch in layout.batches:
            parts = np.add.reduceat(in_blocks(right[batch.block_rows], batch.size), batch.first_block)
            sums[batch.pattern_rows] = parts.reshape(-1, right.shape[1])
        border = self._border_inverse @ (right[border_rows] - self._solved.T @ sums)
        solution[border_rows], shift = border, self._solved @ border
        for batch, inverse in zip(layout.batches, self._inverses, strict=True):
            part = inverse[batch.pattern_of] @ in_blocks(right[batch.block_rows], batch.size)
            part -= in_blocks(shift[batch.pattern_rows], batch.size)[batch.pattern_of]
            solution[batch.block_rows] = part.reshape(-1, right.shape[1])
        return solution

    def _cell_trace(self) -> float:
        """tr(P̄) = Σ w_c − ⟨N, A'W²A⟩."""
        layout = self.layout
        squared = WeightedProducts(layout, self.group_weight**2)
        trace = float(np.sum(self.weight))
        for batch, inverse, inner in zip(layout.batches, self._inverses, squared.inner, strict=True):
            trace -= float(n_blocks_of(layout, batch) @ np.sum(inverse * inner, axis=(1, 2)))
        mixed = block_product(layout, squared.inner, self._solved) - 2.0 * squared.cross
        border = squared.border + summed_product(layout, self._solved, mixed)
        return trace - float(np.sum(self._border_inverse * border))


def _outcome(layout: BlockLayout, y: npt.ArrayLike) -> tuple[FloatArray, float, FloatArray]:
    """Return cell means less `design @ offset`, which a far origin costs no digits, SSW, and the offset."""
    cells = layout.cells
    y = np.asarray(y, dtype=np.float64)
    if y.shape != cells.of_row.shape or not np.isfinite(y).all():
        raise CoreError(
            f"the outcome has shape {y.shape}, not ({cells.of_row.size},), or is not finite", code="argument"
        )
    means = np.bincount(cells.of_row, weights=y) / cells.n_rows_in
    within = float(np.sum(np.square(y - means[cells.of_row])))
    # (X'X)⁻¹X'y from the cells' sums; the criterion does not depend on its last digits
    sums = cells.n_rows_in * means
    design = layout.cells.design
    gram = WeightedProducts(layout, layout.group_count).border[-design.shape[1] :, -design.shape[1] :]
    offset = np.asarray(np.linalg.solve(gram, np.einsum("cj,c->j", design, sums)), dtype=np.float64)
    means = means - np.einsum("cj,j->c", cells.design, offset)
    rounding = 1e-26 * float(np.sum(np.square(y)))
    if within + float(np.sum(cells.n_rows_in * np.square(means))) <= rounding:
        raise refuse(f"all {y.size} outcomes are equal after the fixed effects")
    if cells.cell_term is not None and within <= rounding:
        raise refuse(
            f"the {y.size} rows do not differ within the {cells.n_cells} cells of term {cells.cell_term}: "
            "the residual would be 0"
        )
    return means, within, offset


def _check_arguments(
    codes: tuple[CodeArray, ...],
    n_levels: Sequence[int],
    terms: Sequence[tuple[int, ...]],
    design: FloatArray,
) -> None:
    if design.ndim != 2 or not terms or len(codes) != len(n_levels):
        raise CoreError(
            f"a design {design.shape}, {len(terms)} terms, {len(codes)} factors and {len(n_levels)} counts",
            code="argument",
        )
    n_rows, p = design.shape
    for f, (factor, n) in enumerate(zip(codes, n_levels, strict=True)):
        if factor.shape != (n_rows,) or n_rows == 0 or factor.min() < 0 or factor.max() >= n:
            raise CoreError(
                f"factor {f} has shape {factor.shape} or codes outside 0 … {n - 1}; {n_rows} rows",
                code="argument",
            )
    if n_rows <= p:
        raise refuse(f"{p} fixed effects need more than {n_rows} rows")
    if any(not term or max(term) >= len(codes) or min(term) < 0 for term in terms):
        raise CoreError(f"terms {tuple(terms)} of {len(codes)} factors", code="argument")


def _check_terms(layout: BlockLayout, terms: Sequence[tuple[int, ...]], n_rows: int) -> None:
    levels = layout.cells.levels
    for t, codes in enumerate(levels):
        n = layout.cells.n_levels[t]
        if n == 1:
            raise refuse(f"term {terms[t]} has only one level")
        if n == n_rows:
            raise refuse(f"term {terms[t]} has one row per level ({n_rows}), so it equals the residual")
        if n <= layout.cells.design.shape[1] and _spanned(layout, codes, n):
            raise refuse(f"the fixed effects span the {n} levels of term {terms[t]}")
        for s in range(t):
            if layout.cells.n_levels[s] == n and np.unique(levels[s] * n + codes).size == n:
                raise refuse(f"terms {terms[s]} and {terms[t]} are the same: {n} levels each")


def _spanned(layout: BlockLayout, codes: CodeArray, n: int) -> bool:
    root, indicators = np.sqrt(layout.cells.n_rows_in), np.eye(n)[codes]
    design = root[:, None] * layout.cells.design
    left = root[:, None] * indicators
    left -= design @ np.linalg.lstsq(design, left)[0]
    return float(np.max(np.abs(left))) < 1e-9 * float(np.max(root))
