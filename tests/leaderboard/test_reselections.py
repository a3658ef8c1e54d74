"""Another subset in the place of the one in use: proposed, decided, and what follows."""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.db import connection

from leaderboard.accounts.models import User
from leaderboard.boards.queries import as_dict, latest_board, standings_of
from leaderboard.catalog.models import Benchmark, Policy, Task
from leaderboard.catalog.queries import policy_in_force
from leaderboard.errors import Conflict, Refusal
from leaderboard.operations import reselections, services
from leaderboard.operations.asking import asked_tasks
from leaderboard.operations.models import (
    Alert,
    AlertLevel,
    Event,
    RerunKind,
    RerunRequest,
    Reselection,
)
from leaderboard.operations.reselections import (
    Comparison,
    NothingWouldChange,
    approve,
    open_proposal,
    propose,
    reject,
)
from leaderboard.operations.services import recompute
from leaderboard.studies.models import ESTIMATOR_VERSION, Calibration, DriftCheck, SubsetTask, TaskSubset
from leaderboard.studies.queries import active_subset
from leaderboard.studies.rules import rules_sha256
from tests import toys
from tests.refusals import refused
from tests.toys import (
    AS_OF,
    FIRST,
    S_FIRST,
    S_HYSTERESIS,
    S_PLAIN,
    csv_text,
    in_subset,
    ladder,
    lines_of,
    load_text,
    moved,
    only,
    passing,
    recomputed,
)

pytestmark = pytest.mark.usefixtures("unreplayed")

ROOT = Path(__file__).resolve().parents[2]
LATER = AS_OF + timedelta(days=1)
HALF = "10" * 10


@pytest.fixture
def drifted(db):
    return moved()


def proposed(benchmark, *, as_of=AS_OF, **options):
    return propose(benchmark=benchmark, by=None, reason="pass rates moved", as_of=as_of, **options)


def by_hand(benchmark):
    """What a proposal on the board of `moved` holds, but for figures, cost and board."""
    first, complete = active_subset(benchmark), benchmark.agents.exclude(name="new").order_by("name")
    moves = {
        "t09": (13 / 16, 21 / 32),
        "t11": (3 / 16, 12 / 32),
        "t07": (11 / 16, 26 / 32),
        "t08": (10 / 16, 23 / 32),
    }
    now = (
        dict.fromkeys(S_FIRST[:6], 18 / 32) | {"t06": 16 / 32} | {task: row[1] for task, row in moves.items()}
    )

    def variant(hysteresis, tasks, leaving, reason):
        entering = [task for task in tasks if task not in S_FIRST]
        rows = {task: {"task": task, "then": then, "now": later} for task, (then, later) in moves.items()}
        return {
            "hysteresis": hysteresis,
            "k": len(tasks),
            "lo": 0.3,
            "hi": 0.7,
            "widened": False,
            "tasks": tasks,
            "pass_rates": [now[task] for task in tasks],
            "entering": [rows[task] for task in entering],
            "leaving": [rows[task] for task in leaving],
            "deltas": [],
            "reason": reason,
        }

    return {
        "strategy": "mid_range",
        "rules": rules_sha256(policy_in_force(benchmark)),
        "n_tasks": 20,
        "n_complete": 32,
        "chosen_from": list(complete.values_list("id", flat=True)),
        "compared": first.compared,
        "kept": {"k": 9},
        "variants": {
            "plain": variant(
                0.0,
                S_PLAIN,
                ["t07", "t08"],
                "9 of 20 tasks have a pass rate from 30% to 70% over 32 agents",
            ),
            "hysteresis": variant(
                0.05,
                S_HYSTERESIS,
                ["t07"],
                "10 of 20 tasks by their pass rates over 32 agents: 8 of the earlier ranking tasks, "
                "from 25% to 75%, and 2 more, from 30% to 70%",
            ),
        },
    }


