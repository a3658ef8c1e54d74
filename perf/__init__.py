"""Benchmarks that print ratios against named rivals in the same run."""
