"""The pages of validation and sources of error."""

import html
import re
from datetime import UTC, datetime
from uuid import uuid4

import numpy as np
import pytest

from leaderboard.boards.queries import standings_of
from leaderboard.catalog.models import Benchmark, Policy
from leaderboard.operations.models import JobStatus, Lane
from leaderboard.operations.runs import Due, beat, begin, begin_queued, end, queue
from leaderboard.operations.services import measure_variance, recompute, validate
from leaderboard.pages.uncertainty import halving, measured, scales_text
from leaderboard.studies.answers import validated, why_text, words
from leaderboard.studies.models import ESTIMATOR_VERSION, ValidationStudy, VarianceStudy
from leaderboard.terminal.printing import variance_text
from selection.standings.verdict import verdict
from tests.leaderboard.stored_validation import store
from tests.leaderboard.stored_validation import stored as the_stored
from tests.seen import text_of
from tests.toys import csv_text, ladder, load_text, rows_text

AS_OF = datetime(2026, 6, 1, 12, 5, tzinfo=UTC)
PAGES = ("validity", "uncertainty")


def cells(page, table):
    """The text of a table's body, by row."""
    (body,) = re.findall(rf'<table class="{table}">.*?<tbody>(.*?)</tbody>', page, re.S)
    rows = re.findall(r"<tr>(.*?)</tr>", body, re.S)
    strip = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S) for row in rows]
    return [[" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in row] for row in strip]


@pytest.fixture
def toy(db):
    load_text(csv_text(ladder(16, 20)))
    return Benchmark.objects.get()


@pytest.fixture
def repeated(db):
    """Six agents with two trials, the second of which differs here and there."""
    head, *rows = csv_text(ladder(6, 20)).splitlines()
    again = [
        row.replace(",1,1,1", f",2,{int(j % 3 > 0)},1").replace(",1,0,1", ",2,0,1")
        for j, row in enumerate(rows)
    ]
    load_text("\n".join([head, *rows, *again]) + "\n")
    return Benchmark.objects.get()


def stored(model, benchmark, **result):
    """A study with results of our own."""
    return model.objects.create(
        benchmark=benchmark,
        policy=benchmark.policies.get(),
        data_version=benchmark.data_version,
        estimator_version=ESTIMATOR_VERSION,
        result=result,
        created_at=AS_OF,
    )


@pytest.mark.parametrize("page", PAGES)
def test_before_the_first_study_it_says_when_there_will_be_one(client, toy, django_assert_num_queries, page):
    with django_assert_num_queries(4 if page == "validity" else 3):  # the benchmark; no study; runs
        response = client.get(f"/b/toy/{page}")
    assert response.status_code == 200
    assert "after the first results" in text_of(response)
    assert "manage.py" not in text_of(response)


@pytest.mark.parametrize(("page", "kind"), [("validity", "validate"), ("uncertainty", "variance")])
def test_a_study_that_waits_for_a_job_is_said(client, toy, page, kind):
    assert "yet. It" not in text_of(client.get(f"/b/toy/{page}"))
    other = begin(kind="reselect", lane=Lane.LONG, due=Due(toy), claim=uuid4(), as_of=AS_OF)
    assert "yet. It starts after another long job." in text_of(client.get(f"/b/toy/{page}"))
    queue(kind=kind, lane=Lane.LONG, by=None, reason="now", as_of=AS_OF, benchmark=toy)
    assert "yet. It is queued." in text_of(client.get(f"/b/toy/{page}"))
    end(other, status=JobStatus.DONE, as_of=AS_OF)
    begin_queued(lane=Lane.LONG, claim=uuid4(), as_of=AS_OF)
    assert "yet. It is running." in text_of(client.get(f"/b/toy/{page}"))


def test_a_validation_that_runs_or_failed_is_said(client, toy):
    run = begin(kind="validate", lane=Lane.LONG, due=Due(toy), claim=uuid4(), as_of=AS_OF)
    beat(run, n_done=12, n_total=57, as_of=AS_OF)
    text = text_of(client.get("/b/toy/validity"))
    assert "A validation is running since 2026-06-01 12:05 UTC: 12 of 57 steps done, last update" in text
    beat(run, n_done=57, n_total=57, as_of=AS_OF)
    text = text_of(client.get("/b/toy/validity"))
    assert "57 of 57 steps done, final calculations are running, last update" in text
    end(run, status=JobStatus.FAILED, error="secret detail", as_of=AS_OF)
    text = text_of(client.get("/b/toy/validity"))
    assert "The last validation failed at 2026-06-01 12:05 UTC." in text
    assert "secret" not in text
    store(toy)
    assert "The last validation" not in text_of(client.get("/b/toy/validity"))


@pytest.mark.parametrize("page", ["", *(f"/{page}" for page in PAGES)])
def test_the_sections_lead_to_each_other(client, toy, page):
    recompute(benchmark=toy, as_of=AS_OF)
    page_ = client.get(f"/b/toy{page}").content.decode()
    for address in ("/b/toy", *(f"/b/toy/{name}" for name in PAGES)):
        assert (f'<a href="{address}" aria-current="page">' in page_) == (address == f"/b/toy{page}")
        assert f'href="{address}"' in page_


@pytest.mark.parametrize("page", PAGES)
def test_changed_data_are_told(client, toy, page):
    store(toy)
    measure_variance(benchmark=toy, as_of=AS_OF)
    assert "The data have changed" not in text_of(client.get(f"/b/toy/{page}"))
    Benchmark.objects.update(data_version=9)
    assert "The data have changed" in text_of(client.get(f"/b/toy/{page}"))


def test_validity_takes_three_queries(client, toy, django_assert_num_queries):
    store(toy)
    with django_assert_num_queries(3):  # the benchmark; its latest study; the study's policy
        client.get("/b/toy/validity")


def test_validity_shows_the_stored_figures(client, toy):
    result = store(toy).result
    page = client.get("/b/toy/validity").content.decode()
    protocols = {row[0].split("  ")[0]: row for row in cells(page, "protocols")}
    figures = result["protocols"]["loao"]["strategies"]["mid_range"]
    row = next(row for name, row in protocols.items() if name.startswith("Leave one agent out"))
    shown = [f"{figures[name]:.3f} ({figures['se'][name]:.3f})" for name in ("pairs_correct", "skill")]
    assert row[1:3] == shown
    assert row[8] == str(figures["n"])
    loso = next(row for name, row in protocols.items() if name.startswith("Leave one scaffold out"))
    assert html.unescape(loso[1]) == f"Not available: {result['protocols']['loso']['reason']}."


def test_validity_says_how_far_it_is_from_scikit_learn(client, toy):
    stored(ValidationStudy, toy, **the_stored(), refitted={"difference": 4.4e-15, "folds": 85})
    assert "checked against scikit-learn: largest difference 4e-15 in 85 folds." in text_of(
        client.get("/b/toy/validity")
    )


def test_validity_says_what_the_board_says_of_the_subset(client, toy):
    told = verdict(store(toy).result, "mid_range")
    text = text_of(client.get("/b/toy/validity"))
    assert f"Validation {told.word.capitalize()}, for the order of agents. " in text
    assert why_text(told) in text
    assert why_text(told) in told.sentence


def test_no_page_takes_a_coin_for_chance(client, toy):
    """The subset is part of the full score, so that pairs agree even where agents do not differ."""
    store(toy)
    text = text_of(client.get("/b/toy/validity"))
    of_pairs, _, _ = text.partition("Tasks of other strategies")
    assert not re.search(r"chance|coin|½", text)
    assert "50%" not in of_pairs
    assert validated.LEGEND["Pairs in order"] in text


def test_what_is_not_available_says_why(client, toy):
    result = store(toy).result
    text = text_of(client.get("/b/toy/validity"))
    for protocol in result["protocols"].values():
        for what, note in validated.notes(protocol["strategies"]).items():
            assert f"{what} : {note}." in text
    figures = result["protocols"]["loao"]["strategies"]["random"]
    assert figures["coverage"] is None
    assert "–not available" in client.get("/b/toy/validity").content.decode().replace(
        '</span><span class="unseen">', ""
    )


def test_every_strategy_is_shown_and_the_one_in_use_first(client, toy):
    result = store(toy).result
    page = client.get("/b/toy/validity").content.decode()
    first = page.index('<details class="fold" id="loao">')
    rows = cells(page[first : page.index("</details>", first)], "strategies")
    assert rows[0][0] == "Mid-range in use"
    assert [row[0] for row in rows[1:]] == [
        validated.label(name) for name in validated.STRATEGIES if name != "mid_range"
    ]
    assert len(rows) == len(result["protocols"]["loao"]["strategies"]) == 9


def test_an_unsuited_benchmark_says_so(client, db):
    load_text(csv_text(dict.fromkeys("abcdefg", "0" * 20) | {"h": "1" * 20}))
    study, _ = validate(benchmark=Benchmark.objects.get(), as_of=AS_OF)
    text = text_of(client.get("/b/toy/validity"))
    assert f"No ranking tasks: {study.result['subset']['reason']}. Every agent runs all tasks." in text
    assert text.count("Every agent runs all tasks") == 1
    assert "How to read" not in text
    assert "every strategy" not in text
    assert not re.search("<table|<svg[^>]*plot", client.get("/b/toy/validity").content.decode())


def test_an_unsuited_benchmark_says_what_a_new_agent_runs_in_batches(client, db):
    load_text(csv_text(dict.fromkeys("abcdefg", "0" * 20) | {"h": "1" * 20}))
    toy = Benchmark.objects.get()
    Policy.objects.create(benchmark=toy, number=2, assignment="staged")
    study, _ = validate(benchmark=toy, as_of=AS_OF)
    asked = "A new agent first runs tasks with a pass rate near 50%, then more tasks in batches."
    assert f"No ranking tasks: {study.result['subset']['reason']}. {asked}" in text_of(
        client.get("/b/toy/validity")
    )


def test_each_scaffold_is_told_where_there_are_several(client, toy):
    figures = {"pairs_correct": 0.9, "skill": 0.8, "coverage": None, "n": 11}
    protocol = {
        "available": True,
        "reason": "",
        "n_folds": 11,
        "n_skipped": 0,
        "k_mean": 9.0,
        "strategies": {"mid_range": figures},
        "per_scaffold": {"<b>Loop": {"mid_range": figures}},
    }
    subset = {"suited": True, "size": 9, "lo": 0.3, "hi": 0.7}
    result = {"agents": 11, "agents_in_file": 12, "tasks": 20, "subset": subset}
    stored(ValidationStudy, toy, **result, protocols={"within_scaffold": protocol})
    (row,) = cells(client.get("/b/toy/validity").content.decode(), "scaffolds")
    assert row[:3] == ["&lt;b&gt;Loop", "0.900", "0.800"]
    assert row[-1] == "11"


def test_uncertainty_takes_two_queries(client, repeated, django_assert_num_queries):
    measure_variance(benchmark=repeated, as_of=AS_OF)
    with django_assert_num_queries(2):  # the benchmark; its latest study
        client.get("/b/toy/uncertainty")


def test_components_are_shown_as_they_are_stored(client, repeated):
    study, _ = measure_variance(benchmark=repeated, as_of=AS_OF)
    response = client.get("/b/toy/uncertainty")
    rows = twin(response.content.decode(), "variance")
    for row, part in zip(rows, study.result["components"], strict=True):
        assert row[1] == words.sentence(part["meaning"]) + (" Estimated as 0." if part["boundary"] else "")
        assert row[2:4] == [f"{part['variance']:.5f}", f"{100 * part['share']:.1f}%"]
    text = text_of(response)
    assert study.result["method"] in text
    assert "did not converge" not in text
    assert all(source in text for source in study.result["not_measured"])


def test_a_fit_that_did_not_converge_says_so(client, repeated):
    study, _ = measure_variance(benchmark=repeated, as_of=AS_OF)
    stored(VarianceStudy, repeated, **study.result | {"converged": False, "message": "100 steps"})
    assert "The fit did not converge : 100 steps." in text_of(client.get("/b/toy/uncertainty"))


def test_what_more_trials_do_is_told_for_both_estimands(client, repeated):
    study, _ = measure_variance(benchmark=repeated, as_of=AS_OF)
    response = client.get("/b/toy/uncertainty")
    first = study.result["projections"][0]
    for row, step in zip(cells(response.content.decode(), "steps"), study.result["projections"], strict=True):
        assert row[0] == str(step["n_trials"])
        for cell, name in zip(row[1:], ("finite", "domain"), strict=True):
            assert cell == f"{100 * step[name]:.1f} {100 * step[name] / first[name]:.1f}%"


def test_advice_compares_what_costs_the_same_over_measured_facets_alone(client, repeated):
    measure_variance(benchmark=repeated, as_of=AS_OF)
    text = text_of(client.get("/b/toy/uncertainty"))
    assert "For tasks like these, one agent's error bar is 29% smaller with twice as many tasks and " in text
    assert "For these tasks" not in text
    assert "The effect of more prompts and judges was not measured." in text
    assert "two prompts instead" not in text
    assert "+2 prompts" not in text


def test_the_judges_are_told_as_a_sensitivity(client, db):
    """j2 is 20 points milder on average: σ of the two effects is half of the difference.

    Both scored the one trial of each task, which says nothing of trials.
    """
    rows = [
        {"agent": f"a{i}", "task": f"t{j:02d}", "judge": judge, "outcome": outcome}
        for i in range(6)
        for j in range(20)
        for judge, passed in (("j1", j < 6 + i), ("j2", j < 10 + i))
        for outcome in [int(passed)]
    ]
    load_text(rows_text(rows))
    study, _ = measure_variance(benchmark=Benchmark.objects.get(), as_of=AS_OF)
    text = text_of(client.get("/b/toy/uncertainty"))
    assert "The means of the 2 judges have a standard deviation of 10.0 points" in text
    assert "run-to-run noise separate from agent × task (judges scored the same one trial of a task)" in text
    assert study.result["agents"] == []


def test_more_judges_of_the_same_trials_are_advised_and_offered(client, db):
    rng = np.random.default_rng(3)
    rows = []
    for i, j, trial in np.ndindex(6, 20, 2):
        passed = rng.random() < 0.3 + 0.06 * i
        for judge in ("j1", "j2"):
            outcome = int(passed ^ (rng.random() < 0.1))
            one = {"agent": f"a{i}", "task": f"t{j:02d}", "trial": trial + 1, "judge": judge}
            rows.append(one | {"outcome": outcome})
    load_text(rows_text(rows))
    measure_variance(benchmark=Benchmark.objects.get(), as_of=AS_OF)
    response = client.get("/b/toy/uncertainty?tasks=40&estimand=domain")
    text = text_of(response)
    assert "The effect of more prompts was not measured." in text
    assert re.search(r"error bar under one judge is .*% smaller with two judges instead of one", text)
    assert "With 1 trial of each of 40 tasks and 2 judges, the standard error" in text
    assert 'name="judges"' in response.content.decode()
    assert "Judges of one trial" in text
    assert "mean of 2" in text


def test_each_agents_total_error_stands_beside_the_naive_one(client, repeated):
    study, _ = measure_variance(benchmark=repeated, as_of=AS_OF)
    rows = cells(client.get("/b/toy/uncertainty").content.decode(), "agents")
    told = [agent for agent in study.result["agents"] if not agent["reason"]]
    for row, agent in zip(rows, told, strict=True):
        assert row[0].startswith(agent["agent"])
        assert row[1:4] == [
            f"{100 * agent['theta']:.1f}",
            f"{100 * agent['se']:.1f}",
            f"{100 * agent['naive_se']:.1f}",
        ]
        assert row[4] == f"{agent['se'] / agent['naive_se']:.2f}"
        naive = np.sqrt(agent["theta"] * (1 - agent["theta"]) / agent["levels"]["N"])
        assert agent["naive_se"] == pytest.approx(naive)


def test_of_one_agent_no_noise_is_told(client, toy):
    described = {"n_rows": 1, "levels": {"agent": 1, "task": 1}, "agents": []}
    stored(VarianceStudy, toy, available=False, reason="random term agent: one level", **described)
    text = text_of(client.get("/b/toy/uncertainty"))
    assert "One agent so far. The sources of error need at least two." in text
    assert "1 result of 1 agent on 1 task" in text


def test_an_unavailable_study_says_why(client, toy):
    refused = {"agent": "<b>", "reason": "2 prompts; 3 are needed"}
    described = {"n_rows": 40, "levels": {"agent": 2, "task": 20}, "agents": [refused]}
    stored(VarianceStudy, toy, available=False, reason="every outcome is <1>", **described)
    response = client.get("/b/toy/uncertainty")
    assert "Not available: every outcome is <1>." in text_of(response)
    assert "<b> : 2 prompts; 3 are needed." in text_of(response)
    assert "<table" not in response.content.decode()


def twin(source, name):
    """The rows of the table under a drawing."""
    (body,) = re.findall(rf'<details id="table-{name}">.*?<tbody>(.*?)</tbody>', source, re.S)
    return [
        re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S)
        for row in re.findall(r"<tr>(.*?)</tr>", body, re.S)
    ]


def test_each_test_is_a_dot_with_its_interval_beside_random_tasks(client, toy):
    result = store(toy).result
    rows = {row[0]: row for row in twin(client.get("/b/toy/validity").content.decode(), "validity")}
    by = {named.label: name for name, named in validated.TESTS.items()}
    told = {name: result["protocols"][name] for name in by.values() if result["protocols"][name]["available"]}
    assert {by[label] for label in rows} == set(told)
    for label, (_, value, lower, upper, at_random, n) in rows.items():
        of, beside = (told[by[label]]["strategies"][name] for name in ("mid_range", "random"))
        correct, error = of["pairs_correct_full"], validated.error(of, "pairs_correct_full")
        ends = max(0, correct - 1.96 * error), min(1, correct + 1.96 * error)
        shown = [f"{100 * v:.1f}%" for v in (correct, *ends, beside["pairs_correct_full"])]
        assert [value, lower, upper, at_random] == shown
        assert n == str(of["n"])


def test_intervals_that_held_stand_against_what_they_claim(client, toy):
    result = store(toy).result
    source = client.get("/b/toy/validity").content.decode()
    for label, held, n in twin(source, "coverage"):
        (name,) = (name for name, named in validated.TESTS.items() if named.label == label)
        of = result["protocols"][name]["strategies"]["mid_range"]
        assert (held, n) == (f"{100 * of['coverage']:.1f}%", str(of["n_intervals"]))
    assert ">95%</text>" in source
    assert "intervals of the board use all agents" in source


@pytest.mark.parametrize(
    ("page", "name"),
    [("validity", "validity"), ("validity", "coverage"), ("validity", "widths"), ("validity", "overlap")],
)
def test_a_drawing_of_the_page_is_the_one_at_its_address(client, toy, page, name):
    assert client.get(f"/b/toy/plots/{name}.svg").status_code == 404
    store(toy)
    drawn = client.get(f"/b/toy/plots/{name}.svg")
    assert drawn["Content-Type"] == "image/svg+xml"
    assert drawn.content.decode() in client.get(f"/b/toy/{page}").content.decode()


def test_bands_of_other_widths_stand_beside_the_one_in_use_and_in_their_tables(client, toy):
    store(toy)
    page = seen_in(client, "widths")
    widths = [(row[0], row[1]) for row in page]
    assert widths[3] == ("30% to 70% (in use)", "8")
    assert [row for row, _ in widths[:3]] == ["45% to 55%", "40% to 60%", "35% to 65%"]
    assert ("Random", "40.0%", "on average") in seen_in(client, "overlap")
    # of the folds, each has tasks of its own
    assert "The tasks counted are chosen from all agents" in text_of(client.get("/b/toy/validity"))


def seen_in(client, name):
    """The table beside a drawing of the trust page."""
    page = html.unescape(client.get("/b/toy/validity").content.decode())
    (table,) = re.findall(rf'<details id="table-{name}">.*?<tbody>(.*?)</tbody>', page, re.S)
    rows = re.findall(r"<tr>(.*?)</tr>", table, re.S)
    return [tuple(re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S)) for row in rows]


