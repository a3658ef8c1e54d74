"""What the core replays is what the service does, what is stored of a replay, and the command."""

import json
import re
from uuid import UUID

import numpy as np
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from analytics.command_line import plain
from analytics.record import Record
from leaderboard.boards.queries import standings_of
from leaderboard.catalog.models import Benchmark, Policy
from leaderboard.catalog.queries import visible_benchmark
from leaderboard.operations import jobs, replaying
from leaderboard.operations.corrections import confirm
from leaderboard.operations.intake import submit
from leaderboard.operations.models import Assignment
from leaderboard.studies.records import Reader
from leaderboard.submissions.models import Outcome, Submission
from leaderboard.submissions.parsing.flat import read_file
from selection.cli import main
from selection.staged.histories import walked
from selection.staged.replay import best, orders_of, replay, right, sentence
from selection.staged.walks import Staging
from selection.standings.choice import training
from tests.kept import stored
from tests.leaderboard.feeding import fed
from tests.leaderboard.world import token
from tests.toys import AS_OF

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("replayed_twice")]

HEAD = "benchmark,agent,scaffold,model,submitted_at,task,trial,outcome,cost_usd"


def rising(n_agents, n_tasks, seed=3, dated=True):
    """Full runs of agents that get better, one a week."""
    rng = np.random.default_rng(seed)
    difficulty = rng.normal(0, 1.2, n_tasks)
    rows = [HEAD]
    for i in range(n_agents):
        passes = rng.random(n_tasks) < 1 / (1 + np.exp(difficulty - rng.normal(-0.6 + i / 20, 0.6)))
        day = f"2025-{1 + i // 4:02d}-{1 + 7 * (i % 4):02d}" if dated else ""
        who = f"agent {i:02d},scaffold {i % 3},model {i:02d}"
        rows += [f"Toy,{who},{day},task {j:02d},1,{int(passes[j])},0.01" for j in range(n_tasks)]
    return "\n".join(rows) + "\n"


def ran_in(benchmark):
    """The tasks that each agent has outcomes on, by name."""
    names = dict(benchmark.tasks.values_list("id", "name"))
    of = dict(Submission.objects.filter(agent__benchmark=benchmark).values_list("pk", "agent__name"))
    ran = {name: set() for name in of.values()}
    for submission, task in Outcome.objects.values_list("submission_id", "task_id"):
        if submission in of:
            ran[of[submission]].add(names[task])
    return ran


def scores_in(benchmark):
    board = standings_of(benchmark.boards.latest("number"))
    return {line.agent: line.at["full"].score for line in board.agents}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_agents", "history", "n_recalled", "saved", "n_stopped"), [(24, 3, 0, 0.05, 5), (16, 12, 1, 0.0, 1)]
)
def test_staged_assignment_runs_what_the_core_replays(
    tmp_path, n_agents, history, n_recalled, saved, n_stopped
):
    path = tmp_path / "history.csv"
    path.write_text(rising(n_agents, 40, history))
    flat = read_file(path, as_of=AS_OF)
    policy = Policy(assignment="staged", subset_from=12, draw_share=0.3, publish_every=0, base_seed=5)
    done = fed(flat, policy=policy)
    agents = training(Record.from_flat(flat))
    (order,) = orders_of(agents, 5, 1)
    staging = Staging(subset_from=12, draw_share=0.3)
    core = walked(agents, order, staging, seed=5)
    tasks = Record.from_flat(flat).table.tasks
    assert ran_in(done.benchmark) == {
        agents.names[walk.agent]: {tasks[j] for batch in walk.batches for j in batch} for walk in core.walks
    }
    assert saved < 1 - core.n_run.mean() / 40
    told = {agents.names[i]: score for i, score in zip(order, core.board.tolist(), strict=True)}
    assert done.scores() == pytest.approx(told, abs=1e-8)
    stopped = [walk for walk in core.walks if walk.published and not walk.is_drawn]
    assert len(stopped) >= n_stopped
    assert sum(walk.n_tasks == 40 for walk in stopped) == n_recalled
    for walk in core.walks:
        if walk.published and walk.n_tasks < 40:
            (kept,) = Assignment.objects.filter(agent__name=agents.names[walk.agent])
            last = kept.decisions[-1]
            now = walk.published
            assert (last["score"], last["lower"], last["upper"]) == pytest.approx(
                (now.score, now.lower, now.upper), abs=1e-8
            )
    recalls = done.benchmark.rerun_requests.filter(kind="recall")
    assert [one.status for one in recalls] == ["fulfilled"] * n_recalled
    assert any(walk.published and walk.is_drawn for walk in core.walks)
    subset = done.benchmark.subsets.get()
    assert {*subset.tasks.values_list("name", flat=True)} == {tasks[j] for j in core.subset}


