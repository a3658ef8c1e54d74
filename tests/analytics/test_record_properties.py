"""What may not move a record; and a second way to reduce rows: dictionaries and fractions, row by row."""

import math
from collections import Counter, defaultdict
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from math import prod

import numpy as np
import pytest

from analytics.record import (
    About,
    Condition,
    Counting,
    Delivery,
    Record,
    Rows,
    agent_rows,
    compare,
    condition_counts,
)

SEEDS = range(12)
BESIDE = -1  # the block of tasks that were not asked for
LEVELS = [(None, judge, None, run) for judge in ("easy", "hard", None) for run in ("a", "b")]
HARD = Counting(settings=(Condition(None, "hard", None),))
ARRAYS = (
    "n_places",
    "n_gaps",
    "asked",
    "operator",
    "arrival",
    "completed",
    "settled",
    "complete",
    "costs",
    "n_deliveries",
)
TOLD = ("about", "n_tokens", "seconds", "repeats", "compared", "left_out", "condition", "universe")


def random_board(seed, n_agents=6, n_tasks=9):
    """Agents with several deliveries, assignments, runs, judges, trials, void and claimed rows."""
    rng = np.random.default_rng(seed)
    tasks = [f"t{j}" for j in range(n_tasks)]
    deliveries, even = [], []
    for agent in range(n_agents):
        for _ in range(rng.integers(1, 4)):
            even.append(even_run(rng, n_tasks) if rng.random() < 0.4 else {})
            some = frozenset(rng.choice(tasks, rng.integers(1, n_tasks), replace=False).tolist())
            deliveries.append(
                Delivery(
                    agent=agent,
                    arrival=len(deliveries),
                    operator=bool(agent % 3 == 0),
                    asked=some if agent % 3 == 2 and rng.random() < 0.7 else None,
                    n_trials=int(rng.integers(1, 4)) if rng.random() < 0.3 else None,
                    capped=agent % 2 == 0 and rng.random() < 0.3,
                )
            )
    keys = [
        (delivery.agent, task, setting, d, trial)
        for d, delivery in enumerate(deliveries)
        for task in range(n_tasks)
        for setting in range(len(LEVELS))
        for trial in range(3)
        if (
            trial < even[d].get((task, setting), 0)
            if even[d]
            else rng.random() < (0.9 if setting in (2, 3) else 0.15)
        )
    ]
    agent, task, setting, delivery, trial = np.array(keys).T
    n = len(keys)
    valid = rng.random(n) > 0.15
    rows = Rows(
        agent=agent,
        task=task,
        setting=setting,
        delivery=delivery,
        trial=trial + 3 * delivery,
        outcome=np.where(valid, rng.integers(0, 8, n) / 7, np.nan),
        valid=valid,
        confirmed=~valid & (rng.random(n) < 0.5),
        cost_usd=rng.random(n),
        seconds=np.where(rng.random(n) < 0.9, rng.random(n), np.nan),
    )
    about = [About(name=f"agent {i}", scaffold="s", model="m") for i in range(n_agents)]
    return about, rows, {"tasks": tasks, "settings": LEVELS, "deliveries": deliveries}


def even_run(rng, n_tasks):
    """So many trials of every task, or of one of its halves, under the first run of each judge."""
    tasks = [range(n_tasks), range(4), range(4, n_tasks)][rng.integers(3)]
    n_trials = int(rng.integers(1, 4))
    return {(task, setting): n_trials for task in tasks for setting in (0, 2, 4)}


def assert_same(a, b):
    for name in ("means", "n_valid", "trial_variances", "n_trials"):
        np.testing.assert_array_equal(getattr(a.table, name), getattr(b.table, name), err_msg=name)
    assert (a.table.agents, a.table.tasks) == (b.table.agents, b.table.tasks)
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    for name in TOLD:
        assert getattr(a, name) == getattr(b, name), name
    for first, second in zip(a.bounds(np.arange(a.n_tasks)), b.bounds(np.arange(a.n_tasks)), strict=True):
        np.testing.assert_array_equal(first, second)


