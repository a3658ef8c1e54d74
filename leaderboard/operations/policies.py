"""Changing the rules of a benchmark: a new row of its policy, checked as a whole.

Another policy may be replayed beside the one in force, on a benchmark's own full runs, by a job or a command:
that takes seconds to minutes of processor, which no web worker spends. The desk asks for a job, and shows
what it told once it has run.
"""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from django.db import transaction

from leaderboard.accounts.models import User
from leaderboard.called import set_command
from leaderboard.catalog.models import Assigning, Benchmark, Duplicates, MissingPlaces, Policy
from leaderboard.catalog.queries import active_tasks, policy_in_force
from leaderboard.catalog.rules import COMMON, RULES, shown
from leaderboard.errors import Conflict, Faulty
from leaderboard.notify import wake
from leaderboard.operations import runs
from leaderboard.operations.acting import AT_COMMAND_LINE, acting
from leaderboard.operations.asking import decisions_of
from leaderboard.operations.models import JobRun, JobStatus, Lane
from leaderboard.operations.queries import locked_benchmark
from leaderboard.studies.answers import line_of
from leaderboard.studies.queries import active_subset
from leaderboard.submissions.parsing.flat import Fault, excerpt


def policy_changed_meanwhile() -> Conflict:
    return Conflict("The policy changed in the meantime. Look at it again.", code="policy_changed_meanwhile")


def changed_policy(*, benchmark: Benchmark, values: Mapping[str, str]) -> Policy:
    """Return the policy in force with these fields set, not yet stored; every fault is named at once."""
    before = policy_in_force(benchmark)
    changed, faults = _values(benchmark, values)
    in_force = {field: getattr(before, field) for field in RULES}
    policy = Policy(benchmark=benchmark, number=before.number + 1, **(in_force | changed))
    if (policy.missing, policy.universe) == (before.missing, before.universe):
        policy.resolved_from = before.resolved_from
    if not faults and values.get("missing") == MissingPlaces.AUTO:
        from leaderboard.studies.records import resolve_missing  # imports the core: not with a web worker

        resolve_missing(policy)
    if not faults and not policy.band_lo < policy.band_hi:
        of_lo = Fault(None, "band_lo", f"{policy.band_lo}", f"must be below band_hi, {policy.band_hi}")
        of_hi = Fault(None, "band_hi", f"{policy.band_hi}", f"must be above band_lo, {policy.band_lo}")
        faults.append(of_lo if policy.band_hi == before.band_hi else of_hi)
    if not faults and policy.assignment == Assigning.STAGED and policy.duplicates != Duplicates.MEAN:
        rule = "must be `mean` if `assignment` is `staged`, because each batch is a submission"
        faults.append(Fault(None, "duplicates", policy.duplicates, rule))
    if faults:
        raise Faulty("The policy was not changed.", faults=tuple(faults))
    return policy


def _values(benchmark: Benchmark, texts: Mapping[str, str]) -> tuple[dict[str, Any], list[Fault]]:
    values: dict[str, Any] = {}
    faults: list[Fault] = []
    for field, text in texts.items():
        if field not in RULES:
            rule = f"unknown field; known: {', '.join(RULES)}"
            faults.append(Fault(None, excerpt(field), None, rule))
            continue
        try:
            if field == "universe" and text == COMMON:
                from leaderboard.operations.previews import (
                    common_tasks,  # imports the core: not with a web worker
                )

                values[field] = common_tasks(benchmark)
            else:
                values[field] = RULES[field].read(text)
        except (ValueError, KeyError, RecursionError):
            faults.append(Fault(None, field, excerpt(text), f"use {RULES[field].words}"))
    universe = Counter(values.get("universe") or ())
    unknown = universe.keys() - set(active_tasks(benchmark).values_list("name", flat=True))
    faults += [Fault(None, "universe", excerpt(name), "is not an active task") for name in sorted(unknown)]
    twice = [name for name, n in universe.items() if n > 1]
    faults += [Fault(None, "universe", excerpt(name), "is named more than once") for name in twice]
    return values, faults


UNDONE = {"missing": "missing=gap", "universe": "universe=all"}


def with_missing_decided(benchmark: Benchmark) -> tuple[Policy, str]:
    """Return the policy with `missing` left to the present data, and the command that undoes it.

    The command is empty where missing results and tasks would count as they do now.
    """
    before, after = (
        policy_in_force(benchmark),
        changed_policy(benchmark=benchmark, values={"missing": "auto"}),
    )
    undo = [UNDONE[field] for field in changes(before, after)]
    if after.missing == MissingPlaces.GAP and "missing=gap" in undo:
        undo.remove("missing=gap")
    return after, set_command(benchmark.slug, undo) if undo else ""


def changes(before: Policy, after: Policy) -> dict[str, tuple[Any, Any]]:
    both = {field: (getattr(before, field), getattr(after, field)) for field in RULES}
    return {field: pair for field, pair in both.items() if pair[0] != pair[1]}


@transaction.atomic
def put_in_force(*, policy: Policy, by: User | None = None, reason: str = AT_COMMAND_LINE) -> None:
    locked_benchmark(policy.benchmark)
    if policy_in_force(policy.benchmark).number != policy.number - 1:
        raise policy_changed_meanwhile()
    policy.created_by = by
    with acting(by=by, reason=reason):
        policy.save(force_insert=True)
    wake()


REPLAY = "replay"
REPLAYED = ("assignment", "podium", "staged_from", "draw_share", "subset_from", "band_lo", "band_hi")
"""Fields of a policy that a replay depends on."""


def is_replayed(before: Policy, after: Policy) -> bool:
    return bool(changes(before, after).keys() & {*REPLAYED})


def replays(benchmark: Benchmark, after: Policy, progress: runs.Progress | None) -> list[str]:
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
    changed = [field for field in changes(before, after) if field in REPLAYED]
    settings = " ".join(f"{field}={shown(field, getattr(after, field))}" for field in changed)
    about = f"policy {before.number}, data {benchmark.data_version}: {settings}"
    done = JobRun.objects.filter(kind=REPLAY, benchmark=benchmark, about=about, status=JobStatus.DONE)
    if latest := done.order_by("-id").first():
        return latest.told.splitlines()
    of = {"benchmark": benchmark, "about": about}
    with suppress(runs.AlreadyAsked):  # this one, or another that it waits for
        runs.queue(kind=REPLAY, lane=Lane.LONG, by=by, reason=reason, as_of=as_of, **of)
    return ["Both policies are being replayed: look at the preview again in a few minutes."]


def replay_asked(run: JobRun, benchmark: Benchmark, progress: runs.Progress) -> str:
    _, _, settings = run.about.partition(": ")
    pairs = (pair.partition("=") for pair in settings.split())
    after = changed_policy(benchmark=benchmark, values={field: value for field, _, value in pairs})
    return "\n".join(replays(benchmark, after, progress)) or "there are no outcomes yet"
