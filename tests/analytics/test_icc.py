"""The intraclass correlation: by hand, by property, against scipy, and against the published tables."""

import io
import math
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from analytics import flat_file
from analytics.errors import CoreError
from analytics.trials import (
    AccuracyRefused,
    IccRefused,
    accuracy_interval,
    consistency,
    convergence,
    intraclass_correlation,
    repeated_trials,
    task_trials,
)
from analytics.trials.icc import TaskTrials, mean_interval
from tests.refusals import refused

AS_OF = datetime(2026, 1, 1, tzinfo=UTC)
REPEATABLE = settings(derandomize=True, deadline=None, max_examples=40)

# Table 2 (GAIA levels 1 to 3) and Table 3 (FRAMES): tasks, accuracy, σ_b², ICC, published interval in %.
PUBLISHED = {
    "GAIA 1 GPT-4o": (53, 0.227, 0.100, 0.561, 14.0, 31.4),
    "GAIA 2 GPT-4o": (86, 0.232, 0.119, 0.662, 15.8, 30.6),
    "GAIA 2 GPT-5": (86, 0.542, 0.187, 0.745, 44.9, 63.5),
    "GAIA 3 GPT-4o": (26, 0.066, 0.019, 0.304, 1.0, 12.2),
    "GAIA 3 GPT-5": (26, 0.442, 0.160, 0.629, 28.1, 60.4),
    "FRAMES GPT-5 search": (50, 0.7731, 0.088, 0.496, 68.86, 85.77),
    "FRAMES GPT-4o search": (50, 0.6354, 0.174, 0.735, 51.70, 75.38),
    "FRAMES GPT-4o": (50, 0.3816, 0.171, 0.712, 26.40, 49.91),
    "FRAMES Claude 4.5 Haiku": (50, 0.6837, 0.144, 0.655, 57.58, 79.17),
    "FRAMES Claude 4.5 Sonnet": (50, 0.6644, 0.156, 0.689, 55.20, 77.68),
    "FRAMES Gemini 2.5 Pro": (50, 0.6234, 0.174, 0.713, 50.60, 74.09),
}
CONTRADICTORY = {
    "GAIA 1 GPT-5": (53, 0.623, 0.185, 0.774, 52.9, 71.7),
    "FRAMES Qwen3": (50, 0.3422, 0.169, 0.617, 23.53, 44.91),
    "FRAMES DeepSeek": (50, 0.4475, 0.157, 0.663, 33.13, 56.37),
}

UNEVEN = [[1, 1, 0], [0, 0], [1], [1, 0, 1, 1, 0]]


def rows(trials_by_task):
    task = np.repeat(np.arange(len(trials_by_task)), [len(trials) for trials in trials_by_task])
    return task, np.concatenate(trials_by_task).astype(float)


def drawn(seed, n_tasks, most, *, least=1, binary=True):
    rng = np.random.default_rng(seed)
    rates = rng.uniform(0.1, 0.9, n_tasks)
    counts = rng.integers(least, most + 1, n_tasks)
    draw = (lambda p, n: rng.binomial(1, p, n)) if binary else (lambda p, n: rng.beta(3 * p, 3 - 3 * p, n))
    return [draw(p, n).astype(float) for p, n in zip(rates, counts, strict=True)]


def published_interval(mean, sigma_b2, correlation, a, n, method=None):
    """An accuracy's interval by published components: s² = σ_b² + σ_w²/n, σ_w² = σ_b²(1 − ICC)/ICC."""
    variance = sigma_b2 + sigma_b2 * (1 - correlation) / correlation / n
    return mean_interval(mean, math.sqrt(variance / a), a, method)


@pytest.fixture
def few_tasks(monkeypatch):
    """Let the arithmetic be seen on fewer tasks than an estimate needs."""
    monkeypatch.setattr("analytics.trials.icc.MIN_TASKS", 2)


