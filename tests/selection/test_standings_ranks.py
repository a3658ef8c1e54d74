"""Ranks on given tasks: what a run more, a copy, another order of tasks or trials changes, and what not."""

from dataclasses import replace

import numpy as np
import pytest

from analytics.differences.error_draws import draw_errors
from analytics.differences.finite_errors import error_of
from analytics.differences.neyman_draws import ahead
from analytics.flat_file import read
from analytics.record import Record
from selection.prior import PriorDecisions
from selection.rules import Rules
from selection.standings import answer
from selection.standings.answering import basis_of
from selection.standings.pairs import pairs
from selection.standings.targets import ErrorModel
from tests.selection.records import NAN, by_name, record_of
from tests.toys import AS_OF, rows_text

TARGETS = ("subset", "full")


def trials(n_agents=18, n_tasks=60, n_trials=4, seed=2):
    """Passes and failures, (n_agents, n_tasks, n_trials), abilities growing with the name."""
    rng = np.random.default_rng(seed)
    chance = 1 / (1 + np.exp(rng.normal(0, 1, n_tasks) - np.linspace(-1.2, 1.2, n_agents)[:, None]))
    return (rng.random((n_agents, n_tasks, n_trials)) < chance[..., None]).astype(float)


def record_of_trials(outcomes, **options):
    return record_of(
        outcomes.mean(axis=2),
        n_trials=outcomes.shape[2],
        trial_variances=outcomes.var(axis=2, ddof=1),
        **options,
    )


def with_runs_of_the_subset(n_new, single=()):
    """A record in which the last agents ran the subset alone; the positions in `single` with one trial."""
    outcomes = trials(18 + n_new)
    tasks = basis_of(record_of_trials(outcomes[:18]), Rules(), PriorDecisions()).subset
    means, variances = outcomes.mean(axis=2), outcomes.var(axis=2, ddof=1)
    others = np.setdiff1d(np.arange(60), tasks)
    means[18:, others] = variances[18:, others] = NAN
    n_trials = np.where(np.isnan(means), NAN, 4.0)
    for i in single:
        means[i], variances[i], n_trials[i] = np.where(np.isnan(means[i]), NAN, outcomes[i, :, 0]), NAN, 1.0
    record = record_of(means, n_trials=4, trial_variances=variances)
    n_trials[np.isnan(means)] = NAN
    return replace(record, table=replace(record.table, n_trials=n_trials)), tasks


def without_last(record):
    """The same record without its last agent."""
    full = record.table
    rows = slice(0, full.n_agents - 1)
    table = replace(
        full,
        **{
            name: getattr(full, name)[rows]
            for name in ("agents", "means", "n_valid", "dates", "scaffolds", "models", "n_trials")
        },
        trial_variances=full.trial_variances[rows],
    )
    per_agent = {
        name: getattr(record, name)[rows]
        for name in (
            "about", "n_places", "n_gaps", "n_invalid", "asked", "operator", "arrival", "first", "completed",
            "settled", "complete", "voice", "costs", "n_tokens", "seconds", "n_deliveries", "repeats",
            "condition",
        )
    }  # fmt: skip
    return replace(record, table=table, **per_agent)


def errors_of(record, target):
    """Every ranked agent as it enters the ranks, with its error, by name."""
    found = basis_of(record, Rules(), PriorDecisions())
    tasks, placed = (found.subset, found.on_subset) if target == "subset" else (found.tasks, found.on_all)
    bench = ErrorModel(record, PriorDecisions().facets, 0)
    rows = bench.rows(range(len(placed)), tasks, placed)
    both = zip(rows, placed, strict=True)
    agents = [bench.agent(i, row, one, None) for i, (row, one) in enumerate(both)]
    return {one.name: error_of(one, bench.noise(tasks)) for one in agents if one is not None}


def draws_of(errors):
    names = sorted(errors)
    judged = ~np.eye(len(names), dtype=bool)
    drawn = draw_errors(names, [errors[name] for name in names], judged, seed=0, n_draws=300)
    return {name: (drawn.errors[i], drawn.seen[i]) for i, name in enumerate(names)}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("single", [(), (20,)])
