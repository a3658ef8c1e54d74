"""What both command lines share: arguments, files as arrays, one object as JSON, a refusal as a line.

A command is a function from the parsed arguments to an `Answer`. `run` prints it, as JSON with full precision
under `--json`, else as text. What cannot be computed is a refusal: one line on stderr, exit 2.
"""

import argparse
import errno
import gzip
import json
import math
import os
import sys
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from analytics.arrays import FloatArray, Mask
from analytics.errors import CoreError
from analytics.flat_file import FlatFile, is_too_small, read
from analytics.flat_file.columns import separator_hint
from analytics.flat_file.streams import GZIP, PARQUET, foreign
from analytics.flat_file.values import TRUTH, VALID_RULE
from analytics.programs import one_blas_thread, orderly_end
from analytics.programs import progress_bar as progress_bar
from analytics.tables import AS_FOUND, TableOptions, add_table_options, is_table, read_table, table_options
from analytics.text import as_text, named

if TYPE_CHECKING:
    from analytics.trials.flags import Dependence, Improvement

FAILED, REFUSED = 1, 2
NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
FLAT = "a flat file of outcomes (CSV, CSV.gz, NDJSON or Parquet; see docs/flat-file.md)"
MAX_VALUE = 1e100  # of which a square is still a number
MAX_SEED, MAX_DRAWS, MAX_SPLITS, MAX_PROCESSES, MAX_COUNTED = 2**63 - 1, 100_000, 10_000, 1_024, 10**6
BLOCK_BYTES = 1 << 20
MAX_BYTES, MAX_ROWS, MAX_COLUMNS = 512 << 20, 5_000_000, 1_000  # of a CSV, decompressed
TABLE = "a CSV with a header, plain or compressed by gzip"
VALID = "valid"  # column of a table whose rows with 0 are failures of the harness: missing, never zero
LEFT_OUT = "rows left out, not valid"


@dataclass(frozen=True)
class Answer:
    """What a command answers: plain values as under `--json`, and the same for a reader, where it differs."""

    values: Mapping[str, Any]
    shown: str | Mapping[str, Any] | None = None

    def text(self) -> str:
        """Return the answer as text."""
        return self.shown if isinstance(self.shown, str) else as_text(self.shown or self.values)

    def json(self) -> str:
        """Return the answer as one line of JSON, full precision, no NaN."""
        return json.dumps(self.values, ensure_ascii=False, allow_nan=False)


Command = Callable[[argparse.Namespace], Answer]


def whole(most: int) -> Callable[[str], int]:
    """Return the type of an option: a whole number up to `most`; if it is too small, its command says so."""

    def number(text: str) -> int:
        if (value := int(text)) > most:
            raise argparse.ArgumentTypeError(f"{value:,} is too large. The largest value is {most:,}")
        return value

    number.__name__ = "int"  # as argparse calls it where the text is no number
    return number


class Parser(argparse.ArgumentParser):
    """A parser whose refusals are one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the arguments, and exit 2."""
        self.exit(REFUSED, f"{self.prog}: {message}\n")


def add_command(
    commands: Any, name: str, command: Command, *, summary: str, file: str | None = None, about: str = ""
) -> Parser:
    """Add a command with the options that all have; `file` says what it reads if that is no flat file."""
    # argparse fills in %(names) where it lists the commands, so that a percent sign is written twice there.
    listed = summary.replace("%", "%%")
    parser: Parser = commands.add_parser(name, help=listed, description=summary, epilog=about)
    about_file = "" if file else "outcomes: a flat file (docs/flat-file.md), or a table (docs/formats.md)"
    parser.add_argument("file", type=Path, metavar=file or "FILE", help=about_file)
    if file is None:
        parser.add_argument(
            "--only", metavar="BENCHMARK", help="use only this benchmark, if the file has several"
        )
        add_table_options(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object with full precision")
    parser.set_defaults(command=command, called=name, expected=FLAT if file is None else TABLE)
    return parser


def run(parser: Parser, arguments: Sequence[str] | None) -> int:
    """Parse, call the command, print; return the exit code: 0, 2 for a refusal, or 1 for an answer unwritten.

    A reader that has seen enough, such as `head`, is no error: what it left unread is the last thing done. A
    command that gets SIGTERM (`timeout`, a shutdown) ends its workers and removes their files.
    """
    if sys.stdout is None:
        sys.stderr.write(f"{parser.prog}: standard output is closed\n")
        return FAILED
    try:
        try:
            # Parse, call, print. With one thread of BLAS many small matrices multiply up to ten times faster
            parsed = parser.parse_args(arguments)
            for option, value in vars(parsed).items():
                for text in value if isinstance(value, list) else [value]:
                    if isinstance(text, str) and any("\ud800" <= sign <= "\udfff" for sign in text):
                        return _refused(
                            parser, parsed, f"--{option.replace('_', '-')}: {text!r} is not UTF-8 text"
                        )
            try:
                with orderly_end(), one_blas_thread():
                    answer = parsed.command(parsed)
                text = answer.json() if parsed.json else answer.text()
            except OSError as refusal:
                return _refused(parser, parsed, unreadable(refusal, parsed.file, parsed.expected))
            except CoreError as refusal:
                return _refused(parser, parsed, _one_line(refusal))
            except MemoryError:
                return _refused(parser, parsed, "not enough memory")
            sys.stdout.write(f"{text}\n")
            return 0
        finally:
            sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return 0
        sys.stderr.write(f"{parser.prog}: the answer cannot be written ({error.strerror})\n")
        return FAILED


def _refused(parser: Parser, parsed: argparse.Namespace, why: str) -> int:
    sys.stderr.write(f"{parser.prog} {parsed.called}: {why}\n")
    return REFUSED


def _one_line(refusal: Exception) -> str:
    return " ".join((str(refusal) or type(refusal).__doc__ or "").split())


def unreadable(refusal: OSError, file: Path, expected: str) -> str:
    """Say which path could not be read and why, and of the command's own file what is expected there."""
    if refusal.errno in NO_SPACE:
        return f"{refusal.filename or 'a file'} cannot be written ({refusal.strerror})"
    path = Path(refusal.filename or file)
    if os.path.isdir(path):  # where pathlib raises, as of a name that is too long, this says no
        why = f"{path} is a folder"
    elif not os.path.exists(path):
        why = f"file not found: {path}"
    else:
        why = f"cannot read {path} ({refusal.strerror or _one_line(refusal)})"
    return f"{why}. Give {expected}" if path == file else why


def plain(value: Any) -> Any:
    """Turn results into plain values: dataclasses and mappings into objects, arrays into lists."""
    if is_dataclass(value) and not isinstance(value, type):
        return {entry.name: plain(getattr(value, entry.name)) for entry in fields(value)}
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, date):
        return value.isoformat()
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise TypeError(f"{type(value).__name__} is no plain value")


