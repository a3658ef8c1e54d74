"""Adaptive assignment as a reader sees it: where an agent stands, and a replay with its tables and verdict.

`Step` is what `selection.adaptive_steps` finds; a replay is `selection.adaptive_replay.AdaptiveReplay` as
plain values. Nothing heavy is imported.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from selection.standings.words import counted, percent

PROTOCOLS = {"loao": "without the agent", "temporal": "in time"}

Plain = Mapping[str, Any]


@dataclass(frozen=True)
class Step:
    """Where an agent stands, and what it runs next.

    Attributes
    ----------
    waiting : tuple of str
        Tasks that it was asked for, active, and has not delivered; in the order asked.
    batch : tuple of str
        Those to be asked for next, ascending; empty while some are waiting, and when it is done.
    n_left : int
        Tasks until the last look that were not delivered in full batches: so many at most; 0 when done.
    look, n_looks : int
        Looks reached, of all; the figures are those of the last one reached, None before the first.
    k : int or None
        Tasks that they rest on.
    score, lower, upper, se : float or None
        ŷ, its interval in [0, 1], and c_t·se_t.
    rank_lower, rank_upper : int or None
        Ranks beside the past agents that the interval allows.
    done : bool
    reason : str
        Why nothing more is to be run, or how far it is.
    """

    waiting: tuple[str, ...]
    batch: tuple[str, ...]
    n_left: int
    look: int
    n_looks: int
    k: int | None
    score: float | None
    lower: float | None
    upper: float | None
    se: float | None
    rank_lower: int | None
    rank_upper: int | None
    done: bool
    reason: str

    @property
    def sentence(self) -> str:
        """Score, interval, and what is left."""
        found = estimate_text(self.score, self.lower, self.upper, self.k)
        left = left_text(
            n_waiting=len(self.waiting),
            n_next=len(self.batch),
            n_left=self.n_left,
            done=self.done,
            reason=self.reason,
        )
        return f"{found}; {left}"

    def as_plain(self) -> dict[str, Any]:
        """Return the same for a receipt."""
        names = ("look", "n_looks", "k", "score", "lower", "upper", "rank_lower", "rank_upper", "done")
        return {name: getattr(self, name) for name in names} | {
            "waiting": list(self.waiting),
            "n_left_at_most": self.n_left,
            "told": self.sentence,
        }


def estimate_text(score: float | None, lower: float | None, upper: float | None, k: int | None) -> str:
    """Say what is known of an agent's score so far."""
    if score is None or lower is None or upper is None or k is None:
        return "No score is told yet"
    return (
        f"Its score on all tasks is estimated at {percent(score)}%, between {percent(lower)} and "
        f"{percent(upper)} with 95%, from {counted(k, 'task')}"
    )


def left_text(*, n_waiting: int, n_next: int, n_left: int, done: bool, reason: str) -> str:
    """Say what an agent has left to run."""
    if done:
        return f"nothing is left to run: {reason}"
    most = f"at most {counted(n_left, 'task')} {'is' if n_left == 1 else 'are'} left"
    if n_waiting:
        wait = "waits" if n_waiting == 1 else "wait"
        return f"{counted(n_waiting, 'task')} asked for {wait} to be run, {most}"
    return f"ask for the next {counted(n_next, 'task')}, {most}"


def shown(replay: Plain) -> dict[str, Any]:
    """Return what `analytics.text.as_text` sets as text."""
    looks = ", ".join(map(str, replay["looks"]))
    told = {"in time": f"no replay: {replay['unavailable']}"} if replay["unavailable"] else {}
    return {
        "past agents": replay["n_agents"],
        "tasks": f"{replay['n_tasks']}, in batches of {replay['batch']}; looks after {looks}",
        **told,
        "stopping at a half-width": stops(replay),
        title_of_choices(replay): choices(replay),
        "": [verdict(replay)[0]],
    }


def stops(replay: Plain) -> list[dict[str, Any]]:
    """Return what stopping at each half-width would have meant, a row each."""
    return [
        {
            "past": PROTOCOLS[one["protocol"]],
            "half-width": one["half_width"],
            "tasks run": one["share_run"],
            "covered": f"{one['n_covered']} of {one['n']}",
            "95%": f"{one['covered_lo']:.3f} to {one['covered_hi']:.3f}",
            "never reach it": f"{one['n_never']} of {one['n']}",
        }
        for one in replay["replayed"]
    ]


def title_of_choices(replay: Plain) -> str:
    """Say what the second table compares."""
    return f"pairs in the right order from {counted(replay['k'], 'task')}"


def choices(replay: Plain) -> list[dict[str, Any]]:
    """Return how as many tasks chosen otherwise order agents, a row each."""
    return [
        {
            "chosen": one["strategy"],
            "pairs_correct_full": one["pairs_correct_full"],
            "adaptive is better by": one["difference"],
            "se": one["se"],
        }
        for one in replay["chosen"]
    ]


def verdict(replay: Plain) -> tuple[str, bool]:
    """Say whether adaptive orders better than every other choice by more than two standard errors."""
    others = [(one["strategy"], one["difference"] or 0.0, one["se"] or 0.0) for one in replay["chosen"][1:]]
    worse = [name for name, difference, se in others if difference < -2 * se]
    even = [name for name, difference, se in others if abs(difference) <= 2 * se]
    if worse:
        return f"Tasks chosen by {', '.join(worse)} order agents better than adaptive ones.", False
    if even:
        return f"No gain in order is shown over as many tasks chosen by {', '.join(even)}.", False
    return "Adaptive tasks order agents better than as many chosen otherwise.", True
