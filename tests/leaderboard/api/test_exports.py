"""Downloads over HTTP: who gets what, with which headers, and what becomes of a stream that breaks."""

import hashlib
import io
import json

import pandas as pd
import pyarrow.parquet as pq
import pytest

from analytics.flat_file import read
from leaderboard.api import exports
from leaderboard.boards.queries import latest_board
from leaderboard.catalog.models import Benchmark, Policy, Visibility
from leaderboard.submissions.export import outcomes as snapshot
from leaderboard.submissions.export.columns import MEDIA_TYPES
from leaderboard.submissions.export.streams import FORMATS
from tests.leaderboard.api.test_routes import APART, asking, media_type_of
from tests.leaderboard.api.world import KINDS as PEOPLE
from tests.leaderboard.api.world import World
from tests.toys import AS_OF, csv_text, first_board, load_text, rows_text

pytestmark = pytest.mark.django_db(transaction=True)
ONE = "/api/v1/benchmarks/toy"
KINDS = list(FORMATS)


def content(response):
    return b"".join(response) if response.streaming else response.content


@pytest.fixture
def board(toy):
    return first_board(toy)


@pytest.mark.parametrize("kind", KINDS)
def test_outcomes(client, toy, kind):
    Benchmark.objects.update(licence="CC BY 4.0", citation="Ada: Tasks, größer")
    response = client.get(f"{ONE}/outcomes.{kind}")
    assert response.status_code == 200
    assert response["Content-Type"] == MEDIA_TYPES[kind]
    assert (response["Bandstand-Rows"], response["Bandstand-Data-Version"]) == ("320", "1")
    assert response["Bandstand-Licence"] == "CC%20BY%204.0"
    assert response["Bandstand-Citation"] == "Ada%3A%20Tasks%2C%20gr%C3%B6%C3%9Fer"
    assert response["Cache-Control"] == "public, max-age=0, must-revalidate"
    assert response["Content-Disposition"] == f'attachment; filename="toy-outcomes.{kind}"'
    flat = read(io.BytesIO(content(response)), as_of=AS_OF)
    assert (flat.n_rows, len(flat.agents), len(flat.tasks)) == (320, 16, 20)


@pytest.mark.parametrize(("path", "n"), [("outcomes", 320), ("board", 16), ("boards/1", 16)])
def test_the_end_of_ndjson_is_marked_where_that_is_asked_for(client, board, path, n):
    plain = client.get(f"{ONE}/{path}.ndjson")
    marked = client.get(f"{ONE}/{path}.ndjson?end_mark=1")
    assert plain["Bandstand-Rows"] == marked["Bandstand-Rows"] == str(n)
    lines = content(plain)
    assert len(pd.read_json(io.BytesIO(lines), lines=True).dropna(how="all")) == lines.count(b"\n") == n
    end = json.dumps({"end": True, "n": n, "sha256": hashlib.sha256(lines).hexdigest()})
    assert content(marked) == lines + end.encode() + b"\n"
    if path == "outcomes":
        assert plain["ETag"] != marked["ETag"]


@pytest.mark.parametrize("query", ["outcomes.csv?end_mark=1", "outcomes.ndjson?end_mark=yes"])
def test_other_marks_of_an_end_are_refused(client, toy, query):
    assert client.get(f"{ONE}/{query}").status_code == 400


@pytest.mark.parametrize("kind", KINDS)
def test_head_and_304_have_the_headers_of_the_whole(client, toy, kind):
    at = f"{ONE}/outcomes.{kind}"
    whole, head = client.get(at), client.head(at)
    whole.close()
    known = [ask(at, headers={"If-None-Match": whole["ETag"]}) for ask in (client.get, client.head)]
    assert [one.status_code for one in (head, *known)] == [200, 304, 304]
    for one in (head, *known):
        for header in ("Cache-Control", "ETag", "Vary"):
            assert one[header] == whole[header], header
    assert all_places_are_free()


def test_what_is_known_already_is_not_sent_again(client, toy):
    first = client.get(f"{ONE}/outcomes.csv")
    assert content(first)
    again = client.get(f"{ONE}/outcomes.csv", headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, content(again)) == (304, b"")
    for header in ("Cache-Control", "ETag", "Vary"):
        assert again[header] == first[header]
    for sent, status in ((first["ETag"], 200), ('W/"another"', 412)):
        matched = client.get(f"{ONE}/outcomes.csv", headers={"If-Match": sent})
        assert matched.status_code == status
        matched.close()
    load_text(csv_text({"new": "1" * 20}))
    later = client.get(f"{ONE}/outcomes.csv", headers={"If-None-Match": first["ETag"]})
    assert (later.status_code, later["Bandstand-Rows"]) == (200, "340")
    later.close()
    assert all_places_are_free()


def test_head_and_other_formats_asked_for(client, toy):
    response = client.head(f"{ONE}/outcomes.csv", headers={"Accept": "text/csv"})
    assert (response.status_code, response["Bandstand-Rows"], content(response)) == (200, "320", b"")
    assert "Content-Length" not in response  # 0 would say that there is nothing
    assert client.get(f"{ONE}/outcomes.xlsx").status_code == 404
    assert all_places_are_free()


def all_places_are_free():
    return snapshot._free._value == snapshot.AT_ONCE


