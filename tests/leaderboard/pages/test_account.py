"""The account's page and a submission's: by whoever is signed in, without JavaScript."""

import re
from datetime import timedelta

import pgtrigger
import pytest
from django.contrib.auth.hashers import Argon2PasswordHasher
from django.test import Client
from django.utils import timezone

from leaderboard.accounts.models import ApiToken, User
from leaderboard.accounts.services import token_of
from leaderboard.catalog.models import Benchmark, Policy, Role, Visibility
from leaderboard.operations import corrections
from leaderboard.operations.intake import submit
from leaderboard.operations.models import Dispute
from leaderboard.operations.people import make_token
from leaderboard.operations.services import recompute
from leaderboard.submissions.models import Submission
from tests.leaderboard.desk import PASSWORD, person, recorded
from tests.seen import text_of
from tests.toys import AS_OF, first_board

ACCOUNT, TOKENS, MAIL = "/account", "/account/tokens", "/account/mail"
NEW = {"name": "nightly run", "scope": "submit", "days": "30"}


@pytest.fixture
def ada(toy):
    return person("ada@example.org", role=Role.SUBMITTER, benchmark=toy)


@pytest.fixture
def signed_in(client, ada):
    client.force_login(ada)
    return client


def secret_in(response):
    (found,) = re.findall(r"<code>(bst_\w{49})</code>", response.content.decode())
    return found


def test_who_is_not_signed_in_is_sent_to_the_door(client, ada):
    for path in (ACCOUNT, f"/submissions/{'0' * 8}-0000-0000-0000-{'0' * 12}"):
        answer = client.get(path)
        assert (answer.status_code, answer.headers["Location"]) == (302, f"/accounts/login/?next={path}")
    assert client.post(TOKENS, NEW).status_code == 302
    assert not ApiToken.objects.exists()


def test_signing_in_leads_here(client, ada):
    answer = client.post("/accounts/login/", {"login": ada.email, "password": PASSWORD})
    assert answer.headers["Location"] == ACCOUNT
    page = client.get(ACCOUNT)
    assert page.status_code == 200
    assert "submitter of Toy" in text_of(page)
    assert "no-store" in page["Cache-Control"]


def test_staff_and_operators_are_led_to_the_admin(client, toy, ada):
    roles = {"You operate every benchmark. Admin": person("sue@example.org", staff=True)}
    roles["You are operator of Toy . Admin"] = person("op@example.org", role=Role.OPERATOR, benchmark=toy)
    for said, user in roles.items():
        client.force_login(user)
        page = client.get(ACCOUNT)
        assert said in text_of(page)
        assert '<a href="/admin/">Admin</a>' in page.content.decode()
    client.force_login(ada)
    assert "/admin/" not in client.get(ACCOUNT).content.decode()


def test_benchmarks_of_one_title_are_told_apart(signed_in):
    assert "(toy)" not in text_of(signed_in.get(ACCOUNT))
    Benchmark.objects.create(slug="other", title="Toy", visibility=Visibility.PUBLIC)
    text = text_of(signed_in.get(ACCOUNT))
    assert "Toy (toy)" in text
    assert "Toy (other)" in text


def test_the_commands_of_submit_fit_together(client, db):
    page = client.get("/submit").content.decode()
    check, submit = re.findall(r"bandstand (check|submit) (results\.csv .*?)(?:\n|<)", page)
    assert (check[0], submit[0], check[1]) == ("check", "submit", submit[1])
    assert "<code>pip install .</code>" in page


def test_a_secret_is_shown_once_and_works(signed_in, ada):
    made = signed_in.post(TOKENS, NEW)
    secret = secret_in(made)
    token = token_of(secret, as_of=timezone.now())
    assert (token.user, token.name, token.scopes, token.benchmarks) == (
        ada,
        "nightly run",
        ["read", "submit"],
        [],
    )
    assert timedelta(days=29) < token.expires_at - timezone.now() < timedelta(days=30)
    page = signed_in.get(ACCOUNT)
    assert secret not in page.content.decode()
    assert f"bst_{token.public_id}" in text_of(page)
    asked = Client().get("/api/v1/benchmarks/toy/submissions", headers={"Authorization": f"Bearer {secret}"})
    assert asked.status_code == 200


