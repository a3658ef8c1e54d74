"""Differences between agents: one pair, all pairs, and ranks that hold at once.

==================  =======================================================================================
module              holds
==================  =======================================================================================
``pairs``           δ̂ with its error for a named target, and an agent alone
``finite_ranks``    rank sets on given tasks
``finite_errors``   the error of one agent's score on given tasks: V, ν
``error_draws``     draws of these errors, and the largest of all differences
``neyman_draws``    the same for agents without a trial variance, by resampled tasks
``first``           who may be first
``domain_ranks``    rank intervals by resampling the tasks
``task_draws``      the resampled tasks
``normal_ranks``    rank intervals from the errors of measured and estimated scores
==================  =======================================================================================
"""
