"""One harness on one page: every figure with its interval, the reasons for those missing, the metadata.

A figure that cannot be computed is None, with its reason in ``notes``; mandatory metadata that the caller
does not give are named "not stated", never left out.

Source: *Toward Meta-Harness Optimization*, Fig. 28.4 (required reporting schema and mandatory metadata).
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from analytics.differences.estimates import NamedInterval
from analytics.errors import CoreError
from analytics.harness.gstudy import (
    mdes,
    reliability,
    reliability_bootstrap,
    reliability_interval,
    variance_components,
)
from analytics.harness.quality import (
    Cost,
    ScorerCalibration,
    coverage,
    discriminability,
    discriminability_bootstrap,
    fitness,
)
from analytics.harness.stability import PageTest, rank_stability, split_half
from analytics.harness.tensor import ScoreTensor
from analytics.text import NOT_STATED, counted

N_DRAWS = 2000
MANDATORY_METADATA = (
    "task count",
    "task categories",
    "model names and versions",
    "API settings",
    "hardware",
    "container runtime",
    "random seeds",
    "harness software version",
    "commit hash",
)
FIGURES = (
    *("components", "reliability", "reliability_all_runs", "reliability_interval", "reliability_bootstrap"),
    *("discriminability", "discriminability_bootstrap", "coverage", "fitness", "mdes", "stability"),
    *("split_half", "cost", "scorer", "page"),
)
NOT_GIVEN = {
    "cost": "not measured: no seconds and no price were given",
    "scorer": "not measured: no reference solutions were given",
    "page": "not tested: no order of the models was stated beforehand",
}


def report(
    tensor: ScoreTensor,
    seed: int,
    *,
    n_draws: int = N_DRAWS,
    metadata: Mapping[str, str] = MappingProxyType({}),
    cost: Cost | None = None,
    scorer: ScorerCalibration | None = None,
    page: PageTest | None = None,
) -> dict[str, Any]:
    """Compute every figure that the tensor can give, R for one run where nothing else is said.

    Returns: `n_models`, `n_tasks`, `n_runs`; the `FIGURES`; `metadata`, by `MANDATORY_METADATA`; and in
    `notes` the reason of each figure that is None.
    """
    k, n, n_runs = tensor.scores.shape
    measured = {"cost": cost, "scorer": scorer, "page": page}
    notes = {name: why for name, why in NOT_GIVEN.items() if measured[name] is None}
    values: dict[str, Any] = {"coverage": coverage(tensor), **measured}

    def needed(name: str, what: str) -> Any:
        if values[name] is None:
            raise CoreError(f"not measured: it follows from {what}", code="harness")
        return values[name]

    def fitted() -> float:
        r, d = needed("reliability", "reliability"), needed("discriminability", "discriminability")
        return fitness(r, d, values["coverage"])

    components = ("components", "the components")
    figures: dict[str, Callable[[], Any]] = {
        "components": lambda: variance_components(tensor),
        "reliability": lambda: reliability(needed(*components), n),
        "discriminability": lambda: discriminability(tensor),
        "reliability_all_runs": lambda: reliability(needed(*components), n, n_runs),
        "reliability_interval": lambda: reliability_interval(tensor),
        "reliability_bootstrap": lambda: reliability_bootstrap(tensor, seed, n_draws),
        "discriminability_bootstrap": lambda: discriminability_bootstrap(tensor, seed, n_draws),
        "fitness": fitted,
        "mdes": lambda: mdes(needed(*components), k, n, n_runs),
        "stability": lambda: rank_stability(tensor, seed, n_draws),
        "split_half": lambda: split_half(tensor, seed),
    }
    for name, figure in figures.items():
        try:
            values[name] = figure()
        except CoreError as refusal:
            values[name] = None
            notes[name] = str(refusal)
    described = dict.fromkeys(MANDATORY_METADATA, NOT_STATED) | {"task count": str(n)} | dict(metadata)
    counts = {"n_models": k, "n_tasks": n, "n_runs": n_runs}
    return counts | {name: values[name] for name in FIGURES} | {"metadata": described, "notes": notes}


def report_text(report: Mapping[str, Any]) -> str:
    """Set a report as lines of plain text, numbers rounded for reading."""
    counts = {"model": report["n_models"], "task": report["n_tasks"], "run": report["n_runs"]}
    lines = [
        ("design", " x ".join(counted(n, noun) for noun, n in counts.items())),
        ("reliability R, one run", _number(report["reliability"])),
        *_interval_line("  by models and runs", report["reliability_interval"]),
        *_interval_line("  by tasks", report["reliability_bootstrap"]),
    ]
    if report["n_runs"] > 1:
        lines.append((f"reliability R, {report['n_runs']} runs", _number(report["reliability_all_runs"])))
    lines += [
        ("discriminability D", _number(report["discriminability"])),
        *_interval_line("  by tasks", report["discriminability_bootstrap"]),
        ("coverage C", _number(report["coverage"])),
        ("fitness F", _number(report["fitness"])),
    ]
    if (least := report["mdes"]) is not None:
        lines.append(("detectable difference", f"{least.domain:.4f} for tasks like these"))
        lines.append(("", f"{least.finite:.4f} for these tasks ({least.df} df)"))
    lines += [*_stability_lines(report), *_given_lines(report)]
    if (components := report["components"]) is not None:
        total = sum(components.variances.values())
        for term, value in components.variances.items():
            share = f" ({value / total:.1%})" if total else ""
            lines.append((f"variance {term}", f"{value:.6f}{share}"))
    width = max(len(name) for name, _ in lines)
    text = [f"{name:<{width}}  {value}" for name, value in lines]
    for title in ("notes", "metadata"):
        if report[title]:
            text += ["", title, *(f"  {name}: {value}" for name, value in report[title].items())]
    return "\n".join(text)


def _number(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.4f}"


def _interval_line(name: str, interval: NamedInterval | None) -> list[tuple[str, str]]:
    if interval is None:
        return []
    return [(name, f"[{interval.lower:.4f}, {interval.upper:.4f}] {interval.method}")]


def _stability_lines(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    if (tau := report["stability"]) is not None:
        lines.append(("tau-b under other tasks", _number(tau.tau)))
        lines += _interval_line("  by tasks", tau.interval)
        lines.append(("top-3 change", _number(tau.top_3_change)))
    if (halves := report["split_half"]) is not None:
        lines.append(("tau-b of half the runs", f"{halves.tau:.4f} ({halves.n_splits} splits)"))
    return lines


def _given_lines(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    if (cost := report["cost"]) is not None:
        parts = ", ".join(f"{part} {share:.1%}" for part, share in cost.shares.items())
        lines.append(("cost", f"{cost.total_usd:.2f} USD ({parts})"))
    if (scorer := report["scorer"]) is not None:
        lines.append(("scorer AUC", f"{scorer.auc:.4f} over {len(scorer.by_task)} tasks"))
    if (page := report["page"]) is not None:
        lines.append(("Page's test", f"L = {page.statistic:g}, p = {page.p_value:.2g}"))
    return lines
