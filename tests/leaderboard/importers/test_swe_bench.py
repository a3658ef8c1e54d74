"""Reports of SWE-bench: of runs, and of single instances in the logs."""

import pytest

from leaderboard.errors import Faulty
from leaderboard.submissions.parsing import importers
from leaderboard.submissions.parsing.importers import ImportOptions
from tests.leaderboard.importers import shapes
from tests.leaderboard.importers.shapes import STATED, swe_instance, swe_report
from tests.toys import AS_OF


@pytest.fixture
def report(tmp_path):
    def make(**lists):
        return shapes.write(tmp_path / "model__x.run-1.json", swe_report(**lists))

    return make


def test_values_by_hand(read, report):
    """Resolved 1; unresolved, an empty patch and an error 0; failures of the environment invalid."""
    file = report(
        resolved=["a"],
        unresolved=["b", "u"],
        empty_patch=["c"],
        error=["d", "e"],
        incomplete=["f"],
        submitted=["a", "b", "c", "d", "e", "u"],
        infra_failure_ids=["e"],
        ambiguous_failure_ids=["u"],
        failure_reasons={"e": "out_of_memory", "u": "tests_timed_out"},
    )
    found = read(file, **STATED)
    flat = found.flat
    assert found.format == "swe-bench"
    rows = {flat.tasks[task]: i for i, task in enumerate(flat.task)}
    assert {name: bool(flat.valid[i]) for name, i in rows.items()} == dict.fromkeys(
        "abcd", True
    ) | dict.fromkeys("eu", False)
    assert {name: flat.outcome[rows[name]] for name in "abcd"} == {"a": 1, "b": 0, "c": 0, "d": 0}
    assert flat.agents == ("Loop (M)",)
    assert found.notes == ["model__x.run-1.json: Instances without a prediction, missing and not failed: 1."]


def test_the_benchmark_says_what_is_missing(read, report):
    """The report's 500 instances are those of its data set."""
    found = read(report(resolved=["a"], submitted=["a"]), tasks=["a", "b", "c"], **STATED)
    assert found.flat.n_rows == 1
    assert found.notes == ["Tasks of the benchmark that are not in it and stay missing: 2 of 3 (b, c)."]


def test_who_ran_it_is_asked_for_at_once(refusal, report):
    told = refusal(report(resolved=["a"]))
    assert (
        "model__x.run-1.json does not carry agent, scaffold, model, submitted_at; "
        "state what is lacking: --agent, --scaffold, --model, --submitted-at." in told
    )
    assert "submitted_at: is not in the file; state it with --submitted-at" in told


@pytest.mark.parametrize("wrong", [500, "a", {"a": 1}, True])
def test_errors_that_are_no_list_are_a_fault(refusal, tmp_path, wrong):
    file = shapes.write(tmp_path / "model__x.run-1.json", swe_report(resolved=["a"]) | {"error_ids": wrong})
    told = refusal(file, **STATED)
    assert "has a fault" in told
    assert "a list is expected, not" in told


def test_an_old_report_says_that_errors_count(read, report):
    assert read(report(resolved=["a"], error=["b"]), **STATED).notes == [
        "model__x.run-1.json: Errors, counted as failures: reports before 5.0 do not say whose they are: 1."
    ]


def test_another_version_is_refused(refusal, tmp_path):
    file = shapes.write(tmp_path / "x.json", swe_report(resolved=["a"]) | {"schema_version": 1})
    assert "schema_version: reports of version 2 are read" in refusal(file, **STATED)


@pytest.mark.parametrize(
    ("lists", "told"),
    [
        ({"resolved": ["a"], "unresolved": ["a"]}, "unresolved_ids[0]"),
        (
            {"resolved": ["a"], "infra_failure_ids": ["a"]},
            "the instance is resolved, and stands among the failures",
        ),
        ({"resolved": ["a"], "infra_failure_ids": ["z"]}, "z stands among the failures of the environment"),
    ],
)
def test_lists_that_contradict_each_other(refusal, report, lists, told):
    assert told in refusal(report(**lists), **STATED)


def test_predictions_outside_of_the_data_set_are_told(read, report):
    found = read(report(resolved=["a"], submitted=["a", "z"]), **STATED)
    assert found.notes == ["model__x.run-1.json: Predictions for no instance of the data set: 1."]


# ---------------------------------------------------------------------------- reports of single instances


def logs(folder, resolved=(), unresolved=(), error=(), *, run="run-1", model="model__x"):
    """The logs of a run, as the harness writes them: an error leaves no report."""
    inside = folder / "logs" / "run_evaluation" / run / model
    for name in (*resolved, *unresolved, *error):
        shapes.write(inside / name / "run_instance.log", "…")
        if name not in error:
            shapes.write(inside / name / "report.json", swe_instance(name, name in resolved))
    return inside


