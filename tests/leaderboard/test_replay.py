"""A history fed through the service, beside what full evaluation says of the same agents."""

import itertools

import numpy as np
import pytest
from django.core.management import call_command

from analytics.command_line import plain
from analytics.record import Record
from leaderboard.boards.reading import standings_of
from leaderboard.catalog.models import Benchmark, Policy, Visibility
from leaderboard.operations import due
from leaderboard.operations.replaying import Undated, replay
from leaderboard.submissions.models import Outcome, Submission
from leaderboard.submissions.parsing.flat import read_file
from selection.staged.histories import walked
from selection.staged.replay import orders_of
from selection.staged.replay import replay as replay_full_runs
from selection.staged.verdict import verdict
from selection.staged.walks import Staging
from selection.standings.choice import training
from tests.toys import AS_OF

pytestmark = pytest.mark.django_db(transaction=True)

N_AGENTS, N_TASKS, SUBSET_FROM = 16, 30, 8
HEAD = "benchmark,agent,scaffold,model,submitted_at,task,trial,outcome,cost_usd"


def history(dated=True):
    """Rows of a Rasch model, an agent a week; each run of a task costs as many cents as its number."""
    rng = np.random.default_rng(7)
    difficulty = np.linspace(-2, 2, N_TASKS)
    for i in range(N_AGENTS):
        passes = rng.random(N_TASKS) < 1 / (1 + np.exp(difficulty - rng.normal(0.3, 1)))
        day = f"2025-{1 + i // 4:02d}-{1 + 7 * (i % 4):02d}" if dated else ""
        for j in range(N_TASKS):
            who = f"agent {i:02d},scaffold {i % 3},model {i:02d}"
            yield f"Toy,{who},{day},task {j:02d},1,{int(passes[j])},{j / 100}"


@pytest.fixture
def flat(tmp_path):
    def written(**how):
        path = tmp_path / "history.csv"
        path.write_text("\n".join([HEAD, *history(**how)]) + "\n")
        return read_file(path, as_of=AS_OF)

    return written


@pytest.fixture
def done(flat):
    policy = Policy(subset_from=SUBSET_FROM, publish_every=0)
    return replay(flat=flat(), slug="toy", policy=policy)


@pytest.mark.slow
def test_a_report_is_what_the_service_did(done, flat):
    """One replay, for it takes seconds; each part is a check of its own."""
    what_was_run_is_what_was_stored(done)
    agreement_is_that_of_the_last_board_with_the_means_of_the_file(done, flat())
    boards_stand_at_the_dates_of_the_history(done)
    it_is_private_and_has_a_clock_of_its_own()


def what_was_run_is_what_was_stored(done):
    report = done.report
    stored = Submission.objects.filter(agent__benchmark=done.benchmark).values_list("pk", "agent_id")
    agent = dict(stored)
    pairs = {
        (agent[submission], task)
        for submission, task in Outcome.objects.values_list("submission_id", "task_id")
        if submission in agent
    }
    assert report["agents"] == N_AGENTS
    assert report["n_tasks_run"] == len(pairs) < report["n_tasks_full"] == N_AGENTS * N_TASKS
    assert report["saved_share"] == pytest.approx(1 - len(pairs) / (N_AGENTS * N_TASKS))
    number = dict(done.benchmark.tasks.values_list("id", "name"))
    spent = sum(int(number[task].split()[1]) / 100 for _, task in pairs)
    assert report["saved_usd"] == pytest.approx(N_AGENTS * sum(range(N_TASKS)) / 100 - spent)


def agreement_is_that_of_the_last_board_with_the_means_of_the_file(done, rows):
    truth = {name: rows.outcome[rows.agent == i].mean() for i, name in enumerate(rows.agents)}
    board = standings_of(done.benchmark.boards.order_by("-number").first())
    told = {line.agent: line.at[board.target] for line in board.agents}
    said = {agent: at.score for agent, at in told.items() if at.rank is not None}
    right, compared = 0.0, 0
    for a, b in itertools.combinations(said, 2):
        if abs(truth[a] - truth[b]) > 1e-9:
            compared += 1
            gap = (said[a] - said[b]) * np.sign(truth[a] - truth[b])
            right += 0.5 if abs(gap) < 1e-9 else float(gap > 0)
    assert done.report["pairs_correct"] == pytest.approx(right / compared)


