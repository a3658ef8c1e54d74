import re
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest

from leaderboard.catalog.models import Benchmark
from leaderboard.operations.services import recompute
from tests.toys import csv_text, ladder, load_text

AS_OF = datetime(2026, 6, 1, 12, 5, tzinfo=UTC)


class Tables(HTMLParser):
    """The text of each row's cells, by the id or class of the table."""

    def __init__(self, html):
        super().__init__()
        self.tables, self.cell = {}, None
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        if tag == "table":
            self.rows = self.tables.setdefault(dict(attributes)["class"], [])
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.cell = []

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.rows[-1].append(" ".join("".join(self.cell).split()))
            self.cell = None

    def handle_data(self, text):
        if self.cell is not None:
            self.cell.append(text)


def table(response, name="ranking"):
    """The rows of a table without its head."""
    return Tables(response.content.decode()).tables[name][1:]


def text_of(response):
    main = re.search(r"<main.*</main>", response.content.decode(), re.S)[0]
    return " ".join(re.sub(r"<[^>]+>", " ", main).split())


@pytest.fixture
def publish(db):
    """Load outcomes and publish the board."""

    def do(outcomes, slug="toy", **fields):
        load_text(csv_text(outcomes), slug=slug)
        Benchmark.objects.filter(slug=slug).update(**fields)
        return recompute(benchmark=Benchmark.objects.get(slug=slug), as_of=AS_OF)[0]

    return do


@pytest.fixture
def ongoing(publish):
    """16 complete agents on 40 tasks, one that ran the subset alone, one that broke off."""
    agents = ladder(16, 40)
    subset = set(publish(agents).subset.tasks.values_list("name", flat=True))
    names = [f"t{j:02d}" for j in range(40)]
    agents["newcomer"] = "".join("1" if name in subset else "." for name in names)
    agents["stopped"] = "".join("1" if name in sorted(subset)[:3] else "." for name in names)
    return publish(agents)


def test_it_takes_four_queries(client, ongoing, django_assert_num_queries):
    # the benchmark; its latest board with subset, policy and calibration; the entries; the subset's tasks
    with django_assert_num_queries(4):
        client.get("/b/toy")


def test_without_a_subset_it_takes_three(client, publish, django_assert_num_queries):
    publish(ladder(3, 20))
    with django_assert_num_queries(3):
        client.get("/b/toy")


def test_it_says_what_is_ranked_on_what_and_why(client, ongoing):
    text = text_of(client.get("/b/toy"))
    assert f"17 AI agents, ranked by mean score on {ongoing.subset.members.count()} of 40 tasks" in text
    assert "Ongoing" in text
    assert ongoing.why in text
    assert "16 ran all tasks" in text
    assert "leaves out most sources of error" in text


def test_ranks_ascend_and_equal_scores_share_one(client, ongoing):
    rows = table(client.get("/b/toy"))
    ranks = [int(row[0].split("=")[0]) for row in rows]
    assert ranks == sorted(ranks)
    assert len(rows) == 17
    shared = [row for row in rows if "shared" in row[0]]
    assert all(ranks.count(int(row[0].split("=")[0])) > 1 for row in shared)
    assert len(shared) == sum(ranks.count(rank) > 1 for rank in ranks) > 0


def test_a_row_says_what_is_stored_of_the_agent(client, ongoing):
    entry = ongoing.entries.get(name="a08")
    row = next(row for row in table(client.get("/b/toy")) if row[1].startswith("a08"))
    assert row[1] == "a08 Loop · Model a08"
    assert row[2] == f"{100 * entry.score:.1f} ±{100 * entry.naive_se:.1f}"
    assert row[4] == f"{100 * entry.full_score:.1f} ±{100 * entry.full_naive_se:.1f}"
    assert row[5:] == [str(entry.n_scored), "40", "2026-01-05", "full"]


def test_a_calibrated_full_score_is_marked(client, ongoing):
    entry = ongoing.entries.get(name="newcomer")
    row = next(row for row in table(client.get("/b/toy")) if row[1].startswith("newcomer"))
    assert row[4] == f"~{100 * entry.full_score:.1f} calibrated"
    assert row[-1] == "subset"


def test_who_is_not_ranked_stands_apart_with_the_reason(client, ongoing):
    response = client.get("/b/toy")
    (row,) = table(response, "unranked")
    assert row[0].startswith("stopped")
    assert row[1] == ongoing.entries.get(name="stopped").unranked
    assert not any(row[1].startswith("stopped") for row in table(response))


def test_marks_are_explained_where_they_occur(client, ongoing):
    text = text_of(client.get("/b/toy"))
    assert "Has valid outcomes on at least 95% of all tasks." in text
    assert "Ranked on the subset; has not run all tasks." in text
    assert "lack a valid outcome." not in text


def test_every_task_of_the_subset_is_listed_with_its_pass_rate(client, ongoing):
    text = text_of(client.get("/b/toy"))
    for member in ongoing.subset.members.select_related("task"):
        assert f"{member.task.name} {100 * member.pass_rate:.1f}%" in text


def test_it_names_its_version(client, ongoing):
    text = text_of(client.get("/b/toy"))
    assert "As of 1 June 2026, 12:05 UTC" in text
    assert f"Data version {ongoing.data_version}" in text
    assert ongoing.digest in text
    assert b'href="/api/v1/benchmarks/toy/board"' in client.get("/b/toy").content


