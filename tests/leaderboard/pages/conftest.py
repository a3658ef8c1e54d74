"""Boards that are made once and laid into each test's database as rows."""

from datetime import UTC, datetime

import pytest

from leaderboard.boards.models import Board
from leaderboard.catalog.models import Benchmark
from tests.kept import stored
from tests.toys import csv_text, load_text, recomputed

AS_OF = datetime(2026, 6, 1, 12, 5, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _rendered_anew(settings):
    """What is kept of pages, and the queries which that takes, is the subject of test_caching alone."""
    settings.PAGES_KEPT = 0


@pytest.fixture
def publish(db):
    """Load outcomes, for each slug once, and publish the board; what was asked for before is copied."""
    asked = []

    def do(*deliveries, slug="toy", **fields):
        def make():
            for one in deliveries:
                load_text(one if isinstance(one, str) else csv_text(one, benchmark=slug.title()), slug=slug)
                recomputed(slug, as_of=AS_OF)

        asked.append((deliveries, slug))
        stored(("published", repr(asked)), make)
        Benchmark.objects.filter(slug=slug).update(**fields)
        return Board.objects.filter(benchmark__slug=slug).latest("number")

    return do
