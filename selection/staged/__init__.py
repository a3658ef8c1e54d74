"""Staged assignment: newcomers begin with the most informative tasks, contenders run on, the others stop."""
