"""The phase of a benchmark: computed from its record and what is open, never set by hand."""

from typing import cast

from selection.given import Given
from selection.rules import Rules
from selection.standings.choice import Choice
from selection.standings.lines import Phase
from selection.standings.terms import sentence

BY_STAGE = {"none": "cold_start", "provisional": "provisional", "stable": "ongoing"}


def phase_of(chosen: Choice, rules: Rules, given: Given) -> tuple[Phase, str]:
    """Return the phase and a sentence that says why.

    Parameters
    ----------
    chosen : Choice
    rules : Rules
    given : Given

    Notes
    -----
    ``cold_start`` under 5 complete agents, ``provisional`` under `Rules.subset_from`, ``unsuited`` without a
    usable band, ``revalidating`` while a drift request is open, else ``ongoing``. ``saturated`` is for a
    monitor to say.
    """
    if given.full_runs_only:
        return _staged(chosen), sentence(f"an operator asked for full runs: {given.full_runs_only}")
    if chosen.line is None and not chosen.is_suited and chosen.stage != "none":
        return "unsuited", sentence(chosen.reason)
    if chosen.line is None:
        return _staged(chosen), sentence(chosen.reason)
    if given.revalidating:
        return "revalidating", sentence(given.revalidating)
    if chosen.line.provisional:
        until = f"the subset is a preview until {rules.subset_from} agents have run all tasks"
        return "provisional", sentence(f"{chosen.reason}; {until}")
    return _staged(chosen), sentence(chosen.reason)


def _staged(chosen: Choice) -> Phase:
    return cast(Phase, BY_STAGE[chosen.stage])
