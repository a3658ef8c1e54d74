"""Benchmarks to look at: the demonstration, real ones, and a large one, made by the ways of an operator."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from leaderboard.boards.queries import head_of, latest_board
from leaderboard.catalog.models import Benchmark
from leaderboard.operations.corrections import unload
from leaderboard.operations.loading import load
from leaderboard.operations.services import measure_variance, recompute
from leaderboard.studies.demonstration import write_history, write_newcomers
from leaderboard.submissions.models import Submission
from leaderboard.submissions.parsing.flat import read_file
from perf.recompute import write
from tests.leaderboard.stored_validation import store

AS_OF = datetime(2026, 6, 1, 12, tzinfo=UTC)
REAL = ("hal_gaia", "hal_taubench_airline", "terminal_bench_core_011", "swebench_verified_2023_2025")
N_FOUNDERS, N_AGENTS, N_TASKS = 15, 500, 1_000


def demonstration(slug="demonstration"):
    """Two boards: of a year of full runs, then of newcomers on the subset, with an agent withdrawn since.

    The validation is one of another benchmark, stored under this one: to make it takes 20 s.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder, "rows.csv")
        write_history(path)
        published(path, slug)
        write_newcomers(path, tasks=_subset(slug))
        _load(path, slug)
    benchmark = Benchmark.objects.get(slug=slug)
    store(benchmark)
    measure_variance(benchmark=benchmark, as_of=AS_OF)
    recompute(benchmark=benchmark, as_of=AS_OF + timedelta(days=1))
    last = latest_board(benchmark).entries.filter(rank__isnull=False).latest("position")
    taken_back = Submission.objects.filter(agent=last.agent_id).values_list("uuid", flat=True)
    unload(uuids=list(taken_back), reason="a leak", as_of=AS_OF + timedelta(days=2))
    return Benchmark.objects.get(slug=slug)


def real(folder, name):
    return published(folder / f"{name}.csv.gz", name.replace("_", "-"))


def large(slug="large"):
    """500 agents × 1,000 tasks: 15 ran all of them, the others what these leave in the band."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "rows.csv")
        write(path, agents=range(N_FOUNDERS), n_tasks=N_TASKS, n_trials=1)
        published(path, slug)
        newcomers = range(N_FOUNDERS, N_AGENTS)
        write(path, agents=newcomers, n_tasks=N_TASKS, n_trials=1, tasks=set(_subset(slug)))
        return published(path, slug)


def published(path, slug):
    _load(path, slug)
    benchmark = Benchmark.objects.get(slug=slug)
    recompute(benchmark=benchmark, as_of=AS_OF)
    return benchmark


def _load(path, slug):
    load(flat=read_file(path, as_of=AS_OF), slug=slug, as_of=AS_OF)


def _subset(slug):
    return head_of(latest_board(Benchmark.objects.get(slug=slug))).subset.tasks
