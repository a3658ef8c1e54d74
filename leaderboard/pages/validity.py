"""What the page “Validation” shows: the figures of the latest validation, as they are stored."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from leaderboard.operations.queries import waiting_text
from leaderboard.pages.access import for_all, visible
from leaderboard.pages.replay_summary import source_of
from leaderboard.plots.dots import DotRow, both_widths
from leaderboard.plots.marks import Chart, ticks_125
from leaderboard.studies.answers import random_text, replay_figures, validated, verdict, why_text, words
from leaderboard.studies.models import ValidationStudy
from leaderboard.studies.queries import latest_study

READ_FOR = "pairs_correct_full"  # the figure that the verdict is told from
NOMINAL, N_ERRORS = 0.95, 1.96
CHARTS = ("validity", "coverage", "widths", "overlap")
Plain = Mapping[str, Any]


def validity_page(study: ValidationStudy) -> dict[str, Any]:
    """A subset that suits has a verdict, figures and charts; else why there is none, and any replay."""
    result, policy, in_use = study.result, study.policy, study.policy.strategy
    subset, is_suited = result["subset"], bool(result["subset"]["suited"])
    # A board that asks for the subset alone, and has none, says why it has none.
    is_replayed = "replay" in result and (is_suited or policy.assignment != "subset")
    size = subset["size"] if is_suited else 0
    tasks = f"the {words.counted(size, 'task')}" if size else "a subset of the tasks"
    no_subset, word, why = "", "", ""
    if not is_suited:
        mode = "full" if result["agents"] < policy.staged_from else policy.assignment
        no_subset = f"{subset['reason']}. {words.TASKS_OF_NEW_AGENT[mode]['unsuited']}"
    decided = verdict(result, in_use) if is_suited or is_replayed else None
    if decided and is_replayed:
        word, dot, why = decided.sentence.partition(". ")
        word += dot.strip()
    elif decided:
        word = f"{decided.word.capitalize()}, for the order of agents."
        why = why_text(decided)
    page = {
        "study": study,
        "is_suited": is_suited,
        "is_replayed": is_replayed,
        "tasks": tasks,
        "no_subset": no_subset,
        "word": word,
        "why": why,
        "replay": replay_figures(result),
    }
    if not is_suited:
        return page
    late = _strategies(result["protocols"], "temporal").get(in_use) or {}
    in_time, error = "", validated.shown_error(late, READ_FOR)  # how many agents the test in time rests on
    if late.get("n") and late.get(READ_FOR) is not None:
        wide = "" if error is None else f" (SE {words.percent(error)} points)"
        in_time = f"The test on later agents has {words.counted(late['n'], 'agent')}{wide}."
    protocols = [
        _protocol(name, result["protocols"][name], in_use)
        for name in validated.PROTOCOLS
        if name in result["protocols"]
    ]
    return page | {
        "protocols": protocols,
        "has_figures": any(one["result"]["available"] for one in protocols),
        "strategy": validated.label(in_use),
        "refitted": validated.refitted_text(result),
        "compared_to_random": random_text(result, in_use),
        "in_time": in_time,
        "figures": list(validated.FIGURES.values()),
        "leading": [validated.FIGURES[name] for name in validated.LEADING],
        "legend": validated.LEGEND,
        **{name: validity_chart(name, study) for name in CHARTS},
    }


def _strategies(protocols: Plain, name: str) -> Plain:
    result = protocols.get(name) or {}
    strategies: Plain = result["strategies"] if result.get("available") else {}
    return strategies


def _protocol(name: str, result: Plain, in_use: str) -> dict[str, Any]:
    """A protocol with a row for each strategy, and for each scaffold under the one in use."""
    strategies, of_scaffolds = result.get("strategies") or {}, result.get("per_scaffold") or {}
    lines = [
        (validated.label(one), one == in_use, _figures(strategies[one], validated.FIGURES))
        for one in validated.in_order(strategies, in_use)
    ]
    scaffolds = [
        (scaffold, _figures(by[in_use], validated.LEADING), by[in_use]["n"])
        for scaffold, by in sorted(of_scaffolds.items())
        if in_use in by
    ]
    of_use = strategies.get(in_use)
    protocol = {"name": name, "named": validated.PROTOCOLS[name], "result": result, "lines": lines}
    return protocol | {
        "scaffolds": scaffolds,
        "in_use": of_use,
        "leading": _figures(of_use, validated.LEADING) if of_use else [],
        "folds": validated.folds_text(result) if result["available"] else "",
        "prequential": validated.prequential_text(result),
        "notes": validated.notes(strategies),
    }


def _figures(result: Plain, names: Any) -> list[tuple[float | None, float | None]]:
    return [(result.get(name), validated.shown_error(result, name)) for name in names]


# --------------------------------------------------------------------------------------------------- charts


def _tests(protocols: Plain, in_use: str) -> list[dict[str, Any]]:
    """The protocols as rows of a plot: the strategy in use, and a random subset of the same size."""
    tests = []
    for name, named in validated.TESTS.items():
        strategies = _strategies(protocols, name)
        figures = strategies.get(in_use)
        if not figures:
            continue
        held_out = "held-out score" if name == "random_80_20" else "agent"  # there an agent comes again
        at_random = None if in_use == "random" else (strategies.get("random") or {}).get(READ_FOR)
        value, error = figures.get(READ_FOR), validated.shown_error(figures, READ_FOR)
        tests.append(
            {
                "label": named.label,
                "agents": f"{named.meaning} · {words.counted(figures['n'], held_out)}",
                "figures": figures,
                "values": (value, *_ends(value, error), at_random),
            }
        )
    return tests


def _ends(value: float | None, error: float | None) -> tuple[float | None, float | None]:
    """The 95% interval, or two spreads of random draws; inside of 0 to 1."""
    if error is None or value is None:
        return None, None
    return max(0.0, value - N_ERRORS * error), min(1.0, value + N_ERRORS * error)


def _ticks(lo: float) -> list[tuple[float, str]]:
    return [(tick, f"{100 * tick:g}%") for tick in ticks_125(lo, 1.0, 4)]


def _percent(value: float | None) -> str:
    return "unknown" if value is None else f"{words.percent(value)}%"


def pairs_chart(tests: list[dict[str, Any]]) -> Chart | None:
    tests = [test for test in tests if test["values"][0] is not None]
    if not tests:
        return None
    lo = min(v for test in tests for v in test["values"] if v is not None)
    return Chart(
        name="validity",
        title="Pairs in the right order",
        lede="Each dot is the share of pairs in order by estimated full score, with its 95% interval. For a "
        "random fifth, the line is twice the spread over the draws. Orange is a random subset of the same "
        "size.",
        heads=("Test", "Pairs in order", "Lower limit", "Upper limit", "Random subset", "Held-out scores"),
        rows=tuple(
            (test["label"], *map(_percent, test["values"]), f"{test['figures']['n']:,}") for test in tests
        ),
        **both_widths(
            name="validity",
            title="Pairs in the right order, by test",
            rows=[
                DotRow(test["label"], test["agents"], _percent(test["values"][0]), *test["values"])
                for test in tests
            ],
            lo=lo,
            hi=1.0,
            ticks=_ticks(lo),
            rules=[(1.0, "all pairs right")],
        ),
    )


def coverage_chart(tests: list[dict[str, Any]]) -> Chart | None:
    by_test = {
        test["label"]: (float(test["figures"]["coverage"]), test["figures"]["n_intervals"])
        for test in tests
        if test["figures"].get("coverage") is not None
    }
    if not by_test:
        return None
    lo = min(0.8, *(share - 0.02 for share, _ in by_test.values()))
    return Chart(
        name="coverage",
        title="Intervals that contain the measured score",
        lede="Each dot is their share of the 95% intervals of estimated scores. Left of the line it is "
        "below 95%.",
        heads=("Test", "Share", "Intervals"),
        rows=tuple((label, _percent(share), f"{n:,}") for label, (share, n) in by_test.items()),
        **both_widths(
            name="coverage",
            title="How often 95% intervals of estimated scores contain the measured one, by test",
            rows=[
                DotRow(label, words.counted(n, "interval"), _percent(share), share)
                for label, (share, n) in by_test.items()
            ],
            lo=lo,
            hi=1.0,
            ticks=_ticks(lo),
            rules=[(NOMINAL, "95%")],
        ),
    )


def width_chart(result: Plain) -> Chart | None:
    widths = validated.bands(result)["widths"]
    if all(one[READ_FOR] is None for one in widths):
        return None
    drawn, rows, least = [], [], 1.0
    for one in widths:
        value, band = one[READ_FOR], validated.band_text(one)
        ends = _ends(value, one["se"].get(READ_FOR))
        least = min([least, *(v for v in (value, ends[0]) if v is not None)])
        label = f"{band} · in use" if one["in_use"] else band
        saved = validated.saved_text(one, result["tasks"])
        drawn.append(DotRow(label, saved, _percent(value), value, *ends, grey=not one["in_use"]))
        cells = [f"not measured: {one['reason']}", *("not measured",) * 3]
        if not one["reason"]:
            rho = "not measured" if one["rho"] is None else f"{one['rho']:.3f}"
            cells = [*map(_percent, (value, *ends)), rho]
        rows.append((f"{band} (in use)" if one["in_use"] else band, f"{one['size']:,}", *cells))
    return Chart(
        name="widths",
        title="Limits of the pass rate",
        lede="Each dot is the share of pairs in order when each agent in turn is new, with its 95% interval. "
        "The filled dot is in use. The tasks counted are chosen from all agents; the dots use those chosen "
        "without the new agent.",
        heads=("Pass rates", "Tasks", "Pairs in order", "Lower limit", "Upper limit", "Spearman’s ρ"),
        rows=tuple(rows),
        **both_widths(
            name="widths",
            title="Pairs in the right order, by limits of the pass rate",
            rows=drawn,
            lo=least,
            hi=1.0,
            ticks=_ticks(least),
        ),
    )


def overlap_chart(result: Plain) -> Chart | None:
    size = result["subset"]["size"]
    overlaps = [
        (validated.label(one["strategy"]), validated.overlap_text(one, size), one["share"], one["reason"])
        for one in validated.bands(result)["overlaps"]
    ]
    drawn = [
        DotRow(label, text, _percent(share), share) for label, text, share, _ in overlaps if share is not None
    ]
    if not drawn:
        return None
    return Chart(
        name="overlap",
        title="Tasks of other strategies",
        lede="Each strategy chooses the same number of tasks. The value is the share of ranking tasks.",
        heads=("Strategy", "Ranking tasks", "Tasks"),
        rows=tuple((label, _percent(share), reason or text) for label, text, share, reason in overlaps),
        **both_widths(
            name="overlap",
            title="Share of ranking tasks among the tasks of other strategies",
            rows=drawn,
            lo=0.0,
            hi=1.0,
            ticks=_ticks(0.0),
        ),
    )


def validity_chart(name: str, study: ValidationStudy) -> Chart | None:
    result = study.result
    if name in ("widths", "overlap"):
        return width_chart(result) if name == "widths" else overlap_chart(result)
    tests = _tests(result["protocols"], study.policy.strategy)
    return pairs_chart(tests) if name == "validity" else coverage_chart(tests)


@for_all
def validity(request: HttpRequest, slug: str) -> HttpResponse:
    benchmark = visible(slug)
    study = latest_study(ValidationStudy, benchmark)
    page, run = validity_page(study) if study else None, None
    if page and study:
        page["is_behind"] = study.data_version < benchmark.data_version
    if page is None or page["is_behind"]:
        run = benchmark.job_runs.filter(kind="validate").order_by("-id").first()
    shown = {"page": page, "benchmark": benchmark, "of": source_of(benchmark), "run": run, "here": "validity"}
    shown["waiting"] = "" if page else waiting_text(benchmark, "validate")
    return render(request, "pages/validity.html", shown)
