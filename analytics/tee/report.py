"""A study in plain language: one paragraph.

Model
-----
Nothing is computed here. The paragraph says what was measured, what the standard error is made of, how it
compares with the naive one, which single change of the design would help most, and what was never measured.

Not done here
-------------
No figure is rounded but in sentences. No judgement whether an error is small enough. No reporting checklist:
most of its items are what only a person can tell.

Source
------
Messing, *Hidden Measurement Error in LLM Pipelines*, Appendix A (step 5).
"""

from collections.abc import Iterator, Mapping

from analytics.tee.advice import doubled
from analytics.tee.components import FACETS, RESIDUAL
from analytics.tee.dstudy import project
from analytics.tee.total_error import TotalError


def paragraph(study: TotalError) -> str:
    """Tell a study in plain language, with its figures."""
    return " ".join(_sentences(study))


def _sentences(study: TotalError) -> Iterator[str]:
    levels = study.layout.levels
    crossed = [_counted(levels[letter], letter) for letter in "NVMHR" if levels[letter] > 1]
    yield f"The mean over {_listed(crossed)} ({study.layout.n_rows} outcomes) is {study.theta:.4g}."
    yield _error_of(study)
    yield _interval(study)
    yield _made_of(study)
    yield _best_change(study)
    yield from (f"{note[0].upper()}{note[1:]}." for note in study.notes)


def _error_of(study: TotalError) -> str:
    about = {
        "domain": "for items drawn from the same domain",
        "finite": "for exactly these items",
    }[study.reading.estimand]
    panel = "counting" if study.reading.sensitivity == "include" else "setting aside"
    chosen = " and ".join(FACETS[letter] for letter in "MH" if study.layout.levels[letter] > 1)
    choice = f" and {panel} the choice of {chosen}" if chosen else ""
    naive = f"the naive one is {study.naive_se:.4g}, so that the ratio is {study.se_ratio:.2f}"
    return f"Its standard error, {about}{choice}, is {study.se:.4g}; {naive}."


def _interval(study: TotalError) -> str:
    found = study.interval()
    how = "normal quantile" if found.df is None else f"{found.method} t, {found.df:.3g} degrees of freedom"
    return f"The {found.level:.0%} {found.name} is {found.lower:.4g} to {found.upper:.4g} ({how})."


def _made_of(study: TotalError) -> str:
    rows = [row for row in study.table() if (row.share_of_mean or 0.0) >= 0.05][:3]
    parts = [f"{_word(row.name)} ({row.share_of_mean:.0%})" for row in rows]
    return f"The variance of the mean is mostly {_listed(parts)}."


def _best_change(study: TotalError) -> str:
    """Compare changes that cost the same, over facets that the study measured."""
    design = study.layout.design
    measured = [letter for letter, count in design.items() if count > 1 and letter in "NVMR"]

    def se_of(changed: Mapping[str, int]) -> float:
        return project(study.components, changed, study.reading).se

    found = doubled(se_of, design, study.reading, measured)
    helpful = [letter for letter, se in found.items() if se < study.projection.se]
    if not helpful:
        return "No change of the design that can be projected would reduce it."
    less = 1.0 - (found[helpful[0]] / study.projection.se) ** 2
    return (
        f"At the cost of twice as many outcomes, twice as many {FACETS[helpful[0]]} would help most: "
        f"{less:.0%} less variance."
    )


def _counted(count: int, letter: str) -> str:
    word = FACETS[letter]
    singular = word[:-3] + "y" if word.endswith("ies") else word.removesuffix("s")
    return f"{count} {singular if count == 1 else word}"


def _word(name: str) -> str:
    if name == RESIDUAL:
        return "replicate noise"
    return name.replace(" (fixed)", " choice").replace(":", " by ")


def _listed(parts: list[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
