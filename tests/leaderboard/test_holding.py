"""Implausible deliveries are held, until an operator accepts them or they are plausible."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from leaderboard.accounts.models import User
from leaderboard.catalog.models import Benchmark
from leaderboard.operations import reviewing
from leaderboard.operations.corrections import trust_account, verify, withdraw
from leaderboard.operations.loading import load
from leaderboard.operations.policies import changed_policy, put_in_force
from leaderboard.operations.reviewing import accept, refuse
from leaderboard.operations.services import issue_token, recompute
from leaderboard.studies.models import VerifiedReference
from leaderboard.studies.queries import active_subset
from leaderboard.submissions.models import Judged, Status, Submission
from leaderboard.submissions.parsing.flat import read_file
from leaderboard.submissions.queries import held_for_review
from tests.leaderboard import world
from tests.leaderboard.desk import person
from tests.leaderboard.world import stored, token
from tests.toys import AS_OF, board_of, csv_text, flat_of, graded, lines_of, load_text, recomputed

DAY = timedelta(days=1)
N = 60


@pytest.fixture
def board(db):
    """Twenty verified agents on sixty tasks; the best passes 49."""
    board_of(csv_text(graded(20, N, seed=3)))
    return Benchmark.objects.get()


@pytest.fixture
def eve(board):
    return token("eve@example.org", is_trusted=False)


def marks(text, **more):
    return [
        {"task": f"t{j:02d}", "trial": 1, "outcome": float(mark) if mark != "h" else 0.97} | more
        for j, mark in enumerate(text)
        if mark != "."
    ]


def deliver(of, rows, agent="invented", **more):
    return world.deliver(of, rows, agent, **more)


def statuses():
    return [one.status for one in Submission.objects.filter(loaded=False).order_by("id")]


def on_board(benchmark):
    return {entry.name for entry in recompute(benchmark=benchmark, as_of=AS_OF)[0].entries.all()}


HONEST = "110" * 20


def test_invented_passes_are_held_and_the_owner_is_told(board, eve):
    receipt = deliver(eve, marks("1" * N))
    assert receipt["status"] == Status.WAITING
    (told,) = [one for one in receipt["warnings"] if "held for review" in one]
    assert "it scores 100.0% on the 60 tasks that it ran (95% interval from 94.0%)" in told
    assert "it counts once an operator has accepted it" in told
    assert "invented" not in on_board(board)
    change = stored(receipt).status_changes.get()
    assert (change.judged, change.status, change.data_version) == (Judged.IMPLAUSIBLE, Status.WAITING, None)
    assert list(held_for_review(board)) == [stored(receipt)]


def test_an_honest_one_counts_at_once(board, eve):
    receipt = deliver(eve, marks(HONEST), "honest")
    assert (receipt["status"], receipt["warnings"]) == (Status.ACCEPTED, [])
    assert "honest" in on_board(board)


def test_fractions_are_held_where_verified_outcomes_are_pass_or_fail(board, eve):
    receipt = deliver(eve, marks("h" * N))
    assert receipt["status"] == Status.WAITING
    assert any(
        "60 of its outcomes lie between 0 and 1; those of verified" in one for one in receipt["warnings"]
    )


def test_with_four_verified_agents_fractions_alone_are_held(db):
    load_text(csv_text(graded(4, N, seed=3)))
    recomputed()
    eve = token("eve@example.org", is_trusted=False)
    assert deliver(eve, marks("1" * N))["status"] == Status.ACCEPTED
    assert deliver(eve, marks("h" * N), "fractions")["status"] == Status.WAITING


def test_slices_are_judged_together(board, eve):
    found = []
    for first in range(0, N, 6):
        rows = marks("".join("1" if first <= j < first + 6 else "." for j in range(N)))
        found.append(deliver(eve, rows)["status"])
    assert found[0] == Status.ACCEPTED
    assert found[-1] == Status.WAITING
    n_counted = 6 * found.count(Status.ACCEPTED)
    assert found == [Status.ACCEPTED] * (n_counted // 6) + [Status.WAITING] * (10 - n_counted // 6)
    assert n_counted <= 36  # on the easy ones nobody can be far ahead of the best


def test_a_held_slice_says_which_tasks_were_judged(board, eve):
    def part(first, end):
        return marks("".join("1" if first <= j < end else "." for j in range(N)))

    def sliced(first, end, agent="invented"):
        rows = part(first, end)
        (told,) = (one for one in deliver(eve, rows, agent)["warnings"] if "held for review" in one)
        return told.partition(" (95%")[0]

    def scores(on):
        return f"held for review: it scores 100.0% on {on}"

    assert sliced(34, N) == scores("18 of the 26 tasks that it ran")
    assert sliced(16, 34) == scores("33 of the 44 tasks that it ran")  # with those held
    assert sliced(0, 16) == scores("the 60 tasks that it ran")
    till = (AS_OF + DAY).isoformat()
    deliver(eve, part(0, 16), "other", embargo_until=till)
    assert sliced(34, N, "other") == scores("18 of these 26 tasks")  # what is under embargo does not count


@pytest.mark.parametrize("in_background", [False, True])
def test_passes_of_the_ranking_tasks_alone_are_held(board, eve, in_background, monkeypatch):
    ranking = in_use("toy")
    assert len(ranking) == 45
    if in_background:
        monkeypatch.setattr(reviewing, "N_IN_REQUEST", 10)
    rows = [row | {"outcome": float(row["task"] in ranking)} for row in marks("1" * N)]
    held = stored(deliver(eve, rows))
    if in_background:
        reviewing.conclude(uuid=held.uuid, as_of=AS_OF)
    change = held.status_changes.order_by("id").last()
    assert change.status == Status.WAITING
    assert "it scores 100.0% on 45 ranking tasks (95% interval from 92.1%)" in change.reason


def test_a_dry_run_says_so_and_stores_nothing(board, eve):
    receipt = deliver(eve, marks("1" * N), dry_run=True)
    assert receipt["status"] == Status.WAITING
    assert any("held for review" in one for one in receipt["warnings"])
    assert not Submission.objects.filter(loaded=False).exists()


def test_a_repeated_request_gets_the_stored_answer(board, eve):
    first = deliver(eve, marks("1" * N), key="k")
    accept(uuid=stored(first).uuid, by=None, reason="seen the logs", as_of=AS_OF)
    assert deliver(eve, marks("1" * N), key="k") == first


def test_trusted_accounts_and_operators_are_not_held(board, eve):
    trust_account(benchmark=board, account=eve.user, reason="our CI", as_of=AS_OF)
    assert deliver(eve, marks("1" * N))["status"] == Status.ACCEPTED
    operator = token("op@example.org", scope="operate", is_trusted=False)
    assert deliver(operator, marks("1" * 59 + "0"), "other")["status"] == Status.ACCEPTED


def test_a_held_replacement_leaves_the_old_one_standing(board, eve):
    old = deliver(eve, marks(HONEST), "honest")
    new = deliver(eve, marks("1" * N), "honest", replaces=old["id"])
    assert (stored(old).status, new["status"]) == (Status.ACCEPTED, Status.WAITING)
    assert "honest" in on_board(board)
    assert stored(old).status == Status.ACCEPTED
    accept(uuid=stored(new).uuid, by=None, reason="seen the logs", as_of=AS_OF)
    assert (stored(old).status, stored(new).status) == (Status.SUPERSEDED, Status.ACCEPTED)


def test_what_an_operator_accepts_counts_and_stays(board, eve):
    held = deliver(eve, marks("1" * N))
    accept(uuid=stored(held).uuid, by=None, reason="seen the logs", as_of=AS_OF)
    assert stored(held).status_changes.order_by("id").last().judged == Judged.REVIEWED
    assert "invented" in on_board(board)
    assert statuses() == [Status.ACCEPTED]


def test_what_an_operator_refuses_never_counts(board, eve):
    held = deliver(eve, marks("1" * N))
    refuse(uuid=stored(held).uuid, by=None, reason="invented", as_of=AS_OF)
    assert "invented" not in on_board(board)


def test_trust_lets_count_what_was_held(board, eve):
    held = deliver(eve, marks("1" * N))
    trust_account(benchmark=board, account=eve.user, reason="our CI", as_of=AS_OF)
    assert stored(held).status == Status.ACCEPTED
    assert "invented" in on_board(board)


def test_without_trust_what_counted_is_held_and_earlier_versions_stay(board, eve):
    trust_account(benchmark=board, account=eve.user, reason="our CI", as_of=AS_OF)
    receipt = deliver(eve, marks("1" * N))
    before = recompute(benchmark=board, as_of=AS_OF)[0]
    trust_account(benchmark=board, account=eve.user, reason="left", as_of=AS_OF, trusted=False)
    assert stored(receipt).status == Status.WAITING
    change = stored(receipt).status_changes.order_by("id").last()
    assert change.data_version is not None
    assert "invented" not in on_board(board)
    assert before.entries.filter(name="invented").exists()


def test_a_withdrawal_of_the_failures_holds_the_passes(board, eve):
    passes = deliver(eve, marks("." * 30 + "1" * 30))
    assert passes["status"] == Status.WAITING  # alone they are implausible
    failures = deliver(eve, marks("1" * 20 + "0" * 10 + "." * 30))
    assert failures["status"] == Status.ACCEPTED  # together they are not
    recompute(benchmark=board, as_of=AS_OF)
    assert stored(passes).status == Status.ACCEPTED
    withdraw(uuid=stored(failures).uuid, token=eve, reason="wrong run", as_of=AS_OF)
    assert stored(passes).status == Status.WAITING
    assert "invented" not in on_board(board)


def test_a_better_verified_agent_makes_it_plausible(board, eve):
    held = deliver(eve, marks("1" * 56 + "0" * 4))
    assert held["status"] == Status.WAITING
    load(flat=flat_of(csv_text({"best": "1" * 58 + "00"})), slug="toy", as_of=AS_OF)
    assert "invented" in on_board(board)
    assert stored(held).status == Status.ACCEPTED


def test_a_confirmed_agent_is_part_of_the_reference(board, eve):
    assert VerifiedReference.objects.get().n_agents == 20
    honest = deliver(eve, marks(HONEST), "honest")
    recomputed()
    assert VerifiedReference.objects.get().n_agents == 20
    verify(uuid=stored(honest).uuid, note="reran it", as_of=AS_OF)
    recomputed()
    assert VerifiedReference.objects.get().n_agents == 21


def test_a_damaged_reference_is_made_anew_and_judges_what_came_meanwhile(board, eve):
    whole = bytes(VerifiedReference.objects.get().arrays)
    VerifiedReference.objects.update(arrays=whole[:10])
    came = deliver(eve, marks("1" * 56 + "0" * 4))
    assert came["status"] == Status.ACCEPTED
    recomputed()
    assert VerifiedReference.objects.get().arrays == whole
    assert stored(came).status == Status.WAITING


def test_what_counts_is_not_held_since_others_changed(board, eve):
    load(flat=flat_of(csv_text({"best": "1" * 58 + "00"})), slug="toy", as_of=AS_OF)
    recomputed()
    mine = deliver(eve, marks("1" * 56 + "0" * 4))
    best = Submission.objects.get(agent__name="best")
    operator = token("op@example.org", scope="operate", is_trusted=False)
    withdraw(uuid=best.uuid, token=operator, reason="x", as_of=AS_OF)
    assert "invented" in on_board(board)
    assert stored(mine).status == Status.ACCEPTED


def test_after_its_embargo_it_is_judged_again(board, eve):
    till = AS_OF + DAY
    held = deliver(eve, marks("1" * N), embargo_until=till.isoformat())
    honest = deliver(eve, marks(HONEST), "honest", embargo_until=till.isoformat())
    assert [held["status"], honest["status"]] == [Status.WAITING] * 2
    assert "held for review" in stored(held).status_changes.get().reason
    assert [one.agent.name for one in reviewing.over(till)] == ["honest"]
    reviewing.end_due(benchmark=board, as_of=till)
    assert [stored(held).status, stored(honest).status] == [Status.WAITING, Status.ACCEPTED]


def test_after_an_embargo_the_whole_line_is_judged(board, eve):
    till = AS_OF + DAY
    one = deliver(eve, marks("1" * 30 + "." * 30), embargo_until=till.isoformat())
    two = deliver(eve, marks("." * 30 + HONEST[30:]))
    assert [one["status"], two["status"]] == [Status.WAITING, Status.ACCEPTED]
    three = deliver(eve, marks("1" * 30 + "." * 30), "other", embargo_until=till.isoformat())
    deliver(eve, marks("." * 30 + "1" * 30), "other")
    reviewing.end_due(benchmark=board, as_of=till)
    assert stored(three).status == Status.WAITING
    assert stored(three) in held_for_review(board)


@pytest.mark.parametrize("route", ["before", "after", "replacement", "background"])
def test_what_does_not_count_hides_nothing(board, eve, route, monkeypatch):
    """Failures that count later or never beside invented passes, which must not count meanwhile."""
    passes, failures = marks("1" * N), [row | {"trial": 2} for row in marks("0" * N)]
    till = (AS_OF + DAY).isoformat()
    if route == "before":
        deliver(eve, failures, embargo_until=till)
    if route == "background":
        monkeypatch.setattr(reviewing, "N_IN_REQUEST", N)
        assert deliver(eve, [*failures, row_beyond()])["status"] == Status.CHECKING
        monkeypatch.undo()
    held = deliver(eve, passes)
    assert held["status"] == Status.WAITING
    if route == "after":
        deliver(eve, failures, embargo_until=till)
    if route == "replacement":
        deliver(eve, marks(HONEST), replaces=held["id"], embargo_until=till)
    recomputed()
    assert stored(held).status == Status.WAITING


def row_beyond():
    return marks("0")[0] | {"trial": 3}


def test_what_came_before_the_first_recompute_is_judged_with_it(db):
    load(flat=flat_of(csv_text(graded(8, N))), slug="toy", as_of=AS_OF)
    benchmark = Benchmark.objects.get()
    early = deliver(token("eve@example.org", is_trusted=False), marks("1" * N))
    assert early["status"] == Status.ACCEPTED
    assert "invented" not in on_board(benchmark)
    assert stored(early).status == Status.WAITING


def test_what_was_verified_while_it_was_checked_is_not_held(board, eve, monkeypatch):
    monkeypatch.setattr(reviewing, "N_IN_REQUEST", 10)
    receipt = deliver(eve, marks("1" * N))
    verify(uuid=stored(receipt).uuid, note="seen", as_of=AS_OF)
    reviewing.conclude(uuid=stored(receipt).uuid, as_of=AS_OF)
    assert stored(receipt).status == Status.ACCEPTED


def test_with_manual_review_the_evidence_stands_beside(board, eve):
    put_in_force(
        policy=changed_policy(benchmark=board, values={"review": "manual"}), by=None, reason="a look first"
    )
    held = deliver(eve, marks("1" * N))
    change = stored(held).status_changes.get()
    assert change.reason.startswith("an operator reviews it; held for review: it scores 100.0%")


def test_a_long_delivery_is_judged_by_the_scheduler(board, eve, monkeypatch):
    monkeypatch.setattr(reviewing, "N_IN_REQUEST", 10)
    receipt = deliver(eve, marks("1" * N))
    assert receipt["status"] == Status.CHECKING
    reviewing.conclude(uuid=stored(receipt).uuid, as_of=AS_OF)
    assert stored(receipt).status == Status.WAITING
    assert stored(receipt) in held_for_review(board)


def test_a_job_that_dies_between_judging_and_storing_is_done_again(board, eve, monkeypatch):
    monkeypatch.setattr(reviewing, "N_IN_REQUEST", 10)
    receipt = deliver(eve, marks("1" * N))

    def die():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), transaction.atomic():
        reviewing.conclude(uuid=stored(receipt).uuid, as_of=AS_OF, check_claim=die)
    assert stored(receipt).status == Status.CHECKING
    reviewing.conclude(uuid=stored(receipt).uuid, as_of=AS_OF)
    assert stored(receipt).status == Status.WAITING


# ------------------------------------------------------------------------------------------- measured cases


def in_use(slug):
    return list(active_subset(Benchmark.objects.get(slug=slug)).tasks.values_list("name", flat=True))


def posted(slug, outcomes, name="invented"):
    """What the interface answers to a delivery of an ordinary account, at a made-up cost."""
    secret = issue_token(
        email="eve@example.org", slug=slug, scope="submit", name="ci", as_of=timezone.now(), life=DAY
    )[1]
    rows = [{"task": task, "trial": 1, "outcome": x, "cost_usd": 1e-9} for task, x in outcomes.items()]
    agent = {"name": name, "scaffold": "Loop", "model": f"M {name}"}
    return (
        Client()
        .post(
            f"/api/v1/benchmarks/{slug}/submissions",
            json.dumps({"agent": agent, "outcomes": rows}),
            content_type="application/json",
            headers={"Authorization": f"Bearer {secret}"},
        )
        .json()
    )


@pytest.fixture
def large(db):
    """A board of 57 agents and 500 tasks with a fixed subset."""
    board_of(csv_text(large_board()))
    return "toy"


@pytest.fixture
def verified(db, real_data):
    """SWE-bench Verified."""
    path = real_data / "swebench_verified_2023_2025.csv.gz"
    load(flat=read_file(path, as_of=AS_OF), slug="swe", as_of=AS_OF)
    recomputed("swe")
    return "swe"


def large_board():
    return {name: marks.ljust(500, "0") for name, marks in graded(57, 440, seed=8).items()}


@pytest.mark.parametrize("board", ["large", pytest.param("verified", marks=pytest.mark.slow)])
def test_passes_on_the_whole_subset_are_held(request, board):
    large = request.getfixturevalue(board)
    tasks = in_use(large)
    receipt = posted(large, dict.fromkeys(tasks, 1))
    print(large, len(tasks), receipt["warnings"])
    assert receipt["status"] == "waiting"
    assert any("held for review: it scores 100.0%" in one for one in receipt["warnings"])
    assert "invented" not in lines_of(recomputed(large))
    assert "invented" not in Client().get(f"/b/{large}").content.decode()


def test_fractions_of_97_percent_are_held(large):
    receipt = posted(large, dict.fromkeys(in_use(large), 0.97))
    assert receipt["status"] == "waiting"
    assert any("lie between 0 and 1" in one for one in receipt["warnings"])


def test_nobody_but_the_owner_and_operators_sees_what_is_held(board):
    held = posted("toy", {f"t{j:02d}": 1 for j in range(N)})
    assert held["status"] == "waiting"
    page = f"/submissions/{held['id']}"
    seen = {}
    for email, role in (
        ("eve@example.org", None),
        ("op@example.org", "operator"),
        ("ann@example.org", "viewer"),
    ):
        client = Client()
        user = User.objects.filter(email=email).first() or person(email, role=role, benchmark=board)
        client.force_login(user)
        answer = client.get(page)
        seen[email] = "held for review: it scores 100.0%" in answer.content.decode()
    assert seen == {"eve@example.org": True, "op@example.org": True, "ann@example.org": False}
    staff = Client()
    staff.force_login(person("sue@example.org", staff=True))
    shown = staff.get(f"/admin/submissions/submission/{stored(held).pk}/change/").content.decode()
    assert ": waiting (by eve@example.org): held for review: it scores 100.0%" in shown
    for path in ("/b/toy", "/b/toy/tasks", "/api/v1/benchmarks/toy/agents", "/b/toy/history"):
        assert "invented" not in Client().get(path).content.decode(), path


@pytest.mark.django_db(transaction=True)
def test_two_slices_at_once_are_judged_one_after_the_other():
    board_of(csv_text(graded(20, N, seed=3)))
    eve = token("eve@example.org", is_trusted=False)
    deliver(eve, marks("." * 59 + "0"))  # the agent is there
    halves = [marks("." * 20 + "1" * 20 + "." * 20), marks("1" * 20 + "." * 39)]

    def at_once(rows):
        try:
            return deliver(eve, rows)["status"]
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        found = sorted(pool.map(at_once, halves))
    assert found == [Status.ACCEPTED, Status.WAITING]
