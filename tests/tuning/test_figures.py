"""The figures of cells, and how sure a difference of reliability is."""

import json
import math

import numpy as np
import pytest

from analytics.harness import (
    ScoreTensor,
    agreement,
    discriminability,
    fitness,
    reliability,
    variance_components,
)
from analytics.research.tuning import bench
from analytics.research.tuning.cells import (
    AnswerRefused,
    RunRequest,
    failed,
    joined,
    read_answer,
    stored_cells,
)
from analytics.research.tuning.figures import figures, reliability_difference, run_means, standard_error

ASKED = RunRequest(("a", "b"), ("t1", "t2", "t3"), 1, 3)


def answer(tmp_path, **fields):
    path = tmp_path / "answer.json"
    cells = [
        {
            "model": model,
            "task": task,
            "run": run,
            "score": base + 0.1 * place + 0.01 * run * (place + 1) % 0.05,
        }
        for base, model in ((0.2, "a"), (0.6, "b"))
        for place, task in enumerate(ASKED.tasks)
        for run in ASKED.runs
    ]
    path.write_text(json.dumps({"cells": cells, **fields}))
    return path


def tensor_of(scores):
    k, n, n_runs = scores.shape
    names = (
        tuple(f"m{i}" for i in range(k)),
        tuple(f"t{j:03d}" for j in range(n)),
        tuple("abcdefghij"[:n_runs]),
    )
    return ScoreTensor(*names, scores, ~np.isnan(scores))


def test_they_are_those_of_the_harness_room(tmp_path):
    cells = read_answer(answer(tmp_path, cost_usd=0.5), ASKED)
    tensor = cells.tensor(ASKED)
    result = figures(cells, ASKED)
    assert reliability(variance_components(tensor), 3) == result.R
    assert discriminability(tensor) == result.D
    assert (result.C, result.cost_usd, result.n_runs) == (1.0, 0.5, 3)
    by_hand = 0.40 * result.R + 0.35 * min(result.D, 3.0) / 3.0 + 0.25 * result.C
    assert pytest.approx(by_hand, abs=1e-15) == result.F


def test_what_is_stored_comes_back(tmp_path):
    cells = read_answer(answer(tmp_path, references=[{"task": "t1", "score": 1, "is_right": True}]), ASKED)
    cells.saved(tmp_path / "one.parquet")
    again = stored_cells(tmp_path / "one.parquet")
    assert again.rows.to_pylist() == cells.rows.to_pylist()
    assert again.references.to_pylist() == [{"task": "t1", "score": 1.0, "is_right": True}]
    assert joined([again, again]).rows.num_rows == 2 * cells.rows.num_rows


def test_a_cell_that_is_not_there_or_not_valid_is_missing_and_never_0(tmp_path):
    path = answer(tmp_path)
    payload = json.loads(path.read_text())
    payload["cells"][0] |= {"valid": False, "score": None}
    del payload["cells"][1]
    path.write_text(json.dumps(payload))
    tensor = read_answer(path, ASKED).tensor(ASKED)
    assert np.isnan(tensor.scores[0, 0, :2]).all()
    assert not tensor.valid[0, 0, :2].any()
    assert tensor.valid.sum() == 16


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("garbage", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ('{"cells": 1}', "no object with a list"),
        ('{"cells": [3]}', r"cells\[0\] is no object"),
        ('{"cells": [{"model": "c", "task": "t1", "run": 1, "score": 1}]}', "'c' was not asked for"),
        ('{"cells": [{"model": "a", "task": "t1", "run": 4, "score": 1}]}', "4 was not asked for"),
        ('{"cells": [{"model": "a", "task": "t1", "run": true, "score": 1}]}', "True was not asked for"),
        ('{"cells": [{"model": "a", "task": "t1", "run": 1, "score": NaN}]}', r"no number within ±1e\+12"),
        (
            f'{{"cells": [{{"model": "a", "task": "t1", "run": 1, "score": 1{"0" * 400}}}]}}',
            r"no number within ±1e\+12",
        ),
        ('{"cells": [{"model": "a", "task": "t1", "run": 1, "score": 1, "cost_usd": -1}]}', "from 0 to"),
        (
            '{"cells": [{"model": "a", "task": "t1", "run": 1, "score": 1},'
            '{"model": "a", "task": "t1", "run": 1, "score": 0}]}',
            "occur twice",
        ),
    ],
)
def test_an_answer_that_is_none_is_refused_with_its_place(tmp_path, content, why):
    path = tmp_path / "answer.json"
    path.write_text(content)
    with pytest.raises(AnswerRefused, match=why):
        read_answer(path, ASKED)


