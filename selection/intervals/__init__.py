"""Intervals of an estimated score: what a full run would show, given the outcomes on the subset.

Model
-----
ŷ is the prediction of `selection.full_scores`; the interval is about the score y of a full run, trial noise
included, nominal level 95%. It rests on residuals e_i = y_i − ŷ_i of agents whose full score is known, ŷ_i
from a fold that never saw i: the first source that applies, and for a scaffold that no training agent has the
last, where that is wider::

    post-selection    19 residuals of agents        ŷ ± the ⌈.95(n + 1)⌉-th smallest |e|
                      drawn after activation
    in time           19 residuals of the           ŷ ± the ⌈.95(n + 1)⌉-th smallest |e|
                      temporal protocol
    jackknife+        19 residuals of agents        [⌊.05(n + 1)⌋-th smallest of μ₋ᵢ(x) − R_i,
                      left out one at a time         ⌈.95(n + 1)⌉-th smallest of μ₋ᵢ(x) + R_i]
    normal            10 to 18 of these             ŷ ± t_{n−1}·s·√(1 + 1/n)

    new scaffold      G ≥ 5 scaffolds               ŷ ± t_{G−1}·√(σ_s²(1 + 1/G) + σ_e²)

t is the 97.5% quantile. R_i = |e_i| comes from the fold that holds agent i out and selects its own subset;
μ₋ᵢ(x) from the estimator fitted without i on the active subset, since a new agent has no outcomes elsewhere.
With 19 residuals the order statistics are the smallest and the largest. With G < 5 an agent of a new scaffold
has the interval of the others, and the note says that it is not calibrated for it.

No interval: fewer than 10 residuals; more than a tenth of the subset missing. Wider than the scores
themselves, a half-width above 1.96·sd(y), ŷ is not shown either. Ends are clipped to [0, 1].

For comparisons an estimated score has one standard error, s_cal = √(Σe²/n) over the residuals in use, with
n − 1 degrees of freedom; of a new scaffold √(σ_s²(1 + 1/G) + σ_e²) with G − 1.

===============  ========================================================================================
module           holds
===============  ========================================================================================
``quantiles``    order statistics of residuals: split conformal, jackknife+
``scaffolds``    components of residuals by scaffold
``calibrator``   what intervals of one board, or of one fold, are made from
``ladder``       the interval of an agent, or why it has none
``prequential``  how often intervals made from earlier residuals held later scores
===============  ========================================================================================

Guarantees: split conformal covers at least 95% if the agent and those behind the residuals are exchangeable.
Jackknife+ covers at least 90% under the same condition if R and μ come from the same fits; here only R
selects anew, so that 90% is a reference and coverage is measured. The other two rest on normal residuals.

Symbols
-------
===========  ====================================  ==========================  ==========
symbol       code                                  shape                       unit
===========  ====================================  ==========================  ==========
R            ``residuals``                         (n,), NaN: no fold          score
e            ``in_time``, ``post_selection``       (n_in_time,), (n_sampled,)  score
μ₋ᵢ(x)       ``fitted.predict_without(x)``         (q, n)                      score
s_cal        ``Interval.s_cal``                    scalar                      score
σ_s², σ_e²   ``scaffold_components``               scalars                     score²
===========  ====================================  ==========================  ==========

Not done here
-------------
No interval for an agent with a full run: its score is measured. What an agent's own outcomes leave open
bounds its interval further: that is `selection.standings.full_scores`'.

Source
------
Barber, Candès, Ramdas & Tibshirani, *Annals of Statistics* 49 (2021) 486-507, §1.2 and Theorem 1. Vovk,
Gammerman & Shafer, *Algorithmic Learning in a Random World*, 2005 (split conformal). Dunn, Wasserman &
Ramdas, *JASA* 118 (2023) 2491-2502 (new groups). Searle, Casella & McCulloch, *Variance Components*, 1992,
ch. 3 (unequal groups). Ndzomga, *Efficient Benchmarking of AI Agents*, §5.1, Phase 2.
"""

from selection.intervals.calibrator import Calibrator, IntervalRefused, calibrate
from selection.intervals.ladder import Interval, NoInterval, interval, intervals
from selection.intervals.prequential import Prequential, prequential
from selection.intervals.quantiles import TooFewResiduals, jackknife_plus, split_conformal

__all__ = [
    "Calibrator",
    "Interval",
    "IntervalRefused",
    "NoInterval",
    "Prequential",
    "TooFewResiduals",
    "calibrate",
    "interval",
    "intervals",
    "jackknife_plus",
    "prequential",
    "split_conformal",
]
