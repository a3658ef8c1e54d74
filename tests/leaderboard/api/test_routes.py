"""Every route as everybody, public and private, against a written table; and what lists may be asked."""

import json
from copy import deepcopy

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern, get_resolver, reverse
from django.utils import timezone

from leaderboard.accounts.models import ApiToken
from leaderboard.api.schema import BODIES, OF_FILES
from leaderboard.catalog.models import Agent, Benchmark, Policy, Task, Visibility
from leaderboard.catalog.rules import RULES
from leaderboard.operations.models import Dispute
from leaderboard.submissions.models import Submission
from tests.leaderboard.api.world import KINDS, OPERATOR, OTHER, STRANGER, SUBMITTER

pytestmark = pytest.mark.django_db

# The codes of: anonymous, viewer, submitter, other submitter, stranger (no member), operator.
ALL = (200,) * 6
MEMBERS = (404, 200, 200, 200, 404, 200)
KNOWN = (401, 200, 200, 200, 200, 200)
KNOWN_MEMBERS = (401, 200, 200, 200, 404, 200)
OWN = (401, 404, 200, 404, 404, 200)
OPERATORS = (401, 403, 403, 403, 403, 200)
OPERATING_MEMBERS = (401, 403, 403, 403, 404, 200)


def submitting(code):
    return (401, 403, code, code, 403, code), (401, 403, code, code, 404, code)


def operating(code):
    return (401, 403, 403, 403, 403, code), (401, 403, 403, 403, 404, code)


READ = (ALL, MEMBERS)
TABLE = {
    ("index", "GET"): (ALL, ALL),
    ("benchmarks", "GET"): (ALL, ALL),
    ("benchmark", "GET"): READ,
    ("tasks", "GET"): READ,
    ("agents", "GET"): READ,
    ("agent", "GET"): READ,
    ("reports", "POST"): ((401, 201, 201, 201, 201, 201), (401, 201, 201, 201, 404, 201)),
    ("submissions", "GET"): (KNOWN, KNOWN_MEMBERS),
    ("submissions", "POST"): submitting(201),
    ("assignments", "GET"): (KNOWN, KNOWN_MEMBERS),
    ("assignments", "POST"): submitting(201),
    ("assignment", "GET"): (OWN, OWN),
    ("subsets", "GET"): READ,
    ("subset", "GET"): READ,
    ("board", "GET"): READ,
    ("boards", "GET"): READ,
    ("board-numbered", "GET"): READ,
    ("entries", "GET"): READ,
    ("compare", "GET"): READ,
    ("validations", "GET"): READ,
    ("validation", "GET"): READ,
    ("calibrations", "GET"): READ,
    ("calibration", "GET"): READ,
    ("variances", "GET"): READ,
    ("variance", "GET"): READ,
    ("staged_studies", "GET"): READ,
    ("staged_study", "GET"): READ,
    ("drifts", "GET"): READ,
    ("drift", "GET"): READ,
    ("dstudy", "GET"): READ,
    ("alerts", "GET"): READ,
    ("rerun-requests", "GET"): READ,
    ("reselections", "GET"): (OPERATORS, OPERATING_MEMBERS),
    ("reselection", "GET"): (OPERATORS, OPERATING_MEMBERS),
    ("approve", "POST"): operating(200),
    ("reject", "POST"): operating(200),
    ("policy", "GET"): READ,
    ("policy", "POST"): operating(201),
    ("freeze", "GET"): READ,
    ("freeze", "POST"): operating(200),
    ("submission", "GET"): (OWN, OWN),
    ("withdraw", "POST"): (OWN, OWN),
    **{(f"board_{kind}", "GET"): READ for kind in OF_FILES if kind != "json"},
    **{(f"boards_{kind}", "GET"): READ for kind in OF_FILES if kind != "json"},
    ("subsets_json", "GET"): READ,
}
# Read on a connection of their own, which sees what is committed alone; test_exports.py asks for them.
APART = dict.fromkeys(
    [
        ("outcomes_csv", "GET"),
        ("outcomes_ndjson", "GET"),
        ("outcomes_parquet", "GET"),
        ("data_dictionary", "GET"),
    ],
    READ,
)
QUERIES = {"compare": {"agents": ["a00", "a15"]}}
PAGES = {
    "home": "benchmarks",
    "board": "board",
    "version": "board-numbered",
    "history": "boards",
    "validity": "validations",
    "uncertainty": "variances",
    "submission": "submission",
    "tasks": "tasks",
    "task": "tasks",
    "agent": "agent",
    "compare": "compare",
    "health": "drifts",
    "data": "benchmark",
    "board_markdown": "board",
    "board_csv": "board_csv",
    "embed": "board",
    "badge": "board",
    "card": "board",
    "cite": "board",
    "feed": "boards",
    "plot": "board",
    "withdrawn": "withdraw",
    "report": "reports",
    # No data of a benchmark stands on these.
    "invitation": None,
    "unslashed": None,
    "account": None,
    "submit": None,
    "token_made": None,
    "token_revoked": None,
    "mail": None,
    "methods": None,
    "robots": None,
    "sitemap": None,
    "signing_key": None,  # is JSON itself
}


