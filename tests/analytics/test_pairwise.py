"""Pairwise scoring: figures of real boards, other programs, formulas written out, refusals."""

import csv
from collections import defaultdict

import choix
import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import studentized_range

from analytics.errors import CoreError
from analytics.research.pairwise import joint_ranks, pairwise
from analytics.research.pairwise.bradley_terry import StrengthsRefused, elo, fit, fit_wins
from analytics.research.pairwise.cells import (
    agreement,
    bootstrap_cells,
    verdicts_of_scores,
    verdicts_of_shares,
)
from analytics.research.pairwise.comparisons import OutcomeMatrix, read_comparisons
from tests.refusals import refused

COMMAND = ("pairwise",)

HEAD = "benchmark,agent,scaffold,model,submitted_at,task,trial,outcome"
KEYS = [
    "agents",
    "position",
    "log_likelihood",
    "n_items",
    "n_comparisons",
    "critical_value",
    "cells",
    "agreement",
    "method",
    "notes",
    "n_invalid",
]


def outcomes_of(rows):
    """Outcomes from rows of a real file: per agent and task the mean over valid trials."""
    cells = defaultdict(list)
    for row in rows:
        if row.get("valid", "1") == "1":
            cells[row["agent"], row["task"]].append(float(row["outcome"]))
    agents, tasks = (sorted({key[i] for key in cells}) for i in (0, 1))
    means = np.array([[np.mean(cells.get((a, t), [np.nan])) for t in tasks] for a in agents])
    return OutcomeMatrix.of(agents, tasks, means)


def battles(
    *, n=8, items=300, judges=2, prompts=3, position=(0.5, -0.3), shift=0.0, noise=0.0, tie=0.0, seed=0
):
    """Columns of verdicts, every item under every judge, prompt and order; strengths rise evenly."""
    rng = np.random.default_rng(seed)
    beta = np.linspace(-1, 1, n)
    of_cell = rng.normal(0, shift, (judges, prompts, n))
    rows = []
    for i in range(items):
        a, b = rng.choice(n, 2, replace=False)
        beyond = rng.normal(0, noise)
        for j in range(judges):
            for v in range(prompts):
                for first, order in (("a", 1), ("b", -1)):
                    moved = of_cell[j, v, a] - of_cell[j, v, b]
                    chance = expit(beta[a] - beta[b] + moved + beyond + position[j] * order)
                    winner = "tie" if rng.random() < tie else "a" if rng.random() < chance else "b"
                    rows.append((f"i{i:04d}", f"m{a}", f"m{b}", winner, first, f"j{j}", f"v{v}"))
    names = ("item", "a", "b", "winner", "first", "judge", "prompt_variant")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def of_rows(*rows, names=("item", "a", "b", "winner")):
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def write(path, columns):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


# --------------------------------------------------------------------------------------------- known figures


@pytest.mark.parametrize(
    ("name", "n_decisive", "log_likelihood", "largest", "ratio"),
    [
        ("hal_gaia", 32_119, -16558.745549, 1.599378, 3.68),
        ("terminal_bench_core_011", 2_918, -1546.166609, 1.333555, 2.19),
        ("swebench_verified_2023_2025", 226_704, -80411.263235, 2.534659, 4.54),
    ],
)
def test_strengths_of_real_boards(real_rows, name, n_decisive, log_likelihood, largest, ratio):
    result = fit(outcomes_of(real_rows(name)))
    assert result.n_comparisons == n_decisive
    assert result.log_likelihood == pytest.approx(log_likelihood, abs=1e-6)
    assert result.strengths.max() == pytest.approx(largest, abs=1e-6)
    median = np.median(result.se / result.naive_se)
    assert round(median, 2) == pytest.approx(ratio, abs=0.0051)  # over the tasks that agents differ on
    assert abs(result.strengths.sum()) < 1e-12


