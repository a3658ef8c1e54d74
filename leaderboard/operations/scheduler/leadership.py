"""Who leads: whoever holds one advisory lock of the database, on a connection of its own.

The connection is neither Django's nor a pool's, where a lock of a session would outlive its use. The server
frees the lock as soon as the process is gone, and within seconds where the machine is. The leader asks its
connection each second (`clock.LOOK_EVERY`), and PostgreSQL notes when: that is its sign of life.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID, uuid4

import psycopg
from django.db import connection

from leaderboard.notify import CHANNEL

LOCK = 0x62616E64737461  # "bandsta": a number that nobody else takes by chance
KEEPALIVE = {"idle": 5, "interval": 2, "count": 3}  # seconds, seconds, probes
LEADER = """
    SELECT l.pid FROM pg_locks l JOIN pg_database d ON d.oid = l.database
    WHERE l.locktype = 'advisory' AND l.granted AND d.datname = current_database()
        AND l.objsubid = 1 AND l.classid::bigint = %s AND l.objid::bigint = %s
"""
SILENCE = f"""
    SELECT extract(epoch FROM clock_timestamp() - state_change)::float FROM pg_stat_activity
    WHERE pid IN ({LEADER})
"""
OF_DJANGO = {"context", "cursor_factory", "prepare_threshold"}  # parameters that are not the server's
PAUSE, LOOK_EVERY = 1.0, 0.2  # seconds
SILENT_AFTER = 60.0  # seconds; a busy machine may keep it waiting for some

logger = logging.getLogger(__name__)


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
            row = lock_connection.execute("SELECT pg_try_advisory_lock(%s)", [LOCK]).fetchone()
            if row and row[0]:
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
    known: dict[str, Any] = connection.get_connection_params()
    chosen = {name: value for name, value in known.items() if name not in OF_DJANGO}
    chosen |= {f"keepalives_{name}": value for name, value in KEEPALIVE.items()}
    chosen |= {"connect_timeout": 5, "tcp_user_timeout": 10_000, "application_name": "bandstand scheduler"}
    lock_connection = psycopg.connect(**chosen, autocommit=True)
    for name, value in KEEPALIVE.items():  # the server's own side: it frees the lock of a vanished machine
        lock_connection.execute(f"SET tcp_keepalives_{name} = {value}")
    return lock_connection


def pause(seconds: float, ended: Callable[[], bool]) -> None:
    """Sleep, unless or until it is time to end.

    A handler of signals sets a plain flag: an Event set by it could wait for a lock that the interrupted
    thread holds.
    """
    end = time.monotonic() + seconds
    while not ended() and (left := end - time.monotonic()) > 0:
        time.sleep(min(left, LOOK_EVERY))


def is_led() -> bool:
    return _of_leader(LEADER) is not None


def silent_for() -> float | None:
    """Seconds since the leader's last sign of life; None where no scheduler leads."""
    return _of_leader(SILENCE)


def _of_leader(query: str) -> float | None:
    with connection.cursor() as cursor:
        cursor.execute(query, divmod(LOCK, 1 << 32))
        row = cursor.fetchone()
    return None if row is None else float(row[0])


def trouble() -> str:
    seconds = silent_for()
    if seconds is None:
        return "none leads; start one"
    if seconds > SILENT_AFTER:
        return f"no sign of life for {seconds:.0f} s"
    return ""
