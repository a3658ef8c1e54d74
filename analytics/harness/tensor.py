"""The score tensor: s[model, task, run], with names and a validity mask."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from analytics.arrays import FloatArray, Mask, coded, read_only
from analytics.differences.estimates import NamedInterval
from analytics.errors import CoreError
from analytics.flat_file import FlatFile

BOOTSTRAP = "bootstrap over tasks, conditional on these models"
refuse = partial(CoreError, code="harness")


@dataclass(frozen=True, eq=False)
class ScoreTensor:
    """Scores of every model on every task in every run.

    models, tasks, runs: names, lengths n_models, n_tasks, n_runs; ascending, none twice.
    scores: (n_models, n_tasks, n_runs); finite, or NaN where there is no score.
    valid: (n_models, n_tasks, n_runs); True only where there is a score. A score with an invalid mark takes
        part in all figures but coverage; `tensor_of_columns` makes it missing.
    Raises CoreError: with the field at fault.
    """

    models: tuple[str, ...]
    tasks: tuple[str, ...]
    runs: tuple[str, ...]
    scores: FloatArray
    valid: Mask

    def __post_init__(self) -> None:
        fields = {"models": self.models, "tasks": self.tasks, "runs": self.runs}
        for field, names in fields.items():
            if not names:
                raise refuse(f"a score tensor without {field}")
            if list(names) != sorted(set(names)):
                raise refuse(f"{field} are not in ascending order of name, none twice")
        shape = tuple(map(len, fields.values()))
        if self.scores.shape != shape or self.valid.shape != shape or self.valid.dtype != np.bool_:
            raise refuse(f"scores {self.scores.shape} and valid {self.valid.shape} are not {shape}")
        if np.isinf(self.scores).any() or (self.valid & np.isnan(self.scores)).any():
            raise refuse("a valid score is a finite number, and one that is not valid is that or NaN")
        object.__setattr__(self, "scores", read_only(np.asarray(self.scores, dtype=np.float64)))
        object.__setattr__(self, "valid", read_only(self.valid))

    @property
    def complete(self) -> bool:
        """Whether every cell has a score."""
        return not bool(np.isnan(self.scores).any())


def tensor_of_columns(
    model: Sequence[str],
    task: Sequence[str],
    run: Sequence[str],
    score: npt.ArrayLike,
    valid: npt.ArrayLike | None = None,
) -> ScoreTensor:
    """Build the tensor from one row for each (model, task, run), none twice.

    score, valid: (n_rows,); not looked at where invalid; true when not given, but without a row.
    """
    (models, i), (tasks, j), (runs, k) = (coded(column) for column in (model, task, run))
    codes = (i, j, k)
    values = np.asarray(score, dtype=np.float64)
    counted = np.ones(values.shape, dtype=np.bool_) if valid is None else np.asarray(valid, dtype=np.bool_)
    if len({values.shape, counted.shape, i.shape, j.shape, k.shape}) > 1:
        raise refuse("the columns model, task, run, score and valid differ in length")
    cell = np.ravel_multi_index(codes, [max(len(column), 1) for column in (models, tasks, runs)])
    order = np.argsort(cell, kind="stable")
    again = np.flatnonzero(cell[order][1:] == cell[order][:-1])
    if again.size:
        row = order[again[0] + 1]
        names = (models[i[row]], tasks[j[row]], runs[k[row]])
        where = ", ".join(map(repr, names))
        raise refuse(f"row {row}: model, task and run {where} occur twice")
    scores = np.full((len(models), len(tasks), len(runs)), np.nan)
    scores[codes] = np.where(counted, values, np.nan)
    valid = np.zeros(scores.shape, dtype=np.bool_)
    valid[codes] = counted
    return ScoreTensor(models, tasks, runs, scores, valid)


def tensor_of_file(file: FlatFile) -> ScoreTensor:
    """Build the tensor of a flat file: a model is an agent, a run each combination of setting and trial."""
    label = [
        f"{'/'.join('' if part is None else str(part) for part in file.settings[setting])}#{trial}"
        for setting, trial in zip(file.setting.tolist(), file.trial.tolist(), strict=True)
    ]
    agent, task = (
        [names[code] for code in codes.tolist()]
        for names, codes in ((file.agents, file.agent), (file.tasks, file.task))
    )
    return tensor_of_columns(agent, task, label, file.outcome, file.valid)


def require_levels(
    tensor: ScoreTensor, figure: str, *, models: int = 1, tasks: int = 1, runs: int = 1
) -> None:
    """Refuse a figure that needs more models, tasks or runs than there are."""
    for noun, names, needed in (
        ("model", tensor.models, models),
        ("task", tensor.tasks, tasks),
        ("run", tensor.runs, runs),
    ):
        if len(names) < needed:
            levels = f"one {noun}" if len(names) == 1 else f"{len(names)} {noun}s"
            raise refuse(f"{figure} is not measured: {levels} (at least {needed} are needed)")


def percentile_interval(draws: FloatArray, figure: str, method: str = BOOTSTRAP) -> NamedInterval:
    """Percentiles .025 and .975 of bootstrap draws; refused where a draw has no value."""
    n_undefined = int(np.count_nonzero(~np.isfinite(draws)))
    if n_undefined:
        raise refuse(f"no bootstrap of {figure}: it cannot be said in {n_undefined} of {draws.size} draws")
    lower, upper = np.percentile(draws, [2.5, 97.5])
    return NamedInterval(float(lower), float(upper), method)
