"""The WSGI application, for gunicorn."""

import os
from typing import Any

from django.core.handlers.wsgi import WSGIRequest
from django.core.wsgi import get_wsgi_application

from leaderboard.studies.answers import import_less


class TolerantRequest(WSGIRequest):
    """A request whose Content-Type, where it cannot be read (`boundary*=none''x`), counts as none."""

    def __init__(self, environ: dict[str, Any]) -> None:
        try:
            super().__init__(environ)
        except ValueError:
            super().__init__(environ | {"CONTENT_TYPE": ""})


import_less()
#: DJANGO_SETTINGS_MODULE | `leaderboard.settings` | module of these settings
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "leaderboard.settings")
application = get_wsgi_application()
application.request_class = TolerantRequest


def _prepare() -> None:
    """Import what answers, and note which code that is, once and before the fork: workers begin at once."""
    from django.urls import get_resolver

    from leaderboard.pages.caching import version

    assert get_resolver().url_patterns
    version()


_prepare()