def test_a_validation_of_before_shows_no_other_widths(client, toy):
    study = stored(ValidationStudy, toy, **{k: v for k, v in the_stored().items() if k != "bands"})
    assert study.pk
    text = text_of(client.get("/b/toy/validity"))
    assert "Other limits" not in text
    assert client.get("/b/toy/plots/widths.svg").status_code == 404


def steps(*values):
    """Standard errors on these tasks with one trial, two, …."""
    return [{"n_trials": n, "finite": value} for n, value in enumerate(values, 1)]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        # All of it is trials: ¼ of the variance takes four.
        (
            (0.04, 0.04 / 2**0.5),
            ("With four trials per task the error bar is half as wide as with one.", "4.0", "2.0 with four"),
        ),
        # 1 + 7/R = 8/4: seven.
        ((8**0.5 / 100, 4.5**0.5 / 100), ("With seven trials per task", "2.8", "1.4 with seven")),
        # 1 + 7.1/R = 8.1/4: 6.93, so seven.
        ((8.1**0.5 / 100, 4.55**0.5 / 100), ("With seven trials per task", "2.8", "1.4 with seven")),
        # 1 + 4/R = 5/4: sixteen.
        ((5**0.5 / 100, 3**0.5 / 100), ("With 16 trials per task", "2.2", "1.1 with 16")),
        # 3 + 1/R = 4/4: none.
        ((0.0004, 0.0004 / 2**0.5), ("With four trials per task", "under 0.05", "and under 0.05 with four")),
        ((0.02, 3.5**0.5 / 100), ("More trials per task cannot halve", "2.0", "with one trial per task")),
    ],
)
def test_how_many_trials_halve_the_error_bar(values, said):
    first, then = halving(steps(*values), n_tasks=20)
    start, before, after = said
    assert first.startswith(start)
    assert f"The standard error on all 20 tasks is {before} points" in then
    assert after in then


