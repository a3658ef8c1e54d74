"""One harness on one page: every figure with its interval, the reasons for those missing, the metadata.

A figure that cannot be computed is None, with its reason in ``notes``; mandatory metadata that the caller
does not give are named "not stated", never left out.

Source: *Toward Meta-Harness Optimization*, Fig. 28.4 (required reporting schema and mandatory metadata).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

from analytics.errors import CoreError
from analytics.harness.gstudy import (
    Mdes,
    VarianceComponents,
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
from analytics.harness.stability import PageTest, RankStability, SplitHalf, rank_stability, split_half
from analytics.harness.tensor import HarnessInterval, ScoreTensor
from analytics.text import counted

N_DRAWS = 2000
NOT_STATED = "not stated"
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

Figure = TypeVar("Figure")


@dataclass(frozen=True)
class HarnessReport:
    """The quality of one harness configuration.

    n_models, n_tasks, n_runs: K, N, L.
    reliability, reliability_all_runs: R(h) for one run and for the mean of all L.
    reliability_interval, reliability_bootstrap: for one run: ICC(A,1), and tasks resampled.
    discriminability: D(h).
    coverage: C(h).
    fitness: F(h).
    metadata: every name of `MANDATORY_METADATA`, then what else was given.
    notes: for each figure that is None, the reason.
    """

    n_models: int
    n_tasks: int
    n_runs: int
    components: VarianceComponents | None
    reliability: float | None
    reliability_all_runs: float | None
    reliability_interval: HarnessInterval | None
    reliability_bootstrap: HarnessInterval | None
    discriminability: float | None
    discriminability_bootstrap: HarnessInterval | None
    coverage: float
    fitness: float | None
    mdes: Mdes | None
    stability: RankStability | None
    split_half: SplitHalf | None
    cost: Cost | None
    scorer: ScorerCalibration | None
    page: PageTest | None
    metadata: Mapping[str, str]
    notes: Mapping[str, str]

    def text(self) -> str:
        """Set the report as lines of plain text, numbers rounded for reading."""
        return "\n".join(
            [*_figure_lines(self), *_list("notes", self.notes), *_list("metadata", self.metadata)]
        )


def report(
    tensor: ScoreTensor,
    seed: int,
    *,
    n_draws: int = N_DRAWS,
    metadata: Mapping[str, str] = MappingProxyType({}),
    cost: Cost | None = None,
    scorer: ScorerCalibration | None = None,
    page: PageTest | None = None,
) -> HarnessReport:
    """Compute every figure that the tensor can give.

    seed, n_draws: of the bootstraps over tasks.
    metadata: by the names of `MANDATORY_METADATA`; the task count is known.
    cost, scorer, page: from `quality.cost`, `quality.scorer_auc`, `stability.page_test`, where their data
        exist.
    """
    k, n, n_runs = tensor.scores.shape
    inputs = {"cost": cost, "scorer": scorer, "page": page}
    attempt = _Attempts({name: why for name, why in _NOT_GIVEN.items() if inputs[name] is None})
    components = attempt("components", lambda: variance_components(tensor))
    r = attempt("reliability", lambda: reliability(_needed(components, "the components"), n))
    d = attempt("discriminability", lambda: discriminability(tensor))
    c = coverage(tensor)
    return HarnessReport(
        n_models=k,
        n_tasks=n,
        n_runs=n_runs,
        components=components,
        reliability=r,
        reliability_all_runs=attempt(
            "reliability_all_runs", lambda: reliability(_needed(components, "the components"), n, n_runs)
        ),
        reliability_interval=attempt("reliability_interval", lambda: reliability_interval(tensor)),
        reliability_bootstrap=attempt(
            "reliability_bootstrap", lambda: reliability_bootstrap(tensor, seed, n_draws)
        ),
        discriminability=d,
        discriminability_bootstrap=attempt(
            "discriminability_bootstrap", lambda: discriminability_bootstrap(tensor, seed, n_draws)
        ),
        coverage=c,
        fitness=attempt(
            "fitness", lambda: fitness(_needed(r, "reliability"), _needed(d, "discriminability"), c)
        ),
        mdes=attempt("mdes", lambda: mdes(_needed(components, "the components"), k, n, n_runs)),
        stability=attempt("stability", lambda: rank_stability(tensor, seed, n_draws)),
        split_half=attempt("split_half", lambda: split_half(tensor, seed)),
        cost=cost,
        scorer=scorer,
        page=page,
        metadata=MappingProxyType(_metadata(tensor, metadata)),
        notes=MappingProxyType(attempt.notes),
    )


_NOT_GIVEN = {
    "cost": "not measured: no seconds and no price were given",
    "scorer": "not measured: no reference solutions were given",
    "page": "not tested: no order of the models was stated beforehand",
}


class _Attempts:
    def __init__(self, notes: dict[str, str]) -> None:
        self.notes = notes

    def __call__(self, name: str, figure: Callable[[], Figure]) -> Figure | None:
        try:
            return figure()
        except CoreError as refusal:
            self.notes[name] = str(refusal)
            return None


def _needed(figure: Figure | None, name: str) -> Figure:
    if figure is None:
        raise CoreError(f"not measured: it follows from {name}", code="harness")
    return figure


def _metadata(tensor: ScoreTensor, metadata: Mapping[str, str]) -> dict[str, str]:
    counted = {"task count": str(len(tensor.tasks))}
    return dict.fromkeys(MANDATORY_METADATA, NOT_STATED) | counted | dict(metadata)


def _figure_lines(report: HarnessReport) -> list[str]:
    lines = [
        ("design", _design(report)),
        ("reliability R, one run", _number(report.reliability)),
        *_interval_line("  by models and runs", report.reliability_interval),
        *_interval_line("  by tasks", report.reliability_bootstrap),
        *_all_runs_lines(report),
        ("discriminability D", _number(report.discriminability)),
        *_interval_line("  by tasks", report.discriminability_bootstrap),
        ("coverage C", _number(report.coverage)),
        ("fitness F", _number(report.fitness)),
        *_mdes_lines(report.mdes),
        *_stability_lines(report),
        *_given_lines(report),
        *_component_lines(report.components),
    ]
    width = max(len(name) for name, _ in lines)
    return [f"{name:<{width}}  {value}" for name, value in lines]


def _design(report: HarnessReport) -> str:
    counts = {"model": report.n_models, "task": report.n_tasks, "run": report.n_runs}
    return " x ".join(counted(n, noun) for noun, n in counts.items())


def _all_runs_lines(report: HarnessReport) -> list[tuple[str, str]]:
    name = f"reliability R, {report.n_runs} runs"
    return [] if report.n_runs == 1 else [(name, _number(report.reliability_all_runs))]


def _number(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.4f}"


def _interval_line(name: str, interval: HarnessInterval | None) -> list[tuple[str, str]]:
    if interval is None:
        return []
    return [(name, f"[{interval.lower:.4f}, {interval.upper:.4f}] {interval.method}")]


def _mdes_lines(mdes: Mdes | None) -> list[tuple[str, str]]:
    if mdes is None:
        return []
    return [
        ("detectable difference", f"{mdes.domain:.4f} for tasks like these"),
        ("", f"{mdes.finite:.4f} for these tasks ({mdes.df} df)"),
    ]


def _stability_lines(report: HarnessReport) -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    if report.stability is not None:
        tau = report.stability
        lines.append(("tau-b under other tasks", _number(tau.tau)))
        lines += _interval_line("  by tasks", tau.interval)
        lines.append(("top-3 change", _number(tau.top_3_change)))
    if report.split_half is not None:
        halves = report.split_half
        lines.append(("tau-b of half the runs", f"{halves.tau:.4f} ({halves.n_splits} splits)"))
    return lines


def _given_lines(report: HarnessReport) -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    if report.cost is not None:
        parts = ", ".join(f"{part} {share:.1%}" for part, share in report.cost.shares.items())
        lines.append(("cost", f"{report.cost.total_usd:.2f} USD ({parts})"))
    if report.scorer is not None:
        lines.append(("scorer AUC", f"{report.scorer.auc:.4f} over {len(report.scorer.by_task)} tasks"))
    if report.page is not None:
        lines.append(("Page's test", f"L = {report.page.statistic:g}, p = {report.page.p_value:.2g}"))
    return lines


def _component_lines(components: VarianceComponents | None) -> list[tuple[str, str]]:
    if components is None:
        return []
    values = components.variances
    total = sum(values.values())
    return [(f"variance {term}", f"{value:.6f}{_share(value, total)}") for term, value in values.items()]


def _share(value: float, total: float) -> str:
    return f" ({value / total:.1%})" if total else ""


def _list(title: str, entries: Mapping[str, str]) -> list[str]:
    return ["", title, *(f"  {name}: {value}" for name, value in entries.items())] if entries else []
