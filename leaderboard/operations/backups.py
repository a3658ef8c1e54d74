"""The whole database to a file and back, by PostgreSQL's own pg_dump and pg_restore.

A file goes into a server of its own version or a later one, and into a release of its own version or a later
one, which then migrates it. Programs are of the server's version exactly: what one of them writes, another of
the same version surely reads.

Half of a small file are commands, which pg_restore runs as they are: a bit that turned there may take a
trigger or a rule away without a word. So `back_up` seals the file with its SHA-256, in a last line that
pg_restore never reads. It finds damage, not malice: whoever makes a file has the server do what it says.
"""

import hashlib
import os
import re
import subprocess
from pathlib import Path

from django.conf import settings
from django.db import connection
from psycopg.conninfo import make_conninfo

from leaderboard import postgres, schema
from leaderboard.errors import Conflict, Refusal

OF_DJANGO = {"context", "cursor_factory", "prepare_threshold", "password"}
REBUILT = ("pages_renderedpage",)  # what is in them is made again when it is asked for
MIGRATIONS = "django_migrations"
SEAL = re.compile(rb"\nsha256 ([0-9a-f]{64})\n")
N_SEAL = 73  # bytes
BLOCK = 1 << 20
TABLES = """
    SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f') AND n.nspname !~ '^(pg_|information_schema$)'
"""


def back_up(file: Path) -> int:
    """Write what is committed now; the service may go on. Returns the version of the server."""
    dump = _program("pg_dump")
    if not _n_tables():
        raise Conflict("The database has no tables yet, so there is nothing to back up.", code="no_tables")
    form = ("--format=custom", "--no-owner", "--no-privileges", "--lock-wait-timeout=60s")
    left_out = [f"--exclude-table-data={table}" for table in REBUILT]
    with file.open("xb"):
        file.chmod(0o600)  # it holds addresses, and hashes of secrets
    _run(dump, *form, *left_out, f"--file={file}", f"--dbname={_address()}")
    digest = _sha256(file, file.stat().st_size)
    with file.open("ab") as part:
        part.write(f"\nsha256 {digest}\n".encode())
    return _description(file)[0]


def restore(file: Path) -> None:
    program = _program("pg_restore")
    _check_seal(file)
    server, migrations, tables = _description(file)
    if server > _server_version():
        raise Conflict(
            f"The file is of PostgreSQL {server}, this server of {_server_version()}: a backup goes "
            "into its own version or a later one.",
            code="other_version",
        )
    if later := schema.unknown(migrations):
        raise Conflict(
            f"The file is of a later release, with {'.'.join(min(later))}: install that one.",
            code="later_release",
        )
    with_rows = set(connection.introspection.django_table_names()) - {*REBUILT}
    if migrations >= schema.known() and (lacking := with_rows - tables):
        raise Refusal(
            f"{file} is a part of a database: it lacks the rows of {min(lacking)}.", code="no_backup"
        )
    if n_tables := _n_tables():
        way = (
            "Set BANDSTAND_HOME to a new folder."
            if settings.EMBEDDED
            else "Make an empty one (createdb NAME) and name it in DATABASE_URL."
        )
        raise Conflict(
            f"The database is not empty: it has {n_tables} tables, views or sequences. {way}",
            code="not_empty",
        )
    whole = ("--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges")
    _run(program, *whole, f"--dbname={_address()}", "--", str(file))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def _description(file: Path) -> tuple[int, schema.Names, set[str]]:
    """The major version of its server, its migrations, and the tables that it has rows of."""
    program = _program("pg_restore")
    head = _read(program, "--list", "--", str(file))
    rows = _read(program, "--data-only", f"--table={MIGRATIONS}", "--file=-", "--", str(file))
    version = re.search(r"Dumped from database version: (\d+)", head)
    names = re.findall(r"^\d+\t(\S+)\t(\S+)\t", rows, re.MULTILINE)
    if not version or not names:
        raise Refusal(f"{file} is a backup of another database, not of this service.", code="no_backup")
    tables = re.findall(r"^\d+; \d+ \d+ TABLE DATA \S+ (\S+)", head, re.MULTILINE)
    return int(version[1]), frozenset(names), set(tables)


def _check_seal(file: Path) -> None:
    """Refuse a file that is not as it was sealed; those of releases without seals have none."""
    n_bytes = file.stat().st_size - N_SEAL
    with file.open("rb") as part:
        part.seek(max(n_bytes, 0))
        seal = SEAL.fullmatch(part.read(N_SEAL))
    if seal and seal[1].decode() != _sha256(file, n_bytes):
        raise Refusal(
            "The file is not as `backup` wrote it: its SHA-256 is another. Take another copy of it.",
            code="damaged",
        )


def _sha256(file: Path, n_bytes: int) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as part:
        for at in range(0, n_bytes, BLOCK):
            digest.update(part.read(min(BLOCK, n_bytes - at)))
    return digest.hexdigest()


def _program(name: str) -> str:
    """The embedded server's own program, else that on PATH; refused unless it is of the server's version."""
    program = f"{postgres.programs()}/{name}" if settings.EMBEDDED else name
    try:
        printed = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    except FileNotFoundError:
        raise Refusal(
            f"There is no {name} on PATH; on Debian apt-get install postgresql-client.", code="no_program"
        ) from None
    version, server = int(re.findall(r"\d+", printed)[0]), _server_version()
    if version != server:
        raise Conflict(
            f"{name} is of PostgreSQL {version}, the server of {server}: "
            f"put the programs of {server} first on PATH.",
            code="other_version",
        )
    return program


def _server_version() -> int:
    connection.ensure_connection()
    return int(connection.connection.info.server_version) // 10_000


def _n_tables() -> int:
    with connection.cursor() as cursor:
        cursor.execute(TABLES)
        return int(cursor.fetchone()[0])


def _address() -> str:
    """Where the database is, without the password, which other users would see on the command line."""
    chosen = connection.get_connection_params()
    return make_conninfo(**{name: value for name, value in chosen.items() if name not in OF_DJANGO})


def _run(program: str, *arguments: str) -> None:
    password = connection.get_connection_params().get("password")
    environment = os.environ | ({"PGPASSWORD": password} if password else {})
    command = [program, "--no-password", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment)
    if ended.returncode:
        raise Refusal(_error_in(ended.stderr) or f"{program} ended with {ended.returncode}.", code="failed")


def _read(program: str, *arguments: str) -> str:
    ended = subprocess.run([program, *arguments], capture_output=True, text=True, errors="replace")
    if ended.returncode:
        raise Refusal(f"This is not a file of `backup`: {_error_in(ended.stderr)}", code="no_backup")
    return ended.stdout


def _error_in(output: str) -> str:
    """The line of the first error, below which stands the command that it was met in; else the last line."""
    lines = output.strip().splitlines() or [""]
    return next((line for line in lines if "error:" in line), lines[-1])
