"""Machine checks: each finding by hand; long deliveries and embargoes wait for the scheduler."""

import base64
from datetime import datetime, timedelta
from uuid import UUID

import pyarrow as pa
import pytest
from django.db import transaction

from leaderboard.accounts import secrets
from leaderboard.catalog.models import Benchmark, Duplicates, Policy, Review
from leaderboard.catalog.queries import policy_in_force
from leaderboard.catalog.services import AgentDescription
from leaderboard.errors import Conflict, Faulty
from leaderboard.operations import checking, jobs, reviewing
from leaderboard.operations.assignments import assign, names_of
from leaderboard.operations.checking import secrets_in
from leaderboard.operations.corrections import unload, withdraw
from leaderboard.operations.jobs import JOBS
from leaderboard.operations.models import JobStatus, Lane
from leaderboard.operations.reviewing import accept
from leaderboard.operations.runs import ClaimLost, begin
from leaderboard.operations.scheduler import children
from leaderboard.operations.services import recompute
from leaderboard.studies.queries import active_subset
from leaderboard.studies.receipt import AgentContext, own_row
from leaderboard.studies.records import Reader
from leaderboard.submissions.models import MachineCheck, Outcome, Status
from leaderboard.submissions.queries import (
    deliveries,
    live_outcomes,
    resubmitted,
    settings_of,
    standing_submissions,
    withheld,
)
from tests.leaderboard.world import deliver, stored, token
from tests.refusals import refused
from tests.toys import AS_OF, csv_text, first_board, graded, in_subset, lines_of, load_text

DAY = timedelta(days=1)


pytestmark = pytest.mark.usefixtures("one_connection")


@pytest.fixture
def ada(toy):
    return token("ada@example.org")


def marks_of(text, **more):
    return [
        {"task": f"t{j:02d}", "trial": 1, "outcome": float(mark) if mark != "h" else 0.5} | more
        for j, mark in enumerate(text)
        if mark != "."
    ]


def found(receipt, name):
    return [(one["level"], one["told"]) for one in receipt["checks"] if one["name"] == name]


def assigned(ada, toy, name="assigned"):
    described = AgentDescription(name, "Loop", f"M {name}")
    return assign(benchmark=toy, agent=described, by=ada.user, as_of=AS_OF)


WHOLE = "01" * 10