@pytest.fixture
def prompted(db):
    """Eight agents, each of which one of two prompts suits by far: of 20 tasks, 2 trials under each."""
    rows = [
        {"agent": f"a{i}", "task": f"t{j:02d}", "prompt_variant": prompt, "trial": trial, "outcome": outcome}
        for i in range(8)
        for j in range(20)
        for v, prompt in enumerate(("plain", "terse"))
        for trial in (1, 2)
        for outcome in [int((7 * j + 3 * i + trial) % 20 < 6 + i + 5 * ((i + v) % 2))]
    ]
    load_text(rows_text(rows))
    return Benchmark.objects.get()


def test_the_headline_and_the_table_hold_what_prompts_do(client, prompted):
    """By hand from the stored components: two prompts leave an error that no number of trials halves."""
    study, _ = measure_variance(benchmark=prompted, as_of=AS_OF)
    parts = {part["name"]: part["variance"] for part in study.result["components"]}
    kept = (parts["prompt"] + parts["agent:prompt"]) / 2
    kept += (parts["task:prompt"] + parts["agent:task:prompt"]) / 40
    se = [(kept + parts["Residual"] / (40 * n)) ** 0.5 for n in (1, 2, 3, 4)]
    assert kept > 0.25 * se[0] ** 2
    response = client.get("/b/toy/uncertainty?trials=4")
    text = text_of(response)
    assert (
        "More trials per task cannot halve the error bar. The standard error on all 20 tasks "
        f"under each of 2 prompts is {100 * se[0]:.1f} points with one trial per task."
    ) in text
    table = cells(response.content.decode(), "steps")
    assert [row[1].split()[0] for row in table[:4]] == [f"{100 * one:.1f}" for one in se]
    assert f"is {100 * se[3]:.1f} points. " in text
    assert "than with one trial of each of 20 tasks and 2 prompts." in text_of(
        client.get("/b/toy/uncertainty?prompts=1")
    )
    assert "Included: noise of trials and prompts. Not measured: judges and full runs." in text
    assert "all tasks, under each of 2 prompts, in points" in variance_text(study)


