"""Versions of one agent that differ by noise alone stand as one line, and their owner gains nothing."""

from dataclasses import replace

import numpy as np
import pytest

from analytics.trials import expected_maximum
from selection.schema.board import Standings
from selection.standings import answer
from selection.standings.printed import legend, text
from selection.standings.table import columns, flat
from selection.standings.terms import percent
from tests.selection.records import by_name, record_of

N_TASKS, N_OTHERS, N_VERSIONS = 100, 24, 20
OWNED = {"scaffold": "Loop", "model": "M 9", "account": "7"}


def owned(record, names, **about):
    """The same record with these agents one owner's versions of one agent."""
    told = [replace(one, **OWNED | about) if one.name in names else one for one in record.about]
    return replace(record, about=tuple(told))


def board_of(means, names, **about):
    """The board of agents with these mean outcomes; those from `N_OTHERS` on were submitted by `names`."""
    submitted = range(len(means) - len(names), len(means))
    everyone = [f"a{i:02d}" for i in range(len(means) - len(names))] + list(names)
    return answer(owned(record_of(means, submitted=submitted, names=everyone), names, **about))


def drawn(rng, quality, difficulty, n=1):
    """Pass or fail of n runs of an agent of this quality on tasks of this difficulty, (n, n_tasks)."""
    chance = 1 / (1 + np.exp(difficulty - quality))
    return (rng.random((n, difficulty.size)) < chance).astype(float), chance.mean()


def line_of(board, name):
    return next(line for line in board.agents if line.agent == name)


def standing(board, names):
    """The lines of these agents that have a rank."""
    return [line for line in board.agents if line.agent in names and line.at["full"].rank is not None]


def simulated(seed):
    """A board of others, and 20 equal versions of an agent in its middle; and that agent's true score."""
    rng = np.random.default_rng(seed)
    difficulty = rng.normal(0, 1.5, N_TASKS)
    others = [drawn(rng, quality, difficulty)[0] for quality in np.linspace(1.5, -1.5, N_OTHERS)]
    versions, truth = drawn(rng, 0.0, difficulty, N_VERSIONS)
    return np.vstack([*others, versions]), truth


NAMES = tuple(f"v{k:02d}" for k in range(N_VERSIONS))


@pytest.mark.slow(each=True)
def test_twenty_equal_versions_gain_nothing():
    gains, plain = [], []
    for seed in range(12):
        means, truth = simulated(seed)
        (line,) = standing(board_of(means, NAMES), NAMES)
        gains.append(line.at["full"].score - truth)
        plain.append(means[N_OTHERS:].mean(axis=1).max() - truth)
    error = np.std(gains, ddof=1) / np.sqrt(len(gains))
    print(f"gain {100 * np.mean(gains):.2f} ± {100 * error:.2f} points; plainly {100 * np.mean(plain):.2f}")
    assert np.mean(plain) > 0.05
    assert abs(np.mean(gains)) < 2.5 * error
    assert abs(np.mean(gains)) < 0.01


@pytest.mark.slow(each=True)
def test_a_weak_version_beside_them_opens_no_way_out():
    """Worse than the others by four errors, so that a lucky one might be clearly better than it alone."""
    gains = []
    for seed in range(12):
        means, truth = simulated(seed)
        versions = means[N_OTHERS:]
        weak = versions[0].copy()
        weak[np.flatnonzero(weak)[:16]] = 0.0
        board = board_of(np.vstack([means[: N_OTHERS + 1], weak, versions[2:]]), NAMES)
        gains.append(max(one.at["full"].score for one in standing(board, NAMES)) - truth)
    assert np.mean(gains) < 2.5 * np.std(gains, ddof=1) / np.sqrt(len(gains))


