"""Search for settings of a harness that make it measure better, and proof that they do.

A study is a file: the space of settings, the present ones (h₀), models, tasks, a budget, and a command that
runs the harness. Every trial is a process of its own; every run of it is kept. The rooms, from below:

=============  =========================================================================================
module         holds
=============  =========================================================================================
``space``      parameters, configurations and their fingerprints
``study``      the study file, checked
``cells``      what a run of the harness answers: a score for each model, task and run
``process``    one run as a process group that ends with its deadline, or with whoever asks next
``store``      the folder of a study: Optuna's journal, the plan, a Parquet file for each set of runs
``figures``    R, D, C, F and cost of cells, by `analytics.harness`; an interval of ΔR
``front``      configurations that none beats, and the volume they dominate
``search``     what to try next, and when to stop
``protocol``   the five phases: baseline, search, full evaluation, ablation, stability
``report``     what there is, as one object and as Markdown
``bench``      a harness whose true fitness is known, for tests and documents
=============  =========================================================================================

Nothing imports this package. It needs Optuna (``pip install '.[tuning]'``), imported when called.

Source
------
*Toward Meta-Harness Optimization*, §28.6, 28.10, 28.12.
"""
