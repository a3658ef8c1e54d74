"""The commands as an operator types them."""

import csv
import gzip
import io
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.core.management import CommandError

from analytics import programs
from leaderboard import command
from leaderboard.accounts.services import token_of
from leaderboard.boards.models import Board
from leaderboard.boards.queries import standings_of
from leaderboard.catalog.models import Benchmark, Policy, Role
from leaderboard.catalog.queries import policy_in_force
from leaderboard.studies.answers import table, verdict, words
from leaderboard.studies.models import DriftCheck
from leaderboard.submissions.models import Outcome, OutcomeDetail
from leaderboard.terminal.management.commands import policy
from leaderboard.terminal.printing import drift_text
from selection.standings.printed import PLAIN, SAME
from tests import kept
from tests.disks import small_disk
from tests.leaderboard.stored_validation import store, stored
from tests.toys import AS_OF, csv_text, ladder

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "outcomes.csv"
    path.write_text(csv_text(ladder(16, 20)))
    return path


def test_from_file_to_board(db, run, file):
    assert run("load", str(file), "--benchmark", "toy") == (
        "Stored in toy: 320 new results; "
        "16 submissions from 16 agents on 20 tasks (20 new).\n"
        "Next: manage.py recompute toy\n"
    )
    assert "Published board 1 of toy." in run("recompute", "toy")
    again = run("recompute", "toy").splitlines()
    assert again == [
        "No change: board 1 of toy is up to date.",
        "Next: manage.py variance toy (sources of error)",
    ]
    board = run("standings", "toy")
    with pytest.raises(CommandError, match=r"no board 9 of toy\. The latest is 1"):
        run("standings", "toy", "--board", "9")
    assert re.search(r"^● +1 +1–\d+ +a15 ", board, re.MULTILINE)
    explained = run("standings", "toy", "--explain")
    assert "Phase: ongoing." in explained
    assert Board.objects.get().digest in explained


def test_loading_twice_says_so(db, run, file):
    run("load", str(file), "--benchmark", "toy")
    assert "0 new results, 320 already stored." in run("load", str(file), "--benchmark", "toy")


def test_aliases_and_metadata_are_reported(db, run, file):
    file.write_text(file.read_text().replace("outcome", "score", 1).replace("valid", "failure_mode", 1))
    printed = run("load", str(file), "--benchmark", "toy").splitlines()
    assert printed[1:-1] == ["The column score was read as outcome.", "Kept as metadata: failure_mode."]


def test_what_a_load_replaces_is_counted_alone(db, run, tmp_path):
    path = tmp_path / "toy.csv"
    for marks in ("10", "11"):
        path.write_text(csv_text({"a": marks, "b": "01", "c": "01"}))
        printed = run("load", str(path), "--benchmark", "toy", "--replace")
    assert "Stored in toy: 1 replaced, 5 already stored; 1 submission from 1 agent on 2 tasks." in printed


def test_other_columns_of_what_is_stored_stay(db, run, file):
    head, *rows = file.read_text().splitlines()
    run("load", str(file), "--benchmark", "toy")
    file.write_text("\n".join([f"{head},cost_usd,note", *(f"{row},1,x" for row in rows)]) + "\n")
    printed = run("load", str(file), "--benchmark", "toy").splitlines()
    stay = "of results already stored stay as they are. To replace them,"
    assert printed[1:-1] == [
        f"Costs, tokens and times {stay} load this file again with --replace.",
        f"Notes {stay} unload those submissions and load this file again.",
    ]
    assert not OutcomeDetail.objects.exists()
    replaced = run("load", str(file), "--benchmark", "toy", "--replace")
    assert "320 replaced (320 only in cost, tokens or time)" in replaced
    assert "stay as they are" not in replaced


def test_what_people_say_is_no_metadata(db, run, file):
    head, *rows = file.read_text().splitlines()
    file.write_text("\n".join([f"{head},human,note", *(f"{row},1,x" for row in rows)]) + "\n")
    printed = run("load", str(file), "--benchmark", "toy").splitlines()
    assert printed[1:-1] == ["Human labels: human.", "Kept as metadata: note."]