def with_rows(rows, **columns):
    """Rows with more rows at the end; a column not given is 0, valid, not confirmed, free of cost."""
    n = len(columns["agent"])
    more = {"valid": np.ones(n, bool), "confirmed": np.zeros(n, bool), "outcome": np.ones(n)} | columns
    for name in ("task", "setting", "delivery", "trial", "cost_usd", "seconds"):
        more.setdefault(name, np.zeros(n, getattr(rows, name).dtype))
    return replace(rows, **{name: np.concatenate([getattr(rows, name), more[name]]) for name in more})


# -------------------------------------------------------------------------------------------- to the last bit


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("counting", [Counting(), HARD, Counting(missing="zero", duplicates="latest")])
def test_neither_order_nor_numbering_leaves_a_trace(seed, counting):
    about, rows, given = random_board(seed)
    first = Record.of(about, rows, **given, counting=counting)
    rng = np.random.default_rng(1000 + seed)
    agent, setting, delivery = (
        rng.permutation(n) for n in (len(about), len(LEVELS), len(given["deliveries"]))
    )
    order = rng.permutation(rows.n_rows)
    moved = replace(
        rows, agent=agent[rows.agent], setting=setting[rows.setting], delivery=delivery[rows.delivery]
    )
    second = Record.of(
        [about[i] for i in np.argsort(agent)],
        moved.where(order),
        tasks=given["tasks"],
        settings=[LEVELS[s] for s in np.argsort(setting)],
        deliveries=[
            replace(given["deliveries"][d], agent=int(agent[given["deliveries"][d].agent]))
            for d in np.argsort(delivery)
        ],
        counting=counting,
    )
    assert_same(first, second)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("duplicates", ["mean", "latest"])
@pytest.mark.parametrize("missing", ["gap", "zero"])
def test_who_is_complete_was_completed_by_a_delivery_of_its_own(seed, duplicates, missing):
    about, rows, given = random_board(seed)
    rows = rows.where(~((rows.agent < 3) & (rows.task == 4)))
    result = Record.of(about, rows, **given, counting=replace(HARD, duplicates=duplicates, missing=missing))
    own = [{d.arrival for d in given["deliveries"] if d.agent == i} for i in range(len(about))]
    assert all(result.completed[i] in own[i] for i in np.flatnonzero(result.complete))
    assert (result.completed[result.completed >= 0] >= result.arrival[result.completed >= 0]).all()
    assert result.complete.sum() >= (2 if missing == "zero" else 0)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_agents_line_depends_on_its_own_rows_alone(seed):
    about, rows, given = random_board(seed)
    given["counting"] = Counting()
    compared = compare(condition_counts(rows, n_agents=len(about), **given), Counting())
    whole = agent_rows(rows, n_agents=len(about), compared=compared, **given)
    alone = agent_rows(rows.where(rows.agent == 2), n_agents=len(about), compared=compared, **given)
    for name, value in vars(whole[2]).items():
        np.testing.assert_array_equal(value, getattr(alone[2], name), err_msg=name)
    assert {row.n_deliveries for i, row in enumerate(alone) if i != 2} == {0}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("duplicates", ["mean", "latest", "first"])
@pytest.mark.parametrize("missing", ["gap", "zero"])
def test_what_was_withdrawn_counts_nowhere(seed, duplicates, missing):
    """All of one agent and every third delivery; the record is that of the other deliveries alone."""
    about, rows, given = random_board(seed)
    counting = Counting(duplicates=duplicates, missing=missing)
    gone = [one.agent == 1 or d % 3 == seed % 3 for d, one in enumerate(given["deliveries"])]
    marked = [replace(one, withdrawn=is_gone) for one, is_gone in zip(given["deliveries"], gone, strict=True)]
    result = Record.of(about, rows, **given | {"deliveries": marked}, counting=counting)
    standing = np.flatnonzero(~np.array(gone))
    number = np.cumsum(~np.array(gone)) - 1
    here = rows.where(~np.array(gone)[rows.delivery])
    alone = Record.of(
        about,
        replace(here, delivery=number[here.delivery]),
        **given | {"deliveries": [given["deliveries"][d] for d in standing]},
        counting=counting,
    )
    assert about[1].name not in result.table.agents
    assert_same(result, alone)


# ------------------------------------------------------------------------------------------ nothing is gained