def test_two_at_a_time(client, toy):
    running = [client.get(f"{ONE}/outcomes.csv") for _ in range(snapshot.AT_ONCE)]
    refused = client.get(f"{ONE}/outcomes.csv")
    assert (refused.status_code, refused["Retry-After"]) == (503, "5")
    assert refused.json()["type"] == "urn:bandstand:problem:exports_busy"
    running.pop().close()
    running.append(client.get(f"{ONE}/outcomes.parquet"))
    assert running[-1].status_code == 200
    for response in running:
        response.close()
    assert all_places_are_free()


class Wire:
    options, closed, seconds = None, False, None

    def settimeout(self, seconds):
        self.seconds = seconds

    def setsockopt(self, *options):
        self.options = options

    def close(self):
        self.closed = True


def test_a_stream_that_breaks_resets_its_connection(client, toy, monkeypatch):
    def broken(outcomes):
        yield b"agent"
        raise ValueError("gone")

    monkeypatch.setitem(exports.__dict__, "FORMATS", {"csv": broken})
    wire = Wire()
    response = client.get(f"{ONE}/outcomes.csv", **{"gunicorn.socket": wire})
    with pytest.raises(ConnectionResetError):
        content(response)
    assert wire.closed
    assert wire.options[-1] == exports.RESET
    assert all_places_are_free()


@pytest.mark.parametrize("n_taken", [0, 1])
def test_a_stream_that_is_not_taken_to_its_end_resets_its_connection(client, toy, n_taken):
    wire = Wire()
    response = client.get(f"{ONE}/outcomes.csv", **{"gunicorn.socket": wire})
    for _ in range(n_taken):
        next(iter(response))
    response.close()
    assert wire.options[-1] == exports.RESET
    assert all_places_are_free()


def test_a_whole_stream_does_not(client, toy):
    wire = Wire()
    assert content(client.get(f"{ONE}/outcomes.csv", **{"gunicorn.socket": wire}))
    assert (wire.options, wire.seconds) == (None, exports.TAKEN_WITHIN)


def test_a_private_benchmark_is_not_there_for_others(client, board, submit_token):
    Benchmark.objects.update(visibility=Visibility.PRIVATE)
    paths = [f"outcomes.{kind}" for kind in KINDS] + [f"board.{kind}" for kind in KINDS]
    for path in [*paths, "boards/1.csv", "subsets.json", "data-dictionary"]:
        assert client.get(f"{ONE}/{path}").status_code == 404, path
        mine = client.get(f"{ONE}/{path}", headers={"Authorization": f"Bearer {submit_token}"})
        assert (mine.status_code, mine["Cache-Control"]) == (200, "private, no-store"), path
        mine.close()


def test_costs_are_for_those_whom_the_policy_names(client):
    load_text(rows_text([{"agent": "a", "task": "t", "outcome": 1, "cost_usd": 2.5}]))
    assert b"cost_usd" in content(client.get(f"{ONE}/outcomes.csv"))
    Policy.objects.create(benchmark=Benchmark.objects.get(), number=2, show_costs=False)
    assert b"cost_usd" not in content(client.get(f"{ONE}/outcomes.csv"))
    assert "cost_usd" not in str(client.get(f"{ONE}/data-dictionary").json()["outcomes"])


@pytest.mark.parametrize("path", ["board", "boards/1"])
def test_a_board_in_three_formats(client, board, path):
    csv_lines = client.get(f"{ONE}/{path}.csv").content.decode().splitlines()
    lines = client.get(f"{ONE}/{path}.ndjson").content.decode().splitlines()
    answer = client.get(f"{ONE}/{path}.parquet")
    table = pq.read_table(io.BytesIO(answer.content))
    assert len(csv_lines) - 1 == len(lines) == table.num_rows == 16
    assert table.to_pylist() == [json.loads(line) for line in lines]
    assert csv_lines[0].split(",") == table.schema.names == list(json.loads(lines[0]))
    assert answer["Bandstand-Digest"] == latest_board(board.benchmark).digest
    entry = board.entries.order_by("position").first()
    assert (table["agent"][0].as_py(), table["full_score"][0].as_py()) == (
        entry.name,
        entry.line["at"]["full"]["score"],
    )


def test_no_such_board(client, board):
    assert client.get(f"{ONE}/boards/2.csv").status_code == 404


def test_the_data_dictionary(client, board):
    told = client.get(f"{ONE}/data-dictionary").json()
    assert (told["benchmark"], told["title"], told["n"], told["data_version"]) == ("toy", "Toy", 320, 1)
    header = content(client.get(f"{ONE}/outcomes.csv")).decode().splitlines()[0]
    assert [column["name"] for column in told["outcomes"]["columns"]] == header.split(",")
    assert told["outcomes"]["csv"] == f"{ONE}/outcomes.csv"
    for column in [*told["outcomes"]["columns"], *told["board"]["columns"]]:
        assert column["description"].endswith((".", ":")) or ":" in column["description"], column


def test_who_may_take_what_is_read_apart(client):
    ask = asking(client, World())
    for visibility in (Visibility.PUBLIC, Visibility.PRIVATE):
        Benchmark.objects.update(visibility=visibility)
        for (name, method), expected in APART.items():
            found = []
            for kind in PEOPLE:
                answer = ask(name, method, kind)
                found.append(answer.status_code)
                told = media_type_of(name) if answer.status_code == 200 else "application/problem+json"
                assert answer["Content-Type"].split(";")[0] == told
                assert content(answer)
            assert tuple(found) == expected[visibility == Visibility.PRIVATE]
