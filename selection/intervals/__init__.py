"""Intervals of an estimated score: what a full run would show, given the outcomes on the subset.

The theory is in ``selection/README.md``, “Intervals of an estimated score”.

Symbols
-------
===========  ====================================  ==========================  ==========
symbol       code                                  shape                       unit
===========  ====================================  ==========================  ==========
R            ``residuals``                         (n,), NaN: no fold          score
e            ``in_time``, ``post_selection``       (n_in_time,), (n_sampled,)  score
μ₋ᵢ(x)       ``fitted.predict_without(x)``         (q, n)                      score
s_cal        ``ScoreInterval.s_cal``               scalar                      score
σ_s², σ_e²   ``scaffold_components``               scalars                     score²
===========  ====================================  ==========================  ==========

Not done here: no interval for an agent with a full run: its score is measured. What an agent's own outcomes
leave open bounds its interval further: that is `selection.standings.full_scores`'.

Source: Barber, Candès, Ramdas & Tibshirani, *Annals of Statistics* 49 (2021) 486-507, §1.2 and Theorem 1.
Vovk, Gammerman & Shafer, *Algorithmic Learning in a Random World*, 2005 (split conformal). Dunn, Wasserman &
Ramdas, *JASA* 118 (2023) 2491-2502 (new groups). Searle, Casella & McCulloch, *Variance Components*, 1992,
ch. 3 (unequal groups). Ndzomga, *Efficient Benchmarking of AI Agents*, §5.1, Phase 2.
"""

from selection.intervals.calibrator import Calibrator, calibrate
from selection.intervals.ladder import NoInterval, ScoreInterval, interval, intervals
from selection.intervals.prequential import Prequential, prequential
from selection.intervals.quantiles import jackknife_plus, split_conformal

__all__ = [
    "Calibrator",
    "NoInterval",
    "Prequential",
    "ScoreInterval",
    "calibrate",
    "interval",
    "intervals",
    "jackknife_plus",
    "prequential",
    "split_conformal",
]
