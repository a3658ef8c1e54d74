"""The forms of what is answered."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from django.urls import reverse
from rest_framework.serializers import (
    BooleanField,
    CharField,
    DateTimeField,
    DictField,
    FloatField,
    IntegerField,
    JSONField,
    ListField,
    Serializer,
    SerializerMethodField,
    URLField,
    UUIDField,
)

from leaderboard.studies.models import DriftCheck, StagedStudy, ValidationStudy, VarianceStudy
from leaderboard.submissions.queries import trust_now


class ReadSerializer(Serializer):
    """What is only ever read."""

    address = "", "pk"  # of a row of a benchmark, and the field that finds it there

    def link(self, name: str, *args: Any) -> str:
        return str(self.context["request"].build_absolute_uri(reverse(f"api:{name}", args=args)))

    def of_benchmark(self, name: str, *args: Any) -> str:
        return self.link(name, self.context["view"].benchmark.slug, *args)

    def get_links(self, row: Any) -> dict[str, str]:
        name, key = self.address
        return {"self": self.of_benchmark(name, getattr(row, key))}


@cache
def page_of(row: type[Serializer]) -> type[Serializer]:
    """The form of a page of rows."""
    fields: dict[str, Any] = {
        "count": IntegerField(help_text="Rows on all pages."),
        "next": URLField(allow_null=True),
        "previous": URLField(allow_null=True),
        "results": row(many=True),
    }
    return type(f"{row.__name__.removesuffix('Serializer')}Page", (Serializer,), fields)


class IndexSerializer(ReadSerializer):
    version = CharField()
    links = DictField(child=CharField(), help_text="Where to go on; {…} is to be filled in.")


class SwitchSerializer(ReadSerializer):
    since = DateTimeField()
    reason = CharField()


class BenchmarkRowSerializer(ReadSerializer):
    slug = CharField()
    title = CharField()
    description = CharField()
    url = CharField()
    licence = CharField(help_text="Of its outcomes.")
    citation = CharField()
    unit = CharField(help_text="Of a score.")
    visibility = CharField()
    frozen = SerializerMethodField(help_text="Since when intake is closed, and why; or null.")
    full_runs_only = SerializerMethodField(help_text="Since when no subset is asked for, and why; or null.")
    data_version = IntegerField(help_text="Grows whenever what counts changes.")
    links = SerializerMethodField()

    def get_frozen(self, benchmark: Any) -> dict[str, Any] | None:
        return switch(benchmark.frozen_at, benchmark.frozen_reason)

    def get_full_runs_only(self, benchmark: Any) -> dict[str, Any] | None:
        return switch(benchmark.full_runs_only_at, benchmark.full_runs_only_reason)

    def get_links(self, row: Any) -> dict[str, str]:
        return {name: self.link(name, row.slug) for name in OF_BENCHMARK}


OF_BENCHMARK = (
    *("benchmark", "tasks", "agents", "submissions", "assignments", "subsets", "board", "boards", "compare"),
    *("validations", "calibrations", "variances", "staged_studies", "drifts", "dstudy", "alerts"),
    *("rerun-requests", "reselections", "policy", "freeze"),
)


def switch(since: Any, reason: str) -> dict[str, Any] | None:
    return SwitchSerializer({"since": since, "reason": reason}).data if since else None


class TaskRowSerializer(ReadSerializer):
    id = IntegerField()
    name = CharField()
    category = CharField()
    group = CharField()
    in_subset = BooleanField(help_text="Whether it is of the subset in use.")
    pass_rate = FloatField(allow_null=True, help_text="When that subset was chosen; null outside of it.")
    retired_at = DateTimeField(allow_null=True)
    retired_reason = CharField()


class AgentRowSerializer(ReadSerializer):
    id = IntegerField()
    name = CharField()
    scaffold = CharField()
    model = CharField()
    version = CharField()
    organisation = CharField()
    weights = CharField(help_text="Of its model: open or closed; empty: not stated.")
    merged_into = IntegerField(
        source="merged_into_id", allow_null=True, help_text="Whose its deliveries are by now."
    )
    links = SerializerMethodField()

    address = "agent", "pk"


class DeliveredSerializer(ReadSerializer):
    """What anybody may know of a submission that counted."""

    id = UUIDField(source="uuid")
    status = CharField()
    submitted_at = DateTimeField(allow_null=True)
    received_at = DateTimeField()
    backdated = BooleanField()
    n_outcomes = IntegerField()
    n_invalid = IntegerField()
    links = DictField(child=CharField())


class LabelledSerializer(ReadSerializer):
    """What people said of an agent's outcomes."""

    n_labels = IntegerField(help_text="Tasks with a label.")
    n_tasks = IntegerField(help_text="Tasks with a valid outcome.")
    judge_mean = FloatField(allow_null=True, help_text="Mean outcome over those.")
    corrected_mean = FloatField(
        allow_null=True, help_text="The mean that people would have given; null where `reason` says why."
    )
    se = FloatField(allow_null=True)
    lower = FloatField(allow_null=True, help_text="Of its 95% interval; null too where all tasks have one.")
    upper = FloatField(allow_null=True)
    worth = FloatField(allow_null=True, help_text="Labels that would do as well without the outcomes.")
    design = CharField(help_text="How labels were drawn.")
    reason = CharField()


