"""Waking the scheduler. It finds what is due by itself: a lost call costs seconds, never a result."""

from django.db import connection

CHANNEL = "bandstand"


def wake() -> None:
    """Wake the scheduler once the present transaction is committed."""
    with connection.cursor() as cursor:
        cursor.execute(f"NOTIFY {CHANNEL}")
