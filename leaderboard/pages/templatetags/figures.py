"""Numbers, dates and states as a reader sees them. Rounding happens here and nowhere else."""

from datetime import datetime
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from leaderboard.boards.models import Board, Entry
from leaderboard.pages.queries import Order

register = template.Library()

PHASES = {
    "cold_start": "Too few agents have run all tasks to choose among these, so every agent runs all of them.",
    "provisional": (
        "Agents are ranked on a first subset of the tasks, neither too easy nor too hard to tell them apart. "
        "It is chosen anew as more agents run all tasks, and ranks may move with it."
    ),
    "ongoing": (
        "Agents are ranked on a fixed subset of the tasks, neither too easy nor too hard to tell them apart. "
        "A new agent runs these alone; its score on all tasks is calibrated from them."
    ),
    "unsuited": "No subset of the tasks is in use: every agent runs all tasks and is ranked on all.",
}
NONE = SafeString('<span class="none" aria-hidden="true">–</span><span class="unseen">none</span>')


@register.filter
def percent(value: float | None) -> str:
    """0.8659 is 86.6."""
    if value is None:
        return NONE
    rounded = round(100 * value, 1) + 0.0  # no −0.0
    return f"{rounded:.1f}".replace("-", "−")


@register.filter
def edge(value: float) -> str:
    """The edge of a band: 0.3 is 30%."""
    return f"{round(100 * value, 4):g}%"


@register.filter
def grouped(count: int) -> str:
    """21600 is 21,600."""
    return f"{count:,}"


@register.simple_tag
def counted(count: int, noun: str) -> str:
    """1 agent, 2 agents."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


@register.simple_tag
def with_error(value: float | None, error: float | None) -> SafeString | str:
    """A score in percent with its naive standard error."""
    if value is None:
        return NONE
    if error is None:
        return format_html('<span class="value">{}</span>', percent(value))
    return format_html(
        '<span class="value">{}</span> <span class="error">±{}</span>', percent(value), percent(error)
    )


@register.filter
def full_score(entry: Entry) -> SafeString | str:
    """A measured score with its error, or a calibrated one with its mark."""
    if entry.full_score_source != "calibrated":
        return with_error(entry.full_score, entry.full_naive_se)
    return format_html(
        '<span class="value calibrated"><span aria-hidden="true">~</span>{}</span> '
        '<span class="unseen">calibrated</span>',
        percent(entry.full_score),
    )


@register.filter
def day(moment: datetime | None) -> SafeString:
    if moment is None:
        return NONE
    return format_html('<time datetime="{0}">{0}</time>', f"{timezone.localtime(moment):%Y-%m-%d}")


@register.filter
def instant(moment: datetime) -> SafeString:
    moment = timezone.localtime(moment)
    text = f"{moment.day} {moment:%B %Y, %H:%M} UTC"
    return format_html('<time datetime="{}">{}</time>', moment.isoformat(), text)


@register.filter
def phase_sentence(board: Board) -> str:
    """What the phase means; under full runs by an operator's wish there is no subset to speak of."""
    if board.subset is None and board.phase in ("provisional", "ongoing"):
        return PHASES["unsuited"]
    return PHASES[board.phase]


@register.inclusion_tag("pages/heading.html")
def heading(order: Order, column: str, label: str, more: str = "") -> dict[str, Any]:
    """The head of a column with the link that sorts by it."""
    direction = order.direction(column)
    arrow = {"ascending": "↑", "descending": "↓"}.get(direction, "↕")
    sort = order.after_choosing(column)
    return {
        "column": column,
        "label": label,
        "more": more,
        "direction": direction,
        "arrow": arrow,
        "sort": sort,
    }
