"""Outcomes as a file: the same rules, whatever the format; what stands beside it, the file need not say."""

import gzip
import io
import json
import threading
from typing import ClassVar

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from leaderboard.api import bodies
from leaderboard.api.parsers import UNREADABLE
from leaderboard.api.views import deliveries
from leaderboard.catalog.models import Agent, Benchmark, Policy, Review
from leaderboard.operations.models import FailedAttempts
from leaderboard.operations.services import recompute
from leaderboard.submissions.models import (
    IdempotencyKey,
    MachineCheck,
    Outcome,
    OutcomeDetail,
    Setting,
    Submission,
)
from leaderboard.submissions.parsing.files import UploadedPart
from leaderboard.submissions.parsing.importers import FORMATS
from tests.leaderboard.api.deliver import (
    ADDRESS,
    AGENT,
    FORMS,
    body,
    csv_of,
    ndjson_of,
    parquet_of,
    rows,
    send,
    send_file,
    today,
)
from tests.leaderboard.importers.shapes import inspect_log, inspect_sample, swe_report
from tests.leaderboard.service import wait_until
from tests.toys import AS_OF, lines_of

WHOLE = {"benchmark": "Toy", "agent": "newcomer", "scaffold": "Loop", "model": "Model 9"}


def stored():
    models = (Agent, Submission, Outcome, OutcomeDetail, Setting, IdempotencyKey, MachineCheck)
    return [model.objects.count() for model in models]


def faults_of(response):
    assert response.status_code == 422, response.content
    return [(one["row"], one["field"]) for one in response.json()["faults"]]


@pytest.mark.parametrize("name", ["a.csv", "a.ndjson", "a.parquet"])
def test_rows_of_a_file_with_a_header_are_said_to_count_without_it(submit_token, toy, name):
    found = rows()
    found[2]["outcome"] = 2
    response = send_file(FORMS[f"outcomes{name[1:]}"](found), token=submit_token, name=name)
    assert faults_of(response) == [(3, "outcome")]
    assert response.json()["detail"].endswith(
        "Rows count without the header." if name == "a.csv" else "Nothing was stored."
    )


def test_a_second_agent_is_named_by_its_row_where_a_row_stands_for_several_trials(submit_token, toy):
    agent = dict.fromkeys(("scaffold", "model"), "x")
    found = [row | agent | {"agent": "a", "n_averaged": 3, "outcome": 1} for row in rows(3)]
    found[2]["agent"] = "b"
    response = send_file(csv_of(found), {}, token=submit_token)
    assert faults_of(response) == [(3, "agent")]
    assert response.json()["detail"].endswith("Rows count without the header.")


def test_weights_beside_a_file_and_in_it_agree(submit_token, toy):
    table = csv_of(rows(open_model="false"))
    response = send_file(table, AGENT | {"agent.weights": "open"}, token=submit_token)
    assert faults_of(response) == [(None, "weights")]
    assert send_file(table, AGENT, token=submit_token).status_code == 201
    assert Agent.objects.get(name="newcomer").weights == "closed"


def test_semicolons_of_a_spreadsheet_are_told(submit_token, toy):
    table = csv_of(rows()).replace(b",", b";")
    response = send_file(b"\xef\xbb\xbf" + table, AGENT, token=submit_token)
    rules = [one["rule"] for one in response.json()["faults"]]
    assert len(rules) == 3
    assert all(rule.endswith("the header uses semicolons, use commas") for rule in rules)