def slow_anova(trials_by_task):
    """Mean squares by their definition: one loop over trials."""
    values = [y for trials in trials_by_task for y in trials]
    a, n_all, grand = len(trials_by_task), len(values), sum(values) / len(values)
    ssb = ssw = 0.0
    for trials in trials_by_task:
        mean = sum(trials) / len(trials)
        ssb += len(trials) * (mean - grand) ** 2
        ssw += sum((y - mean) ** 2 for y in trials)
    n_0 = (n_all - sum(len(trials) ** 2 for trials in trials_by_task) / n_all) / (a - 1)
    return ssb / (a - 1), ssw / (n_all - a), n_0


# ---------------------------------------------------------------------------------------------------- by hand


def test_two_by_two_by_hand(few_tasks):
    # Tasks 1,1 | 1,0 | 0,0: means 1, .5, 0; MSB = 2·(.25 + .25)/2 = .5; MSW = .5/3; σ_b² = (1/2 − 1/6)/2.
    result = intraclass_correlation(task_trials(*rows([[1, 1], [1, 0], [0, 0]])))
    assert (result.sigma_b2, result.sigma_w2) == pytest.approx((1 / 6, 1 / 6), abs=1e-15)
    assert result.icc == result.icc_untruncated == pytest.approx(0.5)
    assert (result.n_0, result.n_tasks, result.n_trials) == (2.0, 3, 6)


def test_uneven_trials_by_hand(few_tasks):
    # n = 3, 2, 1, 5; N = 11; n₀ = (11 − 39/11)/3 = 82/33; SSW = 2/3 + 0 + 0 + 6/5 = 28/15 over 7 df.
    # Sums 2, 0, 1, 3: SSB = 4/3 + 0 + 1 + 9/5 − 36/11 = 142/165 over 3 df.
    result = intraclass_correlation(task_trials(*rows(UNEVEN)))
    msb, msw, n_0 = 142 / 495, 28 / 105, 82 / 33
    assert result.n_0 == pytest.approx(n_0, abs=1e-14)
    assert result.sigma_w2 == pytest.approx(msw, abs=1e-15)
    assert result.sigma_b2 == pytest.approx((msb - msw) / n_0, abs=1e-15)
    assert result.icc == pytest.approx((msb - msw) / (msb + (n_0 - 1) * msw), abs=1e-15)
    assert (result.least_trials, result.most_trials) == (1, 5)


def test_a_negative_estimate_is_truncated_and_kept(few_tasks):
    # Every task 1,0: MSB = 0, MSW = 1/2, σ_b² = −1/4: the sum ¼ is below the bound, though MSW alone is not.
    result = intraclass_correlation(task_trials(*rows([[1, 0]] * 4)))
    assert (result.icc, result.sigma_b2, result.sigma_w2) == (0.0, 0.0, 0.5)
    assert result.icc_untruncated == pytest.approx(-1.0)
    assert result.interval is None
    assert "not finite" in result.note


def test_the_t_interval_of_an_accuracy_by_hand():
    # Means .2, .4, .6, .8 with s = √(.2/3); t_3 = 3.182446305; a = 4 < 5 expected failures: logit-t.
    means = np.array([0.2, 0.4, 0.6, 0.8])
    trials = TaskTrials(np.full(4, 5), means, np.ones(4), binary=False)
    se = math.sqrt(0.2 / 3 / 4)
    result = accuracy_interval(trials)
    reach = 3.182446305284263 * se / 0.25
    assert result.method == "logit-t"
    assert (result.lower, result.upper) == pytest.approx(
        (1 / (1 + math.exp(reach)), 1 / (1 + math.exp(-reach)))
    )


# ------------------------------------------------------------------------------------- definition, properties


