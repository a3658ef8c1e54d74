"""REML by `analytics.reml.fit` against lme4's lmer: seconds, and peak memory.

The rival's seconds are those stored with the reference fits (lme4 1.1-31 on a machine like this one). For the
two Arena-like designs they are 223 s, and 117 s with rows missing, which lmer took there for designs of this
size, not for these draws. Where `Rscript` with lme4 is there, lmer is also run here, on the same rows; its
processor seconds are what the least ratio asks for. Ours is the whole of `fit`, from columns of labels in
memory to the result, median of five, on one BLAS thread, in processor seconds too. Peak memory is that of a
fresh interpreter that reads and fits.

The Arena-like design has the size of the paper's: 4,676 battles × 5 prompts × 3 judges × 2 responses, 140,280
scores (TEE App. R); simulated, as the scores are not ours. Run with `python -m perf.reml`; the reference data
are looked for as the tests do.
"""

import csv
import json
import multiprocessing
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from analytics.programs import one_blas_thread
from analytics.reml import VarianceFit, fit
from perf import Columns, columns_of, data_folder

N_RUNS = 5
N_DRAWS = 2_000
BOOTSTRAP_LIMIT = 5.0
CROSSED = (
    "item + prompt + item:prompt + item:temp + prompt:temp + item:judge + prompt:judge"
    " + item:prompt:judge:temp"
)
ARENA = "item + prompt + item:prompt + item:judge + prompt:judge + item:prompt:judge"
ARENA_SECONDS = {"arena": 223.0, "arena, 2% missing": 117.0}
# name: outcome, random, fixed, stored fit, least ratio to lmer here
DESIGNS = {
    "crossed141": ("score", CROSSED, "temp + judge", "crossed141.lmer", 500),
    "unbalanced40": ("score", CROSSED, "temp + judge", "unbalanced40.lmer", 20),
    "InstEval": ("y", "s + d + dept:service", "", "InstEval.reml", 10),
    "arena": ("score", ARENA, "judge", None, 1_000),
    "arena, 2% missing": ("score", ARENA, "judge", None, 100),
}


def arena(share_missing: float, n_items: int = 4_676) -> Columns:
    rng = np.random.default_rng(4676)
    item, prompt, judge, _ = (axis.ravel() for axis in np.indices((n_items, 5, 3, 2)))
    score = (
        3.5
        + 0.6 * rng.standard_normal(n_items)[item]
        + 0.15 * rng.standard_normal(5)[prompt]
        + 0.2 * rng.standard_normal((n_items, 5))[item, prompt]
        + 0.45 * rng.standard_normal((n_items, 3))[item, judge]
        + 0.1 * rng.standard_normal((5, 3))[prompt, judge]
        + 0.25 * rng.standard_normal((n_items, 5, 3))[item, prompt, judge]
        + 0.5 * rng.standard_normal(item.size)
    )
    kept = np.flatnonzero(rng.random(item.size) >= share_missing)
    codes = {"item": item, "prompt": prompt, "judge": judge}
    labels = {name: [f"{name[0]}{code}" for code in column[kept]] for name, column in codes.items()}
    return labels | {"score": [repr(float(value)) for value in score[kept]]}


def design(name: str) -> Columns:
    if name in ARENA_SECONDS:
        return arena(0.0 if name == "arena" else 0.02)
    return columns_of(f"reference/{name}")


def fitted(name: str, columns: Columns, y: np.ndarray) -> VarianceFit:
    _, random, fixed, _, _ = DESIGNS[name]
    return fit(columns, y, random=random, fixed=fixed)


def seconds(name: str, columns: Columns) -> tuple[float, VarianceFit]:
    y = np.array(columns[DESIGNS[name][0]], dtype=np.float64)
    taken = []
    for _ in range(N_RUNS):
        begin = time.process_time()
        with one_blas_thread():
            result = fitted(name, columns, y)
        taken.append(time.process_time() - begin)
    return statistics.median(taken), result


def stored(name: str) -> dict:
    file = DESIGNS[name][3]
    if file is None:
        return {"seconds_fit": ARENA_SECONDS[name]}
    return json.loads((data_folder() / "reference" / f"{file}.json").read_text())


def peak_mib(name: str) -> float:
    """Peak memory of a fresh interpreter that reads the columns and fits."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_peak_mib, (name,))


def _peak_mib(name: str) -> float:
    columns = design(name)
    fitted(name, columns, np.array(columns[DESIGNS[name][0]], dtype=np.float64))
    # Not ru_maxrss: a child inherits that of the parent it was forked from.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def lmer(columns: Columns, outcome: str, random: str, fixed: str) -> tuple[float, np.ndarray] | None:
    """Processor seconds of lmer and its criterion, (1,); None where there is no R with lme4."""
    if not shutil.which("Rscript"):
        return None
    formula = " + ".join([fixed or "1", *(f"(1 | {term})" for term in random.split(" + "))])
    with tempfile.NamedTemporaryFile("w", suffix=".csv", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
        file.flush()
        lines = (
            "if (!requireNamespace('lme4', quietly = TRUE)) quit()",
            f"d <- read.csv('{file.name}')",
            f"for (n in setdiff(names(d), '{outcome}')) d[[n]] <- factor(d[[n]])",
            f"t <- system.time(m <- lme4::lmer({outcome} ~ {formula}, d))",
            "cat(t[['user.self']], format(lme4::REMLcrit(m), digits = 15))",
        )
        command = ["Rscript", "-e", "; ".join(lines)]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return (float(printed[0]), np.array([float(printed[1])])) if printed else None


def main() -> None:
    if not (data_folder() / "reference").is_dir():
        sys.exit(f"no reference data: there is no folder {data_folder() / 'reference'}")
    print(f"REML, processor seconds, median of {N_RUNS}; lmer's as stored or stated, and here")
    for name, (*_, least) in DESIGNS.items():
        columns, rival = design(name), stored(name)
        taken, result = seconds(name, columns)
        ratio = rival["seconds_fit"] / taken
        print(
            f"{name:18} {result.n_rows:7,} rows  {taken:8.4f} s  lmer {rival['seconds_fit']:6.2f} s  "
            f"ratio {ratio:8,.0f}  {result.method}"
        )
        memory = f", lmer {rival['peak_rss_mb']:.0f} MiB" if "peak_rss_mb" in rival else ""
        print(f"{'':18} peak memory {peak_mib(name):.0f} MiB{memory}")
        outcome, random, fixed, *_ = DESIGNS[name]
        rival_here = lmer(columns, outcome, random, fixed)
        here = rival_here and rival_here[0]
        above = rival_here[1].item() - result.criterion if rival_here else 0.0
        print(
            f"{'':18} lmer here: "
            + (
                f"{here:.2f} s, ratio {here / taken:,.0f} (at least {least:,}), criterion {above:+.0e}"
                if here
                else "no R with lme4"
            )
        )
    result = seconds("crossed141", design("crossed141"))[1]
    begin = time.process_time()
    result.likelihood.refits(result.parameters, N_DRAWS, np.random.default_rng(1))
    taken = time.process_time() - begin
    print(f"{N_DRAWS:,} parametric bootstrap draws of crossed141: {taken:.3f} s (under {BOOTSTRAP_LIMIT:g})")


if __name__ == "__main__":
    main()
