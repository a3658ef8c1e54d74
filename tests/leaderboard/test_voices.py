"""What all agents share is learnt from those vouched for, and from two agents of any other account."""

import numpy as np
import pytest
from django.core.management import call_command
from django.test import Client

from leaderboard.accounts.models import User
from leaderboard.boards.queries import standings_of
from leaderboard.catalog.models import Benchmark, Membership, Policy
from leaderboard.errors import Conflict
from leaderboard.operations import drifting, events
from leaderboard.operations.corrections import trust_account, verify, withdraw
from leaderboard.operations.models import Alert, Event, RerunRequest
from leaderboard.operations.people import accept_invitation, invite
from leaderboard.operations.reruns import close_answered_requests, open_drift_request
from leaderboard.operations.services import check_drift, measure_variance
from leaderboard.pages.elsewhere import first_of
from leaderboard.pages.ordered_outcomes import ordered_outcomes
from leaderboard.studies.models import TaskSubset
from leaderboard.studies.outcomes import read_outcomes
from leaderboard.studies.queries import active_subset
from leaderboard.studies.records import Reader
from leaderboard.submissions.models import AccountTrust, Submission
from leaderboard.submissions.queries import trusted_accounts
from tests.kept import stored
from tests.leaderboard.test_receipts import deliver, token
from tests.refusals import refused
from tests.toys import AS_OF, board_of, csv_text, graded, in_subset, lines_of, load_text, recomputed

N_TASKS = 60
ATTACKER = "mallory@example.org"


def run(by, name, outcomes, *, tasks=None):
    """Deliver a full run, one trial a task."""
    tasks = tasks or [f"t{j:02d}" for j in range(len(outcomes))]
    rows = [{"task": t, "trial": 1, "outcome": float(o)} for t, o in zip(tasks, outcomes, strict=True)]
    return deliver(by, rows, {"name": name, "scaffold": "Loop", "model": f"M {name}"})


def toy_board(n=16, *, seed=0):
    return board_of(csv_text(graded(n, N_TASKS, seed=seed)))


def test_sources_of_error_are_those_of_agents_vouched_for(db):
    """One row by a judge of their own would make every agent's interval ten times as long."""

    def learnt():
        study, _ = measure_variance(benchmark=Benchmark.objects.get(), as_of=AS_OF)
        return [study.result[name] for name in ("components", "facets", "levels", "n_rows")]

    toy_board()
    before = learnt()
    rows = [{"task": f"t{j:02d}", "trial": 1, "outcome": float(j % 2)} for j in range(N_TASKS)]
    rows.append({"task": "t00", "trial": 1, "outcome": 1.0, "judge": "theirs"})
    deliver(token(ATTACKER), rows, {"name": "x", "scaffold": "Loop", "model": "M x"})
    assert learnt() == before


def anti_correlated(tasks_of_subset, n):
    """Full runs that are the better on S the worse they are outside."""
    rng = np.random.default_rng(7)
    inside = np.array([f"t{j:02d}" in tasks_of_subset for j in range(N_TASKS)])
    for i in range(n):
        p = (i + 1) / (n + 1)
        yield (rng.random(N_TASKS) < np.where(inside, p, 1 - p)).astype(int)


def no_ops(n):
    """Runs that pass one task or two, so that none is a copy of another."""
    pairs = [(a, b) for a in range(N_TASKS) for b in range(a, N_TASKS)]
    for a, b in pairs[:n]:
        outcomes = np.zeros(N_TASKS, int)
        outcomes[[a, b]] = 1
        yield outcomes


def thirty_no_ops():
    """A board of 16 agents, and thirty runs of one account that pass next to nothing."""
    toy_board()
    by = token(ATTACKER)
    for i, outcomes in enumerate(no_ops(30)):
        run(by, f"x{i:02d}", outcomes)


def monitors():
    check, _ = check_drift(benchmark=Benchmark.objects.get(), as_of=AS_OF)
    return {one["name"]: one for one in check.result["monitors"]}


