"""Opening a benchmark, and its switches: intake frozen, the board hidden, full runs alone asked for."""

from collections.abc import Sequence
from datetime import datetime

from django.core.exceptions import ValidationError
from django.core.validators import validate_slug
from django.db import models, transaction

from leaderboard.accounts.models import User
from leaderboard.catalog.models import Benchmark
from leaderboard.catalog.services import bump_shown_version
from leaderboard.errors import Conflict, Refusal
from leaderboard.notify import wake
from leaderboard.operations.acting import acting
from leaderboard.operations.listing import describe_benchmark, list_tasks
from leaderboard.submissions.parsing.task_list import ListedTask


class Switch(models.TextChoices):
    """What an operator may turn on and off; the fields of a benchmark bear these names."""

    FROZEN = "frozen", "Intake frozen"
    HIDDEN = "hidden", "Hidden"
    FULL_RUNS_ONLY = "full_runs_only", "Full runs only"


@transaction.atomic
def create_benchmark(
    *, slug: str, title: str, tasks: Sequence[ListedTask], by: User | None, reason: str
) -> Benchmark:
    """Open a benchmark under the default policy, with its tasks where they are known already."""
    try:
        validate_slug(slug)
    except ValidationError:
        raise Refusal("A name in addresses has letters, digits, - and _ alone.", code="not_a_slug") from None
    if Benchmark.objects.filter(slug=slug).exists():
        raise Conflict("There is a benchmark of this name already.", code="slug_taken")
    with acting(by=by, reason=reason):
        list_tasks(slug=slug, tasks=tasks, by=by, reason=reason)
        benchmark = Benchmark.objects.get(slug=slug)
        describe_benchmark(benchmark=benchmark, values={"title": title}, by=by, reason=reason)
    benchmark.refresh_from_db()
    return benchmark


@transaction.atomic
def turn(
    *, benchmark: Benchmark, switch: Switch, on: bool, by: User | None, reason: str, as_of: datetime
) -> Benchmark:
    """Turn a switch on, which keeps the reason for all to see, or off."""
    locked = Benchmark.objects.select_for_update(no_key=True).get(pk=benchmark.pk)
    if bool(getattr(locked, f"{switch}_at")) == on:
        raise Conflict("The switch stands so already.", code="already_so")
    with acting(by=by, reason=reason):
        setattr(locked, f"{switch}_at", as_of if on else None)
        setattr(locked, f"{switch}_reason", reason if on else "")
        locked.save(update_fields=[f"{switch}_at", f"{switch}_reason"])
        bump_shown_version(benchmark=locked)
    wake()
    return locked
