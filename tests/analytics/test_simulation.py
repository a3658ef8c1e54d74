import csv
import io
import math
from collections import Counter, defaultdict
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction

import numpy as np
import pytest

from analytics.errors import CoreError
from analytics.simulation import DEMONSTRATION, demonstration, flat_rows, simulate

COLUMNS = [
    "benchmark",
    "agent",
    "scaffold",
    "model",
    "submitted_at",
    "task",
    "trial",
    "outcome",
    "valid",
    "category",
    "cost_usd",
]
NO_PARTS = replace(DEMONSTRATION, n_twins=0, n_near_ties=0, n_incomplete=0)


def generator(seed):
    return np.random.Generator(np.random.PCG64(seed))


@pytest.fixture(scope="module")
def demo():
    return demonstration()


def arrays(simulated):
    return [
        simulated.outcomes,
        simulated.valid,
        simulated.costs,
        simulated.ability,
        simulated.difficulty,
        simulated.interaction,
        simulated.probabilities,
    ]


# ------------------------------------------------------------------------------------------------ repeatable


def test_the_generator_decides_everything(demo):
    again, other = demonstration(), demonstration(1)
    assert (again.agents, again.tasks, again.dates) == (demo.agents, demo.tasks, demo.dates)
    assert [a.tobytes() for a in arrays(again)] == [a.tobytes() for a in arrays(demo)]
    assert not np.array_equal(other.outcomes, demo.outcomes)
    assert other.tasks != demo.tasks


def test_one_generator_gives_successive_benchmarks():
    rng = generator(4)
    first, second = simulate(rng), simulate(rng)
    assert not np.array_equal(first.outcomes, second.outcomes)
    assert np.array_equal(simulate(generator(4)).outcomes, first.outcomes)


def test_the_arrays_refuse_to_be_written_to(demo):
    assert not any(array.flags.writeable for array in arrays(demo))


# ---------------------------------------------------------------------------------------------- by hand


def test_the_probability_is_the_logistic_of_its_parts(demo):
    for i, j in [(0, 0), (3, 77), (35, 119)]:
        logit = demo.ability[i] - demo.difficulty[j] + demo.interaction[i, j]
        assert demo.probabilities[i, j] == pytest.approx(1 / (1 + math.exp(-logit)), abs=1e-14)


def test_without_spread_every_trial_is_a_toss_of_the_same_coin():
    flat = {name: 0.0 for name in vars(DEMONSTRATION) if name.startswith("sd_")}
    parameters = replace(
        NO_PARTS, base_ability=math.log(3), growth=0.0, small_penalty=0.0, p_failure=0.0, **flat
    )
    simulated = simulate(generator(2), parameters=parameters)
    # logit P = ln 3, so P = 3/4; 36·120·5 = 21,600 tosses have a standard error of √(3/16/21600).
    assert simulated.probabilities == pytest.approx(np.full((36, 120), 0.75), abs=1e-15)
    assert simulated.valid.all()
    assert simulated.outcomes.mean() == pytest.approx(0.75, abs=4 * math.sqrt(3 / 16 / 21600))


def test_ability_grows_with_the_date():
    flat = {name: 0.0 for name in vars(DEMONSTRATION) if name.startswith("sd_")}
    parameters = replace(NO_PARTS, base_ability=-1.0, growth=2.0, small_penalty=0.0, **flat)
    simulated = simulate(generator(3), parameters=parameters)
    years = np.array([(day - date(2025, 1, 6)).days / 364 for day in simulated.dates])
    # The date is the day in which the moment lies: ability is ahead of it by less than 2/364.
    ahead = simulated.ability - (-1.0 + 2.0 * years)
    assert ahead.min() >= -1e-12
    assert ahead.max() <= 2 / 364 + 1e-12


# ------------------------------------------------------------------------------------ by definition


def test_trials_follow_their_probabilities():
    simulated = simulate(generator(5), n_agents=40, n_tasks=200, n_trials=8, parameters=NO_PARTS)
    p = np.broadcast_to(simulated.probabilities[:, :, None], simulated.outcomes.shape)
    for low in np.arange(0.0, 1.0, 0.1):
        part = simulated.valid & (p >= low) & (p < low + 0.1)
        spread = math.sqrt((p[part] * (1 - p[part])).sum())
        assert abs(simulated.outcomes[part].sum() - p[part].sum()) < 4 * spread
    n = simulated.valid.size
    failures = n * NO_PARTS.p_failure
    assert abs((~simulated.valid).sum() - failures) < 4 * math.sqrt(failures)
    assert (simulated.outcomes[~simulated.valid] == 0).all()


def test_failures_do_not_depend_on_the_outcome():
    parameters = replace(NO_PARTS, p_failure=0.3)
    simulated = simulate(generator(6), n_agents=40, n_tasks=200, n_trials=5, parameters=parameters)
    p = np.broadcast_to(simulated.probabilities[:, :, None], simulated.valid.shape)
    difference = p[simulated.valid].mean() - p[~simulated.valid].mean()
    assert abs(difference) < 4 * p.std() / math.sqrt(0.3 * 0.7 * p.size)


