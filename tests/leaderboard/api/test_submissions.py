"""Delivering through the API: one transaction, every fault at once, each answer given once."""

import gzip
import json
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar

import pytest
from django.db import connection
from django.utils import timezone

from leaderboard.catalog.models import Agent, Benchmark, Policy, Task, Visibility
from leaderboard.operations.services import recompute
from leaderboard.submissions.models import IdempotencyKey, Outcome, Submission
from tests.leaderboard.api.deliver import send, token_for
from tests.toys import AS_OF, csv_text, ladder, lines_of, load_text

TODAY = f"{datetime.now(UTC):%Y-%m-%d}"


def body(agent="newcomer", outcomes=None, **more):
    return {
        "agent": {"name": agent, "scaffold": "Loop", "model": "Model 9"},
        "submitted_at": TODAY,
        "outcomes": [{"task": f"t{j:02d}", "trial": 1, "outcome": j % 2} for j in range(20)]
        if outcomes is None
        else outcomes,
    } | more


def counts():
    return Submission.objects.count(), Outcome.objects.count(), Benchmark.objects.get(slug="toy").data_version


def test_a_delivery_counts_once_and_is_on_the_next_board(post, toy):
    before = counts()
    response = post(body())
    assert response.status_code == 201, response.content
    answer = response.json()
    assert answer["status"] == "accepted"
    assert (answer["n_outcomes"], answer["n_invalid"], answer["agent"]) == (20, 0, "newcomer")
    assert answer["links"]["board"].endswith("/api/v1/benchmarks/toy/board")
    submission = Submission.objects.get(uuid=answer["id"])
    assert submission.submitted_by.email == "ada@example.org"
    assert submission.agent.owner == submission.submitted_by
    assert counts() == (before[0] + 1, before[1] + 20, before[2] + 1)
    board, is_new = recompute(benchmark=toy, as_of=AS_OF)
    assert is_new
    line = lines_of(board)["newcomer"]
    assert (line.at["full"].score, line.scaffold, line.model, line.run_by) == (0.5, "Loop", "Model 9", "self")


FAULTS = [
    ({"outcomes": [{"task": "t01", "trial": 1, "outcome": 1.2}]}, 1, "outcome", "0 to 1"),
    ({"outcomes": [{"task": "t01", "trial": 1, "outcome": "x"}]}, 1, "outcome", "0 to 1"),
    ({"outcomes": [{"task": "t01", "trial": 1}]}, None, "outcome", "missing"),
    ({"outcomes": [{"trial": 1, "outcome": 1}]}, None, "task", "missing"),
    ({"outcomes": [{"task": "t01", "trial": 1, "outcome": 1}, {"trial": 1, "outcome": 1}]}, 2, "task", ""),
    ({"outcomes": ["t01"]}, 1, None, "object"),
    ({"outcomes": []}, None, "outcomes", "required"),
    ({"outcomes": "all"}, None, "outcomes", "list"),
    ({"submitted_at": "soon"}, None, "submitted_at", ""),
    ({"submitted_at": [TODAY]}, None, "submitted_at", "not a list"),
    ({"submitted_at": f"{datetime.now(UTC) + timedelta(days=2):%Y-%m-%d}"}, None, "submitted_at", "future"),
    ({"submitted_at": "2020-01-01"}, None, "submitted_at", "30 days"),
    ({"agent": "newcomer"}, None, "agent", "object"),
    ({"agent": []}, None, "agent", "must be an object with name, scaffold and model"),
    ({"agent": {"name": "a", "scaffold": "b"}}, None, "agent.model", "required"),
    (
        {"agent": {"name": "a", "scaffold": "b", "model": "c", "colour": "d"}},
        None,
        "agent.colour",
        "not a field",
    ),
    ({"agent": {"name": "a\nb", "scaffold": "b", "model": "c"}}, None, "agent.name", ""),
    ({"assignment": "123"}, None, "assignment", "is the id of an assignment"),
    ({"score": 1}, None, "score", "not a field"),
    ({"links": {"logs": "javascript:alert(1)"}}, None, "links.logs", "https://"),
    *(
        ({"links": {"commit": link}}, None, "links.commit", "name a host")
        for link in (
            "https://",
            "https://[::1",
            'https://exa mple.org"onmouseover=1',
            "https://example.org:99999999/",
            "https://bank.example@evil.example/",
            "https://EXAMPLE.org\\@evil/",
        )
    ),
    ({"replaces": "the last one"}, None, "replaces", "id of a submission"),
]


