"""A validation as a reader sees it: labels, what figures mean, and its tables, for terminals and pages alike.

What is shown is the object of `selection.validation.as_json`. Nothing is computed, and nothing heavy is
imported. Numbers are rounded where they are set as text.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from selection.standings.words import counted, failed_text, percent, sentence

Plain = Mapping[str, Any]


class ProtocolLabel(NamedTuple):
    """A protocol's name for a reader, and what is new in it."""

    label: str
    meaning: str


PROTOCOLS = {
    "loao": ProtocolLabel("Leave one agent out", "each agent in turn is new"),
    "within_scaffold": ProtocolLabel(
        "Within a scaffold", "each agent is new among the agents of its scaffold"
    ),
    "random_80_20": ProtocolLabel("Random 80/20", "a random fifth of the agents is new"),
    "loso": ProtocolLabel("Leave one scaffold out", "all agents of one scaffold are new"),
    "lomo": ProtocolLabel("Leave one model out", "all agents of one model are new"),
    "temporal": ProtocolLabel("Later agents", "each agent is predicted from earlier agents only"),
}
# The same as tests, in the order of a plot: what is new in each, and when that happens.
TESTS = {
    "loao": ProtocolLabel("Predicting one agent from the others", "a new agent arrives"),
    "lomo": ProtocolLabel("Predicting a new model", "a lab releases a model"),
    "random_80_20": ProtocolLabel("Predicting a random fifth", "a hundred draws"),
    "within_scaffold": ProtocolLabel("Predicting within one scaffold", "from its own agents only"),
    "temporal": ProtocolLabel("Predicting later agents", "agents in order of date"),
    "loso": ProtocolLabel("Predicting a new scaffold", "a developer releases a scaffold"),
}
STRATEGIES = {
    "mid_range": "Mid-range",
    "greedy": "Greedy",
    "random": "Random",
    "easiest": "Easiest",
    "hardest": "Hardest",
    "stratified": "Stratified",
    "information": "Information",
    "spread": "Spread",
    "forecast": "Forecast",
}
FIGURES = {
    "pairs_correct": "Pairs in order",
    "skill": "Skill",
    "pairs_correct_full": "By full score",
    "random_difference": "Above random",
    "pairs_clear_full": "Clear, by full score",
    "kappa": "κ",
    "coverage": "95% intervals hit",
    "pairs_clear": "Clear pairs",
    "pairs_null": "Pairs without differences",
    "rmse_completion": "RMSE completion",
    "rmse_ridge": "RMSE Ridge",
    "rmse_line": "RMSE line",
    "rho_rest": "ρ with the rest",
    "r2": "R²",
    "rho": "ρ",
    "rho_null": "ρ without differences",
    "tau": "τ",
    "rho_calibrated": "ρ calibrated",
}
LEADING, FURTHER = tuple(FIGURES)[:7], tuple(FIGURES)[7:]
WITH_ERROR = ("pairs_correct", "skill", "pairs_correct_full", "random_difference", "kappa")
LEGEND = {
    "Pairs in order": "Share of pairs of a new and an older agent that the tasks of the strategy put in the "
    "order of the full scores. A tie counts half. The share is high even if agents do not differ, because "
    "these tasks are part of the full score. Skill corrects for that.",
    "Skill": "Spearman's ρ on another scale: 0 if agents do not differ, 1 for a perfect order.",
    "By full score": "Pairs in order of the estimated full score of the new agent and the measured scores of "
    "the others. A board that ranks by the full score uses this.",
    "Above random": "By full score, minus the value of a random subset of the same size.",
    "κ": "Pairs in order on the scale of skill.",
    "RMSE": "Root mean squared error of the estimated full score, for each estimator.",
    "Clear pairs": "Pairs in order among pairs whose full scores differ clearly (95%).",
    "ρ with the rest": "Spearman's correlation of the scores on the tasks of the strategy and on the others.",
    "R²": "Share of the variance of measured scores that the estimates explain. Below 0, the mean of all "
    "agents predicts better.",
    "95% intervals hit": "How often the interval of an estimated score contained the measured one. New "
    "scaffolds and time bring it below 95%. Each interval uses only the agents of its fold; intervals of the "
    "board use all agents.",
    "SE": "Standard error (jackknife), on pages in parentheses; for random 80/20 the spread over its draws.",
    "Held out": "New agents with a prediction; for random 80/20, over all draws.",
}


def label(strategy: str) -> str:
    """Return the name of a strategy for a reader."""
    return STRATEGIES.get(strategy, strategy)


def in_order(strategies: Plain, in_use: str) -> list[str]:
    """Return the strategies that were validated, the one in use first."""
    return sorted(strategies, key=lambda name: (name != in_use, list(STRATEGIES).index(name)))


