"""``python -m analytics.research gaming FILE``: what a team gains by submitting K times and showing the best.

A submission is all rows of an agent with one date; its design is the median one. Which facets vary between
submissions is the board's rule: what the operator fixes for everyone is shared, and nobody selects on it.
Scores are taken as normal and unbounded: near 0 or 1, or with few tasks, the gain is overstated.

Source: Messing, *Hidden Measurement Error in LLM Pipelines*, §4.4 (gain, K = 27) and Eq. 8 (divisors). Singh
et al., *The Leaderboard Illusion*, 2025 (27 variants).
"""

import argparse
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from analytics.cli_variance import variance_rows
from analytics.command_line import Answer, add_command, copied_trials, outcomes_of
from analytics.errors import CoreError
from analytics.flat_file import FlatFile, RunSetting
from analytics.reml import VarianceFit, fit
from analytics.text import counted
from analytics.trials import check_n_submissions, expected_maximum

RESIDUAL = "residual"
FIXED = " (fixed)"
N_SUBMISSIONS = (2, 5, 10, 27)
N_SUBMISSIONS_DESIGNS = 10
GIVEN_TO_ALL = ("judge",)


def selectable(
    components: Mapping[str, float], levels: Mapping[str, int], varies: Collection[str]
) -> dict[str, float]:
    """Return by term the noise drawn anew with every submission, outcome²; all share that of the others.

    components: term → variance: facets joined by ``:``, ``residual``, a sensitivity with `` (fixed)``.
    levels: facet → levels that a submission averages over, of every facet that divides a selectable term.
    varies: facets that differ from submission to submission, such as ``{"run", "prompt", "judge"}``.
    """
    for facet, count in levels.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise CoreError(f"the design has {count!r} levels of {facet}; a whole number from 1 on is needed")
    facets_of = {
        term: set(levels) if term.lower() == RESIDUAL else set(term.removesuffix(FIXED).split(":"))
        for term in components
    }
    for facet in varies:
        if facet not in set(levels).union(*facets_of.values()):
            raise CoreError(f"{facet!r} varies between submissions, but no component or count knows it")
    drawn = {}
    for term, variance in components.items():
        if not (math.isfinite(variance) and variance >= 0.0):
            raise CoreError(f"component {term}: a variance is at least 0, not {variance}")
        if term.lower() == RESIDUAL or facets_of[term] & set(varies):
            if missing := sorted(facets_of[term] - set(levels)):
                raise CoreError(
                    f"component {term}: the design does not give the number of levels of {missing[0]}"
                )
            drawn[term] = variance / math.prod(levels[facet] for facet in facets_of[term])
    if not drawn:
        raise CoreError(f"no component holds a facet of {sorted(varies)} or is the residual")
    return drawn


def gains(sd: float, n_submissions: Mapping[str, int]) -> list[dict[str, Any]]:
    """Give the expected gain of each team, team → K, those with most submissions first; sd of one score."""
    for team, k in n_submissions.items():
        check_n_submissions(team, k)
    ordered = sorted(n_submissions.items(), key=lambda one: (-one[1], one[0]))
    return [{"team": team, "submissions": k, **_gain(sd, k)} for team, k in ordered]


def deviation(noise: Mapping[str, float]) -> float:
    """Return the standard deviation of the sum of independent parts, in the unit of the score."""
    return math.sqrt(math.fsum(noise.values()))


def _gain(sd: float, k: int) -> dict[str, float]:
    gain = expected_maximum(k) * sd
    return {"gain": gain, "points": 100.0 * gain}


def gains_by_design(
    components: Mapping[str, float],
    designs: Sequence[Mapping[str, int]],
    varies: Collection[str],
    n_submissions: int,
) -> list[dict[str, Any]]:
    """How the gain of best of K shrinks with prompts, judges, trials and tasks, from the first design."""
    deviations = [deviation(selectable(components, levels, varies)) for levels in designs]
    if not deviations or deviations[0] * expected_maximum(n_submissions) == 0.0:
        raise CoreError(f"nothing to shrink: best of {n_submissions} gains 0 under the first design")
    return [
        {"design": dict(levels), "sd": sd, **_gain(sd, n_submissions), "relative": sd / deviations[0]}
        for levels, sd in zip(designs, deviations, strict=True)
    ]


def fit_repeats(flat: FlatFile, copied: Collection[str]) -> tuple[VarianceFit, list[str]]:
    """Fit agents without copies, tasks, the facets of `RunSetting` that vary, and their interactions."""
    rows = flat.valid & ~np.isin(flat.agent, [flat.agents.index(agent) for agent in copied])
    columns = {"agent": flat.agent[rows], "task": flat.task[rows]}
    for facet in RunSetting._fields:
        labels = np.array([str(getattr(setting, facet)) for setting in flat.settings])
        columns[facet] = labels[flat.setting[rows]]
    cells = flat.agent[rows].astype(np.int64) * len(flat.tasks) + flat.task[rows]
    if np.unique(cells).size == cells.size:
        raise CoreError("not measured: one trial per task, and no other setting of any", code="not_measured")
    several = [name for name, labels in columns.items() if np.unique(labels).size > 1]
    facets = [name for name in several if name in RunSetting._fields]
    units = [name for name in several if name not in RunSetting._fields]
    terms = [*units, *([":".join(units)] if len(units) > 1 else []), *facets]
    terms += [f"{unit}:{facet}" for facet in facets for unit in units]
    return fit(columns, flat.outcome[rows], random=" + ".join(terms)), facets


