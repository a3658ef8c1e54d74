"""All rows or none, and the same file twice is the same as once."""

import json
import re
from uuid import UUID

import pytest

from leaderboard.actions.operations import load_sentences
from leaderboard.catalog.models import Agent, Benchmark, Policy, Task
from leaderboard.catalog.services import AgentMismatch
from leaderboard.errors import Conflict, Faulty, Forbidden
from leaderboard.operations import naming
from leaderboard.operations.corrections import unload_latest, withdraw
from leaderboard.operations.loading import load
from leaderboard.operations.uploads import keep, preview, store
from leaderboard.submissions.models import Outcome, OutcomeDetail, Setting, StatusChange, Submission
from leaderboard.submissions.parsing.flat import read_outcomes
from leaderboard.submissions.queries import withheld
from tests.leaderboard.world import deliver, token
from tests.toys import AS_OF, HEAD, csv_text, flat_of, load_text

ROW = "Toy,a,Loop,M,2026-01-05"


def outcomes(**where):
    """{(agent, task, trial): (value, valid)} of what counts."""
    names = dict(Task.objects.values_list("id", "name"))
    agents = dict(Submission.objects.filter(status="accepted").values_list("id", "agent__name"))
    return {
        (agents[o.submission_id], names[o.task_id], o.trial): (o.value, o.valid)
        for o in Outcome.objects.filter(**where)
        if o.submission_id in agents
    }


def test_rows_arrive_as_they_are(db):
    load_text(f'{HEAD},valid\n{ROW},t 1/#"x,1,0.25,1\n'.replace('t 1/#"x', '"t 1/#""x"') + f"{ROW},t2,3,,0\n")
    assert outcomes() == {("a", 't 1/#"x', 1): (0.25, True), ("a", "t2", 3): (None, False)}
    submission = Submission.objects.get()
    assert (submission.n_outcomes, submission.n_invalid, submission.status) == (2, 1, "accepted")
    assert submission.received_at == AS_OF
    assert f"{submission.submitted_at:%Y-%m-%d}" == "2026-01-05"
    assert list(StatusChange.objects.values_list("status", "reason")) == [("accepted", "load")]


def test_the_same_file_again_changes_nothing(toy):
    text = csv_text(
        {
            a.name: "".join(str(int(outcomes()[a.name, f"t{j:02d}", 1][0])) for j in range(20))
            for a in toy.agents.all()
        }
    )
    before = Benchmark.objects.get().data_version, Submission.objects.count(), Outcome.objects.count()
    report = load_text(text)
    assert (report.n_new, report.n_same, report.n_submissions) == (0, 320, 0)
    assert (
        Benchmark.objects.get().data_version,
        Submission.objects.count(),
        Outcome.objects.count(),
    ) == before


def test_only_new_rows_of_a_grown_file_are_stored(db):
    load_text(csv_text({"a": "10", "b": "11"}))
    report = load_text(csv_text({"a": "101", "b": "11", "c": "000"}))
    assert (report.n_new, report.n_same, report.n_submissions, report.n_new_tasks) == (4, 4, 2, 1)
    assert len(outcomes()) == 8
    assert Benchmark.objects.get().data_version == 2


def test_row_order_does_not_matter(db):
    text = csv_text({"b": "0110", "a": "1010"})
    head, *rows = text.splitlines()
    load_text(text)
    assert load_text("\n".join([head, *reversed(rows)])).n_new == 0
    load_text("\n".join([head, *reversed(rows)]), slug="again")
    digests = (
        Submission.objects.order_by("agent__name").values_list("agent__name", "content_sha256").distinct()
    )
    assert len(digests) == 2


def test_a_contradiction_names_both_outcomes(db):
    load_text(csv_text({"a": "101"}))
    with pytest.raises(Faulty) as refusal:
        load_text(csv_text({"a": "1x0"}))
    first, second = map(str, refusal.value.faults)
    assert "row 2" in first
    assert "0 (invalid)" in first
    assert "stored as 0 for agent 'a', task 't01', trial 1" in first
    assert "row 3" in second
    assert "stored as 1" in second
    assert outcomes() == {("a", "t00", 1): (1, True), ("a", "t01", 1): (0, True), ("a", "t02", 1): (1, True)}


