"""Reads of boards."""

from collections.abc import Iterable
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery

from leaderboard.boards.models import Board, Entry
from leaderboard.catalog.models import Agent, Benchmark, Policy
from leaderboard.errors import Missing
from leaderboard.studies.answers import words
from leaderboard.submissions.models import Status, Submission


class NoBoardYet(Missing):
    message = "No board has been published yet."


class NoSuchBoard(Missing):
    message = "There is no board of this number."


def boards_of(benchmark: Benchmark) -> QuerySet[Board]:
    return with_costs_visible(benchmark.boards.select_related("benchmark", "subset", "policy", "calibration"))


def with_costs_visible(boards: QuerySet[Board]) -> QuerySet[Board]:
    """Each with `costs_visible`: whether the policy in force today lets visitors see costs."""
    in_force = Policy.objects.filter(benchmark=OuterRef("benchmark")).order_by("-number")
    return boards.annotate(costs_visible=Subquery(in_force.values("show_costs")[:1]))


def latest_board(benchmark: Benchmark) -> Board:
    if board := boards_of(benchmark).order_by("-number").first():
        return board
    raise NoBoardYet


def board_numbered(benchmark: Benchmark, number: int) -> Board:
    if board := boards_of(benchmark).filter(number=number).first():
        return board
    raise NoSuchBoard(f"There is no board {number} of {benchmark}.")


def withdrawn_agents(benchmark: Benchmark) -> set[int]:
    """Ids of the agents that had outcomes on some board, and of which everything is withdrawn by now."""
    return set(withdrawn_among(benchmark.agents.all()).values_list("pk", flat=True))


def withdrawn_since(boards: Iterable[Board]) -> dict[int, list[str]]:
    """By board, the names of its agents of which everything is withdrawn by now: one query, or none.

    Every withdrawal is another data version.
    """
    keys = [board.pk for board in boards if board.data_version < board.benchmark.data_version]
    withdrawn = withdrawn_among(Agent.objects.filter(entries__board__in=keys))
    listed = Entry.objects.filter(board__in=keys, agent__in=withdrawn).order_by("board", "position")
    names: dict[int, list[str]] = {}
    for board, name in listed.values_list("board", "name") if keys else ():
        names.setdefault(board, []).append(name)
    return names


def withdrawn_among(agents: QuerySet[Agent]) -> QuerySet[Agent]:
    of_agent = Submission.objects.filter(Q(agent=OuterRef("pk")) | Q(agent__merged_into=OuterRef("pk")))
    return agents.filter(
        Exists(of_agent.filter(status=Status.WITHDRAWN)), ~Exists(of_agent.filter(status=Status.ACCEPTED))
    )


def promises_of(benchmark: Benchmark) -> dict[int, dict[str, float]]:
    """By agent id, the latest score on all tasks that was estimated from the subset, with an interval."""
    entries = Entry.objects.filter(
        board__benchmark=benchmark, at__full__estimated=True, at__full__lower__isnull=False
    )
    entries = entries.exclude(at__full__lower=None).exclude(at__full__source=words.CHOSEN_TASKS)
    latest = entries.order_by("agent", "-board__number").distinct("agent")
    rows: Iterable[tuple[int, Any]] = latest.values_list("agent", "at__full")
    return {agent: {end: estimate[end] for end in ("score", "lower", "upper")} for agent, estimate in rows}


def entries_of(board: Board) -> list[Entry]:
    """In the order of the board: by rank, names inside ties, unranked last."""
    return list(board.entries.order_by("position"))