def waiting(benchmark, **more):
    """A proposal as `propose` stores it, for what does not ask what it would change."""
    nothing = {
        "figures": {},
        "cost": {"subset_run": None},
        "board": {"target_before": "full", "target_after": "full", "agents": []},
    }
    content = by_hand(benchmark)
    content["kept"] |= nothing
    for variant in content["variants"].values():
        variant |= nothing
    return Reselection.objects.create(
        benchmark=benchmark,
        previous=active_subset(benchmark),
        data_version=Benchmark.objects.get(pk=benchmark.pk).data_version,
        estimator_version=ESTIMATOR_VERSION,
        reason="pass rates moved",
        content=content,
        proposed_at=AS_OF,
        **more,
    )


def approved(reselection, variant="plain", *, as_of=LATER):
    return approve(reselection=reselection, variant=variant, by=None, reason="agreed", as_of=as_of)


def tasks_of(subset):
    return sorted(subset.tasks.values_list("name", flat=True))


# ---------------------------------------------------------------------------------------------- what is told


def test_what_enters_and_leaves_is_known_by_hand(drifted):
    content = proposed(drifted).content
    assert content.pop("replays").keys() == {"in_use", "plain", "hysteresis", "anew"}
    for told in (content["kept"], *content["variants"].values()):
        for computed in ("figures", "cost", "board"):
            told.pop(computed, None)
    assert content == by_hand(drifted)


def test_who_ran_the_subset_alone_has_a_delta(drifted):
    load_text(csv_text({"new": only(HALF, S_FIRST)}))
    found = proposed(drifted)
    plain, other = Comparison(found).variants
    assert plain.deltas == [{"agent": "new", "tasks": ["t09", "t11"]}]
    assert other.deltas == plain.deltas
    names = set(drifted.agents.values_list("name", flat=True))
    assert not [name for name in names if f'"{name}"' in json.dumps(found.content)]
    drifted.agents.filter(name="new").update(name="renamed")
    assert Comparison(found).variants[0].deltas[0]["agent"] == "renamed"


def test_the_cost_of_a_run_on_each(db):
    def priced(text):
        head, *rows = text.splitlines()
        return "\n".join([f"{head},cost_usd", *(f"{row},0.5" for row in rows)]) + "\n"

    load_text(priced(csv_text(passing(FIRST))))
    recomputed()
    load_text(priced(csv_text(passing(toys.LATER, seed=1, prefix="b"))))
    found = Comparison(proposed(Benchmark.objects.get()))
    runs = [found.in_use["cost"], *(variant.cost for variant in found.variants)]
    assert [run["subset_run"]["median"] for run in runs] == [4.5, 4.5, 5.0]


def test_progress_is_told_to_its_end(drifted):
    seen = []
    proposed(drifted, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(n, 9) for n in range(10)]


def test_the_board_told_of_is_the_board_that_follows(drifted):
    load_text(csv_text({"new": only(HALF, S_FIRST)}))
    found = proposed(drifted)
    told = Comparison(found).variants[0]
    approved(found)
    after = standings_of(recomputed())
    assert told.target == after.target
    ours = {stand["agent"]: stand["after"] for stand in told.stands}
    assert ours == {
        line.agent: {
            **{name: getattr(line.at[after.target], name) for name in ("rank", "rank_lower", "rank_upper")},
            "score": line.at[after.target].score,
            "how": line.how,
        }
        for line in after.agents
    }


# ------------------------------------------------------------------------------------------------ activation


@pytest.mark.parametrize(("variant", "tasks"), [("plain", S_PLAIN), ("hysteresis", S_HYSTERESIS)])
def test_approval_activates_the_next_version(drifted, variant, tasks):
    found = waiting(drifted)
    before = Benchmark.objects.get().data_version
    subset = approved(found, variant)
    assert (subset.number, tasks_of(subset), subset.fixed_at) == (2, tasks, LATER)
    assert (subset.n_complete, subset.n_tasks, subset.provisional) == (32, 20, False)
    assert subset.data_version == before + 1 == Benchmark.objects.get().data_version
    assert len(set(subset.chosen_from)) == 32
    rates = dict(subset.members.values_list("task__name", "pass_rate"))
    assert (rates["t09"], rates["t06"]) == (21 / 32, 16 / 32)
    found.refresh_from_db()
    assert (found.status, found.variant, found.subset, found.decided_at) == (
        "approved",
        variant,
        subset,
        LATER,
    )
    assert open_proposal(drifted) is None
    asked = dict(drifted.tasks.values_list("id", "name"))
    assert [asked[pk] for pk in asked_tasks(drifted.policies.latest("number"))] == tasks
    board = recomputed()
    assert (board.subset, in_subset(board), board.phase) == (subset, tasks, "ongoing")


