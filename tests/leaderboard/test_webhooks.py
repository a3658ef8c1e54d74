"""What is told to webhooks and by mail: signed, in order, tried for a day, never twice at once."""

import hashlib
import hmac
import json
import logging
import socket
import threading
import time
from datetime import timedelta
from functools import partial

import pghistory.models
import pytest
from django.apps import apps
from django.core import mail
from django.core.management import CommandError
from django.db import connection, connections

from leaderboard.catalog.models import Benchmark
from leaderboard.errors import Conflict, Refusal
from leaderboard.operations import posting, webhooks
from leaderboard.operations.events import emit
from leaderboard.operations.models import Event, EventKind, Notification, NotificationAttempt, Webhook
from leaderboard.operations.posting import AddressRefused
from leaderboard.operations.webhooks import (
    add_webhook,
    deliver_due,
    disable_webhook,
    send_again,
)
from tests.leaderboard.listening import listening
from tests.refusals import refused
from tests.toys import AS_OF

KIND = EventKind.DRIFT_ALERT


@pytest.fixture
def benchmark(db):
    return Benchmark.objects.create(slug="toy", title="Toy")


@pytest.fixture
def server(settings):
    settings.WEBHOOKS_MAY_BE_PRIVATE = settings.WEBHOOKS_MAY_BE_PLAIN = True
    with listening() as told:
        yield told


def added(benchmark, url, *, events=(KIND,), reason="a harness listens"):
    return add_webhook(benchmark=benchmark, url=url, events=events, by=None, reason=reason, as_of=AS_OF)


def happened(benchmark, about="1", *, kind=KIND, **payload):
    return emit(benchmark=benchmark, kind=kind, about=about, payload=payload, as_of=AS_OF)


def told_about(server):
    return [json.loads(body)["what"] for body in server.bodies]


def later(**span):
    return AS_OF + timedelta(**span)


class TestWhatIsSent:
    def test_the_signature_is_that_of_the_documented_recipe(self, benchmark, server):
        _, secret = added(benchmark, server.url)
        event = happened(benchmark, what="ü", n=0.5)
        assert deliver_due(as_of=AS_OF) == "1 delivered"
        ((_, headers, body),) = server.received
        at, code = (part.split("=")[1] for part in headers["Bandstand-Signature"].split(","))
        assert at == str(int(AS_OF.timestamp()))
        expected = hmac.new(secret.encode(), at.encode() + b"." + body, hashlib.sha256).hexdigest()
        assert code == expected
        assert headers["Bandstand-Event-Id"] == str(event.uuid)
        assert headers["Bandstand-Event"] == "drift.alert"
        assert headers["Content-Type"] == "application/json"
        assert json.loads(body) == {
            "id": str(event.uuid),
            "kind": "drift.alert",
            "at": AS_OF.isoformat(),
            "benchmark": "toy",
            "what": "ü",
            "n": 0.5,
        }

    def test_a_payload_cannot_pass_for_the_envelope(self, benchmark):
        event = happened(benchmark)
        event.payload = {"id": "x", "benchmark": "other", "kind": "board.published", "at": "1970-01-01"}
        envelope = {"kind": "drift.alert", "at": AS_OF.isoformat(), "benchmark": "toy"}
        assert webhooks.content_of(event) == {"id": str(event.uuid)} | envelope

    def test_a_whole_address_takes_a_setting(self, benchmark, settings):
        event = happened(benchmark, path="/b/toy/v1")
        assert "url" not in webhooks.content_of(event)
        settings.SITE_URL = "https://board.example"
        assert webhooks.content_of(event)["url"] == "https://board.example/b/toy/v1"

    def test_only_to_those_that_want_such_events_of_this_benchmark(self, benchmark, server):
        added(benchmark, server.url, events=[EventKind.BOARD_PUBLISHED])
        other = Benchmark.objects.create(slug="other", title="Other")
        added(other, server.url)
        happened(benchmark)
        assert deliver_due(as_of=AS_OF) == "nothing was due"
        assert server.received == []

    def test_the_same_event_is_told_once(self, benchmark, server):
        added(benchmark, server.url)
        assert happened(benchmark)
        assert happened(benchmark) is None
        assert deliver_due(as_of=AS_OF) == "1 delivered"
        assert deliver_due(as_of=later(days=9)) == "nothing was due"
        assert len(server.received) == 1


