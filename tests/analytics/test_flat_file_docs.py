"""What docs/flat-file.md says about the flat file is so."""

import io
import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from analytics.flat_file import (
    ALIASES,
    FILE,
    KNOWN,
    SUBMISSION,
    FlatFileError,
    from_records,
    read,
)
from analytics.flat_file.faults import MAX_VALUE_BYTES

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "flat-file.md").read_text(encoding="utf-8")
AS_OF = datetime(2026, 1, 1, tzinfo=UTC)


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("column", [*KNOWN, *ALIASES])
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


def test_the_submission_is_read_with_what_it_states_once():
    body = json.loads(blocks("json")[0])
    constants = {"benchmark": "b", "submitted_at": body["submitted_at"]}
    constants |= {"agent": body["agent"]["name"]} | {
        name: body["agent"][name] for name in ("scaffold", "model")
    }
    assert from_records(body["outcomes"], constants=constants, as_of=AS_OF).tasks == ("fix-the-parser",)


def test_the_limits_are_told():
    result = (
        FILE.n_rows,
        FILE.n_name_characters,
        SUBMISSION.n_rows,
        SUBMISSION.n_name_characters,
        SUBMISSION.n_settings,
        MAX_VALUE_BYTES,
    )
    for number in result:
        assert f"{number:,}" in PAGE
    assert (FILE.n_bytes, SUBMISSION.n_bytes, SUBMISSION.n_metadata_bytes) == (512 << 20, 16 << 20, 64 << 10)
    assert all(size in PAGE for size in ("512 MiB", "16 MiB", "64 KiB"))
