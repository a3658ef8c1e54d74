"""Validation of a benchmark on its present data, stored as a study: nested, and by a replay."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from django.conf import settings

from leaderboard.catalog.models import Assigning
from leaderboard.errors import Refusal
from leaderboard.studies.models import ValidationStudy
from leaderboard.studies.records import Snapshot
from leaderboard.studies.services import CheckClaim, find_study, no_claim, store_study
from leaderboard.studies.staged_studies import Decisions, rule_of, walks_of

if TYPE_CHECKING:
    from selection.validation.nested import Spread

Progress = Callable[[int, int], None]


class ClosedFormsDiffer(Refusal):
    message = "The closed forms and scikit-learn disagree, so that the validation is not published."


def get_or_compute_validation(
    *,
    snapshot: Snapshot,
    decisions: Decisions,
    as_of: datetime,
    n_jobs: int = 1,
    progress: Progress | None = None,
    check_claim: CheckClaim = no_claim,
) -> tuple[ValidationStudy, bool]:
    """Return the validation of the present data and whether it was computed just now.

    Raises ClosedFormsDiffer.
    """
    if study := find_study(ValidationStudy, snapshot=snapshot):
        return study, False
    from selection.refitted import MAX_DIFFERENCE, refitted
    from selection.standings.validating import validation_of

    check = refitted(snapshot.record, snapshot.rules)  # the closed forms held against scikit-learn
    if check and not check["difference"] <= MAX_DIFFERENCE:
        raise ClosedFormsDiffer(
            f"The closed form predicts {check['closed_form']!r} and scikit-learn {check['scikit_learn']!r} "
            f"{check['where']}: they differ by {check['difference']:.1g}, more than {MAX_DIFFERENCE:.0g}. "
            "This validation is not published.",
            **check,
        )
    is_full = snapshot.policy.assignment == Assigning.FULL
    result = validation_of(
        snapshot.record,
        snapshot.rules,
        rule=None if is_full else rule_of(snapshot.policy),
        walks=walks_of(decisions),
        spread=spread_over(n_jobs),
        progress=progress,
    )
    return store_study(
        ValidationStudy,
        snapshot=snapshot,
        result=result | {"refitted": check},
        as_of=as_of,
        check_claim=check_claim,
    ), True


NO_WARNING = {"distributed.admin.large-graph-warning-threshold": "1TB"}  # a unit holds all outcomes


def spread_over(n_jobs: int) -> "Spread | None":
    """Return how units are spread; None where this process does them itself.

    On processes of this machine, or on a Dask cluster where DASK_SCHEDULER_ADDRESS names one: its workers
    run the same release, and need neither the database nor a setting. docs/decisions/jobs.md tells why
    joblib's own backend for Dask is not used.
    """
    if settings.DASK_SCHEDULER_ADDRESS:
        return cluster(settings.DASK_SCHEDULER_ADDRESS)
    from selection.validation.nested import processes

    return processes(n_jobs) if n_jobs > 1 else None


def cluster(address: str, *, patience: float = 30.0) -> "Spread":
    """Spread over the workers of a Dask scheduler.

    A unit whose worker dies is done again by another, as the scheduler holds what it needs; one that ends
    several workers raises, and so does a cluster that has no workers for `patience` seconds. Only so many
    units are sent ahead as keep the workers busy.
    """

    def spread(function: Callable[..., Any], units: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        import dask
        from distributed import Client

        try:
            client = Client(address, timeout=patience, set_as_default=False)
        except OSError as error:
            raise Refusal(f"No Dask scheduler answers at {address}.", code="cluster_unreachable") from error
        with client, dask.config.set(NO_WARNING):
            waiting = (client.submit(function, *unit, pure=False) for unit in units)
            n = _n_threads(client, address, patience)
            sent = deque(islice(waiting, n + n))  # two for each thread, so that none waits
            while sent:
                yield _answer(sent.popleft(), client, address, patience)
                sent.extend(islice(waiting, 1))

    return spread


def _answer(future: Any, client: Any, address: str, patience: float) -> Any:
    """Wait for as long as there are workers."""
    while True:
        try:
            return future.result(timeout=patience)
        except TimeoutError:
            _n_threads(client, address, patience)


def _n_threads(client: Any, address: str, patience: float) -> int:
    """Wait for a worker, and count the threads of all."""
    try:
        client.wait_for_workers(1, timeout=patience)
    except TimeoutError as error:
        raise Refusal(
            f"The Dask scheduler at {address} has no workers.", code="cluster_unreachable"
        ) from error
    return sum(client.nthreads().values())
