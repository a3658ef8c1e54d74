"""Outcomes as streams of bytes: CSV, NDJSON and Parquet, without a loop over rows."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc

from leaderboard.catalog.models import Benchmark
from leaderboard.submissions.export.columns import CODED, TEXT, TYPES, ExportColumn
from leaderboard.submissions.export.outcomes import OutcomeRows
from leaderboard.submissions.parsing.flat import guarded

FILE = "data/outcomes.parquet"
SIZES = (
    (10**3, "n<1K"),
    (10**4, "1K<n<10K"),
    (10**5, "10K<n<100K"),
    (10**6, "100K<n<1M"),
    (10**7, "1M<n<10M"),
)
LARGER = "10M<n<100M"
# Of the identifiers that the hub knows, those that data have.
LICENCES = re.compile(
    r"cc0-1\.0|cc-by(-nc)?(-sa|-nd)?-[234]\.0|mit|apache-2\.0|odbl|odc-by|pddl|bsd-3-clause"
)


def write_dataset(folder: Path, outcomes: OutcomeRows) -> None:
    """A data set as Hugging Face takes it: the outcomes, and a card (README.md with a YAML head)."""
    path = folder / FILE
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        file.writelines(write_parquet(outcomes))
    about = outcomes.snapshot.about
    text = card(about, outcomes.columns, outcomes.n_rows)
    (folder / "README.md").write_text(text, encoding="utf-8")


def card(about: Benchmark, columns: tuple[ExportColumn, ...], n_rows: int) -> str:
    rows = [f"| `{one.name}` | {TYPES[one.kind]} | {one.description} |" for one in columns]
    table = "\n".join(["| column | type | what it holds |", "|---|---|---|", *rows])
    parts = [
        _head(about, n_rows),
        f"# {about.title}",
        f"{n_rows:,} outcomes of AI agents, one row for each trial of an agent on a task: data version "
        f"{about.data_version} of the benchmark `{about.slug}`.",
        *([f"The benchmark is described at <{about.url}>."] if about.url else []),
        f"Licence: {about.licence or 'not stated'}.",
        "A mean over rows counts tasks with many trials more often; take the mean by task first. Trials with "
        "`valid` false are failures of the harness, and say nothing about the agent.",
        "## Columns",
        table,
    ]
    if about.citation:  # its own fences are shorter than that around it
        fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", about.citation))])
        parts += ["## Citation", f"{fence}\n{about.citation}\n{fence}"]
    return "\n\n".join(parts) + "\n"


def _head(about: Benchmark, n_rows: int) -> str:
    """The YAML head; a text as JSON writes it is a text of YAML too."""
    size = next((name for limit, name in SIZES if n_rows < limit), LARGER)
    identifier = re.sub(r"\s+", "-", about.licence.strip().lower())
    licence = ["license: other", f"license_name: {_quote(about.licence)}"]
    if LICENCES.fullmatch(identifier) or not about.licence:
        licence = [f"license: {identifier or 'unknown'}"]
    lines = [
        "---",
        f"pretty_name: {_quote(about.title)}",
        *licence,
        "tags:",
        *(f"- {tag}" for tag in ("agents", "benchmark", "evaluation", "leaderboard")),
        "size_categories:",
        f"- {size}",
        "configs:",
        "- config_name: default",
        "  data_files:",
        "  - split: train",
        f"    path: {FILE}",
        "---",
    ]
    return "\n".join(lines)


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def write_csv(outcomes: OutcomeRows) -> Iterator[bytes]:
    """Write CSV by the rules of the flat file; no field is taken for a formula by a spreadsheet."""
    names = _quote_csv(pa.array(outcomes.schema.names, pa.string()))
    yield ",".join(names.to_pylist()).encode() + b"\n"
    for batch in outcomes.batches():
        fields = [part for column in batch.columns for part in (",", _texts(column, _quote_csv))]
        yield _joined([*fields[1:], "\n"])


def _quote_csv(texts: pa.Array) -> pa.Array:
    """Put texts in quotes that hold a comma or a quote; none holds a line end."""
    texts = guarded(texts)
    special = pc.match_substring_regex(texts, '[,"]')
    if not pc.any(special).as_py():
        return texts
    doubled = pc.replace_substring(texts, '"', '""')
    return pc.if_else(special, pc.binary_join_element_wise('"', doubled, '"', ""), texts)


def write_ndjson(outcomes: OutcomeRows) -> Iterator[bytes]:
    for batch in outcomes.batches():
        parts: list[pa.Array | str] = []
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            parts.append(f"{', ' if parts else '{'}{_quote(name)}: ")
            parts.append(pc.fill_null(_texts(column, _quote_json), "null"))
        yield _joined([*parts, "}\n"])


def _quote_json(texts: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(texts, "[[:cntrl:]]")).as_py():
        return pa.array(map(_quote, texts.to_pylist()), pa.string())
    escaped = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), '"', '\\"')
    return pc.binary_join_element_wise('"', escaped, '"', "")


def _texts(column: pa.Array, quote: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """A column as text; of a coded one each text is put in quotes once."""
    if column.type == CODED:
        return pc.take(quote(column.dictionary), column.indices)
    return quote(column) if column.type == TEXT else column.cast(pa.string())


def with_end_mark(content: Iterable[bytes], n_rows: int) -> Iterator[bytes]:
    """Add a line that says how many rows there were, and what their bytes hash to."""
    digest = hashlib.sha256()
    for block in content:
        digest.update(block)
        yield block
    yield json.dumps({"end": True, "n": n_rows, "sha256": digest.hexdigest()}).encode() + b"\n"


def _joined(parts: Iterable[pa.Array | str]) -> bytes:
    """Join columns of text, and texts that stand in every row between them, row by row."""
    fields = [pa.scalar(part) if isinstance(part, str) else part for part in parts]
    lines = pc.binary_join_element_wise(*fields, "", null_handling="replace", null_replacement="")
    if isinstance(lines, pa.ChunkedArray):
        lines = lines.combine_chunks()
    _, offsets, content = lines.buffers()
    first, last = (int.from_bytes(offsets[4 * i : 4 * i + 4].to_pybytes(), "little") for i in (0, len(lines)))
    return bytes(content[first:last]) if content else b""


def write_parquet(outcomes: OutcomeRows) -> Iterator[bytes]:
    """Give the bytes of each group of rows as soon as it is there, and the footer in the end."""
    from pyarrow import parquet

    sink = _BufferSink()
    with parquet.ParquetWriter(
        pa.PythonFile(sink, mode="w"), outcomes.schema, compression="zstd", write_page_checksum=True
    ) as writer:
        for batch in outcomes.batches():
            writer.write_batch(batch)
            yield sink.taken()
    yield sink.taken()


class _BufferSink:
    """The file that pyarrow writes to: what was written waits to be taken."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._n = 0

    def write(self, content: bytes) -> int:
        self._parts.append(bytes(content))
        self._n += len(content)
        return len(content)

    def taken(self) -> bytes:
        taken, self._parts = b"".join(self._parts), []
        return taken

    def tell(self) -> int:
        return self._n

    def flush(self) -> None: ...

    def close(self) -> None: ...


FORMATS: Mapping[str, Callable[[OutcomeRows], Iterator[bytes]]] = MappingProxyType(
    {"csv": write_csv, "ndjson": write_ndjson, "parquet": write_parquet}
)
