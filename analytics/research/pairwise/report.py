"""What the comparisons of a file say: strengths with ranks, position effects, cells, people; as plain values.

Not done here: nothing is estimated. A board is never ordered by this.

Source: As in the modules that it asks.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from analytics.arrays import DECIMALS
from analytics.differences.domain_ranks import RankIntervals
from analytics.progress import Progress
from analytics.research.pairwise.agreement import Agreement, agreement
from analytics.research.pairwise.bradley_terry import BradleyTerry, elo, fit
from analytics.research.pairwise.cells import CellBootstrap, bootstrap_cells
from analytics.research.pairwise.comparisons import Battles, Comparisons
from analytics.research.pairwise.joint_ranks import joint_ranks

ITEMS_PER_PARAMETER = 2


@dataclass(frozen=True, eq=False)
class Pairwise:
    """The answer.

    cells: single cells, and the panel.
    """

    fit: BradleyTerry
    ranks: RankIntervals
    cells: tuple[CellBootstrap, CellBootstrap] | None
    agreement: Agreement | None
    notes: tuple[str, ...]

    def values(self) -> dict[str, Any]:
        """Return one object of plain values, the best agent first."""
        return {
            "agents": self._agents(),
            "position": self._positions(),
            "log_likelihood": self.fit.log_likelihood,
            "n_items": self.fit.n_items,
            "n_comparisons": int(self.fit.n_comparisons),
            "critical_value": self.ranks.critical,
            "cells": None if self.cells is None else [self._cells(one) for one in self.cells],
            "agreement": None if self.agreement is None else _agreement(self.agreement),
            "method": _method(self.fit.prior),
            "notes": list(self.notes),
        }

    def _agents(self) -> list[dict[str, Any]]:
        model, ranks, points = self.fit, self.ranks, elo(self.fit.strengths)
        return [
            {
                "agent": model.agents[i],
                "strength": float(model.strengths[i]),
                "se": float(model.se[i]),
                "elo": float(points[i]),
                "rank_lo": int(ranks.lower[i]),
                "rank_hi": int(ranks.upper[i]),
            }
            for i in np.argsort(-np.round(model.strengths, DECIMALS), kind="stable").tolist()
        ]

    def _positions(self) -> dict[str, dict[str, float]]:
        errors = self.fit.se[len(self.fit.agents) :]
        return {
            judge: {"effect": float(effect), "se": float(se)}
            for judge, effect, se in zip(self.fit.judges, self.fit.positions, errors, strict=True)
        }

    def _cells(self, one: CellBootstrap) -> dict[str, Any]:
        return {
            "pipeline": one.pipeline,
            "ratio": one.ratio,
            "n_draws": one.n_draws,
            "n_left_out": one.n_left_out,
            "se": dict(zip(self.fit.agents, one.se.tolist(), strict=False)),
            "se_items": dict(zip(self.fit.agents, one.se_items.tolist(), strict=False)),
            "reason": one.reason,
        }


def pairwise(
    battles: Battles,
    *,
    seed: int,
    prior: float | None = None,
    cells: Callable[[Comparisons], tuple[CellBootstrap, CellBootstrap]] | None = None,
    human: bool = False,
) -> Pairwise:
    """Fit, rank, and where asked for bootstrap cells and compare with people.

    battles: `Comparisons` where cells or people are asked for.
    cells: `bootstrapped`, where cells are asked for.
    Raises CoreError, StrengthsRefused.
    """
    model = fit(battles, prior)
    n = len(model.agents)
    rows = battles if isinstance(battles, Comparisons) else None
    return Pairwise(
        fit=model,
        ranks=joint_ranks(model.agents, model.strengths, model.covariance[:n, :n], model.n_items, seed=seed),
        cells=cells(rows) if cells is not None and rows is not None else None,
        agreement=agreement(rows) if human and rows is not None else None,
        notes=_notes(model, rows),
    )


def bootstrapped(
    seed: int, prior: float | None, progress: Progress
) -> Callable[[Comparisons], tuple[CellBootstrap, CellBootstrap]]:
    """Return what bootstraps the cells of comparisons."""
    return lambda comparisons: bootstrap_cells(comparisons, seed=seed, prior=prior, progress=progress)


def _method(prior: float | None) -> str:
    errors = "errors clustered by item"
    if prior is None:
        return f"Bradley-Terry, maximum likelihood; {errors}"
    return f"Bradley-Terry, penalised: normal prior of variance {prior:g}; {errors}"


def _notes(model: BradleyTerry, rows: Comparisons | None) -> tuple[str, ...]:
    n_strengths = len(model.agents)
    ratio = np.median(model.se[:n_strengths] / model.naive_se[:n_strengths])
    notes = [
        f"errors are {ratio:.2f} times (median) those of {int(model.n_comparisons):,} independent comparisons"
    ]
    width = n_strengths + len(model.judges)
    if model.n_items < ITEMS_PER_PARAMETER * width:
        notes.append(
            f"{model.n_items} items for {width} strengths and position effects: the errors are too small"
        )
    if rows is None:
        notes.append("an agent wins a task where its outcome is larger; a board is never ordered by this")
    elif (rows.points == 0.5).any():
        notes.append("a tie counts half a win to each")
    if rows is not None and not rows.judges:
        notes.append("position effects are not measured: no row says who was shown first")
    return tuple(notes)


def _agreement(agreement: Agreement) -> dict[str, Any]:
    return {
        "pipelines": [asdict(one) for one in agreement.pipelines],
        "differences": [asdict(one) for one in agreement.differences],
    }