def test_spreads_are_those_asked_for():
    parameters = replace(NO_PARTS, sd_category=0.0, sd_task=1.5, sd_interaction=0.4)
    simulated = simulate(generator(7), n_agents=30, n_tasks=4000, n_trials=1, parameters=parameters)
    # The relative standard error of a standard deviation over n normal draws is 1/√(2n).
    assert simulated.difficulty.std() == pytest.approx(1.5, rel=4 / math.sqrt(2 * 4000))
    assert simulated.interaction.std() == pytest.approx(0.4, rel=4 / math.sqrt(2 * 120000))


def test_twins_have_one_true_score_and_near_ties_nearly(demo):
    row = {name: i for i, name in enumerate(demo.agents)}
    assert len(demo.twins) == 1
    for original, copy in demo.twins:
        assert demo.ability[row[original]] == demo.ability[row[copy]]
        assert demo.probabilities[row[original]].tobytes() == demo.probabilities[row[copy]].tobytes()
        assert demo.outcomes[row[original]].tobytes() != demo.outcomes[row[copy]].tobytes()
        assert demo.models[row[original]] == demo.models[row[copy]]
        assert demo.scaffolds[row[original]] == demo.scaffolds[row[copy]]
        days = (demo.dates[row[copy]] - demo.dates[row[original]]).days
        assert 6 <= days <= 36 or demo.dates[row[copy]] == date(2025, 1, 6) + timedelta(364)
    assert len(demo.near_ties) == 2
    for weaker, stronger in demo.near_ties:
        gap = demo.ability[row[stronger]] - demo.ability[row[weaker]]
        assert gap == pytest.approx(DEMONSTRATION.near_tie_gap, abs=1e-12)


def complete_in(simulated):
    """Agents with a valid trial on 95% of the tasks."""
    return simulated.valid.any(axis=2).mean(axis=1) >= 0.95


def test_one_agent_is_incomplete_and_no_other(demo):
    n_valid_tasks = demo.valid.any(axis=2).sum(axis=1)
    lost = {name: int(n) for name, n in zip(demo.agents, n_valid_tasks, strict=True) if n < 120}
    # ⌈.08·120⌉ = 10 tasks lost; five independent failures on one task have probability .004⁵ ≈ 1e-12.
    assert lost == {demo.incomplete[0]: 110}
    assert complete_in(demo).sum() == 35
    parts = [name for pair in demo.twins + demo.near_ties for name in pair] + list(demo.incomplete)
    assert len(set(parts)) == len(parts) == 7


# ----------------------------------------------------------------------------------- foreign program


def test_scikit_learn_finds_the_abilities_and_difficulties_again():
    from sklearn.linear_model import LogisticRegression

    parameters = replace(NO_PARTS, sd_interaction=0.0, sd_task=1.0)
    simulated = simulate(generator(8), n_agents=15, n_tasks=40, n_trials=60, parameters=parameters)
    agent, task, _ = np.indices(simulated.outcomes.shape)
    design = np.hstack([np.eye(15)[agent.ravel()], -np.eye(40)[task.ravel()]])
    valid = simulated.valid.ravel()
    model = LogisticRegression(C=1e4, fit_intercept=False, max_iter=2000)
    model.fit(design[valid], simulated.outcomes.ravel()[valid])
    ability, difficulty = model.coef_[0, :15], model.coef_[0, 15:]
    shift = difficulty.mean() - simulated.difficulty.mean()
    # Standard errors by the Fisher information, at most 1/√Σ P(1 − P) of a row or column.
    information = 60 * simulated.probabilities * (1 - simulated.probabilities)
    error = 1 / np.sqrt(information.sum(axis=1))
    assert (np.abs(ability - shift - simulated.ability) < 5 * error + 0.05).all()
    error = 1 / np.sqrt(information.sum(axis=0))
    assert (np.abs(difficulty - shift - simulated.difficulty) < 5 * error + 0.05).all()


# --------------------------------------------------------------------------------------- demonstration


def test_the_demonstration_has_the_shape_of_a_board(demo):
    assert demo.outcomes.shape == demo.valid.shape == demo.costs.shape == (36, 120, 5)
    assert list(demo.agents) == sorted(set(demo.agents))
    assert list(demo.tasks) == sorted(set(demo.tasks))
    assert 6 <= len(set(demo.categories)) <= 8
    assert min(Counter(demo.categories).values()) == 15
    assert all(task.startswith(f"{c}/") for task, c in zip(demo.tasks, demo.categories, strict=True))
    assert all(name.isprintable() and name == name.strip() for name in demo.agents + demo.tasks)
    assert (max(demo.dates) - min(demo.dates)).days > 180
    assert date(2025, 1, 6) <= min(demo.dates)
    assert max(demo.dates) <= date(2026, 1, 5)
    assert set(np.unique(demo.outcomes)) == {0, 1}
    assert (demo.costs > 0).all()
    assert demo.costs.max() < 20


