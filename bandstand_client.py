"""The client of a Bandstand service: ask what to run, run it, check, deliver, follow, withdraw, download.

One module, standard library only: ``pip install .`` in a checkout gives the command ``bandstand``, and the
file works by itself wherever it is copied (``python bandstand_client.py``). In a program::

    client = Client("https://bandstand.example.org", token=token())
    receipt = client.submit("coding-100", read_delivery(Path("outcomes.json")))

Whatever failed on the way is tried again, and a delivery never counts twice: its ``Idempotency-Key`` is made
from what is delivered, so that the same file under the same key gets the same answer, after a crash too.
A token is sent to the server that was named, over TLS, and nowhere else: no redirect is followed.
"""

from __future__ import annotations

import argparse
import contextlib
import email.utils
import gzip
import hashlib
import http.client
import io
import itertools
import json
import os
import re
import secrets
import ssl
import stat
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

DONE, REFUSED, USAGE, NOT_REACHABLE, INTERRUPTED = 0, 1, 2, 3, 130
AGAIN = (429, 502, 503, 504)  # what may pass
N_TRIES = 6
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0  # seconds; who is told to wait longer is told so
TIMEOUT = 120.0  # seconds without a byte
BLOCK = 1 << 16
FORMATS = ("csv", "ndjson", "parquet")
LINKS = ("commit", "logs", "trajectories")
WEIGHTS = ("open", "closed")  # of a model
WITHDRAWN = (
    "This was delivered before, and its submission is withdrawn: nothing of it counts. "
    "To deliver it again, name another key: --key NAME."
)
NO_TOKEN = "There is no token. Set BANDSTAND_TOKEN, or name a file with the token by --token-file."
LOCAL = ("localhost", "127.0.0.1", "::1")
TOKEN_FILE = Path("~/.config/bandstand/token")
TASKS, RECEIPT = "tasks.txt", "receipt.json"
Progress = Callable[[int, "int | None"], None]


class UsageError(Exception):
    """The command, the token or a file cannot be used as given."""


class Refused(Exception):
    """The server refused, and said why: an RFC 9457 problem."""

    def __init__(self, problem: Mapping[str, Any]) -> None:
        self.problem = dict(problem)
        super().__init__(_printable(problem.get("detail") or problem.get("title") or "refused"))

    @property
    def code(self) -> str:
        """The last part of the problem's type."""
        return str(self.problem.get("type", "")).rpartition(":")[2]

    def lines(self) -> Iterator[str]:
        """Tell what is wrong, and every fault, task or stored outcome on a line of its own."""
        yield str(self)
        for name, text in (("faults", _fault_text), ("tasks", _printable), ("keys", _key_text)):
            found = self.problem.get(name) or []
            yield from (f"  {text(one)}" for one in found)
            more = int(self.problem.get(f"n_{name}") or 0) - len(found)
            if more > 0:
                yield f"  … and {more:,} more"
        if stored := self.problem.get("submission"):
            yield f"  submission: {_printable(stored)}"


class NotReachable(Exception):
    """The server did not answer, however often it was asked."""


class HarnessFailed(Exception):
    """The harness ended with another exit code than 0; a signal counts as 128 and its number."""

    def __init__(self, name: str, code: int) -> None:
        self.code = code if code > 0 else 128 - code
        super().__init__(f"{name} ended with exit code {self.code}; nothing was delivered.")


# ------------------------------------------------------------------------------------------------- deliveries


@dataclass(frozen=True)
class Payload:
    """What is delivered: one JSON body as `content`, or a file of that `name` with what is said of it.

    `fields`: the submission without its outcomes (agent, submitted_at, run, assignment, replaces, links).
    `form`: how the file is to be read: `format`, `metric`, `filter`.
    """

    content: bytes
    name: str = ""
    fields: dict[str, Any] = field(default_factory=dict)
    form: dict[str, str] = field(default_factory=dict)

    def key(self, benchmark: str) -> str:
        """Give the idempotency key: the same for the same delivery, on any machine and after any crash."""
        parts = [benchmark, self.name != "", self.fields, *([self.form] if self.form else [])]
        digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode() + b"\n")
        digest.update(self.content)
        return f"sha256-{digest.hexdigest()}"

    def body(self) -> tuple[str, tuple[bytes, ...]]:
        """Give the media type, and the body in parts, the content uncopied among them."""
        if not self.name:
            return "application/json", (self.content,)
        boundary = secrets.token_hex(24)
        submission = json.dumps(self.fields).encode()
        name = urllib.parse.quote(self.name)
        head = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="submission"\r\n'
            "Content-Type: application/json\r\n\r\n"
        ).encode()
        middle = (
            f'\r\n--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n"
        ).encode()
        tail = f"\r\n--{boundary}--\r\n".encode()
        return f"multipart/form-data; boundary={boundary}", (head + submission + middle, self.content, tail)


