"""Study files and harnesses to test with."""

from pathlib import Path

METADATA = """
[metadata]
"task categories" = "made up"
"model names and versions" = "m1 to m3"
"API settings" = "none"
hardware = "any"
"container runtime" = "none"
"random seeds" = "1"
"harness software version" = "1"
"commit hash" = "none"
"""
SPACE = """
[space.workers]
kind = "int"
low = 1
high = 16
role = "instrument"

[space.scorer]
kind = "choice"
choices = ["exact", "fuzzy"]
role = "measurement"

[baseline]
workers = 4
scorer = "exact"
"""
CALLED = 'callable = "harness:run"'
HARNESS = '''
import hashlib, random


def run(request):
    """Scores that a seed and the settings give; five models would do, three are enough."""
    workers = request["configuration"]["workers"]
    cells = []
    for run in range(request["first_run"], request["first_run"] + request["n_runs"]):
        draw = random.Random(f"{request['seed']} {run}")
        for place, model in enumerate(request["models"]):
            shift = draw.gauss(0, 0.002 * workers)
            for task in request["tasks"]:
                hard = random.Random(f"{task} {model}").random() / 5
                score = 0.3 + 0.2 * place + hard + shift + draw.gauss(0, 0.05)
                cells.append({"model": model, "task": task, "run": run, "score": score, "cost_usd": 0.01})
    return {"cells": cells}
'''


def study_file(folder: Path, *, search="n_trials = 5", top="", harness=HARNESS, n_tasks=10, runs="") -> Path:
    """Write a study and its harness, a function, into a folder."""
    (folder / "harness.py").write_text(harness)
    names = ", ".join(f'"t{place:02d}"' for place in range(n_tasks))
    path = folder / "study.toml"
    path.write_text(
        'name = "toy"\nseed = 1\ndeadline_seconds = 20\nmodels = ["m1", "m2", "m3"]\n'
        f"tasks = [{names}]\n"
        f"{runs or CALLED}\n{top}\n{SPACE}\n[search]\nfraction = 0.5\n{search}\n"
        f"[full]\nn_runs = 3\n{METADATA}"
    )
    return path