class TestLargeFiles:
    """One at a time is read in a process; what is compressed may be large, however short."""

    @pytest.fixture(autouse=True)
    def another_is_read(self, toy, monkeypatch):
        monkeypatch.setattr(deliveries, "WAITED", 0.01)
        with deliveries._reading:
            yield
        assert deliveries._reading.acquire(blocking=False)
        deliveries._reading.release()

    @pytest.mark.parametrize("name", ["outcomes.csv.gz", "outcomes.parquet"])
    def test_one_that_may_be_large_is_to_come_again(self, submit_token, name):
        response = send_file(FORMS[name](rows()), AGENT, token=submit_token, name=name)
        assert (response.status_code, response["Retry-After"]) == (503, "5")
        assert response.json()["type"] == "urn:bandstand:problem:reading_busy"
        assert not FailedAttempts.objects.exists()
        assert not Submission.objects.filter(loaded=False).exists()

    def test_a_third_is_to_come_again_while_the_second_waits(self, submit_token, monkeypatch):
        monkeypatch.setattr(deliveries, "WAITED", 60)
        came = []

        def deliver():
            with deliveries._in_turn(UploadedPart(io.BytesIO(b"PAR1"), "second.parquet", 4)):
                came.append("second")

        second = threading.Thread(target=deliver)
        second.start()
        wait_until(lambda: deliveries._waiting._value == 0)
        third = send_file(parquet_of(rows()), AGENT, token=submit_token, name="third.parquet")
        assert (third.status_code, third["Retry-After"]) == (503, "5")
        assert Client().get("/healthz").status_code == 200
        assert (second.is_alive(), came) == (True, [])  # it would have given up, had the third waited too
        deliveries._reading.release()
        second.join()
        assert deliveries._reading.acquire(blocking=False)
        assert (came, deliveries._waiting._value) == (["second"], 1)

    def test_a_small_one_does_not_wait(self, submit_token):
        assert send_file(csv_of(rows()), AGENT, token=submit_token).status_code == 201


@pytest.mark.parametrize("name", FORMS)
def test_every_format_is_a_delivery_like_any_other(submit_token, toy, name):
    response = send_file(FORMS[name](rows()), token=submit_token, name=name)
    assert response.status_code == 201, response.content
    answer = response.json()
    assert (answer["status"], answer["n_outcomes"], answer["agent"]) == ("accepted", 20, "newcomer")
    board, _ = recompute(benchmark=toy, as_of=AS_OF)
    line = lines_of(board)["newcomer"]
    assert (line.at["full"].score, line.scaffold, line.model, line.run_by) == (0.5, "Loop", "Model 9", "self")


def test_it_stores_what_the_same_json_body_stores(submit_token):
    first = send(body("one"), token=submit_token)
    fields = {"agent.name": "two", "agent.scaffold": "Loop", "agent.model": "M two"}
    second = send_file(csv_of(rows()), fields, token=submit_token)
    hashes = Submission.objects.filter(uuid__in=[one.json()["id"] for one in (first, second)])
    assert len({bytes(one.content_sha256) for one in hashes}) == 1
    own = dict.fromkeys(("id", "agent", "quota", "links"), "")
    told = [one.json() | own for one in (first, second)]
    assert "the same outcome as 'one'" not in str(told[1])  # no recompute has seen it
    assert told[0] == told[1]


def test_the_envelope_may_be_one_part_of_json(submit_token):
    envelope = {
        "agent": {"name": "newcomer", "scaffold": "Loop", "model": "Model 9", "version": "2"},
        "submitted_at": today(),
        "run": "night",
        "links": {"commit": "https://example.org/c"},
    }
    response = send_file(csv_of(rows()), {"submission": json.dumps(envelope)}, token=submit_token)
    assert response.status_code == 201, response.content
    submission = Submission.objects.get(uuid=response.json()["id"])
    assert (submission.links, submission.agent.version) == ({"commit": "https://example.org/c"}, "2")
    (setting,) = Setting.objects.filter(run="night")
    assert Outcome.objects.filter(submission_id=submission.pk, setting_id=setting.pk).count() == 20


def test_a_whole_file_needs_no_field_beside_it(submit_token):
    whole = rows(version="3", link="https://example.org/x", note="kept", submitted_at=today(), **WHOLE)
    response = send_file(csv_of(whole), {}, token=submit_token)
    assert response.status_code == 201, response.content
    submission = Submission.objects.get(uuid=response.json()["id"])
    assert (submission.agent.version, submission.links) == ("3", {"link": "https://example.org/x"})
    details = OutcomeDetail.objects.filter(submission_id=submission.pk)
    assert set(details.values_list("metadata__note", flat=True)) == {"kept"}


