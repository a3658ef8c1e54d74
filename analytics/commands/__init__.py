"""Commands of ``python -m analytics`` that have a module of their own; `analytics.cli` registers them."""
