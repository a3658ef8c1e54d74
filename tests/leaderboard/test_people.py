"""Invitations, memberships, tokens: by services, by the page, by commands."""

import io
from datetime import timedelta

import pytest
from django.contrib.auth import get_user
from django.core.management import CommandError, call_command
from django.utils import timezone

from leaderboard.accounts.models import ApiToken, User
from leaderboard.accounts.services import token_of
from leaderboard.catalog.models import Benchmark, Invitation, Membership, Role
from leaderboard.errors import Conflict, Missing, Refusal
from leaderboard.operations import people
from leaderboard.operations.benchmarks import create_benchmark
from leaderboard.operations.corrections import trust_account
from leaderboard.operations.services import issue_token
from leaderboard.submissions.queries import trusted_accounts
from tests.leaderboard.desk import PASSWORD, person
from tests.refusals import refused
from tests.toys import AS_OF


@pytest.fixture
def invited(toy):
    return invite(toy, "Eve@Example.org", Role.SUBMITTER)


def invite(benchmark, email, role=Role.VIEWER, by=None):
    """An invitation of this moment, and its secret."""
    who = {"email": email, "role": role, "by": by, "reason": "a new team"}
    return people.invite(benchmark=benchmark, as_of=timezone.now(), **who)


def accept(secret, **more):
    return people.accept_invitation(secret=secret, user=None, as_of=timezone.now(), **more)


class TestInvitation:
    def test_it_opens_an_account_with_its_role_once(self, toy, invited):
        _, secret = invited
        eve = accept(secret, name="Eve", password=PASSWORD)
        assert (eve.email, eve.name, eve.check_password(PASSWORD)) == ("eve@example.org", "Eve", True)
        assert eve.password.startswith("argon2")
        assert Membership.objects.get(user=eve, benchmark=toy).role == Role.SUBMITTER
        with refused(Conflict, "invitation_over", match="was used on"):
            accept(secret, name="Eve", password=PASSWORD)

    def test_its_secret_is_nowhere(self, invited):
        invitation, secret = invited
        assert secret.encode() not in bytes(invitation.sha256)
        assert str(secret) not in str(Invitation.objects.values().get())

    def test_it_ends_after_two_weeks_and_when_revoked(self, invited):
        invitation, secret = invited
        with refused(Conflict, "invitation_over", match="expired"):
            people.invitation_of(secret, as_of=invitation.expires_at)
        people.revoke_invitation(invitation=invitation, by=None, reason="sent astray", as_of=timezone.now())
        with refused(Conflict, "invitation_over", match="revoked"):
            accept(secret, name="Eve", password=PASSWORD)
        with refused(Conflict, "invitation_over", match="revoked"):
            people.revoke_invitation(invitation=invitation, by=None, reason="again", as_of=timezone.now())

    def test_whoever_has_an_account_signs_in_first(self, toy, invited):
        _, secret = invited
        eve = person("eve@example.org")
        with refused(Conflict, "has_account"):
            accept(secret, name="Mallory", password=PASSWORD)
        people.accept_invitation(secret=secret, user=eve, as_of=timezone.now())
        assert Membership.objects.get(user=eve).role == Role.SUBMITTER

    def test_it_is_for_its_address_alone(self, invited):
        _, secret = invited
        with refused(Conflict, "for_another"):
            people.accept_invitation(secret=secret, user=person("mallory@example.org"), as_of=timezone.now())
        with refused(Missing, "no_such_invitation"):
            accept(secret[:-1], name="Eve", password=PASSWORD)

    def test_a_password_that_is_easy_to_guess_leaves_nothing_behind(self, invited):
        _, secret = invited
        with refused(Refusal, "weak_password"):
            accept(secret, name="Eve", password="password")
        assert not User.objects.exists()
        assert Invitation.objects.get().accepted_at is None

    def test_a_name_holds_no_mark(self, invited):
        with refused(Refusal, "odd_name", match="A person's name has no ✓. Use plain letters."):
            accept(invited[1], name="Eve ✓", password=PASSWORD)

    def test_a_closed_account_stays_closed(self, toy, invited):
        eve = User.objects.create(email="eve@example.org", password="!", is_active=False)
        with refused(Conflict, "closed_account"):
            accept(invited[1], name="Eve", password=PASSWORD)
        eve.refresh_from_db()
        assert (eve.password, eve.memberships.count()) == ("!", 0)
        assert Invitation.objects.get().accepted_at is None

    def test_a_higher_role_stays(self, toy, invited):
        _, secret = invited
        eve = person("eve@example.org", role=Role.OPERATOR, benchmark=toy)
        people.accept_invitation(secret=secret, user=eve, as_of=timezone.now())
        assert Membership.objects.get(user=eve).role == Role.OPERATOR

    def test_an_account_that_holds_more_than_the_inviter_operates_is_not_opened_by_a_link(self, toy):
        operator = person("ada@example.org", role=Role.OPERATOR, benchmark=toy)
        other = create_benchmark(slug="other", title="Other", tasks=[], by=None, reason="a second one")
        life = timedelta(days=9)
        for slug in ("toy", "other"):
            issue_token(
                email=f"{slug}@example.org", slug=slug, scope="operate", name="ci", as_of=AS_OF, life=life
            )
        links = {slug: invite(toy, f"{slug}@example.org", by=operator)[1] for slug in ("toy", "other")}
        accept(links["toy"], name="Eve", password=PASSWORD)
        with refused(Conflict, "holds_more"):
            accept(links["other"], name="Mallory", password=PASSWORD)
        boss = User.objects.get(email="other@example.org")
        assert not boss.has_usable_password()
        assert not Membership.objects.filter(user=boss, benchmark=toy).exists()
        people.accept_invitation(secret=links["other"], user=boss, as_of=timezone.now())
        assert Membership.objects.filter(user=boss).count() == 2
        assert other.memberships.get().role == Role.OPERATOR

    def test_it_ends_with_the_role_of_whoever_made_it(self, toy):
        rogue = person("rogue@example.org", role=Role.OPERATOR, benchmark=toy)
        _, secret = invite(toy, "friend@example.org", Role.OPERATOR, by=rogue)
        people.set_role(benchmark=toy, email=rogue.email, role=Role.VIEWER, by=None, reason="misuse")
        with refused(Conflict, "invitation_over", match="operates the benchmark no more"):
            accept(secret, name="Friend", password=PASSWORD)

    @pytest.mark.parametrize("email", ["", "eve", "eve@", "a b@example.org"])
    def test_what_is_no_address_is_refused(self, toy, email):
        with refused(Refusal, "not_an_address"):
            invite(toy, email)


