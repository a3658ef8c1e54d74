"""Differences between agents: one pair, all pairs, and ranks that hold at once.

===================  ======================================================================================
module               holds
===================  ======================================================================================
``rows``             one agent's cells, and what it varies by beyond them
``estimates``        a difference or a mean with its interval
``scores``           one agent alone
``trial_variances``  variances of all pairs by trials, and ω̂
``finite_errors``    the error of one agent's score on given tasks: V, ν
``pairs``            two agents and how they differ, for a named target
``finite_ranks``     rank sets on given tasks
``domain_ranks``     rank intervals where tasks are a sample
``groups``           errors and draws where tasks come in groups
``error_draws``      draws of agents' errors, and the largest of all differences
``task_draws``       the resampled tasks
``neyman_draws``     differences judged by resampled tasks
``first``            who may be first
``regression``       what a second run of an agent is expected to score
===================  ======================================================================================
"""
