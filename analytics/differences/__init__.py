"""Differences between agents: one pair, all pairs, and ranks that hold at once.

==================  =======================================================================================
module              holds
==================  =======================================================================================
``pairs``           δ̂ with its error for a named target, and an agent alone
``domain_ranks``    rank intervals by resampling the tasks
``normal_ranks``    rank intervals from the errors of measured and estimated scores
==================  =======================================================================================
"""
