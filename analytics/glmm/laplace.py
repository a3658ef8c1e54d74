"""The Laplace approximation of a binomial model with random effects, at given variances and fixed effects.

Notation: analytics/README.md, *The logit check*. At the mode η̂ of the random effects, with r = s − Rμ and W = Rμ(1 − μ)::

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

Source: as in the package.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import lapack
from scipy.special import expit, gammaln

from analytics.arrays import FloatArray
from analytics.errors import CoreError
from analytics.glmm.layout import LogitBatch, LogitLayout

MAX_STEPS = 100
MAX_HALVINGS = 30
CLOSE = 1e-7
ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class Counts:
    """Successes in each cell.

    successes: (n_cells,); s, of R = ``layout.cells.n_rows_in``.
    """

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
        """Find the mode and evaluate.

        variances: (n_terms,); v, at least 0.
        beta: (p,).
        start: (n_cells,); r of a neighbouring evaluation, from which the mode is searched.
        """
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
            dual, random, value = self._lower(shift, (dual, random, value), (towards, further))
        raise CoreError("the mode of the random effects was not found", code="not_estimable")

    def _lower(
        self,
        shift: FloatArray,
        here: tuple[FloatArray, FloatArray, float],
        there: tuple[FloatArray, FloatArray],
    ) -> tuple[FloatArray, FloatArray, float]:
        """Go to the solution of the weighted problem, halved until the penalised deviance does not rise."""
        (dual, random, value), (towards, further) = here, there
        for halving in range(MAX_HALVINGS):
            part = 0.5**halving
            dual_there = dual + part * (towards - dual)
            random_there = random + part * (further - random)
            value_there = self.deviance(shift + random_there) + float(dual_there @ random_there)
            if value_there <= value + ROUNDING * abs(value):
                break
        return dual_there, random_there, value_there


class Factors:
    """One factorisation at given variances (n_terms,) and weights W (n_cells,), and products with it."""

    def __init__(self, layout: LogitLayout, variances: FloatArray, weight: FloatArray) -> None:
        self.layout, self.variances, self.weight = layout, variances, weight
        cell = layout.cells.cell_term
        self.shrunk = 1.0 if cell is None else 1.0 / (1.0 + variances[cell] * weight)
        self.inner_weight = np.asarray(weight * self.shrunk, dtype=np.float64)
        scale = np.sqrt(np.append(variances, 0.0))[layout.level_term]
        self._block_scale, border_scale = np.split(scale, [layout.n_block_levels])
        inner = layout.inner @ self.inner_weight
        self.gram = [inner[b.entries].reshape(b.n_blocks, b.size, b.size) for b in layout.batches]
        self.cross = (layout.cross @ self.inner_weight).reshape(layout.n_block_levels, layout.n_border)
        self.log_determinant = -float(np.sum(np.log(self.shrunk))) if cell is not None else 0.0
        self.inverses = [self._inverse(batch, g) for batch, g in zip(layout.batches, self.gram, strict=True)]
        self.solved = self._blocks_times(self.cross)
        border = (layout.border @ self.inner_weight).reshape(layout.n_border, layout.n_border)
        self.schur = border - self.cross.T @ self.solved
        self.border_inverse = self._border_inverse(border_scale)

    def _inverse(self, batch: LogitBatch, gram: FloatArray) -> FloatArray:
        """Λ(ΛGΛ + I)⁻¹Λ of a batch; its log determinant is added up."""
        scale = self._block_scale[batch.rows].reshape(batch.n_blocks, batch.size)
        scales = scale[:, :, None] * scale[:, None, :]
        moment = scales * gram + np.eye(batch.size)
        diagonals = np.einsum("pii->pi", np.linalg.cholesky(moment))
        self.log_determinant += 2.0 * float(np.sum(np.log(diagonals)))
        return np.asarray(scales * np.linalg.inv(moment), dtype=np.float64)

    def _border_inverse(self, scale: FloatArray) -> FloatArray:
        if not scale.size:
            return np.empty((0, 0))
        scales = scale[:, None] * scale[None, :]
        factor, _ = lapack.dpotrf(scales * self.schur + np.eye(scale.size), lower=1)
        inverse, _ = lapack.dpotri(factor, lower=1)
        self.log_determinant += 2.0 * float(np.sum(np.log(np.diag(factor))))
        return np.asarray(scales * (np.tril(inverse) + np.tril(inverse, -1).T), dtype=np.float64)

    def _blocks_times(self, matrix: FloatArray) -> FloatArray:
        """Block-diagonal inverses times a matrix with the block levels as rows."""
        product = np.empty_like(matrix)
        for batch, inverse in zip(self.layout.batches, self.inverses, strict=True):
            rows = batch.blocks(matrix)
            product[batch.rows] = (inverse @ rows).reshape(batch.n_rows, matrix.shape[1])
        return product

    def project(self, vectors: FloatArray) -> FloatArray:
        """P times each column, shape (n_cells, n_columns)."""
        return self._projected(self.inner_weight[:, None] * vectors)

    def project_weighted(self, vector: FloatArray) -> FloatArray:
        """PW⁻¹ times a vector, shape (n_cells,), where W may be as small as it likes."""
        return self._projected((self.shrunk * vector)[:, None])[:, 0]

    def _projected(self, weighted: FloatArray) -> FloatArray:
        fitted = self.layout.incidence @ self._solve(self.layout.incidence.T @ weighted)
        return np.asarray(weighted - self.inner_weight[:, None] * fitted, dtype=np.float64)

    def _solve(self, right: FloatArray) -> FloatArray:
        """ΛM⁻¹Λ times each column: c_b = Ŝ(r_b − T'r_i), c_i = N_i r_i − T c_b."""
        inside, border = np.split(right, [self.layout.n_block_levels])
        border = self.border_inverse @ (border - self.solved.T @ inside)
        return np.concatenate([self._blocks_times(inside) - self.solved @ border, border])

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
            diagonal[batch.rows] = (own - fitted).ravel()
        fitted = np.sum((self.schur @ self.border_inverse) * self.schur, axis=1)
        diagonal[layout.n_block_levels :] = np.diag(self.schur) - fitted
        traces = np.bincount(layout.level_term, diagonal, terms + 1)[:terms].astype(np.float64)
        if layout.cells.cell_term is not None:
            traces[layout.cells.cell_term] = np.sum(self.weight * (1.0 - self.weight * leverages))
        return np.asarray(traces, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class LaplaceFit:
    """D at a point, and what follows; each part is computed when it is first asked for.

    eta: (n_cells,); η̂, at the mode of the random effects.
    factors: at the weights of the mode.
    """

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
