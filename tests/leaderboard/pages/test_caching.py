"""What is kept of pages, what of them is sent, and that nothing old or private ever is."""

import gzip
from datetime import timedelta
from threading import Barrier, Thread

import psycopg
import pytest
from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore
from django.db import OperationalError, connection, connections
from django.http import HttpResponse, HttpResponseNotFound
from django.middleware.csrf import get_token
from django.test import RequestFactory
from django.utils import timezone

from leaderboard.boards.models import Board
from leaderboard.catalog.models import Benchmark, Policy, Visibility
from leaderboard.catalog.services import bump_shown_version
from leaderboard.operations.corrections import unload
from leaderboard.operations.models import Alert, AlertLevel
from leaderboard.operations.services import measure_variance, recompute
from leaderboard.pages import caching, ordered_outcomes
from leaderboard.pages.models import RenderedPage
from leaderboard.studies.models import DriftCheck, VarianceStudy
from leaderboard.submissions.models import Submission
from tests.leaderboard.desk import person
from tests.leaderboard.test_full_disk import full_disk
from tests.toys import AS_OF, csv_text, ladder, load_text

REASONED = {"reason": "the harness was broken", "as_of": AS_OF}
PUBLIC = "public, max-age=0, must-revalidate"
TEXT = "€" * 200
GZIP = {"headers": {"Accept-Encoding": "br, gzip"}}


@pytest.fixture(autouse=True)
def _nothing_kept_yet(monkeypatch, settings):
    settings.PAGES_KEPT = 1_000
    monkeypatch.setattr(caching, "RECENT", caching.Recent(caching.MAX_IN_MEMORY))


@pytest.fixture
def board(publish):
    return publish(ladder(3, 20))


@pytest.fixture
def toy(board):
    return Benchmark.objects.get(slug="toy")


def kept():
    return set(RenderedPage.objects.values_list("key", flat=True))


def forget():
    caching.RECENT = caching.Recent(caching.MAX_IN_MEMORY)


class Viewed:
    """A kept view that counts how often it was rendered."""

    def __init__(self, *known, answer=lambda request: HttpResponse(TEXT), **options):
        self.n, self._answer = 0, answer
        self.view = caching.cached_page(*known, **options)(self.render)

    def render(self, request, slug, **place):
        self.n += 1
        return self._answer(request)

    def get(self, query="", slug="toy", **headers):
        request = RequestFactory(headers=headers).get(f"/x?{query}")
        return self.view(request, slug)


def test_outcomes_are_read_once_for_the_pages_of_a_state(board, toy, client, monkeypatch):
    n_read, read = [], ordered_outcomes.read_outcomes
    monkeypatch.setattr(
        ordered_outcomes, "read_outcomes", lambda of: n_read.append(of.data_version) or read(of)
    )
    pages = [f"/b/toy/tasks/{task.pk}" for task in toy.tasks.all()[:2]]
    pages += [f"/b/toy/agents/{agent.pk}" for agent in toy.agents.all()[:2]]
    assert {client.get(page).status_code for page in pages} == {200}
    assert len(n_read) == 1
    load_text(csv_text({"new": "1" * 20}))
    texts = [client.get(page).content for page in pages]
    assert len(n_read) == 2
    monkeypatch.setattr(ordered_outcomes, "MAX_BYTES", 0)
    monkeypatch.setattr(ordered_outcomes, "_latest", (None, {}))
    RenderedPage.objects.all().delete()
    forget()
    assert [client.get(page).content for page in pages] == texts
    assert len(n_read) == 6


