import io
import json
import socket
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from django.core.management import call_command

from leaderboard.catalog.models import Benchmark, Policy
from leaderboard.operations.scheduler import children
from leaderboard.operations.services import issue_token
from tests.kept import stored
from tests.toys import csv_text, ladder, load_text


@pytest.fixture(autouse=True)
def the_same_audit_tasks(monkeypatch):
    """Audit tasks are drawn in secret; here the same ones in each run, so that chance alarms nobody."""
    draws = Random(0)
    monkeypatch.setattr("leaderboard.operations.assignments.SystemRandom", lambda: draws)


@pytest.fixture(autouse=True)
def subset_by_default(monkeypatch):
    """Boards of tests ask for the subset; tests of staged assignment state it in a policy."""
    field = Policy._meta.get_field("assignment")
    monkeypatch.setitem(vars(field), "_get_default", lambda: "subset")


@pytest.fixture
def by_ridge(monkeypatch):
    """Boards of these tests estimate by `ridge`, whose calibration is stored."""
    monkeypatch.setitem(vars(Policy._meta.get_field("estimator")), "_get_default", lambda: "ridge")


@pytest.fixture(autouse=True)
def names_of_examples(monkeypatch):
    """Names that stand for nothing anywhere have a public address, as that of a webhook must."""
    whole = socket.getaddrinfo

    def look(host, port, *arguments, **named):
        is_example = isinstance(host, str) and host.endswith((".example", "example.org"))
        return whole("93.184.215.14" if is_example else host, port, *arguments, **named)

    monkeypatch.setattr(socket, "getaddrinfo", look)


@pytest.fixture
def one_connection(monkeypatch):
    """A run closes what a lost database left of its connection; a test's transaction would go with it."""
    monkeypatch.setattr(children, "close_old_connections", lambda: None)


@pytest.fixture
def toy(db) -> Benchmark:
    """16 complete agents on 20 tasks."""
    load_text(csv_text(ladder(16, 20)))
    return Benchmark.objects.get(slug="toy")


@pytest.fixture
def run(db):
    def call(*arguments):
        out = io.StringIO()
        call_command(*arguments, stdout=out, stderr=io.StringIO())
        return out.getvalue()

    return call


@pytest.fixture
def submit_token(toy) -> str:
    def make():
        about = {"email": "ada@example.org", "slug": "toy", "scope": "submit", "name": "ci"}
        return issue_token(**about, as_of=datetime.now(UTC), life=timedelta(days=1))[1]

    return stored(("submit token", toy.pk), make)


@pytest.fixture
def post(client, submit_token):
    """POST a body to a benchmark and return the response."""

    def send(body, *, token=submit_token, slug="toy", **headers):
        return client.post(
            f"/api/v1/benchmarks/{slug}/submissions",
            body if isinstance(body, bytes | str) else json.dumps(body),
            content_type="application/json",
            headers={"Authorization": f"Bearer {token}"} | headers if token else headers,
        )

    return send


@pytest.fixture
def replayed_twice(monkeypatch):
    """Replays with two draws instead of ten: who calls them is looked at, not what they find."""
    monkeypatch.setattr("selection.staged.replay.N_SEEDS", 2)
    monkeypatch.setattr("selection.staged.replay.N_ORDERS", 2)


def no_replay(_, rule, *__, **___):
    return {"rule": rule.words, "figures": None, "verdict": None, "reason": "for this test"}


@pytest.fixture
def unreplayed(monkeypatch):
    """No replays, as where too few agents came; those of a proposal are looked at in `test_replays`."""
    monkeypatch.setattr("selection.staged.study.replayed", no_replay)


@pytest.fixture
def quick(monkeypatch, replayed_twice):
    """Validation by one protocol and one strategy: what is stored, not what is computed, is looked at."""
    from selection.standings import validating

    original = validating.validate
    monkeypatch.setattr(
        validating,
        "validate",
        lambda table, **rest: original(table, protocols=("loao",), strategies=("mid_range",), **rest),
    )
