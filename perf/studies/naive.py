"""Naive against total evaluation error: the pipelines that somebody might have run alone.

For each pipeline (a prompt, a judge, a temperature), the intervals ȳ ± z·s/√N and ȳ ± z·√Var(V = 1, M = 1,
H = 1), the ratio of their widths, and how many of either cover the grand mean of the full factorial.

Source: Messing, *Hidden Measurement Error in LLM Pipelines*, Appendix K.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from analytics.arrays import FloatArray
from analytics.errors import CoreError
from analytics.tee import Declaration, TotalError, project
from analytics.tee.design import WORDS
from analytics.tee.total_error import Columns, naive_standard_error, outcome_of


@dataclass(frozen=True)
class Pipeline:
    """One single-configuration pipeline: its levels, mean, both standard errors, and what they cover."""

    levels: Mapping[str, object]
    mean: float
    naive_se: float
    tee_se: float
    naive_covers: bool
    tee_covers: bool


@dataclass(frozen=True)
class NaiveAgainstTEE:
    """Every single-configuration pipeline of a study against its grand mean.

    Attributes
    ----------
    pipelines : tuple of Pipeline
    left_out : tuple of str
        Pipelines without an error of their own, and why.
    target : float
        Grand mean of the full factorial.
    """

    pipelines: tuple[Pipeline, ...]
    left_out: tuple[str, ...]
    target: float

    @property
    def width_ratio(self) -> float:
        """Naive width over TEE width, mean over pipelines."""
        return float(np.mean([pipeline.naive_se / pipeline.tee_se for pipeline in self.pipelines]))

    @property
    def naive_coverage(self) -> float:
        """Share of naive intervals that cover the target."""
        return float(np.mean([pipeline.naive_covers for pipeline in self.pipelines]))

    @property
    def tee_coverage(self) -> float:
        """Share of TEE intervals that cover the target."""
        return float(np.mean([pipeline.tee_covers for pipeline in self.pipelines]))


def naive_against_tee(columns: Columns, study: TotalError, level: float = 0.95) -> NaiveAgainstTEE:
    """Compare the naive and the TEE interval of each single-configuration pipeline.

    Parameters
    ----------
    columns : mapping of str to array, shape (n_rows,)
        Those the study was made from.
    study : TotalError
        Its reading is that of the TEE standard error: the published comparison has ``exclude``; with
        ``include`` the choice of judge and temperature counts, as the target asks.
    level : float
        Nominal coverage; normal quantile.

    Raises
    ------
    CoreError
        When no pipeline has an error of its own, or `level` is not inside (0, 1).
    """
    if not 0.0 < level < 1.0:
        raise CoreError(f"a level lies inside (0, 1), not at {level}", code="design")
    alone = study.layout.design | {"V": 1, "M": 1, "H": 1}
    tee_se = project(study.components, alone, study.reading).se
    z = float(ndtri((1.0 + level) / 2.0))
    pipelines: list[Pipeline] = []
    left_out: list[str] = []
    for levels, items, outcome in _pipelines(columns, study.layout.declaration):
        try:
            naive_se = naive_standard_error(items, outcome)
        except CoreError as refusal:
            left_out.append(f"{_named(levels)}: {refusal}")
            continue
        pipelines.append(_pipeline(levels, _item_mean(items, outcome), naive_se, tee_se, study.theta, z))
    if not pipelines:
        raise CoreError(f"no pipeline has an error of its own ({'; '.join(left_out[:3])})", code="design")
    return NaiveAgainstTEE(tuple(pipelines), tuple(left_out), study.theta)


def _pipelines(
    columns: Columns, declaration: Declaration
) -> Iterator[tuple[dict[str, object], npt.NDArray[np.generic], FloatArray]]:
    """Levels, items and outcomes of every combination of prompt, judge and temperature that occurs."""
    facets = {WORDS[f]: column for f, column in declaration.facets().items() if f in ("V", "M", "H")}
    labels = {word: np.asarray(columns[column]) for word, column in facets.items()}
    items, outcome = np.asarray(columns[declaration.item]), outcome_of(columns, declaration)
    for combination in product(*(np.unique(values) for values in labels.values())):
        levels = dict(zip(labels, combination, strict=True))
        rows = np.ones(outcome.shape, dtype=np.bool_)
        for word, level in levels.items():
            rows &= labels[word] == level
        if rows.any():
            yield levels, items[rows], outcome[rows]


def _item_mean(items: npt.NDArray[np.generic], outcome: FloatArray) -> float:
    _, code = np.unique(items, return_inverse=True)
    return float(np.mean(np.bincount(code, weights=outcome) / np.bincount(code)))


def _pipeline(
    levels: Mapping[str, object], mean: float, naive_se: float, tee_se: float, target: float, z: float
) -> Pipeline:
    distance = abs(mean - target)
    return Pipeline(levels, mean, naive_se, tee_se, distance <= z * naive_se, distance <= z * tee_se)


def _named(levels: Mapping[str, object]) -> str:
    return ", ".join(f"{word} {level}" for word, level in levels.items()) or "the only pipeline"
