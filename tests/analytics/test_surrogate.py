"""A judge corrected by labels: coverage by exact sums, formulas by hand, the command and its refusals."""

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import t as student

from analytics.human_labels import Labelled, SurrogateRefused, correct, difference
from analytics.research.surrogate import pipeline_error
from tests.refusals import refused

COMMAND = ("surrogate",)

HEAD = "benchmark,agent,scaffold,model,submitted_at,task,trial,outcome,judge"
CONDA, DOCKER = "swe-bench-conda", "swe-bench-docker"
AGENTS = ("autocoderover-validation-sbfl_gpt4", "autocoderover-validation_gpt4", "autocoderover_gpt4")


@pytest.fixture(scope="module")
def repeats(real_rows):
    """The first trial of the three agents under both judges: docker's outcomes and conda's, (300,) each."""
    rows = {
        (row["agent"], row["task"], row["judge"]): float(row["outcome"])
        for row in real_rows("swebench_lite_repeats_acr")
        if row["trial"] == "1"
    }
    tasks = sorted({task for _, task, _ in rows})
    return {
        agent: [np.array([rows[agent, task, judge] for task in tasks]) for judge in (DOCKER, CONDA)]
        for agent in AGENTS
    }


def log_ways(n, k):
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def samples(counts, n):
    """Every way to draw n of groups of so many tasks (the last takes the rest), with its probability."""
    total = log_ways(sum(counts), n)
    *groups, rest = counts
    for drawn in np.ndindex(*(count + 1 for count in groups)):
        left = n - sum(drawn)
        if 0 <= left <= rest:
            ways = sum(log_ways(count, k) for count, k in zip(groups, drawn, strict=True)) + log_ways(
                rest, left
            )
            yield (*drawn, left), np.exp(ways - total)


def labelled(judge, human, picked):
    message = np.full(judge.size, np.nan)
    message[picked] = human[picked]
    return Labelled(judge, message)


def half(told):
    return (told.upper - told.lower) / 2


def exactly(docker, conda, n):
    """Coverage with pseudo-tasks and plainly, and mean half-widths, over all samples of n labels."""
    e, covered, plain, width, alone = docker - conda, 0.0, 0.0, 0.0, 0.0
    groups = [np.flatnonzero(e == value) for value in (1, -1, 0)]
    for drawn, chance in samples([group.size for group in groups], n):
        picked = np.concatenate([group[:k] for group, k in zip(groups, drawn, strict=True)])
        result = correct(labelled(conda, docker, picked)).corrected
        covered += chance * (result.lower - 1e-12 <= docker.mean() <= result.upper + 1e-12)
        width += chance * half(result)
        bare = np.sqrt((1 - n / e.size) * e[picked].var(ddof=1) / n) * student.ppf(0.975, n - 1)
        plain += chance * (abs(result.value - docker.mean()) <= bare + 1e-12)
    groups = [np.flatnonzero(docker == value) for value in (1, 0)]
    for drawn, chance in samples([group.size for group in groups], n):
        picked = np.concatenate([group[:k] for group, k in zip(groups, drawn, strict=True)])
        alone += chance * half(correct(labelled(conda, docker, picked)).alone)
    return covered, plain, width, alone


@pytest.mark.parametrize(
    ("n", "least", "plain", "widths"),
    [
        (30, 0.995, (0.47, 0.53), None),
        (60, 0.995, (0.67, 0.745), (0.042, 0.091)),
        (120, 0.92, (0.915, 0.955), None),
    ],
)
def test_coverage_by_exact_sums(repeats, n, least, plain, widths):
    result = [exactly(*repeats[agent], n) for agent in AGENTS]
    for covered, covered_plain, width, alone in result:
        assert covered >= least
        assert plain[0] <= covered_plain <= plain[1]
        assert width < alone
    if widths:
        means = np.mean([one[2:] for one in result], axis=0)
        np.testing.assert_allclose(means, widths, atol=0.0005)


def test_the_formulas_by_hand():
    judge = np.array([1.0, 0.0] * 50)
    human = np.full(100, np.nan)
    human[:40] = judge[:40]
    human[[0, 2, 4, 1]] = [0, 0, 0, 1]  # Σe = −2, Σe² = 4
    result = correct(Labelled(judge, human))
    variance = 0.6 * (4 + 1 - 4 / 42) / 42**2
    assert (result.judge_mean, result.n_labels, result.n_tasks, result.design) == (
        0.5,
        40,
        100,
        "simple random sample",
    )
    assert result.corrected.value == pytest.approx(0.5 - 2 / 40)
    assert result.corrected.se == pytest.approx(np.sqrt(variance))
    assert half(result.corrected) == pytest.approx(student.ppf(0.975, 39) * np.sqrt(variance))
    alone = 0.6 * human[:40].var(ddof=1) / 40
    assert result.alone.se == pytest.approx(np.sqrt(alone))
    assert result.worth == pytest.approx(1 / (0.01 + variance / alone * (1 / 40 - 0.01)))
    equal = correct(Labelled(judge, human, np.full(100, 0.3)))
    assert equal.corrected == result.corrected  # given their number, equally likely labels are a sample
    mixed = np.where(np.arange(100) < 20, 0.5, 0.25)
    summary = correct(Labelled(judge, human, mixed)).corrected
    assert summary.value == pytest.approx(0.5 + (-2 / 0.5) / 100)
    assert summary.se == pytest.approx(np.sqrt(4 * 0.5 / 0.25 + 0.6 * (100 / 40) ** 2) / 100)


