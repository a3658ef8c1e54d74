"""Bytes in: what format they are, decompressed on the way, and looked at while they pass."""

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np

from analytics.flat_file.faults import FlatFileError, Limits, refuse

GZIP = b"\x1f\x8b"
MEMBER = GZIP + b"\x08"
FREE_MEMBERS = 1_000
MEMBER_BYTES = 512  # that each further one has, on average: a block of 64 KB is larger
PARQUET = b"PAR1"
MAX_RECORD_BYTES = 1 << 20  # of a header or a line of JSON
BLOCK_BYTES = 1 << 20  # read at a time, and at most in a row of CSV
FOREIGN = {
    b"PK\x03\x04": "a ZIP archive or an Excel workbook; save the sheet as CSV",
    b"BZh": "compressed by bzip2; use gzip",
    b"\xfd7zXZ": "compressed by xz; use gzip",
    b"\x28\xb5\x2f\xfd": "compressed by zstandard; use gzip",
    b"%PDF": "a PDF document",
    b"ARROW1": "an Arrow file; save it as Parquet",
    b"PARE": "Parquet with an encrypted footer; save it without encryption",
}
_QUOTE, _NEWLINE = b'"\n'
_BESIDE_QUOTE = np.zeros(256, bool)
_BESIDE_QUOTE[list(b'",\r\n')] = True


class Metered(io.RawIOBase):
    """Counts the bytes taken from `source`."""

    def __init__(self, source: BinaryIO | IO[bytes]) -> None:
        self.source = source
        self.n_read = 0

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` as far as one read of the source goes."""
        data = self.source.read(len(buffer)) or b""
        buffer[: len(data)] = data
        self.n_read += len(data)
        return len(data)


class GzipMembers(Metered):
    """Gzip data with a bound on their members by their bytes: each takes time, however little it holds."""

    n_members = 0
    _tail = b""  # of the part before, too short for a whole mark

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` as far as one read of the source goes, and count the members that begin in it."""
        n = super().readinto(buffer)
        data = self._tail + bytes(buffer[:n])
        self._tail = data[1 - len(MEMBER) :]
        self.n_members += data.count(MEMBER)
        if self.n_members > FREE_MEMBERS + self.n_read // MEMBER_BYTES:
            members = f"{self.n_members:,} members in the first {self.n_read:,} bytes"
            raise refuse(f"the gzip data have {members}; compress the file as one")
        return n


@dataclass(frozen=True)
class Opened:
    """An open source: `file` to seek in, `stream` its `n_bytes` in order, `meter` how many are read."""

    file: BinaryIO | IO[bytes]
    stream: io.BufferedReader
    meter: Metered
    start: int
    n_bytes: int | None


@contextmanager
def opened(source: Path | BinaryIO) -> Iterator[Opened]:
    """Open `source`, or read on where it stands; only what was opened here is closed."""
    if isinstance(source, Path):
        with source.open("rb") as file:
            yield _opened(file)
    else:
        yield _opened(source)


def _opened(file: BinaryIO | IO[bytes]) -> Opened:
    try:
        start = file.tell()
        file.seek(0, io.SEEK_END)
        n_bytes: int | None = file.tell() - start
        file.seek(start)
    except (OSError, AttributeError):  # it cannot be wound
        start, n_bytes = 0, None
    meter = Metered(file)
    return Opened(file, io.BufferedReader(meter, BLOCK_BYTES), meter, start, n_bytes)


class Text(io.RawIOBase):
    """UTF-8 text, decompressed within limits; it ends early where something is wrong: see `verify`."""

    def __init__(self, opened: Opened, limits: Limits) -> None:
        self.zipped = opened.stream.peek(2)[:2] == GZIP
        self.source: BinaryIO | gzip.GzipFile | io.BufferedReader = opened.stream
        if self.zipped:
            self.source = gzip.GzipFile(fileobj=GzipMembers(opened.stream), mode="rb")
        self.meter = opened.meter
        self.limits = limits
        self.n_bytes = 0
        self.n_lines = 0
        self.quotes: Quotes | None = None
        self._error: Exception | None = None
        self._ended = False
        self._buffered = b""

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def head(self) -> bytes:
        """Look at the first bytes, at most `MAX_RECORD_BYTES`, without a mark; refuse what is no UTF-8."""
        if self._buffered:
            return self._buffered
        first = self._take(MAX_RECORD_BYTES).removeprefix(codecs.BOM_UTF8)
        if rule := foreign(first):
            raise refuse(rule)
        self._buffered = first
        return first

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` with checked text; 0 at the end and from the first fault on."""
        if self._error is not None or self._ended:
            return 0
        n_bytes = len(buffer)
        try:
            data = self._buffered[:n_bytes]
            data += self._take(n_bytes - len(data))
            self._ended = len(data) < n_bytes
            try:
                n_whole = codecs.utf_8_decode(data, "strict", self._ended)[1]
            except UnicodeDecodeError as fault:
                line, byte = self.n_lines + data.count(b"\n", 0, fault.start) + 1, data[fault.start]
                rule = f"line {line}: the byte 0x{byte:02x} is not UTF-8; save the file as UTF-8"
                raise refuse(rule) from None
            if self.quotes is not None:
                self.quotes.check(data[:n_whole], self.n_lines)
                if self._ended:
                    self.quotes.close()
        except (FlatFileError, OSError) as error:
            self._error = error
            return 0
        self._buffered = data[n_whole:] + self._buffered[n_bytes:]
        self.n_lines += data.count(b"\n")
        buffer[:n_whole] = data[:n_whole]
        return n_whole

    def verify(self) -> None:
        """Raise what ended the text early, if anything did."""
        if self._error is not None:
            raise self._error

    def blocks(self, n: int = 1) -> Iterator[bytes]:
        """Give the rest of the text, `n` blocks at a time; raise what ended it early."""
        while block := self.read(n * BLOCK_BYTES):
            yield block
        self.verify()

    def exhaust(self) -> None:
        """Read on to the end, so that an error in the text is reported rather than what it led to."""
        for _ in self.blocks():
            pass

    def _take(self, n_bytes: int) -> bytes:
        try:
            data = self.source.read(n_bytes)
        except EOFError:
            raise refuse("the gzip data end too early; the file is incomplete, copy it again") from None
        except (zlib.error, gzip.BadGzipFile) as error:
            raise refuse(f"the gzip data are damaged ({error}); copy the file again") from None
        self.n_bytes += len(data)
        self.limits.check_bytes(self.n_bytes)
        if self.zipped:
            self.limits.check_ratio(self.n_bytes, self.meter.n_read)
        return data