def patterns_of(namespace):
    return [
        pattern
        for one in get_resolver().url_patterns
        if getattr(one, "namespace", None) == namespace
        for pattern in one.url_patterns
        if isinstance(pattern, URLPattern)
    ]


@pytest.fixture
def ask(client, kept):
    return asking(client, kept)


def asking(client, kept):
    """Return what calls a route by its name as somebody."""

    def call(name, method="GET", kind=OPERATOR, *, query=None, body=None, **headers):
        (pattern,) = [one for one in patterns_of("api") if one.name == name]
        given = {"slug": "toy"} | dict.fromkeys(("pk", "number", "uuid"), kept.ids.get(name))
        asked = {key: given[key] for key in pattern.pattern.converters}
        if secret := kept.secrets[kind]:
            headers["Authorization"] = f"Bearer {secret}"
        at = reverse(f"api:{name}", kwargs=asked)
        if method in ("GET", "HEAD"):
            return getattr(client, method.lower())(
                at, query if query is not None else QUERIES.get(name, {}), headers=headers
            )
        said = json.dumps(BODIES[f"post_{name}"] if body is None else body)
        return client.post(at, said, content_type="application/json", headers=headers)

    return call


@pytest.mark.parametrize("visibility", [Visibility.PUBLIC, Visibility.PRIVATE])
@pytest.mark.parametrize(("name", "method"), TABLE, ids=lambda part: part)
def test_who_may_do_what(ask, kept, name, method, visibility):
    Benchmark.objects.filter(slug="toy").update(visibility=visibility)
    expected = TABLE[name, method][visibility == Visibility.PRIVATE]
    found = []
    for kind in KINDS:
        point = transaction.savepoint()
        answer = ask(name, method, kind)
        found.append(answer.status_code)
        is_problem = answer.status_code >= 400
        media_type = "application/problem+json" if is_problem else media_type_of(name)
        assert answer["Content-Type"].split(";")[0] == media_type
        if is_problem:
            assert answer.json()["status"] == answer.status_code
        transaction.savepoint_rollback(point)
    assert tuple(found) == expected


def media_type_of(name):
    return OF_FILES.get(name.partition("_")[2], "application/json")


def test_no_route_is_missing():
    methods = {
        (pattern.name, method)
        for pattern in patterns_of("api")
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE")
        if hasattr(pattern.callback.cls, method.lower())
    }
    assert methods == set(TABLE) | set(APART)


def test_every_page_with_data_has_a_twin():
    found = {pattern.name for pattern in patterns_of("pages")}
    assert found == set(PAGES)
    assert {twin for twin in PAGES.values() if twin} <= {name for name, _ in TABLE}


@pytest.mark.parametrize(("name", "method"), [one for one in TABLE if one[1] == "GET"], ids=lambda part: part)
def test_what_is_not_known_is_refused_by_name(ask, name, method):
    answer = ask(name, query={"colour": "red"} | QUERIES.get(name, {}))
    assert answer.status_code == 400
    assert "colour" in answer.json()["detail"]


