"""HAL's upload files."""

import pytest

from leaderboard.submissions.parsing.importers import hal
from tests.leaderboard.importers import shapes


@pytest.fixture
def upload(tmp_path):
    def make(name="gaia_1_UPLOAD.json", **content):
        return shapes.write(tmp_path / name, shapes.hal(**content))

    return make


def test_values_by_hand(read, upload):
    found = read(upload(passed=["a", "b"], failed=["c"]))
    flat = found.flat
    assert found.format == "hal"
    assert dict(zip(flat.tasks, flat.outcome, strict=True)) == {"a": 1, "b": 1, "c": 0}
    assert flat.agents == ("HAL Generalist Agent (Claude Haiku 4.5 (October 2025))",)
    assert flat.scaffolds == ("HAL Generalist Agent",)
    assert flat.models == ("Claude Haiku 4.5 (October 2025)",)
    assert str(flat.submitted_at[0]) == "2026-01-05T00:00:00"
    assert flat.settings[0].run == "gaia_1767571200"
    assert flat.valid.all()
    assert flat.measured["cost_usd"].tolist() == [1.0, 1.0, 1.0]  # 3 dollars over three tasks
    assert found.notes == ["gaia_1_UPLOAD.json is of the benchmark gaia."]


def test_a_task_in_neither_list_is_missing(read, upload):
    found = read(upload(), tasks=["t1", "t2", "t3"])
    assert found.flat.tasks == ("t1", "t2")
    assert found.notes[-1] == "Tasks of the benchmark that are not in it and stay missing: 1 of 3 (t3)."


def test_a_task_in_both_lists_is_a_fault(refusal, upload):
    told = refusal(upload(passed=["t1", "t2"], failed=["t2"]))
    assert 'results.failed_tasks[0] "t2": the task stands at results.successful_tasks[1] too' in told


def test_numbers_are_names_of_tasks(outcomes, upload):
    assert outcomes(upload(passed=[7], failed=["12"])) == {("7", 1): 1, ("12", 1): 0}


@pytest.mark.parametrize(
    ("name", "scaffold", "model"),
    [
        ("Loop (M)", "Loop", "M"),
        ("HAL (v2) (GPT-4.1 (April 2025))", "HAL (v2)", "GPT-4.1 (April 2025)"),
        ("Loop", None, None),
        ("Loop (M) beta", None, None),
        ("(M)", None, None),
        ("Loop M)", None, None),
        ("Loop ()", None, None),
    ],
)
def test_an_agents_name_is_taken_apart(name, scaffold, model):
    assert hal.parts(name) == (scaffold, model)


def test_a_name_of_another_form_asks_for_the_scaffold(read, refusal, upload):
    file = upload(agent="my agent")
    told = refusal(file)
    assert "gaia_1_UPLOAD.json does not carry scaffold; state what is lacking: --scaffold." in told
    flat = read(file, scaffold="Loop").flat
    assert (flat.agents, flat.scaffolds, flat.models) == (
        ("my agent",),
        ("Loop",),
        ("anthropic/claude-haiku-4-5",),
    )


def test_files_of_a_folder_that_lack_the_scaffold_are_named(read, refusal, upload, tmp_path):
    upload("a_UPLOAD.json")
    upload("b_UPLOAD.json", agent="my agent")
    message = refusal(tmp_path)
    assert message.startswith("b_UPLOAD.json lacks scaffold; load it by itself, with --scaffold.\n")
    upload("c_UPLOAD.json", agent="other agent")
    message = refusal(tmp_path)
    assert message.startswith(
        "b_UPLOAD.json, c_UPLOAD.json lack scaffold; load each by itself, with --scaffold."
    )


def test_lists_of_means_over_prompts_are_refused(refusal, upload):
    assert "config.prompt_sensitivity: the lists of tasks are of means over prompts" in refusal(
        upload(prompt_sensitivity=True)
    )


def test_lists_that_are_null_hold_no_outcome(refusal, tmp_path):
    content = shapes.hal()
    content["results"] |= {"successful_tasks": None, "failed_tasks": None}
    told = refusal(shapes.write(tmp_path / "x_UPLOAD.json", content))
    assert "results.successful_tasks: is missing" in told


def test_the_same_file_twice_counts_once(read, upload, tmp_path):
    upload()
    upload("copy_UPLOAD.json")
    found = read(tmp_path)
    assert found.flat.n_rows == 2
    assert "gaia_1_UPLOAD.json is there twice and counts once." in found.notes


def test_two_runs_of_an_agent_are_two_runs(read, upload, tmp_path):
    upload(run_id="one")
    upload("two_UPLOAD.json", run_id="two", passed=["t1", "t2"], failed=[])
    flat = read(tmp_path).flat
    assert [setting.run for setting in flat.settings] == ["one", "two"]
    assert flat.n_rows == 4