def test_a_name_tells_scaffold_and_model(demo):
    for name, scaffold, model in zip(demo.agents, demo.scaffolds, demo.models, strict=True):
        assert name.startswith(f"{scaffold} ({model})")


def test_every_protocol_finds_groups_in_the_demonstration(demo):
    complete = complete_in(demo)
    scaffolds = Counter(s for s, c in zip(demo.scaffolds, complete, strict=True) if c)
    models = Counter(m for m, c in zip(demo.models, complete, strict=True) if c)
    assert max(scaffolds.values()) >= 10
    assert sum(n >= 2 for n in scaffolds.values()) >= 2
    assert len(scaffolds) >= 5
    assert sum(n >= 2 for n in models.values()) >= 2


def test_the_demonstration_keeps_a_third_to_a_half_of_its_tasks(demo):
    rates = []
    complete = [i for i in range(36) if demo.agents[i] not in demo.incomplete]
    for j in range(120):
        cells = [demo.outcomes[i, j][demo.valid[i, j]].tolist() for i in complete]
        means = [Fraction(sum(cell), len(cell)) for cell in cells if cell]
        rates.append(sum(means) / len(means))
    n_mid_range = sum(Fraction(3, 10) <= rate <= Fraction(7, 10) for rate in rates)
    assert 120 / 3 <= n_mid_range <= 120 / 2


# ------------------------------------------------------------------------------------------------- flat file


def test_the_flat_rows_survive_a_csv_file(demo):
    columns = flat_rows(demo, "example")
    assert list(columns) == COLUMNS
    assert {len(column) for column in columns.values()} == {36 * 120 * 5}
    file = io.StringIO()
    csv.writer(file).writerows([list(columns), *zip(*columns.values(), strict=True)])
    file.seek(0)
    trials, dates = defaultdict(list), {}
    for row in csv.DictReader(file):
        assert row["benchmark"] == "example"
        assert row["valid"] in "01"
        dates[row["agent"]] = date.fromisoformat(row["submitted_at"])
        assert float(row["cost_usd"]) >= 0
        trials[row["agent"], row["task"]].append((int(row["trial"]), int(row["outcome"]), int(row["valid"])))
    assert tuple(dates[agent] for agent in demo.agents) == demo.dates
    for i, agent in enumerate(demo.agents):
        for j, task in enumerate(demo.tasks):
            expected = zip(range(1, 6), demo.outcomes[i, j], demo.valid[i, j], strict=True)
            assert trials[agent, task] == [(t, int(o), int(v)) for t, o, v in expected]


def test_the_flat_rows_are_plain_python_values(demo):
    kinds = {name: {type(value) for value in column} for name, column in flat_rows(demo).items()}
    for name in ("trial", "outcome", "valid"):
        assert kinds.pop(name) == {int}
    assert kinds.pop("cost_usd") == {float}
    assert set.union(*kinds.values()) == {str}


# ------------------------------------------------------------------------------------- sizes and refusals


@pytest.mark.parametrize(("n_agents", "n_tasks", "n_trials"), [(1, 1, 1), (3, 7, 2), (150, 900, 1)])
def test_other_sizes(n_agents, n_tasks, n_trials):
    simulated = simulate(
        generator(9), n_agents=n_agents, n_tasks=n_tasks, n_trials=n_trials, parameters=NO_PARTS
    )
    assert simulated.outcomes.shape == (n_agents, n_tasks, n_trials)
    assert len(set(simulated.agents)) == n_agents
    assert len(set(simulated.tasks)) == n_tasks
    assert (simulated.twins, simulated.near_ties, simulated.incomplete) == ((), (), ())
    assert list(simulated.agents) == sorted(simulated.agents)
    assert list(simulated.tasks) == sorted(simulated.tasks)


def test_many_parts_take_no_agent_twice():
    parameters = replace(DEMONSTRATION, n_twins=5, n_near_ties=4, n_incomplete=3)
    simulated = simulate(generator(10), n_agents=21, parameters=parameters)
    parts = [name for pair in simulated.twins + simulated.near_ties for name in pair]
    parts += simulated.incomplete
    assert len(set(parts)) == len(parts) == 21


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_agents": 0}, "n_agents is 0"),
        ({"n_tasks": 0}, "n_tasks is 0"),
        ({"n_trials": -1}, "n_trials is -1"),
        ({"n_agents": 6}, "6 agents for"),
        ({"parameters": replace(DEMONSTRATION, p_failure=1.5)}, "p_failure is 1.5"),
        ({"parameters": replace(DEMONSTRATION, share_lost=-0.1)}, "share_lost is -0.1"),
    ],
)
def test_a_benchmark_that_cannot_be_is_refused(changes, message):
    with pytest.raises(CoreError, match=message):
        simulate(generator(11), **changes)
