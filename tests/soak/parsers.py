"""Every reader of what strangers send: by name, what is given to it, good samples, and its own refusals.

A reader takes bytes. What it raises beyond the refusals named here is a fault of the service.
"""

import gzip
import io
import json
import os
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
from django.core.exceptions import TooManyFieldsSent
from django.http import QueryDict
from django.template import Context, Template
from rest_framework.exceptions import APIException
from rest_framework.parsers import JSONParser
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from analytics.errors import CoreError
from analytics.flat_file import DELIVERED, FlatFileError, read
from analytics.reml import formula
from analytics.tee.components import parse_facets
from analytics.tee.dstudy import parse_design
from leaderboard.accounts import secrets
from leaderboard.api import bodies
from leaderboard.api.parsers import BoundedMultipart, parse_json
from leaderboard.catalog.models import Benchmark
from leaderboard.catalog.rules import RULES
from leaderboard.errors import Refusal
from leaderboard.pages.access import number_in
from leaderboard.pages.board import SIGNS, _escaped
from leaderboard.pages.board_query import filters_of, read_query, unknown
from leaderboard.submissions.parsing import importers
from leaderboard.submissions.parsing.files import Form, UploadedPart, read_body, read_upload
from leaderboard.submissions.parsing.task_list import read_tasks
from tests.leaderboard.importers.base import FILES, text_of
from tests.toys import AS_OF, csv_text

AGENT = {"name": "a", "scaffold": "Loop", "model": "M"}
TASKS = ("t00", "t01", "t02", "a", "b", "c")
PLACE = {"benchmark": Benchmark(slug="toy", title="Toy"), "tasks": TASKS}
COLUMNS = ("item", "prompt", "judge", "run", "batch/cask")
MEMORY = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None
SHOWN = Template('{% load figures %}<a href="{{ link }}">{{ link }}</a>{{ link|prose }}')


@dataclass(frozen=True)
class Reader:
    """`samples` are bytes that it takes; `words` are tokens that its inputs are made of."""

    read: Callable[[bytes], object]
    refusals: tuple[type[Exception], ...]
    samples: tuple[bytes, ...]
    words: tuple[str, ...] = ()


# ------------------------------------------------------------------------------------------------- flat files


def flat(name: str) -> Callable[[bytes], object]:
    def reader(data: bytes) -> object:
        return read(io.BytesIO(data), as_of=AS_OF, name=name, limits=DELIVERED)

    return reader


CSV = csv_text({"a": "101", "b": "0x."}).encode()
ROWS = [
    {"benchmark": "Toy", "agent": "a", "scaffold": "Loop", "model": "M", "submitted_at": "2026-01-05"}
    | {"task": f"t0{j}", "trial": 1, "outcome": outcome, "temperature": 0.5, "run": "r", "cost_usd": 0.1}
    for j, outcome in enumerate((1, 0, 0.5))
]
NDJSON = "".join(f"{json.dumps(row)}\n" for row in ROWS).encode()


def parquet(**options: object) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS), out, **options)
    return out.getvalue()


PARQUET = (parquet(), parquet(compression="zstd", use_dictionary=False), parquet(compression="none"))
COLUMN_WORDS = (*ROWS[0], "valid", "prompt_variant", "judge", "=1+1", "'=1", "\ufeff", '"', "\r\n", "NaN")


# ------------------------------------------------------------------------------------------------- deliveries


def upload(data: bytes) -> object:
    """The first byte chooses the format that is named, the rest is the file."""
    formats = (None, *importers.FORMATS)
    form = Form(formats[data[0] % len(formats)] if data else None)
    part = UploadedPart(io.BytesIO(data[1:]), "x.gz", len(data) - 1)
    return read_upload(part, {"agent": AGENT}, **PLACE, form=form, as_of=AS_OF)


def delivered(data: bytes) -> object:
    body = read_body(parse_json(data), benchmark="toy", tasks=TASKS, as_of=AS_OF)
    return body.sha256(), linked(body.links)


def linked(links: dict[str, str]) -> None:
    """What a page shows of links leads to the web, and leaves no text of theirs bare."""
    for link in links.values():
        assert link.startswith(("https://", "http://"))
        assert SHOWN.render(Context({"link": link})).count("<") == 2