def test_a_page_on_tasks_is_made_again_once_its_results_are_read(board, client, toy):
    """Without a new board: measuring the sources of error reads what was delivered since."""
    load_text(csv_text({"new": "1" * 20}))
    before = client.get("/b/toy/tasks").content.decode()
    assert "1 agent is not shown" in before
    measure_variance(benchmark=toy, as_of=AS_OF)
    assert "not shown" not in client.get("/b/toy/tasks").content.decode()


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

    def test_a_page_that_has_to_match(self, client, board):
        tag = client.get("/b/toy")["ETag"]
        for ask in (client.get, client.head):
            assert ask("/b/toy", headers={"If-Match": tag}).status_code == 200
            assert ask("/b/toy", headers={"If-Match": 'W/"another"'}).status_code == 412

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
            unload(uuids=[submission.uuid], reason="a leak", as_of=AS_OF)

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

    def test_the_first_alert(self, publish, differs):
        board = publish(ladder(16, 40))
        check = DriftCheck.objects.create(**study_of(board))

        def alert():
            said = {"opened_by": check, "latest": check, "evidence": {}, "opened_at": AS_OF}
            of = {"benchmark": board.benchmark, "subset": board.subset}
            Alert.objects.create(**of, **said, monitor="fidelity", level=AlertLevel.WARN)

        assert differs(alert)

    def test_code_and_templates(self, toy, differs, monkeypatch):
        assert differs(lambda: monkeypatch.setattr(caching, "version", lambda: "other"))

    def test_the_key_that_boards_are_signed_with(self, toy, differs, settings):
        def sign():
            settings.SIGNING_KEY = "A" * 43 + "="

        assert differs(sign)

    def test_a_study_that_the_page_says_it_reads(self, board):
        viewed, other = Viewed(reads=(VarianceStudy,)), Viewed()
        for page in (viewed, other):
            page.get()
        VarianceStudy.objects.create(**study_of(board))
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


def study_of(board):
    of = {"benchmark": board.benchmark, "policy": board.policy, "data_version": board.data_version}
    return of | {"rules": "none", "estimator_version": 0, "result": {}, "created_at": AS_OF}


class TestWhatIsNotKept:
    @pytest.mark.parametrize(
        "fields", [{"visibility": Visibility.PRIVATE}, {"hidden_at": AS_OF, "hidden_reason": "a leak"}]
    )
    def test_a_benchmark_that_visitors_may_not_see(self, client, toy, fields):
        """What was kept before is not sent any more, not to members either, and nothing is kept since."""
        tag = client.get("/b/toy")["ETag"]
        before = kept()
        Benchmark.objects.filter(pk=toy.pk).update(**fields)
        client.force_login(person("ada@example.org", staff=True))
        for headers in ({}, {"If-None-Match": tag}, {"If-None-Match": "*"}):
            assert client.get("/b/toy", headers=headers).status_code == 404
        assert kept() == before

    def test_a_missing_board_and_a_benchmark_without_one(self, client, toy):
        load_text(csv_text(ladder(3, 20)), slug="new")
        assert client.get("/b/toy/v9").status_code == 404
        assert client.get(f"/b/toy/v{10**30}").status_code == 404
        assert client.get("/b/new").status_code == 200
        assert client.get("/b/none").status_code == 404
        assert not kept()

    def test_unknown_parameters_make_no_other_page(self, client, board):
        tags = {client.get(f"/b/toy?utm={i}&x{i}=1")["ETag"] for i in range(5)}
        assert len(kept()) == len(tags) == 1

    def test_the_order_of_parameters_makes_no_other_page(self, board):
        """Their values do, and those of one that appears twice."""
        viewed = Viewed("b", "a")

        def asked(query):
            return viewed.get(query)["ETag"]

        keys = [asked("b=2&a=1"), asked("a=1&b=2"), asked("a=1&b=2&c=3")]
        assert len(set(keys)) == 1
        assert len({asked(query) for query in ("", "a=", "a=1", "a=2", "a=1&a=2", "b=1")}) == 6

    def test_a_very_long_value(self, board):
        viewed = Viewed("name")
        assert viewed.get(f"name={'x' * 1_000}").content.decode() == TEXT
        assert not kept()

    def test_refusals(self, board):
        viewed = Viewed(answer=lambda request: HttpResponseNotFound(TEXT))
        assert [viewed.get().status_code for _ in range(2)] == [404, 404]
        assert (viewed.n, kept()) == (2, set())

    def test_what_changed_while_it_was_rendered(self, toy):
        """It is sent, but nobody knows of which state it is."""

        def meanwhile(request):
            bump_shown_version(benchmark=toy)
            return HttpResponse(TEXT)

        response = Viewed(answer=meanwhile).get()
        assert (response.content.decode(), response.headers.get("ETag")) == (TEXT, None)
        assert not kept()

    @pytest.mark.parametrize("signs", ["session", "token", "cookie"])
    def test_what_reads_the_visitor(self, board, signs):
        def read(request):
            response = HttpResponse(TEXT)
            if signs == "session":
                request.session = SessionStore()
                request.session.get("name")
            elif signs == "token":
                get_token(request)
            else:
                response.set_cookie("seen", "1")
            return response

        response = Viewed(answer=read).get(Cookie="csrftoken=" + "a" * 32)
        assert response["Cache-Control"] == "private, no-store"
        assert "ETag" not in response
        assert not kept()

    def test_anything_where_the_setting_says_so(self, toy, settings):
        settings.PAGES_KEPT = 0
        viewed = Viewed()
        assert [viewed.get().content.decode() for _ in range(2)] == [TEXT] * 2
        assert (viewed.n, kept()) == (2, set())


