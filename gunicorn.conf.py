"""gunicorn: threads that serve pages and intake; nothing here computes."""

from typing import Any

from leaderboard import postgres

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
# No header names the place of the application: a client's SCRIPT_NAME would be believed, and answer 500.
forwarder_headers = ""


def on_starting(server: Any) -> None:
    postgres.ensure()


def post_fork(server: Any, worker: Any) -> None:
    """A connection that was opened before the fork would be shared by all workers."""
    from django.db import connections

    connections.close_all()
