"""Where a walk stands and what a replay found, as a reader sees it. Nothing heavy is imported."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from selection.standings.words import counted, percent

BELOW_MOSTLY = ("not yet", "full runs")
RUNNING, STOPPED, DRAWN, COMPLETE = "running", "stopped", "drawn", "complete"


@dataclass(frozen=True)
class WalkState:
    """Where an agent stands, and what it runs next.

    stage: stopped and complete walks are over; a drawn one has an estimate, and runs the rest.
    waiting, batch: tasks that were asked for, active, and are not there yet, in the order asked; those to ask
        for next, ascending.
    n_run, n_tasks: tasks that are there of those asked for; all active tasks.
    podium, best: the scores that it is compared with: that of the podium's last place, and the best.
    score, lower, upper, se: its estimated full score, the 95% interval, and the standard error; None while
        tasks are waiting, and where all were run.
    """

    stage: str
    waiting: tuple[str, ...]
    batch: tuple[str, ...]
    n_run: int
    n_tasks: int
    podium: float
    best: float
    reason: str
    score: float | None = None
    lower: float | None = None
    upper: float | None = None
    se: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to run."""
        return self.stage in (STOPPED, COMPLETE)

    @property
    def sentence(self) -> str:
        """Score, interval, and what is left, without a full stop."""
        estimate = ""
        if self.score is not None and self.lower is not None and self.upper is not None:
            estimate = (
                f"estimated at {percent(self.score)}% on all tasks (95% interval {percent(self.lower)} to "
                f"{percent(self.upper)}) from {counted(self.n_run, 'task')}; "
            )
        text = estimate + self._left
        return text[0].upper() + text[1:]

    @property
    def _left(self) -> str:
        if self.stage == COMPLETE:
            return "all tasks are run"
        if self.waiting:
            n, then = len(self.waiting), "; then ask again" if self.stage == RUNNING else ""
            return f"{counted(n, 'task')} asked for {'is' if n == 1 else 'are'} still to be run{then}"
        if self.stage == STOPPED:
            return f"nothing is left to run: {self.reason}"
        if self.stage == DRAWN:
            return (
                f"it was drawn to run the rest, {counted(len(self.batch), 'task')}, so that estimates can be "
                "checked"
            )
        return f"ask for the next {counted(len(self.batch), 'task')}: {self.reason}"

    def as_plain(self) -> dict[str, Any]:
        """Return the same for a receipt."""
        values = {name: value for name, value in asdict(self).items() if name not in ("batch", "waiting")}
        return values | {"waiting": list(self.waiting), "done": self.is_over, "told": self.sentence}


def is_below_mostly(verdict: Mapping[str, Any] | None) -> bool:
    """Whether a replay says that the rule does not hold, or saves next to nothing."""
    return verdict is not None and verdict["word"] in BELOW_MOSTLY


