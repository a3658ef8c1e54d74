"""What docs/flat-file.md says about the flat file is so."""

import io
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from analytics.flat_file import ALIASES, OPTIONAL, REQUIRED, FlatFileError, read

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "flat-file.md").read_text(encoding="utf-8")
AS_OF = datetime(2026, 1, 1, tzinfo=UTC)


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("column", [*REQUIRED, *OPTIONAL, *ALIASES])
def test_every_column_and_alias_has_a_place_in_a_table(column):
    assert re.search(rf"^\|[^|]*`{column}`", PAGE, re.MULTILINE)


@pytest.mark.parametrize("text", [blocks("csv")[0], *blocks("ndjson")])
def test_the_examples_are_read(text):
    file = read(io.BytesIO(text.encode()), as_of=AS_OF)
    assert file.agents == ("Ada 2",)
    assert not file.valid[-1]


def test_the_refused_example_is_refused_just_so():
    with pytest.raises(FlatFileError) as caught:
        read(io.BytesIO(blocks("csv")[1].encode()), as_of=AS_OF)
    assert [str(fault) for fault in caught.value.faults] == blocks("text")[0].splitlines()
