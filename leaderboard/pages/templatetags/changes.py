"""What changed from one board to another, as a table."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from django import template

from leaderboard.studies.answers import Changes, words

register = template.Library()
NOBODY = "none"


class Changed(NamedTuple):
    what: str
    agent: str
    then: str
    now: str
    note: str = ""


@register.inclusion_tag("pages/changes.html")
def changes(told: Changes, most: int, where: str) -> dict[str, Any]:
    """The first rows, and how many more there are; `where` tells this table from others on the page."""
    rows = list(_rows(told))
    return {"rows": rows[:most], "where": where, "n_more": max(0, len(rows) - most)}


def _rows(told: Changes) -> Iterator[Changed]:
    for agent in told.entered:
        yield Changed("Entered", agent, NOBODY, "listed")
    for one in told.moved:
        new = f"{one.n_new_above:,} of those above it new" if one.n_new_above else ""
        before, now = words.place_text(one.before), words.place_text(one.now)
        yield Changed("Moved beyond the ranks it might hold", one.agent, before, now, new)
    for agent in told.now_ranked:
        yield Changed("Got a rank", agent, "not ranked", "ranked")
    for agent in told.now_unranked:
        yield Changed("Lost the rank", agent, "ranked", "not ranked")
    for agent in told.withdrawn:
        yield Changed("Withdrawn", agent, "listed", NOBODY)
    for agent in told.left:
        yield Changed("Left", agent, "listed", NOBODY)