def test_the_correction_is_that_of_two_runs():
    """20 of 100 tasks differ: s² is 1/2 on each, σ² = 10/100², and the best of two gains σ/√π."""
    means = simulated(1)[0][: N_OTHERS + 2]
    first, second = means[N_OTHERS:]
    second[:] = first
    passed, failed = np.flatnonzero(first == 1), np.flatnonzero(first == 0)
    second[passed[:7]], second[failed[:13]] = 0.0, 1.0
    board = board_of(means, ("one", "two"))
    told = line_of(board, "two").at["full"]
    assert told.correction == pytest.approx(np.sqrt(10) / 100 / np.sqrt(np.pi), rel=1e-9)
    assert told.score == pytest.approx(second.mean() - told.correction, abs=1e-12)
    assert (told.lower + told.upper) / 2 == pytest.approx(told.score, abs=1e-9)
    other = line_of(board, "one").at["full"]
    assert (other.rank, other.folded_under, other.score) == (None, "two", pytest.approx(first.mean()))
    assert board.targets["full"].n_ranked == N_OTHERS + 1


def test_a_version_that_is_clearly_better_has_a_line_of_its_own():
    means, _ = simulated(2)
    better, _ = drawn(np.random.default_rng(3), 3.0, np.random.default_rng(2).normal(0, 1.5, N_TASKS))
    board = board_of(np.vstack([means[: N_OTHERS + 3], better]), ("v1", "v2", "v3", "v4"))
    best, other = standing(board, ("v1", "v2", "v3", "v4"))
    assert (best.agent, best.at["full"].correction) == ("v4", 0.0)
    assert best.at["full"].score == pytest.approx(better.mean())
    assert other.at["full"].correction > 0
    assert other.marks == ("versions",)


def unfinished(rows, names, n_run):
    """The board of the first version in full, and of the others that ran `n_run` of all tasks."""
    rows = rows.copy()
    rows[len(rows) - len(names) + 1 :, n_run:] = np.nan
    others = [f"a{i:02d}" for i in range(len(rows) - len(names))]
    asked = {i: np.ones(N_TASKS, bool) for i in range(len(others), len(rows))}
    return answer(owned(record_of(rows, submitted=[*asked], asked=asked, names=[*others, *names]), names))


def test_versions_that_were_taken_back_count_and_the_correction_is_by_hand():
    """Nothing of two is left: σ² is that of one run, p(1 − p)/100, and the best of three gains 3/(2√π)·σ."""
    means = simulated(1)[0][: N_OTHERS + 1]
    score = means[-1].mean()
    board = board_of(means, ("one",), n_taken_back=2)
    at = line_of(board, "one").at["full"]
    noise = np.sqrt(score * (1 - score) / N_TASKS)
    assert at.correction == pytest.approx(1.5 / np.sqrt(np.pi) * noise, rel=1e-9)
    assert at.score == pytest.approx(score - at.correction, abs=1e-12)
    assert "one (2 more versions: −" in text(board)
    assert board_of(means, ("one",)).agents[-1].at["full"].correction == 0.0


@pytest.mark.parametrize("about", [{"took_back": True}, {"withheld": "resubmitted: it took outcomes back"}])
@pytest.mark.parametrize("n_passed", [0, 40])
def test_a_version_of_which_something_was_taken_back_counts_however_it_scores(about, n_passed):
    means = simulated(1)[0][: N_OTHERS + 2]
    means[-2, :40] = np.arange(40) % 10 < 8
    means[-1] = np.arange(N_TASKS) < n_passed
    means[-1, 40:] = np.nan
    asked = {i: np.ones(N_TASKS, bool) for i in (N_OTHERS, N_OTHERS + 1)}
    names = [*(f"a{i:02d}" for i in range(N_OTHERS)), "done", "left"]
    record = owned(record_of(means, submitted=[*asked], asked=asked, names=names), ("done", "left"))
    told = tuple(replace(one, **about) if one.name == "left" else one for one in record.about)
    at = line_of(answer(replace(record, about=told)), "done").at["full"]
    assert at.correction > 0
    assert at.score == pytest.approx(means[-2].mean() - at.correction)


