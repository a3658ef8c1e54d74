"""What missing results count as is decided by the first load after which there are five loaded agents."""

import io
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.management import call_command
from django.db import connection

from leaderboard.boards.queries import standings_of
from leaderboard.catalog.models import Benchmark, Policy, Task
from leaderboard.catalog.queries import policy_in_force
from leaderboard.operations import loading
from leaderboard.studies import records
from selection.cli import main
from tests.toys import csv_text, load_text, recomputed

FIRST = "11111111110000000000"  # 20 tasks
CASES = {  # outcomes; what is decided; active tasks and ranked agents of the board; results that fail
    "neither": ({f"a{i}": FIRST for i in range(6)}, "gap", 20, 6, 0),
    "void": (
        {"a0": FIRST} | {f"a{i}": "1" * (4 + i) + "xx" + "0" * (14 - i) for i in range(1, 6)},
        "zero_loaded",
        20,
        6,
        10,
    ),
    "one void result each cannot be completed": (
        {f"a{i}": "1" * (4 + i) + "x" + "0" * (15 - i) for i in range(6)},
        "zero_loaded",
        20,
        6,
        6,
    ),
    "one task void for all": (
        {f"a{i}": "1" * (4 + i) + "0" * (15 - i) + "x" for i in range(6)},
        "gap",
        20,
        6,
        0,
    ),
    "two tasks void for all": (
        {f"a{i}": "1" * (4 + i) + "0" * (14 - i) + "xx" for i in range(6)},
        "gap",
        18,
        6,
        0,
    ),
    "absent": (
        {"a0": "10" * 15, "a1": "01" * 15} | {f"a{i}": "1" * i + "0" * (18 - i) for i in range(2, 6)},
        "gap",
        18,
        6,
        0,
    ),
    "both": (
        {f"a{i}": "1" * (4 + i) + "xx" + "0" * (12 - i) + ("1" * 12 if i < 2 else "") for i in range(6)},
        "zero_loaded",
        18,
        6,
        12,
    ),
    "nine common tasks": (
        {f"a{i}": "10" * 4 + "1" + "." * 3 * i + "110" + "." * (15 - 3 * i) for i in range(6)},
        "gap",
        27,
        0,
        0,
    ),
    "four agents": ({f"a{i}": "1" * (4 + i) + "xx" + "0" * (14 - i) for i in range(4)}, "auto", 20, 0, 0),
}


def run(*arguments):
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def n_ranked(board):
    return standings_of(board).targets["full"].n_ranked


