"""One file a subject: parse, one call, answer."""

from leaderboard.api.views.asked import benchmark_for
from leaderboard.api.views.submissions import SubmissionsView

__all__ = ["SubmissionsView", "benchmark_for"]
