"""The columns say what they hold; `test_docs` compares the page."""

from leaderboard.boards.export import columns
from leaderboard.studies.answers import table
from leaderboard.submissions.export.columns import KNOWN
from leaderboard.submissions.parsing.flat import ALIASES
from selection.schema.board import AtTarget, Line


def test_every_column_is_described_in_words():
    for column in (*KNOWN, *columns()):
        description = column.as_plain()["description"]
        assert len(description) > 8, column
        assert "|" not in description
        assert "None" not in description.split(":")[0]


def test_trials_that_count_as_failures_are_not_called_valid():
    told = {column.name: column.description for column in columns()}
    for name in ("n_tasks", "n_trials"):
        assert "which a missing or invalid one has where it counts as a failure" in told[name]
        assert "valid trial" not in told[name]


def test_boards_have_the_columns_of_their_rows():
    blank = dict.fromkeys(Line.__dataclass_fields__, ())
    line = Line(**blank | {"icc": {}, "at": {target: AtTarget() for target in ("full", "subset", "domain")}})
    assert [column.name for column in columns()] == list(table.flat(line))


def test_no_column_goes_by_an_alias():
    assert not {column.name for column in KNOWN} & set(ALIASES)