def error(figures: Plain, name: str) -> float | None:
    """Return the standard error of a figure, or its spread over random draws."""
    errors = figures.get("se") or figures.get("spread") or {}
    value: float | None = errors.get(name)
    return value


def shown_error(figures: Plain, name: str) -> float | None:
    """Return the same, and None for 0: that all folds agree says nothing of other agents."""
    return error(figures, name) or None


def agents_text(result: Plain) -> str:
    """Say how many agents the figures rest on."""
    return f"{result['agents']:,} of {result['agents_in_file']:,} (results on at least 95% of the tasks)"


def refitted_text(result: Plain) -> str:
    """Say how far closed forms and scikit-learn differ; empty where they were not compared."""
    refitted = result.get("refitted")
    if not refitted:
        return ""
    return (
        f"checked against scikit-learn: largest difference {refitted['difference']:.1g} "
        f"in {counted(refitted['folds'], 'fold')}"
    )


def about_text(result: Plain) -> dict[str, Any]:
    """Say what the figures rest on, and how many missing results count as failures."""
    # Those in use may be of a version that was chosen before.
    chosen = subset_text(result) + (", if chosen now" if result["subset"]["suited"] else "")
    about = {"agents": agents_text(result), "tasks": result["tasks"], "ranking tasks": chosen}
    failed = failed_text(result.get("n_missing_failed", 0))
    return about | ({"counted": sentence(failed)} if failed else {})


def subset_text(result: Plain) -> str:
    """Say which tasks are in the band, or why there is none."""
    subset = result["subset"]
    if not subset["suited"]:
        return f"none: {subset['reason']}"
    return f"{counted(subset['size'], 'task')}, pass rates from {subset['lo']:.0%} to {subset['hi']:.0%}"


def folds_text(protocol: Plain) -> str:
    """Say in how many folds strategies met, and on how many tasks."""
    n_used = protocol["n_folds"] - protocol["n_skipped"]
    return f"{n_used} of {protocol['n_folds']} folds, {protocol['k_mean']:.1f} tasks on average"


def notes(strategies: Mapping[str, Plain]) -> dict[str, str]:
    """Return why a protocol's figures are missing or doubtful: every note once, under figure and strategies.

    No order of the mappings is relied on: a database has its own.
    """
    about: dict[tuple[str, str], list[str]] = {}
    for strategy in in_order(strategies, ""):
        for figure, note in sorted((strategies[strategy].get("notes") or {}).items()):
            about.setdefault((figure, note), []).append(strategy)
    return {
        f"{NOTED.get(figure, figure)} of {_all_of(names, strategies)}": IN_NOTES.sub(
            lambda match: NOTED[match[1]], note
        )
        for (figure, note), names in about.items()
    }


NOTED = FIGURES | {
    "full_difference": "By full score, above pairs in order",
    "policy_difference": "Above the strategy in use",
    "all": "All figures",
    "se": "SE",
    "folds": "Folds",
    "seeds": "Seeds",
}
IN_NOTES = re.compile(rf"\b({'|'.join(name for name in NOTED if '_' in name)})\b")


def _all_of(names: Sequence[str], strategies: Plain) -> str:
    others = [name for name in strategies if name not in names]
    if len(others) > 1 or len(names) == 1:
        return ", ".join(map(label, names))
    return f"all but {label(others[0])}" if others else "all"


def summary(result: Plain, in_use: str = "", *, more: str = "--full") -> dict[str, Any]:
    """Arrange the figures that decide: one strategy in every test, and every strategy in one test.

    in_use: the strategy that a board uses; else the first that was validated.
    more: the words that ask for all figures.
    """
    protocols = {name: result["protocols"][name] for name in TESTS if name in result["protocols"]}
    known = {name: one["strategies"] for name, one in protocols.items() if one["available"]}
    about = about_text(result)
    for name, protocol in protocols.items():
        if name not in known:
            about[TESTS[name].label] = f"not available: {protocol['reason']}"
    if not known:
        return about
    first = next(iter(known))
    name = in_use if in_use in known[first] else in_order(known[first], "")[0]
    tests = [{"test": TESTS[test].label, **_decides(of[name])} for test, of in known.items() if name in of]
    strategies = [
        {"strategy": label(one), **_decides(known[first][one])} for one in in_order(known[first], name)
    ]
    return about | {
        f"\n{label(name)}, pairs in the order of a full run": tests,
        f"\n{TESTS[first].label}, every strategy": strategies,
        "\nAll figures": more,
    }


def _decides(figures: Plain) -> dict[str, Any]:
    pairs, above = figures["pairs_correct_full"], figures["random_difference"]
    return {
        "pairs": _percent(pairs),
        "SE": _percent(shown_error(figures, "pairs_correct_full")),
        "random subset": _percent(None if pairs is None or above is None else pairs - above),
        "95% intervals hit": _percent(figures["coverage"]),
        "held-out scores": figures["n"],
    }


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{percent(value)}%"


