import csv
import io
import re
import xml.etree.ElementTree as ET
from datetime import UTC, datetime
from html import unescape

import pytest
from django.core.management import CommandError, call_command

from leaderboard.boards.queries import standings_of
from leaderboard.catalog.models import Agent, Benchmark, Policy
from leaderboard.studies.answers import printed, table, words
from leaderboard.submissions.models import Submission
from tests.leaderboard.stored_validation import store
from tests.seen import Tables, rows_of, text_of
from tests.toys import csv_text, graded, in_subset, ladder, load_text, only, recomputed, rows_text

AS_OF = datetime(2026, 6, 1, 12, 5, tzinfo=UTC)
TARGETS = ("subset", "full", "domain")


@pytest.fixture
def ongoing(publish):
    """16 complete agents on 40 tasks, one that ran the subset alone, one that broke off."""
    agents = ladder(16, 40)
    subset = in_subset(publish(agents, slug="first"))
    late = {"newcomer": only("1" * 40, subset), "stopped": only("1" * 40, subset[:3])}
    return publish(agents, late)


RANK, HELD, AGENT, SCORE, INTERVAL, OTHER = range(1, 7)  # columns of the plain view, on a board with a subset


def row_of(response, name):
    """The cells of an agent by the heads of the columns, without what stands under these."""
    heads = [head.split(" ")[0] for head in heads_of(response)]
    place = heads.index("Agent")
    row = next(row for row in rows_of(response) if row[place].startswith(name))
    return dict(zip(heads, row, strict=True))


def heads_of(response):
    return Tables(response.content.decode()).tables["ranking"][0]


def marked(response, mark):
    """The numbers of the agents in the rows that have a mark: filled is first, outlined is tied."""
    page = response.content.decode()
    rows = re.findall(r'<tr(?: class="([^"]*)")?><td class="c-check">.*?value="(\d+)"', page)
    return {int(pk) for css, pk in rows if mark in css.split()}


def dots_of(page, *marks):
    """What is said at the dots of a plot that have a mark, of those that no filter leaves out."""
    dot = r'<a href="[^"]*" tabindex="-1"( class="dim"[^>]*)?><circle class="(\w+) [^>]*><title>(.*?)</title>'
    return [title for dim, css, title in re.findall(dot, page) if css in marks and not dim]


@pytest.mark.parametrize("target", TARGETS)
def test_its_sentences_are_those_of_the_answer(client, ongoing, target):
    """No face words a figure in its own way."""
    text, board = text_of(client.get(f"/b/toy?target={target}")), standings_of(ongoing)
    for said in (
        words.headline(board, target),
        words.second_run_text(board, target),
        words.scores_text(board, target),
        words.phase_text(board, ongoing.policy.assignment),
        words.covers_text(board, target),
        words.savings_text(board.savings),
        board.why,
        words.bounded_text(board),
        "The intervals do not include: " + " ".join(words.in_no_interval(board)),
        *words.other_notices(board),
    ):
        assert " ".join(said.split()) in text
    wide = text_of(client.get(f"/b/toy?target={target}&view=all"))
    legend = printed.legend(board, target, table.columns(board, target)).values()
    assert all(" ".join(said.split()) in wide for said in legend)


@pytest.mark.parametrize("target", TARGETS)
def test_the_verdict_is_bold_in_its_first_clause(client, ongoing, target):
    answer, rest = words.headline_parts(standings_of(ongoing), target)
    page = unescape(client.get(f"/b/toy?target={target}").content.decode())
    assert f'<p class="verdict"><bdi><b>{answer}</b> {rest}</bdi></p>' in page
    assert f"{answer} {rest}" == words.headline(standings_of(ongoing), target)


@pytest.mark.parametrize("view", ["", "&view=all"])
@pytest.mark.parametrize("target", TARGETS)
def test_its_cells_are_those_of_the_answers_table(client, ongoing, target, view):
    board, response = standings_of(ongoing), client.get(f"/b/toy?target={target}{view}")
    ranked = [row for row in table.rows(board, target) if row["Rank"]]
    seen, heads = rows_of(response), heads_of(response)
    place = {head.split(" ")[0]: i for i, head in enumerate(heads)}
    other = next(head for head in heads if head.startswith(("On ", "All ")))
    ranks, interval = (i for i, head in enumerate(heads) if head.startswith("95%"))
    assert [row[place["Agent"]].split(" ")[0] for row in seen] == [row["Agent"] for row in ranked]
    for cells, row in zip(ranked, seen, strict=True):
        assert row[place["Rank"]] == cells["Rank"]
        assert row[ranks].removesuffix("not known") == cells["95% rank range"]
        score = said(row[place["Ranking" if target == "subset" else "Score"]])
        assert score.split(" ±")[0] == cells[table.HEADS[target]]
        assert row[interval].removesuffix("not known") == cells["95% interval"]
        assert said(row[place[other.split(" ")[0]]]) == cells[table.other_head(target)]
        assert row[place["Date"]] == cells["Date"][: 10 if view else 7]
        if view:
            assert row[place["SE"]].removesuffix("not known").split(" ")[0] == cells["SE"]
            assert row[place["naive"]].removesuffix("not known") == cells["naive"]
            assert row[place["Ties"]] == cells["Ties"]
            assert row[place["Tasks"]] == cells["Tasks"]


