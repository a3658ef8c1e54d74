"""How a board is read, on pages and in the terminal alike: its lines for one target, and figures in words.

Numbers are as they are stored; only orders and counts are made here.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from leaderboard.boards.models import Board, Entry
from leaderboard.catalog.models import Target

N_DIGITS = 9  # scores are rounded before they are compared, as when the board was made


@dataclass(frozen=True)
class Line:
    """One agent, seen for one target; `tied` holds names from the best rank down."""

    entry: Entry
    told: Mapping[str, Any]
    rank: int | None
    shares_rank: bool
    tied: tuple[str, ...]

    @property
    def score(self) -> float | None:
        return self.told.get("score")

    @property
    def places(self) -> tuple[int, int] | None:
        """The first and the last rank that it may hold."""
        if "rank_lower" not in self.told:
            return None
        return self.told["rank_lower"], self.told["rank_upper"]

    @property
    def interval(self) -> tuple[float, float] | None:
        """Lower and upper end."""
        return ends(self.told)

    @property
    def is_calibrated(self) -> bool:
        return self.told.get("method") == "calibration"


@dataclass(frozen=True)
class Gap:
    """What some agents lack, and why."""

    what: str
    reason: str
    names: tuple[str, ...]


def ends(told: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return the ends of an interval that is told with them; None where there is none."""
    lower, upper = told.get("lower"), told.get("upper")
    return None if lower is None or upper is None else (lower, upper)


def is_available(board: Board, target: str) -> bool:
    """Whether something is said of at least one agent."""
    return bool(board.targets.get(target, {}).get("n_agents"))


def why_not(board: Board, target: str) -> str:
    return board.targets.get(target, {}).get("reason") or "no agent has run what it takes"


def choose_target(board: Board, asked: str = "") -> str:
    """Return the first of these that something is said about: asked for, the policy's, the full suite."""
    known = [target for target in (asked, board.policy.default_target) if is_available(board, target)]
    return known[0] if known else Target.FULL


def lines_at(target: str, entries: Iterable[Entry]) -> list[Line]:
    """Return the ranked agents by their rank for the target; those it says nothing of come last."""
    entries = list(entries)
    ranks = _ranks({entry.name: entry.targets.get(target, {}).get("score") for entry in entries})
    n_of_rank = Counter(ranks.values())
    lines = []
    for entry in entries:
        told, rank = entry.targets.get(target, {}), ranks.get(entry.name)
        tied = tuple(sorted(told.get("tied_with", []), key=lambda name: (ranks[name], name)))
        if entry.rank is not None:
            lines.append(Line(entry, told, rank, rank is not None and n_of_rank[rank] > 1, tied))
    return sorted(lines, key=lambda line: (line.rank is None, line.rank, line.entry.name))


def _ranks(scores: Mapping[str, float | None]) -> dict[str, int]:
    """1 + the number of strictly better scores, by name."""
    known = {name: round(score, N_DIGITS) for name, score in scores.items() if score is not None}
    ascending = sorted(known.values())
    return {name: 1 + len(ascending) - bisect_right(ascending, score) for name, score in known.items()}


def gaps(board: Board, target: str, lines: Iterable[Line]) -> list[Gap]:
    """What the lines do not show, grouped by its reason."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for line in lines:
        for what, reason in _gaps_of(line, board, target):
            found[what, reason].append(line.entry.name)
    return [Gap(what, reason, tuple(names)) for (what, reason), names in found.items()]


def _gaps_of(line: Line, board: Board, target: str) -> Iterable[tuple[str, str]]:
    told, entry, calibrated = line.told, line.entry, line.entry.full_interval or {}
    if line.score is None:
        yield "No score", told.get("reason") or "not run on all tasks"
    elif told.get("se") is None:
        yield "No standard error", told.get("reason") or "no error of the calibration is known"
    elif line.places is None:
        yield "No rank interval", board.targets[target]["reason"] or "some tasks cannot be completed yet"
    if board.subset and entry.full_score is None and target == Target.SUBSET:
        yield "No full score", entry.targets.get(Target.FULL, {}).get("reason") or "not run on all tasks"
    if "reason" in calibrated:
        yield "No interval of the full score", calibrated["reason"]
    if entry.icc and entry.icc.get("reason"):
        yield "No intraclass correlation", entry.icc["reason"].removeprefix("not measured: ")
    elif entry.icc and entry.icc.get("note"):
        yield "Intraclass correlation unreliable", entry.icc["note"]


def first_place(lines: list[Line]) -> str:
    """Who leads, and how many cannot be told apart from the leader; empty where nobody is ranked."""
    leaders = [line for line in lines if line.rank == 1]
    if not leaders:
        return ""
    one = len(leaders) == 1
    told = f"{leaders[0].entry.name} is first" if one else f"{len(leaders)} agents share the first place"
    if any(line.places is None for line in leaders):
        return f"{told}; there are no rank intervals to say how surely."
    rivals = {name for line in leaders for name in line.tied} - {line.entry.name for line in leaders}
    if not rivals:
        return f"{told}, and better than every other agent at 95%."
    others = "one other agent is" if len(rivals) == 1 else f"{len(rivals)} other agents are"
    return f"{told}, but {others} tied with {'it' if one else 'them'}."


def covers_text(board: Board, target: str) -> str:
    """What the 95% intervals of a target are about."""
    told = board.targets[target]
    text = f"The 95% intervals cover {told['covers']}."
    if told.get("note"):
        text += f" On ranks and ties: {told['note']}."
    if told.get("reason"):
        text += f" {told['reason'][:1].upper()}{told['reason'][1:]}."
    return text


def savings_text(savings: Mapping[str, Any], *, with_money: bool = True) -> str:
    """What the subset saves in tasks and in money; empty under full runs."""
    if not savings:
        return ""
    parts = [
        f"A run on the subset takes {savings['k']:,} of {savings['n_tasks']:,} tasks, "
        f"{savings['reduction']:.0%} fewer{_money_text(savings) if with_money else ''}."
    ]
    spared = savings["so_far"]
    if spared["n_runs"]:
        runs = "1 run was" if spared["n_runs"] == 1 else f"{spared['n_runs']:,} runs were"
        parts.append(
            f"So far {runs} spared {spared['n_tasks_saved']:,} tasks{_spared_text(spared, with_money)}."
        )
    return " ".join(parts)


def _money_text(savings: Mapping[str, Any]) -> str:
    run = savings["per_run"]
    if run is None:
        return "; what that saves in money was not measured"
    return (
        f", and saves {money(run['median'])} in the median (middle half of the agents: "
        f"{money(run['lower_quartile'])} to {money(run['upper_quartile'])}; {savings['note']})"
    )


def _spared_text(spared: Mapping[str, Any], with_money: bool) -> str:
    if not with_money or spared["saved"] is None:
        return ""
    n_unknown = spared.get("n_not_measured", 0)
    unknown = f", {n_unknown} of them without a stated cost left out" if n_unknown else ""
    return f" and {money(spared['saved'])}{unknown}"


def money(amount: float) -> str:
    """41.2978 is 41.30 USD, 547.96 is 548 USD."""
    return f"{amount:,.0f} USD" if abs(amount) >= 100 else f"{amount:,.2f} USD"
