"""Readers of other projects' results: one file a format, with the quirks that it knows.

Each turns what it reads into rows of the flat file, which go through the rules of the flat file like all
others. Which project, file and version a reader follows stands at its head.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from leaderboard.called import PROGRAM
from leaderboard.errors import Faulty
from leaderboard.submissions.parsing.flat import (
    AS_FOUND,
    FILE,
    Fault,
    Limits,
    Progress,
    TableOptions,
    head,
    wide_encoding,
)
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
from leaderboard.submissions.parsing.importers.base import (
    Imported,
    Importer,
    ImportOptions,
    ReadContext,
    Run,
    Source,
)
from leaderboard.submissions.parsing.importers.document import IssueLog, keys, names_of, on_one_line
from leaderboard.submissions.parsing.importers.run_columns import PLACEHOLDER, checked, with_columns

__all__ = [
    "FLAT",
    "FORMATS",
    "ImportOptions",
    "Imported",
    "Importer",
    "Source",
    "looked_into",
    "read",
    "sniff",
]

FORMATS: Mapping[str, Importer] = MappingProxyType(
    {
        module.IMPORTER.name: module.IMPORTER
        for module in (flat, hal, terminal_bench, harbor, swe_bench, inspect_logs, lm_eval, helm)
    }
)


FLAT = flat.IMPORTER.name
NOTHING = ImportOptions()
N_SNIFFED = 20  # files of one format looked into, of a folder
N_NAMED = 3  # of files that are not read


def sniff(path: Path, *, called: str | None = None) -> str | None:
    """Tell the format of a file, or of the first file of a folder that has one; None where none is seen."""
    source = Source(path, called=called)
    return _chosen(source, _seen(source))


def _seen(source: Source) -> dict[str, list[Path]]:
    """The formats of which there are files, with those of a folder that are met first from its top."""

    @cache
    def look(file: Path) -> str | None:
        """By what stands in it; what is another project's comes before what is flat."""
        name, data = file.name if source.is_folder else source.called, head(file)
        if data[:4] == inspect_logs.ZIP:
            return FLAT if flat.is_workbook(name, data) else inspect_logs.IMPORTER.name
        if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"{", b"["):
            return FLAT if flat.has_columns(data) else None
        names = keys(data)
        found = [importer.name for importer in FORMATS.values() if importer.is_one(name, names)]
        return next((one for one in found if one != FLAT), None) or next(iter(found), None)

    seen = {}
    for name, importer in FORMATS.items():
        first = sorted(source.named(*importer.files), key=lambda file: len(file.parts))[:N_SNIFFED]
        seen[name] = [file for file in first if look(file) == name]
    return {name: files for name, files in seen.items() if files}


def _chosen(source: Source, seen: Collection[str]) -> str | None:
    """The format to read where none is named; flat files of a folder are named one by one."""
    if source.is_folder:
        return next((name for name in seen if name != FLAT), None)
    first = head(source.root)
    meant = flat.ends_like_one(source.called) or not first.strip() or wide_encoding(first)
    return next(iter(seen), FLAT if meant else None)


def looked_into(
    path: Path,
    name: str | None,
    *,
    called: str | None = None,
    in_full: bool = False,
    progress: Progress | None = None,
) -> Source:
    """A file or folder with the format that was named, or else is seen, which `read` takes.

    Refused where another format than the named stands in it. `called` is the name of a file that was sent
    under another; `in_full`: refusals name files by their whole paths; `progress` counts files of a folder.
    """
    if name not in (None, *FORMATS):
        raise _refused(f"There is no format {name!r}; known are {', '.join(FORMATS)}.", "format", name)
    source = Source(path, called=called, in_full=in_full, progress=progress)
    source.format = _format_of(source, name) if source.is_folder or path.is_file() else name or FLAT
    return source  # a pipe is read once


def _format_of(source: Source, name: str | None) -> str:
    seen = _seen(source)
    format_name = name or _chosen(source, seen)
    source.others = {other: files for other, files in seen.items() if other != format_name}
    looks = [one for one in seen if one != FLAT or not source.is_folder]
    if name and looks and name not in looks:
        rule = f"is {' and '.join(looks)} by what stands in it"
        message = f"{source.called} is no {name} file; it looks like {' and '.join(looks)}."
        raise Faulty(message, faults=(Fault(None, "format", name, rule),))
    if source.is_folder and (name == FLAT or not format_name) and (tables := seen.get(FLAT)):
        ending = next(end for end in flat.ENDINGS if tables[0].name.endswith(end))
        raise Faulty(
            f"{source.called} is a folder of flat files ({_first_of(source, tables)}). Name the files one by "
            f"one: {PROGRAM} load {on_one_line(tables[0].parent.as_posix())}/*{ending} …",
            faults=(),
        )
    if not format_name:
        looked = "".join(f"\n  {importer.name}: {importer.looked_for}" for importer in FORMATS.values())
        message = f"{source.called} is of no format that is known. Looked for was:{looked}"
        raise _refused(message, "format", None)
    return format_name


