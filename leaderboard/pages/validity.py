"""What the page “Can I trust it?” shows: the figures of the latest validation, as they are stored."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from leaderboard.catalog.models import Benchmark
from leaderboard.operations.queries import latest_run
from leaderboard.pages.access import for_all, visible
from leaderboard.pages.replay_summary import source_of
from leaderboard.pages.widths import overlap_chart, width_chart
from leaderboard.plots.chart import Chart
from leaderboard.plots.dots import DotRow, dots
from leaderboard.plots.scales import ticks_125
from leaderboard.studies.answers import (
    Verdict,
    random_text,
    replay_figures,
    validated,
    verdict,
    why_text,
    words,
)
from leaderboard.studies.models import ValidationStudy
from leaderboard.studies.queries import latest_study

Figure = tuple[float | None, float | None]
READ_FOR = "pairs_correct_full"  # the figure that the verdict is told from
NOMINAL, N_ERRORS = 0.95, 1.96


@dataclass(frozen=True)
class StrategyRow:
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
class ProtocolSection:
    name: str
    label: str
    meaning: str
    result: Mapping[str, Any]
    lines: list[StrategyRow]
    scaffolds: list[StrategyRow]

    @property
    def in_use(self) -> StrategyRow | None:
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
    protocols: list[ProtocolSection]
    is_behind: bool

    @property
    def is_suited(self) -> bool:
        return bool(self.study.result["subset"]["suited"])

    @property
    def tasks(self) -> str:
        """What the subset is called: the 82 tasks."""
        size = self.study.result["subset"]["size"] if self.is_suited else 0
        return f"the {words.counted(size, 'task')}" if size else "a subset of the tasks"

    @property
    def no_subset(self) -> str:
        """Why there is none, and what a new agent runs; empty where there is one."""
        if self.is_suited:
            return ""
        result, policy = self.study.result, self.study.policy
        mode = "full" if result["agents"] < policy.staged_from else policy.assignment
        return f"{result['subset']['reason']}. {words.TASKS_OF_NEW_AGENT[mode]['unsuited']}"

    @property
    def has_figures(self) -> bool:
        return any(protocol.result["available"] for protocol in self.protocols)

    @property
    def strategy(self) -> str:
        return validated.label(self.in_use)

    @cached_property
    def subset_verdict(self) -> Verdict | None:
        return verdict(self.study.result, self.in_use) if self.is_suited or self.is_replayed else None

    @property
    def is_replayed(self) -> bool:
        """Whether the rule in force was replayed, or too few agents have run all tasks for it.

        A board that asks for the subset alone, and has none, says why it has none.
        """
        return "replay" in self.study.result and (self.is_suited or self.study.policy.assignment != "subset")

    @property
    def replay(self) -> Mapping[str, Any]:
        """The figures of the replay."""
        return replay_figures(self.study.result)

    @property
    def word(self) -> str:
        if self.is_replayed and self.subset_verdict:
            return self.subset_verdict.sentence
        return (
            f"{self.subset_verdict.word.capitalize()}, for the order of agents."
            if self.subset_verdict
            else ""
        )

    @property
    def why(self) -> str:
        return (
            why_text(self.subset_verdict, tasks=self.tasks)
            if self.subset_verdict and not self.is_replayed
            else ""
        )

    @property
    def refitted(self) -> str:
        return validated.refitted_text(self.study.result)

    @property
    def compared_to_random(self) -> str:
        return random_text(self.study.result, self.in_use)

    @property
    def in_time(self) -> str:
        """How many agents the test in time rests on; empty where the data have none."""
        figures = self._figures("temporal")
        n, error = figures.get("n"), validated.error(figures, READ_FOR)
        if not n or figures.get(READ_FOR) is None:
            return ""
        wide = "" if error is None else f"; its standard error is {words.percent(error)} points"
        return f"{words.counted(n, 'agent')} came late enough for the test in time{wide}."

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
    def pairs(self) -> Chart | None:
        return pairs_chart([self._test(name) for name in validated.TESTS if self._figures(name)])

    @property
    def coverage(self) -> Chart | None:
        return coverage_chart([self._test(name) for name in validated.TESTS if self._figures(name)])

    @property
    def widths(self) -> Chart | None:
        return width_chart(self.study.result)

    @property
    def overlaps(self) -> Chart | None:
        return overlap_chart(self.study.result)

    @property
    def no_widths(self) -> str:
        """Why bands of other widths have no figures."""
        return str(validated.bands(self.study.result)["reason"])

    def _figures(self, protocol: str) -> Mapping[str, Any]:
        return self._strategies(protocol).get(self.in_use) or {}

    def _strategies(self, protocol: str) -> Mapping[str, Any]:
        result = self.study.result["protocols"].get(protocol) or {}
        return result["strategies"] if result.get("available") else {}

    def _test(self, name: str) -> "Test":
        at_random = self._strategies(name).get("random") or {}
        return Test(
            name,
            self._figures(name),
            random=None if self.in_use == "random" else at_random.get(READ_FOR),
        )


@dataclass(frozen=True)
class Test:
    """A protocol as a row of a plot: the strategy in use, and as many random tasks."""

    name: str
    of: Mapping[str, Any]
    random: float | None

    @property
    def label(self) -> str:
        return validated.TESTS[self.name].label

    @property
    def agents(self) -> str:
        held_out = "held-out score" if self.name == "random_80_20" else "agent"  # there an agent comes again
        return f"{validated.TESTS[self.name].meaning} · {words.counted(self.of['n'], held_out)}"

    @property
    def value(self) -> float | None:
        return self.of.get(READ_FOR)

    @property
    def ends(self) -> tuple[float, float] | tuple[None, None]:
        """The 95% interval, or two spreads of random draws; inside of 0 to 1."""
        error = validated.error(self.of, READ_FOR)
        if error is None or self.value is None:
            return None, None
        return max(0.0, self.value - N_ERRORS * error), min(1.0, self.value + N_ERRORS * error)


def pairs_chart(tests: list[Test]) -> Chart | None:
    """Draw how many pairs are in the right order, by test; None where that is known of none."""
    tests = [test for test in tests if test.value is not None]
    if not tests:
        return None
    null = min((test.of["pairs_null"] for test in tests if test.of.get("pairs_null")), default=None)
    seen = [v for test in tests for v in (test.value, test.random, null, *test.ends) if v is not None]
    lo = min(seen)
    drawn = [
        dots(
            name="validity",
            title="Pairs in the right order, by test",
            rows=[_pairs_row(test) for test in tests],
            lo=lo,
            hi=1.0,
            ticks=_ticks(lo),
            rules=[(1.0, "all pairs right"), *([(null, "no differences at all")] if null else [])],
            narrow=narrow,
        )
        for narrow in (False, True)
    ]
    return Chart(
        name="validity",
        title="Pairs in the right order",
        lede="Dot: the rule in use, by the estimated full score, with a 95% interval. Orange: as many tasks "
        "drawn at random. The left line is what means on the subset would show if agents did not differ: the "
        "subset is part of all tasks, so that it lies high.",
        heads=("Test", "Pairs in order", "From", "To", "Random tasks", "Agents"),
        rows=tuple(
            (test.label, *map(_percent, (test.value, *test.ends, test.random)), f"{test.of['n']:,}")
            for test in tests
        ),
        svg=drawn[0],
        narrow=drawn[1],
    )


def _pairs_row(test: Test) -> DotRow:
    lower, upper = test.ends
    return DotRow(test.label, test.agents, _percent(test.value), test.value, lower, upper, test.random)


def coverage_chart(tests: list[Test]) -> Chart | None:
    """Draw how often 95% intervals held, by test; None where that is known of none."""
    tests = [test for test in tests if test.of.get("coverage") is not None]
    if not tests:
        return None
    lo = min(0.8, *(_coverage_of(test) - 0.02 for test in tests))
    drawn = [
        dots(
            name="coverage",
            title="How often 95% intervals of estimated scores held, by test",
            rows=[
                DotRow(
                    test.label,
                    words.counted(test.of["n_intervals"], "interval"),
                    _percent(_coverage_of(test)),
                    _coverage_of(test),
                )
                for test in tests
            ],
            lo=lo,
            hi=1.0,
            ticks=_ticks(lo),
            rules=[(NOMINAL, "95%, as they claim")],
            narrow=narrow,
        )
        for narrow in (False, True)
    ]
    return Chart(
        name="coverage",
        title="Intervals that held",
        lede="How often the 95% interval of an estimated score held the measured one. Left of the line they "
        f"are too narrow for what is new there. {validated.OF_FOLDS}",
        heads=("Test", "Held", "Intervals"),
        rows=tuple(
            (test.label, _percent(_coverage_of(test)), f"{test.of['n_intervals']:,}") for test in tests
        ),
        svg=drawn[0],
        narrow=drawn[1],
    )


def _coverage_of(test: Test) -> float:
    return float(test.of["coverage"])


def _ticks(lo: float) -> list[tuple[float, str]]:
    return [(tick, f"{100 * tick:g}%") for tick in ticks_125(lo, 1.0, 4)]


def _percent(value: float | None) -> str:
    return "not measured" if value is None else f"{words.percent(value)}%"


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


def _protocol(name: str, result: Mapping[str, Any], in_use: str) -> ProtocolSection:
    named, strategies = validated.PROTOCOLS[name], result.get("strategies") or {}
    return ProtocolSection(
        name,
        named.label,
        named.meaning,
        result,
        lines=[
            StrategyRow(validated.label(strategy), strategy == in_use, strategies[strategy])
            for strategy in validated.in_order(strategies, in_use)
        ],
        scaffolds=[
            StrategyRow(scaffold, True, by[in_use])
            for scaffold, by in sorted((result.get("per_scaffold") or {}).items())
            if in_use in by
        ],
    )


def plot_validity(benchmark: Benchmark, params: QueryDict) -> Chart | None:
    page = validity_page(benchmark)
    return page.pairs if page else None


def plot_coverage(benchmark: Benchmark, params: QueryDict) -> Chart | None:
    page = validity_page(benchmark)
    return page.coverage if page else None


def plot_widths(benchmark: Benchmark, params: QueryDict) -> Chart | None:
    page = validity_page(benchmark)
    return page.widths if page else None


def plot_overlaps(benchmark: Benchmark, params: QueryDict) -> Chart | None:
    page = validity_page(benchmark)
    return page.overlaps if page else None


@require_safe
@for_all
def validity(request: HttpRequest, slug: str) -> HttpResponse:
    benchmark = visible(slug)
    page = validity_page(benchmark)
    run = latest_run(benchmark, "validate") if page is None or page.is_behind else None
    shown = {"page": page, "benchmark": benchmark, "of": source_of(benchmark), "run": run, "here": "validity"}
    return render(request, "pages/validity.html", shown)