def test_replace_supersedes_and_carries_the_rest(db):
    head = f"{HEAD},cost_usd"
    load_text(f"{head}\n{ROW},t1,1,1,0.5\n{ROW},t2,1,1,0.6\n{ROW},t3,1,0,\n")
    report = load_text(f"{head}\n{ROW},t2,1,0,0.7\n{ROW},t4,1,1,0.8\n", replace=True)
    assert (report.n_new, report.n_replaced, report.n_submissions) == (1, 1, 1)
    assert outcomes() == {
        ("a", "t1", 1): (1, True),
        ("a", "t2", 1): (0, True),
        ("a", "t3", 1): (0, True),
        ("a", "t4", 1): (1, True),
    }
    old, new = Submission.objects.order_by("id")
    assert (old.status, new.status, new.replaces, new.n_outcomes) == ("superseded", "accepted", old, 4)
    assert list(old.status_changes.order_by("id").values_list("status", flat=True)) == [
        "accepted",
        "superseded",
    ]
    costs = dict(OutcomeDetail.objects.filter(submission_id=new.pk).values_list("task_id", "cost_usd"))
    names = dict(Task.objects.values_list("id", "name"))
    assert {names[task]: cost for task, cost in costs.items()} == {"t1": 0.5, "t2": 0.7, "t4": 0.8}


def test_replace_takes_new_costs_of_unchanged_results(db):
    head = f"{HEAD},cost_usd,input_tokens,note"
    load_text(f"{head}\n{ROW},t1,1,1,0.5,9,x\n{ROW},t2,1,1,0.6,9,\n{ROW},t3,1,0,,,x\n{ROW},t4,1,0,0.8,,\n")
    text = f"{ROW},t1,1,1,0.7,y\n{ROW},t2,1,1,,y\n{ROW},t3,1,0,0.1,\n{ROW},t4,1,1,0.8,\n"
    report = load_text(f"{HEAD},cost_usd,note\n{text}", replace=True)
    assert (report.n_replaced, report.n_remeasured, report.n_same) == (3, 2, 1)
    details = OutcomeDetail.objects.filter(submission_id=Submission.objects.latest("id").pk)
    names = dict(Task.objects.values_list("id", "name"))
    rows = details.order_by("task_id").values_list("task_id", "cost_usd", "n_input_tokens", "metadata")
    note = {"note": "x"}
    assert [(names[task], *rest) for task, *rest in rows] == [
        ("t1", 0.7, 9, note),
        ("t2", 0.6, 9, None),
        ("t3", 0.1, None, note),
        ("t4", 0.8, None, None),
    ]
    assert load_text(f"{HEAD},cost_usd,note\n{text}", replace=True).n_replaced == 0


def test_dry_run_tells_and_stores_nothing(db):
    report = load_text(csv_text({"a": "101"}), dry_run=True)
    assert (report.n_new, report.n_submissions, report.n_new_tasks) == (3, 1, 3)
    for model in (Benchmark, Task, Agent, Submission, Outcome):
        assert not model.objects.exists()


def test_each_run_is_a_submission_with_its_earliest_date(db):
    load_text(
        f"{HEAD},run\n"
        "Toy,a,Loop,M,2026-01-07,t1,1,1,r2\n"
        "Toy,a,Loop,M,2026-01-06,t2,1,1,r2\n"
        "Toy,a,Loop,M,2025-03,t1,1,1,r1\n"
        "Toy,b,Loop,M,,t1,1,1,r1\n"
    )
    said = Submission.objects.order_by("agent__name", "id").values_list(
        "agent__name", "submitted_at", "imprecise"
    )
    assert [(name, at and f"{at:%Y-%m-%d}", imprecise) for name, at, imprecise in said] == [
        ("a", "2025-03-01", True),
        ("a", "2026-01-06", False),
        ("b", None, True),
    ]
    assert set(Setting.objects.values_list("run", flat=True)) == {"r1", "r2"}


def test_details_are_kept_where_there_are_any(db):
    load_text(
        f"{HEAD},cost_usd,input_tokens,failure\n{ROW},t1,1,1,0.5,12.0,\n{ROW},t2,1,1,,,timeout\n{ROW},t3,1,1,,,\n"
    )
    details = OutcomeDetail.objects.order_by("task_id").values_list("cost_usd", "n_input_tokens", "metadata")
    assert list(details) == [(0.5, 12, None), (None, None, {"failure": "timeout"})]