class AgentOneSerializer(AgentRowSerializer):
    aliases = ListField(child=CharField(), source="extra_aliases", help_text="Names that it had before.")
    submissions = DeliveredSerializer(many=True, source="extra_submissions")
    board = IntegerField(
        source="extra_board", allow_null=True, help_text="The latest, where it lists the agent."
    )
    entry = JSONField(source="extra_entry", help_text="Its line on that board; or null.")
    people = LabelledSerializer(
        source="extra_people",
        allow_null=True,
        help_text="Its mean as people would have given it, from labels of some tasks; null where it has "
        "none. No board counts it.",
    )


class ReportedSerializer(ReadSerializer):
    id = IntegerField()
    created_at = DateTimeField()


class BoardRowSerializer(ReadSerializer):
    number = IntegerField()
    published_at = DateTimeField()
    data_version = IntegerField()
    phase = CharField()
    target = CharField()
    n_tasks = IntegerField()
    n_complete = IntegerField()
    subset = IntegerField(source="subset.number", default=None, allow_null=True)
    policy = IntegerField(source="policy.number")
    digest = CharField()
    links = SerializerMethodField()

    address = "board-numbered", "number"

    def get_links(self, row: Any) -> dict[str, str]:
        return super().get_links(row) | {"entries": self.of_benchmark("entries", row.number)}


class BoardOneSerializer(ReadSerializer):
    """A board as the core tells it (`python -m selection standings --json`), and what publishing added."""

    benchmark = CharField()
    number = IntegerField()
    published_at = CharField()
    data_version = IntegerField()
    digest = CharField()
    signature = CharField(allow_null=True)
    key = CharField(allow_null=True)
    n_tasks = IntegerField()
    n_complete = IntegerField()
    phase = CharField()
    why = CharField()
    target = CharField(help_text="What `agents` is ordered by.")
    why_target = CharField()
    subset = JSONField(help_text="Or null.")
    conditions = DictField()
    verdict = JSONField(help_text="Whether the subset ranks like the whole; or null.")
    trials = JSONField(help_text="Or null.")
    targets = DictField(child=DictField())
    agents = ListField(child=DictField(), help_text="By rank; `at` has rank, interval and ties by target.")
    not_measured = ListField(
        child=CharField(),
        help_text="Sources of error without an estimate: in no interval, but for that of trials, of which "
        "intervals hold an upper bound.",
    )
    savings = JSONField(
        help_text="What a run on the subset spares, and under `so_far` what was spared: the tasks of a full "
        "evaluation that agents were not asked for and did not run. They were asked for the subset, or, in "
        "`n_chosen` of the runs, for tasks chosen for them, and ran all of these. Null under full runs."
    )
    coverage = JSONField(help_text="Or null.")
    notices = ListField(child=CharField())
    measured = ListField(child=CharField())
    trial_noise = CharField(
        required=False,
        help_text="The noise of trials that intervals borrow from another benchmark, or empty.",
    )
    n_missing_failed = IntegerField(required=False, help_text="Missing results that count as failures.")
    n_left_out = IntegerField(required=False, help_text="Tasks that the policy leaves out.")
    next_step = CharField(
        required=False, help_text="The policy setting that lets agents be ranked, where none is; or empty."
    )
    since = JSONField(required=False, help_text="Where asked for: what changed since that board.")


