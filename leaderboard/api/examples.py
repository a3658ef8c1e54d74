"""What bodies look like, by operation; the tests send each."""

from typing import Any

AGENT = {"name": "Tree (M 2)", "scaffold": "Tree", "model": "M 2", "version": "2026-06"}
BODIES: dict[str, dict[str, Any]] = {
    "post_assignments": {"agent": AGENT},
    "post_submissions": {
        "agent": AGENT,
        "links": {"commit": "https://example.org/tree/commit/4f1a"},
        "outcomes": [{"task": "t01", "trial": 1, "outcome": 1, "cost_usd": 0.12}],
    },
    "post_withdraw": {"reason": "run with the wrong prompt"},
    "post_reports": {
        "text": "its logs show that it read the answers",
        "board": 1,
        "contact": "eve@example.org",
    },
    "post_approve": {"variant": "plain", "reason": "two tasks have left the band"},
    "post_reject": {"reason": "two tasks are too few to compare anew"},
    "post_policy": {"values": {"n_trials": 2, "members_only": False}, "reason": "one trial is too noisy"},
    "post_freeze": {"frozen": True, "reason": "the checker is being repaired"},
}