def read_delivery(
    path: Path, fields: Mapping[str, Any] | None = None, form: Mapping[str, str] | None = None
) -> Payload:
    """Read a file: a JSON submission, plain or gzipped, or a file of outcomes.

    `fields`, what is said beside the outcomes, goes before what a JSON submission says itself, but adds to
    its agent. `form` has `format`, `metric` and `filter` of a file of another project; see docs/formats.md.
    Raises UsageError if the file cannot be read, or names another agent.
    """
    known = {name: value for name, value in (fields or {}).items() if value not in (None, "", {})}
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error
    if not content:
        raise UsageError(f"{path} is empty.")
    named = {name: value for name, value in (form or {}).items() if value}
    submission = None if named else _submission_in(content)
    if submission is None:
        return Payload(content, path.name, known, named)
    if "agent" in known:  # where both say something, it is the same
        agent = found if isinstance(found := submission.get("agent"), dict) else {}
        other = [name for name, value in known["agent"].items() if agent.get(name) not in (None, "", value)]
        if other:
            stated = {name: _printable(known["agent"][name]) for name in other}
            odd = "; ".join(f'{name} "{_printable(agent[name])}", not "{stated[name]}"' for name in other)
            raise UsageError(f"{path} is of another agent: {odd}. Correct the command or the file.")
        known["agent"] = agent | dict(known["agent"])
    return Payload(json.dumps(submission | known).encode())


def _submission_in(content: bytes) -> dict[str, Any] | None:
    """Read a JSON submission; None: it is another file, which the server reads."""
    try:
        text = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    except (OSError, EOFError, ValueError):
        return None
    if text.lstrip()[:1] != b"{":
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None  # NDJSON has many objects
    return found if isinstance(found, dict) and "outcomes" in found else None


# ----------------------------------------------------------------------------------------------------- client