class EntrySerializer(Serializer):
    """A line of a board, and where it stands."""

    position = IntegerField(help_text="From 0; `tied_with` tells ranges of these.")
    withdrawn = BooleanField(help_text="Whether all that it rests on was taken back since.")
    agent = CharField()
    at = DictField(child=DictField(), help_text="By target.")

    def to_representation(self, instance: Mapping[str, Any]) -> Any:
        return dict(instance)


class ComparedSerializer(ReadSerializer):
    board = IntegerField(allow_null=True, help_text="The latest.")
    data_version = IntegerField(help_text="What was compared; that of the board may be an earlier one.")
    target = CharField()
    n_tasks = IntegerField()
    omega = FloatField(allow_null=True)
    trial_noise = CharField(help_text="The noise of trials that intervals borrow, or empty.")
    agents = DictField(child=DictField(), help_text="By descending score.")
    pairs = ListField(child=DictField(), help_text="`difference` is that of a − b, with its own interval.")
    left_out = DictField(child=CharField(), help_text="Agents that cannot be compared, and why.")


class SubmissionRowSerializer(DeliveredSerializer):
    agent = CharField()
    agent_id = IntegerField()
    embargo_until = DateTimeField(allow_null=True)
    links = SerializerMethodField()  # type: ignore[assignment]

    def get_links(self, row: Any) -> dict[str, str]:
        return row.links | {"self": self.link("submission", row.uuid)}


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

    address = "assignment", "uuid"

    def get_links(self, row: Any) -> dict[str, str]:
        return super().get_links(row) | {"submissions": self.of_benchmark("submissions")}


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
    late = SerializerMethodField(help_text="Whether some of it was delivered after the assignment expired.")

    def get_tasks(self, assignment: Any) -> list[str]:
        from leaderboard.operations.assignments import names_of

        return list(names_of(assignment))

    def get_late(self, assignment: Any) -> bool:
        from leaderboard.operations.assignments import came_late

        return came_late(assignment)

    def get_staged(self, assignment: Any) -> dict[str, Any] | None:
        from leaderboard.operations.asking import staged_summary, step_of

        return staged_summary(step_of(assignment)) if assignment.study_id else None

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


class SubsetRowSerializer(ReadSerializer):
    number = IntegerField()
    lo = FloatField()
    hi = FloatField()
    widened = BooleanField()
    provisional = BooleanField()
    strategy = CharField()
    n_complete = IntegerField()
    n_tasks = IntegerField(help_text="Active tasks that it was chosen from.")
    size = IntegerField()
    data_version = IntegerField()
    reason = CharField()
    fixed_at = DateTimeField()
    links = SerializerMethodField()

    address = "subset", "number"


class SubsetTaskSerializer(ReadSerializer):
    task = CharField(source="task.name")
    category = CharField(source="task.category")
    pass_rate = FloatField(help_text="When it was chosen.")


class SubsetOneSerializer(SubsetRowSerializer):
    tasks = SubsetTaskSerializer(many=True, source="members_by_name")


STUDIES = {
    ValidationStudy: "validation",
    VarianceStudy: "variance",
    StagedStudy: "staged_study",
    DriftCheck: "drift",
}


class StudyRowSerializer(ReadSerializer):
    id = IntegerField()
    data_version = IntegerField()
    policy = IntegerField(source="policy.number")
    estimator_version = IntegerField()
    created_at = DateTimeField()
    links = SerializerMethodField()

    def get_links(self, row: Any) -> dict[str, str]:
        return {"self": self.of_benchmark(STUDIES[type(row)], row.pk)}


