"""Deliveries as a client sends them: a JSON body, or a file with fields beside it."""

import gzip
import io
import json
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from leaderboard.operations.services import issue_token

ADDRESS = "/api/v1/benchmarks/toy/submissions"
AGENT = {"agent.name": "newcomer", "agent.scaffold": "Loop", "agent.model": "Model 9"}


def today():
    return f"{datetime.now(UTC):%Y-%m-%d}"


def token_for(email="ada@example.org", scope="submit", as_of=None):
    now, life = as_of or datetime.now(UTC), timedelta(days=1)
    return issue_token(email=email, slug="toy", scope=scope, name="ci", as_of=now, life=life)[1]


def body(agent="newcomer", **more):
    return {
        "agent": {"name": agent, "scaffold": "Loop", "model": f"M {agent}"},
        "outcomes": [{"task": f"t{j:02d}", "trial": 1, "outcome": j % 2} for j in range(20)],
    } | more


def rows(n=20, **more):
    return [{"task": f"t{j:02d}", "trial": 1, "outcome": j % 2} | more for j in range(n)]


def csv_of(found):
    names = list(dict.fromkeys(name for row in found for name in row))
    lines = [",".join(names), *(",".join(str(row.get(name, "")) for name in names) for row in found)]
    return ("\n".join(lines) + "\n").encode()


def ndjson_of(found):
    return "".join(json.dumps(row) + "\n" for row in found).encode()


def parquet_of(found):
    out = io.BytesIO()
    names = dict.fromkeys(name for row in found for name in row)
    pq.write_table(pa.Table.from_pylist([dict.fromkeys(names) | row for row in found]), out)
    return out.getvalue()


FORMS = {
    "outcomes.csv": csv_of,
    "outcomes.csv.gz": lambda found: gzip.compress(csv_of(found)),
    "outcomes.ndjson": ndjson_of,
    "outcomes.ndjson.gz": lambda found: gzip.compress(ndjson_of(found)),
    "outcomes.parquet": parquet_of,
}


def send_file(content, fields=None, *, token, name="outcomes.csv", query="", client=None, **headers):
    """POST a file as a multipart body; several contents stand for several files."""
    parts = dict(AGENT if fields is None else fields)
    if content is not None:
        parts["file"] = SimpleUploadedFile(name, content)
    return (client or Client()).post(
        ADDRESS + query, parts, headers={"Authorization": f"Bearer {token}"} | headers
    )


def send(content, *, token, query="", **headers):
    """POST a JSON body."""
    return Client().post(
        ADDRESS + query,
        content if isinstance(content, bytes | str) else json.dumps(content),
        content_type="application/json",
        headers={"Authorization": f"Bearer {token}"} | headers,
    )
