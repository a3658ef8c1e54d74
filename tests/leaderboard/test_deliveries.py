"""What counts, and what counted at an earlier data version: the log of deliveries, replayed."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.db.utils import ProgrammingError

from leaderboard.catalog.models import Benchmark
from leaderboard.submissions.models import Approval, InvalidConfirmation, Status, StatusChange, Submission
from leaderboard.submissions.queries import deliveries, measured_outcomes_of, outcomes_of, withheld
from leaderboard.submissions.services import append_changes, bump_data_version, change_status
from tests.toys import AS_OF, HEAD, csv_text, load_text

ROW = "Toy,a,Loop,M,2026-01-05"


def take_back(submission, *, after_board=False, status=Status.WITHDRAWN):
    with transaction.atomic():
        changes = change_status(
            submissions=[submission], status=status, at=AS_OF, by=None, after_board=after_board
        )
        append_changes(benchmark=submission.agent.benchmark, changes=changes)


def counted(benchmark, upto=None):
    names = dict(benchmark.agents.values_list("id", "name"))
    return [(names[one.agent_id], one.arrival) for one in deliveries(benchmark, upto)]


def test_submissions_of_one_load_arrive_together(db):
    load_text(csv_text({"b": "10", "a": "11"}))
    load_text(csv_text({"c": "10"}))
    toy = Benchmark.objects.get()
    assert toy.data_version == 2
    assert counted(toy) == [("a", 1), ("b", 1), ("c", 2)]
    assert all(
        one.submission.loaded and one.confirmed and one.submission.asked is None for one in deliveries(toy)
    )


def test_the_log_tells_what_counted_then(db):
    load_text(csv_text({"a": "10"}))
    load_text(csv_text({"b": "10"}))
    load_text(csv_text({"b": "11"}), replace=True)
    toy = Benchmark.objects.get()
    take_back(Submission.objects.get(agent__name="a"))
    assert counted(toy) == [("b", 3)]
    assert counted(toy, 3) == [("a", 1), ("b", 3)]
    assert counted(toy, 2) == [("a", 1), ("b", 2)]
    assert counted(toy, 1) == [("a", 1)]
    assert counted(toy, 0) == []


def test_what_a_submitter_took_back_is_known_by_when_it_was_accepted(db):
    """Not what waited, what an operator loaded, or what did not count yet at the version that is read."""
    load_text(csv_text({"a": "10", "b": "01"}))
    toy, loaded = Benchmark.objects.get(), Submission.objects.get(agent__name="a")
    first, second, waiting = (delivered_like(loaded, number) for number in (b"1", b"2", b"3"))
    for one in (first, second):
        append_changes(
            benchmark=toy, changes=[StatusChange(submission=one, status=Status.ACCEPTED, at=AS_OF)]
        )
    for one in (waiting, Submission.objects.get(agent__name="b"), first):
        take_back(one)
    take_back(second, status=Status.SUPERSEDED)

    def gone(upto=None):
        every = deliveries(toy, upto, withdrawn=True)
        assert [one for one in every if not one.withdrawn] == deliveries(toy, upto)
        return {one.submission.pk: one.arrival for one in every if one.withdrawn}

    assert toy.data_version == 1
    assert gone() == {first.pk: 2, second.pk: 3}
    assert gone(6) == {first.pk: 2}
    assert gone(5) == {}
    assert [one.submission.pk for one in deliveries(toy)] == [loaded.pk]


def delivered_like(loaded, number):
    """A submitter's submission with the columns of a loaded one."""
    values = Submission.objects.values().get(pk=loaded.pk) | {"loaded": False, "content_sha256": number}
    one = Submission(**{name: value for name, value in values.items() if name not in ("id", "uuid")})
    one.save()
    return one


