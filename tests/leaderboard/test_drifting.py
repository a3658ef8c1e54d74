"""Alerts and what they ask for: jumps, shifts and broken harnesses of a simulated benchmark, to their end."""

from datetime import timedelta

import pytest
from django.core.management import call_command

from leaderboard.accounts.models import User
from leaderboard.catalog.models import Benchmark
from leaderboard.errors import Conflict
from leaderboard.operations.corrections import confirm, unload_latest
from leaderboard.operations.drifting import close_alert, update_alerts
from leaderboard.operations.models import Alert, Event, JobRun, Notification, RerunRequest
from leaderboard.operations.reruns import close_due, draw_validation_runs, open_drift_request
from leaderboard.studies.board_inputs import subset_versions
from leaderboard.studies.models import DriftCheck
from leaderboard.studies.queries import active_subset
from leaderboard.studies.records import Reader
from leaderboard.submissions.models import Submission
from selection.history import is_later
from tests.leaderboard.world import World, token
from tests.refusals import refused
from tests.toys import AS_OF, board_of, csv_text, graded, load_text, recomputed

JUMP = 3.0


def looked(world):
    return update_alerts(benchmark=world.benchmark, as_of=world.now)


def alarmed(world, **more):
    """Let better agents come until the jump is noticed; return their names."""
    names = []
    while not Alert.objects.filter(monitor="capability jump", level="alert").exists():
        assert len(names) < 10
        name, assignment = world.newcomer(JUMP, **more)
        assert assignment.mode == "subset"
        names.append(name)
        if len(names) > 4:
            looked(world)
    return names


def deliver_all(world, request):
    for one in request.agents.select_related("agent"):
        world.wait(0.01)
        assert world.run(one.agent.name).status == "fulfilled"


def later_agents():
    """Who came after the version in use was fixed, by name."""
    benchmark = Benchmark.objects.get()
    subset = active_subset(benchmark)
    record = Reader(benchmark).now(subset).record
    version = subset_versions(subset)[-1]
    return [name for name, is_so in zip(record.table.agents, is_later(record, version), strict=True) if is_so]


def test_results_that_are_loaded_again_bring_no_later_agent(db):
    """The whole file, and one of its agents; `half` is no founder, as it lacks tasks."""
    agents = graded(20, 40, seed=3) | {"half": "10" * 10 + "." * 20}
    benchmark = board_of(csv_text(agents)).benchmark
    assert active_subset(benchmark) is not None
    unload_latest(benchmark=benchmark, reason="wrong", as_of=AS_OF)
    load_text(csv_text(agents))
    recomputed()
    assert later_agents() == []
    load_text(csv_text({"half": "01" * 10, "a00": "1" * 40}), replace=True)
    recomputed()
    assert later_agents() == []
    load_text(csv_text({"new": "1" * 40}))
    recomputed()
    assert later_agents() == ["new"]


# ------------------------------------------------------------------------------------------- from end to end


@pytest.mark.slow
def test_a_capability_jump_to_its_end(db):
    world = World()
    token("grace@example.org", "operate")
    User.objects.create_user("staff@example.org", is_staff=True)
    board = world.board()
    assert board.phase == "ongoing"
    names = alarmed(world)
    alert, request = Alert.objects.get(level="alert"), RerunRequest.objects.get()
    assert (alert.monitor, alert.request, request.kind, request.status) == (
        "capability jump",
        request,
        "drift",
        "open",
    )
    asked = set(request.agents.values_list("agent__name", flat=True))
    assert asked <= set(names)
    assert len(asked) == min(8, len(names))
    assert request.deadline == world.now + timedelta(days=21)

    told = Event.objects.get(kind="drift.alert", payload__monitor="capability jump", payload__level="alert")
    assert (told.payload["subset"], told.payload["link"]) == (1, "/b/toy/health")
    assert told.payload["evidence"]["reason"].startswith("pass rates in the band rose since n0")
    emails = Notification.objects.filter(event=told).values_list("email", flat=True)
    assert sorted(emails) == ["grace@example.org", "staff@example.org"]
    asked = Event.objects.get(kind="rerun.requested").payload
    (mine,) = (one for one in asked["agents"] if one["agent"] == names[0])
    assigned = set(world.benchmark.tasks.values_list("name", flat=True)) - set(mine["tasks"])
    delivered = Submission.objects.get(agent__name=names[0])
    assert assigned == set(
        world.benchmark.tasks.filter(pk__in=delivered.asked).values_list("name", flat=True)
    )
    assert asked["alerts"][0]["monitor"] == "capability jump"

    # the phase follows, and a new agent is asked for everything
    assert world.board().phase == "revalidating"
    late = [world.newcomer(JUMP)[1] for _ in range(11)]
    assert {(one.mode, len(one.tasks), one.request) for one in late} == {("full", 40, request)}
    assert "closed" not in looked(world)  # quiet, but the runs are awaited
    assert Alert.objects.get(monitor="capability jump").closed_at is None

    deliver_all(world, request)
    said = looked(world)
    assert f"request {request.pk} is fulfilled" in said
    assert "capability jump: closed, quiet again" in said
    request.refresh_from_db()
    assert request.status == "fulfilled"
    assert not request.agents.filter(arrived_at=None).exists()
    assert world.newcomer(JUMP)[1].mode == "subset"
    assert world.board().phase == "ongoing"
    assert Event.objects.filter(kind="rerun.requested").count() == 1