@pytest.mark.parametrize("name", [name for name, method in TABLE if method == "POST"])
def test_a_body_with_a_foreign_field_is_refused_by_name(ask, name):
    answer = ask(name, "POST", body=BODIES[f"post_{name}"] | {"colour": "red"})
    assert answer.status_code == 422
    assert answer.json()["faults"][0]["field"] == "colour"


def with_surrogates(part, whole=None):
    """Copies of a body, each with a lone surrogate in one place, and the name that is at fault there."""
    whole = part if whole is None else whole
    for key, value in [*part.items(), ("\ud800", None)]:
        part[key] = "\ud800"
        yield json.loads(json.dumps(whole)), key.replace("\ud800", r"\ud800")
        del part[key]
        if value is not None:
            part[key] = value
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, dict):
                yield from with_surrogates(inner, whole)


@pytest.mark.parametrize("name", [name for name, method in TABLE if method == "POST"])
def test_a_lone_surrogate_is_refused_by_name(ask, name):
    for body, field in with_surrogates(deepcopy(BODIES[f"post_{name}"])):
        answer = ask(name, "POST", body=body)
        assert answer.status_code == 422, (body, answer.content)
        assert any(field in (fault["field"] or "") for fault in answer.json()["faults"]), body


@pytest.mark.parametrize("name", ["freeze", "policy", "approve", "reject", "withdraw"])
def test_nothing_is_done_without_a_reason(ask, name):
    answer = ask(name, "POST", body=BODIES[f"post_{name}"] | {"reason": "  "})
    assert answer.status_code == 422
    assert answer.json()["faults"][0]["field"] == "reason"


@pytest.mark.parametrize(
    ("name", "said", "value", "rule"),
    [
        ("assignments", {"agent": []}, None, "must be an object with name, scaffold and model"),
        ("assignments", {"agent": {"name": 7}}, "7", "a name is text"),
        ("freeze", {"frozen": "yes"}, "yes", "must be true or false"),
        ("freeze", {"frozen": True, "reason": None}, None, "is required"),
        ("policy", {"values": {}}, None, "must be an object with fields of the policy to set"),
        ("approve", {"variant": "best"}, "best", "must be plain or hysteresis"),
        ("reports", {"board": 0}, "0", "must be the number of a board"),
        ("reports", {"contact": "ada"}, "ada", "must be an e-mail address"),
        ("reports", {"text": ["x"]}, None, "must be text"),
    ],
)
def test_a_fault_of_a_body_tells_the_value_and_the_rule(ask, name, said, value, rule):
    answer = ask(name, "POST", body=BODIES[f"post_{name}"] | said)
    assert answer.status_code == 422
    assert (value, rule) in {(fault["value"], fault["rule"]) for fault in answer.json()["faults"]}


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS"])
def test_other_methods(client, kept, method):
    for name in ("index", "benchmarks"):
        assert client.generic(method, reverse(f"api:{name}")).status_code == 405
    assert client.generic(method, "/api/v1/benchmarks/toy/policy").status_code == 405


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("tasks", {"limit": "0"}),
        ("tasks", {"limit": "1001"}),
        ("tasks", {"limit": "ten"}),
        ("tasks", {"offset": "-1"}),
        ("tasks", {"name": "a\0b"}),
        ("tasks", {"name": ["t01", "t02"]}),
        ("tasks", {"retired": "perhaps"}),
        ("board", {"since": "x"}),
        ("compare", {"agents": ["a00"]}),
        ("compare", {"agents": [f"a{j:02d}" for j in range(6)]}),
        ("compare", {"agents": ["a00", "a01", "a00"]}),
        ("compare", {"agents": ["a00", "a01"], "target": "sum"}),
        ("compare", {}),
        ("dstudy", {"N": "0"}),
        ("dstudy", {"estimand": "all"}),
        ("submissions", {"status": "lost"}),
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused(ask, name, query):
    answer = ask(name, query=query)
    assert answer.status_code == 400, answer.content


def test_agents_that_are_not_there_cannot_be_compared(ask):
    answer = ask("compare", query={"agents": ["a00", "nobody"]})
    assert (answer.status_code, answer.json()["type"]) == (409, "urn:bandstand:problem:nothing_to_compare")


