import string
import zlib
from datetime import UTC, datetime, timedelta

import pytest

from leaderboard.accounts import secrets
from leaderboard.accounts.services import create_token, get_or_create_user, token_of
from leaderboard.errors import Refusal
from tests.refusals import refused

NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture
def issued(db):
    user, _ = get_or_create_user(email="Ada@Example.org")
    return create_token(
        user=user,
        name="ci",
        scopes=["read"],
        benchmarks=[],
        created_at=NOW,
        expires_at=NOW + timedelta(days=1),
    )


def test_secret_carries_its_checksum():
    text = secrets.mint()
    digits = string.digits + string.ascii_letters
    check = sum(digits.index(c) * 62**i for i, c in enumerate(reversed(text[-6:])))
    assert text.startswith("bst_")
    assert len(text) == 4 + 43 + 6
    assert check == zlib.crc32(text[4:-6].encode())


def test_secrets_differ():
    assert len({secrets.mint() for _ in range(1000)}) == 1000


@pytest.mark.parametrize("position", [0, 3, 4, 20, 46, 47, 52])
def test_one_wrong_letter_is_seen_without_the_database(position):
    text = secrets.mint()
    other = "a" if text[position] != "a" else "b"
    with pytest.raises(secrets.MalformedTokenError):
        secrets.parse(text[:position] + other + text[position + 1 :])


@pytest.mark.parametrize("text", ["", "bst_", "bst_ä", "x" * 53, "bst_" + "0" * 10_000])
def test_other_texts_are_no_tokens(text):
    with pytest.raises(secrets.MalformedTokenError):
        secrets.parse(text)


def test_only_the_hash_is_kept(issued):
    token, text = issued
    stored = type(token).objects.filter(pk=token.pk).values().get()
    assert text not in repr(stored)
    assert text[20:] not in repr(stored)
    assert stored["user_id"] == token.user.pk
    assert token.user.email == "ada@example.org"


def test_token_is_found_by_its_secret(issued):
    token, text = issued
    assert token_of(text, as_of=NOW) == token


def test_expired_token_says_when(issued):
    with refused(Refusal, "token_expired", match="expired on 2026-06-02"):
        token_of(issued[1], as_of=NOW + timedelta(days=1))


def test_revoked_token_says_when(issued):
    token, text = issued
    token.revoked_at = NOW
    token.save()
    with refused(Refusal, "token_revoked", match="revoked on 2026-06-01"):
        token_of(text, as_of=NOW)


def test_closed_account(issued):
    token, text = issued
    token.user.is_active = False
    token.user.save()
    with refused(Refusal, "account_closed"):
        token_of(text, as_of=NOW)


def test_another_secret_with_the_same_public_id_is_unknown(issued):
    token, text = issued
    body = text[4:16] + "0" * 31
    forged = f"bst_{body}{secrets._checksum(body)}"
    assert secrets.parse(forged)[0] == token.public_id
    with refused(Refusal, "token_unknown"):
        token_of(forged, as_of=NOW)


def test_no_token_lives_longer_than_a_year(issued):
    with pytest.raises(ValueError, match="a year"):
        create_token(
            user=issued[0].user,
            name="ci",
            scopes=["read"],
            benchmarks=[],
            created_at=NOW,
            expires_at=NOW + timedelta(days=366),
        )
