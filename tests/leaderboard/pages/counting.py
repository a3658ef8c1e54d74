"""Boards of few and of many agents, and how many queries a page of each takes."""

from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.toys import graded

HOSTILE = "</title><script>alert(1)</script>&\"'‮"
FEW, MANY = 3, 60


def n_queries(client, path):
    with CaptureQueriesContext(connection) as seen:
        assert client.get(path).status_code == 200
    return len(seen)


def same_with_few_and_many(client, publish, path):
    """How many queries the page takes, if it is the same number with 3 and with 60 agents."""
    publish(graded(FEW, 20), slug="few")
    publish(graded(MANY, 20), slug="many")
    found = {n_queries(client, path.format(slug=slug)) for slug in ("few", "many")}
    assert len(found) == 1
    return found.pop()
