"""The phase of a benchmark, computed from its data and never set by hand."""

from leaderboard.boards.models import Phase
from leaderboard.catalog.models import Benchmark
from leaderboard.studies.models import TaskSubset
from leaderboard.studies.subsets import Band


def phase_of(
    *, benchmark: Benchmark, band: Band, subset: TaskSubset | None, obstacle: str = ""
) -> tuple[Phase, str]:
    """Return the phase and a sentence that says why; `obstacle` is what kept a subset from being chosen."""
    if subset is None and not band.suited:
        return Phase.COLD_START if band.stage == "none" else Phase.UNSUITED, _sentence(band.reason)
    if subset is None:
        why = obstacle or f"An operator asked for full runs: {benchmark.full_runs_only_reason}"
        return Phase.PROVISIONAL if band.stage == "provisional" else Phase.ONGOING, _sentence(why)
    if subset.provisional:
        why = f"{subset.reason}; the subset is provisional until 15 agents have run all tasks"
        return Phase.PROVISIONAL, _sentence(why)
    return Phase.ONGOING, _sentence(subset.reason)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."
