"""Jobs of Harbor."""

import shutil

import pytest

from tests.leaderboard.importers import shapes
from tests.leaderboard.importers.shapes import harbor_job, harbor_trial


def test_values_by_hand(read, tmp_path):
    trials = [
        harbor_trial("a", {"reward": 1.0}),
        harbor_trial("b", {"reward": 0}),
        harbor_trial("c", {"reward": 0.5}),
    ]
    found = read(harbor_job(tmp_path / "job", trials))
    flat = found.flat
    assert found.format == "harbor"
    assert (flat.agents, flat.scaffolds, flat.models) == (
        ("terminus-2 (claude-opus-4-1)",),
        ("terminus-2",),
        ("claude-opus-4-1",),
    )
    assert dict(zip(flat.tasks, flat.outcome, strict=True)) == {"a": 1, "b": 0, "c": 0.5}
    assert flat.settings[0].run == "j-1"
    assert str(flat.submitted_at[0]) == "2026-01-05T10:01:00"
    assert flat.measured["cost_usd"].sum() == 0.75
    assert flat.measured["n_input_tokens"].tolist() == [10, 10, 10]
    assert [value for value in flat.metadata["version"].to_pylist() if value] == ["2.0.0"]


@pytest.mark.parametrize(
    ("raised", "outcome"),
    [
        (None, 1),
        ("AgentTimeoutError", 1),
        ("ContextWindowExceededError", 1),
        ("AgentSafetyRefusalError", 1),
        ("VerifierTimeoutError", None),
        ("EnvironmentStartTimeoutError", None),
        ("NonZeroAgentExitCodeError", None),
        ("CancelledError", None),
        ("SomethingNew", None),
    ],
)
def test_which_exceptions_void_a_reward(outcomes, tmp_path, raised, outcome):
    job = harbor_job(tmp_path, [harbor_trial("a", {"reward": 1}, raised=raised)])
    assert outcomes(job) == {("a", 1): outcome}


@pytest.mark.parametrize("rewards", [None, {}])
def test_without_a_reward_a_trial_is_invalid(read, tmp_path, rewards):
    flat = read(harbor_job(tmp_path, [harbor_trial("a", rewards, raised="AgentTimeoutError")])).flat
    assert flat.valid.tolist() == [False]
    assert flat.metadata["reason"].to_pylist() == ["no reward"]


def test_an_exception_of_a_step_voids_too(outcomes, tmp_path):
    step = {"step_name": "s", "exception_info": {"exception_type": "ApiError"}}
    job = harbor_job(tmp_path, [harbor_trial("a", {"reward": 1}, step_results=[step])])
    assert outcomes(job) == {("a", 1): None}


def test_steps_add_up_their_tokens(read, tmp_path):
    steps = [
        {"step_name": s, "agent_result": {"n_input_tokens": n, "cost_usd": None}}
        for s, n in (("x", 3), ("y", 4))
    ]
    flat = read(
        harbor_job(tmp_path, [harbor_trial("a", {"reward": 1}, agent_result=None, step_results=steps)])
    ).flat
    assert flat.measured["n_input_tokens"].tolist() == [7]
    assert str(flat.measured["cost_usd"][0]) == "nan"


def test_of_several_rewards_one_has_to_be_named(outcomes, refusal, tmp_path):
    job = harbor_job(tmp_path, [harbor_trial("a", {"style": 0.25, "tests": 1})])
    told = refusal(job)
    assert "verifier_result.rewards: which reward counts? There are style, tests; --metric names one" in told
    assert outcomes(job, metric="style") == {("a", 1): 0.25}


def test_the_only_reward_counts_and_the_one_called_reward(outcomes, tmp_path):
    trials = [harbor_trial("a", {"score": 0.5}), harbor_trial("b", {"reward": 1, "style": 0})]
    assert outcomes(harbor_job(tmp_path, trials)) == {("a", 1): 0.5, ("b", 1): 1}


def test_trials_are_numbered_by_their_start(outcomes, tmp_path):
    trials = [harbor_trial("a", {"reward": mark}, number=k) for k, mark in ((2, 0), (1, 1), (3, 0.5))]
    assert outcomes(harbor_job(tmp_path, trials)) == {("a", 1): 1, ("a", 2): 0, ("a", 3): 0.5}


def test_a_job_in_anothers_folder_counts_once(read, tmp_path):
    harbor_job(tmp_path / "one", [harbor_trial("a", {"reward": 1})])
    outer = harbor_job(tmp_path / "two", [harbor_trial("a", {"reward": 0}, job="j-2")])
    shutil.copytree(tmp_path / "one", outer / "one")
    found = read(tmp_path)
    assert found.flat.n_rows == 2
    assert [setting.run for setting in found.flat.settings] == ["j-1", "j-2"]
    assert found.notes == ["Trials met twice, which count once: 1."]


def test_a_copy_with_another_reward_is_a_fault(refusal, tmp_path):
    harbor_job(tmp_path / "one", [harbor_trial("a", {"reward": 1})], embedded=False)
    harbor_job(tmp_path / "two", [harbor_trial("a", {"reward": 0})], embedded=False)
    assert "is the trial of one/a__x1/result.json, with another result" in refusal(tmp_path)


def test_the_result_of_a_job_alone_has_its_trials(outcomes, tmp_path):
    job = harbor_job(tmp_path, [harbor_trial("a", {"reward": 1})])
    assert outcomes(job / "result.json") == {("a", 1): 1}


def test_a_trial_alone(outcomes, tmp_path):
    assert outcomes(shapes.write(tmp_path / "result.json", harbor_trial("a", {"reward": 0}))) == {("a", 1): 0}


def test_a_model_that_is_not_named_is_asked_for(refusal, tmp_path):
    assert "state what is lacking: --model." in refusal(
        harbor_job(tmp_path, [harbor_trial("a", {}, model=False)])
    )


def test_a_model_may_be_stated_with_its_provider(read, tmp_path):
    job = harbor_job(tmp_path, [harbor_trial("a", {"reward": 1})])
    assert read(job, model="anthropic/claude-opus-4-1").flat.models == ("anthropic/claude-opus-4-1",)


@pytest.mark.parametrize(("reward", "rule"), [(2, "an outcome is a number from 0 to 1"), ("1", "not a text")])
def test_a_reward_is_a_number_from_0_to_1(refusal, tmp_path, reward, rule):
    told = refusal(harbor_job(tmp_path, [harbor_trial("a", {"reward": reward})], embedded=False))
    assert rule in told
    assert "verifier_result.rewards" in told
    assert "(in a__x1/result.json)" in told
