"""Drift: monitors over a benchmark in time order. Each is a function of arrays; only the past is used.

=============  ============================================================================================
module         holds
=============  ============================================================================================
``monitors``   the monitors, each with statistic, threshold, evidence and state
``fidelity``   rank fidelity and its null
``cusum``      cumulative sums
``e_value``    evidence that may be looked at as often as one likes
=============  ============================================================================================
"""
