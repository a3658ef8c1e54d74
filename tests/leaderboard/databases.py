"""Other databases of the test session's server."""

from contextlib import contextmanager

from django.db import connection


@contextmanager
def database(name):
    """Let commands, models and pages use another database of the same server."""
    usual = connection.settings_dict["NAME"]
    connection.close()
    connection.settings_dict["NAME"] = name
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict["NAME"] = usual


@contextmanager
def empty_database():
    """Yield the name of an empty database, and drop it in the end."""
    name = f"{connection.settings_dict['NAME']}_empty"
    with connection.cursor() as cursor:
        cursor.execute(f'CREATE DATABASE "{name}"')
    try:
        yield name
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f'DROP DATABASE "{name}"')