def said(cell):
    """What a cell shows, without the words for those who do not see its sign."""
    return cell.replace("~estimated ", "~")


def test_a_score_stands_under_its_task_set(client, ongoing):
    m, k = ongoing.n_tasks, standings_of(ongoing).subset.size
    assert {f"Score % all {m} tasks", f"On {k} ranking tasks %"} <= set(heads_of(client.get("/b/toy")))
    assert {f"Ranking tasks % {k} tasks", f"All {m} tasks %"} <= set(
        heads_of(client.get("/b/toy?target=subset"))
    )
    assert "Score % tasks like these" in heads_of(client.get("/b/toy?target=domain"))


def test_counts_say_what_they_count(client, ongoing):
    text = text_of(client.get("/b/toy?target=full"))
    assert "Agents 17 of 18 ranked, 16 with results on at least 95% of the tasks" in text
    assert "1 agent is not ranked" in text
    assert "All columns · CSV of these rows 17 agents" in text


def test_one_ranked_agent_is_better_than_nobody(client, publish):
    publish({"only": "01" * 10, "stopped": "1" * 5 + "." * 15})
    text = text_of(client.get("/b/toy"))
    assert "Only only is ranked: 50.0 ± 23.4%. 1 agent is not ranked" in text
    assert "every other agent" not in text
    assert "best" not in text.split(" Find ")[0].split("How sure this is")[0]


def test_a_standard_error_of_one_trial_is_marked_as_an_upper_bound(client, ongoing):
    line = next(line for line in standings_of(ongoing).agents if line.agent == "a08")
    assert line.at["full"].upper_bound
    row = row_of(client.get("/b/toy?view=all"), "a08")
    assert f"≤{100 * line.at['full'].se:.1f} upper bound" == row["SE"]
    assert "≤ Upper bound, because each task has one trial." in text_of(client.get("/b/toy?view=all"))


def test_an_estimated_score_is_marked(client, ongoing):
    row = row_of(client.get("/b/toy?target=full&view=all"), "newcomer")
    score = next(line for line in standings_of(ongoing).agents if line.agent == "newcomer").at["full"].score
    assert row["Score"] == f"~estimated {100 * score:.1f}"
    assert "estimated" in row["Notes"]
    assert "~ Estimated from a part of the tasks or trials" in text_of(client.get("/b/toy?target=full"))


def switch_of(response):
    nav = re.search(r'<nav id="targets".*?</nav>', response.content.decode(), re.S)[0]
    return [
        (address, bool(chosen))
        for address, chosen in re.findall(r'<a href="([^"]*)"( aria-current="true")?>', nav)
    ]


@pytest.mark.parametrize("target", TARGETS)
def test_the_switch_says_what_is_chosen(client, ongoing, target):
    switch = switch_of(client.get(f"/b/toy?target={target}"))
    assert switch == [("?" if one == "full" else f"?target={one}", one == target) for one in words.TARGETS]


def test_the_default_is_the_policys_target(client, ongoing):
    values = Policy.objects.values().get(benchmark__slug="toy") | {"number": 2, "default_target": "domain"}
    Policy.objects.create(**{name: value for name, value in values.items() if name != "id"})
    board = recomputed(as_of=AS_OF)
    assert board.target == "domain"
    assert client.get("/b/toy").content == client.get("/b/toy?target=domain").content
    assert ("?target=subset", False) in switch_of(client.get("/b/toy"))


def test_the_switch_and_the_order_carry_each_other_along(client, ongoing):
    response = client.get("/b/toy?target=subset&sort=-score&find=a&view=all")
    page = response.content.decode()
    kept = "view=all&amp;find=a"
    assert f'href="?target=subset&amp;sort=score&amp;{kept}#ranking" data-column="score"' in page
    assert [address for address, _ in switch_of(response)] == [
        f"?sort=-score&amp;{kept}",
        f"?target=subset&amp;sort=-score&amp;{kept}",
        f"?target=domain&amp;sort=-score&amp;{kept}",
    ]
    hidden = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page.split("</form>")[0])
    assert hidden == [("target", "subset"), ("sort", "-score"), ("view", "all")]
    scores = [
        float(re.search(r"[\d.]+", row[SCORE])[0])
        for row in rows_of(client.get("/b/toy?target=subset&sort=-score"))
    ]
    assert scores == sorted(scores)