def test_names_are_printed_as_they_are(db, run, tmp_path):
    """What a terminal library takes for markup or an emoji's name is a name here, of files and of agents."""
    path = tmp_path / "[bold]x[.csv"
    path.write_text(csv_text({f"[red]a{i}[/] :smile:": "1" * i + "0" * (20 - i) for i in range(16)}))
    run("load", str(path), "--benchmark", "toy")
    run("recompute", "toy")
    assert " [red]a15[/] :smile: " in run("standings", "toy")


@pytest.fixture
def toy(run, db, file):
    """A board of 17 agents, one of them with the subset alone."""

    def make():
        run("load", str(file), "--benchmark", "toy")
        run("recompute", "toy")
        subset = set(Board.objects.get().subset.tasks.values_list("name", flat=True))
        marks = "".join("1" if f"t{j:02d}" in subset else "." for j in range(20))
        newcomer = file.with_name("newcomer.csv")
        newcomer.write_text(csv_text({"newcomer": marks}))
        run("load", str(newcomer), "--benchmark", "toy")
        run("recompute", "toy")

    kept.stored("commands make a board", make)
    return Board.objects.latest("number")


def test_each_study_is_the_next_sensible_command(run, toy):
    assert "Next: manage.py variance toy" in run("recompute", "toy")
    assert "Next: manage.py recompute toy" in run("variance", "toy")
    assert "Next: manage.py validate toy" in run("recompute", "toy")
    store(toy.benchmark)
    assert "Next: manage.py standings toy" in run("recompute", "toy")
    run("policy", "toy", "--set", "strategy=spread")
    assert "Next: manage.py validate toy" in run("recompute", "toy")  # the last one was of other rules


def test_a_study_that_could_tell_nothing_is_not_the_next_command(db, run, file):
    file.write_text(csv_text({"alone": "10" * 10}))
    run("load", str(file), "--benchmark", "toy")
    assert run("recompute", "toy").endswith("Next: manage.py standings toy\n")
    assert "Next" not in run("variance", "toy")
    assert "Next" not in run("validate", "toy")
    told = run("unload", "toy", "--latest", "--reason", "the wrong file")
    assert told == (
        "Withdrew 1 submission with 20 outcomes from toy.\n"
        "20 tasks have no results now: t00, t01, t02 and 17 more. To leave one out: "
        "manage.py retire toy t00 --reason TEXT\n"
    )


@pytest.mark.parametrize("target", ["subset", "full", "domain"])
def test_standings_print_every_row_of_the_answers_table(run, toy, target):
    printed, board = run("standings", "toy", "--target", target), standings_of(toy)
    assert len(printed.strip().rpartition("\n\n")[2].splitlines()) <= 5
    assert max(map(len, printed.splitlines())) <= 110
    explained = run("standings", "toy", "--target", target, "--explain")
    rows = table.rows(board, target)
    same = {head for head in SAME if len({row.get(head) for row in rows}) == 1}
    for row in rows:
        plain = PLAIN | {table.HEADS[target]}
        other = {"Rank", "Agent", *row.keys() - plain}
        for text, heads in ((printed, plain - same), (explained, plain), (explained, other)):
            cells = [cell for head, cell in row.items() if cell and head in heads]
            assert re.search(r"^●? *" + r" +".join(map(re.escape, cells)) + "$", text, re.MULTILINE)


def test_a_name_that_looks_like_a_formula_is_text_in_a_csv(db, run, tmp_path):
    path = tmp_path / "outcomes.csv"
    path.write_text(csv_text(ladder(3, 20)).replace("a01", "=HYPERLINK(1)"))
    run("load", str(path), "--benchmark", "toy")
    run("recompute", "toy")
    rows = list(csv.DictReader(io.StringIO(run("standings", "toy", "--format", "csv"))))
    assert {row["agent"] for row in rows} == {"a00", "'=HYPERLINK(1)", "a02"}
    assert all(float(row["full_score"]) >= 0 for row in rows)


