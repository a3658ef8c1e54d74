"""The same board everywhere: a file by itself, and its rows through the database, with the same Given."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from analytics.flat_file import read
from analytics.record import Record
from leaderboard.boards.queries import as_dict, standings_of
from leaderboard.catalog.models import Benchmark, Policy
from leaderboard.operations.loading import load
from leaderboard.operations.policies import changed_policy, put_in_force
from leaderboard.operations.services import _present, recompute
from leaderboard.studies.demonstration import write_history, write_newcomers
from leaderboard.studies.models import SubsetTask, TaskSubset
from leaderboard.submissions.parsing.flat import read_file
from selection.standings import answer, printed
from tests import kept
from tests.toys import AS_OF, csv_text, graded, only, rows_text

PUBLISHED = {"benchmark", "number", "published_at", "data_version", "digest", "signature", "key"}


def loaded(*paths: Path, slug="same"):
    """The board after loading these files one after the other."""
    for path in paths:
        load(flat=read_file(path, as_of=AS_OF), slug=slug, as_of=AS_OF)
    return recompute(benchmark=Benchmark.objects.get(slug=slug), as_of=AS_OF)[0]


def by_itself(path, board):
    """The answer for the file, with what the database was given."""
    now, known = _present(board.benchmark, AS_OF)
    record = Record.from_flat(read(path, as_of=AS_OF), now.rules.counting)
    return answer(record, now.rules, known.prior_decisions())


def is_same(path, board):
    file, stored = by_itself(path, board).as_plain(), standings_of(board).as_plain()
    assert file.keys() == stored.keys()
    for key in file:
        assert file[key] == stored[key], key
    published = as_dict(board)
    assert {name: published[name] for name in file} == file
    assert published.keys() - file.keys() == PUBLISHED


def joined(*paths, to):
    """One file with the rows of these."""
    lines = [path.read_text().splitlines(keepends=True) for path in paths]
    to.write_text("".join([lines[0][0], *(row for part in lines for row in part[1:])]))
    return to


@pytest.fixture
def history(db, tmp_path):
    """The board of the demonstration's history, which lies in a file of this name."""
    path = tmp_path / "history.csv"
    write_history(path)
    return kept.stored("history", lambda: loaded(path))


def test_the_demonstration(history, tmp_path):
    board = history
    assert board.subset.number == 1
    is_same(tmp_path / "history.csv", board)
    write_newcomers(tmp_path / "new.csv", tasks=standings_of(board).subset.tasks)
    board = loaded(tmp_path / "new.csv")
    assert sum(line.how == "estimated" for line in standings_of(board).agents) == 6
    is_same(joined(tmp_path / "history.csv", tmp_path / "new.csv", to=tmp_path / "all.csv"), board)


def test_a_file_with_nothing_given_differs_in_the_number_of_its_subset_alone(history, tmp_path):
    """A version has a number once it is stored; what is printed is the same, word for word."""
    stored = standings_of(history)
    file = answer(Record.from_flat(read(tmp_path / "history.csv", as_of=AS_OF)))
    assert (file.subset.number, stored.subset.number) == (None, 1)
    assert replace(file, subset=replace(file.subset, number=1)) == stored
    assert printed.text(file) == printed.text(stored)


def test_two_prompts_of_which_some_agents_ran_one(db, tmp_path):
    """Both are compared, and who lacks one is listed under what it ran."""
    rng = np.random.default_rng(2)
    rows = [
        {"agent": name, "task": f"t{j:02d}", "prompt_variant": prompt, "outcome": int(rng.random() < p)}
        for i, name in enumerate(f"a{i:02d}" for i in range(42))
        for prompt in (("p1", "p2") if i < 40 else ("p2",) if i < 41 else ("p3",))
        for j, p in enumerate(np.linspace(0.05, 0.95, 30))
    ]
    (tmp_path / "prompts.csv").write_text(rows_text(rows))
    board = loaded(tmp_path / "prompts.csv")
    stored = standings_of(board)
    assert stored.conditions.compared == ("prompt p1", "prompt p2")
    assert [condition["prompt_variant"] for condition in board.subset.compared] == ["p1", "p2"]
    is_same(tmp_path / "prompts.csv", board)