def test_three_full_runs_of_one_account_fix_no_subset(real_data, db):
    """Terminal-Bench, with what its harness lost for failures: 13 agents, and three runs that favour one."""
    benchmark = Benchmark.objects.create(slug="toy", title="Toy")
    Policy.objects.create(benchmark=benchmark, number=1, missing="zero", subset_from=16)
    call_command("load", str(real_data / "terminal_bench_core_011.csv.gz"), benchmark="toy")
    before = Reader(benchmark).now(None)
    assert before.n_complete == 13
    means = before.record.table.means
    weak = (means[0] < 0.5) & (means > 0).any(axis=0)  # what nobody passed would be held
    by = token(ATTACKER)
    for i in range(3):
        outcomes = np.where(np.arange(weak.size) == i, ~weak, weak)  # none is a copy of another
        run(by, f"x{i}", outcomes, tasks=before.record.table.tasks)
    board = recomputed()
    assert active_subset(benchmark) is None
    assert board.n_complete == 15
    lines = lines_of(board)
    assert all(lines[f"x{i}"].at["full"].rank for i in range(3))


def test_twelve_anti_correlated_runs_of_one_account_alert_nothing(db):
    board = toy_board()
    by = token(ATTACKER)
    for i, outcomes in enumerate(anti_correlated(in_subset(board), 12)):
        run(by, f"x{i:02d}", outcomes)
    told = monitors()["rank fidelity"]
    assert told["state"] == "insufficient"
    assert told["reason"].startswith("2 full runs since the ranking tasks were chosen from 16 agents")


def test_thirty_no_ops_of_one_account_erode_no_band(db):
    stored("thirty no-ops", thirty_no_ops)
    told = monitors()["band erosion"]
    assert told["state"] == "insufficient"
    assert TaskSubset.objects.count() == 1


def test_pass_rates_and_calibration_take_two_of_them_and_rank_all(db):
    stored("thirty no-ops", thirty_no_ops)
    board = recomputed()
    assert (board.n_complete, board.entries.count()) == (18, 46)
    assert all(line.at["full"].rank for line in lines_of(board).values())
    page = Client().get("/b/toy/tasks").content.decode()
    assert (
        "Pass rates are means over the 18 agents with results on at least 95% of the tasks, at most two per "
        "untrusted account. 28 others are left out."
    ) in page
    heard = complete()
    now = read_outcomes(Benchmark.objects.get())
    means = {agent.name: row for agent, row in zip(now.agents, now.means, strict=True)}
    by_hand = np.mean([means[name] for name in heard], axis=0)
    assert ordered_outcomes(Benchmark.objects.get()).rates == pytest.approx(by_hand)


# ------------------------------------------------------------------------------------------- order of events


def full_runs(by, n, *, first=0):
    for name, marks in list(graded(20, N_TASKS, seed=3).items())[first : first + n]:
        run(by, f"x{name}", [int(mark) for mark in marks])


def trust(email=ATTACKER, *, trusted=True):
    account = User.objects.get(email=email)
    options = {"reason": "our own CI", "as_of": AS_OF, "trusted": trusted}
    trust_account(benchmark=Benchmark.objects.get(), account=account, **options)


def complete():
    benchmark = Benchmark.objects.get()
    record = Reader(benchmark).now(active_subset(benchmark)).record
    return [name for name, there in zip(record.table.agents, record.complete, strict=True) if there]


def one_agent():
    load_text(csv_text(graded(1, N_TASKS, seed=9)))


def sixteen_full_runs():
    one_agent()
    full_runs(token(ATTACKER), 16)


@pytest.fixture
def tasks_alone(db):
    """One agent that an operator loaded; the rest is delivered."""
    one_agent()