# ---------------------------------------------------------------------------------------- what is stored


@pytest.fixture
def loaded(tmp_path):
    """A benchmark of full runs whose policy assigns batch by batch."""

    def make(text, copied=True):
        path = tmp_path / "history.csv"
        path.write_text(text)

        def rows():
            Policy.objects.create(
                benchmark=Benchmark.objects.create(slug="toy", title="Toy", url="https://toy.example"),
                number=1,
                assignment="staged",
                subset_from=12,
                draw_share=0.3,
                base_seed=5,
            )
            call_command("load", str(path), "--benchmark", "toy")
            call_command("recompute", "toy")

        stored(("full runs", text), rows) if copied else rows()
        return path

    return make


@pytest.fixture
def kept_here(loaded):
    """24 full runs, and their replay stored as "here"."""

    def rows():
        loaded(rising(24, 40))
        call_command("replay", "toy", "--store", "here")

    stored("a stored replay", rows)


@pytest.mark.parametrize(("n_agents", "seed"), [(24, 3), (16, 12)])
def test_a_stored_replay_is_the_board_of_the_service(loaded, capsys, n_agents, seed):
    """Against the core, from the file alone: what was run, the board, pairs, the best five, what is saved."""
    path = loaded(rising(n_agents, 40, seed))
    capsys.readouterr()
    call_command("replay", "toy", "--store", "here", "--json")
    printed = capsys.readouterr().out
    kept = json.loads(printed[: printed.rindex("}") + 1])
    agents = training(Record.from_flat(read_file(path, as_of=AS_OF)))
    (order,) = orders_of(agents, 5, 1)
    staging = Staging(subset_from=12, draw_share=0.3)
    core, found = walked(agents, order, staging, seed=5), replay(agents, staging, seed=5, n_seeds=1)
    here, tasks = (
        Benchmark.objects.get(slug="here"),
        Record.from_flat(read_file(path, as_of=AS_OF)).table.tasks,
    )
    assert (here.replay["of"], here.replay["figures"]) == ("toy", kept["figures"])
    assert (here.url, here.visibility) == ("https://toy.example", "public")
    assert ran_in(here) == {
        agents.names[walk.agent]: {tasks[j] for batch in walk.batches for j in batch} for walk in core.walks
    }
    call_command("replay", "toy", "--seeds", "1")
    assert "; two agents that run all tasks always are; random tasks at " in capsys.readouterr().out
    call_command("replay", "toy", "--seeds", "1", "--json")
    assert json.loads(capsys.readouterr().out)["figures"] == kept["figures"]
    n_ran = sum(map(len, ran_in(here).values()))
    assert kept["figures"]["saved"] == pytest.approx(1 - n_ran / (n_agents * 40)) == found.saved
    scores = scores_in(here)
    told = {agents.names[i]: score for i, score in zip(order, core.board.tolist(), strict=True)}
    assert scores == pytest.approx(told, abs=1e-8)
    board = np.array([scores[agents.names[i]] for i in order])
    agreed, differ = right(board, agents.scores[order])
    assert kept["figures"]["pairs"]["value"] == pytest.approx(agreed[differ].mean())
    assert kept["figures"]["best_five"] == best(board, agents.scores[order], 5)
    assert kept["verdict"] == {"word": None, "reasons": [], "text": sentence(found)}
    for assignment in Assignment.objects.filter(agent__benchmark=here):
        assert assignment.submissions.count() == len(
            {tuple(one.asked) for one in assignment.submissions.all()}
        )
    for when in (
        jobs.due_boards,
        jobs.due_drift,
        jobs.due_validations,
        jobs.due_variances,
        jobs.due_validation_runs,
    ):
        assert here not in list(when(AS_OF))


