"""How many audit tasks an agent is asked for: the core's rule. Nothing heavy is imported: intake asks it."""

from analytics.drift.tuning import n_audit_tasks

__all__ = ["n_audit_tasks"]
