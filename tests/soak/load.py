"""A mixed load on the service as it is deployed, with or without trouble, and the look afterwards."""

import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from tests.leaderboard.service import Service, wait_until
from tests.soak.faults import Trouble
from tests.soak.memory import Sampler, Slope
from tests.soak.traffic import BROKEN, OK, SLUG, UNAVAILABLE, WRONG, Crowd, Ledger, benchmark

PATIENCE = 600
AFRESH = "afresh"


@dataclass
class Found:
    """What a run showed; `lost` tells in words what is not as it should be."""

    seconds: float = 0.0
    ledger: Ledger = field(default_factory=Ledger)
    slopes: dict[str, Slope] = field(default_factory=dict)
    n_agents: int = 0  # of the board, before
    done: dict[str, int] = field(default_factory=dict)
    n_accepted: int = 0
    lost: list[str] = field(default_factory=list)


class Patient(Service):
    patience = PATIENCE


def lines(
    found: Found, seconds: float, *, troubled: bool, fault_every: float = 15.0
) -> Iterator[tuple[str, bool]]:
    """Load the service for so long, let it come to rest, and compare; what is found, line by line.

    With each line comes whether it tells of something bad.
    """
    service = Patient(LOG_LEVEL="WARNING")
    try:
        token = benchmark(service, SLUG)
        studied(service, SLUG)
        service.manage("recompute", SLUG)
        web, scheduler = service.web().pid, [service.scheduler().pid]
        sampler = Sampler({"web": [web], "scheduler": scheduler})
        sampler.start()
        found.n_agents = _n_agents(service)
        begin = time.monotonic()
        with Crowd(service, token) as crowd:
            trouble = Trouble(service, web, scheduler, every=fault_every) if troubled else None
            if trouble:
                trouble.start()
            time.sleep(seconds)
            if trouble:
                trouble.each.wait(PATIENCE)
            found.done = dict(trouble.stop()) if trouble else {}
        found.seconds, found.ledger, found.slopes = time.monotonic() - begin, crowd.ledger, sampler.slopes()
        yield from _requests(found.ledger, troubled=troubled)
        yield from _processes(found)
        found.lost += [trouble.failure] if trouble and trouble.failure else []
        yield from _rest(service, crowd, found, troubled=troubled)
    finally:
        service.close()


def studied(service: Service, slug: str) -> None:
    service.manage("variance", slug)
    service.manage("validate", slug, "--jobs", "1")


def _n_agents(service: Service) -> int:
    """How many agents the last board shows: what a process holds grows with them."""
    ((n,),) = service.rows(
        """
        SELECT count(*) FROM boards_entry WHERE board_id = (
            SELECT b.id FROM boards_board b JOIN catalog_benchmark c ON c.id = b.benchmark_id
            WHERE c.slug = %s ORDER BY b.number DESC LIMIT 1)
        """,
        SLUG,
    )
    return int(n)


def _rest(service: Service, crowd: Crowd, found: Found, *, troubled: bool) -> Iterator[tuple[str, bool]]:
    """What is stored, what the jobs did, and whether the board is the one that is computed from nothing."""
    found.n_accepted = len(crowd.delivered.bodies)
    found.lost += [*crowd.failures, *_not_stored(service, crowd)]
    digest = _at_rest(service)
    boards = len(service.boards(SLUG))
    yield f"  in {found.seconds:.0f} s {found.n_accepted} submissions accepted, {boards} boards", False
    yield f"  the board grew from {found.n_agents} to {_n_agents(service)} agents", False
    jobs = service.rows(
        "SELECT kind, status, count(*) FROM operations_jobrun GROUP BY kind, status ORDER BY kind, status"
    )
    told = ", ".join(f"{kind} {status} {n}" for kind, status, n in jobs)
    yield f"  jobs: {told}", not troubled and any(status == "failed" for _, status, _ in jobs)
    if digest != (afresh := _afresh(service, crowd)):
        found.lost.append(f"the board is {digest}, and computed from nothing {afresh}")
    for told in found.lost:
        yield f"  LOST: {told}", True
    if not found.lost:
        yield "  lost: nothing; the last board equals one computed from nothing, digest for digest", False


