"""The pages as files: each link leads to a file, and nothing to a server."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Barrier
from urllib.parse import unquote, urlsplit

import pytest
from django.core.management.base import CommandError

from leaderboard.catalog.models import Agent, Visibility
from leaderboard.pages.site import MANIFEST, Site, write_site
from leaderboard.terminal.management.commands.site import replacing_folder
from tests.leaderboard.importers import shapes
from tests.toys import ladder, recomputed

ROOT = Path(__file__).parents[3]
THREE_COLUMNS = "agent,task,outcome\n" + "".join(
    f"{agent},task {number},{int(place >= number)}\n"
    for place, agent in enumerate(("Ash", "Beech", "Cedar", "Elm", "Fir"))
    for number in range(6)
)


class Links(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.targets, self.ids, self.tags = [], set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        for name, value in attributes:
            if name in ("href", "src"):
                self.targets.append(value)
            if name == "id":
                self.ids.add(value)


def read(folder):
    return {path.relative_to(folder): Links(path.read_text()) for path in folder.rglob("*.html")}


#: Exports are read by a connection of their own.
committed = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return tmp_path_factory.mktemp("site")


@pytest.fixture
def site(publish, written):
    """The folder, written by the first test that asks for it; the board is published for each."""
    board = publish(ladder(17, 20))
    folder = written / "site"
    if not folder.exists():
        write_site(board.benchmark, written / "part", url="", progress=None)
        (written / "part").rename(folder)
    return folder


@committed
def test_each_link_leads_to_a_file(site):
    pages = read(site)
    assert len(pages) > 16 + 20  # agents and tasks
    for place, page in pages.items():
        for target in page.targets:
            parts = urlsplit(target)
            if parts.scheme:
                assert (parts.scheme, parts.hostname) != ("http", "localhost"), place
                continue
            assert not parts.query, (place, target)
            file = (site / place.parent / unquote(parts.path)).resolve() if parts.path else site / place
            assert file.is_file(), (place, target)
            if parts.fragment and file.suffix == ".html":
                assert parts.fragment in pages[file.relative_to(site.resolve())].ids, (place, target)


@committed
def test_nothing_asks_a_server(site):
    for place, page in read(site).items():
        assert "form" not in page.tags, place
        assert ">compare<" not in (site / place).read_text(), place  # its pages are those with the leader
    for file in site.rglob("*"):
        if file.suffix in (".html", ".svg", ".xml", ".md", ".json"):
            assert not re.search(r"bandstand\.invalid|localhost|/api/v1|/b/toy", file.read_text()), file


@committed
def test_every_agent_and_task_has_a_page(site, client):
    assert len(list(site.glob("agents/*.html"))) == 17
    assert len(list(site.glob("tasks/*.html"))) == 20
    assert len(list(site.glob("compare/*.html"))) == 16
    board = json.loads((site / "data/board.json").read_text())
    assert board["digest"] == client.get("/api/v1/benchmarks/toy/board").json()["digest"]


@committed
def test_the_board_is_that_of_the_service(site, client):
    def rows(text):
        table = re.search(r'<table id="ranking".*?</table>', text, re.DOTALL)[0]
        return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", table))

    assert rows((site / "index.html").read_text()) == rows(client.get("/b/toy").content.decode())


@committed
def test_an_address_makes_the_links_of_others_whole(publish, tmp_path):
    board = publish(ladder(5, 6))
    write_site(board.benchmark, tmp_path, url="https://example.org/board", progress=None)
    index = (tmp_path / "index.html").read_text()
    assert '<meta property="og:image" content="https://example.org/board/card.png">' in index
    assert (tmp_path / "card.png").read_bytes().startswith(b"\x89PNG")
    assert (
        '<link href="https://example.org/board/index.html" rel="alternate"'
        in (tmp_path / "feed.xml").read_text()
    )


def test_what_cannot_be_written_is_refused(run, toy, tmp_path):
    with pytest.raises(CommandError, match=r"toy has no board yet\. Next: .* recompute toy"):
        run("site", "toy", "--out", str(tmp_path / "site"))
    assert list(tmp_path.iterdir()) == []
    run("recompute", "toy")
    toy.visibility = Visibility.PRIVATE
    toy.save()
    with pytest.raises(CommandError, match="toy is not public"):
        run("site", "toy", "--out", str(tmp_path / "site"))
    with pytest.raises(CommandError, match=r"--url ftp://a\.example is not the address of a site"):
        run("site", "toy", "--url", "ftp://a.example")
    with pytest.raises(CommandError, match=r"--url https://a\.example/\?q=1 is not the address"):
        run("site", "toy", "--url", "https://a.example/?q=1")
    with pytest.raises(CommandError, match=r"File not found: results\.csv\."):
        run("site", "results.csv")
    report = shapes.write(tmp_path / "runs" / "a.json", shapes.swe_report(resolved_ids=["t"]))
    for source, what in ((report.parent, "is a folder"), (report, "has the format swe-bench")):
        with pytest.raises(CommandError) as refused:
            run("site", str(source))
        assert str(refused.value).splitlines() == [
            f"{source} {what}. Load it into a benchmark first:",
            f"  manage.py load {source} --benchmark NAME",
            "  manage.py recompute NAME",
            "  manage.py site NAME",
        ]
    with pytest.raises(CommandError, match=r"--set is for a file\. Type: manage.py policy toy --set"):
        run("site", "toy", "--out", str(tmp_path / "site"), "--set", "missing=zero")
    with pytest.raises(CommandError, match="There is no benchmark 'other'"):
        run("site", "other")


def test_a_folder_of_something_else_is_left_alone(run, toy, tmp_path):
    run("recompute", "toy")
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(CommandError, match=r"holds a file that this command did not write: thesis\.tex"):
        run("site", "toy", "--out", str(tmp_path))
    assert (tmp_path / "thesis.tex").read_text() == "years of work"
    with pytest.raises(CommandError, match=r"\. cannot be replaced"):
        run("site", "toy", "--out", ".")


@committed
def test_a_site_replaces_the_one_before_it_whole(run, publish, tmp_path):
    publish(ladder(5, 6))
    out = tmp_path / "deep" / "site"
    assert f"Open {out / 'index.html'}." in run("site", "toy", "--out", str(out))
    (out / "agents" / "0.html").write_text("of an agent that is gone")
    with (out / MANIFEST).open("a") as manifest:
        manifest.write("agents/0.html\n")
    run("site", "toy", "--out", str(out))
    assert not (out / "agents" / "0.html").exists()
    (out / "CNAME").write_text("board.example.org")
    with pytest.raises(CommandError, match="did not write: CNAME"):
        run("site", "toy", "--out", str(out))
    assert list(out.parent.iterdir()) == [out]


def test_a_site_that_fails_leaves_the_one_before_it(tmp_path):
    out = tmp_path / "site"
    out.mkdir()
    (out / "index.html").write_text("before")
    with pytest.raises(FileNotFoundError), replacing_folder(out) as folder:
        (folder / "index.html").write_text((folder / "nothing").read_text())
    assert (out / "index.html").read_text() == "before"
    assert list(tmp_path.iterdir()) == [out]


def test_a_file_that_comes_while_a_site_is_written_stays(tmp_path):
    out = tmp_path / "site[1]"

    def write():
        with replacing_folder(out):
            out.mkdir()
            (out / "CNAME").write_text("board.example.org")

    with pytest.raises(CommandError, match="did not write: CNAME"):
        write()
    assert (out / "CNAME").read_text() == "board.example.org"
    assert list(tmp_path.iterdir()) == [out]


@committed
def test_links_to_a_merged_agent_lead_to_the_one_that_stands(run, publish, tmp_path, monkeypatch):
    latest = publish(ladder(5, 6), {"b": "......1"})
    source, target = (Agent.objects.get(name=name).pk for name in ("b", "a04"))
    run("merge", "toy", "b", "a04", "--reason", "one and the same")
    for board in (latest, recomputed()):
        folder = tmp_path / str(board.number)
        write_site(board.benchmark, folder, url="", progress=None)
        assert (folder / "agents" / f"{target}.html").is_file()
        assert not (folder / "agents" / f"{source}.html").exists()
    assert f"agents/{target}.html" in (folder / "history.html").read_text()
    monkeypatch.setattr("leaderboard.pages.site.merged_agents", lambda benchmark, upto: {})
    with pytest.raises(CommandError, match=rf"Nothing was written: the page \S+/{source} answered 302\."):
        run("site", "toy", "--out", str(tmp_path / "site"))


@committed
def test_no_text_of_a_submitter_becomes_an_address(publish, tmp_path):
    board = publish(ladder(5, 6))
    first, second = Agent.objects.order_by("pk")[:2]
    for agent, name in ((first, f"/b/toy?rows=x/../agents/{second.pk}"), (second, "/b/toy/agents/999999")):
        Agent.objects.filter(pk=agent.pk).update(name=f"http://bandstand.invalid{name}")
    folder = tmp_path / "deep" / "site"
    write_site(board.benchmark, folder, url="https://board.example.org", progress=None)
    assert [path.name for path in tmp_path.iterdir()] == ["deep"]
    assert [path.name for path in folder.parent.iterdir()] == ["site"]
    site = Site(board.benchmark, "")
    assert site.place(f"{site.board}?rows=x/../y") == site.place(f"{site.board}/badge.svg?agent=../x") == ""


def test_what_a_kill_left_goes_after_a_day(tmp_path):
    out, fresh, old = tmp_path / "site", tmp_path / ".bandstand-a.new", tmp_path / ".bandstand-b.new"
    for folder in (fresh, old):
        (folder / "new").mkdir(parents=True)
    day_ago = time.time() - 25 * 60 * 60
    os.utime(old, (day_ago, day_ago))
    with replacing_folder(out):
        pass
    assert {*tmp_path.iterdir()} == {out, fresh}


def test_sites_that_end_at_one_moment_follow_each_other(tmp_path):
    out, barrier = tmp_path / "site", Barrier(8)

    def write(number):
        with replacing_folder(out) as folder:
            (folder / "index.html").write_text(f"{number}")
            (folder / MANIFEST).write_text(f"{MANIFEST}\nindex.html\n")
            barrier.wait()
        return number

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(write, range(8))) == list(range(8))
    assert int((out / "index.html").read_text()) in range(8)
    assert list(tmp_path.iterdir()) == [out]


@pytest.fixture
def place():
    """A folder that every user may enter: for root, PostgreSQL runs as another one."""
    with TemporaryDirectory(prefix="bst-") as folder:
        Path(folder).chmod(0o755)
        for name in ("home", "tmp"):
            (Path(folder) / name).mkdir()
        (Path(folder) / "results.csv").write_text(THREE_COLUMNS)
        yield Path(folder)


def command(place, *arguments):
    other = ("BANDSTAND_HOME", "MAKELEVEL")  # which `make test` sets
    environ = {name: value for name, value in os.environ.items() if name not in other}
    environ |= {"HOME": str(place / "home"), "TMPDIR": str(place / "tmp")}
    environ["DATABASE_URL"] = "postgresql://nobody@127.0.0.1:1/none"  # which must not be asked
    return subprocess.Popen(
        [sys.executable, ROOT / "manage.py", "site", *arguments],
        env=environ,
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_three_columns_become_a_site_and_no_database_stays(place):
    """Missing rows are decided by an option."""
    lacking = THREE_COLUMNS.splitlines()
    (place / "results.csv").write_text(
        "\n".join(lacking[:2] + lacking[3:8] + lacking[9:14] + lacking[15:]) + "\n"
    )
    hint = "To count missing results as failures: manage.py site FILE --set missing=zero_loaded"
    process = command(place, "--benchmark", "Trees", "results.csv")
    out, errors = process.communicate()
    assert process.returncode == 0, errors
    assert "Open site/index.html." in out
    assert hint in out
    index = (place / "site" / "index.html").read_text()
    assert "<h1><bdi>Trees</bdi></h1>" in index
    assert "manage.py site FILE --set missing=zero" in index
    assert list((place / "tmp").iterdir()) == []
    assert not (place / "home" / ".bandstand").exists()
    assert hint not in command(place, "results.csv", "--set", "missing=zero").communicate()[0]
    index = (place / "site" / "index.html").read_text()
    assert "No ranking yet" not in index
    assert re.findall(r'class="who"[^>]*><bdi>(\w+)<', index) == ["Fir", "Elm", "Cedar", "Ash", "Beech"]


def ended_while_writing(place, number):
    process = command(place, "results.csv")
    while not list(place.glob(".bandstand-*")):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.002)  # a site of few pages is soon written
    process.send_signal(number)
    process.communicate()
    return process


@pytest.mark.slow
def test_what_a_killed_site_leaves_goes_with_the_next(place):
    ended_while_writing(place, signal.SIGKILL)
    (left,) = (place / "tmp").iterdir()
    assert (left / "run" / ".s.PGSQL.5432").exists()
    os.utime(left, (0, 0))
    process = command(place, "results.csv")
    process.communicate()
    assert process.returncode == 0
    assert list((place / "tmp").iterdir()) == []


def test_a_site_that_is_stopped_leaves_nothing(place):
    process = ended_while_writing(place, signal.SIGTERM)
    assert process.returncode == 128 + signal.SIGTERM
    assert sorted(path.name for path in place.iterdir()) == ["home", "results.csv", "tmp"]
    assert list((place / "tmp").iterdir()) == []