def test_a_run_of_the_subset_leaves_everybody_else(target, single):
    """Its V and draws, and but for c its pairs."""
    more, _ = with_runs_of_the_subset(3, single)
    fewer = without_last(more)
    before, after = (errors_of(one, target) for one in (fewer, more))
    assert {name: after[name] for name in before} == before
    drawn, again = draws_of(before), draws_of(after)
    assert all((drawn[name][0] == again[name][0]).all() for name in before)
    assert all((drawn[name][1] == again[name][1]).all() for name in before)
    some, whole = (pairs(one, target=target) for one in (fewer, more))
    known = {(one.a, one.b): one.estimate for one in whole.pairs}
    assert all(known[one.a, one.b] == one.estimate for one in some.pairs)
    lines, wider = by_name(answer(fewer)), by_name(answer(more))
    for name, line in lines.items():
        a, b = line.at[target], wider[name].at[target]
        assert (a.score, a.se, a.lower, a.upper) == (b.score, b.se, b.lower, b.upper)


def test_a_difference_has_the_standard_error_that_decides_its_tie():
    """D > c·SE is what the ranks say, for every pair of a board with all kinds of agents."""
    record, _ = with_runs_of_the_subset(3, (19,))
    for target in TARGETS:
        found = answer(record, Rules(target=target))
        critical, places = found.targets[target].critical, [line.agent for line in found.agents]
        for one in pairs(record, target=target).pairs:
            at = by_name(found)[one.a].at[target]
            tied = {places[j] for first, last in at.tied_with for j in range(first, last + 1)}
            clear = one.estimate.value > critical * one.estimate.interval.se
            assert (one.b not in tied) == clear


@pytest.mark.parametrize("n_trials", [1, 4])
def test_identical_agents_are_tied(n_trials):
    outcomes = trials(n_trials=4)[..., :n_trials]
    outcomes[3] = outcomes[15]
    options = {} if n_trials == 1 else {"n_trials": 4, "trial_variances": outcomes.var(axis=2, ddof=1)}
    found = answer(record_of(outcomes.mean(axis=2), **options))
    places = [line.agent for line in found.agents]
    for target in TARGETS:
        at = by_name(found)["a03"].at[target]
        assert "a15" in {places[j] for first, last in at.tied_with for j in range(first, last + 1)}
        other = by_name(found)["a15"].at[target]
        assert (at.rank, at.rank_lower, at.rank_upper) == (other.rank, other.rank_lower, other.rank_upper)


def test_tasks_in_another_order_change_nothing():
    outcomes, order = trials(), np.random.default_rng(1).permutation(60)
    one, two = (answer(record_of_trials(x)) for x in (outcomes, outcomes[:, order]))
    for target in TARGETS:
        assert two.targets[target] == one.targets[target]
        for name, line in by_name(one).items():
            a, b = line.at[target], by_name(two)[name].at[target]
            assert (a.rank, a.rank_lower, a.rank_upper, a.tied_with) == (
                b.rank, b.rank_lower, b.rank_upper, b.tied_with,
            )  # fmt: skip


def test_trials_in_another_order_change_nothing(tmp_path):
    outcomes, rng = trials(16, 30, 3), np.random.default_rng(1)
    told = []
    for shuffle in (False, True):
        rows = [
            {"agent": f"a{i:02d}", "task": f"t{j:02d}", "trial": k + 1, "outcome": int(value)}
            for i, j in np.ndindex(16, 30)
            for k, value in enumerate(rng.permutation(outcomes[i, j]) if shuffle else outcomes[i, j])
        ]
        path = tmp_path / f"{shuffle}.csv"
        path.write_text(rows_text(rows))
        record = Record.from_flat(read(path, as_of=AS_OF), Rules().counting)
        told.append(answer(record).as_plain())
    assert told[0]["targets"] == told[1]["targets"]
    for one, two in zip(told[0]["agents"], told[1]["agents"], strict=True):
        assert (one["agent"], one["at"]) == (two["agent"], two["at"])