class TestVisitors:
    def test_who_is_signed_in_is_sent_the_same(self, client, board):
        anonymous = client.get("/b/toy")
        client.force_login(person("ada@example.org", staff=True))
        signed_in = client.get("/b/toy")
        assert (signed_in.content, signed_in["ETag"]) == (anonymous.content, anonymous["ETag"])
        assert "Cookie" not in signed_in["Vary"]

    @pytest.mark.parametrize("path", ["/", "/b/toy", "/b/toy/tasks", "/b/toy/history"])
    @pytest.mark.parametrize("cookie", ["csrftoken=", "csrftoken=another's", f"sessionid={'x' * 32}"])
    def test_cookies_change_nothing(self, client, board, path, cookie):
        for _ in range(2):  # rendered, and from what is kept
            answer = client.get(path, headers={"Cookie": cookie})
            assert (answer.status_code, answer["Cache-Control"]) == (200, PUBLIC)
            assert not answer.cookies
            assert "Cookie" not in answer.headers.get("Vary", "")
        assert answer.content == client.get(path).content
        assert bool(kept()) == (path in ("/b/toy", "/b/toy/tasks"))

    @pytest.mark.parametrize("path", ["/", "/b/toy", "/b/toy/history", "/b/toy/validity"])
    def test_no_answer_to_a_token_is_public(self, client, board, path):
        for tag in ({}, {"If-None-Match": "*"}):
            response = client.get(path, headers={"Authorization": "Bearer x"} | tag)
            assert response["Cache-Control"] == "private, no-store"
        assert client.get(path)["Cache-Control"] == PUBLIC


def test_a_drawing_is_kept_until_what_it_shows_has_changed(client, toy, django_assert_num_queries):
    pks = list(toy.agents.order_by("name").values_list("pk", flat=True))
    drawn = {name: f"/b/toy/plots/{name}" for name in ("tasks.svg", f"agent.svg?agent={pks[0]}")}
    first = {name: client.get(path) for name, path in drawn.items()}
    for name, path in drawn.items():
        with django_assert_num_queries(1):
            again = client.get(path)
        assert (again.content, again["Content-Type"]) == (first[name].content, "image/svg+xml")
    other = client.get(f"/b/toy/plots/agent.svg?agent={pks[1]}")
    assert other.content != first[f"agent.svg?agent={pks[0]}"].content
    unload(uuids=Submission.objects.filter(agent=pks[0]).values_list("uuid", flat=True), **REASONED)
    assert client.get("/b/toy/plots/tasks.svg").content != first["tasks.svg"].content
    Benchmark.objects.update(visibility=Visibility.PRIVATE)
    assert [client.get(path).status_code for path in drawn.values()] == [404, 404]


