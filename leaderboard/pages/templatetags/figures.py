"""Numbers, dates and states as a reader sees them. Rounding happens here and nowhere else."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from leaderboard.boards.models import Board
from leaderboard.pages.queries import BoardPage, Line
from leaderboard.studies.answers import AtTarget
from leaderboard.studies.answers import Line as Entrant

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
    "revalidating": "Agents run all tasks until it is clear whether the subset still ranks like the whole.",
    "saturated": "The best agents pass nearly every task, so that ranks say little.",
    "unsuited": "No subset of the tasks is in use: every agent runs all tasks and is ranked on all.",
}
TARGETS = {
    "subset": "The {n} tasks of the subset",
    "full": "All {n} tasks",
    "domain": "Tasks like these",
}
N_NAMES_SHOWN = 2  # without unfolding
N_NAMES_LISTED = 50
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
def decimals(value: float | None, n: int) -> str:
    """0.0127637 to five decimals is 0.01276."""
    return NONE if value is None else f"{value:.{n}f}".replace("-", "−")


@register.filter
def source(term: str) -> str:
    """A variance component as a reader writes it: agent:task is agent × task."""
    return term.replace(":", " × ").lower()


@register.filter
def grouped(count: int) -> str:
    """21600 is 21,600."""
    return f"{count:,}"


@register.simple_tag
def counted(count: int, noun: str) -> str:
    """1 agent, 2 agents."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


@register.simple_tag
def figure(value: float | None, error: float | None = None) -> SafeString | str:
    """A correlation or share, 0.9692 as 0.969, with its standard error where there is one."""
    if value is None:
        return NONE
    shown = f"{round(value, 3) + 0.0:.3f}".replace("-", "−")
    if error is None:
        return shown
    return format_html('{} <span class="error">±{}</span>', shown, f"{error:.3f}")


@register.simple_tag
def with_error(value: float | None, error: float | None) -> SafeString | str:
    """A score in percent with a standard error."""
    if value is None:
        return NONE
    if error is None:
        return format_html('<span class="value">{}</span>', percent(value))
    return format_html(
        '<span class="value">{}</span> <span class="error">±{}</span>', percent(value), percent(error)
    )


@register.simple_tag
def estimate(line: Line) -> SafeString:
    """The score for the chosen target with its standard error, and below it the naive one or its source."""
    told = line.told
    if told.score is None:
        return NONE
    if not told.estimated:
        return format_html(
            "{}{}", with_error(told.score, told.se), _under(f"naive ±{percent(told.naive_se)}")
        )
    error = "" if told.se is None else format_html(' <span class="error">±{}</span>', percent(told.se))
    return format_html("{}{}{}", _calibrated(told.score), error, _under(told.source))


@register.simple_tag
def interval(told: AtTarget) -> SafeString | str:
    """The ends of an interval in percent."""
    return "" if told.lower is None else f"{percent(told.lower)}–{percent(told.upper)}"


@register.simple_tag
def places(line: Line) -> SafeString:
    """The ranks that it may hold."""
    if line.places is None:
        return NONE
    lower, upper = line.places
    return format_html("{}", f"{lower}" if lower == upper else f"{lower}–{upper}")


@register.simple_tag
def at_target(entry: Entrant, target: str) -> SafeString | str:
    """A measured score with its error, or an estimated one with its source; below it the interval."""
    told = entry.at[target]
    if told.score is None:
        return NONE
    if told.estimated:
        source = format_html('<span class="error">{}</span>', told.source)
        return format_html("{} {}{}", _calibrated(told.score), source, _under(interval(told)))
    return format_html("{}{}", with_error(told.score, told.se), _under(interval(told)))


@register.simple_tag
def icc(entry: Entrant) -> SafeString:
    """The intraclass correlation with its interval, and below it how many trials a task had."""
    told = entry.icc
    if told["icc"] is None:
        return NONE
    around = f"{told['lower']:.2f}–{told['upper']:.2f}" if told["lower"] is not None else ""
    doubt = SafeString('<span class="mark unreliable">unreliable</span> ') if told["note"] else ""
    return format_html(
        '<span class="value">{}</span> <span class="error">{}</span> <span class="under">{}{}</span>',
        f"{told['icc']:.2f}",
        around,
        doubt,
        f"{told['trials_per_task']:.1f} trials a task",
    )


def _calibrated(score: float) -> SafeString:
    return format_html(
        '<span class="value"><span aria-hidden="true">~</span>{}</span>'
        '<span class="unseen"> calibrated</span>',
        percent(score),
    )


def _under(text: str) -> SafeString | str:
    return format_html(' <span class="under">{}</span>', text) if text else ""


@register.inclusion_tag("pages/ties.html")
def ties(line: Line) -> dict[str, Any]:
    """With whom it is tied: names where they are few, else their number, which unfolds."""
    return {
        "known": line.places is not None,
        "n": len(line.tied),
        "few": len(line.tied) <= N_NAMES_SHOWN,
        "names": line.tied[:N_NAMES_LISTED],
        "n_more": max(0, len(line.tied) - N_NAMES_LISTED),
    }


@register.filter
def who(names: Sequence[str]) -> str:
    """The names where they are few, else their number."""
    return ", ".join(names) if len(names) <= N_NAMES_SHOWN else f"{len(names):,} agents"


@register.filter
def day(moment: datetime | str | None) -> SafeString:
    if moment is None:
        return NONE
    text = moment if isinstance(moment, str) else f"{timezone.localtime(moment):%Y-%m-%d}"
    return format_html('<time datetime="{0}">{0}</time>', text)


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


@register.simple_tag
def target_label(page: BoardPage, target: str) -> str:
    n = len(page.subset_tasks) if target == "subset" else page.board.n_tasks
    return "The subset" if target == "subset" and not n else TARGETS[target].format(n=f"{n:,}")


@register.inclusion_tag("pages/heading.html")
def heading(
    page: BoardPage, column: str, label: str, more: str = "", below: str = "", below_label: str = ""
) -> dict[str, Any]:
    """The head of a column with the link that sorts by it; a second link sorts by what stands below."""
    links = [_sorting(page, column, label)] + ([_sorting(page, below, below_label)] if below else [])
    direction = page.order.direction(column) or (page.order.direction(below) if below else "")
    return {"column": column, "more": more, "direction": direction, "links": links}


def _sorting(page: BoardPage, column: str, label: str) -> dict[str, str]:
    arrow = {"ascending": "↑", "descending": "↓"}.get(page.order.direction(column), "↕")
    address = page.address(sort=page.order.after_choosing(column))
    return {"column": column, "label": label, "arrow": arrow, "address": address}