@REPEATABLE
@given(st.integers(0, 10_000), st.integers(10, 20), st.integers(2, 7), st.booleans())
def test_equal_to_the_definition(seed, n_tasks, most, binary):
    by_task = drawn(seed, n_tasks, most, binary=binary)
    try:
        result = intraclass_correlation(task_trials(*rows(by_task)))
    except IccRefused:
        return
    msb, msw, n_0 = slow_anova(by_task)
    assert result.sigma_w2 == pytest.approx(msw, abs=1e-12)
    assert result.n_0 == pytest.approx(n_0, abs=1e-12)
    assert result.icc_untruncated == pytest.approx((msb - msw) / (msb + (n_0 - 1) * msw), abs=1e-10)


@REPEATABLE
@given(st.integers(0, 10_000), st.integers(10, 20), st.integers(3, 8), st.booleans())
def test_the_jackknife_is_the_one_that_leaves_tasks_out(seed, n_tasks, most, binary):
    by_task = drawn(seed, n_tasks, most, least=3, binary=binary)
    try:
        result = intraclass_correlation(task_trials(*rows(by_task)))
    except IccRefused:
        return
    kept = [slow_anova(by_task[:i] + by_task[i + 1 :]) for i in range(n_tasks)]
    if any(msb < 1e-12 or msw < 1e-12 for msb, msw, _ in kept):
        assert result.interval is None
        return
    z = np.array([math.log(msb / msw) for msb, msw, _ in kept])
    msb, msw, n_0 = slow_anova(by_task)
    se = math.sqrt((n_tasks - 1) / n_tasks * np.sum((z - z.mean()) ** 2))
    reach = stats.t.ppf(0.975, n_tasks - 1) * se
    ends = [math.exp(math.log(msb / msw) + sign * reach) for sign in (-1, 1)]
    expected = [max((f - 1) / (f + n_0 - 1), 0.0) for f in ends]
    assert result.interval.method == "jackknife"
    assert (result.interval.lower, result.interval.upper) == pytest.approx(expected, abs=1e-9)
    assert result.interval.lower <= result.icc <= result.interval.upper


@REPEATABLE
@given(st.integers(0, 10_000), st.integers(2, 12), st.integers(2, 7))
def test_balanced_pass_fail_components_are_bounded(seed, n_tasks, n):
    # σ_b² + σ_w² = A(1 − A) + s²/a, at most A(1 − A)·a/(a − 1): the identity behind the refusal.
    by_task = drawn(seed, n_tasks, n, least=n)
    msb, msw, n_0 = slow_anova(by_task)
    means = np.array([trials.mean() for trials in by_task])
    total = (msb - msw) / n_0 + msw
    mean = means.mean()
    assert total == pytest.approx(mean * (1 - mean) + means.var(ddof=1) / n_tasks, abs=1e-12)
    assert total <= 0.25 * n_tasks / (n_tasks - 1) + 1e-12


@REPEATABLE
@given(st.integers(0, 10_000), st.randoms(use_true_random=False))
def test_order_of_rows_and_numbering_of_tasks_do_not_matter(seed, random):
    by_task = drawn(seed, 10, 5, least=2, binary=False)
    task, outcome = rows(by_task)
    order = np.array(random.sample(range(task.size), task.size))
    renumbered = np.array(random.sample(range(30), 10))[task]
    first = intraclass_correlation(task_trials(task, outcome))
    second = intraclass_correlation(task_trials(renumbered[order], outcome[order]))
    assert second.icc_untruncated == pytest.approx(first.icc_untruncated, abs=1e-12)
    assert second.interval.lower == pytest.approx(first.interval.lower, abs=1e-10)


def test_shift_and_scale_of_outcomes_leave_the_correlation():
    task, outcome = rows(drawn(3, 10, 6, least=2, binary=False))
    first = intraclass_correlation(task_trials(task, outcome))
    second = intraclass_correlation(task_trials(task, 0.25 + outcome / 2))
    assert second.icc_untruncated == pytest.approx(first.icc_untruncated, abs=1e-12)
    assert second.sigma_w2 == pytest.approx(first.sigma_w2 / 4, abs=1e-14)


# -------------------------------------------------------------------------------- foreign programs and tables


