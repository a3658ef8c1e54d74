"""The one door: sign in, second factor, registration; and that public pages know nobody."""

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import (
    TOTP,
    generate_totp_secret,
    hotp_value,
    yield_hotp_counters_from_time,
)
from django.db import connection
from django.test.utils import CaptureQueriesContext

from leaderboard.accounts.models import User
from tests.leaderboard.desk import PASSWORD, person
from tests.toys import recomputed


def sign_in(client, email="staff@example.org", password=PASSWORD):
    return client.post("/accounts/login/?next=/admin/", {"login": email, "password": password})


@pytest.fixture
def staff(db):
    return person("staff@example.org", staff=True)


class TestSigningIn:
    def test_the_admin_sends_to_the_one_door_and_back(self, client, staff):
        answer = client.get("/admin/catalog/task/", follow=True)
        assert answer.redirect_chain[-1][0].startswith("/accounts/login/?next=/admin/")
        assert sign_in(client).headers["Location"] == "/admin/"
        assert client.get("/admin/").status_code == 200

    def test_a_wrong_password_is_refused_and_soon_not_even_asked(self, client, staff):
        answers = [sign_in(client, password="wrong").status_code for _ in range(25)]
        assert answers[0] == 200
        assert client.get("/admin/").status_code == 302
        # After too many failures of one address it is told to wait, with the right password too.
        assert "Too many" in sign_in(client).content.decode()

    def test_an_address_that_nobody_confirmed_does_not_sign_in(self, client, db):
        User.objects.create_user("new@example.org", PASSWORD, is_staff=True)
        assert "/accounts/confirm-email/" in sign_in(client, "new@example.org").headers["Location"]
        assert client.get("/admin/").status_code == 302

    def test_it_does_not_send_elsewhere(self, client, staff):
        answer = client.post(
            "/accounts/login/?next=https://elsewhere.example/",
            {"login": "staff@example.org", "password": PASSWORD},
        )
        assert answer.headers["Location"] == "/account"

    def test_signing_out_takes_a_post(self, client, staff):
        client.force_login(staff)
        assert client.get("/admin/logout/").status_code == 405
        client.post("/admin/logout/")
        assert client.get("/admin/").status_code == 302

    def test_a_forgotten_password_is_mended_by_mail(self, client, staff, mailoutbox):
        client.post("/accounts/password/reset/", {"email": "staff@example.org"})
        (mail,) = mailoutbox
        link = next(word for word in mail.body.split() if "/accounts/password/reset/key/" in word)
        path = "/" + link.split("/", 3)[3]
        form = client.get(path, follow=True)
        changed = client.post(
            form.redirect_chain[-1][0], {"password1": "another long road", "password2": "another long road"}
        )
        assert changed.status_code == 302
        assert sign_in(client, password="another long road").status_code == 302


class TestSecondFactor:
    def test_it_is_asked_for_where_the_settings_say_so(self, client, staff, settings):
        settings.REQUIRE_2FA = True
        sign_in(client)
        answer = client.get("/admin/", follow=True)
        assert answer.redirect_chain[-1][0].startswith("/accounts/2fa/totp/activate/") or any(
            "/accounts/2fa/totp/activate/" in step[0] for step in answer.redirect_chain
        )
        assert client.get("/admin/catalog/task/").status_code == 302

    def test_with_it_one_comes_in_by_both(self, client, staff, settings):
        settings.REQUIRE_2FA = True
        secret = generate_totp_secret()
        TOTP.activate(staff, secret)
        answer = sign_in(client)
        assert answer.headers["Location"].startswith("/accounts/2fa/authenticate/")
        assert client.get("/admin/").status_code == 302
        code = hotp_value(secret, next(yield_hotp_counters_from_time()))
        client.post("/accounts/2fa/authenticate/", {"code": f"{code:06d}"})
        assert client.get("/admin/").status_code == 200
        assert Authenticator.objects.filter(user=staff).exists()


FORM = {"email": "new@example.org", "password1": PASSWORD, "password2": PASSWORD}


class TestRegistration:
    def test_it_is_closed_by_itself(self, client, db):
        assert "closed" in client.get("/accounts/signup/").content.decode().lower()
        client.post("/accounts/signup/", FORM)
        assert not User.objects.exists()

    def test_it_may_be_open_and_asks_for_the_address_to_be_confirmed(self, client, db, settings, mailoutbox):
        settings.OPEN_REGISTRATION = True
        client.post("/accounts/signup/", FORM, follow=True)
        assert User.objects.get().email == "new@example.org"
        assert "confirm" in mailoutbox[0].body.lower()
        assert not User.objects.get().is_staff


PAGES = ("/", "/b/toy", "/b/toy/history", "/b/toy/validity", "/b/toy/uncertainty", "/none")


class TestPublicPages:
    @pytest.mark.parametrize("path", PAGES)
    def test_they_know_nobody(self, client, toy, path, django_assert_num_queries):
        recomputed()
        client.force_login(person("staff@example.org", staff=True))
        signed_in = client.get(path)
        client.logout()
        anonymous = client.get(path)
        assert "Cookie" not in signed_in.headers.get("Vary", "")
        assert not signed_in.cookies
        assert not anonymous.cookies
        assert signed_in.content == anonymous.content

    def test_no_session_is_read_for_them(self, client, toy, django_assert_num_queries):
        recomputed()
        client.force_login(person("staff@example.org", staff=True))
        with CaptureQueriesContext(
            connection,
        ) as seen:
            client.get("/b/toy")
        assert not [one["sql"] for one in seen if "session" in one["sql"] or "accounts_user" in one["sql"]]

    @pytest.mark.parametrize("path", PAGES)
    def test_their_policy_of_contents_is_as_narrow_as_before(self, client, toy, path):
        recomputed()
        policy = client.get(path).headers["Content-Security-Policy"]
        assert "unsafe" not in policy
        assert "script-src 'self';" in policy + ";"


def test_the_admin_alone_may_evaluate(client, staff):
    client.force_login(staff)
    policy = client.get("/admin/").headers["Content-Security-Policy"]
    assert "script-src 'self' 'unsafe-eval'" in policy
    assert "style-src 'self' 'unsafe-inline'" in policy
    assert "unsafe" not in client.get("/accounts/email/").headers["Content-Security-Policy"]
    assert (
        "unsafe"
        not in client.get("/accounts/2fa/totp/activate/", follow=True).headers["Content-Security-Policy"]
    )
