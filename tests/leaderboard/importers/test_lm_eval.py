"""Sample files of lm-eval."""

import gzip
import json
import math

import pytest

from tests.leaderboard.importers import shapes
from tests.leaderboard.importers.shapes import DATE, lm_folder, lm_sample


@pytest.fixture
def samples(tmp_path):
    def make(*lines, name=f"samples_gsm8k_{DATE}.jsonl"):
        return shapes.write(tmp_path / name, "".join(f"{json.dumps(line)}\n" for line in lines))

    return make


STATED = {"scaffold": "lm-eval", "model": "M"}


def test_values_by_hand(read, tmp_path):
    tasks = {"gsm8k": [lm_sample(0, 1.0), lm_sample(1, 0.0)], "math_hard": [lm_sample(0, 0.5)]}
    found = read(lm_folder(tmp_path, tasks), scaffold="lm-eval")
    flat = found.flat
    assert found.format == "lm-eval"
    assert dict(zip(flat.tasks, flat.outcome, strict=True)) == {
        "gsm8k/0": 1,
        "gsm8k/1": 0,
        "math_hard/0": 0.5,
    }
    assert (flat.agents, flat.models) == (("lm-eval (org/model-x)",), ("org/model-x",))
    assert str(flat.submitted_at[0]) == "2026-01-05T00:00:00"
    assert flat.settings[0].run == DATE
    assert found.notes == ["gsm8k, math_hard: exact_match counts, by the filter strict-match."]


def test_one_filter_counts_and_is_named(read, outcomes, samples):
    lines = [
        lm_sample(doc, mark, filter=name)
        for name, mark in (("strict", 0), ("flexible", 1))
        for doc in range(2)
    ]
    file = samples(*lines)
    assert outcomes(file, **STATED) == {("gsm8k/0", 1): 0, ("gsm8k/1", 1): 0}
    assert read(file, **STATED).notes == [
        "gsm8k: exact_match counts, by the filter strict (also there: flexible; --filter names another)."
    ]
    assert outcomes(file, filter="flexible", **STATED) == {("gsm8k/0", 1): 1, ("gsm8k/1", 1): 1}


def test_a_filter_that_is_not_there(refusal, samples):
    file = samples(*(lm_sample(0, 1, filter=name) for name in ("strict", "flexible")))
    assert 'filter "loose": must be one of flexible, strict' in refusal(file, filter="loose", **STATED)


def test_not_applicable_is_ignored_and_nan_invalid(read, outcomes, samples):
    file = samples(lm_sample(0, "N/A"), lm_sample(1, math.nan), lm_sample(2, None), lm_sample(3, True))
    assert outcomes(file, **STATED) == {("gsm8k/1", 1): None, ("gsm8k/2", 1): None, ("gsm8k/3", 1): 1}
    assert read(file, **STATED).notes[0] == "gsm8k: samples with N/A, which have no outcome: 1."


def test_the_first_metric_that_is_a_number_counts(outcomes, samples):
    line = lm_sample(0, [1, 2], metric="bleu", acc=1.0, acc_norm=0.0) | {
        "metrics": ["bleu", "acc", "acc_norm"]
    }
    assert outcomes(samples(line), **STATED) == {("gsm8k/0", 1): 1}
    assert outcomes(samples(line), metric="acc_norm", **STATED) == {("gsm8k/0", 1): 0}


def test_a_metric_of_a_corpus_is_no_outcome(refusal, samples):
    told = refusal(samples(lm_sample(0, [1, 2], metric="bleu")), metric="bleu", **STATED)
    assert "row 1, bleu: a list is no outcome of a sample; --metric names another metric" in told


def test_a_metric_that_is_missing_in_a_line(refusal, samples):
    line = lm_sample(1, 0.5)
    del line["exact_match"]
    assert "row 2: there is no exact_match" in refusal(samples(lm_sample(0, 1), line), **STATED)


def test_old_files_without_filter_repeat_their_lines(refusal, samples):
    lines = [lm_sample(0, mark) for mark in (0, 1)]
    for line in lines:
        del line["filter"]
    assert "row 2: the row repeats line 1" in refusal(samples(*lines), **STATED)


def test_a_name_that_lm_eval_made_up_is_no_model(refusal, tmp_path):
    folder = lm_folder(tmp_path, {"gsm8k": [lm_sample(0, 1)]}, model=None)
    inside = next(tmp_path.rglob("results_*.json"))
    inside.write_text(
        json.dumps({"model_name": "brave_otter", "config": {"model_args": {"pretrained": "x"}}})
    )
    assert "state what is lacking: --agent, --scaffold, --model." in refusal(folder)


def test_a_file_of_another_name_does_not_say_its_task(refusal, samples):
    file = samples(lm_sample(0, 1), name="outputs.jsonl")
    assert "the name of the file says task and date" in refusal(file, "lm-eval", **STATED)


def test_a_file_sent_under_its_own_name(read, tmp_path):
    file = shapes.write(tmp_path / "upload-7", json.dumps(lm_sample(3, 1)))
    assert read(file, called=f"samples_a_b_{DATE}.jsonl", **STATED).flat.tasks == ("a_b/3",)


def test_compressed_samples(read, tmp_path):
    file = tmp_path / f"samples_gsm8k_{DATE}.jsonl.gz"
    file.write_bytes(gzip.compress(json.dumps(lm_sample(0, 1)).encode()))
    assert read(file, **STATED).flat.tasks == ("gsm8k/0",)


def test_lines_that_are_no_objects_are_told_each(refusal, tmp_path):
    file = shapes.write(
        tmp_path / f"samples_gsm8k_{DATE}.jsonl", f'{json.dumps(lm_sample(0, 1))}\n[1]\n{{"a"\n'
    )
    told = refusal(file, "lm-eval", **STATED)
    assert "row 2: an object is expected, not a list" in told
    assert "row 3: the text is not JSON" in told
