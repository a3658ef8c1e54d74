"""`load` of other projects' results: what is stored, and that the same file again is nothing new."""

import io
import json

import pytest
from django.core.management import CommandError, call_command

from leaderboard.catalog.models import Agent, Benchmark, Task
from leaderboard.submissions.models import Outcome, OutcomeDetail, Submission
from tests.leaderboard.importers import shapes
from tests.leaderboard.importers.base import FILES, put
from tests.toys import csv_text


@pytest.fixture
def load(db):
    def call(path, *arguments, **options):
        out = io.StringIO()
        call_command("load", str(path), *arguments, benchmark="toy", stdout=out, **options)
        return out.getvalue()

    return call


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_stored_and_again_is_nothing_new(load, tmp_path, name):
    path, stated = put(tmp_path, name)
    n = FILES[name][3]
    printed = load(path, **stated)
    assert printed.startswith(f"Read as {name}: {path.name}.\n")
    assert f"Stored in toy: {n:,} new, 0 already there; 1 submission from 1 agent" in printed
    assert Outcome.objects.count() == n
    before = Benchmark.objects.get().data_version
    assert f"0 new, {n:,} already there; 0 submissions" in load(path, **stated, format=name)
    assert f"0 new, {n:,} already there; 0 submissions" in load(tmp_path, **stated)
    assert (Outcome.objects.count(), Benchmark.objects.get().data_version) == (n, before)


def test_what_is_printed(load, tmp_path):
    path, _ = put(tmp_path, "hal")
    assert load(path).splitlines()[:3] == [
        "Read as hal: x_UPLOAD.json.",
        "x_UPLOAD.json is of the benchmark gaia.",
        "Stored in toy: 3 new, 0 already there; 1 submission from 1 agent on 3 tasks, 3 of them new.",
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
    assert "1 new, 1 already there; 1 submission from 1 agent" in load(tmp_path)
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


def test_a_flat_file_is_loaded_as_ever(load, tmp_path):
    path = shapes.write(tmp_path / "x.csv", csv_text({"a": "10"}))
    assert load(path).startswith("Stored in toy: 2 new")
    assert "0 new" in load(path, format="flat")


def test_a_dry_run_stores_nothing(load, tmp_path):
    path, _ = put(tmp_path, "hal")
    assert "Would store in toy: 3 new" in load(path, "--dry-run")
    assert not Benchmark.objects.exists()


REFUSED = {
    "lacking": ("swe-bench", {}, r"state what is lacking: --agent, --scaffold, --model, --submitted-at\."),
    "contradicted": ("hal", {"model": "GPT"}, r'the file names model "Claude Haiku'),
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


def test_the_help_names_the_formats():
    from leaderboard.terminal.management.commands.load import Command

    told = " ".join(Command().create_parser("manage.py", "load").format_help().split())
    assert all(name in told for name in ("flat", *FILES))