class TestTrying:
    def test_a_try_that_fails_is_followed_by_others_for_a_day_and_then_parked(self, benchmark, server):
        server.statuses = [503]
        added(benchmark, server.url)
        happened(benchmark)
        tries, now = [], AS_OF
        while (delivery := Notification.objects.get()).status == "waiting":
            assert deliver_due(as_of=delivery.next_at - timedelta(seconds=1)) == "nothing was due"
            now = delivery.next_at
            tries.append((now - AS_OF).total_seconds())
            deliver_due(as_of=now)
        waits = [10, 40, 160, 640, 2560, 10240, 21600, 21600, 21600]
        assert tries[:10] == [sum(waits[:i]) for i in range(10)]
        assert tries[-1] == 24 * 3600
        assert (delivery.status, delivery.ended_at, delivery.n_attempts) == ("parked", now, len(tries))
        assert [(one.status, one.error) for one in NotificationAttempt.objects.all()] == [
            (503, "answered 503")
        ] * len(tries)
        assert deliver_due(as_of=later(days=30)) == "nothing was due"

    def test_it_ends_with_the_first_try_that_succeeds(self, benchmark, server):
        server.statuses = [500, 204]
        added(benchmark, server.url)
        happened(benchmark)
        assert deliver_due(as_of=AS_OF) == "1 to be tried again"
        assert deliver_due(as_of=later(seconds=9)) == "nothing was due"
        assert deliver_due(as_of=later(seconds=10)) == "1 delivered"
        assert list(NotificationAttempt.objects.values_list("status", flat=True)) == [500, 204]
        first, second = server.received
        assert first[2] == second[2]
        assert first[1]["Bandstand-Event-Id"] == second[1]["Bandstand-Event-Id"]
        assert first[1]["Bandstand-Signature"] != second[1]["Bandstand-Signature"]

    def test_a_redirect_is_a_failure(self, benchmark, server):
        server.statuses, server.headers = [307], {"Location": server.url}
        added(benchmark, server.url)
        happened(benchmark)
        assert deliver_due(as_of=AS_OF) == "1 to be tried again"
        assert NotificationAttempt.objects.get().error == "answered 307; redirects are not followed"
        assert len(server.received) == 1

    def test_without_a_server_the_reason_is_kept(self, benchmark, server):
        added(benchmark, "http://127.0.0.1:1/")
        happened(benchmark)
        deliver_due(as_of=AS_OF)
        assert NotificationAttempt.objects.values_list("status", "error").get() == (
            None,
            "no connection: Connection refused",
        )

    def test_a_private_address_is_refused_at_each_try(self, benchmark, server, settings):
        added(benchmark, f"http://localhost:{server.port}/")
        settings.WEBHOOKS_MAY_BE_PRIVATE = False
        happened(benchmark)
        assert deliver_due(as_of=AS_OF) == "1 to be tried again"
        assert "is not a public address" in NotificationAttempt.objects.get().error
        assert server.received == []

    def test_a_call_ends_after_its_turn(self, benchmark, server, monkeypatch):
        added(benchmark, server.url)
        happened(benchmark, "1", what=1)
        happened(benchmark, "2", what=2)
        moments = iter([0, 0, 0, 0, 99])
        monkeypatch.setattr(webhooks, "monotonic", lambda: next(moments))
        assert deliver_due(as_of=AS_OF) == "1 delivered"
        assert told_about(server) == [1]


class TestOrder:
    def test_later_events_wait_behind_one_that_is_tried_again(self, benchmark, server):
        server.statuses = [500, 200]
        added(benchmark, server.url)
        for what in (1, 2, 3):
            happened(benchmark, str(what), what=what)
        assert deliver_due(as_of=AS_OF) == "1 to be tried again"
        assert deliver_due(as_of=later(seconds=5)) == "nothing was due"
        assert deliver_due(as_of=later(seconds=10)) == "3 delivered"
        assert told_about(server) == [1, 1, 2, 3]

    def test_one_webhook_does_not_wait_for_another(self, benchmark, server):
        added(benchmark, "http://127.0.0.1:1/")
        added(benchmark, server.url)
        for what in (1, 2):
            happened(benchmark, str(what), what=what)
        assert deliver_due(as_of=AS_OF) == "2 delivered, 1 to be tried again"
        assert told_about(server) == [1, 2]

    def test_what_is_parked_holds_nothing_up(self, benchmark, server):
        server.statuses = [500]
        added(benchmark, server.url)
        happened(benchmark, "1", what=1)
        Notification.objects.update(first_at=later(days=-1))
        happened(benchmark, "2", what=2)
        assert deliver_due(as_of=AS_OF) == "1 parked, 1 to be tried again"