@pytest.mark.slow
def test_a_new_scaffold_that_costs_more(db):
    """Dearer runs alarm and ask for none, a new scaffold only warns; asked by hand, its first is there."""
    world = World(cost=0.5)
    world.board()
    names = [world.newcomer(scaffold="Tree", cost=3.0)[0] for _ in range(13)]
    looked(world)
    raised = dict(Alert.objects.values_list("monitor", "level"))
    assert (raised["cost per task"], raised["scaffold novelty"]) == ("alert", "warn")
    assert not Alert.objects.exclude(request=None).exists()
    assert not RerunRequest.objects.exists()
    request = open_drift_request(benchmark=world.benchmark, reason="dearer", as_of=world.now)
    asked = {one.agent.name: one for one in request.agents.select_related("agent")}
    drawn = [one for one in asked.values() if one.sampled]
    assert [one.inclusion for one in drawn] == [8 / 13] * 8
    assert names[0] in asked  # the first of its scaffold, drawn or not
    assert all(one.inclusion == 1.0 for one in asked.values() if not one.sampled)
    # a full run costs 40 tasks at 1.50 each; the board of before knows nothing of newcomers
    assert request.cost_usd is None
    deliver_all(world, request)
    for _ in range(11):
        world.newcomer(scaffold="Tree", cost=3.0)
    assert "cost per task: closed, quiet again" in looked(world)


@pytest.mark.slow
def test_a_broken_harness_is_repaired(db):
    """It warns by the word of submitters, and asks for full runs once an operator confirmed what they say."""
    world = World()
    world.board()
    whole = {world.newcomer()[0] for _ in range(3)}
    names = [world.newcomer(fails=0.4)[0] for _ in range(3)]
    looked(world)
    alert = Alert.objects.get(monitor="harness failures")
    assert (alert.level, alert.request) == ("warn", None)
    for delivered in Submission.objects.filter(agent__name__in=names):
        confirm(uuid=delivered.uuid, reason="the sandbox was full", as_of=world.now)
    looked(world)
    alert.refresh_from_db()
    assert (alert.level, alert.request.status) == ("alert", "open")
    assert set(alert.request.agents.values_list("agent__name", flat=True)) == whole
    deliver_all(world, alert.request)
    for name in names:  # what failed is asked for again, with the rest
        world.wait(0.01)
        assert world.run(name).status == "fulfilled"
    assert "harness failures: closed" in looked(world)


@pytest.mark.slow
def test_a_quiet_year(db):
    """Fifty agents like those before, boards and looks on the way, one in five drawn for a full run."""
    world = World(seed=11)
    phases, drawn = set(), 0
    for week in range(50):
        world.wait(6)
        world.newcomer()
        if week % 5 == 4:
            phases.add(world.board().phase)
            looked(world)
        if week % 2:
            draw_validation_runs(benchmark=world.benchmark, as_of=world.now)
            request = RerunRequest.objects.filter(status="open").first()
            drawn += request is not None
            if request:
                deliver_all(world, request)
        close_due(as_of=world.now)
    assert Alert.objects.filter(level="alert").count() == 0
    assert phases == {"ongoing"}
    assert set(RerunRequest.objects.values_list("kind", "status")) == {("validation", "fulfilled")}
    assert drawn == 50 // 5
    assert DriftCheck.objects.latest("id").result["n_later"] == 50


# ------------------------------------------------------------------------------------------------- by hand