def test_pages_of_a_list(ask, client):
    first = ask("tasks", query={"limit": 8}).json()
    assert (first["count"], first["previous"], len(first["results"])) == (20, None, 8)
    second = client.get(first["next"]).json()
    third = client.get(second["next"]).json()
    assert (third["next"], len(third["results"])) == (None, 4)
    names = [row["name"] for page in (first, second, third) for row in page["results"]]
    assert names == [f"t{j:02d}" for j in range(20)]
    assert client.get(third["previous"]).json() == second
    assert ask("tasks", query={"offset": 10**6}).json()["results"] == []


def test_filters(ask, kept):
    assert [row["name"] for row in ask("tasks", query={"name": "t03"}).json()["results"]] == ["t03"]
    inside = ask("tasks", query={"in_subset": "true"}).json()
    assert inside["count"] == kept.subset.members.count()
    assert all(row["pass_rate"] is not None for row in inside["results"])
    assert ask("tasks", query={"retired": "true"}).json()["count"] == 0
    assert ask("agents", query={"scaffold": "Tree"}).json()["results"][0]["name"] == "newcomer"
    ranked = ask("entries", query={"ranked": "true"}).json()
    listed = ask("entries").json()
    assert 0 < ranked["count"] <= listed["count"]


LISTS = (
    "tasks",
    "agents",
    "submissions",
    "assignments",
    "subsets",
    "boards",
    "entries",
    "alerts",
    "rerun-requests",
    "benchmarks",
)


@pytest.mark.parametrize("name", LISTS)
def test_the_number_of_queries_does_not_grow_with_rows(ask, kept, name, monkeypatch):
    """The clock stands still: once an hour a token's use is noted, which is one query more."""
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)

    def n_queries(limit):
        with CaptureQueriesContext(connection) as caught:
            answer = ask(name, query={"limit": limit})
        assert answer.status_code == 200
        return len([one for one in caught if "SAVEPOINT" not in one["sql"]]), len(answer.json()["results"])

    ask(name)  # the token's first use is noted
    few, _ = n_queries(1)
    many, n_rows = n_queries(1000)
    assert many == few <= 9
    assert n_rows >= 1


def test_who_sees_which_submissions(ask, kept):
    assert {row["id"] for row in ask("submissions", kind=SUBMITTER).json()["results"]} == {kept.submission}
    assert ask("submissions", kind=OTHER).json()["count"] == 0
    assert ask("submissions", kind=OPERATOR).json()["count"] == Submission.objects.count()


def test_an_agent_shows_only_when_something_counted(ask, kept):
    Submission.objects.filter(uuid=kept.submission).update(status="waiting")
    names = {kind: {row["name"] for row in ask("agents", kind=kind).json()["results"]} for kind in KINDS}
    assert {kind for kind in KINDS if "newcomer" in names[kind]} == {SUBMITTER, OPERATOR}


def test_an_assignment_is_repeated(ask, kept):
    first = ask("assignments", "POST", OTHER)
    again = ask("assignments", "POST", OTHER)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    told = first.json()
    assert {
        "id",
        "mode",
        "reason",
        "subset",
        "tasks",
        "n_trials",
        "n_trials_recommended",
        "expires_at",
    } <= set(told)
    inside = set(kept.subset.members.values_list("task__name", flat=True))
    assert inside <= set(told["tasks"]) <= set(Task.objects.values_list("name", flat=True))
    assert (told["mode"], told["subset"]) == ("subset", 1)
    assert ask("assignments", "POST", SUBMITTER).status_code == 403  # the agent is another's by now


def test_frozen(ask):
    assert ask("freeze", "POST").json()["frozen"] is True
    assert ask("freeze").json()["reason"] == BODIES["post_freeze"]["reason"]
    assert ask("freeze", "POST").status_code == 409
    assert [ask(name, "POST").status_code for name in ("assignments", "submissions")] == [423, 423]
    answer = ask("freeze", "POST", body={"frozen": False, "reason": "repaired"})
    assert answer.json() == {"frozen": False, "since": None, "reason": ""}


