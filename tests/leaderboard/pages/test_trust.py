"""How far each agent can be checked is shown wherever agents are listed, and can be asked for."""

import csv
import io
import re
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse
from django.utils import timezone

from leaderboard.boards.models import Board
from leaderboard.boards.queries import standings_of
from leaderboard.catalog.models import Agent, Benchmark
from leaderboard.operations.corrections import verify
from leaderboard.operations.services import issue_token
from leaderboard.pages.elsewhere import HEIGHT, MARGIN, WIDTH, draw_card, first_of
from leaderboard.submissions.models import Submission, Verification
from tests.kept import stored
from tests.leaderboard.desk import people
from tests.leaderboard.pages.test_card import colour, read
from tests.leaderboard.test_receipts import deliver, token
from tests.seen import Tables, rows_of, text_of
from tests.toys import AS_OF, board_of, csv_text, ladder, load_text, recomputed

ROOT = Path(__file__).resolve().parents[3]
LOGS = {"logs": "https://example.org/logs"}
LEVELS = {"plain": "self-reported", "linked": "logs linked", "a03": "verified"}


def three_levels():
    """Four verified agents, so that all make headlines, one that links logs, and one that does not."""
    load_text(csv_text(ladder(4, 20)))
    ada = token("ada@example.org")
    for name, links, n in (("plain", {}, 12), ("linked", LOGS, 11)):
        outcomes = {f"t{j:02d}": [int(j < n)] for j in range(20)}
        deliver(ada, outcomes, name, model=f"M {name}", links=links)
    return recomputed()


@pytest.fixture
def board(db, settings):
    settings.PAGES_KEPT = 0
    stored("three levels of trust", three_levels)
    return Board.objects.get()


@pytest.fixture
def verified_board(db, settings):
    settings.PAGES_KEPT = 0
    return board_of(csv_text(ladder(4, 20)))


def agent(name):
    return Agent.objects.get(name=name)


def submission(name):
    return Submission.objects.get(agent__name=name)


@pytest.mark.parametrize("path", ["/b/toy", "/b/toy?view=all", "/b/toy/embed"])
def test_a_table_marks_each_agent(client, board, path):
    text = text_of(client.get(path))
    for name, mark in LEVELS.items():
        assert re.search(rf"{name}\b[^%]*? {mark} ", text), name
    assert 'title="Stated by the submitter, without logs."' in client.get(path).content.decode()


@pytest.mark.parametrize(
    "path", ["/b/toy", "/b/toy?view=all", "/b/toy/embed", "/b/toy/board.md", "/b/toy/compare"]
)
def test_where_every_agent_is_verified_no_mark_is_drawn(client, verified_board, path):
    page = client.get(path).content.decode()
    assert "mark trust" not in page
    assert "Trust</" not in page
    assert "| Trust" not in page
    assert "verified" not in re.sub(r"<[^>]*>", "", page).lower()


def test_the_page_of_an_agent_says_it_once(client, board):
    for name, mark in LEVELS.items():
        response = client.get(f"/b/toy/agents/{agent(name).pk}")
        heading = re.search(r"<h1.*?</h1>", response.content.decode(), re.S)[0]
        assert mark in heading
        assert f"Trust {mark}: " in text_of(response)
        assert "Run by" not in text_of(response)
    neighbours = [
        " ".join(row) for row in rows_of(client.get(f"/b/toy/agents/{agent('plain').pk}"), "beside")
    ]
    assert any("linked logs linked" in row for row in neighbours)


def test_agents_are_compared_with_their_marks(client, board):
    query = "&".join(f"a={agent(name).pk}" for name in LEVELS)
    page = client.get(f"/b/toy/compare?{query}")
    chosen = re.search(r'<ul class="compared">.*?</ul>', page.content.decode(), re.S)[0]
    told = re.findall(r'mark trust \w+" title="[^"]+">([^<]+)<', chosen)
    assert told == list(LEVELS.values())
    assert "logs linked; wins" in text_of(page)


def test_the_page_of_a_task_lists_them_with_their_trust(client, board):
    task = Benchmark.objects.get().tasks.get(name="t03")
    response = client.get(f"/b/toy/tasks/{task.pk}")
    (rows,) = (
        rows for rows in Tables(response.content.decode()).tables.values() if rows[0][:2] == ["Agent", "Rank"]
    )
    assert rows[0][-1] == "Trust"
    found = {row[0]: row[-1] for row in rows[1:]}
    assert {name: found[name] for name in LEVELS} == LEVELS