def test_mean_squares_and_f_interval_equal_to_scipy():
    by_task = drawn(11, 14, 6, least=6, binary=False)
    result = intraclass_correlation(task_trials(*rows(by_task)))
    f = stats.f_oneway(*by_task).statistic
    assert result.icc_untruncated == pytest.approx((f - 1) / (f + 5), abs=1e-12)
    f_lower, f_upper = f / stats.f.ppf(0.975, 13, 70), f * stats.f.ppf(0.975, 70, 13)
    expected = [max((edge - 1) / (edge + 5), 0.0) for edge in (f_lower, f_upper)]
    assert result.normal_theory.method == "normal theory"
    assert (result.normal_theory.lower, result.normal_theory.upper) == pytest.approx(expected, abs=1e-12)


def test_shrout_and_fleiss_icc_1_1(few_tasks):
    # Shrout & Fleiss 1979, Table 2: six targets, four judges; Table 4 gives ICC(1,1) = .17, with 95% limits
    # −.13 and .72 (here truncated at 0). Scores 1 to 10 are put into [0, 1], which leaves the correlation.
    ratings = (
        np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]) / 10
    )
    result = intraclass_correlation(task_trials(*rows(list(ratings))))
    assert result.icc == pytest.approx(0.17, abs=0.005)
    assert (result.normal_theory.lower, result.normal_theory.upper) == pytest.approx((0.0, 0.72), abs=0.005)


def test_no_f_interval_for_pass_fail_or_uneven_trials():
    for by_task in (drawn(1, 12, 5, least=5), drawn(1, 12, 5, least=2, binary=False)):
        assert intraclass_correlation(task_trials(*rows(by_task))).normal_theory is None


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_accuracy_intervals(name):
    # To .15 points as the tables print them; GAIA 3 GPT-4o by t, as published, though its 1.7 passes are few.
    a, mean, sigma_b2, correlation, lower, upper = PUBLISHED[name]
    result = published_interval(mean, sigma_b2, correlation, a, 64, "t")
    error = max(abs(100 * result.lower - lower), abs(100 * result.upper - upper))
    assert round(error, 2) <= 0.15


def test_published_intervals_named_by_the_issue():
    result = published_interval(0.7731, 0.088, 0.496, 50, 64)
    assert result.method == "t"
    assert (100 * result.lower, 100 * result.upper) == pytest.approx((68.86, 85.77), abs=0.1)
    result = published_interval(0.227, 0.100, 0.561, 53, 64)
    assert (100 * result.lower, 100 * result.upper) == pytest.approx((14.0, 31.4), abs=0.15)


@pytest.mark.parametrize("name", CONTRADICTORY)
def test_published_rows_that_contradict_their_own_components(name):
    a, mean, sigma_b2, correlation, lower, upper = CONTRADICTORY[name]
    result = published_interval(mean, sigma_b2, correlation, a, 64, "t")
    assert max(abs(100 * result.lower - lower), abs(100 * result.upper - upper)) > 0.3


def test_published_components_that_pass_fail_outcomes_cannot_have():
    # FRAMES Qwen3: σ_b² + σ_w² = .169/.617 = .274, above ¼·50/49 = .255.
    a, _, sigma_b2, correlation, _, _ = CONTRADICTORY["FRAMES Qwen3"]
    assert sigma_b2 / correlation == pytest.approx(0.2739, abs=1e-4)
    assert sigma_b2 / correlation > 0.25 * a / (a - 1)


def test_few_passes_published_take_the_logit():
    result = published_interval(0.066, 0.019, 0.304, 26, 64)
    assert result.method == "logit-t"
    assert 0.0 < result.lower < 0.066 < result.upper


# ------------------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize(("passes", "n_tasks", "method"), [(5, 77, "t"), (5, 14, "t"), (4, 77, "logit-t")])
def test_five_passes_or_failures_are_enough_for_t(passes, n_tasks, method):
    """77·(5/77) and 14·(1 − 9/14) are 4.999999999999999."""
    for share in (passes / n_tasks, 1 - passes / n_tasks, (n_tasks - passes) / n_tasks):
        assert mean_interval(share, 0.04, n_tasks).method == method


