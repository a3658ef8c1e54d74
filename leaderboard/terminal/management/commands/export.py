import json
import os
import shutil
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from time import time
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from leaderboard.boards.queries import NoBoardYet, latest_board, plain_of
from leaderboard.catalog.models import Benchmark
from leaderboard.studies.answers import progress_bar, words
from leaderboard.studies.versions import versions_file
from leaderboard.submissions.export import every_eval_ever
from leaderboard.submissions.export.outcomes import ExportTransaction, OutcomeRows
from leaderboard.submissions.export.streams import FORMATS, write_dataset
from leaderboard.terminal.command import USAGE, BenchmarkCommand, file_path

FOLDERS = ("every-eval-ever", "hugging-face")
UNFINISHED = (".bandstand-", ".new")  # how the name of a folder begins and ends in which a command writes
LONGEST = 24 * 60 * 60  # seconds that it may take
MANIFEST = ".bandstand-export"  # the names of all files of a folder, a line each


class Command(BenchmarkCommand):
    help = (
        "Write all results that count to a file or folder. `load` reads csv, ndjson and parquet back; "
        "folders are for Every Eval Ever and Hugging Face. The output is complete or absent."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--format", choices=[*FORMATS, *FOLDERS], default="csv")
        parser.add_argument(
            "--output", type=file_path, metavar="PATH", help="default: SLUG.csv, … or SLUG-FORMAT"
        )
        parser.add_argument("--force", action="store_true", help="replace what is there")
        parser.add_argument(
            "--with-subsets",
            action="store_true",
            help="also write NAME.subsets.json, with which `load --subsets` makes the same board",
        )

    def handle(
        self,
        *,
        benchmark: Benchmark,
        format: str,
        output: Path | None,
        force: bool,
        with_subsets: bool,
        **_: Any,
    ) -> None:
        default = f"{benchmark}-{format}" if format in FOLDERS else f"{benchmark}.{format}"
        target = output or Path(default)
        check_free(target, force, is_folder=format in FOLDERS)
        subsets_file = target.with_name(f"{target.stem}.subsets.json") if with_subsets else None
        if subsets_file:
            check_free(subsets_file, force)
        n_rows = written(benchmark, format, target)
        self.stdout.write(f"{target}: {words.counted(n_rows, 'outcome')} of {benchmark}.")
        if subsets_file:
            with replacing(subsets_file) as part:
                part.write_text(json.dumps(versions_file(benchmark), ensure_ascii=False, indent=1) + "\n")
            self.stdout.write(f"{subsets_file}: versions of the ranking tasks, for load --subsets.")


def check_free(path: Path, force: bool, *, is_folder: bool = False) -> None:
    if not path.parent.is_dir():
        raise CommandError(f"Folder not found: {path.parent}. Create it first.", returncode=USAGE)
    check_replaceable(path, is_folder=is_folder)
    if path.exists() and not force:
        raise CommandError(f"{path} already exists. Add --force to replace it.", returncode=USAGE)


def check_replaceable(path: Path, *, is_folder: bool) -> None:
    """Refuse what neither a file nor, with `is_folder`, a folder of `export` may take the place of."""
    if is_folder:
        check_replaceable_folder(path, manifest=MANIFEST, option="--output")
    elif path.is_symlink() or (path.exists() and not path.is_file()):
        raise CommandError(f"{path} is not a regular file. Name another file to write.", returncode=USAGE)


def check_replaceable_folder(path: Path, *, manifest: str, option: str) -> None:
    """Refuse what is no folder, and one with any file that its file `manifest` does not name."""
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        raise CommandError(f"{path} is not a folder. Choose another {option}.", returncode=USAGE)
    if path.resolve() in (Path.cwd(), *Path.cwd().parents):
        raise CommandError(f"{path} cannot be replaced. Choose another {option}.", returncode=USAGE)
    names = path / manifest
    ours = set(names.read_text().splitlines()) if names.is_file() else set()
    for file in path.rglob("*") if path.is_dir() else ():
        if not file.is_dir() and str(file.relative_to(path)) not in ours:
            raise CommandError(
                f"{path} holds a file that this command did not write: {file.relative_to(path)}. "
                f"Move it away, or choose another {option}.",
                returncode=USAGE,
            )


def written(benchmark: Benchmark, format: str, target: Path) -> int:
    with (
        progress_bar(f"Writing {target.name}", "outcomes") as progress,
        ExportTransaction(benchmark) as snapshot,
        replacing(target) as part,
    ):
        outcomes = OutcomeRows(snapshot, progress=progress)
        if format == "every-eval-ever":
            part.mkdir()
            every_eval_ever.write(part, outcomes, lines=board_lines(benchmark), as_of=timezone.now())
        elif format == "hugging-face":
            part.mkdir()
            write_dataset(part, outcomes)
        else:
            with part.open("wb") as file:
                file.writelines(FORMATS[format](outcomes))
        return outcomes.n_rows


def board_lines(benchmark: Benchmark) -> Mapping[str, Mapping[str, Any]]:
    """The lines of the latest board by agent; none where there is no board yet."""
    try:
        return {line["agent"]: line for line in plain_of(latest_board(benchmark))["agents"]}
    except NoBoardYet:
        return {}


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Give a path to write to, a file or a folder, that becomes `target` in the end, whole."""
    with folder_next_to(target) as folder:
        part = folder / target.name
        yield part
        check_replaceable(target, is_folder=part.is_dir())
        if part.is_dir():
            files = [MANIFEST, *(str(one.relative_to(part)) for one in part.rglob("*") if one.is_file())]
            (part / MANIFEST).write_text("".join(f"{name}\n" for name in files))
        if target.is_dir():
            target.rename(folder / "replaced")  # a folder takes the place of none that is not empty
        os.replace(part, target)


@contextmanager
def folder_next_to(target: Path) -> Iterator[Path]:
    """A new folder next to `target`, gone in the end; what a kill left there goes after a day."""
    prefix, suffix = UNFINISHED
    for left in target.parent.glob(f"{prefix}*{suffix}"):
        with suppress(OSError):
            if time() - left.stat().st_mtime > LONGEST:
                shutil.rmtree(left)
    try:
        folder = Path(tempfile.mkdtemp(suffix, prefix, target.parent))
    except OSError as error:
        error.filename = str(target)  # not that of the folder next to it
        raise
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
