"""`load` of other projects' results: what is stored, and that the same file again is nothing new."""

import io
import json
import re
import shlex

import pytest
from django.core.management import CommandError, call_command

from leaderboard.catalog.models import Agent, Benchmark, Task
from leaderboard.submissions.models import Outcome, OutcomeDetail, Submission
from tests.cluster import ROOT
from tests.leaderboard.importers import shapes
from tests.leaderboard.importers.base import FILES, put
from tests.toys import csv_text


@pytest.fixture
def load(db):
    def call(*paths, **options):
        """Paths, and options as they are written on the command line."""
        out = io.StringIO()
        call_command("load", *map(str, paths), benchmark="toy", stdout=out, **options)
        return out.getvalue()

    return call


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_stored_and_again_is_nothing_new(load, tmp_path, name):
    path, stated = put(tmp_path, name)
    n = FILES[name][3]
    printed = load(path, **stated)
    assert printed.startswith(f"Read as {name}: {path.name}.\n")
    new = "1 new result" if n == 1 else f"{n:,} new results"
    n_invalid = Outcome.objects.filter(valid=False).count()
    invalid = f" ({n_invalid} invalid)" if n_invalid else ""
    assert f"Stored in toy: {new}{invalid}; 1 submission from 1 agent" in printed
    assert Outcome.objects.count() == n
    before = Benchmark.objects.get().data_version
    assert f"0 new results, {n:,} already stored." in load(path, **stated, format=name)
    assert f"0 new results, {n:,} already stored." in load(tmp_path, **stated)
    assert (Outcome.objects.count(), Benchmark.objects.get().data_version) == (n, before)


def test_what_is_printed(load, tmp_path):
    path, _ = put(tmp_path, "hal")
    assert load(path).splitlines()[:3] == [
        "Read as hal: x_UPLOAD.json.",
        "x_UPLOAD.json is of the benchmark gaia.",
        "Stored in toy: 3 new results; 1 submission from 1 agent on 3 tasks (3 new).",
    ]


def test_what_is_stored(load, tmp_path):
    """By hand: a passed, b failed, c without a result; run and date of the metadata."""
    trials = [
        shapes.tb_trial("a", True),
        shapes.tb_trial("b", False),
        shapes.tb_trial("c", None, failure="x"),
    ]
    load(shapes.tb_run(tmp_path / "r", trials))
    names = dict(Task.objects.values_list("id", "name"))
    found = {names[one.task_id]: (one.value, one.valid) for one in Outcome.objects.all()}
    assert found == {"a": (1, True), "b": (0, True), "c": (None, False)}
    agent = Agent.objects.get()
    assert (agent.name, agent.scaffold.name, agent.model.name) == (
        "terminus-2 (anthropic/claude-4)",
        "terminus-2",
        "anthropic/claude-4",
    )
    submission = Submission.objects.get()
    assert (f"{submission.submitted_at:%Y-%m-%d}", submission.n_invalid) == ("2026-01-05", 1)
    assert [detail.metadata for detail in OutcomeDetail.objects.all()] == [{"reason": "x"}]


def test_each_run_is_a_submission_and_a_grown_folder_adds_its_new_one(load, tmp_path):
    shapes.tb_run(tmp_path / "1", [shapes.tb_trial("a", True)])
    load(tmp_path)
    shapes.tb_run(tmp_path / "2", [shapes.tb_trial("a", False, run="run-2")], run="run-2")
    assert "1 new result, 1 already stored; 1 submission from 1 agent" in load(tmp_path)
    assert Submission.objects.count() == 2


def test_the_version_is_the_agents(load, tmp_path):
    load(shapes.harbor_job(tmp_path / "job", [shapes.harbor_trial("a", {"reward": 1})]))
    assert Agent.objects.get().version == "2.0.0"


def test_tasks_of_the_benchmark_that_are_lacking_are_told(load, tmp_path):
    load(shapes.write(tmp_path / "x.csv", csv_text({"z": "101"})))
    path, _ = put(tmp_path, "hal", shapes.hal(passed=["t00"], failed=["t9"]))
    printed = load(path)
    assert "Tasks of the benchmark that are not in it and stay missing: 2 of 3 (t01, t02).\n" in printed
    assert "Its tasks that are not the benchmark's: 1 (t9).\n" in printed


def test_names_of_the_command_line_count(load, tmp_path):
    path, _ = put(tmp_path, "hal")
    printed = load(path, agent="HAL (Haiku)", model="Haiku 4.5")
    named = "Claude Haiku 4.5 (October 2025)"
    assert f'model: "Haiku 4.5" counts, as --model states; 1 run names "{named}".\n' in printed
    assert (Agent.objects.get().name, Agent.objects.get().model.name) == ("HAL (Haiku)", "Haiku 4.5")