class TestAgain:
    def test_what_is_parked_is_sent_again_for_another_day(self, benchmark, server):
        server.statuses = [500]
        added(benchmark, server.url)
        happened(benchmark)
        Notification.objects.update(first_at=later(days=-1))
        assert deliver_due(as_of=AS_OF) == "1 parked"
        now = later(days=3)
        send_again(delivery=Notification.objects.get(), as_of=now)
        assert deliver_due(as_of=now) == "1 to be tried again"
        server.statuses = [200]
        assert deliver_due(as_of=now + timedelta(seconds=10)) == "1 delivered"
        assert NotificationAttempt.objects.count() == 3

    def test_what_was_delivered_may_be_sent_again(self, benchmark, server):
        added(benchmark, server.url)
        happened(benchmark)
        deliver_due(as_of=AS_OF)
        send_again(delivery=Notification.objects.get(), as_of=later(hours=1))
        assert deliver_due(as_of=later(hours=1)) == "1 delivered"
        assert len(server.received) == 2


class TestAddingAndDisabling:
    @pytest.mark.parametrize(
        "url", ["http://hooks.example/", "https://127.0.0.1/", "https://[::1]/", "https://u:p@hooks.example/"]
    )
    def test_an_address_that_none_may_have_is_refused(self, benchmark, url):
        with pytest.raises(AddressRefused):
            added(benchmark, url)
        assert not Webhook.objects.exists()

    @pytest.mark.parametrize(
        "host",
        [
            *("2130706433", "0x7f.1", "127.1", "0177.0.0.1", "[::ffff:127.0.0.1]", "[::ffff:8.8.8.8]"),
            *("１２７.0.0.1", "localhost", "hooks.example:0", "10.0.0.1:8443"),
        ],
    )
    def test_nor_is_one_that_hides_a_private_address(self, benchmark, host):
        with pytest.raises(AddressRefused):
            added(benchmark, f"https://{host}/")
        assert not Webhook.objects.exists()

    @pytest.mark.parametrize(
        ("answer", "why"),
        [
            (["10.0.0.1"], r"10\.0\.0\.1 is not a public address"),
            (["8.8.8.8", "::1"], "::1 is not a public address"),
            ([], "hooks.example has no address: Name or service not known. Check the name"),
        ],
    )
    def test_a_host_without_a_public_address_is_refused_when_added(self, benchmark, monkeypatch, answer, why):
        def look(host, port, **_):
            if not answer:
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in answer]

        monkeypatch.setattr(posting.socket, "getaddrinfo", look)
        with pytest.raises(AddressRefused, match=why):
            added(benchmark, "https://hooks.example/")
        assert not Webhook.objects.exists()

    def test_a_name_that_is_not_looked_up_in_time_is_refused(self, benchmark, monkeypatch):
        monkeypatch.setattr(posting, "SECONDS", 0.2)
        monkeypatch.setattr(posting.socket, "getaddrinfo", lambda *_, **__: time.sleep(5) or [])
        with pytest.raises(AddressRefused, match=r"hooks\.example was not looked up within 0\.2 s"):
            added(benchmark, "https://hooks.example/")

    @pytest.mark.parametrize("events", [[], ["board.eaten"], [KIND, "x"]])
    def test_so_are_unknown_events(self, benchmark, events):
        with refused(Refusal, "unknown_event", match=r"drift\.alert"):
            added(benchmark, "https://hooks.example/", events=events)

    def test_each_has_a_secret_of_its_own_that_fits_its_column(self, benchmark):
        one, two = (added(benchmark, "https://hooks.example/")[1] for _ in range(2))
        assert one != two
        assert len(one) <= 64
        assert len(one.removeprefix("bsw_")) >= 43  # 32 bytes

    def test_a_reason_is_asked_for(self, benchmark):
        with refused(Refusal, "reason_missing"):
            added(benchmark, "https://hooks.example/", reason=" ")
        webhook, _ = added(benchmark, "https://hooks.example/")
        with refused(Refusal, "reason_missing"):
            disable_webhook(webhook=webhook, by=None, reason="", as_of=AS_OF)

    def test_a_disabled_one_is_told_nothing_more(self, benchmark, server):
        webhook, _ = added(benchmark, server.url)
        happened(benchmark, "1")
        disable_webhook(webhook=webhook, by=None, reason="gone", as_of=AS_OF)
        happened(benchmark, "2")
        assert deliver_due(as_of=AS_OF) == "nothing was due"
        assert [one.status for one in Notification.objects.all()] == ["parked"]
        with refused(Conflict, "is_disabled"):
            send_again(delivery=Notification.objects.get(), as_of=AS_OF)
        with refused(Conflict, "is_disabled"):
            disable_webhook(webhook=webhook, by=None, reason="again", as_of=AS_OF)

    def test_the_audit_tells_who_and_why_and_never_the_secret(self, benchmark, server, caplog):
        caplog.set_level(logging.DEBUG)
        webhook, secret = added(benchmark, server.url)
        server.statuses = [500]
        happened(benchmark)
        deliver_due(as_of=AS_OF)
        disable_webhook(webhook=webhook, by=None, reason="it failed", as_of=AS_OF)
        changes = apps.get_model("operations", "WebhookChange").objects.order_by("pk")
        contexts = pghistory.models.Context.objects.filter(pk__in=changes.values("pgh_context"))
        assert {one.metadata["reason"] for one in contexts} == {"a harness listens", "it failed"}
        kept = str(list(changes.values())) + str(list(contexts.values()))
        kept += str(list(NotificationAttempt.objects.values())) + str(list(Notification.objects.values()))
        assert server.url in kept
        assert secret not in kept
        # The statements of the database, which Django logs under DEBUG alone, hold it when it is stored.
        assert secret not in "".join(r.getMessage() for r in caplog.records if r.name != "django.db.backends")
        assert secret not in repr(webhook)


