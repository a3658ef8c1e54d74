"""Names that are taken out for good."""

import io
import json
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.utils import ProgrammingError

from leaderboard.accounts.models import User
from leaderboard.accounts.services import token_of
from leaderboard.boards.models import Entry
from leaderboard.catalog.models import Agent, Benchmark, Membership
from leaderboard.errors import Conflict, Refusal
from leaderboard.operations.benchmarks import Switch, retire, set_switch
from leaderboard.operations.corrections import report, trust_account, unload
from leaderboard.operations.erasing import erase_account, erase_agent, replacing
from leaderboard.operations.models import Erasure
from leaderboard.operations.naming import agent_named, rename
from leaderboard.operations.people import invitation_of, invite
from leaderboard.operations.services import check_drift, issue_token, validate
from leaderboard.operations.webhooks import add_webhook, disable_webhook
from leaderboard.submissions.models import OutcomeDetail
from tests.kept import stored
from tests.leaderboard.desk import person
from tests.refusals import refused
from tests.toys import AS_OF, csv_text, graded, lines_of, load_text, recomputed, rows_text

NAME = "Marguerite's agent"


def everything():
    """All text in the database, but for the audit's own reasons."""
    texts = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT row_to_json(t)::text FROM "{table}" t')
            texts += [(table, text) for (text,) in cursor.fetchall()]
    return texts


def holding(name):
    written = json.dumps(name)[1:-1]
    return {table for table, text in everything() if name in text or written in text}


@pytest.fixture
def told(db, quick):
    """An agent whose name stands wherever a name may stand."""
    stored("a name wherever it may stand", everywhere)
    return Benchmark.objects.get(slug="toy")


def everywhere():
    marks = graded(17, 24)
    marks = {(NAME if name == "a03" else name): row for name, row in marks.items()}
    load_text(csv_text(marks).replace(f"Model {NAME}", "Model"))  # names of models stay
    benchmark = Benchmark.objects.get(slug="toy")
    recomputed()
    validate(benchmark=benchmark, as_of=AS_OF)
    recomputed()
    check_drift(benchmark=benchmark, as_of=AS_OF)
    agent = agent_named(benchmark, NAME)
    report(agent=agent, text=f"{NAME} is too good", by=None, as_of=AS_OF)


def test_a_name_stands_nowhere_afterwards_and_nothing_else_changes(told):
    boards = list(told.boards.order_by("number").values_list("digest", "n_tasks"))
    scores = list(Entry.objects.order_by("pk").values_list("rank", "position", "line__how"))
    assert {"catalog_agent", "boards_entry", "operations_dispute"} <= holding(NAME)
    erasure = erase_agent(agent=agent_named(told, NAME), by=None, reason="asked for", as_of=AS_OF)
    assert holding(NAME) == set()
    assert list(told.boards.order_by("number").values_list("digest", "n_tasks")) == boards
    assert list(Entry.objects.order_by("pk").values_list("rank", "position", "line__how")) == scores
    assert Entry.objects.filter(name=erasure.tombstone).count() == 2
    assert told.disputes.get().text == f"{erasure.tombstone} is too good"
    assert erasure.tombstone in lines_of(recomputed())
    with refused(Conflict, "erased_already"):
        erase_agent(agent=agent_named(told, erasure.tombstone), by=None, reason="again", as_of=AS_OF)


def test_former_names_go_too_and_what_came_beside_the_outcomes(db):
    text = csv_text({"Marguerite": "1", "b": "0"}).replace("valid\n", "valid,author\n", 1)
    lines = text.splitlines()
    load_text("\n".join([lines[0], *(f"{line},Marguerite R." for line in lines[1:])]) + "\n")
    benchmark = Benchmark.objects.get(slug="toy")
    rename(agent=agent_named(benchmark, "Marguerite"), name="Daisy", by=None, reason="x", as_of=AS_OF)
    erase_agent(agent=agent_named(benchmark, "Daisy"), by=None, reason="asked for", as_of=AS_OF)
    detail = OutcomeDetail.objects.filter(metadata__isnull=False)
    assert detail.count() == 1  # of the other agent
    assert "catalog_agentalias" not in holding("Marguerite")
    assert holding("Daisy") == set()


def test_the_door_closes_behind_it(told):
    erase_agent(agent=agent_named(told, NAME), by=None, reason="asked for", as_of=AS_OF)
    with pytest.raises(ProgrammingError, match="Cannot update"):
        Entry.objects.update(name="somebody else")


def test_names_inside_sentences_and_json():
    replaced = replacing(["Marguerite", "ab"], "gone")
    assert replaced("Marguerite beats Marguerites, ab") == "gone beats Marguerites, ab"
    assert replaced("(Marguerite)") == "(gone)"
    assert replaced({"agents": ["ab", "abc", 1, None]}) == {"agents": ["gone", "abc", 1, None]}
    assert replaced({"agents": [{"agent": "ab", "note": "Marguerite won"}]}) == {
        "agents": [{"agent": "gone", "note": "gone won"}]
    }


def test_words_of_the_service_are_no_names():
    replaced = replacing(["rank", "2026"], "gone")
    told = {"rank": {"target": "rank", "at": "2026-06-01"}, "agent": "rank", "reason": "2026"}
    assert replaced(told) == {
        "rank": {"target": "rank", "at": "2026-06-01"},
        "agent": "gone",
        "reason": "gone",
    }


