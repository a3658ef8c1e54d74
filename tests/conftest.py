"""What every test may use."""

import csv
import gc
import gzip
import os
from collections import Counter
from functools import cache
from itertools import chain
from pathlib import Path

import hypothesis
import pytest
from django.conf import settings
from django.contrib.auth.hashers import Argon2PasswordHasher
from django.core.management import call_command
from django.db import connection, connections
from django.test import TransactionTestCase

from bandstand_client import Client
from tests.cluster import HOME, ROOT, alone
from tests.kept import filled, is_superuser

LONGEST = ("test_docs.py", "test_server.py")
SLOW = Path(__file__).with_name("slow.txt")  # by function, as `make find-slow` wrote it
SLOW_SECONDS = 0.5
TEMPLATE = f"test_{HOME.name}"
MADE_BY_MIGRATIONS = {"django_content_type", "auth_permission"}


def pytest_configure(config: pytest.Config) -> None:
    # Else each client reads all static files before its first request: a tenth of a second of processor.
    settings.WHITENOISE_AUTOREFRESH = True
    # How long a crowded machine takes says nothing of the code. Without the slow tests a run tells of the
    # code alone: its examples are the same each time.
    hypothesis.settings.register_profile(
        "untimed",
        deadline=None,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
        derandomize=config.getoption("markexpr") == "not slow",
    )
    hypothesis.settings.load_profile("untimed")
    # The algorithm is the product's; its price, a quarter of a second for each password, is not paid.
    Argon2PasswordHasher.time_cost, Argon2PasswordHasher.memory_cost = 1, 8
    Argon2PasswordHasher.parallelism = 1
    TransactionTestCase._fixture_teardown = lambda _: empty()


def empty() -> None:
    """Delete what the tables hold, but not what migrations made; Django's flush makes each table anew."""
    if not is_superuser():  # of a server of one's own
        call_command("flush", verbosity=0, interactive=False)
        return
    tables = set(connection.introspection.django_table_names(only_existing=True, include_views=False))
    if held := filled(tables - MADE_BY_MIGRATIONS):
        # No trigger keeps a row, and no foreign key asks for an order.
        deleted = "; ".join(f"DELETE FROM {table}" for table in held)
        with connection.cursor() as cursor:
            cursor.execute(
                f"SET session_replication_role = replica; {deleted}; RESET session_replication_role"
            )


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--seeds", type=int, metavar="N", help="of every slow test only the first N parameter sets (all)"
    )
    parser.addoption("--find-slow", action="store_true", help=f"time the tests, and write {SLOW.name} anew")


@cache
def slow_functions() -> frozenset[str]:
    return frozenset(SLOW.read_text().splitlines())


def pytest_itemcollected(item: pytest.Item) -> None:
    """Leave what takes half a second to the slow tests, but for drawn examples, which are random there."""
    is_drawn = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    if not (is_drawn or item.config.getoption("find_slow")) and function_of(item.nodeid) in slow_functions():
        item.add_marker(pytest.mark.slow(each=True))


def function_of(nodeid: str) -> str:
    return nodeid.partition("[")[0]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if terminalreporter.config.getoption("find_slow"):
        seconds = Counter[str]()
        for report in chain.from_iterable(terminalreporter.stats.values()):
            if isinstance(report, pytest.TestReport):
                seconds[report.nodeid] += report.duration
        slow = {function_of(nodeid) for nodeid, n in seconds.items() if n >= SLOW_SECONDS}
        SLOW.write_text("".join(f"{one}\n" for one in sorted(slow)))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest files first; of every slow test as many parameter sets as were asked for, or each."""
    items.sort(key=lambda item: item.path.name not in LONGEST)  # no worker is left with one at the end
    limit = config.getoption("seeds")
    if limit is None:
        return
    n_seen = Counter[str]()
    left_out = []
    for item in items:
        test = function_of(item.nodeid)
        slow = item.get_closest_marker("slow")
        if slow and not slow.kwargs.get("each"):
            n_seen[test] += 1
        if n_seen[test] > limit:
            left_out.append(item)
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


def pytest_collection_finish() -> None:
    """What is there by now stays: the collector went through it again and again, a tenth of all the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real outcome matrices, which lies outside the project."""
    folder = Path(os.environ.get("BANDSTAND_REAL_DATA") or ROOT.parent / "shared" / "data")
    if folder.is_dir():
        return folder
    if os.environ.get("REQUIRE_REAL_DATA") == "1":
        pytest.fail(f"REQUIRE_REAL_DATA=1, but there is no folder {folder}")
    return pytest.skip(f"no real data: there is no folder {folder}")


@pytest.fixture(scope="session")
def real_rows(real_data):
    """Read a real file by the csv module, so that a check owes nothing to the project's reader."""

    def rows(name):
        with gzip.open(real_data / f"{name}.csv.gz", "rt", newline="", encoding="utf-8") as lines:
            return list(csv.DictReader(lines))

    return rows


@pytest.fixture(scope="session")
def django_db_setup(django_test_environment, django_db_blocker, django_db_modify_db_settings):
    """A database of this worker's own: a copy of one that the first worker migrated."""
    with django_db_blocker.unblock():
        beside = os.environ.get("BANDSTAND_BESIDE", "")  # of a session inside of a test
        name = connection.creation._get_test_db_name() + beside
        with alone("template"):
            _migrated_once()
            _made(name, template=TEMPLATE)
        _use(name)
        yield
        connections.close_all()
        if "DATABASE_URL" not in os.environ:
            return  # they go with the server
        with connection.creation._nodb_cursor() as cursor:
            for one in (name,) if beside else (name, TEMPLATE):
                cursor.execute(f'DROP DATABASE IF EXISTS "{one}" WITH (FORCE)')


def _migrated_once():
    with connection.creation._nodb_cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", [TEMPLATE])
        if cursor.fetchone():
            return
    unfinished = f"{TEMPLATE}_unfinished"
    _made(unfinished)
    _use(unfinished)
    call_command("migrate", verbosity=0, run_syncdb=True)
    connection.close()
    with connection.creation._nodb_cursor() as cursor:
        cursor.execute(f'ALTER DATABASE "{unfinished}" RENAME TO "{TEMPLATE}"')


def _made(name, template="template1"):
    with connection.creation._nodb_cursor() as cursor:
        cursor.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        cursor.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')


def _use(name):
    connection.close()
    settings.DATABASES["default"]["NAME"] = connection.settings_dict["NAME"] = name


@pytest.fixture
def waited(monkeypatch):
    """The seconds that were waited between tries."""
    seconds = []
    defaults = Client.__init__.__kwdefaults__ | {"sleep": seconds.append}
    monkeypatch.setattr(Client.__init__, "__kwdefaults__", defaults)
    return seconds