class TestFindings:
    def test_nothing_to_say(self, ada):
        receipt = deliver(ada, marks_of(WHOLE))
        assert {one["level"] for one in receipt["checks"]} == {"passed"}
        assert [one["name"] for one in receipt["checks"]] == [
            *("coverage", "trials", "copies", "gains", "identical", "fractions", "secrets", "dates")
        ]
        assert receipt["warnings"] == []
        assert stored(receipt).machine_check.found == receipt["checks"]

    def test_coverage_and_trials(self, ada):
        rows = [*marks_of("010101"), {"task": "t00", "trial": 2, "outcome": 1}]
        receipt = deliver(ada, [*rows[:-2], rows[-2] | {"valid": False}, rows[-1]])
        ((level, told),) = found(receipt, "coverage")
        assert (level, told[:43]) == ("warned", "14 of the 20 tasks asked for have no outcom")
        levels = [level for level, _ in found(receipt, "trials")]
        assert levels == ["warned", "noted"]
        assert "from 1 to 2 trials" in found(receipt, "trials")[0][1]

    def test_a_run_of_the_subset_without_an_assignment_is_noted(self, ada, toy):
        names = in_subset(first_board(toy))
        of_subset = [row for row in marks_of(WHOLE) if row["task"] in names]
        ((level, told),) = found(deliver(ada, of_subset), "audit")
        assert (level, told.startswith("it came without an assignment, so no task from outside")) == (
            "noted",
            True,
        )
        assert found(deliver(ada, marks_of(WHOLE), "of all tasks"), "audit") == []
        asked = assigned(ada, toy)
        rows = [row for row in marks_of(WHOLE) if row["task"] in names_of(asked)]
        assert found(deliver(ada, rows, "assigned"), "audit") == []

    @pytest.mark.parametrize("n_trials", [1, 2, 3, 4])
    def test_more_trials_than_the_assignment_lets_count(self, ada, toy, n_trials):
        """They count where they come at once, and not once all tasks are there."""
        first_board(toy)
        asked = assigned(ada, toy)
        most = asked.n_trials_recommended
        names = names_of(asked)
        rows = [
            row | {"trial": trial, "outcome": (row["outcome"] + trial) % 2}
            for trial in range(1, n_trials + 1)
            for row in marks_of(WHOLE)
            if row["task"] in names
        ]
        at_once, later = [row for row in rows if row["trial"] < n_trials], rows[-len(names) :]
        assert [level for level, _ in found(deliver(ada, at_once or later, "assigned"), "trials")] == [
            "passed"
        ]
        assert 1 < most < 4
        if at_once:
            told = [
                text for level, text in found(deliver(ada, later, "assigned"), "trials") if level == "warned"
            ]
            counted = max(most, n_trials - 1)
            expected = (
                f"there are {n_trials} trials of each task asked for, and the score takes {counted}: earlier"
            )
            assert [text.startswith(expected) for text in told] == [True] * (n_trials > counted)
            record = Reader(toy).now(None).record
            own = record.n_places[[one.name for one in record.about].index("assigned")]
            assert own.max() == min(counted, n_trials)

    def test_a_third_run_is_bounded_by_the_first(self, ada, toy):
        assert assigned(ada, toy).n_trials == 1
        told = [
            found(deliver(ada, marks_of(marks, run=marks), "assigned"), "trials")[0][1]
            for marks in ("01" * 10, "10" * 10, "0110" * 5)
        ]
        assert told[0] == "1 of each task"
        assert [one.partition(":")[0] for one in told[1:]] == [
            f"there are {n} trials of each task asked for, and the score takes 1" for n in (2, 3)
        ]
        record = Reader(toy).now(None).record
        assert record.n_places[[one.name for one in record.about].index("assigned")].max() == 1

    def test_more_trials_of_an_assignment_that_is_not_named(self, ada, toy):
        """They were asked for, the audit tasks among them, and count."""
        subset = in_subset(first_board(toy))
        asked = assigned(ada, toy)
        names = names_of(asked)
        assert (len(set(names) - set(subset)), asked.n_trials_recommended) == (2, 2)
        rows = [row for row in marks_of(WHOLE) if row["task"] in names]
        assert deliver(ada, rows, "assigned")["assignment"]["status"] == "fulfilled"
        again = [row | {"trial": 2, "outcome": 1 - row["outcome"]} for row in rows]
        receipt = deliver(ada, again, "assigned")
        assert (receipt["assignment"], receipt["n_outside"], receipt["warnings"]) == (None, 0, [])
        assert [told for _, told in found(receipt, "coverage")] == [
            f"all {len(names)} tasks asked for have an outcome"
        ]
        assert found(receipt, "audit") == []
        record = Reader(toy).now(active_subset(toy)).record
        own = record.n_places[[one.name for one in record.about].index("assigned")].tolist()
        assert own == [2 * (task in names) for task in record.table.tasks]

    def test_the_rest_of_a_full_run_has_trials_of_its_own(self, ada, toy):
        """Those that it came with; what comes later counts no more, which the receipt says."""
        subset = in_subset(first_board(toy))
        names = names_of(assigned(ada, toy))
        asked = [row for row in marks_of(WHOLE) if row["task"] in names]
        rest = [row for row in marks_of(WHOLE) if row["task"] not in names]
        deliver(ada, asked, "assigned")
        thrice = [row | {"trial": trial} for row in rest for trial in (1, 2, 3)]
        assert found(deliver(ada, thrice, "assigned"), "trials") == [("passed", "1 of each task")]
        told = found(deliver(ada, [row | {"trial": 4} for row in rest], "assigned"), "trials")
        assert told == [
            (
                "warned",
                "there are 4 trials of each of the other tasks, and the score takes 3: earlier submissions "
                "first; a whole run counts with its mean, others with their lowest results",
            )
        ]
        record = Reader(toy).now(active_subset(toy)).record
        own = record.n_places[[one.name for one in record.about].index("assigned")].tolist()
        assert own == [1 if task in names else 3 for task in record.table.tasks]
        assert set(subset) < set(names)

    def test_fewer_trials_than_were_asked_for(self, ada, toy):
        """Without a rank until they are there: who stops at a good result gains nothing."""
        Policy.objects.create(benchmark=toy, number=2, n_trials=3, created_at=AS_OF - DAY)
        assert assigned(ada, toy).n_trials == 3
        receipt = deliver(ada, marks_of(WHOLE), "assigned")
        said = (
            "3 trials of each task were asked for; there is 1 so far: until all are delivered, the agent is "
            "not ranked"
        )
        assert found(receipt, "trials") == [("warned", said)]
        assert said in receipt["warnings"]
        line = lines_of(recompute(benchmark=toy, as_of=AS_OF)[0])["assigned"]
        assert ("incomplete" in line.marks, line.at["full"].rank) == (True, None)
        assert line.at["full"].reason.startswith(
            "20 of the 20 tasks that it was asked to run have fewer trials than it was asked for: "
        )
        rows = [row | {"trial": trial} for row in marks_of(WHOLE) for trial in (2, 3)]
        assert found(deliver(ada, rows, "assigned"), "trials") == [("passed", "3 of each task")]
        line = lines_of(recompute(benchmark=toy, as_of=AS_OF)[0])["assigned"]
        assert (line.marks, line.at["full"].rank is None) == (("flagged",), False)

    def test_without_an_assignment_the_policy_asks(self, ada, toy):
        Policy.objects.create(benchmark=toy, number=2, n_trials=2, created_at=AS_OF - DAY)
        receipt = deliver(ada, marks_of(WHOLE), "alone")
        assert any(
            one.startswith("2 trials of each task were asked for; there is 1") for one in receipt["warnings"]
        )
        assert lines_of(recompute(benchmark=toy, as_of=AS_OF)[0])["alone"].at["full"].rank is None
        deliver(ada, [row | {"trial": 2} for row in marks_of(WHOLE)], "alone")
        assert lines_of(recompute(benchmark=toy, as_of=AS_OF)[0])["alone"].at["full"].rank

    def test_an_assignment_asked_for_what_the_policy_of_its_day_did(self, ada, toy):
        """Not for what is recommended, nor for what a later policy asks for."""
        first_board(toy)
        Policy.objects.create(benchmark=toy, number=2, n_trials=1, created_at=AS_OF - DAY)
        asked = assigned(ada, toy)
        Policy.objects.create(benchmark=toy, number=3, n_trials=2, created_at=AS_OF + DAY)
        assert (asked.n_trials, asked.n_trials_recommended) == (1, 2)
        rows = [row for row in marks_of(WHOLE) if row["task"] in names_of(asked)]
        deliver(ada, rows, "assigned", as_of=AS_OF + 2 * DAY)
        (one,) = [one for one in deliveries(toy) if not one.submission.loaded]
        assert (one.submission.n_trials, one.fewest_trials) == (2, 1)

    def test_tasks_that_were_tried_again_before_a_worse_run_are_flagged(self, ada, toy):
        twice = [row | {"trial": trial, "outcome": 1} for row in marks_of("1") for trial in (1, 2)]
        deliver(ada, [*twice, *marks_of(WHOLE)[1:]], "again")
        deliver(ada, [row | {"trial": 3, "outcome": 0} for row in marks_of(WHOLE)], "again")
        line = lines_of(recompute(benchmark=toy, as_of=AS_OF)[0])["again"]
        assert "flagged" in line.marks
        assert any("retried: ran some tasks more often than others" in flag for flag in line.flags)
        of_all = (2 / 3 + sum(row["outcome"] for row in marks_of(WHOLE)[1:]) / 2) / 20
        assert line.at["full"].score == pytest.approx(of_all, abs=1e-9)

    def test_a_receipt_counts_what_was_withdrawn_as_the_board_does(self, ada, toy):
        """Both halves twice where one was asked for; the second withdrawn and delivered anew: not whole."""
        assert assigned(ada, toy, "halves").n_trials == 1
        first, second = (
            [row | {"trial": t, "outcome": t % 2} for row in rows for t in (1, 2)]
            for rows in (marks_of(WHOLE)[:10], marks_of(WHOLE)[10:])
        )
        deliver(ada, first, "halves")
        gone = deliver(ada, second, "halves")
        withdraw(uuid=UUID(gone["id"]), token=ada, reason="a bug", as_of=AS_OF)
        deliver(ada, second, "halves")
        agent = toy.agents.get(name="halves")
        of = AgentContext(
            agent=agent.pk,
            submissions=standing_submissions(agent.pk),
            policy=policy_in_force(toy),
            subset=None,
            tasks=dict(toy.tasks.values_list("id", "name")),
            settings={pk: facets for facets, pk in settings_of(toy).items()},
        )
        row = own_row(live_outcomes([agent.pk]), of)
        now = Reader(toy).now(None).record
        place = now.table.agents.index("halves")
        assert row.means.tolist() == now.table.means[place].tolist() == [0.5] * 10 + [0.0] * 10
        assert row.n_places.tolist() == now.n_places[place].tolist() == [2] * 10 + [1] * 10

    def test_what_an_expired_assignment_asked_for_still_lacks(self, ada, toy):
        subset = in_subset(first_board(toy))
        assigned(ada, toy)
        rows = [row for row in marks_of(WHOLE) if row["task"] in subset]
        deliver(ada, rows, "assigned")
        late = deliver(ada, [row | {"trial": 2} for row in rows], "assigned", as_of=AS_OF + 90 * DAY)
        assert late["assignment"] is None
        assert found(late, "coverage")[0][1].startswith(f"2 of the {len(subset) + 2} tasks asked for have no")
        line = lines_of(recompute(benchmark=toy, as_of=AS_OF)[0])["assigned"]
        assert line.at["subset"].rank is None

    def test_trials_that_repeat_each_other(self, db):
        """100 tasks, half passed, twice the same: by chance .5 agree, so that 2^-100 is far below 1e-6."""
        load_text(csv_text(graded(6, 100)))
        rows = [row | {"trial": trial} for trial in (1, 2) for row in marks_of("01" * 50)]
        receipt = deliver(token("ada@example.org"), rows)
        ((level, told),) = found(receipt, "copies")
        assert (level, told.startswith("two trials agree on 100 of 100 tasks, 50% expected")) == (
            "warned",
            True,
        )

    def test_two_agents_with_the_same_outcomes(self, ada, toy):
        first = deliver(ada, marks_of("0110" * 5), agent="one")
        recompute(benchmark=toy, as_of=AS_OF)
        second = deliver(ada, marks_of("0110" * 5), agent="two")
        passed = "no other agent on the latest board has the same outcomes"
        assert found(first, "identical") == [("passed", passed)]
        assert found(second, "identical") == [("warned", "the same outcome as one on every task")]
        third = deliver(ada, marks_of("0110" * 4 + "0111"), agent="three")
        assert found(third, "identical")[0][0] == "passed"
        everything = [deliver(ada, marks_of("1" * 20), agent=name) for name in ("four", "five")]
        assert {found(one, "identical")[0][0] for one in everything} == {"passed"}

    def test_fractions_that_are_alike(self, ada, toy):
        """0.1 is not the same number in four bytes and in eight."""
        rows = [row | {"outcome": 0.1} for row in marks_of("0" * 19)] + marks_of("." * 19 + "1")
        deliver(ada, rows, agent="one")
        recompute(benchmark=toy, as_of=AS_OF)
        receipt = deliver(ada, rows, agent="two")
        assert found(receipt, "identical")[0][0] == "warned"
        assert found(receipt, "fractions")[0][1].startswith("19 outcomes lie between 0 and 1")

    @pytest.mark.parametrize(
        ("later", "level"), [("0111" * 5, "noted"), ("0110" * 4 + "0010", "passed"), ("0110" * 5, "passed")]
    )
    def test_a_delivery_that_only_gains(self, ada, later, level):
        first = deliver(ada, marks_of("0110" * 5))
        replaced = deliver(ada, marks_of(later, run="2"), replaces=first["id"])
        assert found(replaced, "gains")[0][0] == level

    def test_secrets_are_told_by_column_and_never_shown(self, ada):
        ours = secrets.mint()
        rows = marks_of(WHOLE, log=f"called with {ours} twice", note="all is well")
        receipt = deliver(ada, rows, links={"logs": "https://example.org/?key=" + "AK" + "IA" + "A" * 16})
        told = [told for level, told in found(receipt, "secrets") if level == "warned"]
        assert [one.split(";")[0] for one in told] == [
            "links.logs seems to hold a secret (access key of AWS), in 1 text",
            "log seems to hold a secret (token of this service), in 1 text",
        ]
        assert ours not in str(receipt)

    def test_dates(self, ada, toy):
        operator = token("op@example.org", scope="operate")
        receipt = deliver(operator, marks_of(WHOLE), submitted_at="2026-01")
        assert [level for level, _ in found(receipt, "dates")] == ["noted", "noted"]
        assert "dated 2026-01-01, more than 30 days before it came" in found(receipt, "dates")[0][1]


