"""Holes that services like this one have had, each tried here. docs/security.md says what holds each shut."""

import ast
import csv
import io
import json
import re
import zipfile
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from unicodedata import normalize

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from leaderboard.accounts.models import ApiToken, User
from leaderboard.admin.site import site
from leaderboard.catalog.models import Agent, Benchmark, Membership, Role, Task
from leaderboard.operations import corrections
from leaderboard.operations.models import Dispute, Upload
from leaderboard.operations.people import invite
from leaderboard.operations.services import issue_token
from leaderboard.submissions.models import Submission
from tests.leaderboard.desk import PASSWORD, person
from tests.toys import AS_OF, HEAD, ladder, load_text, recomputed

ROOT = Path(__file__).resolve().parents[2]
CODE = [path for part in ("leaderboard", "analytics", "selection") for path in (ROOT / part).rglob("*.py")]


# -------------------------------------------------------------------------------- what is never called

FORBIDDEN_CALLS = {"eval", "exec", "__import__", "extractall", "unpack_archive", "mktemp", "popen", "system"}
FORBIDDEN_MODULES = {"pickle", "cPickle", "marshal", "shelve", "dill", "yaml", "jsonpickle"}


def called(node):
    """The name of what a call calls, where it has one."""
    return getattr(node.func, "id", None) or getattr(node.func, "attr", None)


def test_nothing_is_evaluated_unpickled_or_unpacked():
    found, words = [], "|".join({*FORBIDDEN_CALLS, *FORBIDDEN_MODULES, "shell"})
    for path in CODE:
        text = path.read_text()
        if not re.search(rf"\b({words})\b", normalize("NFKC", text)):  # as names are read
            continue
        for node in ast.walk(ast.parse(text)):
            where = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [getattr(node, "module", None) or "", *(one.name for one in node.names)]
                found += [where for name in names if name.split(".")[0] in FORBIDDEN_MODULES]
            elif isinstance(node, ast.Call):
                shell = any(one.arg == "shell" for one in node.keywords)
                found += [where] if called(node) in FORBIDDEN_CALLS or shell else []
    assert not found


def test_a_formula_is_read_and_never_run(tmp_path):
    """The one text that looks like code: which facets are random, at the core's command line."""
    from analytics.cli import main

    data, evil = tmp_path / "d.csv", tmp_path / "evil"
    data.write_text("item,y\na,1\nb,0\n")
    formula = f"__import__('os').system('touch {evil}')"
    assert main(["variance", str(data), "--outcome", "y", "--random", formula]) == 2
    assert not evil.exists()


def test_no_path_comes_from_the_name_of_a_file(submit_token, tmp_path, monkeypatch, client, toy):
    """Neither from that of an upload, nor from those in an archive: nothing is written where they point."""
    monkeypatch.chdir(tmp_path)
    outside = tmp_path / "outside.csv"
    rows = "task,trial,outcome\n" + "".join(f"t{j:02d},1,1\n" for j in range(20))
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("../outside.csv", rows)
        made.writestr(str(outside), rows)
    bearer = {"authorization": f"Bearer {submit_token}"}
    fields = {"agent.name": "new", "agent.scaffold": "Loop", "agent.model": "M"}
    answers = []
    for n, (name, content) in enumerate(
        [(str(outside), rows.encode()), ("../../outside.csv", rows.encode()), ("a.eval", archive.getvalue())]
    ):
        file = io.BytesIO(content)
        file.name = name
        body = fields | {"agent.name": f"new {n}", "agent.model": f"M {n}", "file": file}
        answers.append(client.post("/api/v1/benchmarks/toy/submissions", body, headers=bearer).status_code)
    assert answers == [201, 201, 422]
    assert not [*tmp_path.rglob("*")]


# -------------------------------------------------------------------------------- names are data

XSS = "'\"><xss onload=alert(1)>{{7*7}}</script>"
FORMULA = "=1+1"