@pytest.mark.parametrize(("change", "row", "field", "words"), FAULTS)
def test_a_fault_names_row_field_and_rule_and_nothing_is_stored(post, change, row, field, words):
    before = counts()
    response = post(body() | change)
    assert response.status_code == 422, response.content
    assert response["Content-Type"] == "application/problem+json"
    problem = response.json()
    assert problem["status"] == 422
    assert problem["n_faults"] >= 1
    assert [f for f in problem["faults"] if (f["row"], f["field"]) == (row, field) and words in f["rule"]], (
        problem
    )
    assert counts() == before
    assert not Agent.objects.filter(name__in=["newcomer", "a"]).exists()


def test_all_faults_come_at_once(post):
    rows = [{"task": "nope", "trial": 1, "outcome": 1}, {"task": "t01", "trial": -1, "outcome": 7}]
    faults = post(body(outcomes=rows, colour="red", replaces=7)).json()["faults"]
    assert [f["row"] or 0 for f in faults] == sorted(f["row"] or 0 for f in faults)
    assert {(f["row"], f["field"]) for f in faults} == {
        (1, "task"),
        (2, "trial"),
        (2, "outcome"),
        (None, "colour"),
        (None, "replaces"),
    }


def test_a_fault_of_the_agent_is_told_once(post):
    named = body() | {"agent": {"name": "a\nb", "scaffold": "", "model": "x" * 256, "version": " 1"}}
    for delivered, fields in (
        (named, ["agent.model", "agent.name", "agent.scaffold", "agent.version"]),
        (body() | {"agent": None}, ["agent"]),
    ):
        assert sorted(f["field"] for f in post(delivered).json()["faults"]) == fields


def test_weights_are_open_or_closed(post, toy, client):
    delivered = body() | {"agent": body()["agent"] | {"weights": "partly"}}
    (fault,) = post(delivered).json()["faults"]
    assert (fault["field"], fault["value"]) == ("agent.weights", "partly")
    assert fault["rule"] == "must be open or closed"
    delivered["agent"]["weights"] = "open"
    assert post(delivered).status_code == 201
    board, _ = recompute(benchmark=toy, as_of=AS_OF)
    assert lines_of(board)["newcomer"].weights == "open"
    pk = Agent.objects.get(name="newcomer").pk
    assert client.get(f"/api/v1/benchmarks/toy/agents/{pk}").json()["weights"] == "open"


def test_names_obey_the_same_rule_as_in_a_file(post):
    """What can be seen may be in a name; a joiner, a direction override or a mark may not."""
    assert post(body(agent="語\u200dЖ / #1")).status_code == 422
    assert post(body(agent="語Ж / #1")).status_code == 201
    marked = body() | {"agent": {"name": "ᴠᴇʀɪꜰɪᴇᴅ", "scaffold": "Loop", "model": "★ M"}}
    faults = post(marked).json()["faults"]
    assert [(one["field"], one["value"]) for one in faults] == [("agent", "ᴠᴇʀɪꜰɪᴇᴅ"), ("model", "★ M")]
    assert faults[0]["rule"] == "has the sign ᴠ (U+1D20), as a mark of the board; use plain letters"
    assert post(body(agent="a\u202eb")).json()["faults"][0]["field"] == "agent.name"


def test_unknown_task_gets_near_matches(post):
    problem = post(body(outcomes=[{"task": "t1", "trial": 1, "outcome": 1}])).json()
    (fault,) = problem["faults"]
    assert (fault["row"], fault["field"], fault["value"]) == (1, "task", "t1")
    assert re.fullmatch(r'unknown task. Did you mean "t\d\d" or "t\d\d" or "t\d\d"\?', fault["rule"])
    assert not Agent.objects.filter(name="newcomer").exists()


