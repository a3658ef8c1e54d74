"""Signed digests, verified by the arithmetic of RFC 8032 and not by the library that signs."""

import base64
import hashlib
import json
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from leaderboard.boards import signing
from leaderboard.boards.models import Board
from leaderboard.boards.queries import as_dict
from tests.toys import csv_text, ladder, load_text, recomputed

ROOT = Path(__file__).resolve().parents[2]
# RFC 8032, 7.1, test 1
SEED = base64.b64encode(
    bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
).decode()
PUBLIC = base64.b64encode(
    bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
).decode()


# ----------------------------------------------------------- verification as in RFC 8032, 5.1.7 and section 6

P = 2**255 - 19
Q = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P


def added(one, other):
    """The sum of two points in extended coordinates x, y, z, t."""
    a = (one[1] - one[0]) * (other[1] - other[0]) % P
    b = (one[1] + one[0]) * (other[1] + other[0]) % P
    c, d = 2 * one[3] * other[3] * D % P, 2 * one[2] * other[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(n, point):
    total = (0, 1, 1, 0)
    while n:
        if n & 1:
            total = added(total, point)
        point, n = added(point, point), n >> 1
    return total


def point_of(content):
    """The point that 32 bytes stand for: y, and the lowest bit of x."""
    y = int.from_bytes(content, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    assert not (x * x - square) % P
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


BASE = point_of((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


def verifies(key, signature, message):
    key, signature = base64.b64decode(key), base64.b64decode(signature)
    s = int.from_bytes(signature[32:], "little")
    h = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % Q
    one, other = times(s, BASE), added(point_of(signature[:32]), times(h, point_of(key)))
    return s < Q and not any((one[i] * other[2] - other[i] * one[2]) % P for i in (0, 1))


def test_the_arithmetic_accepts_what_rfc_8032_signed():
    """7.1, test 1: the empty message."""
    signature = bytes.fromhex(
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b"
        "d25bf5f0595bbe24655141438e7a100b"
    )
    assert verifies(PUBLIC, base64.b64encode(signature), b"")
    assert not verifies(PUBLIC, base64.b64encode(signature), b"x")


# ----------------------------------------------------------------------------------------------------- boards


@pytest.fixture
def board(db):
    load_text(csv_text(ladder(3, 20)))
    return recomputed()


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home of an embedded server that has no key yet."""
    monkeypatch.setattr(signing.postgres, "home", lambda: tmp_path)
    yield tmp_path
    signing._stored_seed.cache_clear()


def message_of(published):
    """What the documentation says is signed, without the project's own code."""
    names = ("benchmark", "number", "published_at", "data_version", "digest")
    told = {name: published[name] for name in names}
    return json.dumps(told, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def test_what_the_api_publishes_is_signed(client, board):
    published = client.get("/api/v1/benchmarks/toy/board").json()
    served = client.get("/.well-known/bandstand-key").json()
    assert served == {"algorithm": "Ed25519", "key": published["key"]}
    message = message_of(published)
    assert verifies(served["key"], published["signature"], message)
    for name, other in (("digest", "0" * 64), ("number", 2), ("benchmark", "other"), ("data_version", 9)):
        forged = message_of(published | {name: other})
        assert not verifies(served["key"], published["signature"], forged)


def test_the_setting_is_the_seed_of_rfc_8032(board, settings):
    settings.SIGNING_KEY = SEED
    published = as_dict(board)
    assert published["key"] == signing.public_key() == PUBLIC
    assert verifies(PUBLIC, published["signature"], message_of(published))


def test_a_deployed_service_without_a_key_signs_nothing_and_says_so(client, board, settings):
    settings.EMBEDDED = False
    assert {as_dict(board)[name] for name in ("signature", "key")} == {None}
    assert client.get("/.well-known/bandstand-key").json()["key"] is None
    assert (
        "The digest is not signed, because this server has no key." in client.get("/b/toy").content.decode()
    )


def test_the_embedded_server_makes_one_key_and_keeps_it_to_itself(home, settings):
    settings.SIGNING_KEY = ""
    made = signing.public_key()
    signing._stored_seed.cache_clear()
    assert signing.public_key() == made
    (kept,) = home.iterdir()
    assert (kept.name, stat.S_IMODE(kept.stat().st_mode)) == ("signing.key", 0o600)
    assert len(base64.b64decode(kept.read_text())) == 32


def test_of_two_that_make_a_key_at_once_one_is_kept(home):
    make = signing._stored_seed.__wrapped__
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(make, [home] * 32))) == 1
    assert [path.name for path in home.iterdir()] == ["signing.key"]


def test_a_signature_is_the_same_at_every_reading(board):
    assert as_dict(board)["signature"] == as_dict(Board.objects.get(pk=board.pk))["signature"]


@pytest.mark.parametrize("text", ["x", "AAAA", base64.b64encode(b"x" * 31).decode(), "é", SEED + "="])
def test_a_setting_that_is_no_seed_is_refused_at_the_start(text):
    done = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=ROOT,
        env=os.environ | {"SIGNING_KEY": text},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode
    assert "SIGNING_KEY must be the base64 of 32 bytes." in done.stderr
    assert text not in done.stderr or len(text) == 1