def test_the_benchmark_is_known_by_title_and_slug(submit_token):
    assert send_file(csv_of(rows(benchmark="toy")), token=submit_token).status_code == 201
    mixed = [
        row | {"benchmark": name} for row, name in zip(rows(run="b"), ["Toy", "toy", ""] * 7, strict=False)
    ]
    assert send_file(csv_of(mixed), token=submit_token).status_code == 201
    other = send_file(csv_of(rows(benchmark="Other", run="c")), token=submit_token)
    assert faults_of(other) == [(row, "benchmark") for row in range(1, 21)]
    assert 'the request states "toy"' in other.json()["faults"][0]["rule"]


@pytest.mark.parametrize(
    "others", [{"agent": "someone", "scaffold": "Tree", "model": "M"}, {"agent_id": "someone"}], ids=" ".join
)
@pytest.mark.parametrize("form", [csv_of, ndjson_of, parquet_of])
def test_where_both_say_it_they_agree(submit_token, others, form):
    before = stored()
    found = rows()
    found[4] |= others
    assert {(5, column) for column in others} <= {*faults_of(send_file(form(found), token=submit_token))}
    assert stored() == before
    found[4] |= {column: AGENT.get(f"agent.{column}", AGENT["agent.name"]) for column in others}
    assert send_file(form(found), token=submit_token).status_code == 201


def test_another_agent_than_that_of_the_file_is_told_once(submit_token):
    found = rows(agent_id="someone", scaffold="Loop", model="M")
    found[4]["agent_id"] = "a third"
    found[6]["task"] = found[7]["task"] = "nowhere"
    response = send_file(csv_of(found), token=submit_token)
    told = [(1, "agent_id"), (1, "model"), (5, "agent_id"), (7, "task"), (8, "task")]
    assert sorted(faults_of(response)) == told
    assert response.json()["n_faults"] == len(told)
    assert 'the request states "newcomer"' in response.json()["faults"][0]["rule"]


@pytest.mark.parametrize("name", ["commit", "logs", "trajectories"])
def test_links_come_in_a_form_and_in_json(submit_token, name):
    address = "https://example.org/runs"
    said = [
        send_file(csv_of(rows()), AGENT | {f"links.{name}": address}, token=submit_token),
        send(body("other") | {"links": {name: address}}, token=submit_token),
    ]
    assert [one.status_code for one in said] == [201, 201]
    stored = Submission.objects.filter(uuid__in=[one.json()["id"] for one in said])
    assert [one.links for one in stored] == [{name: address}] * 2


def test_the_schema_names_the_links():
    assert set(bodies.Links().fields) == {"commit", "logs", "trajectories"}


def test_dates_agree_whatever_their_form(submit_token):
    fields = AGENT | {"submitted_at": f"{today()}T00:00:00Z"}
    assert send_file(csv_of(rows(submitted_at=today())), fields, token=submit_token).status_code == 201
    other = send_file(csv_of(rows(submitted_at="2026-01-05", run="b")), fields, token=submit_token)
    assert faults_of(other)[0] == (1, "submitted_at")


def test_of_several_dates_the_earliest_holds(submit_token):
    days = ["", f"{today()}T00:00:00Z", f"{today()}T00:00:01Z"]
    found = [row | {"submitted_at": day} for row, day in zip(rows(), days * 7, strict=False)]
    uuid = send_file(csv_of(found), token=submit_token).json()["id"]
    assert Submission.objects.get(uuid=uuid).submitted_at.isoformat() == f"{today()}T00:00:00+00:00"


