"""Subsets and studies; what a study found is as the core tells it."""

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
)

from leaderboard.api.serializers.base import ReadSerializer


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

    def get_links(self, subset: Any) -> dict[str, str]:
        return {"self": self.link("subset", self.context["view"].benchmark.slug, subset.number)}


class SubsetTaskSerializer(ReadSerializer):
    task = CharField(source="task.name")
    category = CharField(source="task.category")
    pass_rate = FloatField(help_text="When it was chosen.")


class SubsetOneSerializer(SubsetRowSerializer):
    tasks = SubsetTaskSerializer(many=True, source="members_by_name")


class StudyRowSerializer(ReadSerializer):
    id = IntegerField()
    data_version = IntegerField()
    policy = IntegerField(source="policy.number")
    estimator_version = IntegerField()
    created_at = DateTimeField()
    links = SerializerMethodField()

    def get_links(self, study: Any) -> dict[str, str]:
        view = self.context["view"]
        return {"self": self.link(view.one, view.benchmark.slug, study.pk)}


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

    def get_links(self, calibration: Any) -> dict[str, str]:
        return {"self": self.link("calibration", self.context["view"].benchmark.slug, calibration.pk)}


class CalibrationOneSerializer(CalibrationRowSerializer):
    agents = ListField(
        child=DictField(), help_text="Each: agent, date, residual, scaffold_residual, in_time."
    )
    tasks = ListField(child=CharField())


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
