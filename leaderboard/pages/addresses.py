"""Addresses that stand elsewhere: in feeds, badges, previews of links, the sitemap."""

from django.conf import settings
from django.http import HttpRequest


def absolute(request: HttpRequest, path: str) -> str:
    """The whole address of a path; under SITE_URL where the operator says where the service stands."""
    return f"{settings.SITE_URL}{path}" if settings.SITE_URL else request.build_absolute_uri(path)