def of_file(path, capsys, *flags):
    assert main(["standings", str(path), "--json", *flags]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("case", CASES)
def test_by_hand_in_the_service_and_from_a_file(db, tmp_path, capsys, case):
    outcomes, missing, n_tasks, ranked, n_failed = CASES[case]
    load_text(csv_text(outcomes), missing="auto")
    policy = policy_in_force(Benchmark.objects.get())
    assert (policy.missing, policy.number) == (missing, 1 if missing == "auto" else 2)
    assert (policy.universe is None) == (n_tasks == max(map(len, outcomes.values())))
    found = standings_of(recomputed())
    assert (found.n_tasks, found.targets["full"].n_ranked) == (n_tasks, ranked)
    assert found.n_missing_failed == n_failed
    file = tmp_path / "toy.csv"
    file.write_text(csv_text(outcomes))
    assert of_file(file, capsys) == found.as_plain()
    assert of_file(file, capsys, "--missing", "gap")["n_missing_failed"] == 0


def test_a_void_result_is_a_failure_and_the_board_says_how_to_undo_it(client, db, tmp_path):
    load_text(csv_text(CASES["void"][0]), missing="auto")
    board = recomputed()
    scores = {line.agent: line.at["full"].score for line in standings_of(board).agents}
    assert scores == {"a0": 0.5, "a1": 0.25, "a2": 0.3, "a3": 0.35, "a4": 0.4, "a5": 0.45}
    undo = "manage.py policy toy --set missing=gap"
    said = f"10 missing results count as failures. To undo: `{undo}`"
    assert said in " ".join(run("standings", "toy").split())
    page = client.get("/b/toy").content.decode()
    assert "10 missing results count as failures." in page
    assert "To undo" not in page  # visitors change nothing
    policy = policy_in_force(board.benchmark)
    assert policy.resolved_from == (
        "auto: 1 of 6 agents can be ranked on all 20 tasks, 6 of 6 if missing results count as failures"
    )
    assert client.get("/api/v1/benchmarks/toy/policy").json()["resolved_from"] == policy.resolved_from
    assert f"Decided by {policy.resolved_from}." in " ".join(run("policy", "toy").split())
    run("policy", "toy", "--set", "missing=gap")
    assert n_ranked(recomputed()) == 0
    assert policy_in_force(board.benchmark).resolved_from == ""
    run("policy", "toy", "--set", "missing=auto")
    assert policy_in_force(board.benchmark).missing == "zero_loaded"
    assert n_ranked(recomputed()) == 6


def test_each_notice_says_how_it_is_undone_itself(db):
    load_text(csv_text(CASES["absent"][0]), missing="auto")
    run("policy", "toy", "--set", "missing=zero")
    recomputed()
    printed = " ".join(run("standings", "toy").split())
    assert printed.count("To undo") == 1
    assert "tasks are active, those named; left out: " in printed.partition("To undo")[0]
    assert "To undo: `manage.py policy toy --set universe=all`" in printed


def test_where_nobody_is_ranked_every_face_says_why_once_and_what_to_do(client, db):
    load_text(csv_text(CASES["nine common tasks"][0]), missing="auto")
    board = recomputed()
    why = "6 of 6 agents have too many missing results."
    step = "manage.py policy toy --set missing=zero_loaded"
    printed = run("standings", "toy")
    page = client.get("/b/toy").content.decode()
    assert f"No ranking yet: {why}" in printed
    assert f"<b>No ranking yet:</b> {why}" in page
    for text in (printed, page):
        assert (text.count("No ranking yet"), text.count(step)) == (
            (1, 1) if text is printed else (3, 1)  # the description and the card say it, too
        )
    low = 7 / 27  # each passes 5 of the common tasks and 2 of its own; 15 results are missing
    assert standings_of(board).agents[0].at["full"].bounds == pytest.approx((low, low + 15 / 27))
    assert page.count('class="plot bounds"') == page.count('class="plot bounds-narrow"') == 1
    assert client.get("/b/toy/plots/bounds.svg").status_code == 200
    assert client.get("/b/toy/card.png")["Content-Type"] == "image/png"
    assert "<summary>15 of 27 tasks were not run:</summary>" in page
    assert client.get("/b/toy/board.md").content.decode().count("No ranking yet") == 1


def test_a_dry_run_tells_the_sizes_of_both_boards_and_stores_nothing(db, tmp_path):
    file = tmp_path / "toy.csv"
    file.write_text(csv_text(CASES["both"][0]))
    printed = run("load", str(file), "--benchmark", "toy", "--dry-run")
    assert (
        "12 tasks are left out and missing results count as failures: "
        "0 of 6 agents can be ranked on all 30 tasks, 6 of 6 on 18 of them if "
        "missing results count as failures.\n"
    ) in printed
    assert not Policy.objects.exists()
    printed = run("load", str(file), "--benchmark", "toy")
    assert "To undo: manage.py policy toy --set missing=gap universe=all\n" in printed
    assert "counts results so" not in printed


def test_a_load_that_decides_nothing_says_who_cannot_be_ranked(db, tmp_path):
    file = tmp_path / "toy.csv"
    file.write_text(csv_text({"whole": FIRST} | {f"a{i}": "10" * 4 + "." * (i + 4) for i in range(6)}))
    printed = run("load", str(file), "--benchmark", "toy")
    assert (
        "1 of 7 agents can be ranked on all 20 tasks. To count missing results as failures: "
        "manage.py policy toy --set missing=zero_loaded\n"
    ) in printed


def test_later_loads_propose_and_change_nothing(db, tmp_path):
    load_text(csv_text(CASES["void"][0]), missing="auto")
    run("policy", "toy", "--set", "missing=gap")
    file = tmp_path / "more.csv"
    file.write_text(csv_text({"late": "xx" + "1" * 18}))
    printed = run("load", str(file), "--benchmark", "toy")
    assert (
        "1 of 7 agents can be ranked on all 20 tasks, 7 of 7 if missing results count as failures. To count "
        "results so: manage.py policy toy --set missing=auto\n"
    ) in printed
    assert (policy_in_force(Benchmark.objects.get()).missing, Policy.objects.count()) == ("gap", 3)


WHOLE = csv_text({f"a{i}": "1" * (4 + i) + "0" * (16 - i) for i in range(6)})
BUT_ONE, _, LAST = WHOLE.rstrip().rpartition("\n")
AGAIN = LAST.replace(",t19,1,", ",t18,2,")
COMPLETE_OR_NOT = {
    "complete": WHOLE,
    "one result void": f"{BUT_ONE}\n{LAST[:-1]}0\n",
    "one result missing": f"{BUT_ONE}\n",
    "another trial in place of a task": f"{BUT_ONE}\n{AGAIN}\n",
    "two trials of one task": f"{WHOLE}{AGAIN}\n",
    "four agents": csv_text({f"a{i}": "1" * (4 + i) + "0" * (16 - i) for i in range(4)}),
}


@pytest.mark.parametrize("other_tasks", [False, True])
@pytest.mark.parametrize("case", COMPLETE_OR_NOT)
def test_a_complete_file_is_decided_as_if_it_were_read_back(db, monkeypatch, case, other_tasks):
    def decided(slug):
        Benchmark.objects.create(slug=slug, title="Toy")
        Policy.objects.create(benchmark=Benchmark.objects.get(slug=slug), number=1)
        if other_tasks:
            Task.objects.create(benchmark=Benchmark.objects.get(slug=slug), name="t99", since=1)
        load_text(COMPLETE_OR_NOT[case], slug=slug)
        policy = policy_in_force(Benchmark.objects.get(slug=slug))
        return policy.number, policy.missing, policy.universe, policy.resolved_from

    shortly = decided("short")
    monkeypatch.setattr(loading, "_with_nothing_missing", lambda before, loads: None)
    assert shortly == decided("long")


def test_what_is_complete_is_not_read_back(db, monkeypatch):
    monkeypatch.setattr(records, "Reader", None)
    load_text(WHOLE, missing="auto")
    assert "6 of 6 agents" in policy_in_force(Benchmark.objects.get()).resolved_from


def test_policies_that_say_something_stay(db):
    load_text(csv_text(CASES["void"][0]), missing="zero")
    assert [(one.missing, one.resolved_from) for one in Policy.objects.all()] == [("zero", "")]


def test_agents_that_come_in_two_loads_are_counted_together(db):
    outcomes = list(CASES["void"][0].items())
    load_text(csv_text(dict(outcomes[:4])), missing="auto")
    assert policy_in_force(Benchmark.objects.get()).missing == "auto"
    load_text(csv_text(dict(outcomes[4:])))
    assert "1 of 6 agents" in policy_in_force(Benchmark.objects.get()).resolved_from
    assert n_ranked(recomputed()) == 6


@pytest.mark.django_db(transaction=True)
def test_of_two_loads_at_once_one_decides_and_sees_both():
    outcomes = list(CASES["void"][0].items())
    load_text(csv_text(dict(outcomes[:2])), missing="auto")

    def load(part):
        try:
            load_text(csv_text(dict(part)))
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(load, (outcomes[2:4], outcomes[4:])))
    decided = [one.resolved_from for one in Policy.objects.order_by("number")]
    assert decided == [
        "",
        "auto: 1 of 6 agents can be ranked on all 20 tasks, 6 of 6 if missing results count as failures",
    ]


def test_terminal_bench_ranks_all_agents(db, real_data):
    """Its own rule counts what its harness lost as failures: 13 of 13 agents."""
    run("load", str(real_data / "terminal_bench_core_011.csv.gz"), "--benchmark", "tb")
    assert n_ranked(recomputed("tb")) == 13


def test_tasks_that_a_policy_does_not_name_are_said_not_to_count(db, tmp_path):
    load_text(csv_text({f"a{i}": "10" * 6 for i in range(6)}))
    run("policy", "toy", "--set", "universe=common")
    more = tmp_path / "more.csv"
    more.write_text("agent,task,outcome\n" + "".join(f"new,x{j},{j % 2}\n" for j in range(3)))
    said = "3 tasks of this load do not count: the policy names the tasks that count. To count all: "
    for flags in (("--dry-run",), ()):
        printed = run("load", str(more), "--benchmark", "toy", *flags)
        assert f"{said}manage.py policy toy --set universe=all" in printed
    again = run("load", str(more), "--benchmark", "toy")
    assert "Next: " not in again
