"""``python -m analytics variance FILE``: components by REML, the logit check, and a fit of each level."""

import argparse
import math
import time
from collections.abc import Mapping
from textwrap import fill
from typing import Any

import numpy as np
import numpy.typing as npt

from analytics import glmm, tee
from analytics.arrays import FloatArray, Mask
from analytics.command_line import (
    LEFT_OUT,
    TABLE,
    Answer,
    add_command,
    check_columns,
    csv_header,
    csv_valid,
    numbers,
    outcomes_of,
    plain,
)
from analytics.errors import CoreError
from analytics.reml import RESIDUAL, FitRefused, VarianceFit, fit, parse
from analytics.tee.design import WORDS
from analytics.text import WIDTH, as_text

ESTIMANDS = {"finite": "these tasks", "domain": "tasks like these"}
STRATA = ("temperature", "judge", "prompt", "category")

Columns = Mapping[str, npt.ArrayLike]


def add(commands: Any) -> None:
    """Register the command."""
    parser = add_command(
        commands,
        "variance",
        _variance,
        summary="Variance components by REML, as lme4's lmer gives them.",
        about="Without --random, FILE has outcomes, and the model is that of a board. With --random, FILE is "
        "any "
        "CSV with a header, plain or compressed by gzip. Only the named columns are read. Every column in "
        "--random or --fixed is a factor, even if it has numbers. Rows whose column valid is 0 are left out.",
    )
    parser.add_argument("--outcome", default="", metavar="COLUMN", help="column of numbers")
    parser.add_argument(
        "--random",
        default="",
        metavar="TERMS",
        help='such as "item + prompt + item:prompt" (the model of a board)',
    )
    parser.add_argument("--fixed", default="", metavar="TERMS", help='such as "judge + temperature"')
    parser.add_argument(
        "--logit",
        action="store_true",
        help="outcomes 0 and 1: the same terms on the logit scale beside the linear ones, as lme4's glmer "
        "gives them; a term with a level for each row is left out of both",
    )
    parser.add_argument(
        "--by", choices=STRATA, help="fit each level separately, and project the mean of their residuals"
    )
    parser.add_argument(
        "--facets",
        default="",
        metavar="N=COLUMN,…",
        help="columns of N items, V prompts, M judges, H temperatures, C categories, for --logit and --by "
        f"(the columns named {', '.join(WORDS.values())})",
    )


def _variance(arguments: argparse.Namespace) -> Answer:
    if not arguments.random:
        return _variance_of_board(arguments)
    if not arguments.outcome:
        raise CoreError("--random also needs --outcome COLUMN", code="no_outcome")
    arguments.expected = TABLE
    there = csv_header(arguments.file)
    terms = [*parse(arguments.random, there), *parse(arguments.fixed, there)]
    named = {letter: word for letter, word in WORDS.items() if word in there}
    facets = tee.parse_facets(arguments.facets) if arguments.facets else named
    check_columns([arguments.outcome, *facets.values()], there)
    declared = list(facets.values()) if arguments.by else []
    factors = dict.fromkeys([*(name for term in terms for name in term.columns), *declared])
    columns, valid = csv_valid(arguments.file, [*factors, arguments.outcome], there)
    outcome = numbers(arguments.outcome, columns[arguments.outcome], valid)[valid]
    labels = {name: _labels(name, columns[name], valid) for name in factors}
    start = time.perf_counter()
    fitted, logit = _fits(arguments, labels, outcome, facets)
    extra = {"n_invalid": int((~valid).sum()), "seconds": time.perf_counter() - start}
    figures = ("components", "residual", "fixed", "criterion", "boundary")
    ending = ("method", "converged", "message", "n_rows")
    values = {name: plain(getattr(fitted, name)) for name in (*figures, *ending)} | extra
    shown = _fit_shown(fitted, values)
    if logit is not None:
        values["logit"] = logit.as_json()
        shown |= _logit_shown(logit)
    if arguments.by:
        values["by"] = by_levels(
            {**labels, arguments.outcome: outcome}, _declared(arguments, facets), arguments.by
        )
        shown |= _by_shown(values["by"])
    return Answer(values, shown)


def _variance_of_board(arguments: argparse.Namespace) -> Answer:
    for option in ("outcome", "fixed", "logit", "by", "facets"):
        if getattr(arguments, option):
            raise CoreError(f"--{option} also needs --random TERMS and --outcome COLUMN", code="no_random")
    flat = outcomes_of(arguments)
    n_invalid = np.count_nonzero(~flat.valid)
    result = tee.study_of_file(flat)
    if not result["available"]:
        raise FitRefused(f"no variance components: {result['reason']}", code="no_components")
    parts = {one["name"]: one for one in result["components"]}
    rows = variance_rows({name: one["variance"] for name, one in parts.items()})
    shown = {
        "model": f"that of a board: {board_model(result)} (--random and --outcome choose another)",
        "outcomes": f"{result['n_rows']:,}",
        **({LEFT_OUT: f"{n_invalid:,}"} if n_invalid else {}),
        "": [row | {"what it is": parts[row["component"]]["meaning"]} for row in rows],
        "estimated as 0": ", ".join(name for name, one in parts.items() if one["boundary"]) or "none",
        "not measured": "; ".join(result["not_measured"]) or "none",
        "standard error of one agent's mean": [
            {"trials a task": step["n_trials"], **{text: step[name] for name, text in ESTIMANDS.items()}}
            for step in result["projections"]
        ],
        "REML criterion": result["criterion"],
        "method": result["method"],
    }
    sentences = [fill(one, WIDTH) for one in result["advice"]["sentences"]]
    return Answer({"model": board_model(result)} | result, "\n".join([as_text(shown), "", *sentences]))