@contextmanager
def once_more(opened: Opened, limits: Limits) -> Iterator[Text]:
    """Read the text from its beginning beside the reading that has begun, which then goes on where it was."""
    place = opened.file.tell()
    opened.file.seek(opened.start)
    try:
        yield Text(_opened(opened.file), limits)
    finally:
        opened.file.seek(place)


class Quotes:
    """The quotes of CSV: around a whole field, and doubled inside it; then their number tells where one is.

    With n quotes before it, a quote opens a field where n is even and closes it where n is odd (a doubled
    quote closes and opens again). So an opening one follows a comma, a line's end or a quote, a closing one
    is followed by one of these.
    """

    def __init__(self) -> None:
        self.n = 0
        self._last = _NEWLINE
        self._opened_on = 0

    def check(self, data: bytes, n_lines: int) -> None:
        """Check the next part of the text, which begins after `n_lines` line ends."""
        if _QUOTE in data or self._last == _QUOTE:
            padded = np.frombuffer(bytes((self._last,)) + data + b",", np.uint8)
            places = np.flatnonzero(padded == _QUOTE)
            n_before = self.n - (self._last == _QUOTE)
            opening, closing = places[n_before % 2 :: 2], places[1 - n_before % 2 :: 2]
            is_before = _BESIDE_QUOTE.take(padded.take(opening - 1)) | (opening == 0)
            is_after = _BESIDE_QUOTE.take(padded.take(closing + 1))
            stray = np.concatenate([opening[~is_before], closing[~is_after]])
            if len(stray):
                line = n_lines + data.count(b"\n", 0, int(stray.min())) + 1
                raise refuse(
                    f"line {line}: a quote stands inside a field; put quotes around the field and double the"
                    " quotes in it (or an earlier quote is not closed)"
                )
            self.n = n_before + len(places)
            if len(opening):
                self._opened_on = n_lines + data.count(b"\n", 0, int(opening[-1])) + 1
        self._last = data[-1] if data else self._last

    def close(self) -> None:
        """Check that the text may end here."""
        if self.n % 2:
            raise refuse(f"line {self._opened_on}: a quote opens and does not close")


def head(path: Path) -> bytes:
    """Read the first bytes of a file, decompressed; what of them can be read."""
    with path.open("rb") as file:
        data = file.read(BLOCK_BYTES)
    if data[:2] != GZIP:
        return data
    try:
        return zlib.decompressobj(wbits=31).decompress(data, BLOCK_BYTES)  # cut off, as a head may be
    except zlib.error:
        return b""


def foreign(first: bytes) -> str | None:
    """Say what the first bytes are if they are no UTF-8 text of ours, or None."""
    if not first:
        return "the file is empty"
    if wide := wide_encoding(first):
        return f"the file is {wide} text; save it as UTF-8"
    if first.startswith(GZIP):
        return "the file is compressed by gzip twice"
    if first.startswith(PARQUET):
        return "the file is Parquet inside gzip; deliver the Parquet file itself"
    if first.lstrip()[:1] == b"[":
        return "the file is a JSON array; write one object on each line (NDJSON)"
    return next((f"the file is {what}" for magic, what in FOREIGN.items() if first.startswith(magic)), None)


def wide_encoding(first: bytes) -> str | None:
    """Tell UTF-32 and UTF-16 by their byte order marks, or by where the zero bytes of ASCII lie."""
    if first.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "UTF-32"
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "UTF-16"
    zeros = tuple(byte == 0 for byte in first[:4])
    if zeros in ((True, True, True, False), (False, True, True, True)):
        return "UTF-32"
    if zeros in ((True, False, True, False), (False, True, False, True)):
        return "UTF-16"
    return None