class TestThePage:
    def test_a_new_person_comes_in(self, client, toy, invited):
        _, secret = invited
        page = client.get(f"/invitation/{secret}")
        assert page.status_code == 200
        assert "eve@example.org" in page.content.decode()
        assert User.objects.count() == 0
        answer = client.post(f"/invitation/{secret}", {"name": "Eve", "password": PASSWORD})
        assert (answer.status_code, answer.headers["Location"]) == (302, "/b/toy")
        assert get_user(client).email == "eve@example.org"
        assert client.get(f"/invitation/{secret}").status_code == 404

    def test_who_comes_to_a_private_benchmark_is_led_to_a_page_that_is_there(self, client, toy, invited):
        Benchmark.objects.update(visibility="private")
        answer = client.post(f"/invitation/{invited[1]}", {"name": "Eve", "password": PASSWORD}, follow=True)
        assert answer.redirect_chain == [("/account", 302)]
        assert answer.status_code == 200

    def test_faults_are_told(self, client, invited):
        _, secret = invited
        answer = client.post(f"/invitation/{secret}", {"name": "Eve", "password": "12345678"})
        assert answer.status_code == 409
        assert "numeric" in answer.content.decode() or "common" in answer.content.decode()

    @pytest.mark.parametrize("name", ["evE\u202e", "E\u200bve", "E\u2028ve", "\u3164"])
    def test_a_name_that_cannot_be_seen_is_refused(self, client, invited, name):
        answer = client.post(f"/invitation/{invited[1]}", {"name": name, "password": PASSWORD})
        assert answer.status_code == 409
        assert "A person&#x27;s name has no" in answer.content.decode()
        assert not User.objects.exists()

    def test_whoever_has_an_account_is_sent_to_sign_in(self, client, invited):
        _, secret = invited
        eve = person("eve@example.org")
        page = client.get(f"/invitation/{secret}").content.decode()
        assert f"/accounts/login/?next=/invitation/{secret}" in page
        assert client.post(f"/invitation/{secret}", {"name": "M", "password": PASSWORD}).status_code == 200
        assert not Membership.objects.exists()
        client.force_login(eve)
        assert client.post(f"/invitation/{secret}").status_code == 302
        assert Membership.objects.get().user == eve

    def test_it_is_kept_by_nobody(self, client, invited):
        answer = client.get(f"/invitation/{invited[1]}")
        assert "no-store" in answer.headers["Cache-Control"]
        assert answer.headers["Referrer-Policy"] == "same-origin"


def test_a_role_may_become_less(toy):
    eve = person("eve@example.org", role=Role.OPERATOR, benchmark=toy)
    people.set_role(benchmark=toy, email="EVE@example.org", role=Role.VIEWER, by=None, reason="moved on")
    membership = Membership.objects.get(user=eve)
    assert membership.role == Role.VIEWER
    trust_account(benchmark=toy, account=eve, reason="our own CI", as_of=AS_OF)
    people.remove_member(membership=membership, by=None, reason="left", as_of=AS_OF)
    assert trusted_accounts(toy) == set()
    assert not Membership.objects.exists()
    with refused(Missing, "no_such_account"):
        people.set_role(benchmark=toy, email="none@example.org", role=Role.VIEWER, by=None, reason="x")


def test_a_revoked_token_is_refused_by_name(toy):
    now = timezone.now()
    token, secret = issue_token(
        email="ada@example.org", slug="toy", scope="submit", name="ci", as_of=now, life=timedelta(days=9)
    )
    people.revoke_token(token=token, by=None, reason="leaked", as_of=now)
    with refused(Refusal, "token_revoked"):
        token_of(secret, as_of=now)
    with refused(Conflict, "revoked_already"):
        people.revoke_token(token=token, by=None, reason="leaked", as_of=now)
    assert ApiToken.objects.get().revoked_at == now


def test_an_invitation_by_a_command(toy, settings):
    settings.SITE_URL = "https://board.example"
    out, err = io.StringIO(), io.StringIO()
    call_command("invite", "eve@example.org", benchmark="toy", role="viewer", stdout=out, stderr=err)
    link = out.getvalue().strip()
    assert link.startswith("https://board.example/invitation/")
    assert accept(link.rpartition("/")[2], name="Eve", password=PASSWORD).email == "eve@example.org"
    with pytest.raises(CommandError, match="Invalid e-mail address"):
        call_command("invite", "eve", benchmark="toy", stdout=out, stderr=err)


def test_the_first_account_by_a_command_signs_in(client, db, monkeypatch):
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", PASSWORD)
    call_command("createsuperuser", email="ada@example.org", interactive=False, stdout=io.StringIO())
    answer = client.post("/accounts/login/", {"login": "ada@example.org", "password": PASSWORD})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/account")
    assert client.get("/admin/").status_code == 200
