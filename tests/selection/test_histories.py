"""The ways of assignment over a history: the subset alone, full runs, and S given or chosen anew."""

import json
from dataclasses import replace

import numpy as np
import pytest

from selection.bands import tasks_in_band
from selection.cli import main
from selection.errors import SelectionError
from selection.staged.histories import in_full, on_subset, walked
from selection.staged.model import estimate, fit
from selection.staged.replay import replay
from selection.staged.study import AssignmentRule, others
from selection.staged.text import fallen, replay_row
from selection.staged.walks import Staging, is_drawn
from tests.refusals import refused
from tests.selection.test_staged import complete, simulated


def test_on_the_subset_the_first_run_everything_and_the_others_s_unless_drawn():
    outcomes = simulated(24, 40)
    agents = complete(outcomes)
    found = on_subset(agents, range(24), Staging(subset_from=15))
    s = tasks_in_band(outcomes[:15].mean(axis=0), 15)
    assert found.subset.tolist() == s.tolist()
    drawn = [i for i in range(15, 24) if is_drawn(0, agents.names[i], 0.2)]
    assert [i for i in range(24) if found.n_run[i] == 40] == [*range(15), *drawn]
    assert {*found.n_run[[i for i in range(15, 24) if i not in drawn]].tolist()} == {s.size}
    for walk in found.walks[15:]:
        assert walk.batches[0].tolist() == s.tolist()
        assert walk.is_drawn == (walk.agent in drawn)
        assert sorted(np.concatenate(walk.batches).tolist()) == (
            list(range(40)) if walk.agent in drawn else s.tolist()
        )
    assert all(walk.published is None for walk in found.walks[:15])


@pytest.mark.parametrize(("n_vouched", "grows"), [(24, True), (15, False), (4, True)])
def test_who_is_not_vouched_for_tells_no_errors_in_a_replay_either(n_vouched, grows):
    agents = replace(complete(simulated(24, 40)), vouched=np.arange(24) < n_vouched)
    found = walked(agents, range(24), Staging(staged_from=15, draw_share=1.0))
    degrees = [walk.fit.scale.degrees for walk in found.walks[15:]]
    assert degrees[0] == 4 + 15
    assert degrees[-1] == 4 + (23 if grows else 15)


def test_what_is_published_on_the_subset_is_the_models_completion_of_it():
    outcomes = simulated(17, 40)
    found = on_subset(complete(outcomes), range(17), Staging(subset_from=15))
    model, s = fit(outcomes[:15]), found.subset
    seen = np.full(40, np.nan)
    seen[s] = outcomes[15, s]
    assert found.walks[15].published.score == pytest.approx(
        estimate(model, seen, model.next_mean).score, abs=1e-8
    )
    measured = found.n_run == 40
    assert found.board[measured] == pytest.approx(found.truth[measured])
    assert (found.board[~measured] != found.truth[~measured]).any()


def test_where_no_band_suits_everybody_runs_everything():
    rule = Staging(lo=0.501, hi=0.502, widening=False)  # no share of 15 to 20 agents lies between
    found = on_subset(complete(simulated(20, 30)), range(20), rule)
    assert found.n_run.tolist() == [30] * 20
    assert found.board.tolist() == found.truth.tolist()


def test_full_runs_save_nothing_and_are_the_truth():
    agents = complete(simulated(20, 40))
    found = in_full(agents, range(20), Staging())
    assert found.board.tolist() == agents.scores.tolist()
    told = replay(agents, assignment="full")
    assert (told.saved, told.pairs.value, told.best_five, told.regret) == (0.0, 1.0, 1.0, 0.0)
    assert told.coverage is None


def test_a_subset_that_is_given_is_where_everybody_begins():
    agents, given = complete(simulated(24, 60)), np.arange(0, 60, 2)
    found = walked(agents, range(24), Staging(), subset=given)
    assert found.subset.tolist() == given.tolist()
    for walk in found.walks[5:]:
        assert np.isin(walk.batches[0], given).sum() == 12  # all but the audit tasks, which are outside
    alone = on_subset(agents, range(24), Staging(), subset=given)
    assert all(walk.batches[0].tolist() == given.tolist() for walk in alone.walks[15:])


