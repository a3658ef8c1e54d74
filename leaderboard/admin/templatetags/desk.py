"""Figures of a proposal as the admin shows them; rounding happens here alone."""

from typing import TYPE_CHECKING, Any

from django import template

from leaderboard.actions.watching import FIGURES, place_text
from leaderboard.admin.actions import stands_chart
from leaderboard.plots.marks import Chart
from leaderboard.studies.answers import validated

if TYPE_CHECKING:  # every process imports this module, few compare
    from leaderboard.operations.reselections import Comparison, Variant

register = template.Library()
register.filter("place", place_text)
NOT_STATED = "not stated"


@register.filter
def figure(value: float | None) -> str:
    return NOT_STATED if value is None or value == "" else f"{value:.3g}"


@register.filter
def rate(value: float | None) -> str:
    return NOT_STATED if value is None else f"{value:.0%}"


@register.simple_tag
def figures_of(comparison: "Comparison", protocol: str) -> dict[str, Any] | None:
    """The figures of one protocol, a row for each subset; the reason where there are none."""
    in_use = comparison.in_use["figures"].get(protocol)
    if in_use is None or in_use["reason"]:
        return in_use and {"reason": in_use["reason"]}
    subsets = [(f"Version {comparison.row.previous.number}, in use", in_use)]
    subsets += [(one.label, one.figures[protocol]) for one in comparison.variants if one.figures]
    rows = []
    for label, figures in subsets:
        gained = figures["difference"]
        se = f" ± {gained['se']:.2g}" if gained["se"] is not None else ""
        row = [
            *(figure(figures[name]) for name in FIGURES),
            f"{figure(gained['value'])}{se}",
            f"{figures['n']}",
        ]
        rows.append((label, row))
    return {
        "headers": [*(validated.FIGURES[name] for name in FIGURES), "Gained by full score", "Agents"],
        "rows": rows,
    }


@register.simple_tag
def stands_of(variant: "Variant") -> Chart | None:
    return stands_chart(variant)
