"""Single steps of an adaptive assignment by a frozen study, beside the walk that takes all at once."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from analytics.flat_file import read
from analytics.record import Record
from selection.adaptive import looks_of, prepared, walk
from selection.adaptive_steps import Frozen, step
from selection.adaptive_study import adaptive_study
from selection.given import Adaptive
from selection.standings import chosen_for
from selection.standings.choice import training
from tests.toys import AS_OF, csv_text, graded

N, M = 20, 40


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    path = tmp_path_factory.mktemp("steps") / "past.csv"
    path.write_text(csv_text(graded(N, M)))
    return Record.from_flat(read(path, as_of=AS_OF))


@pytest.fixture(scope="module")
def plain(record):
    return adaptive_study(record)


def walked(study, outcomes, *, active=None, missing=()):
    """Take steps until one says that it is enough; return the positions in order and the last step."""
    place = {name: j for j, name in enumerate(study.tasks)}
    active = set(study.tasks) if active is None else {study.tasks[j] for j in np.flatnonzero(active)}
    known = [None if j in missing else outcome for j, outcome in enumerate(outcomes.tolist())]
    asked, means = [], {}
    while True:
        found = step(study, asked=asked, means=means, active=active)
        if found.done:
            return np.array([place[name] for name in asked], np.intp), found
        assert found.waiting == ()
        asked += found.batch
        waiting = step(study, asked=asked, means=means, active=active)
        assert (waiting.waiting, waiting.batch, waiting.done) == (found.batch, (), False)
        means |= {name: known[place[name]] for name in found.batch}


def test_what_is_frozen_is_json_and_comes_back(plain):
    again = Frozen.from_plain(json.loads(json.dumps(plain, allow_nan=False)))
    assert again.looks == looks_of(M)
    assert again.calibration.n == N
    assert again.stop.half_width == 0.05


@pytest.mark.parametrize("seed", range(4))
def test_steps_go_the_way_of_the_walk(record, plain, seed):
    outcomes = np.random.default_rng(seed).integers(0, 2, M).astype(float)
    way = walk(prepared(training(record), np.arange(N)), outcomes)
    asked, last = walked(Frozen.from_plain(plain), outcomes)
    whole = np.concatenate([np.sort(batch) for batch in way.batches])
    assert asked.tolist() == whole[: asked.size].tolist()
    look = way.looks[last.look - 1]
    assert (last.k, last.score) == (look.k, pytest.approx(look.score))
    assert last.se == pytest.approx(plain["scale"][last.look - 1] * look.se)
    half = plain["quantile"] * last.se
    assert last.upper == pytest.approx(min(last.score + half, 1.0))
    assert half <= 0.05 or last.k == looks_of(M)[-1]


def test_the_score_is_unbiased_and_its_interval_holds_for_agents_like_the_past_ones(plain):
    """240 newcomers of the same kind: 95% ± 2.8, and the past ones' 19 or 20 of 20 say no more."""
    study, held, errors = Frozen.from_plain(plain), [], []
    rng = np.random.default_rng(5)
    difficulties = np.linspace(-1.5, 1.5, M)
    for ability in rng.uniform(-1.5, 1.5, 240):
        outcomes = (rng.random(M) < 1 / (1 + np.exp(difficulties - ability))).astype(float)
        _, last = walked(study, outcomes)
        held.append(last.lower <= outcomes.mean() <= last.upper)
        errors.append(last.score - outcomes.mean())
    assert np.mean(held) > 0.9
    assert abs(np.mean(errors)) < 3 * np.std(errors) / np.sqrt(len(errors)) + 0.01


def test_invalid_outcomes_stay_in_the_rest_and_are_not_asked_again(plain):
    outcomes = np.ones(M)
    first = walked(Frozen.from_plain(plain), outcomes)[0][:2]
    asked, last = walked(Frozen.from_plain(plain), outcomes, missing=first)
    assert len(set(asked.tolist())) == asked.size
    assert last.score < walked(Frozen.from_plain(plain), outcomes)[1].score


def test_retired_tasks_are_neither_asked_for_nor_counted(plain):
    study, outcomes = Frozen.from_plain(plain), np.ones(M)
    active = np.ones(M, bool)
    active[walked(study, outcomes)[0][:3]] = False
    asked, last = walked(study, outcomes, active=active)
    assert active[asked].all()
    assert last.done
    few = np.zeros(M, bool)
    few[:5] = True
    asked, last = walked(study, outcomes, active=few)
    assert sorted(asked.tolist()) == [0, 1, 2, 3, 4]
    assert (last.done, last.reason) == (True, "no task is left that could be asked for")


@pytest.mark.parametrize("n_agents", [13, 18, 19])
def test_a_board_that_does_not_carry_it_has_the_reason(tmp_path, n_agents):
    path = tmp_path / "few.csv"
    path.write_text(csv_text(graded(n_agents, 20)))
    found = adaptive_study(Record.from_flat(read(path, as_of=AS_OF)))
    assert (found["available"], found["agents"]) == (False, n_agents)
    assert f"there are {n_agents - 1}" in found["reason"]


def test_terminal_bench_is_refused(real_data):
    record = Record.from_flat(read(real_data / "terminal_bench_core_011.csv.gz", as_of=AS_OF))
    found = adaptive_study(record)
    assert (record.n_agents, found["available"]) == (13, False)
    assert found["reason"] == (
        "adaptive assignment needs 19 past agents that ran every task (not counting the one being assigned); "
        "there are 6"
    )


def test_a_step_imports_nothing_that_fits():
    code = (
        "import sys, selection.adaptive_steps;"
        "heavy = {'scipy.stats', 'scipy.optimize', 'sklearn', 'pandas', 'joblib'};"
        "print(sorted(heavy & sys.modules.keys()))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


def test_agents_of_one_study_share_a_calibration_of_their_own(record):
    told = {
        record.table.agents[i]: Adaptive(study, 20, "chosen", 10, 0.5, 0.4, 0.6, 0.02)
        for i, study in enumerate([(3, 1), (3, 1), (9, 1)])
    }
    told["a03"] = Adaptive((3, 1), 20, "under way")
    incomplete = chosen_for.marked(_on_the_way(record), told)
    found = chosen_for.estimates(incomplete, told)
    assert [found[i].calibration for i in range(3)] == [2, 2, 3]
    assert {one.df for one in found.values()} == {19.0}
    assert 3 not in found
    assert chosen_for.estimates(chosen_for.marked(record, told), told) == {}  # who ran all is measured


def test_a_copy_that_ran_all_tasks_is_measured_too(record):
    """It teaches nothing, and is not complete; its score is its own."""
    told = {record.table.agents[0]: Adaptive((3, 1), 20, "chosen", 10, 0.5, 0.4, 0.6, 0.02)}
    copied = replace(record, complete=np.arange(record.n_agents) > 0)
    assert chosen_for.estimates(chosen_for.marked(copied, told), told) == {}


def _on_the_way(record):
    n = record.n_agents
    return replace(record, operator=np.zeros(n, bool), completed=np.full(n, -1))