def test_the_sources_of_variance_are_one_bar_of_which_some_cancel(client, repeated):
    study, _ = measure_variance(benchmark=repeated, as_of=AS_OF)
    source = client.get("/b/toy/uncertainty").content.decode()
    rows = {row[0]: row[1:] for row in twin(source, "variance")}
    parts = {part["name"]: part for part in study.result["components"]}
    names = {
        "agent": "Agents",
        "task": "Task difficulty",
        "agent:task": "Agent × task",
        "Residual": "Run-to-run noise",
    }
    assert list(rows) == [names[name] for name in parts]
    for name, part in parts.items():
        _, variance, share, affects = rows[names[name]]
        assert (share, variance) == (f"{100 * part['share']:.1f}%", f"{part['variance']:.5f}")
        assert affects == ("no" if name == "task" else "yes")
    page = text_of(client.get("/b/toy/uncertainty"))
    assert "With four trials per task the error bar is half as wide as with one." in page
    assert client.get("/b/toy/plots/variance.svg").content.decode() in source


def test_without_repeated_trials_noise_is_not_told_apart(client, toy):
    measure_variance(benchmark=toy, as_of=AS_OF)
    response = client.get("/b/toy/uncertainty?trials=3")
    assert "Run-to-run noise is not known separately." in text_of(response)
    assert "Run-to-run noise and agent × task" in response.content.decode()
    assert "These variances do not allow this design" in text_of(response)
    # What is not known apart is in the error on these tasks, where agent × task is none.
    for estimand, bound in (("finite", "at most "), ("domain", "")):
        source = client.get(f"/b/toy/uncertainty?tasks=40&estimand={estimand}")
        ((*_, error, interval, _),) = cells(source.content.decode(), "projected")
        assert (error.startswith("at most"), interval.startswith("at most")) == (bool(bound),) * 2
        assert f" is {bound}{error.removeprefix('at most ')}. That is " in text_of(source)


