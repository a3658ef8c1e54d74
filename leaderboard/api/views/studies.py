"""Numbers computed from a stated data version: subsets, calibrations, studies, and projections."""

from typing import Any, ClassVar

from django.db.models import Count, QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from leaderboard.api import serializers
from leaderboard.api.parameters import one_of, whole
from leaderboard.api.views.base import BaseEndpoint, Listing, no_such_thing
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


class SubsetEndpoint(BaseEndpoint):
    subject = "subsets"

    def subsets(self) -> QuerySet[TaskSubset]:
        return self.benchmark.subsets.annotate(size=Count("members"))


class SubsetsView(SubsetEndpoint, Listing):
    """The versions of the subset, the one in use first."""

    row = serializers.SubsetRowSerializer
    answers: ClassVar = {"GET": {200: serializers.page_of(serializers.SubsetRowSerializer)}}

    def rows(self) -> QuerySet[TaskSubset]:
        return self.subsets().order_by("-number")


class SubsetOne(SubsetEndpoint):
    """One version of the subset with its tasks."""

    answers: ClassVar = {"GET": {200: serializers.SubsetOneSerializer}}

    def get(self, request: Request, slug: str, number: int) -> Response:
        subset: Any = self.get_or_404(self.subsets(), number=number)
        subset.members_by_name = subset.members.select_related("task").order_by("task__name")
        return Response(
            serializers.SubsetOneSerializer(subset, context={"view": self, "request": request}).data
        )


class StudyEndpoint(BaseEndpoint):
    """Studies of one kind."""

    kind: ClassVar[type[Study]]
    one: ClassVar[str]
    subject = "studies"

    def studies(self) -> QuerySet[Any]:
        return self.kind._default_manager.filter(benchmark=self.benchmark).select_related("policy")


class Studies(StudyEndpoint, Listing):
    """Those of this kind, the latest first."""

    row = serializers.StudyRowSerializer
    answers: ClassVar = {"GET": {200: serializers.page_of(serializers.StudyRowSerializer)}}

    def rows(self) -> QuerySet[Any]:
        return self.studies().defer("result").order_by("-data_version", "-id")


class StudyOne(StudyEndpoint):
    """One study, as it was computed."""

    answers: ClassVar = {"GET": {200: serializers.StudyOneSerializer}}

    def get(self, request: Request, slug: str, pk: int) -> Response:
        study = self.get_or_404(self.studies(), pk=pk)
        return Response(
            serializers.StudyOneSerializer(study, context={"view": self, "request": request}).data
        )


class ValidationEndpoint(StudyEndpoint):
    kind, one = ValidationStudy, "validation"


class VarianceEndpoint(StudyEndpoint):
    kind, one = VarianceStudy, "variance"


class StagedEndpoint(StudyEndpoint):
    kind, one = StagedStudy, "staged_study"


class DriftEndpoint(StudyEndpoint):
    kind, one = DriftCheck, "drift"


class ValidationsView(ValidationEndpoint, Studies):
    """Nested validations of the subset, the latest first."""


class ValidationView(ValidationEndpoint, StudyOne):
    """One nested validation: how well the subset ranks and scores like the whole."""


class VariancesView(VarianceEndpoint, Studies):
    """Variance studies, the latest first."""


class VarianceView(VarianceEndpoint, StudyOne):
    """One variance study: components, and what was never measured."""


class StagedStudies(StagedEndpoint, Studies):
    """What staged assignments rest on, the latest first."""


class StagedOne(StagedEndpoint, StudyOne):
    """What staged assignments rest on, frozen, and its replay on past agents; or why there are none."""


class DriftChecks(DriftEndpoint, Studies):
    """What monitors said of the subset, the latest check first."""


class Drift(DriftEndpoint, StudyOne):
    """One check of all monitors."""


class CalibrationEndpoint(BaseEndpoint):
    subject = "studies"

    def calibrations(self) -> QuerySet[Calibration]:
        calibrations = Calibration.objects.filter(subset__benchmark=self.benchmark)
        return calibrations.select_related("subset", "policy")


class Calibrations(CalibrationEndpoint, Listing):
    """On whom the full score was calibrated, the latest first."""

    row = serializers.CalibrationRowSerializer
    answers: ClassVar = {"GET": {200: serializers.page_of(serializers.CalibrationRowSerializer)}}

    def rows(self) -> QuerySet[Calibration]:
        return self.calibrations().order_by("-data_version", "-id")


class CalibrationOne(CalibrationEndpoint):
    """One calibration: its agents, and how far off each was where it was left out."""

    answers: ClassVar = {"GET": {200: serializers.CalibrationOneSerializer}}

    def get(self, request: Request, slug: str, pk: int) -> Response:
        calibration = self.get_or_404(self.calibrations(), pk=pk)
        row = serializers.CalibrationRowSerializer(
            calibration, context={"view": self, "request": request}
        ).data
        return Response(row | {"agents": self._agents(calibration), "tasks": self._tasks(calibration)})

    def _agents(self, calibration: Calibration) -> list[dict[str, Any]]:
        """Under their present names."""
        names = dict(self.benchmark.agents.filter(pk__in=calibration.agents).values_list("id", "name"))
        columns = zip(
            calibration.agents,
            calibration.dates,
            calibration.residuals,
            calibration.scaffold_residuals,
            calibration.in_time,
            strict=True,
        )
        heads = ("agent", "date", "residual", "scaffold_residual", "in_time")
        return [dict(zip(heads, (names[pk], *rest), strict=True)) for pk, *rest in columns]

    def _tasks(self, calibration: Calibration) -> list[str]:
        names = dict(self.benchmark.tasks.filter(pk__in=calibration.tasks).values_list("id", "name"))
        return [names[pk] for pk in calibration.tasks]


def levels(description: str) -> Any:
    return whole(description, most=MAX_LEVELS)


class DStudy(BaseEndpoint):
    """What a design would make of the error of one agent's mean, by the latest variance study.

    What is not asked for is as in the study, and one replicate.
    """

    parameters: ClassVar = {
        "N": levels("Tasks."),
        "C": levels("Groups of tasks, where they are drawn together; at most N."),
        "V": levels("Prompts."),
        "M": levels("Judges."),
        "R": levels("Replicates: trials of one cell."),
        "H": levels("Temperatures."),
        "estimand": one_of(
            "Whether tasks are a sample of a domain, or themselves the target.", ["domain", "finite"]
        ),
        "sensitivity": one_of(
            "Whether the choice of judges and temperatures is error.", ["exclude", "include"]
        ),
    }
    answers: ClassVar = {"GET": {200: serializers.ProjectedSerializer}}
    subject = "studies"

    def get(self, request: Request, slug: str) -> Response:
        from leaderboard.studies.projections import project_error  # few project, and it imports what fits

        study = latest_study(VarianceStudy, self.benchmark)
        if study is None:
            raise no_such_thing("There is no variance study of this benchmark yet.")
        design = {letter: self.query[letter] for letter in "NCVMRH" if self.query[letter] is not None}
        reading = {
            "estimand": self.query["estimand"] or "domain",
            "sensitivity": self.query["sensitivity"] or "exclude",
        }
        return Response(project_error(study=study, design=design, **reading))
