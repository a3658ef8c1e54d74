"""How far estimated full scores are off on real boards, and how often their intervals in time held.

Model
-----
RMSE = √(mean (y − ŷ)²) over the agents held out, selection and fit inside each fold, by `ridge`, `line` and
`completion`, with each agent left out (LOAO) and in time. Prequential coverage of `ridge` and `line`: each
residual in time against the split conformal half-width of those of strictly earlier dates, from 19 on; with
its two-sided 95% interval (Wilson) and the one-sided upper bound that decides what a board says. Coverage of
`completion` under every protocol: in each fold the interval that its training agents alone would give.

Not done here: no estimator is chosen.

Source: STATISTICS §3 of this project. Run with `python -m perf.studies.full_scores FOLDER`.
"""

import sys
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from analytics.arrays import FloatArray
from analytics.command_line import flat_file
from analytics.differences.estimates import wilson
from analytics.record import Record
from selection.errors import SelectionError
from selection.folds import PROTOCOLS, CompleteAgents, Rule, fold_bands, plan
from selection.held_out import choose, hold_out, nested_residuals
from selection.intervals import prequential
from selection.rules import BY_CALIBRATION
from selection.standings.choice import training
from selection.validation.figures import covered

BY = {"agent": "LOAO", "date": "in time"}
ESTIMATORS = ("ridge", "line", "completion")


def main(folder: str) -> None:
    start = time.process_time()
    print(f"{'RMSE, score from 0 to 1':<34}{'protocol':<10}{'agents':>7}" + _cells(ESTIMATORS))
    covered, by_protocol = list[str](), list[str]()
    with threadpool_limits(1, user_api="blas"):
        for path in sorted(Path(folder).glob("*.csv.gz")):
            name, record = path.name.removesuffix(".csv.gz"), Record.from_flat(flat_file(path, None))
            agents = training(record)
            found = {(by, one): _residuals(agents, by, one) for by in BY for one in ESTIMATORS}
            for by, label in BY.items():
                print(_row(name, label, [found[by, one] for one in ESTIMATORS]))
            covered += [_coverage(name, agents, one, found["date", one]) for one in BY_CALIBRATION]
            by_protocol += [_by_protocol(name, agents, protocol) for protocol in PROTOCOLS]
    print("\nprequential coverage of nominal 95% intervals in time")
    print("\n".join(covered))
    print("\ncoverage of the intervals of `completion` under every protocol, made inside each fold")
    print("\n".join(line for line in by_protocol if line))
    print(f"\n{time.process_time() - start:.0f} s of one core")


def _residuals(agents: CompleteAgents, by: str, estimator: str) -> FloatArray:
    try:
        return nested_residuals(agents, by, estimator=estimator)
    except SelectionError:
        return np.full(agents.n, np.nan)


def _row(name: str, label: str, residuals: list[FloatArray]) -> str:
    n = int(np.count_nonzero(~np.isnan(residuals[0])))
    figures = [f"{np.sqrt(np.nanmean(e**2)):.4f}" if n else "–" for e in residuals]
    return f"{name:<34}{label:<10}{n:>7}" + _cells(figures)


def _coverage(name: str, agents: CompleteAgents, estimator: str, residuals: FloatArray) -> str:
    told = prequential(residuals, agents.dates)
    head = f"{name:<34}{estimator:<12}"
    if told.share is None:
        return f"{head}no score after 19 residuals of earlier dates"
    lower, upper = wilson(told.share, told.n, 0.975)
    said = "said instead of 95%" if told.falls_short else "95% is said"
    return (
        f"{head}{told.n_covered:>3} of {told.n:<3} {100 * told.share:5.1f}%  "
        f"[{100 * lower:.1f}, {100 * upper:.1f}]  one-sided upper {100 * (told.upper or 0):.1f}: {said}"
    )


def _by_protocol(name: str, agents: CompleteAgents, protocol: str) -> str:
    """Empty where the protocol has no folds with a subset."""
    subsets = choose(agents, fold_bands(agents, plan(protocol, agents), Rule()), "mid_range", Rule(), 0)
    records = hold_out(agents, subsets)
    hits = covered(agents, subsets, records, "mid_range", Rule(), 0, "completion")
    n, n_covered = int(np.count_nonzero(~np.isnan(hits))), int(np.nansum(hits))
    if not n:
        return ""
    lower, upper = wilson(n_covered / n, n, 0.975)
    share = f"{n_covered:>5,} of {n:<5,} {100 * n_covered / n:5.1f}%"
    independent = "" if protocol == "random_80_20" else f"  [{100 * lower:.1f}, {100 * upper:.1f}]"
    return f"{name:<34}{protocol:<16}{share}{independent}"


def _cells(texts: tuple[str, ...] | list[str]) -> str:
    return "".join(f"{text:>12}" for text in texts)


if __name__ == "__main__":
    main(sys.argv[1])
