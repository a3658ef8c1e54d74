"""Values as text, and the rule of every type of column, applied to the distinct texts of a column at once.

A check takes texts of shape (n_texts,), none of them empty, and gives their values and whether each breaks
the rule, both (n_texts,). A rule takes one text that broke it and says what is asked for. The two are kept
apart because a check sees every text and a rule only the few that are reported.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from analytics.arrays import FloatArray, Mask
from analytics.flat_file.columns import LABELS, MAX_COLUMNS, MEASURED, separator_hint
from analytics.flat_file.faults import MAX_VALUE_BYTES, Fault, excerpt

Check = Callable[[Any], tuple[npt.NDArray[Any], Mask]]
Rule = Callable[[str], str]

MAX_NAME_LENGTH = 255
MAX_TRIAL = 32_767
MAX_WHOLE = 2**53  # beyond it a float64 no longer holds every whole number
EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)

NUMBER = r"^-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
NOT_ZERO = r"^\s*[+-]?[0._]*[1-9]"
TOO_SMALL = len("1e-324")  # no shorter text has a digit above 0 and is read as 0
CONTROL = r"\p{Cc}"
# Drawn as nothing or as a blank, though Unicode counts them among letters, marks and symbols, or has yet to
# assign them: blank ones and the default ignorable code points (DerivedCoreProperties.txt).
BLANK = (
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u2d7f\u3164\ufe00-\ufe0f\uffa0"
    "\U0001107f\U00016fe4\U0001d159\U000e0000-\U000e0fff"
)
INVISIBLE = re.compile(f"[{BLANK}]")
KINDS = {
    "Cc": "control character",
    "Cs": "lone surrogate",
    "Co": "private character",
    "Cn": "unassigned character",
    "Zl": "line separator",
    "Zp": "line separator",
    "Zs": "special space",
}
TRUTH = {"1": True, "true": True, "True": True, "TRUE": True}
TRUTH |= {"0": False, "false": False, "False": False, "FALSE": False}
WEIGHTS: Mapping[str, Mapping[str, str]] = {
    "weights": {form: one for one in ("open", "closed") for form in (one, one.capitalize(), one.upper())},
    "open_model": {text: "open" if is_open else "closed" for text, is_open in TRUTH.items()},
}
"""Columns that say whether an agent's model has open weights, and what their texts mean."""
OF_AGENT = ("version", "organisation", *WEIGHTS)
"""Columns that the flat file does not name, and that describe an agent."""

DATE = re.compile(
    r"(?P<year>[0-9]{4})(?:-(?P<month>[0-9]{2})(?:-(?P<day>[0-9]{2})"
    r"(?:[T ](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,][0-9]+)?)?"
    r"(?P<zone>Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?)?)?"
)
DATED = np.dtype([("at", "datetime64[s]"), ("imprecise", np.bool_)])


@dataclass(frozen=True)
class Kind:
    """How the texts of one column are read: the check, the rule, and the value of an empty field."""

    check: Check
    rule: Rule
    empty: Any
    dtype: Any


def weights_in(weights: str, open_model: str) -> str:
    """Return open, closed, or empty, by the texts of the two columns; the first counts where both say it."""
    return WEIGHTS["weights"].get(weights) or WEIGHTS["open_model"].get(open_model, "")


def numbers(texts: Any) -> FloatArray:
    """Read plain decimal numbers; NaN where a text is none (``1_000``, ``0x1``, ``nan``, ``1e-400``)."""
    plain = pc.match_substring_regex(texts, NUMBER)
    values = pc.cast(pc.if_else(plain, texts, pa.scalar(None, pa.string())), pa.float64())
    read: FloatArray = values.fill_null(np.nan).to_numpy(zero_copy_only=False)
    if (pc.max(pc.binary_length(texts)).as_py() or 0) >= TOO_SMALL:
        too_small = (read == 0) & pc.match_substring_regex(texts, NOT_ZERO).to_numpy(zero_copy_only=False)
        read = np.where(too_small, np.nan, read)
    return read + 0.0  # −0 becomes 0


def is_too_small(number: str) -> bool:
    """Whether a number's text has a digit above 0 and is read as 0, as ``1e-400`` is."""
    return not float(number) and re.match(NOT_ZERO, number) is not None


