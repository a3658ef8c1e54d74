"""Staged assignment: newcomers begin with the tasks that tell most, contenders run on, the others stop."""