def _first_of(source: Source, files: list[Path]) -> str:
    return ", ".join(map(source.shown, files[:N_NAMED])) + ", …" * (len(files) > N_NAMED)


def read(
    *paths: Path | Source,
    name: str | None,
    options: ImportOptions = NOTHING,
    benchmark: str,
    tasks: Collection[str] | None = None,
    as_of: datetime,
    limits: Limits = FILE,
    progress: Progress | None = None,
    called: str | None = None,
    only: str | None = None,
    table: TableOptions = AS_FOUND,
) -> Imported:
    """Read a file or a folder of a named format, or of the one that is seen; or several of one format.

    Several are read as if they lay in one folder; a flat file is read by itself. `tasks` are those of the
    benchmark, where it has some; `called` is the name of a file that was sent under another; `only` is for a
    flat file of several benchmarks, `table` for one of people. Raises Faulty.
    """
    sources = [one if isinstance(one, Source) else looked_into(one, name, called=called) for one in paths]
    for source in sources:
        source.limits, source.progress = limits, progress
    importer = FORMATS[sources[0].format]
    if importer.runs is None:
        return flat.import_flat(sources[0], options=options, as_of=as_of, only=only, table=table)
    # Named by the one, or by the first and the last
    first, called = sources[0], " … ".join(dict.fromkeys([sources[0].called, sources[-1].called]))
    log, notes = IssueLog(names_files=first.is_folder or first.in_full), list[str]()
    runs = [run for run in _runs(importer.runs, sources, options, log, notes) if run[1]]
    if importer.is_of_one_model and len(models := {one.model or "" for one, _ in runs} - {""}) > 1:
        log.add("", "", f"there are {len(models):,} models ({names_of(models)}); load each folder by itself")
    # Beside other faults those of the rows are named; who ran them is asked for when all can be read.
    unsettled = [(run, {**PLACEHOLDER, "run": f"{number}"}) for number, run in enumerate(runs)]
    pairs = unsettled if log.n else with_columns(runs, options, called, notes)
    imported = checked(
        pairs,
        log,
        called=called,
        fields=dict(importer.fields),
        benchmark=benchmark,
        as_of=as_of,
        limits=first.limits,
    )
    if n_links := sum(source.n_links for source in sources):
        notes.append(f"Symbolic links, which are not followed: {n_links:,}.")
    notes += [note for source in sources for note in _left(source)]
    # How the tasks differ from the benchmark's: what is asked for is the benchmark's to say
    delivered, known = set(imported.tasks), set(tasks or ())
    if lacking := known - delivered:
        notes.append(
            f"Tasks of the benchmark that are not in it and stay missing: {len(lacking):,} of {len(known):,}"
            f" ({names_of(lacking)})."
        )
    if known and (new := delivered - known):
        notes.append(f"Its tasks that are not the benchmark's: {len(new):,} ({names_of(new)}).")
    return Imported(imported, importer.name, [on_one_line(note) for note in notes], called)


def _left(source: Source) -> Iterator[str]:
    for name, files in source.others.items():
        least = "at least " * (len(source.named(*FORMATS[name].files)) > N_SNIFFED)
        n = f"{least}{len(files)} {'file' if len(files) == 1 else 'files'}"
        how = "Name flat files one by one" if name == FLAT else f"Read them with --format {name}"
        yield f"Not read: {n} of the format {name} ({_first_of(source, files)}). {how}."


def _runs(
    runs_in: Callable[[ReadContext], Iterable[Run]],
    sources: list[Source],
    options: ImportOptions,
    log: IssueLog,
    notes: list[str],
) -> Iterator[Run]:
    """The runs of all files; together they may have as many bytes as one folder."""
    n_read, shared = 0, dict[str, Any]()
    for source in sources:
        source.n_read = n_read
        yield from runs_in(ReadContext(source, options, log, notes, shared))
        n_read = source.n_read


def _refused(message: str, field: str, value: str | None) -> Faulty:
    rule = f"must be one of {', '.join(FORMATS)}"
    return Faulty(message, faults=(Fault(None, field, value, rule),))