def test_the_same_rows_again(post):
    first = post(body()).json()
    answer = post(body())
    assert answer.status_code == 409
    assert answer.json()["type"] == "urn:bandstand:problem:already_delivered"
    assert answer.json()["submission"] == first["id"]


def test_overlapping_keys_are_named(post):
    first = post(body()).json()
    rows = [{"task": "t19", "trial": 1, "outcome": 0}, {"task": "t01", "trial": 2, "outcome": 0}]
    problem = post(body(outcomes=rows)).json()
    assert (problem["status"], problem["n_keys"]) == (409, 1)
    (key,) = problem["keys"]
    assert (key["row"], key["task"], key["trial"], key["submission"]) == (1, "t19", 1, first["id"])
    assert "replaces" in problem["detail"]


def test_another_run_label_or_trial_is_another_key(post):
    post(body())
    assert post(body(run="second")).status_code == 201
    assert post(body(outcomes=[{"task": "t01", "trial": 2, "outcome": 0}])).status_code == 201


def test_replaces_supersedes_in_the_same_transaction(post):
    first = post(body()).json()
    rows = [{"task": "t01", "trial": 1, "outcome": 0}]
    second = post(body(outcomes=rows, replaces=first["id"]))
    assert second.status_code == 201
    old = Submission.objects.get(uuid=first["id"])
    assert old.status == "superseded"
    assert old.replaced_by.get().status == "accepted"
    assert post(body(outcomes=rows, run="x", replaces=first["id"])).json()["status"] == 409


def test_replaces_names_a_submission_of_the_same_agent(post, toy):
    other = str(toy.agents.get(name="a01").submissions.get().uuid)
    assert post(body(replaces=other)).json()["type"].endswith("nothing_to_replace")


def test_assignment_names_one_of_the_same_agent(post):
    refused = post(body(assignment="5f0c3a52-6d6e-4f0e-9a35-6a1a6f3a5b1c"))
    assert refused.status_code == 409
    assert refused.json()["type"].endswith("not_its_assignment")
    assert post(body(assignment=None)).json()["assignment"] is None


def test_an_agent_is_added_to_by_its_owner_and_operators(post):
    post(body())
    eve, olga = token_for("eve@example.org"), token_for("olga@example.org", "operate")
    assert post(body(run="r2"), token=eve).status_code == 403
    assert post(body(run="r2"), token=olga).status_code == 201


def test_an_agent_keeps_scaffold_and_model(post):
    post(body())
    changed = body(run="r2") | {"agent": {"name": "newcomer", "scaffold": "Tree", "model": "Model 9"}}
    problem = post(changed).json()
    assert problem["status"] == 409
    assert "'Loop'" in problem["detail"]
    assert "'Tree'" in problem["detail"]


def test_older_dates_need_an_operator_and_are_marked(post):
    old = body(submitted_at="2025-01-01")
    assert post(old).status_code == 422
    answer = post(old, token=token_for("olga@example.org", "operate")).json()
    assert Submission.objects.get(uuid=answer["id"]).backdated


@pytest.mark.parametrize("absent", [{}, {"submitted_at": None}, {"submitted_at": ""}])
def test_without_a_date_it_is_that_of_the_delivery(post, absent):
    undated = {key: value for key, value in body().items() if key != "submitted_at"} | absent
    submission = Submission.objects.get(uuid=post(undated).json()["id"])
    assert submission.submitted_at == submission.received_at.replace(microsecond=0)
    assert (submission.imprecise, submission.backdated) == (False, False)


def test_manual_review_waits_and_does_not_count(post, toy):
    Policy.objects.create(benchmark=toy, number=2, review="manual")
    before = Benchmark.objects.get().data_version
    assert post(body()).json()["status"] == "waiting"
    assert Benchmark.objects.get().data_version == before
    assert post(body()).json()["type"].endswith("already_delivered")


