"""REML of crossed and nested random intercepts on unbalanced designs, by blocks with a border.

Model
-----
::

    y = Xβ + Σ_t Z_t b_t + ε,   b_t ~ N(0, σ_t² I),   ε ~ N(0, σ² I),   V = σ² I + Σ_t σ_t² Z_t Z_t'

with Z_t the indicators of the levels of term t. The criterion is lme4's: −2 log restricted likelihood, ::

    log|V| + log|X'V⁻¹X| + y'Py + (n − p)·log 2π,   P = V⁻¹ − V⁻¹X(X'V⁻¹X)⁻¹X'V⁻¹

Rows that agree in every term and in X form a cell; cell means ȳ have V̄ = W⁻¹ + ZΛ²Z', with the finest
term, when it is the cell, in W. With A = [Z X] the columns split into block levels i, block-diagonal by the
block partition, and the border b (other levels and X)::

    M = I + Λ G_ii Λ,  N_i = Λ M⁻¹ Λ,  T = N_i G_ib,  S = G_bb − G_ib'T,  Ŝ = Λ(I + Λ S Λ)⁻¹Λ,   G = A'WA

(no I and Λ = 1 for the columns of X). N is the matrix with P̄ = W − W A N A'W.

Symbols
-------
==============  =========================  ==========================================  ==================
symbol          code                       shape                                       unit
==============  =========================  ==========================================  ==================
θ               ``theta``                  (n_terms + 1,): σ_1², …, σ_T², σ²           outcome²
n, C, p         ``n_rows``, ``n_cells``    scalars; p columns of X                     rows, cells
n_c             ``n_rows_in``              (n_cells,)                                  rows
ȳ, SSW          ``means``, ``within``      (n_cells,), scalar                          outcome, outcome²
w               ``weight``                 (n_cells,), n_c/(σ² + n_c σ_cell²)          1/outcome²
A               ``incidence``              (n_cells, n_block_levels + b)               1
G               ``WeightedProducts``       blocks, (n_pattern_levels, b), (b, b)       1/outcome²
N_i, T, S, Ŝ    ``_inverses``,             blocks, (n_pattern_levels, b), (b, b)       outcome², 1,
                ``_solved``, ``_schur``,                                               1/outcome²,
                ``_border_inverse``                                                    outcome²
e = P̄ȳ         ``_projected``             (n_cells,)                                  1/outcome
==============  =========================  ==========================================  ==================

Not done here: no random slopes, no correlated terms, no weights, no crossed residual structure; only REML,
not ML. A design that does not determine all components is refused where a term has one level, one for each
row, the levels of another term, or lies in the span of X; other dependence among terms is not looked for. The
columns of X are taken as independent. The optimum found is local; `Criterion` is there to start again.

Source: Bates, Mächler, Bolker & Walker, *Fitting Linear Mixed-Effects Models Using lme4*, 2015, §3
(criterion, zeros on the boundary). Searle, Casella & McCulloch, *Variance Components*, 1992, §6.6 and §8.3
(gradient). Gilmour, Thompson & Cullis, *Average Information REML*, Biometrics 51, 1995 (information). Zhou,
Hu, Qiao, Cho & Zhou, *MM Algorithms for Variance Components Models*, 2019 (the multiplicative step).
"""

from analytics.reml.sparse.criterion import Criterion
from analytics.reml.sparse.optimum import minimise

__all__ = ["Criterion", "minimise"]
