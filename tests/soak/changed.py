"""Strategies of hypothesis: good inputs with something wrong in them."""

import gzip
import json
from typing import Any

from hypothesis import strategies as st

from tests.soak.parsers import Reader

MARKS = ("", "\0", ",", '"', "\n", "\r", "{", "}", "[", "]", ":", "null", "true", "-1", "1e400", "9" * 400)
MORE = (
    "\ufeff",
    "\ud800",
    "\u202e",
    "İ",
    "=1",
    "<b>",
    "../",
    "NaN",
    "2026-13-40",
    "0001-01-01T00:00:00+23:59",
)
MOST = 4 << 20  # bytes of an input that grows
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from((*MARKS, *MORE)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


def inputs(reader: Reader) -> st.SearchStrategy[bytes]:
    """Bytes that are nearly a sample."""
    kinds = [edited(reader)]
    if documents := [found for sample in reader.samples if (found := document_in(sample)) is not None]:
        kinds.append(st.sampled_from(documents).flatmap(changed).map(as_text))
    return st.one_of(*kinds)


def document_in(sample: bytes) -> Any:
    try:
        return json.loads(sample)
    except ValueError:
        return None


def as_text(document: Any) -> bytes:
    return json.dumps(document).encode()


@st.composite
def changed(draw: st.DrawFn, document: Any) -> Any:
    """The document with a few values put in the place of others, left out or given twice."""
    found = json.loads(json.dumps(document))
    for _ in range(draw(st.integers(1, 4))):
        places = list(places_in(found))
        if not places:
            return draw(VALUES)
        inside, key = draw(st.sampled_from(places))
        what = draw(st.sampled_from(("replace", "remove", "many", "rename", "swap")))
        if what == "replace":
            inside[key] = draw(VALUES)
        elif what == "remove":
            del inside[key]
        elif what == "many":
            inside[key] = [inside[key]] * draw(st.integers(0, 5))
        elif what == "rename" and isinstance(inside, dict):
            inside[draw(st.text(max_size=5))] = inside.pop(key)
        else:
            other, place = draw(st.sampled_from(places))
            inside[key] = json.loads(json.dumps(other[place]))
    return found


def places_in(found: Any) -> Any:
    """Every place of a value in a document: what holds it, and under which key."""
    keys = list(found) if isinstance(found, dict) else range(len(found)) if isinstance(found, list) else ()
    for key in keys:
        yield found, key
        yield from places_in(found[key])


@st.composite
def edited(draw: st.DrawFn, reader: Reader) -> bytes:
    """A sample with a few pieces cut out, repeated, flipped or put in; compressed anew where it was."""
    data = draw(st.sampled_from(reader.samples))
    head, zipped = (data[:1], data[1:]) if data[:1] == b"\0" else (b"", data)
    inside = zipped[:2] == b"\x1f\x8b" and draw(st.booleans())
    found = gzip.decompress(zipped) if inside else data
    for _ in range(draw(st.integers(1, 5))):
        found = edit(draw, found, reader)[:MOST]
    return head + gzip.compress(found, 1) if inside else found


def edit(draw: st.DrawFn, data: bytes, reader: Reader) -> bytes:
    start = draw(st.integers(0, len(data)))
    end = draw(st.integers(start, min(len(data), start + 40)))
    what = draw(st.sampled_from(("cut", "put", "word", "repeat", "flip", "end")))
    if what == "cut":
        return data[:start] + data[end:]
    if what == "put":
        return data[:start] + draw(st.binary(max_size=8)) + data[start:]
    if what == "word":
        word = draw(st.sampled_from((*MARKS, *MORE, *reader.words)))
        return data[:start] + word.encode("utf-8", "surrogatepass") + data[end:]
    if what == "repeat":
        times = draw(st.sampled_from((2, 3, 100, 10_000, 100_000)))
        return data[:start] + data[start:end] * min(times, MOST // max(1, end - start)) + data[end:]
    if what == "flip" and start < len(data):
        return data[:start] + bytes([data[start] ^ draw(st.integers(1, 255))]) + data[start + 1 :]
    return data[:start]
