"""The service as an operator has it: processes of its own on a server and database of their own."""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import psycopg

from leaderboard import postgres
from tests.cluster import ROOT, copied_home

PATIENCE = 120
DEPLOYED = ("DATABASE_URL", "SECRET_KEY", "ALLOWED_HOSTS", "BANDSTAND_HOME", "LOG_LEVEL")


class Service:
    """A home with a migrated database; its processes are ended with it."""

    patience = PATIENCE  # seconds for one command

    def __init__(self, **settings):
        self.home = migrated_home()
        self.environment = inherited() | {"BANDSTAND_HOME": self.home} | settings
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.processes = []
        self.user = self.start("-c", STAY, stdin=subprocess.PIPE)  # so that the server stays between commands

    def manage(self, *arguments, **options):
        """Run a command to its end; return the lines that it printed."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=self.patience,
            **options,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip().splitlines()

    def start(self, *arguments, **options):
        """Start Python in a session of its own."""
        process = subprocess.Popen(
            [sys.executable, *arguments], cwd=ROOT, env=self.environment, start_new_session=True, **options
        )
        self.processes.append(process)
        return process

    def scheduler(self):
        """Start a scheduler; what it says goes to a file, as it may be killed with children alive."""
        log = Path(self.home) / f"scheduler-{len(self.processes)}.log"
        with log.open("wb") as file:
            process = self.start("manage.py", "scheduler", stderr=file)
        process.log = log
        return process

    def web(self):
        bind = ["--bind", f"127.0.0.1:{self.port}"]
        process = self.start(
            "-m", "gunicorn", "--config", "python:leaderboard.serving", *bind, stderr=subprocess.DEVNULL
        )
        self.wait_until_served()
        return process

    def load(self, text, slug):
        file = Path(self.home) / f"{slug}.csv"
        file.write_text(text)
        self.manage("load", str(file), "--benchmark", slug)

    def token(self, slug):
        return self.manage("token", "ada@example.org", "--benchmark", slug)[-1]

    def rows(self, query, *values):
        with self.connect() as connection:
            return connection.execute(query, values).fetchall()

    def connect(self):
        folder = Path(self.home) / "run"
        names = {"host": str(folder), "port": postgres.PORT, "dbname": postgres.NAME}
        return psycopg.connect(**names, autocommit=True)

    def boards(self, slug):
        """Number, data version, digest, in order."""
        return self.rows(
            "SELECT b.number, b.data_version, b.digest FROM boards_board b JOIN catalog_benchmark c"
            " ON c.id = b.benchmark_id WHERE c.slug = %s ORDER BY b.number",
            slug,
        )

    def runs(self, kind):
        """Status, claim, error and id, in order."""
        return self.rows(
            "SELECT status, claim::text, error, id FROM operations_jobrun WHERE kind = %s ORDER BY id", kind
        )

    def is_current(self, slug):
        """Whether the last board is of the present data and the latest studies."""
        return self.rows(
            """
            SELECT b.data_version = c.data_version
               AND b.validation_id IS NOT DISTINCT FROM
                   (SELECT max(id) FROM studies_validationstudy WHERE benchmark_id = c.id)
               AND b.variance_id IS NOT DISTINCT FROM
                   (SELECT max(id) FROM studies_variancestudy WHERE benchmark_id = c.id)
            FROM boards_board b JOIN catalog_benchmark c ON c.id = b.benchmark_id
            WHERE c.slug = %s ORDER BY b.number DESC LIMIT 1
            """,
            slug,
        ) == [(True,)]

    def submit(self, slug, token, body):
        """POST a submission; return status, headers and what was answered."""
        request = urllib.request.Request(
            f"{self.address}/api/v1/benchmarks/{slug}/submissions",
            json.dumps(body).encode(),
            {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        return answer_to(request)

    def get(self, path):
        return answer_to(self.address + path)

    def wait_until_served(self):
        def listens():
            with socket.socket() as connection:
                return connection.connect_ex(("127.0.0.1", self.port)) == 0

        wait_until(listens)

    def end_postgres(self, number):
        """Send its server a signal, and wait until it is gone; a scheduler starts it again."""
        postmaster = int((Path(self.home) / "data" / "postmaster.pid").read_text().split()[0])
        os.kill(postmaster, number)
        wait_until(lambda: not is_alive(postmaster), every=0.02)

    @contextlib.contextmanager
    def without_postgres(self):
        """Stop its server; meanwhile nobody can start it."""
        with (Path(self.home) / "start.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.end_postgres(signal.SIGINT)
            yield

    def start_postgres(self):
        code = "from leaderboard import postgres; postgres.ensure()"
        command = [sys.executable, "-c", code]
        subprocess.run(command, cwd=ROOT, env=self.environment, check=True, timeout=PATIENCE)

    def close(self):
        for process in reversed(self.processes):
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)
        for process in reversed(self.processes):
            process.communicate(timeout=PATIENCE)
        shutil.rmtree(self.home, ignore_errors=True)


def inherited():
    return {name: value for name, value in os.environ.items() if name not in DEPLOYED}


def migrated_home():
    return copied_home("migrated", migrate)


def migrate(home):
    command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    environment = inherited() | {"BANDSTAND_HOME": home}
    subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=PATIENCE)


STAY = """
import sys
from leaderboard import postgres
from analytics.programs import orderly_end
with orderly_end():
    postgres.ensure()
    sys.stdin.read()
"""


def answer_to(request):
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def wait_until(is_so, *, seconds=PATIENCE, every=0.1):
    """Wait, and return for how many seconds."""
    begin = time.monotonic()
    while not is_so():
        assert time.monotonic() - begin < seconds, f"not so after {seconds} s"
        time.sleep(every)
    return time.monotonic() - begin


def is_alive(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def full_run(agent, marks):
    """A body with an outcome on each task."""
    outcomes = [{"task": f"t{j:02d}", "trial": 1, "outcome": int(mark)} for j, mark in enumerate(marks)]
    return {"agent": {"name": agent, "scaffold": "Loop", "model": f"Model {agent}"}, "outcomes": outcomes}
