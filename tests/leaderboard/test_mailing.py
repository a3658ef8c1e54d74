"""Mail to those who wish for it, and names that are held for nothing."""

from datetime import timedelta
from uuid import UUID

import pytest
from django.core import mail
from django.utils import timezone

from leaderboard.accounts.models import User
from leaderboard.catalog.models import Agent, Role
from leaderboard.catalog.services import AgentDescription
from leaderboard.errors import Exhausted, Forbidden
from leaderboard.operations import people
from leaderboard.operations.assignments import assign
from leaderboard.operations.policies import changed_policy, put_in_force
from leaderboard.operations.reviewing import accept, refuse
from leaderboard.operations.webhooks import deliver_due
from leaderboard.submissions.models import Submission
from tests.leaderboard import world
from tests.leaderboard.desk import PASSWORD, person
from tests.leaderboard.world import token
from tests.refusals import refused
from tests.toys import AS_OF, load_text, recomputed

OUTCOMES = [{"task": f"t{j:02d}", "trial": 1, "outcome": 1} for j in range(20)]


@pytest.fixture
def ada(toy):
    found = token("ada@example.org")
    people.wish_for_mail(user=found.user, wanted=True)
    return found


def deliver(toy, by, name="mine", *, model="M", **more):
    described, at = {"name": name, "scaffold": "Tree", "model": model}, f"{AS_OF:%Y-%m-%d}"
    return UUID(world.deliver(by, OUTCOMES, described, submitted_at=at, **more)["id"])


def review_all(toy):
    put_in_force(policy=changed_policy(benchmark=toy, values={"review": "manual"}), reason="x")


def told():
    deliver_due(as_of=AS_OF)
    sent = [(one.to, one.subject, one.body) for one in mail.outbox]
    mail.outbox.clear()
    return sent


class TestMail:
    def test_what_became_of_a_submission_that_waited(self, toy, ada):
        review_all(toy)
        one, two = (deliver(toy, ada, name, model=name) for name in ("mine", "other"))
        assert told() == []  # the answer said that they wait
        accept(uuid=one, by=None, reason="looks right", as_of=AS_OF)
        refuse(uuid=two, by=None, reason="the log has no runs", as_of=AS_OF)
        accepted, refused = told()
        assert (accepted[0], refused[0]) == (["ada@example.org"], ["ada@example.org"])
        assert accepted[1] == "[Bandstand] Toy: submission.accepted"
        assert "Results of mine now count" in accepted[2]
        assert "other was refused: the log has no runs" in refused[2]
        assert "To stop them: " in refused[2]

    def test_where_ones_agents_stand_when_that_is_news(self, toy, ada):
        recomputed()
        deliver(toy, ada)
        told()
        recomputed()
        ((to, subject, body),) = told()
        assert (to, subject) == (["ada@example.org"], "[Bandstand] Toy: board.published")
        assert "mine: 95% rank range 1–" in body
        assert "a00" not in body
        toy.refresh_from_db()
        load_text(
            "benchmark,agent,scaffold,model,submitted_at,task,trial,outcome\n"
            + "".join(f"Toy,late,Loop,M late,2026-02-01,t{j:02d},1,0\n" for j in range(20))
        )
        recomputed()
        assert told() == []  # it stands where it stood

    def test_nothing_to_who_wishes_for_none_or_no_more(self, toy, ada):
        review_all(toy)
        first, second = (deliver(toy, ada, name, model=name) for name in ("mine", "other"))
        accept(uuid=first, by=None, reason="right", as_of=AS_OF)
        people.wish_for_mail(user=ada.user, wanted=False)
        assert told() == []
        refuse(uuid=second, by=None, reason="wrong", as_of=AS_OF)
        recomputed()
        assert told() == []