def test_the_logs_of_a_run_are_its_reports_and_its_errors(read, outcomes, tmp_path):
    """By hand, as `make_run_report` counts: what left a log and no report is an error, and fails."""
    inside = logs(tmp_path, ["a__a-1", "b__b.js-2"], ["c__c-3"], ["d__d-4"])
    expected = {("a__a-1", 1): 1, ("b__b.js-2", 1): 1, ("c__c-3", 1): 0, ("d__d-4", 1): 0}
    for folder in (tmp_path, inside):
        assert outcomes(folder, **STATED) == expected
    found = read(tmp_path, **STATED)
    assert (found.format, found.flat.settings[0].run) == ("swe-bench", "run-1")
    without = "Instances without a report, counted as failures as SWE-bench does"
    assert f"run-1: {without}: 1 (d__d-4)." in found.notes
    logs(tmp_path, ["a__a-1"], [], ["e", "f"], run="run-2")
    assert [note for note in read(tmp_path, **STATED).notes if without in note] == [
        f"run-1: {without}: 1 (d__d-4).",
        f"run-2: {without}: 2 (e, f).",
    ]


def test_each_run_of_the_logs_is_a_run(read, tmp_path):
    logs(tmp_path, ["a"], run="run-1")
    logs(tmp_path, [], ["a"], run="run-2")
    flat = read(tmp_path, **STATED).flat
    assert [flat.settings[code].run for code in flat.setting] == ["run-1", "run-2"]
    assert flat.outcome.tolist() == [1, 0]


def test_logs_of_several_models_are_refused(refusal, tmp_path):
    """Not merged into one agent, though one name is stated for all, be the folders named or found."""
    inside = [logs(tmp_path, ["a"], ["b"], model="mA"), logs(tmp_path, ["c", "b"], model="mB")]
    expected = "there are 2 models (mA, mB); load each folder by itself"
    [_, line] = refusal(tmp_path, **STATED).split("\n")
    assert line == expected
    with pytest.raises(Faulty) as refused:
        importers.read(*inside, name=None, options=ImportOptions(**STATED), benchmark="toy", as_of=AS_OF)
    assert [str(fault) for fault in refused.value.faults] == [expected]


def test_the_folder_names_the_model_and_another_that_is_stated_counts(read, tmp_path):
    logs(tmp_path, ["a"], model="org__m")
    known = {"scaffold": "Loop", "submitted_at": "2026-01-05"}
    assert read(tmp_path, **known).flat.models == ("org__m",)
    assert read(tmp_path, **known, model="org/m").notes == []
    found = read(tmp_path, **known, model="M 2")
    assert found.flat.agents == ("Loop (M 2)",)
    assert found.notes == ['model: "M 2" counts, as --model states; 1 run names "org__m".']


def test_an_instance_without_a_report_has_its_place_in_a_fault(refusal, tmp_path):
    """Two places of one run that has no label."""
    for part in ("p1", "p2"):
        shapes.write(tmp_path / part / "a" / "run_instance.log", "…")
        shapes.write(tmp_path / part / part / "report.json", swe_instance(part, True))
    assert "the row repeats p1/a/run_instance.log: agent" in refusal(tmp_path, **STATED)


def test_one_report_alone_is_read(outcomes, tmp_path):
    inside = logs(tmp_path, ["a"], ["b"])
    assert outcomes(inside / "b" / "report.json", **STATED) == {("b", 1): 0}


def test_a_folder_as_submitted_to_the_leaderboard_has_no_name_for_the_run(read, tmp_path):
    """github.com/SWE-bench/experiments keeps ``logs/INSTANCE/report.json`` alone."""
    shapes.write(tmp_path / "logs" / "a" / "report.json", swe_instance("a", True))
    shapes.write(tmp_path / "logs" / "b" / "report.json", swe_instance("b", False))
    flat = read(tmp_path, **STATED).flat
    assert (flat.tasks, flat.outcome.tolist(), flat.settings[0].run) == (("a", "b"), [1, 0], None)


def test_failures_of_the_environment_are_invalid(outcomes, tmp_path):
    failed = {"patch_successfully_applied": False}
    for name, more in (
        ("a", {"infra_failure": True, "infra_failure_reason": "out_of_memory"}),
        ("b", {"infra_failure": False, "infra_failure_reason": "tests_timed_out"}),
        ("c", {"infra_failure": False}),
    ):
        shapes.write(tmp_path / name / "report.json", swe_instance(name, False, **failed, **more))
    assert outcomes(tmp_path, **STATED) == {("a", 1): None, ("b", 1): None, ("c", 1): 0}


def test_a_report_without_a_verdict_is_a_fault(refusal, tmp_path):
    inside = logs(tmp_path, ["a"])
    shapes.write(inside / "b" / "report.json", swe_instance("b", None))
    told = refusal(tmp_path, **STATED)
    assert (
        "b.resolved: must be true or false, not null (in logs/run_evaluation/run-1/model__x/b/report" in told
    )


def test_reports_of_instances_are_left_alone_beside_the_report_of_the_run(read, report, tmp_path):
    report(resolved=["a"])
    logs(tmp_path, ["a"], ["b"])
    found = read(tmp_path, **STATED)
    assert found.flat.tasks == ("a",)
    assert "Reports of single instances, left alone beside the reports of runs: 2." in found.notes
