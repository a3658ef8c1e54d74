"""Logit models: against glmer and an independent prototype on real data, by hand, and on simulated designs.

Real data are read by the csv module. The figures of real boards were recomputed with lme4 1.1-31 and with a
program that shares nothing with this one; they stand in RESEARCH_METHODS, section 12.
"""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq, minimize
from scipy.special import expit, gammaln
from scipy.stats import binom, norm

from analytics.drift.rank_correlation import spearman
from analytics.errors import CoreError
from analytics.glmm import fit_logit, logit_check
from analytics.glmm.laplace import Counts, layout_of
from analytics.reml import FitRefused, fit
from analytics.reml.layout import cells_of
from analytics.reml.model import designed
from analytics.tee import Component, Components, Reading, project, read_components
from analytics.tee.benchmark import TrialOutcomes, variance_study
from perf.glmm import CROSSED, crossed
from tests.refusals import refused
from tests.tables import columns_of

GLMER = json.loads((Path(__file__).resolve().parent.parent / "reference" / "glmer.json").read_text())
INCLUDE = Reading(sensitivity="include")


def counts_of(columns, outcome, random, fixed=""):
    model = designed(columns, len(outcome), random, fixed)
    cells = cells_of(model.codes, model.n_levels, model.numbers(model.random), model.rows())
    return Counts(layout_of(cells), np.bincount(cells.of_row, outcome))


def unbalanced(seed=7, n_rows=900):
    """Rows drawn at random from a crossed design, so that cells and blocks differ in size."""
    rng = np.random.default_rng(seed)
    codes = {"item": rng.integers(0, 15, n_rows), "prompt": rng.integers(0, 4, n_rows)}
    codes["judge"] = rng.integers(0, 3, n_rows)
    eta = rng.standard_normal(15)[codes["item"]] + np.array([0.0, 0.7, -0.4])[codes["judge"]]
    eta += 0.6 * rng.standard_normal((15, 4))[codes["item"], codes["prompt"]]
    labels = {name: [f"{name}{code}" for code in column] for name, column in codes.items()}
    return labels, (rng.random(n_rows) < expit(eta)).astype(float)


@pytest.fixture(scope="module")
def design():
    """The binary crossed design with all terms of the model, its fit on both scales."""
    columns = crossed()
    outcome = np.array(columns["outcome"], dtype=float)
    fixed = "judge + temperature"
    logit = fit_logit(columns, outcome, random=CROSSED, fixed=fixed)
    return logit, fit(columns, outcome, random=CROSSED, fixed=fixed)


# ------------------------------------------------------------------------------------------ against glmer


@pytest.mark.parametrize(
    ("file", "outcome", "random", "deviance", "components", "intercept"),
    [
        ("reference/tbcore", "score", "agent + task", 2904.413387, [1.3855, 9.8648], -1.37514),
        (
            "reference/tbcore",
            "score",
            "agent + task + agent:task",
            2319.318646,
            [3.0800, 22.327, 5.0927],
            -2.1127,
        ),
        (
            "swebench_verified_2023_2025",
            "outcome",
            "agent + task",
            19525.140607,
            [4.1429, 9.2906],
            None,
        ),
    ],
)
def test_real_boards(real_rows, file, outcome, random, deviance, components, intercept):
    columns = columns_of(real_rows(file))
    result = fit_logit(columns, np.array(columns[outcome], dtype=float), random=random)
    assert result.converged
    assert result.deviance == pytest.approx(deviance, abs=1e-6)
    for value, printed in zip(result.components.values(), components, strict=True):
        assert value == pytest.approx(printed, rel=5e-5)
    if intercept:
        assert result.fixed["(Intercept)"] == pytest.approx(intercept, abs=5e-5)
    stored = next(fitted for fitted in GLMER.values() if abs(fitted["deviance"] - deviance) < 0.01)
    assert result.deviance <= stored["deviance"] + 1e-4


def test_crossed_design_with_all_terms(design):
    result, _ = design
    stored = GLMER["crossed 60 × 5 × 3 × 3 × 5"]
    assert result.deviance <= stored["deviance"] + 1e-4
    assert result.deviance == pytest.approx(stored["deviance"], abs=0.05)
    zeros = [name for name, variance in result.components.items() if variance == 0.0]
    assert zeros == ["item:temperature", "prompt:temperature"]
    for name, variance in result.components.items():
        assert variance == pytest.approx(stored["components"][name], rel=0.01, abs=1e-4)


