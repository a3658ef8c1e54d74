"""Submissions as a flat file shows them: who submitted how often, and the noise between submissions.

Model
-----
A submission is all rows of an agent with one date. The file's own repeats are fitted as agent + task +
agent:task + f + agent:f + task:f for each setting facet f that varies; `analytics.trials.gaming` tells what
is selected on.

Symbols: as in `analytics.trials.gaming` and `analytics.reml`.

Not done here
-------------
Which facets a submitter chooses is not in the file. A submission's design is the median one.

Source
------
Messing, *Hidden Measurement Error in LLM Pipelines*, §4.4; the reading of a file is this project's own.
"""

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from analytics.errors import CoreError
from analytics.flat_file import FlatFile, Setting
from analytics.reml import VarianceFit, fit


class SubmissionsRefused(CoreError):
    """The file repeats nothing (`not_measured`), or does not tell teams apart (`team_unknown`)."""


def fit_repeats(flat: FlatFile, copied: Collection[str]) -> tuple[VarianceFit, list[str]]:
    """Fit agents, tasks, the facets that vary and what they do together.

    Parameters
    ----------
    flat : FlatFile
    copied : collection of str
        Agents with copies among their trials, who are left out.

    Returns
    -------
    VarianceFit, list of str
        The facets that vary are of `Setting`.

    Raises
    ------
    SubmissionsRefused, and the refusals of `analytics.reml.fit`
    """
    kept = flat.valid & ~np.isin(flat.agent, [flat.agents.index(agent) for agent in copied])
    columns = {"agent": flat.agent[kept], "task": flat.task[kept]}
    for facet in Setting._fields:
        labels = np.array([str(getattr(setting, facet)) for setting in flat.settings])
        columns[facet] = labels[flat.setting[kept]]
    cells = flat.agent[kept].astype(np.int64) * len(flat.tasks) + flat.task[kept]
    if np.unique(cells).size == cells.size:
        raise SubmissionsRefused(
            "not measured: one trial per task, and no other setting of any", code="not_measured"
        )
    several = [name for name, labels in columns.items() if np.unique(labels).size > 1]
    facets = [name for name in several if name in Setting._fields]
    units = [name for name in several if name not in Setting._fields]
    terms = [*units, *([":".join(units)] if len(units) > 1 else []), *facets]
    terms += [f"{unit}:{facet}" for facet in facets for unit in units]
    return fit(columns, flat.outcome[kept], random=" + ".join(terms)), facets


def _submissions(flat: FlatFile) -> npt.NDArray[np.int64]:
    """Code of each row's submission, shape (n_rows,): an agent on one date."""
    _, days = np.unique(flat.submitted_at.astype("datetime64[D]").astype(np.int64), return_inverse=True)
    _, codes = np.unique(flat.agent.astype(np.int64) * (days.max() + 1) + days, return_inverse=True)
    return np.asarray(codes, dtype=np.int64)


def submission_levels(flat: FlatFile, facets: Sequence[str]) -> dict[str, int]:
    """Return the levels that one submission averages over: the median over submissions.

    Parameters
    ----------
    flat : FlatFile
    facets : sequence of str
        Of `Setting`.
    """
    submission = _submissions(flat)
    levels = {"agent": 1, "task": len(flat.tasks)}
    for facet in facets:
        names = [str(getattr(setting, facet)) for setting in flat.settings]
        codes = np.unique(names, return_inverse=True)[1][flat.setting]
        levels[facet] = _median_count(np.unique(np.stack([submission, codes]), axis=1)[0])
    cells = np.unique(np.stack([submission, flat.task, flat.setting]), axis=1, return_counts=True)[1]
    return levels | {"trial": int(np.median(cells))}


def _median_count(codes: npt.NDArray[np.int64]) -> int:
    return int(np.median(np.bincount(codes)))


def n_submissions(flat: FlatFile, column: str) -> dict[str, int]:
    """Return the number of submissions of each team that shows at least two.

    Parameters
    ----------
    flat : FlatFile
    column : str
        What tells teams apart: ``agent``, ``scaffold``, ``model`` or a column of the file's own.

    Raises
    ------
    SubmissionsRefused
    """
    first = np.unique(_submissions(flat), return_index=True)[1]
    teams = _team_of_agents(flat, column)
    counted: dict[str, int] = {}
    for row in first.tolist():
        team = teams[flat.agent[row]]
        counted[team] = counted.get(team, 0) + 1
    return {team: n for team, n in sorted(counted.items()) if n > 1}


def _team_of_agents(flat: FlatFile, column: str) -> Sequence[str]:
    known = {"agent": flat.agents, "scaffold": flat.scaffolds, "model": flat.models}
    if column in known:
        return known[column]
    if column not in flat.metadata:
        raise SubmissionsRefused(
            f"no column {column!r} for teams; there are {', '.join([*known, *flat.metadata])}",
            code="team_unknown",
        )
    names = flat.metadata[column].to_pylist()
    found = [{names[row] for row in np.flatnonzero(flat.agent == i)} for i in range(len(flat.agents))]
    for agent, teams in zip(flat.agents, found, strict=True):
        if len(teams) != 1 or None in teams:
            raise SubmissionsRefused(
                f"agent {agent!r} has {len(teams)} values or none in column {column!r}", code="team_unknown"
            )
    return [teams.pop() for teams in found]