def test_there_is_an_end_to_tokens(signed_in, ada, monkeypatch):
    monkeypatch.setattr("leaderboard.operations.people.MAX_TOKENS", 1)
    form = {"name": "CI", "scope": "read", "days": 7}
    assert signed_in.post("/account/tokens", form).status_code == 200
    refused = signed_in.post("/account/tokens", form)
    assert (refused.status_code, ada.tokens.count()) == (409, 1)
    assert "Revoke one first." in refused.content.decode()
    signed_in.post(f"/account/tokens/{ada.tokens.get().public_id}/revoke")
    assert signed_in.post("/account/tokens", form).status_code == 200


def test_it_reaches_the_benchmarks_chosen(signed_in, ada):
    Benchmark.objects.create(slug="other", title="Other", visibility=Visibility.PRIVATE)
    assert signed_in.post(TOKENS, NEW | {"benchmarks": ["other"]}).status_code == 422  # nobody told them
    signed_in.post(TOKENS, NEW | {"benchmarks": ["toy"]})
    assert ada.tokens.get().benchmarks == ["toy"]


@pytest.mark.parametrize(
    "change",
    [{"days": "366"}, {"days": "0"}, {"name": ""}, {"name": "a\0b"}, {"scope": "rule"}, {"scope": ""}],
)
def test_a_token_that_makes_no_sense_is_refused(signed_in, change):
    assert signed_in.post(TOKENS, NEW | change).status_code == 422
    assert not ApiToken.objects.exists()


def test_a_token_has_a_name_that_can_be_seen(signed_in):
    answer = signed_in.post(TOKENS, NEW | {"name": "ci\u202e"})
    assert answer.status_code == 409
    assert "A token's name has no invisible character U+202E (character 3)." in text_of(answer)
    assert not ApiToken.objects.exists()


def test_what_is_revoked_or_expired_is_named(signed_in, ada):
    now = timezone.now()
    _, gone = make_token(
        user=ada, name="a", scope="read", benchmarks=[], days=2, as_of=now - timedelta(days=9)
    )
    kept, secret = make_token(user=ada, name="b", scope="read", benchmarks=[], days=2, as_of=now)
    at = f"/account/tokens/{kept.public_id}/revoke"
    assert signed_in.get(at).status_code == 405
    assert signed_in.post(at).headers["Location"] == ACCOUNT
    assert signed_in.post(at).status_code == 409
    page = text_of(signed_in.get(ACCOUNT))
    assert f"revoked on {now:%Y-%m-%d}" in page
    assert f"expired on {now - timedelta(days=7):%Y-%m-%d}" in page
    for text, told in (
        (secret, f"revoked on {now:%Y-%m-%d}"),
        (gone, f"expired on {now - timedelta(days=7):%Y-%m-%d}"),
    ):
        answer = Client().get("/api/v1/", headers={"Authorization": f"Bearer {text}"})
        assert answer.status_code == 401
        assert told in answer.json()["detail"]


def test_another_s_token_does_not_exist(signed_in, toy):
    eve = person("eve@example.org")
    theirs, _ = make_token(user=eve, name="b", scope="read", benchmarks=[], days=2, as_of=timezone.now())
    for public_id in (theirs.public_id, "%00"):
        assert signed_in.post(f"/account/tokens/{public_id}/revoke").status_code == 404
    theirs.refresh_from_db()
    assert theirs.revoked_at is None