BODY = json.dumps(
    {
        "agent": AGENT | {"version": "1", "organisation": "Us"},
        "submitted_at": "2026-05-05T00:00:00Z",
        "run": "r",
        "links": {"commit": "https://example.org/c", "logs": "http://example.org/?a=<b>"},
        "embargo_until": "2026-06-30",
        "replaces": "6f0f1f6e-0c2b-4f66-9a3b-1f9a2c1f0a11",
        "outcomes": [{"task": "t00", "trial": 1, "outcome": 1, "valid": True, "note": "=1"}],
    }
).encode()

SAID = {
    bodies.AssignmentBody: {"agent": AGENT},
    bodies.ReasonBody: {"reason": "because"},
    bodies.ApprovalBody: {"variant": "plain", "reason": "because"},
    bodies.FreezeBody: {"frozen": True, "reason": "because"},
    bodies.PolicyBody: {"values": {"n_trials": "2"}, "reason": "because"},
    bodies.ReportBody: {"text": "wrong", "board": 1, "contact": "ada@example.org"},
    bodies.DeliveryBody: json.loads(BODY),
    bodies.Links: {"commit": "https://example.org/c"},
}


def said(data: bytes) -> object:
    """A body by every form of the interface."""
    body = parse_json(data)
    for form in SAID:
        try:
            form.read(body)
        except Refusal as refusal:
            str(refusal.faults)  # type: ignore[attr-defined]


BOUNDARY = "part"
PART = 'Content-Disposition: form-data; name="{}"{}\r\n\r\n{}'
BESIDE = (PART.format("agent.name", "", "a"), PART.format("submission", "", '{"run": "r"}'))
FILE = PART.format("file", '; filename="../a.csv"', "task,trial,outcome\nt00,1,1")
MULTIPART = tuple(
    ("".join(f"--{BOUNDARY}\r\n{part}\r\n" for part in (beside, FILE)) + f"--{BOUNDARY}--\r\n").encode()
    for beside in BESIDE
)


def multipart(data: bytes) -> object:
    kind = f"multipart/form-data; boundary={BOUNDARY}"
    asked = Request(APIRequestFactory().post("/", data, content_type=kind), parsers=[JSONParser()])
    upload, envelope = BoundedMultipart().parse(io.BytesIO(data), kind, {"request": asked})
    with upload.file:
        return upload, envelope


# -------------------------------------------------------------------------------------------------- importers


def importer(name: str, file: str, stated: dict[str, str]) -> Callable[[bytes], object]:
    def reader(data: bytes) -> object:
        with TemporaryDirectory(dir=MEMORY) as folder:
            path = Path(folder, file)
            path.write_bytes(data)
            return importers.read(
                path,
                name=name,
                options=importers.ImportOptions(**stated),
                benchmark="toy",
                tasks=TASKS,
                as_of=AS_OF,
                limits=importers.FILE,
            )

    return reader


def archive(document: dict[str, object]) -> bytes:
    """A log of inspect_ai in its own format, a ZIP of its parts."""
    out = io.BytesIO()
    header = {key: value for key, value in document.items() if key != "samples"}
    samples = document["samples"]
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as parts:
        parts.writestr("header.json", json.dumps(header))
        for sample in samples:  # type: ignore[attr-defined]
            parts.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))
    return out.getvalue()


def of_formats() -> dict[str, Reader]:
    found = {}
    for name, (file, make, stated, _) in FILES.items():
        text = text_of(name, make()).encode()
        samples = [text, gzip.compress(text)]
        if name == "inspect":
            samples.append(archive(make()))
        found[name] = Reader(importer(name, file, stated), (Refusal,), tuple(samples))
    return found


# ----------------------------------------------------------------------------------------------------- texts


def policy(data: bytes) -> object:
    """The first line names a field, the rest is what it is set to."""
    field, _, text = data.decode("utf-8", "replace").partition("\n")
    try:
        return RULES[field].read(text)
    except RecursionError as error:
        raise ValueError(text[:80]) from error  # as `operations.policies` answers it


