"""How much is signal, from the command line: ``python -m analytics COMMAND FILE``.

========  ==========================================================  ============================
command   answers                                                     reads
========  ==========================================================  ============================
variance  variance components of a crossed design, by REML            any CSV
dstudy    the standard error that a proposed design would have        a CSV of components
icc       how alike the repeated trials of each agent are             the flat file
harness   how well a harness measures its models                      the flat file, or any CSV
gaming    what a team gains by submitting often, showing its best     the flat file
========  ==========================================================  ============================

Every command prints text, or one object under ``--json``; a refusal is one line on stderr and exit code 2.
"""

import argparse
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from analytics import harness
from analytics.command_line import (
    Answer,
    Parser,
    add_command,
    check_columns,
    copied_trials,
    csv_columns,
    csv_header,
    flat_file,
    numbers,
    pairs,
    plain,
    run,
    truths,
)
from analytics.errors import CoreError
from analytics.flat_file import FlatFile, Setting
from analytics.progress import progress_bar
from analytics.reml import fitting as reml
from analytics.reml.factors import LabelMissing
from analytics.reml.formula import parse
from analytics.reml.variance_components import RESIDUAL, VarianceFit
from analytics.tee import dstudy
from analytics.trials import gaming, icc
from analytics.trials.gaming import DesignGain, Selectable

HARNESS_COLUMNS = ("model", "task", "run", "outcome")
HARNESS_MARKS = ("valid", "covered")
N_SUBMISSIONS = (2, 5, 10, 27)
N_SUBMISSIONS_DESIGNS = 10
GIVEN_TO_ALL = ("judge",)


class NotMeasured(CoreError):
    """Not measured: no setting and no trial of a task is repeated."""


class TeamUnknown(CoreError):
    """Teams are told by a column that is there and the same in all rows of an agent."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, or 2 for a refusal."""
    return run(_parser(), arguments)


