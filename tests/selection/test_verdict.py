"""The verdict on a subset, what is better, what the board ranks by, and how many trials to run."""

import dataclasses
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from analytics.differences.rows import Facet
from selection.prior import PriorDecisions
from selection.rules import Rules
from selection.schema.board import Standings, Verdict
from selection.standings import answer, terms, words
from selection.standings.savings import trials
from selection.standings.verdict import advice_text, no_subset, random_text, verdict, word
from tests.selection.records import NAN, band, board, record_of, with_newcomers


@pytest.mark.parametrize(
    ("correct", "clear", "told"),
    [
        (0.95, 0.99, "yes"),
        (0.95, None, "yes"),
        (0.95, 0.98, "mostly"),
        (0.9, 0.95, "mostly"),
        (0.949, 1.0, "mostly"),
        (0.9, 0.94, "not yet"),
        (0.89, 1.0, "not yet"),
    ],
)
def test_the_word_follows_a_fixed_rule(correct, clear, told):
    assert word(correct, clear) == told


def test_more_pairs_in_order_never_make_the_word_worse():
    words_ = ["not yet", "mostly", "yes"]
    grid = np.linspace(0.85, 1.0, 31)
    for clear in (None, *grid):
        ranks = [words_.index(word(correct, clear)) for correct in grid]
        assert ranks == sorted(ranks)


def figures(correct, clear=0.999, random=0.01, policy=None, se=0.004, full_difference=0.0, **other):
    errors = {"pairs_correct_full": 0.01, "random_difference": se, "policy_difference": se}
    return {
        "pairs_correct_full": correct,
        "pairs_clear_full": clear,
        "random_difference": random,
        "policy_difference": policy,
        "pairs_correct": correct if correct is None else correct - full_difference,
        "full_difference": full_difference,
        "se": errors | {"full_difference": 0.005},
        "n": 12,
    } | other


def validation(strategy="mid_range", temporal=None, loao=None, prequential=None):
    protocols = {
        "temporal": {"available": temporal is not None, "strategies": temporal or {}},
        "loao": {"available": True, "strategies": loao or {"mid_range": figures(0.93, None)}},
    }
    if prequential:
        protocols["temporal"]["prequential"] = prequential
    return {"strategy": strategy, "protocols": protocols}


# -------------------------------------------------------------------------------------------- the verdict


def test_the_last_bit_of_a_share_decides_no_word():
    share = float(np.mean([0.94, 0.95, 0.96]))
    assert share < 0.95
    assert word(share, 0.99) == word(0.95, float(np.nextafter(0.99, 0))) == "yes"
    assert word(0.95 - 1e-8, None) == "mostly"


def test_rounding_is_no_difference_between_strategies():
    """Strategies that choose the same tasks differ by what a sum of other order leaves."""
    left = figures(0.96, policy=3e-15, se=1e-15, random=-3e-15)
    own = {"mid_range": figures(0.96, random=-3e-15, se=1e-15)}
    told = validation(temporal=own | {"spread": left}, loao=own)
    found = verdict(told, "mid_range")
    assert found.better is None
    assert "A random subset of the same size does about as well: 96.0%" in found.sentence
    assert "does as well in all 2 tests" in random_text(told, "mid_range")


def test_the_verdict_is_in_time_where_that_is_available():
    told = verdict(validation(temporal={"mid_range": figures(0.96)}), "mid_range")
    assert (told.word, told.protocol, told.pairs, told.clear) == ("yes", "temporal", 0.96, 0.999)
    assert (told.random_difference, told.se, told.pairs_se, told.n) == (0.01, 0.004, 0.01, 12)
    told = verdict(validation(), "mid_range")
    assert (told.word, told.protocol, told.clear) == ("mostly", "loao", None)
    assert verdict(validation(), "spread") is None
    assert verdict(None, "mid_range") is None
    assert verdict({"protocols": {"loao": {"available": False, "strategies": {}}}}, "mid_range") is None


