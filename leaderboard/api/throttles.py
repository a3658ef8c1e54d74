"""How much of its quotas a client has left, as headers (draft-ietf-httpapi-ratelimit-headers)."""

from datetime import datetime
from math import ceil

from leaderboard.operations.quotas import DAY, Quotas


def rate_limit_headers(quotas: Quotas | None, *, as_of: datetime) -> dict[str, str]:
    """`q` submissions in `w` seconds, `r` of them left until `t` seconds from now; nothing for operators."""
    if quotas is None:
        return {}
    seconds, window = ceil((quotas.resets_at - as_of).total_seconds()), int(DAY.total_seconds())
    named = quotas.by_name().items()
    return {
        "RateLimit-Policy": ", ".join(f'"{name}";q={one.limit};w={window}' for name, one in named),
        "RateLimit": ", ".join(f'"{name}";r={one.left};t={seconds}' for name, one in named),
    }
