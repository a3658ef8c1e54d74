"""The Laplace approximation of a binomial model with random effects, at given variances and fixed effects.

Notation: analytics/README.md, *The logit check*. At the mode η̂ of the random effects,
with r = s − Rμ and W = Rμ(1 − μ)::

    D(v, β) = −2 Σ log f(s|η̂) + Σ_t v_t |Z_t'r|² + log|I + ΛZ'WZΛ|
    ∂D/∂v_t = tr(Z_t'PZ_t) − |Z_t'r|² + (Z_t'g)'(Z_t'r)
    ∂D/∂β   = X'(g − 2r)                                    g = P(h ∘ (1 − 2μ)),   h = diag(ZΛM⁻¹ΛZ')

with M = I + ΛZ'WZΛ, P = W − WZΛM⁻¹ΛZ'W = (W⁻¹ + ZΛ²Z')⁻¹. At the mode the standardised effects are
û_t = √v_t·Z_t'r, so that the first two terms of D do not change with η̂, and g carries what log|M| does
through W. The derivative by v_t does not vanish at v_t = 0, unlike that by √v_t.

The cell term is left out of M: with w = W/(1 + v_cell·W) in the place of W for the other terms,
log|M| = Σ log(1 + v_cell·W) + log|I + ΛZ'wZΛ| and h = (v_cell + h'/(1 + v_cell·W))/(1 + v_cell·W).

The mode is found by penalised iteratively reweighted least squares, e ← P(η − Xβ + r/W), η = Xβ + ZΛ²Z'e,
halved until −2 log f + e'ZΛ²Z'e falls; at the mode e = r. The steps end quadratically: the one after a step
below 1e-7 would be below 1e-13.

The blocks are chosen as in `analytics.reml.layout`. Unlike there the weights differ from cell to cell,
so that every block is factored on its own; blocks of one size, filled up with empty levels, are one batch.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.linalg import lapack
from scipy.special import expit, gammaln

from analytics.arrays import CodeArray, FloatArray
from analytics.errors import CoreError
from analytics.reml.layout import (
    BlockBatch,
    Cells,
    batches_of,
    cheapest_blocks,
    filled,
    local_levels,
    terms_of,
)

MAX_CROSS_ENTRIES = 5 * 10**7


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
    batches: tuple[BlockBatch, ...]
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
    outside_terms = np.array(outside, dtype=np.int64)
    n_levels = np.array([cells.n_levels[t] for t in outside], dtype=np.int64)
    base = np.cumsum(n_levels) - n_levels
    listed = [cells.levels[t] + start for t, start in zip(outside, base.tolist(), strict=True)]
    columns = np.stack(listed, axis=1) if listed else np.empty((cells.n_cells, 0), dtype=np.int64)
    n_border = int(n_levels.sum())
    n_block_levels = int(size.sum())
    if n_block_levels * n_border > MAX_CROSS_ENTRIES:
        raise CoreError(
            f"{n_block_levels} levels in blocks against {n_border} beside them: too many for a dense border",
            code="too_wide",
        )
    inner = entry_base[block][:, None, None] + local[:, :, None] * size[block][:, None, None]
    return LogitLayout(
        cells=cells,
        batches=batches_of(size[order], np.arange(size.size)),
        level_term=np.concatenate(
            [terms_of(rows, inside, n_block_levels, len(cells.levels)), np.repeat(outside_terms, n_levels)]
        ),
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


def _incidence(rows: CodeArray, columns: CodeArray, n_levels: int) -> sp.csr_array:
    levels = np.concatenate([rows, columns], axis=1)
    cell = np.repeat(np.arange(levels.shape[0]), levels.shape[1])
    return sp.csr_array((np.ones(levels.size), (cell, levels.ravel())), shape=(levels.shape[0], n_levels))


def _entries(position: CodeArray, n_entries: int) -> sp.csr_array:
    n_cells = position.shape[0]
    cell = np.repeat(np.arange(n_cells), position[0].size if n_cells else 0)
    ones: FloatArray = np.ones(position.size)
    return sp.csr_array((ones, (position.ravel(), cell)), shape=(n_entries, n_cells))


MAX_STEPS = 100
MAX_HALVINGS = 30
CLOSE = 1e-7
ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class Counts:
    """Successes s in each cell, (n_cells,), of R = ``layout.cells.n_rows_in``."""

    layout: LogitLayout
    successes: FloatArray

    @property
    def trials(self) -> FloatArray:
        """R, shape (n_cells,)."""
        return self.layout.cells.n_rows_in

    @property
    def design(self) -> FloatArray:
        """X, shape (n_cells, p)."""
        return self.layout.cells.design

    @cached_property
    def constant(self) -> float:
        """−2 Σ log of the binomial coefficients."""
        s, n = self.successes, self.trials
        return float(-2.0 * np.sum(gammaln(n + 1.0) - gammaln(s + 1.0) - gammaln(n - s + 1.0)))

    def deviance(self, eta: FloatArray) -> float:
        """−2 Σ log f(s|η), without the coefficients."""
        failures, size = self.trials - self.successes, np.abs(eta)
        wrong = np.where(eta > 0.0, failures, self.successes)
        return float(2.0 * np.sum(wrong * size + self.trials * np.log1p(np.exp(-size))))

    def at(self, variances: FloatArray, beta: FloatArray, start: FloatArray | None = None) -> "LaplaceFit":
        """Find the mode and evaluate at v, (n_terms,), and β, (p,); from r of a neighbour, (n_cells,)."""
        shift = self.design @ beta
        dual = np.zeros_like(shift) if start is None else start
        random = covariance_product(self.layout, variances, dual)
        value, is_mode = self.deviance(shift + random) + float(dual @ random), False
        for _ in range(MAX_STEPS):
            eta = shift + random
            weight = np.asarray(self.trials * expit(eta) * expit(-eta), dtype=np.float64)
            factors = Factors(self.layout, variances, weight)
            if is_mode:
                return LaplaceFit(self, variances, beta, shift + random, factors)
            residual = self.successes - self.trials * expit(shift + random)
            towards = factors.project_weighted(factors.weight * random + residual)
            further = covariance_product(self.layout, variances, towards)
            is_mode = bool(np.max(np.abs(further - random)) < CLOSE * (1.0 + np.max(np.abs(random))))
            # go there, halved until the penalised deviance does not rise
            for halving in range(MAX_HALVINGS):
                part = 0.5**halving
                new_dual, new_random = dual + part * (towards - dual), random + part * (further - random)
                new_value = self.deviance(shift + new_random) + float(new_dual @ new_random)
                if new_value <= value + ROUNDING * abs(value):
                    break
            dual, random, value = new_dual, new_random, new_value
        raise CoreError("the mode of the random effects was not found", code="not_estimable")


class Factors:
    """One factorisation at given variances (n_terms,) and weights W (n_cells,), and products with it."""

    def __init__(self, layout: LogitLayout, variances: FloatArray, weight: FloatArray) -> None:
        self.layout, self.variances, self.weight = layout, variances, weight
        cell = layout.cells.cell_term
        self.shrunk = 1.0 if cell is None else 1.0 / (1.0 + variances[cell] * weight)
        self.inner_weight = np.asarray(weight * self.shrunk, dtype=np.float64)
        scale = np.sqrt(np.append(variances, 0.0))[layout.level_term]
        block_scale, border_scale = np.split(scale, [layout.n_block_levels])
        inner = layout.inner @ self.inner_weight
        self.gram = [inner[b.entries].reshape(-1, b.size, b.size) for b in layout.batches]
        self.cross = (layout.cross @ self.inner_weight).reshape(layout.n_block_levels, layout.n_border)
        self.log_determinant = -float(np.sum(np.log(self.shrunk))) if cell is not None else 0.0
        self.inverses = []  # Λ(ΛGΛ + I)⁻¹Λ of each batch
        for batch, gram in zip(layout.batches, self.gram, strict=True):
            one = block_scale[batch.block_rows].reshape(-1, batch.size)
            scales = one[:, :, None] * one[:, None, :]
            moment = scales * gram + np.eye(batch.size)
            diagonals = np.einsum("pii->pi", np.linalg.cholesky(moment))
            self.log_determinant += 2.0 * float(np.sum(np.log(diagonals)))
            self.inverses.append(scales * np.linalg.inv(moment))
        self.solved = self._blocks_times(self.cross)
        border = (layout.border @ self.inner_weight).reshape(layout.n_border, layout.n_border)
        self.schur = border - self.cross.T @ self.solved
        self.border_inverse = np.empty((0, 0))
        if border_scale.size:
            scales = border_scale[:, None] * border_scale[None, :]
            factor, _ = lapack.dpotrf(scales * self.schur + np.eye(border_scale.size), lower=1)
            inverse, _ = lapack.dpotri(factor, lower=1)
            self.log_determinant += 2.0 * float(np.sum(np.log(np.diag(factor))))
            self.border_inverse = scales * (np.tril(inverse) + np.tril(inverse, -1).T)

    def _blocks_times(self, matrix: FloatArray) -> FloatArray:
        product = np.empty_like(matrix)
        for batch, inverse in zip(self.layout.batches, self.inverses, strict=True):
            rows = product[batch.block_rows]
            rows[:] = (inverse @ batch.blocks(matrix)).reshape(rows.shape)
        return product

    def project(self, vectors: FloatArray) -> FloatArray:
        """P times each column, shape (n_cells, n_columns)."""
        return self._projected(self.inner_weight[:, None] * vectors)

    def project_weighted(self, vector: FloatArray) -> FloatArray:
        """PW⁻¹ times a vector, shape (n_cells,), where W may be as small as it likes."""
        return self._projected((self.shrunk * vector)[:, None])[:, 0]

    def _projected(self, weighted: FloatArray) -> FloatArray:
        # ΛM⁻¹Λ times each column: c_b = Ŝ(r_b − T'r_i), c_i = N_i r_i − T c_b
        inside, border = np.split(self.layout.incidence.T @ weighted, [self.layout.n_block_levels])
        border = self.border_inverse @ (border - self.solved.T @ inside)
        solution = np.concatenate([self._blocks_times(inside) - self.solved @ border, border])
        fitted = self.layout.incidence @ solution
        return np.asarray(weighted - self.inner_weight[:, None] * fitted, dtype=np.float64)

    def leverages(self) -> FloatArray:
        """Leverages h = diag(ZΛM⁻¹ΛZ'), shape (n_cells,)."""
        layout, shared = self.layout, self.solved @ self.border_inverse
        own = np.empty(layout.inner.shape[0])
        for batch, inverse in zip(layout.batches, self.inverses, strict=True):
            outer = batch.blocks(shared) @ batch.blocks(self.solved).transpose(0, 2, 1)
            own[batch.entries] = (inverse + outer).ravel()
        h = layout.inner.T @ own - 2.0 * (layout.cross.T @ shared.ravel())
        h += layout.border.T @ self.border_inverse.ravel()
        cell = layout.cells.cell_term
        return np.asarray(h if cell is None else (self.variances[cell] + h * self.shrunk) * self.shrunk)

    def traces(self, leverages: FloatArray) -> FloatArray:
        """tr(Z_t'PZ_t) of each term, shape (n_terms,)."""
        layout, terms = self.layout, self.layout.n_terms
        diagonal = np.empty(layout.level_term.size)
        for batch, inverse, gram in zip(layout.batches, self.inverses, self.gram, strict=True):
            own = np.einsum("pii->pi", gram) - np.sum((gram @ inverse) * gram, axis=2)
            shared = batch.blocks(self.cross) - gram @ batch.blocks(self.solved)
            fitted = np.sum((shared @ self.border_inverse) * shared, axis=2)
            diagonal[batch.block_rows] = (own - fitted).ravel()
        fitted = np.sum((self.schur @ self.border_inverse) * self.schur, axis=1)
        diagonal[layout.n_block_levels :] = np.diag(self.schur) - fitted
        traces = np.bincount(layout.level_term, diagonal, terms + 1)[:terms].astype(np.float64)
        if layout.cells.cell_term is not None:
            traces[layout.cells.cell_term] = np.sum(self.weight * (1.0 - self.weight * leverages))
        return np.asarray(traces, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class LaplaceFit:
    """D at a point, η̂ at the mode (n_cells,); each part is computed when it is first asked for."""

    counts: Counts
    variances: FloatArray
    beta: FloatArray
    eta: FloatArray
    factors: Factors

    @cached_property
    def residual(self) -> FloatArray:
        """Residual r = s − Rμ, shape (n_cells,)."""
        return np.asarray(self.counts.successes - self.counts.trials * expit(self.eta), dtype=np.float64)

    @cached_property
    def squares(self) -> FloatArray:
        """|Z_t'r|² of each term, shape (n_terms,)."""
        return np.array([float(sums @ sums) for sums in _sums(self.counts.layout, self.residual)])

    @cached_property
    def value(self) -> float:
        """D, glmer's deviance with nAGQ = 1."""
        penalty = float(self.variances @ self.squares)
        fit = self.counts.constant + self.counts.deviance(self.eta)
        return fit + penalty + self.factors.log_determinant

    @cached_property
    def gradient(self) -> FloatArray:
        """∂D/∂(v, β), shape (n_terms + p,)."""
        leverages = self.factors.leverages()
        bend = self.factors.project_weighted(self.factors.weight * leverages * (1.0 - 2.0 * expit(self.eta)))
        layout = self.counts.layout
        pairs = zip(_sums(layout, bend), _sums(layout, self.residual), strict=True)
        mixed = np.array([float(left @ right) for left, right in pairs])
        by_variance = self.factors.traces(leverages) - self.squares + mixed
        return np.concatenate([by_variance, self.counts.design.T @ (bend - 2.0 * self.residual)])

    @cached_property
    def curvature(self) -> FloatArray:
        """The average information's stand-in for the second derivative of D, (n_terms + p)²."""
        layout, design = self.counts.layout, self.counts.design
        sums = zip(layout.cells.levels, _sums(layout, self.residual), strict=True)
        spread = np.column_stack([level_sums[codes] for codes, level_sums in sums])
        n, p = spread.shape[1], design.shape[1]
        curvature = np.zeros((n + p, n + p))
        curvature[:n, :n] = spread.T @ self.factors.project(spread)
        curvature[n:, n:] = 2.0 * design.T @ self.factors.project(design)
        return (curvature + curvature.T) / 2.0


def covariance_product(layout: LogitLayout, variances: FloatArray, vector: FloatArray) -> FloatArray:
    """ZΛ²Z' times a vector, shape (n_cells,)."""
    product = np.zeros_like(vector)
    terms = zip(variances, layout.cells.levels, _sums(layout, vector), strict=True)
    for variance, codes, sums in terms:
        if variance:
            product += variance * sums[codes]
    return product


def _sums(layout: LogitLayout, vector: FloatArray) -> list[FloatArray]:
    cells = layout.cells
    return [
        np.bincount(codes, vector, n).astype(np.float64)
        for codes, n in zip(cells.levels, cells.n_levels, strict=True)
    ]