class TestSecrets:
    BASE = "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8S9t0"

    def kinds(self, text):
        return [one.partition("a secret ")[2] for one in secrets_in([("c", pa.array([text, None, "x"]))])]

    @pytest.mark.parametrize(
        ("text", "kind"),
        [
            ("gh" + "p_" + BASE[:36], "token of GitHub"),
            ("github_" + "pat_" + BASE, "token of GitHub"),
            ("gl" + "pat-" + BASE[:20], "token of GitLab"),
            ("sk-" + "ant-" + BASE, "key of Anthropic"),
            ("sk-" + "proj-" + BASE, "key of OpenAI"),
            ("AS" + "IA" + "0123456789ABCDEF", "access key of AWS"),
            ("AI" + "za" + BASE[:35], "key of Google"),
            ("h" + "f_" + BASE[:34], "token of Hugging Face"),
            ("np" + "m_" + BASE[:36], "token of npm"),
            ("py" + "pi-" + BASE + BASE, "token of PyPI"),
            ("xo" + "xb-" + "123456789012", "token of Slack"),
            ("sk_" + "live_" + BASE[:24], "key of Stripe"),
            ("-----BEGIN RSA " + "PRIVATE KEY-----", "private key"),
            (
                ".".join(["ey" + "J" + base64.b64encode(b"0123456789").decode().rstrip("=")] * 2 + [BASE]),
                "signed web token",
            ),
        ],
    )
    def test_well_known_ones(self, text, kind):
        (told,) = self.kinds(f"before {text} after")
        assert kind in told

    def test_ours_by_their_checksum(self):
        text = secrets.mint()
        assert "token of this service" in self.kinds(text)[0]
        wrong = text[:-1] + ("0" if text[-1] != "0" else "1")
        assert self.kinds(wrong) == []

    @pytest.mark.parametrize(
        "text",
        ["", "the task passed", "bst_short", "sk-learn", "sha256:" + "0" * 64, "ghp_x", "AKIA", "eyJ.eyJ.x"],
    )
    def test_plain_text(self, text):
        assert self.kinds(text) == []

    def test_they_are_counted(self):
        text = "h" + "f_" + self.BASE[:34]
        (told,) = secrets_in([("c", pa.array([text, text + " ", "x"]))])
        assert told.endswith("in 2 texts")


