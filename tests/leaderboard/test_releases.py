"""What each release stored, on the tables and by the numbers of this one (tools/release.py)."""

import json
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client

from leaderboard.boards.models import Board
from leaderboard.boards.queries import entries_of, standings_of
from leaderboard.boards.stored import stored_digest
from leaderboard.operations.services import recompute
from leaderboard.schema import mismatch
from leaderboard.studies.models import ESTIMATOR_VERSION
from tests.leaderboard.databases import database, empty_database
from tests.toys import AS_OF, csv_text, graded, load_text, recomputed

RELEASES = sorted((Path(__file__).resolve().parents[1] / "releases").glob("*.dump"))
pytestmark = pytest.mark.django_db(transaction=True)


def test_releases_are_kept():
    assert RELEASES


@pytest.mark.parametrize("file", RELEASES, ids=lambda file: file.stem)
def test_what_a_release_stored_is_migrated_read_and_computed_anew(file):
    told = json.loads(file.with_suffix(".json").read_text())
    with empty_database() as name, database(name):
        call_command("restore", str(file), verbosity=0)
        call_command("migrate", verbosity=0)
        assert mismatch() == ""
        boards = list(Board.objects.order_by("number"))
        assert [board.digest for board in boards] == told["boards"]
        for board in boards:
            assert standings_of(board).agents
            assert stored_digest(board, entries_of(board)) == board.digest
            assert Client().get(f"/b/toy/v{board.number}").status_code == 200
        _, is_new = recompute(benchmark=boards[0].benchmark, as_of=AS_OF)
        assert is_new == (told["estimator_version"] != ESTIMATOR_VERSION)
        if not is_new:
            assert computed_anew() == told["boards"][-1]
        load_text(csv_text(graded(2, 20, seed=2, prefix="c")))
        assert recomputed().phase


def computed_anew():
    """The digest of a board of the same log, with nothing left of what had been derived from it."""
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE studies_tasksubset, studies_agentscores CASCADE")
    assert not Board.objects.exists()
    return recomputed().digest