def test_boards_of_the_version_before_stay_as_they_are(drifted):
    old = recomputed()
    plain, digest = as_dict(old), old.digest
    approved(waiting(drifted))
    new = recomputed()
    assert (new.number, new.subset.number) == (old.number + 1, 2)
    again = drifted.boards.get(number=old.number)
    assert (as_dict(again), again.digest, again.subset.number) == (plain, digest, 1)
    assert recomputed() == new


def test_who_ran_the_version_before_keeps_its_estimate(drifted):
    load_text(csv_text({"new": only(HALF, S_FIRST)}))
    before = lines_of(recomputed())["new"]
    assert before.how == "estimated"
    approved(waiting(drifted))
    line = lines_of(recomputed())["new"]
    assert (line.how, line.marks, line.at["subset"].rank) == ("estimated", ("estimated",), None)
    assert line.at["full"].score == pytest.approx(before.at["full"].score)
    assert line.at["full"].rank == before.at["full"].rank


def test_who_ran_the_delta_stands_by_its_own_outcomes(drifted, client):
    """Through the interface: asked for the first subset, then only for what entered."""

    def body(tasks, day):
        outcomes = [{"task": task, "trial": 1, "outcome": int(task != "t00")} for task in tasks]
        agent = {"name": "new", "scaffold": "Loop", "model": "Model new"}
        return json.dumps({"agent": agent, "submitted_at": day, "outcomes": outcomes})

    def post(text):
        return client.post(
            "/api/v1/benchmarks/toy/submissions",
            text,
            content_type="application/json",
            headers={"Authorization": f"Bearer {token}"},
        )

    now = datetime.now(UTC)
    options = {"email": "ada@example.org", "slug": "toy", "name": "ci", "life": timedelta(days=1)}
    token = services.issue_token(**options, scope="submit", as_of=now)[1]
    assert post(body(S_FIRST, f"{now:%Y-%m-%d}")).status_code == 201
    recomputed()
    approved(waiting(drifted))
    assert lines_of(recomputed())["new"].at["subset"].rank is None
    receipt = post(body(["t09", "t11"], f"{now:%Y-%m-%d}")).json()
    assert receipt["warnings"] == []
    line = lines_of(recomputed())["new"]
    assert (line.how, line.marks, line.flags) == ("estimated", ("estimated",), ())
    assert line.at["subset"].score == pytest.approx(8 / 9, abs=1e-12)
    assert line.at["full"].score is not None


def test_alerts_and_drift_requests_of_the_version_before_are_closed(drifted):
    board = recomputed()
    check = DriftCheck.objects.create(
        benchmark=drifted,
        policy=board.policy,
        rules="r",
        data_version=1,
        estimator_version=1,
        result={},
        created_at=AS_OF,
        subset=board.subset,
    )
    alert = Alert.objects.create(
        benchmark=drifted,
        subset=board.subset,
        monitor="rank fidelity",
        level=AlertLevel.ALERT,
        opened_by=check,
        latest=check,
        evidence={},
        opened_at=AS_OF,
    )
    ask = {"benchmark": drifted, "subset": board.subset, "n_tasks": 20, "opened_at": AS_OF}
    ask |= {"deadline": LATER, "reason": "an alert"}
    drift = RerunRequest.objects.create(kind=RerunKind.DRIFT, **ask)
    weekly = RerunRequest.objects.create(kind=RerunKind.VALIDATION, **ask)
    found = waiting(drifted, alert=alert)
    assert str(found.alert) == "alert of rank fidelity on toy"
    approved(found)
    for one in (alert, drift, weekly):
        one.refresh_from_db()
    assert (alert.closed_at, alert.closed_reason) == (LATER, "version 2 of the subset took its place")
    assert (drift.status, drift.closed_at, weekly.status) == ("cancelled", LATER, "open")