def long(n=20_020, **more):
    """Outcomes of more trials than are checked in a request; every second trial passes."""
    return [{"task": f"t{j % 20:02d}", "trial": j // 20, "outcome": j // 20 % 2, **more} for j in range(n)]


@pytest.fixture
def short(monkeypatch):
    """Let a delivery of more than ten outcomes be a long one."""
    monkeypatch.setattr(reviewing, "N_IN_REQUEST", 10)


def run(kind, as_of=AS_OF):
    """Do what is due of a job, as the scheduler does; return what it said."""
    told = []
    for one in JOBS[kind].wanted(as_of):
        claimed = begin(kind=kind, lane=Lane.PROMPT, due=one, claim=UUID(int=1), as_of=as_of)
        children.perform(claimed, lambda done, total: None)
        claimed.refresh_from_db()
        assert (claimed.status, claimed.error) == (JobStatus.DONE, "")
        told.append(claimed.told)
    return told


class TestLongDeliveries:
    def test_they_wait_for_the_scheduler(self, ada, toy, short):
        before = Benchmark.objects.get().data_version
        receipt = deliver(ada, marks_of(WHOLE, note="h" + "f_" + "a" * 34))
        assert (receipt["status"], receipt["checks"]) == ("checking", None)
        assert Benchmark.objects.get().data_version == before
        assert next(iter(jobs.due_checks(AS_OF))).about == receipt["id"]
        (told,) = run("check")
        assert told == "20 outcomes of newcomer: 1 warning, now accepted"
        one = stored(receipt)
        assert (one.status, Benchmark.objects.get().data_version) == (Status.ACCEPTED, before + 1)
        levels = {item["name"]: item["level"] for item in one.machine_check.found}
        assert (levels.pop("secrets"), set(levels.values())) == ("warned", {"passed"})
        assert list(one.status_changes.order_by("id").values_list("status", flat=True)) == [
            "checking",
            "accepted",
        ]
        assert run("check") == []

    def test_they_find_what_is_found_in_a_request(self, ada, toy, monkeypatch):
        deliver(ada, marks_of("0110" * 5), agent="one")
        recompute(benchmark=toy, as_of=AS_OF)
        rows = [*marks_of("0110" * 4 + ".1", note="x"), {"task": "t00", "trial": 2, "outcome": 0.5}]
        quick = deliver(ada, rows, agent="quick")
        monkeypatch.setattr(reviewing, "N_IN_REQUEST", 10)
        slow = deliver(ada, rows, agent="slow")
        run("check")
        assert stored(slow).machine_check.found == quick["checks"]

    def test_manual_review_follows(self, ada, toy, short):
        Policy.objects.create(benchmark=toy, number=2, review=Review.MANUAL)
        receipt = deliver(ada, marks_of(WHOLE))
        assert run("check") == ["20 outcomes of newcomer: 0 warnings, now waiting"]
        accept(uuid=UUID(receipt["id"]), by=None, reason="good", as_of=AS_OF)
        assert stored(receipt).status == Status.ACCEPTED

    def test_what_was_taken_back_meanwhile_stays_so(self, ada, short):
        receipt = deliver(ada, marks_of(WHOLE))
        unload(uuids=[UUID(receipt["id"])], reason="mine", as_of=AS_OF)
        assert run("check") == []
        assert reviewing.conclude(uuid=UUID(receipt["id"]), as_of=AS_OF).endswith("withdrawn already")
        assert not MachineCheck.objects.exists()

    def test_a_lost_claim_stores_nothing(self, ada, short):
        receipt = deliver(ada, marks_of(WHOLE))

        def check_claim():
            raise ClaimLost

        with pytest.raises(ClaimLost):
            reviewing.conclude(uuid=UUID(receipt["id"]), as_of=AS_OF, check_claim=check_claim)
        assert (stored(receipt).status, MachineCheck.objects.count()) == (Status.CHECKING, 0)
        run("check")
        assert stored(receipt).status == Status.ACCEPTED

    def test_it_ends_at_any_line_as_if_it_had_not_begun(self, ada, short, monkeypatch):
        receipt = deliver(ada, marks_of(WHOLE))
        for module, name in ((checking, "keep"), (reviewing, "_accept_unseen"), (checking, "check")):

            def die(*args, **kwargs):
                raise KeyboardInterrupt

            with monkeypatch.context() as patched:
                patched.setattr(module, name, die)
                with pytest.raises(KeyboardInterrupt), transaction.atomic():
                    reviewing.conclude(uuid=UUID(receipt["id"]), as_of=AS_OF)
            assert (stored(receipt).status, MachineCheck.objects.count()) == (Status.CHECKING, 0)

    def test_its_keys_are_taken_meanwhile(self, ada, short):
        receipt = deliver(ada, marks_of(WHOLE))
        with pytest.raises(Exception, match="exactly these outcomes"):
            deliver(ada, marks_of(WHOLE))
        assert Outcome.objects.filter(submission_id=stored(receipt).pk).count() == 20

    @pytest.mark.parametrize("duplicates", [Duplicates.MEAN, Duplicates.LATEST])
    def test_a_second_run_after_a_board_is_marked_all_the_same(self, ada, toy, short, duplicates):
        """No way around the approval: it is withheld, or flagged, as a short delivery is."""
        Policy.objects.create(benchmark=toy, number=2, duplicates=duplicates)
        deliver(ada, marks_of(WHOLE))
        run("check")
        recompute(benchmark=toy, as_of=AS_OF)
        again = deliver(ada, marks_of("1" * 20, run="2"), as_of=AS_OF + DAY)
        run("check", AS_OF + DAY)
        change = stored(again).status_changes.get(status=Status.ACCEPTED)
        assert change.after_board
        assert bool(withheld(toy)) == (duplicates == Duplicates.LATEST)

    def test_what_it_replaces_after_a_board_is_taken_back(self, ada, toy, short):
        first = deliver(ada, marks_of(WHOLE))
        run("check")
        recompute(benchmark=toy, as_of=AS_OF)
        deliver(ada, marks_of("1" * 20), replaces=first["id"], as_of=AS_OF + DAY)
        assert stored(first).status == Status.ACCEPTED
        run("check", AS_OF + DAY)
        assert stored(first).status == Status.SUPERSEDED
        assert withheld(toy)

    def test_the_border(self, ada):
        assert deliver(ada, long(20_000))["status"] == "accepted"


class TestEmbargo:
    UNTIL = "2026-06-11T08:00:00+02:00"
    AT = datetime.fromisoformat(UNTIL)

    def test_it_counts_from_its_date_on(self, ada, toy):
        before = Benchmark.objects.get().data_version
        receipt = deliver(ada, marks_of(WHOLE), embargo_until=self.UNTIL)
        assert (receipt["status"], stored(receipt).embargo_until) == ("waiting", self.AT)
        assert list(jobs.due_embargoes(self.AT - timedelta(seconds=1))) == []
        assert run("embargo", self.AT) == ["1 embargoes have ended"]
        assert (stored(receipt).status, Benchmark.objects.get().data_version) == (Status.ACCEPTED, before + 1)
        assert stored(receipt).machine_check.found == receipt["checks"]
        assert list(jobs.due_embargoes(self.AT + DAY)) == []

    @pytest.mark.parametrize("way", ["replaces", "run"])
    def test_what_waited_while_a_board_showed_the_agent_comes_after_it(self, ada, toy, way):
        """Its owner could have taken it back as long as it waited."""
        first = deliver(ada, marks_of(WHOLE))
        more = {"replaces": first["id"]} if way == "replaces" else {}
        rows = marks_of("1" * 20) if way == "replaces" else marks_of("1" * 20, run="2")
        deliver(ada, rows, embargo_until=self.UNTIL, **more)
        recompute(benchmark=toy, as_of=AS_OF)
        run("embargo", self.AT)
        assert bool(withheld(toy)) == (way == "replaces")
        assert bool(resubmitted(toy, policy=policy_in_force(toy))) == (way == "run")

    @pytest.mark.parametrize("duplicates", ["mean", "latest"])
    def test_what_was_sent_first_and_waited_comes_after_what_a_board_showed(self, ada, toy, duplicates):
        """Its owner could choose which run the board shows, as long as it waited."""
        Policy.objects.create(benchmark=toy, number=2, duplicates=duplicates)
        deliver(ada, marks_of("1" * 20), embargo_until=self.UNTIL)
        deliver(ada, marks_of(WHOLE, run="2"))
        recompute(benchmark=toy, as_of=AS_OF)
        assert (withheld(toy), resubmitted(toy, policy=policy_in_force(toy))) == ({}, set())
        run("embargo", self.AT)
        assert bool(withheld(toy)) == (duplicates == "latest")
        assert bool(resubmitted(toy, policy=policy_in_force(toy))) == (duplicates == "mean")

    def test_what_waits_was_not_run_before(self, ada, toy):
        deliver(ada, marks_of(WHOLE))
        recompute(benchmark=toy, as_of=AS_OF)
        deliver(ada, marks_of(WHOLE, judge="J"), embargo_until=self.UNTIL)
        deliver(ada, marks_of(WHOLE, judge="J", run="2"))
        assert resubmitted(toy, policy=policy_in_force(toy)) == set()
        run("embargo", self.AT)
        assert resubmitted(toy, policy=policy_in_force(toy))

    def test_no_operator_lets_it_count_before(self, ada, toy):
        Policy.objects.create(benchmark=toy, number=2, review=Review.MANUAL)
        uuid = UUID(deliver(ada, marks_of(WHOLE), embargo_until=self.UNTIL)["id"])
        with refused(Conflict, "under_embargo", match="until 2026-06-11 06:00 UTC"):
            accept(uuid=uuid, by=None, reason="good", as_of=self.AT - DAY)
        assert list(jobs.due_embargoes(self.AT)) == []
        assert reviewing.end_due(benchmark=toy, as_of=self.AT) == "0 embargoes have ended"
        assert accept(uuid=uuid, by=None, reason="good", as_of=self.AT).status == Status.ACCEPTED

    def test_a_long_one_is_checked_first(self, ada, short):
        receipt = deliver(ada, marks_of(WHOLE), embargo_until=self.UNTIL)
        assert receipt["status"] == "checking"
        told = reviewing.conclude(uuid=UUID(receipt["id"]), as_of=AS_OF)
        assert (told.split()[-1], stored(receipt).status) == ("waiting", Status.WAITING)
        run("embargo", self.AT)
        assert stored(receipt).status == Status.ACCEPTED

    @pytest.mark.parametrize("scope", ["submit", "operate"])
    @pytest.mark.parametrize(
        "until",
        [
            *("2026-06-01", "2026-06-01T12:00:00Z", "2026-08-31", "soon", 3, [], "2026-13-01"),
            *("9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+23:59"),
        ],
    )
    @pytest.mark.parametrize("dry_run", [False, True])
    def test_it_lies_ahead_and_at_most_ninety_days(self, toy, until, scope, dry_run):
        by = token("ada@example.org", scope)
        with pytest.raises(Faulty, match="Nothing was stored") as caught:
            deliver(by, marks_of(WHOLE), embargo_until=until, dry_run=dry_run)
        assert [one.field for one in caught.value.faults] == ["embargo_until"]
        assert deliver(by, marks_of(WHOLE), embargo_until="2026-08-30T12:00:00Z")["status"] == "waiting"