def test_what_if_is_answered_with_a_sentence_and_a_row(client, repeated):
    study, _ = measure_variance(benchmark=repeated, as_of=AS_OF)
    parts = {part["name"]: part["variance"] for part in study.result["components"]}
    response = client.get("/b/toy/uncertainty?trials=4&tasks=40&estimand=domain")
    se = ((parts["task"] + parts["agent:task"]) / 40 + parts["Residual"] / 160) ** 0.5
    assert (
        "With 4 trials of each of 40 tasks, the standard error on tasks like these "
        f"is {100 * se:.1f} points. That is "
    ) in text_of(response)
    ((trials, tasks, error, interval, _),) = cells(response.content.decode(), "projected")
    assert (trials, tasks) == ("4", "40")
    assert (error, interval) == (f"{100 * se:.1f} points", f"±{196 * se:.1f} points")
    assert text_of(response).count("The effect of more prompts and judges was not measured.") == 1
    finite = text_of(client.get("/b/toy/uncertainty?trials=4"))
    assert "50% smaller than with one trial of each of 20 tasks." in finite


@pytest.mark.parametrize(
    "asked", ["trials=0", "trials=-1", "trials=x", "trials=1000001", "tasks=%00", "tasks=1.5"]
)
def test_what_is_no_number_is_told(client, repeated, asked):
    measure_variance(benchmark=repeated, as_of=AS_OF)
    response = client.get(f"/b/toy/uncertainty?{asked}&estimand=elsewhere")
    assert response.status_code == 200
    assert ": a whole number from 1 to 1,000,000." in text_of(response)
    assert "projected" not in response.content.decode()