def check_number(texts: Any, *, high: float, whole: bool = False) -> tuple[FloatArray, Mask]:
    """Read numbers from 0 to `high`; NaN and infinities lie outside any interval."""
    values = numbers(texts)
    good = (values >= 0) & (values <= high)
    if whole:
        good &= values == np.floor(values)
    return np.where(good, values, np.nan), ~good


def check_trial(texts: Any) -> tuple[npt.NDArray[np.int16], Mask]:
    """Read whole numbers that fit a small integer."""
    values, bad = check_number(texts, high=MAX_TRIAL, whole=True)
    return np.where(bad, -1, values).astype(np.int16), bad


def check_n_averaged(texts: Any) -> tuple[FloatArray, Mask]:
    """Read numbers of runs, each of which becomes a trial; what breaks the rule counts as 1."""
    values, bad = check_number(texts, high=MAX_TRIAL, whole=True)
    bad |= values == 0
    return np.where(bad, 1.0, values), bad


def check_valid(texts: Any) -> tuple[Mask, Mask]:
    """Read the spellings of true and false; what breaks the rule counts as false."""
    read = [TRUTH.get(text) for text in texts.to_pylist()]
    return np.array([bool(value) for value in read], bool), np.array([value is None for value in read], bool)


def check_metadata(texts: Any) -> tuple[npt.NDArray[Any], Mask]:
    """Look for control characters and length; the values are the places of the texts themselves."""
    long = pc.greater(pc.binary_length(texts), MAX_VALUE_BYTES)
    bad: Mask = pc.or_(long, pc.match_substring_regex(texts, CONTROL)).to_numpy(zero_copy_only=False)
    return np.arange(len(texts), dtype=np.int32), bad


def check_submitted_at(texts: Any, *, as_of: datetime) -> tuple[npt.NDArray[Any], Mask]:
    """Read dates into (UTC second, imprecise); NaT where the rule is broken."""
    dates = [dated(text) for text in texts.to_pylist()]
    values = np.full(len(dates), np.array((np.datetime64("NaT", "s"), True), DATED))
    bad = np.array([pair is None or not EARLIEST <= pair[0] <= as_of for pair in dates], bool)
    for place in np.flatnonzero(~bad):
        at, imprecise = dates[place] or (EARLIEST, True)
        values[place] = (np.datetime64(at.replace(tzinfo=None), "s"), imprecise)
    return values, bad


def dated(text: str) -> tuple[datetime, bool] | None:
    """Read an ISO date or time as UTC; whether it is a month or year alone, its first day; or None."""
    parts = DATE.fullmatch(text)
    if parts is None:
        return None
    year, month, day, hour, minute, second = (int(parts[name] or least) for name, least in _DATE_PARTS)
    try:
        at = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        if (zone := parts["zone"]) not in (None, "Z"):  # ``+02``, ``+0200`` or ``+02:00``
            hours, minutes = int(zone[1:3]), int(zone[-2:]) if len(zone) > 3 else 0
            if hours > 23 or minutes > 59:
                return None
            at += timedelta(hours=hours, minutes=minutes) * (1 if zone[0] == "-" else -1)
    except (ValueError, OverflowError):
        return None
    return at, parts["day"] is None


_DATE_PARTS = (("year", 1), ("month", 1), ("day", 1), ("hour", 0), ("minute", 0), ("second", 0))


def submitted_at_rule(text: str, *, as_of: datetime) -> str:
    """Say what a date is, and on which side of the allowed time a well-formed one lies."""
    date = dated(text)
    if date is None:
        return "a date is 2024-04-30, 2024-04, 2024 or 2024-04-30T12:00:00Z, or empty"
    if date[0] < EARLIEST:
        return f"it lies before {EARLIEST:%Y-%m-%d}"
    return f"it lies in the future (after {as_of:%Y-%m-%d %H:%M:%S} UTC)"


