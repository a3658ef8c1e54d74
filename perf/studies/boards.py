"""Simulated boards in time order: agents that come one by one to a benchmark that changes, or does not.

Model
-----
Agent i passes a trial of task j with probability σ(c_i·(θ_i + ε_ij − b_j)), θ ~ N(0, 1), ε ~ N(0, 1) and
b ~ N(μ, s²), where (μ, s) leaves about a tenth or a half of the tasks in the band of 30 to 70%; where it is a
tenth, most others are hard, or easy. Each cell has R trials. The first n_ref agents are the reference, from
which the band is chosen; 170 follow. c is 1 unless runs become noisier. Abilities are flat, or rise by one
standard deviation over the 170.

A change begins after 20 later agents, *lost at once* with the first one: from then on all agents differ.

========  ==========================================================================================
change    what it does
========  ==========================================================================================
jump      θ rises by 1.5, one and a half standard deviations
lost      on the tasks of the band each agent has the ability of another one; so has *lost at once*
tuned     on the tasks of the band agents have 1.5 logits more
solved    on the tasks of the band agents have 4 logits more
noisy     c = .5: trials of one task agree less, at the same ability
========  ==========================================================================================

Symbols: X ``means``, s² ``variances``, P ``chances`` (n_agents, n_tasks); S ``tasks`` (k,).

Not done here
-------------
No agent shares a model or a scaffold with another, none lacks an outcome.

Source
------
Rasch, *Probabilistic Models*, 1960, with an interaction.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import expit

from analytics.arrays import FloatArray, IndexArray
from selection.bands import mid_range

N_LATER = 170
REFERENCES = (15, 30)
CHANGED_AT = 20
DIFFICULTIES = {"a tenth": (2.9, 1.6), "an easy tenth": (-2.9, 1.6), "a half": (0.0, 1.63)}

Change = Literal["", "jump", "lost", "lost at once", "tuned", "solved", "noisy"]
Share = Literal["a tenth", "an easy tenth", "a half"]
SHARES: tuple[Share, ...] = ("a tenth", "a half")


@dataclass(frozen=True)
class Cell:
    """Size of a board: tasks, share of them in the band, trials a task, reference agents, abilities."""

    m: int
    share: Share
    n_trials: int
    n_ref: int
    rising: bool = False


@dataclass(frozen=True, eq=False)
class Board:
    """What was observed, agents in time order; the first `n_ref` chose the tasks."""

    cell: Cell
    means: FloatArray
    variances: FloatArray
    chances: FloatArray
    tasks: IndexArray

    @property
    def n_ref(self) -> int:
        return self.cell.n_ref

    @property
    def outside(self) -> IndexArray:
        return np.setdiff1d(np.arange(self.cell.m), self.tasks)


def cells(*, rising: tuple[bool, ...] = (False,), shares: tuple[Share, ...] = SHARES) -> list[Cell]:
    return [
        Cell(m, share, n_trials, n_ref, up)
        for m in (60, 500)
        for share in shares
        for n_trials in (1, 5)
        for n_ref in REFERENCES
        for up in rising
    ]


def board(cell: Cell, rng: np.random.Generator, change: Change = "") -> Board:
    """Draw a board; one without a band is drawn again."""
    while True:
        n = cell.n_ref + N_LATER
        b = rng.normal(*DIFFICULTIES[cell.share], cell.m)
        theta = rng.standard_normal(n)
        if cell.rising:
            theta[cell.n_ref :] += np.linspace(0, 1, N_LATER)
        logits = theta[:, None] + rng.standard_normal((n, cell.m)) - b
        first = _trials(logits[: cell.n_ref], cell.n_trials, rng)
        band = mid_range(first.mean(axis=2))
        if band.suited and band.size < cell.m:
            n_before = 0 if change == "lost at once" else CHANGED_AT
            _change(logits[cell.n_ref + n_before :], band.tasks, change, rng)
            trials = np.concatenate([first, _trials(logits[cell.n_ref :], cell.n_trials, rng)])
            repeated = cell.n_trials > 1
            variances = trials.var(axis=2, ddof=1) if repeated else np.full(trials.shape[:2], np.nan)
            return Board(cell, trials.mean(axis=2), variances, expit(logits), band.tasks)


def without_outcomes(cell: Cell) -> Board:
    """A board for what is drawn beside its outcomes."""
    nothing = np.empty((0, cell.m))
    return Board(cell, nothing, nothing, nothing, np.empty(0, np.intp))


def _trials(logits: FloatArray, n_trials: int, rng: np.random.Generator) -> FloatArray:
    return (rng.random((*logits.shape, n_trials)) < expit(logits)[:, :, None]).astype(float)


def _change(logits: FloatArray, tasks: IndexArray, change: Change, rng: np.random.Generator) -> None:
    """Change the later agents in place."""
    if change == "jump":
        logits += 1.5
    elif change == "tuned":
        logits[:, tasks] += 1.5
    elif change == "solved":
        logits[:, tasks] += 4.0
    elif change == "noisy":
        logits *= 0.5
    elif change in ("lost", "lost at once"):
        logits[:, tasks] = logits[rng.permutation(len(logits))][:, tasks]
