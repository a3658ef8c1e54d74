import re
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest

from leaderboard.catalog.models import Benchmark, Policy
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


@pytest.mark.parametrize("query", ["", "?target=full", "?target=domain&sort=-ties"])
def test_it_takes_four_queries(client, ongoing, django_assert_num_queries, query):
    # the benchmark; its latest board with subset, policy and calibration; the entries; the subset's tasks
    with django_assert_num_queries(4):
        client.get(f"/b/toy{query}")


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
    assert "first place" in text
    assert "answers another question" in text


def test_ranks_ascend_and_equal_scores_share_one(client, ongoing):
    rows = table(client.get("/b/toy"))
    ranks = [int(re.match(r"\d+", row[0])[0]) for row in rows]
    assert ranks == sorted(ranks)
    assert len(rows) == 17
    shared = [row for row in rows if "shared" in row[0]]
    assert all(ranks.count(int(re.match(r"\d+", row[0])[0])) > 1 for row in shared)
    assert len(shared) == sum(ranks.count(rank) > 1 for rank in ranks) > 0


def row_of(response, name):
    return next(row for row in table(response) if row[1].startswith(name))


def percents(*values):
    return [f"{100 * min(max(value, 0), 1):.1f}" for value in values]


def test_a_row_says_what_is_stored_of_the_agent(client, ongoing):
    entry = ongoing.entries.get(name="a08")
    told, full = entry.targets["subset"], entry.targets["full"]
    row = row_of(client.get("/b/toy"), "a08")
    score, se, naive = percents(entry.score, told["se"], told["naive_se"])
    assert row[0].startswith(f"{entry.rank} ")
    assert row[0].endswith(f" {told['rank_lower']}–{told['rank_upper']}")
    assert row[1] == "a08 Loop · Model a08"
    assert row[2] == f"{score} ±{se} naive ±{naive}"
    assert row[3] == "–".join(percents(told["lower"], told["upper"]))
    assert row[4].startswith(f"{len(told['tied_with'])} agents")
    full_score, full_se = percents(entry.full_score, full["se"])
    assert row[5] == f"{full_score} ±{full_se} " + "–".join(percents(full["lower"], full["upper"]))
    assert row[6:] == [f"{entry.n_scored} 40", "2026-01-05 full"]


def test_a_calibrated_full_score_is_marked_with_its_source_and_interval(client, ongoing):
    entry = ongoing.entries.get(name="newcomer")
    told, (full_score,) = entry.full_interval, percents(entry.full_score)
    row = row_of(client.get("/b/toy"), "newcomer")
    assert row[5] == f"~{full_score} calibrated {told['source']} " + "–".join(
        percents(told["lower"], told["upper"])
    )
    assert row[-1].endswith("subset")
    assert f"calibrated score comes from: {told['note']}." in text_of(client.get("/b/toy"))
    row = row_of(client.get("/b/toy?target=full"), "newcomer")
    (error,) = percents(entry.targets["full"]["se"])
    assert row[2] == f"~{full_score} calibrated ±{error} {told['source']}"


def test_a_calibrated_full_score_without_an_interval_says_why(client, publish):
    subset = set(publish(ladder(16, 40)).subset.tasks.values_list("name", flat=True))
    marks = "".join("1" if f"t{j:02d}" in subset else "." for j in range(40))
    load_text(csv_text({"newcomer": marks}).replace("newcomer,Loop", "newcomer,Another"))
    board = recompute(benchmark=Benchmark.objects.get(), as_of=AS_OF)[0]
    reason = board.entries.get(name="newcomer").full_interval["reason"]
    assert "–" not in row_of(client.get("/b/toy"), "newcomer")[5]
    assert f"No interval of the full score of newcomer : {reason}." in text_of(client.get("/b/toy"))


TARGETS = ("subset", "full", "domain")


@pytest.mark.parametrize("target", TARGETS)
def test_the_switch_shows_what_is_stored_for_the_target(client, ongoing, target):
    response = client.get(f"/b/toy?target={target}")
    for entry in ongoing.entries.filter(rank__isnull=False):
        told, row = entry.targets.get(target, {}), row_of(response, entry.name)
        if told.get("score") is None:
            assert row[0] == row[2] == "–none"
            assert row[4] == "–not known"
            continue
        assert percents(told["score"])[0] in row[2]
        if "rank_lower" in told:
            assert row[0].endswith(f"{told['rank_lower']}–{told['rank_upper']}")
            assert row[4].startswith((f"{len(told['tied_with'])} agents", *told["tied_with"]))


