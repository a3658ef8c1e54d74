"""Ten processes use the embedded server at once, started and stopped at random, kill -9 among them.

BANDSTAND_CROWD_SEED repeats a run; `pytest -s` shows round by round what was seen. The users are forked by
this file, run as a script, so that they need no second to start and are under way when a signal meets them.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest

from leaderboard import postgres

ROOT = Path(__file__).resolve().parents[2]
N_PARTS, N_ROUNDS = 5, 10
N_USERS = 10
# Seconds, all near what a start of the server takes, so that arrivals meet departures.
START_WITHIN = 0.5
LIVE_UP_TO = {"exit": 0.4, "Ctrl-C": 0.6, "kill -9": 0.8}
SIGNAL_BETWEEN = (0.1, 1.0)
SIGNALS = {"exit": None, "Ctrl-C": signal.SIGINT, "kill -9": signal.SIGKILL}


class Plan(NamedTuple):
    start_after: float = 0.0
    lifetime: float = 0.0
    end: str = "exit"
    signal_after: float = 0.0


class Watch(threading.Thread):
    """Looks at all processes all the time, and keeps the largest number of servers alive at one moment."""

    def __init__(self, home):
        super().__init__()
        self.command = f"-D\0{home}/data\0"
        self.over = threading.Event()
        self.n_looks = self.n_most = 0
        self.seen = set()

    def run(self):
        while not self.over.wait(0.003):
            found = self.servers()
            self.n_looks += 1
            self.seen |= found
            self.n_most = max(self.n_most, len(found))

    def servers(self):
        # A look takes a while: a server found before another must still be there after it to count.
        found = {pid for path in Path("/proc").glob("[0-9]*") if self.is_server(pid := int(path.name))}
        return {pid for pid in found if self.is_server(pid)} if len(found) > 1 else found

    def is_server(self, pid):
        """Tell a server from its children, which show its command line until they set their own."""
        with contextlib.suppress(OSError):
            return self.runs_server(pid) and not self.runs_server(parent_of(pid))
        return False

    def runs_server(self, pid):
        command = Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
        return self.command in command and command.partition("\0")[0].endswith("/postgres")


def parent_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def use(plan):
    """Live as a user until the time is over or a signal comes, and tell how far it is."""
    tell("waiting")
    time.sleep(plan.start_after)
    tell("joining")
    postgres.ensure(durable=False)
    tell("using")
    ask_until(time.monotonic() + plan.lifetime)
    tell("leaving")


def tell(word):
    os.write(sys.stderr.fileno(), f"{word}\n".encode())


def ask_until(end):
    server = postgres.database()
    names = {"host": server["HOST"], "port": server["PORT"], "user": server["USER"], "dbname": server["NAME"]}
    with psycopg.connect(**names, autocommit=True) as kept:
        while True:
            assert kept.execute("SELECT 1").fetchone() == (1,)
            with psycopg.connect(**names) as connection:
                assert connection.execute("SELECT 2").fetchone() == (2,)
            if time.monotonic() > end:
                return
            time.sleep(0.02)


def fork_user(plan):
    """Return the user's id and what tells how it fares; in the child this ends with the interpreter."""
    told, telling = os.pipe()
    if pid := os.fork():
        os.close(telling)
        return pid, told
    os.dup2(telling, sys.stderr.fileno())
    use(plan)
    sys.exit()


def run_round(plans):
    """Run one user per plan; return how each ended."""
    began = time.monotonic()
    users = [(plan, *fork_user(plan)) for plan in plans]
    for plan, pid, _ in sorted(users, key=lambda user: user[0].signal_after):
        if SIGNALS[plan.end]:
            time.sleep(max(0, began + plan.signal_after - time.monotonic()))
            os.kill(pid, SIGNALS[plan.end])
    return [how_it_ended(*user) for user in users]


def how_it_ended(plan, pid, told):
    """Tell how far a user came; nothing may fail in its life nor when it leaves, and only a signal end it."""
    with open(told) as words:
        text = words.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if "EmbeddedPostgresError" in text or status not in (0, -(SIGNALS[plan.end] or 0)):
        return f"failed with {plan}, status {status}: {text}"
    reached = [line for line in text.splitlines() if line in ("waiting", "joining", "using", "leaving")]
    return f"{plan.end} while {reached[-1] if reached else 'starting'}" if status else "exit"


def main():
    for line in sys.stdin:
        signal.alarm(120)
        endings = run_round([Plan(*values) for values in json.loads(line)])
        sys.stdout.write(f"{json.dumps(endings)}\n")
        sys.stdout.flush()


@pytest.fixture
def home():
    folder = Path(tempfile.mkdtemp(prefix="bandstand-")).resolve()
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def watch(home):
    thread = Watch(home)
    thread.start()
    yield thread
    thread.over.set()
    thread.join()


@pytest.fixture
def users_of(home):
    """Yield a function that runs a round of users and counts how they ended."""
    script = subprocess.Popen(
        [sys.executable, __file__],
        env=os.environ | {"DATABASE_URL": "", "BANDSTAND_HOME": str(home), "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def run(plans):
        script.stdin.write(f"{json.dumps(plans)}\n")
        script.stdin.flush()
        endings = json.loads(script.stdout.readline())
        assert not (faults := [ending for ending in endings if "failed" in ending]), "\n".join(faults)
        return Counter(endings)

    yield run
    script.communicate(timeout=60)


def plan_user(rng):
    end = rng.choices(list(SIGNALS), weights=[4, 3, 3])[0]
    start_after, lifetime = rng.uniform(0, START_WITHIN), rng.uniform(0, LIVE_UP_TO[end])
    return Plan(start_after, lifetime, end, rng.uniform(*SIGNAL_BETWEEN))


def say(text):
    sys.stdout.write(f"{text}\n")


@pytest.mark.slow
@pytest.mark.parametrize("part", range(N_PARTS))
def test_crowd_never_sees_two_servers_and_leaves_none(watch, users_of, part):
    seed = part + int(os.environ.get("BANDSTAND_CROWD_SEED") or random.SystemRandom().randrange(10**6))
    say(f"seed {seed}: {N_ROUNDS} rounds of {N_USERS} users")
    rng, endings, n_left, began = random.Random(seed), Counter(), 0, time.monotonic()
    for i in range(1, N_ROUNDS + 1):
        endings += (seen := users_of([plan_user(rng) for _ in range(N_USERS)]))
        n_left += (left := len(watch.servers()))
        users_of([Plan()])
        say(f"round {i}: {dict(seen)}; left a server: {left}; servers so far: {len(watch.seen)}")
        assert not watch.servers(), f"seed {seed}, round {i}: a server outlived the last user"
        assert watch.n_most == 1, f"seed {seed}, round {i}: {watch.n_most} servers on one folder"
    say(f"seed {seed}: {dict(endings)}; no query failed; {time.monotonic() - began:.0f} s")
    say(f"{len(watch.seen)} servers, {n_left} of them left by a round, adopted and stopped; never more than")
    say(f"{watch.n_most} at once in {watch.n_looks} looks")


if __name__ == "__main__":
    main()
