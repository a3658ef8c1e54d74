"""The same board everywhere: a file by itself, and the same rows through the database, with the same Given."""

import csv
import io
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from analytics.flat_file import read
from analytics.record import Record
from leaderboard.boards.presentation import as_dict
from leaderboard.boards.reading import standings_of
from leaderboard.catalog.models import Benchmark, Policy
from leaderboard.operations.loading import load
from leaderboard.operations.services import _present, measure_variance, recompute
from leaderboard.studies.demonstration import write_history, write_newcomers
from leaderboard.submissions.parsing.flat import read_file
from selection.standings import answer
from selection.standings.lines import Standings
from tests.toys import AS_OF, graded, only, rows_text

PUBLISHED = {"benchmark", "number", "published_at", "data_version", "digest"}


def loaded(*paths: Path, slug="same"):
    """The board after loading these files one after the other."""
    for path in paths:
        load(flat=read_file(path, as_of=AS_OF), slug=slug, as_of=AS_OF)
    return recompute(benchmark=Benchmark.objects.get(slug=slug), as_of=AS_OF)[0]


def by_itself(path, board):
    """The answer for the file, with what the database was given."""
    now, known = _present(board.benchmark)
    record = Record.from_flat(read(path, as_of=AS_OF), now.rules.counting)
    return answer(record, now.rules, known.given())


def is_same(path, board):
    file, stored = by_itself(path, board).as_plain(), standings_of(board).as_plain()
    assert file.keys() == stored.keys()
    for key in file:
        if key == "agents":
            assert [a["agent"] for a in file[key]] == [a["agent"] for a in stored[key]]
            for one, other in zip(file[key], stored[key]):
                assert one == other
        assert file[key] == stored[key], key
    published = as_dict(board)
    assert {name: published[name] for name in file} == file
    assert published.keys() - file.keys() == PUBLISHED


def joined(*paths, to):
    """One file with the rows of these."""
    lines = [path.read_text().splitlines(keepends=True) for path in paths]
    to.write_text("".join([lines[0][0], *(row for part in lines for row in part[1:])]))
    return to


def test_the_demonstration(db, tmp_path):
    write_history(tmp_path / "history.csv")
    board = loaded(tmp_path / "history.csv")
    assert board.subset.number == 1
    is_same(tmp_path / "history.csv", board)
    write_newcomers(tmp_path / "new.csv", tasks=standings_of(board).subset.tasks)
    board = loaded(tmp_path / "new.csv")
    assert sum(line.how == "estimated" for line in standings_of(board).agents) == 6
    is_same(joined(tmp_path / "history.csv", tmp_path / "new.csv", to=tmp_path / "all.csv"), board)
