"""What came, and what was asked for."""

from typing import Any

from rest_framework.serializers import (
    BooleanField,
    CharField,
    DateTimeField,
    DictField,
    IntegerField,
    JSONField,
    ListField,
    SerializerMethodField,
    UUIDField,
)

from leaderboard.api.serializers.base import ReadSerializer
from leaderboard.api.serializers.catalog import DeliveredSerializer
from leaderboard.submissions.queries import trust_now


class SubmissionRowSerializer(DeliveredSerializer):
    agent = CharField()
    agent_id = IntegerField()
    embargo_until = DateTimeField(allow_null=True)
    links = SerializerMethodField()  # type: ignore[assignment]

    def get_links(self, submission: Any) -> dict[str, str]:
        return submission.links | {"self": self.link("submission", submission.uuid)}


class BecameSerializer(ReadSerializer):
    status = CharField()
    at = DateTimeField()
    reason = CharField()


class CheckSerializer(ReadSerializer):
    name = CharField()
    level = CharField(help_text="passed, noted or warned")
    told = CharField()


class AssignmentRowSerializer(ReadSerializer):
    id = UUIDField(source="uuid")
    agent = CharField()
    mode = CharField(help_text="subset, full, delta: what the agent still lacks; or staged: batch by batch.")
    reason = CharField()
    status = CharField()
    subset = IntegerField(allow_null=True, source="subset.number", default=None)
    n_tasks = SerializerMethodField()
    n_trials = IntegerField(help_text="Asked for on each task.")
    n_trials_recommended = IntegerField(allow_null=True)
    created_at = DateTimeField()
    expires_at = DateTimeField()
    ended_at = DateTimeField(allow_null=True)
    links = SerializerMethodField()

    def get_n_tasks(self, assignment: Any) -> int:
        return len(assignment.tasks)

    def get_links(self, assignment: Any) -> dict[str, str]:
        slug = self.context["view"].benchmark.slug
        return {
            "self": self.link("assignment", slug, assignment.uuid),
            "submissions": self.link("submissions", slug),
        }


class AssignmentOneSerializer(AssignmentRowSerializer):
    tasks = SerializerMethodField(
        help_text="Names of the tasks to run; they never change, but asking again adds to a staged one's."
    )
    study = IntegerField(
        allow_null=True, source="study_id", help_text="The study that a staged one rests on; or null."
    )
    staged = SerializerMethodField(
        help_text="Of a staged one: the tasks that wait to be run, score, interval, what is left; or null."
    )
    submissions = SerializerMethodField(help_text="Ids of what was delivered for it.")

    def get_tasks(self, assignment: Any) -> list[str]:
        from leaderboard.operations.assignments import names_of

        return list(names_of(assignment))

    def get_staged(self, assignment: Any) -> dict[str, Any] | None:
        from leaderboard.operations.asking import staged_summary

        return staged_summary(assignment)

    def get_submissions(self, assignment: Any) -> list[str]:
        return [str(uuid) for uuid in assignment.submissions.order_by("id").values_list("uuid", flat=True)]


class SubmissionOneSerializer(SubmissionRowSerializer):
    benchmark = CharField(source="extra_benchmark")
    trust = SerializerMethodField(
        help_text="self_reported, logs: it links them, or verified: by an operator."
    )
    lacking = ListField(
        child=CharField(),
        source="extra_lacking",
        help_text="What the agent lacks of what was asked for, in words.",
    )
    history = BecameSerializer(many=True, source="extra_history")
    checks = CheckSerializer(
        many=True, source="extra_checks", allow_null=True, help_text="Null until they were made."
    )
    quota = JSONField(source="extra_quota", help_text="What is left of today, by account and agent; or null.")
    assignment = JSONField(
        source="extra_assignment",
        help_text="That it answers: id, mode, status, and of a staged one `staged`: score, interval, "
        "what is left; or null.",
    )
    replaces = UUIDField(source="extra_replaces", allow_null=True)
    replaced_by = UUIDField(source="extra_replaced_by", allow_null=True)
    board = IntegerField(
        source="extra_board", allow_null=True, help_text="The latest, where it lists the agent."
    )
    entry = JSONField(source="extra_entry", help_text="The agent's line on that board; or null.")
    standing = CharField(source="extra_standing", help_text="What the board did with it, in words.")

    def get_trust(self, submission: Any) -> str:
        return trust_now(submission)


class WithdrawnSerializer(ReadSerializer):
    id = UUIDField(source="uuid")
    status = CharField()


class ReceiptSerializer(ReadSerializer):
    """A delivery that was stored, or would be."""

    id = UUIDField(allow_null=True, help_text="null of a dry run.")
    dry_run = BooleanField(required=False)
    status = CharField()
    agent = CharField()
    n_outcomes = IntegerField()
    n_invalid = IntegerField()
    n_outside = IntegerField()
    warnings = ListField(child=CharField())
    assignment = JSONField(
        help_text="The one that this answers, with score, interval, what is left of a staged one; or null."
    )
    embargo_until = CharField(allow_null=True)
    checks = JSONField(help_text="What the machine found; null while it is being checked.")
    quota = JSONField(help_text="What is left of today's; null for operators.")
    links = DictField(child=CharField())