class TestRoom:
    def test_the_oldest_go(self, board, settings):
        settings.PAGES_KEPT = 3
        viewed, now = Viewed("n"), timezone.now()
        for i in range(6):
            viewed.get(f"n={i}")
            RenderedPage.objects.filter(rendered_at__gte=now).update(rendered_at=now - timedelta(days=9 - i))
        assert RenderedPage.objects.count() == 3
        forget()
        for i in (3, 4, 5):
            viewed.get(f"n={i}")
        assert viewed.n == 6
        viewed.get("n=0")
        assert viewed.n == 7

    def test_what_stays_is_not_written_again(self, board, settings):
        settings.PAGES_KEPT = 3
        viewed = Viewed("n")
        for i in range(5):
            viewed.get(f"n={i}")
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*), count(*) FILTER (WHERE xmax <> 0) FROM pages_renderedpage")
            assert cursor.fetchone() == (3, 0)  # none was locked

    def test_a_process_remembers_what_it_sent_last(self):
        pages = {name: (name.encode() * 40, "text/html") for name in "abc"}
        recent = caching.Recent(100)
        for name in "ab":
            recent.put(name, pages[name])
        assert recent.get("a") is pages["a"]
        recent.put("c", pages["c"])
        assert [recent.get(name) for name in "abc"] == [pages["a"], None, pages["c"]]

    def test_what_does_not_fit_is_not_remembered(self):
        recent = caching.Recent(100)
        recent.put("a", (b"x" * 101, "text/html"))
        assert recent.get("a") is None
        recent.put("b", (b"x" * 100, "text/html"))
        assert recent.get("b") is not None


def test_the_version_is_of_templates_and_code(monkeypatch, tmp_path):
    package = tmp_path / "leaderboard"
    for path in ("leaderboard/a.py", "selection/b.py", "analytics/c.py", "leaderboard/templates/d.html"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("1")
    monkeypatch.setattr(settings, "PACKAGE", package)
    monkeypatch.setattr(settings, "TEMPLATES", [{"DIRS": [package / "templates"]}])
    seen = {caching.version.__wrapped__()}
    for path in sorted(path for path in tmp_path.rglob("*.*") if path.is_file()):
        path.write_text("2")
        seen.add(caching.version.__wrapped__())
    assert len(seen) == 5
    (package / "notes.md").write_text("nothing that renders")
    assert caching.version.__wrapped__() in seen


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_broke_while_it_was_idle_is_replaced():
    load_text(csv_text(ladder(3, 20)))
    recompute(benchmark=Benchmark.objects.get(), as_of=AS_OF)
    connection.connection.close()
    assert caching.state_of("toy", None)[0] == Board.objects.get().pk


@pytest.mark.django_db(transaction=True)
def test_a_page_that_cannot_be_stored_is_sent_and_remembered(caplog):
    load_text(csv_text(ladder(3, 20)))
    recompute(benchmark=Benchmark.objects.get(), as_of=AS_OF)
    viewed = Viewed()
    with full_disk("pages_renderedpage"):
        pages = [viewed.get().content.decode() for _ in range(2)]
    assert pages == [TEXT] * 2
    assert (viewed.n, kept()) == (1, set())
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage().startswith("a rendered page was not stored: could not extend file")


@pytest.mark.django_db(transaction=True)
def test_eight_that_render_the_same_at_once_all_succeed():
    load_text(csv_text(ladder(3, 20)))
    recompute(benchmark=Benchmark.objects.get(), as_of=AS_OF)
    together, answers = Barrier(8, timeout=20), []

    def render(request):
        together.wait()
        return HttpResponse(TEXT)

    viewed = Viewed(answer=render)

    def ask():
        try:
            answers.append(viewed.get().content.decode())
        finally:
            connections.close_all()

    threads = [Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [TEXT] * 8
    assert len(kept()) == 1


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_breaks_before_the_query_is_prepared_is_a_loss_of_the_database():
    """Under the driver's own error the page would answer 500."""
    connection.close()
    connection.ensure_connection()
    pid = connection.connection.info.backend_pid
    named = ("host", "port", "user", "dbname", "password")
    given = {name: value for name, value in connection.get_connection_params().items() if name in named}
    with psycopg.connect(**given) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    with pytest.raises(OperationalError):
        caching._prepare(False, ())
    connection.close()
