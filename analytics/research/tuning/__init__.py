"""Search for settings of a harness that make it measure better, and proof that they do.

A study is a file: the space of settings, the present ones (h₀), models, tasks, a budget, and a command that
runs the harness. Every trial is a process of its own; every run of it is kept. It needs Optuna (``pip install
'.[tuning]'``), imported when called.

Source: *Toward Meta-Harness Optimization*, §28.6, 28.10, 28.12.
"""
