"""The image, built without a daemon, and walked by the commands of docs/deployment.md: `make test-image`.

buildah builds the Dockerfile on a stand-in for its base, which debootstrap makes; PostgreSQL and Caddy of the
same Debian stand in for the images of others. `tests.image.compose` runs them as docker-compose.yml says.
"""

import base64
import contextlib
import json
import os
import pty
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from functools import cached_property
from pathlib import Path

import pytest

from tests.deployment.test_files import DOCKERFILE, ROOT, program
from tests.image.compose import Project, Stage, buildah, mounted, program_of
from tests.leaderboard.service import wait_until

PROGRAMS = ("buildah", "bwrap", "curl", "debootstrap", "docker-compose", "nsenter", "setpriv")
DEPLOYMENT = (ROOT / "docs" / "deployment.md").read_text()
OUTCOMES = "demo/swebench_verified.csv.gz"
N_OUTCOMES = 28_500
PATIENCE = 300  # seconds
OWN_LAYERS = 607_000_000  # bytes
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
# How this machine reaches PyPI, and with which kernels it computes.
PASSED_ON = ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "HTTP_PROXY", "HTTPS_PROXY", "OPENBLAS_CORETYPE")
OURS = "bandstand"

# What the entrypoint of the image `postgres` does.
DATABASE = """
set -eu
cd /
bin=$(echo /usr/lib/postgresql/*/bin) data=/var/lib/postgresql/data
if [ ! -s $data/PG_VERSION ]; then
    printf %s "$POSTGRES_PASSWORD" > /tmp/password
    $bin/initdb --pgdata $data --username "$POSTGRES_USER" --pwfile /tmp/password --no-sync \
        --auth-local=trust --auth-host=scram-sha-256 --encoding UTF8 --locale C.UTF-8
    echo "CREATE DATABASE $POSTGRES_DB" | $bin/postgres --single -D $data postgres
fi
exec $bin/postgres -D $data -c listen_addresses='*' -c unix_socket_directories=/tmp
"""