def test_a_subset_chosen_anew_is_the_band_of_those_that_have_come():
    outcomes = simulated(24, 60, rising=4.0)
    found = on_subset(complete(outcomes), range(24), Staging(), reselected=True)
    assert found.subset is None
    first, last = found.walks[15].batches[0], found.walks[23].batches[0]
    assert first.tolist() == tasks_in_band(outcomes[:15].mean(axis=0), 15).tolist()
    assert last.tolist() != first.tolist()
    kept = walked(complete(outcomes), range(24), Staging())
    anew = walked(complete(outcomes), range(24), Staging(), reselected=True)
    assert anew.n_run[:15].tolist() == kept.n_run[:15].tolist()


def test_as_many_agents_as_run_everything_first_are_too_few():
    agents = complete(simulated(15, 30))
    with refused(SelectionError, "no_replay", match="needs 16 agents that ran all tasks; there are 15"):
        replay(agents, assignment="subset")
    with refused(SelectionError, "no_replay", match="needs 16"):
        replay(agents, Staging(staged_from=15))


def test_what_could_take_the_place_of_a_rule():
    staged = others(AssignmentRule(Staging(podium=3)))
    assert [one.words for one in staged] == [
        "podium 3, ranking tasks chosen again after each agent",
        "podium 5",
        "full runs",
    ]
    assert [one.words for one in others(AssignmentRule(Staging(), "subset"))] == [
        "ranking tasks only, ranking tasks chosen again after each agent",
        "podium 3",
        "full runs",
    ]


def replayed(word, pairs):
    figures = {
        "saved": 0.3,
        "pairs": {"value": pairs, "se": 0.01},
        "best_five": 0.8,
        "regret": 0.0,
        "coverage": None,
    }
    return {"rule": "podium 3", "figures": figures, "verdict": {"word": word}, "reason": ""}


def test_a_verdict_falls_below_mostly_from_mostly_or_better_alone():
    good, bad = {"replay": replayed("mostly", 0.95)}, {"replay": replayed("not yet", 0.85)}
    assert fallen(None, bad)["state"] == "ok"
    assert fallen(good, good)["state"] == "ok"
    assert fallen(good, {"replay": replayed("mostly (few)", 0.93)})["state"] == "ok"
    assert fallen(good, {})["state"] == "insufficient"
    found = fallen(good, bad | {"others": [replayed("yes", 0.97)]})
    assert found["state"] == "alert"
    assert "was mostly (saved 30.0%; pairs in order 95.0% (SE 1.0)" in found["reason"]
    assert "is not yet (saved 30.0%; pairs in order 85.0% (SE 1.0)" in found["reason"]
    assert "podium 3 (saved 30.0%; pairs in order 97.0% (SE 1.0)" in found["advice"]


def test_the_command_takes_a_subset_and_the_way_of_assignment(real_data, tmp_path, capsys):
    file, names = str(real_data / "hal_gaia.csv.gz"), tmp_path / "s.txt"
    alone_by = ["replay", file, "--assignment", "subset", "--seeds", "2", "--json"]
    assert main(alone_by) == 0
    alone = json.loads(capsys.readouterr().out)
    assert 0.1 < alone["saved"] < 0.4
    assert main([*alone_by, "--subset-from", "20"]) == 0
    assert json.loads(capsys.readouterr().out)["saved"] < alone["saved"]
    names.write_text("no task\n")
    assert main(["replay", file, "--subset", str(names)]) == 2
    assert "unknown task 'no task'" in capsys.readouterr().err
    names.write_text("\n")
    assert main(["replay", file, "--subset", str(names)]) == 2
    assert "has no task name" in capsys.readouterr().err
    assert replay_row({"figures": None, "verdict": None, "reason": "few"}) == {
        "verdict": "not known yet: few"
    }
