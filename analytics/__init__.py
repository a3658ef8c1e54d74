"""How much of a benchmark's outcomes is signal: the numerical core below everything else."""
