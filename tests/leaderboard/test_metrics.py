"""`/metrics`: what it tells, to whom, and that the dashboard asks for nothing else."""

import json
import os
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from urllib.request import urlopen

import psycopg
import pytest
from django.db import OperationalError, connection
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families as read

from leaderboard import counters, logs
from leaderboard.monitoring import State
from leaderboard.operations import events
from leaderboard.operations.models import EventKind, JobRun
from leaderboard.operations.scheduler.leadership import LOCK
from tests.leaderboard.service import Service
from tests.toys import recomputed

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "a-token-of-the-monitoring"


def samples(text):
    """By name and labels."""
    return {
        (one.name, *sorted(one.labels.items())): one.value for family in read(text) for one in family.samples
    }


@pytest.fixture
def told(client):
    def ask(**heads):
        answer = client.get("/metrics", headers=heads)
        assert answer.status_code == 200
        return samples(answer.content.decode())

    return ask


def value(found, name, **labels):
    return found.get((name, *sorted(labels.items())))


def fails_with(secret):
    raise ValueError(secret)


def test_it_is_closed_to_all_whom_no_setting_names(client, db, settings):
    def status(*, address="127.0.0.1", **heads):
        return client.get("/metrics", headers=heads, REMOTE_ADDR=address).status_code

    settings.METRICS_NETWORKS = []
    assert status() == 404
    assert status(authorization="Bearer ") == 404
    settings.METRICS_TOKEN = TOKEN
    assert status(authorization=f"Bearer {TOKEN}") == 200
    assert status(authorization=f"Bearer {TOKEN[:-1]}") == 404
    assert status() == 404
    from leaderboard.deployed import networks

    settings.METRICS_NETWORKS = networks("N", ["127.0.0.0/8", "10.0.0.0/8"])
    assert status() == status(address="10.1.2.3") == 200
    assert status(address="192.0.2.1") == 404
    # A proxy that nobody told of stands near, and asks for everybody.
    assert status(**{"x-forwarded-for": "192.0.2.1"}) == 404
    assert status(**{"x-forwarded-for": "10.1.2.3"}) == 404
    settings.PROXIES = 1
    assert status(**{"x-forwarded-for": "10.1.2.3"}) == 200
    assert status(**{"x-forwarded-for": "10.1.2.3, 192.0.2.1"}) == 404
    # Past the proxy only the connection tells who asks.
    assert status() == status(address="10.1.2.3") == 200
    assert status(address="192.0.2.1") == 404


def test_the_state_of_the_service(told, toy, post):
    board = recomputed()
    now = timezone.now()
    outcomes = [{"task": f"t{j:02d}", "trial": 1, "outcome": 1} for j in range(20)]
    post({"agent": {"name": "new", "scaffold": "Loop", "model": "M"}, "outcomes": outcomes})
    about = {"kind": "reconcile", "lane": "prompt", "benchmark": toy, "created_at": now}
    took = {"started_at": now - timedelta(seconds=7), "ended_at": now, "claim": "0" * 32}
    JobRun.objects.create(status="done", **about, **took)
    JobRun.objects.create(status="failed", **about, **took)
    payload = {"benchmark": toy, "kind": EventKind.DRIFT_ALERT, "about": "x", "payload": {}}
    events.emit(**payload, as_of=now - timedelta(hours=1), emails=["eve@example.org"])
    found = told()
    assert value(found, "bandstand_submissions", benchmark="toy", status="accepted") == 17
    assert value(found, "bandstand_board_behind", benchmark="toy") == 1
    age = (timezone.now() - board.published_at).total_seconds()
    assert value(found, "bandstand_board_age_seconds", benchmark="toy") == pytest.approx(age, abs=60)
    assert value(found, "bandstand_job_runs", job="reconcile", status="failed") == 1
    assert value(found, "bandstand_job_failing", job="reconcile", benchmark="toy") == 1
    assert value(found, "bandstand_job_seconds", job="reconcile", benchmark="toy") == 7
    assert value(found, "bandstand_deliveries", to="mail", status="waiting") == 1
    assert value(found, "bandstand_delivery_oldest_seconds", to="mail") == pytest.approx(3_600, abs=60)
    assert value(found, "bandstand_database_up") == 1
    assert value(found, "bandstand_database_bytes") > 1e6


def test_requests_refusals_and_faults_are_counted_by_what_does_not_grow(client, told, post):
    before = told()
    post({"agent": {"name": "new", "scaffold": "Loop", "model": "M"}, "outcomes": [{"task": "t99"}]})
    client.get("/b/toy")
    client.get("/b/none/at/all")
    client.get("/admin/catalog/task/")
    after = told()

    def grown(name, **labels):
        return value(after, name, **labels) - (value(before, name, **labels) or 0)

    route = {"method": "GET", "status": "200", "route": "pages:board"}
    assert grown("bandstand_requests_total", **route) == 1
    assert grown("bandstand_requests_total", method="GET", status="404", route="none") == 1
    assert grown("bandstand_requests_total", method="GET", status="302", route="admin") == 1
    assert grown("bandstand_request_seconds_count", route="pages:board") == 1
    assert grown("bandstand_refusals_total", code="faulty") + 1  # whatever the class is called
    rules = {dict(key[1:])["rule"] for key in after if key[0] == "bandstand_faults_total"}
    assert rules
    assert not [rule for rule in rules if re.search(r"\d|t99", rule)]