def test_a_confirmation_counts_from_its_version_on(db):
    load_text(csv_text({"a": "1x"}))
    toy, loaded = Benchmark.objects.get(), Submission.objects.get()
    delivered = delivered_like(loaded, b"1")
    change = StatusChange(submission=delivered, status=Status.ACCEPTED, at=AS_OF)
    append_changes(benchmark=toy, changes=[change])
    version = bump_data_version(benchmark=toy)
    InvalidConfirmation.objects.create(submission=delivered, data_version=version, at=AS_OF)

    def confirmed(upto):
        return {one.submission.pk: one.confirmed for one in deliveries(toy, upto)}

    assert confirmed(2) == {loaded.pk: True, delivered.pk: False}
    assert confirmed(3) == {loaded.pk: True, delivered.pk: True}


def test_what_was_taken_back_after_a_board_waits_for_an_operator(db):
    load_text(csv_text({"a": "10", "b": "10"}))
    toy, submission = Benchmark.objects.get(), Submission.objects.get(agent__name="a")
    take_back(Submission.objects.get(agent__name="b"))
    assert withheld(toy) == {}
    take_back(submission, after_board=True)
    assert list(withheld(toy)) == [submission.agent_id]
    assert "resubmitted: it took outcomes back, last on 2026-06-01" in withheld(toy)[submission.agent_id]
    assert withheld(toy, upto=2) == {}
    policy = toy.policies.get()
    policy.resubmission = "free"
    assert withheld(toy, policy=policy) == {}
    version = bump_data_version(benchmark=toy)
    Approval.objects.create(
        agent_id=submission.agent_id, data_version=version, at=AS_OF + timedelta(1), reason="seen"
    )
    assert withheld(toy) == {}
    assert list(withheld(toy, upto=version - 1)) == [submission.agent_id]


def test_confirmations_and_approvals_are_append_only(toy):
    submission, told = Submission.objects.first(), {"data_version": 2, "at": AS_OF, "reason": "seen"}
    confirmation = InvalidConfirmation.objects.create(submission=submission, **told)
    for row in (confirmation, Approval.objects.create(agent=submission.agent, **told)):
        for change in (row.delete, row.save):
            with pytest.raises(ProgrammingError, match="Cannot"), transaction.atomic():
                change()


@pytest.mark.parametrize(
    ("status", "version"), [(Status.ACCEPTED, None), (Status.SUPERSEDED, None), (Status.REFUSED, 3)]
)
def test_a_change_has_a_version_just_where_it_changes_what_counts(toy, status, version):
    with pytest.raises(IntegrityError, match="counts_with_version"), transaction.atomic():
        StatusChange.objects.create(
            submission=Submission.objects.first(), status=status, at=AS_OF, data_version=version
        )


def test_an_outcome_delivered_again_stands_in_the_place_of_the_failure(db):
    load_text(f"{HEAD},valid\n{ROW},t1,1,,0\n{ROW},t1,2,0,1\n{ROW},t2,1,0,0\n")
    load_text(f"{HEAD},valid\n{ROW},t1,1,1,1\n")
    first, second = Submission.objects.order_by("id").values_list("id", flat=True)
    assert load_text(f"{HEAD},valid\n{ROW},t1,1,,0\n{ROW},t1,2,0,1\n").n_same == 2
    rows = outcomes_of([first, second]).select(["submission", "trial", "value", "valid"]).to_pylist()
    assert sorted(map(tuple, (row.values() for row in rows))) == [
        (first, 1, 0.0, False),
        (first, 1, 1.0, True),
        (first, 2, 0.0, True),
    ]


def test_tokens_and_seconds_of_a_trial_are_added_up(db):
    columns = "cost_usd,n_input_tokens,n_output_tokens,seconds_environment,seconds_execution"
    load_text(f"{HEAD},{columns}\n{ROW},t1,1,1,0.5,10,5,,2.5\n{ROW},t1,2,1,,10,,1,2\n{ROW},t1,3,1,,,,,\n")
    rows = measured_outcomes_of(Submission.objects.values_list("id", flat=True))
    assert rows.select(["trial", "cost_usd", "n_tokens", "seconds"]).to_pylist() == [
        {"trial": 1, "cost_usd": 0.5, "n_tokens": 15, "seconds": 2.5},
        {"trial": 2, "cost_usd": None, "n_tokens": 10, "seconds": 3.0},
        {"trial": 3, "cost_usd": None, "n_tokens": None, "seconds": None},
    ]