class TestMail:
    def test_an_event_is_told_by_mail(self, benchmark):
        payload = {"text": "The subset lags.", "path": "/b/toy"}
        emit(benchmark, KIND, "1", payload, AS_OF, [f"{name}@example.org" for name in ("ada", "bob", "ada")])
        assert deliver_due(as_of=AS_OF) == "2 delivered"
        assert [(one.to, one.subject) for one in mail.outbox] == [
            (["ada@example.org"], "[Bandstand] Toy: drift.alert"),
            (["bob@example.org"], "[Bandstand] Toy: drift.alert"),
        ]
        assert "The subset lags." in mail.outbox[0].body

    def test_a_title_breaks_no_head(self, benchmark):
        Benchmark.objects.update(title="Toy\nBcc: eve@example.org")
        emit(benchmark=benchmark, kind=KIND, about="1", payload={}, as_of=AS_OF, emails=["a@example.org"])
        assert deliver_due(as_of=AS_OF) == "1 delivered"
        assert mail.outbox[0].subject == "[Bandstand] Toy Bcc: eve@example.org: drift.alert"

    def test_without_a_server_for_mail_it_is_tried_again(self, benchmark, settings):
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
        emit(benchmark=benchmark, kind=KIND, about="1", payload={}, as_of=AS_OF, emails=["a@example.org"])
        assert deliver_due(as_of=AS_OF) == "1 to be tried again"
        assert "Connection refused" in NotificationAttempt.objects.get().error