class TestMarks:
    """One marked set everywhere: filled could be the best, outlined is not clearly worse."""

    @pytest.mark.parametrize("query", ["", "find=a1", "model=Model+a15", "show=scaffold", "find=a1&view=all"])
    @pytest.mark.parametrize("plot", ["date", "scores"])
    @pytest.mark.parametrize("target", TARGETS)
    def test_as_many_rows_and_dots_are_filled_as_the_sentence_says(
        self, client, publish, target, plot, query
    ):
        shown = standings_of(publish(graded(16, 60)))
        response = client.get(f"/b/toy?target={target}&plot={plot}&{query}")
        rows, page = marked(response, "first"), unescape(response.content.decode())
        n_first = len(shown.targets[target].may_be_first)
        assert 1 < n_first < 16
        assert f"{n_first} of 16 agents could be the best." in words.headline(shown, target)
        assert f"<dd>{n_first} of 16</dd>" in page
        said = re.search(r"ranks are among all 16\. (\d+) of the (\d+) that could be the best\.", page)
        n_shown, n_all = map(int, said.groups()) if said else (n_first, n_first)
        assert (n_shown, n_all) == (len(rows), n_first)
        assert len(dots_of(page, "first", "both")) == n_shown
        assert len(re.findall(r'<rect class="first ', page)) == n_shown
        assert bool(said) == bool(query)

    def test_the_caption_says_what_the_marks_are(self, client, publish):
        shown = standings_of(publish(graded(16, 60)))
        text = text_of(client.get("/b/toy"))
        assert "Filled: could be the best (95%). Outlined: not clearly worse than the leader." in text
        assert "tinted" not in text
        beside = Agent.objects.get(name=shown.agents[3].agent)
        told = f"Filled: could be the best (95%). Outlined: tied with {beside.name} . Back to the leader"
        assert told in text_of(client.get(f"/b/toy?vs={beside.pk}"))

    def test_a_filter_dims_the_dots_that_it_leaves_out(self, client, publish):
        publish(graded(16, 60))
        page = client.get("/b/toy?find=a03").content.decode()
        assert len(re.findall(r'<a [^>]*class="dim" opacity="0.25"><circle', page)) == 15
        (dot,) = dots_of(page, "first", "both", "tied", "worse")
        assert dot.startswith("a03: ")


class TestReference:
    @pytest.mark.parametrize("target", TARGETS)
    def test_the_outlined_rows_are_the_ties_of_each_reference(self, client, ongoing, target):
        board = standings_of(ongoing)
        numbers = {entry.name: entry.agent_id for entry in ongoing.entries.all()}
        names = [line.agent for line in board.agents]
        for line in board.agents:
            at = line.at[target]
            if at.rank is None or at.rank_lower is None:
                continue
            tied = {numbers[name] for first, last in at.tied_with for name in names[first : last + 1]}
            response = client.get(f"/b/toy?target={target}&vs={numbers[line.agent]}")
            pk, first = numbers[line.agent], board.targets[target].may_be_first
            filled, outlined = {numbers[name] for name in first}, tied | {pk}
            is_leader = pk == numbers[words.in_order(board, target)[0].agent]
            assert marked(response, "first") == filled
            assert marked(response, "tied") == (outlined - filled if is_leader else outlined)
            assert marked(response, "reference") == (set() if is_leader else {pk})

    def test_the_leader_is_the_reference_by_default(self, client, ongoing):
        response = client.get("/b/toy")
        leader = standings_of(ongoing).agents[0].agent
        pk = ongoing.entries.get(name=leader).agent_id
        assert client.get(f"/b/toy?vs={pk}").content == response.content
        ties = ongoing.entries.get(name=leader).line["at"]["full"]["tied_with"]
        n = sum(last - first + 1 for first, last in ties)
        assert len(marked(response, "first") | marked(response, "tied")) == n + 1
        assert "divider" not in response.content.decode()

    def test_another_reference_is_named_and_kept_along(self, client, ongoing):
        entry = ongoing.entries.get(name="a05")
        response = client.get(f"/b/toy?vs={entry.agent_id}")
        assert "Outlined: tied with a05" in text_of(response)
        assert f'href="?sort=agent&amp;vs={entry.agent_id}#ranking"' in response.content.decode()

    @pytest.mark.parametrize("mark", ["first", "tied"])
    def test_marks_are_the_same_in_any_order(self, client, ongoing, mark):
        assert marked(client.get("/b/toy?sort=agent"), mark) == marked(client.get("/b/toy"), mark)

    @pytest.mark.parametrize("vs", ["0", "-1", "x", "9" * 40, "1.0", "٣", "<b>"])
    def test_who_is_not_there_is_named_and_the_leader_shown(self, client, ongoing, vs):
        response = client.get(f"/b/toy?vs={vs}")
        (told,) = ASKED.findall(response.content.decode())
        assert unescape(told).startswith("No ranked agent is called “")
        assert without_asked(response) == client.get("/b/toy").content.decode()

    def test_who_has_no_rank_is_no_reference(self, client, ongoing):
        pk = ongoing.entries.get(name="stopped").agent_id
        assert ASKED.findall(client.get(f"/b/toy?vs={pk}").content.decode())

    def test_where_ties_are_not_known_nothing_is_outlined(self, client, publish):
        publish({"a": "0101", "b": "0011"})
        response = client.get("/b/toy")
        assert not marked(response, "tied")
        assert "Outlined" not in text_of(response)


