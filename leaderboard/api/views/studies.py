"""Numbers computed from a stated data version: subsets, calibrations, studies, and projections."""

from typing import Any, ClassVar

from django.db.models import Count, QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from leaderboard.api import serializers
from leaderboard.api.parameters import one_of, whole
from leaderboard.api.views import BaseEndpoint, Listing, no_such_thing
from leaderboard.studies.models import (
    Calibration,
    DriftCheck,
    StagedStudy,
    Study,
    TaskSubset,
    ValidationStudy,
    VarianceStudy,
)
from leaderboard.studies.queries import latest_study

MAX_LEVELS = 1_000_000
LEVELS = {
    "N": "Tasks.",
    "C": "Groups of tasks, where they are drawn together; at most N.",
    "V": "Prompts.",
    "M": "Judges.",
    "R": "Replicates: trials of one cell.",
    "H": "Temperatures.",
}


class SubsetEndpoint(BaseEndpoint):
    subject = "subsets"

    def subsets(self) -> QuerySet[TaskSubset]:
        return self.benchmark.subsets.annotate(size=Count("members"))


class SubsetsView(SubsetEndpoint, Listing):
    """The versions of the subset, the one in use first."""

    row = serializers.SubsetRowSerializer

    def rows(self) -> QuerySet[TaskSubset]:
        return self.subsets().order_by("-number")


class SubsetOne(SubsetEndpoint):
    """One version of the subset with its tasks."""

    one = serializers.SubsetOneSerializer

    def get(self, request: Request, slug: str, number: int) -> Response:
        subset: Any = self.get_or_404(self.subsets(), number=number)
        subset.members_by_name = subset.members.select_related("task").order_by("task__name")
        return self.respond(subset)


class StudyEndpoint(BaseEndpoint):
    """Studies of one kind."""

    kind: ClassVar[type[Study]]
    subject = "studies"

    def studies(self) -> QuerySet[Any]:
        return self.kind._default_manager.filter(benchmark=self.benchmark).select_related("policy")


class Studies(StudyEndpoint, Listing):
    """Those of this kind, the latest first."""

    row = serializers.StudyRowSerializer

    def rows(self) -> QuerySet[Any]:
        return self.studies().defer("result").order_by("-data_version", "-id")


class StudyOne(StudyEndpoint):
    """One study, as it was computed."""

    one = serializers.StudyOneSerializer

    def get(self, request: Request, slug: str, pk: int) -> Response:
        return self.respond(self.get_or_404(self.studies(), pk=pk))


class ValidationsView(Studies):
    """Nested validations of the subset, the latest first."""

    kind = ValidationStudy


class ValidationView(StudyOne):
    """One nested validation: how well the subset ranks and scores like the whole."""

    kind = ValidationStudy


class VariancesView(Studies):
    """Variance studies, the latest first."""

    kind = VarianceStudy


class VarianceView(StudyOne):
    """One variance study: components, and what was never measured."""

    kind = VarianceStudy


class StagedStudies(Studies):
    """What staged assignments rest on, the latest first."""

    kind = StagedStudy


class StagedOne(StudyOne):
    """What staged assignments rest on, frozen, and its replay on past agents; or why there are none."""

    kind = StagedStudy


class DriftChecks(Studies):
    """What monitors said of the subset, the latest check first."""

    kind = DriftCheck


class Drift(StudyOne):
    """One check of all monitors."""

    kind = DriftCheck


class CalibrationEndpoint(BaseEndpoint):
    subject = "studies"

    def calibrations(self) -> QuerySet[Calibration]:
        calibrations = Calibration.objects.filter(subset__benchmark=self.benchmark)
        return calibrations.select_related("subset", "policy")


class Calibrations(CalibrationEndpoint, Listing):
    """On whom the full score was calibrated, the latest first."""

    row = serializers.CalibrationRowSerializer

    def rows(self) -> QuerySet[Calibration]:
        return self.calibrations().order_by("-data_version", "-id")


class CalibrationOne(CalibrationEndpoint):
    """One calibration: its agents, and how far off each was where it was left out."""

    one = serializers.CalibrationOneSerializer

    def get(self, request: Request, slug: str, pk: int) -> Response:
        calibration = self.get_or_404(self.calibrations(), pk=pk)
        agents = dict(self.benchmark.agents.filter(pk__in=calibration.agents).values_list("id", "name"))
        tasks = dict(self.benchmark.tasks.filter(pk__in=calibration.tasks).values_list("id", "name"))
        columns = [getattr(calibration, column) for column in Calibration.OF_AGENTS]
        heads = ("date", "residual", "scaffold_residual", "in_time")
        return self.respond(
            calibration,
            agents=[  # under their present names
                {"agent": agents[pk], **dict(zip(heads, rest, strict=True))}
                for pk, *rest in zip(calibration.agents, *columns, strict=True)
            ],
            tasks=[tasks[pk] for pk in calibration.tasks],
        )


class DStudy(BaseEndpoint):
    """What a design would make of the error of one agent's mean, by the latest variance study.

    What is not asked for is as in the study, and one replicate.
    """

    parameters: ClassVar = {
        **{letter: whole(description, most=MAX_LEVELS) for letter, description in LEVELS.items()},
        "estimand": one_of(
            "Whether tasks are a sample of a domain, or themselves the target.", ["domain", "finite"]
        ),
        "sensitivity": one_of(
            "Whether the choice of judges and temperatures is error.", ["exclude", "include"]
        ),
    }
    one = serializers.ProjectedSerializer
    subject = "studies"

    def get(self, request: Request, slug: str) -> Response:
        from leaderboard.studies.kinds import project_error  # few project, and it imports what fits

        study = latest_study(VarianceStudy, self.benchmark)
        if study is None:
            raise no_such_thing("There is no variance study of this benchmark yet.")
        return Response(
            project_error(
                study=study,
                design=self.conditions(*LEVELS),
                estimand=self.query["estimand"] or "domain",
                sensitivity=self.query["sensitivity"] or "exclude",
            )
        )
