"""How much of a benchmark's outcomes is signal: the numerical core below everything else."""

DECIMALS = 9  # values are rounded to so many before they are ranked, or compared with each other or a limit