class TestRows:
    def test_a_hundred_rows_are_shown_before_all(self, client, publish):
        publish(ladder(110, 20))
        first, every = client.get("/b/toy"), client.get("/b/toy?rows=all")
        assert (len(rows_of(first)), len(rows_of(every))) == (100, 110)
        assert '<a href="?rows=all#ranking">Show all 110 agents</a>' in first.content.decode()
        assert rows_of(every)[:100] == rows_of(first)

    @pytest.mark.parametrize(
        ("query", "names"),
        [
            ("find=a03", ["a03"]),
            ("find=A03", ["a03"]),
            ("find=model+a03", ["a03"]),
            ("scaffold=Loop&find=newc", ["newcomer"]),
            ("model=Model+a03", ["a03"]),
            ("scaffold=None", []),
            ("find=nobody", []),
            ("find=stopped", []),
            ("cost=5", []),
            ("from=2026-01-06", []),
            ("to=2025-12-31", []),
            ("organisation=Ada", []),
        ],
    )
    def test_filters_leave_ranks_as_they_are(self, client, ongoing, query, names):
        every = {row[AGENT]: row for row in rows_of(client.get("/b/toy"))}
        response = client.get(f"/b/toy?{query}")
        found = rows_of(response) if names else []
        assert [row[AGENT].split()[0] for row in found] == names
        assert all(row == every[row[AGENT]] for row in found)
        assert f"{len(names)} of 17 agents; ranks are among all 17. " in text_of(response)
        assert ("No agent fits. Show every agent" in text_of(response)) == (not names)

    @pytest.mark.parametrize(
        ("query", "names"),
        [
            ("from=2025-06-01", ["new"]),
            ("from=2025-05-01&to=2025-05-31", ["month"]),
            ("to=2025-05-02", ["month", "old"]),
            ("from=2025-13-01&to=2024-12-31", ["old"]),
        ],
    )
    def test_a_month_that_is_stated_alone_lies_in_its_days(self, client, publish, query, names):
        days = {"old": "2024-12-31", "month": "2025-05", "new": "2025-06-01"}
        publish(*(csv_text({name: "01" * 10}, day=day) for name, day in days.items()))
        response = client.get(f"/b/toy?{query}")
        assert sorted(row[AGENT].split()[0] for row in rows_of(response)) == names
        told = "“2025-13-01” is not a date. Use YYYY-MM-DD. Dates are not limited."
        assert (told in text_of(response)) == ("13" in query)

    def test_the_best_of_each_scaffold_is_the_first_of_it(self, client, ongoing):
        (row,) = rows_of(client.get("/b/toy?show=scaffold"))
        assert row == rows_of(client.get("/b/toy"))[0]
        assert len(rows_of(client.get("/b/toy?show=model"))) == 17

    def test_who_is_not_ranked_is_filtered_too(self, client, ongoing):
        assert len(rows_of(client.get("/b/toy?find=stopped"), "unranked")) == 1
        assert "Not ranked" not in text_of(client.get("/b/toy?find=a03"))

    @pytest.mark.parametrize(("asked", "n"), [("open", 2), ("closed", 1), ("not+stated", 3)])
    def test_by_weights(self, client, publish, asked, n):
        publish(priced(graded(6, 20)))
        assert 'name="weights"' not in client.get("/b/toy").content.decode()
        Agent.objects.filter(name__in=("a00", "a01")).update(weights="open")
        Agent.objects.filter(name="a02").update(weights="closed")
        load_text(csv_text({"late": "." * 19 + "1"}))
        recomputed(as_of=AS_OF)
        response = client.get(f"/b/toy?weights={asked}")
        page = response.content.decode()
        assert (len(rows_of(response)), f"({1})</span></summary>" in page) == (n, True)
        assert len(re.findall(r'<a [^>]*class="dim" opacity="0.25"><circle', page)) == 6 - n
        options = re.search(r'<select name="weights">(.*?)</select>', page)[1]
        assert re.sub("<[^>]*>", " ", options).split() == ["any", "closed", "not", "stated", "open"]
        lines = list(
            csv.DictReader(io.StringIO(client.get(f"/b/toy/board.csv?weights={asked}").content.decode()))
        )
        assert {line["weights"] or "not+stated" for line in lines} == {asked}

    def test_what_is_found_stays_in_the_form(self, client, ongoing):
        page = client.get('/b/toy?find="><script>&show=model').content.decode()
        assert 'name="find" value="&quot;&gt;&lt;script&gt;"' in page
        assert '<option value="model" selected>' in page


class TestMarkdown:
    @pytest.mark.parametrize("target", TARGETS)
    def test_it_holds_the_verdict_and_the_rows_that_are_shown(self, client, ongoing, target):
        response = client.get(f"/b/toy/board.md?target={target}&find=a0")
        assert response["Content-Type"] == "text/markdown; charset=utf-8"
        board, lines = standings_of(ongoing), response.content.decode().splitlines()
        plain = [re.sub(r"\\(.)", r"\1", line) for line in lines]
        said = (words.headline, words.second_run_text, words.scores_text)
        told = list(filter(None, (say(board, target) for say in said)))
        assert list(filter(None, plain))[: 1 + len(told)] == ["## Toy", *told]
        head, _, *rows = [line.strip("| ").split(" | ") for line in plain if line.startswith("|")]
        expected = [row for row in table.rows(board, target) if row["Rank"] and row["Agent"].startswith("a0")]
        assert rows == [[row[name] for name in head] for row in expected]

    def test_names_are_no_markdown(self, client, publish):
        publish({"a|b](x) <i>*c*": "01" * 10, "d\\": "10" * 10, "`e`": "11" * 10})
        text = client.get("/b/toy/board.md").content.decode()
        assert r"a\|b\](x) \<i\>\*c\*" in text
        assert r"\`e\`" in text

    def test_the_page_leads_to_what_it_shows(self, client, ongoing):
        page = client.get("/b/toy?target=subset&sort=agent").content.decode()
        assert 'href="/b/toy/board.md?target=subset&amp;sort=agent">Markdown</a>' in page

    def test_what_is_not_there_is_not_found(self, client, ongoing):
        Benchmark.objects.create(slug="new", title="New")
        assert client.get("/b/new/board.md").status_code == 404
        assert client.get("/b/toy/board.md?board=9").status_code == 404
        Benchmark.objects.filter(slug="toy").update(visibility="private")
        assert client.get("/b/toy/board.md").status_code == 404


