"""What there is of a study, as one object of plain values and as Markdown; nothing is run.

Configurations that no other beats in every figure, and how much they dominate.

A point holds figures of which more is better, such as (R, D, C, −cost). A point is beaten by one that is at
least as good in each figure and better in one. Of equal points the first is kept.

The hypervolume is the volume between a reference and the points: the share of outcomes that some point of the
front is at least as good as. It is summed over slices of the last figure, O(n^(d−1)·log n): for the fronts of
some dozens of trials.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from analytics.arrays import FloatArray
from analytics.errors import CoreError
from analytics.harness.quality import D_CEILING
from analytics.research.tuning.protocol import (
    ablations,
    baseline,
    below_protocol,
    candidates,
    chosen_of,
    stability,
    trials_of,
    winner,
)
from analytics.research.tuning.search import SearchTrial, best, converged
from analytics.research.tuning.store import Store

NOT_RUN = "not run yet"


def front(points: npt.ArrayLike) -> list[int]:
    """Return the rows, (n_points, n_figures), more being better, that none beats, of equal ones the first."""
    x = _matrix(points)
    at_least = (x[:, None] >= x[None]).all(axis=2)  # row i is at least as good as row j
    beats = at_least & ~at_least.T
    equal = at_least & at_least.T
    earlier = np.tril(equal, -1).any(axis=1)
    return np.flatnonzero(~beats.any(axis=0) & ~earlier).tolist()


def hypervolume(points: npt.ArrayLike, reference: Sequence[float]) -> float:
    """Return the volume that points, (n_points, n_figures), dominate above a reference."""
    x = _matrix(points)
    low = np.asarray(reference, dtype=np.float64)
    if low.shape != x.shape[1:] or not np.isfinite(low).all():
        raise CoreError(f"a reference of {x.shape[1]} finite numbers is needed", code="front")
    x = x[(x > low).all(axis=1)] - low
    return _volume(x[front(x)] if len(x) else x)


def _volume(x: FloatArray) -> float:
    """Of points above the origin: slices of the last figure, from the highest down."""
    if not len(x):
        return 0.0
    if x.shape[1] == 1:
        return float(x.max())
    x = x[np.argsort(-x[:, -1], kind="stable")]
    below = np.append(x[1:, -1], 0.0)
    total = 0.0
    for n, height in enumerate((x[:, -1] - below).tolist(), start=1):
        if height > 0.0:
            slice_ = x[:n, :-1]
            total += height * _volume(slice_[front(slice_)])
    return total


def _matrix(points: npt.ArrayLike) -> FloatArray:
    x = np.asarray(points, dtype=np.float64)
    if x.ndim != 2 or not x.shape[1] or not np.isfinite(x).all():
        raise CoreError(f"points are a matrix of finite numbers, not of shape {x.shape}", code="front")
    return x


def as_plain(store: Store) -> dict[str, Any]:
    """Return the whole report: what was not run or cannot be said is None, with its reason in `notes`."""
    study, trials = store.study, trials_of(store)
    first, measured = baseline(store), candidates(store)
    top, notes = winner(measured), {}
    answer: dict[str, Any] = {
        "study": study.name,
        "phase": phase(store, trials, measured),
        "n_trials": len(trials),
        "n_failed": sum(one.state == "failed" for one in trials),
        "cost_usd": store.cost_usd(),
        "converged": converged(study, trials),
        "below_protocol": list(below_protocol(study)),
        "baseline": first,
        "best": top,
        "candidates": measured,
        "front": front_values(trials),
        "ablations": None,
        "stability": None,
        "metadata": {**study.metadata, "task count": str(len(study.tasks))},
    }
    if first is None:
        notes["baseline"] = NOT_RUN
    if top is None:
        notes["best"] = "; ".join(sorted({one["refused"] for one in measured})) or NOT_RUN
    try:
        answer["ablations"] = ablations(store)
    except CoreError as refusal:
        notes["ablations"] = str(refusal)
    try:
        if top is None:
            raise CoreError("no configuration was evaluated in full yet", code="not_yet")
        answer["stability"] = stability(store, top["configuration"])
    except CoreError as refusal:
        notes["stability"] = str(refusal)
    return {**answer, "notes": notes}


def phase(store: Store, trials: Sequence[SearchTrial], measured: Sequence[Any]) -> int:
    """How many of the phases 1 to 3 are done, then 5: the last two are computed from what is stored."""
    if baseline(store) is None:
        return 0
    if best(trials) is None:
        return 1
    return 5 if len(measured) == len(chosen_of(trials)) else 2


def front_values(trials: Sequence[SearchTrial]) -> dict[str, Any] | None:
    """Trials that none beats in (R, D, C, −cost), of those with all runs; None before the first.

    The hypervolume is over R, min(D, 3)/3, C and the share of the dearest trial's cost that is spared, from
    0.
    """
    able = [one for one in trials if one.counts and one.figures.R is not None]
    if not able:
        return None
    points = [
        [one.figures.R or 0.0, one.figures.D or 0.0, one.figures.C, -one.figures.cost_usd] for one in able
    ]
    dearest = max(one.figures.cost_usd for one in able)
    scaled = [
        [r, min(d, D_CEILING) / D_CEILING, c, 1.0 + cost / dearest if dearest else 1.0]
        for r, d, c, cost in points
    ]
    return {
        "hypervolume": hypervolume(scaled, (0.0, 0.0, 0.0, 0.0)),
        "trials": [
            {"number": one.number, "fingerprint": one.fingerprint, "configuration": dict(one.configuration)}
            | one.figures.shown()
            for one in (able[place] for place in front(points))
        ],
    }


def as_markdown(report: Mapping[str, Any]) -> str:
    """Set the report for people: a sentence, then tables."""
    parts = [f"# {report['study']}", _sentence(report)]
    if report["below_protocol"]:
        parts.append(f"**Below protocol:** {'; '.join(report['below_protocol'])}.")
    rows = [("h₀", report["baseline"]), *(("", one) for one in report["candidates"])]
    parts += ["## Full evaluations, in new runs", _table(rows)]
    if report["front"]:
        trials = [(f"trial {one['number']}", one) for one in report["front"]["trials"]]
        parts += [
            "## Trials that none beats",
            f"Hypervolume {report['front']['hypervolume']:.4f}.",
            _table(trials),
        ]
    if report["ablations"]:
        parts += ["## Without a part of F", _table([(one["condition"], one) for one in report["ablations"]])]
    if report["stability"]:
        one = report["stability"]
        parts += [
            "## Stability of the order of models",
            f"With other tasks: τ_b {one['tau']:.3f} ({one['lower']:.3f} to {one['upper']:.3f}, "
            f"{one['n_draws']:,} draws). "
            f"With other runs: τ_b {one['split_half']:.3f} between halves of them.",
        ]
    parts += ["## Metadata", "\n".join(f"- {name}: {value}" for name, value in report["metadata"].items())]
    if report["notes"]:
        parts += ["## Not told", "\n".join(f"- {name}: {why}" for name, why in report["notes"].items())]
    return "\n\n".join(parts) + "\n"


def _sentence(report: Mapping[str, Any]) -> str:
    top, first = report["best"], report["baseline"]
    paid = f"{report['n_trials']:,} trials, ${report['cost_usd']:,.2f}."
    if top is None or first is None or top["ci"] is None:
        return f"No configuration is known to measure better than the present one. {paid}"
    low, high = top["ci"]
    verb = "measures more reliably than" if low > 0 else "is not shown to measure more reliably than"
    return (
        f"**{top['fingerprint']} {verb} the present settings**: R rose by {top['difference']:.3f} "
        f"({low:.3f} to {high:.3f}), F from {_number(first['F'])} to {_number(top['F'])}, in new runs. "
        "ΔR is estimated from the means of the runs, the R of the tables from the variance components of all "
        f"scores, so that it is not quite their difference. {paid}"
    )


def _table(rows: Sequence[tuple[str, Mapping[str, Any] | None]]) -> str:
    lines = ["| | settings | R | D | C | F | cost, $ | ΔR, 95% | |", "|---|---|---|---|---|---|---|---|---|"]
    for label, one in rows:
        if one is None:
            lines.append(f"| {label} | {NOT_RUN} | | | | | | | |")
            continue
        name = label or one["fingerprint"]
        settings = ", ".join(f"{key} {_number(value)}" for key, value in one["configuration"].items())
        ci = one.get("ci")
        change = f"{ci[0]:.3f} to {ci[1]:.3f}" if ci else ""
        remark = one.get("refused") or one.get("note") or ""
        figures_ = " | ".join(_number(one[key]) for key in ("R", "D", "C", "F"))
        lines.append(f"| {name} | {settings} | {figures_} | {one['cost_usd']:,.2f} | {change} | {remark} |")
    return "\n".join(lines)


def _number(value: Any) -> str:
    if value is None:
        return "not measured"
    return f"{value:.3f}" if isinstance(value, float) else f"{value}"
