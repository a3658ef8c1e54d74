"""A chart as a figure: its words, the drawing, and its table twin."""

from typing import Any
from urllib.parse import urlencode

from django import template
from django.urls import reverse

from leaderboard.catalog.models import Benchmark
from leaderboard.plots.chart import Chart

register = template.Library()


@register.inclusion_tag("pages/chart.html")
def chart(drawn: Chart, benchmark: Benchmark, **asked: Any) -> dict[str, Any]:
    """`asked` is what the address of the drawing needs to be drawn again: `agent=7`."""
    address = reverse("pages:plot", args=[benchmark.slug, drawn.name])
    return {"chart": drawn, "address": f"{address}?{urlencode(asked, doseq=True)}" if asked else address}
