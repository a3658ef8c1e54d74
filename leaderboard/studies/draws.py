"""Draws that nobody can foresee who has no key of the server, and that come out the same each time."""

import os
from contextlib import suppress
from secrets import token_urlsafe
from tempfile import NamedTemporaryFile

from django.conf import settings
from django.utils.crypto import salted_hmac

from analytics.drift.tuning import n_audit_tasks as n_audit_tasks
from leaderboard import postgres


def digest(what: str, about: str) -> bytes:
    return salted_hmac(what, about, secret=_secret(), algorithm="sha256").digest()


def _secret() -> str:
    """The SECRET_KEY; the embedded server has another one at each start, and keeps a key for this instead."""
    if not settings.EMBEDDED:
        return settings.SECRET_KEY
    path = postgres.home().joinpath("draw.key")
    if not path.exists():
        with NamedTemporaryFile("w", dir=path.parent) as new, suppress(FileExistsError):
            new.write(token_urlsafe())
            new.flush()
            os.link(new.name, path)  # whole or not at all, and of two that are made at once the first stays
    return path.read_text()