def test_the_logit_is_for_means_near_an_end():
    # a·min(A, 1 − A) = 40·.03125 = 1.25 and 5.25 against 5; how many tasks lie inside (0, 1) is no matter.
    rare = [[1, 0, 0, 0, 0, 0, 0, 0]] * 10 + [[0] * 8] * 30
    assert accuracy_interval(task_trials(*rows(rare))).method == "logit-t"
    often = [[1] * 8] * 5 + [[1, 1, 0, 0, 0, 0, 0, 0]] + [[0] * 8] * 34
    assert accuracy_interval(task_trials(*rows(often))).method == "t"


@pytest.mark.parametrize(
    ("by_task", "code", "message"),
    [
        ([[1, 0, 1]], "too_few_tasks", "not measured: 1 task with a valid trial; 10 are needed"),
        ([[1, 0]] * 9, "too_few_tasks", "not measured: 9 tasks with a valid trial; 10 are needed"),
        ([[1], [0]] * 5, "one_trial", "^not measured: one trial per task$"),
        (
            [[1, 1], [0, 0]] * 5,
            "no_variance_within",
            "all trials of each of 10 tasks agree .* tasks differ, trials do not",
        ),
        ([[1, 1]] * 10, "no_variance_within", "all tasks have the same mean"),
        ([[0.1] * 3, [0.7] * 3] * 5, "no_variance_within", "MSW = 0"),
    ],
)
def test_what_has_no_intraclass_correlation(by_task, code, message):
    with refused(IccRefused, code, match=message):
        intraclass_correlation(task_trials(*rows(by_task)))


def test_very_uneven_trials_can_contradict_pass_fail():
    by_task = [[1] * 99 + [0], [0] * 99 + [1]] + [[i % 2] for i in range(20)]
    with refused(IccRefused, "components_contradict", match="impossible for pass/fail outcomes"):
        intraclass_correlation(task_trials(*rows(by_task)))


@pytest.mark.parametrize(
    ("by_task", "code", "message"),
    [
        ([[1, 0]], "too_few_tasks", "over 1 task; at least 2"),
        ([[1, 1], [1]], "means_equal", "all 2 tasks have the mean outcome 1"),
    ],
)
def test_what_has_no_accuracy_interval(by_task, code, message):
    with refused(AccuracyRefused, code, match=message):
        accuracy_interval(task_trials(*rows(by_task)))


@pytest.mark.parametrize(
    ("task", "outcome"),
    [([0, 1], [0.5]), ([0, -1], [0.5, 0.5]), ([0, 1], [0.5, math.nan]), ([0.5, 1.5], [0.5, 1.0])],
)
def test_malformed_rows_are_refused(task, outcome):
    with refused(CoreError, "row_malformed"):
        task_trials(task, outcome)


# ------------------------------------------------------------------------------------------------ convergence


def test_convergence_of_a_steady_and_of_a_noisy_agent():
    rng = np.random.default_rng(5)
    sharp = [rng.binomial(1, p, 64) for p in np.where(np.arange(60) % 2, 0.03, 0.97)]
    result = convergence(*rows(sharp), seed=1)
    assert [step.n_trials for step in result.steps] == [2, 4, 8, 16, 32, 64]
    assert result.n_subsets == 200
    assert result.trials_needed in (4, 8, 16)
    assert result.steps[-1].sd == pytest.approx(0.0, abs=1e-12)
    assert result.steps[-1].mean == pytest.approx(intraclass_correlation(task_trials(*rows(sharp))).icc)
    assert result.steps[-1].share_within is None
    noisy = [rng.binomial(1, p, 8) for p in rng.uniform(0, 1, 15)]
    result = convergence(*rows(noisy), seed=1)
    assert result.trials_needed is None
    assert result.verdict == "not reached with 8 trials per task"
    assert result.steps[0].sd > result.steps[1].sd