def test_two_benchmarks_in_a_file(db):
    with pytest.raises(Faulty) as refusal:
        load_text(csv_text({"a": "1"}) + csv_text({"b": "1"}, benchmark="Other").splitlines()[1] + "\n")
    assert "2 benchmarks" in str(refusal.value.faults[0])
    assert not Benchmark.objects.exists()


def test_an_agent_cannot_become_another(db):
    load_text(csv_text({"a": "1"}))
    with pytest.raises(Conflict, match=r"'Loop'.*'Tree'"):
        load_text(csv_text({"a": "11"}).replace("Loop", "Tree"))
    assert len(outcomes()) == 1


BAD = {
    "outcome above 1": (f"{HEAD}\n{ROW},t1,1,1.2\n", "row 1", "outcome", "1.2", "0 to 1"),
    "not a number": (f"{HEAD}\n{ROW},t1,1,NaN\n", "row 1", "outcome", "NaN", "0 to 1"),
    "duplicate key": (f"{HEAD}\n{ROW},t1,1,1\n{ROW},t1,1,0\n", "row 2", "row 1"),
    "two scaffolds": (
        f"{HEAD}\n{ROW},t1,1,1\n{ROW.replace('Loop', 'Tree')},t2,1,1\n",
        "row 2",
        "Loop",
        "Tree",
    ),
    "a date in the future": (
        f"{HEAD}\n{ROW.replace('2026-01-05', '2027-01-05')},t1,1,1\n",
        "row 1",
        "future",
    ),
    "a task with a newline": (f'{HEAD}\n{ROW},"t\n1",1,1\n', "row 1", "task"),
    "a missing column": (f"{HEAD.replace(',outcome', '')}\nToy,a,Loop,M,2026-01-05,t1,1\n", "outcome"),
    "no rows": (f"{HEAD}\n", "row"),
    "an empty file": ("", "empty"),
    "65 columns": (
        ",".join([HEAD, *(f"m{i}" for i in range(57))]) + f"\n{ROW},t1,1,1" + "," * 57 + "\n",
        "64",
    ),
    "names that differ in case": (
        "\n".join([HEAD, *(f"Toy,{'agent'[:i].upper()}{'agent'[i:]},L,M,,t{i},1,1" for i in range(6))]),
        "agent",
        "AGENT",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_names_place_and_rule_and_stores_nothing(db, name):
    text, *expected = BAD[name]
    with pytest.raises(Faulty) as refusal:
        load_text(text)
    said = "\n".join(map(str, refusal.value.faults))
    for part in expected:
        assert part in said
    for model in (Benchmark, Task, Agent, Submission, Outcome):
        assert not model.objects.exists()


def test_a_name_with_quotes_and_slashes_comes_back_unchanged(db):
    name = 'it\'s "a/b" #1, ünïcode 🤖'
    load_text(f'{HEAD}\n{ROW},"{name.replace(chr(34), chr(34) * 2)}",1,1\n')
    assert Task.objects.get().name == name


@pytest.mark.parametrize(
    ("file", "n_agents", "n_tasks", "n_rows"),
    [
        ("hal_gaia", 32, 165, 5_609),
        ("terminal_bench_core_011", 13, 80, 5_200),
        ("swebench_lite_repeats_acr", 4, 300, 3_900),
    ],
)
def test_real_files_load(db, real_data, file, n_agents, n_tasks, n_rows):
    from django.core.management import call_command

    call_command("load", str(real_data / f"{file}.csv.gz"), benchmark="real")
    assert (Agent.objects.count(), Task.objects.count(), Outcome.objects.count()) == (
        n_agents,
        n_tasks,
        n_rows,
    )


def test_a_file_that_contradicts_another_one_of_the_same_load_names_it(db):
    files = {"one.csv": flat_of(csv_text({"a": "10"})), "two.csv": flat_of(csv_text({"a": ".1", "b": "1"}))}
    with pytest.raises(Faulty, match=r"^two\.csv contradicts one\.csv\. Nothing was stored") as refused:
        load(flat=files, slug="toy", as_of=AS_OF)
    second_run = "Is this a second run? Number it in the column trial, or label it in the column run."
    assert str(refused.value).endswith(second_run)
    (fault,) = refused.value.faults
    assert str(fault).startswith(
        "row 1, outcome \"1\": is in one.csv as 0 for agent 'a', task 't01', trial 1;"
    )
    load_text(csv_text({"b": "0"}))
    with pytest.raises(Faulty, match=r"^two\.csv contradicts one\.csv and stored results\."):
        load(flat=files, slug="toy", as_of=AS_OF)
    load(flat=files, slug="toy", as_of=AS_OF, replace=True)
    assert outcomes() == {("a", "t00", 1): (1, True), ("a", "t01", 1): (1, True), ("b", "t00", 1): (1, True)}


def test_a_contradiction_names_graded_outcomes_as_the_files_have_them(db):
    load_text(f"{HEAD}\n{ROW},t1,1,0.9\n{ROW},t2,1,0.1234567\n")
    with pytest.raises(Faulty) as refused:
        load_text(f"{HEAD}\n{ROW},t1,1,0.7\n{ROW},t2,1,1\n")
    wanted = 'row 1, outcome "0.7": is stored as 0.9 for', 'row 2, outcome "1": is stored as 0.1234567 for'
    assert all(map(str.startswith, map(str, refused.value.faults), wanted))


def test_a_lost_result_that_was_delivered_again_stays_when_its_file_is_corrected(db):
    """The first file lost t1, the second has it; the third corrects the first, or both."""
    head = f"{HEAD},valid,cost_usd\n"
    load_text(f"{head}{ROW},t1,1,,0,7\n{ROW},t2,1,1,1,2\n{ROW},t4,1,,0,5\n")
    load_text(f"{head}{ROW},t1,1,1,1,9\n{ROW},t3,1,1,1,3\n{ROW},t4,1,0,0,6\n")
    load_text(f"{head}{ROW},t2,1,0,1,2.5\n", replace=True)
    rows = {("a", "t1", 1): (1, True), ("a", "t2", 1): (0, True), ("a", "t3", 1): (1, True)}
    assert outcomes() == rows | {("a", "t4", 1): (0, False)}
    assert Submission.objects.filter(status="accepted").count() == 2

    load_text(f"{head}{ROW},t2,1,1,1,2\n{ROW},t3,1,0,1,3.5\n", replace=True)
    rows |= {("a", "t2", 1): (1, True), ("a", "t3", 1): (0, True)}
    assert outcomes() == rows | {("a", "t4", 1): (0, False)}
    live = Submission.objects.get(status="accepted")
    names = dict(Task.objects.values_list("id", "name"))
    costs = OutcomeDetail.objects.filter(submission_id=live.pk).values_list("task_id", "cost_usd")
    assert {names[task]: cost for task, cost in costs} == {"t1": 9, "t2": 2, "t3": 3.5, "t4": 6}


def test_what_waits_takes_the_place_of_no_lost_result(db):
    """Its owner delivers t1 again, under an embargo, and an operator corrects t2."""
    load_text(f"{HEAD},valid\n{ROW},t1,1,,0\n{ROW},t2,1,1,1\n")
    old = Submission.objects.get()
    late = Submission.objects.create(
        agent=old.agent, status="waiting", received_at=AS_OF, content_sha256=b"x", n_outcomes=1, n_invalid=0
    )
    rows = Outcome.objects.filter(task_id=Task.objects.get(name="t1").pk)
    (lost,) = rows.values("task_id", "setting_id", "trial")
    Outcome.objects.bulk_create([Outcome(submission_id=late.pk, value=1, valid=True, **lost)])
    load_text(f"{HEAD},valid\n{ROW},t2,1,0,1\n", replace=True)
    assert outcomes() == {("a", "t1", 1): (None, False), ("a", "t2", 1): (0, True)}
    assert Submission.objects.get(status="waiting") == late


def test_a_result_that_was_lost_twice_has_the_cost_of_the_later_loss(db):
    """The interface took the second loss, without a cost; both deliveries are corrected elsewhere."""
    load_text(f"{HEAD},valid,cost_usd\n{ROW},t1,1,,0,7\n{ROW},t2,1,1,1,2\n{ROW},t3,1,1,1,3\n")
    old = Submission.objects.get()
    again = Submission.objects.create(
        agent=old.agent, status="accepted", received_at=AS_OF, content_sha256=b"x", n_outcomes=2, n_invalid=1
    )
    tasks, setting = dict(Task.objects.values_list("name", "id")), Setting.objects.get().pk
    Outcome.objects.bulk_create(
        Outcome(
            submission_id=again.pk,
            task_id=tasks[name],
            setting_id=setting,
            trial=trial,
            value=value,
            valid=valid,
        )
        for name, trial, value, valid in (("t1", 1, None, False), ("t3", 2, 1, True))
    )
    load_text(f"{HEAD},valid\n{ROW},t2,1,0,1\n{ROW},t3,2,0,1\n", replace=True)
    live = Submission.objects.get(status="accepted")
    costs = OutcomeDetail.objects.filter(submission_id=live.pk).values_list("task_id", "cost_usd")
    assert dict(costs) == {tasks["t3"]: 3}
    assert outcomes()["a", "t1", 1] == (None, False)


def test_a_file_with_two_names_of_a_merged_agent_has_each_result_once(db):
    load_text(csv_text({"a": "11", "b": "..1", "c": "1"}))
    one, other = Agent.objects.get(name="a"), Agent.objects.get(name="b")
    naming.merge(agent=other, into=one, by=None, reason="same", as_of=AS_OF)
    before = Outcome.objects.count()
    text = csv_text({"a": "11.1", "b": "..11", "c": "1"})
    with pytest.raises(Faulty, match="has results of one agent twice") as refused:
        load_text(text)
    (fault,) = refused.value.faults
    assert str(fault) == (
        "row 5, agent \"b\": is the same agent as 'a', merged or renamed, and both have task 't03', trial 1; "
        "keep one of the two rows"
    )
    assert Outcome.objects.count() == before
    load_text(csv_text({"a": "11.1", "b": "..1", "c": "1"}))
    assert Outcome.objects.count() == before + 1


def test_metadata_is_json(db):
    load_text(f'{HEAD},note\n{ROW},t1,1,1,"say ""hi"", ü"\n')
    assert json.loads(json.dumps(OutcomeDetail.objects.get().metadata)) == {"note": 'say "hi", ü'}


def test_a_name_that_a_submitter_took_before_is_named_and_can_be_taken_over(db):
    load_text(csv_text({"a": "1010"}))
    eve, row = token("eve@example.org"), {"task": "t00", "trial": 1, "outcome": 1}
    deliver(eve, [row], {"name": "b", "scaffold": "Loop", "model": "Model b"})
    assert load_text(csv_text({"a": "1010"})).notes == ()
    text = csv_text({"a": "1010", "b": "1110"})
    theirs = "Submitters own 1 agent of this file and can add results: b (eve@example.org)."
    assert load_text(text).notes == (f"{theirs} Add --own to take them over.",)
    assert Agent.objects.get(name="b").owner == eve.user

    before = Benchmark.objects.get().data_version
    taken = "Taken over from their submitters: b (eve@example.org)."
    withdrawn = " Withdrawn: 1 submission. Earlier boards keep them."
    assert load_text(text, own=True).notes == (taken + withdrawn,)
    assert Agent.objects.get(name="b").owner is None
    assert Benchmark.objects.get().data_version > before
    assert {one.loaded for one in Submission.objects.filter(agent__name="b", status="accepted")} == {True}
    late = {"task": "t03", "trial": 2, "outcome": 0}
    with pytest.raises(Forbidden):
        deliver(eve, [late], {"name": "b", "scaffold": "Loop", "model": "Model b"})
    assert load_text(text, own=True).notes == ()


def test_a_name_that_a_submitter_took_with_other_results_or_another_scaffold_is_taken_over(db):
    load_text(csv_text({"a": "1010"}))
    eve, mallory = token("eve@example.org"), token("mallory@example.org")
    described = {"scaffold": "Loop", "model": "Model b"}
    deliver(eve, [{"task": "t00", "trial": 1, "outcome": 0}], {"name": "b", **described})
    other = {"name": "c", "scaffold": "Other", "model": "Model b"}
    deliver(mallory, [{"task": "t00", "trial": 1, "outcome": 0}], other)
    with pytest.raises(Faulty, match=r"Submitters own b \(eve@example.org\). To take them over: --own."):
        load_text(csv_text({"b": "1110"}), replace=False)
    with pytest.raises(AgentMismatch, match=r"mallory@example.org owns the name\. Add --own"):
        load_text(csv_text({"c": "1110"}), replace=False)
    load_text(csv_text({"b": "1110", "c": "1110"}), own=True)
    assert not StatusChange.objects.filter(submission__loaded=False, status="withdrawn", reason="")
    agents = Agent.objects.filter(name__in="bc").values_list("owner", "scaffold__name")
    assert set(agents) == {(None, "Loop")}
    counting = Submission.objects.filter(agent__name__in="bc", status="accepted")
    assert [(one.loaded, one.n_outcomes) for one in counting] == [(True, 4), (True, 4)]


def test_what_is_taken_over_has_no_past(db):
    """Its owner had taken results back, and had others under a name that was merged."""
    load_text(csv_text({"a": "1010"}))
    eve, described = token("eve@example.org"), {"scaffold": "Loop", "model": "Model b"}
    worse = deliver(eve, [{"task": "t00", "trial": 1, "outcome": 0}], {"name": "B", **described})
    withdraw(uuid=UUID(worse["id"]), token=eve, reason="oops", as_of=AS_OF)
    deliver(eve, [{"task": "t00", "trial": 1, "outcome": 1}], {"name": "B", "weights": "closed", **described})
    deliver(eve, [{"task": "t01", "trial": 2, "outcome": 0}], {"name": "C", "scaffold": "Loop", "model": "M"})
    benchmark = Benchmark.objects.get()
    one, other = (Agent.objects.get(name=name) for name in "BC")
    assert withheld(benchmark).keys() == {one.pk}
    naming.merge(agent=other, into=one, by=None, reason="same", as_of=AS_OF)
    load_text(csv_text({"b": "1110"}), own=True)
    agent = Agent.objects.get(pk=one.pk)
    assert (agent.name, agent.weights, agent.owner) == ("b", "", None)
    assert not withheld(benchmark)
    counting = Submission.objects.filter(status="accepted", agent__in=(one, other))
    assert [(row.loaded, row.n_outcomes) for row in counting] == [(True, 4)]


def test_a_name_that_reads_like_a_taken_one_is_renamed(db):
    load_text(csv_text({"a": "1010"}))
    eve, row = token("eve@example.org"), {"task": "t00", "trial": 1, "outcome": 0}
    deliver(eve, [row], {"name": "\uff21da 2", "scaffold": "Loop", "model": "Model Ada 2"})
    with pytest.raises(AgentMismatch, match=r"Or rename it: manage\.py rename toy OLD NEW"):
        load_text(csv_text({"Ada 2": "1110"}), own=True)
    naming.rename(agent=Agent.objects.get(owner=eve.user), name="Ada 2", by=None, reason="ours", as_of=AS_OF)
    load_text(csv_text({"Ada 2": "1110"}), own=True)
    assert Agent.objects.get(name="Ada 2").owner is None


def test_a_judge_that_a_submitter_made_up_does_not_keep_missing_results_undecided(db):
    load_text(csv_text({"x": "10" * 10}), missing="auto")
    eve = token("eve@example.org")
    made_up = [{"task": f"t{j:02d}", "trial": 1, "outcome": j % 2, "judge": "mine"} for j in range(20)]
    deliver(eve, made_up, {"name": "e", "scaffold": "Loop", "model": "Model e"})
    text = csv_text(dict.fromkeys("abcdfghi", "xx" + "10" * 9))
    load_text(text, missing="auto")
    assert Policy.objects.order_by("number").last().missing == "zero_loaded"


def test_an_upload_takes_over_agents_too(db):
    load_text(csv_text({"a": "1010"}))
    eve, by = token("eve@example.org"), token("op@example.org", scope="operate").user
    row = {"task": "t00", "trial": 1, "outcome": 0}
    deliver(eve, [row], {"name": "b", "scaffold": "Loop", "model": "Model b"})
    content, chosen = csv_text({"b": "1110"}).encode(), {"replace": False, "own": True, "as_of": AS_OF}
    kept = {"benchmark": Benchmark.objects.get(), "by": by, "name": "toy.csv", "content": content}
    upload = keep(**kept, as_of=AS_OF)
    assert preview(upload=upload, **chosen).notes[-1].startswith("Taken over from their submitters: b")
    assert Agent.objects.get(name="b").owner == eve.user
    store(upload=upload, by=by, reason="ours", **chosen)
    assert Agent.objects.get(name="b").owner is None
    (change,) = StatusChange.objects.filter(status="withdrawn")
    assert (change.by, change.reason) == (by, "ours")


def test_two_squatted_names_of_six_do_not_keep_missing_results_undecided(db):
    load_text(csv_text({"x": "1010"}), missing="auto")
    eve = token("eve@example.org")
    for name in ("e", "f"):
        row = {"task": "t00", "trial": 1, "outcome": 1}
        deliver(eve, [row], {"name": name, "scaffold": "Loop", "model": f"Model {name}"})
    text = csv_text(dict.fromkeys("bcdef", "1110"))
    load_text(text, missing="auto", own=True)
    assert Policy.objects.order_by("number").last().resolved_from


def test_an_operator_adds_scaffold_and_model_to_what_a_shorter_file_left_out(db):
    text = csv_text({"a": "10", "b": "01"})
    without = re.sub(",Loop,Model .,", ",not stated,not stated,", text)
    load_text(without)
    before = Benchmark.objects.get().data_version
    for dry_run in (True, False):
        report = load_text(text, dry_run=dry_run)
        assert (report.n_new, report.n_named) == (0, 2)
        assert "Added the missing scaffold or model of 2 agents." in report.notes
    assert set(Agent.objects.values_list("scaffold__name", "model__name")) == {
        ("Loop", "Model a"),
        ("Loop", "Model b"),
    }
    assert Benchmark.objects.get().data_version == before + 1  # so that a board shows it
    assert load_text(without).notes == load_text(text).notes == ()
    assert Benchmark.objects.get().data_version == before + 1


def test_dates_that_come_too_late_are_said_to_be_left_out(db):
    text = csv_text({"a": "10", "b": "01"})
    load_text(text.replace(",2026-01-05,", ",,"))
    first = Submission.objects.order_by("pk")[0]
    for dry_run in (True, False):
        (note,) = load_text(text, dry_run=dry_run).notes
        assert note == (
            "The dates of 2 agents are not stored: the results are there already, without a date. To store "
            f"them, unload those submissions (the first: manage.py unload {first.uuid} --reason TEXT) "
            "and load this file again."
        )
    unload_latest(benchmark=Benchmark.objects.get(), reason="no dates", as_of=AS_OF)
    assert "dates" not in " ".join(load_text(text).notes)
    assert not Submission.objects.filter(status="accepted", submitted_at=None)
    assert load_text(text).notes == ()


def test_invalid_results_are_counted(db):
    report = load_text(csv_text({"a": "1xx", "b": "01x"}))
    assert (report.n_new, report.n_invalid) == (6, 3)
    assert (
        load_sentences(report, "were")[0]
        == "6 outcomes (3 invalid) were stored as 2 submissions of 2 agents."
    )
    assert load_text(csv_text({"a": "1xx", "b": "01x"})).n_invalid == 0


def test_a_contradiction_names_the_row_as_a_fault_does(db, tmp_path):
    load_text(f"{HEAD}\n{ROW},t1,1,1\n{ROW},t2,1,1\n")
    wide, averaged = tmp_path / "wide.csv", tmp_path / "averaged.csv"
    wide.write_text("a title,,\n,,\nagent,t1,t2\nb,1,0\na,1,0\n")
    averaged.write_text(f"{HEAD},n_averaged\n{ROW},t3,2,1,3\n{ROW},t2,1,0,1\n")
    for path, row in ((wide, 5), (averaged, 2)):
        flat, _ = read_outcomes(path, as_of=AS_OF)
        with pytest.raises(Faulty, match="contradicts") as refused:
            load(flat=flat, slug="toy", as_of=AS_OF)
        assert [fault.row for fault in refused.value.faults] == [row]
