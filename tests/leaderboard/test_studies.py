"""Studies of a benchmark: stored once under the key of their data, never changed, linked by later boards."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.db import ProgrammingError, connection, transaction

from leaderboard.boards.models import Board
from leaderboard.boards.queries import head_of
from leaderboard.catalog.models import Benchmark, Policy, Role, Task
from leaderboard.errors import Conflict, Refusal
from leaderboard.operations import services
from leaderboard.operations.events import mail_body
from leaderboard.operations.models import Event, EventKind, Notification
from leaderboard.operations.services import NothingToRank, check_drift, measure_variance, recompute, validate
from leaderboard.studies import kinds as validations
from leaderboard.studies.kinds import ClosedFormsDiffer, project_error
from leaderboard.studies.models import DriftCheck, ValidationStudy, VarianceStudy
from selection import full_scores
from tests.leaderboard.desk import person
from tests.leaderboard.stored_validation import made, stored
from tests.refusals import refused
from tests.toys import (
    AS_OF,
    board_of,
    csv_text,
    graded,
    in_subset,
    lines_of,
    load_text,
    only,
    recomputed,
    rows_text,
)

LATER = AS_OF.replace(day=2)
SETTLE = {ValidationStudy: validate, VarianceStudy: measure_variance, DriftCheck: check_drift}


@pytest.fixture
def bench(db) -> Benchmark:
    board_of(csv_text(graded(10, 30)))
    return Benchmark.objects.get()


@pytest.mark.parametrize("model", SETTLE)
def test_a_study_is_stored_once_under_its_key(bench, quick, model):
    study, is_new = SETTLE[model](benchmark=bench, as_of=AS_OF)
    again, is_new_again = SETTLE[model](benchmark=bench, as_of=LATER)
    assert (is_new, is_new_again, again) == (True, False, study)
    assert again.created_at == AS_OF
    json.dumps(study.result, allow_nan=False)
    load_text(csv_text(graded(1, 30, seed=9, prefix="z")))
    newer, is_new = SETTLE[model](benchmark=bench, as_of=LATER)
    assert (is_new, newer.data_version) == (True, study.data_version + 1)
    assert model.objects.count() == 2
    Policy.objects.create(benchmark=bench, number=2, base_seed=1)
    assert SETTLE[model](benchmark=bench, as_of=LATER)[1]


def test_a_validation_stores_how_far_scikit_learn_is_from_it(bench, quick):
    found = validate(benchmark=bench, as_of=AS_OF)[0].result["refitted"]
    assert found["folds"] == 10  # each agent left out; there is but one scaffold
    assert found["difference"] == abs(found["closed_form"] - found["scikit_learn"]) < 1e-12


def test_a_falsified_closed_form_is_not_published_and_alerts_with_both_figures(bench, quick, monkeypatch):
    ada = person("ada@example.org", role=Role.OPERATOR, benchmark=bench)
    right = full_scores.ridge_predictions

    def falsified(*folds):
        return [found + 2e-8 for found in right(*folds)]

    with monkeypatch.context() as other:
        other.setattr(full_scores, "ridge_predictions", falsified)
        for _ in range(2):
            with pytest.raises(ClosedFormsDiffer, match="This validation is not published") as caught:
                validate(benchmark=bench, as_of=AS_OF)
    assert not ValidationStudy.objects.exists()
    (told,) = Event.objects.filter(kind=EventKind.DRIFT_ALERT)  # the same is told once
    evidence = told.payload["evidence"]
    assert evidence["closed_form"] - evidence["scikit_learn"] == pytest.approx(2e-8, rel=1e-4)
    mail = mail_body(told, ada.email, told.payload)
    for figure in ("closed_form", "scikit_learn"):
        assert repr(evidence[figure]) in str(caught.value)
        assert repr(evidence[figure]) in mail
    assert Notification.objects.get(event=told).email == ada.email
    assert validate(benchmark=bench, as_of=AS_OF)[1]


@pytest.mark.parametrize("model", SETTLE)
def test_a_study_is_append_only(bench, quick, model):
    SETTLE[model](benchmark=bench, as_of=AS_OF)
    for change in (lambda: model.objects.update(result={}), lambda: model.objects.all().delete()):
        with pytest.raises(ProgrammingError, match="Cannot update or delete"), transaction.atomic():
            change()


def test_the_command_says_when_nothing_changed(bench, quick, capsys):
    for command in ("validate", "variance", "drift"):
        call_command(command, "toy")
        assert "have not changed" not in capsys.readouterr().out
        call_command(command, "toy")
        assert capsys.readouterr().out.startswith("No change: the results are the same as at the last ")


@pytest.mark.parametrize("command", ["validate", "variance", "drift", "recompute"])
def test_refusals_are_named(db, command):
    with pytest.raises(CommandError, match="There is no benchmark 'nope'"):
        call_command(command, "nope")
    Benchmark.objects.create(slug="empty", title="Empty")
    Policy.objects.create(benchmark=Benchmark.objects.get(), number=1)
    with pytest.raises(CommandError, match="has no results yet"):
        call_command(command, "empty")
    Task.objects.create(benchmark=Benchmark.objects.get(), name="t")
    with pytest.raises(NothingToRank):
        recompute(benchmark=Benchmark.objects.get(), as_of=AS_OF)


@pytest.mark.parametrize(
    "outcomes",
    [
        {"solo": "1011001110"},
        {"a": "x" * 10, "b": "x" * 10},
        {f"a{i:02d}": "1" * 12 for i in range(16)},
        {f"a{i:02d}": "10" * 6 for i in range(16)},
        {f"a{i:02d}": "0" * 11 + str(i % 2) for i in range(16)},
        graded(4, 12),
    ],
    ids=["one agent", "all invalid", "all pass", "all alike", "unsuited", "four agents"],
)
def test_odd_benchmarks_are_studied_without_nan(db, quick, outcomes):
    load_text(csv_text(outcomes))
    recomputed()
    for settle in SETTLE.values():
        study, _ = settle(benchmark=Benchmark.objects.get(), as_of=AS_OF)
        json.dumps(study.result, allow_nan=False)
    variance = VarianceStudy.objects.get().result
    assert variance["available"] or variance["reason"]


@pytest.mark.django_db(transaction=True)
def test_two_at_once_store_one(quick):
    load_text(csv_text(graded(10, 30)))
    benchmark = Benchmark.objects.get()
    recompute(benchmark=benchmark, as_of=AS_OF)

    def run(settle):
        try:
            return settle(benchmark=benchmark, as_of=AS_OF)[0].pk
        finally:
            connection.close()

    for model, settle in SETTLE.items():
        with ThreadPoolExecutor(3) as pool:
            assert len(set(pool.map(run, [settle] * 3))) == 1
        assert model.objects.count() == 1


def test_a_later_board_links_the_latest_studies(bench, quick):
    first = Board.objects.get()
    assert (first.validation, first.variance) == (None, None)
    validation, _ = validate(benchmark=bench, as_of=AS_OF)
    variance, _ = measure_variance(benchmark=bench, as_of=AS_OF)
    second, is_new = recompute(benchmark=bench, as_of=AS_OF)
    assert (is_new, second.data_version) == (True, first.data_version)  # a new study alone
    assert (second.validation, second.variance) == (validation, variance)
    assert recompute(benchmark=bench, as_of=AS_OF) == (second, False)
    load_text(csv_text(graded(1, 30, seed=9, prefix="z")))
    assert recomputed().validation == validation
    newest, _ = validate(benchmark=bench, as_of=AS_OF)
    assert recomputed().validation == newest


def test_studies_by_other_estimators_are_not_linked(bench, quick, monkeypatch):
    from leaderboard.studies import services as keeping

    monkeypatch.setattr(keeping, "ESTIMATOR_VERSION", 1)
    validate(benchmark=bench, as_of=AS_OF)
    load_text(csv_text(graded(1, 30, seed=9, prefix="z")))
    assert recomputed().validation is None


def test_validation_holds_what_the_command_line_of_the_core_prints(bench, quick):
    result = validate(benchmark=bench, as_of=AS_OF)[0].result
    assert {"agents", "agents_in_file", "tasks", "subset", "protocols"} <= set(result)
    loao = result["protocols"]["loao"]
    assert {"available", "reason", "n_folds", "n_skipped", "k_mean", "strategies"} <= set(loao)
    figures = loao["strategies"]["mid_range"]
    assert {"rho", "tau", "pairs_correct", "skill", "n", "coverage", "se"} <= set(figures)


def test_the_stored_validation_of_the_tests_has_the_present_form():
    """Else: python -m tests.leaderboard.stored_validation."""
    present = made(protocols=("loao", "temporal"), strategies=("mid_range",))
    kept = stored()
    assert kept.keys() == present.keys()
    assert kept["subset"] == present["subset"]
    for name, protocol in present["protocols"].items():
        assert kept["protocols"][name].keys() == protocol.keys()
    figures = present["protocols"]["loao"]["strategies"]["mid_range"]
    assert kept["protocols"]["loao"]["strategies"]["mid_range"].keys() == figures.keys()


def test_validation_is_asked_with_the_rules_of_the_policy(bench, monkeypatch):
    from selection.standings import validating

    asked = {}

    def seen(table, **rest):
        asked.update(rest)
        raise validations_refusal("no need")

    validations_refusal = services.CoreError
    monkeypatch.setattr(validating, "validate", seen)
    Policy.objects.create(
        benchmark=bench, number=2, band_lo=0.2, band_hi=0.8, strategy="spread", base_seed=5, hysteresis=0.05
    )
    with refused(Refusal, "cannot_compute", match="no need"):
        validate(benchmark=bench, as_of=AS_OF)
    rule = asked["band_rule"]
    assert (rule.lo, rule.hi, rule.hysteresis) == (0.2, 0.8, 0.05)
    assert (asked["base_seed"], asked["policy_strategy"]) == (5, "spread")
    assert validations.ValidationStudy.objects.count() == 0


# ------------------------------------------------------------------------------------------------ variance


def crossed(*, n_agents=6, n_tasks=20, prompts=("p1", "p2", "p3"), judges=("j1", "j2"), runs=("r1", "r2")):
    """Every agent under every prompt, judge and run, with effects of agent:run and agent:prompt."""
    rng = np.random.default_rng(4)
    chance = np.clip(
        rng.uniform(0.2, 0.8, n_agents)[:, None, None, None]
        + rng.uniform(-0.3, 0.3, n_tasks)[:, None, None]
        + rng.normal(0, 0.1, (n_agents, 1, len(prompts), 1))
        + rng.normal(0, 0.1, (n_agents, 1, 1, len(runs))),
        0.02,
        0.98,
    )
    return [
        {
            "agent": f"a{i}",
            "task": f"t{j:02d}",
            "prompt_variant": prompt,
            "judge": judge,
            "run": run,
            "outcome": int(rng.random() < chance[i, j, p, r]),
        }
        for i in range(n_agents)
        for j in range(n_tasks)
        for p, prompt in enumerate(prompts)
        for judge in judges
        for r, run in enumerate(runs)
    ]


def test_a_variance_study_counts_groups_of_tasks_that_are_drawn_together(db, capsys):
    rows = [row | {"group": f"g{int(row['task'][1:]) % 10}"} for row in crossed()]
    load_text(rows_text(rows))
    benchmark = recomputed().benchmark
    study, _ = measure_variance(benchmark=benchmark, as_of=AS_OF)
    assert (study.result["groups"]["role"], study.result["groups"]["n_groups"]) == ("cluster", 10)
    asked = {"study": study, "estimand": "domain", "sensitivity": "exclude"}
    now, more = project_error(design={}, **asked), project_error(design={"N": 40}, **asked)
    assert (now["design"]["C"], more["design"]["C"]) == (10, 10)
    assert more["shares"]["group"] * more["variance"] == pytest.approx(
        now["shares"]["group"] * now["variance"]
    )
    call_command("variance", "toy")
    assert "sampled as whole groups: 10 groups" in capsys.readouterr().out
    Policy.objects.create(benchmark=benchmark, number=2, groups="none")
    alone, _ = measure_variance(benchmark=benchmark, as_of=AS_OF)
    assert alone.result["groups"] is None
    with refused(Conflict, "cannot_project", match="none are drawn together"):
        project_error(study=alone, design={"C": 20}, estimand="domain", sensitivity="exclude")


def test_a_variance_study_feeds_the_errors_of_the_next_board(db):
    """A panel of judges is fixed: by how much they differ is no error."""
    load_text(rows_text(crossed()))
    before = recomputed()
    assert len(head_of(before).not_measured) == 3  # run, prompt, judge; two runs are two trials
    study, _ = measure_variance(benchmark=before.benchmark, as_of=AS_OF)
    facets = study.result["facets"]
    assert set(facets) == {"run", "prompt", "judge"}
    assert facets["run"]["with_agent"] > 0
    assert study.result["fixed"]["judge[j2]"] != 0
    after = recomputed()  # on the same data
    assert after.data_version == before.data_version
    assert head_of(after).not_measured == ()
    old, new = (lines_of(board)["a2"].at["full"].se for board in (before, after))
    added = (
        facets["run"]["with_agent"] / 2
        + facets["prompt"]["with_agent"] / 3
        + facets["judge"]["with_agent"] / 2
        + facets["prompt"]["main"] / 3
    )
    assert new**2 == pytest.approx(old**2 + added, rel=1e-9)


def test_what_was_not_varied_is_named(db):
    load_text(rows_text(crossed(prompts=("p1",), runs=("r1",))))
    study, _ = measure_variance(benchmark=recomputed().benchmark, as_of=AS_OF)
    told = study.result["not_measured"]
    assert any(words.startswith("prompt") for words in told)
    assert "repeated full runs (none are labelled)" in told
    assert not any(words.startswith("judge") for words in told)
    words = " ".join(head_of(recomputed()).not_measured)
    assert "judge" not in words
    assert "prompt" in words


def test_settings_that_do_not_count_feed_the_study_all_the_same(db):
    load_text(rows_text(crossed()))
    benchmark = Benchmark.objects.get()
    counted = [{"prompt_variant": "p1", "judge": "j1"}]
    Policy.objects.create(benchmark=benchmark, number=2, counted_settings=counted)
    recomputed()
    study, _ = measure_variance(benchmark=benchmark, as_of=AS_OF)
    assert study.result["levels"]["prompt"] == 3
    assert {line.n_trials for line in lines_of(recomputed()).values()} == {40}


def test_another_judge_of_the_same_trial_is_no_second_trial(db):
    load_text(rows_text(crossed(prompts=("p1",), runs=("r1",))))
    assert lines_of(recomputed())["a1"].icc["reason"]


# --------------------------------------------------------------------------------------------------- drift


def states(check):
    return {monitor["name"]: monitor for monitor in check.result["monitors"]}


def test_without_a_subset_there_is_nothing_to_drift(db):
    load_text(csv_text(graded(4, 20)))
    check, _ = check_drift(benchmark=recomputed().benchmark, as_of=AS_OF)
    assert check.subset is None
    assert check.result["monitors"] == []
    assert check.result["reason"]


def test_a_promise_is_judged_by_the_full_run_that_follows(db):
    load_text(csv_text(graded(20, 60)))
    board = recomputed()
    subset = in_subset(board)
    marks = graded(2, 60, seed=8)
    kept, broken = marks["a01"], only("1" * 60, subset).replace(".", "0")
    load_text(csv_text({"kept": only(kept, subset), "broken": only(broken, subset)}), as_of=LATER)
    promised = {name: line.at["full"] for name, line in lines_of(recomputed()).items()}
    rest = {f"t{j:02d}" for j in range(60)} - set(subset)
    load_text(csv_text({"kept": only(kept, rest), "broken": only(broken, rest)}), as_of=LATER)
    truth = {name: line.at["full"] for name, line in lines_of(recomputed()).items()}
    check, _ = check_drift(benchmark=board.benchmark, as_of=LATER)
    missed = [
        name
        for name in ("broken", "kept")
        if not promised[name].lower <= truth[name].score <= promised[name].upper
    ]
    assert missed == ["broken"]
    assert states(check)["calibration"]["evidence"]["missed"] == missed
    assert states(check)["calibration"]["reason"].startswith("1 of 2 intervals missed")
    assert states(check)["rank fidelity"]["reason"].startswith("0 full runs")  # they did not come complete


def test_full_runs_that_came_complete_feed_rank_fidelity(db):
    load_text(csv_text(graded(15, 60)))
    board = recomputed()
    load_text(csv_text(graded(12, 60, seed=3, prefix="n")), as_of=LATER)
    recomputed()
    check, _ = check_drift(benchmark=board.benchmark, as_of=LATER)
    fidelity = states(check)["rank fidelity"]
    assert " in 12 full runs, " in fidelity["reason"]
    assert fidelity["evidence"]["rho_null"] is not None


def test_a_resubmission_is_no_new_agent(db):
    load_text(csv_text(graded(15, 60)))
    Policy.objects.create(benchmark=Benchmark.objects.get(), number=2, duplicates="latest")
    board = recomputed()
    load_text(
        csv_text(graded(15, 60)).replace(",1,1,1\n", ",2,1,1\n").replace(",1,0,1\n", ",2,0,1\n"), as_of=LATER
    )
    recomputed()
    check, _ = check_drift(benchmark=board.benchmark, as_of=LATER)
    assert states(check)["rank fidelity"]["reason"].startswith("0 full runs")
