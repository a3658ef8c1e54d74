"""An exported benchmark back: its outcomes, and what was decided about it."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from leaderboard.accounts.models import User
from leaderboard.catalog.queries import benchmark_of
from leaderboard.operations.loading import LoadReport, load
from leaderboard.operations.policies import put_in_force
from leaderboard.studies.versions import take_over
from leaderboard.submissions.parsing.flat import FlatFile


@transaction.atomic
def restore(
    *,
    flat: FlatFile | Mapping[str, FlatFile],
    versions: Any,
    slug: str,
    as_of: datetime,
    dry_run: bool = False,
    by: User | None = None,
    reason: str = "load",
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> LoadReport:
    """Load a file into a benchmark that has no subset versions, with those that were exported beside it."""
    report = load(flat=flat, slug=slug, as_of=as_of, by=by, reason=reason, progress=progress)
    if policy := take_over(benchmark=benchmark_of(slug), content=versions):
        put_in_force(policy=policy, by=by, reason=reason)
    transaction.set_rollback(dry_run)
    return report