@pytest.mark.parametrize("target", TARGETS)
def test_the_switch_says_what_is_chosen_and_what_it_covers(client, ongoing, target):
    response = client.get(f"/b/toy?target={target}")
    html, text = response.content.decode(), text_of(response)
    nav = re.search(r'<nav id="targets".*?</nav>', html, re.S)[0]
    (chosen,) = re.findall(r'<a href="([^"]*)#ranking-title" aria-current="true">', nav)
    assert chosen == ("?" if target == "subset" else f"?target={target}")
    assert html_text(ongoing.targets[target]["covers"]) in text
    assert ("the board itself ranks on the subset" in text) == (target != "subset")


def html_text(text):
    return text.replace("'", "&#x27;")


def test_the_default_is_the_policys_target(client, publish):
    policy = Policy.objects.filter(benchmark=publish(ladder(16, 40)).benchmark)
    values = policy.values().get() | {"number": 2, "default_target": "domain"}
    Policy.objects.create(**{name: value for name, value in values.items() if name != "id"})
    board = recompute(benchmark=Benchmark.objects.get(), as_of=AS_OF)[0]
    assert board.policy.default_target == "domain"
    assert client.get("/b/toy").content == client.get("/b/toy?target=domain").content
    assert html_text(board.targets["domain"]["covers"]) in text_of(client.get("/b/toy"))
    assert '<a href="?target=subset#ranking-title">' in client.get("/b/toy").content.decode()


def test_the_switch_and_the_order_carry_each_other_along(client, ongoing):
    html = client.get("/b/toy?target=full&sort=-score").content.decode()
    assert 'href="?target=full&amp;sort=score#ranking" data-column="score"' in html
    assert 'href="?target=domain&amp;sort=-score#ranking-title"' in html
    assert 'href="?sort=-score#ranking-title"' in html
    scores = [
        float(re.search(r"[\d.]+", row[2])[0]) for row in table(client.get("/b/toy?target=full&sort=-score"))
    ]
    assert scores == sorted(scores)


@pytest.mark.parametrize("target", ["nonsense", "<script>", "subset", "%00", "Full"])
def test_an_unknown_target_is_ignored(client, ongoing, target):
    assert client.get(f"/b/toy?target={target}").content == client.get("/b/toy").content


def test_a_target_that_nothing_is_said_about_says_why(client, publish):
    board = publish(ladder(3, 20))
    response = client.get("/b/toy?target=subset")
    text = text_of(response)
    assert f"The subset: {board.targets['subset']['reason']}." in text
    assert "target=subset" not in response.content.decode()
    assert response.content == client.get("/b/toy?target=full").content


def test_without_rank_intervals_the_reason_is_told(client, publish):
    board = publish({"a": "0101", "b": "0011"})
    reason = board.targets["full"]["reason"]
    assert reason
    assert reason in text_of(client.get("/b/toy"))
    assert all(row[4] == "–not known" for row in table(client.get("/b/toy")))


def test_ties_unfold_without_a_script(client, ongoing):
    entry = max(
        ongoing.entries.all(), key=lambda entry: len(entry.targets.get("subset", {}).get("tied_with", []))
    )
    tied = entry.targets["subset"]["tied_with"]
    assert len(tied) > 2
    (row,) = re.findall(
        rf'<bdi>{entry.name}</bdi> <span class="made-of">.*?</tr>',
        client.get("/b/toy").content.decode(),
        re.S,
    )
    details = re.search(r"<details><summary>(.*?)</summary>(.*?)</details>", row, re.S)
    assert details[1] == f"{len(tied)} agents"
    assert sorted(re.findall(r"<bdi>(.*?)</bdi>", details[2])) == tied


def test_what_a_tie_is_and_what_was_never_measured_is_said(client, ongoing):
    text = text_of(client.get("/b/toy"))
    assert "A may be tied with B, and B with C, while A is better than C" in text
    assert ongoing.not_measured
    assert all(source in text for source in ongoing.not_measured)


def test_savings_in_tasks_and_that_money_was_not_measured(client, ongoing):
    text = text_of(client.get("/b/toy"))
    n = ongoing.subset.members.count()
    assert f"A run on the subset takes {n} of 40 tasks" in text
    assert "what that saves in money was not measured" in text


