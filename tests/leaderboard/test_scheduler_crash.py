"""kill -9 of the scheduler in the middle of its work, and a burst: nothing lost, nothing doubled."""

import os
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from tests.leaderboard.service import Service, full_run, wait_until
from tests.toys import csv_text, graded

N_POINTS = 20
N_LOADED, N_SUBMITTED, N_TASKS = 7, 8, 20
N_BURST, N_SENDERS, N_QUIET = 200, 4, 400
# Seconds in which so many agents are delivered, and between two pages, however fast each is answered.
BURST, READ_EVERY = 60.0, 0.05
SUBSET_FROM = 9  # reached by the second submission; a refit comes five later


@pytest.fixture(scope="module")
def service():
    service = Service()
    try:
        service.web()
        yield service
    finally:
        service.close()


def benchmark(service, slug, *, publish_every=0):
    """Make it from seven loaded agents; return a token for it."""
    service.load(csv_text(graded(N_LOADED, N_TASKS)), slug)
    rules = [f"publish_every={publish_every}", f"subset_from={SUBSET_FROM}", f"quota_per_account={N_BURST}"]
    service.manage("policy", slug, "--set", *rules)
    return service.token(slug)


def bodies(n, *, seed):
    """Full runs of agents that come one after the other, on one day."""
    today = datetime.now(UTC).date().isoformat()
    marks = graded(n, N_TASKS, seed=seed, prefix="n").items()
    return [full_run(name, passed) | {"submitted_at": today} for name, passed in marks]


def studied(service, slug):
    """Measure and validate the present data, as the night would."""
    service.manage("variance", slug)
    service.manage("validate", slug, "--jobs", "1")


@pytest.fixture(scope="module")
def calm(service):
    """The digest of the same deliveries, undisturbed: recomputed once, at the end."""
    token = benchmark(service, "calm")
    for body in bodies(N_SUBMITTED, seed=1):
        assert service.submit("calm", token, body)[0] == 201
    studied(service, "calm")
    service.manage("recompute", "calm")
    ((number, _, digest),) = service.boards("calm")
    assert number == 1
    return digest


@pytest.mark.slow
@pytest.mark.parametrize("point", range(N_POINTS))
def test_kill_9_at_any_point_loses_nothing(service, calm, point):
    slug, draw = f"rough{point}", random.Random(point)
    token = benchmark(service, slug)
    first = service.scheduler()
    wait_until(lambda: "leading" in first.log.read_text())
    killed_at = time.monotonic() + draw.uniform(0.0, 4.0)
    for body in bodies(N_SUBMITTED, seed=1):
        if first.poll() is None and time.monotonic() > killed_at:
            first.kill()
        assert service.submit(slug, token, body)[0] == 201
        time.sleep(draw.uniform(0.0, 0.6))
    first.kill()
    first.wait()
    left = [run[3] for kind in ("reconcile", "validate", "variance") for run in running(service, kind)]
    second = service.scheduler()
    studied(service, slug)
    wait_until(lambda: service.is_current(slug))
    second.send_signal(signal.SIGTERM)
    assert second.wait(120) == 0
    numbers = [number for number, _, _ in service.boards(slug)]
    print(f"\npoint {point}: {len(left)} runs cut off, {len(numbers)} boards")
    assert numbers == list(range(1, len(numbers) + 1))
    assert service.boards(slug)[-1][2] == calm
    assert not service.rows("SELECT id FROM operations_jobrun WHERE status = 'running'")
    statuses = {status for status, _, _, run in service.runs("reconcile") if run in left}
    assert statuses <= {"abandoned"}


def running(service, kind):
    return [run for run in service.runs(kind) if run[0] == "running"]


def seconds_of_page(service, slug):
    time.sleep(READ_EVERY)
    begin = time.perf_counter()
    assert service.get(f"/b/{slug}")[0] == 200
    return time.perf_counter() - begin


def p95(values):
    return sorted(values)[int(0.95 * len(values))]


@pytest.mark.slow
def test_a_burst_of_submissions_makes_a_handful_of_boards(service):
    token = benchmark(service, "burst", publish_every=10)
    studied(service, "burst")
    scheduler = service.scheduler()
    wait_until(lambda: service.is_current("burst"))
    n_before = len(service.boards("burst"))
    quiet = [seconds_of_page(service, "burst") for _ in range(N_QUIET)]
    begin, during = time.monotonic(), []

    def send(i, body):
        time.sleep(max(0.0, begin + i * BURST / N_BURST - time.monotonic()))
        return service.submit("burst", token, body)

    with ThreadPoolExecutor(N_SENDERS) as senders:
        sent = [senders.submit(send, i, body) for i, body in enumerate(bodies(N_BURST, seed=2))]
        while not all(one.done() for one in sent):
            during.append(seconds_of_page(service, "burst"))
    assert {one.result()[0] for one in sent} == {201}
    seconds = time.monotonic() - begin
    wait_until(lambda: service.is_current("burst"))
    n_boards = len(service.boards("burst")) - n_before
    print(
        f"\n{N_BURST} submissions in {seconds:.0f} s: {n_boards} boards, the last current after "
        f"{time.monotonic() - begin:.0f} s; p95 of the page {1000 * p95(quiet):.0f} ms quiet, "
        f"{1000 * p95(during):.0f} ms during ({len(during)} pages, {os.cpu_count()} processors)"
    )
    scheduler.send_signal(signal.SIGTERM)
    assert scheduler.wait(120) == 0
    assert n_boards <= 3 + (time.monotonic() - begin) / 10
