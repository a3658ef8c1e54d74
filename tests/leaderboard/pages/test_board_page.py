import re
from datetime import UTC, datetime
from html import unescape

import pytest

from leaderboard.boards.reading import standings_of
from leaderboard.catalog.models import Agent, Benchmark, Policy
from leaderboard.studies.answers import gaps, printed, table, words
from tests.leaderboard.stored_validation import store
from tests.seen import rows_of, text_of
from tests.toys import csv_text, graded, in_subset, ladder, load_text, only, recomputed

AS_OF = datetime(2026, 6, 1, 12, 5, tzinfo=UTC)
TARGETS = ("subset", "full", "domain")


@pytest.fixture
def ongoing(publish):
    """16 complete agents on 40 tasks, one that ran the subset alone, one that broke off."""
    agents = ladder(16, 40)
    subset = in_subset(publish(agents, slug="first"))
    late = {"newcomer": only("1" * 40, subset), "stopped": only("1" * 40, subset[:3])}
    return publish(agents, late)


def row_of(response, name):
    return next(row for row in rows_of(response) if row[1].startswith(name))


@pytest.mark.parametrize("query", ["", "?target=full", "?target=domain&sort=-ties"])
def test_it_takes_four_queries(client, ongoing, django_assert_num_queries, query):
    # the benchmark; its latest board with subset, policy and calibration; the entries; the subset's tasks
    with django_assert_num_queries(4):
        client.get(f"/b/toy{query}")


def test_without_a_subset_it_takes_three(client, publish, django_assert_num_queries):
    publish(ladder(3, 20))
    with django_assert_num_queries(3):  # no subset, so none of its tasks
        client.get("/b/toy")


@pytest.mark.parametrize("target", TARGETS)
def test_its_sentences_are_those_of_the_answer(client, ongoing, target):
    """No face words a figure in its own way."""
    text, board = text_of(client.get(f"/b/toy?target={target}")), standings_of(ongoing)
    for said in (
        words.headline(board, target),
        words.scores_text(board, target),
        words.phase_text(board),
        words.covers_text(board, target),
        words.savings_text(board.savings),
        board.why,
        *board.not_measured,
        *words.other_notices(board),
        *printed.legend(board, target, table.columns(board, target)).values(),
    ):
        assert " ".join(said.split()) in text


@pytest.mark.parametrize("target", TARGETS)
def test_its_cells_are_those_of_the_answers_table(client, ongoing, target):
    board, response = standings_of(ongoing), client.get(f"/b/toy?target={target}")
    ranked = [row for row in table.rows(board, target) if row["Rank"]]
    seen = rows_of(response)
    assert [row[1].split(" ")[0] for row in seen] == [row["Agent"] for row in ranked]
    for cells, row in zip(ranked, seen, strict=True):
        assert row[0].startswith(cells["Rank"].replace("=", "= shared"))
        assert row[0].endswith(cells["May hold"])
        assert cells[table.HEADS[target]] in row[2]
        assert (
            ("naive" not in row[2]) if cells["naive"] == "–" else row[2].endswith(f"naive {cells['naive']}")
        )
        assert row[3].removesuffix("not known") == cells["95%"]
        assert cells[table.other_head(target)] in row[5]
        assert row[6].split() == [cells["Tasks"], cells["Trials"]]
        assert row[7].startswith(cells["Date"])


def test_counts_say_what_they_count(client, ongoing):
    text = text_of(client.get("/b/toy?target=full"))
    assert "Agents 17 ranked, of 18 listed" in text
    assert "Complete agents 16 ran all tasks" in text
    assert "1 more is listed without a rank" in text
    assert "A run is spared" in text


def test_one_ranked_agent_is_better_than_nobody(client, publish):
    publish({"only": "01" * 10, "stopped": "1" * 5 + "." * 15})
    text = text_of(client.get("/b/toy"))
    assert "One agent so far: only, 50.0% on all 20 tasks. 1 more is listed without a rank" in text
    assert "every other agent" not in text
    assert "best" not in text.split("Ranking")[0]


def test_a_standard_error_of_one_trial_is_marked_as_an_upper_bound(client, ongoing):
    line = next(line for line in standings_of(ongoing).agents if line.agent == "a08")
    assert line.at["full"].upper_bound
    row = row_of(client.get("/b/toy"), "a08")
    assert f"≤{100 * line.at['full'].se:.1f} upper bound" in row[2]
    assert "≤ The standard error is an upper bound: one trial a task." in text_of(client.get("/b/toy"))


