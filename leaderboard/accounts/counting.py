"""Django's cache over one table, so that all processes count together: tries to sign in, codes once used.

Values are JSON, where Django's own cache in the database keeps pickles. A row is added by one statement, so
that of two processes one has added it: allauth's lock around its counts, and its check that a code of the
second factor is used once, rest on that. What has expired goes as others come.
"""

import json
from datetime import UTC, datetime
from typing import Any

from django.core.cache.backends.base import DEFAULT_TIMEOUT, BaseCache
from django.db import connection
from django.db.models import Q
from django.utils import timezone

from leaderboard.accounts.models import Counted

N_CLEARED = 20  # expired rows that go with each that is written
WRITE = """
    INSERT INTO accounts_counted AS c (key, value, expires_at) VALUES (%s, %s, %s)
    ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at
"""
UNLESS_THERE = " WHERE c.expires_at <= %s"
CLEAR = """
    DELETE FROM accounts_counted WHERE key IN (
        SELECT key FROM accounts_counted WHERE expires_at <= %s LIMIT %s FOR UPDATE SKIP LOCKED
    )
"""


class DatabaseCounterCache(BaseCache):
    def __init__(self, location: str, params: dict[str, Any]) -> None:
        super().__init__(params)

    def get(self, key: str, default: Any = None, version: int | None = None) -> Any:
        named = self.make_and_validate_key(key, version=version)
        value = _standing().filter(key=named).values_list("value", flat=True).first()
        return default if value is None else json.loads(value)

    def set(self, key: str, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> None:
        try:
            self._write(key, json.dumps(value), timeout, version, unless_there=False)
        except TypeError:
            self.delete(key, version)  # what is no JSON is not kept, as what the desk's search has found

    def add(self, key: str, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        return self._write(key, json.dumps(value), timeout, version, unless_there=True)

    def touch(self, key: str, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        named = self.make_and_validate_key(key, version=version)
        return bool(_standing().filter(key=named).update(expires_at=self._end(timeout)))

    def delete(self, key: str, version: int | None = None) -> bool:
        named = self.make_and_validate_key(key, version=version)
        return bool(Counted.objects.filter(key=named).delete()[0])

    def clear(self) -> None:
        Counted.objects.all().delete()

    def _write(self, key: str, value: str, timeout: Any, version: int | None, *, unless_there: bool) -> bool:
        named, now = self.make_and_validate_key(key, version=version), timezone.now()
        with connection.cursor() as cursor:
            cursor.execute(
                WRITE + UNLESS_THERE * unless_there,
                [named, value, self._end(timeout), *([now] if unless_there else [])],
            )
            is_written = bool(cursor.rowcount)
            cursor.execute(CLEAR, [now, N_CLEARED])
        return is_written

    def _end(self, timeout: Any) -> datetime:
        """A time without an end is the last that there is."""
        seconds = self.get_backend_timeout(timeout)
        return datetime.max.replace(tzinfo=UTC) if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _standing() -> Any:
    return Counted.objects.filter(Q(expires_at__gt=timezone.now()))