def test_names_of_scaffolds_models_and_organisations_stay_on_boards(db):
    rows = [
        {"agent": agent, "task": f"t{j}", "outcome": int(j < n), "cost_usd": 1}
        | {"scaffold": "Hands Alone", "model": "Hands One", "organisation": "task Hands"}
        for agent, n in (("Hands", 3), ("task", 2), ("third", 1))
        for j in range(4)
    ]
    load_text(rows_text(rows))
    recomputed()
    benchmark = Benchmark.objects.get(slug="toy")
    of_third = Entry.objects.get(name="third").line
    for name in ("Hands", "task"):
        erase_agent(agent=agent_named(benchmark, name), by=None, reason="asked for", as_of=AS_OF)
    left = Entry.objects.get(name="third").line
    fields = ("scaffold", "model", "organisation", "cost_basis", "marks")
    assert [left[field] for field in fields] == [of_third[field] for field in fields]


@pytest.mark.parametrize("name", ["full", "rank", "targets", "how"])
def test_pages_stand_after_an_agent_is_erased_that_had_a_word_of_theirs_for_a_name(db, client, name):
    load_text(csv_text({(name if old == "a03" else old): row for old, row in graded(17, 24).items()}))
    recomputed()
    benchmark = Benchmark.objects.get(slug="toy")
    before = client.get("/api/v1/benchmarks/toy/board").json()
    erasure = erase_agent(agent=agent_named(benchmark, name), by=None, reason="asked for", as_of=AS_OF)
    after = client.get("/api/v1/benchmarks/toy/board").json()
    assert json.loads(json.dumps(after).replace(erasure.tombstone, name)) == before
    assert [client.get(f"/b/toy{page}").status_code for page in ("", "/v1", "/history")] == [200] * 3


def test_reasons_that_operators_gave_name_it_no_more(told):
    agent, at = agent_named(told, NAME), {"by": None, "as_of": AS_OF}
    set_switch(benchmark=told, switch=Switch.FROZEN, on=True, reason=f"{NAME} floods us", **at)
    set_switch(benchmark=told, switch=Switch.FROZEN, on=False, reason=f"no more of {NAME}", **at)
    retire(task=told.tasks.first(), reason=f"{NAME} found it broken", **at)
    webhook, _ = add_webhook(
        benchmark=told, url="https://example.org/", events=["board.published"], reason=f"for {NAME}", **at
    )
    disable_webhook(webhook=webhook, reason=f"of {NAME}", **at)
    (submission,) = agent.submissions.all()
    unload(uuids=[submission.uuid], reason=f"{NAME} asked", **at)
    assert "pghistory_context" in holding(NAME)
    erasure = erase_agent(agent=agent, by=None, reason=f"{NAME} asked for it", as_of=AS_OF)
    assert holding(NAME) == set()
    assert erasure.reason == f"{erasure.tombstone} asked for it"


def test_a_tombstone_that_somebody_took_before(toy):
    first, second = toy.agents.order_by("name")[:2]
    rename(agent=second, name=f"erased agent {first.pk}", by=None, reason="x", as_of=AS_OF)
    erasure = erase_agent(agent=first, by=None, reason="asked for", as_of=AS_OF)
    assert erasure.tombstone.startswith(f"erased agent {first.pk} (")
    with refused(Conflict, "erased_already"):
        erase_agent(agent=first, by=None, reason="again", as_of=AS_OF)


def test_an_account_is_closed_and_its_address_gone(toy):
    ada = person("ada@example.org", role="operator", benchmark=toy)
    life = timedelta(days=9)
    _, secret = issue_token(
        email="ada@example.org", slug="toy", scope="submit", name="ci", as_of=AS_OF, life=life
    )
    _, link = invite(benchmark=toy, email="ada@example.org", role="viewer", by=None, reason="x", as_of=AS_OF)
    erasure = erase_account(user=ada, by=None, reason="asked for", as_of=AS_OF)
    assert holding("ada@example.org") == set()
    assert User.objects.get(pk=ada.pk).email == erasure.tombstone
    assert not Membership.objects.filter(user=ada).exists()
    with refused(Refusal, "token_revoked"):
        token_of(secret, as_of=AS_OF)
    assert not User.objects.get(pk=ada.pk).is_active
    with refused(Conflict, "invitation_over"):
        invitation_of(link, as_of=AS_OF)
    assert Erasure.objects.get().reason == "asked for"


def test_the_address_goes_from_what_people_wrote_too(toy):
    eve, at = person("eve@example.org", role="operator", benchmark=toy), {"as_of": AS_OF}
    User.objects.filter(pk=eve.pk).update(name="Eve Adams")
    trust_account(benchmark=toy, account=eve, reason="eve@example.org asked", **at)
    retire(task=toy.tasks.first(), reason="found by Eve Adams", by=eve, **at)
    erase_agent(agent=agent_named(toy, "a03"), by=None, reason="Eve Adams asked", **at)
    assert "submissions_accounttrust" in holding("eve@example.org")
    assert {"catalog_task", "operations_erasure", "pghistory_context"} <= holding("Eve Adams")
    erasure = erase_account(user=eve, by=None, reason="asked by Eve@Example.org", **at)
    assert not holding("eve@example.org") | holding("Eve Adams") | holding("Eve@Example.org")
    assert erasure.reason == f"asked by {erasure.tombstone}"


def test_by_a_command(toy):
    out = io.StringIO()
    call_command("erase", "toy", "a03", reason="asked for", stdout=out)
    assert f"erased agent {Agent.objects.get(name__startswith='erased').pk}" in out.getvalue()
    assert out.getvalue().count("A file that has the name brings it back when it is loaded again.") == 1
    person("eve@example.org")
    call_command("erase", account="eve@example.org", reason="asked for", stdout=out)
    assert "@erased.invalid" in out.getvalue()
    assert out.getvalue().count("brings it back") == 1