def test_agents_are_trusted_as_far_as_on_the_source(loaded):
    """Of an account that nobody trusts two runs teach; replayed, they are no more verified than before."""
    loaded(rising(24, 40))
    toy, ada = Benchmark.objects.get(slug="toy"), token("ada@example.org", is_trusted=False)
    sent = {
        name: submit(
            benchmark=toy,
            token=ada,
            body={
                "agent": {"name": name, "scaffold": name, "model": name},
                "submitted_at": f"{AS_OF:%Y-%m-%d}",
                "links": links,
                "outcomes": [
                    {"task": f"task {j:02d}", "trial": 1, "outcome": int((j * step) % 5 < 2), "valid": j > 0}
                    for j in range(40)
                ],
            },
            idempotency_key=None,
            as_of=AS_OF,
        ).content
        for step, (name, links) in enumerate(
            [("bare", {}), ("logged", {"logs": "https://logs.example/1"}), ("third", {})], start=1
        )
    }
    assert {receipt["status"] for receipt in sent.values()} == {"accepted"}
    confirm(uuid=UUID(sent["logged"]["id"]), reason="the sandbox was full", as_of=AS_OF)
    call_command("replay", "toy", "--store", "here")
    here = Benchmark.objects.get(slug="here")
    trust = {line.agent: line.trust for line in standings_of(here.boards.latest("number")).agents}
    assert trust.pop("bare") == "self_reported"
    assert trust.pop("logged") == "logs"
    assert trust == {f"agent {i:02d}": "verified" for i in range(24)}
    there, record = (Reader(one).now(None).record for one in (toy, here))
    assert record.voice.all()
    unconfirmed = [dict(zip(one.table.agents, one.n_unconfirmed, strict=True)) for one in (there, record)]
    assert [(one["bare"], one["logged"]) for one in unconfirmed] == [(1, 0), (1, 0)]
    agents = training(there)
    (order,) = orders_of(agents, 5, 1)
    core = walked(agents, order, Staging(subset_from=12, draw_share=0.3), seed=5)
    told = {agents.names[i]: score for i, score in zip(order, core.board.tolist(), strict=True)}
    scores = scores_in(here)
    assert scores.keys() == told.keys()
    del scores["logged"], told["logged"]  # the board estimates its gap, the core takes the mean of the rest
    assert scores == pytest.approx(told, abs=1e-8)


def test_who_is_not_replayed_needs_no_date(loaded, client, capsys):
    """An agent that ran half of the tasks, without a date, keeps nobody else from being replayed."""
    half = [f"Toy,half,scaffold 9,model 9,,task {j:02d},1,1,0.01" for j in range(20)]
    loaded(rising(24, 40) + "\n".join(half) + "\n")
    call_command("replay", "toy", "--store", "here")
    here = Benchmark.objects.get(slug="here")
    assert len(ran_in(here)) == 24
    page = client.get("/b/here/validity").content.decode()
    assert "A replay is not validated." in page
    assert '<a href="/b/toy/validity">the page of <bdi>Toy</bdi></a>' in page
    capsys.readouterr()
    call_command("replay", "toy")
    assert "Left out: 1 agent." in capsys.readouterr().out
    assert "Schedule" not in page
    assert "Schedule" in client.get("/b/toy/validity").content.decode()


def test_the_largest_error_published_is_that_of_the_stored_decisions(kept_here, client):
    """An agent that was drawn has no estimate on the board any more; what was published had an error."""
    full = scores_in(Benchmark.objects.get(slug="toy"))
    walks = Assignment.objects.filter(agent__benchmark__slug="here").values_list("agent__name", "decisions")
    last = {name: steps[-1] for name, steps in walks if steps[-1]["stage"] in ("stopped", "drawn")}
    assert {one["stage"] for one in last.values()} == {"stopped", "drawn"}
    name, error = max(
        ((name, one["score"] - full[name]) for name, one in last.items()), key=lambda of: abs(of[1])
    )
    points = f"{100 * error:+.1f}".replace("-", "−")
    page = client.get("/b/here").content.decode()
    label = "<dt>Largest error of an estimate when it was published</dt>"
    assert f"{label}<dd><bdi>{points} points ({name})</bdi></dd>" in page
    assert "Largest error of an estimate on this board" in page


@pytest.mark.parametrize(
    ("n_agents", "dated", "is_said"), [(10, False, True), (9, False, False), (10, True, False)]
)
def test_a_load_without_dates_says_what_a_replay_does(loaded, capsys, n_agents, dated, is_said):
    loaded(rising(n_agents, 20, dated=dated), copied=False)
    told = f"{n_agents} of {n_agents} agents have no date, so a replay uses 20 random orders"
    assert (told in capsys.readouterr().out) is is_said


