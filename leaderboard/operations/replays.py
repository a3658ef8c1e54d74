"""Another policy replayed beside the one in force, on a benchmark's own full runs: by a job or a command.

A replay takes seconds to minutes of processor, which no web worker spends: the desk asks for a job, and shows
what it told once it has run.
"""

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime

from leaderboard.accounts.models import User
from leaderboard.catalog.models import Benchmark, Policy
from leaderboard.catalog.queries import policy_in_force
from leaderboard.catalog.rules import shown
from leaderboard.operations import jobs
from leaderboard.operations.models import JobRun, JobStatus
from leaderboard.operations.policies import changed_policy, changes
from leaderboard.operations.staging import decisions_of
from leaderboard.studies.answers import line_of
from leaderboard.studies.queries import active_subset

REPLAY = "replay"
REPLAYED = ("assignment", "podium", "staged_from", "draw_share", "subset_from", "band_lo", "band_hi")
"""Fields of a policy that a replay depends on."""


def is_replayed(before: Policy, after: Policy) -> bool:
    """Whether a replay by one policy may differ from that by the other."""
    return bool(changes(before, after).keys() & {*REPLAYED})


def replays(benchmark: Benchmark, after: Policy, progress: jobs.Progress | None = None) -> list[str]:
    """Replay the policy in force and another; a line for each, none without outcomes. Nothing is stored."""
    from leaderboard.studies.records import Reader
    from leaderboard.studies.services import one_blas_thread
    from leaderboard.studies.staged_studies import replays_of_policies

    now = Reader(benchmark).now(active_subset(benchmark))
    if now is None:
        return []
    with one_blas_thread():
        results = replays_of_policies(now, decisions_of(benchmark), after, progress)
    return [
        f"Replay, {when} ({one['rule']}): {line_of(one)}."
        for when, one in zip(("in force", "then"), results, strict=True)
    ]


def get_or_ask_replays(
    *, benchmark: Benchmark, after: Policy, by: User | None, reason: str, as_of: datetime
) -> list[str]:
    """Tell what a job has found of the present data, or have it run and say so."""
    before = policy_in_force(benchmark)
    changed: Iterable[str] = (field for field in changes(before, after) if field in REPLAYED)
    settings = " ".join(f"{field}={shown(field, getattr(after, field))}" for field in changed)
    about = f"policy {before.number}, data {benchmark.data_version}: {settings}"
    done = JobRun.objects.filter(kind=REPLAY, benchmark=benchmark, about=about, status=JobStatus.DONE)
    if latest := done.order_by("-id").first():
        return latest.told.splitlines()
    with suppress(jobs.AlreadyAsked):  # this one, or another that it waits for
        jobs.ask(kind=REPLAY, benchmark=benchmark, by=by, reason=reason, as_of=as_of, about=about)
    return ["Both policies are being replayed: look at the preview again in a few minutes."]


def replay_asked(run: JobRun, benchmark: Benchmark, progress: jobs.Progress) -> str:
    """Do what `get_or_ask_replays` has asked for."""
    _, _, settings = run.about.partition(": ")
    pairs = (pair.partition("=") for pair in settings.split())
    after = changed_policy(benchmark=benchmark, values={field: value for field, _, value in pairs})
    return "\n".join(replays(benchmark, after, progress)) or "there are no outcomes yet"