def test_activation_is_told_once(drifted):
    subset = approved(waiting(drifted))
    (event,) = Event.objects.filter(kind="subset.activated")
    assert (event.kind, event.about, event.at) == ("subset.activated", "subset 2", LATER)
    assert event.payload == {
        "benchmark": "toy",
        "subset": 2,
        "n_tasks": 9,
        "entering": ["t09", "t11"],
        "leaving": ["t07", "t08"],
        "reason": subset.reason,
        "activated_at": LATER.isoformat(),
    }


def test_what_was_decided_is_kept_with_who_and_why(drifted):
    user = User.objects.create_user(email="op@example.org", password=None)
    found = waiting(drifted)
    approve(reselection=found, variant="plain", by=user, reason="agreed", as_of=LATER)
    inserted, decided = found.benchmark_status_decided_reason_events.order_by("pgh_id")
    assert (inserted.status, decided.status, decided.decided_reason) == ("proposed", "approved", "agreed")
    assert decided.pgh_context.metadata["user"] == user.pk


def test_a_second_reselection_goes_back(drifted):
    """The later agents are taken back: the first pass rates, and with them the first subset, hold again."""
    from leaderboard.operations.corrections import unload_latest

    approved(waiting(drifted))
    recomputed()
    unload_latest(benchmark=drifted, reason="a test", as_of=LATER)
    found = proposed(drifted, as_of=LATER)
    assert (found.previous.number, found.content["variants"]["plain"]["tasks"]) == (2, S_FIRST)
    assert approved(found, as_of=LATER + timedelta(days=1)).number == 3
    assert in_subset(recomputed()) == S_FIRST


# -------------------------------------------------------------------------------------------------- refusals


def test_nothing_would_change(toy):
    recomputed()
    with pytest.raises(NothingWouldChange):
        proposed(toy)
    assert not Reselection.objects.exists()


def test_a_variant_that_changes_nothing_is_not_approved(db):
    """t07 goes from 11 of 16 to 23 of 32 (.72): it leaves by the plain rule and stays with hysteresis."""
    load_text(csv_text(passing(FIRST)))
    recomputed()
    later = [*FIRST[:7], 12, *FIRST[8:]]
    load_text(csv_text(passing(later, seed=1, prefix="b")))
    found = proposed(Benchmark.objects.get())
    assert [row["task"] for row in found.content["variants"]["plain"]["leaving"]] == ["t07"]
    with pytest.raises(NothingWouldChange, match="By the variant hysteresis the subset would stay"):
        approved(found, "hysteresis")
    assert tasks_of(approved(found)) == [task for task in S_FIRST if task != "t07"]


def test_without_a_subset_in_use(db):
    load_text(csv_text(ladder(9, 20)))
    with refused(Conflict, "no_subset_in_use"):
        proposed(Benchmark.objects.get())


def test_full_runs_only(drifted):
    found = waiting(drifted)
    Benchmark.objects.update(full_runs_only_at=AS_OF, full_runs_only_reason="a new harness")
    with refused(Conflict, "full_runs_only", match="a new harness"):
        proposed(Benchmark.objects.get())
    with refused(Conflict, "outdated", match="full runs only: a new harness"):
        approved(found)


def test_unsuited(db):
    """16 of 112 agents pass anything: no pass rate is above 16/112 = 14%."""
    load_text(csv_text(passing(FIRST)))
    recomputed()
    load_text(csv_text({f"z{i:02d}": "0" * 20 for i in range(96)}))
    with refused(Conflict, "unsuited", match="are needed"):
        proposed(Benchmark.objects.get())


def test_too_few_complete(drifted):
    recomputed()
    Policy.objects.create(benchmark=drifted, number=2, subset_from=40)
    with refused(Conflict, "too_few_complete", match=r"32 agents are complete; .* from 40 on"):
        proposed(drifted)