def number_rule(what: str, text: str) -> str:
    """Say what the number is, and how some frequent slips are mended."""
    word = text.strip().lower()
    if word in ("nan", "na", "n/a", "null", "none", "-", "nat"):
        return f"{what}; leave a missing value empty"
    if re.fullmatch(r"[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]+)?", word):
        return f"{what}; write {word.replace(',', '')}, or a point for a decimal comma"
    if re.fullmatch(r"-?[0-9]+,[0-9]+", word):
        return f"{what}; write a point, not a comma"
    if re.match(NUMBER, word) and is_too_small(word):
        return f"{what}; this is too small for a number: write 0"
    return what


def outcome_rule(text: str) -> str:
    """Say what an outcome is; a word for success or failure is not guessed at."""
    if text.strip().lower() in ("true", "false", "pass", "fail", "passed", "failed", "yes", "no"):
        return f"{OUTCOME}; write 1 for a success, 0 for a failure"
    return number_rule(OUTCOME, text)


def name_rule(text: str, what: str = "a name") -> str | None:
    """Say which rule of names `text` breaks, or None: it is a good name."""
    if not text:
        return f"{what} is not empty"
    if len(text) > MAX_NAME_LENGTH:
        return f"{what} has at most {MAX_NAME_LENGTH} characters, not {len(text):,}"
    if (place := _first_unseen(text)) is not None:
        return f"{what} has no {described(text[place])} (character {place + 1})"
    if text != text.strip(" "):
        return f"{what} neither begins nor ends with white space"
    if "  " in text:
        return f"{what} has one space between words (character {text.index('  ') + 2})"
    return None


def _first_unseen(text: str) -> int | None:
    match = None if text.isascii() else INVISIBLE.search(text)
    end = match.start() if match else len(text)
    if text[:end].isprintable():
        return end if match else None
    return next(place for place, character in enumerate(text) if not character.isprintable())


def metadata_rule(text: str) -> str:
    """Say which control character stands in a column that is kept as it is, or how long the text is."""
    if (n_bytes := len(text.encode(errors="replace"))) > MAX_VALUE_BYTES:
        return f"a value of metadata has at most {MAX_VALUE_BYTES:,} bytes, not {n_bytes:,}"
    control = next((c for c in text if unicodedata.category(c) in ("Cc", "Cs")), "\0")
    return f"text has no {described(control)}"


def described(character: str) -> str:
    """Name a character that text may not hold, as in ``control character U+0000``."""
    kind = KINDS.get(unicodedata.category(character), "invisible character")
    return f"{kind} U+{ord(character):04X}"


def _number(what: str, **limits: Any) -> Kind:
    return Kind(partial(check_number, **limits), partial(number_rule, what), np.nan, np.float64)


OUTCOME = "an outcome is a number from 0 to 1"
TRIAL = f"a trial is a whole number from 0 to {MAX_TRIAL:,}"
N_AVERAGED = f"a number of runs is a whole number from 1 to {MAX_TRIAL:,}, or empty for 1"
VALID_RULE = "valid is 1, 0, true or false, or empty for true"
TOKENS = "a number of tokens is a whole number of at least 0, or empty"
MAX_VALUE = 1e12  # of a cost, a time or a temperature: sums over any file stay finite
METADATA = Kind(check_metadata, metadata_rule, -1, np.int32)


def kinds(as_of: datetime) -> dict[str, Kind]:
    """Make the table column → kind, for all columns but names and metadata."""
    table = {
        "trial": Kind(check_trial, partial(number_rule, TRIAL), -1, np.int16),
        "outcome": Kind(partial(check_number, high=1.0), outcome_rule, np.nan, np.float64),
        "valid": Kind(check_valid, lambda _: VALID_RULE, True, np.bool_),
        "n_averaged": Kind(check_n_averaged, partial(number_rule, N_AVERAGED), 1.0, np.float64),
        "temperature": _number("a temperature is a number from 0 to 1e12, or empty", high=MAX_VALUE),
        "submitted_at": Kind(
            partial(check_submitted_at, as_of=as_of),
            partial(submitted_at_rule, as_of=as_of),
            np.array((np.datetime64("NaT", "s"), True), DATED),
            DATED,
        ),
    }
    labels = {name: _number(f"{name} is a number from 0 to 1, or empty", high=1.0) for name in LABELS}
    measured = {
        name: _number(TOKENS, high=MAX_WHOLE, whole=True)
        if name.startswith("n_")
        else _number(f"{name} is a number from 0 to 1e12, or empty", high=MAX_VALUE)
        for name in MEASURED
    }
    return table | labels | measured


