"""Write the initial migrations anew: one an app, each table made whole, and all of an app in one step.

What `makemigrations` writes makes tables first and adds keys, indexes and constraints to them one by one, and
Django builds all models again after each: an empty database took 14 s of processor to migrate, now 1.3.

Run after a change of models, before the first release: `python tools/migrations.py`. What the release
stores is then kept anew, too (tools/release.py).
"""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DJANGOS = "\n\n\nclass Migration(migrations.Migration):\n\n    initial = True\n\n"
OURS = (
    "\nfrom leaderboard.initial_migration import InitialMigration\n\n\nclass Migration(InitialMigration):\n"
)
APPS = ("accounts", "catalog", "submissions", "studies", "boards", "operations", "pages")
sys.path.insert(0, str(ROOT))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "leaderboard.settings")

import django  # noqa: E402 - the path comes first
from django.db.migrations import Migration, operations  # noqa: E402
from django.db.migrations.loader import MigrationLoader  # noqa: E402
from django.db.migrations.writer import MigrationWriter  # noqa: E402


def main() -> None:
    """Write them all."""
    for app in APPS:
        for old in (ROOT / "leaderboard" / app / "migrations").glob("0*.py"):
            old.unlink()
    make = [sys.executable, "-W", "ignore", "manage.py", "makemigrations", *APPS, "--name", "initial"]
    subprocess.run([*make, "--verbosity", "0"], cwd=ROOT, check=True)
    django.setup()
    found = MigrationLoader(None).disk_migrations
    written = {app: _whole(app, [found[key] for key in sorted(found) if key[0] == app]) for app in APPS}
    for app, migration in written.items():
        folder = ROOT / "leaderboard" / app / "migrations"
        for old in folder.glob("0*.py"):
            old.unlink()
        text = MigrationWriter(migration, include_header=False).as_string()
        (folder / "0001_initial.py").write_text(text.replace(DJANGOS, OURS))
    subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", "leaderboard"], cwd=ROOT, check=True)
    if "--no-release" not in sys.argv:
        subprocess.run([sys.executable, "-W", "ignore", "tools/release.py"], cwd=ROOT, check=True)


def _whole(app: str, parts: list[Migration]) -> Migration:
    """One migration of all parts: each model with all that was added to it, then the triggers."""
    steps = [step for part in parts for step in part.operations]
    tables = {step.name_lower: step for step in steps if isinstance(step, operations.CreateModel)}
    rest = [step for step in steps if not _is_taken_up(step, tables)]
    whole = Migration("0001_initial", app)
    whole.initial = True
    whole.dependencies = sorted({_first(key) for part in parts for key in part.dependencies if key[0] != app})
    late = [step for table in tables.values() for step in _through(table)]
    whole.operations = [*_in_order(app, tables), *late, *rest]
    return whole


def _through(table: operations.CreateModel) -> list[operations.AddField]:
    """Take out the fields whose rows are a model of their own, which points back to this one."""
    late = [one for one in table.fields if one[1].many_to_many and one[1].remote_field.through]
    table.fields = [one for one in table.fields if one not in late]
    return [operations.AddField(table.name, name, field) for name, field in late]


def _first(key: tuple[str, str]) -> tuple[str, str]:
    """Name the one migration of another of these apps."""
    return (key[0], "0001_initial") if key[0] in APPS else key


def _is_taken_up(step: Any, tables: dict[str, operations.CreateModel]) -> bool:
    """Put a field, an index or a constraint into its model."""
    if isinstance(step, operations.CreateModel):
        return True
    table = tables.get(getattr(step, "model_name_lower", ""))
    if table is None:
        return False
    if isinstance(step, operations.AddField):
        table.fields.append((step.name, step.field))
    elif isinstance(step, operations.AddIndex):
        table.options.setdefault("indexes", []).append(step.index)
    elif isinstance(step, operations.AddConstraint):
        table.options.setdefault("constraints", []).append(step.constraint)
    else:
        return False
    return True


def _in_order(app: str, tables: dict[str, operations.CreateModel]) -> list[operations.CreateModel]:
    """Models after those that they point to."""
    placed: dict[str, operations.CreateModel] = {}

    def place(name: str) -> None:
        if name in placed:
            return
        for other in _pointed_to(app, tables[name]):
            if other != name and other in tables:
                place(other)
        placed[name] = tables[name]

    for name in tables:
        place(name)
    return list(placed.values())


def _pointed_to(app: str, table: operations.CreateModel) -> list[str]:
    remote = [getattr(field, "remote_field", None) or SimpleNamespace(model="") for _, field in table.fields]
    named = [str(getattr(one.model, "_meta", None) or one.model).lower() for one in remote]
    return [name.partition(".")[2] for name in named if name.startswith(f"{app}.")]


if __name__ == "__main__":
    main()