def test_use_is_noted_to_the_hour(signed_in, ada):
    secret = secret_in(signed_in.post(TOKENS, NEW))
    assert "never" in text_of(signed_in.get(ACCOUNT))
    Client().get("/api/v1/", headers={"Authorization": f"Bearer {secret}"})
    used = ada.tokens.get().last_used_at
    assert (used.minute, used.second) == (0, 0)
    assert timezone.now() - used < timedelta(hours=1, seconds=5)
    assert "never" not in text_of(signed_in.get(ACCOUNT))


def test_wishes_for_mail(signed_in, ada):
    for said, kept in (({"told": "yes"}, True), ({}, False)):
        signed_in.post(MAIL, said)
        assert User.objects.get(pk=ada.pk).told_by_mail is kept


def test_no_form_works_without_its_token_against_forgery(ada):
    client = Client(enforce_csrf_checks=True)
    client.force_login(ada)
    for path in (TOKENS, MAIL):
        assert client.post(path, NEW).status_code == 403
    assert client.get(ACCOUNT).content.decode().count("csrfmiddlewaretoken") == 2


def test_operators_need_their_second_factor(client, toy, settings):
    settings.REQUIRE_2FA = True
    client.force_login(person("op@example.org", role=Role.OPERATOR, benchmark=toy))
    for answer in (client.get(ACCOUNT), client.post(TOKENS, NEW)):
        assert answer.headers["Location"] == "/accounts/2fa/totp/activate/"
    assert not ApiToken.objects.exists()
    client.force_login(person("sub@example.org", role=Role.SUBMITTER, benchmark=toy))
    assert client.get(ACCOUNT).status_code == 200


# --------------------------------------------------------------------------------------------- a submission


@pytest.fixture
def delivered(ada, toy):
    first_board(toy)
    now = timezone.now()
    token, _ = make_token(user=ada, name="ci", scope="submit", benchmarks=[], days=9, as_of=now)
    body = {
        "agent": {"name": "Tree <1>", "scaffold": "Tree", "model": "M"},
        "outcomes": [{"task": f"t{j:02d}", "trial": 1, "outcome": 1} for j in range(9)],
    }
    submit(benchmark=toy, token=token, body=body, idempotency_key=None, as_of=now)
    return Submission.objects.get(agent__name="Tree <1>")


def test_the_first_line_says_what_is_missing(signed_in, delivered):
    page = text_of(signed_in.get(f"/submissions/{delivered.uuid}"))
    subset = set(delivered.agent.benchmark.subsets.get().tasks.values_list("name", flat=True))
    n_lacking = len(subset - {f"t{j:02d}" for j in range(9)})
    verb = "has" if n_lacking == 1 else "have"
    told = f"A partial run: {n_lacking} of the {len(subset)} tasks asked for {verb} no outcome"
    heading = "Tree <1>"
    assert told in page
    assert page.index(heading) < page.index(told) < page.index("It counts. The next board shows it.")


def test_what_the_board_did_with_it(signed_in, delivered, toy):
    board, _ = recompute(benchmark=toy, as_of=timezone.now())
    page = text_of(signed_in.get(f"/submissions/{delivered.uuid}"))
    assert f"Board {board.number} shows Tree <1>: not ranked" in page
    found = delivered.machine_check.found
    assert {"coverage", "trials", "dates"} <= {one["name"] for one in found}
    for one in found:
        assert one["told"] in page


def test_it_is_its_owner_s_and_the_operators_(client, delivered, toy):
    for kind, role, code in (
        ("other", Role.SUBMITTER, 404),
        ("viewer", Role.VIEWER, 404),
        ("op", Role.OPERATOR, 200),
    ):
        client.force_login(person(f"{kind}@example.org", role=role, benchmark=toy))
        assert client.get(f"/submissions/{delivered.uuid}").status_code == code


def test_what_one_has_is_listed(signed_in, delivered):
    page = text_of(signed_in.get(ACCOUNT))
    assert "Tree <1>" in page
    assert f"/submissions/{delivered.uuid}" in signed_in.get(ACCOUNT).content.decode()