def test_version_is_said_once_or_alike(submit_token):
    fields = AGENT | {"agent.version": "2"}
    assert faults_of(send_file(csv_of(rows(version="3")), fields, token=submit_token)) == [(None, "version")]
    assert send_file(csv_of(rows(version="2")), fields, token=submit_token).status_code == 201


def test_a_file_holds_one_agent(submit_token):
    found = [*rows(10, **WHOLE), *rows(3, **(WHOLE | {"agent": "second"}))]
    response = send_file(csv_of(found), {}, token=submit_token)
    assert faults_of(response) == [(11, "agent")]
    assert "'newcomer'" in response.json()["faults"][0]["rule"]


def test_unknown_tasks_and_other_faults_come_at_once(submit_token):
    found = rows()
    found[2]["task"], found[5]["outcome"], found[7]["trial"] = "t9x", 2, -1
    fields = AGENT | {"agent.scaffold": "", "links.commit": "ftp://x", "colour": "red"}
    response = send_file(csv_of(found), fields, token=submit_token)
    assert set(faults_of(response)) == {
        *((None, name) for name in ("scaffold", "links.commit", "colour")),
        *((3, "task"), (6, "outcome"), (8, "trial")),
    }
    (task,) = [one for one in response.json()["faults"] if one["field"] == "task"]
    assert task["rule"] == "unknown task; all are at /api/v1/benchmarks/toy/tasks"


@pytest.mark.parametrize("name", ["outcomes.csv.gz", "log.json.gz"])
def test_gzip_of_too_many_members_is_not_read(submit_token, name):
    content = gzip.compress(csv_of(rows())) + gzip.compress(b"") * 60_000
    response = send_file(content, token=submit_token, name=name)
    assert faults_of(response) == [(None, None)]
    assert "bytes; compress the file as one" in response.json()["faults"][0]["rule"]


def test_what_another_format_lacks_is_asked_for_by_path(submit_token):
    content = json.dumps(swe_report(resolved=["t01"], submitted=["t01"])).encode()
    response = send_file(content, {}, token=submit_token, name="run.json")
    assert response.status_code == 422
    wanted = "state what is lacking: agent.name, agent.scaffold, agent.model, submitted_at."
    assert response.json()["detail"].endswith(wanted)
    assert [one["rule"] for one in response.json()["faults"]] == [
        f"is not in the file; state it with {place}"
        for place in ("agent.name", "agent.scaffold", "agent.model", "submitted_at")
    ]


def test_another_model_than_that_of_the_file_is_told_by_path(submit_token):
    content = json.dumps(inspect_log([inspect_sample("t01", value="C")], model="openai/gpt")).encode()
    response = send_file(
        content, AGENT | {"agent.scaffold": "basic_agent"}, token=submit_token, name="log.json"
    )
    (one,) = response.json()["faults"]
    assert one["rule"] == 'the file names model "openai/gpt"; leave agent.model out if that is right'


def test_near_tasks_are_named(submit_token):
    found = rows()
    found[0]["task"] = "t00 "[:3] + "0"
    rule = send_file(csv_of(found), token=submit_token).json()["faults"][0]["rule"]
    assert 'Did you mean "t00"' in rule


