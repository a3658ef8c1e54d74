"""Boards that are made once and laid into each test's database as rows."""

from copy import copy
from datetime import UTC, datetime

import pytest
from django.apps import apps

from leaderboard.boards.models import Board
from leaderboard.catalog.models import Benchmark
from tests.toys import csv_text, load_text, recomputed

AS_OF = datetime(2026, 6, 1, 12, 5, tzinfo=UTC)
APPS = ("accounts", "catalog", "submissions", "studies", "boards", "operations")
KEPT = {}


@pytest.fixture(autouse=True)
def _rendered_anew(settings):
    """What is kept of pages, and the queries which that takes, is the subject of test_caching alone."""
    settings.PAGES_KEPT = 0


def models():
    return [model for app in APPS for model in apps.get_app_config(app).get_models()]


def rows():
    return [(model, {row.pk: row for row in model._default_manager.all()}) for model in models()]


def stored(key, make):
    """What `make` adds to the database, made once and from then on copied."""
    if key not in KEPT:
        before = [found.keys() for _, found in rows()]
        make()
        KEPT[key] = [
            (model, [row for pk, row in found.items() if pk not in there])
            for (model, found), there in zip(rows(), before, strict=True)
        ]
        return
    for model, kept in KEPT[key]:
        model._default_manager.bulk_create(copy(row) for row in kept)


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
        stored(repr(asked), make)
        Benchmark.objects.filter(slug=slug).update(**fields)
        return Board.objects.filter(benchmark__slug=slug).latest("number")

    return do