@pytest.mark.parametrize(
    ("outcomes", "phase", "said"),
    [
        (ladder(3, 20), "Cold start", "ranked by mean score on all 20 tasks"),
        (ladder(8, 20), "Provisional", "chosen anew as more agents run all tasks"),
        (dict.fromkeys("abcdefg", "0" * 20) | {"h": "1" * 20}, "Unsuited", "No subset"),
    ],
)
def test_each_phase_is_told_in_words(client, publish, outcomes, phase, said):
    board = publish(outcomes)
    response = client.get("/b/toy")
    text = text_of(response)
    assert f"{phase} " in text
    assert said in text
    assert board.why in text
    assert ("Why all tasks:" in text) == (board.subset is None)
    if board.subset is None:
        assert "subset score" not in text.lower()
        assert all(len(row) == 8 for row in table(response))


def test_names_are_escaped(client, publish):
    publish({"<script>alert(1)</script>": "1" * 20} | ladder(3, 20), title="A & <i>B</i>")
    html = client.get("/b/toy").content.decode()
    assert "<script>alert" not in html
    assert "<i>" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "A &amp; &lt;i&gt;B&lt;/i&gt;" in html


@pytest.mark.parametrize("sort", ["agent", "score", "full", "trials", "rank"])
def test_it_is_sorted_by_the_column_asked_for(client, ongoing, sort):
    natural = [row[1] for row in table(client.get(f"/b/toy?sort={sort}"))]
    reverse = [row[1] for row in table(client.get(f"/b/toy?sort=-{sort}"))]
    assert sorted(natural) == sorted(reverse)
    assert natural[0] != reverse[0]


def test_full_scores_descend_when_sorted_by_them(client, ongoing):
    scores = [float(re.search(r"[\d.]+", row[4])[0]) for row in table(client.get("/b/toy?sort=full"))]
    assert scores == sorted(scores, reverse=True)


def test_the_sorted_column_says_so_and_its_link_turns_the_order_round(client, ongoing):
    html = client.get("/b/toy?sort=full").content.decode()
    assert html.count("aria-sort") == 1
    assert '<th scope="col" class="col-full" aria-sort="descending"><a href="?sort=-full#ranking"' in html
    html = client.get("/b/toy?sort=-full").content.decode()
    assert 'aria-sort="ascending"><a href="?sort=full#ranking"' in html


@pytest.mark.parametrize("sort", ["", "-", "nonsense", "--rank", "<script>", "score;", "%00"])
def test_an_unknown_order_is_ignored(client, ongoing, sort):
    assert client.get(f"/b/toy?sort={sort}").content == client.get("/b/toy").content


def test_without_a_board_it_says_what_happens_next(client, db, django_assert_num_queries):
    Benchmark.objects.create(slug="new", title="New")
    with django_assert_num_queries(2):  # the benchmark; no board
        response = client.get("/b/new")
    assert response.status_code == 200
    assert "No board yet" in text_of(response)
    assert "manage.py recompute new" in text_of(response)


def test_a_board_without_a_ranked_agent_stands(client, publish):
    publish({"a": "1" * 5 + "." * 15, "b": "." * 5 + "1" * 15})
    response = client.get("/b/toy")
    assert "No agent is ranked yet." in text_of(response)
    assert len(table(response, "unranked")) == 2


@pytest.mark.parametrize(
    "fields", [{"visibility": "private"}, {"hidden_at": AS_OF, "hidden_reason": "a dispute"}]
)
def test_what_is_not_public_does_not_exist(client, publish, fields):
    publish(ladder(3, 20), **fields)
    assert client.get("/b/toy").status_code == 404
    assert client.get("/b/toy").content == client.get("/b/none").content


def test_an_unlisted_one_is_read_by_address_and_not_indexed(client, publish):
    publish(ladder(3, 20), visibility="unlisted")
    assert b'<meta name="robots" content="noindex">' in client.get("/b/toy").content


def test_frozen_intake_and_changed_data_are_told(client, publish):
    publish(ladder(3, 20), frozen_at=AS_OF, frozen_reason="the season is over")
    Benchmark.objects.update(data_version=7)
    text = text_of(client.get("/b/toy"))
    assert "Intake is frozen since 2026-06-01 : the season is over" in text
    assert "The data have changed" in text


def test_an_unchanged_page_is_not_sent_again(client, ongoing):
    first = client.get("/b/toy")
    assert first["Cache-Control"] == "public, max-age=0, must-revalidate"
    again = client.get("/b/toy", headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert client.get("/b/toy?sort=full", headers={"If-None-Match": first["ETag"]}).status_code == 200


def test_it_is_only_read(client, ongoing):
    assert client.post("/b/toy").status_code == 405
    assert client.head("/b/toy").status_code == 200


def test_nothing_in_it_needs_more_than_the_policy_allows(client, ongoing):
    response = client.get("/b/toy")
    html = response.content.decode()
    assert "style-src 'self'" in response["Content-Security-Policy"]
    assert not re.search(r"<[^>]+\s(style|on\w+)=", html)
    assert "<style" not in html
    assert all(" src=" in tag for tag in re.findall(r"<script[^>]*>", html))
    assert not re.search(r'(src|href)="(https?:)?//', html)