def test_rules_make_no_more_series_than_there_is_room_for(monkeypatch):
    monkeypatch.setattr(counters, "_rules", set())
    monkeypatch.setattr(counters, "MAX_RULES", 2)
    counters.count_faults(["is one", "is two", "is three", "is one; is it 'x'?", "is one"])
    assert counters._rules == {"is one", "is two", "other"}


def test_without_a_database_it_says_so(monkeypatch):
    def away(as_of):
        raise OperationalError

    monkeypatch.setattr("leaderboard.monitoring.READ", (away,))
    (up,) = State(timezone.now()).collect()
    assert (up.name, up.samples[0].value) == ("bandstand_database_up", 0)


def test_whether_a_scheduler_leads(told, toy):
    assert value(told(), "bandstand_scheduler_leads") == 0
    names = {"host": "HOST", "port": "PORT", "dbname": "NAME", "user": "USER"}
    given = connection.settings_dict
    where = {name: given[key] for name, key in names.items() if given[key]}
    with psycopg.connect(**where, autocommit=True) as held:
        held.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        assert value(told(), "bandstand_scheduler_leads") == 1


def test_the_dashboard_asks_for_what_is_told(told, toy, post):
    dashboard = json.loads((ROOT / "docs" / "examples" / "grafana.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    names = {name for expression in asked for name in re.findall(r"\bbandstand_\w+", expression)}
    families = [*State(timezone.now()).collect(), *counters.OWN.collect()]
    kinds = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "gauge": ("",)}
    exported = {family.name + end for family in families for end in kinds[family.type]}
    assert names <= exported
    # And all that is told stands on it.
    assert {family.name for family in families} <= {re.sub("_(total|bucket)$", "", name) for name in names}


def test_all_workers_count_together(tmp_path):
    """One that takes the place of another goes on counting in its file."""
    count = """
from leaderboard import counters
counters.take_slot({slot})
counters.count_request(method="GET", route="r", status=200, seconds=0.1)
"""
    show = """
from prometheus_client import generate_latest
from leaderboard import counters
print(generate_latest(counters.of_all_processes()).decode())
"""

    def run(code):
        environment = os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    for slot in (1, 2, 1):
        run(count.format(slot=slot))
    files = sorted(tmp_path.iterdir())
    found = samples(run(show))
    assert value(found, "bandstand_requests_total", method="GET", route="r", status="200") == 3
    assert value(found, "bandstand_request_seconds_count", route="r") == 3
    assert len(files) == 4


@pytest.mark.slow
def test_under_gunicorn():
    """Two workers: what all of them answered is told by whichever is asked, and lines are JSON."""
    service = Service(LOG_FORMAT="json")
    try:
        log = Path(service.home) / "web.log"
        bind = ["--bind", f"127.0.0.1:{service.port}"]
        with log.open("wb") as file:
            service.start("-m", "gunicorn", "--config", "python:leaderboard.serving", *bind, stderr=file)
        service.wait_until_served()
        for _ in range(30):
            assert urlopen(f"{service.address}/methods").status == 200
        found = samples(service.get("/metrics")[2])
        route = {"method": "GET", "status": "200", "route": "pages:methods"}
        assert value(found, "bandstand_requests_total", **route) == 30
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        assert len([one for one in lines if one.get("path") == "/methods"]) == 30
        assert [one for one in lines if one["logger"] == "gunicorn.error"]
    finally:
        service.close()


def test_sentry_hears_nothing_of_people():
    sdk = pytest.importorskip("sentry_sdk")
    sent = []

    class Kept(sdk.transport.Transport):
        def capture_envelope(self, envelope):
            sent.append(envelope.get_event())

    client = sdk.Client(
        **logs.sentry_options("https://key@sentry.example/1"), transport=Kept, default_integrations=False
    )
    scope = sdk.Scope(client=client)
    scope.set_user({"email": "ada@example.org", "ip_address": "192.0.2.1"})
    event = {
        "message": "failed for bst_0123456789 at postgres://u:hunter2@db/x",
        "request": {
            "method": "POST",
            "url": "https://board.example/b/toy?password=hunter2",
            "query_string": "password=hunter2",
            "headers": {"Authorization": "Bearer bst_0123456789"},
            "cookies": {"sessionid": "hunter2"},
            "data": {"password": "hunter2"},
            "env": {"REMOTE_ADDR": "192.0.2.1"},
        },
    }
    client.capture_event(event, scope=scope)
    token = "bst_0123456789"
    try:
        fails_with(token)
    except ValueError as error:
        innermost = error.with_traceback(error.__traceback__.tb_next)  # Sentry is shown our source, too
        client.capture_event(sdk.utils.event_from_exception(innermost)[0], scope=scope)
    assert len(sent) == 2
    told = json.dumps(sent, default=str)
    for hidden in ("hunter2", "123456789", "ada@example.org", "192.0.2.1"):
        assert hidden not in told
    assert sent[0]["request"] == {"method": "POST", "url": "https://board.example/b/toy"}
    client.close()