def test_standings_say_in_words_what_their_numbers_mean(run, toy):
    printed, board = " ".join(run("standings", "toy", "--explain").split()), standings_of(toy)
    for said in (
        words.headline(board),
        words.second_run_text(board),
        words.covers_text(board),
        words.savings_text(board.savings),
        words.LEGEND["Ties"],
        words.not_measured_text(board),
        "Other targets: --target subset, --target domain",
    ):
        assert said in printed


def test_a_target_that_nothing_is_said_about_is_refused(db, run, tmp_path):
    path = tmp_path / "outcomes.csv"
    path.write_text(csv_text(ladder(3, 20)))
    run("load", str(path), "--benchmark", "toy")
    run("recompute", "toy")
    with pytest.raises(CommandError, match="No ranks for the target subset: no ranking tasks are in use"):
        run("standings", "toy", "--target", "subset")
    assert run("standings", "toy") == run("standings", "toy", "--target", "full")


def test_who_is_flagged_or_not_ranked_is_printed_with_the_reason(db, run, tmp_path):
    path = tmp_path / "outcomes.csv"
    path.write_text(csv_text(ladder(6, 20) | {"copy": ladder(6, 20)["a03"], "stopped": "1" * 3 + "." * 17}))
    run("load", str(path), "--benchmark", "toy")
    run("recompute", "toy")
    printed = run("standings", "toy", "--explain")
    assert "Flagged: copy: the same outcome as a03 on every task" in printed
    board = standings_of(Board.objects.get())
    stopped = next(line for line in board.agents if line.agent == "stopped")
    assert f"Not ranked: stopped: {stopped.at[board.target].reason}" in " ".join(printed.split())


def test_csv_has_one_level_and_every_target(run, toy):
    lines = list(csv.DictReader(io.StringIO(run("standings", "toy", "--format", "csv"))))
    for line, told in zip(lines, standings_of(toy).agents, strict=True):
        assert line["agent"] == told.agent
        assert line["marks"] == " ".join(told.marks)
        for target, at in told.at.items():
            assert line[f"{target}_se"] == ("" if at.se is None else str(at.se))
            assert line[f"{target}_source"] == at.source
        assert not any(value.startswith("{") for value in line.values())


def test_a_name_in_csv_is_no_formula(db, run, file):
    names = ["=1+1", "+1", "-1", "@SUM(A1)", "a=1"]
    file.write_text(csv_text(dict.fromkeys(names, "10")))
    run("load", str(file), "--benchmark", "toy")
    run("recompute", "toy")
    lines = list(csv.DictReader(io.StringIO(run("standings", "toy", "--format", "csv"))))
    assert sorted(line["agent"] for line in lines) == ["'+1", "'-1", "'=1+1", "'@SUM(A1)", "a=1"]
    assert sorted(
        a["agent"] for a in json.loads(run("standings", "toy", "--format", "json"))["agents"]
    ) == sorted(names)


def test_validation_is_printed_with_the_strategy_in_use_first(run, toy):
    store(toy.benchmark)
    short = run("validate", "toy", "--jobs", "1").splitlines()
    assert len(short) <= 40
    assert max(map(len, short)) <= 100
    assert any(line.startswith("  Mid-range ") for line in short)
    printed = run("validate", "toy", "--jobs", "1", "--full")
    assert printed.startswith("No change: the results are the same as at the last validation.\n")
    assert re.search(r"^agents +16 of 16 \(results on at least 95% of the tasks\)$", printed, re.MULTILINE)
    assert re.search(
        r"^Leave one agent out, 16 of 16 folds, .* on average:\n  strategy +Pairs in order +SE +Skill .*\n"
        r"  Mid-range \* ",
        printed,
        re.MULTILINE,
    )
    assert re.search(r"^Leave one scaffold out +not available: ", printed, re.MULTILINE)
    assert verdict(stored(), "mid_range").sentence in " ".join(printed.split())
    assert "chance" not in printed
    assert "None" not in printed
    assert "nan" not in printed


def test_variance_is_printed_with_what_was_never_measured(run, toy):
    printed = run("variance", "toy")
    assert re.search(r"^ +source +variance +share +what it is$", printed, re.MULTILINE)
    assert re.search(r"^ +task +0\.\d{3,} +[\d.]+%", printed, re.MULTILINE)
    assert re.search(r"^not measured +run-to-run noise", printed, re.MULTILINE)
    assert "The effect of more prompts, judges and trials was not measured." in printed
    assert run("variance", "toy").startswith("No change: the results are the same as at the last study.\n")


