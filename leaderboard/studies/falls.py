"""A verdict that has fallen below mostly, in the form of a monitor's finding."""

from typing import Any

from leaderboard.catalog.models import Benchmark
from leaderboard.studies.models import ValidationStudy
from leaderboard.studies.queries import latest_study
from selection.staged.told import fallen, is_below_mostly

VERDICT = "verdict"


def verdict_found(benchmark: Benchmark) -> dict[str, Any]:
    """What the latest validation says, beside the last one before it whose verdict was mostly or better."""
    latest = latest_study(ValidationStudy, benchmark)
    before = next((one for one in _others(benchmark, latest) if _is_good(one)), None) if latest else None
    told = fallen(before.result if before else None, latest.result if latest else {})
    return {"name": VERDICT, **told, "validation": latest.pk if latest else None}


def was_better_since(benchmark: Benchmark, validation: int) -> bool:
    """Whether a verdict after this validation was not below mostly."""
    since = benchmark.validationstudy_set.filter(pk__gt=validation)
    return any(not is_below_mostly(_verdict(one)) for one in since)


def _others(benchmark: Benchmark, latest: ValidationStudy) -> Any:
    return benchmark.validationstudy_set.filter(pk__lt=latest.pk).order_by("-pk")


def _is_good(study: ValidationStudy) -> bool:
    verdict = _verdict(study)
    return verdict is not None and not is_below_mostly(verdict)


def _verdict(study: ValidationStudy) -> dict[str, Any] | None:
    found: dict[str, Any] | None = study.result.get("replay", {}).get("verdict")
    return found
