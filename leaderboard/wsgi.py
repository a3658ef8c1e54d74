"""The WSGI application, for gunicorn."""

import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Any

from django.core.handlers.wsgi import WSGIRequest
from django.core.wsgi import get_wsgi_application


class WithoutPandas(MetaPathFinder):
    """Hides pandas from what is served.

    pyarrow imports it, where it is installed, only to ask of an array whether it is one of pandas': 60 MB in
    every worker, for nothing.
    """

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not used in web workers", name=name)


class Readable(WSGIRequest):
    """A request whose Content-Type, where it cannot be read (`boundary*=none''x`), counts as none."""

    def __init__(self, environ: dict[str, Any]) -> None:
        try:
            super().__init__(environ)
        except ValueError:
            super().__init__(environ | {"CONTENT_TYPE": ""})


sys.meta_path.insert(0, WithoutPandas())
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "leaderboard.settings")
application = get_wsgi_application()
application.request_class = Readable


def _prepare() -> None:
    """Import what answers, and note which code that is, once and before the fork: workers begin at once."""
    from django.urls import get_resolver

    from leaderboard.pages.caching import version

    assert get_resolver().url_patterns
    version()


_prepare()