def test_a_policy_is_set_whole_or_not_at_all(ask, kept):
    before = ask("policy").json()
    refused = ask("policy", "POST", body={"values": {"n_trials": 0, "colour": 1}, "reason": "x"})
    assert refused.status_code == 422
    assert {fault["field"] for fault in refused.json()["faults"]} == {"n_trials", "colour"}
    assert ask("policy").json() == before
    after = ask("policy", "POST").json()
    again = ask("policy", "POST")
    assert (again.status_code, again.json()["number"]) == (200, after["number"])
    assert after["number"] == before["number"] + 1
    changed = {name for name, value in after["values"].items() if value != before["values"][name]}
    assert changed == {"n_trials", "members_only"}
    assert kept.benchmark.policies.latest("number").created_by.email == "operator@example.org"


def test_a_policy_says_what_decided_it_and_which_fields_are_advanced(ask, kept):
    before = ask("policy").json()
    assert before["resolved_from"] == ""
    advanced = {name for name, rule in before["rules"].items() if rule.endswith(" (advanced)")}
    assert advanced == before["values"].keys() - set(Policy.BASIC)
    policy = kept.benchmark.policies.latest("number")
    policy.pk, policy.number, policy.resolved_from = None, policy.number + 1, "auto: 1 of 6 agents"
    policy.save(force_insert=True)
    assert ask("policy").json()["resolved_from"] == "auto: 1 of 6 agents"


@pytest.mark.parametrize(
    "value",
    [
        "\ud800",
        '["\ud800"]',
        '[{"judge": "\ud800"}]',
        "\n",
        "١",
        "0_1",
        pytest.param("[" * 10_000, id="deep"),
    ],
)
def test_a_value_that_no_field_takes_is_refused_by_name(ask, value):
    said = dict.fromkeys(RULES, value) | {"\ud800": value}
    before = ask("policy").json()
    refused = ask("policy", "POST", body={"values": said, "reason": "x"})
    assert refused.status_code == 422
    assert refused["Content-Type"] == "application/problem+json"
    assert {fault["field"] for fault in refused.json()["faults"]} == {*RULES, r"\ud800"}
    assert ask("policy").json() == before


def test_anybody_with_a_confirmed_address_submits_where_the_policy_says_so(ask, kept):
    from leaderboard.accounts.services import confirm_address

    ask("policy", "POST", body={"values": {"members_only": False}, "reason": "open to all"})
    assert ask("assignments", "POST", STRANGER).status_code == 403
    confirm_address(user=kept.tokens[STRANGER].user)
    assert ask("assignments", "POST", STRANGER).status_code == 201
    Benchmark.objects.filter(slug="toy").update(visibility=Visibility.UNLISTED)
    assert ask("assignments", "POST", STRANGER).status_code == 403


def test_the_lesser_of_scopes_and_roles(ask, kept):
    for scopes, codes in (
        (["read"], (403, 403)),
        (["read", "submit"], (200, 403)),
        (["operate"], (403, 200)),
    ):
        ApiToken.objects.filter(pk=kept.tokens[OPERATOR].pk).update(scopes=scopes)
        point = transaction.savepoint()
        assignment = ask("assignments", "POST").status_code
        found = (200 if assignment == 201 else assignment, ask("freeze", "POST").status_code)
        transaction.savepoint_rollback(point)
        assert found == codes, scopes


def test_a_token_reaches_its_benchmarks_alone(ask, kept):
    """What its owner has on a public benchmark beyond them is not told to it either."""
    theirs = ("submissions", "assignments", "assignment")
    assert [ask(name, kind=SUBMITTER).status_code for name in theirs] == [200] * 3
    ApiToken.objects.filter(pk=kept.tokens[SUBMITTER].pk).update(benchmarks=["other"])
    assert [ask(name, kind=SUBMITTER).status_code for name in ("board", *theirs)] == [200, 404, 404, 404]
    Benchmark.objects.filter(slug="toy").update(visibility=Visibility.PRIVATE)
    ApiToken.objects.filter(pk=kept.tokens[OPERATOR].pk).update(benchmarks=["other"])
    assert [ask(name).status_code for name in ("board", "submission", "reselections")] == [404] * 3
    assert ask("benchmarks").json()["count"] == 0


