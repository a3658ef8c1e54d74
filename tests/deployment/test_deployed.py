"""The image's steps without an engine: built, released, served and ended by the scripts that it runs.

The server is a stock PostgreSQL, reached by a password; the programs run as an account that may write to
/tmp alone, as in a container with a read-only root.
"""

import contextlib
import json
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.request import Request

import psycopg
import pytest

from tests.deployment.test_files import ROOT, program
from tests.leaderboard.service import answer_to, free_port, wait_until
from tests.toys import csv_text, graded

PATIENCE = 600  # seconds
HOST = "board.example"


def account():
    """For root: PostgreSQL and the service run as nobody."""
    if os.geteuid():
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def interpreter():
    """One that the account may run: that of the tests may lie in a home."""
    for path in (os.path.realpath(sys.executable), "/usr/bin/python3"):
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            subprocess.run([path, "-c", "import ensurepip"], check=True, cwd="/", **account())
            return path
    return pytest.fail("no interpreter can be run by nobody")


class Stock:
    """A PostgreSQL of the distribution in a folder of its own."""

    def __init__(self, programs):
        self.programs, self.folder, self.port = programs, Path(tempfile.mkdtemp(prefix="bst-")), free_port()
        self.password = secrets.token_hex(8)
        (self.folder / "password").write_text(self.password)
        for path in (self.folder, self.folder / "password"):
            if account():
                os.chown(path, account()["user"], account()["group"])
        data = self.folder / "data"
        initdb = ["--username=postgres", f"--pwfile={self.folder}/password", "--auth=scram-sha-256"]
        self.run("initdb", "--pgdata", data, *initdb, "--encoding=UTF8", "--locale=C", "--no-sync")
        options = ["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-k", self.folder]
        command = [programs / "postgres", "-D", data, "-p", str(self.port), *options]
        with (self.folder / "log").open("wb") as log:
            self.server = subprocess.Popen(command, stdout=log, stderr=log, cwd="/", **account())
        wait_until(self.answers, seconds=PATIENCE)
        for statement in (
            f"CREATE ROLE bandstand LOGIN PASSWORD '{self.password}'",
            "CREATE DATABASE bandstand OWNER bandstand",
            "CREATE DATABASE another OWNER bandstand",
        ):
            self.ask(statement)

    def run(self, name, *arguments):
        command = [self.programs / name, *map(str, arguments)]
        subprocess.run(command, check=True, capture_output=True, cwd="/", timeout=PATIENCE, **account())

    def answers(self):
        try:
            self.ask("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def ask(self, statement):
        address = {"host": "127.0.0.1", "port": self.port, "user": "postgres", "password": self.password}
        with psycopg.connect(**address, dbname="postgres", autocommit=True) as connection:
            answer = connection.execute(statement)
            return answer.fetchall() if answer.description else []

    def url(self, database):
        return f"postgres://bandstand:{self.password}@127.0.0.1:{self.port}/{database}"

    def close(self):
        self.server.send_signal(signal.SIGINT)
        self.server.wait(PATIENCE)
        shutil.rmtree(self.folder)


class Deployed:
    """What a container would be, called with its arguments."""

    def __init__(self, stock, folder):
        self.entrypoint, self.port = folder / "bandstand" / "bin" / "bandstand-entrypoint", free_port()
        self.stock, self.processes = stock, []
        kept = {name: value for name, value in os.environ.items() if name.startswith("SSL_")}
        self.environment = kept | {
            "PATH": f"{stock.programs}:/usr/bin:/bin",
            "HOME": "/nonexistent",
            "PYTHONDONTWRITEBYTECODE": "1",
            "DATABASE_URL": stock.url("bandstand"),
            "SECRET_KEY": secrets.token_urlsafe(48),
            "ALLOWED_HOSTS": HOST,
            "SITE_URL": f"https://{HOST}",
            "BIND": "127.0.0.1",
            "PORT": str(self.port),
        }

    def run(self, *arguments, **settings):
        return subprocess.run(
            [self.entrypoint, *map(str, arguments)],
            env=self.environment | settings,
            cwd="/",
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            **account(),
        )

    def done(self, *arguments, **settings):
        ended = self.run(*arguments, **settings)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    def start(self, *arguments, **settings):
        process = subprocess.Popen(
            [self.entrypoint, *arguments], env=self.environment | settings, cwd="/", **account()
        )
        self.processes.append(process)
        return process

    def get(self, path):
        """Ask as the web server in front does."""
        heads = {"Host": HOST, "X-Forwarded-Proto": "https"}
        return answer_to(Request(f"http://127.0.0.1:{self.port}{path}", headers=heads))

    def is_ready(self):
        ended = self.run("probe", "/readyz")
        return ended.returncode == 0 and json.loads(ended.stdout)["ready"]

    def close(self):
        for process in self.processes:
            process.kill()
            process.wait(PATIENCE)


@pytest.fixture
def stock():
    (*_, programs) = sorted(Path("/usr/lib/postgresql").glob("*/bin")) or [Path(program("initdb")).parent]
    server = Stock(programs)
    yield server
    server.close()


@pytest.fixture
def deployed(stock):
    folder = Path(tempfile.mkdtemp(prefix="bst-"))
    folder.chmod(0o755)
    build = [ROOT / "deploy" / "build.sh", folder / "bandstand"]
    settings = os.environ | {"PYTHON": interpreter()}
    subprocess.run(build, check=True, capture_output=True, timeout=PATIENCE, cwd="/", env=settings)
    deployed = Deployed(stock, folder)
    yield deployed
    deployed.close()
    shutil.rmtree(folder)


@pytest.mark.slow
def test_from_the_wheel_to_a_board_and_to_a_clean_end(deployed, stock):
    early = deployed.run("web")
    assert early.returncode == 1, early.stderr
    assert "The tables do not match this version" in early.stderr
    assert "Applying boards.0001_initial... OK" in deployed.done("release")
    assert "No migrations to apply" in deployed.done("release")
    web, scheduler = deployed.start("web"), deployed.start("scheduler")
    wait_until(deployed.is_ready, seconds=PATIENCE)
    assert deployed.get("/")[0] == 200
    assert deployed.get("/static/css/bandstand.css")[0] == 200
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        file.write(csv_text(graded(16, 20)))
        file.flush()
        os.chmod(file.name, 0o644)
        deployed.done("load", file.name, "--benchmark", "toy")
    wait_until(lambda: deployed.get("/api/v1/benchmarks/toy/board")[0] == 200, seconds=PATIENCE)
    assert_comes_back_elsewhere(deployed, stock)
    for process in (scheduler, web):
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    assert stock.ask("SELECT count(*) FROM pg_stat_activity WHERE usename = 'bandstand'") == [(0,)]
    assert_works_together(deployed)


def assert_comes_back_elsewhere(deployed, stock):
    """A backup of the running service has the same board in another database."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        deployed.done("backup", f"{folder}/bandstand.dump")
        another = {"DATABASE_URL": stock.url("another")}
        deployed.done("restore", f"{folder}/bandstand.dump", **another)
    boards = [deployed.done("standings", "toy", "--format", "json", **one) for one in ({}, another)]
    assert json.loads(boards[0]) == json.loads(boards[1])


def assert_works_together(deployed):
    """The cluster and a worker find each other, compute, and end when told to."""
    port = str(free_port())
    cluster = deployed.start("cluster", PORT=port)
    worker = deployed.start("worker", DASK_SCHEDULER_ADDRESS=f"tcp://127.0.0.1:{port}")
    asked = (
        "from distributed import Client\n"
        f"with Client('tcp://127.0.0.1:{port}', timeout={PATIENCE}) as client:\n"
        "    print(client.submit(sum, [1, 2, 3]).result())\n"
    )
    python = deployed.entrypoint.with_name("python")
    computed = subprocess.run([python, "-c", asked], capture_output=True, text=True, timeout=PATIENCE)
    assert computed.stdout == "6\n", computed.stderr
    for process in (worker, cluster):
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
