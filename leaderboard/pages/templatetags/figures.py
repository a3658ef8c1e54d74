"""Numbers, dates, cells, charts and addresses as a reader sees them; words are those of `studies.answers`."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django import template
from django.template import Context
from django.urls import reverse
from django.utils import timezone
from django.utils.html import conditional_escape, escape, format_html
from django.utils.safestring import SafeString

from leaderboard.catalog.models import Benchmark
from leaderboard.pages.access import absolute
from leaderboard.plots.marks import Chart
from leaderboard.studies.answers import AtTarget, Changes, table, words

if TYPE_CHECKING:  # it takes cells from here
    from leaderboard.pages.board_table import BoardLine, TableColumn

register = template.Library()

TASK_LIST = re.compile(r"(.*\btasks?\b[^:]*): (.+)", re.DOTALL)
CODE = re.compile(r"`([^`]+)`")
N_NAMES_SHOWN = 2
NONE, NOT_STATED, HIDDEN, UNAVAILABLE = (
    SafeString(f'<span class="none" aria-hidden="true">–</span><span class="unseen">{why}</span>')
    for why in ("not known", "not stated", "hidden", "not available")
)
FLAGGED = '<a class="mark {}" href="#flags">{}</a>'


@register.filter
def capital(term: str) -> str:
    """A term as it begins a line; a Greek letter stays what it is."""
    return term[:1].upper() + term[1:] if term.isascii() else term


@register.filter
def prose(text: str) -> SafeString:
    """A sentence in which `what is typed` is set as code; all of it is escaped first."""
    return SafeString(CODE.sub(r"<code>\1</code>", escape(text)))


@register.filter
def folded(reason: str) -> SafeString:
    """A reason whose list of tasks is folded."""
    if not (found := TASK_LIST.fullmatch(reason)):
        return prose(words.sentence(reason))
    return format_html("<details><summary>{}:</summary> {}</details>", *found.groups())


@register.simple_tag
def meaning_of(term: str) -> SafeString:
    return prose(words.LEGEND[term])


@register.filter
def percent(value: float | None) -> str:
    """0.8659 is 86.6."""
    return NONE if value is None else words.percent(value)


@register.filter
def score(at: AtTarget) -> str:
    """66.9 ± 3.1%, the longer side of the 95% interval; ~ before an estimate, no ± without an interval."""
    return NONE if at.score is None else words.score_text(at)


@register.filter
def edge(value: float) -> str:
    """The edge of a band: 0.3 is 30%."""
    return f"{round(100 * value, 4):g}%"


@register.filter
def decimals(value: float | None, n: int) -> str:
    """0.0127637 to five decimals is 0.01276."""
    return NONE if value is None else f"{value:.{n}f}".replace("-", "−")


@register.filter
def grouped(count: int) -> str:
    return f"{count:,}"


counted = register.simple_tag(words.counted)


@register.simple_tag
def figure(value: float | None, error: float | None = None) -> SafeString | str:
    """A correlation or share, 0.9692 as 0.969, with its standard error where there is one."""
    if value is None:
        return UNAVAILABLE
    shown = f"{round(value, 3) + 0.0:.3f}".replace("-", "−")
    if error is None:
        return shown
    return format_html('{} <span class="error">({})</span>', shown, f"{error:.3f}")


@register.simple_tag
def cell(line: "BoardLine", head: str) -> SafeString | str:
    text = line.cells.get(head, table.NOTHING)
    if text == table.NOTHING:
        return NONE
    if text.startswith("~"):
        return format_html('~<span class="unseen">estimated </span>{}', text.removeprefix("~"))
    return text


@register.simple_tag
def marks(page: Mapping[str, Any], line: "BoardLine") -> SafeString:
    own, common = line.entry.marks, page["common_marks"]
    shown = [(one, one) for one in own if one not in common]
    shown += [("not", f"not {one}") for one in common if one not in own]
    drawn = [
        format_html(FLAGGED if css == "flagged" else '<span class="mark {}">{}</span>', css, one)
        for css, one in shown
    ]
    return SafeString(" ".join(drawn))


@register.filter
def trust_mark(level: str) -> SafeString:
    """How far outcomes can be checked, in a word or two; what that means stands in its title."""
    mark = '<span class="mark trust {}" title="{}">{}</span>'
    return format_html(mark, level, words.TRUST_MEANS[level], words.TRUST[level])


@register.filter
def who(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= N_NAMES_SHOWN else f"{len(names):,} agents"


@register.filter
def long_day(moment: datetime) -> SafeString:
    """21 November 2026, in UTC."""
    moment = timezone.localtime(moment)
    return _time(f"{moment:%Y-%m-%d}", f"{moment.day} {moment:%B %Y}")


def _time(exact: str, text: str) -> SafeString:
    return format_html('<time datetime="{}">{}</time>', exact, text)


@register.filter
def day(moment: datetime | str | None) -> SafeString:
    if moment is None:
        return NOT_STATED
    text = moment if isinstance(moment, str) else f"{timezone.localtime(moment):%Y-%m-%d}"
    return _time(text, text)


@register.filter
def is_web(address: str) -> bool:
    """Whether it may be linked: a page on the web, no script."""
    return address.startswith(("https://", "http://"))


@register.filter
def or_not_known(text: str) -> str:
    return text or NONE


@register.filter
def minute(moment: datetime) -> SafeString:
    """2026-06-01 12:05, in UTC."""
    moment = timezone.localtime(moment)
    return _time(moment.isoformat(), f"{moment:%Y-%m-%d %H:%M}")


@register.filter
def instant(moment: datetime) -> SafeString:
    moment = timezone.localtime(moment)
    return _time(moment.isoformat(), f"{moment.day} {moment:%B %Y, %H:%M} UTC")


@register.simple_tag
def cells(page: Mapping[str, Any], line: "BoardLine") -> SafeString:
    """Those of the columns that the page shows."""
    columns: Sequence[TableColumn] = page["columns"]
    shown = ((one.css, conditional_escape(one.html(page, line))) for one in columns)
    return SafeString("".join(f'<td class="{css}">{html}</td>' for css, html in shown))


@register.inclusion_tag("pages/heading.html")
def heading(
    page: Mapping[str, Any], column: str, label: str, more: str = "", css: str = "", to: str = "#ranking"
) -> dict[str, Any]:
    """The head of a column that rows can be sorted by; `to` is where the table stands."""
    order = page["order"]
    aria_sort = page["direction"] if order.removeprefix("-") == column else ""
    return {
        "column": column,
        "css": css or f"c-{column}",
        "to": to,
        "label": label,
        "more": more,
        "direction": aria_sort,
        "arrow": {"ascending": "↑", "descending": "↓"}.get(aria_sort, ""),
        "address": page["address"](sort=f"-{column}" if order == column else column),  # again: turned round
    }


@register.simple_tag(takes_context=True)
def whole_address(context: dict[str, Any], name: str, *of: Any) -> str:
    return absolute(context["request"], reverse(name, args=of))


@register.inclusion_tag("pages/chart.html", takes_context=True)
def chart(context: Context, drawn: Chart, benchmark: Benchmark, **parameters: Any) -> dict[str, Any]:
    """`parameters` is what the address of the drawing needs to be drawn again: `agent=7`."""
    address = reverse("pages:plot", args=[benchmark.slug, drawn.name])
    return {
        "request": context.get("request"),
        "chart": drawn,
        "address": f"{address}?{urlencode(parameters, doseq=True)}" if parameters else address,
    }


@register.inclusion_tag("pages/changes.html")
def changes(
    changed: Changes, most: int, where: str, keys: Mapping[str, int] | None = None, slug: str = ""
) -> dict[str, Any]:
    """The first rows (agent, what, a note, rank then, rank now), and how many more there are.

    `where` tells this table from others on the page. Agents whose ids are known are linked.
    """
    then = {agent: words.place_text(place) for agent, place in changed.before.items()}
    now = {agent: words.place_text(place) for agent, place in changed.now.items()}
    rows = [
        (agent, words.entered_text(changed.now[agent].rank).capitalize(), "", "none", now[agent])
        for agent in changed.entered
    ]
    for one in changed.moved:
        new = f"{one.n_new_above:,} new above it" if one.n_new_above else ""
        places = words.place_text(one.before), words.place_text(one.now)
        rows.append((one.agent, "Moved outside its earlier rank range", new, *places))
    for what, agents in (("Got a rank", changed.now_ranked), ("Lost the rank", changed.now_unranked)):
        rows += [(agent, what, "", then[agent], now[agent]) for agent in agents]
    for what, agents in (("Withdrawn", changed.withdrawn), ("Left", changed.left)):
        rows += [(agent, what, "", then[agent], "none") for agent in agents]
    linked = [
        (reverse("pages:agent", args=[slug, keys[row[0]]]) if keys and row[0] in keys else "", *row)
        for row in rows[:most]
    ]
    return {"rows": linked, "where": where, "n_more": max(0, len(rows) - most)}
