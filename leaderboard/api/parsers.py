"""The readers of request bodies: bounded in bytes and depth, strict about what JSON is, files on disk.

A file comes as the part `file` of a multipart body. Beside it stands the envelope: as one part `submission`
of JSON, or as a field for each of its own, named by its path (`agent.name`).
"""

import json
import re
from collections.abc import Mapping
from math import isinf
from tempfile import TemporaryFile
from typing import IO, Any, NoReturn, cast

from django.conf import settings
from django.core.exceptions import (
    RequestDataTooBig,
    SuspiciousOperation,
    TooManyFieldsSent,
    TooManyFilesSent,
)
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler
from django.http import QueryDict
from django.http.multipartparser import MultiPartParser, MultiPartParserError
from django.utils.datastructures import MultiValueDict
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from leaderboard.errors import Faulty
from leaderboard.submissions.parsing.envelope import fault
from leaderboard.submissions.parsing.files import UploadedPart
from leaderboard.submissions.parsing.flat import Fault, excerpt, is_too_small, unique, whole_number

MAX_BYTES = 16 * 2**20
MAX_FILE_BYTES = 64 * 2**20
MAX_BESIDE_BYTES = 3 * 2**20  # of all else in a body with a file
MAX_MARKS = 1_000_000  # 20,000 rows of 30 fields have 620,000; what stands at one takes up to 100 bytes


UNREADABLE = (
    "The multipart body cannot be read. Its Content-Type names the boundary in ASCII, the headers of a part "
    "have at most 1,024 bytes, and base64 is complete. Let an HTTP library write it."
)


class LengthRequired(APIException):
    status_code = 411
    default_detail = "State the length of the body (Content-Length)."
    default_code = "length_required"


class BodyTooLarge(APIException):
    status_code = 413
    default_detail = f"A JSON body is at most {MAX_BYTES // 2**20} MiB."
    default_code = "body_too_large"


class BodyEncoded(APIException):
    status_code = 415
    default_detail = (
        "Send the body without Content-Encoding. A file may be compressed by itself: results.csv.gz."
    )
    default_code = "unsupported_media_type"


class BoundedJSON(BaseParser):
    media_type = "application/json"

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        _check_encoding(parser_context)
        body = stream.read(MAX_BYTES + 1)
        if len(body) > MAX_BYTES:
            raise BodyTooLarge
        return parse_json(body)


def _check_encoding(context: Mapping[str, Any] | None) -> None:
    if (context or {})["request"].headers.get("Content-Encoding", "identity") != "identity":
        raise BodyEncoded


class BoundedMultipart(BaseParser):
    """Gives a file, open at its beginning, and the fields of the envelope beside it."""

    media_type = "multipart/form-data"

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        _check_encoding(parser_context)
        on_disk = _OnDisk((parser_context or {})["request"])
        try:
            fields, files = _parts(stream, media_type or "", on_disk)
            parts, strange = files.getlist("file"), sorted(set(files) - {"file"})
            rules = [fault(name, None, "must be a file; its field is called file") for name in strange[:5]]
            if len(parts) != 1:
                rule = "appears twice" if parts else "is required: one part with a file name"
                rules.append(fault("file", None, rule))
            if rules:
                raise _faulty(rules)
            upload = UploadedPart(parts[0].file, parts[0].name or "", parts[0].size or 0)
            return upload, _envelope(fields)
        except BaseException:
            on_disk.close()
            raise


def _parts(stream: IO[bytes], media_type: str, on_disk: "_OnDisk") -> tuple[QueryDict, MultiValueDict]:
    tail = _Tail(stream, media_type)
    meta = on_disk.http_request.META | {"CONTENT_TYPE": media_type}
    try:
        parts = MultiPartParser(meta, cast(Any, tail), [on_disk], "utf-8").parse()
    except RequestDataTooBig as error:
        raise BodyTooLarge("The fields beside a file are at most 2.5 MB together.") from error
    except TooManyFieldsSent as error:
        rule = f"at most {settings.DATA_UPLOAD_MAX_NUMBER_FIELDS:,} fields"
        raise ParseError(f"The multipart body has too many fields. Send {rule}.") from error
    except TooManyFilesSent as error:
        raise ParseError("The multipart body has too many files. Send one file.") from error
    except (MultiPartParserError, SuspiciousOperation) as error:
        raise ParseError(UNREADABLE) from error
    if not tail.ends_with_boundary():
        raise ParseError("The multipart body is incomplete: its closing boundary is missing. Send it again.")
    # A part without a name that can be read is left out without a word.
    if dropped := tail.n_boundaries - 1 - sum(len(values) for group in parts for _, values in group.lists()):
        raise ParseError(
            f"Parts of the multipart body that cannot be read: {dropped}. Each has a header "
            "Content-Disposition of UTF-8 text with a name, and a file has a file name."
        )
    return parts


class _Tail:
    """Keeps the last bytes that pass, and counts the boundaries between the parts."""

    N_TAIL = 1024

    def __init__(self, stream: IO[bytes], media_type: str) -> None:
        boundary = media_type.partition("boundary=")[2].split(";")[0].strip().strip('"')
        self._boundary = f"--{boundary}".encode("latin-1", "replace")
        self._stream, self._tail, self.n_boundaries = stream, b"", 0

    def read(self, n: int = -1) -> bytes:
        data = self._stream.read(n)
        before = self._tail[1 - len(self._boundary) :]  # holds none as a whole
        self.n_boundaries += (before + data).count(self._boundary)
        self._tail = (self._tail + data[-self.N_TAIL :])[-self.N_TAIL :]
        return data

    def ends_with_boundary(self) -> bool:
        return self._boundary + b"--" in self._tail


