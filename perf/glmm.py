"""Binomial mixed models by `analytics.glmm.fit_logit` against lme4's glmer: deviance, seconds of a processor.

Both fit the same counts; ours is timed from rows of labels in memory, glmer from a data frame of the cells.
Seconds are those of the processor (R's `user.self`), as other work on the machine does not enter there. Where
`Rscript` with lme4 is missing, glmer is skipped by name and its stored fit (`tests/reference/glmer.json`)
stands in for the deviance; `--store` writes that file.

The crossed design is simulated: 60 items × 5 prompts × 3 judges × 3 temperatures, 5 replicates, all terms of
`analytics.tee`; the two interactions with the temperature are absent from it, and their estimates are 0. Run
with `python -m perf.glmm`; the real data are looked for as the tests do.
"""

import csv
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from analytics.glmm import LogitFit, fit_logit
from perf import Columns, columns_of, data_folder

N_RUNS = 3
SEED = 2
STORED = Path(__file__).resolve().parent.parent / "tests" / "reference" / "glmer.json"
ABOVE = 1e-4
CROSSED = (
    "item + prompt + item:prompt + item:temperature + prompt:temperature + item:judge + prompt:judge"
    " + item:prompt:judge:temperature"
)
# name: file, outcome, random, fixed, least ratio
DESIGNS = {
    "tbcore, agent + task": ("reference/tbcore", "score", "agent + task", "", 4),
    "tbcore, with agent:task": ("reference/tbcore", "score", "agent + task + agent:task", "", 4),
    "Verified, agent + task": ("swebench_verified_2023_2025", "outcome", "agent + task", "", 4),
    "crossed 60 × 5 × 3 × 3 × 5": (None, "outcome", CROSSED, "judge + temperature", 10),
}
GLMER = """
d <- read.csv('{file}', colClasses = c(s = 'numeric', f = 'numeric'))
for (n in setdiff(names(d), c('s', 'f'))) d[[n]] <- factor(d[[n]])
t <- system.time(m <- suppressMessages(suppressWarnings(lme4::glmer({formula}, d, family = binomial))))
v <- as.data.frame(lme4::VarCorr(m))
cat(sprintf('%.10f %.6f %s', -2 * as.numeric(logLik(m)), t[['user.self']], packageVersion('lme4')), '\\n')
cat(sprintf('%s %.8g', v$grp, v$vcov), sep = '\\n'); cat('\\n')
"""


def crossed() -> Columns:
    rng = np.random.default_rng(SEED)
    sizes = {"item": 60, "prompt": 5, "judge": 3, "temperature": 3}
    item, prompt, judge, temperature, _ = (axis.ravel() for axis in np.indices((*sizes.values(), 5)))
    normal = rng.standard_normal
    eta = 0.5 + 1.2 * normal(60)[item] + 0.5 * normal(5)[prompt] + 0.4 * normal((60, 5))[item, prompt]
    eta += 0.8 * normal((60, 3))[item, judge] + 0.3 * normal((5, 3))[prompt, judge]
    eta += 0.5 * normal((60, 5, 3, 3))[item, prompt, judge, temperature] + np.array([0, 0.4, -0.3])[judge]
    outcome = rng.random(item.size) < 1.0 / (1.0 + np.exp(-eta))
    codes = zip(sizes, (item, prompt, judge, temperature), strict=True)
    labels = {name: [f"{name[0]}{code:02}" for code in column] for name, column in codes}
    return labels | {"outcome": [str(int(value)) for value in outcome]}


def fitted(name: str, columns: Columns) -> tuple[float, LogitFit]:
    """Seconds of the processor, median of a few runs, and the fit."""
    _, outcome, random, fixed, _ = DESIGNS[name]
    y, taken = np.array(columns[outcome], dtype=np.float64), []
    for _ in range(N_RUNS):
        begin = time.process_time()
        result = fit_logit(columns, y, random=random, fixed=fixed)
        taken.append(time.process_time() - begin)
    return statistics.median(taken), result


def glmer(name: str, columns: Columns) -> dict:
    """The fit of glmer to the counts of each cell."""
    _, outcome, random, fixed, _ = DESIGNS[name]
    factors = list(
        dict.fromkeys(random.replace(" + ", ":").split(":") + [f for f in fixed.split(" + ") if f])
    )
    keys = list(zip(*(columns[factor] for factor in factors), strict=True))
    trials, wins = Counter(keys), Counter()
    for key, value in zip(keys, columns[outcome], strict=True):
        wins[key] += int(float(value))
    formula = " + ".join([fixed or "1", *(f"(1 | {term})" for term in random.split(" + "))])
    with tempfile.NamedTemporaryFile("w", suffix=".csv", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*factors, "s", "f"])
        writer.writerows([*key, wins[key], n - wins[key]] for key, n in sorted(trials.items()))
        file.flush()
        script = GLMER.format(file=file.name, formula=f"cbind(s, f) ~ {formula}")
        ended = subprocess.run(["Rscript", "-e", script], check=True, capture_output=True, text=True)
    first, *components = ended.stdout.strip().splitlines()
    deviance, seconds, version = first.split()
    return {
        "lme4": version,
        "deviance": float(deviance),
        "seconds": float(seconds),
        "components": {row.split()[0]: float(row.split()[1]) for row in components},
    }


def has_glmer() -> bool:
    if not shutil.which("Rscript"):
        return False
    return not subprocess.run(["Rscript", "-e", "library(lme4)"], check=False, capture_output=True).returncode


def main() -> None:
    if not data_folder().is_dir():
        sys.exit(f"no real data: there is no folder {data_folder()}")
    here, stored = has_glmer(), json.loads(STORED.read_text()) if STORED.exists() else {}
    print(f"Laplace deviance, seconds of one processor (median of {N_RUNS})")
    for name, (file, _, _, _, least) in DESIGNS.items():
        columns = columns_of(file) if file else crossed()
        taken, result = fitted(name, columns)
        print(f"{name}: {result.n_rows:,} rows, {result.n_cells:,} cells")
        print(f"    ours   {result.deviance:14.6f}  {taken:8.3f} s  {result.message}")
        print(f"           {', '.join(f'{k} {v:.6g}' for k, v in result.components.items())}")
        if here:
            stored[name] = glmer(name, columns)
        rival = stored[name]
        above = result.deviance - rival["deviance"]
        print(f"    glmer  {rival['deviance']:14.6f}  {rival['seconds']:8.3f} s  lme4 {rival['lme4']}")
        print(f"           {', '.join(f'{k} {v:.6g}' for k, v in rival['components'].items())}")
        print(f"    ours less glmer's {above:+.1e} (at most {ABOVE:g})")
        ratio = rival["seconds"] / taken
        print(
            f"    ratio of seconds {ratio:.1f} (at least {least})"
            if here
            else f"    {name}: glmer skipped, no Rscript with lme4; its deviance is the stored one"
        )
    if "--store" in sys.argv[1:] and here:
        STORED.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