def test_two_agents_in_time_say_less_than_twelve_left_out():
    """One of two protocols that hold out ten agents; else the one that leaves each out."""
    later = {"mid_range": figures(1.0, n=2)}
    for n_left_out in (9, 12):
        told = verdict(
            validation(temporal=later, loao={"mid_range": figures(0.83, n=n_left_out)}), "mid_range"
        )
        assert (told.word, told.protocol, told.n) == ("not yet", "loao", n_left_out)
    alone = verdict(validation(temporal=later, loao={"mid_range": figures(None)}), "mid_range")
    assert (alone.word, alone.protocol, alone.n) == ("yes", "temporal", 2)


@pytest.mark.parametrize(
    ("random", "se", "said"),
    [
        (0.012, 0.004, "gets only 94.8% (difference 1.2 points, SE 0.4)."),
        (0.008, 0.004, "does about as well: 95.2% (difference 0.8 points, SE 0.4)."),
        (-0.008, 0.004, "does about as well: 96.8% (difference 0.8 points, SE 0.4)."),
        (-0.012, 0.004, "does better: 97.2% (difference 1.2 points, SE 0.4)."),
        (0.012, None, "gets 94.8%. The uncertainty of the difference could not be estimated."),
        (-0.012, None, "gets 97.2%. The uncertainty of the difference could not be estimated."),
        (None, None, "was not tested."),
    ],
)
def test_the_sentence_always_tells_how_random_tasks_do(random, se, said):
    told = verdict(validation(temporal={"mid_range": figures(0.96, random=random, se=se)}), "mid_range")
    assert told.sentence == (
        "Do the ranking tasks rank like all tasks? Yes. For 12 agents that came after the tasks were chosen: "
        "96.0% of pairs are ordered as a full run would order them (99.9% of clearly different pairs). "
        f"A random subset of the same size {said}"
    )


def test_the_sentence_says_under_which_protocol_and_for_how_many_agents():
    left_out = verdict(validation(loao={"mid_range": figures(0.96, n=1200)}), "mid_range")
    said = "For 1,200 agents, each left out of the choice of tasks: 96.0% of pairs"
    assert said in left_out.sentence
    alone = validation(temporal={"mid_range": figures(0.96, n=1)}, loao={"mid_range": figures(None)})
    in_time = verdict(alone, "mid_range")
    assert "For 1 agent that came after the tasks were chosen: " in in_time.sentence


def test_a_strategy_that_was_chosen_is_told_by_what_choosing_would_have_given():
    before = {
        "pairs_correct_full": 0.94,
        "pairs_clear_full": 0.98,
        "random_difference": -0.002,
        "n": 11,
        "se": {"pairs_correct_full": 0.02, "random_difference": 0.01},
    }
    own = {"spread": figures(0.97), "mid_range": figures(0.95)}
    told = verdict(validation("spread", temporal=own, prequential=before), "spread")
    assert (told.pairs, told.word, told.chosen, told.n) == (0.94, "mostly", "prequential", 11)
    assert told.sentence.endswith("Each agent was tested with the strategy that was best until then.")
    told = verdict(validation("spread", loao=own), "spread")
    assert (told.pairs, told.chosen) == (0.97, "selected on the same data")
    assert told.sentence.endswith("the share is too high.")
    told = verdict(validation("mid_range", temporal=own, prequential=before), "mid_range")
    assert (told.pairs, told.chosen) == (0.95, "")


def test_random_tasks_in_use_are_compared_with_nothing():
    told = verdict(validation("random", loao={"random": figures(0.9, random=None)}), "random")
    assert "The ranking tasks are themselves a random subset." in told.sentence


