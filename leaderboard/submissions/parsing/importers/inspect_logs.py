"""Inspect: logs of inspect_ai, ``.eval`` or ``.json``, or a folder of such.

Follows UKGovernmentBEIS/inspect_ai 0.3.285: `EvalLog`, `EvalSpec`, `EvalSample` and `EvalSampleSummary`
(log/_log.py), the archive of log/_recorders/eval.py, and `value_to_float` (scorer/_metric.py). Read
directly, not by inspect_ai (docs/decisions/intake.md).

- Scores are C (1), P (0.5), I and N (0), words for yes and no, or numbers. inspect_ai turns what it does
  not know into 0; here it is a fault.
- NaN is how a scorer says that it could not score, in older logs null: invalid. So is a sample without a
  score (its run broke off by an error), and one that was invalidated afterwards.
- An epoch is a trial, a sample's id a task; ids that are numbers become text.
- Of several scorers the one is taken that the task declares for its headline, else the first; the choice
  is told. A score that is an object of figures takes `--metric SCORER/FIGURE`.
- Archives repeat the scores in ``summaries.json``, a thousandth of the size of the samples. Only where
  samples were invalidated, and in logs of unfinished runs, which lack it, the samples themselves are read.
- A retried evaluation writes a new log that repeats the samples that were done; by their `uuid` they count
  once. A summary may stand twice; the last holds.
- Logs before 2024-06 have `score` in place of `scores`.
- One log is of one task of inspect_ai, which is a benchmark here: logs of several are refused.
"""

import math
import zlib
from collections.abc import Iterator
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from zstandard import ZstdDecompressor, ZstdError

from leaderboard.submissions.parsing.flat import head
from leaderboard.submissions.parsing.importers.base import Carried, Importer, ReadContext, Run, Trial, trial
from leaderboard.submissions.parsing.importers.document import Node, names_of

ZIP = b"PK\x03\x04"
ZSTANDARD = 93  # method of compression
ENCRYPTED = 1  # of a member's flags
BROKEN = (BadZipFile, EOFError, RuntimeError, OSError, UnicodeDecodeError, zlib.error, ZstdError)
MAX_MEMBERS = 200_000
HEADERS = ("header.json", "_journal/start.json")
SUMMARIES, SAMPLES = "summaries.json", "samples/"
LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
RULE = "a score is C, I, P, N, yes, no, true, false or a number from 0 to 1"


def runs(reading: ReadContext) -> Iterator[Run]:
    met: set[str] = reading.shared.setdefault("met", set())
    documents = reading.among(_is_one, "*.json")
    archives = reading.source.named("*.eval") if reading.source.is_folder else []
    for path in documents + archives:
        is_archive = head(path)[:4] == ZIP
        for header, samples in _archive(path, reading) if is_archive else _document(path, reading):
            task = header.at("eval", "task").text() or ""
            first = reading.shared.setdefault("task", (task, header.file))
            if task != first[0]:
                header.at("eval", "task").fault(f"{first[1]} is of {first[0]}; load one task at a time")
            spec = header.get("eval")
            model = spec.get("model").text()
            named = model if model != "none/none" else None
            carried = Carried(
                file=header.file,
                scaffold=spec.get("solver").text(),
                model=named,
                submitted_at=spec.get("created").text(),
                run=spec.get("run_id").text(),
                models=(named.partition("/")[2],) if named and "/" in named else (),
            )
            yield carried, list(_trials(header, samples, met, reading))


def _document(path: Path, reading: ReadContext) -> Iterator[tuple[Node, Iterator[Node]]]:
    node = reading.object_at(path)
    if node is not None and node.get("eval").is_object():
        yield node, node.get("samples").objects(required=True)


