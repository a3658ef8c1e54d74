"""A replay as one page that stands alone: what was spared, how far the boards agree, what happened when."""

from datetime import date
from typing import Any

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from leaderboard.plots.times import Series, shares_through_time
from leaderboard.studies.answers import words

HEADS = (
    "Day",
    "Phase",
    "Ranked",
    "Tasks of the subset",
    "Spared",
    "Pairs in order",
    "Spearman’s ρ",
    "Of the five best",
)
FIELDS = (
    ("of pairs in order", "pairs_correct"),
    ("rank correlation", "rho"),
    ("of the five best", "top5_overlap"),
)
LOWEST_SHARE = 0.5  # of the plot on agreement: pairs in the order of a coin


def replay_page(*, slug: str, report: dict[str, Any], command: str) -> str:
    """Return the page's HTML; `report` is what `replay --json` prints."""
    boards = report["boards"]
    return render_to_string(
        "replay.html",
        {
            "slug": slug,
            "command": command,
            "verdict": _verdict(report),
            "alerts": report["alerts"],
            "reselections": report["reselections"],
            "heads": HEADS,
            "rows": [_row(one) for one in boards],
            "plots": [_spared(report), _agreement(report)] if boards else [],
        },
    )


def _verdict(report: dict[str, Any]) -> str:
    """The answer in a sentence."""
    if report["verdict"]:
        return str(report["verdict"]["text"])
    usd = report["saved_usd"]
    money = "" if usd is None else f", worth ${usd:,.0f},"
    share = words.percent(report["saved_share"])
    spared = f"{share}% of {report['n_tasks_full']:,} runs of a task{money} were spared"
    if report["pairs_correct"] is None:
        return f"{spared}."
    return (
        f"{spared}, and the last board puts {words.percent(report['pairs_correct'])}% of pairs of its agents "
        "in the order of full evaluation."
    )


def _spared(report: dict[str, Any]) -> SafeString:
    points = [(_day(one), 1 - one["n_tasks_run"] / one["n_tasks_full"]) for one in report["boards"]]
    return shares_through_time(
        name="spared",
        title="Share of runs of a task that were spared up to each day",
        series=[Series("spared", points)],
        events=_events(report),
    )


def _agreement(report: dict[str, Any]) -> SafeString:
    series = [Series(label, [(_day(one), one[field]) for one in report["boards"]]) for label, field in FIELDS]
    told = [share for one in series for _, share in one.points if share is not None]
    return shares_through_time(
        name="agreement",
        title="Agreement of each board with full evaluation: pairs in order (solid), Spearman's rank "
        "correlation (dashed), share of the five best (dotted)",
        series=series,
        lo=min([LOWEST_SHARE, *told]),
        events=_events(report),
    )


def _events(report: dict[str, Any]) -> list[tuple[date, str]]:
    return [
        (date.fromisoformat(one["date"]), f"{one['date']}: another subset, {one['k']} tasks")
        for one in report["reselections"]
    ]


def _day(board: dict[str, Any]) -> date:
    return date.fromisoformat(board["date"])


def _row(one: dict[str, Any]) -> list[str]:
    rho = one["rho"]
    return [
        one["date"],
        one["phase"],
        str(one["n"]),
        "none" if one["k"] is None else str(one["k"]),
        _percent(1 - one["n_tasks_run"] / one["n_tasks_full"]),
        _percent(one["pairs_correct"]),
        "not measured" if rho is None else f"{rho:.3f}",
        _percent(one["top5_overlap"]),
    ]


def _percent(share: float | None) -> str:
    return "not measured" if share is None else f"{words.percent(share)}%"