def test_all_labels_leave_no_error():
    judge = np.tile([1.0, 0.0], 20)
    result = correct(Labelled(judge, 1 - judge * 0.5))
    assert (result.corrected.value, result.corrected.se) == (0.75, 0.0)
    assert result.worth == pytest.approx(40)
    assert result.design == "all tasks labelled: the mean of the labels"


def test_a_probability_of_one_is_that_of_all_tasks():
    judge, human = np.tile([1.0, 0.0], 20), np.full(40, 0.25)
    assert correct(Labelled(judge, human, np.ones(40))).corrected.value == 0.25
    human[35:] = np.nan
    with refused(SurrogateRefused, "probability", "as if every task were drawn, and 5 of 40 tasks have none"):
        Labelled(judge, human, np.ones(40))
    probability = np.where(np.arange(40) < 30, 1.0, 0.5)  # all of one stratum, half of another
    assert correct(Labelled(judge, human, probability)).design == "stated probabilities"


def test_labels_of_some_trials_of_every_task():
    """Two trials of each of 40 tasks, one of them labelled: no other task is left, and the labels stand."""
    task, judge = np.repeat(np.arange(40), 2), np.tile([1.0, 0.0], 40)
    human = np.where(np.arange(80) % 2, np.nan, np.tile([1.0, np.nan, 0.0, np.nan], 20))
    result = correct(Labelled.of_trials(task, judge, human))
    assert (result.judge_mean, result.corrected.value, result.corrected.se) == (0.5, 0.5, 0.0)
    some = np.where(task < 30, human, np.nan)  # e = human − 1 on the trial that people saw
    assert correct(Labelled.of_trials(task, judge, some)).corrected.value == pytest.approx(0.5 - 15 / 30)


def test_unequal_probabilities_cover_and_do_not_bias():
    rng = np.random.default_rng(0)
    human = (rng.random(400) < 0.4).astype(float)
    judge = np.where(rng.random(400) < 0.15, 1 - human, human)
    probability = np.where(judge > 0, 0.4, 0.15)  # what passes is looked at more closely
    values, covered = [], 0
    for _ in range(1_000):
        picked = rng.random(400) < probability
        message = np.where(picked, human, np.nan)
        result = correct(Labelled(judge, message, probability)).corrected
        values.append(result.value)
        covered += result.lower <= human.mean() <= result.upper
    assert abs(np.mean(values) - human.mean()) < 3 * np.std(values) / np.sqrt(1_000)
    assert covered / 1_000 > 0.94


def test_differences_are_paired_where_labels_are_on_the_same_tasks():
    rng = np.random.default_rng(1)
    judge = (rng.random((2, 120)) < 0.5).astype(float)
    human = np.where(rng.random((2, 120)) < 0.2, 1 - judge, judge)
    same = [labelled(judge[i], human[i], np.arange(50)) for i in (0, 1)]
    e = (human - judge)[:, :50]
    result, d = difference(*same), e[0] - e[1]
    assert result.value == pytest.approx((judge[0] - judge[1]).mean() + d.mean())
    assert result.se == pytest.approx(np.sqrt((1 - 50 / 120) * (d @ d + 1 - d.sum() ** 2 / 52)) / 52)
    apart = difference(same[0], labelled(judge[1], human[1], np.arange(50, 100)))
    ends = correct(same[0]), correct(labelled(judge[1], human[1], np.arange(50, 100)))
    assert apart.se == pytest.approx(np.hypot(*(end.corrected.se for end in ends)))


def test_what_a_pipeline_adds():
    result = pipeline_error(
        prompts=0.03, cells=0.02, replicates=0.12, n_prompts=3, n_replicates=4, mean_square=0.1
    )
    assert (result["prompts"], result["replicates"]) == pytest.approx((0.01, 0.01))
    assert result["cells"] == pytest.approx(0.02 / 3)
    assert result["bias"] == pytest.approx(0.1 - 0.02 - 0.02 / 3)


# ------------------------------------------------------------------------------------------------ the command


