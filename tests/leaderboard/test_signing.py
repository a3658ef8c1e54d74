"""Signed digests, verified by another program: openssl."""

import base64
import json
import os
import shutil
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from leaderboard.boards import signing
from leaderboard.boards.models import Board
from leaderboard.boards.presentation import as_dict
from tests.toys import csv_text, ladder, load_text, recomputed

ROOT = Path(__file__).resolve().parents[2]
# RFC 8032, 7.1, test 1
SEED = base64.b64encode(
    bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
).decode()
PUBLIC = base64.b64encode(
    bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
).decode()
SPKI = bytes.fromhex("302a300506032b6570032100")  # RFC 8410: what stands before the 32 bytes of a key


@pytest.fixture
def board(db):
    load_text(csv_text(ladder(3, 20)))
    return recomputed()


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home of an embedded server that has no key yet."""
    monkeypatch.setattr(signing.postgres, "home", lambda: tmp_path)
    yield tmp_path
    signing._kept_seed.cache_clear()


def openssl_verifies(folder, key, signature, message):
    """Whether openssl, which shares no code with what signed, accepts the signature."""
    for name, content in {
        "key.der": SPKI + base64.b64decode(key),
        "signature": base64.b64decode(signature),
        "message": message,
    }.items():
        (folder / name).write_bytes(content)
    names = ["-inkey", "key.der", "-keyform", "DER", "-sigfile", "signature", "-in", "message"]
    command = [shutil.which("openssl"), "pkeyutl", "-verify", "-pubin", "-rawin", *names]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 0


def message_of(published):
    """What the documentation says is signed, without the project's own code."""
    names = ("benchmark", "number", "published_at", "data_version", "digest")
    told = {name: published[name] for name in names}
    return json.dumps(told, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def test_openssl_verifies_what_the_api_publishes(client, board, tmp_path):
    published = client.get("/api/v1/benchmarks/toy/board").json()
    served = client.get("/.well-known/bandstand-key").json()
    assert served == {"algorithm": "Ed25519", "key": published["key"]}
    message = message_of(published)
    assert openssl_verifies(tmp_path, served["key"], published["signature"], message)
    for name, other in (("digest", "0" * 64), ("number", 2), ("benchmark", "other"), ("data_version", 9)):
        forged = message_of(published | {name: other})
        assert not openssl_verifies(tmp_path, served["key"], published["signature"], forged)


def test_the_setting_is_the_seed_of_rfc_8032(board, settings, tmp_path):
    settings.SIGNING_KEY = SEED
    published = as_dict(board)
    assert published["key"] == signing.public_key() == PUBLIC
    assert openssl_verifies(tmp_path, PUBLIC, published["signature"], message_of(published))


def test_a_deployed_service_without_a_key_signs_nothing_and_says_so(client, board, settings):
    settings.EMBEDDED = False
    assert {as_dict(board)[name] for name in ("signature", "key")} == {None}
    assert client.get("/.well-known/bandstand-key").json()["key"] is None
    assert (
        "This server has no key, so that the digest is not signed." in client.get("/b/toy").content.decode()
    )


def test_the_embedded_server_makes_one_key_and_keeps_it_to_itself(home, settings):
    settings.SIGNING_KEY = ""
    made = signing.public_key()
    signing._kept_seed.cache_clear()
    assert signing.public_key() == made
    (kept,) = home.iterdir()
    assert (kept.name, stat.S_IMODE(kept.stat().st_mode)) == ("signing.key", 0o600)
    assert len(base64.b64decode(kept.read_text())) == 32


def test_of_two_that_make_a_key_at_once_one_is_kept(home):
    make = signing._kept_seed.__wrapped__
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