def submitter(seed, *, asked=None, n_trials=None, n_tasks=40):
    """One submitter beside three loaded agents under the hard judge, one trial a task."""
    rng = np.random.default_rng(seed)
    agent, task = (part.ravel() for part in np.indices((4, n_tasks)))
    n = len(agent)
    rows = Rows(
        agent=agent,
        task=task,
        setting=np.full(n, 2),
        delivery=agent.copy(),
        trial=np.ones(n, np.int64),
        outcome=(rng.random(n) < 0.5).astype(float),
        valid=np.ones(n, bool),
        confirmed=np.zeros(n, bool),
        cost_usd=np.ones(n),
        seconds=np.ones(n),
    )
    tasks = [f"t{j:02}" for j in range(n_tasks)]
    named = None if asked is None else frozenset(tasks[j] for j in asked)
    deliveries = [Delivery(i) for i in range(3)]
    deliveries += [
        Delivery(3, 1, operator=False, asked=named, n_trials=n_trials),
        Delivery(3, 2, operator=False),
    ]
    if named is not None:
        rows = rows.where((rows.agent < 3) | np.isin(rows.task, asked))
    about = [About(name=f"agent {i}", scaffold="s", model="m") for i in range(4)]
    return about, rows, {"tasks": tasks, "settings": LEVELS, "deliveries": deliveries}


def same_scores(a, b):
    np.testing.assert_array_equal(a.table.means, b.table.means)
    np.testing.assert_array_equal(a.table.n_valid, b.table.n_valid)
    np.testing.assert_array_equal(a.n_places, b.n_places)
    np.testing.assert_array_equal(a.costs, b.costs)
    np.testing.assert_array_equal(a.complete, b.complete)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("delivery", [3, 4])
def test_more_trials_on_failed_tasks_move_nothing(seed, delivery):
    about, rows, given = submitter(seed)
    failed = rows.task[(rows.agent == 3) & (rows.outcome == 0)]
    more = with_rows(
        rows,
        agent=np.full(2 * failed.size, 3),
        task=np.tile(failed, 2),
        setting=np.full(2 * failed.size, 2),
        delivery=np.full(2 * failed.size, delivery),
        trial=np.repeat([2, 3], failed.size),
    )
    same_scores(Record.of(about, rows, **given), Record.of(about, more, **given))


@pytest.mark.parametrize("seed", SEEDS)
def test_failed_trials_called_invalid_move_nothing_until_confirmed(seed):
    about, rows, given = submitter(seed)
    failed = (rows.agent == 3) & (rows.outcome == 0)
    claimed = replace(rows, valid=~failed, outcome=np.where(failed, np.nan, rows.outcome))
    before, after = Record.of(about, rows, **given), Record.of(about, claimed, **given)
    same_scores(before, after)
    assert after.n_gaps.sum() == 0
    confirmed = Record.of(about, replace(claimed, confirmed=failed), **given)
    assert confirmed.n_gaps[3].sum() == failed.sum()
    assert not confirmed.complete[3]
    lower, upper, _ = confirmed.bounds(np.arange(40))
    assert lower[3] == before.table.means[3].mean()
    assert upper[3] == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("seed", SEEDS)
def test_solved_extras_move_nothing(seed):
    about, rows, given = submitter(seed, asked=range(12))
    extra = np.arange(12, 39)  # all but one
    more = with_rows(
        rows,
        agent=np.full(extra.size, 3),
        task=extra,
        setting=np.full(extra.size, 2),
        delivery=np.full(extra.size, 4),
    )
    before, after = Record.of(about, rows, **given), Record.of(about, more, **given)
    same_scores(before, after)
    assert not after.short.any()
    last = with_rows(more, agent=np.array([3]), task=np.array([39]), setting=np.array([2]))
    whole = Record.of(
        about,
        replace(last, delivery=np.where(last.agent == 3, np.maximum(last.delivery, 3), last.delivery)),
        **given,
    )
    assert whole.complete[3]
    assert whole.table.n_valid[3].sum() == 40


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_under_an_easier_judge_moves_nothing(seed):
    about, rows, given = submitter(seed)
    n = 40
    more = with_rows(
        rows, agent=np.full(n, 3), task=np.arange(n), setting=np.zeros(n, np.int64), delivery=np.full(n, 4)
    )
    before, after = Record.of(about, rows, **given), Record.of(about, more, **given)
    same_scores(before, after)
    assert (before.compared, after.compared) == ((), ("judge hard",))
    assert after.left_out == (("judge easy", 1),)
    assert before.repeats == after.repeats