def test_what_became_of_a_submission(ask, kept):
    told = ask("submission", kind=SUBMITTER).json()
    assert (told["status"], told["agent"], told["benchmark"]) == ("accepted", "newcomer", "toy")
    assert told["n_outcomes"] == 18
    assert told["lacking"] == [] or "no outcome" in told["lacking"][0]
    assert (told["board"], told["entry"]) == (None, None)
    assert told["standing"] == "It counts. The next board shows it."
    assert told["assignment"]["id"] == str(kept.assignment.uuid)
    assert [one["status"] for one in told["history"]] == ["accepted"]
    taken = ask("withdraw", "POST", SUBMITTER)
    assert taken.json() == {"id": kept.submission, "status": "withdrawn"}
    after = ask("submission", kind=SUBMITTER).json()
    assert [one["status"] for one in after["history"]] == ["accepted", "withdrawn"]
    assert after["history"][-1]["reason"] == BODIES["post_withdraw"]["reason"]
    assert ask("withdraw", "POST", SUBMITTER).status_code == 409


def test_a_reported_entry_waits_for_an_operator(ask, kept):
    told = ask("reports", "POST", STRANGER).json()
    stored = Dispute.objects.get(pk=told["id"])
    assert (stored.agent.name, stored.by.email, stored.board_number) == ("a00", "stranger@example.org", 1)
    assert stored.decided_at is None


def test_a_report_of_a_board_that_there_is_not_is_refused_by_name(ask, kept):
    answer = ask("reports", "POST", STRANGER, body=BODIES["post_reports"] | {"board": 999999})
    assert (answer.status_code, answer["Content-Type"]) == (422, "application/problem+json")
    (fault,) = answer.json()["faults"]
    assert (fault["field"], fault["value"]) == ("board", "999999")
    assert not Dispute.objects.exists()


def test_a_proposal_is_decided_once(ask, kept):
    told = ask("reselection").json()
    assert told["status"] == "proposed"
    assert set(told["content"]["variants"]) == {"plain", "hysteresis"}
    if told["obstacle"]:
        assert ask("approve", "POST").status_code == 409
    else:
        approved = ask("approve", "POST").json()
        assert (approved["status"], approved["subset"]) == ("approved", 2)
        assert ask("subsets").json()["count"] == 2
    assert ask("reject", "POST").status_code == 409 if not told["obstacle"] else 200


# ------------------------------------------------------------------------------------------------- boards


