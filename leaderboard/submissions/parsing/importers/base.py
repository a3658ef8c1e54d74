"""What a reader of another project's results is, what it is given, and what it hands over."""

import gzip
import io
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from leaderboard.errors import Faulty
from leaderboard.submissions.parsing.flat import (
    FILE,
    Fault,
    FlatFile,
    FlatFileError,
    GzipMembers,
    Limits,
    faulty_file,
    head,
)
from leaderboard.submissions.parsing.importers.document import (
    IssueLog,
    Node,
    Unreadable,
    keys,
    on_one_line,
    parse,
)

MAX_ENTRIES = 200_000  # looked at in a folder: a run of 80 tasks and 5 trials keeps some 4,000 files
MAX_NESTED = 16  # folders in folders
GZIP = b"\x1f\x8b"

Progress = Callable[[int, int | None], None]


class Source:
    """A file, or the regular files of a folder in order of their paths, and what was read of them.

    `called` is the name of the root in refusals; `n_read` counts bytes over all files. `others` are files of
    a folder that have another format, the first that were looked into.
    """

    def __init__(
        self, path: Path, *, called: str | None, in_full: bool = False, progress: Progress | None = None
    ) -> None:
        """`called` names what was sent under another name; no file beside it belongs to it then.

        `in_full`: files are shown by their whole paths. `progress` counts the files of a folder.
        """
        self.root, self.in_full, self.siblings = path, in_full, called is None
        is_plain = path.is_file() or path.is_dir()
        self.called = on_one_line(called or (is_plain and not in_full and path.name) or str(path))
        self.format, self.others = "", dict[str, list[Path]]()
        self.limits: Limits = FILE
        self.progress: Progress | None = None
        self.n_read = self.n_links = 0
        self.is_folder = path.is_dir()
        self.paths = list[Path]() if self.is_folder else [path]
        for n, entry in enumerate(_entries(path, self.called) if self.is_folder else (), start=1):
            if n > MAX_ENTRIES:
                too_many = Fault(None, None, None, f"there are more than {MAX_ENTRIES:,} files")
                raise faulty_file(self.called, (too_many,))
            if entry.is_file(follow_symlinks=False):
                self.paths.append(Path(entry.path))
            self.n_links += entry.is_symlink()
            if progress is not None:
                progress(n, None)
        self.known = frozenset(self.paths)

    def named(self, *patterns: str) -> list[Path]:
        """The files of a folder whose names match, in order of their paths; or the one file."""
        if not self.is_folder:
            return list(self.paths)
        return [path for path in self.paths if any(fnmatchcase(path.name, p) for p in patterns)]

    def sibling(self, path: Path, name: str) -> Path | None:
        """The file of that name in the same folder, if it is one of these, or stands beside the one file."""
        other = path.with_name(name)
        if self.is_folder:
            return other if other in self.known else None
        return other if self.siblings and other.is_file() and not other.is_symlink() else None

    def shown(self, path: Path) -> str:
        """A file as refusals call it: its path inside the folder, or the name of the one file."""
        if self.in_full:
            return on_one_line(path.as_posix())
        if self.is_folder:
            return on_one_line(path.relative_to(self.root).as_posix())
        return self.called if path == self.root else on_one_line(path.name)

    def data(self, path: Path) -> bytes:
        left = self.limits.n_bytes - self.n_read
        with path.open("rb") as file:
            data = file.read(left + 1)
        if data[:2] == GZIP:
            parts = []
            try:
                with gzip.GzipFile(fileobj=GzipMembers(io.BytesIO(data))) as zipped:
                    while part := zipped.read(1 << 20):
                        parts.append(part)
                        self.check(path, sum(map(len, parts)), len(data))
            except FlatFileError as error:
                raise self.refused(path, error.faults[0].rule) from None
            except (OSError, EOFError, zlib.error) as error:
                raise self.refused(path, f"the compressed data cannot be read: {error}") from None
            data = b"".join(parts)
        self.check(path, len(data), len(data))
        self.count(len(data))
        return data

    def count(self, n_bytes: int) -> None:
        self.n_read += n_bytes
        if self.progress is not None:
            self.progress(self.n_read, None)

    def check(self, path: Path, n_bytes: int, n_compressed: int) -> None:
        """Refuse what is too much, or grows on decompression as no results do."""
        try:
            self.limits.check_ratio(n_bytes, n_compressed)
        except FlatFileError as error:
            raise self.refused(path, error.faults[0].rule) from None
        if self.n_read + n_bytes > self.limits.n_bytes:
            raise self.refused(path, f"there are more than {self.limits.n_bytes:,} bytes to read")

    def refused(self, path: Path, rule: str) -> Faulty:
        """The refusal for a fault that leaves nothing else to check."""
        where = f" (in {self.shown(path)})" if self.is_folder or self.in_full else ""
        return faulty_file(self.called, (Fault(None, None, None, on_one_line(rule + where)),))


