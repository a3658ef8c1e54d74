"""What all processes count together: the cache over one table, and the tries to sign in that rest on it."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.cache import cache, caches
from django.db import connection
from django.test import Client
from django.utils import timezone

from leaderboard.accounts.models import Counted
from tests.leaderboard.desk import PASSWORD, person


def test_what_is_kept_and_until_when(db):
    assert cache.get("a", "none") == "none"
    cache.set("a", [1.5, 2], 60)
    assert cache.get("a") == [1.5, 2]
    assert not cache.add("a", 1, 60)
    assert cache.touch("a", -1)
    assert cache.get("a") is None
    assert cache.add("a", 1, 60)
    assert cache.delete("a")
    assert not cache.delete("a")
    cache.set("for-good", True, None)
    assert cache.get("for-good") is True
    cache.clear()
    assert not Counted.objects.exists()


def test_what_has_expired_goes_as_others_come(db):
    for n in range(5):
        cache.set(f"old-{n}", n, -1)
    cache.set("new", 1, 60)
    assert Counted.objects.get().key.endswith("new")
    assert Counted.objects.get().expires_at > timezone.now()


@pytest.mark.django_db(transaction=True)
def test_of_many_that_add_at_once_one_does():
    def add(_):
        try:
            return caches["default"].add("the-lock", 1, 60)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(add, range(16))) == 1


def test_guesses_are_counted_for_all_processes_and_for_each_account(db):
    """What was counted lies in the table alone, so that it matters to none which process is asked."""
    for name in ("ada", "eve"):
        person(f"{name}@example.org")

    def sign_in(name, password, **heads):
        return Client().post(
            "/accounts/login/", {"login": f"{name}@example.org", "password": password}, headers=heads
        )

    for _ in range(6):
        refused = sign_in("ada", "wrong")
    assert "Too many" in refused.content.decode()
    assert "Too many" in sign_in("ada", PASSWORD).content.decode()
    # Another address in a head of the visitor's own is no way round.
    assert "Too many" in sign_in("ada", PASSWORD, **{"x-forwarded-for": "192.0.2.9"}).content.decode()
    assert sign_in("eve", PASSWORD).status_code == 302
    Counted.objects.all().delete()
    assert sign_in("ada", PASSWORD).status_code == 302