def blocks_of(heading):
    """The blocks of shell below a heading of the document in which Docker is called; they run here alone."""
    (section,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", DEPLOYMENT, re.MULTILINE | re.DOTALL)
    blocks = re.findall(r"^```text\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    return [block for block in blocks if re.search("^docker compose ", block, re.MULTILINE)]


def line_of(heading, word):
    """The one line of these blocks with this word in it."""
    (line,) = [line for block in blocks_of(heading) for line in block.splitlines() if word in line.split()]
    return line


def told(what, begun):
    print(f"{what}: {time.monotonic() - begun:.0f} s", flush=True)


# -------------------------------------------------------------------------------------------------- images


def base_of(folder):
    """Make the stand-in for the image that the Dockerfile begins with; return its name."""
    (name,) = set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE))
    suite = name.rpartition("-")[2]
    container = buildah(folder, "from", "scratch")
    root = Path(buildah(folder, "mount", container))
    wanted = "--include=ca-certificates,python3,python3-venv"
    made = subprocess.run(
        ["debootstrap", "--variant=minbase", wanted, suite, root], capture_output=True, text=True
    )
    for left in ("proc", "sys"):
        subprocess.run(["umount", root / left], capture_output=True)
    assert made.returncode == 0, made.stdout[-2_000:]
    shutil.copyfile(CERTIFICATES, root / CERTIFICATES.lstrip("/"))  # of whoever stands between here and PyPI
    (root / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")  # as official images: none is started
    (root / "usr/sbin/policy-rc.d").chmod(0o755)
    shutil.rmtree(root / "var/cache/apt/archives")
    passed = {key: os.environ[key] for key in PASSED_ON if key in os.environ}
    passed["SSL_CERT_FILE"] = CERTIFICATES
    settings = [part for one in passed.items() for part in ("--env", "=".join(one))]
    buildah(folder, "config", *settings, "--cmd", "python3", container)
    buildah(folder, "commit", "--quiet", "--rm", container, f"docker.io/library/{name}")
    return f"docker.io/library/{name}"


def others_on(folder, base):
    """PostgreSQL and Caddy of the base's Debian, in one root."""
    root = mounted(folder, base)
    (container,) = buildah(folder, "containers", "--quiet").splitlines()
    install = "DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends"
    script = f"apt-get update -qq && {install} caddy postgresql"
    (Path(root) / "etc/postgresql-common").mkdir(parents=True)
    (Path(root) / "etc/postgresql-common/createcluster.conf").write_text("create_main_cluster = false\n")
    buildah(folder, "run", "--isolation", "chroot", container, "sh", "-c", f"({script}) > /dev/null")
    accounts = (line.split(":") for line in (Path(root) / "etc/passwd").read_text().splitlines())
    (postgres,) = [f"{uid}:{gid}" for name, _, uid, gid, *_ in accounts if name == "postgres"]
    data = folder / "volumes" / "data"
    data.mkdir(parents=True)
    os.chown(data, *map(int, postgres.split(":")))
    path = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    version = subprocess.run(["chroot", root, "caddy", "version"], capture_output=True, text=True, check=True)
    is_old = tuple(map(int, re.findall(r"\d+", version.stdout)[:3])) < (2, 6, 4)
    return {
        "db": {
            "root": root,
            "user": postgres,
            "environment": path | {"PGHOST": "/tmp"},
            "command": ["sh", "-c", DATABASE],
        },
        "caddy": {
            "root": root,
            "user": "0",
            "environment": path
            | {"HOME": "/root", "XDG_DATA_HOME": "/data", "XDG_CONFIG_HOME": "/config"}
            | ({"BUFFERING": "buffer_requests"} if is_old else {}),
            "command": ["caddy", "run", "--config", "/etc/caddy/Caddyfile", "--adapter", "caddyfile"],
        },
    }


@contextlib.contextmanager
def network_of(folder):
    """A network that has nothing but a loopback device, as long as it is used."""
    (folder / "hosts").write_text("127.0.0.1 localhost db web scheduler caddy cluster\n")
    command = ["bwrap", "--dev-bind", "/", "/", "--unshare-net", "--info-fd", "1", "sleep", "infinity"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as keeper:
        lines = []
        while "}" not in "".join(lines):
            lines.append(keeper.stdout.readline())
        child = json.loads("".join(lines))["child-pid"]
        try:
            yield f"/proc/{child}/ns/net"
        finally:
            os.kill(child, signal.SIGKILL)


# -------------------------------------------------------------------------------------------------- the walk


class Walk:
    """A checkout in which the commands of the document are typed; `docker` is a stand-in for Docker."""

    def __init__(self, folder, stage):
        self.folder, self.stage, self.checkout = folder, stage, folder / "checkout"
        stage.store(folder / "stage.json")
        names = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", ":!.venv"]
        files = subprocess.run(names, cwd=ROOT, capture_output=True, check=True).stdout
        packed = subprocess.run(
            ["tar", "--create", "--null", "--files-from=-", "--ignore-failed-read"],
            cwd=ROOT, input=files, capture_output=True, check=True,
        ).stdout  # fmt: skip
        self.checkout.mkdir()
        subprocess.run(["tar", "--extract"], cwd=self.checkout, input=packed, check=True)
        (folder / "bin").mkdir()
        docker = folder / "bin" / "docker"
        docker.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m tests.image.compose "$@"\n')
        docker.chmod(0o755)
        self.environment = {
            "PATH": f"{folder}/bin:{os.environ['PATH']}",
            "HOME": str(folder),
            "STAGE": str(folder / "stage.json"),
        }

    def type(self, line):
        """What the line prints; it succeeds."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", line],
            cwd=self.checkout, env=self.environment, capture_output=True, text=True, timeout=PATIENCE,
        )  # fmt: skip
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}\n{self.logs()}"
        return done.stdout

    @contextlib.contextmanager
    def typing(self, line):
        """The line runs meanwhile, and succeeds in the end."""
        process = subprocess.Popen(["bash", "-c", line], cwd=self.checkout, env=self.environment)
        yield
        assert process.wait(PATIENCE) == 0, line

    def type_at_terminal(self, line, answer):
        """Answer each line that ends in a colon."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.checkout)
            os.execvpe("bash", ["bash", "-c", line], self.environment)
        seen = b""
        with contextlib.suppress(OSError):  # at the end of a terminal
            while part := os.read(terminal, 1024):
                seen += part
                if seen.endswith(b": "):
                    os.write(terminal, answer.encode() + b"\n")
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, seen
        return seen.decode()

    def logs(self):
        return "\n".join(f"{path.name}:\n{path.read_text()[-2_000:]}" for path in self.folder.glob("*.log"))

    def fill_in(self):
        """Fill in .env by the commands that its pattern prints, for a host that Caddy signs for itself."""
        text = (self.checkout / ".env").read_text()
        key = base64.b64encode(secrets.token_bytes(32)).decode()
        for name, value in {
            "SECRET_KEY": secrets.token_urlsafe(48),
            "SIGNING_KEY": key,
            "POSTGRES_PASSWORD": secrets.token_hex(16),
            "ALLOWED_HOSTS": "localhost",
            "SITE_URL": "https://localhost",
            "SITE_DOMAIN": "localhost",
        }.items():
            text, n = re.subn(rf"^{name}=.*$", f"{name}={value}", text, flags=re.MULTILINE)
            assert n == 1, name
        (self.checkout / ".env").write_text(text)

    @cached_property
    def project(self):
        return Project(self.stage, self.checkout)

    def rows(self, query, database="bandstand"):
        psql = [
            "psql",
            "--username",
            "bandstand",
            "--tuples-only",
            "--no-align",
            "--command",
            query,
            database,
        ]
        command = self.project.container("db", inside=[*psql, database])
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    def get(self, path):
        """The body, through Caddy and over TLS."""
        authority = self.folder / "volumes/certificates/caddy/pki/authorities/local/root.crt"
        command = ["nsenter", f"--net={self.stage.network}", "curl", "--silent", "--show-error", "--fail"]
        done = subprocess.run(
            [*command, "--cacert", authority, f"https://localhost{path}"], capture_output=True, text=True
        )
        return done.stdout if done.returncode == 0 else None

    def ended(self, name):
        return int((self.folder / f"{name}.ended").read_text())

    def close(self):
        for file in self.folder.glob("*.pid"):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(int(file.read_text()), signal.SIGKILL)


def absent():
    """Why the walk cannot be made here; empty where it can."""
    if os.geteuid():
        return "the image is built and run as root"
    if not shutil.which("apt-get"):
        return "debootstrap is Debian's, and there is no apt-get"
    return ""


@pytest.fixture(scope="module")
def walk():
    if why := absent():
        pytest.fail(why) if os.environ.get("REQUIRE_PROGRAMS") == "1" else pytest.skip(why)
    for name in PROGRAMS:
        program(name)
    folder = Path(tempfile.mkdtemp(prefix="bst-", dir="/var/tmp"))
    folder.chmod(0o755)
    try:
        with network_of(folder) as network, contextlib.ExitStack() as ending:
            ending.callback(buildah, folder, "rm", "--all")
            begun = time.monotonic()
            base = base_of(folder)
            told("\nstand-in for the base", begun)
            begun = time.monotonic()
            others = others_on(folder, base)
            told("stand-ins for PostgreSQL and Caddy", begun)
            walk = Walk(folder, Stage(str(folder), network, OURS, others))
            ending.callback(walk.close)
            walk.type(blocks_of("With Docker")[0].splitlines()[0])
            walk.fill_in()
            begun = time.monotonic()
            walk.type(line_of("Upgrade", "build"))
            told("the image", begun)
            walk.base = base
            yield walk
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_the_image_as_the_document_says(walk, real_data, real_rows):
    _, up, behind_caddy, superuser, load = blocks_of("With Docker")[0].splitlines()
    walk.type(up)
    walk.type(behind_caddy)
    assert_runs_as_the_file_says(walk)
    assert "Superuser created" in walk.type_at_terminal(superuser, "a long road to the fair")
    assert_nothing_is_lost_in_the_midst(walk, load, real_data)
    begun = time.monotonic()
    wait_until(lambda: walk.get("/api/v1/benchmarks/my-bench/board"), every=1, seconds=PATIENCE)
    told("its board behind Caddy", begun)
    board = json.loads(walk.get("/api/v1/benchmarks/my-bench/board"))
    names = {row["agent"] for row in real_rows(OUTCOMES.partition(".")[0])}
    assert {one["agent"] for one in board["agents"]} == names
    assert board["digest"] in walk.get("/b/my-bench")
    assert_comes_back(walk)
    walk.type("docker compose stop caddy scheduler web db")
    assert [walk.ended(name) for name in ("caddy", "scheduler", "web", "db")] == [0, 0, 0, 0]


def assert_runs_as_the_file_says(walk):
    """As the kernel tells: the account, no capabilities, and a root that is read."""
    for name in ("web", "scheduler"):
        process = Path(f"/proc/{program_of(walk.folder, name)}")
        status = dict(line.split(":\t", 1) for line in (process / "status").read_text().splitlines())
        assert (status["Uid"].split()[0], status["Gid"].split()[0]) == ("10001", "10001"), name
        assert {status[f"Cap{which}"] for which in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {"0" * 16}, name
        assert status["NoNewPrivs"] == "1", name
        mounts = {
            line.split()[4]: line.split()[5] for line in (process / "mountinfo").read_text().splitlines()
        }
        assert mounts["/"].startswith("ro"), name
        assert mounts["/tmp"].startswith("rw"), name


def assert_nothing_is_lost_in_the_midst(walk, load, real_data):
    """SIGTERM to the scheduler in the midst of the first board; outcomes came while none ran."""
    (walk.checkout / "data").mkdir()
    file = walk.checkout / "data" / "outcomes.csv"
    with file.open("wb") as plain:
        subprocess.run(["gzip", "--decompress", "--stdout", real_data / OUTCOMES], stdout=plain, check=True)
    walk.type(line_of("Upgrade", "stop"))
    printed = walk.type(load)
    assert f"{N_OUTCOMES:,} new" in printed
    assert "Next: bandstand-server recompute my-bench" in printed
    running = "SELECT kind FROM operations_jobrun WHERE status = 'running'"
    with walk.typing(line_of("Upgrade", "up")):  # a board is made before `up` has returned
        wait_until(lambda: "reconcile" in walk.rows(running), every=0.02, seconds=PATIENCE)
        begun = time.monotonic()
        walk.project.stop(["scheduler"])
        told("the scheduler ends in the midst of a board", begun)
    assert walk.ended("scheduler") == 0
    assert walk.rows(running) == []
    assert walk.rows("SELECT count(*) FROM submissions_outcome") == [str(N_OUTCOMES)]
    walk.type(line_of("Upgrade", "up"))


def assert_comes_back(walk):
    """A backup restored into a second database has the same board."""
    digests = "SELECT digest FROM boards_board ORDER BY number"
    walk.type("\n".join(blocks_of("Backup and restore")))
    published = walk.rows(digests)
    assert published
    assert walk.rows(digests, "restored") == published


def test_what_the_image_adds_to_its_base_is_small(walk):
    base, image = (layers_of(walk.folder, name) for name in (walk.base, OURS))
    assert image[: len(base)] == base
    own = sum(layer["size"] for layer in image[len(base) :])
    print(f"\nown layers: {own / 1e6:.0f} MB, not compressed")
    assert 0 < own <= OWN_LAYERS


def layers_of(folder, image):
    return json.loads(json.loads(buildah(folder, "inspect", "--type", "image", image))["Manifest"])["layers"]