def board_model(result: Mapping[str, Any]) -> str:
    """Return the model that a board's components come from, by its random and fixed terms."""
    random = " + ".join(one["name"] for one in result["components"] if one["name"] != RESIDUAL)
    fixed = dict.fromkeys(name.partition("[")[0] for name in result["fixed"] if "[" in name)
    return random + (f", fixed {' + '.join(fixed)}" if fixed else "")


def _fits(
    arguments: argparse.Namespace, labels: Columns, outcome: FloatArray, facets: Mapping[str, str]
) -> tuple[VarianceFit, glmm.LogitCheck | None]:
    if not arguments.logit:
        return fit(labels, outcome, random=arguments.random, fixed=arguments.fixed), None
    logit = glmm.fit_logit(labels, outcome, random=arguments.random, fixed=arguments.fixed)
    linear = fit(labels, outcome, random=logit.random, fixed=arguments.fixed)
    return linear, glmm.logit_check(linear, logit, category=facets.get("C"), item=facets.get("N"))


def _labels(name: str, texts: list[str], valid: Mask) -> list[str]:
    rows = np.flatnonzero(valid).tolist()
    if (row := next((row for row in rows if not texts[row]), None)) is not None:
        raise FitRefused(f"row {row + 1}: column {name} is empty", code="label_missing")
    return [texts[row] for row in rows]


def _fit_shown(fit: VarianceFit, values: Mapping[str, Any]) -> dict[str, Any]:
    errors = np.sqrt(np.diag(fit.beta_covariance)).tolist()
    return {
        "": variance_rows(fit.components | {RESIDUAL: fit.residual}),
        "estimated as 0": ", ".join(fit.boundary) or "none",
        "fixed effects": [
            {"name": name, "estimate": estimate, "standard error": error}
            for (name, estimate), error in zip(fit.fixed.items(), errors, strict=True)
        ],
        "REML criterion": fit.criterion,
        "method": f"{fit.method} ({fit.message})",
        "rows": fit.n_rows,
        **({LEFT_OUT: values["n_invalid"]} if values["n_invalid"] else {}),
        "seconds": values["seconds"],
    }


def variance_rows(components: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return a row for each component, with its share of their sum."""
    total = sum(components.values())
    return [
        {"component": name, "variance": variance, "sd": variance**0.5, "share": variance / total}
        for name, variance in components.items()
    ]


def _logit_shown(check: glmm.LogitCheck) -> dict[str, Any]:
    components = check.fit.components
    return {
        "shares of the variance of the mean": [
            {
                "component": name,
                "linear": share,
                "logit": check.logit[name],
                "variance on the logit scale": components.get(name, ""),
            }
            for name, share in check.linear.items()
        ],
        "Spearman's ρ of the shares": check.spearman,
        "deviance on the logit scale": check.fit.deviance,
        "left out, a level for each row": ", ".join(check.fit.dropped) or "none",
        "largest component": check.sentence or "the same on both scales",
    }


def _declared(arguments: argparse.Namespace, facets: Mapping[str, str]) -> tee.Declaration:
    if "N" not in facets:
        raise CoreError("--by also needs the column of the items: --facets N=COLUMN,…", code="facet_unknown")
    return tee.Declaration(
        outcome=arguments.outcome,
        item=facets["N"],
        prompt=facets.get("V"),
        judge=facets.get("M"),
        temperature=facets.get("H"),
        category=facets.get("C"),
    )


def by_levels(columns: Columns, declaration: tee.Declaration, facet: str) -> dict[str, Any]:
    """Fit each level of a facet alone, and project the declared design with the mean of the residuals."""
    fits, left_out = tee.by_stratum(columns, declaration, facet)
    study = tee.total_error(columns, declaration)
    design, mean = study.layout.design, math.fsum(one.residual for one in fits.values()) / len(fits)
    projected = tee.project(tee.with_residual(study.components, mean), design)
    return {
        "facet": facet,
        "levels": {
            level: {"residual": one.residual, "components": one.components} for level, one in fits.items()
        },
        "mean_residual": mean,
        "left_out": list(left_out),
        "design": design,
        "projection": tee.as_json(projected),
        "one_residual": {"residual": study.fit.residual, "se": study.projection.se},
    }


def _by_shown(by: Mapping[str, Any]) -> dict[str, Any]:
    facet = by["facet"]
    return {
        f"each {facet} on its own": [
            {facet: level, "Residual": figures["residual"], **figures["components"]}
            for level, figures in by["levels"].items()
        ],
        "mean of the residuals": by["mean_residual"],
        "left out": "; ".join(by["left_out"]) or "none",
        "standard error with it": by["projection"]["se"],
        "with one residual for all": by["one_residual"]["se"],
    }
