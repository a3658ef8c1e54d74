"""What the database itself holds to, and COPY."""

import pyarrow as pa
import pytest
from django.db import DataError, IntegrityError, connection, transaction
from django.db.utils import ProgrammingError
from django.test.utils import CaptureQueriesContext

from leaderboard.boards.models import Board, Entry
from leaderboard.catalog.models import Policy, Scaffold, Task
from leaderboard.studies.models import Calibration, SubsetTask, TaskSubset
from leaderboard.submissions.copying import BLOCK_ROWS, copy_in, copy_new, copy_out, numbers_out
from leaderboard.submissions.models import LIVE, Outcome, Setting, StatusChange, Submission
from leaderboard.submissions.queries import LIVE_OUTCOMES, MEASURED_OUTCOMES, OUTCOMES
from tests.toys import csv_text, first_board, load_text

COLUMNS = ["submission_id", "task_id", "setting_id", "trial", "value", "valid"]


@pytest.fixture
def board(by_ridge, toy):
    return first_board(toy)


APPEND_ONLY = [Outcome, StatusChange, Setting, Policy, TaskSubset, SubsetTask, Calibration, Board, Entry]


@pytest.mark.parametrize("model", APPEND_ONLY)
@pytest.mark.parametrize("statement", ["UPDATE", "DELETE"])
def test_history_is_append_only(board, model, statement):
    table = model._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute("SELECT column_name FROM information_schema.columns WHERE table_name = %s", [table])
        column = cursor.fetchone()[0]
        sql = f"UPDATE {table} SET {column} = {column}" if statement == "UPDATE" else f"DELETE FROM {table}"
        assert model.objects.exists()
        with pytest.raises(ProgrammingError, match="Cannot"), transaction.atomic():
            cursor.execute(sql)


@pytest.mark.parametrize("model", [Task, Submission])
def test_what_outcomes_name_is_never_deleted(toy, model):
    with (
        pytest.raises(ProgrammingError, match="Cannot delete"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(f"DELETE FROM {model._meta.db_table}")


def test_only_the_status_of_a_submission_changes(toy):
    Submission.objects.update(status="withdrawn")
    with pytest.raises(ProgrammingError, match="Cannot update"), transaction.atomic():
        Submission.objects.update(n_outcomes=1)


def outcome_rows(*rows):
    return pa.table([pa.array(column) for column in zip(*rows, strict=True)], names=COLUMNS)


def test_copy_writes_what_it_is_given(db):
    copy_in(outcome_rows((1, 2, 3, 4, 0.1, True), (1, 2, 3, 5, None, False)), model=Outcome)
    rows = Outcome.objects.order_by("trial").values_list(*COLUMNS)
    assert list(rows) == [(1, 2, 3, 4, pytest.approx(0.1), True), (1, 2, 3, 5, None, False)]


NARROW = pa.schema(
    dict(
        zip(COLUMNS, (pa.int32(), pa.int32(), pa.int32(), pa.int16(), pa.float32(), pa.bool_()), strict=True)
    )
)


def narrow_rows(*rows):
    """Rows of the very types of the outcome table, which are copied in binary form."""
    return outcome_rows(*rows).cast(NARROW)


@pytest.mark.parametrize("n_rows", [0, 1, 2 * BLOCK_ROWS + 1])
def test_numbers_survive_copy_in_binary_form(db, n_rows):
    # Every third value is NULL, its neighbours are not; the least and the largest number, and a chunk's end.
    values = [None if i % 3 == 1 else i % 7 / 7 for i in range(n_rows)]
    rows = [(2**31 - 1, -(2**31), i, 32_767, v, v is not None) for i, v in enumerate(values)]
    table = narrow_rows(*rows) if rows else NARROW.empty_table()
    copy_in(table, model=Outcome)
    stored = list(Outcome.objects.order_by("setting_id").values_list(*COLUMNS))
    assert [row[:4] + row[5:] for row in stored] == [row[:4] + row[5:] for row in rows]
    assert pa.array([row[4] for row in stored], pa.float32()) == table["value"].combine_chunks()


def test_numbers_are_copied_in_binary_form_and_text_is_not(db):
    with CaptureQueriesContext(connection) as queries:
        copy_in(narrow_rows((1, 2, 3, 4, 0.1, True)), model=Outcome)
        copy_in(outcome_rows((1, 2, 3, 5, 0.1, True)), model=Outcome)
    assert ["FORMAT binary" in query["sql"] for query in queries] == [True, False]


def test_what_an_operator_loads_is_copied_in_binary_form(db):
    with CaptureQueriesContext(connection) as queries:
        load_text(csv_text({"a0": "01", "a1": "10"}), slug="small")
    assert any('"submissions_outcome"' in q["sql"] and "FORMAT binary" in q["sql"] for q in queries)


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ((1, 2, 3, 4, 1.5, True), IntegrityError),
        ((1, 2, 3, 4, -0.5, True), IntegrityError),
        ((1, 2, 3, 4, None, True), IntegrityError),
        ((1, 2, 3, -1, 1.0, True), IntegrityError),
        ((1, 2, 3, 40_000, 1.0, True), DataError),
    ],
)
def test_copy_errors_are_djangos_and_store_nothing(db, row, error):
    good = (1, 2, 3, 0, 1.0, True)
    with pytest.raises(error), transaction.atomic():
        copy_in(outcome_rows(good, row), model=Outcome)
    assert not Outcome.objects.exists()


