"""A hundred malformed bodies and files: each a 4xx problem that names row and field, and nothing stored."""

import gzip
import io
import json
import struct
import time
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.test import Client

from leaderboard.catalog.models import Agent, Benchmark
from leaderboard.submissions.models import IdempotencyKey, Outcome, Setting, Submission
from tests.leaderboard.api.deliver import ADDRESS, AGENT, body, csv_of, ndjson_of, parquet_of, rows, send_file

MIB = 2**20
HEAD = b"task,trial,outcome"
GOOD = csv_of(rows())
ZIPPED = gzip.compress(GOOD)


def with_row(**more):
    """A good file but for one value in its third row."""
    found = rows()
    found[2] |= more
    return found


def zip_of(content):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("outcomes.csv", content)
    return out.getvalue()


def parquet_table(**columns):
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


def flipped(content, place):
    return content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :]


def text_json(**more):
    return json.dumps(body() | more)


def one(**more):
    return {"task": "t01", "trial": 1, "outcome": 1} | more


def agent(name):
    return {"name": name, "scaffold": "s", "model": "m"}


def row_json(row):
    return f'{{"agent": {json.dumps(agent("a"))}, "outcomes": [{row}]}}'


DEEP = 100_000
P = parquet_of(rows())
NOTHING = parquet_table(**dict.fromkeys(("task", "trial", "outcome"), pa.array([], "string")))
# What is sent as a file: its bytes, large ones made when they are sent, the row and field that are named
# (None: the whole).
FILES = {
    "empty": (b"", None, None),
    "blank lines": (b"\n\n\n", None, None),
    "header alone": (HEAD + b"\n", None, None),
    "no header": (b"t01,1,1\n", None, "1"),
    "a column twice": (b"task,task,trial,outcome\nt01,t01,1,1\n", None, "task"),
    "no task column": (b"trial,outcome\n1,1\n", None, "task"),
    "no outcome column": (b"task,trial\nt01,1\n", None, "outcome"),
    "65 columns": ((HEAD + b"".join(b",c%d" % i for i in range(62)) + b"\n"), None, None),
    "semicolons": (GOOD.replace(b",", b";"), None, "task"),
    "tabs": (GOOD.replace(b",", b"\t"), None, None),
    "a field too many": (HEAD + b"\nt01,1,1,1\n", 1, None),
    "a field too few": (HEAD + b"\nt01,1\n", 1, None),
    "quote inside": (HEAD + b'\nt"0"1,1,1\n', None, None),
    "quote not closed": (HEAD + b'\n"t01,1,1\n', None, None),
    "UTF-16": (GOOD.decode().encode("utf-16"), None, None),
    "UTF-16 without mark": (GOOD.decode().encode("utf-16-le"), None, None),
    "UTF-32": (GOOD.decode().encode("utf-32"), None, None),
    "Latin-1": (HEAD + b"\nt\xe901,1,1\n", None, None),
    "half a character": (HEAD + b"\nt01,1,1\nt\xc3", None, None),
    "surrogate in UTF-8": (HEAD + b"\n\xed\xa0\x80,1,1\n", None, None),
    "mark in the middle": (HEAD + b"\n\xef\xbb\xbft01,1,1\n", 1, "task"),
    "NUL": (HEAD + b"\nt\x0001,1,1\n", 1, "task"),
    "NUL in metadata": (HEAD + b",note\nt01,1,1,a\x00b\n", 1, "note"),
    "bell": (HEAD + b",note\nt01,1,1,a\x07b\n", 1, "note"),
    "marked and CRLF, then a bad row": (b"\xef\xbb\xbf" + HEAD + b"\r\nt01,1,1\r\nt02,1,7\r\n", 2, "outcome"),
    "CR alone, then a bad row": (HEAD + b"\rt01,1,1\rt02,-1,1\r", 2, "trial"),
    "negative trial": (csv_of(with_row(trial=-1)), 3, "trial"),
    "trial 1.5": (csv_of(with_row(trial=1.5)), 3, "trial"),
    "trial 40000": (csv_of(with_row(trial=40_000)), 3, "trial"),
    "no trial": (csv_of(with_row(trial="")), 3, "trial"),
    "trial as words": (csv_of(with_row(trial="first")), 3, "trial"),
    "outcome 2": (csv_of(with_row(outcome=2)), 3, "outcome"),
    "outcome below": (csv_of(with_row(outcome=-0.1)), 3, "outcome"),
    "outcome NaN": (csv_of(with_row(outcome="nan")), 3, "outcome"),
    "outcome infinite": (csv_of(with_row(outcome="1e999")), 3, "outcome"),
    "outcome hexadecimal": (csv_of(with_row(outcome="0x1")), 3, "outcome"),
    "outcome passed": (csv_of(with_row(outcome="passed")), 3, "outcome"),
    "no outcome": (csv_of(with_row(outcome="")), 3, "outcome"),
    "a formula for an outcome": (csv_of(with_row(outcome="=1+1")), 3, "outcome"),
    "a formula for a task": (csv_of(with_row(task="=HYPERLINK(1)")), 3, "task"),
    "a foreign task": (csv_of(with_row(task="elsewhere")), 3, "task"),
    "task in other case": (csv_of(with_row(task="T02")), 3, "task"),
    "task with a blank": (csv_of(with_row(task=" t02")), 3, "task"),
    "no task": (csv_of(with_row(task="")), 3, "task"),
    "a long task": (csv_of(with_row(task="t" * 300)), 3, "task"),
    "task turned about": (csv_of(with_row(task="t\u202e02")), 3, "task"),
    "a row twice": (csv_of([*rows(), rows()[2]]), 21, None),
    "valid maybe": (csv_of(with_row(valid="maybe")), 3, "valid"),
    "cost below": (csv_of(with_row(cost_usd=-1)), 3, "cost_usd"),
    "tokens 1.5": (csv_of(with_row(n_input_tokens=1.5)), 3, "n_input_tokens"),
    "temperature hot": (csv_of(with_row(temperature="hot")), 3, "temperature"),
    "a long value": (csv_of(with_row(note="x" * 5_000)), 3, "note"),
    "a value of 10 MB": (csv_of(with_row(note="x" * 10**7)), None, None),
    "a header of 10 MB": (b"c" * 10**7 + b",task\n1,t01\n", None, None),
    "another agent": (csv_of(with_row(agent="someone")), 3, "agent"),
    "another benchmark": (csv_of(with_row(benchmark="Other")), 3, "benchmark"),
    "a date ahead": (csv_of(with_row(submitted_at="2999-01-01")), 3, "submitted_at"),
    "no date": (csv_of(with_row(submitted_at="yesterday")), 3, "submitted_at"),
    "an old date": (csv_of(rows(submitted_at="2020-01-01")), None, "submitted_at"),
    "a mean of no runs": (csv_of(with_row(n_averaged=0)), 3, "n_averaged"),
    "a mean that is none": (csv_of(with_row(n_averaged=3, outcome=0.5)), 3, "n_averaged"),
    "means of very many": (csv_of([one(n_averaged=32_767, run=i) for i in range(70)]), None, None),
    "501 settings": (csv_of([one(judge=f"j{i}") for i in range(501)]), None, None),
    "a long judge": (csv_of(with_row(judge="j" * 256)), 3, "judge"),
    "names without end": (csv_of([one(judge=f"{i:0250d}") for i in range(900)]), None, None),
    "a ZIP": (zip_of(GOOD), None, None),
    "a ZIP bomb": (lambda: zip_of(b"0" * 100 * MIB), None, None),
    "gzip cut off": (ZIPPED[:-12], None, None),
    "gzip cut at once": (ZIPPED[:12], None, None),
    "gzip damaged": (flipped(ZIPPED, len(ZIPPED) // 2), None, None),
    "gzip with a wrong sum": (flipped(ZIPPED, len(ZIPPED) - 6), None, None),
    "gzip and then waste": (ZIPPED + b"waste", None, None),
    "gzip twice": (gzip.compress(ZIPPED), None, None),
    "gzip bomb": (lambda: gzip.compress(HEAD + b"\n" + b"t01,1,1\n" * 8 * MIB, 9), None, None),
    "gzip bomb of blank lines": (lambda: gzip.compress(HEAD + b"\n" * 64 * MIB, 9), None, None),
    "Parquet in gzip": (gzip.compress(P), None, None),
    "Parquet cut off": (P[:-20], None, None),
    "Parquet head alone": (b"PAR1", None, None),
    "Parquet damaged": (flipped(P, 30), None, None),
    "Parquet with a huge footer": (P[:-8] + struct.pack("<I", 2**31 - 1) + b"PAR1", None, None),
    "Parquet without footer": (P[:-8] + struct.pack("<I", 0) + b"PAR1", None, None),
    "Parquet of lists": (parquet_table(task=[["t01"]], trial=[1], outcome=[1]), None, "task"),
    "Parquet of NaN": (parquet_table(task=["t01"], trial=[1], outcome=[float("nan")]), 1, "outcome"),
    "Parquet of nulls": (parquet_table(task=["t01", None], trial=[1, 2], outcome=[1.0, 0.0]), 2, "task"),
    "Parquet without rows": (NOTHING, None, None),
    "Parquet, negative trial": (parquet_of(with_row(trial=-1)), 3, "trial"),
    "Arrow": (b"ARROW1\0\0" + b"x" * 100, None, None),
    "a workbook": (b"PK\x03\x04" + b"x" * 100, None, None),
    "bzip2": (b"BZh91AY" + b"x" * 100, None, None),
    "a PDF": (b"%PDF-1.7\n" + b"x" * 100, None, None),
    "a JSON array": (json.dumps(rows()).encode(), None, None),
    "NDJSON nested deep": (b'{"task": ' + b"[" * DEEP + b"]" * DEEP + b"}\n", 1, None),
    "NDJSON of objects deep": (b'{"a": ' * DEEP + b"1" + b"}" * DEEP + b"\n", 1, None),
    "NDJSON, a key twice": (b'{"task": "t01", "task": "t02", "trial": 1, "outcome": 1}\n', 1, None),
    "NDJSON, a list in a field": (ndjson_of(with_row(task=["t02"])), 3, "task"),
    "NDJSON, negative trial": (ndjson_of(with_row(trial=-1)), 3, "trial"),
    "NDJSON, a lone surrogate": (ndjson_of(with_row(task="\ud800")), 3, "task"),
    "NDJSON, NUL": (ndjson_of(with_row(note="a\x00b")), 3, "note"),
    "NDJSON, no object": (ndjson_of(rows()) + b'"text"\n', 21, None),
    "NDJSON, cut off": (ndjson_of(rows())[:-10], 20, None),
    "NDJSON, NaN": (b'{"task": "t01", "trial": 1, "outcome": NaN}\n', 1, "outcome"),
    "NDJSON, a line of 10 MB": (ndjson_of(with_row(note="x" * 10**7)), None, None),
    "NDJSON, an agent within": (ndjson_of(with_row(agent="someone")), 3, "agent"),
}  # fmt: skip
# What is sent as a JSON body: its text, the status, and the row and field.
BODIES = {
    "empty": (b"", 411, None, None),
    "cut off": (text_json()[:-5], 400, None, None),
    "no object": ("[]", 422, None, "body"),
    "a number": ("1", 422, None, "body"),
    "null": ("null", 422, None, "body"),
    "two bodies": (text_json() + text_json(), 400, None, None),
    "UTF-16": (text_json().encode("utf-16"), 400, None, None),
    "a mark before": (b"\xef\xbb\xbf" + text_json().encode(), 400, None, None),
    "gzip": (gzip.compress(text_json().encode()), 400, None, None),
    "lists nested deep": ("[" * DEEP + "]" * DEEP, 400, None, None),
    "objects nested deep": ('{"agent": ' * DEEP + "1" + "}" * DEEP, 400, None, None),
    "nested in a row": (row_json('{"task": ' + "[" * 900 + "]" * 900 + "}"), (400, 422), None, None),
    "very many values": ("[" + "1," * 1_000_000 + "1]", 413, None, None),
    "a key twice": ('{"agent": {}, "agent": {}}', 400, None, None),
    "a key twice in a row": (row_json('{"task": "t01", "task": "t02"}'), 400, None, None),
    "a constant": (row_json('{"task": "t01", "trial": 1, "outcome": Infinity}'), 400, None, None),
    "a string of 10 MB": (text_json(run="x" * 10**7), 422, None, "run"),
    "a name of 10 MB": (text_json(agent=agent("x" * 10**7)), 422, None, "agent.name"),
    "a task of 10 MB": (row_json(json.dumps(one(task="x" * 10**7))), 422, 1, "task"),
    "a lone surrogate": (text_json(agent=agent("\ud800")), 422, None, "agent.name"),
    "NUL": (text_json(agent=agent("a\x00")), 422, None, "agent.name"),
    "negative trial": (row_json('{"task": "t01", "trial": -1, "outcome": 1}'), 422, 1, "trial"),
    "a trial of 400 digits": (row_json(json.dumps(one(trial=10**400))), 422, 1, "trial"),
    "a trial of 5000 digits": (row_json(f'{{"task": "t01", "trial": {"9" * 5_000}}}'), 400, None, None),
    "a foreign task": (row_json('{"task": "elsewhere", "trial": 1, "outcome": 1}'), 422, 1, "task"),
    "a formula": (row_json('{"task": "t01", "trial": 1, "outcome": "=1+1"}'), 422, 1, "outcome"),
    "text for outcomes": (text_json(outcomes="t01"), 422, None, "outcomes"),
    "no outcomes": (text_json(outcomes=[]), 422, None, "outcomes"),
    "a row that is none": (row_json("1"), 422, 1, None),
    "20,001 rows": (text_json(outcomes=[one(trial=i) for i in range(20_001)]), 422, None, "outcomes"),
    "an embargo of a year": (text_json(embargo_until="2999-01-01"), 422, None, "embargo_until"),
    "an id that is none": (text_json(replaces="1; DROP TABLE"), 422, None, "replaces"),
    "a link that runs": (text_json(links={"logs": "javascript:alert(1)"}), 422, None, "links.logs"),
    "metadata without end": (text_json(outcomes=rows(note="x" * 4_000)), 422, None, "note"),
}  # fmt: skip
# The fields beside a good file, and which of them is named.
BESIDE = {
    "no agent": ({}, "agent"),
    "an unknown field": (AGENT | {"colour": "red"}, "colour"),
    "an unknown field of the agent": (AGENT | {"agent.colour": "red"}, "agent.colour"),
    "agent as text": ({"agent": "newcomer"}, "agent"),
    "agent as text and by path": (AGENT | {"agent": "newcomer"}, "agent"),
    "NUL": (AGENT | {"agent.name": "a\x00b"}, "agent.name"),
    "no UTF-8": (AGENT | {"agent.name": b"a\xff"}, "agent.name"),
    "a name of 1 MB": (AGENT | {"agent.name": "x" * MIB}, "agent.name"),
    "a field twice": (AGENT | {"run": ["a", "b"]}, "run"),
    "both ways": (AGENT | {"submission": "{}"}, "submission"),
    "a part that is no object": ({"submission": "[]"}, "submission"),
    "an old date": (AGENT | {"submitted_at": "2020-01-01"}, "submitted_at"),
    "no date": (AGENT | {"submitted_at": "yesterday"}, "submitted_at"),
    "an embargo that is over": (AGENT | {"embargo_until": "2020-01-01"}, "embargo_until"),
    "an id that is none": (AGENT | {"assignment": "none"}, "assignment"),
    "links as text": (AGENT | {"links": "https://example.org"}, "links"),
    "outcomes beside": (AGENT | {"outcomes": "[]"}, "outcomes"),
}


@pytest.fixture(scope="module", autouse=True)
def seconds():
    """How long each took; the slowest are printed."""
    taken = {}
    yield taken
    slowest = sorted(taken.items(), key=lambda one: -one[1])[:5]
    print("\nslowest:", ", ".join(f"{name} {one:.2f} s" for name, one in slowest))


def state():
    models = (Agent, Submission, Outcome, Setting, IdempotencyKey)
    return [*(model.objects.count() for model in models), Benchmark.objects.get().data_version]


def refused(send, name, seconds):
    """Send it; return the problem, of which nothing is stored and nothing is long."""
    before, begin = state(), time.perf_counter()
    response = send()
    seconds[name] = time.perf_counter() - begin
    assert 400 <= response.status_code < 500, response.content[:500]
    assert response["Content-Type"] == "application/problem+json"
    assert state() == before
    assert len(response.content) < MIB
    problem = response.json()
    assert problem["detail"]
    return problem


def places(problem):
    return {(one["row"], one["field"]) for one in problem.get("faults", ())}


@pytest.mark.parametrize("name", FILES)
def test_a_file(submit_token, seconds, name):
    content, row, field = FILES[name]
    content = content() if callable(content) else content
    suffix = ".ndjson" if "NDJSON" in name else ".csv"
    key = {"Idempotency-Key": "one"}
    problem = refused(lambda: send_file(content, token=submit_token, name=f"a{suffix}", **key), name, seconds)
    assert problem["status"] == 422
    assert (row, field) in places(problem), problem["faults"][:3]
    assert all(one["rule"] for one in problem["faults"])


@pytest.mark.parametrize("name", BODIES)
def test_a_body(post, seconds, name):
    text, status, row, field = BODIES[name]
    problem = refused(lambda: post(text, **{"Idempotency-Key": "one"}), f"{name} (JSON)", seconds)
    assert problem["status"] in (status if isinstance(status, tuple) else (status,))
    if field or row:
        assert (row, field) in places(problem), problem["faults"][:3]


def test_a_number_of_very_many_digits(submit_token):
    answer = Client().post(
        ADDRESS,
        '{"run": %s}' % ("9" * 100_000),
        content_type="application/json",
        headers={"Authorization": f"Bearer {submit_token}", "Idempotency-Key": "one"},
    )
    detail = "The body is not JSON: a number has too many digits: 100,000: line 1 column 9 (char 8)."
    assert answer.json()["detail"] == detail


@pytest.mark.parametrize("name", BESIDE)
def test_fields_beside_a_file(submit_token, seconds, name):
    fields, field = BESIDE[name]
    problem = refused(lambda: send_file(GOOD, fields, token=submit_token), f"{name} (beside)", seconds)
    assert field in {one["field"] for one in problem["faults"]}, problem["faults"][:3]


@pytest.mark.parametrize(
    ("kind", "content", "length", "status"),
    [
        ("multipart/form-data; boundary=B", b"--B--\r\n", None, 411),
        ("application/json", b"{}", None, 411),
        ("multipart/form-data; boundary=B", b"--B--\r\n", "none", 411),
        ("multipart/form-data; boundary=B", b"--B--\r\n", str(80 * MIB), 413),
        ("application/json", b"{}", str(17 * MIB), 413),
        ("multipart/form-data", b"--B--\r\n", "7", 400),
        ("multipart/form-data; boundary=" + "x" * 300, b"waste", "5", 415),
        ("multipart/form-data; boundary=B", b"", "0", 400),
        ("multipart/form-data; boundary=B", b"waste", "5", 400),
        ("text/csv", GOOD, str(len(GOOD)), 415),
        ("application/x-www-form-urlencoded", b"a=1", "3", 415),
    ],
)
def test_how_it_is_sent(submit_token, seconds, kind, content, length, status):
    def send():
        return Client().generic(
            "POST",
            ADDRESS,
            content,
            content_type=kind,
            headers={"Authorization": f"Bearer {submit_token}"},
            CONTENT_LENGTH=length or "",
        )

    assert refused(send, f"{kind[:30]} of {length}", seconds)["status"] == status


def test_what_is_odd_and_good_is_taken(submit_token):
    """A mark, CRLF, quotes, no last line's end, formulas and emoji in metadata."""
    lines = ["task,trial,outcome,note", *(f't{j:02d},1,1,"=1+1, ""{j}"" 🙂"' for j in range(20))]
    content = b"\xef\xbb\xbf" + "\r\n".join(lines).encode()
    assert send_file(content, token=submit_token).status_code == 201
