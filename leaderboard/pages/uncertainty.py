"""What the page “Error bars” shows: the latest variance study as it is stored, and what a design would do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, sqrt
from operator import itemgetter
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from leaderboard.catalog.models import Benchmark
from leaderboard.errors import Refusal
from leaderboard.pages.access import for_all, visible
from leaderboard.plots.chart import Chart
from leaderboard.plots.stacked import StackPart, stacked
from leaderboard.studies.answers import averaged_over, varied, words
from leaderboard.studies.models import VarianceStudy
from leaderboard.studies.queries import latest_study

ESTIMANDS = {"finite": "these tasks", "domain": "tasks like these"}
NUMBERS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")
MAX_LEVELS = 1_000_000
ENOUGH = 1_000  # trials a task: more are no advice
SOURCES = {
    "agent": "Agents",
    "task": "Task difficulty",
    "agent:task": "Which tasks suit whom",
    "Residual": "Trials",
}
SAID = {
    "agent": "what a leaderboard is for",
    "agent:task": "stays in a comparison",
    "Residual": "more of them average it out",
}
POOLED = "Trials, and which tasks suit whom"
CANCELS = "cancels between agents on the same tasks"


@dataclass(frozen=True)
class TrialStep:
    """Standard errors with so many trials a task, and as shares of those with the fewest."""

    n_trials: int
    errors: list[tuple[float | None, float | None]]


@dataclass(frozen=True)
class Lever:
    """What the form asks for: how many of something, and how many there were."""

    key: str
    letter: str
    label: str
    n: int  # in the study; 1 of something that was never varied
    text: str = ""
    value: int | None = None  # None where nothing was asked, or no number
    is_varied: bool = True

    @property
    def fault(self) -> str:
        if not self.text or self.value is not None:
            return ""
        return f"{self.label}: a whole number from 1 to {MAX_LEVELS:,}."


@dataclass(frozen=True)
class WhatIf:
    """A design that was asked for: what it would do, or why that cannot be told."""

    levers: tuple[Lever, ...]
    estimand: str
    projection: Mapping[str, Any] | None = None
    before: Mapping[str, Any] | None = None
    refusal: str = ""

    @property
    def faults(self) -> list[str]:
        return [lever.fault for lever in self.levers if lever.fault]

    @property
    def has_values(self) -> bool:
        return any(lever.text for lever in self.levers)

    @property
    def tasks(self) -> str:
        return ESTIMANDS[self.estimand]

    @property
    def estimands(self) -> Mapping[str, str]:
        return ESTIMANDS

    @property
    def sentence(self) -> str:
        if not self.projection or not self.before:
            return ""
        se, now = self.projection["se"], self.before["se"]
        change = f"{abs(1 - se / now):.0%} {'shorter' if se < now else 'longer'} than"
        change = "the same as" if f"{abs(1 - se / now):.0%}" == "0%" else change
        return (
            f"With {self._design} the standard error of one agent’s mean on {self.tasks} would be "
            f"{words.percent(se)} points: {change} with one trial of each of the "
            f"{self.before['design']['N']:,}."
        )

    @property
    def _design(self) -> str:
        design = self.projection["design"] if self.projection else {}
        levels = [
            words.counted(design[lever.letter], lever.label.lower().removesuffix("s"))
            for lever in self.levers
            if lever.letter not in "RN" and lever.is_varied
        ]
        trials = f"{words.counted(design['R'], 'trial')} of each of {words.counted(design['N'], 'task')}"
        return " and ".join([trials, *levels])

    @property
    def row(self) -> list[tuple[str, str]]:
        """Heads and cells of the one row."""
        if not self.projection:
            return []
        design, se = self.projection["design"], self.projection["se"]
        largest = max(self.projection["shares"].items(), key=lambda part: part[1])
        return [
            *((lever.label, f"{design[lever.letter]:,}") for lever in self.levers if lever.is_varied),
            ("Standard error", f"{words.percent(se)} points"),
            ("95% interval", f"±{words.percent(1.96 * se)} points"),
            ("Mostly from", f"{_source(largest[0]).lower()}, {largest[1]:.0%}"),
        ]

    @property
    def unknown(self) -> str:
        """What was never varied, so that the form does not ask for it."""
        never = [lever.label.lower() for lever in self.levers if not lever.is_varied]
        if not never:
            return ""
        return f"Never varied here, so that what more would do is unknown: {' and '.join(never)}."


@dataclass(frozen=True)
class UncertaintyPage:
    study: VarianceStudy
    is_behind: bool
    what_if: WhatIf | None = None

    @property
    def headline(self) -> tuple[str, str]:
        """The verdict, its first words apart."""
        result = self.study.result
        if result["levels"]["agent"] < 2:
            return "One agent so far:", "where the noise comes from takes two."
        if not result["available"]:
            return "Not available:", f"{result['reason']}."
        steps = result.get("projections") or []
        if not steps or steps[0]["finite"] is None:
            return "How much is trial noise is not known:", "no trial of a task was repeated."
        return halving(steps, n_tasks=result["levels"]["task"], averaged=self.averaged)

    @property
    def averaged(self) -> str:
        """Over what the mean of the projections is, beside tasks and trials."""
        return averaged_over(self.study.result)

    @property
    def at_random(self) -> str:
        """One sentence: what is at random on these tasks, and what was never measured."""
        names = {part["name"] for part in self.study.result.get("components") or []}
        facets = ("prompt", "judge", "run")
        known = [f"{facet}s" for facet in facets if f"agent:{facet}" in names]
        unknown = [f"{facet}s" for facet in facets if f"agent:{facet}" not in names]
        sentence = f"What is at random here: {_join(['trials', *known])}."
        return f"{sentence} Never measured, so not in this table: {_join(unknown)}." if unknown else sentence

    @property
    def variance(self) -> Chart | None:
        return variance_chart(self.study.result.get("components") or [])

    @property
    def scales(self) -> str:
        """One sentence where the largest source differs on the logit scale."""
        logit = self.study.result.get("logit") or {}
        if not logit.get("sentence"):
            return ""
        is_pooled = "agent:task" not in logit["components"]
        scales = (logit["shares"]["linear"], logit["shares"]["logit"])
        linear, other = (
            f"“{_source(name, is_pooled)}” ({share:.0%})"
            for name, share in (max(shares.items(), key=itemgetter(1)) for shares in scales)
        )
        return (
            f"The largest part of the variance of one agent’s mean is {linear} on the scale of the scores, "
            f"but {other} on the logit scale, where differences near 0 and 100% weigh more."
        )

    @property
    def steps(self) -> list[TrialStep]:
        rows = self.study.result.get("projections") or []
        return [
            TrialStep(row["n_trials"], [(row[name], _ratio(row[name], rows[0][name])) for name in ESTIMANDS])
            for row in rows
        ]

    @cached_property
    def measured(self) -> list[dict[str, Any]]:
        """Agents with a decomposition of their own; `ratio` is their standard error over the naive one."""
        agents = [agent for agent in self.study.result["agents"] if not agent["reason"]]
        return [
            agent
            | {"ratio": _ratio(agent["se"], agent["naive_se"]), "trials": _trials(agent)}
            | {"degrees": _degrees(agent.get("few_levels_df"))}
            for agent in agents
        ]

    @property
    def refused(self) -> list[dict[str, Any]]:
        return [agent for agent in self.study.result["agents"] if agent["reason"]]

    @property
    def n_others(self) -> int:
        """Agents that varied nothing and repeated no trial."""
        return int(self.study.result["levels"]["agent"]) - len(self.study.result["agents"])


def halving(steps: Sequence[Mapping[str, Any]], *, n_tasks: int, averaged: str = "") -> tuple[str, str]:
    """Say how many trials a task halve the error bar on these tasks.

    Its square is a part that no trial moves and one over their number, a + b/R: two steps tell both.
    """
    (one, first), (other, second) = ((row["n_trials"], row["finite"] ** 2) for row in steps[:2])
    moved = (first - second) / (1 / one - 1 / other)
    fixed = first - moved / one
    left = first / 4 - fixed
    n = ceil(round(moved / left, 9)) if left > 0 else ENOUGH + 1
    over = f"all {n_tasks:,}, {averaged}," if averaged else f"all {n_tasks:,}"
    mean = f"one agent’s mean over {over} has a standard error of {words.percent(sqrt(first))} points"
    if n > ENOUGH:
        return (
            "No number of trials would halve the error bar on these tasks:",
            f"{mean} with one trial a task.",
        )
    number = NUMBERS[n] if n < len(NUMBERS) else f"{n:,}"
    after = words.percent(sqrt(fixed + moved / n))
    return (
        f"{number} trials a task would halve the error bar on these tasks:",
        f"{mean} with one trial, and of {after} with {number.lower()}.",
    )


def variance_chart(components: Sequence[Mapping[str, Any]]) -> Chart | None:
    """Draw the sources of variance side by side; None without any variance."""
    if not components or not sum(part["variance"] for part in components):
        return None
    is_pooled = all(part["name"] != "agent:task" for part in components)
    parts = [
        StackPart(_source(name, is_pooled), part["share"], _meaning(name, is_pooled), hatched=_cancels(name))
        for part in components
        for name in [part["name"]]
    ]
    title = "Variance of a single outcome, by source"
    drawn = [stacked(name="variance", title=title, parts=parts, narrow=narrow) for narrow in (False, True)]
    return Chart(
        name="variance",
        title="Where the variance of a single outcome comes from",
        lede="Hatched: it cancels between agents on the same tasks.",
        heads=("Source", "Share", "Variance", "Between agents"),
        rows=tuple(
            (
                drawn_part.label,
                f"{words.percent(drawn_part.share)}%",
                f"{part['variance']:.5f}",
                "cancels" if drawn_part.hatched else "stays",
            )
            for drawn_part, part in zip(parts, components, strict=True)
        ),
        svg=drawn[0],
        narrow=drawn[1],
    )


def _source(name: str, is_pooled: bool = False) -> str:
    if name == "Residual" and is_pooled:
        return POOLED
    return SOURCES.get(name) or name.replace(":", " × ").capitalize()


def _meaning(name: str, is_pooled: bool) -> str:
    if _cancels(name):
        return CANCELS
    return "" if is_pooled and name == "Residual" else SAID.get(name, "")


def _cancels(name: str) -> bool:
    """Whether two agents on the same tasks, prompts and judges share it."""
    return name != "Residual" and "agent" not in name.split(":")


def uncertainty_page(benchmark: Benchmark, params: QueryDict | None = None) -> UncertaintyPage | None:
    study = latest_study(VarianceStudy, benchmark)
    if study is None:
        return None
    page = UncertaintyPage(study, is_behind=study.data_version < benchmark.data_version)
    if not study.result["available"]:
        return page
    return replace(page, what_if=what_if(study, params or QueryDict()))


def what_if(study: VarianceStudy, params: QueryDict) -> WhatIf:
    """Project the design of the address; without one the form alone."""
    seen = varied(study.result)
    levers = (
        _lever("trials", "R", "Trials", 1, params),
        _lever("tasks", "N", "Tasks", study.result["levels"]["task"], params),
        _lever("prompts", "V", "Prompts", seen.get("prompt", 1), params, is_varied="prompt" in seen),
        _lever("judges", "M", "Judges", seen.get("judge", 1), params, is_varied="judge" in seen),
    )
    estimand = params.get("estimand", "")
    form = WhatIf(levers, estimand if estimand in ESTIMANDS else "finite")
    return _project(study, form) if form.has_values and not form.faults else form


def _project(study: VarianceStudy, form: WhatIf) -> WhatIf:
    from leaderboard.studies.projections import project_error  # few ask, and it imports what fits

    reading = {"estimand": form.estimand, "sensitivity": "exclude"}
    design = {
        lever.letter: lever.value for lever in form.levers if lever.value is not None and lever.is_varied
    }
    try:
        return replace(
            form,
            projection=project_error(study=study, design=design, **reading),
            before=project_error(study=study, design={}, **reading),
        )
    except Refusal as refusal:
        return replace(form, refusal=str(refusal))


def _lever(key: str, letter: str, label: str, n: int, params: QueryDict, *, is_varied: bool = True) -> Lever:
    text = params.get(key, "").strip()[:12]
    number = int(text) if text.isascii() and text.isdecimal() else 0
    value = number if 1 <= number <= MAX_LEVELS else None
    return Lever(key, letter, label, n, text, value, is_varied)


def _join(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _degrees(df: float | None) -> str:
    """What the standard error rests on where a facet has few levels: 1 degree of freedom."""
    return "" if df is None else f"{words.counted(round(df), 'degree')} of freedom"


def _trials(agent: Mapping[str, Any]) -> str:
    """How many outcomes a cell has: 3, or 1–5."""
    fewest, most = agent.get("replicates") or (agent["levels"]["R"],) * 2  # older studies tell one number
    return f"{fewest:,}" if fewest == most else f"{fewest:,}–{most:,}"


def _ratio(value: float | None, to: float | None) -> float | None:
    return value / to if value is not None and to else None


def plot_variance(benchmark: Benchmark, params: QueryDict) -> Chart | None:
    page = uncertainty_page(benchmark)
    return page.variance if page else None


@require_safe
@for_all
def uncertainty(request: HttpRequest, slug: str) -> HttpResponse:
    benchmark = visible(slug)
    page = uncertainty_page(benchmark, request.GET)
    shown = {"page": page, "benchmark": benchmark, "here": "uncertainty"}
    return render(request, "pages/uncertainty.html", shown)