def _archive(path: Path, reading: ReadContext) -> Iterator[tuple[Node, Iterator[Node]]]:
    file = reading.source.shown(path)
    try:
        with ZipFile(path) as archive:
            members = {info.filename: info for info in archive.infolist()}
            if len(archive.filelist) > MAX_MEMBERS:
                raise reading.source.refused(path, f"there are more than {MAX_MEMBERS:,} members")
            name = next((name for name in HEADERS if name in members), None)
            if name is None:
                reading.log.add(file, "", f"the archive has no {HEADERS[0]}: it is no log of inspect_ai")
                return
            if name != HEADERS[0]:
                reading.notes.append(f"{file}: the evaluation did not come to its end (no {HEADERS[0]}).")
            header = _member(archive, members[name], path, reading, where="")
            if header is not None and header.is_object() and header.get("eval").is_object():
                yield header, _samples(archive, members, header, path, reading)
    except (BadZipFile, NotImplementedError, UnicodeDecodeError) as error:
        reading.log.add(file, "", f"the archive cannot be read: {error}")


def _samples(
    archive: ZipFile, members: dict[str, ZipInfo], header: Node, path: Path, reading: ReadContext
) -> Iterator[Node]:
    if SUMMARIES in members and header.get("invalidated").value is not True:
        node = _member(archive, members[SUMMARIES], path, reading, where=SUMMARIES)
        entries = () if node is None else node.objects(required=True)
        yield from {(str(one.get("id").value), str(one.get("epoch").value)): one for one in entries}.values()
        return
    for name in sorted(name for name in members if name.startswith(SAMPLES) and name.endswith(".json")):
        node = _member(archive, members[name], path, reading, where=name)
        if node is not None and node.is_object():
            yield node


def _member(archive: ZipFile, info: ZipInfo, path: Path, reading: ReadContext, *, where: str) -> Node | None:
    """One member, if its stated size and what it grows to are within what may be read."""
    file, log = reading.source.shown(path), reading.log
    reading.source.check(path, info.file_size, info.compress_size)
    if info.flag_bits & ENCRYPTED:
        log.add(file, info.filename, "is encrypted")
        return None
    if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED, ZSTANDARD):
        method = info.compress_type
        log.add(file, info.filename, f"is compressed by method {method}, which Inspect never uses")
        return None
    try:
        data = _content(archive, info)
    except BROKEN as error:
        log.add(file, info.filename, f"cannot be read: {error}")
        return None
    reading.source.count(len(data))
    return reading.document_in(data, file, where)


def _content(archive: ZipFile, info: ZipInfo) -> bytes:
    """What a member holds; no more is decompressed than it states, and a byte to see that there is more."""
    if info.compress_type != ZSTANDARD:
        with archive.open(info) as member:
            return member.read(info.file_size)
    raw = copy(info)  # zipfile gives the compressed bytes, as if they were stored so
    raw.compress_type, raw.file_size = ZIP_STORED, info.compress_size
    del raw.CRC  # of what they decompress to
    with archive.open(raw) as packed:
        stream = ZstdDecompressor().stream_reader(packed, read_across_frames=True)
        data = stream.read(info.file_size + 1)
    if len(data) > info.file_size:
        raise BadZipFile(f"it holds more than the {info.file_size:,} bytes that it states")
    if zlib.crc32(data) != info.CRC:
        raise BadZipFile(f"Bad CRC-32 for file {info.filename!r}")
    return data