def test_what_if_takes_no_more_queries(client, repeated, django_assert_num_queries):
    measure_variance(benchmark=repeated, as_of=AS_OF)
    with django_assert_num_queries(2):  # the benchmark; its latest study
        client.get("/b/toy/uncertainty?trials=4")


def test_one_sentence_where_the_logit_scale_names_another_source():
    """Studies of graded outcomes, and those stored before there was a logit part, have none."""
    shares = {"linear": {"task": 0.45, "Residual": 0.55}, "logit": {"task": 0.74, "Residual": 0.26}}
    logit = {"components": {"task": 9.3, "agent": 4.1}, "shares": shares, "sentence": "They differ."}
    assert scales_text(logit, "agent × task") == (
        "The largest part of the variance of one agent's mean is “Run-to-run noise and agent × task” "
        "(55%). On the logit scale it is “Task difficulty” (74%). That scale stretches differences near 0 "
        "and 100%."
    )
    for none in ({}, {"available": False, "reason": "r"}, logit | {"sentence": ""}):
        assert scales_text(none) == ""


def published(benchmark):
    """What the board says at `full`, by agent, after a study that it takes into account."""
    recompute(benchmark=benchmark, as_of=AS_OF)
    study, _ = measure_variance(benchmark=benchmark, as_of=AS_OF)
    board, _ = recompute(benchmark=benchmark, as_of=AS_OF)
    return {line.agent: line.at["full"] for line in standings_of(board).agents}, study


