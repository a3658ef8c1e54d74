"""How lines of the log look, and what may not stand in them.

In production each line is one JSON object, for web, scheduler and gunicorn alike; in a terminal it is one to
read. Whatever a line says has passed `without_secrets` last, tracebacks among it: tokens, secrets of webhooks
and links, passwords in addresses, and values of parameters that are called like secrets become `…`.
"""

import logging
import os
import re
import sys
from collections.abc import MutableMapping, Sequence
from typing import Any

import structlog
from django.core.exceptions import ImproperlyConfigured

JSON, TEXT = "json", "text"
HIDDEN = "…"
# Parts of names; values under them are never logged.
SECRET_NAMES = (
    r"\w{0,20}(?:token|secret|password|passwd|authorization|cookie|api_?key|signing_key|otp|csrf)\w{0,20}"
)
SECRET_NAME = re.compile(rf"(?:{SECRET_NAMES}|key|code)", re.IGNORECASE)
SECRETS: Sequence[tuple[re.Pattern[str], str]] = (
    (re.compile(r"\b(bst_[0-9A-Za-z]{1,4})[0-9A-Za-z]*"), rf"\1{HIDDEN}"),
    (re.compile(r"\bbsw_[\w-]+"), f"bsw_{HIDDEN}"),
    (re.compile(r"(/invitation/)[^\s\"'?#]+"), rf"\1{HIDDEN}"),
    (re.compile(r"(/accounts/(?:confirm-email|password/reset/key)/)[^\s\"'?#]+"), rf"\1{HIDDEN}"),
    (re.compile(r"(\w://[^\s/@:]*:)[^\s/@]+@"), rf"\1{HIDDEN}@"),
    (re.compile(r"\b(Bearer|Basic)\s+[^\s\"',]+", re.IGNORECASE), rf"\1 {HIDDEN}"),
    (re.compile(rf"([?&](?:{SECRET_NAMES}|key|code)=)[^&\s\"'#]+", re.IGNORECASE), rf"\1{HIDDEN}"),
    (re.compile(rf"\b({SECRET_NAMES}[\"']?\s*[=:]\s*[\"']?)[^\s\"',}}&]+", re.IGNORECASE), rf"\1{HIDDEN}"),
)
# A terminal would obey them, and some readers would break a line at them; tabs and ends of lines are let be.
CONTROLS = {
    code: f"\\u{code:04x}"
    for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)
    if chr(code) not in "\t\n"
}
Event = MutableMapping[str, Any]


def hide(value: Any) -> Any:
    if isinstance(value, str):
        for pattern, shown in SECRETS:
            value = pattern.sub(shown, value)
        return value.translate(CONTROLS)
    if isinstance(value, dict):
        return {
            key: HIDDEN if SECRET_NAME.fullmatch(str(key)) and value[key] else hide(one)
            for key, one in value.items()
        }
    if isinstance(value, list | tuple):
        return [hide(one) for one in value]
    return value if value is None or isinstance(value, bool | int | float) else hide(str(value))


def without_secrets(logger: Any, method: str, event: Event) -> Event:
    return {**hide(dict(event))}


def _without_django_s_own(logger: Any, method: str, event: Event) -> Event:
    """Django hands over the request itself, its status, and tracebacks, also of what it refuses with 403."""
    if event.get("status_code", 500) < 500:
        event.pop("exc_info", None)
    for name in ("request", "response", "status_code", "stack_info"):
        if name in event and not isinstance(event[name], str | int):
            del event[name]
    return event


def _add_origin(logger: Any, method: str, event: Event) -> Event:
    """Told of any record: when, where, and how grave."""
    record = event.get("_record")
    if isinstance(record, logging.LogRecord):
        event["logger"], event["level"] = record.name, record.levelname.lower()
    return event


SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


class LogLine(structlog.stdlib.ProcessorFormatter):
    def __init__(self, form: str) -> None:
        renderer: Any = structlog.processors.JSONRenderer(ensure_ascii=False)
        if form != JSON:
            plain = structlog.dev.plain_traceback
            renderer = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain)
        super().__init__(
            foreign_pre_chain=[*SHARED, structlog.stdlib.ExtraAdder(), _without_django_s_own],
            processors=[
                _add_origin,
                self.remove_processors_meta,
                structlog.processors.format_exc_info,
                without_secrets,
                renderer,
            ],
        )


def configure() -> None:
    """Let structlog's own loggers write through Python's, so that all lines look alike."""
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *SHARED,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.processors.StackInfoRenderer(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )


def form_of_lines(*, is_deployed: bool) -> str:
    """JSON in production, a line to read elsewhere, unless LOG_FORMAT says otherwise."""
    return os.environ.get("LOG_FORMAT") or (JSON if is_deployed else TEXT)


def settings_of(form: str, loggers: dict[str, dict[str, Any]], *, level: str) -> dict[str, Any]:
    """Of logging.config: one handler on stderr for all."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": LogLine, "form": form}},
        "handlers": {
            "stderr": {"class": "logging.StreamHandler", "formatter": "line"},
            "none": {"class": "logging.NullHandler"},
        },
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": loggers,
    }


# Faults of ours, told to Sentry where SENTRY_DSN names one: nothing of people, or of what they sent.

OF_REQUEST = ("method", "url")  # what is kept of one


def start_sentry(dsn: str) -> None:
    try:
        import sentry_sdk
    except ModuleNotFoundError:
        raise ImproperlyConfigured("SENTRY_DSN is set: pip install 'bandstand[server,sentry]'.") from None
    sentry_sdk.init(**sentry_options(dsn))


def sentry_options(dsn: str) -> dict[str, Any]:
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
