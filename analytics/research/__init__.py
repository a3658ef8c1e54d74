"""Studies of methods: nothing of the service nor of the rest of the core imports them.

Each of ``pairwise``, ``surrogate``, ``turns``, ``panels`` and ``gaming`` is a command of
``python -m analytics.research``; ``tuning`` has a command line of its own.
"""