def test_a_flat_file_is_loaded_as_ever(load, tmp_path):
    path = shapes.write(tmp_path / "x.csv", csv_text({"a": "10"}))
    assert load(path).startswith("Stored in toy: 2 new")
    assert "0 new" in load(path, format="flat")


def test_the_page_shows_what_is_printed(db, tmp_path):
    page = (ROOT / "docs" / "formats.md").read_text()
    [report] = re.findall(r"^cat > (?:.+) << 'END'\n(.+?)\nEND$", page, re.MULTILINE | re.DOTALL)
    [command, *_] = re.findall(r"manage\.py (load model\.run-1\.json .+)", page)
    [shown, *_] = re.findall(r"^```text\n(.+?)^```$", page, re.MULTILINE | re.DOTALL)
    path, out = shapes.write(tmp_path / "model.run-1.json", report), io.StringIO()
    call_command(*shlex.split(command.replace("model.run-1.json", str(path), 1)), stdout=out)
    assert out.getvalue() == shown


def test_a_dry_run_stores_nothing(load, tmp_path):
    path, _ = put(tmp_path, "hal")
    assert "Would store in toy: 3 new" in load(path, "--dry-run")
    assert not Benchmark.objects.exists()


REFUSED = {
    "lacking": ("swe-bench", {}, r"state what is lacking: --agent, --scaffold, --model, --submitted-at\."),
    "another format": ("hal", {"format": "helm"}, r"is no helm file; it looks like hal\."),
    "no such format": ("hal", {"format": "hall"}, r"There is no format 'hall'"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_a_refusal_stores_nothing(load, tmp_path, why):
    name, options, words = REFUSED[why]
    with pytest.raises(CommandError, match=words):
        load(put(tmp_path, name)[0], **options)
    assert not Benchmark.objects.exists()


def test_another_result_under_the_same_run_is_a_contradiction(load, tmp_path):
    path, _ = put(tmp_path, "hal")
    load(path)
    path.write_text(json.dumps(shapes.hal(passed=["a"], failed=["b", "c"])))
    with pytest.raises(CommandError, match="is stored as 1 for agent"):
        load(path)
    assert "1 replaced" in load(path, "--replace")


# ------------------------------------------------------------------------------------------- several paths


def runs_of(folder, *names):
    return [shapes.tb_run(folder / name, [shapes.tb_trial("a", True, run=name)], run=name) for name in names]


def test_several_paths_of_one_format_are_read_as_one_folder(load, tmp_path):
    """A run's file, and a folder of two runs."""
    single, *_ = runs_of(tmp_path, "run-1", "more/run-2", "more/run-3")
    printed = load(single / "results.json", tmp_path / "more", agent="A", model="M")
    assert f"Read as terminal-bench: {single / 'results.json'} … {tmp_path / 'more'}.\n" in printed
    assert 'model: "M" counts, as --model states; 3 runs name "anthropic/claude-4".' in printed
    assert "Stored in toy: 3 new results; 3 submissions from 1 agent on 1 task" in printed
    assert Benchmark.objects.get().data_version == 1


def test_several_files_of_lm_eval_say_their_task_by_their_names(load, tmp_path):
    for task in ("a", "b"):
        shapes.lm_folder(tmp_path, {task: [shapes.lm_sample(0, 1.0)]})
    assert "on 2 tasks" in load(*sorted(tmp_path.rglob("samples_*")), scaffold="Loop")


def test_several_flat_files_are_stored_one_after_the_other_under_one_version(load, tmp_path):
    first = shapes.write(tmp_path / "b.csv", csv_text({"b": "101"}))
    second = shapes.write(tmp_path / "a.csv", csv_text({"a": "1010", "b": "101"}))
    printed = load(first, second, first)
    assert (
        "Stored in toy: 7 new results, 3 already stored; 2 submissions from 2 agents on 4 tasks (4 new)"
        in printed
    )
    assert list(Submission.objects.order_by("pk").values_list("agent__name", flat=True)) == ["b", "a"]
    assert Benchmark.objects.get().data_version == 1


def test_flat_files_and_others_are_loaded_together(load, tmp_path):
    table = shapes.write(tmp_path / "x.csv", csv_text({"a": "10"}))
    printed = load(put(tmp_path, "hal")[0], table)
    assert "Stored in toy: 5 new results; 2 submissions from 2 agents on 5 tasks" in printed


def test_a_dry_run_of_several_files_counts_them_together(load, tmp_path):
    files = [shapes.write(tmp_path / f"{name}.csv", csv_text({name: "10"})) for name in "ab"]
    assert "Would store in toy: 4 new results; 2 submissions from 2 agents on 2 tasks (2 new)" in load(
        *files, "--dry-run"
    )
    assert not Benchmark.objects.exists()


def test_the_faults_of_all_files_are_told_at_once_and_name_their_file(load, tmp_path):
    good = shapes.write(tmp_path / "good.csv", csv_text({"a": "10"}))
    bad = shapes.write(tmp_path / "bad.csv", csv_text({"b": "12"}))
    other = shapes.write(tmp_path / "in" / "x_UPLOAD.json", shapes.hal(passed=["t1"], failed=["t1"]))
    unknown = shapes.write(tmp_path / "x.txt", "hello")
    with pytest.raises(CommandError) as refused:
        load(good, bad, other.parent, unknown)
    told = str(refused.value)
    assert f"{bad} has a fault. Nothing was stored. Rows count without the header.\n" in told
    assert f"(in {bad})\n" in told
    assert "the task stands at results.successful_tasks[0] too (in " in told
    assert f"{str(other)[-70:]})" in told
    assert f"{unknown} is of no format that is known." in told
    assert not Benchmark.objects.exists()


def test_a_file_that_contradicts_an_earlier_one_is_named(load, tmp_path):
    first, second = (
        shapes.write(tmp_path / f"{name}.csv", csv_text({"a": marks}))
        for name, marks in (("x", "10"), ("y", "11"))
    )
    with pytest.raises(
        CommandError, match=f"{second} contradicts {first}. Nothing was stored. Rows count without"
    ):
        load(first, second)
    assert not Benchmark.objects.exists()


def test_a_path_that_is_not_there_is_a_wrong_argument(load, tmp_path):
    with pytest.raises(CommandError, match=r"File not found: .*b\.csv") as refused:
        load(shapes.write(tmp_path / "a.csv", csv_text({"a": "10"})), tmp_path / "b.csv")
    assert refused.value.returncode == 2


def test_a_path_that_is_not_there_hides_no_faults(load, tmp_path):
    bad = [shapes.write(tmp_path / f"{name}.csv", csv_text({name: "12"})) for name in "ac"]
    with pytest.raises(CommandError, match=r"File not found: .*b\.csv") as refused:
        load(bad[0], tmp_path / "b.csv", bad[1])
    assert all(f"(in {path})" in str(refused.value) for path in bad)
    assert refused.value.returncode == 2


def test_files_of_different_benchmarks_are_refused(load, tmp_path):
    first, second, third = (
        shapes.write(tmp_path / f"{name}.csv", csv_text({name: "10"}, benchmark=benchmark))
        for name, benchmark in (("a a", "GAIA"), ("b", "SciCode"), ("c", "GAIA"))
    )
    with pytest.raises(CommandError) as refused:
        load(first, second, third, put(tmp_path, "hal")[0])
    assert str(refused.value) == (
        f'The files hold 2 benchmarks: "GAIA" in {first}, {third}; "SciCode" in {second}. '
        f"Nothing was stored. Load them one by one: manage.py load '{first}' {third} --benchmark toy"
    )
    assert not Benchmark.objects.exists()


def test_a_file_of_another_benchmark_than_the_stored_one_is_told(load, tmp_path):
    first, other, own = (
        shapes.write(tmp_path / f"{name}.csv", csv_text({name: "10"}, benchmark=benchmark))
        for name, benchmark in (("a", "GAIA"), ("b", "SciCode"), ("c", "toy"))
    )
    note = 'The file names the benchmark "SciCode"; "toy" was loaded as "GAIA".'
    assert "names the benchmark" not in load(first) + load(first) + load(own)
    assert note in load(other, "--dry-run").splitlines()
    assert note in load(other).splitlines()


def test_a_file_that_contradicts_another_about_an_agent_is_named(load, tmp_path):
    text = csv_text({"A1": "10"})
    first = shapes.write(tmp_path / "conf1.csv", text)
    second = shapes.write(tmp_path / "conf2.csv", text.replace(",Loop,", ",Tree,"))
    with pytest.raises(CommandError) as refused:
        load(first, second)
    assert str(refused.value).startswith(f"{second}: The agent 'A1' is known here with scaffold 'Loop'")
    load(first)
    with pytest.raises(CommandError, match=r"^The agent 'A1' is known"):
        load(second)


def test_a_name_is_spelled_one_way_in_all_files(load, tmp_path):
    text = csv_text({"a": "10"})
    first = shapes.write(tmp_path / "m1.csv", text)
    second = shapes.write(tmp_path / "m4.csv", text.replace(",Loop,", ",loop,"))
    with pytest.raises(CommandError) as refused:
        load(first, second)
    assert str(refused.value).split("\n") == [
        "The files spell a name in two ways. Nothing was stored.",
        f'  scaffold "loop": is "Loop" in {first}; spell each scaffold one way (in {second})',
    ]
    assert not Benchmark.objects.exists()


def test_the_help_names_the_formats():
    from leaderboard.terminal.management.commands.load import Command

    told = " ".join(Command().create_parser("manage.py", "load").format_help().split())
    assert all(name in told for name in ("flat", *FILES))
