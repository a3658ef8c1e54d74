"""How many deliveries an account makes and an agent gets in a day, and how many it may try in a minute."""

from datetime import UTC, datetime, timedelta

import pytest

from leaderboard.catalog.models import Agent, Benchmark, Policy
from leaderboard.errors import Exhausted
from leaderboard.operations import quotas
from leaderboard.operations.intake import submit
from leaderboard.operations.models import FailedAttempts
from leaderboard.submissions.models import IdempotencyKey, Submission
from tests.leaderboard.api.deliver import body, csv_of, rows, send, send_file, token_for
from tests.leaderboard.world import token
from tests.refusals import refused
from tests.toys import AS_OF

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


@pytest.fixture
def ada(toy):
    return token("ada@example.org")


def policy(toy, **rules):
    return Policy.objects.create(benchmark=toy, number=toy.policies.count() + 1, **rules)


def deliver(of, as_of=NOON, agent="newcomer", run="1", **more):
    return submit(
        benchmark=Benchmark.objects.get(),
        token=of,
        body=body(agent, run=run),
        idempotency_key=None,
        as_of=as_of,
        **more,
    )


class TestQuotas:
    def test_the_receipt_says_what_is_left(self, ada, toy):
        policy(toy, quota_per_account=3, quota_per_agent=2)
        told = deliver(ada).content["quota"]
        assert told == {
            "account": {"limit": 3, "left": 2},
            "agent": {"limit": 2, "left": 1},
            "resets_at": "2026-06-02T00:00:00Z",
        }
        assert deliver(ada, agent="other").content["quota"]["account"]["left"] == 1

    def test_one_too_many_of_an_agent_and_of_an_account(self, ada, toy):
        policy(toy, quota_per_account=3, quota_per_agent=2)
        deliver(ada, run="1")
        deliver(ada, run="2")
        with refused(Exhausted, "quota_spent", match="an agent gets 2 submissions") as caught:
            deliver(ada, run="3")
        assert (caught.value.retry_after, caught.value.details["quota"]) == (12 * 3600, "agent")
        deliver(ada, agent="other")
        with refused(Exhausted, "quota_spent", match="an account makes 3 submissions"):
            deliver(ada, agent="third")
        assert Submission.objects.filter(loaded=False).count() == 3
        assert not Agent.objects.filter(name="third").exists()

    def test_another_token_of_the_account_has_no_quota_of_its_own(self, ada, toy):
        policy(toy, quota_per_account=1)
        deliver(ada, run="1")
        with refused(Exhausted, "quota_spent", match="an account makes 1 submission"):
            deliver(token("ada@example.org"), run="2")

    def test_the_next_utc_day_begins_anew(self, ada, toy):
        policy(toy, quota_per_account=1)
        deliver(ada, as_of=datetime(2026, 6, 1, 23, 59, 59, tzinfo=UTC), run="1")
        east = datetime.fromisoformat("2026-06-02T01:59:59+02:00")  # the same second
        with refused(Exhausted, "quota_spent"):
            deliver(ada, as_of=east, run="2")
        deliver(ada, as_of=datetime(2026, 6, 2, tzinfo=UTC), run="2")

    def test_operators_and_dry_runs_are_exempt(self, ada, toy):
        policy(toy, quota_per_account=1, quota_per_agent=1)
        deliver(ada, run="1")
        assert deliver(ada, dry_run=True, run="2").content["quota"]["account"] == {"limit": 1, "left": 0}
        operator = token("op@example.org", scope="operate")
        assert deliver(operator, run="2").content["quota"] is None
        assert quotas.remaining(benchmark=toy, token=operator, agent=None, as_of=NOON) is None

    def test_what_is_refused_or_loaded_does_not_count(self, ada, toy):
        policy(toy, quota_per_account=1, quota_per_agent=1)
        with pytest.raises(Exception, match="faults"):
            submit(benchmark=toy, token=ada, body={}, idempotency_key=None, as_of=NOON)
        assert deliver(ada).content["quota"]["account"]["left"] == 0

    def test_a_lowered_quota_leaves_none(self, ada, toy):
        deliver(ada, run="1")
        deliver(ada, run="2")
        policy(toy, quota_per_account=1)
        found = quotas.remaining(benchmark=toy, token=ada, agent=None, as_of=NOON)
        assert found.left == {"account": 0}