def test_another_strategy_has_no_hysteresis(drifted):
    recomputed()
    Policy.objects.create(benchmark=drifted, number=2, strategy="spread")
    found = proposed(drifted)
    plain, other = found.content["variants"]["plain"], found.content["variants"]["hysteresis"]
    assert (len(plain["tasks"]), found.content["strategy"]) == (9, "spread")
    assert other["reason"] == "hysteresis is a rule of the band; the strategy spread chooses by other marks"
    with refused(Conflict, "no_such_variant", match="hysteresis has no subset: hysteresis is a rule"):
        approved(found, "hysteresis")
    with refused(Conflict, "no_such_variant", match="no variant 'other'; there are "):
        approved(found, "other")
    assert approved(found).strategy == "spread"


def test_a_retired_task_outdates_the_proposal(drifted):
    found = waiting(drifted)
    Task.objects.filter(name="t09").update(retired_at=LATER, retired_reason="broken")
    Benchmark.objects.update(data_version=3)
    with refused(Conflict, "outdated", match="retired since: t09"):
        approved(found)
    assert Comparison(found).obstacle == "retired since: t09"


def test_a_changed_policy_outdates_the_proposal(drifted):
    found = waiting(drifted)
    Policy.objects.create(benchmark=drifted, number=2, band_hi=0.8)
    with refused(Conflict, "outdated", match="the policy was changed since"):
        approved(found)


def test_more_outcomes_do_not_outdate_it(drifted):
    found = waiting(drifted)
    load_text(csv_text({"new": "1" * 20}))
    assert Comparison(Reselection.objects.get()).n_versions_since == 1
    assert tasks_of(approved(found)) == S_PLAIN


def test_one_is_open_at_a_time(drifted):
    older, newer = waiting(drifted), proposed(drifted, as_of=LATER)
    older.refresh_from_db()
    assert (older.status, older.decided_reason) == ("outdated", "Proposed anew: pass rates moved")
    assert open_proposal(drifted) == newer
    with refused(Conflict, "not_proposed", match="is outdated already"):
        approved(older)


def test_a_slow_proposal_does_not_replace_one_on_later_outcomes(drifted, monkeypatch):
    original, newer = services.compute_reselection, []

    def slow(**options):
        monkeypatch.setattr(services, "compute_reselection", original)
        found = original(**options)
        load_text(csv_text({"new": "1" * 20}))
        newer.append(proposed(drifted))
        return found

    monkeypatch.setattr(services, "compute_reselection", slow)
    with refused(Conflict, "proposed_meanwhile"):
        proposed(drifted)
    assert open_proposal(drifted) == newer[0]


def test_a_slow_proposal_of_a_version_that_was_replaced(drifted, monkeypatch):
    original = services.compute_reselection

    def slow(**options):
        monkeypatch.setattr(services, "compute_reselection", original)
        found = original(**options)
        approved(waiting(drifted))
        return found

    monkeypatch.setattr(services, "compute_reselection", slow)
    with refused(Conflict, "outdated", match="activated meanwhile"):
        proposed(drifted)


def test_a_rejected_proposal_changes_nothing(drifted):
    found = waiting(drifted)
    before = Benchmark.objects.get().data_version
    told = reject(reselection=found, by=None, reason="not yet", as_of=LATER)
    assert (told.status, told.decided_reason, told.decided_at) == ("rejected", "not yet", LATER)
    assert Benchmark.objects.get().data_version == before
    assert active_subset(drifted).number == 1
    with refused(Conflict, "not_proposed", match="is rejected already: not yet"):
        approved(found)


@pytest.mark.parametrize("act", ["propose", "approve", "reject"])
def test_a_reason_is_needed(drifted, act):
    told = {"by": None, "reason": " ", "as_of": LATER}
    if act == "propose":
        with refused(Refusal, "reason_missing"):
            propose(benchmark=drifted, **told)
        return
    found = waiting(drifted)
    more = {"variant": "plain"} if act == "approve" else {}
    with refused(Refusal, "reason_missing"):
        getattr(reselections, act)(reselection=found, **more, **told)
    assert open_proposal(drifted) == found


