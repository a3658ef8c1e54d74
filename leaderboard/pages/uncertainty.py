"""What the page “Sources of error” shows: the latest variance study, and what a design would do."""

from collections.abc import Collection, Mapping, Sequence
from math import ceil, sqrt
from operator import itemgetter
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render

from leaderboard.errors import Refusal
from leaderboard.operations.queries import waiting_text
from leaderboard.pages.access import for_all, visible
from leaderboard.plots.dots import stacked
from leaderboard.plots.marks import Chart
from leaderboard.studies.answers import averaged_over, varied, words
from leaderboard.studies.models import VarianceStudy
from leaderboard.studies.queries import latest_study

ESTIMANDS = {"finite": "these tasks", "domain": "tasks like these"}
NUMBERS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")
MAX_LEVELS = 1_000_000
ENOUGH = 1_000  # trials a task: more are no advice
NOISE = "Run-to-run noise"
SOURCES = {
    "agent": "Agents",
    "task": "Task difficulty",
    "agent:task": "Agent × task",
    "agent:task:trial": NOISE,
    "Residual": NOISE,
}
MEANINGS = {
    "agent:task": "some tasks suit some agents",
    "agent:task:trial": "more trials average it out",
    "Residual": "more trials average it out",
}
VERDICTS = "Judges of one trial"
CANCELS = "no effect on comparisons"
Plain = Mapping[str, Any]


def uncertainty_page(study: VarianceStudy, params: QueryDict) -> dict[str, Any]:
    result = study.result
    rows, agents = result.get("projections") or [], result["agents"]
    return {
        "study": study,
        "verdict": headline(result),
        "headline": " ".join(headline(result)),
        "averaged": averaged_over(result),  # beside tasks and trials
        "at_random": _at_random(result),
        "variance": variance_chart(result),
        "scales": scales_text(result.get("logit") or {}, _apart(result)),
        # Standard errors with so many trials a task, and as shares of those with the fewest.
        "steps": [
            (row["n_trials"], [(row[name], _ratio(row[name], rows[0][name])) for name in ESTIMANDS])
            for row in rows
        ],
        "measured": [measured(agent) for agent in agents if not agent["reason"]],
        "refused": [agent for agent in agents if agent["reason"]],
        "n_others": result["levels"]["agent"] - len(agents),  # varied nothing and repeated no trial
        "what_if": what_if(study, params) if result["available"] else None,
    }


def headline(result: Plain) -> tuple[str, str]:
    if result["levels"]["agent"] < 2:
        return "One agent so far.", "The sources of error need at least two."
    if not result["available"]:
        return "Not available:", f"{result['reason']}."
    steps = result.get("projections") or []
    if not steps or steps[0]["finite"] is None:
        if any("scored the same" in source for source in result["not_measured"]):
            return "Run-to-run noise is not known separately.", "Judges scored the same trials."
        return (
            "Run-to-run noise is not known separately.",
            "To measure it, repeat tasks under the same prompts and judges.",
        )
    return halving(steps, n_tasks=result["levels"]["task"], averaged=averaged_over(result))


def halving(steps: Sequence[Plain], *, n_tasks: int, averaged: str = "") -> tuple[str, str]:
    """Say how many trials per task halve the error bar on these tasks.

    Its square is a part that no trial moves and one over their number, a + b/R: two steps tell both.
    """
    (one, first), (other, second) = ((row["n_trials"], row["finite"] ** 2) for row in steps[:2])
    moved = (first - second) / (1 / one - 1 / other)
    fixed = first - moved / one
    left = first / 4 - fixed
    n = ceil(round(moved / left, 9)) if left > 0 else ENOUGH + 1
    over = f"all {n_tasks:,} tasks {averaged}" if averaged else f"all {n_tasks:,} tasks"
    mean = f"The standard error on {over} is {words.error_text(sqrt(first))} points with one trial per task"
    if n > ENOUGH:
        return "More trials per task cannot halve the error bar.", f"{mean}."
    number = NUMBERS[n] if n < len(NUMBERS) else f"{n:,}"
    after = words.error_text(sqrt(fixed + moved / n))
    return (
        f"With {number.lower()} trials per task the error bar is half as wide as with one.",
        f"{mean} and {after} with {number.lower()}.",
    )


