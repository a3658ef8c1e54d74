"""A study in plain language: one paragraph.

Source: Messing, *Hidden Measurement Error in LLM Pipelines*, Appendix A (step 5).
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from analytics.outcome_table import naive_standard_error
from analytics.tee.agent_projection import doubled
from analytics.tee.components import FACETS, RESIDUAL
from analytics.tee.dstudy import project
from analytics.tee.total_error import TotalError
from analytics.text import enumerated

SCORES = (0.0, 1.0)
ANY = (-math.inf, math.inf)


class BoardEstimate(NamedTuple):
    """The mean of a study as a board states it; None with a reason where there is no standard error.

    naive_se: √(p(1 − p)/k) of its k tasks.
    """

    score: float
    se: float | None
    lower: float | None
    upper: float | None
    naive_se: float | None
    reason: str = ""


def paragraph(
    study: TotalError,
    within: tuple[float, float] = ANY,
    on_board: BoardEstimate | None = None,
    *,
    is_mean_of_judges: bool = False,
) -> str:
    """Return a study in plain language, the mean `within` what it can be.

    on_board: the mean as a board states it; then without figures that stand beside the paragraph.
    is_mean_of_judges: whether outcomes are means of several judges' verdicts.
    """
    if on_board:
        return " ".join(_beside_board(study, on_board))
    one_judge = "not measured: judge (one level)" if is_mean_of_judges else ""
    return " ".join(_sentences(study, within, [note for note in study.notes if note != one_judge]))


def _sentences(study: TotalError, within: tuple[float, float], notes: Iterable[str]) -> Iterator[str]:
    layout = study.layout
    crossed = [
        counted_levels(layout.levels[letter], letter) for letter in "NVMH" if layout.levels[letter] > 1
    ]
    fewest, most = layout.replicates
    if most > 1:
        replicates = counted_levels(most, "R")
        crossed.append(replicates if fewest == most else f"{fewest} to {replicates}")
    yield f"The mean over {enumerated(crossed)} ({layout.n_rows} outcomes) is {study.theta:.4g}."
    yield _error_of(study, within)
    yield _interval(study, within)
    yield _made_of(study)
    yield _best_change(study)
    yield from (f"{note[0].upper()}{note[1:]}." for note in notes)


def _beside_board(study: TotalError, on_board: BoardEstimate) -> Iterator[str]:
    if on_board.se is None:
        yield f"It has no standard error: {on_board.reason}."
    if on_board.lower is not None and on_board.upper is not None:
        yield f"The 95% interval is {100 * on_board.lower:.1f}% to {100 * on_board.upper:.1f}%."
    if few := study.few_levels:
        counted = " and ".join(counted_levels(study.layout.levels[letter], letter) for letter in few)
        yield f"{counted} of one agent are too few to estimate its sources of error."
    elif sum(bool(row.share_of_mean) for row in study.table()) > 1:  # else nothing but its trials vary
        yield _made_of(study)
        yield _best_change(study)


def _error_of(study: TotalError, within: tuple[float, float]) -> str:
    about = {"domain": "for items drawn from the same domain", "finite": "for exactly these items"}[
        study.reading.estimand
    ]
    panel = "counting" if study.reading.sensitivity == "include" else "setting aside"
    chosen = " and ".join(FACETS[letter] for letter in "MH" if study.layout.levels[letter] > 1)
    choice = f" and {panel} the choice of {chosen}" if chosen else ""
    naive_se = study.naive_se
    if within == SCORES:  # as boards state it
        naive_se = naive_standard_error(study.theta, study.layout.levels["N"])
    naive = f"the naive one is {naive_se:.4g}, so that the ratio is {study.se / naive_se:.2f}"
    return f"Its standard error, {about}{choice}, is {study.se:.4g}; {naive}."


def _interval(study: TotalError, within: tuple[float, float]) -> str:
    interval, name = study.interval(within=within), study.reading.interval_name
    if (interval.lower, interval.upper) == within:
        few = " and ".join(counted_levels(study.layout.levels[letter], letter) for letter in study.few_levels)
        return f"There is no 95% {name}: {few or 'so few outcomes'} leave every score from 0 to 1."
    degrees = (
        "" if interval.df is None else f"{interval.df:.3g} degree{'' if interval.df == 1 else 's'} of freedom"
    )
    how = "normal quantile" if interval.df is None else f"{interval.method} t, {degrees}"
    return f"The {interval.level:.0%} {name} is {interval.lower:.4g} to {interval.upper:.4g} ({how})."


def _made_of(study: TotalError) -> str:
    rows = [row for row in study.table() if (row.share_of_mean or 0.0) >= 0.05][:3]
    parts = []
    for row in rows:
        words = row.name.replace(" (fixed)", " choice").replace(":", " by ")
        parts.append(f"{'replicate noise' if row.name == RESIDUAL else words} ({row.share_of_mean:.0%})")
    return f"The variance of the mean is mostly {enumerated(parts)}."


def _best_change(study: TotalError) -> str:
    design = study.layout.design
    measured = [letter for letter, count in design.items() if count > 1 and letter in "NVM"]
    measured += ["R"] if study.layout.replicates[1] > 1 else []

    def se_of(changed: Mapping[str, int]) -> float:
        return project(study.components, changed, study.reading).se

    se_with = doubled(se_of, design, study.reading, measured)
    now = se_of(design)
    helpful = [letter for letter, se in se_with.items() if se < now]
    if not helpful:
        return "No change of the design that can be projected would reduce it."
    less = 1.0 - (se_with[helpful[0]] / now) ** 2
    return (
        f"At the cost of twice as many outcomes, twice as many {FACETS[helpful[0]]} would help most: "
        f"{less:.0%} less variance."
    )


def counted_levels(count: int, letter: str) -> str:
    """Return 1 item, 3 prompts, for a facet's letter."""
    word = FACETS[letter]
    singular = word[:-3] + "y" if word.endswith("ies") else word.removesuffix("s")
    return f"{count} {singular if count == 1 else word}"