def test_frozen_intake(post, toy):
    Benchmark.objects.filter(pk=toy.pk).update(frozen_at=AS_OF, frozen_reason="moving house")
    problem = post(body()).json()
    assert problem["status"] == 423
    assert "moving house" in problem["detail"]


class TestIdempotency:
    KEY: ClassVar = {"Idempotency-Key": "ci-run-17"}

    def test_the_answer_is_repeated_and_nothing_happens_twice(self, post):
        first = post(body(), **self.KEY)
        before = counts()
        again = post(body(), **self.KEY)
        assert (again.status_code, again.json()) == (201, first.json())
        assert again["Idempotent-Replayed"] == "true"
        assert "Idempotent-Replayed" not in first
        assert counts() == before

    def test_so_it_is_once_the_embargo_has_passed(self, post, monkeypatch):
        now = timezone.now()
        until = now + timedelta(minutes=5)
        delivered = body(embargo_until=until.isoformat())
        first = post(delivered, **self.KEY)
        monkeypatch.setattr(timezone, "now", lambda: until + timedelta(minutes=1))
        again = post(delivered, **self.KEY)
        assert (first.status_code, again.status_code, again.json()) == (201, 201, first.json())
        new = post(delivered, **{"Idempotency-Key": "ci-run-18"})
        assert new.status_code == 422
        assert "does not lie after the delivery" in str(new.json())

    def test_spacing_and_key_order_do_not_make_another_body(self, post):
        post(body(), **self.KEY)
        reordered = json.dumps(dict(reversed(body().items())), indent=3)
        assert post(reordered, **self.KEY)["Idempotent-Replayed"] == "true"

    def test_another_body_is_refused(self, post):
        post(body(), **self.KEY)
        assert post(body(run="r2"), **self.KEY).json()["type"].endswith("key_reused")

    def test_a_refusal_is_not_kept(self, post):
        faulty = body(outcomes=[{"task": "nope", "trial": 1, "outcome": 1}])
        assert post(faulty, **self.KEY).status_code == 422
        assert not IdempotencyKey.objects.exists()
        assert post(body(), **self.KEY).status_code == 201

    def test_two_people_may_use_the_same_key(self, post):
        post(body(), **self.KEY)
        answer = post(body(agent="other"), token=token_for("eve@example.org"), **self.KEY)
        assert answer.status_code == 201
        assert "Idempotent-Replayed" not in answer

    @pytest.mark.parametrize("key", ["", "x" * 256, "naïve"])
    def test_malformed_key(self, post, key):
        assert post(body(), **{"Idempotency-Key": key}).status_code == 400


def at_once(**headers):
    """Send one body six times at once."""
    load_text(csv_text(ladder(6, 20)))
    token = token_for("ada@example.org")

    def deliver(_):
        try:
            return send(body(), token=token, **headers)
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        return list(pool.map(deliver, range(6)))


@pytest.mark.django_db(transaction=True)
def test_twins_at_once_store_once():
    answers = at_once(**{"Idempotency-Key": "twin"})
    assert {a.status_code for a in answers} == {201}
    assert len({a.json()["id"] for a in answers}) == 1
    assert sum("Idempotent-Replayed" not in a for a in answers) == 1
    assert Submission.objects.filter(agent__name="newcomer").count() == 1


@pytest.mark.django_db(transaction=True)
def test_rivals_at_once_without_a_key():
    assert sorted(a.status_code for a in at_once()) == [201, 409, 409, 409, 409, 409]


