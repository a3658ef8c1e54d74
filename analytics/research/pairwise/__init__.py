"""Pairwise scoring: strengths from who beats whom, with errors that know of items, judges and order."""