def test_drift_is_printed_a_line_for_each_monitor(run, toy):
    short = run("drift", "toy")
    assert re.search(r"^not enough data +rank fidelity, ", short, re.MULTILINE)
    assert "insufficient" not in short
    printed = run("drift", "toy", "--full")
    assert max(map(len, printed.splitlines())) <= 110
    assert re.search(r"^ranking tasks +version 1, fixed on \d{4}-\d\d-\d\d$", printed, re.MULTILINE)
    fidelity = r"^insufficient: rank fidelity:\n  why [^:]*\n  what to do  .* full runs, until there are 12$"
    assert re.search(fidelity, printed, re.MULTILINE)
    assert re.search(
        r"^insufficient: band erosion:\n  why .*\n  what to do  nothing to do$", printed, re.MULTILINE
    )
    assert re.search(r"^later agents +1$", printed, re.MULTILINE)


def test_drift_says_what_to_do(toy):
    """An alert comes first, with its advice; what it rests on is the monitors' own business."""
    told = {
        "state": "alert",
        "name": "saturation",
        "reason": "the best passes 99%",
        "advice": "add harder tasks",
    }
    quiet = told | {"state": "ok", "name": "novelty", "advice": "nothing to do"}
    found = {"reason": "", "subset": 1, "fixed_on": "2026-06-01", "n_later": 3, "false_alerts_a_year": 0.5}
    check = DriftCheck(benchmark=toy.benchmark, result=found | {"monitors": [quiet, told]})
    short, full = drift_text(check, full=False), drift_text(check, full=True)
    told = "\nalert: saturation:\n  why         the best passes 99%\n  what to do  add harder tasks"
    assert short.endswith(told)
    assert f"{told}\n\nok: novelty:\n" in full
    assert re.search(r"^no change +novelty$", short, re.MULTILINE)
    assert "at most 0.50 a year if nothing changes" in short


def test_drift_without_a_subset(db, run, tmp_path):
    path = tmp_path / "outcomes.csv"
    path.write_text(csv_text(ladder(3, 20)))
    run("load", str(path), "--benchmark", "toy")
    assert run("drift", "toy").strip() == "toy: no ranking tasks are in use, so there is nothing to check."


def test_dry_run_says_would(db, run, file):
    assert run("load", str(file), "--benchmark", "toy", "--dry-run").startswith("Would store in toy: 320 new")
    assert not Benchmark.objects.exists()


def test_standings_in_three_formats_agree(db, run, file):
    run("load", str(file), "--benchmark", "toy")
    run("recompute", "toy")
    content = json.loads(run("standings", "toy", "--format", "json"))
    lines = list(csv.DictReader(io.StringIO(run("standings", "toy", "--format", "csv"))))
    assert [line["agent"] for line in lines] == [line["agent"] for line in content["agents"]]
    assert content["subset"]["size"] == len(content["subset"]["tasks"])


