"""Who leads: whoever holds one advisory lock of the database, on a connection of its own.

The connection is neither Django's nor a pool's, where a lock of a session would outlive its use. The server
frees the lock as soon as the process is gone, and within seconds where the machine is.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID, uuid4

import psycopg
from django.db import connection

from leaderboard.notify import CHANNEL
from leaderboard.operations.scheduler.pausing import pause

LOCK = 0x62616E64737461  # "bandsta": a number that nobody else takes by chance
KEEPALIVE = {"idle": 5, "interval": 2, "count": 3}  # seconds, seconds, probes
LOCK_OF_LEADER = """
    SELECT EXISTS (
        SELECT 1 FROM pg_locks JOIN pg_database AS d ON d.oid = database
        WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND d.datname = current_database()
          AND (classid::bigint << 32) + objid::bigint = %s
    )
"""
OF_DJANGO = {"context", "cursor_factory", "prepare_threshold"}  # parameters that are not the server's
PAUSE = 1.0

logger = logging.getLogger(__name__)


def is_led() -> bool:
    """Whether a scheduler leads, of all that use this database."""
    with connection.cursor() as cursor:
        cursor.execute(LOCK_OF_LEADER, [LOCK])
        return bool(cursor.fetchone()[0])


class Leadership:
    """The connection that holds the lock, and the claim under which this leadership runs its jobs."""

    def __init__(self, lock_connection: "psycopg.Connection[Any]") -> None:
        self.claim: UUID = uuid4()
        self._connection = lock_connection
        self._pid = lock_connection.info.backend_pid

    def is_woken(self, *, within: float) -> bool:
        """Wait for a notification; raises OperationalError when the connection, and so the lock, is lost."""
        self._connection.execute("SELECT 1")
        return any(self._connection.notifies(timeout=within, stop_after=1))

    def leads(self) -> bool:
        """Ask the server by Django's connection whether the lock is still held."""
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = %s)",
                [self._pid],
            )
            return bool(cursor.fetchone()[0])


@contextmanager
def leadership(ended: Callable[[], bool]) -> Iterator[Leadership | None]:
    """Wait until this process leads; None if it is to end before."""
    with _connect() as lock_connection:
        waits = False
        while not ended():
            if _takes_lock(lock_connection):
                lock_connection.execute(f"LISTEN {CHANNEL}")
                logger.info("leading")
                yield Leadership(lock_connection)
                return
            if not waits:
                logger.info("another scheduler leads; waiting to take over")
                waits = True
            pause(PAUSE, ended)
        yield None


def _connect() -> "psycopg.Connection[Any]":
    chosen = {
        name: value for name, value in connection.get_connection_params().items() if name not in OF_DJANGO
    }
    ours: dict[str, Any] = {f"keepalives_{name}": value for name, value in KEEPALIVE.items()}
    ours |= {"connect_timeout": 5, "tcp_user_timeout": 10_000, "application_name": "bandstand scheduler"}
    lock_connection = psycopg.connect(**(chosen | ours), autocommit=True)
    for name, value in KEEPALIVE.items():  # the server's own side: it frees the lock of a vanished machine
        lock_connection.execute(f"SET tcp_keepalives_{name} = {value}")
    return lock_connection


def _takes_lock(lock_connection: "psycopg.Connection[Any]") -> bool:
    row = lock_connection.execute("SELECT pg_try_advisory_lock(%s)", [LOCK]).fetchone()
    return bool(row and row[0])
