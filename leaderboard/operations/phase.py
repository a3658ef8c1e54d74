"""The phase of a benchmark, computed from its data and never set by hand."""

from leaderboard.boards.models import Phase
from leaderboard.catalog.models import Benchmark
from leaderboard.studies.models import TaskSubset
from leaderboard.studies.subsets import Band


def phase_of(*, benchmark: Benchmark, band: Band, subset: TaskSubset | None) -> tuple[Phase, str]:
    """Return the phase and a sentence that says why."""
    if benchmark.full_runs_only_at:
        return _without_subset(band), f"An operator asked for full runs: {benchmark.full_runs_only_reason}"
    if subset is None:
        return _without_subset(band), _sentence(band.reason)
    if subset.provisional:
        why = f"{subset.reason}; the subset is provisional until 15 agents have run all tasks"
        return Phase.PROVISIONAL, _sentence(why)
    return Phase.ONGOING, _sentence(subset.reason)


def _without_subset(band: Band) -> Phase:
    return Phase.COLD_START if band.stage == "none" else Phase.UNSUITED


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
