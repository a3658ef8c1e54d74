"""Faults of ours, told to Sentry where SENTRY_DSN names one: nothing of people, or of what they sent."""

from typing import Any

from django.core.exceptions import ImproperlyConfigured

from leaderboard.logs import hide

OF_REQUEST = ("method", "url")  # what is kept of one


def start(dsn: str) -> None:
    try:
        import sentry_sdk
    except ModuleNotFoundError:
        raise ImproperlyConfigured("SENTRY_DSN is set: pip install 'bandstand[server,sentry]'.") from None
    sentry_sdk.init(**options(dsn))


def options(dsn: str) -> dict[str, Any]:
    return {
        "dsn": dsn,
        "include_local_variables": False,  # a token is one
        "max_request_body_size": "never",
        "max_breadcrumbs": 0,  # queries hold names and addresses
        "traces_sample_rate": 0.0,
        "before_send": without_people,
    }


def without_people(event: Any, hint: Any) -> Any:
    """Of the request its method and address without the query; of the visitor nothing."""
    request = event.get("request", {})
    event["request"] = {name: request[name] for name in OF_REQUEST if name in request}
    if "url" in event["request"]:
        event["request"]["url"] = str(request["url"]).partition("?")[0]
    event.pop("user", None)
    for one in (event.get("exception") or {}).get("values", ()):
        for frame in (one.get("stacktrace") or {}).get("frames", ()):
            frame.pop("vars", None)
    return hide(event)
