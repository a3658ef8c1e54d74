"""Texts in a CSV that a spreadsheet would take for a formula.

A spreadsheet reads as a formula what begins with = + - or @, but not what an apostrophe stands before, which
it hides. So an apostrophe before such a text, in a CSV, is no part of the text; one that is, is doubled.
"""

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from analytics.flat_file.values import NUMBER

MARK = "'"
FORMULA = "^'*[=+@-]"
GUARDED = "^'+[=+@-]"
SIGNS = re.compile(rb"'[=+@-]")


def guarded(texts: Any) -> Any:
    """Put an apostrophe before texts, (n,), that would be taken for a formula; numbers stay."""
    formula = pc.match_substring_regex(texts, FORMULA)
    if not pc.any(formula).as_py():
        return texts
    number = pc.match_substring_regex(texts, NUMBER)
    marked = pc.binary_join_element_wise(pa.scalar(MARK), texts, "")
    return pc.if_else(pc.and_not(formula, number), marked, texts)


def unguarded(texts: Any) -> Any:
    """Take off the apostrophe that stands before a formula, (n,)."""
    return pc.if_else(pc.match_substring_regex(texts, GUARDED), pc.utf8_slice_codeunits(texts, 1), texts)


def may_be_guarded(block: bytes | memoryview) -> bool:
    """Tell whether a block of CSV has an apostrophe before a sign anywhere."""
    return SIGNS.search(block) is not None