def fallen(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> dict[str, Any]:
    """Return whether a verdict fell below mostly, in the form of a monitor's finding.

    before: the last validation whose verdict was mostly or better, None where there was none.
    """
    replay = now.get("replay")
    verdict = replay and replay["verdict"]
    finding: dict[str, Any] = {"state": "ok", "statistic": None, "threshold": None, "evidence": {}}
    if not replay or not verdict:
        reason = replay["reason"] if replay else "no replay was made: tasks are not assigned by a rule"
        return finding | {"state": "insufficient", "reason": reason, "advice": "nothing to do"}
    now_text = f"{verdict['word']} ({line_of(replay)})"
    if not is_below_mostly(verdict) or before is None:
        since = "" if before else "; it was never mostly"
        return finding | {"reason": f"the verdict is {now_text}{since}", "advice": "nothing to do"}
    old, others = before["replay"], now.get("others", ())
    choices = "; or ".join(f"{one['rule']} ({line_of(one)})" for one in others)
    return finding | {
        "state": "alert",
        "reason": f"the verdict was {old['verdict']['word']} ({line_of(old)}) and is {now_text}",
        "evidence": {"before": old, "now": replay, "others": list(others)},
        "advice": f"choose new ranking tasks, let more run on, or ask for full runs. Replayed: {choices}",
    }


def replay_row(replay: Mapping[str, Any]) -> dict[str, Any]:
    """Return a replay as a line of a table of rules."""
    figures, verdict = replay["figures"], replay["verdict"]
    if figures is None:
        return {"verdict": f"not known yet: {replay['reason']}"}
    return {
        "saved": _share(figures["saved"]),
        "pairs in order": _percent(figures["pairs"]),
        "best five": f"{5 * figures['best_five']:.1f}",
        "points below best": percent(figures["regret"]),
        "95% intervals": "none" if figures["coverage"] is None else _percent(figures["coverage"]),
        "verdict": verdict["word"].replace("few", "few data"),
    }


def line_of(replay: Mapping[str, Any]) -> str:
    """Return the same as a clause."""
    row = replay_row(replay)
    verdict = row.pop("verdict")
    return "; ".join([*(f"{name} {value}" for name, value in row.items()), f"verdict: {verdict}"])


def replay_figures(validation: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of the replay in a validation, for a table; empty without one."""
    replay = validation.get("replay")
    if not replay or replay["figures"] is None:
        return {}
    rows = shown(replay["figures"], replay["verdict"])
    return {name: value for name, value in rows.items() if name != "verdict"}


def shown(replay: Mapping[str, Any], verdict: Mapping[str, Any]) -> dict[str, Any]:
    """Return a replay and its verdict, as plain values, as what `analytics.text.as_text` sets as text."""
    bias, rmse, n_seeds = replay["bias"], replay["rmse"], replay["n_seeds"]
    order = "oldest first" if replay["is_dated"] else "in random order, as dates are missing"
    is_mean = n_seeds > 1
    rows = {
        "verdict": verdict["text"],
        "agents": f"{replay['n_agents']} with full runs on {counted(replay['n_tasks'], 'task')}, {order}",
        **(
            {"replays": f"{n_seeds} with different random seeds; figures are means (smallest to largest)"}
            if is_mean
            else {}
        ),
        "trials saved": f"{_share(replay['saved'])}{_range(replay, 'saved')}; "
        f"{_share(replay['saved_late'])} for the later half of the agents",
        "pairs in order": f"{_percent(replay['pairs'])} as in the full runs{_range(replay, 'pairs')}; two "
        "agents that run all tasks always are; random tasks at the same cost: "
        f"{_share(replay['random_pairs'])}",
        "second full run": f"at least {_share(replay['ceiling'])} of pairs in the order of the first "
        "(simulated at one trial per task; differences of agents between tasks count as luck)",
        **(
            {"clear pairs": f"{_percent(replay['clear_pairs'])} in order, of those that are clear (95%)"}
            if replay["clear_pairs"] is not None
            else {}
        ),
        "best five found": f"{5 * replay['best_five']:.1f}{_range(replay, 'best_five', _of_five)}; "
        f"random tasks: {5 * replay['random_best_five']:.1f}",
        "top places found": f"{replay['podium']:.0%}",
        "ranked first": f"the agent is {percent(replay['regret'])} points below the best"
        f"{_range(replay, 'regret', percent)}; "
        f"random tasks: {percent(replay['random_regret'])}",
        "95% intervals": f"{_percent(replay['coverage'])} include the full-run score; "
        f"{counted(replay['n_published'], 'estimate')}{' per replay' if is_mean else ''}",
        "mean error": "no estimate" if bias is None else f"{points(bias['value'])} (estimate minus full run)",
        "typical error": "no estimate" if rmse is None else f"{percent(rmse)} points (root mean square)",
    }
    return rows | ({"reasons": "; ".join(verdict["reasons"])} if verdict["reasons"] else {})


def points(share: float) -> str:
    """Return −0.4 points; 0.0 points without a sign."""
    text = percent(share)
    return f"{text if text.startswith('−') or text == '0.0' else f'+{text}'} points"


def _percent(figure: Mapping[str, Any] | None) -> str:
    """Return 98.7% (SE 0.6), without an error that is 0.0."""
    if figure is None:
        return "none"
    error = "" if figure["se"] is None else percent(figure["se"])
    return _share(figure["value"]) + (f" (SE {error})" if error not in ("", "0.0") else "")


def _share(value: float | None) -> str:
    return "none" if value is None or value != value else f"{percent(value)}%"


def _of_five(share: float) -> str:
    return f"{5 * share:.0f}"


def _range(replay: Mapping[str, Any], name: str, form: Callable[[float], str] = _share) -> str:
    low, high = (form(value) for value in replay["ranges"].get(name, (0.0, 0.0)))
    return "" if low == high else f" ({low} to {high})"
