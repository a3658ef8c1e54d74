"""One answer, five surfaces: page, CSV, JSON, API and the file's own command line tell the same numbers."""

import csv
import html
import io
import json
import re

import numpy as np
import pytest
from django.core.management import call_command

from leaderboard.catalog.models import Policy
from selection.cli import main
from tests.seen import rows_of
from tests.toys import board_of, csv_text, graded, recomputed, rows_text

TARGETS = ("subset", "full", "domain")
PUBLISHED = {"benchmark", "number", "published_at", "data_version", "digest", "signature", "key"}
FIELDS = ("rank", "rank_lower", "rank_upper", "score", "lower", "upper", "se", "n_missing")


def with_repeats():
    """Two trials of a few agents, costs, and one agent that broke off."""
    outcomes = graded(16, 30) | {"stopped": graded(1, 30)["a00"][:10] + "." * 20}
    rows = [
        {"agent": name, "task": f"t{j:02d}", "trial": trial, "outcome": mark, "cost_usd": 0.1 * (i + j + 1)}
        for i, (name, marks) in enumerate(outcomes.items())
        for j, mark in enumerate(marks)
        for trial in ((1, 2) if i % 3 == 0 else (1,))
        if mark != "."
    ]
    return rows_text(rows)


FILES = {"one trial each": csv_text(graded(16, 30)), "repeats, costs, one incomplete": with_repeats()}


@pytest.fixture(params=FILES)
def board(request, db, tmp_path):
    board = board_of(FILES[request.param])
    board.path = tmp_path / "file.csv"
    board.path.write_text(FILES[request.param])
    return board


def printed(*arguments):
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def by_file(board, capsys, *flags):
    assert main(["standings", str(board.path), *flags]) == 0
    return capsys.readouterr().out


def flat(agents, target):
    """The numbers of JSON lines, and who is tied with whom by name."""
    names = [line["agent"] for line in agents]
    return {
        line["agent"]: {field: line["at"][target][field] for field in FIELDS}
        | {"ties": [n for first, last in line["at"][target]["tied_with"] for n in names[first : last + 1]]}
        for line in agents
    }


def number(text):
    return None if text == "" else float(text)


def of_csv(text, target):
    lines = list(csv.DictReader(io.StringIO(text)))
    names = [line["agent"] for line in lines]
    ranges = [[part.split("-") for part in line[f"{target}_tied_with"].split()] for line in lines]
    return {
        line["agent"]: {field: number(line[f"{target}_{field}"]) for field in FIELDS}
        | {"ties": [name for first, last in mine for name in names[int(first) : int(last) + 1]]}
        for line, mine in zip(lines, ranges, strict=True)
    }


@pytest.mark.parametrize("target", TARGETS)
def test_csv_json_api_and_the_files_command_line_agree(client, board, capsys, target):
    of_file = json.loads(by_file(board, capsys, "--json"))
    of_json = json.loads(printed("standings", "toy", "--format", "json"))
    of_api = client.get("/api/v1/benchmarks/toy/board").json()
    expected = flat(of_file["agents"], target)
    assert flat(of_json["agents"], target) == expected
    assert flat(of_api["agents"], target) == expected
    assert of_csv(printed("standings", "toy", "--format", "csv"), target) == expected
    assert of_json == of_api
    told = {name: value for name, value in of_json.items() if name in of_file}
    assert changed(told, of_file) == set()
    assert of_json.keys() - of_file.keys() == PUBLISHED


def test_that_missing_outcomes_count_as_failures_is_told_on_every_face(client, db, tmp_path, capsys):
    board = board_of(FILES["repeats, costs, one incomplete"])
    board.path = tmp_path / "file.csv"
    board.path.write_text(FILES["repeats, costs, one incomplete"])
    said = "20 missing results count as failures."  # one broke off after 10 of 30 tasks
    faces = (
        lambda: by_file(board, capsys, *told),
        lambda: json.dumps(json.loads(by_file(board, capsys, *told, "--json"))["notices"]),
        lambda: printed("standings", "toy"),
        lambda: json.dumps(client.get("/api/v1/benchmarks/toy/board").json()["notices"]),
        lambda: client.get("/b/toy").content.decode(),
        lambda: client.get("/b/toy/board.md").content.decode(),
    )
    told = ()
    assert [said in face() for face in faces] == [False] * len(faces)
    Policy.objects.create(benchmark=board.benchmark, number=2, missing="zero")
    recomputed()
    told = ("--missing", "zero")
    assert [said in face() for face in faces] == [True] * len(faces)


