"""The service's own, and a view that does nothing."""

from django.http import HttpRequest, HttpResponse
from django.urls import path

from leaderboard.urls import handler400, handler403, handler404, handler500, urlpatterns

__all__ = ["handler400", "handler403", "handler404", "handler500", "urlpatterns"]


def empty(request: HttpRequest) -> HttpResponse:
    return HttpResponse()


urlpatterns = [path("empty", empty), *urlpatterns]