def test_the_number_of_queries_does_not_grow(signed_in, delivered, ada, django_assert_max_num_queries):
    now = timezone.now()
    for n in range(5):
        make_token(user=ada, name=f"{n}", scope="read", benchmarks=[], days=9, as_of=now)
    with django_assert_max_num_queries(11):
        signed_in.get(ACCOUNT)


def test_nothing_is_blank(signed_in, delivered):
    page = text_of(signed_in.get(ACCOUNT))
    assert "1 token in use, 1 agent, 1 submission." in page
    assert "Tree <1> Toy Tree M not stated 1" in page
    ApiToken.objects.update(revoked_at=timezone.now())
    page = text_of(signed_in.get(ACCOUNT))
    assert "0 tokens in use" in page
    assert "never inactive" in page


# --------------------------------------------------------------------------------------- taking it back


def withdrawal(client, submission, **said):
    return client.post(f"/submissions/{submission.uuid}/withdraw", {"reason": "wrong", "sure": "on"} | said)


def test_its_owner_takes_it_back(signed_in, delivered, ada, toy):
    at = f"/submissions/{delivered.uuid}"
    assert "Withdraw the submission" in text_of(signed_in.get(at))
    before = toy.data_version
    assert withdrawal(signed_in, delivered, reason="the wrong file").headers["Location"] == at
    delivered.refresh_from_db()
    toy.refresh_from_db()
    assert delivered.status == "withdrawn"
    assert toy.data_version == before + 1 + 1  # the delivery, the withdrawal
    change = delivered.status_changes.latest("id")
    assert (change.by, change.reason) == (ada, "the wrong file")
    assert recorded(delivered)[-1]["reason"] == "the wrong file"
    page = text_of(signed_in.get(at))
    assert "It was withdrawn and no longer counts." in page
    assert "withdrawn: the wrong file" in page
    assert "Withdraw the submission" not in page


@pytest.mark.parametrize("said", [{"reason": ""}, {"reason": "   "}, {"sure": ""}, {"reason": "x" * 2_001}])
def test_it_asks_why_and_whether_one_is_sure(signed_in, delivered, said):
    answer = withdrawal(signed_in, delivered, **said)
    assert answer.status_code == 422
    assert "Withdraw the submission" in text_of(answer)
    delivered.refresh_from_db()
    assert delivered.status == "accepted"


def test_a_reason_that_turns_the_direction_is_refused(signed_in, delivered):
    answer = withdrawal(signed_in, delivered, reason="wrong\r\nfile\u202e")
    assert answer.status_code == 409
    assert "A reason has no signs that cannot be seen" in text_of(answer)
    at = f"/b/toy/agents/{delivered.agent.pk}/report"
    assert signed_in.post(at, {"text": "wrong\u202e"}).status_code == 409
    delivered.refresh_from_db()
    assert delivered.status == "accepted"
    assert not Dispute.objects.exists()


def test_taken_back_after_a_board_showed_it_it_waits_for_an_operator(signed_in, delivered, toy):
    assert "has no rank until an operator approves" not in text_of(
        signed_in.get(f"/submissions/{delivered.uuid}")
    )
    recompute(benchmark=toy, as_of=timezone.now())
    assert "has no rank until an operator approves" in text_of(
        signed_in.get(f"/submissions/{delivered.uuid}")
    )
    withdrawal(signed_in, delivered)
    assert delivered.status_changes.latest("id").after_board


def test_what_the_form_says_before_a_board_and_where_the_policy_allows_it(signed_in, delivered, toy):
    sentence = "If the agent runs these tasks again, or did so since, an operator must approve it."
    assert sentence in text_of(signed_in.get(f"/submissions/{delivered.uuid}"))
    Policy.objects.create(benchmark=toy, number=2, resubmission="free")
    assert sentence not in text_of(signed_in.get(f"/submissions/{delivered.uuid}"))


