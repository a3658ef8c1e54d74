"""The rules of a board: what is counted, which tasks are chosen, how a full score is estimated.

A policy of the service is the stored form of these rules, the flags of a command line are their typed form;
every answer takes them as one argument. The defaults are those of a new benchmark.

Source: Ndzomga, *Efficient Benchmarking of AI Agents*, §3.3 (band), §5.1 (refits). The rest is this project's
own.
"""

from dataclasses import dataclass, field
from typing import Literal, get_args

from analytics.record import TRUST, Counting
from selection.errors import check_ranges

Target = Literal["subset", "full", "domain"]
GroupsName = Literal["auto", "none", "category:stratum", "category:cluster", "group:stratum", "group:cluster"]
EstimatorName = Literal["completion", "ridge", "line"]
ESTIMATORS: tuple[EstimatorName, ...] = ("completion", "ridge", "line")
BY_CALIBRATION = ("ridge", "line")
GROUPS: tuple[GroupsName, ...] = get_args(GroupsName)
TARGETS: tuple[Target, ...] = ("subset", "full", "domain")


@dataclass(frozen=True)
class Rules:
    """How a board is made.

    lo, hi: edges of the band of pass rates, both included; 0 ≤ lo < hi ≤ 1.
    widening: whether a band with under a tenth of the tasks is widened to 25-75%, then 15-85%.
    history_window: pass rates come from the latest so many complete agents, at least 5; None: from all.
    hysteresis: how far outside the band a task of the subset may lie and stay, 0 to 0.5.
    estimator: {"", "completion", "ridge", "line"}: of the full score of an agent that ran the subset; "" is
        `completion`.
    target: {"subset", "full", "domain"}: what the board is ordered by; None: the full suite, or the subset
        where the full score cannot be estimated from it or orders agents worse.
    subset_from: complete agents from which on a subset is fixed; before, it is a preview.
    refit_every: complete agents after which the calibration is fitted anew.
    seed: every random draw derives from it and from stable names.
    headline_from: {"", "self_reported", "logs", "verified"}: the least trust of an agent that headlines are
        made from; "": verified, once there are five such agents.
    trial_noise: "0.118 from Terminal-Bench": ω that another benchmark measured, above 0 and at most 1, used
        where no agent has two trials of a task; "": errors are upper bounds there.
    groups: {"auto", "none", "category:stratum", "category:cluster", "group:stratum", "group:cluster"}: what
        the target `domain` takes tasks of one group or category for: drawn together (cluster), or given with
        their share of tasks (stratum). "auto": groups are clusters where there are at least 10, one of them
        with two tasks; categories have no role. "none": tasks are independent.
    counting: which outcomes count, and as what.
    Raises SelectionError: rules_range: with the field, its value and its range.
    """

    lo: float = 0.30
    hi: float = 0.70
    widening: bool = True
    history_window: int | None = None
    hysteresis: float = 0.0
    strategy: str = "mid_range"
    estimator: str = ""
    target: Target | None = None
    subset_from: int = 15
    refit_every: int = 5
    n_trials: int = 1
    seed: int = 0
    headline_from: str = ""
    trial_noise: str = ""
    groups: str = "auto"
    counting: Counting = field(default_factory=Counting)

    def __post_init__(self) -> None:
        window = self.history_window
        ranges = {
            "lo": (0 <= self.lo < self.hi, "from 0 to below the upper edge"),
            "hi": (self.hi <= 1, "at most 1"),
            "history_window": (window is None or window >= 5, "at least 5"),
            "hysteresis": (0 <= self.hysteresis < 0.5, "from 0 to below 0.5"),
            "estimator": (self.estimator in ("", *ESTIMATORS), f"one of {', '.join(ESTIMATORS)}"),
            "target": (self.target is None or self.target in TARGETS, f"one of {', '.join(TARGETS)}"),
            "subset_from": (5 <= self.subset_from <= 50, "from 5 to 50"),
            "refit_every": (5 <= self.refit_every <= 10, "from 5 to 10"),
            "headline_from": (self.headline_from in ("", *TRUST), f"one of {', '.join(TRUST)}"),
            "groups": (self.groups in GROUPS, f"one of {', '.join(GROUPS)}"),
            "n_trials": (self.n_trials >= 1, "at least 1"),
            "trial_noise": (
                not self.trial_noise or borrowed_omega(self.trial_noise) is not None,
                "empty, or a number above 0 and at most 1, from, and a source, such as 0.118 from "
                "Terminal-Bench",
            ),
            "seed": (self.seed >= 0, "at least 0"),
        }
        check_ranges(self, "rules_range", **ranges)


def borrowed_omega(trial_noise: str) -> float | None:
    """Return 0.118 of "0.118 from Terminal-Bench"; None where that is no such text."""
    share, _, source = trial_noise.partition(" from ")
    try:
        omega = float(share)
    except ValueError:
        return None
    return omega if 0 < omega <= 1 and source.strip() and trial_noise.isprintable() else None