def test_two_agents_differ_by_the_log_of_their_wins():
    outcomes = np.array([[1.0] * 7 + [0.0] * 3 + [1.0] * 5, [0.0] * 7 + [1.0] * 3 + [1.0] * 5])
    result = fit(OutcomeMatrix.of(["x", "y"], [f"t{j:02d}" for j in range(15)], outcomes))
    assert result.strengths[0] - result.strengths[1] == pytest.approx(np.log(7 / 3), abs=1e-10)
    assert (result.n_items, result.n_comparisons) == (10, 10)
    assert elo(np.array([np.log(10)])) == pytest.approx(1400)


def test_strengths_are_those_of_choix():
    rng = np.random.default_rng(1)
    wins = rng.poisson(4, (20, 20)).astype(float)
    np.fill_diagonal(wins, 0)
    theirs = choix.ilsr_pairwise_dense(wins, tol=1e-12)
    np.testing.assert_allclose(fit_wins(wins), theirs - theirs.mean(), atol=1e-7)


@pytest.mark.parametrize("every", [1, 13])
def test_position_effects_and_errors_by_the_formulas_written_out(every):
    """Of each item all twelve rows, or one: the errors of the latter are added up by pair."""
    columns = {name: texts[::every] for name, texts in battles(noise=1.0, tie=0.1, items=400).items()}
    c = read_comparisons(columns)
    result = fit(c)
    names, judges = result.agents, result.judges
    design = np.zeros((len(columns["item"]), len(names) + len(judges)))
    y = np.empty(len(design))
    for row, (a, b, winner, first, judge) in enumerate(
        zip(*(columns[name] for name in ("a", "b", "winner", "first", "judge")), strict=True)
    ):
        design[row, names.index(a)], design[row, names.index(b)] = 1, -1
        design[row, len(names) + judges.index(judge)] = 1 if first == "a" else -1
        y[row] = {"a": 1, "b": 0, "tie": 0.5}[winner]
    theta = np.concatenate([result.strengths, result.positions])
    p = expit(design @ theta)
    assert np.abs(design.T @ (y - p)).max() < 1e-10
    inverse = np.linalg.pinv(design.T @ (design * (p * (1 - p))[:, None]))
    items = np.unique(columns["item"], return_inverse=True)[1]
    scores = np.zeros((items.max() + 1, theta.size))
    np.add.at(scores, items, design * (y - p)[:, None])
    m = len(scores)
    np.testing.assert_allclose(
        result.covariance, inverse @ scores.T @ scores @ inverse * m / (m - 1), atol=1e-10
    )
    np.testing.assert_allclose(result.naive, inverse, atol=1e-10)
    assert result.log_likelihood == pytest.approx(y @ np.log(p) + (1 - y) @ np.log(1 - p))
    for effect, truth, se in zip(result.positions, (0.5, -0.3), result.se[-2:], strict=True):
        assert abs(effect - truth) < 4 * se + 0.15  # what items add to x shrinks all effects
    assert (np.median(result.se / result.naive_se) > 1.3) == (every == 1)


def test_neither_the_order_of_rows_nor_which_agent_is_a_matters():
    columns = battles(items=40)
    turned = {**columns, "a": columns["b"], "b": columns["a"]}
    other = {"a": "b", "b": "a", "tie": "tie"}
    turned |= {name: [other[text] for text in columns[name]] for name in ("winner", "first")}
    turned = {name: texts[::-1] for name, texts in turned.items()}
    one, two = (fit(read_comparisons(rows)) for rows in (columns, turned))
    np.testing.assert_allclose(one.strengths, two.strengths, atol=1e-10)
    np.testing.assert_allclose(one.positions, two.positions, atol=1e-10)
    np.testing.assert_allclose(one.covariance, two.covariance, atol=1e-10)