def test_a_failed_run_has_no_figures_and_keeps_its_cost(tmp_path):
    cells = failed("ended with code 1", answer(tmp_path, cost_usd=2.5), ASKED)
    result = figures(cells, ASKED)
    assert (result.R, result.F, result.C, result.cost_usd) == (None, None, 0.0, 2.5)
    assert result.why == "ended with code 1"
    assert failed("x", tmp_path / "none.json", ASKED).cost_usd == 0.0


def test_the_jackknife_by_definition():
    scores = np.random.default_rng(3).normal(0.5, 0.2, (3, 6, 4)) + np.array([0.0, 0.2, 0.4])[:, None, None]
    tensor = tensor_of(scores)

    def f(keep):
        one = tensor_of(scores[:, :, keep])
        return fitness(reliability(variance_components(one), 6), discriminability(one), 1.0)

    left_out = [f([run for run in range(4) if run != out]) for out in range(4)]
    expected = math.sqrt(3 / 4 * sum((value - np.mean(left_out)) ** 2 for value in left_out))
    assert standard_error(tensor) == pytest.approx(expected, rel=1e-12)
    assert standard_error(tensor_of(scores[:, :, :2])) is None


def test_run_means_are_plain_ones_where_all_scores_are_there():
    scores = np.random.default_rng(1).normal(size=(3, 5, 4))
    np.testing.assert_allclose(run_means(tensor_of(scores)), scores.mean(axis=1), rtol=1e-12)


def test_run_means_do_not_move_where_a_hard_task_is_missing_in_one_run():
    scores = (
        np.repeat(np.arange(10.0).reshape(1, 5, 2)[:, :, :1], 3, axis=2) + np.array([0.0, 1.0])[:, None, None]
    )
    scores[0, 0, 0] = np.nan
    np.testing.assert_allclose(run_means(tensor_of(scores)), [[4.0] * 3, [5.0] * 3])


def test_a_difference_of_reliability_is_that_of_two_icc():
    draw = np.random.default_rng(8)
    models = np.linspace(0, 1, 5)[:, None, None]
    noisy = tensor_of(models + draw.normal(0, 0.3, (5, 1, 6)) + draw.normal(0, 0.05, (5, 20, 6)))
    quiet = tensor_of(models + draw.normal(0, 0.02, (5, 1, 6)) + draw.normal(0, 0.05, (5, 20, 6)))
    difference, interval, p_value = reliability_difference(noisy, quiet, seed=1, n_draws=400)
    expected = agreement(quiet.scores.mean(axis=1))[0] - agreement(noisy.scores.mean(axis=1))[0]
    assert difference == pytest.approx(expected, abs=1e-12)
    assert 0 < interval.lower < difference < interval.upper
    assert p_value < 0.05
    _, interval, p_value = reliability_difference(noisy, noisy, seed=1, n_draws=400)
    assert interval.lower < 0 < interval.upper
    assert p_value > 0.3


def test_the_bench_scores_what_its_components_say():
    """Mean and reliability of many runs approach the truth of the components."""
    asked = RunRequest(bench.MODELS, bench.TASKS, 1, 60)
    request = {"configuration": bench.BASELINE, "models": asked.models, "tasks": asked.tasks, "seed": 5}
    result = bench.run(request | {"first_run": 1, "n_runs": 60})["cells"]
    scores = np.array([cell["score"] for cell in result]).reshape(60, 5, 200).transpose(1, 2, 0)
    v, scale = bench.true_variances(bench.BASELINE), bench.SCALE[bench.BASELINE["scorer"]]
    covered = bench.true_coverage(bench.BASELINE)
    estimate = variance_components(tensor_of(scores[:, :, :10])).variances
    assert estimate["residual"] == pytest.approx(v["residual"], rel=0.05)
    assert estimate["task:run"] == pytest.approx(v["task:run"], rel=0.1)
    assert np.mean([cell["valid"] for cell in result]) == pytest.approx(covered, abs=0.005)
    means = scores.mean(axis=(1, 2))
    assert np.ptp(means) == pytest.approx(0.44 * scale, abs=0.06)


def test_the_best_fitness_of_the_bench():
    """20,000 random configurations have a mean of .638 and a best of .725, to their printed digits."""
    draw = np.random.default_rng(0)
    result = [
        bench.true_fitness(
            {
                "timeout": math.exp(draw.uniform(math.log(20), math.log(600))),
                "retries": int(draw.integers(0, 4)),
                "pinned": bool(draw.random() < 0.5),
                "scorer": ("exact", "fuzzy", "judge")[draw.integers(3)],
                "workers": int(draw.integers(1, 17)),
            }
        )
        for _ in range(20_000)
    ]
    assert np.mean(result) == pytest.approx(0.638, abs=0.0015)
    assert np.max(result) == pytest.approx(0.725, abs=0.0015)