def test_a_board_without_a_subset_says_so():
    found = answer(record_of(board(4, 60)))
    assert (found.verdict.word, found.verdict.reason) == ("no subset", found.why)
    assert found.verdict.sentence == f"No ranking tasks are in use: {terms.clause(found.why)}."
    assert no_subset("Only 3 tasks.").sentence.endswith("No ranking tasks are in use: only 3 tasks.")
    assert no_subset("GAIA has none.").sentence.endswith("No ranking tasks are in use: GAIA has none.")
    assert words.verdict_text(found) == ""
    assert answer(record_of(board())).verdict is None


# --------------------------------------------------------------------------------------------- the advice


def test_the_advice_names_the_command_where_a_strategy_is_better_by_two_errors():
    def told(policy, se=0.01, loao=None):
        temporal = {"mid_range": figures(0.93), "spread": figures(0.95, policy=policy, se=se)}
        return verdict(validation(temporal=temporal, loao=loao or {"mid_range": figures(0.93)}), "mid_range")

    better = told(0.021)
    assert dataclasses.asdict(better.better) == {"strategy": "spread", "difference": 0.021, "se": 0.01}
    assert advice_text(better, "manage.py policy toy --set strategy={strategy}") == (
        "The strategy spread orders 2.1 points (SE 1.0) more pairs correctly than mid_range. To use it: "
        "manage.py policy toy --set strategy=spread"
    )
    for none in (told(0.019), told(-0.03), told(0.021, se=None), told(None)):
        assert none.better is None
        assert advice_text(none, "{strategy}") == ""
    worse = {"mid_range": figures(0.93), "spread": figures(0.9, policy=-0.03, se=0.01)}
    assert told(0.021, loao=worse).better is None
    assert advice_text(None, "{strategy}") == ""


def test_the_strategy_that_is_better_by_most_is_named_and_none_for_another_policy():
    temporal = {
        "mid_range": figures(0.93),
        "spread": figures(0.95, policy=0.02),
        "random": figures(0.96, policy=0.03),
    }
    assert verdict(validation(temporal=temporal), "mid_range").better.strategy == "random"
    assert verdict(validation("spread", temporal=temporal), "mid_range").better is None


# --------------------------------------------------------------------------------------------- the target


def test_the_board_ranks_by_the_full_score():
    found = answer(record_of(with_newcomers(n_agents=20)[0]))
    assert (found.target, found.why_target) == ("full", "")
    for target in ("subset", "domain"):
        found = answer(record_of(with_newcomers(n_agents=20)[0]), Rules(target=target))
        assert (found.target, found.why_target) == (target, "")


@pytest.mark.parametrize(("difference", "target"), [(-0.011, "subset"), (-0.01, "full"), (0.2, "full")])
def test_it_ranks_by_the_subset_where_that_orders_more_pairs_by_two_errors(difference, target):
    loao = {"mid_range": figures(0.93, full_difference=difference)}
    record = record_of(with_newcomers(n_agents=20)[0])
    found = answer(record, Rules(), PriorDecisions(validation=validation(loao=loao)))
    assert found.target == target
    if target == "subset":
        assert found.why_target == (
            "the estimated full score orders 93.0% of pairs correctly, the mean on the ranking tasks 94.1% "
            "(one agent left out at a time; SE of the difference 0.5 points)"
        )
        assert f"Ranks use the ranking tasks only: {found.why_target}." in found.notices
        assert [line.agent for line in found.agents] == [
            line.agent for line in terms.in_order(found, "subset")
        ]
        asked = answer(record, Rules(target="full"), PriorDecisions(validation=validation(loao=loao)))
        assert (asked.target, asked.why_target) == ("full", "")


def test_without_intervals_of_full_scores_the_subset_is_ranked():
    outcomes, _ = with_newcomers(n_agents=9)
    found = answer(record_of(outcomes))
    assert found.target == "subset"
    assert found.why_target.startswith(
        "most agents that ran only these have no full score with an interval: an estimate needs 10 "
    )
    assert answer(record_of(outcomes[:9])).target == "full"


# --------------------------------------------------------------------------------------------- the trials


