"""What programs that walk the web are told: which pages are listed, and where not to go."""

from collections.abc import Iterable
from typing import NamedTuple

from django.db.models import Max
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from leaderboard.catalog.models import Visibility
from leaderboard.catalog.queries import visible_benchmarks
from leaderboard.pages.access import absolute, for_all

OF_BENCHMARK = ("board", "tasks", "compare", "validity", "uncertainty", "history", "data")
CLOSED = ("/account", "/accounts/", "/admin/", "/api/", "/invitation/", "/submissions/")
MAX_ADDRESSES = 50_000  # addresses that a sitemap may hold


class Address(NamedTuple):
    whole: str
    changed: str = ""


@require_safe
@for_all
def sitemap(request: HttpRequest) -> HttpResponse:
    """The pages of public benchmarks; what is unlisted, private or hidden has no address here."""
    context = {"addresses": list(_addresses(request))[:MAX_ADDRESSES]}
    return render(request, "pages/sitemap.xml", context, content_type="application/xml")


def _addresses(request: HttpRequest) -> Iterable[Address]:
    yield Address(absolute(request, reverse("pages:home")))
    yield Address(absolute(request, reverse("pages:methods")))
    listed = visible_benchmarks(None).filter(visibility=Visibility.PUBLIC)
    benchmarks = listed.annotate(changed=Max("boards__published_at")).order_by("slug")
    for slug, changed in benchmarks.values_list("slug", "changed"):
        for name in OF_BENCHMARK:
            path = reverse(f"pages:{name}", args=[slug])
            yield Address(absolute(request, path), changed.isoformat() if changed else "")


@require_safe
@for_all
def robots(request: HttpRequest) -> HttpResponse:
    """Pages are open; what belongs to an account, and the interface for programs, is not for walking."""
    closed = "\n".join(f"Disallow: {path}" for path in CLOSED)
    text = f"User-agent: *\n{closed}\n\nSitemap: {absolute(request, reverse('pages:sitemap'))}\n"
    return HttpResponse(text, content_type="text/plain; charset=utf-8")