def of_one_model(ran):
    """Rows of agents of the model Cinder, from marks by scaffold and price."""
    return rows_text(
        {"agent": f"Cinder ({scaffold})", "scaffold": scaffold, "model": "Cinder", "task": f"t{j}"}
        | {"outcome": mark, "cost_usd": price}
        for (scaffold, price), marks in ran.items()
        for j, mark in enumerate(marks)
    )


def chart_of(client):
    return ET.fromstring(client.get("/b/toy/plots/cost.svg").content)


class TestChart:
    def test_it_reads_as_the_rows_of_the_board(self, client, publish):
        board = standings_of(publish(priced(graded(16, 20))))
        response = client.get("/b/toy")
        page = unescape(response.content.decode())
        ranked = [line for line in board.agents if line.at["full"].rank]
        at = {line.agent: line.at["full"] for line in ranked}
        half = {name: 100 * max(one.upper - one.score, one.score - one.lower) for name, one in at.items()}
        assert sorted(re.findall(r"<title>(.*?)</title></circle>", page)) == sorted(
            f"{agent}: {row['Score %']} ± {half[agent]:.1f}%, {row['Cost']} per full run, {row['Date']}"
            for row in table.rows(board)
            if row["Rank"] and (agent := row["Agent"])
        )

    def test_agents_are_called_by_the_names_that_were_delivered(self, client, publish):
        """The second is better and dearer, so that both stand on the front."""
        ran = {("Loop", 1): "10" * 20, ("Crew", 5): "1" * 30 + "0" * 10}
        publish(of_one_model(ran))
        assert {"Cinder (Loop)", "Cinder (Crew)"} <= set(chart_of(client).itertext())

    def test_what_is_stated_in_part_is_left_out_and_counted(self, client, publish):
        """Whoever states the cheap trials alone does not come to stand on the front."""
        outcomes = graded(16, 20)
        text = priced(outcomes)
        best = max(outcomes, key=lambda name: outcomes[name].count("1"))
        head, *rows = text.splitlines()
        silent = [
            row.removesuffix("2.5") if row.startswith(f"Toy,{best},") and ",t1" in row else row
            for row in rows
        ]
        publish("\n".join([head, *silent]) + "\n")
        page = client.get("/b/toy")
        assert "1 agent without a plausible cost of all its trials is not drawn." in text_of(page)
        dots = [text for text in chart_of(client).itertext() if "0 per full run" in text]
        assert len(dots) == 15
        assert not any(dot.startswith(best) for dot in dots)
        assert "cheapest that could be best" in text_of(page)
        shown = [row[AGENT].split()[0] for row in rows_of(client.get("/b/toy?cost=100"))]
        assert len(shown) == 15
        assert best not in shown
        assert rows_of(client.get("/b/toy?sort=cost"))[-1][AGENT].split()[0] == best

    @pytest.mark.parametrize("plot", ["date", "scores"])
    def test_it_has_an_address_of_its_own_for_the_view_that_is_shown(self, client, ongoing, plot):
        pk = ongoing.entries.get(name="a05").agent_id
        page = client.get(f"/b/toy?target=subset&vs={pk}&find=a0&plot={plot}").content.decode()
        address = f"/b/toy/plots/{plot}.svg?target=subset&amp;vs={pk}&amp;find=a0"
        assert f'<a href="{address}">SVG</a>' in page
        alone = client.get(unescape(address))
        assert alone["Content-Type"] == "image/svg+xml"
        assert alone.content.decode() in page

    def test_without_costs_it_is_the_score_through_time(self, client, ongoing):
        text = text_of(client.get("/b/toy"))
        assert (
            "Date Scores The line is the best score up to each date. SVG Score over time, on all 40 tasks"
            in text
        )
        assert client.get("/b/toy?plot=cost").content == client.get("/b/toy").content
        assert client.get("/b/toy/plots/cost.svg").status_code == 404

    def test_the_switch_leads_to_each_plot_and_keeps_the_view(self, client, publish):
        publish(priced(graded(16, 20)))
        page = client.get("/b/toy?plot=scores&find=a0").content.decode()
        switch = re.search(r'<nav class="targets" aria-label="What to plot">.*?</nav>', page)[0]
        assert re.findall(r'href="([^"]*)"( aria-current="true")?>(\w+)', switch) == [
            ("?find=a0#plot", "", "Cost"),
            ("?plot=date&amp;find=a0#plot", "", "Date"),
            ("?plot=scores&amp;find=a0#plot", ' aria-current="true"', "Scores"),
        ]

    def test_without_a_board_there_is_none(self, client, db):
        Benchmark.objects.create(slug="new", title="New")
        assert client.get("/b/new/plots/cost.svg").status_code == 404
        assert client.get("/b/new/plots/other.svg").status_code == 404


ASKED = re.compile(r'<p class="notice"><bdi>((?:Unknown |No ranked |“)[^<]*)</bdi></p>\n')


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
        f"Unknown target “{shown}”. Use full, subset or domain. The board’s own target is shown."
    )
    assert without_asked(response) == client.get("/b/toy").content.decode()


