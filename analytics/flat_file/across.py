"""Rules across rows: one key once, one scaffold and one model for an agent, one spelling for a name.

Codes are indices into the distinct names of a column in order of first use, −1 where a field is empty or at
fault; places are indices of rows. All arrays are (n_rows,) unless a shape is given.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from analytics.flat_file.faults import MAX_FAULTS, Fault, Faults, excerpt, quoted
from analytics.flat_file.table import RowNumbers, Table
from analytics.names import without_case

Codes = npt.NDArray[np.int32]
Places = npt.NDArray[np.int64]


def combined(columns: Sequence[npt.NDArray[Any]]) -> Places:
    """Join columns of codes of at least −1 to one code each row: equal just where all columns are equal."""
    key = np.zeros(len(columns[0]), np.int64)
    n_keys = 1
    for codes in columns:
        n_codes = int(codes.max(initial=-1)) + 2
        if n_keys * n_codes > 2**62:
            key = np.unique(key, return_inverse=True)[1].astype(np.int64)
            n_keys = int(key.max(initial=0)) + 1
        key = key * n_codes + codes + 1
        n_keys *= n_codes
    return key


def repeats(key: Places) -> tuple[Places, Places]:
    """Find the places whose key stands earlier too.

    Returns later: (n_found,); those places, ascending.
    Returns first: (n_reported,); for as many of them as are reported, the first place of their key.
    """
    order = np.argsort(key, kind="stable")
    in_order = key[order]
    later = np.sort(order[1:][in_order[1:] == in_order[:-1]])
    return later, order[np.searchsorted(in_order, key[later[:MAX_FAULTS]])]


def first_places(codes: Codes, n_codes: int) -> Places:
    """Find the first place of every code, (n_codes,); −1 where it has none."""
    first = np.full(n_codes, -1, np.int64)
    places = np.flatnonzero(codes >= 0)[::-1]
    first[codes[places]] = places  # of several places of one code the last written is the first in the file
    return first


def second_values(owner: Codes, value: Codes, n_owners: int) -> tuple[Places, Places]:
    """Find where an owner gets another value than at its first place; each such value once.

    Returns: (n_found,) each; where the other value first stands, ascending, and the owner's first place.
    """
    known = np.flatnonzero((owner >= 0) & (value >= 0))
    owner, value = owner[known], value[known]
    first = first_places(owner, n_owners)[owner]
    differs = np.flatnonzero(value != value[first])
    later, _ = repeats(combined([owner[differs], value[differs]]))
    new = np.delete(differs, later)
    return known[new], known[first[new]]


def look_alike(names: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Find the codes of names that are like an earlier one, each with that one's code."""
    earliest: dict[str, int] = {}
    for code, name in enumerate(names):
        other = earliest.setdefault(without_case(name), code)
        if other != code:
            yield code, other


def _difference(name: str, other: str) -> str:
    same = name.casefold() == other.casefold()
    return "upper and lower case" if same else "forms of the same letters"


class Checks:
    """The rules across the rows of one table; what breaks them goes to `faults`.

    table: where names and row numbers come from.
    codes: (n_rows,) each; the named columns, the trial and, as ``setting``, what tells settings apart.
    """

    def __init__(self, table: Table, codes: dict[str, npt.NDArray[Any]], rows: RowNumbers) -> None:
        self.table = table
        self.codes = codes
        self.rows = rows
        self.names = {column: list(names.code) for column, names in table.names.items()}

    @property
    def faults(self) -> Faults:
        """Where faults are collected."""
        return self.table.faults

    def run(self, doubtful: npt.NDArray[np.bool_]) -> None:
        """Check all rules; rows that are `doubtful` have no certain key."""
        self.keys(doubtful)
        self.one_value("agent", "scaffold")
        self.one_value("agent", "model")
        self.one_value("task", "category")
        self.one_value("task", "group")
        for column in ("agent", "scaffold", "model"):
            self.one_spelling(column)

    def keys(self, doubtful: npt.NDArray[np.bool_]) -> None:
        """Tell the rows whose agent, task, setting and trial stand in an earlier row too."""
        columns = [self.codes[name] for name in ("agent", "task", "setting", "trial")]
        sure = np.flatnonzero(~doubtful & (columns[0] >= 0) & (columns[1] >= 0) & (columns[3] >= 0))
        later, first = repeats(combined(columns)[sure])
        if len(later):
            places = zip(sure[later[:MAX_FAULTS]], sure[first], strict=True)
            self.faults.extend(len(later), int(self.rows[sure[later[0]]]), (self._repeat(*p) for p in places))

    def _repeat(self, place: int, first: int) -> Fault:
        agent, task = (quoted(self._name(column, place)) for column in ("agent", "task"))
        trial = int(self.codes["trial"][place])
        rule = (
            f"the row repeats row {self.rows[first]}: agent {agent}, task {task}, trial {trial}, one setting;"
            " give it another trial or run"
        )
        return Fault(int(self.rows[place]), None, None, rule)

    def one_value(self, owner: str, column: str) -> None:
        """Tell where an owner (agent, task) has a second value of `column`."""
        places, first = second_values(self.codes[owner], self.codes[column], len(self.names[owner]))
        if len(places):
            faults = (self._second(owner, column, *pair) for pair in zip(places, first, strict=True))
            self.faults.extend(len(places), int(self.rows[places[0]]), faults)

    def _second(self, owner: str, column: str, place: int, first: int) -> Fault:
        rule = (
            f"{owner} {quoted(self._name(owner, place))} has {column} {quoted(self._name(column, first))}"
            f" in row {self.rows[first]}, and only one {column} is allowed"
        )
        value = excerpt(self._name(column, place))
        return Fault(int(self.rows[place]), self.table.shown(column), value, rule)

    def one_spelling(self, column: str) -> None:
        """Tell the names of `column` that are like an earlier one."""
        pairs = list(look_alike(self.names[column]))
        first = first_places(self.codes[column], len(self.names[column])) if pairs else np.zeros(0, np.int64)
        for code, other in pairs:
            name, earlier = self.names[column][code], self.names[column][other]
            rule = (
                f"{quoted(earlier)} in row {self.rows[first[other]]} differs from it only in "
                f"{_difference(name, earlier)}; spell each {column} one way"
            )
            value = excerpt(name)
            self.faults.add(Fault(int(self.rows[first[code]]), self.table.shown(column), value, rule))

    def _name(self, column: str, place: int) -> str:
        return self.names[column][int(self.codes[column][place])]