def test_an_estimated_score_is_marked(client, ongoing):
    row = row_of(client.get("/b/toy?target=full"), "newcomer")
    score = next(line for line in standings_of(ongoing).agents if line.agent == "newcomer").at["full"].score
    assert row[2].startswith(f"~{100 * score:.1f} estimated")
    assert row[-1].endswith("estimated")
    assert "~ Estimated from the tasks that the agent ran" in text_of(client.get("/b/toy?target=full"))


@pytest.mark.parametrize("target", TARGETS)
def test_the_switch_says_what_is_chosen(client, ongoing, target):
    page = client.get(f"/b/toy?target={target}").content.decode()
    nav = re.search(r'<nav id="targets".*?</nav>', page, re.S)[0]
    ((address, label),) = re.findall(r'<a href="([^"]*)#ranking-title" aria-current="true">(.*?)</a>', nav)
    assert address == ("?" if target == "full" else f"?target={target}")
    assert label.lower() == words.tasks_of(standings_of(ongoing), target)


def test_the_default_is_the_policys_target(client, ongoing):
    values = Policy.objects.values().get(benchmark__slug="toy") | {"number": 2, "default_target": "domain"}
    Policy.objects.create(**{name: value for name, value in values.items() if name != "id"})
    board = recomputed(as_of=AS_OF)
    assert board.target == "domain"
    assert client.get("/b/toy").content == client.get("/b/toy?target=domain").content
    assert '<a href="?target=subset#ranking-title">' in client.get("/b/toy").content.decode()


def test_the_switch_and_the_order_carry_each_other_along(client, ongoing):
    page = client.get("/b/toy?target=subset&sort=-score").content.decode()
    assert 'href="?target=subset&amp;sort=score#ranking" data-column="score"' in page
    assert 'href="?target=domain&amp;sort=-score#ranking-title"' in page
    assert 'href="?sort=-score#ranking-title"' in page
    scores = [
        float(re.search(r"[\d.]+", row[2])[0])
        for row in rows_of(client.get("/b/toy?target=subset&sort=-score"))
    ]
    assert scores == sorted(scores)


ASKED = re.compile(r'<p class="notice"><bdi>(There is no [^<]*)</bdi></p>\n')


def without_asked(response):
    """The page but for what it says of its address."""
    return ASKED.sub("", response.content.decode())


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        ("nonsense", "nonsense"),
        ("<script>", "<script>"),
        ("%00", "�"),
        ("Full", "Full"),
        ("x" * 500, f"{'x' * 40}…"),
        ('"><img src=x onerror=alert(1)>`a`', '"><img src=x onerror=alert(1)>`a`'),
    ],
)
def test_an_unknown_target_is_named_and_the_default_shown(client, ongoing, target, shown):
    response = client.get(f"/b/toy?target={target}")
    (said,) = ASKED.findall(response.content.decode())
    assert unescape(said) == (
        f"There is no target “{shown}”, so that this is the board’s own; targets are full, subset or domain."
    )
    assert without_asked(response) == client.get("/b/toy").content.decode()


@pytest.mark.parametrize(
    "address", ["/b/toy", "/b/toy?target=full", "/b/toy?target=&sort=", "/b/toy?sort=-cost"]
)
def test_what_is_known_is_not_commented_on(client, ongoing, address):
    assert not ASKED.findall(client.get(address).content.decode())


def test_a_target_that_nothing_is_said_about_says_why(client, publish):
    board = standings_of(publish(ladder(3, 20)))
    response = client.get("/b/toy?target=subset")
    assert f"The subset: {words.clause(board.targets['subset'].reason)}." in text_of(response)
    assert "target=subset" not in response.content.decode()
    assert response.content == client.get("/b/toy?target=full").content


def test_what_rows_lack_is_told_with_the_reason(client, publish):
    board = standings_of(publish({"a": "0101", "b": "0011"}))
    text = text_of(client.get("/b/toy"))
    for gap in gaps(board):
        assert gap.reason in text
    assert all(row[4] == "–not known" for row in rows_of(client.get("/b/toy")))


