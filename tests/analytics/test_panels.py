"""Panels: what disagreement says by arithmetic and beyond it, tiers of judges, ensembles."""

import numpy as np
import pytest

from analytics.errors import CoreError
from analytics.research.panels import area, disagreement, ensemble, tiers
from tests.refusals import refused

COMMAND = ("panels",)

HEAD = "benchmark,agent,scaffold,model,submitted_at,task,trial,outcome,judge"


def votes_of(rng, n_items=50, n_votes=45):
    p = rng.beta(0.35, 0.35, n_items)
    return (rng.random((n_items, n_votes)) < p[:, None]).astype(float)


# ---------------------------------------------------------------------------------------------------- items


def test_what_tells_is_the_area():
    rng = np.random.default_rng(0)
    votes = votes_of(rng, 80)
    share = votes.mean(axis=1)
    v, majority = share * (1 - share), (share > 0.5).astype(float)
    others = disagreement(votes, np.where(rng.random(80) < 0.75, majority, 1 - majority), seed=0)
    doubtful = disagreement(votes, np.where(v < np.quantile(v, 0.75), majority, 1 - majority), seed=0)
    assert others["r"] < -0.1
    assert others["r_null"][1] < others["r"] < others["r_null"][2]
    assert others["p_value"] > 0.05
    assert doubtful["area"] > 0.95
    assert doubtful["p_value"] < 0.001
    assert doubtful["n_wrong"] == (v >= np.quantile(v, 0.75)).sum()


def test_run_variance_does_not_find_where_judges_disagree(real_rows):
    """swebench_lite_repeats: the variance over three runs, and whether docker and conda ever disagree."""
    rows = [row for row in real_rows("swebench_lite_repeats_acr") if row["agent"] == "autocoderover_gpt4"]
    outcome = {(row["judge"], row["task"], row["trial"]): float(row["outcome"]) for row in rows}
    tasks = sorted({task for _, task, _ in outcome})
    conda, docker = (
        np.array([[outcome[f"swe-bench-{judge}", task, trial] for trial in "123"] for task in tasks])
        for judge in ("conda", "docker")
    )
    apart = (conda != docker).any(axis=1)
    assert (len(tasks), apart.sum()) == (300, 11)
    assert area(conda.var(axis=1), apart) == pytest.approx(0.44, abs=0.005)


def test_what_tells_too_little_of_items():
    votes = votes_of(np.random.default_rng(1), 40)
    majority = (votes.mean(axis=1) > 0.5).astype(float)
    with refused(CoreError, "few_items", "29 items"):
        disagreement(votes[:29], majority[:29], seed=0)
    with refused(CoreError, "few_wrong", "wrong on 0 of 40"):
        disagreement(votes, majority, seed=0)
    with refused(CoreError, "votes"):
        disagreement(votes * 0.5, majority, seed=0)
    with refused(CoreError, "votes", "40 of 40 items with a label have under two votes"):
        disagreement(votes[:, :1], majority, seed=0)
    with refused(CoreError, "constant"):
        disagreement(np.tile([0.0, 1.0, 1.0], (40, 1)), np.arange(40) % 2.0, seed=0)


# ---------------------------------------------------------------------------------------------------- tiers


def judged(sd, *, items=24, prompts=3, trials=2, seed=0):
    """Scores of three tiers of three judges whose item × judge sd is given; items' own is 1."""
    rng = np.random.default_rng(seed)
    own = rng.normal(0, 1, items)
    item, judge, prompt, _ = (axis.ravel() for axis in np.indices((items, 9, prompts, trials)))
    apart = rng.normal(0, 1, (items, 9)) * np.repeat(sd, 3)
    score = own[item] + apart[item, judge] + rng.normal(0, 0.3, item.size)
    return item, judge, prompt, score, [f"j{k}" for k in range(9)], [f"t{k // 3}" for k in range(9)]


def test_tiers_that_differ_and_tiers_that_do_not():
    apart = tiers(*judged([0.3, 1.5, 0.3]), seed=0)
    assert apart["n_partitions"] == 280
    assert apart["p_value"] < 0.05
    middle = apart["tiers"][1]
    assert (middle["name"], middle["judges"]) == ("t1", ["j3", "j4", "j5"])
    assert middle["lower"] < middle["ratio"] < middle["upper"]
    assert middle["ratio"] > 5 * apart["tiers"][0]["ratio"]
    assert tiers(*judged([0.6, 0.6, 0.6], prompts=1), seed=0)["p_value"] > 0.05