def trial(i, j, *, chance=0.0, **stated):
    """An outcome that depends on agent, task and trial as if by chance, the same at every call."""
    drawn = np.random.default_rng([i, j, *map(len, stated), stated.get("trial", 1)]).random()
    outcome = int(drawn < 0.1 + 0.06 * i + 0.02 * (j % 20) + chance)
    return {"agent": f"a{i}", "task": f"t{j:02d}", "outcome": outcome, **stated}


@pytest.fixture
def unequal(db):
    """Eight agents with one to four trials of each of 20 tasks."""
    load_text(
        rows_text(
            [trial(i, j, trial=u) for i in range(8) for j in range(20) for u in range(1, 2 + (i + 3 * j) % 4)]
        )
    )
    return Benchmark.objects.get()


def test_each_agent_stands_with_the_figures_of_the_board(client, unequal):
    """Unequal trials: the mean of task means, and the standard error that the board has."""
    on_board, study = published(unequal)
    rows = cells(client.get("/b/toy/uncertainty").content.decode(), "agents")
    assert len(rows) == 8
    for row, told in zip(rows, study.result["agents"], strict=True):
        at = on_board[told["agent"]]
        assert (told["theta"], told["se"]) == (at.score, at.se)
        assert row[1:3] == [words.percent(at.score), words.percent(at.se)]
        assert row[6] == "1–4"
        assert "not the board" not in row[0]
        assert f"The 95% interval is {100 * at.lower:.1f}% to {100 * at.upper:.1f}%." in row[0]