def test_ties_unfold_without_a_script(client, ongoing):
    board = standings_of(ongoing)
    line = max(board.agents, key=lambda line: sum(last - first for first, last in line.at["full"].tied_with))
    names = [one.agent for one in board.agents]
    tied = [name for first, last in line.at["full"].tied_with for name in names[first : last + 1]]
    assert len(tied) > 2
    (row,) = re.findall(
        rf'<bdi>{line.agent}</bdi> <div class="made-of">.*?</tr>', client.get("/b/toy").content.decode(), re.S
    )
    details = re.search(r"<details><summary>(.*?)</summary>(.*?)</details>", row, re.S)
    assert details[1] == f"{len(tied)} agents"
    assert re.findall(r"<bdi>(.*?)</bdi>", details[2]) == tied


def test_that_money_was_not_measured_is_said(client, ongoing):
    assert "what that saves in money was not measured" in text_of(client.get("/b/toy"))


def priced(outcomes, **options):
    return csv_text(outcomes, **options).replace(",valid", ",valid,cost_usd").replace(",1\n", ",1,2.5\n")


def test_costs_are_shown_with_their_basis(client, publish):
    board = publish(priced(graded(16, 20)))
    text = text_of(client.get("/b/toy"))
    assert f"saves ${2.5 * (20 - board.subset.members.count()):.1f} in the median" in text
    assert "Cost $50.0 a run of all tasks, every task taken to cost the same" in text
    assert "$" in row_of(client.get("/b/toy"), "a08")[6]
    assert client.get("/api/v1/benchmarks/toy/board").json()["agents"][0]["cost_usd"] == 50


def test_costs_that_the_policy_hides_are_nowhere(client, publish):
    publish(ladder(3, 20), slug="other")
    values = Policy.objects.values().get() | {"number": 2, "show_costs": False}
    Policy.objects.create(**{name: value for name, value in values.items() if name != "id"})
    load_text(priced(graded(16, 20, prefix="g"), benchmark="Other"), slug="other")
    recomputed("other", as_of=AS_OF)
    assert "$" not in text_of(client.get("/b/other"))
    assert "$" not in text_of(client.get("/"))
    assert "Cost was not stated" not in text_of(client.get("/b/other")) + text_of(client.get("/"))
    shown = client.get("/api/v1/benchmarks/other/board").json()
    assert {line["cost_usd"] for line in shown["agents"]} == {None}
    assert {line["cost_basis"] for line in shown["agents"]} == {"hidden", "not stated"}
    assert (shown["savings"]["per_run"], shown["savings"]["so_far"]["saved"]) == (None, None)


def test_one_trial_each_makes_no_column(client, ongoing):
    assert "ICC" not in text_of(client.get("/b/toy"))


def test_repeated_trials_are_told_with_the_intraclass_correlation(client, publish):
    head, *rows = csv_text(ladder(6, 20)).splitlines()
    agents = [row for row in rows if row.startswith("Toy,a03")]
    noisy = [
        row.replace(",1,1,1", ",2,1,1").replace(",1,0,1", f",2,{j % 2},1") for j, row in enumerate(agents)
    ]
    board = standings_of(publish("\n".join([head, *rows, *noisy]) + "\n"))
    icc = next(line for line in board.agents if line.agent == "a03").icc
    response = client.get("/b/toy")
    (cell,) = [row["ICC"] for row in table.rows(board) if row["Agent"] == "a03"]
    assert f"{cell} {icc['lower']:.2f}–{icc['upper']:.2f}" in row_of(response, "a03")
    assert icc["note"] in text_of(response)


def test_flags_are_marked_and_told(client, publish):
    publish(ladder(6, 20) | {"copy": ladder(6, 20)["a03"]})
    response = client.get("/b/toy")
    assert '<a class="mark flagged" href="#flags">' in response.content.decode()
    assert "copy The same outcome as a03 on every task." in text_of(response)


def test_who_is_not_ranked_stands_apart_with_the_reason_and_the_bounds(client, ongoing):
    response, board = client.get("/b/toy"), standings_of(ongoing)
    (row,) = rows_of(response, "unranked")
    told = next(line for line in board.agents if line.agent == "stopped").at["full"]
    assert row[0].startswith("stopped")
    assert row[1] == told.reason
    low, high = (100 * end for end in told.bounds)
    assert row[2] == f"{low:.1f} to {high:.1f}%, whatever the missing {told.n_missing} outcomes are"
    assert told.bounds == (3 / board.n_tasks, 1)
    assert not any(row[1].startswith("stopped") for row in rows_of(response))


