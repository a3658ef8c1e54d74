"""Every address of the admin, as everybody; nothing is done by GET; nothing without a reason."""

import re
from datetime import timedelta

import pytest
from django.apps import apps
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

from leaderboard.accounts.models import Scope, User
from leaderboard.admin.rows import ReadOnlyAdmin
from leaderboard.admin.urls import TABLES
from leaderboard.catalog.models import Benchmark, Role
from leaderboard.operations import corrections, people
from leaderboard.operations.erasing import erase_agent
from leaderboard.operations.events import emit
from leaderboard.operations.jobs import ask
from leaderboard.operations.models import (
    Alert,
    AlertLevel,
    EventKind,
    Notification,
    RerunRequest,
    Upload,
)
from leaderboard.operations.reselections import propose
from leaderboard.operations.services import check_drift, issue_token, recompute
from leaderboard.operations.webhooks import add_webhook
from tests.kept import stored
from tests.leaderboard.desk import people as of_each_kind
from tests.toys import AS_OF, csv_text, load_text, moved

KINDS = ("anonymous", "viewer", "submitter", "another's operator", "operator", "staff")


@pytest.fixture
def full(db, replayed_twice):
    """A benchmark with a row in each table of the admin."""
    return stored("a row in each table of the admin", in_each_table)


def in_each_table():
    benchmark = moved()
    recompute(benchmark=benchmark, as_of=AS_OF)
    now = timezone.now()
    subset = benchmark.subsets.get()
    check, _ = check_drift(benchmark=benchmark, as_of=AS_OF)
    request = RerunRequest.objects.create(
        benchmark=benchmark,
        kind="drift",
        subset=subset,
        reason="looks odd",
        n_tasks=20,
        opened_at=now,
        deadline=now + timedelta(days=9),
    )
    Alert.objects.create(
        benchmark=benchmark,
        subset=subset,
        monitor="fidelity",
        level=AlertLevel.ALERT,
        opened_by=check,
        latest=check,
        evidence={"rho": 0.7, "advice": "wait"},
        request=request,
        opened_at=now,
    )
    propose(benchmark=benchmark, by=None, reason="moved", as_of=AS_OF)
    hook(benchmark)
    emit(benchmark=benchmark, kind=EventKind.DRIFT_ALERT, about="a", payload={}, as_of=now)
    Notification.objects.update(status="parked")
    agents = list(benchmark.agents.order_by("name"))
    corrections.report(agent=agents[0], text="too good", by=None, as_of=now)
    erase_agent(agent=agents[-1], by=None, reason="asked for", as_of=now)
    people.invite(
        benchmark=benchmark, email="eve@example.org", role=Role.VIEWER, by=None, reason="new", as_of=now
    )
    issue_token(
        email="ada@example.org", slug="toy", scope=Scope.SUBMIT, name="ci", as_of=now, life=timedelta(days=9)
    )
    ask(kind="validate", benchmark=benchmark, by=None, reason="to see", as_of=now)
    return benchmark


def hook(benchmark):
    return add_webhook(
        benchmark=benchmark,
        url="https://example.org/hook",
        events=EventKind.values,
        by=None,
        reason="news",
        as_of=timezone.now(),
    )


def addresses(patterns, before=""):
    """The addresses of the admin with their names; a row's id is left open."""
    for pattern in patterns:
        path = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from addresses(pattern.url_patterns, path)
        elif isinstance(pattern, URLPattern):
            yield pattern.name, "/" + path


def admin_addresses():
    found = [one for one in get_resolver().url_patterns if isinstance(one, URLResolver)]
    every = [pair for pair in addresses(found) if pair[1].startswith("/admin/") and pair[0]]
    return sorted(dict(every).items())


def row_of(name, benchmark):
    """The row that an address is about: the first one that belongs to the benchmark."""
    for model, table in TABLES.items():
        prefix = f"{model._meta.app_label}_{model._meta.model_name}_"
        if name.startswith(prefix):
            if table.benchmark == "":
                return model.objects.get(email="staff@example.org")
            if model._meta.model_name == "apitoken":
                return model.objects.get(user__email="ada@example.org")
            wanted = {table.benchmark: benchmark.pk} if table.benchmark != "pk" else {"pk": benchmark.pk}
            return model.objects.filter(**wanted).order_by("pk").first()
    return None