# ------------------------------------------------------------------------------------------------ by hand


@pytest.mark.parametrize(
    ("random", "fixed", "variances", "beta"),
    [
        ("item + prompt + item:prompt", "", [0.8, 0.3, 0.4], [0.2]),
        ("item + prompt + item:judge + prompt:judge", "judge", [1.5, 0.0, 0.2, 0.6], [0.1, 0.5, -0.5]),
        ("item + item:prompt + item:prompt:judge", "judge", [0.7, 0.0, 0.9], [0.1, 0.4, 0.0]),
        ("judge", "prompt", [2.0], [0.1, 0.2, 0.3, 0.4]),
        ("item", "", [1.3], [0.2]),
    ],
)
def test_deviance_and_gradient(random, fixed, variances, beta):
    """The deviance by dense matrices and a general minimiser, its gradient by differences."""
    columns, outcome = unbalanced()
    counts = counts_of(columns, outcome, random, fixed)
    variances, beta = np.array(variances), np.array(beta)
    result = counts.at(variances, beta)
    assert result.value == pytest.approx(dense_deviance(counts, variances, beta), rel=1e-9)
    for i in range(variances.size + beta.size):
        low, high = np.concatenate([variances, beta]), np.concatenate([variances, beta])
        high[i] += 1e-5
        low[i] -= 1e-5 if low[i] != 0.0 else 0.0
        values = [counts.at(point[: variances.size], point[variances.size :]).value for point in (low, high)]
        slope = (values[1] - values[0]) / (high[i] - low[i])
        tolerance = 1e-5 if variances.size <= i or variances[i] else 2e-3
        assert result.gradient[i] == pytest.approx(slope, rel=tolerance, abs=1e-4)


def dense_deviance(counts, variances, beta):
    """−2 log of the Laplace approximation, from ZΛ written out in full."""
    cells = counts.layout.cells
    scaled = np.column_stack(
        [
            np.sqrt(variance) * np.eye(n)[codes]
            for variance, codes, n in zip(variances, cells.levels, cells.n_levels, strict=True)
        ]
    )
    s, n, shift = counts.successes, cells.n_rows_in, cells.design @ beta

    def penalised(u):
        eta = shift + scaled @ u
        slope = 2.0 * (u - scaled.T @ (s - n * expit(eta)))
        return 2.0 * np.sum(n * np.logaddexp(0.0, eta) - s * eta) + u @ u, slope

    u = minimize(penalised, np.zeros(scaled.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-9}).x
    mean = expit(shift + scaled @ u)
    information = np.eye(u.size) + scaled.T @ ((n * mean * (1.0 - mean))[:, None] * scaled)
    constant = gammaln(n + 1.0) - gammaln(s + 1.0) - gammaln(n - s + 1.0)
    return penalised(u)[0] + np.linalg.slogdet(information)[1] - 2.0 * np.sum(constant)


