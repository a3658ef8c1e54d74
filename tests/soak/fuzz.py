"""One reader for so many seconds: changed samples, until something but its own refusal comes out.

``python -m tests.soak.fuzz NAME SECONDS atheris|hypothesis``. atheris follows which lines of the readers an
input reaches (libFuzzer); hypothesis changes the values of documents and makes failures small. Each runs in a
process of its own in 2 GiB of addresses: beyond, an allocation fails, and that is a failure too.
"""

import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import django

ROOT = Path(__file__).resolve().parents[2]
ENGINES = ("atheris", "hypothesis")
MARKS = ("null", "true", ",", "[", "]", "{", "}", '"', "\n", ":", "1e999")  # what atheris puts in anywhere
FOLLOWED = (
    "analytics.flat_file",
    "analytics.reml.formula",
    "leaderboard.accounts.secrets",
    "leaderboard.api.bodies",
    "leaderboard.api.parsers",
    "leaderboard.catalog.rules",
    "leaderboard.pages.board_query",
    "leaderboard.submissions.parsing",
)
CAP = 2 << 30  # bytes of addresses
LONGEST = 30  # seconds of processor for one input
MAX_LENGTH = 1 << 16  # bytes that atheris tries; larger ones are hypothesis's
BATCH = 200  # inputs of hypothesis between two looks at the clock
LOOK = 100
HAS_ATHERIS = importlib.util.find_spec("atheris") is not None


@dataclass(frozen=True)
class Fuzzed:
    """What came of one reader and engine; `failure` is empty where nothing failed."""

    name: str
    engine: str
    seconds: float
    n_inputs: int
    peak_mib: float
    failure: str


def fuzz(name: str, seconds: float, engine: str) -> Fuzzed:
    """Run the engine on the reader in a process of its own."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "tests.soak.fuzz", name, str(seconds), engine],
            cwd=ROOT,
            env=os.environ
            | {"OPENBLAS_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
            | {"SOAK_FOLDER": folder, "DJANGO_SETTINGS_MODULE": "leaderboard.settings"},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=20 * seconds + 600,
        )
        told = Path(folder, "told.json")
        found: dict[str, Any] = json.loads(told.read_text()) if told.exists() else {"n": 0, "peak": 0.0}
        failure = (
            "" if done.returncode == 0 else f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"[-6_000:]
        )
        for left in Path(folder).glob("crash-*"):
            failure += f"\ninput: {left.read_bytes()[:4_000]!r}"
    return Fuzzed(name, engine, time.monotonic() - begin, found["n"], found["peak"], failure)


def names() -> list[str]:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "leaderboard.settings")
    django.setup()
    from tests.soak.parsers import READERS

    return list(READERS)


class Counting:
    """Gives inputs to the reader, lets its refusals pass, and counts."""

    def __init__(self, reader: Any, file: Path | None = None) -> None:
        """`file`: where the number of inputs and the peak of memory are noted now and then."""
        self.reader, self.file, self.n = reader, file, 0

    def __call__(self, data: bytes) -> None:
        self.n += 1
        begin = time.process_time()
        try:
            self.reader.read(data)
        except self.reader.refusals as refusal:
            str(refusal)
        assert time.process_time() - begin < LONGEST, f"an input of {len(data):,} bytes took too long"
        if self.n % LOOK == 1:
            self.tell()

    def tell(self) -> None:
        if self.file is None:
            return
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        self.file.write_text(json.dumps({"n": self.n, "peak": peak}))


def by_hypothesis(name: str, seconds: float) -> None:
    from hypothesis import HealthCheck, Phase, given, settings

    django.setup()
    from tests.soak.changed import inputs
    from tests.soak.parsers import READERS

    end, counting = time.monotonic() + seconds, Counting(READERS[name], told_in())

    @settings(
        max_examples=BATCH,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    @given(inputs(READERS[name]))
    def holds(data: bytes) -> None:
        counting(data)

    while time.monotonic() < end:
        holds()
    counting.tell()


def by_atheris(name: str, seconds: float) -> None:
    import atheris

    with atheris.instrument_imports(include=list(FOLLOWED)):
        django.setup()
        from tests.soak.parsers import READERS
    folder = os.environ["SOAK_FOLDER"]
    corpus = Path(folder, "corpus")
    corpus.mkdir()
    for i, sample in enumerate(READERS[name].samples):
        (corpus / str(i)).write_bytes(sample)
    words = Path(folder, "words")
    words.write_text("".join(f'"{quoted(word)}"\n' for word in (*MARKS, *READERS[name].words)))
    options = {
        "max_total_time": max(1, round(seconds)),
        "max_len": MAX_LENGTH,
        "timeout": 10 * LONGEST,
        "rss_limit_mb": CAP >> 20,
        "dict": words,
        "artifact_prefix": f"{folder}/",
        "print_final_stats": 1,
    }
    counting = Counting(READERS[name], told_in())
    atheris.Setup(
        [sys.argv[0], str(corpus), *(f"-{key}={value}" for key, value in options.items())], counting
    )
    atheris.Fuzz()


def told_in() -> Path:
    return Path(os.environ["SOAK_FOLDER"], "told.json")


def quoted(word: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word.encode())


def main(name: str, seconds: str, engine: str) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (CAP, CAP))
    warnings.simplefilter("ignore")
    {"atheris": by_atheris, "hypothesis": by_hypothesis}[engine](name, float(seconds))


if __name__ == "__main__":
    main(*sys.argv[1:])
