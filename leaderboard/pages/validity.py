"""What the page on validity shows: the figures of the latest nested validation, as they are stored."""

from dataclasses import dataclass
from typing import Any

from leaderboard.catalog.models import Benchmark
from leaderboard.studies.models import ValidationStudy
from leaderboard.studies.queries import latest_study

PROTOCOLS = {
    "loao": ("Leave one agent out", "each complete agent in turn is taken for new"),
    "within_scaffold": ("Within a scaffold", "the same among the agents of one scaffold, and their mean"),
    "random_80_20": ("Random 80/20", "a fifth of the agents, drawn at random, is taken for new"),
    "loso": ("Leave one scaffold out", "all agents of one scaffold are new"),
    "lomo": ("Leave one model out", "all agents of one model are new"),
    "temporal": ("In time", "each agent meets a selection made on agents that came before it"),
}
STRATEGIES = {
    "mid_range": "Mid-range band",
    "greedy": "Greedy",
    "random": "Random",
    "easiest": "Easiest",
    "hardest": "Hardest",
    "stratified": "Stratified",
    "information": "Information",
    "spread": "Spread",
    "forecast": "Forecast",
}
FIGURES = {
    "pairs_correct": "Pairs in order",
    "skill": "Skill",
    "pairs_clear": "Clear pairs",
    "rho_rest": "ρ with the rest",
    "r2": "R²",
    "rho": "ρ",
    "rho_null": "ρ by chance",
    "tau": "τ",
    "rho_calibrated": "ρ calibrated",
}
LEADING = ("pairs_correct", "skill", "pairs_clear", "rho_rest", "r2")
NOTED = FIGURES | {"se": "±", "coverage": "95% intervals hit"}


@dataclass(frozen=True)
class Line:
    """One strategy under one protocol, or in one scaffold."""

    label: str
    in_use: bool
    result: dict[str, Any]

    @property
    def figures(self) -> list[tuple[float | None, float | None]]:
        return [self._figure(name) for name in FIGURES]

    @property
    def leading(self) -> list[tuple[float | None, float | None]]:
        """What a board is read for."""
        return [self._figure(name) for name in LEADING]

    @property
    def notes(self) -> list[tuple[str, str]]:
        """Why a figure is missing, under its name."""
        notes = self.result.get("notes") or {}
        return [(label, notes[name]) for name, label in NOTED.items() if name in notes]

    def _figure(self, name: str) -> tuple[float | None, float | None]:
        """The value, and its standard error or its spread over random draws."""
        errors = self.result.get("se") or self.result.get("spread") or {}
        return self.result.get(name), errors.get(name)


@dataclass(frozen=True)
class Protocol:
    name: str
    label: str
    meaning: str
    result: dict[str, Any]
    lines: list[Line]
    scaffolds: list[Line]

    @property
    def in_use(self) -> Line | None:
        return next((line for line in self.lines if line.in_use), None)


@dataclass(frozen=True)
class ValidityPage:
    study: ValidationStudy
    strategy: str
    protocols: list[Protocol]
    is_behind: bool

    @property
    def figures(self) -> list[str]:
        return list(FIGURES.values())

    @property
    def leading(self) -> list[str]:
        return [FIGURES[name] for name in LEADING]

    @property
    def in_short(self) -> list[Line]:
        """The strategy in use where one agent is left out, and in time, as far as they are available."""
        told = {protocol.name: protocol.in_use for protocol in self.protocols}
        lines = [told.get("loao"), told.get("temporal")]
        return [line for line in lines if line and line.result.get("pairs_correct") is not None]


def validity_page(benchmark: Benchmark) -> ValidityPage | None:
    study = latest_study(ValidationStudy, benchmark)
    if study is None:
        return None
    strategy = study.policy.strategy
    results = study.result["protocols"]
    return ValidityPage(
        study=study,
        strategy=STRATEGIES[strategy],
        protocols=[_protocol(name, results[name], strategy) for name in PROTOCOLS if name in results],
        is_behind=study.data_version < benchmark.data_version,
    )


def _protocol(name: str, result: dict[str, Any], strategy: str) -> Protocol:
    label, meaning = PROTOCOLS[name]
    strategies = result.get("strategies") or {}
    ordered = sorted(strategies, key=lambda known: (known != strategy, list(STRATEGIES).index(known)))
    lines = [Line(STRATEGIES[known], known == strategy, strategies[known]) for known in ordered]
    scaffolds = [
        Line(scaffold, True, by[strategy])
        for scaffold, by in sorted((result.get("per_scaffold") or {}).items())
        if strategy in by
    ]
    return Protocol(name, label, meaning, result, lines, scaffolds)