def test_items_alone_are_one_integral_each():
    """One scalar mode for each item; the approximation tends to the integral as trials grow."""
    variance, beta = 1.7, -0.3
    errors = []
    for n in (8, 32, 128):
        successes = np.array([n // 8, n // 2, 7 * n // 8])
        columns = {"item": np.repeat(["a", "b", "c"], n)}
        outcome = np.concatenate([np.arange(n) < s for s in successes]).astype(float)
        result = counts_of(columns, outcome, "item").at(np.array([variance]), np.array([beta])).value
        assert result == pytest.approx(sum(laplace(s, n, variance, beta) for s in successes), abs=1e-9)
        errors.append(abs(result - sum(integral(s, n, variance, beta) for s in successes)))
    assert errors[2] < errors[1] / 2 < errors[0] / 3


def laplace(s, n, variance, beta):
    sd = variance**0.5
    u = brentq(lambda u: u - sd * (s - n * expit(beta + sd * u)), -20, 20, xtol=1e-14)
    mean = expit(beta + sd * u)
    return -2 * binom.logpmf(s, n, mean) + u**2 + np.log1p(variance * n * mean * (1 - mean))


def integral(s, n, variance, beta):
    sd = variance**0.5
    return -2 * np.log(quad(lambda u: binom.pmf(s, n, expit(beta + sd * u)) * norm.pdf(u), -9, 9)[0])


def test_order_of_rows_and_names_change_nothing():
    columns, outcome = unbalanced()
    first = fit_logit(columns, outcome, random="item + prompt + item:prompt", fixed="judge")
    order = np.random.default_rng(1).permutation(outcome.size)
    renamed = {
        name: [f"{label[::-1]}x" for label in np.array(labels)[order]] for name, labels in columns.items()
    }
    second = fit_logit(renamed, outcome[order], random="item + item:prompt + prompt", fixed="judge")
    assert second.deviance == pytest.approx(first.deviance, abs=1e-7)
    for name, variance in first.components.items():
        assert second.components[name] == pytest.approx(variance, rel=1e-4, abs=1e-7)


# ------------------------------------------------------------------------------------------------- shares


def test_shares_are_those_of_a_d_study(design):
    """Both columns by the D-study that takes the choice of judges and temperatures for error."""
    logit, linear = design
    check = logit_check(linear, logit)
    letters = {"item": "N", "prompt": "V", "judge": "M", "temperature": "H"}
    sizes = {"N": 60, "V": 5, "M": 3, "H": 3, "R": 5}
    for result, variances, residual, fixed in (
        (check.linear, linear.components, linear.residual, linear.fixed),
        (check.logit, logit.components, np.pi**2 / 3, logit.fixed),
    ):
        entries = [
            Component(name, variance, frozenset(letters[word] for word in name.split(":")))
            for name, variance in variances.items()
        ]
        for word in ("judge", "temperature"):
            effects = [0.0, *(effect for name, effect in fixed.items() if name.startswith(word))]
            entries.append(
                Component(f"{word} (fixed)", float(np.var(effects)), frozenset(letters[word]), fixed=True)
            )
        entries.append(Component("Residual", residual, frozenset("R")))
        expected = project(Components(tuple(entries)), sizes, INCLUDE).shares
        assert result == pytest.approx(expected, abs=1e-12)
    assert -1.0 <= check.spearman <= 1.0


def test_categories_and_held_agents():
    """A fixed category is divided by the items; an agent that is looked at alone is no error."""
    columns, outcome = unbalanced()
    columns["category"] = [str(int(item.removeprefix("item")) % 3) for item in columns["item"]]
    random = "category + item + prompt"
    logit = fit_logit(columns, outcome, random=random)
    check = logit_check(fit(columns, outcome, random=random), logit)
    ratio = {name: check.logit[name] / logit.components[name] for name in ("item", "prompt")}
    assert ratio["item"] * 15 == pytest.approx(ratio["prompt"] * 4)
    category = logit.components["category"]
    assert check.logit["category"] == pytest.approx(ratio["item"] * category)
    held = logit_check(fit(columns, outcome, random=random), logit, by_level="prompt")
    assert "prompt" not in held.logit
    assert held.logit["category"] * logit.components["item"] * 3 == pytest.approx(
        held.logit["item"] * category * 15, abs=1e-9
    )
    assert sum(held.logit.values()) == pytest.approx(1.0)


def test_one_sentence_where_the_largest_differs(real_rows):
    columns = columns_of(real_rows("reference/tbcore"))
    outcome = np.array(columns["score"], dtype=float)
    random = "agent + task + agent:task"
    both = fit(columns, outcome, random=random), fit_logit(columns, outcome, random=random)
    assert logit_check(*both).sentence == (
        "The largest part of the variance of the mean over all outcomes is agent on the scale of the "
        "outcomes (53%), but task on the logit scale (54%)."
    )
    assert logit_check(*both, by_level="agent").sentence == ""


def board(outcome, task):
    columns = {"agent": np.repeat([f"a{i}" for i in range(6)], outcome.size // 6), "task": task}
    columns |= {
        facet: np.zeros(outcome.size, dtype=str) for facet in ("prompt", "judge", "temperature", "run")
    }
    return variance_study(TrialOutcomes(columns, outcome), complete=[], n_tasks=40)


def test_the_study_of_a_leaderboard_holds_the_logit_part():
    """One trial of each task: agent:task and the trials are one, so that the logit scale has only tasks."""
    rng = np.random.default_rng(4)
    task = np.tile([f"t{j:02d}" for j in range(40)], 6)
    eta = np.repeat(np.linspace(-1, 1, 6), 40) + np.tile(1.9 * rng.standard_normal(40), 6)
    outcome = (rng.random(240) < expit(eta)).astype(float)
    result = board(outcome, task)["logit"]
    assert result["available"]
    assert set(result["components"]) == {"agent", "task"}
    assert set(result["shares"]["logit"]) == {"task", "Residual"}
    largest = [max(result["shares"][scale], key=result["shares"][scale].get) for scale in ("linear", "logit")]
    assert bool(result["sentence"]) == (largest[0] != largest[1])
    assert json.loads(json.dumps(result)) == result
    assert board(np.clip(outcome, 0.1, 0.9), task)["logit"] is None
    summary = board(np.repeat(np.arange(6) % 2, 40).astype(float), task)
    assert not summary["available"] or not summary["logit"]["available"]


# --------------------------------------------------------------------------------------- published figures

# Named rows of TEE's Table 11: linear, logit.
TABLE_11 = {
    "pairwise": ([68.4, 7.6, 0.4, 1.9, 0.1, 20.9, 0.2], [50.9, 13.7, 0.4, 1.9, 0.0, 32.7, 0.1]),
    "safety": ([43.8, 20.8, 0.0, 16.7, 12.4, 4.9], [70.7, 11.4, 0.0, 4.3, 7.9, 4.7]),
    "MMLU": ([25.0, 35.0, 14.7, 5.3, 13.8, 5.1], [27.4, 23.4, 35.7, 2.7, 5.4, 4.8]),
}


def test_linear_shares_of_table_11(real_data):
    facets = {"N": "item_id", "V": "variant_id", "M": "judge_model", "H": "temperature"}
    components = read_components(real_data / "published" / "tee_safety_components.csv", facets)
    sizes = {"N": 141, "V": 5, "M": 3, "H": 3, "R": 8}
    shares = project(components, sizes, INCLUDE).shares
    named = [
        "judge_model (fixed)",
        "item_id",
        "variant_id",
        "item_id:judge_model",
        "variant_id:judge_model",
        "category",
    ]
    assert [100 * shares[name] for name in named] == pytest.approx(TABLE_11["safety"][0], abs=0.05)


@pytest.mark.parametrize(("study", "ours"), [("pairwise", 1.00), ("safety", 0.83), ("MMLU", 0.71)])
def test_rank_correlations_of_table_11(study, ours):
    """Printed .99, .91 and .95; the named rows give these."""
    assert spearman(*TABLE_11[study]) == pytest.approx(ours, abs=0.005)


# ------------------------------------------------------------------------------------- refusals, command


def written(path, columns):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def test_outcomes_that_are_not_0_or_1_are_refused(refusal, tmp_path):
    columns, outcome = unbalanced(n_rows=60)
    outcome[4] = 0.5
    path = written(tmp_path / "graded.csv", columns | {"y": outcome.tolist()})
    result = refusal("variance", path, "--outcome", "y", "--random", "item", "--logit")
    assert "row 5: an outcome of 0.5; the logit scale is for outcomes 0 and 1" in result


def test_a_fixed_level_of_one_outcome_is_refused(refusal, tmp_path):
    columns, outcome = unbalanced(n_rows=200)
    outcome[np.array(columns["judge"]) == "judge1"] = 1.0
    path = written(tmp_path / "constant.csv", columns | {"y": outcome.tolist()})
    called = ("variance", path, "--outcome", "y", "--random", "item", "--fixed", "judge", "--logit")
    result = refusal(*called)
    n_rows = columns["judge"].count("judge1")
    assert f"fixed judge[judge1]: all {n_rows} outcomes are 1" in result


def test_what_else_is_refused():
    columns, outcome = unbalanced()
    with refused(CoreError, "outcome_constant", match="all 900 outcomes are alike"):
        fit_logit(columns, np.ones(900), random="item")
    with refused(CoreError, "no_random_term", match="row: one row for each level"):
        fit_logit(columns | {"row": list(range(900))}, outcome, random="row")
    with refused(FitRefused, "confounded", match="group the rows alike"):
        fit_logit(columns | {"twin": columns["item"]}, outcome, random="item + twin")
    same = {"item": np.repeat(np.arange(40), 200).tolist()}
    with refused(CoreError, "no_residual_noise", match="item: outcomes of one level never differ"):
        fit_logit(same, np.repeat(np.arange(40) % 2, 200), random="item")
    nearly = np.repeat(np.arange(40) % 2, 200)
    nearly[0] = 1
    with refused(CoreError, "not_estimable", match=r"item: a standard deviation of \d\d logits"):
        fit_logit(same, nearly, random="item")


def test_one_trial_in_each_cell_drops_the_cell_term(answer, tmp_path):
    rng = np.random.default_rng(3)
    agent, task = (axis.ravel() for axis in np.indices((8, 30)))
    outcome = rng.random(240) < expit(rng.standard_normal(8)[agent] + rng.standard_normal(30)[task])
    path = written(tmp_path / "once.csv", {"agent": agent, "task": task, "y": outcome.astype(int)})
    called = ("variance", path, "--outcome", "y", "--logit", "--random")
    payload = answer(*called, "agent + task + agent:task")
    assert payload["logit"]["dropped"] == ["agent:task"]
    without = answer(*called, "agent + task")
    assert without["logit"]["dropped"] == []
    assert payload["components"] == without["components"]
    assert payload["logit"]["deviance"] == without["logit"]["deviance"]


def test_the_object_of_the_command_and_what_a_reader_sees(answer, text, tmp_path):
    columns, outcome = unbalanced()
    path = written(tmp_path / "rows.csv", columns | {"y": outcome.astype(int)})
    called = ("variance", path, "--outcome", "y", "--random", "item + prompt", "--fixed", "judge", "--logit")
    payload = answer(*called)["logit"]
    assert list(payload) == ["components", "fixed", "shares", "deviance", "spearman", "dropped", "sentence"]
    expected = fit_logit(columns, outcome, random="item + prompt", fixed="judge")
    assert payload["components"] == pytest.approx(expected.components)
    assert payload["fixed"] == pytest.approx(expected.fixed)
    names = ["item", "prompt", "judge (fixed)", "Residual"]
    assert {scale: list(shares) for scale, shares in payload["shares"].items()} == {
        "linear": names,
        "logit": names,
    }
    shown = text(*called)
    assert "shares of the variance of the mean" in shown
    assert "Spearman" in shown


def test_each_level_on_its_own(answer, text, refusal, tmp_path):
    """TEE C.7 from the command line: two temperatures, the second four times as noisy."""
    rng = np.random.default_rng(12)
    item, prompt, temperature, _ = (axis.ravel() for axis in np.indices((60, 4, 2, 3)))
    score = rng.standard_normal(60)[item] + rng.standard_normal((60, 4))[item, prompt]
    score += np.array([0.5, 1.0])[temperature] * rng.standard_normal(item.size)
    columns = {"item": item, "version": prompt, "temperature": temperature, "score": score.tolist()}
    path = written(tmp_path / "noisy.csv", columns)
    called = ("variance", path, "--outcome", "score", "--random", "item", "--by", "temperature")
    facets = ("--facets", "N=item,V=version,H=temperature")
    payload = answer(*called, *facets)["by"]
    residuals = {level: part["residual"] for level, part in payload["levels"].items()}
    assert residuals == pytest.approx({"0": 0.25, "1": 1.0}, rel=4 * (2 / 480) ** 0.5)
    assert payload["mean_residual"] == pytest.approx(sum(residuals.values()) / 2)
    assert payload["left_out"] == []
    noise = payload["mean_residual"] / (60 * 4 * 2 * 3)
    assert payload["projection"]["shares"]["Residual"] == pytest.approx(
        noise / payload["projection"]["variance"]
    )
    assert "each temperature on its own" in text(*called, *facets)
    assert "no column is declared for strata by judge" in refusal(*called[:-1], "judge", *facets)
    named = written(tmp_path / "named.csv", {"thing": item, "temperature": temperature, "score": score})
    result = refusal("variance", named, *called[2:5], "thing", "--by", "temperature")
    assert "--facets N=COLUMN" in result
