"""Wake the scheduler. It polls anyway, so a lost NOTIFY only delays."""

from django.db import connection

CHANNEL = "bandstand"


def wake() -> None:
    """Wake the scheduler once the present transaction is committed."""
    with connection.cursor() as cursor:
        cursor.execute(f"NOTIFY {CHANNEL}")
