"""What is kept of pages, what of them is sent, and that nothing old or private ever is."""

import gzip
from datetime import timedelta
from threading import Barrier, Thread

import pytest
from django.conf import settings
from django.db import OperationalError, connection, connections
from django.http import HttpResponse, HttpResponseNotFound
from django.middleware.csrf import get_token
from django.test import Client, RequestFactory
from django.utils import timezone

from leaderboard.boards.models import Board
from leaderboard.catalog.models import Agent, Benchmark, Policy, Visibility
from leaderboard.catalog.services import bump_shown_version
from leaderboard.operations.models import Alert
from leaderboard.operations.services import recompute
from leaderboard.pages import caching
from leaderboard.pages.models import RenderedPage
from leaderboard.studies.models import VarianceStudy
from leaderboard.submissions.models import Submission
from leaderboard.submissions.services import withdraw
from tests.leaderboard.desk import person
from tests.toys import AS_OF, csv_text, ladder, load_text

PUBLIC = "public, max-age=0, must-revalidate"
TEXT = "€" * 200
GZIP = {"headers": {"Accept-Encoding": "br, gzip"}}


@pytest.fixture(autouse=True)
def _nothing_in_memory(monkeypatch):
    monkeypatch.setattr(caching, "RECENT", caching.Recent(caching.MOST_IN_MEMORY))


@pytest.fixture
def board(publish):
    return publish(ladder(3, 20))


@pytest.fixture
def toy(board):
    return Benchmark.objects.get(slug="toy")


def kept():
    return set(RenderedPage.objects.values_list("key", flat=True))


def forget():
    caching.RECENT = caching.Recent(caching.MOST_IN_MEMORY)


class Viewed:
    """A kept view that counts how often it was rendered."""

    def __init__(self, *known, answer=lambda request: HttpResponse(TEXT), **options):
        self.n, self._answer = 0, answer
        self.view = caching.kept(*known, **options)(self.render)

    def render(self, request, slug, **place):
        self.n += 1
        return self._answer(request)

    def get(self, query="", slug="toy", **headers):
        request = RequestFactory(headers=headers).get(f"/x?{query}")
        return self.view(request, slug)


class TestWhatIsSent:
    def test_a_page_is_rendered_once(self, board):
        viewed = Viewed()
        assert [viewed.get().content.decode() for _ in range(3)] == [TEXT] * 3
        assert viewed.n == 1
        assert RenderedPage.objects.count() == 1

    def test_it_is_sent_compressed_to_those_who_can_read_that(self, client, board):
        """Rendered, from the database and from memory, and to whoever reads no gzip: the same page."""
        sent = []
        for _ in range(2):
            sent += [client.get("/b/toy", **GZIP), client.get("/b/toy", **GZIP)]
            forget()
        assert {response["Content-Encoding"] for response in sent} == {"gzip"}
        plain = client.get("/b/toy")
        assert "Content-Encoding" not in plain
        assert {gzip.decompress(response.content) for response in sent} == {plain.content}
        for response in (*sent, plain):
            assert response["Content-Type"] == "text/html; charset=utf-8"
            assert int(response["Content-Length"]) == len(response.content)
            assert response["Vary"] == "Accept-Encoding"
            assert response["Cache-Control"] == PUBLIC
            assert response["ETag"] == plain["ETag"]
            assert response["Content-Security-Policy"]

    def test_what_is_kept_is_not_compressed_or_hashed_again(self, client, board, monkeypatch):
        client.get("/b/toy", **GZIP)

        def never(*_, **__):
            raise AssertionError("done again")

        monkeypatch.setattr("django.middleware.gzip.compress_string", never)
        monkeypatch.setattr("django.middleware.http.set_response_etag", never)
        monkeypatch.setattr(caching.gzip, "compress", never)
        assert client.get("/b/toy", **GZIP).status_code == 200

    def test_head_is_answered_from_the_same_page(self, client, board, django_assert_num_queries):
        page = client.get("/b/toy", **GZIP)
        with django_assert_num_queries(1):
            head = client.head("/b/toy", **GZIP)
        assert (head.status_code, head.content) == (200, b"")
        assert (head["ETag"], head["Content-Length"]) == (page["ETag"], page["Content-Length"])

    def test_other_methods_are_refused_and_nothing_is_kept(self, client, board):
        assert client.post("/b/toy").status_code == 405
        assert not kept()


class TestQueries:
    def test_who_has_the_page_is_answered_after_one(self, client, board, django_assert_num_queries):
        tag = client.get("/b/toy")["ETag"]
        for sent in (tag, tag.removeprefix("W/"), f'"other", {tag}', "*"):
            with django_assert_num_queries(1):  # what the page is made from
                response = client.get("/b/toy", headers={"If-None-Match": sent})
            assert (response.status_code, response.content) == (304, b"")
            assert (response["ETag"], response["Cache-Control"]) == (tag, PUBLIC)
            assert response["Vary"] == "Accept-Encoding"

    def test_others_after_two_and_then_after_one(self, client, board, django_assert_num_queries):
        client.get("/b/toy")
        forget()
        with django_assert_num_queries(2):  # what it is made from; the page
            client.get("/b/toy")
        with django_assert_num_queries(1):
            client.get("/b/toy")

    def test_rendering_takes_five_beside_those_of_the_view(self, board, django_assert_num_queries):
        viewed = Viewed()
        # what it is made from; no page; is it still so; the new page; what is too old
        with django_assert_num_queries(5):
            viewed.get()

    def test_it_is_asked_for_in_one_while_outcomes_wait(self, client, toy, django_assert_num_queries):
        client.get("/b/toy")
        load_text(csv_text({"late": "1" * 20}))
        client.get("/b/toy")
        with django_assert_num_queries(1):
            client.get("/b/toy")

    def test_a_connection_that_broke_meanwhile_is_replaced(self, client, toy, monkeypatch):
        asked, closed = caching._asked, []
        monkeypatch.setattr(caching.connection, "in_atomic_block", False)
        monkeypatch.setattr(caching.connection, "close", lambda: closed.append(1))

        def once_broken(*arguments):
            if not closed:
                raise OperationalError
            return asked(*arguments)

        monkeypatch.setattr(caching, "_asked", once_broken)
        assert caching.state_of("toy", None)["slug"] == "toy"