def shown(result: Plain, in_use: str = "") -> dict[str, Any]:
    """Arrange a validation for a terminal, a table for each protocol; see `analytics.text`.

    in_use: the strategy that a board uses, which comes first, with a star.
    """
    about = about_text(result)
    if text := refitted_text(result):
        about["estimates by Ridge"] = text
    known = {name: result["protocols"][name] for name in PROTOCOLS if name in result["protocols"]}
    for name, protocol in known.items():
        if not protocol["available"]:
            about[PROTOCOLS[name].label] = f"not available: {protocol['reason']}"
    for name, protocol in known.items():
        if protocol["available"]:
            about |= _protocol(PROTOCOLS[name].label, protocol, in_use)
    about |= _around(result)
    used = any(protocol["available"] for protocol in known.values())
    legend = LEGEND | ({"*": "The strategy in use."} if in_use else {})
    return about | ({"\nHow to read it": legend} if used else {})


def _protocol(title: str, protocol: Plain, in_use: str) -> dict[str, Any]:
    strategies = protocol["strategies"]
    block: dict[str, Any] = {f"\n{title}, {folds_text(protocol)}": list(_rows(strategies, in_use, LEADING))}
    block[f"{title}: further figures"] = list(_rows(strategies, in_use, FURTHER))
    for scaffold, figures in sorted(protocol.get("per_scaffold", {}).items()):
        block[f"{title}: {scaffold}"] = list(_rows(figures, in_use, LEADING))
    if text := prequential_text(protocol):
        block[f"{title}: choosing in time"] = text
    return block | {f"{title}: notes": notes(strategies)}


def _rows(strategies: Mapping[str, Plain], in_use: str, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    for strategy in in_order(strategies, in_use):
        figures = strategies[strategy]
        row: dict[str, Any] = {"strategy": f"{label(strategy)}{' *' if strategy == in_use else ''}"}
        for place, name in enumerate(names):
            row[FIGURES[name]] = figures[name]
            if name in WITH_ERROR:
                row[f"SE{' ' * place}"] = shown_error(figures, name)
        yield row | {"Held out": figures["n"], "left out": figures["n_left_out"]}


def bands(result: Plain) -> Plain:
    """Return what was measured around the band in use; of a validation made before that, why it was not."""
    stored: Plain | None = result.get("bands")
    return stored or {
        "widths": [],
        "overlaps": [],
        "reason": "this validation is older than this measurement",
    }


def band_text(width: Plain) -> str:
    """Name a band: 30% to 70%."""
    is_odd = any(abs(100 * width[end] - round(100 * width[end])) > 1e-6 for end in ("lo", "hi"))
    form = ".4g" if is_odd else ".0%"
    return f"{width['lo']:{form}} to {width['hi']:{form}}"


def saved_text(width: Plain, n_tasks: int) -> str:
    """Say how many tasks a band holds, and what share of all it leaves out."""
    return f"{counted(width['size'], 'task')}, {1 - width['size'] / n_tasks:.0%} fewer"


def overlap_text(overlap: Plain, size: int) -> str:
    """Say how many of a strategy's tasks lie in the band: 47 of 82."""
    if overlap["n_shared"] is None:
        return "on average"
    return f"{overlap['n_shared']:,} of {size:,}"


def _around(result: Plain) -> dict[str, Any]:
    if "bands" not in result:
        return {}
    around, size = bands(result), result["subset"]["size"]
    widths = [
        {
            "band": f"{band_text(one)}{' *' if one['in_use'] else ''}",
            "tasks": one["size"],
            **{FIGURES[name]: one[name] for name in ("pairs_correct_full", "rho")},
            "SE": one["se"].get("rho"),
            "note": one["reason"],
        }
        for one in around["widths"]
    ]
    overlaps = [
        {
            "strategy": label(one["strategy"]),
            "in the band": one["share"],
            "tasks": one["reason"] or overlap_text(one, size),
        }
        for one in around["overlaps"]
    ]
    title = "\nBands of other widths, each agent left out (tasks: as chosen from all agents)"
    rows: dict[str, Any] = {title: widths or f"not measured: {around['reason']}"}
    return rows | ({"Tasks of other strategies": overlaps} if overlaps else {})


def prequential_text(protocol: Plain) -> str:
    """Say what choosing the strategy on the agents met before would have given; empty where not told."""
    figures = protocol.get("prequential")
    if not figures or figures["pairs_correct_full"] is None:
        return ""
    error = figures["se"].get("pairs_correct_full")
    by = ", ".join(f"{label(name)} {n:,}" for name, n in figures["chosen"].items())
    return (
        "with the strategy that was best on earlier agents, "
        f"{percent(figures['pairs_correct_full'])}% of pairs are in order by full score"
        f"{'' if error is None else f' (SE {percent(error)})'}; "
        f"agents per strategy: {by}"
    )
