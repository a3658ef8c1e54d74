"""Rows that are made once and from then on copied into each test's database, by COPY."""

from functools import cache

from django.apps import apps
from django.db import connection

from leaderboard.catalog.models import Policy

APPS = ("accounts", "catalog", "submissions", "studies", "boards", "operations", "pghistory")
KEPT = {}


def stored(key, make):
    """What `make` adds to the database and returns, made once by each default and from then on copied.

    Where triggers cannot be held back, so that a copy would be recorded as a change, it is made each time.
    """
    if not is_superuser():
        return make()
    key = (key, *(Policy._meta.get_field(name).get_default() for name in ("assignment", "estimator")))
    if key not in KEPT:
        before = every_row()
        made = make()
        after = every_row()
        for model, there, now in zip(models(), before, after, strict=True):
            changed = [key for key, row in there.items() if now.get(key) != row]
            assert not changed, f"{model.__name__} {changed} changed or went, which a copy would not tell"
        new = [
            [row for key, row in now.items() if key not in there]
            for there, now in zip(before, after, strict=True)
        ]
        KEPT[key] = (
            made,
            [
                (f'"{model._meta.db_table}" ({", ".join(columns_of(model))})', b"".join(rows))
                for model, rows in zip(models(), new, strict=True)
                if rows
            ],
        )
        return made
    made, tables = KEPT[key]
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        for table, content in tables:
            with cursor.copy(f"COPY {table} FROM STDIN") as copy:
                copy.write(content)
        cursor.execute("RESET session_replication_role")
    return made


def is_superuser():
    with connection.cursor() as cursor:
        cursor.execute("SHOW is_superuser")
        return cursor.fetchone() == ("on",)


@cache
def models():
    found = [
        model for app in APPS for model in apps.get_app_config(app).get_models(include_auto_created=True)
    ]
    return [model for model in found if model._meta.managed and not model._meta.proxy]


def filled(tables):
    """Those of the tables that hold a row, by one query."""
    asked = [f"SELECT '{table}' WHERE EXISTS (SELECT FROM {table})" for table in sorted(tables)]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(asked))
        return [table for (table,) in cursor.fetchall()]


def every_row():
    there = filled(model._meta.db_table for model in models())
    return [rows_of(model) if model._meta.db_table in there else {} for model in models()]


def columns_of(model):
    """Those of the key first."""
    fields = [*model._meta.pk_fields, *model._meta.local_concrete_fields]
    return list(dict.fromkeys(f'"{field.column}"' for field in fields))


def rows_of(model):
    """Each row by its key, as COPY writes and takes it."""
    n = len(model._meta.pk_fields)
    columns = columns_of(model)
    rows = f'SELECT {", ".join(columns)} FROM "{model._meta.db_table}" ORDER BY {", ".join(columns[:n])}'
    with connection.cursor() as cursor, cursor.copy(f"COPY ({rows}) TO STDOUT") as copy:
        lines = b"".join(map(bytes, copy)).splitlines(keepends=True)
    return {tuple(line.rstrip(b"\n").split(b"\t", n)[:n]): line for line in lines}
