"""Whether the tables are those of this release: each migration that it has is applied, and no other."""

from functools import lru_cache
from importlib import import_module
from pkgutil import iter_modules

from django.apps import apps
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

Names = frozenset[tuple[str, str]]


def mismatch() -> str:
    """Say how the tables differ from what this release needs, and what to do; empty where they do not."""
    connection.ensure_connection()
    encoding = connection.connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        return f"the database is in {encoding}; make one by createdb --encoding=UTF8 --template=template0"
    applied = frozenset(MigrationRecorder(connection).applied_migrations())
    if missing := known() - applied:
        return f"{_counted(missing, 'not applied')}; run `migrate` of this release"
    if foreign := unknown(applied):
        return f"{_counted(foreign, 'of a later release')}; install that release"
    return ""


@lru_cache(maxsize=1)
def known() -> Names:
    """App and name of each migration of this release; read from the names of files, none is imported."""
    names = set()
    for app in apps.get_app_configs():
        module, _ = MigrationLoader.migrations_module(app.label)
        try:
            folder = getattr(import_module(module or ""), "__path__", ())  # a file is none of Django's
        except (ImportError, ValueError):
            continue  # an app without tables
        names |= {(app.label, one.name) for one in iter_modules(folder) if one.name[0] not in "_~"}
    return frozenset(names)


def unknown(applied: Names) -> Names:
    """Those that this release does not know; what is of an app that it lacks is let be."""
    installed = {app.label for app in apps.get_app_configs()}
    return frozenset(one for one in applied - known() if one[0] in installed)


def _counted(names: Names, what: str) -> str:
    first = ".".join(min(names))
    return f"{len(names)} migration{'s' * (len(names) > 1)} {what} ({first}{', …' * (len(names) > 1)})"
