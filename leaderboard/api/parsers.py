"""The one reader of request bodies: bounded in bytes and depth, and strict about what JSON is."""

import json
from collections.abc import Mapping
from typing import IO, Any, NoReturn

from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import BaseParser
from rest_framework.request import Request

MAX_BYTES = 16 * 2**20
MAX_MARKS = 1_000_000  # 20,000 rows of 30 fields have 620,000; what stands at one takes up to 100 bytes
MAX_SHOWN = 80  # characters of a key


class LengthRequired(APIException):
    status_code = 411
    default_detail = "State the length of the body (Content-Length)."
    default_code = "length_required"


class BodyTooLarge(APIException):
    status_code = 413
    default_detail = f"A JSON body is at most {MAX_BYTES // 2**20} MiB."
    default_code = "body_too_large"


class BoundedJSON(BaseParser):
    media_type = "application/json"

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        body = stream.read(MAX_BYTES + 1)
        if len(body) > MAX_BYTES:
            raise BodyTooLarge
        return parse_json(body)


def require_length(request: Request) -> None:
    """Refuse a body without a length, which would be taken for an empty one, or with too great a one."""
    length = request.META.get("CONTENT_LENGTH") or ""
    if not length.isdigit():
        raise LengthRequired
    if int(length) > MAX_BYTES:
        raise BodyTooLarge


def require_few_values(body: bytes) -> None:
    """Refuse a body of very many values before each becomes an object: `[[],[],…]` grows thirtyfold."""
    if sum(map(body.count, (b",", b"[", b"{"))) > MAX_MARKS:
        raise BodyTooLarge(f"A JSON body holds at most {MAX_MARKS:,} commas and opening brackets.")


def parse_json(body: bytes) -> Any:
    require_few_values(body)
    try:
        return json.loads(body.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_once)
    except UnicodeDecodeError as error:
        raise ParseError(f"The body is not UTF-8 text: byte {error.start}.") from error
    except RecursionError as error:
        raise ParseError("The body is nested too deeply.") from error
    except ValueError as error:
        raise ParseError(f"The body is not JSON: {error}.") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys come once; JSON leaves open what a second one means."""
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        seen: set[str] = set()
        repeated = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        shown = repeated if len(repeated) <= MAX_SHOWN else f"{repeated[:MAX_SHOWN]}…"
        raise ValueError(f"the key {shown!r} comes twice in one object")
    return mapping