def test_more_rows_than_a_body_may_have(submit_token):
    found = [{"task": f"t{j % 20:02d}", "trial": j // 20, "outcome": 1} for j in range(20_020)]
    response = send_file(csv_of(found), token=submit_token)
    assert response.status_code == 201, response.content
    answer = response.json()
    assert (answer["status"], answer["checks"], answer["n_outcomes"]) == ("checking", None, 20_020)
    assert "a while" in answer["warnings"][0]


class TestIdempotency:
    KEY: ClassVar = {"Idempotency-Key": "ci-run-17"}

    def test_the_answer_is_repeated_whatever_the_compression(self, submit_token):
        first = send_file(csv_of(rows()), token=submit_token, **self.KEY)
        before = stored()
        again = send_file(gzip.compress(csv_of(rows())), token=submit_token, name="x.gz", **self.KEY)
        assert (again.status_code, again.json()) == (201, first.json())
        assert (again["Idempotent-Replayed"], stored()) == ("true", before)

    def test_what_is_read_without_a_key_is_read_with_one(self, submit_token):
        """Its first bytes alone grow more than 250 times."""
        content = gzip.compress(csv_of(rows()) + b"\n" * (64 << 20)) + b"\0" * (260 << 10)
        for is_replayed in (False, True):
            answer = send_file(content, token=submit_token, name="x.csv.gz", **self.KEY)
            assert (answer.status_code, "Idempotent-Replayed" in answer) == (201, is_replayed)

    def test_fields_by_path_and_as_one_part_are_the_same(self, submit_token):
        send_file(csv_of(rows()), token=submit_token, **self.KEY)
        envelope = {"agent": {"model": "Model 9", "name": "newcomer", "scaffold": "Loop"}}
        again = send_file(
            csv_of(rows()), {"submission": json.dumps(envelope)}, token=submit_token, **self.KEY
        )
        assert again["Idempotent-Replayed"] == "true"

    @pytest.mark.parametrize(
        ("content", "fields"), [(csv_of(rows(19)), AGENT), (csv_of(rows()), AGENT | {"run": "2"})]
    )
    def test_another_file_or_field_is_refused(self, submit_token, content, fields):
        send_file(csv_of(rows()), token=submit_token, **self.KEY)
        other = send_file(content, fields, token=submit_token, **self.KEY)
        assert (other.status_code, other.json()["type"][-10:]) == (409, "key_reused")


class TestDryRun:
    @pytest.mark.parametrize("as_file", [True, False])
    def test_it_says_what_would_be_stored_and_stores_nothing(self, submit_token, as_file, toy):
        before = stored(), Benchmark.objects.get().data_version
        if as_file:
            found = send_file(csv_of(rows()), token=submit_token, query="?dry_run=true")
        else:
            found = send(body(), token=submit_token, query="?dry_run=true")
        assert found.status_code == 200, found.content
        assert (stored(), Benchmark.objects.get().data_version) == before
        really = (
            send_file(csv_of(rows()), token=submit_token) if as_file else send(body(), token=submit_token)
        )
        told, said = found.json(), really.json()
        assert (told.pop("id"), told.pop("dry_run")) == (None, True)
        for name in ("status", "agent", "n_outcomes", "n_outside", "warnings", "checks", "assignment"):
            assert told[name] == said[name]

    def test_the_same_rules_hold(self, submit_token):
        assert faults_of(send_file(csv_of(rows(trial=-1)), token=submit_token, query="?dry_run=true"))
        send_file(csv_of(rows()), token=submit_token)
        again = send_file(csv_of(rows()), token=submit_token, query="?dry_run=true")
        assert again.json()["type"].endswith("already_delivered")

    def test_it_ignores_keys(self, submit_token):
        key = {"Idempotency-Key": "one"}
        assert send(body(), token=submit_token, query="?dry_run=1", **key).status_code == 200
        assert not IdempotencyKey.objects.exists()
        send(body(), token=submit_token, **key)
        other = send(body("other"), token=submit_token, query="?dry_run=1", **key)
        assert (other.status_code, "Idempotent-Replayed" in other) == (200, False)

    def test_review_is_told(self, submit_token, toy):
        Policy.objects.create(benchmark=toy, number=2, review=Review.MANUAL)
        assert send(body(), token=submit_token, query="?dry_run=true").json()["status"] == "waiting"


class TestMultipart:
    @pytest.mark.parametrize(
        "query",
        ["?colour=red", "?dry_run=maybe", "?format=none", "?dryrun=true", "?dry_run=true&dry_run=false"],
    )
    def test_parameters(self, submit_token, query):
        assert send_file(csv_of(rows()), token=submit_token, query=query).status_code == 400
        assert not Submission.objects.filter(agent__name="newcomer").exists()

    def test_formats(self, submit_token):
        assert "flat" in FORMATS
        assert send_file(csv_of(rows()), token=submit_token, query="?format=flat").status_code == 201
        assert send(body("other"), token=submit_token, query="?format=flat").status_code == 400

    def test_no_file_two_files_and_others(self, submit_token):
        assert (None, "file") in faults_of(send_file(None, token=submit_token))
        assert (None, "file") in faults_of(send_file(None, {"file": "a,b"}, token=submit_token))
        two = {"file": [SimpleUploadedFile("a.csv", b"a"), SimpleUploadedFile("b.csv", b"b")]}
        assert (None, "file") in faults_of(send_file(None, two, token=submit_token))
        other = {"data": SimpleUploadedFile("a.csv", b"a")}
        assert (None, "data") in faults_of(send_file(csv_of(rows()), other, token=submit_token))

    @pytest.mark.parametrize(
        "name", ["../../etc/passwd", "/tmp/x.csv", "a\\b.csv", "x" * 300 + ".csv", "é.csv"]
    )
    def test_a_name_is_no_path(self, submit_token, name):
        assert send_file(csv_of(rows()), token=submit_token, name=name).status_code == 201

    @pytest.mark.parametrize(
        "head",
        [
            b'name="links.\xff"',
            b'name="run\xff"',
            b'name="file"; filename="r\xe9sultats.ndjson"',
            b"name=\"file\"; filename*=nope''x",
        ],
    )
    def test_a_part_that_cannot_be_read_is_no_part_less(self, submit_token, head):
        part = b"\r\n--B\r\nContent-Disposition: form-data; %s\r\n\r\n%s"
        whole = part % (b'name="file"; filename="a.csv"', csv_of(rows())) + part % (head, b"x")
        response = Client().post(
            ADDRESS,
            whole + b"\r\n--B--\r\n",
            content_type="multipart/form-data; boundary=B",
            headers={"Authorization": f"Bearer {submit_token}"},
        )
        assert response.status_code == 400, response.content
        assert "cannot be read: 1." in response.json()["detail"]

    @pytest.mark.parametrize(
        ("kind", "n"), [("", 1), ("; boundary=", 1), ("; boundary=é", 1), ("; boundary=B", 5_000)]
    )
    def test_a_body_that_cannot_be_divided(self, submit_token, kind, n):
        head = b'--B\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\n\r\nx\r\n--B--\r\n'
        response = Client().post(
            ADDRESS,
            head % (b"a" * n),
            content_type=f"multipart/form-data{kind}",
            headers={"Authorization": f"Bearer {submit_token}"},
        )
        assert (response.status_code, response.json()["detail"]) == (400, UNREADABLE)

    def test_too_large(self, submit_token, monkeypatch):
        monkeypatch.setattr("leaderboard.api.parsers.MAX_FILE_BYTES", 1000)
        response = send_file(b"x" * 1001, token=submit_token)
        assert (response.status_code, response["Content-Type"]) == (413, "application/problem+json")

    def test_too_many_fields_or_files(self, submit_token):
        many = send_file(csv_of(rows()), {f"f{i}": "x" for i in range(2_000)}, token=submit_token)
        assert (many.status_code, many.json()["detail"]) == (
            400,
            "The multipart body has too many fields. Send at most 1,000 fields.",
        )
        files = send_file(
            None, {f"f{i}": SimpleUploadedFile("a", b"x") for i in range(200)}, token=submit_token
        )
        assert (files.status_code, files.json()["detail"]) == (
            400,
            "The multipart body has too many files. Send one file.",
        )

    def test_a_body_that_was_cut_off(self, submit_token):
        whole = b'--B\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n' + csv_of(
            rows()
        )
        for content, code in ((whole, 400), (whole + b"\r\n--B--\r\n", 422)):
            response = Client().post(
                ADDRESS,
                content,
                content_type="multipart/form-data; boundary=B",
                headers={"Authorization": f"Bearer {submit_token}"},
            )
            assert response.status_code == code, response.content
