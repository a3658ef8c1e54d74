"""Per-process counters (requests, refusals, faults). Everything else in /metrics is read from the database.

Under gunicorn the counts of all workers are added up, from files that each of them maps to memory. A worker
has a slot, not its process id, in the name of its file: one that takes the place of another goes on counting
where that one ended, so that files do not become more.
"""

import os
import re
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram, multiprocess, values

#: PROMETHEUS_MULTIPROC_DIR | a temporary folder under gunicorn | where workers count requests; empty at the
#:   start
FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # as prometheus-client calls it
MAX_RULES = 100  # distinct ones of a process; what comes beyond counts as "other"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
BUCKETS = (0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
DETAIL = re.compile(r"[;:(\"'“‘\d].*", re.DOTALL)  # what a rule says beyond itself, such as near names

_slot = "0"  # of the process that forks, and of one that serves alone
_rules: set[str] = set()


def take_slot(slot: int) -> None:
    """Count into this file from now on."""
    global _slot
    _slot = str(slot)


if FOLDER in os.environ:
    values.ValueClass = values.MultiProcessValue(lambda: _slot)
OWN = CollectorRegistry()
REQUESTS = Counter(
    "bandstand_requests", "Requests that were answered.", ["method", "route", "status"], registry=OWN
)
SECONDS = Histogram(
    "bandstand_request_seconds", "Seconds until the answer began.", ["route"], buckets=BUCKETS, registry=OWN
)
REFUSALS = Counter("bandstand_refusals", "Requests that the interface refused.", ["code"], registry=OWN)
FAULTS = Counter("bandstand_faults", "Faults of deliveries that were refused.", ["rule"], registry=OWN)


def of_all_processes() -> CollectorRegistry:
    if FOLDER not in os.environ:
        return OWN
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)
    return registry


def count_request(*, method: str | None, route: str, status: int, seconds: float) -> None:
    REQUESTS.labels(method if method in METHODS else "other", route, str(status)).inc()
    SECONDS.labels(route).observe(seconds)


def count_refusal(code: str) -> None:
    REFUSALS.labels(code).inc()


def count_faults(rules: Iterable[str]) -> None:
    """By rule alone: what a rule says of one case would make a series of its own."""
    for rule in rules:
        named = DETAIL.sub("", rule).strip(" ,.")[:80] or "other"
        if named not in _rules and len(_rules) >= MAX_RULES:
            named = "other"
        _rules.add(named)
        FAULTS.labels(named).inc()
