"""Runs of Terminal-Bench v1."""

import shutil

from tests.leaderboard.importers import shapes
from tests.leaderboard.importers.shapes import tb_run, tb_trial


def test_values_by_hand(read, tmp_path):
    trials = [
        tb_trial("a", True, tokens=7),
        tb_trial("b", False, failure="agent_timeout"),
        tb_trial("c", None, failure="parse_error"),
    ]
    found = read(tb_run(tmp_path / "run-1", trials))
    flat = found.flat
    assert found.format == "terminal-bench"
    assert (flat.agents, flat.scaffolds, flat.models) == (
        ("terminus-2 (anthropic/claude-4)",),
        ("terminus-2",),
        ("anthropic/claude-4",),
    )
    assert flat.tasks == ("a", "b", "c")
    assert flat.valid.tolist() == [True, True, False]
    assert flat.outcome[:2].tolist() == [1, 0]
    assert flat.measured["n_input_tokens"][0] == 7
    assert str(flat.measured["n_input_tokens"][1]) == "nan"  # 0 is not counted, not none
    assert str(flat.submitted_at[0]) == "2026-01-05T11:00:00"
    assert flat.settings[0].run == "run-1"
    assert flat.metadata["reason"].to_pylist() == [None, None, "parse_error"]
    assert found.notes == ["The runs are of the benchmark terminal-bench-core 0.1.1."]


def test_trials_have_the_numbers_of_their_names(outcomes, tmp_path):
    """After resuming they stand in any order."""
    trials = [tb_trial("a", mark, attempt=k, n=3) for k, mark in ((3, True), (1, False), (2, None))]
    assert outcomes(tb_run(tmp_path, trials)) == {("a", 1): 0, ("a", 2): None, ("a", 3): 1}


def test_without_names_trials_are_numbered_in_order(outcomes, tmp_path):
    trials = [tb_trial("a", mark) | {"trial_name": None, "id": None} for mark in (True, False)]
    file = shapes.write(tmp_path / "results.json", {"id": "b", "results": trials, "n_resolved": 1})
    assert outcomes(file, "terminal-bench", **shapes.STATED) == {("a", 1): 1, ("a", 2): 0}


def test_a_model_that_is_null_is_asked_for(read, refusal, tmp_path):
    run = tb_run(tmp_path / "r", [tb_trial("a", True)], model=None)
    assert "r does not carry model; state what is lacking: --model." in refusal(run)
    assert read(run, model="M").flat.agents == ("terminus-2 (M)",)


def test_a_run_met_twice_counts_once(read, tmp_path):
    trials = [tb_trial("a", True), tb_trial("b", False)]
    tb_run(tmp_path / "first", trials)
    tb_run(tmp_path / "copy", trials)
    found = read(tmp_path)
    assert found.flat.n_rows == 2
    assert "Runs met twice, which count once: 1." in found.notes


def test_a_run_in_anothers_folder_counts_once(read, tmp_path):
    tb_run(tmp_path / "run-2", [tb_trial("a", False, run="run-2")], run="run-2", uuid="u-2")
    outer = tb_run(tmp_path / "run-1", [tb_trial("a", True)])
    shutil.copytree(tmp_path / "run-2", outer / "run-2")
    flat = read(tmp_path).flat
    assert [setting.run for setting in flat.settings] == ["run-1", "run-2"]
    assert flat.n_rows == 2


def test_a_copy_with_another_result_is_a_fault(refusal, tmp_path):
    tb_run(tmp_path / "a", [tb_trial("t", True)])
    tb_run(tmp_path / "b", [tb_trial("t", False)])
    told = refusal(tmp_path)
    assert (
        "results[0]: is the trial at results[0] of a/results.json, with another result (in b/results.json)"
        in told
    )


def test_a_run_that_was_resumed_adds_its_new_trials(read, tmp_path):
    first = tb_trial("a", True, n=2)
    tb_run(tmp_path / "before", [first])
    tb_run(tmp_path / "after", [first, tb_trial("a", False, attempt=2, n=2)], uuid="u-2")
    assert read(tmp_path).flat.n_rows == 2


def test_a_run_that_broke_off_is_a_fault(refusal, tmp_path):
    tb_run(tmp_path / "good", [tb_trial("a", True)])
    (tb_run(tmp_path / "bad", [tb_trial("a", True, run="r")]) / "results.json").unlink()
    assert "the run has no results.json: it did not come to its end (in bad/run_metadata.json)" in refusal(
        tmp_path
    )


def test_a_run_without_metadata_among_others_is_a_fault(refusal, tmp_path):
    tb_run(tmp_path / "good", [tb_trial("a", True)])
    (tb_run(tmp_path / "bad", [tb_trial("a", True, run="r")]) / "run_metadata.json").unlink()
    told = refusal(tmp_path)
    assert "the run has no run_metadata.json, as others here have (in bad/results.json)" in told


def test_runs_of_several_agents(read, tmp_path):
    tb_run(tmp_path / "x", [tb_trial("a", True)], model="X")
    tb_run(tmp_path / "y", [tb_trial("a", False, run="run-2")], model="Y", run="run-2")
    assert read(tmp_path).flat.agents == ("terminus-2 (X)", "terminus-2 (Y)")


def test_one_label_does_not_stand_for_two_runs(refusal, tmp_path):
    tb_run(tmp_path / "x", [tb_trial("a", True)])
    tb_run(tmp_path / "y", [tb_trial("a", False, run="run-2")], run="run-2")
    assert "one label cannot stand for the 2 runs in it; leave --run out" in refusal(tmp_path, run="r")


def test_the_metadata_lead_to_the_results_beside_them(read, tmp_path):
    run = tb_run(tmp_path, [tb_trial("a", True)])
    for name in ("results.json", "run_metadata.json"):
        assert read(run / name).flat.agents == ("terminus-2 (anthropic/claude-4)",)


def test_beside_a_file_that_was_sent_nothing_is_read(refusal, tmp_path):
    run = tb_run(tmp_path, [tb_trial("a", True)])
    told = refusal(run / "results.json", called="sent.json")
    assert "sent.json does not carry agent, scaffold, model, submitted_at" in told


def test_words_for_the_result_are_faults(refusal, tmp_path):
    told = refusal(tb_run(tmp_path, [tb_trial("a", "yes")]))
    assert 'results[0].is_resolved "yes": must be true, false or null, not a text' in told
