"""Run reports of SWE-bench."""

import pytest

from tests.leaderboard.importers import shapes
from tests.leaderboard.importers.shapes import STATED, swe_report


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
    assert "submitted_at: is not in the file; --submitted-at states it" in told


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


def test_a_report_of_one_instance_in_the_folder_is_left_alone(read, report, tmp_path):
    report(resolved=["a"])
    shapes.write(tmp_path / "logs" / "a" / "report.json", {"a": {"resolved": True}})
    assert read(tmp_path, **STATED).flat.n_rows == 1