@pytest.fixture
def watched(toy, monkeypatch):
    """Say by hand what the monitors say: {monitor: state}, each time on new data."""
    from leaderboard.operations import drifting
    from leaderboard.studies.models import TaskSubset
    from tests.toys import AS_OF, first_board

    first_board(toy)
    said = {}

    def check(*, benchmark, as_of):
        Benchmark.objects.filter(pk=benchmark.pk).update(data_version=benchmark.data_version + 1)
        benchmark.refresh_from_db()
        monitors = [
            {
                "name": name,
                "state": state,
                "reason": f"it is {state}",
                "evidence": evidence,
                "advice": f"look at {name}",
            }
            for name, (state, evidence) in said.items()
        ]
        made = DriftCheck.objects.create(
            benchmark=benchmark,
            policy=benchmark.policies.latest("number"),
            rules="",
            data_version=benchmark.data_version,
            estimator_version=0,
            result={"monitors": monitors},
            created_at=as_of,
            subset=TaskSubset.objects.order_by("-number").first(),
        )
        return made, True

    monkeypatch.setattr(drifting, "check_drift", check)

    def say(**states):
        said.update({name: told if isinstance(told, tuple) else (told, {}) for name, told in states.items()})
        benchmark = Benchmark.objects.get(pk=toy.pk)
        return update_alerts(benchmark=benchmark, as_of=AS_OF)

    return say


def test_a_level_only_rises_and_is_told_once_each(watched):
    assert watched(cost="warn", jump="ok") == "cost: warn"
    assert watched(cost="alert") == "cost: alert"
    assert watched(cost="warn") == "no change"
    alert = Alert.objects.get()
    assert (alert.level, alert.evidence["state"], alert.latest.pk) == ("alert", "warn", latest_check())
    assert alert.opened_by.pk < alert.latest.pk
    told = Event.objects.filter(kind="drift.alert").order_by("id")
    assert list(told.values_list("payload__level", flat=True)) == ["warn", "alert"]
    assert watched(cost="insufficient") == "cost: closed, quiet again: it is insufficient"
    assert watched(cost="warn") == "cost: warn"
    assert Alert.objects.count() == 2


def latest_check():
    return DriftCheck.objects.latest("id").pk


def test_each_change_shows(watched, toy):
    before = Benchmark.objects.get().shown_version
    watched(cost="ok")
    assert Benchmark.objects.get().shown_version == before
    watched(cost="warn")
    assert Benchmark.objects.get().shown_version == before + 1


def test_nobody_can_be_asked_where_all_ran_everything(watched):
    assert watched(cost="alert") == "cost: alert"
    assert Alert.objects.get().request is None
    assert not RerunRequest.objects.exists()


def test_what_was_decided_stays_closed_until_it_was_quiet_or_says_more(watched, toy):
    from tests.toys import AS_OF

    watched(cost="warn")
    alert = close_alert(alert=Alert.objects.get(), by=None, reason="prices rose", as_of=AS_OF)
    assert alert.closed_reason == "prices rose"
    with refused(Conflict, "alert_closed"):
        close_alert(alert=alert, by=None, reason="again", as_of=AS_OF)
    assert watched(cost="warn") == "no change"
    assert watched(cost="alert") == "cost: alert"
    close_alert(alert=Alert.objects.latest("id"), by=None, reason="prices rose", as_of=AS_OF)
    assert watched(cost="alert") == "no change"
    watched(cost="ok")
    assert watched(cost="alert") == "cost: alert"


def test_lost_fidelity_asks_once_for_a_reselection(watched):
    assert watched(**{"rank fidelity": ("alert", {"rho_full": 0.8})}) == "rank fidelity: alert"
    assert not JobRun.objects.exists()
    assert watched(**{"rank fidelity": ("alert", {"rho_full": 0.7})}) == "a reselection is asked for"
    run = JobRun.objects.get()
    assert (run.kind, run.lane, run.status) == ("reselect", "long", "queued")
    assert run.about == f"alert {Alert.objects.get().pk}"
    JobRun.objects.update(status="done")
    assert watched(cost="ok") == "no change"


def test_a_solved_subset_of_an_unsolved_benchmark_asks_for_another(watched):
    assert watched(saturation=("warn", {"subset_alone": False})) == "saturation: warn"
    assert watched(saturation=("warn", {"subset_alone": True})) == "a reselection is asked for"
    assert JobRun.objects.get().about == f"alert {Alert.objects.get().pk}"
    assert watched(saturation=("warn", {"subset_alone": True})) == "no change"
    assert Alert.objects.get().level == "warn"