class Names:
    """The names of a column, each checked once; `strange` says why a good one cannot stand in it."""

    def __init__(self, column: str, strange: Callable[[str], str | None] | None = None) -> None:
        self.column = column
        self.strange = strange or (lambda _: None)
        self.code: dict[str, int] = {}
        self.n_characters = 0

    def check(self, texts: Any) -> tuple[npt.NDArray[np.int32], Mask]:
        """Give the code of each text, −1 where it breaks a rule of names."""
        codes = np.full(len(texts), -1, np.int32)
        for place, text in enumerate(texts.to_pylist()):
            if text not in self.code:
                if name_rule(text) is not None or self.strange(text) is not None:
                    continue
                self.n_characters += len(text)
                self.code[text] = len(self.code)
            codes[place] = self.code[text]
        return codes, codes < 0

    def rule(self, text: str) -> str:
        """Say which rule of names `text` breaks."""
        return name_rule(text, self.what) or self.strange(text) or ""

    @property
    def what(self) -> str:
        """What a name of this column is called in a rule."""
        noun = {"run": "a run's label", "prompt_variant": "a prompt variant's name"}
        return noun.get(self.column, f"{'an' if self.column[0] in 'aeiou' else 'a'} {self.column}'s name")

    @property
    def kind(self) -> Kind:
        """How the column is read."""
        return Kind(self.check, self.rule, -1, np.int32)


def empty_as_null(texts: Any) -> Any:
    """Replace empty texts by null: both say that a value is missing."""
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)


def text_of(value: object) -> str | ValueError | None:
    """Give the text of a value from JSON, None for null, or what is wrong with it."""
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return ValueError("text has no lone surrogate")
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, int | float | Decimal):
        try:
            return str(value)
        except ValueError:  # more digits than Python writes
            return ValueError("the number has too many digits")
    return ValueError(f"a field holds text, a number, true, false or null, not {kind_of(value)}")


def kind_of(value: object) -> str:
    """Name the kind of a value as JSON does."""
    if isinstance(value, Mapping):
        return "an object"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    kinds = {list: "a list", tuple: "a list", str: "a text", int: "a number", float: "a number"}
    return kinds.get(type(value), f"a value of type {type(value).__name__}")


def column_as_text(column: Any) -> Any:
    """Turn an Arrow column of a type that `can_be_text` into text, null where null or empty."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        column = column.view(pa.timestamp(kind.unit))  # the same instants in UTC
    return empty_as_null(pc.cast(column, pa.string()))


def can_be_text(kind: Any) -> bool:
    """Tell whether the values of an Arrow type have one text each."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return any(holds(kind) for holds in _READ)


def is_text(kind: Any) -> bool:
    """Tell whether an Arrow type is text itself."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def n_bytes_as_text(column: Any) -> int:
    """Count the bytes of an Arrow column's values, those of a dictionary as often as they are used."""
    if not (pa.types.is_dictionary(column.type) and is_text(column.type.value_type)):
        return int(column.nbytes)
    lengths = pc.binary_length(column.dictionary)
    return int(pc.sum(pc.take(lengths, column.indices)).as_py() or 0)


_READ = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_boolean,
    pa.types.is_decimal,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_null,
)


def header_faults(names: Sequence[str]) -> list[Fault]:
    """Find what is wrong with the column names: their number, doubles, and each by itself."""
    if not any(names):
        return [Fault(None, None, None, "the file has no header")]
    if len(names) > MAX_COLUMNS:
        rule = f"the file has {len(names):,} columns; use at most {MAX_COLUMNS}"
        return [Fault(None, None, None, rule)]
    if len(names) == 1 and (hint := separator_hint(names)) and "\t" in names[0]:
        return [Fault(None, None, None, hint.removeprefix("; "))]  # not that a name holds no tab
    faults = []
    for name, n in Counter(names).items():
        if broken := name_rule(name, "a column's name"):
            rule = f"{broken} (column {names.index(name) + 1})"
            faults.append(Fault(None, None, excerpt(name), rule))
        elif n > 1:
            faults.append(Fault(None, excerpt(name), None, f"{n} columns have this name"))
    return faults
