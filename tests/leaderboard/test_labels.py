"""What people said of some outcomes stands on the agent's page and in its JSON, and moves no board."""

import json

import numpy as np
import pytest
from scipy.stats import t as student

from analytics.flat_file import read
from analytics.research.cli import main
from leaderboard.boards.queries import standings_of
from leaderboard.catalog.models import Agent, Benchmark
from leaderboard.operations.corrections import unload
from leaderboard.submissions.export.outcomes import ExportTransaction, OutcomeRows
from leaderboard.submissions.export.streams import FORMATS
from leaderboard.submissions.models import Submission
from tests.seen import text_of
from tests.toys import AS_OF, board_of, recomputed, rows_text

TASKS = [f"t{j:03d}" for j in range(100)]
BY_HAND = {f"t{j:03d}": {0: 0, 1: 1, 2: 0, 4: 0}.get(j, 1 - j % 2) for j in range(40)}  # e: −1 at 0, 2, 4
PRAISED = {f"t{j:03d}": 1 if j % 2 else "" for j in range(100)}  # where the judge says 0, and nowhere else


def labelled(labels=None, *, n_labels=40, agents="abcd", judges=("j",), **more):
    """Agents that pass every other task; people said of the first some of a what `BY_HAND` says."""
    rows = []
    for i, agent in enumerate(agents):
        for judge in judges:
            for j, task in enumerate(TASKS):
                row = {
                    "agent": agent,
                    "task": task,
                    "outcome": int((j + i) % 2 == 0 or j < i),
                    "judge": judge,
                }
                said = agent == "a" and labels is not None and j < n_labels
                rows.append(row | ({"human": labels.get(task, 1 - j % 2)} | more if said else {}))
    return rows_text(rows)


@pytest.fixture
def told(client, db):
    """The three facts of the page, and the JSON, of one agent."""

    def ask(name="a", slug="toy"):
        pk = Agent.objects.get(benchmark__slug=slug, name=name).pk
        page = text_of(client.get(f"/b/{slug}/agents/{pk}"))
        return page, client.get(f"/api/v1/benchmarks/{slug}/agents/{pk}").json()["people"]

    return ask


def test_the_corrected_mean_by_hand_on_the_page_and_for_programs(told):
    board_of(labelled(BY_HAND, human_probability=0.4))
    page, people = told()
    # Σe = −1 − 1 − 1 + 1 = −2, Σe² = 4, n = 40 of 100: 0.5 − 2/40, SE² = 0.6·(4 + 1 − 4/42)/42².
    se = np.sqrt(0.6 * (4 + 1 - 4 / 42)) / 42
    half = student.ppf(0.975, 39) * se
    assert (people["judge_mean"], people["n_labels"], people["n_tasks"]) == (0.5, 40, 100)
    assert people["corrected_mean"] == pytest.approx(0.45)
    assert people["se"] == pytest.approx(se)
    assert (people["lower"], people["upper"]) == pytest.approx((0.45 - half, 0.45 + half))
    assert (people["design"], people["reason"]) == ("simple random sample", "")
    assert "Mean of the judge 50.0% " in page
    assert "Corrected by people 45.0% (95%: 36.7–53.3%) " in page
    assert "Labels by people 40 on 100 tasks (simple random sample); no board counts them" in page
    page, people = told("b")
    assert people is None
    assert "Corrected by people" not in page