def test_an_operator_may_take_back_what_others_delivered(client, delivered, toy):
    recompute(benchmark=toy, as_of=timezone.now())
    client.force_login(person("op@example.org", role=Role.OPERATOR, benchmark=toy))
    assert withdrawal(client, delivered).status_code == 302
    delivered.refresh_from_db()
    assert delivered.status == "withdrawn"
    assert not delivered.status_changes.latest("id").after_board


def test_nobody_else_may_and_never_twice_nor_by_get(client, signed_in, delivered, toy):
    at = f"/submissions/{delivered.uuid}/withdraw"
    assert signed_in.get(at).status_code == 405
    assert withdrawal(signed_in, delivered).status_code == 302
    answer = withdrawal(signed_in, delivered)
    assert answer.status_code == 409
    assert "it does not count" in text_of(answer)
    for role in (Role.VIEWER, Role.SUBMITTER):
        client.force_login(person(f"{role}@example.org", role=role, benchmark=toy))
        assert withdrawal(client, delivered).status_code == 404
    assert withdrawal(Client(), delivered).status_code == 302  # to the door
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(person("other@example.org", staff=True))
    assert withdrawal(strict, delivered).status_code == 403


def test_who_delivered_for_another_s_agent_has_no_button(client, delivered, toy):
    other = person("eve@example.org", role=Role.SUBMITTER, benchmark=toy)
    delivered.agent.owner = other
    delivered.agent.save()
    client.force_login(delivered.submitted_by)
    assert "Take it back" not in text_of(client.get(f"/submissions/{delivered.uuid}"))
    answer = withdrawal(client, delivered)
    assert answer.status_code == 409
    assert "belongs to another account" in text_of(answer)


# -------------------------------------------------------------------------------------- reporting an entry


def test_an_entry_is_reported_and_nothing_changes(client, delivered, toy):
    agent = delivered.agent
    at = f"/b/toy/agents/{agent.pk}/report"
    assert client.get(at).headers["Location"] == f"/accounts/login/?next={at}"
    eve = person("eve@example.org")
    client.force_login(eve)
    page = client.get(f"{at}?board=1").content.decode()
    assert "Tree &lt;1&gt;" in page
    assert 'value="1"' in page
    answer = client.post(at, {"text": "It <b>passes</b> t01\nwithout running it.", "board": "1"})
    assert answer.status_code == 201
    assert "<b>passes" not in answer.content.decode()
    assert "An operator will check your report." in text_of(answer)
    stored = Dispute.objects.get()
    assert (stored.agent, stored.by, stored.board_number, stored.contact) == (agent, eve, 1, "")
    assert stored.text == "It <b>passes</b> t01\nwithout running it."
    delivered.refresh_from_db()
    assert delivered.status == "accepted"


@pytest.mark.parametrize(
    "said", [{"text": ""}, {"text": " "}, {"text": "x" * 5_001}, {"text": "x", "board": "0"}]
)
def test_a_report_that_says_nothing_is_refused(signed_in, delivered, said):
    assert signed_in.post(f"/b/toy/agents/{delivered.agent.pk}/report", said).status_code == 422
    assert not Dispute.objects.exists()


def test_a_report_of_a_board_that_there_is_not_says_so_at_its_number(signed_in, delivered):
    at = f"/b/toy/agents/{delivered.agent.pk}/report"
    answer = signed_in.post(at, {"text": "It knew the answers.", "board": "999999"})
    assert answer.status_code == 422
    assert answer.context["form"].errors["board"] == ["This unknown board number."]
    assert not Dispute.objects.exists()


