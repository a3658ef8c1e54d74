"""Lines of a board by hand."""

from dataclasses import fields

from leaderboard.studies.answers import AtTarget
from leaderboard.studies.answers import Line as Entrant

EMPTY = {
    "scaffold": "Loop",
    "model": "Model",
    "version": "",
    "organisation": "",
    "weights": "",
    "links": {},
    "run_by": "self",
    "trust": "verified",
    "submitted_at": None,
    "how": "measured",
    "condition": "",
    "n_tasks": 0,
    "n_trials": 0,
    "n_invalid": 0,
    "n_submissions": 1,
    "cost_usd": None,
    "cost_basis": "not stated",
    "n_tokens": None,
    "seconds": None,
    "icc": {"icc": None},
    "marks": (),
    "flags": (),
}
OF_TARGET = {field.name for field in fields(AtTarget)}


def entrant(name, **told):
    """An agent of which the same is told at every target."""
    at = AtTarget(**{key: value for key, value in told.items() if key in OF_TARGET})
    own = {key: value for key, value in told.items() if key not in OF_TARGET}
    return Entrant(agent=name, **EMPTY | own, at=dict.fromkeys(("subset", "full", "domain"), at))
