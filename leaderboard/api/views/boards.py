"""What was published: boards, their entries, and agents compared."""

import hashlib
import json
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.http import HttpResponseBase
from django.utils.cache import get_conditional_response
from django.utils.http import http_date
from rest_framework.request import Request
from rest_framework.response import Response

from leaderboard.api import serializers
from leaderboard.api.parameters import PAGE, flag, one_of, text, whole
from leaderboard.api.views import BaseEndpoint, Listing
from leaderboard.boards.models import Board
from leaderboard.boards.queries import (
    NoSuchBoard,
    board_numbered,
    boards_of,
    changes_since,
    entries_of,
    latest_board,
    tells_costs,
    visible,
    visible_lines,
    withdrawn_agents,
)
from leaderboard.boards.signing import public_key
from leaderboard.catalog.models import Target, Trust
from leaderboard.studies.answers import words
from leaderboard.studies.pairs import comparison

FORM = 1  # of the answer; raised by hand where it changes and its numbers do not
MIN_AGENTS, MAX_AGENTS = 2, 5  # agents that are compared


class OneBoard(BaseEndpoint):
    parameters: ClassVar = {"since": whole("Tell also what changed since the board of this number.")}
    one = serializers.BoardOneSerializer
    subject = "boards"

    def answer(self, board: Board, *, last_modified: int | None = None) -> HttpResponseBase:
        older = None
        if (since := self.query["since"]) is not None:
            if since >= board.number:
                raise NoSuchBoard(f"There is no board {since} before board {board.number}.")
            older = board_numbered(self.benchmark, since)
        # Of all that the answer is made from; withdrawals, which `since` tells, are other data versions
        shown = self.benchmark.shown_version
        made_from = [FORM, board.pk, board.digest, shown, tells_costs(board), public_key()]
        if older:
            made_from += [older.pk, self.benchmark.data_version]
        tag = f'"{hashlib.sha256(json.dumps(made_from).encode()).hexdigest()[:32]}"'
        if unchanged := get_conditional_response(self.request._request, tag, last_modified):
            unchanged["ETag"] = tag
            return unchanged
        content = visible(board)
        if older:
            changes = dict(vars(changes_since(older, board)))
            changes["moved"] = [
                moved._asdict() | {"before": moved.before._asdict(), "now": moved.now._asdict()}
                for moved in changes["moved"]
            ]
            content["since"] = {"number": older.number, "changes": changes}
        dated = {"Last-Modified": http_date(last_modified)} if last_modified else {}
        return Response(content, headers={"ETag": tag} | dated)


class BoardView(OneBoard):
    """The latest board, for all targets."""

    def get(self, request: Request, slug: str) -> HttpResponseBase:
        board = latest_board(self.benchmark)
        return self.answer(board, last_modified=int(board.published_at.timestamp()))


class BoardNumbered(OneBoard):
    """The board of this number, as it was published."""

    def get(self, request: Request, slug: str, number: int) -> HttpResponseBase:
        return self.answer(board_numbered(self.benchmark, number))


class Boards(Listing):
    """All boards, the latest first."""

    row = serializers.BoardRowSerializer
    subject = "boards"

    def rows(self) -> QuerySet[Board]:
        return boards_of(self.benchmark).defer("content").order_by("-number")


class Entries(Listing):
    """The lines of a board, by place."""

    parameters = PAGE | {
        "agent": text("The line of this agent."),
        "scaffold": text("Lines of agents on this scaffold."),
        "model": text("Lines of agents of this model."),
        "trust": one_of("Lines of at least this trust.", Trust.values),
        "ranked": flag("Those with a rank for the board's own target, or the others."),
    }
    row = serializers.EntrySerializer
    subject = "boards"

    def rows(self) -> list[dict[str, Any]]:
        self.board = board_numbered(self.benchmark, self.kwargs["number"])
        names = ("agent", "scaffold", "model")
        is_ranked, level = self.query["ranked"], self.query["trust"]
        entries = [
            entry
            for entry in entries_of(self.board)
            if all(self.query[name] in (None, {"agent": entry.name, **entry.line}[name]) for name in names)
            and (is_ranked is None or is_ranked == (entry.rank is not None))
            and (level is None or words.at_least(entry.line["trust"], level))
        ]
        withdrawn_ids = withdrawn_agents(self.benchmark) if entries else set()
        lines = visible_lines(self.board, entries)
        return [
            {"position": entry.position, "withdrawn": entry.agent_id in withdrawn_ids} | line
            for entry, line in zip(entries, lines, strict=True)
        ]


class Compare(BaseEndpoint):
    """Two to five agents compared on the present data, each difference with its error."""

    parameters: ClassVar = {
        "agents": text(
            "Names of agents: the parameter comes two to five times.", many=(MIN_AGENTS, MAX_AGENTS)
        ),
        "target": one_of("What the difference is about; by default what the board ranks by.", Target.values),
    }
    one = serializers.ComparedSerializer
    subject = "boards"

    def get(self, request: Request, slug: str) -> Response:
        names = self.query["agents"]
        latest = self.benchmark.boards.order_by("-number").values_list("number", flat=True).first()
        compared = comparison(benchmark=self.benchmark, agents=names, target=self.query["target"])
        return Response({"board": latest, **compared})