def test_trial_noise_is_that_of_complete_agents_on_the_targets_tasks():
    """ω̂ = Σs²/Σ N·ȳ(1 − ȳ) over the tasks of S alone."""
    record, tasks = with_runs_of_the_subset(2)
    means, variances = record.table.means[:18, tasks], record.table.trial_variances[:18, tasks]
    rates = means.mean(axis=1)
    omega = variances.sum() / (tasks.size * rates * (1 - rates)).sum()
    assert pairs(record, target="subset").omega == pytest.approx(omega)
    assert pairs(record, target="full").omega != pytest.approx(omega)


@pytest.mark.parametrize("n_loaded", [0, 4, 20])
def test_three_that_were_submitted_do_not_tell_the_noise_of_all_others(n_loaded):
    """Twenty of one trial, three whose three trials hardly differ: vouched for, these tell it."""
    rng = np.random.default_rng(6)
    outcomes = (rng.random((23, 60)) < np.linspace(0.3, 0.7, 23)[:, None]).astype(float)
    n_trials, spread = np.ones((23, 60)), np.full((23, 60), NAN)
    n_trials[20:], spread[20:] = 3.0, 0.0
    outcomes[20:, :2], spread[20:, :2] = 1 / 3, 1 / 3  # one of three passes
    found = record_of(outcomes, submitted=[20, 21, 22])

    def omega(vouched, **cells):
        about = tuple(replace(one, vouched=i in vouched) for i, one in enumerate(found.about))
        table = replace(found.table, n_valid=n_trials.astype(np.int32), n_trials=n_trials, **cells)
        record = replace(found, table=table, complete=np.ones(23, bool), about=about)
        return pairs(record, target="full").omega

    assert omega(range(n_loaded), trial_variances=spread) is None
    rates = outcomes[20:].mean(axis=1)
    by_hand = 3 * 2 / 3 / (60 * rates * (1 - rates)).sum()
    assert omega({*range(n_loaded), 20, 21, 22}, trial_variances=spread) == pytest.approx(by_hand)


def test_few_that_are_vouched_for_do_not_make_others_steadier_than_all_are():
    """Three calm agents of an operator, three of others that repeat as well, each task once of three."""
    outcomes = np.zeros((8, 60))
    outcomes[:3, :30], outcomes[:3, 0] = 1.0, 2 / 3
    outcomes[3:6], outcomes[6:, :30] = 1 / 3, 1.0
    n_trials, spread = np.full((8, 60), 3.0), np.zeros((8, 60))
    spread[:3, 0], spread[3:6] = 1 / 3, 1 / 3
    n_trials[6:], spread[6:] = 1.0, NAN
    found = record_of(outcomes, submitted=[3, 4, 5, 6, 7])
    table = replace(found.table, n_valid=n_trials.astype(np.int32), n_trials=n_trials, trial_variances=spread)
    about = tuple(replace(one, vouched=i < 3) for i, one in enumerate(found.about))
    record = replace(found, table=table, complete=np.ones(8, bool), about=about)
    calm, rate = 3 * 1 / 3, (30 - 1 / 3) / 60
    both = (calm + 3 * 60 / 3) / (3 * 60 * rate * (1 - rate) + 3 * 60 * (1 / 3) * (2 / 3))
    assert pairs(record, target="full").omega == pytest.approx(both)


def test_tasks_are_resampled_once_where_two_targets_ask_the_same(monkeypatch):
    """One trial each, all of it measured: `full` and `domain` share their draws."""
    made = []

    def counted(*arguments, **draws):
        made.append(arguments)
        return ahead(*arguments, **draws)

    monkeypatch.setattr("analytics.differences.kept_draws.ahead", counted)
    found = answer(record_of(trials(n_trials=1)[..., 0]))
    assert len(made) == 2
    full, domain = found.targets["full"], found.targets["domain"]
    assert (full.critical, full.may_be_first) == (domain.critical, domain.may_be_first)


def test_how_pairs_were_judged_is_said():
    repeated, _ = with_runs_of_the_subset(1)
    told = answer(repeated).targets
    assert (told["subset"].method, told["subset"].note) == ("errors of scores", "")
    assert told["full"].note == "Estimated scores use the error of their calibration."
    assert told["domain"].method == "resampled tasks"
    mixed, _ = with_runs_of_the_subset(1, (18,))
    assert "as noisy as those with repeats" in answer(mixed).targets["subset"].note
