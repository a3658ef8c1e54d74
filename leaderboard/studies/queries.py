"""Reads of studies."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from leaderboard.catalog.models import Benchmark
from leaderboard.studies.models import ESTIMATOR_VERSION, AgentScores, Study, TaskSubset

AnyStudy = TypeVar("AnyStudy", bound=Study)


def latest_study(model: type[AnyStudy], benchmark: Benchmark) -> AnyStudy | None:
    """Return the study of the latest data, by the present estimators."""
    studies = model._default_manager.filter(benchmark=benchmark, estimator_version=ESTIMATOR_VERSION)
    return studies.order_by("-data_version", "-policy__number", "-id").first()


def active_subset(benchmark: Benchmark, upto: int | None = None) -> TaskSubset | None:
    """Return the version of the subset that new agents are asked to run, now or at a data version."""
    versions = benchmark.subsets.order_by("-number")
    return (versions if upto is None else versions.filter(data_version__lte=upto)).first()


def tasks_sha256(tasks: list[int]) -> str:
    """Hash the ids of the active tasks, in order of name, that a calibration was fitted on."""
    return hashlib.sha256(json.dumps(tasks).encode()).hexdigest()


def loaded_is_pass_fail(benchmark: Benchmark) -> bool:
    """Whether no outcome that an operator loaded lies between 0 and 1, as the last recompute read them."""
    loaded = AgentScores.objects.filter(agent__benchmark=benchmark, content__row__operator=True)
    return loaded.exists() and not loaded.filter(content__row__n_graded__gt=0).exists()


@dataclass(frozen=True)
class Reruns:
    """What is known of rerun requests: an open drift request and one that ran out, each in words, and the
    agents drawn at random since the subset in use was fixed, by id, with the probability of being drawn.

    `recalled` are the ids of agents whose remaining tasks are awaited, `overdue` of those whose did not come
    in time.
    """

    revalidating: str = ""
    not_revalidated: str = ""
    sampled: Mapping[int, float] = field(default_factory=dict)
    recalled: tuple[int, ...] = ()
    overdue: tuple[int, ...] = ()


NO_RERUNS = Reruns()