def test_every_face_counts_among_the_verified_agents(client, db, settings):
    """Six verified agents, and one ahead of them by less than its interval."""
    settings.PAGES_KEPT = 0
    load_text(csv_text({name: f"{row}0000" for name, row in ladder(6, 16).items()}))
    outcomes = {f"t{j:02d}": [int(j < 17)] for j in range(20)}
    deliver(token("ada@example.org"), outcomes, "plain", model="M plain")
    board = recomputed()
    found, _ = first_of(board.benchmark)
    n = [marked for *_, marked in found].count("first")
    assert 1 < n < len(found) == 6
    verdict = f"{n} of the 6 verified agents could be the best. "
    for path in ("/b/toy", "/b/toy/embed"):
        assert verdict in text_of(client.get(path)), path
        assert "Filled: could be the best of the verified agents (95%)." in text_of(client.get(path)), path
    feed = client.get("/b/toy/feed").content.decode()
    assert verdict in feed
    short = f"{n} of 6 verified agents could be the best"
    assert short in client.get("/b/toy/badge.svg").content.decode()
    assert f"{short}. 20 tasks" in text_of(client.get("/"))
    assert "Only verified agents" in text_of(client.get("/"))
    assert f"Board {board.number}: {short}" in feed
    text = text_of(client.get("/b/toy"))
    assert "1 agent ranked higher is not verified." in text
    assert "highest score of verified agents" in text