FOR_STAFF = ("accounts_user_", "catalog_benchmark_create")
NEVER = ("_add", "_delete")  # rows are made and ended by actions alone
ANYWHERE = {
    "autocomplete",
    "login",
    "logout",
    "password_change",
    "password_change_done",
    "jsi18n",
    "search",
}


def expected(kind, name, path):
    if name.endswith(NEVER) and kind in ("another's operator", "operator", "staff"):
        return {403, 404}
    if kind == "anonymous":
        return {302}
    if kind in ("viewer", "submitter"):
        return {302}
    if kind != "staff" and name.startswith(FOR_STAFF):
        return {403, 404, 302}
    if "object_id" in path and kind == "another's operator":
        return {302, 404}
    return {200, 302}


@pytest.mark.parametrize(
    "kinds",
    [("anonymous", "submitter", "operator"), pytest.param(KINDS, marks=pytest.mark.slow(each=True))],
    ids=["three kinds", "all"],
)
def test_every_address_as_everybody(client, full, kinds):
    who = of_each_kind(full)
    rows = {name: row_of(name, full) for name, _ in admin_addresses() if name not in ANYWHERE}
    seen = {}
    for kind in kinds:
        if who[kind]:
            client.force_login(who[kind])
        else:
            client.logout()
        for name, path in admin_addresses():
            if name in ANYWHERE:
                continue
            row = rows[name]
            if "<path:object_id>" in path:
                assert row is not None, f"no row for {name}"
                address = path.replace("<path:object_id>", str(row.pk))
            else:
                address = path
            if "<" in address or "(?P" in address:
                continue
            answer = client.get(address)
            assert answer.status_code in expected(kind, name, path), f"{kind} {address}"
            if answer.status_code == 302 and kind in KINDS[:3]:
                assert answer.headers["Location"].startswith("/admin/login/"), address
            seen[kind, name] = answer.status_code
    assert len(seen) > len(kinds) * 90
    # Each page of an action opens for operators, or says that there is nothing to do.
    assert seen["operator", "catalog_benchmark_upload"] == 200
    assert seen["operator", "accounts_apitoken_revoke"] == 200
    assert seen["operator", "operations_reselection_approve"] == 200


def test_who_has_no_business_is_told_so(client, toy):
    client.force_login(of_each_kind(toy)["submitter"])
    assert client.get("/admin/", follow=True).status_code == 403


def test_lists_hold_what_one_operates(client, full):
    who = of_each_kind(full)
    client.force_login(who["another's operator"])
    for model in TABLES:
        answer = client.get(f"/admin/{model._meta.app_label}/{model._meta.model_name}/")
        if answer.status_code == 200:
            shown = answer.context["cl"].queryset
            of_toy = [row for row in shown if "toy" in f"{row} {getattr(row, 'benchmark', '')}"]
            assert of_toy == [], model
    for page in ("/admin/", "/admin/audit/"):
        assert re.search(r"\btoy\b", client.get(page).content.decode().replace("smart_toy", "")) is None


def state():
    """How many rows each table has, and what stands in those that actions change."""
    counts = {
        model._meta.label: model.objects.count()
        for model in apps.get_models()
        if not model._meta.label.startswith(("sessions.", "admin."))
    }
    return counts, list(Benchmark.objects.order_by("pk").values())


def test_nothing_is_done_by_get_or_without_a_reason(client, full):
    client.force_login(of_each_kind(full)["staff"])
    before = state()
    n = 0
    for name, path in admin_addresses():
        row = row_of(name, full)
        actions = {action.name.replace("-", "_") for table in TABLES.values() for action in table.row_actions}
        actions.add("create")
        if row is None or not any(name.endswith(f"_{action}") for action in actions):
            continue
        address = path.replace("<path:object_id>", str(row.pk))
        client.get(address)
        answer = client.post(address, {"confirmed": "yes", "reason": " "})
        assert answer.status_code == 422, address
        assert client.delete(address).status_code == 405
        n += 1
    assert n > 30
    assert state() == before


def test_a_post_needs_its_own_form(toy):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(of_each_kind(toy)["staff"])
    answer = strict.post(f"/admin/catalog/benchmark/{toy.pk}/frozen/", {"reason": "forged"})
    assert answer.status_code == 403
    toy.refresh_from_db()
    assert toy.frozen_at is None


