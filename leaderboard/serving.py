"""gunicorn's settings: threads that serve pages and intake; nothing here computes.

``gunicorn --config python:leaderboard.serving``, from a checkout or wherever the wheel is installed.
"""

import atexit
import ctypes
import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from itertools import count
from typing import Any

from leaderboard import deployed, logs, postgres

#: ARROW_DEFAULT_MEMORY_POOL | `system` under gunicorn | memory pool of pyarrow
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # pyarrow's own keeps what a large body took

FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # in which workers count requests

M_MMAP_THRESHOLD, M_ARENA_MAX = -3, -8  # of malloc.h
bind = "127.0.0.1:8000"
wsgi_app = "leaderboard.wsgi"
worker_class = "gthread"
workers = 2
threads = 4
control_socket_disable = True  # it would lie in the home folder and outlive a kill
preload_app = True
# A worker keeps what its largest requests took; a new one begins small.
max_requests = 1_000
max_requests_jitter = 200
QUIT_WITHIN = 5  # seconds, once told to end by SIGINT or SIGQUIT
graceful_timeout = 30  # seconds for requests under way, once told to end by SIGTERM
# No header names the place of the application: a client's SCRIPT_NAME would be believed, and answer 500.
forwarder_headers = ""
# By which header a proxy says that it was asked over TLS is told by TLS_HEADER alone.
secure_scheme_headers: dict[str, str] = {}
# Its own lines look like all others; each request is logged by leaderboard.requests.
_form = logs.form_of_lines(is_deployed=bool(os.environ.get("DATABASE_URL")))
logconfig_dict = logs.settings_of(
    _form,
    {
        "gunicorn.error": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
        "gunicorn.access": {"handlers": ["none"], "propagate": False},
    },
    level="WARNING",
)


if FOLDER not in os.environ:  # for the counts; it goes with this process, not with a worker
    _own, os.environ[FOLDER] = os.getpid(), tempfile.mkdtemp(prefix="bst-counts-")

    def _remove(folder: str) -> None:
        if os.getpid() == _own:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(_remove, os.environ[FOLDER])


def on_starting(server: Any) -> None:
    if why := without_proxy(server.cfg.address):
        sys.exit(why)
    postgres.ensure()
    if why := not_to_serve():
        sys.exit(why)


def without_proxy(addresses: list[Any]) -> str:
    """Say why these addresses need a web server in front: each thread waits for the body that it reads."""
    from django.conf import settings

    address = deployed.reachable_address(addresses)
    if address is None or settings.BEHIND_PROXY:
        return ""
    return (
        f"The web server would listen at {address}, which other machines reach. "
        f"Alone it stalls: each slow upload occupies one of its {workers * threads} threads. "
        "Put a web server in front that reads requests whole, as deploy/Caddyfile does. "
        "Set BEHIND_PROXY=on when it is there, or listen at 127.0.0.1 (docs/deployment.md, In front)."
    )


def not_to_serve() -> str:
    """Say why nothing can be served: pages of this release read the tables of this release."""
    from django.db import Error, connection

    from leaderboard.schema import mismatch

    try:
        why = mismatch()
    except Error as error:
        return f"The database does not answer: {str(error).strip()}"
    finally:
        connection.close()
    return why and f"The tables do not match this version: {why}."


def when_ready(server: Any) -> None:
    """What is there by now stays: no worker's collector walks it, which would copy its pages.

    A page makes thousands of objects, so that one in ten thousand is soon enough to look for garbage.
    """
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


def pre_fork(server: Any, worker: Any) -> None:
    """Give each worker the first slot that no living one counts in."""
    taken = {getattr(other, "slot", 0) for other in server.WORKERS.values()}
    worker.slot = next(slot for slot in count(1) if slot not in taken)


def post_fork(server: Any, worker: Any) -> None:
    """A connection that was opened before the fork would be shared by all workers."""
    from django.db import connections

    from leaderboard.counters import take_slot

    connections.close_all()
    take_slot(worker.slot)
    give_memory_back()


def post_worker_init(worker: Any) -> None:
    """Let a worker end at the first signal; Ctrl-C in a terminal tells it twice, by itself and its parent.

    gunicorn's answer takes the lock of the pool of threads, for which a second one in its midst would wait,
    and the first, where it comes while a request is given to the pool: such a worker ends by an alarm.
    """

    def quit_once(number: int, frame: Any) -> None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(QUIT_WITHIN)
        answer_by(lambda *_: None)  # not SIG_IGN, of which Python complains where the second one has come
        worker.handle_quit(number, frame)

    def answer_by(handler: Callable[[int, Any], None]) -> None:
        for one in (signal.SIGINT, signal.SIGQUIT):
            signal.signal(one, handler)

    answer_by(quit_once)


def give_memory_back() -> None:
    """Let glibc share one arena among the threads, and return large blocks when they are freed.

    By its own measure each thread keeps an arena, and blocks of up to 32 MiB stay in it.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # not in every C library
        mallopt(M_ARENA_MAX, 1)
        mallopt(M_MMAP_THRESHOLD, 1 << 20)