class Elements(HTMLParser):
    """What a browser would make of it."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.evil = []

    def handle_starttag(self, tag, attrs):
        led = [value for name, value in attrs if name in ("href", "src", "action") and value]
        if tag == "xss" or any(re.match(r"\s*(javascript|data:text)", value, re.I) for value in led):
            self.evil.append((tag, attrs))


def evil_in(answer):
    """What a browser would run of an answer, which it reads as what its type says and as nothing else."""
    if not re.search("html|xml|svg", answer.headers["Content-Type"]):
        return []
    content = b"".join(answer) if answer.streaming else answer.content
    found = Elements()
    found.feed(content.decode(errors="replace"))
    return found.evil


@pytest.fixture
def hostile(db, submit_token_of):
    """A benchmark in which every name and text that a stranger chooses is markup."""
    written = io.StringIO()
    columns = [*HEAD.split(","), "category", "version", "organisation", "note"]
    lines = csv.writer(written)
    lines.writerow(columns)
    for agent, marks in ladder(16, 20).items():
        for j, mark in enumerate(marks):
            about = [
                f"{XSS}{agent}",
                f"{XSS}Loop",
                f"{XSS}M {agent}",
                "2026-01-05",
                f"{XSS}t{j:02d}",
                1,
                mark,
            ]
            lines.writerow([f"Toy {XSS}", *about, f"{XSS}c", f"{XSS}v", f"{XSS}o", f"{FORMULA}{XSS}"])
    load_text(written.getvalue())
    texts = {name: f"{XSS} {name}" for name in ("description", "licence", "citation", "unit")}
    Benchmark.objects.filter(slug="toy").update(title=f"Toy {XSS}", **texts)
    recomputed()
    return Benchmark.objects.get(slug="toy")


@pytest.fixture
def submit_token_of(db):
    return lambda: issue_token(
        email="ada@example.org",
        slug="toy",
        scope="submit",
        name=XSS,
        as_of=timezone.now(),
        life=timedelta(days=1),
    )[1]


def delivered(client, secret):
    outcomes = [
        {"task": f"{XSS}t{j:02d}", "trial": 1, "outcome": 1, "valid": j > 2, "note": f"{FORMULA}{XSS}"}
        for j in range(20)
    ]
    about = {"name": f"{FORMULA}{XSS}new", "scaffold": f"{XSS}Tree", "model": f"{XSS}New"}
    answer = client.post(
        "/api/v1/benchmarks/toy/submissions",
        json.dumps({"agent": about | {"version": XSS, "organisation": XSS}, "outcomes": outcomes}),
        content_type="application/json",
        headers={"authorization": f"Bearer {secret}"},
    )
    assert answer.status_code == 201, answer.content
    return answer.json()["id"]


def public_addresses(agent, task):
    views = ["", "/v1", "/history", "/data", "/feed", "/badge.svg", "/embed", "/compare", "/validity"]
    views += ["/uncertainty", "/health", "/tasks", "/cite", f"/agents/{agent}", f"/tasks/{task}"]
    views += [f"/badge.svg?agent={agent}", f"/compare?a={agent}&a={agent + 1}", "?since=1", "/tasks?rows=all"]
    views += [f"/plots/{name}.svg" for name in ("best", "ranks", "tasks", "pareto")]
    shown = [f"/b/toy{view}" for view in views]
    asked = [f"/b/toy?{name}={XSS}" for name in ("find", "scaffold", "model", "vs", "sort", "target", "cost")]
    return ["/", "/sitemap.xml", *shown, *asked, f"/b/toy/tasks?find={XSS}", f"/{XSS}"]


def admin_addresses():
    for model in site._registry:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        yield reverse(f"{name}_changelist")
        row = model._default_manager.order_by("pk").last()
        if row is not None:
            yield reverse(f"{name}_change", args=[row.pk])
    yield from (reverse("admin:index"), reverse("admin:audit"))


def test_markup_in_a_name_is_text_on_every_surface(client, hostile, submit_token_of):
    """Pages, feed, badge, embedded table, plots, admin, account, errors; Markdown, JSON and CSV besides."""
    uuid = delivered(client, submit_token_of())
    recomputed()
    ada = User.objects.get(email="ada@example.org")
    staff = person("staff@example.org", staff=True)
    agent, task = Agent.objects.order_by("pk").first(), Task.objects.order_by("pk").first()
    corrections.report(agent=agent, text=XSS, by=ada, as_of=AS_OF)
    found, seen = {}, 0
    walks = [(None, public_addresses(agent.pk, task.pk)), (ada, ["/account", f"/submissions/{uuid}"])]
    for user, addresses in [*walks, (staff, admin_addresses())]:
        browser = Client()
        if user:
            browser.force_login(user)
        for address in addresses:
            answer = browser.get(address)
            seen += 1
            assert answer.status_code in (200, 404), (address, answer.status_code)
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            if evil := evil_in(answer):
                found[address] = evil
    assert not found
    assert seen > 60


def test_other_forms_carry_names_as_their_form_wants(client, hostile, submit_token_of):
    delivered(client, submit_token_of())
    recomputed()
    markdown = client.get("/b/toy/board.md")
    assert markdown.headers["Content-Type"].startswith("text/markdown")
    assert not re.search(r"(?<!\\)<xss", markdown.content.decode())
    for address in ("/api/v1/benchmarks/toy/board.csv", "/b/toy/board.csv"):
        answer = client.get(address)
        content = (b"".join(answer) if answer.streaming else answer.content).decode()
        assert answer.headers["Content-Type"].startswith("text/csv")
        assert answer.headers["Content-Disposition"].startswith("attachment")
        cells = [cell for row in csv.reader(io.StringIO(content)) for cell in row]
        assert any(FORMULA in cell for cell in cells)
        assert not [cell for cell in cells if cell.startswith(("=", "+", "@", "\t"))]
    for address in ("board", "agents", "tasks"):
        answer = client.get(f"/api/v1/benchmarks/toy/{address}")
        assert answer.headers["Content-Type"] == "application/json"
    for address in ("/api/schema/", "/api/v1/benchmarks/toy/subsets.json", "/.well-known/bandstand-key"):
        assert "html" not in client.get(address).headers["Content-Type"]


# -------------------------------------------------------------------------------- more than was asked

WANTED = {
    "is_staff": "1",
    "is_superuser": "1",
    "user": "1",
    "role": "operator",
    "scopes": "operate",
    "email": "mallory@example.org",
    "status": "accepted",
    "owner": "1",
}


def test_no_form_takes_a_field_that_it_does_not_show(client, toy):
    """Mass assignment: what a form does not ask for changes nothing."""
    _, secret = invite(
        benchmark=toy, email="eve@example.org", role=Role.VIEWER, by=None, reason="x", as_of=timezone.now()
    )
    client.post(f"/invitation/{secret}", WANTED | {"name": "Eve", "password": PASSWORD})
    eve = User.objects.get(email="eve@example.org")
    assert (eve.is_staff, eve.is_superuser) == (False, False)
    assert Membership.objects.get().role == Role.VIEWER
    other = person("bob@example.org")
    wanted = WANTED | {"user": str(other.pk), "user_id": str(other.pk)}
    client.post("/account/tokens", wanted | {"name": "ci", "scope": "read", "days": "9"})
    token = ApiToken.objects.get()
    assert (token.user, token.scopes) == (eve, ["read"])
    client.post("/account/mail", wanted | {"told": "yes"})
    eve.refresh_from_db()
    other.refresh_from_db()
    assert (eve.told_by_mail, eve.is_staff, other.told_by_mail) == (True, False, False)
    agent = Agent.objects.first()
    recomputed()
    client.post(
        f"/b/toy/agents/{agent.pk}/report",
        wanted | {"text": "it saw the answers", "decided_at": "2026-01-01"},
    )
    report = Dispute.objects.get()
    assert (report.by, report.decided_at, report.upheld) == (eve, None, None)


def test_registration_makes_nobody_staff(client, db, settings):
    settings.OPEN_REGISTRATION = True
    form = {"email": "new@example.org", "password1": PASSWORD, "password2": PASSWORD}
    client.post("/accounts/signup/", WANTED | form)
    new = User.objects.get()
    assert (new.email, new.is_staff, new.is_superuser) == ("new@example.org", False, False)


def test_a_body_states_no_status_and_no_owner(post, toy):
    """The interface refuses by name what it does not know."""
    agent = {"name": "new", "scaffold": "Loop", "model": "M"}
    outcomes = [{"task": "t00", "trial": 1, "outcome": 1}]
    for field in ("status", "submitted_by", "loaded", "received_at", "token", "id"):
        answer = post({"agent": agent, "outcomes": outcomes, field: "1"})
        assert answer.status_code == 422
        assert answer.json()["faults"][0]["field"] == field
    answer = post({"agent": agent | {"owner": 1}, "outcomes": outcomes})
    assert answer.json()["faults"][0]["field"] == "agent.owner"
    assert not Submission.objects.filter(loaded=False).exists()


# -------------------------------------------------------------------------------- led elsewhere

EVIL = (
    "https://evil.example/",
    "//evil.example/",
    "/\\evil.example",
    "https:evil.example",
    "\tjavascript:alert(1)",
)


@pytest.mark.parametrize("to", EVIL)
def test_no_redirect_leads_to_another_site(client, db, to):
    person("ada@example.org")
    answers = [
        client.get("/account", {"next": to}),
        client.get("/admin/login/", {"next": to}),
        client.get(f"/{to}"),
        client.get("//evil.example/accounts/login"),
        client.get(f"/b/{to}/"),
        client.get(f"/{to}/b/toy/"),
        client.get("//evil.example/b/toy/"),
        client.get("/b//evil.example/"),
        client.post(f"/accounts/login/?next={to}", {"login": "ada@example.org", "password": PASSWORD}),
        client.get("/accounts/login/", {"next": to}),
        client.post(f"/admin/logout/?next={to}"),
        client.post("/accounts/logout/", {"next": to}),
    ]
    for answer in answers:
        location = answer.headers.get("Location", "/")
        assert re.match(r"/(?![/\\])", location), location


def test_links_in_mail_are_made_from_no_head_that_a_visitor_writes(client, db, mailoutbox):
    person("ada@example.org")
    heads = {"x-forwarded-host": "evil.example", "forwarded": "host=evil.example", "x-host": "evil.example"}
    client.post("/accounts/password/reset/", {"email": "ada@example.org"}, headers=heads)
    (mail,) = mailoutbox
    assert "evil.example" not in mail.body
    refused = client.post(
        "/accounts/password/reset/", {"email": "ada@example.org"}, headers={"host": "evil.example"}
    )
    assert refused.status_code == 400
    assert len(mailoutbox) == 1


# -------------------------------------------------------------------------------- of others


def test_nothing_is_reached_by_the_way_of_another_benchmark(client, toy):
    """Each address that names two things looks whether the one belongs to the other."""
    recomputed()
    load_text("\n".join([HEAD, "Other,x,Loop,M,2026-01-05,task,1,1"]) + "\n", slug="other")
    agent, task = Agent.objects.get(name="a00"), Task.objects.get(name="t00")
    client.force_login(person("ada@example.org"))
    assert client.get(f"/b/toy/agents/{agent.pk}").status_code == 200
    pages = [f"agents/{agent.pk}", f"tasks/{task.pk}", f"agents/{agent.pk}/report", "v1"]
    at = "/api/v1/benchmarks/other"
    of_interface = [f"{at}/agents/{agent.pk}", f"{at}/boards/1", f"{at}/boards/1/entries", f"{at}/subsets/1"]
    for address in [*(f"/b/other/{page}" for page in pages), *of_interface]:
        assert client.get(address).status_code in (404, 405), address
    badge = client.get(f"/b/other/badge.svg?agent={agent.pk}")
    assert "a00" not in badge.content.decode()


def test_an_upload_is_given_back_to_nobody(client, toy):
    """What an operator sent waits in the database for a confirmation; no address leads to it."""
    staff = person("staff@example.org", staff=True)
    Upload.objects.create(benchmark=toy, by=staff, name="x.html", content=b"<xss>", created_at=timezone.now())
    client.force_login(staff)
    assert Upload not in site._registry
    answer = client.get(f"/admin/catalog/benchmark/{toy.pk}/change/")
    assert not evil_in(answer)
