"""A replay of adaptive assignment as a reader sees it: its tables and verdict.

A replay is `selection.adaptive_replay.AdaptiveReplay` as plain values. Nothing heavy is imported.
"""

from collections.abc import Mapping
from typing import Any

from selection.standings.words import counted

PROTOCOLS = {"loao": "without the agent", "temporal": "in time"}

Plain = Mapping[str, Any]


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
