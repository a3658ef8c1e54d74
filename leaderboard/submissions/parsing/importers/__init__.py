"""Readers of other projects' results: one file a format, with the quirks that it knows.

Each turns what it reads into rows of the flat file, which go through the rules of the flat file like all
others. Which project, file and version a reader follows stands at its head.
"""

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from types import MappingProxyType

from leaderboard.errors import Faulty
from leaderboard.submissions.parsing.flat import FILE, Fault, Limits, Progress, printable
from leaderboard.submissions.parsing.importers import (
    flat,
    hal,
    harbor,
    helm,
    inspect_logs,
    lm_eval,
    swe_bench,
    terminal_bench,
)
from leaderboard.submissions.parsing.importers.document import Told, keys, names_of
from leaderboard.submissions.parsing.importers.importer import Imported, Importer, Reading, Run, Stated
from leaderboard.submissions.parsing.importers.settling import PLACEHOLDER, checked, settled
from leaderboard.submissions.parsing.importers.source import Source, head

__all__ = ["FLAT", "FORMATS", "Imported", "Importer", "Stated", "format_of", "read", "sniff"]

FORMATS: Mapping[str, Importer] = MappingProxyType(
    {
        module.IMPORTER.name: module.IMPORTER
        for module in (flat, hal, terminal_bench, harbor, swe_bench, inspect_logs, lm_eval, helm)
    }
)


FLAT = flat.IMPORTER.name
NOTHING = Stated()
N_SNIFFED = 20  # files of one format looked into, of a folder


def sniff(path: Path, *, called: str | None = None) -> str | None:
    """Tell the format of a file, or of the first file of a folder that has one; None where none is seen."""
    if not path.is_dir():
        name, data = called or path.name, head(path)
        meant = FLAT if flat.ends_like_one(name) or not data.strip() else None
        return _sniffed(name, data) or meant
    return next(iter(_seen(Source.of(path, called=called))), None)


def _seen(source: Source) -> list[str]:
    """The formats of which a folder has a file, looked for from its top."""
    return [
        name
        for name, importer in FORMATS.items()
        if any(
            _sniffed(file.name, head(file)) == name
            for file in sorted(source.named(*importer.files), key=lambda file: len(file.parts))[:N_SNIFFED]
        )
    ]


def read(
    *paths: Path,
    name: str | None,
    stated: Stated = NOTHING,
    benchmark: str,
    tasks: Collection[str] | None = None,
    as_of: datetime,
    limits: Limits = FILE,
    progress: Progress | None = None,
    called: str | None = None,
    only: str | None = None,
    in_full: bool = False,
) -> Imported:
    """Read a file or a folder of a named format, or of the one that is seen; or several of one format.

    Several are read as if they lay in one folder; a flat file is read by itself. `tasks` are those of the
    benchmark, where it has some; `called` is the name of a file that was sent under another; `only` is for a
    flat file of several benchmarks; `in_full`: refusals name files by their whole paths. Raises Faulty.
    """
    path = paths[0]
    importer = FORMATS[format_of(path, name, called)]
    if importer.runs is None:
        return flat.imported(
            path,
            stated=stated,
            as_of=as_of,
            limits=limits,
            progress=progress,
            called=str(path) if in_full else called,
            only=only,
            names_file=in_full,
        )
    sources = [
        Source.of(path, called=called, limits=limits, progress=progress, in_full=in_full) for path in paths
    ]
    return _imported(importer, sources, stated, benchmark=benchmark, tasks=tasks, as_of=as_of)


def format_of(path: Path, name: str | None, called: str | None = None) -> str:
    """The format that was named, or else is seen; refused where another one than the named stands in it."""
    if name not in (None, *FORMATS):
        raise _refused(f"There is no format {name!r}; known are {', '.join(FORMATS)}.", "format", name)
    if not (path.is_dir() or path.is_file()):
        return name or FLAT  # a pipe is read once
    if name is None:
        if (seen := sniff(path, called=called)) is None:
            raise _refused(_unknown(called or path.name), "format", None)
        return seen
    if path.is_dir():
        found = _seen(Source.of(path, called=called))
    else:
        found = [one for one in (_sniffed(called or path.name, head(path)),) if one]
    if found and name not in found:
        looks = " and ".join(found)
        message = f"{called or path.name} is no {name} file; it looks like {looks}."
        raise Faulty(message, faults=(Fault(None, "format", name, f"is {looks} by what stands in it"),))
    return name


def _imported(
    importer: Importer,
    sources: list[Source],
    stated: Stated,
    *,
    benchmark: str,
    tasks: Collection[str] | None,
    as_of: datetime,
) -> Imported:
    first, called = sources[0], _called(sources)
    told, notes = Told(names_files=first.is_folder or first.in_full), list[str]()
    runs = [run for run in _runs(importer, sources, stated, told, notes) if run.trials]
    # Beside other faults those of the rows are told; who ran them is asked for when all can be read.
    unsettled = [(run, PLACEHOLDER) for run in runs]
    pairs = unsettled if told.n else settled(runs, stated, called, notes)
    found = checked(
        pairs,
        told,
        called=called,
        fields=dict(importer.fields),
        benchmark=benchmark,
        as_of=as_of,
        limits=first.limits,
    )
    if n_links := sum(source.n_links for source in sources):
        notes.append(f"Symbolic links, which are not followed: {n_links:,}.")
    if tasks:
        notes += _beside(set(found.tasks), set(tasks))
    return Imported(found, importer.name, [printable(note) for note in notes], called)


def _called(sources: list[Source]) -> str:
    """The name of the one, or of the first and the last."""
    return " … ".join(dict.fromkeys(source.called for source in (sources[0], sources[-1])))


def _runs(
    importer: Importer, sources: list[Source], stated: Stated, told: Told, notes: list[str]
) -> Iterator[Run]:
    """The runs of all files; together they may have as many bytes as one folder."""
    n_read = 0
    for source in sources:
        source.n_read = n_read
        yield from importer.runs(Reading(source, stated, told, notes)) if importer.runs else ()
        n_read = source.n_read


def _beside(delivered: set[str], known: set[str]) -> list[str]:
    """Say how a file's tasks and the benchmark's differ: what is asked for is the benchmark's to say."""
    notes = []
    if lacking := known - delivered:
        notes.append(
            f"Tasks of the benchmark that are not in it and stay missing: {len(lacking):,} of {len(known):,}"
            f" ({names_of(lacking)})."
        )
    if new := delivered - known:
        notes.append(f"Its tasks that are not the benchmark's: {len(new):,} ({names_of(new)}).")
    return notes


def _sniffed(name: str, data: bytes) -> str | None:
    """Tell the format by what stands in a file; what is another project's comes before what is flat."""
    if data[:4] == inspect_logs.ZIP:
        return FLAT if flat.is_workbook(name, data) else inspect_logs.IMPORTER.name
    if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"{", b"["):
        return FLAT if flat.has_columns(data) else None
    found = keys(data)
    seen = [importer.name for importer in FORMATS.values() if importer.is_one(name, found)]
    return next((one for one in seen if one != FLAT), None) or next(iter(seen), None)


def _unknown(called: str) -> str:
    looked = "".join(f"\n  {importer.name}: {importer.looked_for}" for importer in FORMATS.values())
    return f"{called} is of no format that is known. Looked for was:{looked}"


def _refused(message: str, field: str, value: str | None) -> Faulty:
    rule = f"is one of {', '.join(FORMATS)}"
    return Faulty(message, faults=(Fault(None, field, value, rule),))
