"""What the board page shows: a verdict, a row for each agent, and what is folded below.

Nothing is computed or worded here but what this page alone tells.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from django.urls import reverse

from leaderboard.boards.history import changes_since
from leaderboard.boards.models import Board, Entry
from leaderboard.boards.presentation import tells_costs
from leaderboard.boards.queries import NoSuchBoard, board_numbered
from leaderboard.boards.signing import public_key
from leaderboard.catalog.models import Assigning
from leaderboard.pages.board_query import BoardQuery, number_in, query, unknown
from leaderboard.pages.costs import score_chart
from leaderboard.pages.filters import LEVELS, SHOWN, Filters, offered, offered_costs
from leaderboard.pages.lines import BoardLine, common_marks
from leaderboard.pages.order import Order
from leaderboard.pages.replay_summary import ReplaySummary, replay_summary
from leaderboard.plots.chart import Chart
from leaderboard.studies.answers import Changes, Gap, Line, Standings, gaps, printed, table, words

N_ROWS = 100  # before one asks for all
SWITCH = {"full": "all {n} tasks", "subset": "the {n} ranking tasks", "domain": "tasks like these"}
ONE_TASK = {"full": "the one task", "subset": "the one ranking task", "domain": "tasks like this one"}
UNDER_SCORE = {"full": "all {n} tasks", "subset": "{n} tasks", "domain": "like these"}


@dataclass(frozen=True)
class TargetChoice:
    """One end of the switch between targets; without an address nothing is said about it, and `why` not."""

    label: str
    is_chosen: bool
    address: str = ""
    why: str = ""


@dataclass(frozen=True)
class Since:
    """What changed since an older board."""

    board: Board
    changes: Changes

    @property
    def text(self) -> str:
        return words.changes_text(self.changes)


def since(board: Board, entries: list[Entry], wanted: str) -> Since | None:
    """What changed since the board asked for; None where that is no older board."""
    older_number = number_in(wanted)
    if older_number is None or older_number >= board.number:
        return None
    try:
        older = board_numbered(board.benchmark, older_number)
    except NoSuchBoard:
        return None
    return Since(older, changes_since(older, board, entries=entries))


@dataclass(frozen=True)
class BoardPage:
    """A board with everything that stands around it, for one target."""

    board: Board
    standings: Standings
    target: str
    order: Order
    filters: Filters
    lines: list[BoardLine]
    latest: int
    reference: BoardLine | None
    query: BoardQuery
    withdrawn: frozenset[str] = frozenset()
    since: Since | None = None

    # -- what stands at the top

    @property
    def is_latest(self) -> bool:
        return self.board.number == self.latest

    @property
    def is_behind(self) -> bool:
        """Whether the counted outcomes have changed since."""
        return self.board.data_version < self.board.benchmark.data_version

    @property
    def is_gone(self) -> bool:
        """Whether all of its agents were withdrawn since: then no board follows until outcomes come."""
        return self.withdrawn.issuperset(line.agent for line in self.standings.agents)

    @property
    def verdict_parts(self) -> tuple[str, str]:
        return words.headline_parts(self.standings, self.target)

    @property
    def headline(self) -> str:
        return words.headline(self.standings, self.target)

    @property
    def second_run(self) -> str:
        return words.second_run_text(self.standings, self.target)

    @property
    def tells_trust(self) -> bool:
        return words.tells_trust(self.standings)

    @property
    def scores(self) -> str:
        return words.scores_text(self.standings, self.target)

    @property
    def tasks(self) -> str:
        return words.tasks_of(self.standings, self.target)

    @property
    def trust(self) -> str:
        return words.trust_text(self.standings)

    @property
    def ranks_text(self) -> str:
        return words.confidence_text(self.standings, self.target)

    @property
    def unknown(self) -> tuple[str, ...]:
        is_ranked = self.reference is not None and self.reference.pk == number_in(self.query.vs)
        return unknown(self.query, is_ranked=is_ranked)

    @property
    def notices(self) -> tuple[str, ...]:
        return words.other_notices(self.standings)

    @cached_property
    def replay_summary(self) -> ReplaySummary | None:
        return replay_summary(self.board.benchmark, self.standings)

    @cached_property
    def chart(self) -> Chart | None:
        return score_chart(self.standings, self.target, self.lines, self.agents, self.withdrawn)

    # -- the rows

    @property
    def slug(self) -> str:
        return str(self.board.benchmark.slug)

    @cached_property
    def ranked(self) -> list[BoardLine]:
        return self.order.sort([line for line in self._shown_lines if line.target_result.rank is not None])

    @property
    def rows(self) -> list[BoardLine]:
        return self.ranked if self.query.rows == "all" else self.ranked[:N_ROWS]

    @property
    def has_more(self) -> bool:
        return len(self.rows) < len(self.ranked)

    @cached_property
    def unranked(self) -> list[BoardLine]:
        return [line for line in self._shown_lines if line.target_result.rank is None]

    @property
    def n_ranked(self) -> int:
        return self.standings.targets[self.target].n_ranked

    @property
    def counted(self) -> str:
        """How many agents are shown, of how many."""
        if len(self.ranked) == self.n_ranked:
            return words.counted(self.n_ranked, "agent")
        n = f"{self.n_ranked:,}"
        return f"{len(self.ranked):,} of {n} agents; ranks are among all {n}."

    @property
    def is_leader(self) -> bool:
        """Whether the reference is the leader."""
        return self.reference is not None and self.reference is leader_of(self.lines)

    @property
    def is_default(self) -> bool:
        """Whether the reference is the one that is taken where none is asked for, filtered or not."""
        leader, first = leader_of(self.lines), leader_of(self._shown_lines)
        return self.reference is (first or leader) and (not self.query.vs or self.reference is leader)

    @cached_property
    def divided(self) -> BoardLine | None:
        """The last row that is tied with the leader, where worse ones follow below it; None without such."""
        tied = [place for place, line in enumerate(self.rows) if line.standing in ("lead", "tied")]
        if not (self.is_leader and self.order == Order() and tied) or tied[-1] == len(self.rows) - 1:
            return None
        return self.rows[tied[-1]]

    @property
    def is_mixed(self) -> bool:
        """Whether a row that is not tied stands above the divider."""
        above = self.rows[: self.rows.index(self.divided)] if self.divided else []
        return any(line.standing == "worse" for line in above)

    @property
    def why_tinted(self) -> str:
        """Why not as many rows are tinted as agents could be the best; empty where as many are."""
        named = [
            one for one in self.lines if one.target_result.rank and words.heads(self.standings, one.entry)
        ]
        n_first, n_tied = len(self.standings.targets[self.target].may_be_first), self.n_tied
        if not (self.is_leader and n_first and n_tied) or n_first in (n_tied + 1, len(named)):
            return ""
        among = "" if len(named) == self.n_ranked else f" of the {len(named):,} that headlines are made from"
        return (
            f"{n_tied + 1:,} rows are tinted: not clearly worse than the leader, for all pairs at once. "
            f"{n_first:,}{among} could be the best: one question alone, so the answer is sharper."
        )

    @property
    def n_tied(self) -> int | None:
        return self.reference.n_tied if self.reference else None

    @property
    def is_wide(self) -> bool:
        """Whether all columns are shown."""
        return self.query.view == "all"

    @property
    def heads(self) -> tuple[str, ...]:
        """Of the columns that say something."""
        return tuple(column.head for column in self._shown)

    @property
    def score_head(self) -> str:
        return table.HEADS[self.target]

    @property
    def score_tasks(self) -> str:
        """The task set, in short, as it stands under the head of the scores."""
        if self.n_target_tasks == 1:
            return words.task_set(self.target, 1)
        return UNDER_SCORE[self.target].format(n=f"{self.n_target_tasks:,}")

    @property
    def n_target_tasks(self) -> int:
        return self.standings.targets[self.target].n_tasks

    @property
    def other_head(self) -> str:
        """Of the scores on the other task set; empty on a board without a subset."""
        return table.other_head(self.target) if self.standings.subset else ""

    @property
    def other_column(self) -> str:
        return "full" if self.target == "subset" else "subset"

    @property
    def other_label(self) -> str:
        n = self.standings.targets[self.other_column].n_tasks
        return f"{'All' if self.other_column == 'full' else 'On'} {n:,}"

    @cached_property
    def common_marks(self) -> tuple[str, ...]:
        return common_marks([line for line in self.lines if line.target_result.rank is not None])

    @property
    def implausible(self) -> str:
        """What stands for a cost that is stated and not believed means; empty where every one is."""
        is_there = any(line.cells.get("Cost") == words.UNBELIEVED for line in self.lines)
        return words.LEGEND[words.UNBELIEVED] if is_there else ""

    @property
    def n_columns(self) -> int:
        narrow = 7 + (self.other_head in self.heads) + ("Cost" in self.heads)
        return narrow + 7 + ("naive" in self.heads) + ("ICC" in self.heads) if self.is_wide else narrow

    @property
    def middle(self) -> int:
        """Of the ranks, as the head of their bars names it."""
        return max(1, self.n_ranked // 2)

    # -- the bar above them

    @property
    def choices(self) -> list[TargetChoice]:
        return [self._choice(target) for target in words.TARGETS]

    @property
    def hidden_fields(self) -> list[tuple[str, str]]:
        """What the form carries along beside what it asks."""
        own = {name: text for name, text in self._parameters.items() if name not in self.filters.parameters}
        return [(name, text) for name, text in own.items() if text]

    @property
    def scaffolds(self) -> list[str]:
        return offered(self.lines, "scaffold")

    @property
    def models(self) -> list[str]:
        return offered(self.lines, "model")

    @property
    def costs(self) -> list[tuple[str, str]]:
        return offered_costs(list(words.whole_costs(self.standings).values()), self.filters.cost)

    @property
    def chosen_cost(self) -> str:
        return self.filters.parameters["cost"]

    @property
    def levels(self) -> list[tuple[str, str]]:
        """Of trust, to choose from; none where every agent is verified."""
        return list(LEVELS.items()) if self.tells_trust or self.filters.trust else []

    @property
    def shows(self) -> list[tuple[str, str]]:
        return list(SHOWN.items())

    # -- what is folded

    @property
    def key(self) -> str | None:
        """Of the signature that the JSON of the board has."""
        return public_key()

    @property
    def phase(self) -> str:
        policy = self.board.policy
        in_batches = policy.assignment != Assigning.STAGED or self.board.n_complete >= policy.staged_from
        is_full = self.board.benchmark.full_runs_only_at or not in_batches
        return words.phase_text(self.standings, Assigning.FULL if is_full else policy.assignment)

    @property
    def trials(self) -> str:
        return words.trials_text(self.standings.trials)

    @property
    def covers(self) -> str:
        return words.covers_text(self.standings, self.target)

    @property
    def measured(self) -> str:
        return words.measured_text(self.standings)

    @property
    def bounded(self) -> str:
        return words.bounded_text(self.standings)

    @property
    def in_no_interval(self) -> tuple[str, ...]:
        return words.in_no_interval(self.standings)

    @property
    def legend(self) -> dict[str, str]:
        return printed.legend(self.standings, self.target, self._shown)

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """What the rows of ranked agents lack; why others have no rank stands in their own table."""
        return tuple(gap for gap in gaps(self.standings, self.target) if gap.what != "Not ranked")

    @property
    def saved(self) -> str:
        return words.savings_text(self.standings.savings, with_money=tells_costs(self.board))

    @property
    def flagged(self) -> list[Line]:
        return [line for line in self.standings.agents if line.flags]

    # -- addresses

    def address(self, **changes: str) -> str:
        """The query of another view; what is the default is left out of it."""
        changes = {name: "" if _is_default(self, name, text) else text for name, text in changes.items()}
        return query(self._parameters | changes)

    @property
    def address_of_leader(self) -> str:
        return self.address(vs="")

    @property
    def address_of_all(self) -> str:
        """Without a filter."""
        return self.address(**dict.fromkeys(self.filters.parameters, ""))

    @property
    def address_of_rows(self) -> str:
        """With every row."""
        return self.address(rows="all")

    @property
    def address_of_wide(self) -> str:
        """With all columns."""
        return self.address(view="all")

    @property
    def address_of_plain(self) -> str:
        return self.address(view="")

    @property
    def address_of_drawing(self) -> str:
        """Of the chart alone, as it stands here."""
        vs = str(self.reference.pk) if self.reference and not self.is_leader else ""
        parameters = {"target": self._parameters["target"], "vs": vs} | self._of_board
        return reverse("pages:plot", args=[self.slug, "cost"]) + query(parameters).removesuffix("?")

    @property
    def address_of_markdown(self) -> str:
        parameters = self._parameters | self._of_board
        return reverse("pages:board_markdown", args=[self.slug]) + query(parameters).removesuffix("?")

    @cached_property
    def versus(self) -> str:
        """The address of the view beside another reference, but for the number of the agent."""
        others = self.address_of_leader
        return f"{others}{'' if others == '?' else '&'}vs="

    @cached_property
    def agents(self) -> str:
        """The address of an agent but for its number."""
        return reverse("pages:agent", args=[self.slug, 0]).removesuffix("0")

    @property
    def _of_board(self) -> dict[str, str]:
        return {} if self.is_latest else {"board": str(self.board.number)}

    @cached_property
    def _parameters(self) -> dict[str, str]:
        """The view that is shown, as in an address, without what is the default."""
        parameters = {
            "target": self.target,
            "sort": str(self.order),
            "vs": str(self.reference.pk) if self.reference and not self.is_default else "",
            "view": self.query.view,
            "rows": self.query.rows,
        }
        return {
            name: "" if _is_default(self, name, text) else text
            for name, text in (parameters | self.filters.parameters).items()
        }

    @cached_property
    def _shown_lines(self) -> list[BoardLine]:
        return self.filters.keep(self.lines, words.whole_costs(self.standings))

    @cached_property
    def _shown(self) -> tuple[table.BoardColumn, ...]:
        return table.columns(self.standings, self.target)

    def _choice(self, target: str) -> TargetChoice:
        result = self.standings.targets[target]
        is_chosen = target == self.target
        text = ONE_TASK[target] if result.n_tasks == 1 else SWITCH[target].format(n=f"{result.n_tasks:,}")
        label = words.sentence(text)[:-1]
        if not result.n_ranked:
            return TargetChoice(
                label if result.n_tasks else "The subset", is_chosen, why=f"{words.clause(result.reason)}."
            )
        return TargetChoice(label, is_chosen, self.address(target=target))


def _is_default(page: BoardPage, name: str, text: str) -> bool:
    default = {"target": page.standings.target, "sort": str(Order())}
    known = {"view": ("all",), "rows": ("all",)}
    return text == default.get(name) or (name in known and text not in known[name])


def leader_of(lines: Sequence[BoardLine]) -> BoardLine | None:
    """The first by rank; None where nobody has one."""
    return lines[0] if lines and lines[0].target_result.rank is not None else None
