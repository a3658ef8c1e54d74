"""Statistics of HELM for each instance."""

import math

import pytest

from tests.leaderboard.importers import shapes
from tests.leaderboard.importers.shapes import helm_entry, helm_run

STATED = {"scaffold": "HELM", "submitted_at": "2026-01-05"}


def test_values_by_hand(read, tmp_path):
    """Two metrics of an instance stand in two entries."""
    entries = [
        helm_entry("id1", {"exact_match": 1.0}),
        helm_entry("id2", {"exact_match": 0.0}),
        helm_entry("id1", {"num_prompt_tokens": 17}),
        helm_entry("id2", {"num_prompt_tokens": 18}),
    ]
    found = read(helm_run(tmp_path, entries), metric="exact_match", **STATED)
    flat = found.flat
    assert found.format == "helm"
    assert flat.tasks == ("mmlu:subject=anatomy/id1", "mmlu:subject=anatomy/id2")
    assert flat.outcome.tolist() == [1, 0]
    assert (flat.agents, flat.models) == (("HELM (openai/gpt2)",), ("openai/gpt2",))
    assert flat.trial.tolist() == [1, 1]
    assert flat.settings[0].temperature == 0.0


def test_which_metric_is_the_score_is_asked_for(refusal, tmp_path):
    run = helm_run(tmp_path, [helm_entry("id1", {"exact_match": 1.0, "f1": 0.5, "num_bytes": 17})])
    assert "metric: which metric is the score? --metric names one of exact_match, f1" in refusal(
        run, **STATED
    )
    assert 'metric "bleu": there is no bleu' in refusal(run, metric="bleu", **STATED)


def test_an_only_metric_counts(outcomes, tmp_path):
    run = helm_run(tmp_path, [helm_entry("id1", {"exact_match": 0.25})])
    assert outcomes(run, **STATED) == {("mmlu:subject=anatomy/id1", 1): 0.25}


def test_what_the_writer_left_out_or_counted_nothing_is_invalid(outcomes, tmp_path):
    entries = [
        helm_entry("id1", {"em": 1.0, "n": 1}),
        helm_entry("id2", {"n": 1}),
        helm_entry("id3", {"em": None, "n": 1}),
        helm_entry("id4", {"em": math.nan, "n": 1}),
    ]
    file = shapes.write(tmp_path / "per_instance_stats.json", entries)
    found = outcomes(file, metric="em", model="M", **STATED)
    assert found == {("id1", 1): 1, ("id2", 1): None, ("id3", 1): None, ("id4", 1): None}


def test_a_perturbation_is_a_prompt_variant(read, tmp_path):
    typos = {"name": "typos", "robustness": True}
    entries = [helm_entry("id1", {"em": 1.0}), helm_entry("id1", {"em": 0.0}, perturbation=typos)]
    flat = read(helm_run(tmp_path, entries), **STATED).flat
    assert [setting.prompt_variant for setting in flat.settings] == [None, "typos"]
    assert flat.outcome.tolist() == [1, 0]


def test_trials_count_from_1(outcomes, tmp_path):
    entries = [helm_entry("id1", {"em": mark}, trial=k) for k, mark in ((0, 1.0), (1, 0.0))]
    assert outcomes(helm_run(tmp_path, entries, name="x"), **STATED) == {("x/id1", 1): 1, ("x/id1", 2): 0}


def test_scenarios_do_not_share_their_instances(read, tmp_path):
    for subject in ("anatomy", "law"):
        name = f"mmlu:subject={subject},model=openai_gpt2"
        helm_run(tmp_path / name, [helm_entry("id1", {"em": 1.0})], name=name)
    assert read(tmp_path, **STATED).flat.tasks == ("mmlu:subject=anatomy/id1", "mmlu:subject=law/id1")


def test_a_metric_with_two_values_is_a_fault(refusal, tmp_path):
    entries = [helm_entry("id1", {"em": 1.0}), helm_entry("id1", {"em": 0.0})]
    told = refusal(helm_run(tmp_path, entries), **STATED)
    assert "[1].stats[0]: em stands at [0].stats[0] too, with another value" in told


@pytest.mark.parametrize("mean", [1.5, "1.0x", [1]])
def test_a_mean_that_is_no_outcome(refusal, tmp_path, mean):
    told = refusal(helm_run(tmp_path, [helm_entry("id1", {"em": mean})]), **STATED)
    assert "[0].stats" in told
    assert "(in per_instance_stats.json)" in told