def test_what_tells_too_little_of_tiers():
    item, judge, prompt, score, names, _ = judged([0.3, 0.3, 0.3])
    four = judge < 4
    few = (item[four], judge[four], prompt[four], score[four], names[:4])
    with refused(CoreError, "few_partitions", "in 3 ways"):
        tiers(*few, ["a", "a", "b", "b"], seed=0)
    with refused(CoreError, "one_judge"):
        tiers(*few, ["a", "a", "a", "b"], seed=0)
    with refused(CoreError, "one_tier"):
        tiers(*few, ["a"] * 4, seed=0)


# ------------------------------------------------------------------------------------------------- ensembles


def test_an_ensemble_is_worth_its_independent_members():
    rng = np.random.default_rng(0)
    shared, own = rng.normal(size=(1, 4000, 1)), rng.normal(size=(4, 4000, 1))
    assert ensemble(own)["effective"] == pytest.approx(4, abs=0.2)
    assert ensemble(shared + own)["effective"] == pytest.approx(1 / (0.5 + 0.5 / 4), abs=0.05)
    assert ensemble(np.repeat(shared, 3, axis=0))["effective"] == pytest.approx(1)
    result = ensemble(shared + own)
    assert result["variance"] == pytest.approx((shared + own).mean(axis=0).var(ddof=1))
    runs = own + rng.normal(0, 0.5, (4, 4000, 3))  # the tasks are given: their part is gone
    assert ensemble(runs, finite=True)["variance"] == pytest.approx(0.25 / 4, rel=0.05)


def test_a_trial_that_is_missing_leaves_the_others_of_its_task():
    rng = np.random.default_rng(1)
    runs = rng.normal(size=(2, 5, 3)) + rng.normal(size=(1, 5, 1))
    runs[0, 0, 0] = runs[1, 1, 2] = runs[0, 2, 1] = runs[0, 3, 0] = runs[1, 3, 2] = np.nan
    shared = [task[:, ~np.isnan(task).any(axis=0)] for task in runs.swapaxes(0, 1)]
    products = [(one.shape[1] - 1) * np.cov(one) for one in shared if one.shape[1] > 1]
    result = ensemble(runs, finite=True)
    assert result["n_tasks"] == 4
    np.testing.assert_allclose(result["covariance"], sum(products) / (1 + 1 + 1 + 2))


def test_what_is_no_ensemble():
    for outcomes, code in (
        (np.zeros((1, 5, 2)), "one_member"),
        (np.zeros((2, 1, 2)), "few_tasks"),
        (np.zeros((2, 5, 1)), "not_measured"),
        (np.zeros((2, 5, 2)), "constant"),
    ):
        with refused(CoreError, code):
            ensemble(outcomes, finite=True)


# ------------------------------------------------------------------------------------------------ the command


def board(path, *, n_tasks=40, extra=("human", "tier")):
    """Two agents, six judges, two trials; people say something of all tasks of the first."""
    rng = np.random.default_rng(3)
    rows = []
    for agent in "ab":
        for j in range(n_tasks):
            chance, truth = rng.random(), int(rng.random() < 0.5)
            for judge in range(6):
                for trial in (1, 2):
                    result = {"human": truth if agent == "a" else "", "tier": "xy"[judge // 3]}
                    more = ",".join(str(result[name]) for name in extra)
                    outcome = int(rng.random() < chance)
                    rows.append(f"B,{agent},S,M,,t{j:02d},{trial},{outcome},j{judge},{more}")
    path.write_text("\n".join([",".join([HEAD, *extra]), *rows]) + "\n")
    return path


def test_the_command_on_a_board(answer, text, refusal, tmp_path):
    path = board(tmp_path / "a.csv")
    result = answer(path, "--reference", "human")
    assert (result["n_items"], result["n_pipelines"]) == (40, 12)
    assert result["items"][0]["agent"] == "a"
    members = answer(path, "--members", "a,b")
    assert 1 < members["domain"]["effective"] < 2.5
    assert members["finite"]["n_tasks"] == 40
    lines = path.read_text().splitlines()
    holes = {f"t{j:02d} {1 + j // 6} j{j % 6}" for j in range(12)}  # each pipeline lacks a task
    kept = [line for line in lines if "{5} {6} {8}".format(*line.split(",")) not in holes]
    path.write_text("\n".join(kept) + "\n")
    assert answer(path, "--members", "a,b")["finite"]["n_tasks"] == 40
    path.write_text("\n".join(lines) + "\n")
    assert "10 ways; under 20" in refusal(path, "--tier", "tier")
    assert "no agent 'c'" in refusal(path, "--members", "a,c")
    assert ": no column 'who'; there are human, tier\n" in refusal(path, "--reference", "who")
    assert "effective" in text(path, "--members", "a,b")


def test_twenty_nine_items(refusal, tmp_path):
    assert "29 items with a label; at least 30" in refusal(
        board(tmp_path / "a.csv", n_tasks=29), "--reference", "human"
    )
