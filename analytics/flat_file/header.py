"""What is wrong with the column names of a file as a whole."""

from collections import Counter
from collections.abc import Sequence

from analytics.flat_file.columns import MAX_COLUMNS, separator_hint
from analytics.flat_file.faults import Fault, excerpt
from analytics.flat_file.values import name_rule


def header_faults(names: Sequence[str]) -> list[Fault]:
    """Find what is wrong with the column names: their number, doubles, and each by itself."""
    if not any(names):
        return [Fault(None, None, None, "the file has no header")]
    if len(names) > MAX_COLUMNS:
        rule = f"the file has {len(names):,} columns; at most {MAX_COLUMNS} are allowed"
        return [Fault(None, None, None, rule)]
    if len(names) == 1 and (hint := separator_hint(names)) and "\t" in names[0]:
        return [Fault(None, None, None, hint.removeprefix("; "))]  # not that a name holds no tab
    counted = Counter(names).items()
    return [fault for name, n in counted if (fault := _fault(name, n, names.index(name) + 1))]


def _fault(name: str, n: int, place: int) -> Fault | None:
    if broken := name_rule(name, "a column's name"):
        return Fault(None, None, excerpt(name), f"{broken} (column {place})")
    if n > 1:
        return Fault(None, excerpt(name), None, f"{n} columns have this name")
    return None