class TestWhatChangesIt:
    @pytest.fixture
    def differs(self, client):
        """Whether `change` alters the ETag, at once; the page that was there is never sent again."""

        def do(change, path="/b/toy"):
            before = client.get(path)
            change()
            after = client.get(path, headers={"If-None-Match": before["ETag"]})
            assert after.status_code == (304 if after["ETag"] == before["ETag"] else 200)
            return after["ETag"] != before["ETag"]

        return do

    def test_costs_that_are_hidden_are_gone_at_once(self, client, publish, differs):
        rows = csv_text(ladder(3, 20)).splitlines()
        text = "\n".join([f"{rows[0]},cost_usd", *(f"{row},0.1234" for row in rows[1:])])
        toy = publish(text + "\n").benchmark
        shown = client.get("/b/toy").content

        def hide():
            fields = {f.attname: getattr(toy.policies.get(), f.attname) for f in Policy._meta.concrete_fields}
            Policy.objects.create(**fields | {"id": None, "number": 2, "show_costs": False})

        assert b"$" in shown
        assert differs(hide)
        assert b"$" not in client.get("/b/toy").content

    def test_a_withdrawal_shows_at_once(self, client, toy, differs):
        submission = Submission.objects.get(agent__name="a01")

        def take_back():
            withdraw(submission=submission, by=None, reason="a leak", as_of=AS_OF)

        assert "withdrawn" not in client.get("/b/toy").content.decode().lower()
        assert differs(take_back)
        assert "withdrawn" in client.get("/b/toy").content.decode().lower()

    def test_deliveries_change_a_page_of_the_board_once(self, toy, differs):
        assert differs(lambda: load_text(csv_text({"late": "1" * 20})))
        assert not differs(lambda: load_text(csv_text({"later": "1" * 20})))

    def test_deliveries_change_a_page_of_the_data_each_time(self, toy):
        viewed = Viewed(of_data=True)
        for n in range(3):
            load_text(csv_text({f"late {n}": "1" * 20}))
            viewed.get()
        assert viewed.n == 3

    def test_a_new_board_is_shown_and_older_ones_point_to_it(self, toy, differs):
        def publish_another():
            load_text(csv_text({"late": "1" * 20}))
            recompute(benchmark=toy, as_of=AS_OF + timedelta(days=1))

        assert differs(publish_another)
        assert not differs(lambda: None, "/b/toy/v1")

        def and_another():
            load_text(csv_text({"latest": "1" * 20}))
            recompute(benchmark=toy, as_of=AS_OF + timedelta(days=2))

        assert differs(and_another, "/b/toy/v1")

    @pytest.mark.parametrize(
        "fields",
        [
            {"title": "Another"},
            {"description": "What it is."},
            {"visibility": Visibility.UNLISTED},
            {"frozen_at": AS_OF, "frozen_reason": "spring"},
        ],
    )
    def test_whatever_is_said_of_the_benchmark(self, toy, differs, fields):
        assert differs(lambda: Benchmark.objects.filter(pk=toy.pk).update(**fields))

    def test_its_version(self, toy, differs):
        assert differs(lambda: bump_shown_version(benchmark=toy))

    def test_the_first_alert(self, toy, differs):
        def alert():
            Alert.objects.create(benchmark=toy, monitor="fidelity", opened_at=AS_OF)

        assert differs(alert)

    def test_code_and_templates(self, toy, differs, monkeypatch):
        assert differs(lambda: monkeypatch.setattr(caching, "version", lambda: "other"))

    def test_the_key_that_boards_are_signed_with(self, toy, differs, settings):
        def sign():
            settings.SIGNING_KEY = "A" * 43 + "="

        assert differs(sign)

    def test_a_study_that_the_page_says_it_reads(self, toy):
        viewed, other = Viewed(reads=(VarianceStudy,)), Viewed()
        for page in (viewed, other):
            page.get()
        VarianceStudy.objects.create(**study_of(toy))
        for page in (viewed, other):
            page.get()
        assert (viewed.n, other.n) == (2, 1)

    def test_another_address_of_the_server(self, client, toy, settings):
        settings.ALLOWED_HOSTS = ["*"]
        one, two = (client.get("/b/toy", headers={"host": host}) for host in ("one.org", "two.org"))
        assert one["ETag"] != two["ETag"]
        assert one["ETag"] != client.get("/b/toy", headers={"host": "one.org"}, secure=True)["ETag"]

    def test_two_benchmarks_have_nothing_in_common(self, client, publish):
        publish(ladder(3, 20))
        publish(ladder(3, 20), slug="other")
        assert client.get("/b/toy")["ETag"] != client.get("/b/other")["ETag"]


def study_of(benchmark):
    policy = benchmark.policies.get()
    empty = {
        field.name: "" for field in VarianceStudy._meta.concrete_fields if field.get_internal_type() == "CharField"
    }
    return empty | {"benchmark": benchmark, "policy": policy}
