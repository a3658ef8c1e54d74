import pytest
from django.db import transaction

from tests.leaderboard.api.world import World


@pytest.fixture(scope="module")
def kept(django_db_setup, django_db_blocker):
    """A benchmark with a row for every route, made once; what a test changes is rolled back with it."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield World()
        transaction.set_rollback(True)