def test_the_card_fills_who_could_be_the_best_and_outlines_who_is_not_clearly_worse(board):
    found, _ = first_of(board.benchmark)
    entry = board.entries.get(name="a03")
    names = list(board.entries.order_by("position").values_list("name", flat=True))
    tied = {name for first, last in entry.line["at"]["full"]["tied_with"] for name in names[first : last + 1]}
    n_first = len(standings_of(board).targets["full"].may_be_first)
    marks = [marked for *_, marked in found]
    assert (marks.count("first"), marks.count("first") + marks.count("tied")) == (n_first, len(tied) + 1)
    solid, outline = (read(draw_card([(1, 1, 8, marked)], 8)) for marked in ("first", "tied"))
    is_filled = [(pixels == colour("lead")).all(axis=2).sum() for pixels in (solid, outline)]
    assert 0 < is_filled[1] < is_filled[0] / 2
    assert tuple(outline[int(65 + (HEIGHT - 130) / 20), (WIDTH - MARGIN) // 2]) == colour("paper")


def test_files_and_the_terminal_say_it(client, board, capsys):
    rows = csv.DictReader(io.StringIO(client.get("/api/v1/benchmarks/toy/board.csv").content.decode()))
    assert {row["agent"]: row["trust"] for row in rows if row["agent"] in LEVELS} == {
        "plain": "self_reported",
        "linked": "logs",
        "a03": "verified",
    }
    lines = client.get("/api/v1/benchmarks/toy/board").json()["agents"]
    assert {line["agent"]: line["trust"] for line in lines}["linked"] == "logs"
    markdown = client.get("/b/toy/board.md").content.decode()
    assert re.search(r"\| plain \| self\\?-reported \|", markdown)
    call_command("standings", "toy", "--explain")
    text = capsys.readouterr().out
    assert re.search(r"plain +self-reported", text)
    assert re.search(r"^self-reported +Stated by the submitter, without logs\.", text, re.M)
    assert re.search(r"^logs linked +.*not read", text, re.M)


def test_the_terminal_says_nothing_where_every_agent_is_verified(verified_board, capsys):
    call_command("standings", "toy")
    assert "rust" not in capsys.readouterr().out
    assert "verified" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("query", "missing"),
    [
        ("", set()),
        ("trust=self_reported", set()),
        ("trust=logs", {"plain"}),
        ("trust=verified", {"plain", "linked"}),
        ("trust=x", set()),
    ],
)
def test_a_level_asks_for_at_least_that(client, board, query, missing):
    response = client.get(f"/b/toy?{query}")
    shown = " ".join(row[3] for row in rows_of(response))
    assert {
        name for name in LEVELS if not re.search(rf"\b{name}\b", shown.replace("logs linked", ""))
    } == missing
    told = "Unknown trust level “x”. Use logs or verified. All agents are shown."
    assert (told in text_of(response)) == (query == "trust=x")
    assert ("Unknown" in text_of(response)) == (query == "trust=x")
    if missing:
        assert f'<option value="{query[6:]}" selected>' in response.content.decode()


def test_a_row_leads_to_the_logs_that_are_linked(client, board):
    ((name, address),) = LOGS.items()
    link = f'<a class="mark" href="{address}" rel="nofollow" aria-label="Logs of linked">{name}</a>'
    assert client.get("/b/toy").content.decode().count(link) == 1


def test_ties_are_those_of_the_leader_whoever_is_shown(client, board):
    for query in ("", "?find=plain", "?find=linked"):
        response = client.get(f"/b/toy{query}")
        assert response.context["page"]["reference"].entry.agent == "a03"
        assert "vs=" not in re.search(r'<a href="([^"]*)" data-column="score"', response.content.decode())[1]


def test_the_api_takes_levels_and_refuses_what_is_none(client, board):
    entries = "/api/v1/benchmarks/toy/boards/1/entries"

    def names(level):
        return {row["agent"] for row in client.get(entries, {"trust": level}).json()["results"]}

    assert {"plain", "linked"} <= names("self_reported")
    assert names("self_reported") - names("logs") == {"plain"}
    assert names("logs") - names("verified") == {"linked"}
    refused = client.get(entries, {"trust": "high"})
    assert refused.status_code == 400
    assert "self_reported, logs, verified" in refused.content.decode()


def test_a_submission_is_verified_and_that_is_undone_by_a_command(client, board, capsys):
    uuid = str(submission("plain").uuid)
    call_command("verify", uuid, "--note", "ran 20 tasks again")
    assert f"{uuid} of plain is verified." in capsys.readouterr().out
    recomputed()
    assert re.search(r"plain [^.]{0,40}verified", text_of(client.get("/b/toy")))
    with pytest.raises(CommandError, match="is already verified"):
        call_command("verify", uuid)
    call_command("verify", uuid, "--undo", "--note", "the logs were of another run")
    assert "no longer verified" in capsys.readouterr().out
    with pytest.raises(CommandError, match="nothing to undo"):
        call_command("verify", uuid, "--undo")
    with pytest.raises(CommandError, match="There is no submission"):
        call_command("verify", str(UUID(int=0)))
    told = list(Verification.objects.order_by("id").values_list("verified", "note"))
    assert told == [(True, "ran 20 tasks again"), (False, "the logs were of another run")]


def test_the_status_of_a_submission_says_its_trust(client, board):
    _, secret = issue_token(
        email="ada@example.org",
        slug="toy",
        scope="submit",
        name="status",
        as_of=timezone.now(),
        life=timedelta(days=1),
    )

    def trust(name):
        path = reverse("api:submission", args=[submission(name).uuid])
        return client.get(path, headers={"Authorization": f"Bearer {secret}"}).json()["trust"]

    assert (trust("plain"), trust("linked")) == ("self_reported", "logs")
    verify(uuid=submission("plain").uuid, note="", as_of=AS_OF)
    assert trust("plain") == "verified"


def desk_of(name, doing=""):
    return f"/admin/submissions/submission/{submission(name).pk}/{doing or 'change'}/"


def test_operators_verify_and_undo_at_the_desk(client, board):
    who = people(board.benchmark)
    client.force_login(who["operator"])
    assert client.post(desk_of("plain", "verify"), {"reason": ""}).status_code == 422
    assert not Verification.objects.exists()
    assert client.post(desk_of("plain", "verify"), {"reason": "read its logs"}).status_code == 302
    assert client.post(desk_of("plain", "unverify"), {"reason": "they were short"}).status_code == 302
    page = re.sub(r"\s+", " ", client.get(desk_of("plain")).content.decode())
    assert "by operator@example.org: verified (read its logs)" in page
    assert "by operator@example.org: no longer verified (they were short)" in page
    assert desk_of("plain", "verify") in page
    assert desk_of("plain", "unverify") not in page
    assert "read its logs" in client.get("/admin/audit/").content.decode()
    assert desk_of("a03", "verify") not in client.get(desk_of("a03")).content.decode()  # loaded


@pytest.mark.parametrize("kind", ["anonymous", "viewer", "submitter", "another's operator"])
def test_nobody_else_verifies(client, board, kind):
    who = people(board.benchmark)[kind]
    if who:
        client.force_login(who)
    answer = client.post(desk_of("plain", "verify"), {"reason": "mine"})
    assert answer.status_code in (302, 404)
    assert not Verification.objects.exists()


def test_the_mark_stands_out_on_every_ground():
    """WCAG 2.2 AA: 4.5 to 1, in both schemes."""
    css = (ROOT / "static" / "css" / "bandstand.css").read_text()
    assert re.search(r"^\.mark \{[^}]*color: var\(--muted\)", css, re.M)
    assert ".trust" not in css  # it takes the colour of other marks
    schemes = css.split("prefers-color-scheme: dark", 1)
    for scheme in schemes:
        paints = {
            name: luminance(value) for name, value in reversed(re.findall(r"--(\w+): #(\w{6});", scheme))
        }
        for ground in ("paper", "raised", "tint"):
            dark, light = sorted((paints["muted"], paints[ground]))
            assert (light + 0.05) / (dark + 0.05) >= 4.5, ground


def luminance(value):
    """As in WCAG 2.2."""
    shares = [part / 255 for part in bytes.fromhex(value)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