def truncated(path):
    whole = gzip.compress(csv_text(ladder(16, 20)).encode())
    path.write_bytes(whole[: len(whole) // 2])


def workbook(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("xl/workbook.xml", "<workbook/>")


BROKEN = {
    "a truncated gzip": (truncated, "gzip"),
    "an empty file": (lambda path: path.write_bytes(b""), "empty"),
    "a workbook": (workbook, "the workbook is damaged"),
    "no outcome column": (lambda path: path.write_text("benchmark,agent\nx,y\n"), "outcome"),
}


def test_a_long_recompute_says_that_it_is_at_work(db, run, capsys, monkeypatch, tmp_path):
    path = tmp_path / "outcomes.csv"
    path.write_text(csv_text(ladder(8, 20)))
    run("load", str(path), "--benchmark", "toy")
    monkeypatch.setattr(programs, "EVERY", 0.001)
    assert "Published board 1 of toy." in run("recompute", "toy")
    assert "recompute: still at work, nothing to count yet\n" in capsys.readouterr().err


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_refused_in_words(db, run, tmp_path, name):
    write, word = BROKEN[name]
    path = tmp_path / "outcomes.csv.gz"
    write(path)
    with pytest.raises(CommandError, match=r"outcomes\.csv\.gz has .*\. Nothing was stored\.\n") as refusal:
        run("load", str(path), "--benchmark", "toy")
    assert word in str(refusal.value)
    assert not Outcome.objects.exists()
    assert not Benchmark.objects.exists()


def test_fifty_faults_are_printed_and_all_are_counted(db, run, tmp_path):
    path = tmp_path / "outcomes.csv"
    texts = iter(range(2, 82))
    path.write_text(re.sub(",1,1,1\n", lambda _: f",1,{next(texts)},1\n", csv_text({"a": "1" * 80})))
    with pytest.raises(CommandError) as refusal:
        run("load", str(path), "--benchmark", "toy")
    lines = str(refusal.value).splitlines()
    assert len(lines) == 52
    assert "80 faults" in lines[0]
    assert "30 more (80 in all)" in lines[-1]


def test_what_is_wrong_in_many_rows_is_printed_once(db, run, tmp_path):
    path = tmp_path / "outcomes.csv"
    path.write_text(csv_text({"a": "1" * 1200}).replace(",1,1,1\n", ",1,7,1\n"))
    with pytest.raises(CommandError) as refusal:
        run("site", str(path), "--out", str(tmp_path / "site"))
    assert str(refusal.value).splitlines()[1:] == [
        '  row 1, outcome "7": an outcome is a number from 0 to 1'
        " (also in rows 2, 3, 4, 5, 6, 7, 8, 9 and 991 more)",
        "  … and 200 more (1,200 in all)",
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["load", "nowhere.csv", "--benchmark", "toy"], "File not found: nowhere.csv"),
        (["recompute", "nope"], "no benchmark 'nope'"),
        (["standings", "nope"], "None is loaded yet"),
        (["token", "ada@example.org", "--benchmark", "nope"], "no benchmark 'nope'"),
        (["token", "ada", "--benchmark", "nope"], "Invalid e-mail address"),
        (["token", f"{'a' * 60}@{'b' * 60}.{'c.' * 90}org", "--benchmark", "nope"], "Invalid e-mail address"),
        (["token", "ada@example.org", "--benchmark", "nope", "--name", "n" * 256], "Use at most 255"),
        (["load", "/proc/self/mem", "--benchmark", "toy"], r"Cannot read .* \(Input/output error\)"),
        (["tasks", "toy", "/proc/self/mem"], r"Cannot read .* \(Input/output error\)"),
        (["tasks", "toy", "/dev/zero"], "longer than 16 MiB"),
        (["serve", "--port", "65536"], "use a port from 1 to 65535"),
        (["demo", "--serve", "--port", "0"], "use a port from 1 to 65535"),
        (["validate", "toy", "--jobs", "99999999999"], "use a number from 1 to 64"),
        (["load", "", "--benchmark", "toy"], "the path is empty: name a file"),
        (["load", "/dev/null", "--benchmark", "toy"], "/dev/null has a fault"),
        (["demo", "--write", "/nowhere/outcomes.csv"], "Cannot write /nowhere/outcomes.csv"),
    ],
)
def test_refusals_in_words(db, run, arguments, words):
    with pytest.raises(CommandError, match=words):
        run(*arguments)


@pytest.mark.parametrize("arguments", [["serve"], ["demo", "--serve"]])
@pytest.mark.parametrize("how", ["PORT=NUMBER", "--port NUMBER"])
def test_a_port_that_another_program_has_is_refused_first(db, run, arguments, how, monkeypatch):
    monkeypatch.delenv("MAKELEVEL", raising=False)
    if how == "PORT=NUMBER":
        monkeypatch.setenv("MAKELEVEL", "1")
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(CommandError, match=rf"is in use\. Choose another with {how}\.") as refused,
    ):
        run(*arguments, "--port", str(taken.getsockname()[1]))
    assert refused.value.returncode == 2


