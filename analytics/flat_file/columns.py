"""Which columns a flat file has, and what its header may not look like."""

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from types import MappingProxyType

MAX_COLUMNS = 64
REQUIRED = ("benchmark", "agent", "scaffold", "model", "submitted_at", "task", "trial", "outcome")
MEASURED = (
    "cost_usd",
    "n_input_tokens",
    "n_output_tokens",
    "seconds_environment",
    "seconds_execution",
    "seconds_scoring",
)
LABELS = ("human", "human_probability")
OPTIONAL = (
    "valid",
    "category",
    "group",
    "prompt_variant",
    "judge",
    "temperature",
    "run",
    "n_averaged",
    *LABELS,
    *MEASURED,
)
ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "score": "outcome",
        "agent_id": "agent",
        "task_id": "task",
        "input_tokens": "n_input_tokens",
        "output_tokens": "n_output_tokens",
    }
)
NAMED = (
    "benchmark",
    "agent",
    "scaffold",
    "model",
    "task",
    "category",
    "group",
    "prompt_variant",
    "judge",
    "run",
)
NEVER_EMPTY = ("benchmark", "agent", "scaffold", "model", "task", "trial")
SETTING = ("prompt_variant", "judge", "temperature", "run")
KNOWN = (*REQUIRED, *OPTIONAL)


def position(field: str | None) -> int:
    """Place of a column in the order in which faults of one row are listed."""
    if field is None:
        return -1
    canonical = ALIASES.get(field, field)
    return KNOWN.index(canonical) if canonical in KNOWN else len(KNOWN)


def aliases_in(columns: Collection[str]) -> dict[str, str]:
    """Find the aliases that stand for an absent column, the first known of two: alias → the column."""
    taken: dict[str, str] = {}
    for alias, canonical in ALIASES.items():
        if alias in columns and canonical not in columns and canonical not in taken.values():
            taken[alias] = canonical
    return taken


def missing_rule(column: str, columns: Sequence[str]) -> str:
    """Word the rule for the required `column` that is not among `columns`, with names that are near."""
    known_as = [alias for alias, canonical in ALIASES.items() if canonical == column]
    also = f" (or its alias {known_as[0]})" if known_as else ""
    others = {name.strip().lower(): name for name in columns if name not in KNOWN}
    wanted = (column, *known_as)
    alike = [match for name in wanted for match in get_close_matches(name, others, n=2, cutoff=0.75)]
    near = [f'"{others[match]}"' for match in dict.fromkeys(alike)]
    hint = f"; if it is {' or '.join(near)}, rename that" if near else ""
    return f"the column{also} is missing{hint}{separator_hint(columns)}"


def separator_hint(columns: Sequence[str]) -> str:
    """Say which mark other than a comma separates the header, if it is one column with such marks."""
    strange = [name for name in columns if name not in KNOWN]  # beside what is known without the file
    if len(strange) != 1:
        return ""
    separators = [
        name for mark, name in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")) if mark in strange[0]
    ]
    return f"; the header uses {separators[0]}, use commas" if separators else ""
