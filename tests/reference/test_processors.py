"""The same board on any processor: what is digested has no last bit of one.

The kernels of OpenBLAS and the loops of numpy are chosen by what the processor can do; sums of products are
then added in another order. Here the choice is made by hand, in processes of their own.
"""

import json
import os
import platform
import subprocess
import sys

import numpy as np
import pytest

from analytics.flat_file import read
from analytics.record import Record
from leaderboard.boards.signing import canonical_json
from leaderboard.studies.demonstration import write_history, write_newcomers
from selection.standings import answer
from tests.toys import AS_OF, rows_text

FOUND = np.show_config("dicts")["SIMD Extensions"].get("found", [])
OLDEST = {"OPENBLAS_CORETYPE": "Nehalem", "NPY_DISABLE_CPU_FEATURES": " ".join(FOUND)}
NEWER = {
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": " ".join(name for name in FOUND if name != "X86_V3"),
}
PROCESSORS = {"this one": {}, "without AVX": OLDEST} | (
    {"without AVX-512": NEWER} if "X86_V3" in FOUND else {}
)
GAIA, TAU = "hal_gaia", "hal_taubench_airline"
REAL = [
    *(("selection", "standings", name) for name in (GAIA, TAU)),
    ("selection", "standings", "terminal_bench_core_011"),
    ("selection", "standings", "swebench_verified_2023_2025"),
    ("selection", "validate", TAU, "--seeds", "2", "--strategy", "mid_range", "information", "greedy"),
    ("selection", "drift", GAIA),
    ("analytics", "harness", "hal_corebench_hard"),
    ("analytics", "harness", "swebench_lite_repeats_acr"),
]
pytestmark = pytest.mark.slow(each=True)


def on_each_processor(package, command, path, *flags):
    """What a command answers, numbers as a board's digest takes them, by processor."""
    found = {}
    for name, chosen in PROCESSORS.items():
        ran = subprocess.run(
            [sys.executable, "-m", package, command, path, *flags, "--json"],
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"} | chosen,
            capture_output=True,
            check=True,
            text=True,
        )
        found[name] = json.loads(canonical_json(json.loads(ran.stdout)))
    return found


def is_one(found):
    first, *others = found
    for other in others:
        assert found[other] == found[first], f"{other} differs from {first}"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="kernels are chosen by name on x86 alone")
def test_the_processors_are_others():
    """The oldest adds another way: else nothing would be compared."""
    told = "import numpy; a = numpy.random.default_rng(0).random((60, 500)); print((a @ a.T).tobytes().hex())"
    products = {
        subprocess.run(
            [sys.executable, "-c", told], env=os.environ | chosen, capture_output=True, check=True
        ).stdout
        for chosen in PROCESSORS.values()
    }
    assert len(products) > 1


def test_the_demonstration_with_estimated_agents(tmp_path):
    write_history(tmp_path / "history.csv")
    chosen = answer(Record.from_flat(read(tmp_path / "history.csv", as_of=AS_OF))).subset.tasks
    write_newcomers(tmp_path / "new.csv", tasks=chosen)
    with (tmp_path / "all.csv").open("w") as file:
        file.write((tmp_path / "history.csv").read_text())
        file.write((tmp_path / "new.csv").read_text().partition("\n")[2])
    found = on_each_processor("selection", "standings", tmp_path / "all.csv")
    assert sum(line["how"] == "estimated" for line in found["this one"]["agents"]) == 6
    is_one(found)


def test_two_prompts(tmp_path):
    rng = np.random.default_rng(2)
    rows = [
        {
            "agent": f"a{i:02d}",
            "task": f"t{j:02d}",
            "prompt_variant": prompt,
            "outcome": int(rng.random() < p),
        }
        for i in range(42)
        for prompt in (("p1", "p2") if i < 40 else ("p2",) if i < 41 else ("p3",))
        for j, p in enumerate(np.linspace(0.05, 0.95, 30))
    ]
    (tmp_path / "prompts.csv").write_text(rows_text(rows))
    is_one(on_each_processor("selection", "standings", tmp_path / "prompts.csv"))


@pytest.mark.parametrize(("package", "command", "name", "flags"), [(*one[:3], one[3:]) for one in REAL])
def test_real_boards(real_data, package, command, name, flags):
    is_one(on_each_processor(package, command, real_data / f"{name}.csv.gz", *flags))