def _parser() -> Parser:
    parser = Parser(prog="python -m analytics", description="How much of an evaluation is signal.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_variance(commands)
    _add_dstudy(commands)
    add_command(
        commands, "icc", _icc, summary="Intraclass correlation and accuracy of every agent of a flat file."
    ).add_argument("--seed", type=int, default=0, help="of the random subsets of trials (0)")
    _add_harness(commands)
    _add_gaming(commands)
    return parser


# ------------------------------------------------------------------------------------------------- variance


def _add_variance(commands: Any) -> None:
    parser = add_command(
        commands,
        "variance",
        _variance,
        summary="Variance components by REML, as lme4's lmer gives them.",
        about="FILE is any CSV with a header, plain or compressed by gzip; only the columns named are read. "
        "Every column named in --random or --fixed is a factor, even if it holds numbers.",
    )
    parser.add_argument("--outcome", required=True, metavar="COLUMN", help="column of numbers")
    parser.add_argument(
        "--random", required=True, metavar="TERMS", help='such as "item + prompt + item:prompt"'
    )
    parser.add_argument("--fixed", default="", metavar="TERMS", help='such as "judge + temperature"')


def _variance(arguments: argparse.Namespace) -> Answer:
    there = csv_header(arguments.file)
    terms = [*parse(arguments.random, there), *parse(arguments.fixed, there)]
    check_columns([arguments.outcome], there)
    factors = dict.fromkeys(name for term in terms for name in term.columns)
    columns = csv_columns(arguments.file, [*factors, arguments.outcome])
    outcome = numbers(arguments.outcome, columns[arguments.outcome])
    labels = {name: _labels(name, columns[name]) for name in factors}
    start = time.perf_counter()
    fit = reml.fit(labels, outcome, random=arguments.random, fixed=arguments.fixed)
    values = _fit_values(fit) | {"seconds": time.perf_counter() - start}
    return Answer(values, _fit_shown(fit, values))


def _labels(name: str, texts: list[str]) -> list[str]:
    if "" in texts:
        raise LabelMissing(f"row {texts.index('') + 1}: no label in column {name}")
    return texts


def _fit_values(fit: VarianceFit) -> dict[str, Any]:
    return {
        "components": fit.components,
        "residual": fit.residual,
        "fixed": fit.fixed,
        "criterion": fit.criterion,
        "boundary": list(fit.boundary),
        "method": fit.method,
        "converged": fit.converged,
        "message": fit.message,
        "n_rows": fit.n_rows,
    }


def _fit_shown(fit: VarianceFit, values: Mapping[str, Any]) -> dict[str, Any]:
    errors = np.sqrt(np.diag(fit.beta_covariance)).tolist()
    return {
        "": _variance_rows(fit.components | {RESIDUAL: fit.residual}),
        "at 0, the boundary": ", ".join(fit.boundary) or "none",
        "fixed effects": [
            {"name": name, "estimate": estimate, "standard error": error}
            for (name, estimate), error in zip(fit.fixed.items(), errors, strict=True)
        ],
        "REML criterion": fit.criterion,
        "method": f"{fit.method} ({fit.message})",
        "rows": fit.n_rows,
        "seconds": values["seconds"],
    }


def _variance_rows(components: Mapping[str, float]) -> list[dict[str, Any]]:
    total = sum(components.values())
    return [
        {"component": name, "variance": variance, "sd": variance**0.5, "share": variance / total}
        for name, variance in components.items()
    ]


# --------------------------------------------------------------------------------------------------- dstudy


def _add_dstudy(commands: Any) -> None:
    parser = add_command(
        commands,
        "dstudy",
        _dstudy,
        summary="The standard error a proposed design would have, given variance components.",
        file="COMPONENTS.csv",
        about="COMPONENTS.csv has the columns component and variance: factors joined by a colon, Residual, "
        "category, and 'X (fixed)' for the sensitivity to a fixed facet.",
    )
    facets = ", ".join(f"{letter} {name}" for letter, name in dstudy.FACETS.items() if letter != "R")
    parser.add_argument("--facets", required=True, metavar="N=COLUMN,…", help=f"factor of each: {facets}")
    parser.add_argument(
        "--design", required=True, metavar="N=COUNT,…", help="proposed number of levels, R replicates too"
    )
    parser.add_argument(
        "--sensitivity",
        choices=("include", "exclude"),
        default="exclude",
        help="whether the choice of judges and temperatures counts as error (exclude)",
    )
    parser.add_argument(
        "--estimand",
        choices=("domain", "finite"),
        default="domain",
        help="items are a sample of a domain, or are themselves the target (domain)",
    )
    parser.add_argument("--categories", choices=("fixed", "sampled"), default="fixed", help="(fixed)")


def _dstudy(arguments: argparse.Namespace) -> Answer:
    components = dstudy.read_components(arguments.file, dstudy.parse_facets(arguments.facets))
    design = dstudy.parse_design(arguments.design)
    reading = dstudy.Reading(
        estimand=arguments.estimand, sensitivity=arguments.sensitivity, categories=arguments.categories
    )
    projection = dstudy.project(components, design, reading)
    return Answer(dstudy.as_json(projection), _projection_shown(components, projection))


def _projection_shown(components: dstudy.Components, projection: dstudy.Projection) -> dict[str, Any]:
    reading = projection.reading
    design = " × ".join(f"{count} {dstudy.FACETS[letter]}" for letter, count in projection.design.items())
    return {
        "standard error": projection.se,
        "variance": projection.variance,
        "design": design,
        "reading": f"{reading.estimand}, sensitivity {reading.sensitivity}d, categories {reading.categories}",
        "for a": reading.interval_name,
        "": [
            {
                "component": row.name,
                "variance": row.variance,
                "of an observation": row.share_of_observation,
                "in the mean": row.contribution,
                "share": row.share_of_mean,
                "tier": "noise" if row.tier == 1 else "design choice",
            }
            for row in dstudy.variance_table(components, projection)
        ],
        "one change": [
            {"": change.name, "variance": change.variance, "by": _percent(change.change), "note": change.note}
            for change in dstudy.interventions(components, projection.design, reading)
        ],
    }


def _percent(change: float | None) -> str:
    return "" if change is None else f"{change:+.1%}"


# ------------------------------------------------------------------------------------------------------ icc


def _icc(arguments: argparse.Namespace) -> Answer:
    flat = flat_file(arguments.file)
    copied = copied_trials(flat)
    lines = icc.consistency(flat, copied)
    trials = _convergences(flat, copied, arguments.seed)
    values = {
        "agents": [_icc_values(line) for line in lines],
        "convergence": trials,
        "copied": {agent: plain(pair) for agent, pair in copied.items()},
    }
    return Answer(values, _icc_shown(lines, trials))


def _icc_values(line: icc.Consistency) -> dict[str, Any]:
    return {**plain(line), "notes": dict(line.notes)}


def _convergences(flat: FlatFile, copied: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Trials needed by each agent, over all its tasks; a reason where they cannot be told."""
    found: dict[str, Any] = {}
    with progress_bar("subsets of trials") as show:
        for i, agent in enumerate(flat.agents):
            rows = flat.valid & (flat.agent == i)
            if agent not in copied and rows.any():
                found[agent] = _convergence(flat.task[rows], flat.outcome[rows], seed)
            show(i + 1, len(flat.agents))
    return found


def _convergence(task: npt.NDArray[np.int32], outcome: npt.NDArray[np.float64], seed: int) -> dict[str, Any]:
    try:
        found = icc.convergence(task, outcome, seed)
    except icc.IccRefused as refusal:
        return {"trials_needed": None, "verdict": None, "steps": [], "reason": str(refusal)}
    steps = [plain(step) for step in found.steps]
    return {"trials_needed": found.trials_needed, "verdict": found.verdict, "steps": steps, "reason": ""}


def _icc_shown(lines: Sequence[icc.Consistency], trials: Mapping[str, Any]) -> dict[str, Any]:
    overall = [line for line in lines if line.category is None]
    return {
        "": [_icc_row(line, trials) for line in overall],
        "categories": [
            {"agent": line.agent, "category": line.category, **_icc_figures(line)}
            for line in lines
            if line.category is not None
        ],
    }


def _icc_row(line: icc.Consistency, trials: Mapping[str, Any]) -> dict[str, Any]:
    found = trials.get(line.agent)
    notes = [note for _, note in line.notes]
    if line.icc is not None:
        notes += [note for note in (line.icc.unreliable, line.icc.note) if note]
    return {
        "agent": line.agent,
        **_icc_figures(line),
        "trials needed": found["verdict"] if found and not found["reason"] else None,
        "note": "; ".join(notes),
    }


def _icc_figures(line: icc.Consistency) -> dict[str, Any]:
    found, accuracy = line.icc, line.accuracy
    interval = found.interval if found else None
    return {
        "accuracy": line.mean,
        "from": accuracy.lower if accuracy else None,
        "to": accuracy.upper if accuracy else None,
        "ICC": found.icc if found else None,
        "ICC from": interval.lower if interval else None,
        "ICC to": interval.upper if interval else None,
        "σ²within": found.sigma_w2 if found else None,
        "tasks": line.n_tasks,
        "trials a task": found.n_0 if found else None,
    }


# -------------------------------------------------------------------------------------------------- harness


def _add_harness(commands: Any) -> None:
    parser = add_command(
        commands,
        "harness",
        _harness,
        summary="Reliability, discriminability, coverage and detectable difference of a harness.",
        about="Without --columns FILE is a flat file: a model is an agent, a run each combination of setting "
        "and trial. With it FILE is any CSV. Its outcomes that are not valid are missing; a mark named "
        "covered counts in coverage alone.",
    )
    parser.add_argument(
        "--columns",
        metavar="model=COLUMN,…",
        help=f"columns for {', '.join(HARNESS_COLUMNS)}, and if there are any {' and '.join(HARNESS_MARKS)}",
    )
    parser.add_argument(
        "--metadata",
        action="append",
        default=[],
        metavar="NAME=TEXT",
        help=f"to be stated with the figures: {', '.join(harness.MANDATORY_METADATA)}",
    )
    parser.add_argument("--draws", type=int, default=2000, help="bootstrap samples of the tasks (2000)")
    parser.add_argument("--seed", type=int, default=0, help="of the bootstrap (0)")


def _harness(arguments: argparse.Namespace) -> Answer:
    if arguments.columns is None:
        tensor = harness.tensor_of_file(flat_file(arguments.file))
    else:
        tensor = _tensor(arguments)
    stated = dict(_stated(text) for text in arguments.metadata)
    found = harness.report(tensor, arguments.seed, n_draws=arguments.draws, metadata=stated)
    return Answer(plain(found), found.text())


def _tensor(arguments: argparse.Namespace) -> harness.ScoreTensor:
    """Read the score tensor of any CSV by the names of its columns."""
    named = pairs(arguments.columns, (*HARNESS_COLUMNS, *HARNESS_MARKS))
    missing = [name for name in HARNESS_COLUMNS if name not in named]
    if missing:
        raise harness.HarnessRefused(f"--columns does not say which column is {missing[0]}")
    columns = csv_columns(arguments.file, list(named.values()))
    model, task, run = (columns[named[name]] for name in HARNESS_COLUMNS[:3])
    marks = {name: truths(named[name], columns[named[name]]) for name in HARNESS_MARKS if name in named}
    valid = marks.get("valid", np.ones(len(model), dtype=np.bool_))
    score = np.full(len(model), np.nan)
    kept = np.flatnonzero(valid).tolist()
    score[kept] = numbers(named["outcome"], [columns[named["outcome"]][row] for row in kept])
    tensor = harness.tensor_of_columns(model, task, run, score, valid)
    if "covered" not in marks:
        return tensor
    covered = harness.tensor_of_columns(model, task, run, score, valid & marks["covered"]).valid
    return harness.ScoreTensor(tensor.models, tensor.tasks, tensor.runs, tensor.scores, covered)


def _stated(text: str) -> tuple[str, str]:
    name, equals, value = (piece.strip() for piece in text.partition("="))
    if not (equals and name and value):
        raise harness.HarnessRefused(f"--metadata {text!r} is not of the form NAME=TEXT")
    return name, value


# --------------------------------------------------------------------------------------------------- gaming


def _add_gaming(commands: Any) -> None:
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
    flat = flat_file(arguments.file)
    copied = copied_trials(flat)
    fit, facets = _repeats(flat, copied)
    components = fit.components | {gaming.RESIDUAL: fit.residual}
    levels = _submission_levels(flat, facets)
    varies = [facet for facet in (*facets, "trial") if facet not in GIVEN_TO_ALL]
    noise = gaming.selectable(components, levels, varies)
    designs = [levels, *(levels | {facet: 2 * n} for facet, n in levels.items() if facet != "agent")]
    shrunk = gaming.gains_by_design(components, designs, varies, N_SUBMISSIONS_DESIGNS)
    values = {
        "components": components,
        "boundary": list(fit.boundary),
        "method": fit.method,
        "design": levels,
        "sd": noise.sd,
        "contributions": dict(noise.contributions),
        "shared": list(noise.shared),
        "best_of": [_best_of(noise, k) for k in N_SUBMISSIONS],
        "teams": _teams(noise, _n_submissions(flat, arguments.team)),
        "designs": [_design_values(gain) for gain in shrunk],
        "left_out": dict.fromkeys(copied, "trials are not independent"),
    }
    return Answer(values, _gaming_shown(values, arguments.team))


def _repeats(flat: FlatFile, copied: Mapping[str, Any]) -> tuple[VarianceFit, list[str]]:
    """Fit agents, tasks, the facets that vary and what they do together; agents with copies are left out."""
    kept = flat.valid & ~np.isin(flat.agent, [flat.agents.index(agent) for agent in copied])
    columns = {"agent": flat.agent[kept], "task": flat.task[kept]}
    for facet in Setting._fields:
        labels = np.array([str(getattr(setting, facet)) for setting in flat.settings])
        columns[facet] = labels[flat.setting[kept]]
    cells = flat.agent[kept].astype(np.int64) * len(flat.tasks) + flat.task[kept]
    if np.unique(cells).size == cells.size:
        raise NotMeasured("not measured: one trial per task, and no other setting of any")
    several = [name for name, labels in columns.items() if np.unique(labels).size > 1]
    facets = [name for name in several if name in Setting._fields]
    units = [name for name in several if name not in Setting._fields]
    terms = [*units, *([":".join(units)] if len(units) > 1 else []), *facets]
    terms += [f"{unit}:{facet}" for facet in facets for unit in units]
    return reml.fit(columns, flat.outcome[kept], random=" + ".join(terms)), facets


def _submissions(flat: FlatFile) -> npt.NDArray[np.int64]:
    """Code of each row's submission, shape (n_rows,): an agent on one date."""
    days = np.unique(flat.submitted_at.astype("datetime64[D]").astype(np.int64), return_inverse=True)[1]
    return np.unique(flat.agent.astype(np.int64) * (days.max() + 1) + days, return_inverse=True)[1]


def _submission_levels(flat: FlatFile, facets: Sequence[str]) -> dict[str, int]:
    """Levels that one submission averages over: the median over submissions."""
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


def _n_submissions(flat: FlatFile, column: str) -> dict[str, int]:
    """Submissions of each team that shows at least two."""
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
        raise TeamUnknown(f"no column {column!r} for teams; there are {', '.join([*known, *flat.metadata])}")
    names = flat.metadata[column].to_pylist()
    found = [{names[row] for row in np.flatnonzero(flat.agent == i)} for i in range(len(flat.agents))]
    for agent, teams in zip(flat.agents, found, strict=True):
        if len(teams) != 1 or None in teams:
            raise TeamUnknown(f"agent {agent!r} has {len(teams)} values or none in column {column!r}")
    return [teams.pop() for teams in found]


def _best_of(noise: Selectable, k: int) -> dict[str, Any]:
    gain = gaming.expected_maximum(k) * noise.sd
    return {"submissions": k, "gain": gain, "points": 100.0 * gain}


def _teams(noise: Selectable, n_submissions: Mapping[str, int]) -> list[dict[str, Any]]:
    found = gaming.gains(noise, n_submissions)
    return [
        {"team": gain.team, "submissions": gain.n_submissions, "gain": gain.gain, "points": gain.points}
        for gain in sorted(found, key=lambda gain: (-gain.n_submissions, gain.team))
    ]


def _design_values(gain: DesignGain) -> dict[str, Any]:
    return {
        "design": dict(gain.levels),
        "sd": gain.sd,
        "gain": gain.gain,
        "points": gain.points,
        "relative": gain.relative,
    }


def _gaming_shown(values: Mapping[str, Any], team: str) -> dict[str, Any]:
    shown = {"submissions": "submissions", "points": "points gained"}
    return {
        "noise between submissions": f"{100 * values['sd']:.2f} points (standard deviation)",
        "one submission": ", ".join(f"{n} {facet}" for facet, n in values["design"].items()),
        "the best of": [{head: row[key] for key, head in shown.items()} for row in values["best_of"]],
        f"teams, by {team}": [
            {team: row["team"], **{head: row[key] for key, head in shown.items()}} for row in values["teams"]
        ],
        f"the best of {N_SUBMISSIONS_DESIGNS} under other designs": [
            {**row["design"], "points gained": row["points"], "of the first": row["relative"]}
            for row in values["designs"]
        ],
        "": _variance_rows(values["components"]),
        "left out": values["left_out"],
    }