@pytest.mark.parametrize(("k", "told"), [(60, 1), (31, 1), (30, 2), (13, 4)])
def test_the_saving_is_spent_on_repeats(k, told):
    assert trials(record_of(board(16, 60)), np.arange(k)).recommended == told


FOR_AN_ESTIMATE = "For an estimate instead of an upper bound, run 3 agents 3 times on 15 ranking tasks"


def test_without_repeats_the_error_is_an_upper_bound():
    outcomes = board(16, 60)
    found, tasks = answer(record_of(outcomes, costs=np.full((16, 60), 0.5))).trials, band(outcomes)
    assert (found.omega, found.upper_bound, found.recommended) == (None, True, max(1, 60 // tasks.size))
    assert [one.n_trials for one in found.options] == sorted({1, 2, found.recommended})
    rates = outcomes[:, tasks].mean(axis=1)
    for one in found.options:
        expected = math.sqrt(sum(p * (1 - p) for p in rates) / 16 / (tasks.size * one.n_trials))
        assert one.se == pytest.approx(expected)
        assert one.cost_usd == pytest.approx(0.5 * tasks.size * one.n_trials)
    assert words.trials_text(found).endswith(f"{FOR_AN_ESTIMATE}.")


@pytest.mark.parametrize(
    ("n_tasks", "n_often", "told"),
    [
        (16, 16, "These are upper bounds: an estimate needs 15 ranking tasks, and there are {k}."),
        (60, 2, f"{FOR_AN_ESTIMATE} (2 so far)."),
        (60, 1, f"{FOR_AN_ESTIMATE} (1 so far)."),
    ],
)
def test_an_upper_bound_says_what_is_lacking(n_tasks, n_often, told):
    outcomes = board(16, n_tasks)
    variances = np.full(outcomes.shape, 0.2)
    variances[n_often:] = NAN
    found = answer(record_of(outcomes, n_trials=3, trial_variances=variances))
    assert found.trials.omega is None
    k = found.subset.size
    assert (k < 15) == (n_tasks == 16)
    assert words.trials_text(found.trials).endswith(told.format(k=k))


@pytest.mark.parametrize("passed", [1.0, np.arange(20) % 2])
def test_repeats_that_never_differ_say_so(passed):
    outcomes = board(16, 60)
    tasks, variances = band(outcomes), np.full(outcomes.shape, NAN)
    variances[0, tasks[:20]] = variances[1, tasks[:20]] = variances[2, tasks[:20]] = 0.0
    assert tasks.size >= 20
    outcomes[:3, tasks[:20]] = passed
    told = trials(record_of(outcomes, n_trials=3, trial_variances=variances), tasks)
    assert told.upper_bound
    assert "upper bounds: repeated trials of these tasks never differ" in words.trials_text(told)


def test_a_run_has_so_many_trials_under_each_compared_condition():
    """Against a simulation of two judges: an outcome is the mean over both, a trial is one under each."""
    rng = np.random.default_rng(6)
    chance = np.clip(rng.normal(0.5, 0.12, (16, 40)) + np.linspace(-0.1, 0.1, 16)[:, None], 0.05, 0.95)
    runs = rng.random((200, 2, 16, 40)) < chance
    record = record_of(
        runs.mean(axis=(0, 1)),
        n_trials=400,
        trial_variances=runs.var(axis=0, ddof=1).mean(axis=0),
        costs=np.full((16, 40), 0.5),
    )
    record = replace(record, compared=("judge j1", "judge j2"))
    tasks = np.arange(20)
    told = trials(record, tasks)
    assert told.n_conditions == 2
    for one in told.options:
        drawn = rng.binomial(2 * one.n_trials, chance[:, tasks], (4000, 16, 20)) / (2 * one.n_trials)
        assert one.se == pytest.approx(math.sqrt(np.mean(drawn.mean(axis=2).var(axis=0, ddof=1))), rel=0.03)
        assert one.cost_usd == pytest.approx(0.5 * 20 * 2 * one.n_trials)
    assert words.trials_text(told).startswith(
        "For at most the cost of a full run under each of the 2 compared conditions, you can run each "
        "ranking task twice under each. The standard error of a typical agent's score on them is "
        f"{words.percent(told.options[0].se)} points with 1 trial under each for $20.00"
    )


def test_one_pass_or_failure_bounds_no_error():
    assert trials(record_of(board(16, 60)), np.array([3])) is None
    assert words.trials_text(None) == ""


def test_an_upper_bound_holds_where_both_judges_always_agree():
    outcomes = board(16, 60)
    record = record_of(outcomes, costs=np.full((16, 60), 0.5))
    one = trials(record, band(outcomes))
    two = trials(replace(record, compared=("judge j1", "judge j2")), band(outcomes))
    assert [option.se for option in one.options] == [option.se for option in two.options]
    assert two.options[0].cost_usd == pytest.approx(2 * one.options[0].cost_usd)


def test_a_trial_that_two_judges_scored_is_paid_once():
    record = record_of(board(16, 60), costs=np.full((16, 60), 0.5))
    once = np.where(record.table.n_valid > 0, 1.0, NAN)
    judged = replace(record.table, n_valid=2 * record.table.n_valid, n_trials=once, trial_variances=0 * once)
    tasks = band(record.table.means)
    told = trials(replace(record, table=judged, compared=("judge j1", "judge j2")), tasks)
    assert [one.cost_usd for one in told.options] == [0.5 * tasks.size * one.n_trials for one in told.options]


def test_one_trial_of_each_task_costs_a_run_however_many_there_were():
    outcomes = board(16, 60)
    record = record_of(
        outcomes, costs=np.full((16, 60), 5.0), n_trials=5, trial_variances=np.full((16, 60), 0.1)
    )
    k = band(outcomes).size
    assert answer(record).trials.options[0].cost_usd == pytest.approx(5.0 * k)


def test_with_repeats_it_is_the_error_of_the_mean_of_so_many_trials():
    """Against a simulation: the spread of means over the subset of trials drawn anew."""
    rng = np.random.default_rng(5)
    chance = np.clip(rng.normal(0.5, 0.12, (16, 40)) + np.linspace(-0.1, 0.1, 16)[:, None], 0.05, 0.95)
    trials = rng.random((200, 16, 40)) < chance
    record = record_of(
        trials.mean(axis=0), n_trials=200, trial_variances=trials.var(axis=0, ddof=1), scaffolds=["s"] * 16
    )
    found = answer(record)
    places = [record.table.tasks.index(task) for task in found.subset.tasks]
    for one in found.trials.options:
        drawn = rng.binomial(one.n_trials, chance[:, places], (4000, 16, len(places))) / one.n_trials
        spread = math.sqrt(np.mean(drawn.mean(axis=2).var(axis=0, ddof=1)))
        assert one.se == pytest.approx(spread, rel=0.03)
    assert not found.trials.upper_bound
    assert 0.8 < found.trials.omega <= 1.0
    assert "upper bound" not in words.trials_text(found.trials)


def test_the_band_of_a_file_says_the_same(tmp_path, capsys):
    from selection.cli import main

    outcomes = board(16, 60)
    rows = [
        f"b,a{i:02d},s,m{i},2026-01-{i + 1:02d},t{j:03d},1,{int(outcomes[i, j])}"
        for i in range(16)
        for j in range(60)
    ]
    head = "benchmark,agent,scaffold,model,submitted_at,task,trial,outcome"
    (tmp_path / "b.csv").write_text("\n".join([head, *rows]) + "\n")
    assert main(["band", str(tmp_path / "b.csv"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["trials"]
    assert told == json.loads(json.dumps(answer(record_of(outcomes)).as_plain()["trials"]))
    assert main(["band", str(tmp_path / "b.csv")]) == 0
    assert "For at most the cost of a full run, you can run each" in capsys.readouterr().out


def test_under_full_runs_there_is_nothing_to_recommend():
    assert answer(record_of(board(4, 60))).trials is None
    assert words.trials_text(None) == ""


def test_verdict_target_and_trials_read_back():
    temporal = {"mid_range": figures(0.93), "spread": figures(0.96, policy=0.03)}
    outcomes = with_newcomers(n_agents=20)[0]
    found = answer(record_of(outcomes), Rules(), PriorDecisions(validation=validation(temporal=temporal)))
    assert isinstance(found.verdict, Verdict)
    assert found.verdict.better.strategy == "spread"
    read = Standings.of_plain(json.loads(json.dumps(found.as_plain(), allow_nan=False)))
    assert read == found
    assert set(found.as_plain()["verdict"]) >= {
        "word",
        "sentence",
        "pairs",
        "clear",
        "random_difference",
        "se",
    }
    assert not np.isnan([one.se for one in found.trials.options]).any()


def compared_with_random(**differences):
    """A validation of which the strategy in use exceeds random tasks by so much ± 1 point, by protocol."""
    return {
        "strategy": "mid_range",
        "protocols": {
            name: {
                "available": True,
                "strategies": {
                    "mid_range": {"random_difference": value, "se": {"random_difference": 0.01}},
                },
            }
            for name, value in differences.items()
        },
    }


@pytest.mark.parametrize(
    ("differences", "said"),
    [
        (
            {"loao": 0.02, "temporal": -0.02},
            "does as well in all 2 tests: no difference exceeds two standard errors.",
        ),
        (
            {"loao": 0.0},
            "does as well in the one test: no difference exceeds two standard errors.",
        ),
        (
            {"random_80_20": 0.0},
            "does as well in the one test: no difference exceeds two standard deviations over its splits.",
        ),
        (
            {"loao": 0.021, "temporal": -0.021, "loso": 0.0},
            "does as well in 1 of 3 tests, better in 1 (predicting later agents), worse in 1 "
            "(predicting one agent from the others).",
        ),
        ({"lomo": 0.03}, "does worse in 1 of 1 test (predicting a new model)."),
    ],
)
def test_random_tasks_are_held_against_the_strategy_in_every_test(differences, said):
    told = random_text(compared_with_random(**differences), "mid_range")
    assert told == f"A random subset of the same size {said}"


def test_nothing_is_said_of_random_tasks_where_no_difference_is_known():
    assert random_text(None, "mid_range") == random_text(compared_with_random(), "mid_range") == ""
    assert random_text(compared_with_random(loao=None), "mid_range") == ""
    unavailable = compared_with_random(loao=0.5)
    unavailable["protocols"]["loao"]["available"] = False
    assert random_text(unavailable, "mid_range") == ""


def test_what_was_measured_of_facets_is_in_the_error_of_a_run():
    """By hand: of two prompts and one judge, (.006 + .001)/2 + .002 + .004, and .003/R of as many runs."""
    outcomes = board(16, 60)
    record, tasks = record_of(outcomes), band(outcomes)
    record = replace(record, repeats=tuple(replace(one, levels={"prompt": 2}) for one in record.repeats))
    facets = (Facet("run", 0.003), Facet("prompt", 0.006, 0.001), Facet("judge", 0.002, 0.004))
    for plain, told in zip(trials(record, tasks).options, trials(record, tasks, facets).options, strict=True):
        beyond = 0.0035 + 0.006 + 0.003 / told.n_trials
        assert told.se == pytest.approx(math.sqrt(plain.se**2 + beyond), rel=1e-12)


def test_a_board_recommends_trials_by_the_facets_it_was_given():
    measured = PriorDecisions(facets=(Facet("run"), Facet("prompt", 0.01, 0.0), Facet("judge")))
    record = record_of(board(16, 60))
    with_prompts, without = answer(record, prior=measured).trials, answer(record).trials
    assert with_prompts.options[0].se == pytest.approx(math.sqrt(without.options[0].se ** 2 + 0.01))
