"""A study that is killed again and again beside one that is left alone: `python -m tests.tuning.kills`.

A kill comes once so many runs are stored, at moments drawn over the whole study, and after a part of a run.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from analytics.research.tuning.search import trial_of
from analytics.research.tuning.store import Store
from analytics.research.tuning.study import read_study
from tests.tuning.studies import HARNESS, study_file

COUNTING = HARNESS.replace(
    "def run(request):",
    """def run(request):
    with open("asked.log", "a") as log:
        log.write(request["answer"] + "\\n")
    return scored(request)


def scored(request):""",
)
HOW = {
    "tpe": 'sampler = "tpe"\nhyperband = {min = 2, max = 4, factor = 2}',
    "nsga2": 'sampler = "nsga2"',
}


@dataclass(frozen=True)
class Compared:
    """Trials of both studies, files of runs of both, runs asked for and stored, marks of processes left."""

    quiet: list
    rough: list
    quiet_files: list
    rough_files: list
    n_asked: int
    n_kills: int
    n_left: int


def trials(path):
    store = Store(read_study(path))
    return [
        (one.number, dict(one.configuration), one.state, one.figures.F)
        for one in (trial_of(store.study, trial) for trial in store.trials())
    ]


def files(folder):
    return sorted(path.name for path in (folder / "study.tuning" / "runs").glob("*.parquet"))


def started(folder):
    return subprocess.Popen(
        [sys.executable, "-m", "analytics.research.tuning", "run", str(folder / "study.toml")],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def killed(folder, moments, draw):
    """Kill the study at each of the moments, numbers of stored runs; return how often it was not done yet."""
    n_kills = 0
    for moment in sorted(moments):
        process = started(folder)
        while process.poll() is None and len(files(folder)) < moment:
            time.sleep(0.02)
        time.sleep(0.5 * draw.random())
        n_kills += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
    return n_kills


def compared(folder, sampler, *, n_trials, n_kills, seed):
    """Run a study twice, once undisturbed, and compare."""
    quiet, rough = Path(folder, "quiet"), Path(folder, "rough")
    for one in (quiet, rough):
        one.mkdir()
        study_file(one, search=f"{HOW[sampler]}\nn_trials = {n_trials}\npatience = 999", harness=COUNTING)
    assert started(quiet).wait() == 0
    draw = random.Random(seed)
    n_kills = killed(rough, draw.sample(range(len(files(quiet))), n_kills), draw)
    assert started(rough).wait() == 0
    return Compared(
        quiet=trials(quiet / "study.toml"),
        rough=trials(rough / "study.toml"),
        quiet_files=files(quiet),
        rough_files=files(rough),
        n_asked=len((rough / "asked.log").read_text().split()),
        n_kills=n_kills,
        n_left=len(list((rough / "study.tuning" / "runs").glob("*.pid"))),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--kills", type=int, default=20)
    arguments = parser.parse_args()
    for sampler in HOW:
        with tempfile.TemporaryDirectory() as folder:
            found = compared(folder, sampler, n_trials=arguments.trials, n_kills=arguments.kills, seed=1)
        same = sum(one == other for one, other in zip(found.quiet, found.rough, strict=True))
        print(
            f"{sampler:6} {len(found.quiet)} trials, killed {found.n_kills} times: {same} equal those of "
            f"the undisturbed study; {len(found.rough_files)} runs stored, "
            f"{'the same' if found.rough_files == found.quiet_files else 'OTHERS'}; "
            f"{found.n_asked - len(found.rough_files)} run again, which a kill had interrupted; "
            f"{found.n_left} processes left",
            flush=True,
        )


if __name__ == "__main__":
    main()
