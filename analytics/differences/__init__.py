"""Differences between agents: one pair, all pairs, and ranks that hold at once."""