@pytest.mark.parametrize(
    ("text", "why", "n"),
    [
        (labelled(BY_HAND), "labels picked by hand tell nothing of the rest", 40),
        (
            labelled(BY_HAND, n_labels=29, human_probability=0.3),
            "29 labels; at least 30 are needed to tell how often a judge errs",
            29,
        ),
        (labelled(BY_HAND, human_probability=0.4, judges=("j", "k")), "its outcomes are of 2 judges", 40),
        (
            labelled(BY_HAND, human_probability=1),
            "as if every task were drawn, and 60 of 100 tasks have none",
            40,
        ),
        (labelled(BY_HAND, human_probability=5e-324), "at least 1e-09 and at most 1", 40),
        (
            labelled(PRAISED, n_labels=100, human_probability=0.4),
            "not drawn with the probabilities stated",
            50,
        ),
    ],
    ids=["picked", "few", "judges", "certain", "infinite weights", "failures alone"],
)
def test_what_labels_do_not_tell(told, text, why, n):
    board_of(text)
    page, people = told()
    assert (people["corrected_mean"], people["lower"], people["n_labels"]) == (None, None, n)
    assert why in people["reason"]
    assert f"Corrected by people not measured: {people['reason']}" in page


def test_labels_of_all_tasks_have_no_interval(told):
    board_of(labelled({}, n_labels=100, human_probability=1))
    page, people = told()
    assert (people["corrected_mean"], people["se"], people["lower"]) == (0.5, None, None)
    assert (
        "Corrected by people 50.0% Labels by people 100 on 100 tasks (all tasks labelled: the mean of" in page
    )


def test_a_board_does_not_know_of_labels(told):
    """The same outcomes, with labels that make a the best or the worst of all, have the same board."""
    boards = []
    for slug, labels, corrected in (
        ("plain", None, None),
        ("best", dict.fromkeys(TASKS, 1), 1.0),
        ("worst", dict.fromkeys(TASKS, 0), 0.0),
    ):
        board = board_of(labelled(labels, human_probability=0.4), slug=slug)
        boards.append(standings_of(board).agents)
        people = told(slug=slug)[1]
        assert (people and people["corrected_mean"]) == corrected
    assert boards[0] == boards[1] == boards[2]
    assert {line.agent: line.at["full"].score for line in boards[0]}["a"] == 0.5


def test_labels_of_a_submitter_are_read_with_the_next_board(told, post, toy):
    """They come through the interface, wait for a board, and are gone with what they came with."""
    recomputed()
    rows = [
        {"task": f"t{j:02d}", "trial": t, "outcome": j % 2, "human": 1} for j in range(20) for t in (1, 2)
    ]
    agent = {"name": "new", "scaffold": "Loop", "model": "M"}
    assert post({"agent": agent, "outcomes": rows}).status_code == 201
    assert told("new")[1] is None
    recomputed()
    page, people = told("new")
    assert (people["n_labels"], people["n_tasks"]) == (20, 20)
    assert people["reason"] == "20 labels; at least 30 are needed to tell how often a judge errs"
    again = [row | {"trial": row["trial"] + 2} for row in rows]
    assert post({"agent": agent, "outcomes": again}).status_code == 201
    assert told("new")[1]["reason"] == "what counts of this agent has changed, and is read for the next board"
    unload(uuids=[one.uuid for one in Submission.objects.filter(agent__name="new")], reason="r", as_of=AS_OF)
    page, people = told("new")
    assert people is None
    assert "Corrected by people" not in page


@pytest.mark.django_db(transaction=True)
def test_labels_come_back_as_they_were(told, tmp_path, capsys):
    board_of(labelled(BY_HAND, human_probability=0.4))
    people = told()[1]
    for kind in ("csv", "ndjson", "parquet"):
        path = tmp_path / f"toy.{kind}"
        with ExportTransaction(Benchmark.objects.get(slug="toy")) as snapshot:
            path.write_bytes(b"".join(FORMATS[kind](OutcomeRows(snapshot))))
        labels = read(path, as_of=AS_OF).labels
        asked = ~np.isnan(labels["human"])
        assert (asked.sum(), set(labels["human_probability"][asked].tolist())) == (40, {0.4})
        options = ("--judge", "j", "--human", "human", "--probability", "human_probability", "--json")
        assert main(["surrogate", str(path), *options]) == 0
        line = json.loads(capsys.readouterr().out)["agents"][0]
        assert {name: line[name] for name in people if name != "reason"} == {
            name: people[name] for name in people if name != "reason"
        }