def test_the_admin_lists_every_open_alert_as_something_to_do(watched, toy):
    from leaderboard.admin.dashboard import Dashboard, summary
    from tests.leaderboard.test_reruns import subset_runs
    from tests.toys import AS_OF

    def desk():
        return Dashboard(Benchmark.objects.all(), is_staff=True, as_of=AS_OF)

    watched(cost="ok")
    assert (desk().steps, summary(desk())) == ([], "Nothing needs a decision.")
    watched(cost="warn")
    ((text, _, url),) = desk().steps
    assert text == "toy: cost, warn since 2026-06-01: look at cost."
    assert url == f"/admin/operations/alert/{Alert.objects.get().pk}/change/"
    assert summary(desk()) == "1 thing to do."
    subset_runs(toy, 3)
    watched(cost="alert")
    assert [text for text, _, _ in desk().steps] == [
        "toy: cost, alert since 2026-06-01: wait for full runs, until 2026-06-22."
    ]
    watched(cost="ok")
    RerunRequest.objects.update(status="expired", closed_at=AS_OF)
    assert [label for _, label, _ in desk().steps] == ["Propose"]
    Alert.objects.update(closed_at=AS_OF, closed_reason="seen")
    assert summary(desk()) == "Nothing needs a decision."


def test_an_earlier_look_changes_nothing(watched, toy, monkeypatch):
    from leaderboard.operations import drifting
    from tests.toys import AS_OF

    watched(cost="warn")
    first = DriftCheck.objects.get()
    watched(cost="ok")
    monkeypatch.setattr(drifting, "check_drift", lambda **_: (first, False))
    assert update_alerts(benchmark=toy, as_of=AS_OF) == "another look has seen later data"
    assert not Alert.objects.filter(closed_at=None).exists()


def test_alerts_on_a_subset_that_is_in_use_no_more_are_closed(watched, toy):
    from leaderboard.studies.models import TaskSubset

    watched(cost="alert")
    copied = TaskSubset.objects.values().get() | {"number": 2}
    del copied["id"]
    TaskSubset.objects.create(**copied)
    assert watched(cost="warn") == "cost: closed, subset 1 is no longer in use; cost: warn"
    assert Alert.objects.get(closed_at=None).subset.number == 2


def test_without_outcomes_nothing_is_watched(db):
    from leaderboard.catalog.services import get_or_create_benchmark
    from tests.toys import AS_OF

    benchmark, _ = get_or_create_benchmark(slug="new", title="New")
    assert update_alerts(benchmark=benchmark, as_of=AS_OF) == "there are no outcomes yet"


# ---------------------------------------------------------------------------------------- alerts and requests


def test_an_alert_joins_the_open_request_and_full_runs_only_opens_none(watched, toy):
    from tests.leaderboard.test_reruns import subset_runs
    from tests.toys import AS_OF

    subset_runs(toy, 3)
    Benchmark.objects.update(full_runs_only_at=AS_OF, full_runs_only_reason="an audit")
    assert watched(cost="alert") == "cost: alert"
    assert not RerunRequest.objects.exists()
    Benchmark.objects.update(full_runs_only_at=None, full_runs_only_reason="")
    assert "asks for full runs until 2026-06-22" in watched(cost="alert")
    assert "asks for full runs" in watched(jump="alert")
    assert RerunRequest.objects.get().alerts.count() == 2
    assert Event.objects.filter(kind="rerun.requested").count() == 1


def test_a_field_that_moves_asks_for_no_runs_where_tasks_come_in_batches(watched, toy, unreplayed):
    from tests.leaderboard.test_reruns import subset_runs

    subset_runs(toy, 3)
    call_command("policy", "toy", "--set", "assignment=staged")
    moved = {"capability jump": "alert", "band erosion": "alert", "scaffold novelty": "alert"}
    watched(**moved)
    assert Alert.objects.filter(level="alert", request=None).count() == 3
    assert not RerunRequest.objects.exists()
    assert "asks for full runs" in watched(calibration="alert")
    assert [one.monitor for one in RerunRequest.objects.get().alerts.all()] == ["calibration"]


def test_an_expired_request_leaves_the_alert_and_a_notice(watched, toy):
    from leaderboard.boards.queries import head_of
    from leaderboard.operations.services import recompute
    from tests.leaderboard.test_reruns import subset_runs
    from tests.toys import AS_OF

    subset_runs(toy, 3)
    watched(cost="alert")
    before = recompute(benchmark=toy, as_of=AS_OF)[0]
    assert before.phase == "revalidating"
    over = AS_OF + timedelta(days=21)
    assert "3 runs did not arrive in time" in close_due(as_of=over)
    after = recompute(benchmark=toy, as_of=over)[0]
    assert (after.phase, after.number) == ("ongoing", before.number + 1)
    (notice,) = [one for one in head_of(after).notices if "revalidated" in one]
    assert notice.startswith("The subset was not revalidated since 2026-06-01: a monitor alarmed (cost)")
    # quiet or not, it stays open: an operator decides
    assert "closed" not in watched(cost="ok")
    assert RerunRequest.objects.count() == 1
    again = open_drift_request(benchmark=toy, reason="once more", as_of=over)
    assert Alert.objects.get().request == again
    assert recompute(benchmark=toy, as_of=over)[0].phase == "revalidating"
