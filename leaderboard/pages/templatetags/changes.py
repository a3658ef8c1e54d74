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
        what = words.entered_text(told.now[agent].rank).capitalize()
        yield Changed(what, agent, NOBODY, words.place_text(told.now[agent]))
    for one in told.moved:
        new = f"{one.n_new_above:,} of those above it new" if one.n_new_above else ""
        before, now = words.place_text(one.before), words.place_text(one.now)
        yield Changed("Moved beyond the ranks it might hold", one.agent, before, now, new)
    for what, agents in (("Got a rank", told.now_ranked), ("Lost the rank", told.now_unranked)):
        for agent in agents:
            before, now = words.place_text(told.before[agent]), words.place_text(told.now[agent])
            yield Changed(what, agent, before, now)
    for what, agents in (("Withdrawn", told.withdrawn), ("Left", told.left)):
        for agent in agents:
            yield Changed(what, agent, words.place_text(told.before[agent]), NOBODY)