def test_one_equal_outcome_of_another_version_takes_nothing_from_the_correction():
    """σ² is (0 + 99 s(1 − s))/100²."""
    means = simulated(1)[0][: N_OTHERS + 2]
    means[-1] = means[-2]
    board = unfinished(means, ("done", "left"), 1)
    score = means[-2].mean()
    noise = np.sqrt(99 * score * (1 - score)) / 100
    assert line_of(board, "done").at["full"].correction == pytest.approx(noise / np.sqrt(np.pi), rel=1e-9)


def test_an_unfinished_version_counts_and_the_correction_is_by_hand():
    """Both ran 40 of 100 tasks, and differ on 8, where s² is 1/2; a task that one ran takes s(1 − s)."""
    means = simulated(1)[0][: N_OTHERS + 2]
    means[-1] = means[-2]
    means[-1, :8] = 1 - means[-1, :8]
    board = unfinished(means, ("done", "left"), 40)
    at = line_of(board, "done").at["full"]
    score = means[-2].mean()
    noise = np.sqrt(8 / 2 + 60 * score * (1 - score)) / 100
    assert at.correction == pytest.approx(noise / np.sqrt(np.pi), rel=1e-9)
    assert at.score == pytest.approx(means[-2].mean() - at.correction, abs=1e-12)
    left = line_of(board, "left").at["full"]
    assert (left.rank, left.folded_under) == (None, "done")
    assert left.reason.startswith(
        "shares the line of done: not clearly worse; it has no result of 60 of the 100 tasks"
    )
    assert "done (1 more version: −" in text(board)


@pytest.mark.parametrize(("n_run", "n_passed", "counts"), [(40, 0, False), (9, 0, True), (40, 40, True)])
def test_an_unfinished_version_that_is_clearly_worse_does_not_count(n_run, n_passed, counts):
    means = simulated(1)[0][: N_OTHERS + 2]
    means[-2, :40] = np.arange(40) % 10 < 8
    means[-1] = np.arange(N_TASKS) < n_passed
    board = unfinished(means, ("done", "left"), n_run)
    assert (line_of(board, "done").at["full"].correction > 0) is counts
    assert (line_of(board, "left").at["full"].folded_under == "done") is counts


@pytest.mark.slow(each=True)
def test_who_finishes_the_luckiest_of_six_gains_nothing():
    """All six run 30 tasks, and the one with most passes runs the rest."""
    gains, plain = [], []
    for seed in range(24):
        means, truth = simulated(seed)
        six = means[N_OTHERS : N_OTHERS + 6]
        six = six[np.argsort(-six[:, :30].sum(axis=1), kind="stable")]
        board = unfinished(np.vstack([means[:N_OTHERS], six]), NAMES[:6], 30)
        gains.append(line_of(board, NAMES[0]).at["full"].score - truth)
        plain.append(six[0].mean() - truth)
    error = np.std(gains, ddof=1) / np.sqrt(len(gains))
    print(f"gain {100 * np.mean(gains):.2f} ± {100 * error:.2f} points; plainly {100 * np.mean(plain):.2f}")
    assert np.mean(plain) > 0.02
    assert np.mean(gains) < 2 * error


@pytest.mark.parametrize("about", [{"account": ""}, {"scaffold": "{name}"}, {"model": "{name}"}])
def test_what_an_operator_loaded_and_other_agents_stand_apart(about):
    means, _ = simulated(4)
    names = NAMES[:3]
    record = owned(
        record_of(means[: N_OTHERS + 3], names=[*(f"a{i:02d}" for i in range(N_OTHERS)), *names]), names
    )
    told = [
        replace(one, **{key: value.format(name=one.name) for key, value in about.items()})
        if one.name in names
        else one
        for one in record.about
    ]
    board = answer(replace(record, about=tuple(told)))
    assert len(standing(board, names)) == 3
    assert {line_of(board, name).at["full"].correction for name in names} == {0.0}


