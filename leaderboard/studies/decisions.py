"""Which differences are real: for every target a standard error, a rank interval and ties for each agent.

A target says what an interval is about: the subset, the full suite, or the domain that its tasks are a
sample of (STATISTICS §7.4). Each is computed on the agents that it can speak of; the others get a reason.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from analytics.differences.domain_ranks import FINITE_NOTE, RankIntervals, but_for, rank_intervals, resample
from analytics.differences.normal_ranks import normal_rank_intervals
from analytics.differences.pairs import (
    Estimate,
    Facet,
    Row,
    Target,
    agent_variance,
    score,
    trial_variance_ratio,
)
from analytics.errors import CoreError
from analytics.outcome_table import naive_standard_error
from analytics.trials.flags import unclaimed_orders
from leaderboard.studies.full_scores import FullScore
from leaderboard.studies.placements import Placement, placements
from leaderboard.studies.tables import Snapshot

COVERS = {
    "subset": "the agent's expected mean on the tasks of the subset; order and ties on these tasks alone",
    "full": "the agent's expected mean on all tasks, measured or calibrated",
    "domain": "the agent's expected mean on tasks like these, of which the benchmark is taken for a sample",
}
UNMEASURED = {
    "run": "how much an agent varies from run to run beyond its trials",
    "prompt": "how much agents depend on the wording of the prompt",
    "judge": "how much agents depend on the judge",
}


@dataclass(frozen=True)
class Decisions:
    """`targets` tells of the board, `entries` of each agent in table order, by target."""

    targets: dict[str, dict[str, Any]]
    entries: list[dict[str, dict[str, Any]]]
    not_measured: list[str]


def decisions(
    *,
    snapshot: Snapshot,
    placed: Sequence[Placement],
    full: Sequence[FullScore],
    columns: np.ndarray,
    on_subset: bool,
    facets: Sequence[Facet],
) -> Decisions:
    told, all_tasks = _Told(snapshot, facets), np.arange(snapshot.table.n_tasks)
    if on_subset:
        told.on_tasks("subset", columns, placed, is_ranked_on=True)
        measured = placements(snapshot=snapshot, columns=all_tasks, on_subset=False)
        if any(one.source == "calibrated" for one in full):
            told.full(measured, full)
        else:
            told.on_tasks("full", all_tasks, measured, is_ranked_on=False)
    else:
        told.refuse("subset", "every agent runs all tasks, so there is no subset to speak of")
        measured = list(placed)
        told.on_tasks("full", all_tasks, measured, is_ranked_on=not on_subset)
    told.on_tasks("domain", all_tasks, measured, is_ranked_on=not on_subset)
    return Decisions(told.targets, told.entries, told.not_measured())


class _Told:
    """What has been said so far, target by target."""

    def __init__(self, snapshot: Snapshot, facets: Sequence[Facet]) -> None:
        table = snapshot.table
        self.snapshot, self.table, self.facets = snapshot, table, facets
        self.one_trial = np.array([bool(one["copies"]) for one in snapshot.consistency])
        moments = table.means, table.trial_variances, table.n_trials
        self.omega = trial_variance_ratio(*moments, one_trial=self.one_trial)
        self.targets: dict[str, dict[str, Any]] = {}
        self.resampled: dict[tuple[tuple[int, ...], bytes], RankIntervals] = {}
        self.entries: list[dict[str, dict[str, Any]]] = [{} for _ in table.agents]

    def refuse(self, target: Target, reason: str) -> None:
        self.targets[target] = {"reason": reason}

    def on_tasks(
        self, target: Target, columns: np.ndarray, placed: Sequence[Placement], *, is_ranked_on: bool
    ) -> None:
        """Compare the agents placed on these tasks, task by task.

        Where the board is ranked on them the score is that of the ranking, missing tasks completed; elsewhere
        the mean over what the agent has run, as its full score is told.
        """
        estimates = {
            i: self._estimate(i, columns, one, target) for i, one in enumerate(placed) if one.rank is not None
        }
        self.targets[target] = {"covers": COVERS[target], "n_agents": len(estimates), "reason": ""}
        for i, one in enumerate(placed):
            if i in estimates:
                self.entries[i][target] = _line(one.score if is_ranked_on else None, estimates[i])
            else:
                self.entries[i][target] = {"reason": one.unranked}
        whole = [i for i in estimates if placed[i].outcomes is not None]
        self._rank(target, columns, whole, placed)
        notes = [FINITE_NOTE] if target != "domain" and not self.targets[target]["reason"] else []
        if n_left_out := len(estimates) - len(whole):
            notes.append(f"agents that lack tasks which cannot be completed yet: {n_left_out}")
        if notes:
            self.targets[target]["note"] = "; ".join(notes)

    def full(self, measured: Sequence[Placement], full: Sequence[FullScore]) -> None:
        """Compare measured full scores with calibrated ones by the errors of both."""
        self.targets["full"] = {"covers": COVERS["full"], "reason": "", "method": "normal errors"}
        columns = np.arange(self.table.n_tasks)
        errors: dict[int, float] = {}
        for i, one in enumerate(full):
            if one.score is None:
                self.entries[i]["full"] = {"reason": one.note or "no full run, and no calibration"}
            elif one.source == "measured":
                estimate = self._estimate(i, columns, measured[i], "full")
                self.entries[i]["full"] = _line(one.score, estimate)
                if estimate.interval:
                    errors[i] = self._relative(estimate)
            else:
                self.entries[i]["full"] = _calibrated(one)
                if one.s_loo:
                    errors[i] = one.s_loo**2
        self.targets["full"]["n_agents"] = len(errors)
        self._rank_by_errors(errors, full)

    def not_measured(self) -> list[str]:
        """Sources of error without an estimate, in words."""
        missing = [UNMEASURED[facet.name] for facet in self.facets if facet.with_agent is None]
        variances = self.table.trial_variances
        if variances is None or np.isnan(variances).all() or self.one_trial.all():
            missing.insert(
                0, "how much the trials of one task vary: every agent has one trial per task and setting"
            )
        return missing

    def _estimate(self, i: int, columns: np.ndarray, one: Placement, target: Target) -> Estimate:
        row, selected = self._row(i, columns, one), target == "subset"
        return score(row, target, selected=selected, omega=self.omega, facets=self.facets)

    def _relative(self, estimate: Estimate) -> float:
        """The variance without the main effects of facets, which agents share."""
        shared = {facet.name for facet in self.facets}
        return sum(term.variance for term in estimate.terms if term.name not in shared)

    def _row(self, i: int, columns: np.ndarray, one: Placement) -> Row:
        table = self.table
        return Row(
            means=table.means[i, columns],
            trial_variances=None if table.trial_variances is None else table.trial_variances[i, columns],
            n_trials=None if table.n_trials is None else table.n_trials[i, columns],
            one_trial=bool(self.one_trial[i]),
            levels=self.snapshot.consistency[i]["levels"],
            v_link=one.v_link,
            df_link=one.df_link,
        )

    def _rank(
        self, target: Target, columns: np.ndarray, whole: list[int], placed: Sequence[Placement]
    ) -> None:
        if not whole:
            self.targets[target]["reason"] = "no agent is ranked on these tasks"
            return
        variances = [
            sum(term.variance for term in agent_variance(self._row(i, columns, placed[i]), self.facets))
            for i in whole
        ]
        try:
            intervals = self._intervals(np.array([placed[i].outcomes for i in whole]), whole, variances)
        except CoreError as refusal:
            self.targets[target]["reason"] = f"no rank intervals: {refusal}"
            return
        unclaimed = unclaimed_orders(self.table.means[np.ix_(np.array(whole), columns)])
        self._tell(target, whole, but_for(intervals, unclaimed))

    def _intervals(self, outcomes: np.ndarray, whole: list[int], variances: list[float]) -> RankIntervals:
        """Resample the tasks; full suite and domain are read off the same draws."""
        key = (tuple(whole), outcomes.tobytes())
        if key not in self.resampled:
            names = [self.table.agents[i] for i in whole]
            draws = resample(outcomes, names, seed=self.snapshot.policy.base_seed, v=variances)
            self.resampled[key] = rank_intervals(draws)
        return self.resampled[key]

    def _rank_by_errors(self, errors: dict[int, float], full: Sequence[FullScore]) -> None:
        """`errors` are variances by place in the table."""
        if len(errors) < 2:
            self.targets["full"]["reason"] = "fewer than two agents have a full score with an error"
            return
        places = list(errors)
        measured = np.array([full[i].source == "measured" for i in places])
        intervals = normal_rank_intervals(
            np.array([full[i].score for i in places]),
            np.array(list(errors.values())),
            [self.table.agents[i] for i in places],
            estimated=~measured,
            df=max((df for i in places if (df := full[i].df)), default=np.inf),
            seed=self.snapshot.policy.base_seed,
        )
        both = np.ix_(measured, measured)
        unclaimed = np.zeros((len(places), len(places)), np.bool_)
        unclaimed[both] = unclaimed_orders(self.table.means[places][measured])
        self._tell("full", places, but_for(intervals, unclaimed))

    def _tell(self, target: Target, places: list[int], intervals: RankIntervals) -> None:
        self.targets[target] |= {"critical": intervals.critical, "n_draws": intervals.n_draws}
        for position, i in enumerate(places):
            self.entries[i].setdefault(target, {}).update(
                rank_lower=int(intervals.lower[position]),
                rank_upper=int(intervals.upper[position]),
                tied_with=[intervals.agents[j] for j in intervals.tied_with(position)],
            )


def _line(score: float | None, estimate: Estimate) -> dict[str, Any]:
    """One agent at one target; the interval stands around the score that is shown."""
    interval = estimate.interval
    value = estimate.value if score is None else score
    shift = value - estimate.value
    return {
        "score": value,
        "naive_se": naive_standard_error(value, estimate.n_tasks),
        "se": interval.se if interval else None,
        "lower": interval.lower + shift if interval else None,
        "upper": interval.upper + shift if interval else None,
        "method": estimate.method,
        "reason": estimate.reason,
    }


def _calibrated(one: FullScore) -> dict[str, Any]:
    interval = one.interval or {}
    return {
        "score": one.score,
        "naive_se": None,
        "se": one.s_loo,
        "lower": interval.get("lower"),
        "upper": interval.get("upper"),
        "method": "calibration",
        "reason": "" if one.s_loo is not None else interval.get("reason", ""),
    }