def test_each_agents_mean_is_that_of_its_task_means(unequal):
    """By hand from the outcomes alone."""
    _, study = published(unequal)
    for i, told in enumerate(study.result["agents"]):
        means = [
            np.mean([trial(i, j, trial=u)["outcome"] for u in range(1, 2 + (i + 3 * j) % 4)])
            for j in range(20)
        ]
        assert told["theta"] == pytest.approx(np.mean(means), abs=1e-12)


def test_each_agent_under_two_compared_prompts_has_the_boards_error(client, prompted):
    """The variance of prompts is that over all agents: one agent's two prompts tell next to nothing of it."""
    on_board, study = published(prompted)
    prompt = {part["name"]: part["variance"] for part in study.result["components"]}
    beyond = (prompt["prompt"] + prompt["agent:prompt"]) / 2
    assert beyond > 0.001
    for told in study.result["agents"]:
        at = on_board[told["agent"]]
        assert (told["theta"], told["se"]) == (at.score, at.se)
        assert told["se"] ** 2 > beyond
    text = text_of(client.get("/b/toy/uncertainty"))
    assert "2 prompts of one agent are too few to estimate its sources of error." in text
    assert not re.search(r"interval is −|interval is -", text)


def test_an_agent_with_more_than_the_board_compares_is_marked(client, db):
    """Two of eight agents ran a second prompt on half of the tasks; the board compares the first alone."""
    rows = [trial(i, j, trial=u, prompt_variant="plain") for i in range(8) for j in range(20) for u in (1, 2)]
    rows += [trial(i, j, trial=1, prompt_variant="terse", chance=0.3) for i in (1, 2) for j in range(10)]
    load_text(rows_text(rows))
    on_board, study = published(Benchmark.objects.get())
    shown = cells(client.get("/b/toy/uncertainty").content.decode(), "agents")
    for row, told in zip(shown, study.result["agents"], strict=True):
        is_pilot = told["agent"] in ("a1", "a2")
        assert told["on_board"] is not is_pilot
        assert ("not the board’s score: over all its trials" in row[0]) is is_pilot
        assert (told["theta"] == on_board[told["agent"]].score) is not is_pilot
        assert ("1 degree of freedom" in row[2]) is is_pilot
        assert not re.search(r"interval is -", told["paragraph"])


def test_of_an_older_study_the_one_number_of_trials_is_shown():
    told = {"agent": "a", "reason": "", "se": 0.04, "naive_se": 0.05, "levels": {"R": 3}}
    shown = [measured(one)["trials"] for one in (told, told | {"replicates": [1, 5]})]
    assert shown == ["3", "1–5"]


def test_judges_of_the_same_trials_are_shown_as_their_mean():
    told = {"agent": "a", "reason": "", "se": 0.04, "naive_se": 0.05, "levels": {"R": 3, "M": 1}}
    assert [measured(told | {"judges_averaged": n})["judges"] for n in (0, 2)] == ["1", "mean of 2"]
