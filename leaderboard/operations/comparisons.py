"""A proposal as a reader sees it: the subset in use beside each that could take its place."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from leaderboard.operations.models import Reselection, ReselectionStatus
from leaderboard.operations.reselections import obstacle_to
from leaderboard.studies.answers import replay_row

LABELS = {"plain": "Plain rule", "hysteresis": "With hysteresis"}
ANEW = "Chosen anew after each agent"


@dataclass(frozen=True)
class MovedTask:
    """A task that enters or leaves, and its pass rate when the subset in use was chosen and now."""

    task: str
    then: float | None
    now: float | None


@dataclass(frozen=True)
class Delta:
    """What an agent would have to run to stand on the new subset by its own outcomes."""

    agent: str
    tasks: tuple[str, ...]


@dataclass(frozen=True)
class Stand:
    """Where an agent stands on the board before and after: rank, rank_lower, rank_upper, score, how."""

    agent: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]

    @property
    def moves(self) -> bool:
        """Whether its rank or the way in which it has one changes."""
        return any(self.before[name] != self.after[name] for name in ("rank", "how"))


@dataclass(frozen=True)
class Variant:
    """A subset that could be activated; `k` is None where there is none, and `reason` says why.

    `figures` and `cost` are those of `Reselection.content`: by protocol, and US dollars for a run. `target`
    is what the board would be ordered by, `target_before` what it is ordered by.
    """

    name: str
    label: str
    reason: str
    k: int | None = None
    hysteresis: float = 0.0
    widened: bool = False
    entering: tuple[MovedTask, ...] = ()
    leaving: tuple[MovedTask, ...] = ()
    figures: Mapping[str, Any] | None = None
    cost: Mapping[str, Any] | None = None
    deltas: tuple[Delta, ...] = ()
    target_before: str = ""
    target: str = ""
    stands: tuple[Stand, ...] = ()

    @property
    def changes(self) -> bool:
        """Whether there is something to approve."""
        return bool(self.entering or self.leaving)


@dataclass(frozen=True)
class Comparison:
    """A proposal: the version in use, the variants, and whether one may still be approved.

    `n_versions_since` counts the changes of the data since it was computed; `obstacle` says why it cannot be
    approved, and is empty where it can.
    """

    id: int
    slug: str
    status: str
    reason: str
    alert: str
    proposed_at: datetime
    n_versions_since: int
    obstacle: str
    previous: int
    strategy: str
    n_complete: int
    n_tasks: int
    k: int
    figures: Mapping[str, Any]
    cost: Mapping[str, Any]
    variants: tuple[Variant, ...]
    replays: tuple[dict[str, Any], ...]


def comparison_of(reselection: Reselection) -> Comparison:
    """Read a proposal, agents under the names that they have now."""
    benchmark, content = reselection.benchmark, reselection.content
    names = dict(benchmark.agents.values_list("id", "name"))
    in_use = content["kept"]
    is_open = reselection.status == ReselectionStatus.PROPOSED
    return Comparison(
        id=reselection.pk,
        slug=benchmark.slug,
        status=reselection.status,
        reason=reselection.reason,
        alert=str(reselection.alert) if reselection.alert else "",
        proposed_at=reselection.proposed_at,
        n_versions_since=benchmark.data_version - reselection.data_version,
        obstacle=obstacle_to(reselection) if is_open else f"it is {reselection.status} already",
        previous=reselection.previous.number,
        strategy=content["strategy"],
        n_complete=content["n_complete"],
        n_tasks=content["n_tasks"],
        k=in_use["k"],
        figures=in_use["figures"],
        cost=in_use["cost"],
        variants=tuple(_variant(name, content["variants"][name], names) for name in LABELS),
        replays=tuple(_replays(reselection)),
    )


def _replays(reselection: Reselection) -> Iterator[dict[str, Any]]:
    """A line for each subset that was replayed; one that was proposed has seen the outcomes."""
    in_use = {"in_use": f"Version {reselection.previous.number}, in use"}
    replays = reselection.content.get("replays", {})
    for name, label in (in_use | LABELS | {"anew": ANEW}).items():
        if name in replays:
            yield {"subset": label} | replay_row(replays[name])


def _variant(name: str, variant: Mapping[str, Any], names: Mapping[int, str]) -> Variant:
    if "tasks" not in variant:
        return Variant(name, LABELS[name], variant["reason"])
    return Variant(
        name=name,
        label=LABELS[name],
        entering=tuple(MovedTask(**row) for row in variant["entering"]),
        leaving=tuple(MovedTask(**row) for row in variant["leaving"]),
        deltas=tuple(Delta(names[row["agent"]], tuple(row["tasks"])) for row in variant["deltas"]),
        target_before=variant["board"]["target_before"],
        target=variant["board"]["target_after"],
        stands=tuple(
            Stand(names[row["agent"]], row["before"], row["after"]) for row in variant["board"]["agents"]
        ),
        **{field: variant[field] for field in ("reason", "k", "hysteresis", "widened", "figures", "cost")},
    )
