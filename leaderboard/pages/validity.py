"""What the page on validity shows: the figures of the latest nested validation, as they are stored."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from leaderboard.catalog.models import Benchmark
from leaderboard.studies.answers import validated, verdict
from leaderboard.studies.models import ValidationStudy
from leaderboard.studies.queries import latest_study

Figure = tuple[float | None, float | None]


@dataclass(frozen=True)
class Line:
    """One strategy under one protocol, or in one scaffold."""

    label: str
    in_use: bool
    result: Mapping[str, Any]

    @property
    def figures(self) -> list[Figure]:
        return [self._figure(name) for name in validated.FIGURES]

    @property
    def leading(self) -> list[Figure]:
        """What a board is read for."""
        return [self._figure(name) for name in validated.LEADING]

    def _figure(self, name: str) -> Figure:
        return self.result.get(name), validated.error(self.result, name)


@dataclass(frozen=True)
class Protocol:
    name: str
    label: str
    meaning: str
    result: Mapping[str, Any]
    lines: list[Line]
    scaffolds: list[Line]

    @property
    def in_use(self) -> Line | None:
        return next((line for line in self.lines if line.in_use), None)

    @property
    def folds(self) -> str:
        return validated.folds_text(self.result)

    @property
    def prequential(self) -> str:
        """What choosing the strategy in time would have given."""
        return validated.prequential_text(self.result)

    @property
    def notes(self) -> dict[str, str]:
        """Why figures are missing."""
        return validated.notes(self.result["strategies"])


@dataclass(frozen=True)
class ValidityPage:
    study: ValidationStudy
    in_use: str
    protocols: list[Protocol]
    is_behind: bool

    @property
    def has_figures(self) -> bool:
        return any(protocol.result["available"] for protocol in self.protocols)

    @property
    def strategy(self) -> str:
        return validated.label(self.in_use)

    @property
    def verdict(self) -> str:
        told = verdict(self.study.result, self.in_use)
        return told.sentence if told else ""

    @property
    def figures(self) -> list[str]:
        return list(validated.FIGURES.values())

    @property
    def leading(self) -> list[str]:
        return [validated.FIGURES[name] for name in validated.LEADING]

    @property
    def legend(self) -> dict[str, str]:
        return validated.LEGEND

    @property
    def agents(self) -> str:
        return validated.agents_text(self.study.result)

    @property
    def subset(self) -> str:
        return validated.subset_text(self.study.result)


def validity_page(benchmark: Benchmark) -> ValidityPage | None:
    study = latest_study(ValidationStudy, benchmark)
    if study is None:
        return None
    in_use, results = study.policy.strategy, study.result["protocols"]
    return ValidityPage(
        study=study,
        in_use=in_use,
        protocols=[_protocol(name, results[name], in_use) for name in validated.PROTOCOLS if name in results],
        is_behind=study.data_version < benchmark.data_version,
    )


def _protocol(name: str, result: Mapping[str, Any], in_use: str) -> Protocol:
    named, strategies = validated.PROTOCOLS[name], result.get("strategies") or {}
    return Protocol(
        name,
        named.label,
        named.meaning,
        result,
        lines=[
            Line(validated.label(strategy), strategy == in_use, strategies[strategy])
            for strategy in validated.in_order(strategies, in_use)
        ],
        scaffolds=[
            Line(scaffold, True, by[in_use])
            for scaffold, by in sorted((result.get("per_scaffold") or {}).items())
            if in_use in by
        ],
    )