def test_money_is_shown_unless_the_policy_hides_costs(client, publish):
    text = csv_text(ladder(16, 20)).replace(",valid", ",valid,cost_usd").replace(",1\n", ",1,2.5\n")
    load_text(text)
    board = recompute(benchmark=Benchmark.objects.get(), as_of=AS_OF)[0]
    n_saved = 20 - board.subset.members.count()
    assert f"saves {2.5 * n_saved:.2f} USD in the median" in text_of(client.get("/b/toy"))
    values = Policy.objects.values().get() | {"number": 2, "show_costs": False}
    Policy.objects.create(**{name: value for name, value in values.items() if name != "id"})
    recompute(benchmark=Benchmark.objects.get(), as_of=AS_OF)
    assert "USD" not in text_of(client.get("/b/toy"))


def test_one_trial_each_is_said_once_and_makes_no_column(client, ongoing):
    response = client.get("/b/toy")
    assert "No intraclass correlation of 17 agents : one trial per task." in text_of(response)
    assert "ICC" not in text_of(response)


def test_repeated_trials_are_told_with_the_intraclass_correlation(client, db):
    head, *rows = csv_text(ladder(6, 20)).splitlines()
    agents = [row for row in rows if row.startswith("Toy,a03")]
    noisy = [
        row.replace(",1,1,1", ",2,1,1").replace(",1,0,1", f",2,{j % 2},1") for j, row in enumerate(agents)
    ]
    load_text("\n".join([head, *rows, *noisy]) + "\n")
    entry = recompute(benchmark=Benchmark.objects.get(), as_of=AS_OF)[0].entries.get(name="a03")
    response = client.get("/b/toy")
    (told,) = [cell for cell in row_of(response, "a03") if "trials a task" in cell]
    assert told.startswith(f"{entry.icc['icc']:.2f} {entry.icc['lower']:.2f}–{entry.icc['upper']:.2f}")
    assert told.endswith(" 2.0 trials a task")
    assert "unreliable" not in told
    assert "No intraclass correlation of 5 agents" in text_of(response)


def test_flags_are_marked_and_told(client, publish):
    board = publish(ladder(6, 20) | {"copy": ladder(6, 20)["a03"]})
    flagged = [entry for entry in board.entries.all() if entry.flags]
    assert {entry.name for entry in flagged} == {"a03", "copy"}
    response = client.get("/b/toy")
    text = text_of(response)
    assert '<a class="mark flagged" href="#flags">' in response.content.decode()
    assert "copy The same outcome as a03 on every task." in text


def test_linked_agents_are_explained(client, publish):
    agents = ladder(16, 40)
    subset = sorted(publish(agents).subset.tasks.values_list("name", flat=True))
    agents["partly"] = "".join(
        "1" if f"t{j:02d}" in subset[: len(subset) * 3 // 4] else "." for j in range(40)
    )
    assert publish(agents).entries.get(name="partly").marks == ["linked"]
    assert "Has run at least half of the subset." in text_of(client.get("/b/toy"))


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
        assert all(len(row) == 7 for row in table(response))


def test_names_are_escaped_wherever_they_stand(client, publish):
    board = publish(
        dict.fromkeys(["<script>alert(1)</script>", "<b>"], "01" * 10) | ladder(3, 20), title="A & <i>B</i>"
    )
    assert any("<b>" in entry.targets["full"]["tied_with"] for entry in board.entries.all())
    assert any("<b>" in flag for entry in board.entries.all() for flag in entry.flags)
    html = client.get("/b/toy").content.decode()
    assert "<script>alert" not in html
    assert "<i>" not in html
    assert "<b>" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "A &amp; &lt;i&gt;B&lt;/i&gt;" in html


@pytest.mark.parametrize("sort", ["agent", "score", "ties", "subset", "full", "trials", "rank"])
def test_it_is_sorted_by_the_column_asked_for(client, ongoing, sort):
    natural = [row[1] for row in table(client.get(f"/b/toy?sort={sort}"))]
    reverse = [row[1] for row in table(client.get(f"/b/toy?sort=-{sort}"))]
    assert sorted(natural) == sorted(reverse)
    assert natural[0] != reverse[0]


def test_full_scores_descend_when_sorted_by_them(client, ongoing):
    scores = [float(re.search(r"[\d.]+", row[5])[0]) for row in table(client.get("/b/toy?sort=full"))]
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