@pytest.mark.parametrize(
    "address",
    ["/b/toy", "/b/toy?target=full", "/b/toy?target=&sort=&vs=&show=", "/b/toy?sort=-cost&cost=5&view=all"],
)
def test_what_is_known_is_not_commented_on(client, ongoing, address):
    assert not ASKED.findall(client.get(address).content.decode())


def test_a_target_that_nothing_is_said_about_says_why(client, publish):
    board = standings_of(publish(ladder(3, 20)))
    response = client.get("/b/toy?target=subset")
    assert f"Ranking tasks: {words.clause(board.targets['subset'].reason)}." in text_of(response)
    assert "target=subset" not in response.content.decode()
    assert response.content == client.get("/b/toy?target=full").content


def test_what_rows_lack_is_told_with_the_reason(client, publish):
    board = standings_of(publish({"a": "0101", "b": "0011"}))
    text = text_of(client.get("/b/toy"))
    for gap in table.gaps(board):
        assert gap.reason in text
    assert all(row[HELD] == "–not known" for row in rows_of(client.get("/b/toy")))


def test_nothing_is_said_of_money_where_no_agent_states_a_cost(client, ongoing):
    assert "$" not in text_of(client.get("/b/toy"))


def priced(outcomes, **options):
    return csv_text(outcomes, **options).replace(",valid", ",valid,cost_usd").replace(",1\n", ",1,2.5\n")


def test_costs_are_shown_with_their_basis(client, publish):
    publish(priced(graded(16, 20)))
    text = text_of(client.get("/b/toy?view=all"))
    assert "Cost $50.00 per full run, assuming that every task costs the same" in text
    assert row_of(client.get("/b/toy"), "a08")["Cost"] == "$50.00"
    assert client.get("/api/v1/benchmarks/toy/board").json()["agents"][0]["cost_usd"] == 50


def test_a_single_agent_stands_against_nothing(client, publish):
    publish(priced({"only": "01" * 10}))
    assert "$50.00" in text_of(client.get("/b/toy"))
    assert "Cost against score" not in text_of(client.get("/b/toy"))
    assert client.get("/b/toy/plots/cost.svg").status_code == 404


@pytest.mark.parametrize("n_trials", [1, 2])
def test_an_agent_that_was_repeated_looks_no_dearer(client, publish, n_trials):
    """By hand: ten tasks at $2 a trial are $20 a run, however often they are tried."""
    rows = [
        {"agent": agent, "task": f"t{j}", "trial": trial, "outcome": (j + odd) % 2, "cost_usd": 2}
        for odd, agent in enumerate(("once", "more"))
        for j in range(10)
        for trial in range(1, (n_trials if agent == "more" else 1) + 1)
    ]
    publish(rows_text(rows))
    board = client.get("/api/v1/benchmarks/toy/board").json()
    assert {line["agent"]: line["cost_usd"] for line in board["agents"]} == {"once": 20, "more": 20}
    page = client.get("/b/toy")
    assert {row_of(page, agent)["Cost"] for agent in ("once", "more")} == {"$20.00"}
    assert client.get("/b/toy/board.md").content.decode().count("| $20.00 |") == 2
    assert "A full run is each task once." in text_of(page)


def test_costs_that_the_policy_hides_are_nowhere(client, publish):
    publish(ladder(3, 20), slug="other")
    values = Policy.objects.values().get() | {"number": 2, "show_costs": False}
    Policy.objects.create(**{name: value for name, value in values.items() if name != "id"})
    load_text(priced(graded(16, 20, prefix="g"), benchmark="Other"), slug="other")
    recomputed("other", as_of=AS_OF)
    for path in (
        "/b/other",
        "/b/other?view=all",
        "/b/other?cost=5",
        "/b/other/board.md",
        "/b/other/plots/cost.svg",
    ):
        assert "$" not in client.get(path).content.decode()
    assert "$" not in text_of(client.get("/"))
    assert "Cost was not stated" not in text_of(client.get("/b/other")) + text_of(client.get("/"))
    shown = client.get("/api/v1/benchmarks/other/board").json()
    assert {line["cost_usd"] for line in shown["agents"]} == {None}
    assert {line["cost_basis"] for line in shown["agents"]} == {"hidden", "not stated"}
    assert (shown["savings"]["per_run"], shown["savings"]["so_far"]["saved"]) == (None, None)


def test_one_trial_each_makes_no_column(client, ongoing):
    assert "ICC" not in text_of(client.get("/b/toy?view=all"))


def test_repeated_trials_are_told_with_the_intraclass_correlation(client, publish):
    head, *rows = csv_text(ladder(6, 20)).splitlines()
    agents = [row for row in rows if row.startswith("Toy,a03")]
    noisy = [
        row.replace(",1,1,1", ",2,1,1").replace(",1,0,1", f",2,{j % 2},1") for j, row in enumerate(agents)
    ]
    board = standings_of(publish("\n".join([head, *rows, *noisy]) + "\n"))
    icc = next(line for line in board.agents if line.agent == "a03").icc
    response = client.get("/b/toy?view=all")
    (cell,) = [row["ICC"] for row in table.rows(board) if row["Agent"] == "a03"]
    assert (
        row_of(response, "a03")["ICC"]
        == f"{cell} {icc['lower']:.2f}–{icc['upper']:.2f} {icc['n_tasks']} tasks"
    )
    assert icc["note"] in text_of(response)