@pytest.mark.parametrize("slug", ["my bench", "", "-1", "_a", "b" * 101])
def test_a_slug_must_fit_an_address(db, run, file, slug):
    with pytest.raises(CommandError, match="Invalid name for an address"):
        run("load", str(file), f"--benchmark={slug}")


def test_a_pipe_with_a_name_is_read(db, run, file, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(f"exec cat '{file}' > '{tmp_path}/pipe'", shell=True) as writer:
        try:
            assert "Stored in toy: 320 new" in run("load", f"{tmp_path}/pipe", "--benchmark", "toy")
        finally:
            writer.kill()


@pytest.mark.parametrize(
    "arguments", [["approve", "toy", "\udcff", "--reason", "r"], ["benchmark", "\udcff"]]
)
def test_an_argument_that_is_no_text_is_refused(monkeypatch, arguments):
    monkeypatch.setattr(sys, "argv", ["manage.py", *arguments])
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    with pytest.raises(SystemExit) as end:
        command.main()
    assert end.value.code == "The argument '\\udcff' is not UTF-8 text. Type it again as UTF-8."


def test_a_file_may_have_a_name_that_is_no_text(tmp_path):
    (tmp_path / "a\udcff.csv").touch()
    command.check_text(["manage.py", "load", str(tmp_path / "a\udcff.csv")])


def test_ctrl_c_ends_without_a_traceback(monkeypatch):
    def interrupted(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "run", interrupted)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    with pytest.raises(SystemExit) as end:
        command.main()
    assert end.value.code == 130


def test_standings_before_the_first_board(db, run, file):
    run("load", str(file), "--benchmark", "toy")
    with pytest.raises(CommandError, match="No board is published yet"):
        run("standings", "toy")


def test_token_is_printed_once_and_works(db, run, file, django_user_model):
    run("load", str(file), "--benchmark", "toy")
    text = run("token", "Ada@example.org", "--benchmark", "toy", "--scope", "submit").strip()
    token = token_of(text, as_of=AS_OF)
    assert (token.scopes, token.benchmarks) == (["read", "submit"], ["toy"])
    user = django_user_model.objects.get()
    assert user.memberships.get().role == Role.SUBMITTER
    assert not user.has_usable_password()
    run("token", "ada@example.org", "--benchmark", "toy", "--scope", "operate")
    run("token", "ada@example.org", "--benchmark", "toy", "--scope", "read")
    assert user.memberships.get().role == Role.OPERATOR
    assert user.tokens.count() == 3


@pytest.mark.slow
def test_demo_shows_subset_runs_and_is_the_same_again(db, run):
    first = run("demo", "--example", "simulated")
    assert "from 36 agents" not in first
    content = json.loads(run("standings", "demonstration", "--format", "json"))
    assert [line["marks"] for line in content["agents"]].count(["estimated"]) == 6
    assert 40 <= content["subset"]["size"] <= 60
    assert content["n_tasks"] == 120
    assert policy_in_force(Benchmark.objects.get()).assignment == "staged"
    again = run("demo", "--example", "simulated")
    assert "0 new results, 18,000 already stored" in again
    assert Board.objects.count() == 2


@pytest.mark.slow
def test_demo_shows_a_real_benchmark_and_what_it_would_have_saved(transactional_db, run, monkeypatch):
    field = vars(Policy._meta.get_field("assignment"))
    monkeypatch.setitem(field, "_get_default", lambda: "staged")
    printed = run("demo")
    assert "28,500 new results; 57 submissions from 57 agents on 500 tasks" in printed
    assert "6 of 57 agents could be the best. Blackbox AI Agent v1.1 scores highest: 62.8 ± 4.2%" in printed
    assert "The simulated board is stored as benchmark swe-bench-verified-here, board 1." in printed
    assert "not stated" not in printed[: printed.index("Rank  ")].replace("Costs are not stated", "")
    about = Benchmark.objects.get(slug="swe-bench-verified-here")
    assert "Not the official leaderboard." in about.description
    again = run("demo")
    assert "0 new results, 28,500 already stored" in again
    assert Board.objects.count() == 2


@pytest.mark.parametrize(
    ("example", "told"),
    [
        (
            "simulated",
            "18,000 new results (123 invalid); 30 submissions from 30 agents on 120 tasks",
        ),
        (
            "swe-bench-verified",
            "28,500 new results; 57 submissions from 57 agents on 500 tasks",
        ),
    ],
)
def test_demo_writes_its_full_runs_as_a_file_that_can_be_loaded(db, run, tmp_path, example, told):
    path = tmp_path / "outcomes.csv"
    assert run("demo", "--write", str(path), "--example", example) == f"Wrote {path}.\n"
    assert f"Would store in mine: {told}" in run("load", str(path), "--benchmark", "mine", "--dry-run")
    assert not Benchmark.objects.exists()


def test_demo_writes_its_full_runs_whole_or_not_at_all(run, tmp_path):
    folder = tmp_path / "disk"
    path = folder / "outcomes.csv"
    with small_disk(folder, 64 << 10):
        for before in ([], [path]):
            for one in before:
                one.write_text("mine")
            with pytest.raises(CommandError, match=f"^Cannot write {path} .*No space left on device"):
                run("demo", "--write", str(path))
            assert list(folder.iterdir()) == before
        assert path.read_text() == "mine"


def test_demo_writes_to_a_device_and_not_in_its_place(run):
    assert run("demo", "--write", "/dev/null") == ""
    assert Path("/dev/null").is_char_device()


def test_demo_with_a_file_takes_the_slug_from_it(db, run, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(csv_text(ladder(6, 20), benchmark="My Bench@0.1.2"))
    run("demo", "--file", str(path))
    assert Benchmark.objects.get().slug == "my-bench-0-1-2"


def manage(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **environment},
    )


@pytest.mark.parametrize("absent", ["SECRET_KEY", "ALLOWED_HOSTS"])
def test_nothing_unsafe_has_a_default_with_a_database_url(absent):
    given = {"DATABASE_URL": "postgres://x@localhost/x", "SECRET_KEY": "s", "ALLOWED_HOSTS": "example.org"}
    answer = manage("check", **{name: value for name, value in given.items() if name != absent})
    assert answer.returncode != 0
    assert f"{absent} must be set" in answer.stderr


def test_help_needs_no_database():
    for arguments in (["load", "--help"], ["check"]):
        answer = manage(*arguments, BANDSTAND_HOME="/nonexistent/home")
        assert answer.returncode == 0, answer.stderr


def test_tables_that_are_not_there_yet():
    with tempfile.TemporaryDirectory(prefix="bst-") as home:
        answer = manage("standings", "toy", BANDSTAND_HOME=home)
    assert answer.returncode == 1
    assert "manage.py migrate" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_next_steps_name_the_program_as_it_was_called():
    """As pip's script does: an installation has no manage.py."""
    for called, named in {
        "/opt/bandstand/bin/bandstand-server": "bandstand-server",
        "manage.py": "manage.py",
        "./manage.py": "manage.py",
    }.items():
        script = (
            f"import sys; sys.argv = [{called!r}]; from leaderboard.called import PROGRAM; print(PROGRAM)"
        )
        done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
        assert (done.stdout, done.stderr) == (f"{named}\n", "")
    sources = (ROOT / "leaderboard").rglob("*.py")
    assert [path.name for path in sources if ": manage.py " in path.read_text()] == []


def test_the_command_that_changes_the_policy_is_named_where_another_strategy_is_better(run, toy, monkeypatch):
    result = stored()
    of_spread = result["protocols"]["loao"]["strategies"]["spread"]
    of_spread["policy_difference"], of_spread["se"]["policy_difference"] = 0.03, 0.01
    for name, told in result["protocols"]["loao"]["strategies"].items():
        if name != "spread":
            told["policy_difference"] = None
    for name in set(result["protocols"]) - {"loao"}:
        result["protocols"][name]["available"] = False
        result["protocols"][name]["strategies"] = {}
    study = SimpleNamespace(result=result)
    monkeypatch.setattr(policy, "latest_study", lambda model, benchmark: study)
    said = "more pairs correctly than mid_range. To use it: manage.py policy toy --set strategy=spread"
    assert said in run("policy", "toy")