def test_convergence_is_repeatable_and_ignores_the_order_of_rows():
    by_task = drawn(8, 12, 9, least=8)
    task, outcome = rows(by_task)
    order = np.random.default_rng(0).permutation(task.size)
    first, second = convergence(task, outcome, seed=3), convergence(task[order], outcome[order], seed=3)
    assert first == second
    assert first != convergence(task, outcome, seed=4)
    assert first.n_available == 8


def test_every_subset_of_two_of_four_trials_is_met_equally(few_tasks):
    # Tasks 1,1,0,0 and 1,1,1,1: a pair agrees on task 0 with probability 1/3 (ICC 0 or 1 or undefined).
    # Pairs (1,1), (1,1) are all equal: undefined with probability 1/6.
    result = convergence(*rows([[1, 1, 0, 0], [1, 1, 1, 1]]), seed=2, n_subsets=3000)
    assert result.steps[0].n_undefined / 3000 == pytest.approx(1 / 6, abs=3 * math.sqrt(5 / 36 / 3000))


def test_convergence_refuses_what_it_cannot_tell():
    with refused(IccRefused, "too_few_trials", match="a task has 3 valid trials"):
        convergence(*rows([[1, 0, 1]] + [[0, 0, 1, 1]] * 9), seed=0)
    with refused(IccRefused, "one_trial"):
        convergence(*rows([[1], [0]] * 5), seed=0)


# ------------------------------------------------------------------------------------------------- all agents

FACETS = ("prompt_variant", "judge", "temperature", "run")


def written(lines):
    head = ",".join(
        ("benchmark,agent,scaffold,model,submitted_at,task,trial,outcome,valid,category", *FACETS)
    )
    return flat_file.read(io.BytesIO("\n".join([head, *lines]).encode()), as_of=AS_OF)


def line(agent, task, trial, outcome, valid=1, category="", **setting):
    facets = ",".join(str(setting.get(name, "")) for name in FACETS)
    return f"b,{agent},s,m,2025-01-01,{task},{trial},{outcome},{valid},{category},{facets}"


def outcomes(agent, tasks, seed, n_trials=3, **setting):
    rng = np.random.default_rng(seed)
    return [
        line(agent, f"t{j:02d}", trial, rng.integers(2), **setting)
        for j in tasks
        for trial in range(1, n_trials + 1)
    ]


def of(file, copied=()):
    return consistency(repeated_trials(file), file.categories, copied)


def test_one_line_for_each_agent_and_category(few_tasks):
    grid = {"easy1": [1, 1, 0], "easy2": [1, 0, 1], "hard1": [0, 0, 1], "hard2": [0, 1, 0]}
    lines = [
        line("zoe", task, trial, y, category=task[:4])
        for task, trials in grid.items()
        for trial, y in enumerate(trials, 1)
    ]
    lines += [line("amy", task, 1, y[0], category=task[:4]) for task, y in grid.items()]
    lines += [line("zoe", "hard2", 4, "", valid=0, category="hard")]
    result = of(written(lines))
    assert [(row.agent, row.category, row.n_tasks) for row in result] == [
        (agent, category, 4 if category is None else 2)
        for agent in ("amy", "zoe")
        for category in (None, "easy", "hard")
    ]
    assert {row.condition for row in result} == {""}
    assert dict(result[0].notes)["icc"] == "not measured: one trial per task"
    assert result[0].accuracy is not None
    assert result[3].icc == intraclass_correlation(task_trials(*rows(list(grid.values()))))
    assert result[5].icc == intraclass_correlation(task_trials(*rows([grid["hard1"], grid["hard2"]])))


def test_copied_trials_count_as_one():
    lines = [line("a", task, trial, (task * trial) % 2) for task in range(1, 5) for trial in (1, 2)]
    row = of(written(lines), copied={"a"})[0]
    assert row.icc is None
    assert dict(row.notes)["icc"].startswith("not measured: one trial per task (")