def _trials(header: Node, samples: Iterator[Node], met: set[str], reading: ReadContext) -> Iterator[Trial]:
    status = header.get("status").value
    if status not in (None, "success"):
        reading.notes.append(f"{header.file}: the evaluation did not come to its end ({status}).")
    chosen = reading.options.metric or _headline(header)
    others: set[str] = set()
    for sample in samples:
        uuid = sample.get("uuid").value
        if isinstance(uuid, str) and uuid in met:
            continue
        if isinstance(uuid, str):
            met.add(uuid)
        scores = _scores(sample)
        others |= set(scores)
        chosen = chosen or next(iter(scores), None)
        outcome, reason = _outcome(sample, chosen)
        heat = header.at("plan", "config", "temperature")
        if heat.value is None:
            heat = header.at("eval", "model_generate_config", "temperature")
        task = sample.get("id")
        if isinstance(task.value, bool) or not isinstance(task.value, str | int | None):
            task.fault(f"the id of a sample is a text or a number, not {task.kind}")
        yield trial(
            Node(None, sample.file, sample.where, sample.log),
            task.value,
            sample.get("epoch").value,
            outcome,
            reason,
            temperature=heat.number(),
            **_usage(sample),
        )
    if chosen and len(others) > 1 and reading.options.metric is None:
        reading.notes.append(
            f"{header.file}: of the scores {names_of(others)}, {chosen} counts; choose another with --metric."
        )


def _headline(header: Node) -> str | None:
    headline = header.at("eval", "headline_metric")
    scorer, score = (headline.get(key).value for key in ("scorer", "score"))
    return "/".join(part for part in (scorer, score) if isinstance(part, str)) if scorer else None


def _scores(sample: Node) -> dict[str, Node]:
    scores = sample.get("scores")
    if isinstance(scores.value, dict):
        return {name: scores.get(name) for name in scores.value}
    if scores.value is not None:
        scores.is_object()
    return {"score": sample.get("score")} if isinstance(sample.get("score").value, dict) else {}


def _outcome(sample: Node, chosen: str | None) -> tuple[object, str | None]:
    """The outcome, or None and why the sample does not count."""
    if sample.get("invalidation").value is not None:
        return None, "invalidated"
    scores = _scores(sample)
    if not scores:
        return None, "error" if sample.get("error").value is not None else "not scored"
    scorer, _, figure = (chosen or "").partition("/")
    score = scores.get(chosen or "") or scores.get(scorer)
    if score is None:
        sample.get("scores").fault(f"there is no score of {chosen}, but {names_of(scores)}")
        return None, None
    value = score.get("value")
    if isinstance(value.value, dict) and figure in value.value:
        value = value.get(figure)
    return _number(value)


def _number(value: Node) -> tuple[object, str | None]:
    number = value.value
    if value.is_missing:
        return None, "not scored"
    if isinstance(number, dict):
        value.fault(f"the score has several figures; --metric SCORER/FIGURE names one of {names_of(number)}")
    elif isinstance(number, bool):
        return int(number), None
    elif isinstance(number, int | float):
        return number, None
    elif isinstance(number, str) and (known := LETTERS.get(number, WORDS.get(number.lower()))) is not None:
        return known, None
    else:
        with suppress(ValueError, TypeError):
            if math.isfinite(float(number)):
                return number, None
        value.fault(RULE)
    return None, None


def _usage(sample: Node) -> dict[str, Any]:
    """Tokens over all models; input that was read from or written to a cache is input too."""
    usage = sample.get("model_usage")
    if not isinstance(usage.value, dict) or not usage.value:
        return {}
    models = [usage.get(name) for name in usage.value]

    def total(*names: str) -> float:
        return sum(model.get(name).number() or 0 for model in models for name in names)

    costs = [model.get("total_cost").number() for model in models]
    return {
        "n_input_tokens": total("input_tokens", "input_tokens_cache_read", "input_tokens_cache_write"),
        "n_output_tokens": total("output_tokens"),
        "cost_usd": None if None in costs else sum(cost or 0 for cost in costs),
    }


def _is_one(name: str, keys: frozenset[str]) -> bool:
    return {"eval", "eval.task", "eval.model"} <= keys


IMPORTER = Importer(
    name="inspect",
    looked_for="a log of inspect_ai: an archive .eval, or .json with eval.task and eval.model",
    files=("*.eval", "*.json"),
    is_one=_is_one,
    runs=runs,
    fields={"task": "id", "trial": "epoch", "outcome": "scores", "valid": "scores"},
)
