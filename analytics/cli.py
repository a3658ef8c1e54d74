"""How much is signal, from the command line: ``python -m analytics COMMAND FILE``.

Every command prints text, or one object under ``--json``; a refusal is one line on stderr and exit code 2.
Studies of methods are commands of `analytics.research`.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from analytics import cli_variance, harness, tee, trials
from analytics.command_line import (
    MAX_DRAWS,
    MAX_SEED,
    TABLE,
    Answer,
    Parser,
    add_command,
    copied_trials,
    csv_header,
    csv_valid,
    numbers,
    outcomes_of,
    pairs,
    plain,
    progress_bar,
    run,
    truths,
    whole,
)
from analytics.errors import CoreError
from analytics.flat_file import head, read
from analytics.tables import is_table, read_table, table_options

MAX_STUDY_BYTES = 16 << 20
HARNESS_COLUMNS = ("model", "task", "run", "outcome")
HARNESS_MARKS = ("valid", "covered")
ON_A_BOARD = "a board computes ICC over all tasks of an agent; here: tasks that all agents repeated"
ON_A_BOARD_OF_SEVERAL = "a board has an ICC column for one condition only; here each condition has a row"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, or 2 for a refusal."""
    parser = Parser(prog="python -m analytics", description="Estimate how much of a score is noise.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    cli_variance.add(commands)
    _add_dstudy(commands)
    summary = "Intraclass correlation and accuracy of every agent of a flat file."
    icc = add_command(commands, "icc", _icc, summary=summary)
    icc.add_argument(
        "--seed", type=whole(MAX_SEED), default=0, help="seed of the random subsets of trials (0)"
    )
    _add_harness(commands)
    summary = "Show how a table is read, and write it as a flat file."
    table = add_command(commands, "table", _table, summary=summary)
    table.add_argument("--to", type=Path, metavar="FILE.parquet", help="write the table to this flat file")
    return run(parser, arguments)


def _add_dstudy(commands: Any) -> None:
    parser = add_command(
        commands,
        "dstudy",
        _dstudy,
        summary="The standard error of a planned evaluation, from variance components.",
        about="FILE has outcomes, or the output of `variance --json`. The standard error is that of one "
        "agent's mean. Numbers that --design does not state are those of FILE. With --facets, FILE is a CSV "
        "with the columns component and variance: factors joined by a colon, Residual, category, 'X (fixed)' "
        "for the sensitivity to a fixed facet.",
    )
    facets = ", ".join(f"{letter} {name}" for letter, name in tee.FACETS.items() if letter != "R")
    parser.add_argument("--facets", default="", metavar="N=COLUMN,…", help=f"factor of each: {facets}")
    parser.add_argument(
        "--design", default="", metavar="N=COUNT,…", help="planned number of levels; R: replicates"
    )
    parser.add_argument(
        "--sensitivity",
        choices=("include", "exclude"),
        default="exclude",
        help="count the choice of judges and temperatures as error, or not (exclude)",
    )
    parser.add_argument(
        "--estimand",
        choices=("domain", "finite"),
        default="domain",
        help="domain: the items are a sample; finite: they are all items of interest (domain)",
    )
    parser.add_argument(
        "--categories",
        choices=("fixed", "sampled"),
        default="fixed",
        help="fixed: these categories; sampled: a sample of categories (fixed)",
    )


def _dstudy(arguments: argparse.Namespace) -> Answer:
    if not arguments.facets:
        return _dstudy_of_board(arguments)
    if not arguments.design:
        raise CoreError("--facets also needs --design N=COUNT,…", code="design")
    arguments.expected = TABLE
    components = tee.read_components(arguments.file, tee.parse_facets(arguments.facets))
    design = tee.parse_design(arguments.design)
    reading = tee.Reading(
        estimand=arguments.estimand, sensitivity=arguments.sensitivity, categories=arguments.categories
    )
    projection = tee.project(components, design, reading)
    shown = {
        "standard error": projection.se,
        "variance": projection.variance,
        "design": " × ".join(tee.counted_levels(n, letter) for letter, n in projection.design.items()),
        "assumptions": f"{reading.estimand}, sensitivity {reading.sensitivity}d, "
        f"categories {reading.categories}",
        "used for": f"a {reading.interval_name}",
        "": [
            {
                "component": row.name,
                "variance": row.variance,
                "of an observation": row.share_of_observation,
                "in the mean": row.contribution,
                "share": row.share_of_mean,
                "tier": "noise" if row.tier == 1 else "design choice",
            }
            for row in tee.variance_table(components, projection)
        ],
        "one change": [
            {
                "": change.name,
                "variance": change.variance,
                "by": "" if change.change is None else f"{change.change:+.1%}",
                "note": change.note,
            }
            for change in tee.interventions(components, projection.design, reading)
        ],
    }
    return Answer(tee.as_json(projection), shown)


def _dstudy_of_board(arguments: argparse.Namespace) -> Answer:
    if arguments.categories != "fixed":
        raise CoreError("--categories also needs --facets N=COLUMN,…", code="facets")
    result = _stored_study(arguments.file) or tee.study_of_file(outcomes_of(arguments))
    how = {"estimand": arguments.estimand, "sensitivity": arguments.sensitivity}
    try:
        if not result["available"]:
            raise tee.DStudyRefused(f"no variance components: {result['reason']}")
        parts = {one["name"]: one["variance"] for one in result["components"]}
        design = tee.as_seen(result["levels"], parts)
        design |= tee.parse_design(arguments.design) if arguments.design else {}
        found, model = tee.project_agent(result, design, **how), cli_variance.board_model(result)
    except (KeyError, TypeError, AttributeError) as error:  # of a file that somebody else wrote
        rule = f"{arguments.file.name} is not a study of a board ({error}). `variance FILE --json` writes one"
        raise CoreError(rule, code="no_study") from None
    is_bound = arguments.estimand == "finite" and "agent:task" not in parts
    design_text = " × ".join(tee.counted_levels(n, letter) for letter, n in found["design"].items())
    shown = {
        f"standard error{', at most' if is_bound else ''}": found["se"],
        "variance": found["variance"],
        "design": _in_tasks(design_text),
        "model": f"that of a board: {model}",
        "assumptions": f"{arguments.estimand}, sensitivity {arguments.sensitivity}d",
        "used for": f"a {found['interval']}",
        "": [{"component": _in_tasks(name), "share": share} for name, share in found["shares"].items()],
        "not measured": "; ".join(found["not_measured"]) or "none",
    }
    return Answer(found, shown)


def _in_tasks(text: str) -> str:
    """Call items and replicates what they are in a benchmark."""
    return text.replace("item", "task").replace("replicate", "trial")


def _stored_study(path: Path) -> dict[str, Any] | None:
    """Read what `variance --json` or the service printed; None where the file holds something else."""
    first = head(path) if path.is_file() else b""
    if {"component", "variance"} <= set(first.partition(b"\n")[0].decode("utf-8-sig", "replace").split(",")):
        raise CoreError(
            f"{path.name} has variance components: state --facets N=COLUMN,… and --design", code="facets"
        )
    if not first.lstrip().startswith(b"{") or path.stat().st_size > MAX_STUDY_BYTES:
        return None
    try:
        found = json.loads(path.read_bytes())
    except ValueError:
        return None  # rows of outcomes, one object a line
    found = found.get("result", found)
    return found if isinstance(found, dict) and {"components", "reason"} & found.keys() else None


def _icc(arguments: argparse.Namespace) -> Answer:
    flat = outcomes_of(arguments)
    copied = copied_trials(flat)
    repeated = trials.repeated_trials(flat)
    lines = trials.consistency(repeated, flat.categories, copied)
    if not lines:
        raise trials.IccRefused("the file has no valid outcome", code="no_outcome")
    # Trials needed by each agent under each condition; a reason where they cannot be estimated
    needed = []
    with progress_bar("subsets of trials") as show:
        for i, one in enumerate(repeated):
            if one.agent not in copied:
                found: dict[str, Any] = {"trials_needed": None, "verdict": None, "steps": [], "reason": ""}
                try:
                    curve = trials.convergence(one.task, one.outcome, arguments.seed)
                    found |= {"trials_needed": curve.trials_needed, "verdict": curve.verdict}
                    found["steps"] = [plain(step) for step in curve.steps]
                except trials.IccRefused as refusal:
                    found["reason"] = str(refusal)
                needed.append({"agent": one.agent, "condition": one.condition, **found})
            show(i + 1, len(repeated))
    values = {
        "agents": [{**plain(line), "notes": dict(line.notes)} for line in lines],
        "convergence": needed,
        "copied": {agent: plain(pair) for agent, pair in copied.items()},
    }
    return Answer(values, _icc_shown(lines, needed))


def _icc_shown(lines: Sequence[trials.Consistency], needed: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    verdicts = {(row["agent"], row["condition"]): row["verdict"] for row in needed}
    overall = [line for line in lines if line.category is None]
    several = len({line.condition for line in overall}) > 1
    return {
        "compared with a board": "; ".join([ON_A_BOARD, *([ON_A_BOARD_OF_SEVERAL] if several else [])]),
        "on the tasks of all agents": [_icc_row(line, verdicts) for line in overall if line.compared],
        "on other tasks, not comparable": [_icc_row(line, verdicts) for line in overall if not line.compared],
        "categories": [
            {
                "agent": line.agent,
                "under": line.condition or None,
                "category": line.category,
                **_icc_figures(line),
            }
            for line in lines
            if line.category is not None and line.compared
        ],
    }


def _icc_row(line: trials.Consistency, verdicts: Mapping[tuple[str, str], str | None]) -> dict[str, Any]:
    notes = [note for _, note in line.notes] + ([line.icc.note] if line.icc and line.icc.note else [])
    return {
        "agent": line.agent,
        "under": line.condition or None,
        **_icc_figures(line),
        "trials needed": verdicts.get((line.agent, line.condition)),
        "note": "; ".join(notes),
    }


def _icc_figures(line: trials.Consistency) -> dict[str, Any]:
    icc, accuracy = line.icc, line.accuracy
    interval = icc.interval if icc else None
    return {
        "accuracy": line.mean,
        "from": accuracy.lower if accuracy else None,
        "to": accuracy.upper if accuracy else None,
        "ICC": icc.icc if icc else None,
        "ICC from": interval.lower if interval else None,
        "ICC to": interval.upper if interval else None,
        "σ²within": icc.sigma_w2 if icc else None,
        "tasks": line.n_tasks,
        "n₀ trials a task": icc.n_0 if icc else None,
    }


def _add_harness(commands: Any) -> None:
    parser = add_command(
        commands,
        "harness",
        _harness,
        summary="Reliability, discriminability, coverage and detectable difference of a harness.",
        about="Without --columns, FILE is a flat file: each agent is a model, and each combination of "
        "setting "
        "and trial is a run. With --columns, FILE is any CSV. Rows whose column valid is 0 are missing. The "
        "column covered counts for coverage only.",
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
        help=f"details to print with the figures: {', '.join(harness.MANDATORY_METADATA)}",
    )
    parser.add_argument(
        "--draws", type=whole(MAX_DRAWS), default=2000, help="bootstrap samples of the tasks (2000)"
    )
    parser.add_argument("--seed", type=whole(MAX_SEED), default=0, help="seed of the bootstrap (0)")


def _harness(arguments: argparse.Namespace) -> Answer:
    if arguments.columns is None:
        tensor = harness.tensor_of_file(outcomes_of(arguments))
    else:
        tensor = _tensor(arguments)
    metadata = {}
    for text in arguments.metadata:
        name, equals, value = (piece.strip() for piece in text.partition("="))
        if not (equals and name and value):
            raise CoreError(f"--metadata {text!r} is not NAME=TEXT", code="harness")
        metadata[name] = value
    report = harness.report(tensor, arguments.seed, n_draws=arguments.draws, metadata=metadata)
    return Answer(plain(report), harness.report_text(report))


def _tensor(arguments: argparse.Namespace) -> harness.ScoreTensor:
    named = pairs(arguments.columns, (*HARNESS_COLUMNS, *HARNESS_MARKS))
    missing = [name for name in HARNESS_COLUMNS if name not in named]
    if missing:
        raise CoreError(f"--columns lacks {missing[0]}=COLUMN", code="harness")
    columns, valid = csv_valid(arguments.file, list(named.values()), csv_header(arguments.file))
    model, task, run = (columns[named[name]] for name in HARNESS_COLUMNS[:3])
    marks = {name: truths(named[name], columns[named[name]]) for name in HARNESS_MARKS if name in named}
    valid = marks.get("valid", valid)
    score = numbers(named["outcome"], columns[named["outcome"]], valid)
    tensor = harness.tensor_of_columns(model, task, run, score, valid)
    if "covered" not in marks:
        return tensor
    covered = harness.tensor_of_columns(model, task, run, score, valid & marks["covered"]).valid
    return harness.ScoreTensor(tensor.models, tensor.tasks, tensor.runs, tensor.scores, covered)


def _table(arguments: argparse.Namespace) -> Answer:
    options, only, file, to = table_options(vars(arguments)), arguments.only, arguments.file, arguments.to
    if to and to.suffix != ".parquet":
        raise CoreError(f"--to {to} writes Parquet. Give a name that ends in .parquet", code="no_parquet")
    if to and to.exists() and to.samefile(file):
        raise CoreError(f"--to {to} is the file that is read. Give another name", code="same_file")
    if is_table(file, options):
        flat, note = read_table(file, options, as_of=datetime.now(UTC), only=only, out=to)
    elif to:
        rule = f"{file.name} is a flat file already. Leave out --to, or read it as a table: --long"
        raise CoreError(rule, code="flat_already")
    else:
        flat, note = read(file, as_of=datetime.now(UTC), only=only), f"Read {file.name} as a flat file."
    counts = {"agents": len(flat.agents), "tasks": len(flat.tasks), "outcomes": flat.n_rows}
    return Answer({"read_as": note, "benchmark": flat.benchmark, **counts})
