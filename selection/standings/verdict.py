"""Whether the subset ranks like the whole: one word from a fixed rule on the figures of a validation.

==========  =======================================================================================
word        pairs of agents in the right order, and of those that all tasks can tell apart
==========  =======================================================================================
yes         at least 95%, and 99%
mostly      at least 90%, and 95%
not yet     fewer
==========  =======================================================================================

The figures are those of the strategy in use, in time where that is available, else with each agent left out;
where no pair is clear, the first alone decides. Beside them stands the same figure of as many tasks drawn at
random.

Source
------
The rule is this project's own; the figures are `selection.validation`'s.
"""

from collections.abc import Mapping
from typing import Any

PROTOCOLS = {"temporal": "in time", "loao": "for an agent left out"}
RULE = (("yes", 0.95, 0.99), ("mostly", 0.90, 0.95))


def verdict(validation: Mapping[str, Any] | None, strategy: str) -> dict[str, Any] | None:
    """Return the verdict on a strategy; None where no protocol tells it.

    Parameters
    ----------
    validation : mapping or None
        `selection.validation.as_json`.
    strategy : str

    Returns
    -------
    dict or None
        ``word``, ``protocol``, ``strategy``, ``pairs_correct``, ``pairs_correct_se``, ``pairs_clear``,
        ``pairs_correct_random``, ``n``; shares from 0 to 1, None where not told.
    """
    for name in PROTOCOLS:
        figures = _figures(validation, name)
        own = figures.get(strategy, {})
        if own.get("pairs_correct") is not None:
            return {
                "word": word(own["pairs_correct"], own["pairs_clear"]),
                "protocol": name,
                "strategy": strategy,
                "pairs_correct": own["pairs_correct"],
                "pairs_correct_se": (own["se"] or {}).get("pairs_correct"),
                "pairs_clear": own["pairs_clear"],
                "pairs_correct_random": figures.get("random", {}).get("pairs_correct"),
                "n": own["n"],
            }
    return None


def word(correct: float, clear: float | None) -> str:
    """Return yes, mostly or not yet."""
    for told, least, least_clear in RULE:
        if correct >= least and (clear is None or clear >= least_clear):
            return told
    return "not yet"


def _figures(validation: Mapping[str, Any] | None, protocol: str) -> Mapping[str, Any]:
    found = (validation or {}).get("protocols", {}).get(protocol, {})
    strategies: Mapping[str, Any] = found.get("strategies", {}) if found.get("available") else {}
    return strategies