class TestOverHttp:
    def test_headers_and_the_refusal(self, submit_token, toy):
        policy(toy, quota_per_account=1, quota_per_agent=1)
        first = send(body(), token=submit_token)
        assert first["RateLimit-Policy"] == '"account";q=1;w=86400, "agent";q=1;w=86400'
        assert first["RateLimit"].startswith('"account";r=0;t=')
        fields = {"agent.name": "newcomer", "agent.scaffold": "Loop", "agent.model": "M newcomer"}
        second = send_file(csv_of(rows(run="b")), fields, token=submit_token)
        assert (second.status_code, second["Content-Type"]) == (429, "application/problem+json")
        assert second.json()["type"].endswith("quota_spent")
        assert 0 < int(second["Retry-After"]) <= 86_400
        assert Submission.objects.filter(loaded=False).count() == 1

    def test_a_known_key_is_answered_all_the_same(self, submit_token, toy):
        policy(toy, quota_per_account=1)
        key = {"Idempotency-Key": "one"}
        first = send(body(), token=submit_token, **key)
        again = send(body(), token=submit_token, **key)
        assert (again.status_code, again.json()) == (201, first.json())
        other = send(body("other"), token=submit_token, **{"Idempotency-Key": "two"})
        assert other.status_code == 429
        assert IdempotencyKey.objects.count() == 1

    def test_faults_say_what_is_left_too(self, submit_token):
        faulty = send({}, token=submit_token)
        assert (faulty.status_code, faulty["RateLimit"][:15]) == (422, '"account";r=100')

    def test_operators_have_no_headers(self, toy):
        found = send(body(), token=token_for("op@example.org", "operate"))
        assert (found.status_code, "RateLimit" in found) == (201, False)


class TestTries:
    def test_sixty_a_minute(self, submit_token, monkeypatch):
        monkeypatch.setattr(quotas, "MAX_ATTEMPTS", 3)
        codes = [send({}, token=submit_token).status_code for _ in range(2)]
        codes += [send(body(), token=submit_token, query="?dry_run=true").status_code, 0]
        codes[-1] = send(body(), token=submit_token).status_code
        assert codes == [422, 422, 200, 429]
        refused = send({}, token=submit_token)
        assert refused.json()["type"].endswith("too_many_tries")
        assert 1 <= int(refused["Retry-After"]) <= 60
        assert send(body(), token=token_for("eve@example.org")).status_code == 201

    def test_what_is_stored_is_no_try(self, submit_token):
        assert send(body(), token=submit_token).status_code == 201
        assert not FailedAttempts.objects.exists()
        assert send(body(), token=submit_token).status_code == 409
        assert FailedAttempts.objects.get().n == 1

    def test_the_minute_begins_with_the_first(self, ada):
        at = [AS_OF + timedelta(seconds=s) for s in (0, 30, 59, 60, 61)]
        for one in at[:3]:
            quotas.count_attempt(token=ada, as_of=one)
        assert (FailedAttempts.objects.get().n, FailedAttempts.objects.get().since) == (3, AS_OF)
        quotas.count_attempt(token=ada, as_of=at[3])
        assert (FailedAttempts.objects.get().n, FailedAttempts.objects.get().since) == (1, at[3])

    def test_the_wait_is_told(self, ada):
        for _ in range(60):
            quotas.count_attempt(token=ada, as_of=AS_OF)
        with refused(Exhausted, "too_many_tries") as caught:
            quotas.check_attempts(token=ada, as_of=AS_OF + timedelta(seconds=50.5))
        assert caught.value.retry_after == 10
        quotas.check_attempts(token=ada, as_of=AS_OF + timedelta(seconds=60))
