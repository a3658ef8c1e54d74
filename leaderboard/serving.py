"""gunicorn's settings: threads that serve pages and intake; nothing here computes.

``gunicorn --config python:leaderboard.serving``, from a checkout or wherever the wheel is installed.
"""

from typing import Any

from leaderboard import postgres

bind = "127.0.0.1:8000"
wsgi_app = "leaderboard.wsgi"
worker_class = "gthread"
workers = 2
threads = 4
control_socket_disable = True  # it would lie in the home folder and outlive a kill
preload_app = True
max_requests = 10_000
max_requests_jitter = 1_000


def on_starting(server: Any) -> None:
    postgres.ensure()


def post_fork(server: Any, worker: Any) -> None:
    """A connection that was opened before the fork would be shared by all workers."""
    from django.db import connections

    connections.close_all()