def test_a_board_that_has_not_changed_is_not_sent_again(ask, client, kept):
    first = ask("board", kind="anonymous")
    assert first["Cache-Control"] == "public, max-age=0, must-revalidate"
    tag = first["ETag"]
    with CaptureQueriesContext(connection) as caught:
        again = ask("board", kind="anonymous", **{"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")
    assert len(caught) == 2  # the benchmark; its board
    since = ask("board", kind="anonymous", **{"If-Modified-Since": first["Last-Modified"]})
    assert since.status_code == 304
    for sent in (tag, f'"another", {tag}', "*"):
        assert ask("board", kind="anonymous", **{"If-Match": sent}).status_code == 200
    other = ask("board", kind="anonymous", **{"If-Match": 'W/"another"'})
    assert (other.status_code, other["Content-Type"]) == (412, "application/problem+json")
    assert other.json()["detail"].endswith("Get it again without these headers.")
    Benchmark.objects.filter(slug="toy").update(shown_version=99)
    assert ask("board", kind="anonymous", **{"If-None-Match": tag}).status_code == 200
    assert ask("board", **{"If-None-Match": tag})["Cache-Control"] == "private, no-store"


@pytest.mark.parametrize("accepted", ["identity", "gzip"])
@pytest.mark.parametrize(
    ("name", "kind"),
    [("board", "anonymous"), ("board", OPERATOR), ("board-numbered", "anonymous"), ("tasks", "anonymous")],
)
def test_what_has_not_changed_has_the_headers_of_the_whole(ask, name, kind, accepted):
    """Those that RFC 9110 names in 15.4.5."""
    whole = ask(name, kind=kind, **{"Accept-Encoding": accepted})
    known = {"If-None-Match": whole["ETag"], "Accept-Encoding": accepted}
    unchanged = ask(name, kind=kind, **known)
    assert unchanged.status_code == 304
    for header in ("Cache-Control", "Content-Location", "ETag", "Expires", "Vary"):
        assert unchanged.headers.get(header) == whole.headers.get(header), header


@pytest.mark.parametrize("kind", ["anonymous", OPERATOR])
def test_head_has_the_headers_of_get(ask, kind):
    for name in (name for name, method in TABLE if method == "GET"):
        whole, head = ask(name, kind=kind), ask(name, "HEAD", kind)
        assert (head.status_code, head.content) == (whole.status_code, b""), name
        for header in ("Cache-Control", "Content-Length", "ETag", "Vary"):
            assert head.headers.get(header) == whole.headers.get(header), name
        if whole.status_code == 200 and "ETag" in whole:
            assert ask(name, "HEAD", kind, **{"If-None-Match": whole["ETag"]}).status_code == 304, name


def test_what_changed_since(ask, kept):
    assert kept.board.number == 2
    told = ask("board", query={"since": 1}).json()
    assert told["since"]["number"] == 1
    assert set(told["since"]["changes"]["entered"]) == {f"b{j:02d}" for j in range(16)}
    assert "since" not in ask("board").json()
    for since in (2, 7):
        assert ask("board", query={"since": since}).status_code == 404


def test_a_board_by_number_is_the_same(ask):
    latest, numbered = ask("board"), ask("board-numbered")
    assert latest.json() == numbered.json()
    entries = ask("entries", query={"limit": 1000}).json()["results"]
    lines = [
        {key: value for key, value in one.items() if key not in ("position", "withdrawn")} for one in entries
    ]
    assert lines == latest.json()["agents"]
    assert [one["position"] for one in entries] == list(range(len(entries)))


def test_costs_are_hidden_everywhere(ask, kept):
    policy = kept.benchmark.policies.latest("number")
    policy.pk, policy.number, policy.show_costs = None, policy.number + 1, False
    policy.save(force_insert=True)
    for line in (
        *ask("board").json()["agents"],
        *ask("entries").json()["results"],
        ask("agent").json()["entry"],
    ):
        assert line["cost_usd"] is None


def test_compared_agents(ask, kept):
    told = ask("compare").json()
    (pair,) = told["pairs"]
    scores = {name: one["score"] for name, one in told["agents"].items()}
    assert pair["difference"] == pytest.approx(scores[pair["a"]] - scores[pair["b"]])
    assert pair["lower"] < pair["difference"] < pair["upper"]
    on_board = {line["agent"]: line["at"]["full"]["score"] for line in ask("board").json()["agents"]}
    full = ask("compare", query={"agents": ["a00", "a15"], "target": "full"}).json()["agents"]
    assert {name: one["score"] for name, one in full.items()} == pytest.approx(
        {name: on_board[name] for name in full}
    )


def test_links_lead_somewhere(ask, client, kept):
    answered = ask("benchmark").json()["links"]
    secret = {"Authorization": f"Bearer {kept.secrets[OPERATOR]}"}
    codes = {name: client.get(at, headers=secret).status_code for name, at in answered.items()}
    assert codes.pop("compare") == 400  # names no agents
    assert set(codes.values()) == {200}
    for name in (
        "agents",
        "submissions",
        "assignments",
        "subsets",
        "boards",
        "drifts",
        "calibrations",
        "reselections",
    ):
        row = ask(name).json()["results"][0]
        assert client.get(row["links"]["self"], headers=secret).status_code == 200
    index = ask("index").json()["links"]
    assert client.get(index["benchmark"].format(slug="toy")).status_code == 200
    assert {
        name for name, at in index.items() if "{" not in at and client.get(at).status_code != 200
    } == set()


def test_an_agent_that_was_merged_or_is_unknown(ask, client, kept):
    assert client.get("/api/v1/benchmarks/toy/agents/999999").status_code == 404
    assert client.get(f"/api/v1/benchmarks/toy/agents/{10**30}").status_code == 404
    assert Agent.objects.get(name="a00").pk == ask("agent").json()["id"]