@pytest.mark.parametrize("watched", [True, False])
def test_the_subset_is_fixed_when_the_account_is_trusted_and_stays_when_it_no_longer_is(db, watched):
    stored("sixteen full runs", sixteen_full_runs)
    if watched:
        board = recomputed()
        assert board.n_complete == 3
        assert (
            "14 full runs do not count towards choosing the ranking tasks. Only two agents of an account "
            "count, unless an operator trusts the account."
        ) in standings_of(board).notices
        assert active_subset(Benchmark.objects.get()) is None
    trust()
    version = Benchmark.objects.get().data_version
    if watched:
        assert recomputed().n_complete == 17
    trust(trusted=False)
    board = recomputed()
    (subset,) = TaskSubset.objects.all()
    assert (subset.data_version, subset.n_complete, board.n_complete) == (version, 17, 3)
    assert board.subset == subset
    assert monitors()["rank fidelity"]["state"] == "insufficient"


def test_trust_after_the_subset_is_fixed_changes_none_of_its_tasks(db, by_ridge):
    before = toy_board()
    by = token(ATTACKER)
    full_runs(by, 6)
    assert recomputed().n_complete == 18
    trust()
    board = recomputed()
    assert (board.n_complete, in_subset(board), board.subset) == (22, in_subset(before), before.subset)
    assert len(board.calibration.agents) == 22  # fitted anew where five more teach
    with refused(Conflict, "trust_unchanged", match=r"mallory@example\.org is trusted on toy already"):
        trust()


def test_a_withdrawal_does_not_promote_a_third_and_a_verified_one_takes_no_place(tasks_alone):
    by = token(ATTACKER)
    full_runs(by, 3)
    assert complete() == ["a00", "xa00", "xa01"]
    first, _, third = Submission.objects.filter(loaded=False).order_by("id")
    withdraw(uuid=first.uuid, token=by, reason="a second try", as_of=AS_OF)
    assert complete() == ["a00", "xa01"]
    verify(uuid=third.uuid, note="ran it again", as_of=AS_OF)
    assert complete() == ["a00", "xa01", "xa02"]
    verify(uuid=third.uuid, note="", as_of=AS_OF, verified=False)
    assert complete() == ["a00", "xa01"]


def test_nor_does_it_among_those_that_ran_the_subset_alone(db):
    board = toy_board()
    by, asked = token(ATTACKER), in_subset(board)
    for i in range(3):
        run(by, f"x{i}", [(i + j) % 2 for j in range(len(asked))], tasks=asked)

    def heard():
        benchmark = Benchmark.objects.get()
        record = Reader(benchmark).now(active_subset(benchmark)).record
        names = zip(record.table.agents, record.voice, strict=True)
        return [name for name, has_voice in names if has_voice and name.startswith("x")]

    assert heard() == ["x0", "x1"]
    first = Submission.objects.get(agent__name="x0", loaded=False)
    run(by, "x0", [1], tasks=[f"t{N_TASKS - 1:02d}"])
    withdraw(uuid=first.uuid, token=by, reason="a second try", as_of=AS_OF)
    assert heard() == ["x0", "x1"]