class StudyOneSerializer(StudyRowSerializer):
    result = JSONField(help_text="As the core tells it.")


class CalibrationRowSerializer(ReadSerializer):
    id = IntegerField()
    subset = IntegerField(source="subset.number")
    data_version = IntegerField()
    policy = IntegerField(source="policy.number")
    estimator = CharField()
    estimator_version = IntegerField()
    n_agents = IntegerField()
    links = SerializerMethodField()

    address = "calibration", "pk"


class CalibrationOneSerializer(CalibrationRowSerializer):
    agents = ListField(
        child=DictField(),
        source="extra_agents",
        help_text="Each: agent, date, residual, scaffold_residual, in_time.",
    )
    tasks = ListField(child=CharField(), source="extra_tasks")


class ProjectedSerializer(ReadSerializer):
    data_version = IntegerField()
    design = DictField(child=IntegerField(), help_text="Levels by letter.")
    estimand = CharField()
    sensitivity = CharField()
    interval = CharField(help_text="What an interval of this may be called.")
    variance = FloatField()
    se = FloatField()
    shares = DictField(child=FloatField())
    not_measured = ListField(child=CharField())


class AlertRowSerializer(ReadSerializer):
    id = IntegerField()
    monitor = CharField()
    level = CharField()
    subset = IntegerField(source="subset.number")
    evidence = JSONField()
    request = IntegerField(source="request_id", allow_null=True, help_text="The rerun request it waits for.")
    opened_at = DateTimeField()
    closed_at = DateTimeField(allow_null=True)
    closed_reason = CharField()


class AskedAgentSerializer(ReadSerializer):
    agent = CharField()
    sampled = BooleanField(help_text="Drawn at random.")
    inclusion = FloatField(help_text="Probability of being drawn.")
    why = CharField()
    n_lacking = IntegerField()
    arrived_at = DateTimeField(allow_null=True)


class RerunRowSerializer(ReadSerializer):
    id = IntegerField()
    kind = CharField()
    status = CharField()
    subset = IntegerField(
        source="subset.number", default=None, allow_null=True, help_text="Null: a recall is of no subset."
    )
    reason = CharField()
    n_tasks = IntegerField()
    agents = AskedAgentSerializer(many=True, source="agents.all")
    opened_at = DateTimeField()
    deadline = DateTimeField()
    closed_at = DateTimeField(allow_null=True)
    closed_reason = CharField()


class ReselectionRowSerializer(ReadSerializer):
    id = IntegerField()
    status = CharField()
    previous = IntegerField(source="previous.number", help_text="The subset in use then.")
    subset = IntegerField(source="subset.number", default=None, allow_null=True, help_text="Activated by it.")
    variant = CharField(help_text="That was approved.")
    data_version = IntegerField()
    reason = CharField()
    proposed_at = DateTimeField()
    decided_at = DateTimeField(allow_null=True)
    decided_reason = CharField()
    links = SerializerMethodField()

    address = "reselection", "pk"

    def get_links(self, row: Any) -> dict[str, str]:
        others = {name: self.of_benchmark(name, row.pk) for name in ("approve", "reject")}
        return super().get_links(row) | others


class ReselectionOneSerializer(ReselectionRowSerializer):
    content = JSONField(help_text="Variants with tasks that enter and leave, figures, cost and ranks after.")
    obstacle = CharField(
        source="extra_obstacle", help_text="Why it cannot be approved any more; empty where it can."
    )


class PolicyOneSerializer(ReadSerializer):
    number = IntegerField()
    created_at = DateTimeField()
    resolved_from = CharField(help_text="What decided `missing` where it was auto; else empty.")
    values = DictField(help_text="Every field.")
    rules = DictField(child=CharField(), help_text="What each field may say; advanced ones say so.")


class FreezeSerializer(ReadSerializer):
    frozen = BooleanField()
    since = DateTimeField(allow_null=True)
    reason = CharField()