def test_the_same_report_is_taken_once_and_many_are_not(signed_in, delivered, monkeypatch):
    at = f"/b/toy/agents/{delivered.agent.pk}/report"
    first, again = (signed_in.post(at, {"text": "It knew the answers."}) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 409)
    assert "You have reported this entry in these words" in text_of(again)
    assert "It knew the answers." in again.content.decode()  # still in the form
    monkeypatch.setattr(corrections, "MAX_OPEN", 3)
    assert [signed_in.post(at, {"text": text}).status_code for text in "abc"] == [201, 201, 409]
    for one in Dispute.objects.all():
        corrections.decide(dispute=one, upheld=False, by=None, reason="it did not", as_of=AS_OF)
    assert signed_in.post(at, {"text": "It knew the answers."}).status_code == 201


def test_who_waits_or_is_of_a_closed_benchmark_cannot_be_reported(client, delivered, toy):
    client.force_login(person("eve@example.org"))
    at = f"/b/toy/agents/{delivered.agent.pk}/report"
    assert client.get(at).status_code == 200
    assert client.get("/b/toy/agents/999999/report").status_code == 404
    assert client.get(at.replace("toy", "other")).status_code == 404
    Submission.objects.filter(pk=delivered.pk).update(status="waiting")
    assert client.get(at).status_code == 404
    Submission.objects.filter(pk=delivered.pk).update(status="accepted")
    Benchmark.objects.update(visibility=Visibility.PRIVATE)
    assert client.get(at).status_code == 404


def test_what_was_taken_back_under_its_embargo_is_told_to_nobody_else(client, delivered, ada, toy):
    body = {
        "agent": {"name": "too early", "scaffold": "Tree", "model": "Model 10"},
        "embargo_until": f"{timezone.now() + timedelta(days=9):%Y-%m-%d}",
        "outcomes": [{"task": f"t{j:02d}", "trial": 1, "outcome": j % 2} for j in range(20)],
    }
    token = delivered.token
    submit(benchmark=toy, token=token, body=body, idempotency_key=None, as_of=timezone.now())
    early = Submission.objects.get(agent__name="too early")
    client.force_login(ada)
    client.post(f"/submissions/{early.uuid}/withdraw", {"reason": "the wrong run", "sure": "on"})
    early.refresh_from_db()
    assert early.status == "withdrawn"
    client.force_login(person("eve@example.org"))
    api = "/api/v1/benchmarks/toy/agents"
    for at in (f"/b/toy/agents/{early.agent_id}/report", f"{api}/{early.agent_id}"):
        assert client.get(at).status_code == 404
    assert "too early" not in client.get(f"{api}?limit=200").content.decode()
    # Of an agent that did count it is not told either that something else was taken back.
    with pgtrigger.ignore("submissions.Submission:submission_changes_status_only"):
        Submission.objects.filter(pk=early.pk).update(agent=delivered.agent)
    told = client.get(f"{api}/{delivered.agent_id}").json()["submissions"]
    assert [one["id"] for one in told] == [str(delivered.uuid)]


# -------------------------------------------------------------------------------------------- registration


@pytest.mark.parametrize("is_open", [True, False])
def test_accounts_come_by_registration_where_the_settings_say_so(client, db, settings, is_open):
    settings.OPEN_REGISTRATION = is_open
    said = {"email": "new@example.org", "password1": PASSWORD, "password2": PASSWORD}
    client.post("/accounts/signup/", said)
    assert User.objects.filter(email="new@example.org").exists() == is_open


def test_registration_takes_as_long_for_an_address_that_has_an_account(client, ada, settings, monkeypatch):
    """What takes long is the hash of a password: as many are made either way, and the answer is the same."""
    settings.OPEN_REGISTRATION = True
    hashed, encode = [], Argon2PasswordHasher.encode
    monkeypatch.setattr(
        Argon2PasswordHasher,
        "encode",
        lambda self, password, salt: hashed.append(password) or encode(self, password, salt),
    )
    answers = []
    for email in (ada.email, "new@example.org"):
        said = {"email": email, "password1": PASSWORD, "password2": PASSWORD}
        answers.append(client.post("/accounts/signup/", said).headers["Location"])
        client.cookies.clear()
    assert answers[0] == answers[1]
    assert hashed == [PASSWORD] * 2
