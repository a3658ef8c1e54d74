"""Who and what."""

from typing import Any

from rest_framework.serializers import (
    BooleanField,
    CharField,
    DateTimeField,
    DictField,
    FloatField,
    IntegerField,
    JSONField,
    ListField,
    SerializerMethodField,
    UUIDField,
)

from leaderboard.api.serializers.base import ReadSerializer


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
        return switch(benchmark, "frozen")

    def get_full_runs_only(self, benchmark: Any) -> dict[str, Any] | None:
        return switch(benchmark, "full_runs_only")

    def get_links(self, benchmark: Any) -> dict[str, str]:
        return {name: self.link(name, benchmark.slug) for name in OF_BENCHMARK}


OF_BENCHMARK = (
    *("benchmark", "tasks", "agents", "submissions", "assignments", "subsets", "board", "boards", "compare"),
    *("validations", "calibrations", "variances", "staged_studies", "drifts", "dstudy", "alerts"),
    *("rerun-requests", "reselections", "policy", "freeze"),
)


def switch(benchmark: Any, name: str) -> dict[str, Any] | None:
    since = getattr(benchmark, f"{name}_at")
    return (
        SwitchSerializer({"since": since, "reason": getattr(benchmark, f"{name}_reason")}).data
        if since
        else None
    )


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
    merged_into = IntegerField(
        source="merged_into_id", allow_null=True, help_text="Whose its deliveries are by now."
    )
    links = SerializerMethodField()

    def get_links(self, agent: Any) -> dict[str, str]:
        return {"self": self.link("agent", self.context["view"].benchmark.slug, agent.pk)}


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