def changed(one, other):
    """A file's subset has no number: it was never fixed."""
    assert other["subset"] is None or other["subset"]["number"] is None
    one, other = ({**told, "subset": without_number(told["subset"])} for told in (one, other))
    return {name for name in other if one[name] != other[name]}


def without_number(subset):
    return subset and {key: value for key, value in subset.items() if key != "number"}


def between(lower, upper):
    if lower is None:
        return "–not known"
    assert 0 <= lower < upper <= 1
    return f"{round(100 * lower)}–{round(100 * upper)}"


@pytest.mark.parametrize("target", TARGETS)
def test_the_page_shows_the_same_numbers_rounded(client, board, target):
    told = flat(json.loads(printed("standings", "toy", "--format", "json"))["agents"], target)
    rows = rows_of(client.get(f"/b/toy?target={target}&view=all"))
    assert len(rows) == sum(one["rank"] is not None for one in told.values())
    for _, rank, held, agent, score, interval, error, *_ in rows:
        one = told[agent.split(" ")[0]]
        assert int(re.match(r"\d+", rank)[0]) == one["rank"]
        assert held in (f"{one['rank_lower']}–{one['rank_upper']}", f"{one['rank_lower']}", "–not known")
        assert f"{100 * one['score']:.1f}" in score
        assert one["se"] is None or f"{100 * one['se']:.1f}" in error
        assert interval == between(one["lower"], one["upper"])
    ranked = [name for name, one in told.items() if one["rank_lower"] is not None]
    for name in ranked[:1] + ranked[len(ranked) // 2 :][:1]:
        pk = board.entries.get(name=name).agent_id
        page = client.get(f"/b/toy?target={target}&vs={pk}").content.decode()
        marks = {
            agent: css.split() for css, agent in re.findall(r'<tr class="([^"]*)">.*?<bdi>(.*?)</bdi>', page)
        }
        # Who could be the best is filled beside the leader, and outlined too beside another.
        outlined = "first" if "reference" not in marks[name] else "tied"
        tied = [agent for agent, css in marks.items() if "tied" in css or outlined in css]
        assert sorted(tied) == sorted([*told[name]["ties"], name])


@pytest.mark.parametrize("target", TARGETS)
def test_the_terminal_prints_what_the_file_prints_under_a_head_and_over_a_digest(board, capsys, target):
    text = printed("standings", "toy", "--target", target, "--explain")
    head, body = text.split("\n\n", 1)
    assert head == "Toy: board 1, published 2026-06-01"
    assert (
        body.removesuffix(f"\n\nDigest {board.digest}\n")
        == by_file(board, capsys, "--target", target, "--explain")[:-1]
    )


def two_judges(n_agents=8, n_tasks=20):
    """Each agent under both judges, of whom the second is harder to please."""
    rng = np.random.default_rng(5)
    return rows_text(
        [
            {"agent": f"a{i:02d}", "task": f"t{j:02d}", "judge": judge, "outcome": int(rng.random() < p)}
            for i in range(n_agents)
            for j in range(n_tasks)
            for judge, p in (("j1", (i + 2) / 12), ("j2", (i + 1) / 12))
        ]
    )


def test_each_face_says_that_the_judge_was_measured_once_it_is(client, db):
    board_of(two_judges())
    said = "The effect of judges was measured. The intervals of measured scores include this."
    unmeasured = "how much agents depend on the judge"

    def faces():
        """The terminal, the page, and the measured and not measured of the API."""
        page = " ".join(html.unescape(client.get("/b/toy").content.decode()).split())
        told = client.get("/api/v1/benchmarks/toy/board").json()
        return (
            " ".join(printed("standings", "toy", "--explain").split()),
            page,
            told["measured"],
            told["not_measured"],
        )

    terminal, page, measured, not_measured = faces()
    assert said not in terminal + page
    assert unmeasured in terminal
    assert unmeasured in page
    assert (measured, unmeasured in not_measured) == ([], True)
    printed("variance", "toy")
    assert "Published board 2" in printed("recompute", "toy")
    terminal, page, measured, not_measured = faces()
    assert said in terminal
    assert said in page
    assert unmeasured not in terminal + page
    assert (measured, unmeasured in not_measured) == (["The effect of judges was measured"], False)