def outcomes(path, *, n_labels=40, extra=("human", "human_probability"), prompts=1):
    """Two agents on 100 tasks under judge j, the first `n_labels` of which people judged."""
    rng = np.random.default_rng(0)
    rows = []
    for agent in "ab":
        for j in range(100):
            for v in range(prompts):
                y = int(rng.random() < 0.5)
                message = int(y ^ (rng.random() < 0.1))
                labels = {"human": message, "human_probability": 0.4} if j < n_labels else {}
                more = [str(labels.get(name, "")) for name in extra]
                rows.append(",".join([f"B,{agent},S,M,,t{j:03d},1,{y},j,v{v}", *more]))
    path.write_text("\n".join([",".join([HEAD, "prompt_variant", *extra]), *rows]) + "\n")
    return path


def test_labels_in_a_column(answer, text, tmp_path):
    path = outcomes(tmp_path / "a.csv", prompts=2)
    result = answer(path, "--judge", "j", "--human", "human", "--probability", "human_probability")
    assert result == answer(path, "--judge", "j", "--human", "human", "--random-sample")
    assert [line["agent"] for line in result["agents"]] == ["a", "b"]
    line = result["agents"][0]
    assert (line["n_labels"], line["n_tasks"]) == (40, 100)
    assert line["lower"] < line["corrected_mean"] < line["upper"]
    assert (result["differences"][0]["a"], result["differences"][0]["b"]) == ("a", "b")
    assert (result["pipeline_error"]["n_prompts"], result["left_out"]) == (2, {})
    assert "it never orders a board" in text(path, "--judge", "j", "--human", "human", "--random-sample")


def test_labels_of_all_tasks_have_no_interval(answer, text, tmp_path):
    path = outcomes(tmp_path / "a.csv", n_labels=100)
    result = answer(path, "--judge", "j", "--human", "human", "--random-sample")
    line, summary = result["agents"][0], result["differences"][0]
    assert (line["se"], line["lower"], line["upper"], line["labels_alone"]["se"]) == (None,) * 4
    assert line["corrected_mean"] == line["labels_alone"]["mean"]
    assert (summary["lower"], summary["upper"], summary["reason"]) == (None, None, line["design"])
    shown = text(path, "--judge", "j", "--human", "human", "--random-sample")
    assert "all tasks labelled: the mean of the labels" in shown


def test_labels_as_a_level_of_judge(answer, real_data, repeats):
    file = real_data / "swebench_lite_repeats_acr.csv.gz"
    result = answer(file, "--judge", CONDA, "--human-judge", DOCKER, "--random-sample")
    lines = {line["agent"]: line for line in result["agents"]}
    assert set(lines) == set(AGENTS)
    first = result["differences"][0]
    assert first["difference"] == pytest.approx(repeats[AGENTS[0]][0].mean() - repeats[AGENTS[1]][0].mean())
    assert first["n_tasks"] == 300
    for agent in AGENTS[:2]:  # one trial each
        docker, conda = repeats[agent]
        assert lines[agent]["judge_mean"] == pytest.approx(conda.mean())
        assert lines[agent]["corrected_mean"] == pytest.approx(docker.mean())
    assert result["left_out"] == {
        "sweagent_gpt4": "0 labels; at least 30 are needed to tell how often a judge errs"
    }
    assert result["pipeline_error"]["replicates"] > 0


def test_labels_picked_by_hand(refusal, tmp_path):
    path = outcomes(tmp_path / "a.csv")
    assert "labels picked by hand tell nothing of the rest" in refusal(
        path, "--judge", "j", "--human", "human"
    )


def test_labels_without_a_probability(refusal, tmp_path):
    path = outcomes(tmp_path / "a.csv", extra=("human", "why"))
    message = refusal(path, "--judge", "j", "--human", "human", "--probability", "why")
    assert "agent 'a': a task that people judged has no probability of having been drawn" in message


def test_too_few_labels(refusal, tmp_path):
    path = outcomes(tmp_path / "a.csv", n_labels=29)
    message = refusal(path, "--judge", "j", "--human", "human", "--random-sample")
    assert "no agent has enough labels: 29 labels; at least 30" in message


def test_what_the_file_does_not_have(refusal, tmp_path):
    path = outcomes(tmp_path / "a.csv", extra=("human", "note"))
    assert "no row is of judge 'k'; there are j" in refusal(
        path, "--judge", "k", "--human", "human", "--random-sample"
    )
    assert "no column 'who'; there are human, note\n" in refusal(
        path, "--judge", "j", "--human", "who", "--random-sample"
    )
    assert "--judge and --human-judge are both 'j'" in refusal(
        path, "--judge", "j", "--human-judge", "j", "--random-sample"
    )
    assert "one of the arguments --human --human-judge" in refusal(path, "--judge", "j", "--random-sample")


def test_tasks_that_do_not_fit():
    with refused(SurrogateRefused, "shapes"):
        Labelled(np.zeros(40), np.zeros(39))
    with refused(SurrogateRefused, "outcome"):
        Labelled(np.full(40, 2.0), np.zeros(40))
    with refused(SurrogateRefused, "shapes"):
        difference(Labelled(np.zeros(40), np.zeros(40)), Labelled(np.zeros(41), np.zeros(41)))