def test_those_that_finished_first_have_the_say_whoever_came_first(tasks_alone):
    by, halves = token(ATTACKER), [f"t{j:02d}" for j in range(N_TASKS // 2)]
    runs = {name: [int(m) for m in marks] for name, marks in graded(3, N_TASKS, seed=3).items()}
    run(by, "late", runs["a00"][: len(halves)], tasks=halves)
    run(by, "one", runs["a01"])
    run(by, "two", runs["a02"])
    rest = [f"t{j:02d}" for j in range(N_TASKS // 2, N_TASKS)]
    run(by, "late", runs["a00"][len(halves) :], tasks=rest)
    assert complete() == ["a00", "one", "two"]


# --------------------------------------------------------------------------------------- reruns and receipts


def test_a_full_run_that_was_asked_for_has_arrived_whoever_vouches(db):
    board = toy_board()
    by, asked = token(ATTACKER), in_subset(board)
    run(by, "drawn", [j % 2 for j in range(len(asked))], tasks=asked)
    open_drift_request(benchmark=Benchmark.objects.get(), reason="to be sure", as_of=AS_OF)
    full_runs(by, 2)
    rest = [f"t{j:02d}" for j in range(N_TASKS) if f"t{j:02d}" not in asked]
    run(by, "drawn", [0] * len(rest), tasks=rest)
    assert "drawn" not in complete()
    assert "all runs have arrived" in close_answered_requests(benchmark=Benchmark.objects.get(), as_of=AS_OF)
    assert RerunRequest.objects.get().status == "fulfilled"


def test_the_receipt_of_a_third_full_run_says_that_nothing_is_learnt_from_it(tasks_alone, capsys):
    by = token(ATTACKER)
    run_of = {name: [int(m) for m in marks] for name, marks in graded(6, N_TASKS, seed=3).items()}
    told = [run(by, f"x{name}", marks)["warnings"] for name, marks in run_of.items()]
    said = (
        "your account has 2 full runs already: this agent is ranked, but pass rates, calibration and alerts "
        "leave it out until an operator trusts the account or confirms the submission"
    )
    assert [said in one for one in told] == [False, False, True, True, True, True]
    load_text(csv_text(graded(1, N_TASKS, seed=11, prefix="b")))
    call_command("drift", "toy")
    trust()
    assert said not in run(by, "after", [1, 0] * (N_TASKS // 2))["warnings"]


def test_it_says_so_too_where_a_subset_is_in_use(db):
    toy_board()
    by = token(ATTACKER)
    runs = graded(3, N_TASKS, seed=3).items()
    told = [run(by, f"x{name}", [int(m) for m in marks])["warnings"] for name, marks in runs]
    assert [any("2 full runs already" in one for one in warnings) for warnings in told] == [
        False,
        False,
        True,
    ]


def test_a_load_says_where_one_account_submits_everything(tasks_alone, tmp_path, capsys):
    full_runs(token(ATTACKER), 3)
    file = tmp_path / "toy.csv"
    file.write_text(csv_text(graded(1, N_TASKS, seed=11, prefix="b")))
    call_command("load", str(file), benchmark="toy")
    hint = "manage.py trust toy mallory@example.org --reason TEXT"
    assert hint in capsys.readouterr().out
    call_command("trust", "toy", ATTACKER, "--reason", "our own CI")
    assert "mallory@example.org is trusted on toy." in capsys.readouterr().out
    file.write_text(csv_text(graded(1, N_TASKS, seed=12, prefix="c")))
    call_command("load", str(file), benchmark="toy")
    assert hint not in capsys.readouterr().out
    call_command("trust", "toy", ATTACKER, "--undo", "--reason", "no longer ours")
    told = [(one.trusted, one.reason) for one in AccountTrust.objects.order_by("id")]
    assert told == [(True, "our own CI"), (False, "no longer ours")]


# ------------------------------------------------------------------------------------------ people and alerts


def test_who_accepts_a_trusted_invitation_is_trusted(tasks_alone):
    benchmark = Benchmark.objects.get()
    options = {"benchmark": benchmark, "by": None, "reason": "our CI", "as_of": AS_OF, "role": "submitter"}
    for email, trusted in (("ci@example.org", True), ("bob@example.org", False)):
        _, secret = invite(email=email, trusted=trusted, **options)
        accept_invitation(secret=secret, user=None, as_of=AS_OF, name="x", password="long enough, 9")
    assert trusted_accounts(benchmark) == {User.objects.get(email="ci@example.org").pk}


def test_operators_are_told_whose_agents_an_alert_is_about(db, client, capsys):
    board = toy_board()
    by = token(ATTACKER)
    trust()
    for i, outcomes in enumerate(anti_correlated(in_subset(board), 12)):
        run(by, f"x{i:02d}", outcomes)
    User.objects.create_superuser(email="root@example.org", password="long enough, 9")
    drifting.update_alerts(benchmark=Benchmark.objects.get(), as_of=AS_OF)
    alert = Alert.objects.get(monitor="rank fidelity")
    event = Event.objects.get(kind="drift.alert", payload__alert=alert.pk)
    assert "mallory@example.org (12 agents)" in events.mail_body(
        event, "root@example.org", dict(event.payload)
    )
    assert "mallory" not in str(event.payload)
    call_command("drift", "toy")
    assert "mallory@example.org (12 agents)" in capsys.readouterr().out
    for path in ("/b/toy/health", "/api/v1/benchmarks/toy/alerts"):
        answer = client.get(path)
        assert (answer.status_code, b"mallory" in answer.content) == (200, False)


def test_who_leads_unverified_makes_no_headline_and_no_cost_sentence(db, client):
    """One pass more than the best of six that were loaded, at $1e-9 a task."""
    board = toy_board(6)
    best = max(lines_of(board).values(), key=lambda line: line.at["full"].score).agent
    marks = [int(mark) for mark in graded(6, N_TASKS)[best]]
    marks[marks.index(0)] = 1
    rows = [
        {"task": f"t{j:02d}", "trial": 1, "outcome": mark, "cost_usd": 1e-9} for j, mark in enumerate(marks)
    ]
    described = {"name": "invented", "scaffold": "Loop", "model": "M invented"}
    receipt = deliver(token(ATTACKER), rows, described)
    board = recomputed()
    line = lines_of(board)["invented"]
    assert (line.at["full"].rank, line.trust) == (1, "self_reported")
    home = client.get("/").content.decode()
    assert "1 of 6 verified agents could be" in home
    assert "invented" not in home
    for path in ("/b/toy", "/b/toy/embed", "/b/toy/feed"):
        page = client.get(path, follow=True).content.decode()
        assert f"{best} is the best of the 6 verified agents" in page, path
        assert "1 agent ranked higher is not verified." in page, path
        assert "~$0.00" not in page
        assert "for $0.00" not in page
    _, n_ranked = first_of(board.benchmark)
    assert (len(first_of(board.benchmark)[0]), n_ranked) == (6, 7)
    verify(uuid=Submission.objects.get(uuid=receipt["id"]).uuid, note="ran it again", as_of=AS_OF)
    recomputed()
    assert "invented scores highest:" in client.get("/b/toy", follow=True).content.decode()


def test_staff_trust_an_account_in_the_admin_and_see_it_in_the_audit(tasks_alone, client):
    token(ATTACKER)
    membership = Membership.objects.get(user__email=ATTACKER)
    client.force_login(User.objects.create_superuser(email="root@example.org", password="long enough, 9"))
    page = f"/admin/catalog/membership/{membership.pk}"
    assert client.post(f"{page}/trust/", {"reason": ""}).status_code == 422
    assert client.post(f"{page}/trust/", {"reason": "our own CI"}).status_code == 302
    assert trusted_accounts(membership.benchmark) == {membership.user_id}
    assert "trusted (our own CI)" in client.get(f"{page}/change/").content.decode()
    assert client.get("/admin/catalog/membership/").status_code == 200
    assert client.post(f"{page}/untrust/", {"reason": "no longer ours"}).status_code == 302
    assert trusted_accounts(membership.benchmark) == set()
    audit = client.get("/admin/audit/").content.decode()
    assert "mallory@example.org on toy" in audit
    assert "no longer ours" in audit


def test_monitors_hear_two_agents_of_an_account_that_ran_the_subset_alone(db):
    """Twenty of one account, each of a scaffold of its own."""
    tasks = in_subset(toy_board())
    by, rng = token(ATTACKER), np.random.default_rng(1)
    for i in range(20):
        rows = [
            {"task": task, "trial": 1, "outcome": int(o)}
            for task, o in zip(tasks, rng.random(len(tasks)) < 0.5, strict=True)
        ]
        deliver(by, rows, {"name": f"x{i:02d}", "scaffold": f"Loop {i}", "model": "M"})
    check, _ = check_drift(benchmark=Benchmark.objects.get(), as_of=AS_OF)
    assert check.result["n_later"] == 2
    assert {one["name"]: one["state"] for one in check.result["monitors"]}[
        "scaffold novelty"
    ] == "insufficient"
    assert len(lines_of(recomputed())) == 36