@pytest.mark.parametrize(("n_tried", "compared"), [(1, ()), (20, ("temperature 0",))])
def test_an_agent_that_tries_another_temperature(db, tmp_path, n_tried, compared):
    """On one task it changes nobody's conditions; as a full run it tells that temperature is one."""
    rows = [
        {"agent": agent, "task": f"t{j:02d}", "outcome": mark, "temperature": heat}
        for agent, marks in graded(16, 20).items()
        for heat, n_tasks in ((int(agent > "a11"), 20), (1, n_tried if agent == "a00" else 0))
        for j, mark in enumerate(marks[:n_tasks])
    ]
    path = tmp_path / "heats.csv"
    path.write_text(rows_text(rows, benchmark="Same"))
    board = loaded(path)
    assert standings_of(board).conditions.compared == compared
    assert sum(line.condition != "" for line in standings_of(board).agents) == (4 if compared else 0)
    is_same(path, board)


@pytest.mark.parametrize("missing", ["gap", "zero"])
def test_trials_that_a_file_does_not_hold(db, tmp_path, missing):
    """One agent without its failures, one that repeated a task, and one under another judge."""
    rng = np.random.default_rng(5)
    rows = [
        {"agent": f"a{i:02d}", "task": f"t{j:02d}", "trial": trial, "outcome": passed, "judge": judge}
        for i in range(12)
        for j, p in enumerate(np.linspace(0.05, 0.95, 20))
        for trial in range(1, 6)
        if (passed := int(rng.random() < p)) or i != 4
        for judge in (("j2",) if i == 11 else ("j1",))
    ]
    rows.append({"agent": "a10", "task": "t03", "trial": 6, "outcome": 1, "judge": "j1"})
    (tmp_path / "trials.csv").write_text(rows_text(rows))
    loaded(tmp_path / "trials.csv")
    Policy.objects.create(benchmark=Benchmark.objects.get(), number=3, missing=missing)
    board = loaded(tmp_path / "trials.csv")
    lines = {line.agent: line for line in standings_of(board).agents}
    n_passed = sum(row["outcome"] for row in rows if row["agent"] == "a04")
    full = lines["a04"].at["full"]
    assert full.score == (pytest.approx(n_passed / 100) if missing == "zero" else None)
    assert (lines["a11"].condition, lines["a11"].n_tasks) == ("judge j2", 20)
    notices = "\n".join(standings_of(board).notices)
    assert "ran some tasks fewer times than most of theirs" in notices
    assert "has fewer trials on some tasks than on others" in notices
    is_same(tmp_path / "trials.csv", board)


def test_full_and_subset_runs_of_two_versions(db, tmp_path):
    """The second version, which an operator would approve, drops a few tasks and takes in a few."""
    (tmp_path / "full.csv").write_text(csv_text(graded(24, 60)))
    first = standings_of(loaded(tmp_path / "full.csv")).subset
    outcomes = graded(3, 60, seed=5, prefix="s")
    (tmp_path / "runs.csv").write_text(csv_text({k: only(v, first.tasks) for k, v in outcomes.items()}))
    board = loaded(tmp_path / "runs.csv")
    second_version(board.subset)
    newer = graded(2, 60, seed=6, prefix="u")
    subset = standings_of(recompute(benchmark=board.benchmark, as_of=AS_OF)[0]).subset
    (tmp_path / "newer.csv").write_text(csv_text({k: only(v, subset.tasks) for k, v in newer.items()}))
    board = loaded(tmp_path / "newer.csv")
    how = {line.agent: line.how for line in standings_of(board).agents}
    assert {how[name] for name in (*outcomes, *newer)} == {"estimated"}
    assert board.subset.number == 2
    is_same(
        joined(*(tmp_path / f"{n}.csv" for n in ("full", "runs", "newer")), to=tmp_path / "all.csv"), board
    )


