"""A delivery over HTTP: its parameters, its body or file, and the answer with what is left of the quotas."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from math import ceil
from typing import Any, cast

from django.urls import reverse
from django.utils import timezone
from rest_framework import status
from rest_framework.exceptions import APIException, ParseError
from rest_framework.request import Request
from rest_framework.response import Response

from leaderboard.accounts.models import ApiToken
from leaderboard.api.errors import problem_response
from leaderboard.api.parsers import Multipart, require_length
from leaderboard.catalog.models import Benchmark
from leaderboard.errors import Busy, Exhausted, Refusal
from leaderboard.operations import quotas
from leaderboard.operations.intake import Receipt, submit, submit_file
from leaderboard.operations.quotas import DAY, Quotas
from leaderboard.submissions.parsing.files import Form, UploadedPart

MAX_KEY_LENGTH = 255
PARAMETERS = ("dry_run", "format", "metric", "filter")
TRUTH = {"true": True, "1": True, "false": False, "0": False}
LARGE = 1 << 20  # bytes of a file; a process reads one such at a time, for its rows take memory
COMPRESSED = (b"\x1f\x8b", b"PAR1", b"PK")  # may be large, however short
WAITED, COME_AGAIN = 10, 5  # seconds

_reading = threading.Lock()
_waiting = threading.Semaphore()  # one delivery of a process: the other threads are for all else


def delivered(request: Request, benchmark: Benchmark) -> Response:
    """Answer a delivery of somebody who may deliver; what stores nothing is counted."""
    token, as_of = cast("ApiToken", request.auth), timezone.now()
    left = None
    try:
        quotas.check_attempts(token=token, as_of=as_of)
        dry_run, form = _read_delivery_query(request)
        receipt = _submit(request, benchmark, token, dry_run, form, as_of)
        response, left = _to_response(request, benchmark, receipt, dry_run), receipt.left
        counts = dry_run
    except (Refusal, APIException) as refusal:
        response = cast("Response", problem_response(refusal, {"request": request}))
        counts = not isinstance(refusal, Exhausted)
    if counts:
        quotas.count_attempt(token=token, as_of=as_of)
    left = left or quotas.remaining(benchmark=benchmark, token=token, agent=None, as_of=as_of)
    for name, value in rate_limit_headers(left, as_of=as_of).items():
        response[name] = value
    return response


def _read_delivery_query(request: Request) -> tuple[bool, Form]:
    params = request.query_params
    if strange := sorted(set(params) - set(PARAMETERS)):
        named = ", ".join(strange[:5])
        raise ParseError(f"A delivery takes {' and '.join(PARAMETERS)} in its address, not {named[:200]}.")
    if twice := [name for name in PARAMETERS if len(params.getlist(name)) > 1]:
        raise ParseError(f"{twice[0]} comes once in the address of a delivery.")
    dry_run = params.get("dry_run", "false")
    if dry_run not in TRUTH:
        raise ParseError(f"dry_run is true or false, not {dry_run[:80]!r}.")
    return TRUTH[dry_run], Form(params.get("format"), params.get("metric"), params.get("filter"))


def _submit(
    request: Request, benchmark: Benchmark, token: ApiToken, dry_run: bool, form: Form, as_of: datetime
) -> Receipt:
    require_length(request)
    key = request.headers.get("Idempotency-Key")
    if key is not None and not (0 < len(key) <= MAX_KEY_LENGTH and key.isascii() and key.isprintable()):
        raise ParseError(
            "An Idempotency-Key has 1 to 255 printable ASCII characters.", code="malformed_idempotency_key"
        )
    common: dict[str, Any] = {
        "benchmark": benchmark,
        "token": token,
        "idempotency_key": key,
        "as_of": as_of,
        "dry_run": dry_run,
    }
    body = request.data
    if not isinstance(body, Multipart):
        if form != Form():
            raise ParseError("format, metric and filter are about a file; a JSON body has its own form.")
        return submit(body=body, **common)
    with body.upload.file, _in_turn(body.upload):
        return submit_file(upload=body.upload, fields=body.fields, form=form, **common)


@contextmanager
def _in_turn(upload: UploadedPart) -> Iterator[None]:
    """Wait for the file before, but not for long: whoever waits keeps a thread from all others."""
    is_compressed = upload.file.read(4).startswith(COMPRESSED)
    upload.file.seek(0)
    if upload.n_bytes <= LARGE and not is_compressed:
        yield
        return
    if not (_reading.acquire(blocking=False) or _wait_for_turn()):
        raise Busy(
            "Another large file is being read; send this one again soon.",
            code="reading_busy",
            retry_after=COME_AGAIN,
        )
    try:
        yield
    finally:
        _reading.release()


def _wait_for_turn() -> bool:
    """Wait for the turn unless another does, and tell whether it came."""
    if not _waiting.acquire(blocking=False):
        return False
    try:
        return _reading.acquire(timeout=WAITED)
    finally:
        _waiting.release()


def _to_response(request: Request, benchmark: Benchmark, receipt: Receipt, dry_run: bool) -> Response:
    links = {"board": request.build_absolute_uri(reverse("api:board", args=[benchmark.slug]))}
    if uuid := receipt.content["id"]:
        links["submission"] = request.build_absolute_uri(reverse("api:submission", args=[uuid]))
    headers = {"Idempotent-Replayed": "true"} if receipt.replayed else {}
    code = status.HTTP_200_OK if dry_run else status.HTTP_201_CREATED
    return Response(receipt.content | {"links": links}, status=code, headers=headers)


def rate_limit_headers(quotas: Quotas | None, *, as_of: datetime) -> dict[str, str]:
    """What is left of quotas, as draft-ietf-httpapi-ratelimit-headers has it.

    `q` submissions in `w` seconds, `r` of them left until `t` seconds from now; nothing for operators.
    """
    if quotas is None:
        return {}
    seconds, window = ceil((quotas.resets_at - as_of).total_seconds()), int(DAY.total_seconds())
    return {
        "RateLimit-Policy": ", ".join(f'"{name}";q={n};w={window}' for name, n in quotas.limits.items()),
        "RateLimit": ", ".join(f'"{name}";r={n};t={seconds}' for name, n in quotas.left.items()),
    }
