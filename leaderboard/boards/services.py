"""Publishing a board."""

from datetime import datetime, timedelta
from typing import Any

from leaderboard.boards.models import Board, Entry
from leaderboard.boards.signing import digest
from leaderboard.catalog.models import Benchmark
from leaderboard.studies.answers import Standings
from leaderboard.studies.board_inputs import BoardInputs
from leaderboard.studies.models import ESTIMATOR_VERSION
from leaderboard.studies.rules import policy_values
from leaderboard.submissions.copying import copy_new


def board_with_key(decided: BoardInputs) -> Board | None:
    """The latest board, if it is of the present data, rules, subset, studies and estimators.

    An older one with the same key is not: what was changed meanwhile and changed back makes a new one.
    """
    latest = decided.benchmark.boards.order_by("-number").values("number")[:1]
    return Board.objects.filter(**_key(decided), number=latest).first()


class CalledOtherwise(Exception):
    """An agent was renamed or erased after the data was read that a board rests on."""


def publish(
    *, decided: BoardInputs, standings: Standings, published_at: datetime, every: timedelta = timedelta(0)
) -> tuple[Board, bool]:
    """Store the board under the next number, unless the latest has its key, or is made of what is newer.

    In the caller's transaction. Nothing is stored either while the latest board is younger than `every`.
    Raises CalledOtherwise.
    """
    benchmark = Benchmark.objects.select_for_update(no_key=True).get(pk=decided.benchmark.pk)
    if board := board_with_key(decided):
        return board, False
    latest = benchmark.boards.order_by("-number").first()
    if latest and _is_newer(latest, decided):
        return latest, False  # another worker read and published while this one still computed
    if latest and every and published_at < latest.published_at + every:
        return latest, False
    plain = standings.as_plain()
    agents = plain.pop("agents")
    ids = dict(benchmark.agents.values_list("name", "id"))
    if any(line["agent"] not in ids for line in agents):
        raise CalledOtherwise
    board = Board.objects.create(
        **_key(decided),
        number=latest.number + 1 if latest else 1,
        policy=decided.policy,
        calibration=decided.calibration,
        phase=standings.phase,
        target=standings.target,
        n_tasks=standings.n_tasks,
        n_complete=standings.n_complete,
        content=plain,
        digest=digest(
            policy=policy_values(decided.policy),
            subset=standings.subset.tasks if standings.subset else None,
            agents=agents,
        ),
        published_at=published_at,
    )
    copy_new(
        [
            Entry(
                board=board,
                agent_id=ids[line["agent"]],
                position=position,
                rank=line["at"].get(board.target, {}).get("rank"),
                name=line.pop("agent"),
                line=line,
            )
            for position, line in enumerate(agents)
        ]
    )
    return board, True


def _is_newer(board: Board, decided: BoardInputs) -> bool:
    """Whether a board rests on data, a policy, estimators, or a study by the same ones, that came later."""
    studies = ("subset", "validation", "variance")
    pairs = [(getattr(board, f"{name}_id") or 0, getattr(decided, name)) for name in studies]
    is_later = any(pk > (study.pk if study else 0) for pk, study in pairs)
    return (
        board.data_version > decided.data_version
        or board.policy_id > decided.policy.pk
        or board.estimator_version > ESTIMATOR_VERSION
        or (is_later and board.estimator_version == ESTIMATOR_VERSION)
    )


def _key(decided: BoardInputs) -> dict[str, Any]:
    return {
        "benchmark": decided.benchmark,
        "data_version": decided.data_version,
        "rules": decided.rules_sha256,
        "subset": decided.subset,
        "validation": decided.validation,
        "variance": decided.variance,
        "estimator_version": ESTIMATOR_VERSION,
    }
