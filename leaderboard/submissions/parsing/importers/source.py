"""A file or a folder to read from, with caps on what is opened.

Symbolic links are never followed, neither to files nor to folders: a results folder that somebody sends may
not reach other files of the machine, and what a link inside the folder leads to is met anyway.
"""

import gzip
import io
import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path

from leaderboard.errors import Faulty
from leaderboard.submissions.parsing.flat import (
    FILE,
    Fault,
    FlatFileError,
    GzipMembers,
    Limits,
    faulty_file,
)
from leaderboard.submissions.parsing.importers.document import on_one_line

MAX_ENTRIES = 200_000  # looked at in a folder: a run of 80 tasks and 5 trials keeps some 4,000 files
MAX_NESTED = 16  # folders in folders
GZIP = b"\x1f\x8b"

Progress = Callable[[int, int | None], None]


@dataclass
class Source:
    """`called` is the name of the root in refusals; `n_read` counts bytes over all files.

    `in_full`: files are shown by their whole paths. `others` are files of a folder that have another format,
    the first that were looked into.
    """

    root: Path
    called: str
    is_folder: bool
    paths: list[Path]
    n_links: int = 0
    siblings: bool = True
    in_full: bool = False
    format: str = ""
    others: dict[str, list[Path]] = field(default_factory=dict)
    limits: Limits = FILE
    progress: Progress | None = None
    n_read: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.known = frozenset(self.paths)

    @classmethod
    def of(
        cls,
        path: Path,
        *,
        called: str | None,
        in_full: bool = False,
        progress: Progress | None = None,
    ) -> "Source":
        """`called` names what was sent under another name; no file beside it belongs to it then.

        `progress` counts the files of a folder.
        """
        name = on_one_line(called or (str(path) if in_full else path.name or str(path)))
        if not path.is_dir():
            return cls(path, name, False, [path], siblings=called is None, in_full=in_full)
        paths, n_links = _walk(path, name, progress)
        return cls(path, name, True, paths, n_links, in_full=in_full)

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
        """The whole of a file, decompressed."""
        left = self.limits.n_bytes - self.n_read
        with path.open("rb") as file:
            data = file.read(left + 1)
        if data[:2] == GZIP:
            parts = []
            try:
                for part in _inflate(data):
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
        """Note that so many bytes were read."""
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


def _inflate(data: bytes) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=GzipMembers(io.BytesIO(data))) as file:
        while part := file.read(1 << 20):
            yield part


def _walk(root: Path, called: str, progress: Progress | None) -> tuple[list[Path], int]:
    """Regular files under a folder, in order of their paths, and the number of symbolic links."""
    paths, n_links = list[Path](), 0
    for n, entry in enumerate(_entries(root, called), start=1):
        if n > MAX_ENTRIES:
            raise faulty_file(
                called, (Fault(None, None, None, f"there are more than {MAX_ENTRIES:,} files"),)
            )
        if entry.is_file(follow_symlinks=False):
            paths.append(Path(entry.path))
        n_links += entry.is_symlink()
        if progress is not None:
            progress(n, None)
    return paths, n_links


def _entries(folder: Path | str, called: str, depth: int = 0) -> Iterator[os.DirEntry[str]]:
    if depth >= MAX_NESTED:
        raise faulty_file(called, (Fault(None, None, None, f"folders lie more than {MAX_NESTED} deep"),))
    with os.scandir(folder) as entries:
        entries_sorted = sorted(islice(entries, MAX_ENTRIES + 1), key=lambda entry: entry.name)
    for entry in entries_sorted:
        yield entry
        if entry.is_dir(follow_symlinks=False):
            yield from _entries(entry.path, called, depth + 1)