# ------------------------------------------------------------------------------------------- several at once


def at_once(*calls):
    def run(call):
        try:
            return call()
        except Exception as error:
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


@pytest.mark.django_db(transaction=True)
def test_two_approvals_at_once_activate_one():
    found = waiting(moved())
    variants = ["plain", "hysteresis"] * 2
    results = at_once(*(lambda variant=variant: approved(found, variant) for variant in variants))
    codes = sorted(getattr(one, "code", type(one).__name__) for one in results)
    assert codes == ["TaskSubset"] + ["not_proposed"] * 3
    assert list(TaskSubset.objects.order_by("number").values_list("number", flat=True)) == [1, 2]
    assert Event.objects.filter(kind="subset.activated").count() == 1


def test_an_approval_while_a_board_is_computed(drifted, monkeypatch):
    """The worker that began before publishes what it read, or nothing; the board after is on the new one."""
    found, original = waiting(drifted), services.compute_standings

    def slow(*arguments):
        monkeypatch.setattr(services, "compute_standings", original)
        approved(found)
        return original(*arguments)

    monkeypatch.setattr(services, "compute_standings", slow)
    board, _ = recompute(benchmark=drifted, as_of=AS_OF)
    assert (board.subset.number, in_subset(board)) == (1, S_FIRST)
    after = recomputed()
    assert (after.number, after.subset.number, in_subset(after)) == (board.number + 1, 2, S_PLAIN)


def test_a_worker_that_is_overtaken_publishes_nothing_on_top(drifted, monkeypatch):
    found, original, newer = waiting(drifted), services.compute_standings, []

    def slow(*arguments):
        monkeypatch.setattr(services, "compute_standings", original)
        approved(found)
        newer.append(recomputed())
        return original(*arguments)

    monkeypatch.setattr(services, "compute_standings", slow)
    assert recompute(benchmark=drifted, as_of=AS_OF) == (newer[0], False)
    assert latest_board(drifted).subset.number == 2


def test_a_reader_of_earlier_data_keeps_the_version_of_then(drifted, monkeypatch):
    """Approved between the reading of the data and that of the subset: the board is one of before."""
    found, original = waiting(drifted), services.get_or_compute_subset

    def slow(reader):
        monkeypatch.setattr(services, "get_or_compute_subset", original)
        approved(found)
        return original(reader)

    monkeypatch.setattr(services, "get_or_compute_subset", slow)
    board = recomputed()
    assert (board.subset.number, board.data_version) == (1, 2)
    assert recomputed().subset.number == 2


# ---------------------------------------------------------------------------------------------------- kill -9

KILLED = """
import os, signal
import django
django.setup()
from datetime import datetime
from leaderboard.operations import reselections
from leaderboard.operations.models import Reselection
step, done = {step!r}, {done!r}
original = getattr(reselections, step)
def die(*arguments, **options):
    if done:
        original(*arguments, **options)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(reselections, step, die)
reselections.approve(reselection=Reselection.objects.get(), variant="plain", by=None, reason="agreed",
    as_of=datetime.fromisoformat({as_of!r}))
"""
STEPS = [
    ("bump_data_version", False),
    ("activate", False),
    ("activate", True),
    ("_decide", False),
    ("emit", True),
]


def everything():
    models = (TaskSubset, SubsetTask, Event, Reselection, Benchmark, Calibration)
    return [list(model.objects.order_by("pk").values()) for model in models]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_killed_approval_leaves_the_old_version_whole():
    found = waiting(moved())
    before = everything()
    named = connection.settings_dict["NAME"]
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "tests.leaderboard.same_database", "BST_DB": named}
    for step, done in STEPS:
        code = KILLED.format(step=step, done=done, as_of=LATER.isoformat())
        ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=False)
        assert ended.returncode == -signal.SIGKILL
        assert everything() == before
    assert approved(found).number == 2