def formulas(data: bytes) -> object:
    text = data.decode("utf-8", "replace")
    for parse in (
        lambda: formula.parse(text, COLUMNS),
        lambda: parse_design(text),
        lambda: parse_facets(text),
    ):
        try:
            parse()
        except CoreError as refusal:
            str(refusal)


def shown(data: bytes) -> object:
    """Markdown in which nothing of a name is read as such, and prose in which nothing is a tag."""
    text = data.decode("utf-8", "replace")
    told = _escaped(text)
    assert "\n" not in told
    assert SIGNS.sub("", told.replace("\\\\", "")).count("<") == 0
    assert SHOWN.render(Context({"link": text})).replace("<code>", "").replace("</code>", "").count("<") == 2


def address(data: bytes) -> object:
    """What stands behind the question mark of a board's address."""
    query = QueryDict(data)
    asked = read_query(query)
    return unknown(asked, is_ranked=False), filters_of(asked), number_in(query.get("board", ""))


def tasks(data: bytes) -> object:
    with TemporaryDirectory(dir=MEMORY) as folder:
        path = Path(folder, "tasks")
        path.write_bytes(data)
        return read_tasks(path)


GOOD = (
    *("1", "0.25", "10", "yes", "", "gap", "refuse", "mid_range", "approve", "manual", "latest"),
    '["t00", "t01"]',
    '[{"prompt_variant": "p", "judge": null, "temperature": 0.5}]',
)


def policies() -> tuple[bytes, ...]:
    """Of each field every value that it takes."""
    found = []
    for field, text in product(RULES, GOOD):
        with suppress(ValueError, KeyError):
            RULES[field].read(text)
            found.append(f"{field}\n{text}".encode())
    return tuple(found)


REFUSED = (Refusal, APIException)
READERS: dict[str, Reader] = {
    "csv": Reader(flat("a.csv"), (FlatFileError,), (CSV, b"\xef\xbb\xbf" + CSV), COLUMN_WORDS),
    "ndjson": Reader(flat("a.ndjson"), (FlatFileError,), (NDJSON,), COLUMN_WORDS),
    "parquet": Reader(flat("a.parquet"), (FlatFileError,), PARQUET, ("PAR1", *COLUMN_WORDS)),
    "gzip": Reader(
        upload,
        REFUSED,
        tuple(b"\0" + gzip.compress(text) for text in (b"task,trial,outcome\nt00,1,1\n", NDJSON)),
        ("\x1f\x8b", "\x08\x00"),
    ),
    "json": Reader(delivered, REFUSED, (BODY,), ("[", "{", "1e999", "NaN", "null", "\\ud800")),
    "bodies": Reader(said, REFUSED, tuple(json.dumps(one).encode() for one in SAID.values())),
    "multipart": Reader(multipart, REFUSED, MULTIPART, (f"--{BOUNDARY}", "\r\n", 'name="', "base64")),
    **of_formats(),
    "tasks": Reader(tasks, (Refusal,), (b"name,category,group,position\nt00,c,g,1\n", b'{"name": "t00"}\n')),
    "policy": Reader(
        policy,
        (ValueError, KeyError),
        policies(),
        ("1e9", "Infinity", "-0", "٣", "[", '"'),
    ),
    "formula": Reader(
        formulas,
        (),
        (b"item + prompt + item:prompt", b"item*prompt", b"`batch/cask`/judge", b"N=141,V=5,M=2,R=1,H=1"),
        (*COLUMNS, "+", ":", "*", "/", "^", "(", ")", "|", "1", "-", "=", ",", "`"),
    ),
    "shown": Reader(shown, (), (b"a|b <b> `x` [l](javascript:x)", b"- *a*"), ("](", "`", "<", "\\", "&#")),
    "address": Reader(
        address,
        (TooManyFieldsSent,),
        (b"target=full&sort=-cost&vs=3&view=all&rows=9&find=x&cost=1.5&show=model&board=2",),
    ),
    "token": Reader(
        lambda data: secrets.parse(data.decode("utf-8", "replace")),
        (secrets.MalformedTokenError,),
        (secrets.mint().encode(),),
    ),
}
