"""Numbers computed from a stated data version: subsets, calibrations, studies, and projections."""

from typing import Any, ClassVar

from django.db.models import Count, QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from leaderboard.api import serializers
from leaderboard.api.parameters import one_of, whole
from leaderboard.api.views.asked import Asked, Listing, NoSuchThing
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

MOST_LEVELS = 1_000_000


class OfSubsets(Asked):
    subject = "subsets"

    def subsets(self) -> QuerySet[TaskSubset]:
        return self.benchmark.subsets.annotate(size=Count("members"))


class Subsets(OfSubsets, Listing):
    """The versions of the subset, the one in use first."""

    row = serializers.SubsetRow
    answers: ClassVar = {"GET": {200: serializers.page_of(serializers.SubsetRow)}}

    def rows(self) -> QuerySet[TaskSubset]:
        return self.subsets().order_by("-number")


class SubsetOne(OfSubsets):
    """One version of the subset with its tasks."""

    answers: ClassVar = {"GET": {200: serializers.SubsetOne}}

    def get(self, request: Request, slug: str, number: int) -> Response:
        subset: Any = self.found(self.subsets(), number=number)
        subset.members_by_name = subset.members.select_related("task").order_by("task__name")
        return Response(serializers.SubsetOne(subset, context={"view": self, "request": request}).data)


class OfStudies(Asked):
    """Studies of one kind."""

    kind: ClassVar[type[Study]]
    one: ClassVar[str]
    subject = "studies"

    def studies(self) -> QuerySet[Any]:
        return self.kind._default_manager.filter(benchmark=self.benchmark).select_related("policy")


class Studies(OfStudies, Listing):
    """Those of this kind, the latest first."""

    row = serializers.StudyRow
    answers: ClassVar = {"GET": {200: serializers.page_of(serializers.StudyRow)}}

    def rows(self) -> QuerySet[Any]:
        return self.studies().defer("result").order_by("-data_version", "-id")


class StudyOne(OfStudies):
    """One study, as it was computed."""

    answers: ClassVar = {"GET": {200: serializers.StudyOne}}

    def get(self, request: Request, slug: str, pk: int) -> Response:
        study = self.found(self.studies(), pk=pk)
        return Response(serializers.StudyOne(study, context={"view": self, "request": request}).data)


class OfValidations(OfStudies):
    kind, one = ValidationStudy, "validation"


class OfVariances(OfStudies):
    kind, one = VarianceStudy, "variance"


class OfStaged(OfStudies):
    kind, one = StagedStudy, "staged_study"


class OfDrift(OfStudies):
    kind, one = DriftCheck, "drift"


class Validations(OfValidations, Studies):
    """Nested validations of the subset, the latest first."""


class Validation(OfValidations, StudyOne):
    """One nested validation: how well the subset ranks and scores like the whole."""


class Variances(OfVariances, Studies):
    """Variance studies, the latest first."""


class Variance(OfVariances, StudyOne):
    """One variance study: components, and what was never measured."""


class StagedStudies(OfStaged, Studies):
    """What staged assignments rest on, the latest first."""


class StagedOne(OfStaged, StudyOne):
    """What staged assignments rest on, frozen, and its replay on past agents; or why there are none."""


class DriftChecks(OfDrift, Studies):
    """What monitors said of the subset, the latest check first."""


class Drift(OfDrift, StudyOne):
    """One check of all monitors."""


class OfCalibrations(Asked):
    subject = "studies"

    def calibrations(self) -> QuerySet[Calibration]:
        found = Calibration.objects.filter(subset__benchmark=self.benchmark)
        return found.select_related("subset", "policy")


class Calibrations(OfCalibrations, Listing):
    """On whom the full score was calibrated, the latest first."""

    row = serializers.CalibrationRow
    answers: ClassVar = {"GET": {200: serializers.page_of(serializers.CalibrationRow)}}

    def rows(self) -> QuerySet[Calibration]:
        return self.calibrations().order_by("-data_version", "-id")


class CalibrationOne(OfCalibrations):
    """One calibration: its agents, and how far off each was where it was left out."""

    answers: ClassVar = {"GET": {200: serializers.CalibrationOne}}

    def get(self, request: Request, slug: str, pk: int) -> Response:
        found = self.found(self.calibrations(), pk=pk)
        row = serializers.CalibrationRow(found, context={"view": self, "request": request}).data
        return Response(row | {"agents": self._agents(found), "tasks": self._tasks(found)})

    def _agents(self, found: Calibration) -> list[dict[str, Any]]:
        """Under their present names."""
        names = dict(self.benchmark.agents.filter(pk__in=found.agents).values_list("id", "name"))
        columns = zip(
            found.agents, found.dates, found.residuals, found.scaffold_residuals, found.in_time, strict=True
        )
        heads = ("agent", "date", "residual", "scaffold_residual", "in_time")
        return [dict(zip(heads, (names[pk], *rest), strict=True)) for pk, *rest in columns]

    def _tasks(self, found: Calibration) -> list[str]:
        names = dict(self.benchmark.tasks.filter(pk__in=found.tasks).values_list("id", "name"))
        return [names[pk] for pk in found.tasks]


def levels(told: str) -> Any:
    return whole(told, most=MOST_LEVELS)


class DStudy(Asked):
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
    answers: ClassVar = {"GET": {200: serializers.Projected}}
    subject = "studies"

    def get(self, request: Request, slug: str) -> Response:
        from leaderboard.studies.projections import projected  # few project, and it imports what fits

        study = latest_study(VarianceStudy, self.benchmark)
        if study is None:
            raise NoSuchThing("There is no variance study of this benchmark yet.")
        design = {letter: self.asked[letter] for letter in "NCVMRH" if self.asked[letter] is not None}
        reading = {
            "estimand": self.asked["estimand"] or "domain",
            "sensitivity": self.asked["sensitivity"] or "exclude",
        }
        return Response(projected(study=study, design=design, **reading))