def test_flags_are_marked_and_told(client, publish):
    publish(ladder(6, 20) | {"copy": ladder(6, 20)["a03"]})
    response = client.get("/b/toy?view=all")
    assert '<a class="mark flagged" href="#flags">' in response.content.decode()
    assert "copy The same outcome as a03 on every task." in text_of(response)


def test_who_is_not_ranked_stands_apart_with_the_reason_and_the_bounds(client, ongoing):
    response, board = client.get("/b/toy"), standings_of(ongoing)
    (row,) = rows_of(response, "unranked")
    told = next(line for line in board.agents if line.agent == "stopped").at["full"]
    assert row[0].startswith("stopped")
    assert row[1] == told.reason
    low, high = (100 * end for end in told.bounds)
    assert row[2] == f"{low:.1f}–{high:.1f}%"
    assert told.bounds == (3 / board.n_tasks, 1)
    assert not any(row[AGENT].startswith("stopped") for row in rows_of(response))


def test_who_lacks_nothing_where_nobody_is_ranked_has_its_score(client, publish):
    publish({"all": "1" * 5 + "0" * 15, "b": "." * 5 + "1" * 15, "c": "." * 5 + "1" * 15})
    page = client.get("/b/toy")
    assert ">25.0</text>" in page.content.decode()  # next to its bar
    assert [row[1:3] for row in rows_of(page, "unranked")] == [
        ["Has enough results; too many other agents have not.", "25.0%"],
        *[["5 of 20 tasks were not run: t00, t01, t02 and 2 more", "75.0–100.0%"]] * 2,
    ]


def test_what_is_stated_of_an_agent_stands_in_its_row(client, publish):
    publish(ladder(6, 20))
    Agent.objects.filter(name="a03").update(version="v7 <b>", organisation="Ada & Co")
    load_text(csv_text({"late": "01" * 10}))
    recomputed(as_of=AS_OF)
    row = row_of(client.get("/b/toy?view=all"), "a03")
    assert row["Agent"].endswith("More Version v7 <b> Organisation Ada & Co")
    assert [row[AGENT].split()[0] for row in rows_of(client.get("/b/toy?organisation=Ada+%26+Co"))] == ["a03"]
    assert (row["Organisation"], row["Submissions"]) == ("Ada & Co", "1")
    assert row_of(client.get("/b/toy?view=all"), "a02")["Organisation"] == "not stated"


def test_the_plot_of_one_task_promises_no_intervals(client, publish):
    publish({f"a{i}": str(i % 2) for i in range(6)})
    text = text_of(client.get("/b/toy?plot=scores"))
    assert "All ranked agents." in text


def test_the_notices_stand_before_the_ranks(client, publish):
    marks = {f"a{i}": "01" * (10 - i) + "10" * i for i in range(3)}
    board = standings_of(publish(marks | {f"b{i}": "1" * 5 + "." * 15 for i in range(3)}))
    text = text_of(client.get("/b/toy"))
    others = words.other_notices(board)
    way_out = "if an operator counts missing results as failures"
    assert any(way_out in notice for notice in others)
    assert all(text.index(notice.replace("`", "")) < text.index("Not ranked") for notice in others)


def test_the_verdict_of_a_validation_leads_to_its_page(client, publish):
    board = publish(ladder(16, 20))
    store(board.benchmark)
    board = recomputed(as_of=AS_OF)
    told = standings_of(board).verdict
    said = f"New agents: {100 * told.pairs:.1f}% of pairs are ordered as a full run would order them "
    said += f"(random subset: {100 * (told.pairs - told.random_difference):.1f}%)."
    assert f"{said} Validation" in text_of(client.get("/b/toy"))


def test_it_names_its_version(client, ongoing):
    text = text_of(client.get("/b/toy"))
    assert "1 June 2026, 12:05 UTC" in text
    assert f"data version {ongoing.data_version}" in text
    assert ongoing.digest in text
    assert f"Board {ongoing.number} · 1 June 2026" in text
    page = client.get("/b/toy").content
    assert b'href="/api/v1/benchmarks/toy/board">JSON' in page
    assert b'href="/api/v1/benchmarks/toy/board.csv">CSV' in page


@pytest.mark.parametrize(
    ("outcomes", "phase", "asked"),
    [
        (ladder(3, 20), "Cold start", "so every agent runs all tasks."),
        (ladder(8, 20), "Provisional", "Until they are fixed, every agent runs all tasks."),
        (
            dict.fromkeys("abcdefg", "0" * 20) | {"h": "1" * 20},
            "Unsuited",
            "No ranking tasks are in use: agents are ranked on all tasks. Every agent runs all tasks.",
        ),
    ],
)
def test_each_phase_is_told_in_words(client, publish, outcomes, phase, asked):
    board = standings_of(publish(outcomes))
    text = text_of(client.get("/b/toy"))
    assert f"Phase: {phase.lower()} {words.scores_text(board)}" in text
    assert re.search(f"Phase {phase}\\. [^<]*{re.escape(asked)}", text)
    assert f"{'No ranking tasks' if board.subset is None else 'Ranking tasks'} {board.why}" in text


BATCHES = "first runs tasks with a pass rate near 50%, then more tasks in batches."


