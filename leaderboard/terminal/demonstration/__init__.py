"""The benchmark that comes along: its outcomes, and where they are from (README.md)."""