def test_a_replay_is_not_replayed_and_loses_who_is_erased(kept_here, client):
    assert "%; two agents that run all tasks always are" in client.get("/b/here").content.decode()
    for arguments in (["here"], ["here", "--store", "there"]):
        with pytest.raises(CommandError, match="Replay its source"):
            call_command("replay", *arguments)
    call_command("erase", "toy", "agent 10", "--reason", "asked")
    assert not Benchmark.objects.get(slug="here").agents.filter(name="agent 10").exists()
    call_command("recompute", "here")
    for page in ("/b/here", "/api/v1/benchmarks/here/board"):
        assert not re.search(r"(?<!erased )agent 10\b", client.get(page).content.decode())


def test_what_changes_while_a_replay_is_stored_is_not_stored_as_it_was(loaded, monkeypatch):
    loaded(rising(24, 40))
    storing = replaying._store

    def erased_meanwhile(*arguments):
        last = storing(*arguments)
        call_command("erase", "toy", "agent 10", "--reason", "asked")
        return last

    monkeypatch.setattr(replaying, "_store", erased_meanwhile)
    with pytest.raises(CommandError, match="data changed while they were replayed"):
        call_command("replay", "toy", "--store", "here")
    assert not Benchmark.objects.filter(slug="here").exists()


def test_a_replay_is_seen_by_those_who_see_its_source(kept_here, client, admin_user):
    here = Benchmark.objects.get(slug="here")
    of = here.agents.get(name="agent 10").pk
    pages = {
        "/b/here": "Largest error of an estimate when it was published",
        f"/b/here/agents/{of}": "full run</a> scored",
        "/b/here/plots/replayed.svg": "Board score against full run",
    }

    def told():
        return [said in client.get(page).content.decode() for page, said in pages.items()]

    assert told() == told() == [True, True, True]  # the second time as they were kept
    for closed in ({"visibility": "private"}, {"hidden_at": AS_OF, "hidden_reason": "for this test"}):
        Benchmark.objects.filter(slug="toy").update(**closed)
        for page in (*pages, "/api/v1/benchmarks/here", "/api/v1/benchmarks/here/board"):
            assert client.get(page).status_code == 404
        assert visible_benchmark("here", admin_user)
        assert "/b/here" not in client.get("/").content.decode()
        Benchmark.objects.filter(slug="toy").update(visibility="public", hidden_at=None, hidden_reason="")
        assert told() == [True, True, True]
    Benchmark.objects.filter(slug="toy").update(hidden_at=AS_OF, hidden_reason="for this test")
    call_command("replay", "toy", "--store", "again")
    assert Benchmark.objects.get(slug="again").hidden_reason == "for this test"
    assert client.get("/b/again").status_code == 404


def test_the_command_and_the_core_print_the_same_figures(loaded, capsys):
    path = loaded(rising(24, 40))
    capsys.readouterr()
    flags = ("--subset-from", "12", "--draw-share", "0.3", "--seed", "5")
    assert main(["replay", str(path), *flags, "--json"]) == 0
    core = json.loads(capsys.readouterr().out)
    for arguments in (["toy"], ["toy", str(path)]):
        call_command("replay", *arguments, "--json")
        told = json.loads(capsys.readouterr().out)
        assert plain(told["verdict"]) == core.pop("verdict", told["verdict"])
        assert told["figures"] == {**told["figures"], **core}


def test_what_cannot_be_replayed_is_refused_and_nothing_is_stored(loaded, tmp_path):
    path = loaded(rising(16, 40, dated=False))
    for arguments, why in (
        (["none"], "There is no benchmark .none.. .*add FILE"),
        (["toy", str(path), "--store", "here"], "load FILE first"),
        (["toy", "--store", "here", "--seeds", "1"], "leave --seeds out"),
        (["toy", "--store", "toy"], "There is a benchmark of this name already"),
        (["toy", "--store", "no slug"], "Invalid name for an address"),
        (["toy", "--store", ""], "Invalid name for an address"),
        (["toy", "--store", "here"], "has no date"),
    ):
        with pytest.raises(CommandError, match=why):
            call_command("replay", *arguments)
    call_command("policy", "toy", "--set", "assignment=full")
    with pytest.raises(CommandError, match="Only staged assignment can be stored"):
        call_command("replay", "toy", "--store", "here")
    assert list(Benchmark.objects.values_list("slug", flat=True)) == ["toy"]


def test_too_few_agents_are_said(loaded, capsys):
    loaded(rising(6, 40))
    capsys.readouterr()
    call_command("replay", "toy")
    assert "Not known yet" in capsys.readouterr().out
