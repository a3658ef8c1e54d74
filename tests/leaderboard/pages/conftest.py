"""Boards that are made once and laid into each test's database as rows."""

import re
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest
from django.apps import apps

from leaderboard.boards.models import Board
from leaderboard.catalog.models import Benchmark
from tests.toys import csv_text, load_text, recomputed

AS_OF = datetime(2026, 6, 1, 12, 5, tzinfo=UTC)
APPS = ("accounts", "catalog", "submissions", "studies", "boards", "operations")
KEPT = {}


def models():
    return [model for app in APPS for model in apps.get_app_config(app).get_models()]


def stored(name, make):
    """What `make` left in the database, made once and from then on copied."""
    if name not in KEPT:
        make()
        KEPT[name] = [(model, list(model._default_manager.all())) for model in models()]
        return
    for model, rows in KEPT[name]:
        model._default_manager.bulk_create(rows)


@pytest.fixture
def publish(db):
    """Load outcomes and publish the board; what was asked for before is copied."""

    def do(outcomes, *more, slug="toy", **fields):
        def make():
            for one in (outcomes, *more):
                load_text(one if isinstance(one, str) else csv_text(one), slug=slug)
                recomputed(slug, as_of=AS_OF)

        stored(repr((outcomes, more, slug)), make)
        Benchmark.objects.filter(slug=slug).update(**fields)
        return Board.objects.filter(benchmark__slug=slug).latest("number")

    return do


class Tables(HTMLParser):
    """The text of each row's cells, by the id or class of the table."""

    def __init__(self, html):
        super().__init__()
        self.tables, self.cell = {}, None
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        if tag == "table":
            self.rows = self.tables.setdefault(dict(attributes)["class"], [])
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.cell = []

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.rows[-1].append(" ".join("".join(self.cell).split()))
            self.cell = None

    def handle_data(self, text):
        if self.cell is not None:
            self.cell.append(text)


def table(response, name="ranking"):
    """The rows of a table without its head."""
    return Tables(response.content.decode()).tables[name][1:]


def text_of(response):
    main = re.search(r"<main.*</main>", response.content.decode(), re.S)[0]
    return unescaped(" ".join(re.sub(r"<[^>]+>", " ", main).split()))


def unescaped(html):
    return html.replace("&#x27;", "'").replace("&quot;", '"')