def pairs(text: str, known: Sequence[str]) -> dict[str, str]:
    """Read ``NAME=VALUE,NAME=VALUE``, each name one of `known` and none twice."""
    values: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if equals and name not in known:
            raise CoreError(
                f"{part.strip()!r}: unknown name {name!r}. Use {', '.join(known)}", code="pair_malformed"
            )
        if not (equals and value) or name in values:
            raise CoreError(
                f"{part.strip()!r} is not NAME=VALUE, or a name is repeated. Names: {', '.join(known)}",
                code="pair_malformed",
            )
        values[name] = value
    return values


def flat_file(path: Path, only: str | None = None, options: TableOptions = AS_FOUND) -> FlatFile:
    """Read a flat file or a table, of several benchmarks `only` one; how a table was read goes to stderr."""
    if not is_table(path, options):
        return read(path, as_of=datetime.now(UTC), only=only)
    flat, note = read_table(path, options, as_of=datetime.now(UTC), only=only)
    sys.stderr.write(f"{note}\n")
    return flat


def outcomes_of(arguments: argparse.Namespace) -> FlatFile:
    """Read the file of a command that was added without `file`."""
    return flat_file(arguments.file, arguments.only, table_options(vars(arguments)))


def copied_trials(flat: FlatFile) -> "dict[str, Dependence | Improvement]":
    """Agents two of whose trials agree too often to be two draws, or whose trials only improve, and how."""
    from analytics.trials import improving_trials
    from analytics.trials.flags import dependent_trials

    n_trials = int(flat.trial.max()) + 1
    run = flat.setting.astype(np.int64) * n_trials + flat.trial
    dependences: dict[str, Dependence | Improvement] = {**improving_trials(flat)}
    for i, agent in enumerate(flat.agents):
        rows = flat.valid & (flat.agent == i)
        pair = dependent_trials(flat.task[rows], run[rows], flat.outcome[rows])
        if pair is not None:
            dependences[agent] = pair
    return dependences


def csv_header(path: Path) -> list[str]:
    """Names of the columns of a CSV, plain or compressed by gzip."""
    from pyarrow import ArrowInvalid, csv

    _refuse_foreign(path)
    _refuse_large(path)
    try:
        with csv.open_csv(path, parse_options=_newlines(csv)) as reader:
            names = list(reader.schema.names)
    except (ArrowInvalid, UnicodeDecodeError) as error:
        raise CoreError(f"cannot read {path.name} as CSV with a header ({error})", code="no_csv") from None
    if names[0].startswith('{"'):
        raise CoreError(f"{path.name} is JSON. Give a CSV with a header", code="no_csv")
    if hint := separator_hint(names) if len(names) == 1 else "":
        raise CoreError(f"{path.name} has one column{hint}", code="no_csv")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise CoreError(
            f"{path.name}: the header has {', '.join(map(repr, repeated))} more than once", code="no_csv"
        )
    return names