class Client:
    """A service at an address, with a token; everything but this machine is asked over https.

    `n_tries`: how often a request is tried; `sleep` waits between tries, in seconds. `plain`: send the token
    over http, which anybody on the way can read.
    """

    def __init__(
        self,
        server: str,
        token: str = "",
        *,
        n_tries: int = N_TRIES,
        timeout: float = TIMEOUT,
        sleep: Callable[[float], None] = time.sleep,
        plain: bool = False,
    ) -> None:
        self.server, self.token = server.rstrip("/"), token
        self.n_tries, self.timeout, self.sleep = n_tries, timeout, sleep
        parts = urllib.parse.urlsplit(self.server)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"{server!r} is no address of a server; write https://…")
        if parts.scheme == "http" and token and parts.hostname not in LOCAL and not plain:
            raise UsageError(
                f"{server} has no TLS: the token would be readable on the way (--plain sends it)."
            )
        context = ssl.create_default_context()
        self._opener = urllib.request.build_opener(_NoRedirect, _Plain, _Encrypted(context=context))

    def tasks(self, benchmark: str, agent: Mapping[str, str]) -> dict[str, Any]:
        """Ask which tasks an agent is to run; asked again, the same ones come.

        Where the service chooses tasks for each agent (`staged` in the answer), asking again once all are
        delivered adds the next ones.
        """
        return self._json(
            "POST", f"{_of(benchmark)}/assignments", json.dumps({"agent": dict(agent)}).encode()
        )

    def check(self, benchmark: str, delivery: Payload, progress: Progress | None = None) -> dict[str, Any]:
        """Have a delivery checked by the rules of submitting; nothing is stored."""
        return self._deliver(benchmark, delivery, {"dry_run": "true"}, {}, progress)

    def submit(
        self, benchmark: str, delivery: Payload, *, key: str = "", progress: Progress | None = None
    ) -> dict[str, Any]:
        """Deliver, once however often it is called; refused where what was delivered is withdrawn since."""
        headers = {"Idempotency-Key": key or delivery.key(benchmark)}
        receipt = self._deliver(benchmark, delivery, {}, headers, progress)
        if receipt.get("replayed") and self.status(receipt["id"])["status"] == "withdrawn":
            raise Refused({"detail": WITHDRAWN, "submission": receipt["id"]})
        return receipt

    def status(self, submission: str) -> dict[str, Any]:
        """Ask how a submission stands."""
        return self._of_submission("GET", submission)

    def withdraw(self, submission: str, reason: str) -> dict[str, Any]:
        """Take a submission back; a tombstone stays."""
        try:
            return self._of_submission(
                "POST", submission, "/withdraw", json.dumps({"reason": reason}).encode()
            )
        except Refused as refused:
            # An answer that was lost on its way leaves the second try a conflict with the first.
            if (
                refused.problem.get("status") == 409
                and (now := self.status(submission))["status"] == "withdrawn"
            ):
                return now
            raise

    def export(
        self, benchmark: str, file: IO[bytes], *, kind: str = "csv", progress: Progress | None = None
    ) -> dict[str, Any]:
        """Write all outcomes of a benchmark to a file; every byte that the server announced, or a refusal."""
        path = f"{_of(benchmark)}/outcomes.{kind}" + ("?end_mark=1" if kind == "ndjson" else "")
        return self._tried(lambda: self._downloaded(path, file, kind, progress))

    def subsets(self, benchmark: str) -> dict[str, Any]:
        """Ask what was decided about a benchmark: what goes beside its outcomes."""
        return self._json("GET", f"{_of(benchmark)}/subsets.json")

    # ---------------------------------------------------------------------------------------------- requests

    def _deliver(
        self,
        benchmark: str,
        delivery: Payload,
        asked: dict[str, str],
        headers: dict[str, str],
        progress: Progress | None,
    ) -> dict[str, Any]:
        path = f"{_of(benchmark)}/submissions"
        if query := urllib.parse.urlencode(asked | delivery.form):
            path += f"?{query}"

        def once() -> dict[str, Any]:
            media_type, parts = delivery.body()
            return self._answer("POST", path, _Body(parts, progress), media_type, headers)

        return self._tried(once)

    def _of_submission(
        self, method: str, submission: str, action: str = "", body: bytes | None = None
    ) -> dict[str, Any]:
        try:
            return self._json(method, f"/api/v1/submissions/{_segment(submission)}{action}", body)
        except Refused as refused:
            if refused.code != "not_found":
                raise
            detail = f"No submission has the id {submission}."  # it is none that could be one
            raise Refused(refused.problem | {"detail": detail}) from None

    def _json(self, method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
        return self._tried(
            lambda: self._answer(method, path, _Body((body,)) if body else None, "application/json", {})
        )

    def _answer(
        self, method: str, path: str, body: _Body | None, media_type: str, headers: Mapping[str, str]
    ) -> dict[str, Any]:
        more = dict(headers)
        if body is not None:
            more |= {"Content-Type": media_type, "Content-Length": str(body.n)}
        with self._opened(method, path, body, more) as answer:
            content = answer.read()
            replayed = answer.headers.get("Idempotent-Replayed") == "true"
        if not (found := _object_in(content)):
            raise http.client.HTTPException("the answer is not a JSON object")  # a proxy's own, maybe
        return found | {"replayed": True} if replayed else found

    def _downloaded(self, path: str, file: IO[bytes], kind: str, progress: Progress | None) -> dict[str, Any]:
        file.seek(0)
        file.truncate()
        with self._opened("GET", path, None, {}) as answer:
            n_rows, seen = int(answer.headers.get("Bandstand-Rows", -1)), _Seen(kind)
            while block := answer.read(BLOCK):
                file.write(block)
                seen.take(block)
                if progress:
                    progress(seen.n_bytes, None)
            version, licence = (
                answer.headers.get(f"Bandstand-{name}") for name in ("Data-Version", "Licence")
            )
        if not seen.is_whole(n_rows):
            raise http.client.IncompleteRead(b"")
        file.truncate(seen.n_bytes_of_rows)
        return {
            "n": n_rows,
            "data_version": int(version or 0),
            "licence": urllib.parse.unquote(licence or ""),
        }

    def _opened(
        self, method: str, path: str, body: _Body | None, headers: Mapping[str, str]
    ) -> http.client.HTTPResponse:
        own = {"Accept": "application/json, */*", "User-Agent": "bandstand-client", **headers}
        if self.token:
            own["Authorization"] = f"Bearer {self.token}"
        request = urllib.request.Request(f"{self.server}{path}", data=body, headers=own, method=method)
        opened: http.client.HTTPResponse = self._opener.open(request, timeout=self.timeout)
        return opened

    def _tried(self, once: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Ask until there is an answer that stays; wait for what may pass, as long as the server says."""
        for n in range(1, self.n_tries + 1):
            try:
                return once()
            except urllib.error.HTTPError as error:
                with error:
                    problem, after = _problem_of(error), _retry_after(error)
                if error.code == 401 and not self.token:
                    raise UsageError(NO_TOKEN) from None
                if error.code not in AGAIN or (after or 0) > LONGEST_WAIT:
                    raise Refused(problem) from None
                why: str | Exception = f"{error.code}: {problem.get('detail', '')}"
            except ssl.SSLCertVerificationError as error:
                raise NotReachable(f"{self.server}: {error.verify_message}") from error
            except urllib.error.URLError as error:
                if isinstance(error.reason, ssl.SSLCertVerificationError):
                    raise NotReachable(f"{self.server}: {error.reason.verify_message}") from error
                why, after = str(error.reason), None
            except (http.client.HTTPException, OSError) as error:
                why, after = str(error) or type(error).__name__, None
            if n < self.n_tries:
                self.sleep(after if after is not None else _backoff(n))
        tries = _counted(self.n_tries, "try", "tries")
        raise NotReachable(f"{self.server} did not answer in {tries}; the last: {why}")


class _Answered(http.client.HTTPConnection):
    """A server may refuse a body before it has read all of it: what it says is read all the same."""

    def request(self, *arguments: Any, **named: Any) -> None:
        """Send, as far as the other side takes it."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            super().request(*arguments, **named)


class _AnsweredEncrypted(_Answered, http.client.HTTPSConnection):
    """The same over TLS."""


class _Plain(urllib.request.HTTPHandler):
    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        """Open over a connection that reads early answers."""
        return self.do_open(_Answered, request)


class _Encrypted(urllib.request.HTTPSHandler):
    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__()
        self._tls = context

    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        """Open over a connection that reads early answers."""
        return self.do_open(_AnsweredEncrypted, request, context=self._tls)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A token, or a delivery, goes to no other address than the one that was named."""

    def redirect_request(self, *arguments: Any, **named: Any) -> None:
        """Leave the redirect as it is: a refusal."""


class _Body(io.RawIOBase):
    """Parts of a body, one after the other, and how much of them was sent."""

    def __init__(self, parts: tuple[bytes, ...], progress: Progress | None = None) -> None:
        self._parts = [memoryview(part) for part in parts if part]
        self.n, self.n_sent, self._progress = sum(map(len, parts)), 0, progress

    def read(self, size: int = -1) -> bytes:
        if not self._parts:
            return b""
        part = self._parts[0]
        block = part if size < 0 else part[:size]
        self._parts[:1] = [part[len(block) :]] if len(block) < len(part) else []
        self.n_sent += len(block)
        if self._progress:
            self._progress(self.n_sent, self.n)
        return bytes(block)


class _Seen:
    """What a download must show to be whole: its rows, and in NDJSON the hash in the mark of its end."""

    def __init__(self, kind: str) -> None:
        self.kind, self.n_bytes, self.n_lines = kind, 0, 0
        self._digest, self._last = hashlib.sha256(), b""

    def take(self, block: bytes) -> None:
        """Take in the next bytes; the last line waits until another begins."""
        self.n_bytes += len(block)
        self.n_lines += block.count(b"\n")
        if self.kind != "ndjson":
            self._last = (self._last + block)[-4:]
            return
        every = self._last + block
        start = every.rfind(b"\n", 0, len(every) - 1) + 1
        self._digest.update(every[:start])
        self._last = every[start:]

    @property
    def n_bytes_of_rows(self) -> int:
        """How many bytes come before the mark of the end, which is no row."""
        return self.n_bytes - (len(self._last) if self.kind == "ndjson" else 0)

    def is_whole(self, n_rows: int) -> bool:
        """Tell whether all rows came that were announced."""
        if self.kind == "csv":
            return self.n_lines == n_rows + 1
        if self.kind == "parquet":
            return self._last == b"PAR1"
        end = {"end": True, "n": n_rows, "sha256": self._digest.hexdigest()}
        return self.n_lines == n_rows + 1 and _object_in(self._last) == end


def _of(benchmark: str) -> str:
    return f"/api/v1/benchmarks/{_segment(benchmark)}"


def _segment(text: str) -> str:
    return urllib.parse.quote(text, safe="")


def _object_in(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _problem_of(error: urllib.error.HTTPError) -> dict[str, Any]:
    if 300 <= error.code < 400:
        where = error.headers.get("Location", "elsewhere")
        detail = f"The server says that it moved to {where}. If that is right, name it by --server."
        return {"status": error.code, "detail": detail}
    try:
        found = _object_in(error.read())
    except (http.client.HTTPException, OSError):
        found = {}
    return {"status": error.code, "detail": f"{error.code} {error.reason}"} | found


def _retry_after(error: urllib.error.HTTPError) -> float | None:
    """Read when to try again: seconds, or a date."""
    stated = error.headers.get("Retry-After", "")
    if stated.isdigit():
        return float(stated)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(stated).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


def _backoff(n: int) -> float:
    """Wait 1, 2, 4, … seconds, and up to half as much again, so that many do not come back at once."""
    wait: float = FIRST_WAIT * 2 ** (n - 1)
    return wait * (1 + secrets.randbelow(512) / 1024)


def _fault_text(fault: Mapping[str, Any]) -> str:
    row, column, value = (fault.get(name) for name in ("row", "field", "value"))
    place = ", ".join(_printable(part) for part in (row and f"row {row}", column) if part)
    shown = "" if value is None else f' "{_printable(value)}"'
    return f"{place}{shown}: {_printable(fault.get('rule', ''))}".removeprefix(": ").lstrip()


def _key_text(key: Mapping[str, Any]) -> str:
    place = f"row {key.get('row')}: task {_printable(key.get('task'))}, trial {key.get('trial')}"
    return f"{place} is stored in submission {_printable(key.get('submission'))}"


def _printable(text: object) -> str:
    """Give a text without what would act on a terminal."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(text))


def _counted(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"


def token(path: Path | None = None) -> str:
    """Find the token: in BANDSTAND_TOKEN, or in a file that nobody else may read.

    Raises UsageError if others may read the file, or a file that was named is not there.
    """
    if path is None and (stated := os.environ.get("BANDSTAND_TOKEN", "").strip()):
        return stated
    file = (path or TOKEN_FILE).expanduser()
    try:
        mode = file.stat().st_mode
        found = file.read_text(encoding="utf-8").strip()
    except OSError as error:
        if path is None:
            return ""
        raise UsageError(f"{file}: {error.strerror or error}") from error
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise UsageError(f"Others may read {file}: chmod 600 {file}")
    return found


# ---------------------------------------------------------------------------------------------------- command


def main(arguments: list[str] | None = None) -> int:
    """Run one command; 0 done, 1 refused, 2 usage, 3 not reachable, or the exit code of the harness."""
    parsed = _parsed(sys.argv[1:] if arguments is None else arguments)
    try:
        if not parsed.server:
            raise UsageError("Name the server by --server or BANDSTAND_SERVER.")
        client = Client(
            parsed.server,
            token(parsed.token_file),
            n_tries=parsed.tries,
            timeout=parsed.timeout,
            plain=parsed.plain,
        )
        answer = parsed.run(parsed, client)
    except UsageError as error:
        return _report(f"bandstand: {error}", USAGE)
    except Refused as refused:
        if parsed.json:
            _print(json.dumps(refused.problem, ensure_ascii=False, indent=2))
        return _report("\n".join(refused.lines()), REFUSED)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return _report(f"bandstand: {place}{error.strerror or error}", USAGE)
    except NotReachable as error:
        return _report(f"bandstand: {error}", NOT_REACHABLE)
    except HarnessFailed as failed:
        return _report(f"bandstand: {failed}", failed.code)
    except KeyboardInterrupt:
        return _report("", INTERRUPTED)
    _print(json.dumps(answer, ensure_ascii=False, indent=2) if parsed.json else parsed.text_of(answer))
    return DONE


def _parsed(arguments: list[str]) -> argparse.Namespace:
    """Parse; what follows the name of a harness is the harness's own, a second -- too."""
    at = arguments.index("--") + 2 if "--" in arguments else len(arguments)
    parsed = _parser().parse_args(arguments[:at])
    if arguments[at:]:
        if parsed.run is not _run_run:
            return _parser().parse_args(arguments)
        parsed.command += arguments[at:]
    return parsed


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bandstand",
        description="Ask what to run, run it, check, deliver, follow, withdraw, download.",
        epilog="Exit codes: 0 done, 1 refused, 2 usage, 3 not reachable. The token is read from "
        f"BANDSTAND_TOKEN or from {TOKEN_FILE} (or --token-file), which nobody else may read.",
    )
    _add_common(parser)
    parser.set_defaults(
        server=os.environ.get("BANDSTAND_SERVER", ""),
        token_file=None,
        json=False,
        tries=N_TRIES,
        timeout=TIMEOUT,
        plain=False,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    # All else goes to stderr, so that the tasks can be piped.
    tasks = _command(
        commands,
        "tasks",
        "ask which tasks an agent is to run",
        _run_tasks,
        lambda answer: "\n".join(map(_printable, _waiting(answer))),
    )
    _add_asking(tasks)
    _add_run(commands)
    _add_deliveries(commands)
    _add_status(commands)
    _add_export(commands)
    return parser


def _command(
    commands: Any,
    name: str,
    summary: str,
    run: Callable[[argparse.Namespace, Client], dict[str, Any]],
    text_of: Callable[[dict[str, Any]], str],
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=summary, description=summary)
    _add_common(parser)
    parser.set_defaults(run=run, text_of=text_of)
    return parser


def _add_common(parser: argparse.ArgumentParser) -> None:
    """Add the options of all commands, without defaults: they may stand before the command, too."""

    def add(*names: str, **more: Any) -> None:
        parser.add_argument(*names, default=argparse.SUPPRESS, **more)

    add("--server", metavar="URL")
    add("--token-file", type=Path, metavar="FILE", help="with the token; mode 0600")
    add("--json", action="store_true", help="print the answer as it came")
    add("--tries", type=int, metavar="N", help=f"of each request ({N_TRIES})")
    add("--timeout", type=float, metavar="SECONDS", help="without a byte")
    add("--plain", action="store_true", help="send the token without TLS")


def _add_asking(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("benchmark", metavar="SLUG")
    for name in ("agent", "scaffold", "model"):
        parser.add_argument(f"--{name}", required=True, metavar="NAME")
    for name in ("agent-version", "organisation"):
        parser.add_argument(f"--{name}", default="", metavar="NAME")
    parser.add_argument("--weights", default="", choices=WEIGHTS)


def _add_run(commands: Any) -> None:
    parser = _command(
        commands,
        "run",
        "run a harness on the tasks asked for and deliver its outcomes, batch after batch, until nothing is "
        "left. Repeated after a crash, the same command goes on where it stopped",
        _run_run,
        lambda answer: (
            _submit_text(answer)
            if "n_outcomes" in answer
            else _printable(answer.get("detail") or "Nothing is left to run.")
        ),
    )
    _add_asking(parser)
    parser.add_argument("--folder", type=Path, metavar="FOLDER", help="default: bandstand-SLUG-AGENT")
    parser.add_argument(
        "--output", default="outcomes", metavar="FILE", help="name of the harness's file (%(default)s)"
    )
    _add_links(parser)
    _add_form(parser)
    parser.add_argument(
        "command",
        nargs="+",
        metavar="COMMAND",
        help="after --; {tasks} becomes the path of a file with a task on each line, {outcomes} the path "
        "where the harness writes what `submit` takes",
    )
    parser.set_defaults(submitted_at="", run_label="", replaces="", embargo_until="", key="")


def _add_deliveries(commands: Any) -> None:
    for name, summary, run, text_of in (
        (
            "check",
            "have a file checked by the rules of submitting; nothing is stored",
            _run_check,
            lambda answer: f"It would be taken: {_counts(answer)}",
        ),
        (
            "submit",
            "deliver a file. Its idempotency key is the hash of benchmark, options and content: the same "
            "command repeated, after a crash too, delivers once and gets the same answer",
            _run_submit,
            _submit_text,
        ),
    ):
        parser = _command(commands, name, summary, run, text_of)
        parser.add_argument("file", type=Path, metavar="FILE", help="JSON, CSV, NDJSON, Parquet; .gz too")
        parser.add_argument("--benchmark", required=True, metavar="SLUG")
        group = parser.add_argument_group("what the file does not say")
        for option in ("agent", "scaffold", "model", "agent-version", "organisation"):
            group.add_argument(f"--{option}", default="", metavar="NAME")
        group.add_argument("--weights", default="", choices=WEIGHTS)
        group.add_argument("--submitted-at", default="", metavar="DATE", help="2024-04-30; else now")
        group.add_argument("--run", dest="run_label", default="", metavar="NAME", help="label of all rows")
        group.add_argument("--assignment", default="", metavar="ID", help="that this answers")
        group.add_argument("--replaces", default="", metavar="ID", help="submission that this supersedes")
        group.add_argument(
            "--embargo-until", default="", metavar="DATE", help="counts and shows from then on"
        )
        _add_links(group)
        _add_form(parser)
        if name == "submit":
            parser.add_argument("--key", default="", help="idempotency key; else made from the content")


def _add_links(group: Any) -> None:
    for link in LINKS:
        group.add_argument(f"--{link}", default="", metavar="URL")


def _add_form(parser: argparse.ArgumentParser) -> None:
    form = parser.add_argument_group("how a file of another project is read")
    form.add_argument("--format", default="", metavar="NAME", help="default: what the file looks like")
    form.add_argument("--metric", default="", metavar="NAME", help="the figure that is the outcome")
    form.add_argument("--filter", default="", metavar="NAME", help="the filter that counts")


def _add_status(commands: Any) -> None:
    parser = _command(
        commands,
        "status",
        "ask how a submission stands",
        lambda parsed, client: client.status(parsed.submission),
        _status_text,
    )
    parser.add_argument("submission", metavar="ID")
    parser = _command(
        commands,
        "withdraw",
        "take a submission back",
        lambda parsed, client: client.withdraw(parsed.submission, parsed.reason),
        _status_text,
    )
    parser.add_argument("submission", metavar="ID")
    parser.add_argument("--reason", required=True)


def _add_export(commands: Any) -> None:
    parser = _command(
        commands,
        "export",
        "download all outcomes of a benchmark, whole or not at all",
        _run_export,
        _export_text,
    )
    parser.add_argument("benchmark", metavar="SLUG")
    parser.add_argument("--format", choices=FORMATS, default="csv")
    parser.add_argument("--output", type=Path, metavar="FILE", help="default: SLUG.FORMAT")
    parser.add_argument("--force", action="store_true", help="replace what is there")
    parser.add_argument(
        "--with-subsets", action="store_true", help="and its subset versions, to NAME.subsets.json"
    )


def _run_tasks(parsed: argparse.Namespace, client: Client) -> dict[str, Any]:
    return client.tasks(parsed.benchmark, _agent(parsed))


def _agent(parsed: argparse.Namespace) -> dict[str, str]:
    stated = {
        "name": parsed.agent,
        "scaffold": parsed.scaffold,
        "model": parsed.model,
        "version": parsed.agent_version,
        "organisation": parsed.organisation,
        "weights": parsed.weights,
    }
    return {name: value for name, value in stated.items() if value}


def _waiting(answer: Mapping[str, Any]) -> list[str]:
    """Give the tasks to be run, and say on stderr what else the assignment says.

    Where tasks come in batches, those that were delivered are not given again, and after the last none are.
    """
    tasks: list[str] = answer.get("tasks", [])
    if staged := answer.get("staged"):
        tasks = staged["waiting"]
        _report(f"{_printable(staged['told'])}.", DONE)
        if staged["done"]:
            return []
    recommended = f" ({n} recommended)" if (n := answer.get("n_trials_recommended")) else ""
    until = str(answer.get("expires_at", ""))[:16].replace("T", " ")  # it is of UTC
    reason = str(answer.get("reason", ""))
    _report(
        f"{answer.get('mode', '')}: {_counted(len(tasks), 'task', 'tasks')}, "
        f"{_counted(answer.get('n_trials', 1), 'trial', 'trials')} each{recommended}, until "
        f"{until} UTC. {reason[:1].upper()}{reason[1:]}.\nAssignment {answer.get('id', '')}",
        DONE,
    )
    return tasks


def _delivery(parsed: argparse.Namespace) -> Payload:
    links = {name: getattr(parsed, name) for name in LINKS if getattr(parsed, name)}
    fields = {
        "agent": _agent(parsed),
        "submitted_at": parsed.submitted_at,
        "run": parsed.run_label,
        "assignment": parsed.assignment,
        "replaces": parsed.replaces,
        "embargo_until": parsed.embargo_until,
        "links": links,
    }
    form = {name: getattr(parsed, name) for name in ("format", "metric", "filter")}
    return read_delivery(parsed.file, fields, form)


def _run_check(parsed: argparse.Namespace, client: Client) -> dict[str, Any]:
    with _bar(f"Checking {parsed.file.name}") as progress:
        return client.check(parsed.benchmark, _delivery(parsed), progress)


def _run_submit(parsed: argparse.Namespace, client: Client) -> dict[str, Any]:
    with _bar(f"Sending {parsed.file.name}") as progress:
        return client.submit(parsed.benchmark, _delivery(parsed), key=parsed.key, progress=progress)


def _submit_text(answer: dict[str, Any]) -> str:
    before = " (delivered before; nothing happened now)" if answer.get("replayed") else ""
    line = f"{answer.get('id', '')} is {answer.get('status', '')}{before}: {_counts(answer)}"
    staged = _staged(answer)
    return f"{line}\n  {_printable(staged['told'])}." if staged else line


def _staged(receipt: Mapping[str, Any]) -> dict[str, Any] | None:
    """Give where an agent stands that runs batch after batch, as a receipt or a status says it."""
    return (receipt.get("assignment") or {}).get("staged")


def _counts(answer: dict[str, Any]) -> str:
    counts = ", ".join(
        _counted(answer[name], *words)
        for name, *words in (
            ("n_outcomes", "outcome", "outcomes"),
            ("n_invalid", "invalid", "invalid"),
            ("n_outside", "outside of what was asked", "outside of what was asked"),
        )
        if answer.get(name) is not None
    )
    return "\n".join([f"{counts}.", *(f"  {_printable(one)}" for one in answer.get("warnings") or [])])


def _run_run(parsed: argparse.Namespace, client: Client) -> dict[str, Any]:
    """Ask, run, check and deliver until nothing is left; give the last answer."""
    for place in ("{tasks}", "{outcomes}"):
        if not any(place in part for part in parsed.command):
            raise UsageError(f"The command has no {place}; see bandstand run --help.")
    if parsed.output != Path(parsed.output).name or parsed.output in (TASKS, RECEIPT):
        raise UsageError(f"--output {parsed.output} is not possible; name a file without its folder.")
    # Letters, digits, dots and dashes, at most 200 bytes
    name = re.sub(r"[^\w.-]+", "_", f"bandstand-{parsed.benchmark}-{parsed.agent}").encode()[:200]
    folder = parsed.folder or Path(name.decode(errors="ignore"))
    of = {"server": client.server, "benchmark": parsed.benchmark, "agent": parsed.agent}
    with _held(folder, of):
        while True:
            try:
                answer = _next_tasks(parsed, client)
            except Refused as refused:
                if refused.code == "nothing_lacks":
                    return refused.problem
                raise
            if not (tasks := _waiting(answer)):
                return answer
            receipt = _delivered(parsed, client, answer, _batch(folder, tasks))
            if not (staged := _staged(receipt)) or staged["done"]:
                return receipt
            _report(_submit_text(receipt), DONE)


@contextlib.contextmanager
def _held(folder: Path, of: Mapping[str, str]) -> Iterator[None]:
    """Keep the folder for this process, as long as it lives, and for one agent."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "run.json").open("a+b") as file:
        if fcntl:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(f"Another bandstand run is using {folder}. Wait until it ends.") from None
        file.seek(0)
        found = _object_in(file.read())
        if found and found != of:
            raise UsageError(
                f'{folder} belongs to agent "{_printable(found.get("agent"))}" of {found.get("benchmark")} '
                f"at {found.get('server')}. Name another folder by --folder."
            )
        if not found:
            file.truncate(0)
            file.write(json.dumps(of).encode())
            file.flush()
        yield


def _next_tasks(parsed: argparse.Namespace, client: Client) -> dict[str, Any]:
    """Ask what to run; where that is not decided yet, ask again, as often as any request is tried."""
    for n in itertools.count(1):
        answer = _run_tasks(parsed, client)
        staged = answer.get("staged")
        if not staged or staged["done"] or staged["waiting"]:
            break
        if n >= client.n_tries:
            detail = f"There is nothing to run yet. {staged['told']}. Repeat the command later."
            raise Refused({"detail": detail})
        client.sleep(_backoff(n))
    return answer


def _batch(folder: Path, tasks: list[str]) -> Path:
    """Find the folder of these tasks, or make the next one."""
    text = "".join(f"{task}\n" for task in tasks).encode()
    for file in folder.glob(f"batch-*/{TASKS}"):
        if file.read_bytes() == text:
            return file.parent
    batch = _new_folder(folder, "batch")
    with _replacing(batch / TASKS) as new:
        new.write(text)
    return batch


def _new_folder(parent: Path, kind: str) -> Path:
    """Make the first of kind-1, kind-2, … that is not there."""
    folder = next(one for n in itertools.count(1) if not (one := parent / f"{kind}-{n}").exists())
    folder.mkdir()
    return folder


def _outcomes(parsed: argparse.Namespace, batch: Path) -> Path:
    """Give the file with the outcomes of a batch; run the harness where it is not there.

    Each attempt writes to a folder of its own: a harness outlives a client that was killed. The file moves to
    its place once its harness has ended with 0, so that what lies there is whole.
    """
    whole: Path = batch / parsed.output
    if whole.exists():
        return whole
    part: Path = _new_folder(batch, "attempt") / parsed.output
    command = [
        text.replace("{tasks}", str((batch / TASKS).absolute())).replace("{outcomes}", str(part.absolute()))
        for text in parsed.command
    ]
    with subprocess.Popen(command, stdout=2 if parsed.json else None) as harness:
        code = harness.wait()
    if code:
        raise HarnessFailed(command[0], code)
    if not part.is_file() or not part.stat().st_size:
        raise UsageError(f"{command[0]} wrote no outcomes to {part}; nothing was delivered.")
    with part.open("rb+") as file:
        os.fsync(file.fileno())
    part.replace(whole)
    with contextlib.suppress(OSError):  # the harness left something else there
        part.parent.rmdir()
    return whole


def _delivered(
    parsed: argparse.Namespace, client: Client, answer: Mapping[str, Any], batch: Path
) -> dict[str, Any]:
    """Deliver the outcomes of a batch, whole or not at all, and keep the receipt beside them."""
    if (batch / RECEIPT).exists():
        before = _object_in((batch / RECEIPT).read_bytes()).get("id")
        raise Refused(
            {
                "detail": f"{batch} was delivered, and its tasks are asked for again. `bandstand status "
                f"{before}` says why. Remove {batch} to run them again."
            }
        )
    file = _outcomes(parsed, batch)
    options = argparse.Namespace(**vars(parsed) | {"file": file, "assignment": answer["id"]})
    try:
        _check_whole(options, client, answer.get("n_trials", 1))
        receipt = _run_submit(options, client)
    except Refused as refused:
        if not refused.problem.get("faults"):
            raise
        remedy = f"Correct {file}, or remove it to run the batch again."
        raise Refused(refused.problem | {"detail": f"{refused} {remedy}"}) from None
    with _replacing(batch / RECEIPT) as new:
        new.write(json.dumps(receipt, ensure_ascii=False, indent=2).encode())
    return receipt


def _check_whole(options: argparse.Namespace, client: Client, n_trials: int) -> None:
    """Refuse a file that lacks outcomes of tasks asked for, by the server's own count."""
    try:
        checked = _run_check(options, client)
    except Refused as refused:
        if refused.code == "already_delivered":
            return  # before a crash; to submit it again gives the receipt that was lost
        raise
    if staged := _staged(checked):
        rule = f"lacks outcomes; {_counted(n_trials, 'trial is', 'trials are')} asked for"
        faults = [{"field": task, "rule": rule} for task in staged["waiting"]]
    else:
        checks = checked.get("checks") or []
        faults = [
            {"rule": one["told"]} for one in checks if (one["name"], one["level"]) == ("coverage", "warned")
        ]
    if faults:
        raise Refused({"detail": "Outcomes are missing; nothing was delivered.", "faults": faults})


def _status_text(answer: dict[str, Any]) -> str:
    """Give the status and why, and a line for each thing that its owner may act on."""
    history, staged, lacking = answer.get("history") or [{}], _staged(answer), answer.get("lacking") or []
    checks = [one for one in answer.get("checks") or [] if one["level"] == "warned"]
    why = f": {history[-1]['reason']}" if history[-1].get("reason") else ""
    lines = [
        f"{answer.get('id', '')} is {answer.get('status', '')}{why}",
        answer.get("standing"),
        answer.get("replaced_by") and f"replaced by {answer['replaced_by']}",
        *(f"lacking: {one}" for one in lacking),
        # the check of coverage says what was lacking when it came
        *(one["told"] for one in checks if one["name"] != "coverage" and one["told"] not in lacking),
        staged and f"{staged['told']}.",
    ]
    return "\n  ".join(_printable(line) for line in lines if line)


def _run_export(parsed: argparse.Namespace, client: Client) -> dict[str, Any]:
    output = parsed.output or Path(f"{parsed.benchmark}.{parsed.format}")
    beside = output.with_name(f"{output.stem}.subsets.json") if parsed.with_subsets else None
    for path in filter(None, (output, beside)):
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise UsageError(f"{path} is not a regular file; name another --output.")
        if path.exists() and not parsed.force:
            raise UsageError(f"{path} is there already; --force replaces it.")
    with _bar(f"Downloading {output.name}") as progress, _replacing(output) as file:
        answer = client.export(parsed.benchmark, file, kind=parsed.format, progress=progress)
    if beside:
        with _replacing(beside) as file:
            file.write(
                json.dumps(client.subsets(parsed.benchmark), ensure_ascii=False, indent=1).encode() + b"\n"
            )
    return answer | {"path": str(output)} | ({"subsets": str(beside)} if beside else {})


def _export_text(answer: dict[str, Any]) -> str:
    licence = f" Licence: {answer['licence']}." if answer.get("licence") else ""
    n = _counted(answer["n"], "outcome", "outcomes")
    return f"{answer['path']}: {n}, data version {answer['data_version']}.{licence}"


@contextlib.contextmanager
def _replacing(target: Path) -> Iterator[IO[bytes]]:
    """Give a file that takes the place of `target` in the end, whole."""
    try:
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            part = Path(file.name)
            try:
                yield file
                file.close()
                part.replace(target)
            except BaseException:
                part.unlink(missing_ok=True)
                raise
    except FileNotFoundError as error:
        raise UsageError(f"There is no folder {target.parent}.") from error


@contextlib.contextmanager
def _bar(title: str) -> Iterator[Progress]:
    """Show how far it is on stderr, where that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    last = 0.0

    def show(done: int, total: int | None) -> None:
        nonlocal last
        if time.monotonic() - last < 0.1 and done != total:
            return
        last = time.monotonic()
        share = "" if not total else f" [{'#' * (24 * done // total):<24}] {100 * done // total}%"
        sys.stderr.write(f"\r{title}{share} {done / 2**20:,.1f} MiB ")
        sys.stderr.flush()

    try:
        yield show
    finally:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


def _report(text: str, code: int) -> int:
    if text:
        sys.stderr.write(f"{text}\n")
    return code


def _print(text: str) -> None:
    """Print it; of nothing not even an empty line, so that a script sees that there is nothing."""
    sys.stdout.write(f"{text}\n" if text else "")


if __name__ == "__main__":
    sys.exit(main())
