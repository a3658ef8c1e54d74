"""Excel workbooks: an archive knows no limits, so it is copied within ours before anybody opens it.

What pandas is given holds no more than what was looked at here: the XML of the archive, decompressed, whose
bytes, members, growth, cells and repeated texts are bounded.
"""

import io
import re
import zlib
from collections import Counter
from pathlib import Path
from xml.parsers import expat
from zipfile import ZIP_STORED, BadZipFile, ZipFile

from analytics.flat_file.faults import Limits, refuse

WORKBOOK = "xl/workbook.xml"
ZIP = b"PK\x03\x04"
OLE = b"\xd0\xcf\x11\xe0"  # of workbooks before 2007, and of those behind a password
MAX_MEMBERS = 10_000
MAX_CELLS = 5_000_000  # from A1 to the last cell of each sheet: those between are held too
SHEET = b"sheetData"
EMPTY = re.compile(rb"<c\b[^<>]*/>")  # a cell with a format and nothing else
ERROR = re.compile(rb'(<c\b[^<>]*\bt=)"e"')
PLACE = re.compile("([A-Za-z]{1,3})([0-9]{1,7})")
UNPLACED = "cells do not say where they stand; open the workbook in a spreadsheet and save it"
UNVALUED = "cell {} holds a formula without a value; open the workbook in a spreadsheet and save it"


def bounded(path: Path, limits: Limits) -> tuple[io.BytesIO, bool]:
    """Copy the parts of a workbook that hold tables; errors such as #N/A become texts.

    Also tell whether its day numbers count from 1904.

    Raises FlatFileError: if it is damaged, holds too much, or has formulas whose values nobody stored.
    """
    try:
        parts = _parts(path, limits)
        read = {name: _Part(data) for name, data in parts.items()}
    except (BadZipFile, EOFError, RuntimeError, UnicodeDecodeError, zlib.error, expat.ExpatError) as error:
        raise refuse(f"the workbook is damaged, or is none ({error}); save it again") from None
    n_cells = sum(part.n_rows * part.n_columns for part in read.values())
    if n_cells > MAX_CELLS:
        rule = f"the sheets span {n_cells:,} cells, more than the limit of {MAX_CELLS:,}"
        raise refuse(f"{rule}; delete cells far from the table, or save the sheet as CSV")
    lengths = [length for part in read.values() for length in part.lengths]
    named = sum((part.named for part in read.values()), Counter[int]())
    limits.check_bytes(sum(lengths[i] * n for i, n in named.items() if i < len(lengths)))
    copy = io.BytesIO()
    with ZipFile(copy, "w", ZIP_STORED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    copy.seek(0)
    return copy, read[WORKBOOK].is_1904


def _parts(path: Path, limits: Limits) -> dict[str, bytes]:
    with ZipFile(path) as archive:
        if len(archive.filelist) > MAX_MEMBERS:
            raise refuse(f"the workbook has more than {MAX_MEMBERS:,} members")
        if WORKBOOK not in archive.namelist():
            raise refuse("the archive is no .xlsx workbook; save the table as .xlsx or CSV")
        entries = [info for info in archive.filelist if info.filename.endswith((".xml", ".rels"))]
        n_bytes = sum(info.file_size for info in entries)
        limits.check_bytes(n_bytes)
        limits.check_ratio(n_bytes, path.stat().st_size)
        parts = {}
        for info in entries:
            with archive.open(info) as member:
                data = member.read(info.file_size)  # no more is decompressed than is stated
            parts[info.filename] = ERROR.sub(rb'\1"str"', EMPTY.sub(b"", data)) if SHEET in data else data
        return parts


class _Part:
    """What a part of the archive holds, as a parser of XML sees what pandas is given.

    `n_rows` and `n_columns` reach from A1 to the last cell of a sheet. `lengths` are those of shared texts,
    `named` how often cells name each.
    """

    def __init__(self, data: bytes) -> None:
        self.n_rows = self.n_columns = 0
        self.lengths, self.named = list[int](), Counter[int]()
        self.is_1904 = self._is_sheet = False
        self._is_shared = self._has_formula = self._has_value = False
        self._texts, self._place = list[str](), ""
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._texts.append
        parser.StartDoctypeDeclHandler = self._refuse_entities
        parser.Parse(data, True)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(":")[2]
        if name == "sheetData":
            self._is_sheet = True
        elif name == "workbookPr":
            self.is_1904 = attributes.get("date1904") in ("1", "true")
        elif name == "c" and self._is_sheet:
            if not (place := PLACE.fullmatch(attributes.get("r", ""))):
                raise refuse(UNPLACED)
            self._place = place[0]
            self.n_rows = max(self.n_rows, int(place[2]))
            column = 0
            for letter in place[1].upper():
                column = column * 26 + ord(letter) - 64
            self.n_columns = max(self.n_columns, column)
            self._is_shared = attributes.get("t") == "s"
            self._has_formula = self._has_value = False
        elif name == "f":
            self._has_formula = True
        if name in ("v", "si"):
            self._texts.clear()

    def _end(self, tag: str) -> None:
        name = tag.rpartition(":")[2]
        if name == "v" and self._is_sheet:
            text = "".join(self._texts).strip()
            self._has_value = self._has_value or bool(text)
            if self._is_shared and text.isdecimal():
                self.named[int(text)] += 1
        elif name == "si":
            self.lengths.append(sum(map(len, self._texts)))
        elif name == "c" and self._is_sheet and self._has_formula and not self._has_value:
            raise refuse(UNVALUED.format(self._place))
        if name in ("c", "si"):
            self._texts.clear()

    def _refuse_entities(self, *_: object) -> None:
        raise refuse("the workbook declares entities, which no spreadsheet writes")
