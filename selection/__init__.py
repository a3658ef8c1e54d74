"""Which tasks to keep, and whether the ranking on them holds up."""
