"""What the page on uncertainty shows: the latest variance study, as it is stored."""

from dataclasses import dataclass
from typing import Any

from leaderboard.catalog.models import Benchmark
from leaderboard.studies.models import VarianceStudy
from leaderboard.studies.queries import latest_study

ESTIMANDS = ("finite", "domain")


@dataclass(frozen=True)
class Step:
    """Standard errors with so many trials a task, and as shares of those with the fewest."""

    n_trials: int
    errors: list[tuple[float | None, float | None]]


@dataclass(frozen=True)
class UncertaintyPage:
    study: VarianceStudy
    is_behind: bool

    @property
    def steps(self) -> list[Step]:
        rows = self.study.result.get("projections") or []
        return [
            Step(row["n_trials"], [(row[name], _ratio(row[name], rows[0][name])) for name in ESTIMANDS])
            for row in rows
        ]

    @property
    def measured(self) -> list[dict[str, Any]]:
        """Agents with a decomposition of their own; `ratio` is their standard error over the naive one."""
        told = [agent for agent in self.study.result["agents"] if not agent["reason"]]
        return [agent | {"ratio": _ratio(agent["se"], agent["naive_se"])} for agent in told]

    @property
    def refused(self) -> list[dict[str, Any]]:
        return [agent for agent in self.study.result["agents"] if agent["reason"]]

    @property
    def n_others(self) -> int:
        """Agents that varied nothing and repeated no trial."""
        return self.study.result["levels"]["agent"] - len(self.study.result["agents"])


def uncertainty_page(benchmark: Benchmark) -> UncertaintyPage | None:
    study = latest_study(VarianceStudy, benchmark)
    if study is None:
        return None
    return UncertaintyPage(study, is_behind=study.data_version < benchmark.data_version)


def _ratio(value: float | None, to: float | None) -> float | None:
    return value / to if value is not None and to else None