class TestTokens:
    def test_none(self, post):
        response = post(body(), token=None)
        assert response.status_code == 401
        assert response["WWW-Authenticate"].startswith("Bearer")
        assert "Authorization: Bearer bst_…" in response.json()["detail"]
        assert response["Content-Type"] == "application/problem+json"

    def test_mistyped(self, post, submit_token):
        assert "not a Bandstand token" in post(body(), token=submit_token[:-1]).json()["detail"]

    def test_expired_says_when(self, post):
        token = token_for("ada@example.org", as_of=datetime(2025, 1, 1, tzinfo=UTC))
        response = post(body(), token=token)
        assert (response.status_code, "expired on 2025-01-02" in response.json()["detail"]) == (401, True)

    def test_scope_read(self, post):
        assert post(body(), token=token_for("ada@example.org", "read")).status_code == 403

    def test_role_is_looked_up_at_each_request(self, post, django_user_model, submit_token):
        user = django_user_model.objects.get(email="ada@example.org")
        user.memberships.update(role="viewer")
        assert post(body()).status_code == 403

    def test_token_of_another_benchmark(self, post, django_user_model):
        load_text(csv_text(ladder(5, 20)), slug="other")
        assert post(body(), slug="other").status_code == 403
        Benchmark.objects.filter(slug="other").update(visibility=Visibility.PRIVATE)
        assert post(body(), slug="other").status_code == 404

    def test_a_cookie_never_authorises(self, client, toy, django_user_model):
        client.cookies["sessionid"] = "anything"
        url = "/api/v1/benchmarks/toy/submissions"
        assert client.post(url, json.dumps(body()), content_type="application/json").status_code == 401


