"""Excel workbooks: an archive knows no limits, so it is copied within ours before anybody opens it.

What pandas is given holds no more than what was looked at here: the XML of the archive, decompressed, whose
bytes, members, growth, cells and repeated texts are bounded.
"""

import io
import re
import zlib
from pathlib import Path
from zipfile import ZIP_STORED, BadZipFile, ZipFile

import numpy as np
import numpy.typing as npt

from analytics.flat_file.faults import refuse
from analytics.flat_file.limits import Limits

WORKBOOK = "xl/workbook.xml"
ZIP = b"PK\x03\x04"
OLE = b"\xd0\xcf\x11\xe0"  # of workbooks before 2007, and of those behind a password
MAX_MEMBERS = 10_000
MAX_CELLS = 5_000_000  # from A1 to the last cell of each sheet: those between are held too
SHEET, STRINGS = b"sheetData", b"</si>"  # what the XML of a sheet and of shared texts holds
EMPTY = re.compile(rb"<c\b[^<>]*/>")  # a cell with a format and nothing else
CELL = re.compile(rb"<(?:\w+:)?c[\s>]")
PLACE = re.compile(rb"""\br\s*=\s*["']([A-Za-z]{1,3})([0-9]{1,7})["']""")
WHOLE = re.compile(rb">\s*([0-9]{1,9})\s*</")  # also how a cell names a shared text
ERROR = re.compile(rb'(<c\b[^<>]*\bt=)"e"')
IS_1904 = re.compile(rb"""<(?:\w+:)?workbookPr\b[^>]*\bdate1904\s*=\s*["'](?:1|true)["']""")
UNVALUED = re.compile(rb"(?:</f>|<f\b[^<>]*/>)\s*(?:<v\s*/>|<v></v>|</c>)")


def bounded(path: Path, limits: Limits) -> tuple[io.BytesIO, bool]:
    """Copy the parts of a workbook that hold tables; errors such as #N/A become texts.

    Also tell whether its day numbers count from 1904.

    Raises
    ------
    FlatFileError
        If it is damaged, holds too much, or has formulas whose values nobody stored.
    """
    try:
        parts = _parts(path, limits)
    except (BadZipFile, EOFError, RuntimeError, UnicodeDecodeError, zlib.error) as error:
        raise refuse(f"the workbook is damaged, or is none ({error})") from None
    sheets = [EMPTY.sub(b"", data) for data in parts.values() if SHEET in data]
    lengths = [len(text) for data in parts.values() if STRINGS in data for text in data.split(STRINGS)]
    _check_cells(sheets)
    limits.check_bytes(sum(_n_bytes(sheet, np.array(lengths or [0], np.int64)) for sheet in sheets))
    if any(UNVALUED.search(sheet) for sheet in sheets):
        raise refuse("cells hold formulas without values; open the workbook in a spreadsheet and save it")
    copy = io.BytesIO()
    with ZipFile(copy, "w", ZIP_STORED) as archive:
        for name, data in parts.items():
            archive.writestr(name, ERROR.sub(rb'\1"str"', data) if SHEET in data else data)
    copy.seek(0)
    return copy, bool(IS_1904.search(parts[WORKBOOK]))


def _parts(path: Path, limits: Limits) -> dict[str, bytes]:
    with ZipFile(path) as archive:
        if len(archive.filelist) > MAX_MEMBERS:
            raise refuse(f"the workbook has more than {MAX_MEMBERS:,} members")
        if WORKBOOK not in archive.namelist():
            raise refuse("the archive is no .xlsx workbook; save the table as .xlsx or CSV")
        kept = [info for info in archive.filelist if info.filename.endswith((".xml", ".rels"))]
        n_bytes = sum(info.file_size for info in kept)
        limits.check_bytes(n_bytes)
        limits.check_ratio(n_bytes, path.stat().st_size)
        parts = {}
        for info in kept:
            with archive.open(info) as member:
                parts[info.filename] = member.read(info.file_size)  # no more is decompressed than is stated
        return parts


def _check_cells(sheets: list[bytes]) -> None:
    """Refuse what reaches too far, and cells that do not say where they stand."""
    n_cells = 0
    for sheet in sheets:
        columns, last, n_placed = set[bytes](), 0, 0
        for place in PLACE.finditer(sheet):
            columns.add(place[1].upper())
            last, n_placed = max(last, int(place[2])), n_placed + 1
        if sum(1 for _ in CELL.finditer(sheet)) > n_placed:
            raise refuse("cells do not say where they stand; open the workbook in a spreadsheet and save it")
        n_cells += last * max(map(_number, columns), default=0)
    if n_cells > MAX_CELLS:
        rule = f"the sheets reach over {n_cells:,} cells, and at most {MAX_CELLS:,} are read"
        raise refuse(f"{rule}; delete what stands far from the table, or save the sheet as CSV")


def _number(letters: bytes) -> int:
    """Count the columns up to the one of these letters."""
    number = 0
    for letter in letters:
        number = number * 26 + letter - 64
    return number


def _n_bytes(sheet: bytes, lengths: npt.NDArray[np.int64]) -> int:
    """Bound the bytes of the texts that cells share, each as often as a cell may name it."""
    named = np.array(WHOLE.findall(sheet), dtype="S9").astype(np.int64)
    return int(lengths[named[named < len(lengths)]].sum())