def second_version(first):
    """Six tasks of the first version leave, and six others enter."""
    names = sorted(first.tasks.values_list("name", flat=True))
    others = first.benchmark.tasks.exclude(name__in=names).order_by("name")
    fields = {
        f.name: getattr(first, f.name) for f in first._meta.concrete_fields if f.name not in ("id", "number")
    }
    second = TaskSubset.objects.create(**fields, number=2)
    kept = list(first.benchmark.tasks.filter(name__in=names[6:]))
    SubsetTask.objects.bulk_create(
        SubsetTask(subset=second, task=task, pass_rate=0.5) for task in [*kept, *others[:6]]
    )


LARGER = [
    pytest.param(file, marks=pytest.mark.slow(each=True)) for file in ("hal_taubench_airline", "hal_gaia")
]


@pytest.mark.parametrize("file", ["terminal_bench_core_011", *LARGER])
def test_real_boards(db, real_data, file):
    path = real_data / f"{file}.csv.gz"
    is_same(path, loaded(path))


def test_what_a_board_says_is_read_back_as_it_was_made(db, tmp_path):
    (tmp_path / "full.csv").write_text(csv_text(graded(16, 30)))
    board = loaded(tmp_path / "full.csv")
    now, known = _present(board.benchmark, AS_OF)
    made = answer(now.record, now.rules, known.prior_decisions())
    assert standings_of(board) == made


def test_scores_between_0_and_1_with_costs_tokens_and_failures(db, tmp_path):
    rng = np.random.default_rng(8)
    rows = [
        {
            "agent": f"a{i:02d}",
            "task": f"t{j:02d}",
            "run": f"r{r}",
            "outcome": round(float(rng.random() * (i + 4) / 20), 3),
            "valid": int(rng.random() > 0.01),
            "cost_usd": round(float(rng.random()), 4),
            "n_input_tokens": int(rng.integers(1, 9000)),
            "seconds_execution": round(float(rng.random()), 2),
        }
        for i in range(16)
        for j in range(30)
        for r in range(2)
    ]
    (tmp_path / "graded.csv").write_text(rows_text(rows))
    is_same(tmp_path / "graded.csv", loaded(tmp_path / "graded.csv"))


def in_twelve_groups(text):
    head, *rows = text.splitlines()
    task = head.split(",").index("task")
    grouped = [f"{row},g{int(row.split(',')[task][1:]) // 3}" for row in rows]
    return "\n".join([f"{head},group", *grouped]) + "\n"


def test_groups_of_tasks(db, tmp_path):
    """Twelve groups of three: the same board by groups from both, and another by another rule."""
    (tmp_path / "a.csv").write_text(in_twelve_groups(csv_text(graded(16, 36))))
    board = loaded(tmp_path / "a.csv")
    is_same(tmp_path / "a.csv", board)
    told = standings_of(board).targets["domain"]
    assert told.note == "tasks of one group are taken as drawn together (12 groups)"
    put_in_force(policy=changed_policy(benchmark=board.benchmark, values={"groups": "group:stratum"}))
    board = recompute(benchmark=board.benchmark, as_of=AS_OF)[0]
    is_same(tmp_path / "a.csv", board)
    assert (
        standings_of(board).targets["domain"].note == "tasks are taken as drawn within each group (12 groups)"
    )


def test_groups_that_come_later_are_a_new_data_version(db, tmp_path):
    text = csv_text(graded(16, 36))
    (tmp_path / "a.csv").write_text(text)
    before = loaded(tmp_path / "a.csv")
    (tmp_path / "b.csv").write_text(in_twelve_groups(text))
    board = loaded(tmp_path / "b.csv")
    assert board.data_version == before.data_version + 1
    is_same(tmp_path / "b.csv", board)
    assert standings_of(board).targets["domain"].note.endswith("(12 groups)")
