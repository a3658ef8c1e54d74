"""Reads of studies."""

from typing import TypeVar

from leaderboard.catalog.models import Benchmark
from leaderboard.studies.models import ESTIMATOR_VERSION, Study, TaskSubset

AnyStudy = TypeVar("AnyStudy", bound=Study)


def latest_study(model: type[AnyStudy], benchmark: Benchmark) -> AnyStudy | None:
    """Return the study of the latest data, by the present estimators."""
    studies = model._default_manager.filter(benchmark=benchmark, estimator_version=ESTIMATOR_VERSION)
    return studies.order_by("-data_version", "-policy__number", "-id").first()


def active_subset(benchmark: Benchmark) -> TaskSubset | None:
    """Return the version of the subset that new agents are asked to run."""
    return benchmark.subsets.order_by("-number").first()