def test_an_operator_acts_on_no_other_benchmark(client, toy):
    client.force_login(of_each_kind(toy)["another's operator"])
    answer = client.post(f"/admin/catalog/benchmark/{toy.pk}/frozen/", {"reason": "not mine"})
    assert answer.status_code == 404
    answer = client.post("/admin/catalog/benchmark/create/", {"slug": "x", "title": "x", "reason": "mine"})
    assert answer.status_code == 403
    assert not Benchmark.objects.filter(slug="x").exists()


def test_secrets_stand_on_no_page(client, toy):
    client.force_login(of_each_kind(toy)["staff"])
    webhook, secret = hook(toy)
    page = client.get(f"/admin/operations/webhook/{webhook.pk}/change/").content.decode()
    assert webhook.url in page
    assert secret not in page


def test_undone_twice_is_undone_once(client, toy):
    """A button pressed twice takes back the load that was shown, not the one before it."""
    load_text(csv_text({"later": "1" * 20}))
    client.force_login(of_each_kind(toy)["operator"])
    address = f"/admin/catalog/benchmark/{toy.pk}/undo-load/"
    shown = dict(client.post(address, {"reason": "wrong"}).context["carried"])
    answers = [client.post(address, shown).status_code for _ in range(2)]
    assert answers == [302, 422]
    assert client.post(address, {"reason": "wrong", "confirmed": "yes"}).status_code == 422
    assert toy.agents.filter(submissions__status="accepted").count() == 16


def test_an_error_of_our_own_is_no_query_of_the_visitor(client, toy, monkeypatch):
    def broken(*_):
        raise ValueError("a fault of the list")

    client.force_login(User.objects.create_superuser(email="staff@example.org", password="x", name="Staff"))
    monkeypatch.setattr(ReadOnlyAdmin, "get_queryset", broken)
    for query in ("", "?e=1"):
        with pytest.raises(ValueError, match="a fault of the list"):
            client.get(f"/admin/catalog/agent/{query}")


def test_the_box_over_all_pages_finds_rows(client, toy):
    client.force_login(of_each_kind(toy)["staff"])
    for text in ("agent", "toy"):
        found = client.get("/admin/search/", {"extended": "1", "s": text})
        assert found.status_code == 200
    assert client.get("/admin/search/", {"extended": "1", "s": "\0"}).status_code == 400
    asked = {"term": "\0", "app_label": "catalog", "model_name": "agent", "field_name": "benchmark"}
    assert client.get("/admin/autocomplete/", asked).status_code == 400


@pytest.mark.parametrize("asked", ["benchmark", "q", "status__exact"])
def test_no_filter_takes_a_zero_byte(client, toy, asked):
    client.force_login(of_each_kind(toy)["operator"])
    assert client.get("/admin/operations/jobrun/", {asked: "\0"}).status_code == 400


@pytest.mark.parametrize(
    "query",
    [
        "catalog/agent/?field=garbage",
        "catalog/agent/?_to_field=garbage",
        "catalog/agent/?id__regex=((",
        "catalog/membership/?events__id__exact=1",
        "submissions/submission/?content_sha256=garbage",
        "submissions/submission/?id__range=1",
        "boards/board/?number__range=",
        "catalog/policy/?created_at__year=9999999999",
        "studies/tasksubset/?chosen_from__in=a,b",
        "catalog/task/?group__unaccent=x",
        "accounts/user/?password__startswith=argon2",
        "operations/webhook/?secret__startswith=a",
        "operations/webhook/?secret__regex=^a",
    ],
)
@pytest.mark.django_db(transaction=True)
def test_a_query_that_no_list_can_answer_leads_to_the_list_without_a_traceback(client, caplog, query):
    client.force_login(User.objects.create_superuser(email="staff@example.org", password="x", name="Staff"))
    caplog.clear()
    response = client.get(f"/admin/{query}")
    assert (response.status_code, response["Location"]) == (302, f"/admin/{query.partition('?')[0]}?e=1")
    assert not [record for record in caplog.records if record.exc_info]
    assert client.get(response["Location"]).status_code == 200


@pytest.mark.parametrize(("text", "n_kept"), [("neither head nor rows", 0), (csv_text({"later": "1"}), 1)])
def test_a_file_is_kept_for_a_confirmation_alone(client, toy, text, n_kept):
    client.force_login(of_each_kind(toy)["operator"])
    sent = {"reason": "new runs", "file": SimpleUploadedFile("new.csv", text.encode())}
    client.post(f"/admin/catalog/benchmark/{toy.pk}/upload/", sent)
    assert Upload.objects.count() == n_kept
    assert not toy.agents.filter(name="later").exists()