class TestNames:
    def ask(self, toy, who, name="wanted", *, as_of=AS_OF, model="M"):
        described = AgentDescription(name, "Tree", model)
        return assign(benchmark=toy, agent=described, by=who.user, as_of=as_of)

    def test_one_is_free_when_its_assignment_came_to_nothing(self, toy, ada):
        eve = token("eve@example.org")
        theirs = self.ask(toy, eve, "Wanted", model="Squatter")
        with refused(Forbidden, "not_your_agent"):
            self.ask(toy, ada)
        after = theirs.expires_at + timedelta(minutes=1)
        assert self.ask(toy, eve, "Wanted", model="Squatter", as_of=after).pk != theirs.pk
        later = after + timedelta(days=30)
        mine = self.ask(toy, ada, as_of=later)
        assert mine.agent.owner == ada.user
        assert (mine.agent.name, mine.agent.model.name) == ("wanted", "M")
        with refused(Forbidden, "not_your_agent"):
            self.ask(toy, eve, "Wanted", model="Squatter", as_of=later)
        # The row of before stays with its assignments, under a name that nobody takes.
        theirs.agent.refresh_from_db()
        assert theirs.agent.name.startswith("unused ")
        assert theirs.agent.owner is None

    def test_one_is_free_after_a_day_without_an_outcome(self, toy, ada):
        """An open assignment held a name for 14 days, and each new one for 14 more."""
        theirs = self.ask(toy, token("eve@example.org"), model="Squatter")
        with refused(Forbidden, "not_your_agent"):
            self.ask(toy, ada, as_of=AS_OF + timedelta(hours=23))
        mine = self.ask(toy, ada, as_of=AS_OF + timedelta(hours=25))
        assert (mine.agent.name, mine.agent.owner, mine.agent.model.name) == ("wanted", ada.user, "M")
        theirs.refresh_from_db()
        assert theirs.status == "expired"

    def test_one_with_an_outcome_is_never_free(self, toy, ada):
        deliver(toy, token("eve@example.org"), "wanted")
        with refused(Forbidden, "not_your_agent"):
            self.ask(toy, ada, as_of=AS_OF + timedelta(days=400))

    def test_who_delivered_late_keeps_it(self, toy, ada):
        eve = token("eve@example.org")
        self.ask(toy, eve)
        deliver(toy, eve, "wanted")
        Submission.objects.get(agent__name="wanted")
        with refused(Forbidden, "not_your_agent"):
            self.ask(toy, ada, as_of=AS_OF + timedelta(days=60))

    def test_a_file_takes_it_too(self, toy, ada):
        self.ask(toy, ada, "late", model="Squatter")
        head = "benchmark,agent,scaffold,model,submitted_at,task,trial,outcome\n"
        load_text(head + "Toy,late,Loop,M late,2026-02-01,t00,1,0\n", as_of=AS_OF + timedelta(days=60))
        assert Agent.objects.get(name="late").model.name == "M late"

    def test_nobody_holds_more_names_in_a_day_than_they_may_deliver(self, toy, ada):
        policy = changed_policy(benchmark=toy, values={"quota_per_account": "3"})
        put_in_force(policy=policy, reason="x")
        for n in range(3):
            self.ask(toy, ada, f"agent {n}", model=f"M {n}")
        with refused(Exhausted, "assignments_spent", match="3 assignments"):
            self.ask(toy, ada, "agent 3", model="M 3")
        assert not Agent.objects.filter(name="agent 3").exists()
        self.ask(toy, ada, "agent 2", model="M 2")  # asked again, the same
        self.ask(toy, ada, "agent 3", model="M 3", as_of=AS_OF + timedelta(days=1))

    def test_an_agent_under_embargo_is_not_described_to_others(self, toy, post, ada):
        """The same words, whether the guess was right: who asks learns that a name is taken, and no more."""
        secret = {"agent": {"name": "Stealth", "scaffold": "Hidden", "model": "Unannounced 2"}}
        until = f"{timezone.now() + timedelta(days=9):%Y-%m-%d}"
        assert post(secret | {"outcomes": OUTCOMES, "embargo_until": until}).status_code == 201
        eve = token("eve@example.org")
        answers = set()
        for guess in (
            ("Stealth", "Tree", "M"),
            ("Stealth", "Hidden", "Unannounced 2"),
            ("stealth", "Hidden", "Unannounced 2"),
            ("Ｓtealth", "Tree", "M"),
        ):
            with refused(Forbidden, "not_your_agent") as refusal:
                assign(benchmark=toy, agent=AgentDescription(*guess), by=eve.user, as_of=AS_OF)
            answers.add((str(refusal.value), str(refusal.value.details)))
        assert len(answers) == 1
        assert "Hidden" not in str(answers)
        assert "Unannounced" not in str(answers)


def test_a_link_that_was_handed_over_confirms_no_address(client, toy, mailoutbox):
    operator = person("op@example.org", role=Role.OPERATOR, benchmark=toy)
    about = {"benchmark": toy, "role": Role.SUBMITTER, "reason": "a team", "as_of": timezone.now()}
    _, secret = people.invite(email="eve@example.org", by=operator, **about)
    answer = client.post(f"/invitation/{secret}", {"name": "Eve", "password": PASSWORD})
    assert "asks you to confirm" in answer.content.decode()
    assert client.get("/account").status_code == 302
    sign_in = {"login": "eve@example.org", "password": PASSWORD}
    assert "/accounts/confirm-email/" in client.post("/accounts/login/", sign_in).headers["Location"]
    assert mailoutbox[0].to == ["eve@example.org"]
    link = next(word for word in mailoutbox[0].body.split() if "/accounts/confirm-email/" in word)
    client.post("/" + link.split("/", 3)[3])
    assert client.post("/accounts/login/", sign_in).headers["Location"] == "/account"
    # What staff hand over counts, for they could confirm it by hand.
    _, secret = people.invite(email="bob@example.org", by=person("s@example.org", staff=True), **about)
    client.logout()
    answer = client.post(f"/invitation/{secret}", {"name": "Bob", "password": PASSWORD})
    assert answer.status_code == 302
    assert client.get("/account").status_code == 200
    assert User.objects.filter(email="bob@example.org", emailaddress__verified=True).exists()