def _at_random(result: Plain) -> str:
    names = {part["name"] for part in result.get("components") or []}
    facets = {"prompt": "prompts", "judge": "judges", "run": "full runs"}
    known = ["trials", *(text for facet, text in facets.items() if f"agent:{facet}" in names)]
    unknown = [text for facet, text in facets.items() if f"agent:{facet}" not in names]
    sentence = f"Included: noise of {_join(known)}."
    return f"{sentence} Not measured: {_join(unknown)}." if unknown else sentence


def _join(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def scales_text(logit: Plain, apart: str = "") -> str:
    if not logit.get("sentence"):
        return ""
    linear, other = (
        f"“{_source(name, logit['components'], apart)}” ({share:.0%})"
        for name, share in (
            max(logit["shares"][scale].items(), key=itemgetter(1)) for scale in ("linear", "logit")
        )
    )
    return (
        f"The largest part of the variance of one agent's mean is {linear}. On the logit scale it is "
        f"{other}. That scale stretches differences near 0 and 100%."
    )


def measured(agent: Plain) -> dict[str, Any]:
    """An agent with a decomposition of its own; `ratio` is its standard error over the naive one."""
    df = agent.get("few_levels_df")  # what the error rests on where a facet has few levels
    n_averaged = agent.get("judges_averaged", 0)
    fewest, most = agent.get("replicates") or (agent["levels"]["R"],) * 2  # older studies tell one number
    return {
        **agent,
        "ratio": _ratio(agent["se"], agent["naive_se"]),
        "trials": f"{fewest:,}" if fewest == most else f"{fewest:,}–{most:,}",
        "judges": f"mean of {n_averaged}" if n_averaged else f"{agent['levels'].get('M', 1):,}",
        "degrees": "" if df is None else f"{words.counted(round(df), 'degree')} of freedom",
    }


def _ratio(value: float | None, to: float | None) -> float | None:
    return value / to if value is not None and to else None


def variance_chart(result: Plain) -> Chart | None:
    components, apart = result.get("components") or [], _apart(result)
    if not components or not sum(part["variance"] for part in components):
        return None
    names, parts, rows = [part["name"] for part in components], [], []
    for component in components:
        name = component["name"]
        # Two agents on the same tasks, prompts and judges share what is not theirs.
        cancels = name != "Residual" and "agent" not in name.split(":")
        meaning = CANCELS if cancels else MEANINGS.get(name, "")
        label, share = _source(name, names, apart), component["share"]
        meaning = meaning if label in (SOURCES.get(name), CANCELS) or cancels else ""
        parts.append((label, share, meaning, cancels))
        what = words.sentence(component["meaning"] or meaning)
        what += " Estimated as 0." if component["boundary"] else ""
        variance = f"{component['variance']:.5f}"
        rows.append((label, what, variance, f"{words.percent(share)}%", "no" if cancels else "yes"))
    title = "Variance of a single result, by source"
    return Chart(
        name="variance",
        title="Variance of a single result, by source",
        lede="Hatched parts do not affect comparisons on the same tasks.",
        heads=("Source", "What it is", "Variance", "Share", "Affects comparisons"),
        rows=tuple(rows),
        svg=stacked(name="variance", title=title, parts=parts),
        narrow=stacked(name="variance", title=title, parts=parts, narrow=True),
    )


def _source(name: str, names: Collection[str], apart: str) -> str:
    """Call a component by what it is in a study with components of these names; `apart` as of `_apart`."""
    label = SOURCES.get(name) or name.replace(":", " × ").capitalize()
    if name == "Residual" and ("agent:task:trial" in names or apart.replace(" × ", ":") in names):
        return VERDICTS
    if name == "Residual" and apart:
        return f"{NOISE} and {apart}"
    return f"{label} and {NOISE.lower()}" if apart and name == apart.replace(" × ", ":") else label


def _apart(result: Plain) -> str:
    """Return the source that includes run-to-run noise, such as agent × task; empty where it is separate."""
    _, _, source = next(iter(result.get("not_measured") or ()), "").partition(
        f"{NOISE.lower()} separate from "
    )
    return source.partition(" (")[0]


# -------------------------------------------------------------------------------------------------- what if


def what_if(study: VarianceStudy, params: QueryDict) -> dict[str, Any]:
    """Project the design of the address, or say why that cannot be told; without one the form alone."""
    levers, estimand = _levers(study, params), params.get("estimand", "")
    faults = [f"{one['label']}: {one['fault']}" for one in levers if one["fault"]]
    estimand = estimand if estimand in ESTIMANDS else "finite"
    form: dict[str, Any] = {
        "levers": levers,
        "faults": faults,
        "estimand": estimand,
        "estimands": ESTIMANDS,
    }
    if faults or not any(lever["text"] for lever in levers):
        return form
    design = {one["letter"]: int(one["text"]) for one in levers if one["text"] and one["is_varied"]}
    from leaderboard.studies.kinds import project_error  # few ask, and it imports what fits

    try:
        projection, before = (
            project_error(study=study, design=asked, estimand=estimand, sensitivity="exclude")
            for asked in (design, {})
        )
    except Refusal as refusal:
        return form | {"refusal": str(refusal)}
    se, now = projection["se"], before["se"]
    names = [part["name"] for part in study.result["components"]]
    share = f"{abs(1 - se / now):.0%}"
    largest, of_largest = max(projection["shares"].items(), key=itemgetter(1))
    shown = [(one, projection["design"][one["letter"]]) for one in levers if one["is_varied"]]
    return form | {
        "projection": projection,
        "before": before,
        # Noise that is not known apart holds agent × task, which is no error on these tasks.
        "at_most": "at most " if estimand == "finite" and "agent:task" not in names else "",
        "shown": [(one["label"], n) for one, n in shown],
        "more": [
            (n, before["design"][one["letter"]], one["label"].lower().removesuffix("s"))
            for one, n in shown
            if one["letter"] not in "RN"
        ],
        "tasks": ESTIMANDS[estimand],
        "change": "the same as" if share == "0%" else f"{share} {'smaller' if se < now else 'larger'} than",
        "half": 1.96 * se,
        "mostly": f"{_source(largest, names, _apart(study.result)).lower()}, {of_largest:.0%}",
    }


def _levers(study: VarianceStudy, params: QueryDict) -> list[dict[str, Any]]:
    """How many of something the address asks for; `n` is how many there were, 1 of what was never varied."""
    seen, levers = varied(study.result), list[dict[str, Any]]()
    for key, letter, label, n in (
        ("trials", "R", "Trials per task", 1),
        ("tasks", "N", "Tasks", study.result["levels"]["task"]),
        ("prompts", "V", "Prompts", seen.get("prompt")),
        ("judges", "M", "Judges", seen.get("judge")),
    ):
        text = params.get(key, "").strip()[:12]
        number = int(text) if text.isascii() and text.isdecimal() else 0
        is_fault = bool(text) and not 1 <= number <= MAX_LEVELS
        fault = f"a whole number from 1 to {MAX_LEVELS:,}." if is_fault else ""
        levers.append({"key": key, "letter": letter, "label": label, "text": text, "fault": fault})
        levers[-1] |= {"is_varied": n is not None, "n": 1 if n is None else n}
    return levers


@for_all
def uncertainty(request: HttpRequest, slug: str) -> HttpResponse:
    benchmark = visible(slug)
    study = latest_study(VarianceStudy, benchmark)
    shown: dict[str, Any] = {"benchmark": benchmark, "here": "uncertainty"}
    if study is None:
        shown["waiting"] = waiting_text(benchmark, "variance")
    else:
        is_behind = study.data_version < benchmark.data_version
        shown["page"] = uncertainty_page(study, request.GET) | {"is_behind": is_behind}
    return render(request, "pages/uncertainty.html", shown)