def test_copy_refuses_a_repeated_key(db):
    row = (1, 2, 3, 4, 1.0, True)
    with pytest.raises(IntegrityError), transaction.atomic():
        copy_in(outcome_rows(row, row), model=Outcome)


@pytest.mark.parametrize("row", [(1, 2, 3, 4, 1.5, True), (1, 2, 3, 4, None, True), (1, 2, 3, -1, 1.0, True)])
def test_binary_copy_errors_are_djangos_and_store_nothing(db, row):
    with pytest.raises(IntegrityError), transaction.atomic():
        copy_in(narrow_rows((1, 2, 3, 0, 1.0, True), row), model=Outcome)
    assert not Outcome.objects.exists()


ODD = ["a\tb\nc\r\\N", "\\.", '"q", {x}', "100% é \U0001f600", ""]


def test_new_rows_are_those_that_bulk_create_stores(board):
    """Text that COPY has to escape, numbers, lists, objects of JSON, and nothing at all."""
    line = board.entries.order_by("position").first().line
    changes = [
        {},
        {"line": line | {"scaffold": "\\N", "links": dict.fromkeys(ODD, ODD), "marks": ODD, "flags": ODD}},
        {"rank": None, "line": line | {"cost_usd": None, "n_tokens": 1e300, "seconds": 0.1 + 0.2}},
        *({"name": text, "line": line | {"condition": text}} for text in ODD),
    ]
    stored = []
    for number, store in enumerate((copy_new, Entry.objects.bulk_create), start=2):
        newer = Board.objects.get(pk=board.pk)
        newer.pk, newer.number, newer.data_version = None, number, board.data_version + number
        newer.save(force_insert=True)
        agents = board.benchmark.agents.order_by("pk")
        store(
            [
                Entry(board=newer, agent=agent, position=i, **{"rank": i, "name": "a", "line": line} | change)
                for i, (agent, change) in enumerate(zip(agents, changes, strict=False))
            ]
        )
        names = ["agent", "position", "rank", "name", "line"]
        stored.append(list(newer.entries.order_by("position").values_list(*names)))
    assert len(stored[0]) == len(changes)
    assert stored[0] == stored[1]


def test_new_rows_that_break_a_rule_are_djangos_errors_and_store_nothing(board):
    entry = board.entries.first()
    with pytest.raises(IntegrityError), transaction.atomic():
        copy_new([entry])
    entry.name = "\0"
    with pytest.raises((DataError, ValueError)), transaction.atomic():
        copy_new([entry])
    n = Entry.objects.count()
    copy_new([])
    assert Entry.objects.count() == n


