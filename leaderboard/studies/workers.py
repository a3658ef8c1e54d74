"""Where heavy work is done: in this process, on several of this machine, or on a Dask cluster.

The one place that knows. The cluster is that of the setting `DASK_SCHEDULER_ADDRESS`; its workers run the
same release, and need neither the database nor a setting. docs/decisions/jobs.md tells why joblib's own
backend for Dask is not used.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from django.conf import settings

from leaderboard.errors import Refusal

if TYPE_CHECKING:
    from selection.validation.nested import Spread

NO_WARNING = {"distributed.admin.large-graph-warning-threshold": "1TB"}  # a unit holds all outcomes


def spread_over(n_jobs: int) -> "Spread | None":
    """Return how units are spread; None where this process does them itself."""
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