def _stored(service: Service) -> list[tuple[str, str, int]]:
    """Submissions in the order in which they were accepted: id, status, outcomes in the table."""
    return service.rows(
        """
        SELECT s.uuid::text, s.status,
            (SELECT count(*) FROM submissions_outcome o WHERE o.submission_id = s.id)
        FROM submissions_submission s JOIN catalog_agent a ON a.id = s.agent_id
        JOIN catalog_benchmark b ON b.id = a.benchmark_id
        JOIN submissions_statuschange c ON c.submission_id = s.id AND c.status = 'accepted'
        WHERE b.slug = %s AND NOT s.loaded ORDER BY c.data_version
        """,
        SLUG,
    )


def _not_stored(service: Service, crowd: Crowd) -> Iterator[str]:
    """Every receipt has its submission, whole, and every submission its receipt."""
    sent = {uuid: len(body["outcomes"]) for uuid, body in crowd.delivered.bodies.items()}
    stored = {uuid: (status, n) for uuid, status, n in _stored(service)}
    for uuid in sent.keys() | stored.keys():
        if stored.get(uuid) != ("accepted", sent.get(uuid)):
            yield f"submission {uuid}: {sent.get(uuid)} outcomes sent, stored {stored.get(uuid)}"


def _at_rest(service: Service) -> str:
    """Study the present data, wait for its board, end the scheduler, and give the digest."""
    studied(service, SLUG)
    wait_until(lambda: service.is_current(SLUG), seconds=PATIENCE)
    for process in service.processes:
        if process.poll() is None and hasattr(process, "log"):
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
    return str(service.boards(SLUG)[-1][2])


def _afresh(service: Service, crowd: Crowd) -> str:
    """The same deliveries in the order in which they were accepted, computed once at the end."""
    token = benchmark(service, AFRESH)
    for uuid, _, _ in _stored(service):
        if body := crowd.delivered.bodies.get(uuid):
            assert service.submit(AFRESH, token, body)[0] == 201
    studied(service, AFRESH)
    service.manage("recompute", AFRESH)
    return str(service.boards(AFRESH)[-1][2])


def _requests(ledger: Ledger, *, troubled: bool) -> Iterator[tuple[str, bool]]:
    """A table by kind of request."""
    heads = f"{'asked':>7}{'p50 ms':>8}{'p95 ms':>8}{'max ms':>8}{'503':>6}{'broken':>8}{'wrong':>7}"
    yield f"  {'request':<16}{heads}", False
    for kind in sorted({kind for kind, _ in ledger.answers}):
        n = {answer: ledger.answers[kind, answer] for answer in (OK, UNAVAILABLE, BROKEN, WRONG)}
        ms = 1000 * np.quantile(ledger.seconds.get(kind, [np.nan]), [0.5, 0.95, 1.0])
        told = f"{sum(n.values()):>7,}" + "".join(f"{one:>8.0f}" for one in ms)
        bad = n[WRONG] or (not troubled and n[UNAVAILABLE] + n[BROKEN])
        yield f"  {kind:<16}{told}{n[UNAVAILABLE]:>6}{n[BROKEN]:>8}{n[WRONG]:>7}", bool(bad)
    for told in ledger.wrong[:20]:
        yield f"  wrong: {told}", True


def _processes(found: Found) -> Iterator[tuple[str, bool]]:
    for name, one in found.slopes.items():
        yield (
            f"  memory, {name}: peak {one.peak:.0f} MiB, {one.per_minute:+.2f} ± {one.error:.2f} MiB/min, "
            f"in the second half {one.late:+.2f} ± {one.late_error:.2f}",
            False,
        )
    if found.done:
        yield f"  done to it: {', '.join(f'{what} {n}×' for what, n in sorted(found.done.items()))}", False