# ------------------------------------------------------------------------------ by dictionaries and fractions


def reduced(about, rows, given, judges):
    """Mean, places and gaps of every agent and task, as the rules are written, by dictionaries."""
    deliveries, tasks = given["deliveries"], given["tasks"]
    columns = ("agent", "task", "setting", "delivery", "trial", "outcome", "valid", "confirmed")
    trials = [
        dict(zip(columns, row, strict=True))
        for row in zip(*(getattr(rows, c).tolist() for c in columns), strict=True)
    ]
    cells = {}
    for i in range(len(about)):
        own = [d for d in deliveries if d.agent == i]
        loaded = all(d.operator for d in own)
        named = [d.asked for d in own if d.asked is not None]
        blocks = first_asked(named, tasks) if named else {}
        slots = defaultdict(list)
        for trial in trials:
            judge = LEVELS[trial["setting"]][1]
            if trial["agent"] == i and judge in judges:
                slots[trial["task"], judge].append(trial)
        there = {j for j in range(len(tasks)) if all(slots.get((j, judge)) for judge in judges)}
        counting = {
            key: [(trial, Fraction(1)) for trial in part]
            for key, part in slots.items()
            if loaded or not named or key[0] in blocks or len(there) == len(tasks)
        }
        result = means_of(counting, tasks, judges, deliveries)
        if not loaded:
            n_counted = counted_trials(slots, blocks, own, tasks)
            whole, retried = by_runs(slots, blocks, own, deliveries, judges, tasks)
            weighted = {
                (j, judge): in_places(
                    slots[j, judge], n_counted[blocks.get(j, BESIDE)], whole[judge], deliveries
                )
                for j, judge in counting
            }
            by_rule = means_of(weighted, tasks, judges, deliveries)
            ranking = [j for j in range(len(tasks)) if j in blocks or not named]
            if not retried or score_of(by_rule, ranking) <= score_of(result, ranking):
                result = by_rule
        cells |= {(i, j): result[j] for j in range(len(tasks))}
    return cells


def means_of(slots, tasks, judges, deliveries):
    return [
        cell([slots.get((j, judge), []) for judge in judges], lambda t: deliveries[t["delivery"]].operator)
        for j in range(len(tasks))
    ]


def score_of(cells, ranking):
    known = [cells[j][0] for j in ranking if cells[j][0] is not None]
    return sum(known) / len(known) if known else 0


def by_runs(slots, blocks, own, deliveries, judges, tasks):
    """By judge the (delivery, task) that are part of a whole run; whether tasks of a block were retried."""
    whole, retried = {judge: set() for judge in judges}, False
    if any(d.capped for d in own):
        return whole, retried
    for judge, number in product(judges, {blocks.get(j, BESIDE) for j in range(len(tasks))}):
        part = {j for j in range(len(tasks)) if blocks.get(j, BESIDE) == number}
        outcomes = defaultdict(lambda: defaultdict(list))
        for j in part:
            for trial in slots.get((j, judge), ()):
                outcomes[trial["delivery"]][j].append(number_of(trial))
        series = [(d, outcomes[d]) for d in sorted(outcomes, key=lambda d: (deliveries[d].arrival, d))]
        runs = runs_of(series, part)
        whole[judge] |= {(d, j) for d in runs for j in part}
        retried |= any(
            mean(after[j]) < mean(before[j])
            for (d, before), (_, after) in combinations(series, 2)
            if d not in runs and len(set(map(len, before.values()))) > 1
            for j in before.keys() & after.keys()
        )
    return whole, retried


def runs_of(series, part):
    """The deliveries that are part of a whole run: outcomes by task, in order of acceptance."""
    runs, run, n = set(), [], Counter()
    for d, outcomes in series:
        if n.keys() & outcomes.keys():
            run, n = [], Counter()
        run.append(d)
        n.update({j: len(result) for j, result in outcomes.items()})
        if set(n) == part and len(set(n.values())) == 1:
            runs |= set(run)
            run, n = [], Counter()
    return runs


def mean(numbers):
    return sum(numbers) / len(numbers)


def number_of(trial):
    return Fraction(round(7 * trial["outcome"]), 7) if trial["valid"] else Fraction(0)