def csv_columns(path: Path, names: Sequence[str]) -> dict[str, list[str]]:
    """Read some columns of a CSV as `csv_header`, as text; the others are not looked at."""
    import pyarrow
    from pyarrow import csv

    wanted, there = list(dict.fromkeys(names)), csv_header(path)
    check_columns(wanted, there)
    options = csv.ConvertOptions(
        include_columns=wanted,
        column_types=dict.fromkeys(wanted, pyarrow.string()),
        strings_can_be_null=False,
    )
    try:
        table = csv.read_csv(path, parse_options=_newlines(csv), convert_options=options)
    except (pyarrow.ArrowInvalid, UnicodeDecodeError) as error:
        raise CoreError(f"cannot read {path.name} as CSV ({error})", code="no_csv") from None
    return {name: table[name].to_pylist() for name in wanted}


def csv_valid(path: Path, names: Sequence[str], there: Sequence[str]) -> tuple[dict[str, list[str]], Mask]:
    """Read some columns of a CSV, and which rows are valid by a further column, where one is so called."""
    if VALID not in there or VALID in names:
        columns = csv_columns(path, names)
        return columns, np.ones(len(columns[names[0]]), dtype=np.bool_)
    columns = csv_columns(path, [*names, VALID])
    return columns, validity(columns.pop(VALID))


def validity(texts: Sequence[str]) -> Mask:
    """Read a column `valid` as the flat file does: 1, 0, true or false, empty for true, shape (n_rows,)."""
    known = TRUTH | {"": True}
    for row, text in enumerate(texts):
        if text not in known:
            raise CoreError(f"row {row + 1}: {VALID} is {named(text)}; {VALID_RULE}", code="number")
    mask = np.array([known[text] for text in texts], dtype=np.bool_)
    if mask.size and not mask.any():
        raise CoreError(f"{VALID} is 0 in every row, so no outcome is left", code="number")
    return mask


def check_columns(wanted: Sequence[str], there: Sequence[str]) -> None:
    """Refuse a column that is not there."""
    for name in wanted:
        if name not in there:
            raise CoreError(f"unknown column {name!r}. Columns: {', '.join(there)}", code="column_unknown")


def numbers(name: str, texts: Sequence[str], valid: Mask | None = None) -> FloatArray:
    """Read a column of texts as finite numbers, shape (n_rows,); NaN where a row is not `valid`."""
    values = np.full(len(texts), np.nan)
    for row in range(len(texts)) if valid is None else np.flatnonzero(valid).tolist():
        if rule := _number_rule(texts[row]):
            raise CoreError(f"row {row + 1}: {name} is {named(texts[row])}, {rule}", code="number")
        values[row] = float(texts[row])
    return values


def _number_rule(text: str) -> str:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or "_" in text or not text.isascii():  # which Python reads
        return "not a finite number"
    if abs(number) > MAX_VALUE:
        return f"beyond ±{MAX_VALUE:g}"
    return "too small for a number: write 0" if is_too_small(text) else ""


def truths(name: str, texts: Sequence[str], valid: Mask | None = None) -> Mask:
    """Read a column of 1 and 0, true and false, shape (n_rows,); false where a row is not `valid`."""
    known = {"1": True, "true": True, "0": False, "false": False}
    for row, text in enumerate(texts):
        if text.lower() not in known and (valid is None or valid[row]):
            raise CoreError(
                f"row {row + 1}: {name} is {named(text)}, not 1 or 0, true or false", code="number"
            )
    return np.array([known.get(text.lower(), False) for text in texts], dtype=np.bool_)


def _refuse_foreign(path: Path) -> None:
    packed = path.suffix == ".gz"
    try:
        with gzip.open(path) if packed else path.open("rb") as file:
            first = file.read(BLOCK_BYTES).removeprefix(BOM_UTF8)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        return  # pyarrow tells it
    if first.startswith(PARQUET):
        raise CoreError(f"{path.name} is Parquet. Give a CSV with a header", code="no_csv")
    if not packed and first.startswith(GZIP):
        raise CoreError(
            f"{path.name}: the file is compressed by gzip. Rename it so that it ends with .gz", code="no_csv"
        )
    if first.lstrip()[:1] != b"[" and (rule := foreign(first)):
        raise CoreError(f"{path.name}: {rule}", code="no_csv")


def _refuse_large(path: Path) -> None:
    n_bytes, n_rows = 0, 0
    packed = path.suffix == ".gz"
    # What is no gzip pyarrow tells better.
    with (
        suppress(EOFError, gzip.BadGzipFile, zlib.error),
        gzip.open(path) if packed else path.open("rb") as file,
    ):
        while block := file.read(BLOCK_BYTES):
            head = block.partition(b"\n")[0] if n_bytes == 0 else b""
            n_bytes, n_rows = n_bytes + len(block), n_rows + block.count(b"\n")
            if head.count(b",") >= MAX_COLUMNS:
                raise CoreError(f"{path.name} has more than {MAX_COLUMNS:,} columns", code="no_csv")
            if n_bytes > MAX_BYTES or n_rows > MAX_ROWS:
                most = f"{MAX_BYTES >> 20} MiB or {MAX_ROWS:,} rows"
                raise CoreError(f"{path.name} has more than {most}, decompressed", code="no_csv")


def _newlines(csv: Any) -> Any:
    return csv.ParseOptions(newlines_in_values=True)