def test_versions_that_ran_the_subset_alone_are_joined_by_their_estimates():
    means, truth = simulated(5)
    board = answer(record_of(means[:N_OTHERS]))
    inside = np.isin([f"t{j:03d}" for j in range(N_TASKS)], board.subset.tasks)
    names = NAMES[:6]
    versions = np.where(inside, means[N_OTHERS : N_OTHERS + 6], np.nan)
    rows = np.vstack([means[:N_OTHERS], versions])
    apart = by_name(answer(record_of(rows, names=[*(f"a{i:02d}" for i in range(N_OTHERS)), *names])))
    board = board_of(rows, names)
    (line,) = standing(board, names)
    told = line.at["full"]
    assert told.estimated
    ends = [apart[name].at["full"] for name in names]
    variance = max(at.se**2 + at.score * (1 - at.score) / N_TASKS for at in ends)
    assert told.correction == pytest.approx(expected_maximum(6) * np.sqrt(variance), rel=1e-9)
    plain = max(line_of(board, name).at["full"].score for name in names if name != line.agent)
    assert plain <= told.score + told.correction
    assert told.lower < truth < told.upper


def test_it_is_shown_wherever_the_board_is():
    board = board_of(simulated(6)[0], NAMES)
    (line,) = standing(board, NAMES)
    points = percent(line.at["full"].correction)
    assert f"{line.agent} (19 more versions: −{points} points)" in text(board)
    assert "19 versions share another version's row." in " ".join(text(board).split())
    assert f"share the line of {line.agent}: not clearly better (95%)" in " ".join(
        text(board, explain=True).split()
    )
    assert legend(board, "full", columns(board))["versions"].startswith(
        f"Best of 20 versions that do not clearly differ. The score is lowered by {points} points to "
        "correct for picking the best of 20."
    )
    assert all(one.at["full"].rank_lower for one in board.agents if one.at["full"].rank)
    rows = {row["agent"]: row for row in map(flat, board.agents)}
    assert rows[line.agent]["full_correction"] == line.at["full"].correction > 0
    folded = [row for name, row in rows.items() if name in NAMES and name != line.agent]
    assert {row["full_folded_under"] for row in folded} == {line.agent}
    assert {row["full_rank"] for row in folded} == {None}
    assert Standings.of_plain(board.as_plain()) == board


def test_marks_are_those_of_the_target_that_the_board_ranks_by():
    """On some boards another version is the best on the subset."""
    seen = 0
    for seed in range(8):
        board = board_of(simulated(seed)[0], NAMES)
        (line,) = standing(board, NAMES)
        seen += bool(line.at["subset"].folded_under)
        assert {"versions", "folded"} & {*line.marks} == {"versions"}
        assert all(
            {"versions", "folded"} & {*line_of(board, name).marks} == {"folded"}
            for name in NAMES
            if name != line.agent
        )
    assert seen


def test_twenty_versions_climb_no_ranks(real_rows):
    """SWE-bench Verified: an agent like those of ranks 13 to 21, run 20 times."""
    rows = real_rows("swebench_verified_2023_2025")
    agents, tasks = sorted({row["agent"] for row in rows}), sorted({row["task"] for row in rows})
    at = {(row["agent"], row["task"]): float(row["outcome"]) for row in rows}
    means = np.array([[at.get((agent, task), 0.0) for task in tasks] for agent in agents])
    means = means[np.argsort(-means.mean(axis=1))]
    chance = means[12:21].mean(axis=0)
    versions = (np.random.default_rng(8).random((N_VERSIONS, len(tasks))) < chance).astype(float)
    before = 1 + int((means.mean(axis=1) > versions.mean(axis=1).max()).sum())
    (line,) = standing(board_of(np.vstack([means, versions]), NAMES), NAMES)
    truth = 1 + int((means.mean(axis=1) > chance.mean()).sum())
    print(f"rank {before} by the best of 20, {line.at['full'].rank} as one line, {truth} in truth")
    assert before <= truth - 5
    assert abs(line.at["full"].rank - truth) <= 2