def _submissions(flat: FlatFile) -> npt.NDArray[np.int64]:
    """Code of each row's submission, shape (n_rows,): an agent on one date."""
    _, days = np.unique(flat.submitted_at.astype("datetime64[D]").astype(np.int64), return_inverse=True)
    _, codes = np.unique(flat.agent.astype(np.int64) * (days.max() + 1) + days, return_inverse=True)
    return np.asarray(codes, dtype=np.int64)


def submission_levels(flat: FlatFile, facets: Sequence[str]) -> dict[str, int]:
    """Return the levels of `RunSetting` that one submission averages over, the median of all."""
    submission = _submissions(flat)
    levels = {"agent": 1, "task": len(flat.tasks)}
    for facet in facets:
        names = [str(getattr(setting, facet)) for setting in flat.settings]
        codes = np.unique(names, return_inverse=True)[1][flat.setting]
        levels[facet] = int(np.median(np.bincount(np.unique(np.stack([submission, codes]), axis=1)[0])))
    cells = np.unique(np.stack([submission, flat.task, flat.setting]), axis=1, return_counts=True)[1]
    return levels | {"trial": int(np.median(cells))}


def n_submissions(flat: FlatFile, column: str) -> dict[str, int]:
    """Count the submissions of each team with two, by agent, scaffold, model or a column of the file."""
    known = {"agent": flat.agents, "scaffold": flat.scaffolds, "model": flat.models}
    if column not in known and column not in flat.metadata:
        raise CoreError(
            f"no column {column!r} for teams; there are {', '.join([*known, *flat.metadata])}",
            code="team_unknown",
        )
    if column not in known:
        names = flat.metadata[column].to_pylist()
        teams_of = [{names[row] for row in np.flatnonzero(flat.agent == i)} for i in range(len(flat.agents))]
        for agent, teams in zip(flat.agents, teams_of, strict=True):
            if len(teams) != 1 or None in teams:
                raise CoreError(
                    f"agent {agent!r} has {len(teams)} values or none in column {column!r}",
                    code="team_unknown",
                )
        known[column] = tuple(teams.pop() for teams in teams_of)
    first = np.unique(_submissions(flat), return_index=True)[1]
    counts = Counter(known[column][agent] for agent in flat.agent[first].tolist())
    return {team: n for team, n in sorted(counts.items()) if n > 1}


def add(commands: Any) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "gaming",
        _gaming,
        summary="What a team gains by submitting many times and showing the best.",
        about="The noise between submissions is measured on the file's own repeated settings and trials. "
        "Judges belong to the operator; prompts, temperatures and runs to the submitter. A submission is "
        "all rows of an agent with one date.",
    )
    parser.add_argument(
        "--team", default="scaffold", metavar="COLUMN", help="what tells teams apart (scaffold)"
    )


def _gaming(arguments: argparse.Namespace) -> Answer:
    flat = outcomes_of(arguments)
    copied = copied_trials(flat)
    fitted, facets = fit_repeats(flat, copied)
    components = fitted.components | {RESIDUAL: fitted.residual}
    levels = submission_levels(flat, facets)
    varies = [facet for facet in (*facets, "trial") if facet not in GIVEN_TO_ALL]
    noise = selectable(components, levels, varies)
    sd = deviation(noise)
    designs = [levels, *(levels | {facet: 2 * n} for facet, n in levels.items() if facet != "agent")]
    values: dict[str, Any] = {
        "components": components,
        "boundary": list(fitted.boundary),
        "method": fitted.method,
        "design": levels,
        "sd": sd,
        "contributions": noise,
        "shared": [term for term in components if term not in noise],
        "best_of": [{"submissions": k, **_gain(sd, k)} for k in N_SUBMISSIONS],
        "teams": gains(sd, n_submissions(flat, arguments.team)),
        "designs": gains_by_design(components, designs, varies, N_SUBMISSIONS_DESIGNS),
        "left_out": dict.fromkeys(copied, "trials are not independent"),
    }
    heads = {"submissions": "submissions", "points": "points gained"}
    shown = {
        "noise between submissions": f"{100 * sd:.2f} points (standard deviation)",
        "one submission": ", ".join(counted(n, facet) for facet, n in levels.items()),
        "the best of": [{head: row[key] for key, head in heads.items()} for row in values["best_of"]],
        f"teams, by {arguments.team}": [
            {arguments.team: row["team"], **{head: row[key] for key, head in heads.items()}}
            for row in values["teams"]
        ],
        f"the best of {N_SUBMISSIONS_DESIGNS} under other designs": [
            {**row["design"], "points gained": row["points"], "of the first": row["relative"]}
            for row in values["designs"]
        ],
        "": variance_rows(components),
        "left out": values["left_out"],
    }
    return Answer(values, shown)
