"""Staged assignment: newcomers begin with the tasks that tell most, contenders run on, the others stop.

============  =======================================================================
module        holds
============  =======================================================================
``model``     one Rasch model of all that was run; the estimate of a full score
``teaching``  the fit to the agents that teach, the first batch, how far estimates err
``walks``     which tasks come next, and whether an agent goes on
``histories``  what each agent of a history would have been asked, by each way of assignment
``replay``    the same over a benchmark's own history, and what came of it
``study``     both as plain values, and other rules beside the one in force
``verdict``   whether that is good enough, in a word and a sentence
============  =======================================================================
"""