class TestTwoAtOnce:
    @pytest.fixture
    def open_benchmark(self, transactional_db):
        return Benchmark.objects.create(slug="toy", title="Toy")

    def test_two_schedulers_send_each_event_once_and_in_order(self, open_benchmark, server):
        for _ in range(3):
            added(open_benchmark, server.url)
        for what in range(8):
            happened(open_benchmark, str(what), what=what)
        said = []

        def deliver():
            said.append(deliver_due(as_of=AS_OF))
            connections.close_all()

        threads = [threading.Thread(target=deliver) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # A turn ends where nothing is free, be it since others hold it; the next one takes the rest.
        deliver_due(as_of=AS_OF)
        of_webhook = {}
        for _, headers, body in server.received:
            code = headers["Bandstand-Signature"]
            for webhook in Webhook.objects.all():
                if code == webhooks.signature(webhook.secret, body, int(AS_OF.timestamp())):
                    of_webhook.setdefault(webhook.pk, []).append(json.loads(body)["what"])
        assert set(map(tuple, of_webhook.values())) == {tuple(range(8))}
        assert len(of_webhook) == 3
        assert NotificationAttempt.objects.count() == 24

    def test_while_one_sends_no_transaction_is_open_and_another_finds_nothing(self, open_benchmark, server):
        added(open_benchmark, server.url)
        happened(open_benchmark, "1", what=1)
        happened(open_benchmark, "2", what=2)
        seen = []

        def meanwhile():
            if not seen:
                seen.append(None)
                seen.append(deliver_due(as_of=AS_OF))
                with connection.cursor() as cursor:
                    cursor.execute(
                        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                        " AND state LIKE 'idle in transaction%'"
                    )
                    seen.append(cursor.fetchone()[0])
                connections.close_all()

        server.before = meanwhile
        assert deliver_due(as_of=AS_OF) == "2 delivered"
        assert seen == [None, "nothing was due", 0]

    def test_what_a_killed_scheduler_held_is_sent_once_its_lease_is_over(self, open_benchmark, server):
        added(open_benchmark, server.url)
        happened(open_benchmark, what=1)
        assert webhooks._claim(AS_OF)  # and then it was killed
        assert deliver_due(as_of=later(seconds=59)) == "nothing was due"
        assert deliver_due(as_of=later(seconds=60)) == "1 delivered"


class TestCommand:
    @pytest.fixture
    def run(self, run, benchmark):
        return partial(run, "webhooks", "toy")

    def test_from_adding_to_sending_again(self, benchmark, server, run):
        assert "No webhooks for toy." in run()
        said = run("--add", server.url, "--events", "drift.alert", "board.published")
        webhook = Webhook.objects.get()
        assert webhook.secret in said
        assert webhook.events == ["drift.alert", "board.published"]
        assert server.url in run()
        assert webhook.secret not in run()
        assert "No deliveries for toy." in run("--log")
        server.statuses = [500]
        event = happened(benchmark)
        deliver_due(as_of=AS_OF)
        log = run("--log")
        for words in ("drift.alert", f"webhook {webhook.pk}", "waiting", "answered 500"):
            assert words in log
        assert webhook.secret not in log
        assert "is due now" in run("--send-again", str(Notification.objects.get(event=event).pk))
        assert "Disabled" in run("--disable", str(webhook.pk), "--reason", "gone")
        assert "disabled: gone" in run()

    def test_every_kind_where_none_is_named(self, server, run):
        run("--add", server.url)
        assert Webhook.objects.get().events == EventKind.values

    @pytest.mark.parametrize(
        "arguments",
        [
            ("--add", "http://hooks.example/"),
            ("--add", ""),
            ("--disable", "99", "--reason", "x"),
            ("--send-again", "99"),
        ],
    )
    def test_it_refuses_in_words(self, run, arguments):
        with pytest.raises(CommandError, match=r"\.$"):
            run(*arguments)

    def test_disabling_asks_for_a_reason(self, server, run):
        run("--add", server.url)
        with pytest.raises(CommandError, match="--reason"):
            run("--disable", str(Webhook.objects.get().pk))

    def test_what_is_of_another_benchmark_is_not_there(self, benchmark, server, run):
        other = Benchmark.objects.create(slug="other", title="Other")
        webhook, _ = added(other, server.url)
        happened(other)
        for arguments in (
            ("--disable", str(webhook.pk), "--reason", "x"),
            ("--send-again", str(Notification.objects.get().pk)),
        ):
            with pytest.raises(CommandError, match=r"Unknown (webhook|delivery)"):
                run(*arguments)
        assert Event.objects.count() == 1