def test_prompts_are_no_repeats_and_runs_are():
    """One trial under each of two prompts repeats nothing; the same rows under two run labels do."""
    tasks = range(12)
    prompts = [outcomes("a", tasks, seed, 1, prompt_variant=name) for seed, name in enumerate("pq")]
    result = of(written([row for rows_of in prompts for row in rows_of]))
    assert [(row.condition, row.icc) for row in result] == [("prompt p", None), ("prompt q", None)]
    assert {dict(row.notes)["icc"] for row in result} == {"not measured: one trial per task"}
    runs = [outcomes("a", tasks, seed, 1, run=name) for seed, name in enumerate("pq")]
    (row,) = of(written([row for rows_of in runs for row in rows_of]))
    assert (row.condition, row.icc.n_0) == ("", 2.0)


def test_a_prompt_of_its_own_changes_no_figure_of_another():
    """The estimate under a prompt is that of its rows alone, whatever the other prompt did."""
    first = outcomes("a", range(12), 1, prompt_variant="p")
    (alone,) = of(written(first))
    both = of(written(first + outcomes("a", range(12), 2, prompt_variant="q")))
    assert [row.condition for row in both] == ["prompt p", "prompt q"]
    assert both[0].icc == alone.icc


def test_temperature_is_a_condition_where_an_agent_has_two():
    one_each = outcomes("a", range(12), 1, temperature=0.0) + outcomes("b", range(12), 2, temperature=1.0)
    assert [row.condition for row in of(written(one_each))] == ["", ""]
    two = one_each + outcomes("b", range(12), 3, temperature=0.0)
    assert [(row.agent, row.condition) for row in of(written(two))] == [
        ("a", "temperature 0.0"),
        ("b", "temperature 0.0"),
        ("b", "temperature 1.0"),
    ]


def test_agents_are_compared_on_their_common_tasks():
    """A and b miss a task each of 20, c ran half: a and b meet on 18 tasks, c stands on its own ten."""
    a, b = outcomes("a", range(1, 20), 1), outcomes("b", range(19), 2)
    result = of(written(a + b + outcomes("c", range(10), 3)))
    assert [(row.agent, row.compared, row.n_tasks) for row in result] == [
        ("a", True, 18),
        ("b", True, 18),
        ("c", False, 10),
    ]
    (on_common,) = of(written([row for row in a if ",t19," not in row]))
    assert result[0].icc == on_common.icc


def test_without_ten_common_tasks_nobody_is_compared():
    result = of(written(outcomes("a", range(12), 1) + outcomes("b", range(6, 18), 2)))
    assert [(row.compared, row.n_tasks) for row in result] == [(False, 12), (False, 12)]
    assert [row.compared for row in of(written(outcomes("a", range(9), 1)))] == [False]


def test_terminal_bench_by_the_slow_way(real_rows, real_data):
    rows_of = {}
    for row in real_rows("terminal_bench_core_011"):
        if row["valid"] == "1":
            rows_of.setdefault(row["agent"], {}).setdefault(row["task"], []).append(float(row["outcome"]))
    common = set.intersection(*(set(tasks) for tasks in rows_of.values()))
    assert len(common) == 73
    rows_of = {name: {task: tasks[task] for task in common} for name, tasks in rows_of.items()}
    with (real_data / "terminal_bench_core_011.csv.gz").open("rb") as stream:
        result = [row for row in of(flat_file.read(stream, as_of=AS_OF)) if row.category is None]
    assert [row.agent for row in result] == sorted(rows_of)
    for row in result:
        msb, msw, n_0 = slow_anova(list(rows_of[row.agent].values()))
        assert row.icc.icc == pytest.approx((msb - msw) / (msb + (n_0 - 1) * msw), abs=1e-12)
        assert row.icc.interval.lower < row.icc.icc < row.icc.interval.upper
        assert row.mean == pytest.approx(
            np.mean([np.mean(y) for y in rows_of[row.agent].values()]), abs=1e-12
        )