class _OnDisk(FileUploadHandler):
    """Writes files to disk, under no name, as they come."""

    chunk_size = 2**20

    def __init__(self, http_request: Request) -> None:
        super().__init__()
        self.http_request = http_request
        self._files: list[IO[bytes]] = []
        self._n_bytes = 0

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        self._files.append(TemporaryFile(prefix="bst-"))  # noqa: SIM115  `close`, or whoever answers

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        self._n_bytes += len(raw_data)  # of all files together
        if self._n_bytes > MAX_FILE_BYTES:
            raise BodyTooLarge(f"A file is at most {MAX_FILE_BYTES // 2**20} MiB.")
        self._files[-1].write(raw_data)

    def file_complete(self, file_size: int) -> UploadedFile:
        self._files[-1].seek(0)
        return UploadedFile(self._files[-1], name=self.file_name, size=file_size)

    def close(self) -> None:
        for file in self._files:
            file.close()


def _faulty(faults: list[Fault]) -> Faulty:
    return Faulty("The submission has errors. Nothing was stored.", faults=tuple(faults))


def _envelope(parts: QueryDict) -> dict[str, Any]:
    twice = [name for name in parts if len(parts.getlist(name)) > 1]
    foreign = [name for name, value in parts.items() if "\ufffd" in f"{name}{value}"]
    faults = [fault(name, None, "appears twice") for name in twice[:5]]
    faults += [fault(name, parts[name], "must be UTF-8 text") for name in foreign[:5]]
    if "submission" in parts and len(parts) > 1:
        faults.append(fault("submission", None, "holds the whole envelope; no other field stands beside it"))
    if faults:
        raise _faulty(faults)
    fields: dict[str, Any] = {}
    if "submission" in parts:
        fields = parse_json(str(parts["submission"]).encode())
        if not isinstance(fields, dict):
            raise _faulty([fault("submission", None, "must be a JSON object")])
        return fields
    for name, value in parts.items():
        outer, dot, inner = name.partition(".")
        if dot and isinstance(fields.setdefault(outer, {}), dict):
            fields[outer][inner] = value
        else:
            fields[name] = value
    return fields


def is_multipart(request: Request) -> bool:
    return (request.content_type or "").lower().startswith(BoundedMultipart.media_type)


def require_length(request: Request) -> None:
    """Refuse a body without a length, which would be taken for an empty one, or with too great a one."""
    length = request.META.get("CONTENT_LENGTH") or ""
    if not length.isdigit():
        raise LengthRequired
    if is_multipart(request):
        if int(length) > MAX_FILE_BYTES + MAX_BESIDE_BYTES:
            raise BodyTooLarge(f"A file is at most {MAX_FILE_BYTES // 2**20} MiB.")
    elif int(length) > MAX_BYTES:
        raise BodyTooLarge
    elif int(length) == 0:
        raise ParseError("The body is empty. Send a JSON object.")


def require_few_values(body: bytes) -> None:
    """Refuse a body of very many values before each becomes an object: `[[],[],…]` grows thirtyfold."""
    if sum(map(body.count, (b",", b"[", b"{"))) > MAX_MARKS:
        raise BodyTooLarge(f"A JSON body holds at most {MAX_MARKS:,} commas and opening brackets.")


def parse_json(body: bytes) -> Any:
    require_few_values(body)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ParseError(f"The body is not UTF-8 text: byte {error.start}.") from error
    try:
        return json.loads(text, object_pairs_hook=unique, **NUMBERS)
    except RecursionError as error:
        raise ParseError("The body is nested too deeply.") from error
    except json.JSONDecodeError as error:
        raise ParseError(f"The body is not JSON: {error}.") from error
    except ValueError as error:
        raise ParseError(f"The body is not JSON: {_with_place(text) or error}.") from error


def _float(text: str) -> float:
    number = float(text)
    if isinf(number):
        raise ValueError(f"{excerpt(text)} is too large for a number")
    if is_too_small(text):
        raise ValueError(f"{excerpt(text)} is too small for a number: write 0")
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


NUMBERS: dict[str, Any] = {
    "parse_int": whole_number,
    "parse_float": _float,
    "parse_constant": _refuse_constant,
}
TOKEN = re.compile(r'(?P<text>"(?:[^"\\]++|\\.)*+")(?P<colon>\s*:)?|(?P<number>[-+.\w]+)|[{}]')


def _with_place(text: str) -> json.JSONDecodeError | None:
    """Look for the first key or number that was refused; the hooks of `json` do not know where they are."""
    keys: list[set[str]] = []
    for token in TOKEN.finditer(text):
        try:
            if token[0] == "{":
                keys.append(set())
            elif token[0] == "}":
                keys.pop()
            elif token.lastgroup == "number":
                json.loads(token["number"], **NUMBERS)
            elif token.lastgroup == "colon":
                key = json.loads(token["text"])
                if key in keys[-1]:
                    unique([(key, None)] * 2)
                keys[-1].add(key)
        except ValueError as error:
            return json.JSONDecodeError(str(error), text, token.start())
    return None
