"""How agents differ from one of them: in score, in words, on a drawing, and task by task."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from leaderboard.boards.models import Entry
from leaderboard.plots.chart import Chart
from leaderboard.plots.dots import DotRow, dots
from leaderboard.plots.scales import ticks_125
from leaderboard.studies.answers import words

DECIMALS = 9
NUMBERS = ("None", "One", "Two", "Three", "Four")


class Wins(NamedTuple):
    """On how many tasks one agent does better, worse and alike, and how many they cannot be counted on."""

    n_better: int
    n_worse: int
    n_alike: int
    n_not_shared: int

    @property
    def text(self) -> str:
        n_both = sum(self) - self.n_not_shared
        alike = f"{self.n_alike:,} of the {n_both:,} both ran" if self.n_not_shared else ""
        alike = alike or words.counted(self.n_alike, "task")
        return f"wins {self.n_better:,}, loses {self.n_worse:,}, alike on {alike}"


def wins(other: npt.ArrayLike, reference: npt.ArrayLike) -> Wins:
    """Count the tasks; NaN is no valid outcome. Outcomes are rounded to 1e-9."""
    d = np.round(np.asarray(other) - np.asarray(reference), DECIMALS)
    counts = [int(np.count_nonzero(which)) for which in (d > 0, d < 0, d == 0, np.isnan(d))]
    return Wins(*counts)


@dataclass(frozen=True)
class ComparedAgent:
    """An agent of the board, as it is called on this page."""

    entry: Entry
    trust: str = ""  # as it is shown beside its name; empty where every agent is verified

    @property
    def pk(self) -> int:
        return self.entry.agent_id

    @property
    def name(self) -> str:
        return str(self.entry.name)


@dataclass(frozen=True)
class AgentDifference:
    """How an agent differs from the reference, in score; without an error or a critical value no ends."""

    agent: ComparedAgent
    value: float | None
    lower: float | None = None
    upper: float | None = None
    word: str = ""  # tied, better, worse; empty where that cannot be told
    wins: Wins | None = None
    estimated: bool = False
    reason: str = ""

    @property
    def text(self) -> str:
        if self.value is None:
            return "not compared"
        points = f"{points_text(self.value)} points"
        return f"{'~' if self.estimated else ''}{points}, {self.word}" if self.word else points

    @property
    def note(self) -> str:
        return "; ".join(filter(None, (self.agent.trust, self.wins.text if self.wins else "")))


@dataclass(frozen=True)
class DifferingTask:
    """A task on which agents differ, and what each has there."""

    name: str
    pk: int
    cells: tuple[str, ...]
    spread: float
    address: str = ""

    @property
    def tds(self) -> SafeString:
        return SafeString("".join(_td(text) for text in self.cells))


@lru_cache(maxsize=256)
def _td(text: str) -> SafeString:
    css = {"failed": ' class="failed"', "not run": ' class="none"'}.get(text, "")
    return format_html("<td{}>{}</td>", SafeString(css), text)


# ------------------------------------------------------------------------------------------------ sentences


def verdict_of(differences: Sequence[AgentDifference]) -> str:
    """Say how many are tied with the reference."""
    decided = [one for one in differences if one.word]
    n, n_tied = len(decided), sum(one.word == "tied" for one in decided)
    if not n:
        return "Who is better cannot be said."
    if n == 1:
        surely = f"<bdi>{{}}</bdi> is surely {decided[0].word}."
        return "They are tied." if n_tied else format_html(surely, decided[0].agent.name)
    if n_tied == n:
        return f"{'Both' if n == 2 else f'All {NUMBERS[n].lower()}'} are tied with it."
    of = "two" if n == 2 else f"{NUMBERS[n].lower()}"
    return f"{NUMBERS[n_tied]} of these {of} {'is' if n_tied <= 1 else 'are'} tied with it."


def rest_of(differences: Sequence[AgentDifference], over: str) -> SafeString:
    """Name who is surely worse and better, and on which tasks."""
    clauses = []
    for word in ("worse", "better"):
        names = [one.agent.name for one in differences if one.word == word]
        if names and len(differences) > 1:
            only = "Only " if len(names) == 1 else ""
            verb = "is" if len(names) == 1 else "are"
            clauses.append(format_html("{}{} {} surely {}", only, _join_names(names), verb, word))
    if not clauses:
        return format_html("On {}.", over)
    return format_html("{} on {}.", format_html_join("; ", "{}", ((one,) for one in clauses)), over)


def _join_names(names: Sequence[str]) -> SafeString:
    *first, last = [format_html("<bdi>{}</bdi>", name) for name in names]
    joined = format_html_join(", ", "{}", ((name,) for name in first))
    return format_html("{} and {}", joined, last) if first else last


def points_text(value: float) -> str:
    """Return −6.1 for −0.061, +2.0 for 0.02."""
    points = words.percent(value)
    return points if points.startswith("−") or float(points) == 0 else f"+{points}"


# ---------------------------------------------------------------------------------------------------- chart


def compare_chart(differences: Sequence[AgentDifference], reference: str) -> Chart | None:
    """Draw the differences to the reference; None where there is none to draw."""
    shown = [one for one in differences if one.value is not None]
    if not shown:
        return None
    ends = [end for one in shown for end in (one.value, one.lower, one.upper) if end is not None]
    lo, hi = min([*ends, -0.02]), max([*ends, 0.02])
    rows = [
        DotRow(
            one.agent.name,
            one.note,
            one.text,
            one.value,
            one.lower,
            one.upper,
            hollow=one.word in ("worse", "better"),
        )
        for one in shown
    ]
    drawn = [
        dots(
            name="compare",
            title=f"Differences in score to {reference}",
            rows=rows,
            lo=lo,
            hi=hi,
            ticks=[(tick, points_text(tick).removesuffix(".0")) for tick in ticks_125(lo, hi, 5)],
            rules=[(0.0, "as good as the reference")],
            narrow=narrow,
        )
        for narrow in (False, True)
    ]
    return Chart(
        name="compare",
        title="Difference in points, task by task, with 95% intervals for all pairs of the board at once",
        lede="An interval that holds 0 is a tie. Hollow: surely better or worse.",
        heads=("Agent", "Points", "From", "To", "Wins", "Loses", "Alike", "Not run by both", "It is"),
        rows=tuple(_cells(one) for one in shown),
        svg=drawn[0],
        narrow=drawn[1],
    )


def _cells(one: AgentDifference) -> tuple[str, ...]:
    ends = ["not known" if end is None else points_text(end) for end in (one.value, one.lower, one.upper)]
    if one.estimated:
        ends[0] = f"~{ends[0]}"
    counts = [f"{n:,}" for n in one.wins] if one.wins else ["not known"] * 4
    return (one.agent.name, *ends, *counts, one.word or "not known")


# -------------------------------------------------------------------------------------------------- by task


def n_shared(columns: Sequence[npt.ArrayLike | None]) -> int:
    """Count the tasks on which two agents or more have an outcome."""
    known = [~np.isnan(np.asarray(column, dtype=np.float64)) for column in columns if column is not None]
    return int(np.count_nonzero(np.sum(known, axis=0) > 1)) if known else 0


def differing(
    columns: Sequence[npt.ArrayLike | None], names: Sequence[str], pks: Sequence[int], *, base: str = ""
) -> list[DifferingTask]:
    """List the tasks on which outcomes differ, those that differ most first.

    columns: (n_tasks,); the outcomes of each agent, NaN without a valid one; None for one that is not
        compared.
    names, pks: length n_tasks.
    base: what the addresses of tasks begin with, before their number; empty where they have none.
    """
    arrays = [None if column is None else np.asarray(column, dtype=np.float64) for column in columns]
    known = np.array([column for column in arrays if column is not None])
    spread = np.round(np.fmax.reduce(known, axis=0) - np.fmin.reduce(known, axis=0), DECIMALS)
    rows = [
        DifferingTask(
            names[j],
            pks[j],
            tuple(_outcome(None if column is None else float(column[j])) for column in arrays),
            float(spread[j]),
            f"{base}{pks[j]}" if base else "",
        )
        for j in np.flatnonzero(spread > 0).tolist()
    ]
    return sorted(rows, key=lambda row: -row.spread)


def _outcome(value: float | None) -> str:
    if value is None or np.isnan(value):
        return "not run"
    if value in (0.0, 1.0):
        return "passed" if value else "failed"
    return f"{words.percent(value)}%"