class TestBodies:
    @pytest.mark.parametrize(
        ("raw", "words"),
        [
            (b"{", "not JSON"),
            (b"", ""),
            (b'{"outcomes": NaN}', "NaN is not a JSON number: line 1 column 14"),
            (b'{"a": 1, "a": 2}', 'the key "a" appears twice in one object: line 1 column 10'),
            (b'{"a": ["{", {"a": 1}],\n"b": 1e999}', "1e999 is too large for a number: line 2 column 6"),
            (b'[{"a": 1e-400}]', "1e-400 is too small for a number: write 0: line 1 column 8"),
            (b"[" + b"9" * 5000 + b"]", "a number has too many digits: 5,000: line 1 column 2"),
            (b"\xff\xfe{", "UTF-8"),
            (b"[" * 100_000, "nested"),
        ],
    )
    def test_malformed(self, post, raw, words):
        response = post(raw)
        assert response.status_code in (400, 411, 422)
        assert response["Content-Type"] == "application/problem+json"
        assert words in response.json()["detail"]

    def test_empty(self, post):
        response = post("", CONTENT_LENGTH="0")
        assert (response.status_code, response.json()["detail"]) == (
            400,
            "The body is empty. Send a JSON object.",
        )

    @pytest.mark.parametrize("depth", [*range(100, 1100, 50), 5_000])
    def test_nesting_is_refused_at_any_depth(self, post, depth):
        response = post('{"links": ' * depth + "1" + "}" * depth)
        assert response.status_code in (400, 422)
        assert response["Content-Type"] == "application/problem+json"

    def test_too_large(self, post):
        response = post(b'"' + b"x" * (16 * 2**20) + b'"')
        assert (response.status_code, response["Content-Type"]) == (413, "application/problem+json")

    def test_too_many_values(self, post):
        response = post(b"[" + b"[]," * 500_000 + b"0]")
        assert (response.status_code, response["Content-Type"]) == (413, "application/problem+json")
        assert "1,000,000 commas" in response.json()["detail"]

    def test_as_many_rows_and_fields_as_may_be_are_parsed(self, post):
        row = {"task": "t01", "outcome": 1} | {f"c{j}": "" for j in range(27)}
        response = post(body(outcomes=[row | {"trial": i} for i in range(20_000)]))
        assert response.status_code == 201, response.content[:300]

    def test_metadata_are_limited(self, post):
        rows = [{"task": "t01", "trial": i, "outcome": 1, "log": "x" * 4000} for i in range(20)]
        assert post(body(outcomes=rows[:16])).status_code == 201
        (fault,) = post(body(outcomes=rows)).json()["faults"]
        assert (fault["row"], fault["field"]) == (None, "log")
        assert "80,000 bytes of metadata" in fault["rule"]
        (fault,) = post(body(outcomes=[rows[0] | {"log": "x" * 4097}])).json()["faults"]
        assert (fault["row"], fault["field"]) == (1, "log")

    def test_without_length(self, client, submit_token):
        response = client.generic(
            "POST",
            "/api/v1/benchmarks/toy/submissions",
            json.dumps(body()),
            content_type="application/json",
            headers={"Authorization": f"Bearer {submit_token}"},
            CONTENT_LENGTH="",
        )
        assert response.status_code == 411

    def test_other_media_types(self, client, submit_token):
        response = client.post(
            "/api/v1/benchmarks/toy/submissions",
            "task,trial,outcome",
            content_type="text/csv",
            headers={"Authorization": f"Bearer {submit_token}"},
        )
        assert (response.status_code, response["Content-Type"]) == (415, "application/problem+json")
        assert response.json()["detail"].endswith("Send application/json and multipart/form-data.")

    @pytest.mark.parametrize("kind", ["application/json", "multipart/form-data; boundary=x"])
    def test_a_body_that_is_compressed_by_its_header(self, client, submit_token, kind):
        response = client.post(
            "/api/v1/benchmarks/toy/submissions",
            gzip.compress(json.dumps(body()).encode()),
            content_type=kind,
            headers={"Authorization": f"Bearer {submit_token}", "Content-Encoding": "gzip"},
        )
        assert (response.status_code, response.json()["type"]) == (
            415,
            "urn:bandstand:problem:unsupported_media_type",
        )
        assert response.json()["detail"].startswith("Send the body without Content-Encoding.")

    @pytest.mark.parametrize("text", ["a\u0000b", "\ud800", "a\u0007"])
    def test_control_characters_and_lone_surrogates(self, post, text):
        assert post(body(agent=text)).status_code == 422
        assert post(body(outcomes=[{"task": text, "trial": 1, "outcome": 1}])).status_code == 422

    @pytest.mark.parametrize("where", ["body", "agent", "links"])
    def test_of_many_strange_fields_the_first_are_named_and_the_rest_counted(self, post, where):
        strange = {f"k{i:06d}": 1 for i in range(100_000)}
        faults = post(strange if where == "body" else {where: strange}).json()["faults"]
        prefix = "" if where == "body" else f"{where}."
        named = [f["field"] for f in faults if f["field"].startswith(f"{prefix}k0")]
        assert named == [f"{prefix}k{i:06d}" for i in range(100)]
        (rest,) = [fault["rule"] for fault in faults if fault["field"] == where and "more" in fault["rule"]]
        assert rest == "has 99,900 more fields that are not known"

    def test_a_repeated_key_is_shown_in_short(self, post):
        key = b'"' + b"k" * 100_000 + b'"'
        response = post(b"{" + key + b": 1, " + key + b": 2}")
        assert "twice" in response.json()["detail"]
        assert len(response.content) < 1_000

    def test_what_stands_in_too_long_a_list_is_not_looked_at(self, post):
        faults = post(body(outcomes=[{"task": "no such"}] * 20_001)).json()["faults"]
        assert [fault["field"] for fault in faults] == ["outcomes"]

    def test_too_many_settings(self, post):
        rows = [{"task": "t01", "trial": 1, "outcome": 1, "judge": f"j{i}"} for i in range(501)]
        assert post(body(outcomes=rows[:500])).status_code == 201
        (fault,) = post(body(outcomes=rows)).json()["faults"]
        assert fault["rule"].startswith("there are 501 settings")

    def test_too_many_rows(self, post):
        rows = [{"task": "t01", "trial": i % 30_000, "outcome": 1} for i in range(20_001)]
        assert "20,000" in post(body(outcomes=rows)).json()["faults"][0]["rule"]


def test_the_example_of_the_readme_is_taken_on_any_day(post, toy):
    """Word for word, but for the benchmark it is sent to."""
    page = (Path(__file__).resolve().parents[3] / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"-d '(\{.*?\})'$", page, re.MULTILINE | re.DOTALL)
    (task,) = json.loads(example)["outcomes"]
    Task.objects.create(benchmark=toy, name=task["task"], position=99)
    assert post(example).status_code == 201
