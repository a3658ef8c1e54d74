"""What a reader of another project's results is, what it is given, and what it hands over."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from leaderboard.submissions.parsing.flat import FlatFile, head
from leaderboard.submissions.parsing.importers.document import IssueLog, Node, Unreadable, keys, parse
from leaderboard.submissions.parsing.importers.source import Source


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


@dataclass(frozen=True)
class ImportedTrial:
    """One row to be: where it stands, and its columns but for those of the run."""

    place: Node
    columns: Mapping[str, object]


@dataclass(frozen=True)
class ImportedRun:
    """One run of one agent."""

    carried: Carried
    trials: list[ImportedTrial]


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
        """The document in a file, if it is an object; else that is a fault."""
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
    runs: Callable[[ReadContext], Iterable[ImportedRun]] | None
    fields: Mapping[str, str]
    is_of_one_model: bool = False


@dataclass(frozen=True, eq=False)
class Imported:
    """Files of any format as a flat file; `notes` are sentences for whoever loads them."""

    flat: FlatFile
    format: str
    notes: list[str]
    called: str
