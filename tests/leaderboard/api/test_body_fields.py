"""Every field of a delivery with every odd value: stored or refused by name, and never a fault of ours."""

import json
from datetime import UTC, datetime

import pytest
from django.db import connection, transaction

from leaderboard.catalog.models import Agent
from leaderboard.submissions.models import IdempotencyKey, Outcome, Setting, Submission

ENVELOPE = ("agent", "submitted_at", "run", "assignment", "replaces", "links", "outcomes", "colour")
AGENT = ("name", "scaffold", "model", "version", "organisation", "weights", "colour")
LINKS = ("commit", "logs", "colour")
ROW = (
    "task",
    "task_id",
    "trial",
    "outcome",
    "score",
    "valid",
    "category",
    "prompt_variant",
    "judge",
    "temperature",
    "run",
    "n_averaged",
    "human",
    "human_probability",
    "cost_usd",
    "n_input_tokens",
    "input_tokens",
    "n_output_tokens",
    "seconds_environment",
    "seconds_execution",
    "seconds_scoring",
    "benchmark",
    "submitted_at",
    "note",
)
PATHS = [
    *((name,) for name in ENVELOPE),
    *(("agent", name) for name in AGENT),
    *(("links", name) for name in LINKS),
    *(("outcomes", 0, name) for name in ROW),
    ("outcomes", 0),
]
ODD = {
    "null": "null",
    "true": "true",
    "zero": "0",
    "minus one": "-1",
    "a half more": "1.5",
    "a long number": "9" * 400,
    "empty": '""',
    "blank": '" "',
    "NUL": '"\\u0000"',
    "lone surrogate": '"\\ud800"',
    "long": json.dumps("x" * 10**6),
    "list": "[]",
    "object": "{}",
    "full list": '["x", null]',
    "full object": '{"name": "x", "\\ud800": ["\\u0000"]}',
    "nested": "[" * 200 + "]" * 200,
    "nested in objects": '{"a": ' * 200 + "1" + "}" * 200,
}
DEEP = {"deep list": "[" * 10**5 + "]" * 10**5, "deep object": '{"a": ' * 10**5 + "1" + "}" * 10**5}
HOLE = "a hole for the odd value"


def body():
    return {
        "agent": {"name": "newcomer", "scaffold": "Loop", "model": "Model 9"},
        "submitted_at": f"{datetime.now(UTC):%Y-%m-%d}",
        "links": {"logs": "https://example.org/logs"},
        "outcomes": [
            {"task": "t01", "trial": 1, "outcome": 1},
            {"task": "t02", "trial": 1, "outcome": 0},
        ],
    }


def body_with(path, odd):
    """The text of a body that is good but for one value."""
    whole = body()
    place = whole
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = HOLE
    return json.dumps(whole).replace(json.dumps(HOLE), odd)


def stored():
    """How many rows each table has."""
    tables = [model._meta.db_table for model in (Agent, Submission, Outcome, Setting, IdempotencyKey)]
    with connection.cursor() as cursor:
        cursor.execute("SELECT " + ", ".join(f"(SELECT count(*) FROM {table})" for table in tables))
        return cursor.fetchone()


def is_told(problem, path):
    """Whether a fault names the field: in its row, as a column where all rows are meant, or what is in it."""
    places = {(fault["field"], fault["row"]) for fault in problem["faults"]}
    if path == ("outcomes",):
        return any(field == "outcomes" or row for field, row in places)
    if path == ("outcomes", 0):
        return any(row == 1 for _, row in places)
    if path[0] == "outcomes":
        return bool(places & {(path[-1], 1), (path[-1], None)})
    name = ".".join(path)
    return any(field == name or (field or "").startswith(f"{name}.") for field, _ in places)


@pytest.fixture(params=["a third", pytest.param("all", marks=pytest.mark.slow)])
def odd_values_of(request):
    """The odd values for a path: each, or every third, from another one on at the next path."""

    def do(path):
        begin, step = (0, 1) if request.param == "all" else (PATHS.index(path) % 3, 3)
        return list(ODD.items())[begin::step]

    return do


@pytest.mark.parametrize("path", PATHS, ids=lambda path: ".".join(map(str, path)))
def test_an_odd_value_is_stored_or_refused_by_name_and_leaves_nothing_behind(post, path, odd_values_of):
    before = stored()
    for what, odd in odd_values_of(path):
        with transaction.atomic():
            response = post(body_with(path, odd), **{"Idempotency-Key": "odd"})
            assert response.status_code == 201 or stored() == before, what
            transaction.set_rollback(True)
        assert response.status_code in (201, 422), (what, response.content[:500])
        if response.status_code == 422:
            assert response["Content-Type"] == "application/problem+json"
            problem = response.json()
            assert problem["n_faults"] >= 1
            assert is_told(problem, path), (what, problem)
            assert len(response.content) < 10_000, what
    assert stored() == before


@pytest.mark.parametrize("path", [("colour",), ("agent", "name"), ("links", "logs"), ("outcomes", 0, "note")])
def test_a_value_too_deep_for_the_parser_is_refused(post, path):
    for odd in DEEP.values():
        response = post(body_with(path, odd))
        assert (response.status_code, response["Content-Type"]) == (400, "application/problem+json")
        assert "nested" in response.json()["detail"]


@pytest.mark.parametrize("odd", [*ODD, *DEEP])
def test_a_whole_body_of_that_kind_is_refused(post, odd):
    before = stored()
    response = post(({**ODD, **DEEP})[odd])
    assert response.status_code in (400, 422)
    assert response["Content-Type"] == "application/problem+json"
    assert odd in DEEP or response.json()["faults"]
    assert len(response.content) < 10_000
    assert stored() == before
