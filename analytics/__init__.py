"""How much of a benchmark's outcomes is signal: the numerical core below everything else.

Formulas and symbols of its modules: analytics/README.md.
"""

DECIMALS = 9  # values are rounded to so many before they are ranked, or compared with each other or a limit
