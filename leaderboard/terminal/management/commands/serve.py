import os
import signal
import socket
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from leaderboard import postgres
from leaderboard.operations.events import LOCAL
from leaderboard.operations.scheduler.children import environment, program
from leaderboard.operations.scheduler.leadership import pause
from leaderboard.terminal.command import USAGE, ServiceCommand
from leaderboard.terminal.command import port as port_number

Process = subprocess.Popen[bytes]
HOST = "127.0.0.1"
LOOK_EVERY = 0.2
GRACE = 45.0  # seconds to end by oneself; the scheduler may finish a step


class Command(ServiceCommand):
    help = "Serve the pages and run the scheduler until Ctrl-C. If one of them stops, both stop."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=port_number, default=8000)

    def handle(self, *, port: int, **_: Any) -> None:
        check_free(port)
        self._is_stopping = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._end)
        gunicorn = [sys.executable, "-m", "gunicorn", "--config", "python:leaderboard.serving"]
        commands = {"web server": [*gunicorn, "--bind", f"{HOST}:{port}"], "scheduler": program("scheduler")}
        parts = {name: subprocess.Popen(command, env=environment()) for name, command in commands.items()}
        survivor = end_after_us(parts)
        try:
            ended = self._wait(parts, until=lambda: answers(port))
            if not (ended or self._is_stopping):
                if settings.EMBEDDED:
                    _port_file().write_text(str(port))
                self.stdout.write(f"Serving http://localhost:{port} (Ctrl-C to stop)")
                self.stdout.flush()
                ended = self._wait(parts)
        finally:
            end(parts)
            survivor.kill()
            survivor.communicate()
        if ended:
            code = parts[ended].returncode
            raise CommandError(
                f"The {ended} stopped with code {code}, so everything was stopped. See its log above."
            )

    def _end(self, *_: object) -> None:
        self._is_stopping = True

    def _wait(self, parts: Mapping[str, Process], until: Callable[[], bool] = lambda: False) -> str:
        """Wait for a signal, or for one part to end by itself, and name it."""
        while not (self._is_stopping or until()):
            for name, part in parts.items():
                if part.poll() is not None:
                    return "" if self._is_stopping else name
            pause(LOOK_EVERY, lambda: self._is_stopping)
        return ""


def served_at() -> str:
    """Where it serves on this machine, or did last; other commands print links there."""
    with suppress(FileNotFoundError):
        return f"http://localhost:{_port_file().read_text()}"
    return LOCAL


def _port_file() -> Path:
    return postgres.home() / "port"


def check_free(port: int) -> None:
    """Refuse a port on which another program listens, which would answer in our place."""
    try:
        socket.create_server((HOST, port)).close()
    except OSError as error:
        how = "PORT=NUMBER" if "MAKELEVEL" in os.environ else "--port NUMBER"
        raise CommandError(f"Port {port} is in use. Choose another with {how}.", returncode=USAGE) from error


def answers(port: int) -> bool:
    connection = HTTPConnection(HOST, port, timeout=LOOK_EVERY)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == HTTPStatus.OK
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def end_after_us(parts: Mapping[str, Process]) -> Process:
    """Start a shell that ends the parts when this process was killed: only then its input closes."""
    shell = ["sh", "-c", 'read _; kill "$@"', "sh", *(str(part.pid) for part in parts.values())]
    return subprocess.Popen(shell, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)


def end(parts: Mapping[str, Process]) -> None:
    """Tell those that still run to end, and wait; Ctrl-C in a terminal has told them already."""
    for part in parts.values():
        if part.poll() is None:
            part.terminate()
    for part in parts.values():
        with suppress(subprocess.TimeoutExpired):
            part.wait(GRACE)
            continue
        part.kill()
        part.wait()