def _entries(folder: Path | str, called: str, depth: int = 0) -> Iterator[os.DirEntry[str]]:
    if depth >= MAX_NESTED:
        rule = on_one_line(f"folders lie more than {MAX_NESTED} deep: {folder}")
        raise faulty_file(called, (Fault(None, None, None, rule),))
    with os.scandir(folder) as entries:
        entries_sorted = sorted(islice(entries, MAX_ENTRIES + 1), key=lambda entry: entry.name)
    for entry in entries_sorted:
        yield entry
        if entry.is_dir(follow_symlinks=False):
            yield from _entries(entry.path, called, depth + 1)


@dataclass(frozen=True)
class ImportOptions:
    """What whoever loads a file says, because the file may not, or says it by another name.

    `metric` chooses among several scores of one trial (a metric, a scorer, a reward), `filter` among several
    readings of one answer. `is_strict`: another name than the file's is refused.
    """

    is_strict: ClassVar[bool] = False

    agent: str | None = None
    scaffold: str | None = None
    model: str | None = None
    version: str | None = None
    organisation: str | None = None
    weights: str | None = None
    submitted_at: str | None = None
    run: str | None = None
    metric: str | None = None
    filter: str | None = None

    def place(self, field: str) -> str:
        """Where a field is stated, as a refusal names it: an option of the command line."""
        return f"--{field.replace('_', '-')}"


@dataclass(frozen=True)
class Carried:
    """What a file says of one run; None where it does not. `models` are further names of the same model."""

    file: str
    agent: str | None = None
    scaffold: str | None = None
    model: str | None = None
    version: str | None = None
    submitted_at: str | None = None
    run: str | None = None
    models: tuple[str, ...] = ()


Trial = tuple[Node, Mapping[str, object]]  # one row to be: where it stands, and its columns but for the run's
Run = tuple[Carried, list[Trial]]  # one run of one agent


def trial(
    place: Node, task: object, number: object, outcome: object, reason: str | None = None, **more: object
) -> Trial:
    """A row that is valid unless there is a reason why not."""
    valid = reason is None
    return place, {
        "task": task,
        "trial": number,
        "outcome": outcome,
        "valid": valid,
        "reason": reason,
        **more,
    }


@dataclass(frozen=True)
class ReadContext:
    """What a reader works with: the files, what was stated, where faults and notes go.

    `shared` is for what a reader keeps from one path for the next.
    """

    source: Source
    options: ImportOptions
    log: IssueLog
    notes: list[str] = field(default_factory=list)
    shared: dict[str, Any] = field(default_factory=dict)

    def among(self, is_one: Callable[[str, frozenset[str]], bool], *patterns: str) -> list[Path]:
        """Of the files of a folder whose names match, those that look like one; or the one file."""
        paths = self.source.named(*patterns)
        if not self.source.is_folder:
            return paths
        ours = [path for path in paths if is_one(path.name, keys(head(path)))]
        if len(ours) < len(paths):
            self.notes.append(
                f"Files that are something else, and were left alone: {len(paths) - len(ours):,}."
            )
        return ours

    def document(self, path: Path) -> Node | None:
        """The document in a file; None where it cannot be read, which is a fault."""
        return self.document_in(self.source.data(path), self.source.shown(path))

    def document_in(self, data: bytes, file: str, where: str = "") -> Node | None:
        try:
            return Node(parse(data, n_bytes=self.source.limits.n_bytes), file, where, self.log)
        except Unreadable as error:
            self.log.add(file, where, str(error))
            return None

    def object_at(self, path: Path) -> Node | None:
        node = self.document(path)
        return node if node is not None and node.is_object() else None


@dataclass(frozen=True)
class Importer:
    """One format.

    `files` are patterns of names in a folder; `is_one` tells by the paths of keys in the first MiB of a file,
    and by its name. `fields` are the format's own words for columns of the flat file.
    `runs` is None of the flat file, which is read as it stands. `is_of_one_model`: runs of several models are
    refused, also where one name is stated for all.
    """

    name: str
    looked_for: str
    files: tuple[str, ...]
    is_one: Callable[[str, frozenset[str]], bool]
    runs: Callable[[ReadContext], Iterable[Run]] | None
    fields: Mapping[str, str]
    is_of_one_model: bool = False


@dataclass(frozen=True, eq=False)
class Imported:
    """Files of any format as a flat file; `notes` are sentences for whoever loads them."""

    flat: FlatFile
    format: str
    notes: list[str]
    called: str