def in_places(part, n_places, whole, deliveries):
    """Trials with their weights: whole runs share the places left, of others the lowest come first."""
    of_delivery, weighted = defaultdict(list), []
    for trial in sorted(part, key=lambda t: in_turn(t, deliveries)):
        of_delivery[trial["delivery"]].append(trial)
    for (delivery, task), mine in ((((d, m[0]["task"])), m) for d, m in of_delivery.items()):
        n = min(n_places, len(mine))
        taken = mine if (delivery, task) in whole else mine[:n]
        weighted += [(trial, Fraction(n, len(taken))) for trial in taken if n]
        n_places -= n
    return weighted


def first_asked(named, tasks):
    """The number of the delivery with which a task was first asked for, by its position."""
    blocks = {}
    for number, names in enumerate(named):
        for name in names:
            blocks.setdefault(tasks.index(name), number)
    return blocks


def counted_trials(slots, blocks, own, tasks):
    """Of each block, and of the tasks beside them, the fewest trials of a task, up to what was asked for."""
    result = {}
    for number in {blocks.get(j, BESIDE) for j in range(len(tasks))}:
        of = min(blocks.values()) if blocks and number == BESIDE else number
        here = {task for j, task in enumerate(tasks) if blocks.get(j, BESIDE) == of}
        asking = [d for d in own if d.asked is None or d.asked & here]
        bounded = asking and asking[0].n_trials is not None
        limit = max(d.n_trials or 0 for d in asking) if bounded else math.inf
        parts = [part for (j, _), part in slots.items() if blocks.get(j, BESIDE) == number]
        result[number] = min([*map(len, parts), limit])
    return result


def in_turn(trial, deliveries):
    """The earlier delivery first, and in it the lower outcome, by trial and run."""
    delivery, outcome = trial["delivery"], trial["outcome"] if trial["valid"] else 0.0
    levels = LEVELS[trial["setting"]]
    return deliveries[delivery].arrival, delivery, outcome, trial["trial"], levels[3]


def cell(parts, is_loaded):
    """Mean over judges of the weighted mean over trials, of whatever run; places; gaps."""
    if not all(parts):
        return None, 0, 0
    of_judges, n_gaps = [], 0
    for part in parts:
        total = weights = Fraction(0)
        for trial, weight in part:
            void = not trial["valid"] and (trial["confirmed"] or is_loaded(trial))
            n_gaps += void
            if not void:
                total, weights = total + weight * number_of(trial), weights + weight
        of_judges.append(total / weights if weights else None)
    n_places = sum(map(len, parts))
    if None in of_judges:
        return None, n_places, n_places
    return sum(of_judges) / len(of_judges), n_places, n_gaps


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("judges", [("hard",), ("easy", "hard"), ("easy", "hard", None)])
def test_the_record_is_what_the_rules_say_row_by_row(seed, judges):
    about, rows, given = random_board(seed)
    counting = Counting(settings=tuple(Condition(None, judge, None) for judge in judges))
    result = Record.of(about, rows, **given, counting=counting)
    expected = reduced(about, rows, given, judges)
    assert result.n_agents * result.n_tasks == len(expected) == prod(result.table.means.shape)
    for (i, j), (mean, n_places, n_gaps) in expected.items():
        got = result.table.means[i, j]
        assert np.isnan(got) if mean is None else got == pytest.approx(float(mean), abs=1e-14), (i, j)
        assert (result.n_places[i, j], result.n_gaps[i, j]) == (n_places, n_gaps), (i, j)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_held_is_one_group_by(seed):
    about, rows, given = random_board(seed)
    result = condition_counts(rows, n_agents=len(about), **given, counting=Counting())
    assert [condition.judge for condition in result.conditions] == [None, "easy", "hard"]
    n_outcomes, cells = Counter(), set()
    operator = np.array([d.operator for d in given["deliveries"]])[rows.delivery]
    for row in np.flatnonzero(rows.valid | ~(rows.confirmed | operator)):
        key = (rows.agent[row], [None, "easy", "hard"].index(LEVELS[rows.setting[row]][1]))
        n_outcomes[key] += 1
        cells.add((*key, rows.task[row]))
    for i in range(len(about)):
        for c in range(3):
            assert result.n_outcomes[i, c] == n_outcomes[i, c]
            assert result.n_tasks[i, c] == sum(key[:2] == (i, c) for key in cells)
