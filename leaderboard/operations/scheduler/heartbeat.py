"""When the scheduler that leads last gave a sign of life: nothing is written for it.

The leader asks its connection each second (`clock.LOOK_EVERY`), and PostgreSQL notes when.
"""

from django.db import connection

from leaderboard.operations.scheduler.leadership import LOCK

SILENT_AFTER = 60.0  # seconds; a busy machine may keep it waiting for some
LEADER = """
    SELECT extract(epoch FROM clock_timestamp() - a.state_change)::float
    FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid JOIN pg_database d ON d.oid = l.database
    WHERE l.locktype = 'advisory' AND l.granted AND d.datname = current_database()
        AND l.objsubid = 1 AND l.classid::bigint = %s AND l.objid::bigint = %s
"""


def silent_for() -> float | None:
    """Seconds since the leader's last sign of life; None where no scheduler leads."""
    with connection.cursor() as cursor:
        cursor.execute(LEADER, divmod(LOCK, 1 << 32))
        row = cursor.fetchone()
    return None if row is None else float(row[0])


def trouble() -> str:
    """Say what is wrong with the scheduler; empty where it is well."""
    seconds = silent_for()
    if seconds is None:
        return "none leads; start one"
    if seconds > SILENT_AFTER:
        return f"no sign of life for {seconds:.0f} s"
    return ""