def boards_stand_at_the_dates_of_the_history(done):
    dates = [board["date"] for board in done.report["boards"]]
    assert dates == sorted(set(dates))
    assert len(dates) == N_AGENTS
    phases = [board["phase"] for board in done.report["boards"]]
    assert phases[: SUBSET_FROM - 1].count("ongoing") == 0
    assert phases[SUBSET_FROM - 1] == "ongoing"


def it_is_private_and_has_a_clock_of_its_own():
    made = Benchmark.objects.filter(slug__startswith="toy-replay")
    assert {(one.visibility, one.replayed) for one in made} == {(Visibility.PRIVATE, True)}
    assert made.count() == 2
    for when in (due.reconcile, due.drift, due.validate, due.variance, due.validation_runs):
        assert list(when(AS_OF)) == []


def test_every_agent_needs_a_date(flat):
    with pytest.raises(Undated, match="'agent 00' has no date"):
        replay(flat=flat(dated=False), slug="toy", policy=None)
    assert not Benchmark.objects.exists()


@pytest.mark.slow
def test_the_command_replays_by_the_rules_of_the_benchmark(flat, tmp_path, capsys):
    """The subset is fixed by the fifth agent, and a second replay has a benchmark of its own."""
    flat()
    rules = Benchmark.objects.create(slug="toy", title="Toy")
    Policy.objects.create(benchmark=rules, number=1, subset_from=5)
    Benchmark.objects.create(slug="toy-replay-1", title="An earlier replay")
    call_command("replay", "toy", str(tmp_path / "history.csv"))
    printed = capsys.readouterr().out
    fed = Benchmark.objects.get(slug="toy-replay-2")
    assert fed.subsets.get(number=1).n_complete == 5
    assert "runs of a task were spared" in printed
    assert "in the private benchmark toy-replay-2" in printed


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
    done = replay(flat=flat, slug="toy", policy=policy)
    agents = training(Record.from_flat(flat))
    (order,) = orders_of(agents, 5)
    staging = Staging(subset_from=12, draw_share=0.3)
    core = walked(agents, order, staging, seed=5)
    names = dict(done.benchmark.tasks.values_list("id", "name"))
    ran = {name: set() for name in agents.names}
    of = dict(Submission.objects.filter(agent__benchmark=done.benchmark).values_list("pk", "agent__name"))
    for submission, task in Outcome.objects.values_list("submission_id", "task_id"):
        if submission in of:
            ran[of[submission]].add(names[task])
    tasks = Record.from_flat(flat).table.tasks
    asked = {
        agents.names[walk.agent]: {tasks[j] for batch in walk.batches for j in batch} for walk in core.walks
    }
    assert ran == asked
    assert saved < done.report["saved_share"] == pytest.approx(1 - core.n_run.mean() / 40)
    board = standings_of(done.benchmark.boards.order_by("-number").first())
    shown = {line.agent: line.at["full"].score for line in board.agents}
    told = {agents.names[i]: score for i, score in zip(order, core.board.tolist(), strict=True)}
    assert shown == pytest.approx(told, abs=1e-8)
    told = replay_full_runs(agents, staging, seed=5)
    for name, figure in plain(told).items():
        assert done.report["figures"][name] == pytest.approx(figure, abs=1e-8), name
    assert done.report["verdict"]["text"] == verdict(told).text
    stopped = [walk for walk in core.walks if walk.published and not walk.published.is_drawn]
    drawn = [walk for walk in core.walks if walk.published and walk.published.is_drawn]
    assert len(stopped) >= n_stopped
    assert sum(walk.n_tasks == 40 for walk in stopped) == n_recalled
    recalls = done.benchmark.rerun_requests.filter(kind="recall")
    assert [one.status for one in recalls] == ["fulfilled"] * n_recalled
    assert drawn
    subset = done.benchmark.subsets.get()
    assert {*subset.tasks.values_list("name", flat=True)} == {tasks[j] for j in core.subset}


def rising(n_agents, n_tasks, seed=3):
    """Full runs of agents that get better, one a week."""
    rng = np.random.default_rng(seed)
    difficulty = rng.normal(0, 1.2, n_tasks)
    rows = [HEAD]
    for i in range(n_agents):
        passes = rng.random(n_tasks) < 1 / (1 + np.exp(difficulty - rng.normal(-0.6 + i / 20, 0.6)))
        day = f"2025-{1 + i // 4:02d}-{1 + 7 * (i % 4):02d}"
        who = f"agent {i:02d},scaffold {i % 3},model {i:02d}"
        rows += [f"Toy,{who},{day},task {j:02d},1,{int(passes[j])},0.01" for j in range(n_tasks)]
    return "\n".join(rows) + "\n"