@pytest.mark.parametrize("seed", range(12))
def test_agents_of_equal_strength_stand_by_name(seed):
    """Of two twins each has won as often against everybody: what rounding leaves decides no order."""
    wins = np.random.default_rng(seed).integers(2, 9, (4, 4))
    rows = [
        (f"i{i}{j}{k}", f"m{i}", f"m{j}", "a")
        for i, j in np.ndindex(8, 8)
        for k in range(wins[i // 2, j // 2])
        if i != j
    ]
    order = [line["agent"] for line in pairwise(read_comparisons(of_rows(*rows)), seed=0)["agents"]]
    for first, second in zip(order[::2], order[1::2], strict=True):
        assert (int(first[1:]) % 2, int(second[1:])) == (0, int(first[1:]) + 1)


def test_a_tie_is_half_a_win_to_each():
    rows = [(f"i{k}", "x", "y", winner) for k, winner in enumerate(["a", "a", "b", "tie", "tie"])]
    doubled = [(*row[:3], w) for row in rows for w in ({"tie": "ab"}.get(row[3]) or row[3] * 2)]
    one, two = (fit(read_comparisons(of_rows(*some))) for some in (rows, doubled))
    np.testing.assert_allclose(one.strengths, two.strengths, atol=1e-10)


def test_a_prior_makes_strengths_finite_where_they_are_not():
    wins = np.array([[0.0, 9.0], [0.0, 0.0]])
    beta = fit_wins(wins, 9.0)
    assert beta[0] == pytest.approx(9 * 9 * expit(-2 * beta[0]), abs=1e-8)  # ∂ℓ = 9(1 − P) − β/9
    assert beta.sum() == pytest.approx(0, abs=1e-12)


# -------------------------------------------------------------------------------------------------- ranks


def test_critical_value_of_independent_estimates_is_that_of_the_studentized_range():
    for n, m in ((2, 1_000_000), (10, 1_000_000), (10, 20)):
        result = joint_ranks([f"a{i}" for i in range(n)], np.zeros(n), np.eye(n), m, seed=3)
        assert result.critical == pytest.approx(studentized_range.ppf(0.95, n, m - 1) / np.sqrt(2), abs=0.06)
        assert (result.lower == 1).all()
        assert (result.upper == n).all()


def test_ranks_use_what_errors_share():
    """Two estimates that err together are told apart; the third is not."""
    covariance = np.array([[1.0, 0.999, 0.0], [0.999, 1.0, 0.0], [0.0, 0.0, 1.0]])
    result = joint_ranks(["a", "b", "c"], np.array([0.5, 0.0, 0.2]), covariance, 100, seed=0)
    assert (result.lower.tolist(), result.upper.tolist()) == ([1, 2, 1], [2, 3, 3])
    assert result.may_be_first.tolist() == [True, False, True]


def test_equal_agents_are_rarely_put_in_order():
    """Six equal agents on 60 tasks, 200 boards: a wrong order on 5% of them, within 3 binomial errors."""
    rng, wrong = np.random.default_rng(0), 0
    names, tasks = [f"a{i}" for i in range(6)], [f"t{j:02d}" for j in range(60)]
    for board in range(200):
        passed = rng.random((6, 60)) < expit(rng.normal(0, 1.5, 60))
        result = fit(OutcomeMatrix.of(names, tasks, passed.astype(float)))
        ranks = joint_ranks(
            names, result.strengths, result.covariance, result.n_items, seed=board, n_draws=199
        )
        wrong += ranks.beats.any()
    assert wrong / 200 < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)


def test_a_difference_without_error_decides_nothing():
    result = joint_ranks(["a", "b"], np.array([1.0, 0.0]), np.ones((2, 2)), 100, seed=0)
    assert not result.beats.any()
    for names, n_items, why in ((["b", "a"], 100, "stands after"), (["a", "b"], 1, "1 item tells no error")):
        with pytest.raises(CoreError, match=why):
            joint_ranks(names, np.zeros(2), np.eye(2), n_items, seed=0)


# -------------------------------------------------------------------------------------------------- cells


def test_cells_that_agree_add_nothing_and_cells_that_differ_do():
    alike = bootstrap_cells(read_comparisons(battles(n=5, noise=3.0)), seed=0, n_draws=60)
    noisy = bootstrap_cells(read_comparisons(battles(n=5)), seed=0, n_draws=60)
    apart = bootstrap_cells(read_comparisons(battles(n=5, shift=1.0)), seed=0, n_draws=60)
    assert [one["pipeline"] for one in alike] == ["single", "panel"]
    assert alike[0]["ratio"] < 1.6
    assert alike[1]["ratio"] < 1.3
    assert noisy[1]["ratio"] == pytest.approx(np.sqrt(3), abs=0.2)  # Owen 2007: verdicts that share nothing
    assert apart[0]["ratio"] > 3
    assert apart[1]["ratio"] > 2
    assert all(apart[1]["se"][name] < error for name, error in apart[0]["se"].items())


def test_cells_drawn_anew_for_each_battle_average_out():
    """As TEE's R.1 does for its panels: four times the battles halve an error that the judges share."""
    anew, common = [], []
    for n_items in (100, 400):
        c = read_comparisons(battles(n=5, shift=1.0, items=n_items))
        rng = np.random.default_rng(0)
        strengths = []
        for _ in range(60):
            items = rng.multinomial(n_items, [1 / n_items] * n_items)[c.item]
            cells = rng.multinomial(12, [1 / 12] * 12, size=n_items)[c.item, c.cell]
            t = c.weighted((items * cells).astype(float))
            wins = np.zeros((5, 5))
            np.add.at(wins, (t.a, t.b), t.won)
            np.add.at(wins, (t.b, t.a), t.n - t.won)
            strengths.append(fit_wins(wins))
        anew.append(np.median(np.std(strengths, axis=0)))
        common.append(np.median(list(bootstrap_cells(c, seed=0, n_draws=60)[1]["se"].values())))
    assert anew[1] / anew[0] == pytest.approx(0.5, abs=0.12)
    assert common[1] / common[0] > 0.75


def test_a_pipeline_whose_draws_have_no_maximum_has_no_figure():
    rows = [(f"i{k}", "x", "y", "a" if k else "b", judge) for k in range(6) for judge in ("j1", "j2")]
    c = read_comparisons(of_rows(*rows, names=("item", "a", "b", "winner", "judge")))
    single, _ = bootstrap_cells(c, seed=0, n_draws=40)
    assert single["ratio"] is None
    assert "the strengths have no maximum" in single["reason"]


# ------------------------------------------------------------------------------------------------- people


def test_agreement_by_hand():
    names = ("item", "a", "b", "winner", "judge", "category", "human")
    rows = [
        ("1", "x", "y", "a", "j1", "law", "a"),
        ("1", "x", "y", "a", "j2", "law", ""),
        ("2", "y", "x", "a", "j1", "law", "b"),  # people: x
        ("2", "x", "y", "a", "j2", "law", ""),  # the panel ties
        ("3", "x", "y", "tie", "j1", "art", "tie"),
        ("3", "x", "y", "tie", "j2", "art", "tie"),
        ("4", "x", "y", "b", "j1", "art", "a"),
        ("4", "x", "y", "b", "j2", "art", "a"),
        ("5", "x", "y", "b", "j2", "art", ""),  # nobody said
    ]
    result = agreement(read_comparisons(of_rows(*rows, names=names), "human"))
    summary = {(one["pipeline"], one["category"]): one for one in result["pipelines"]}
    panel = summary["panel", None]
    assert [panel[name] for name in ("n", "overall", "n_ab", "ab_only")] == [4, 0.5, 2, 0.5]
    assert summary["judge j1", None]["ab_only"] == 1 / 3
    assert summary["judge j2", None]["ab_only"] == 2 / 3
    assert summary["panel", "law"]["ab_only"] == 1.0
    assert summary["panel", "art"]["overall"] == 0.5
    lead = {one["against"]: one for one in result["differences"]}["judge j1"]
    assert (lead["n_items"], lead["difference"]) == (2, 0.0)  # battles 1 and 4
    assert lead["se"] == pytest.approx(np.sqrt(1 / 16))  # (0 + 1 − 0)/(2 + 2)²


def test_rules_of_verdicts():
    shares = np.array([0.56, 0.55, 16.5 / 30, 0.45, 13.5 / 30, 0.44])
    assert verdicts_of_shares(shares).tolist() == [1, 0.5, 0.5, 0.5, 0.5, 0]
    assert verdicts_of_scores(np.array([4.13, 4.5, 4.0]), np.array([3.87, 4.0, 4.51])).tolist() == [0.5, 1, 0]


# ------------------------------------------------------------------------------------------- the command


def test_the_command_answers_with_these_keys(answer, tmp_path):
    columns = battles(n=4, items=60, prompts=1)
    people = ["a" if a > b else "b" for a, b in zip(columns["a"], columns["b"], strict=True)]
    path = write(tmp_path / "battles.csv", columns | {"people": people})
    result = answer(path, "--cells", "--human", "people")
    assert list(result) == KEYS
    assert list(result["agents"][0]) == ["agent", "strength", "se", "elo", "rank_lo", "rank_hi"]
    assert [line["agent"] for line in result["agents"]] == ["m3", "m2", "m1", "m0"]
    assert set(result["position"]) == {"j0", "j1"}
    assert set(result["position"]["j0"]) == {"effect", "se"}
    assert (result["n_items"], result["n_comparisons"]) == (60, 240)
    assert [one["pipeline"] for one in result["cells"]] == ["single", "panel"]
    assert result["agreement"]["pipelines"][0]["ab_only"] > 0.5
    assert answer(path)["cells"] is answer(path)["agreement"] is None


def test_outcomes_of_a_flat_file(answer, text, tmp_path):
    marks = {"x": "1110010", "y": "0111000", "z": "0011101"}
    rows = [f"B,{a},S,M,,t{j},1,{m}" for a, line in marks.items() for j, m in enumerate(line)]
    path = tmp_path / "outcomes.csv"
    path.write_text("\n".join([HEAD, *rows]) + "\n")
    result = answer(path, "--from-outcomes")
    assert (result["n_items"], result["n_comparisons"], result["position"]) == (6, 12, {})
    assert "a board is never ordered by this" in text(path, "--from-outcomes")


# ------------------------------------------------------------------------------------------------ refusals


def test_battles_that_do_not_connect_the_agents(refusal, answer, tmp_path):
    rows = [
        (f"i{k}", *pair) for k, pair in enumerate([("w", "x", "a"), ("w", "x", "b"), ("y", "z", "a")] * 3)
    ]
    rows += [("last", "w", "y", "a"), ("more", "z", "y", "tie")]
    path = write(tmp_path / "b.csv", of_rows(*rows))
    assert "fall into 2 classes, {w, x}, {y, z}; between any two" in refusal(path)
    penalised = answer(path, "--prior", "9")
    assert penalised["method"].startswith("Bradley-Terry, penalised: normal prior of variance 9;")
    assert penalised["agents"][0]["agent"] in "wx"


def test_a_judge_that_takes_what_it_is_shown_first(refusal, tmp_path):
    columns = battles(n=3, items=30, judges=2, prompts=1)
    taken = [
        first if judge == "j1" else winner
        for first, judge, winner in zip(columns["first"], columns["judge"], columns["winner"], strict=True)
    ]
    path = write(tmp_path / "b.csv", columns | {"winner": taken})
    assert "the position effect of j1 cannot be told from the strengths" in refusal(path)


def test_an_order_that_never_varies():
    rows = [(f"i{k}", "x", "y", "aab"[k % 3], "a") for k in range(9)]
    with refused(StrengthsRefused, "position"):
        fit(read_comparisons(of_rows(*rows, names=("item", "a", "b", "winner", "first"))))


def test_options_that_the_file_cannot_have(refusal, tmp_path):
    path = write(tmp_path / "b.csv", of_rows(("1", "x", "y", "a"), ("2", "x", "y", "b")))
    assert "--cells and --human are for a file of comparisons" in refusal(path, "--from-outcomes", "--cells")
    assert "--only names a benchmark of a flat file" in refusal(path, "--only", "B")
    assert "unknown column 'people'" in refusal(path, "--human", "people")
    for prior in ("-1", "0", "1e-320", "1e300", "inf", "nan"):
        assert f"a prior variance of {float(prior):g}; it lies between 1e-09 and 1e+09" in refusal(
            path, "--prior", prior
        )
    assert "all rows are of one judge, prompt and order" in refusal(path, "--cells")
    path.write_text("item,a,b,winner\ni,x,y,a\ni,x,y,b\n")
    assert "1 item, and 2 strengths and position effects: errors need as many" in refusal(path)


@pytest.mark.parametrize(
    ("row", "code"),
    [
        (("1", "x", "x", "a", ""), "same_agent"),
        (("1", "x", "y", "x", ""), "winner"),
        (("1", "x", "y", "a", "x"), "first"),
        (("", "x", "y", "a", ""), "name_missing"),
    ],
)
def test_rows_that_are_no_comparisons(row, code):
    names = ("item", "a", "b", "winner", "first")
    with refused(CoreError, code, "row 2"):
        read_comparisons(of_rows(("0", "x", "y", "a", ""), row, names=names))


def test_a_long_name_is_told_in_part(refusal, tmp_path):
    long = "x" * 10_000
    for row in (("2", long, long, "a"), ("2", "x", "y", long), ("2", long, "y", "a")):
        message = refusal(write(tmp_path / "b.csv", of_rows(("1", "x", "y", "a"), row)))
        assert "x" * 79 + "…" in message
        assert len(message) < 500


def test_what_tells_no_strengths():
    with refused(CoreError, "none_decisive"):
        OutcomeMatrix.of(["x", "y"], ["t"], np.array([[1.0], [1.0]]))
    with pytest.raises(CoreError, match="one agent"):
        OutcomeMatrix.of(["x"], ["t"], np.array([[1.0]]))
    with refused(CoreError, "no_rows"):
        read_comparisons({name: [] for name in ("item", "a", "b", "winner")})
    with refused(StrengthsRefused, "one_agent"):
        fit_wins(np.zeros((1, 1)))
    rows = [("i", "x", "y", "a"), ("i", "x", "y", "b")]
    with refused(StrengthsRefused, "few_items"):
        fit(read_comparisons(of_rows(*rows)))
    with refused(CoreError, "cells"):
        bootstrap_cells(read_comparisons(of_rows(*rows)), seed=0)


def test_people_who_contradict_each_other():
    names = ("item", "a", "b", "winner", "human")
    rows = [("i", "x", "y", "a", "a"), ("i", "y", "x", "a", "a")]
    with refused(CoreError, "human", "row 2: item 'i' has two human verdicts"):
        agreement(read_comparisons(of_rows(*rows, names=names), "human"))
    with refused(CoreError, "human", "no row has a human verdict"):
        agreement(read_comparisons(of_rows(("i", "x", "y", "a", ""), names=names), "human"))


def test_verdicts_that_are_not_valid_are_left_out(answer, refusal, tmp_path):
    columns = battles(n=3, items=40)
    n_rows = len(columns["item"])
    whole = answer(write(tmp_path / "a.csv", columns))
    more = {
        name: [*texts, "?" if name == "winner" else texts[0], texts[0]] for name, texts in columns.items()
    }
    valid = ["1"] * n_rows + ["0", "false"]
    result = answer(write(tmp_path / "b.csv", {**more, "valid": valid}))
    assert (whole["n_invalid"], result["n_invalid"]) == (0, 2)
    assert result == whole | {"n_invalid": 2}
    odd = {**more, "valid": ["0", *[""] * (n_rows + 1)]}
    assert f"row {n_rows + 1}: winner is '?'" in refusal(write(tmp_path / "c.csv", odd))