def test_what_is_stated_of_an_agent_stands_in_its_row(client, publish):
    publish(ladder(6, 20))
    Agent.objects.filter(name="a03").update(version="v7 <b>", organisation="Ada & Co")
    load_text(csv_text({"late": "01" * 10}))
    recomputed(as_of=AS_OF)
    row = row_of(client.get("/b/toy"), "a03")
    assert row[1].endswith("More Version v7 <b> Organisation Ada & Co")


def test_the_notices_stand_before_the_ranks(client, publish):
    board = standings_of(publish({"a": "01" * 10} | {f"b{i}": "1" * 5 + "." * 15 for i in range(3)}))
    text = text_of(client.get("/b/toy"))
    others = words.other_notices(board)
    assert any("`missing = zero` counts missing outcomes as failures" in notice for notice in others)
    assert all(text.index(notice.replace("`", "")) < text.index("Ranking") for notice in others)
    assert "<code>missing = zero</code> counts" in client.get("/b/toy").content.decode()


def test_the_verdict_of_a_validation_leads_to_its_page(client, publish):
    board = publish(ladder(16, 20))
    store(board.benchmark)
    board = recomputed(as_of=AS_OF)
    said = words.verdict_text(standings_of(board))
    assert said.startswith("Does the subset rank like all tasks?")
    assert f"{said} Can I trust it?" in text_of(client.get("/b/toy"))


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
    ("outcomes", "phase"),
    [
        (ladder(3, 20), "Cold start"),
        (ladder(8, 20), "Provisional"),
        (dict.fromkeys("abcdefg", "0" * 20) | {"h": "1" * 20}, "Unsuited"),
    ],
)
def test_each_phase_is_told_in_words(client, publish, outcomes, phase):
    board = standings_of(publish(outcomes))
    text = text_of(client.get("/b/toy"))
    assert f"{phase} {words.phase_text(board)}" in text
    assert board.why in text
    assert ("Why all tasks:" in text) == (board.subset is None)


def test_every_phase_has_a_sentence():
    from leaderboard.boards.models import Phase

    assert set(words.PHASES) == set(Phase.values)


def test_names_are_escaped_wherever_they_stand(client, publish):
    publish(
        dict.fromkeys(["<script>alert(1)</script>", "<b>"], "01" * 10) | ladder(3, 20), title="A & <i>B</i>"
    )
    page = client.get("/b/toy").content.decode()
    assert "<script>alert" not in page
    assert "<i>" not in page
    assert "<b>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "A &amp; &lt;i&gt;B&lt;/i&gt;" in page


@pytest.mark.parametrize("sort", ["agent", "score", "ties", "subset", "full", "trials", "rank"])
def test_it_is_sorted_by_the_column_asked_for(client, ongoing, sort):
    natural = [row[1] for row in rows_of(client.get(f"/b/toy?sort={sort}"))]
    reverse = [row[1] for row in rows_of(client.get(f"/b/toy?sort=-{sort}"))]
    assert sorted(natural) == sorted(reverse)
    assert natural[0] != reverse[0]


def test_full_scores_descend_when_sorted_by_them(client, ongoing):
    scores = [float(re.search(r"[\d.]+", row[5])[0]) for row in rows_of(client.get("/b/toy?sort=full"))]
    assert scores == sorted(scores, reverse=True)


def test_the_sorted_column_says_so_and_its_link_turns_the_order_round(client, ongoing):
    html = client.get("/b/toy?sort=subset").content.decode()
    assert html.count("aria-sort") == 1
    assert '<th scope="col" class="col-subset" aria-sort="descending"><a href="?sort=-subset#ranking"' in html
    html = client.get("/b/toy?sort=-subset").content.decode()
    assert 'aria-sort="ascending"><a href="?sort=subset#ranking"' in html


@pytest.mark.parametrize("sort", ["-", "nonsense", "--rank", "<script>", "score;", "%00"])
def test_an_unknown_order_is_named_and_the_ranks_order_shown(client, ongoing, sort):
    response = client.get(f"/b/toy?sort={sort}")
    (said,) = ASKED.findall(response.content.decode())
    assert unescape(said).startswith(f"There is no order by “{'�' if sort == '%00' else sort}”, so that")
    assert without_asked(response) == client.get("/b/toy").content.decode()


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
    assert len(rows_of(response, "unranked")) == 2


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