def test_copy_under_a_debugging_connection(db):
    # Its cursor logs statements and takes no parameters beside them; % and quotes in a parameter are data.
    schema = pa.schema({"n": pa.int32(), "text": pa.string()})
    with CaptureQueriesContext(connection) as queries:
        copy_in(narrow_rows((1, 2, 3, 4, 0.1, True)), model=Outcome)
        query = "SELECT trial, %s FROM submissions_outcome WHERE task_id = ANY(%s)"
        assert copy_out(query, ["100% o'clock", [2, 7]], schema=schema).to_pylist() == [
            {"n": 4, "text": "100% o'clock"}
        ]
    assert len(queries) == 2


ROWS = """
    SELECT * FROM (VALUES (2, 7, 1::smallint, 0.1::real, true, 5::bigint, NULL::float8),
        (2, 7, 2::smallint, NULL, false, NULL, 1e-300), (1, 9, 3::smallint, NULL, true, NULL, NULL),
        (2, 7, 3::smallint, 1, true, -1, NULL), (3, 7, -4::smallint, 0, false, 6, 2.5)) AS rows
    WHERE %s ORDER BY column1, column3
"""
NUMBERS = pa.schema(
    {
        "submission": pa.int32(),
        "agent": pa.int64(),
        "trial": pa.int16(),
        "value": pa.float32(),
        "valid": pa.bool_(),
        "n_tokens": pa.int64(),
        "seconds": pa.float64(),
    }
)


@pytest.mark.parametrize("any_row", [True, False])
def test_numbers_are_read_as_copy_reads_them(db, any_row):
    """Nulls, negative numbers, several rows of a first column; the other way sends each as text."""
    nullable = ["value", "n_tokens", "seconds"]
    found = numbers_out(ROWS, [any_row], schema=NUMBERS, n_same=2, nullable=nullable)
    expected = copy_out(ROWS, [any_row], schema=NUMBERS)
    assert found.schema == NUMBERS
    assert found.to_pylist() == expected.to_pylist()
    assert found.num_rows == 5 * any_row


def test_copy_out_of_nothing_keeps_the_schema(db):
    schema = pa.schema({"a": pa.int32(), "b": pa.bool_()})
    assert copy_out("SELECT 1, true WHERE %s", [False], schema=schema).schema == schema


def test_text_survives_copy(db):
    """Quotes, commas, line ends, backslashes and the empty string are data, NULL is NULL."""
    texts = ['a"b', "a,b", "a\nb", "a\\b", "\\N", "", "é🤖"]
    copy_in(pa.table({"name": texts}), model=Scaffold)
    assert list(Scaffold.objects.order_by("id").values_list("name", flat=True)) == texts


def n_pages(query, *values):
    """Pages that a query touches, and its rows."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {query}", values)
        ((plan,),) = cursor.fetchone()
    touched = plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"]
    return touched, plan["Plan"]["Actual Rows"]


def test_reads_of_one_benchmark_do_not_grow_with_the_others(db):
    """Rows of a submission lie together and are found by the primary key, however much others store."""
    load_text(csv_text({"b0": "10" * 250, "b1": "01" * 250}), slug="small")
    mine = Submission.objects.filter(agent__benchmark__slug="small")
    submissions, agents = (list(mine.values_list(name, flat=True)) for name in ("pk", "agent_id"))
    reads = {
        "a board's": (OUTCOMES.format(condition="s.id = ANY(%s)"), submissions),
        "with details": (MEASURED_OUTCOMES, submissions),
        "before a delivery": (LIVE_OUTCOMES, agents, agents, [*LIVE]),
    }
    touched = []
    for other in ("one", "two"):
        load_text(csv_text({f"{other}{i:02d}": "01" * 250 for i in range(60)}), slug=other)
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
        found = {name: n_pages(*read) for name, read in reads.items()}
        assert [rows for _, rows in found.values()] == [1000] * 3
        touched.append({name: n for name, (n, _) in found.items()})
    (n_of_table, _), (after, later) = n_pages("SELECT count(*) FROM submissions_outcome"), touched
    for name in reads:
        assert later[name] <= after[name] + 4, name  # a page more for each submission where an index deepens
        assert later[name] < n_of_table / 4, name