@pytest.mark.parametrize(
    ("fields", "staged_from", "asked"),
    [
        ({}, 5, "A new agent " + BATCHES),
        ({}, 9, "Every agent runs all tasks."),
        ({"full_runs_only_at": AS_OF, "full_runs_only_reason": "x"}, 5, "Every agent runs all tasks."),
    ],
)
def test_an_unsuited_board_says_what_a_new_agent_runs(client, publish, fields, staged_from, asked):
    publish(dict.fromkeys("abcdefg", "0" * 20) | {"h": "1" * 20})
    Benchmark.objects.update(**fields)
    toy = Benchmark.objects.get()
    Policy.objects.create(benchmark=toy, number=2, assignment="staged", staged_from=staged_from)
    recomputed(as_of=AS_OF)
    told = [one in text_of(client.get("/b/toy")) for one in ("Every agent runs all tasks.", BATCHES)]
    assert told == [asked == "Every agent runs all tasks.", asked.endswith(BATCHES)]


def test_every_phase_has_a_sentence():
    from leaderboard.boards.models import Phase

    assert set(words.PHASES) == set(Phase.values)


def test_nobody_passes_for_another(client, publish):
    marks = {"Loop (M 5)": "1" * 20, "M 5 + Loop": "0" * 20, "Loop (M 6)": "01" * 10}
    text = csv_text(marks)
    for name in marks:
        text = text.replace(f"Model {name}", "M 6" if "6" in name else "M 5")
    publish(text)
    agents = [row[AGENT] for row in rows_of(client.get("/b/toy"))]
    assert agents == ["Loop (M 5)", "Loop (M 6)", "M 5 + Loop"]


def test_the_sorted_column_says_so_and_its_link_turns_the_order_round(client, ongoing):
    html = client.get("/b/toy?sort=subset").content.decode()
    assert html.count("aria-sort") == 1
    assert '<th scope="col" class="c-subset" aria-sort="descending"><a href="?sort=-subset#ranking"' in html
    html = client.get("/b/toy?sort=-subset").content.decode()
    assert 'aria-sort="ascending"><a href="?sort=subset#ranking"' in html


@pytest.mark.parametrize("sort", ["-", "nonsense", "--rank", "<script>", "score;", "%00"])
def test_an_unknown_order_is_named_and_the_ranks_order_shown(client, ongoing, sort):
    response = client.get(f"/b/toy?sort={sort}")
    (said,) = ASKED.findall(response.content.decode())
    assert unescape(said).startswith(f"Unknown order “{'�' if sort == '%00' else sort}”. Use rank, ")
    assert without_asked(response) == client.get("/b/toy").content.decode()


def test_without_a_board_it_says_what_happens_next(client, db, django_assert_num_queries):
    Benchmark.objects.create(slug="new", title="New")
    with django_assert_num_queries(2):  # the benchmark; no board
        response = client.get("/b/new")
    assert response.status_code == 200
    assert "No board yet" in text_of(response)
    assert "manage.py" not in text_of(response)


def test_a_board_without_a_ranked_agent_stands(client, publish):
    publish({"a": "1" * 5 + "." * 15, "b": "." * 5 + "1" * 15})
    response = client.get("/b/toy")
    assert "No ranking yet: 2 of 2 agents have too many missing results." in text_of(response)
    assert len(rows_of(response, "unranked")) == 2


def test_frozen_intake_and_changed_data_are_told(client, publish):
    publish(ladder(3, 20), frozen_at=AS_OF, frozen_reason="the season is over")
    Benchmark.objects.update(data_version=7)
    text = text_of(client.get("/b/toy"))
    assert "Submissions are closed since 2026-06-01 : the season is over" in text
    assert "Results have changed" in text


def test_that_all_was_withdrawn_is_told(client, publish, capsys):
    """On the page and in the terminal; no board follows, so that none is promised."""
    board = publish(ladder(3, 20))
    uuids = [str(uuid) for uuid in Submission.objects.values_list("uuid", flat=True)]
    call_command("unload", *uuids, "--reason", "the wrong file")
    text = text_of(client.get("/b/toy"))
    assert "All results were withdrawn since this board was published" in text
    assert "Results have changed" not in text
    capsys.readouterr()
    call_command("standings", "toy")
    told = capsys.readouterr().out
    assert f"board {board.number}," in told
    assert "All results were withdrawn since. The next results make the next board." in told
    with pytest.raises(CommandError, match="All outcomes of this benchmark were taken back"):
        call_command("recompute", "toy")


class TestCsv:
    def test_it_holds_the_agents_that_are_shown_and_the_ticked_ones_alone(self, client, ongoing):
        def agents(query):
            answer = client.get(f"/b/toy/board.csv?{query}")
            assert answer["Content-Type"] == "text/csv; charset=utf-8"
            return [row["agent"] for row in csv.DictReader(io.StringIO(answer.content.decode()))]

        assert len(agents("")) == 18
        assert agents("find=a03") == ["a03"]
        pks = [ongoing.entries.get(name=name).agent_id for name in ("a05", "stopped")]
        assert agents(f"a={pks[1]}&a={pks[0]}") == ["a05", "stopped"]
        page = client.get("/b/toy?find=a03&target=subset").content.decode()
        assert 'href="/b/toy/board.csv?target=subset&amp;find=a03">CSV<span' in page

    def test_what_is_not_there_is_not_found(self, client, ongoing):
        assert client.get("/b/toy/board.csv?board=9").status_code == 404
        Benchmark.objects.filter(slug="toy").update(visibility="private")
        assert client.get("/b/toy/board.csv").status_code == 404
