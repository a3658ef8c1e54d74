"""The table of a board: its rows for one target beside a reference, and its columns, each declared once.

Ranks stay those among all agents, whichever are shown.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString

from leaderboard.boards.models import Entry
from leaderboard.pages.templatetags.figures import HIDDEN, NONE, NOT_STATED, cell, day, marks
from leaderboard.plots.ranks import RankMark, rank_bar, rank_mark
from leaderboard.studies.answers import AtTarget, Line, Standings, table, words

LONGEST_LINE = 120  # characters of a name: two lines of the table
AS_IN_FILES = "not stated"  # of a model or a scaffold
NOT_BELIEVED = SafeString('?<span class="unseen"> not plausible</span>')
UNDER_SCORE = {"full": "all {n} tasks", "subset": "{n} tasks", "domain": "tasks like these"}
Page = Mapping[str, Any]


@dataclass
class BoardLine:
    entry: Line
    target_result: AtTarget
    cells: Mapping[str, str]
    pk: int = 0
    standing: RankMark = "muted"
    n_ranked: int = 0
    more_versions: str = ""  # 19 more versions
    has_enough: bool = False  # not ranked for the reason alone that nobody is
    in_headlines: bool = True
    could_be_best: bool = False
    is_reference: bool = False  # another than the leader

    @property
    def css(self) -> str:
        """Of its row: filled where it could be the best, outlined where it is tied with the reference."""
        marked = {"first": "first", "both": "first tied", "tied": "tied"}.get(self.standing, "")
        return f"{marked} reference".strip() if self.is_reference else marked

    @property
    def half_width(self) -> str:
        """4.1: the longer side of the 95% interval of its score, in points; empty without one."""
        half = words.half_width(self.target_result)
        return "" if half is None else words.percent(half)

    @property
    def ranks(self) -> str:
        """1–11: the ends of its 95% rank range."""
        at = self.target_result
        if at.rank_lower is None or at.rank_upper is None:
            return ""
        return "–".join(f"{end:,}" for end in sorted({at.rank_lower, at.rank_upper}))

    @property
    def bounds(self) -> str:
        """Between which scores it lies without a rank; its score where nothing is missing."""
        at = self.target_result
        if self.has_enough and at.bounds and not at.n_missing:
            return f"{words.percent(at.bounds[0])}%"
        bounds = table.bounds_text(at)
        return "" if bounds == table.NOTHING else f"{bounds}%"

    @property
    def links(self) -> tuple[tuple[str, str], ...]:
        """Where its logs, its report and its code are, of what is stated as an address of the web."""
        links = self.entry.links.items()
        return tuple(one for one in links if one[1].startswith(("https://", "http://")))

    @property
    def about(self) -> tuple[tuple[str, str], ...]:
        return words.about(self.entry)

    @property
    def n_tied(self) -> int | None:
        if self.target_result.rank_lower is None:
            return None
        return sum(last - first + 1 for first, last in self.target_result.tied_with)

    @cached_property
    def bar(self) -> SafeString | str:
        """Its rank range, drawn; empty where there is none."""
        at = self.target_result
        if at.rank is None or at.rank_lower is None or at.rank_upper is None:
            return ""
        return rank_bar(at.rank, (at.rank_lower, at.rank_upper, self.standing), self.n_ranked)

    @cached_property
    def made_of(self) -> str:
        name = self.entry.agent.casefold()
        parts = dict.fromkeys((self.entry.model, self.entry.scaffold))
        return " · ".join(
            part for part in parts if part not in ("", AS_IN_FILES) and part.casefold() not in name
        )

    @property
    def is_cut(self) -> bool:
        return len(self.entry.agent) + len(self.made_of) > LONGEST_LINE


def lines_at(standings: Standings, target: str, entries: Sequence[Entry] = ()) -> list[BoardLine]:
    """The lines for a target, by rank; those without a rank last, by name."""
    pks = {entry.name: entry.agent_id for entry in entries}
    about = standings.targets[target]
    n, first = about.n_ranked, set(about.may_be_first)
    rows, more = table.rows(standings, target), words.more_versions(standings, target)
    heading = {line.agent for line in standings.agents if words.in_headlines(standings, line)}
    return [
        BoardLine(
            entry,
            entry.at[target],
            cells,
            pks.get(entry.agent, 0),
            n_ranked=n,
            more_versions=more.get(entry.agent, ""),
            has_enough=entry.at[target].reason == about.reason,
            in_headlines=entry.agent in heading,
            could_be_best=entry.agent in first & heading,
        )
        for entry, cells in zip(words.in_order(standings, target), rows, strict=True)
    ]


def leader_of(lines: Sequence[BoardLine]) -> BoardLine | None:
    """The first of those that headlines are made from; where there is none, the first."""
    ranked = [line for line in lines if line.target_result.rank is not None]
    return next((line for line in ranked if line.in_headlines), ranked[0] if ranked else None)


def compare_to(reference: BoardLine | None, lines: Sequence[BoardLine], standings: Standings) -> None:
    """Mark each line by whether it could be the best, and by whether it is tied with the reference."""
    if reference is None:
        return
    ties, is_leader = reference.target_result.tied_with, reference is leader_of(lines)
    tied = {line.agent for first, last in ties for line in standings.agents[first : last + 1]}
    tied.add(reference.entry.agent)
    reference.is_reference = not is_leader
    for line in lines:
        if line.target_result.rank is not None:
            is_tied = None if reference.target_result.rank_lower is None else line.entry.agent in tied
            line.standing = rank_mark(could_be_best=line.could_be_best, is_tied=is_tied, is_leader=is_leader)


def common_marks(lines: Sequence[BoardLine]) -> tuple[str, ...]:
    n = Counter(mark for line in lines for mark in line.entry.marks)
    return tuple(mark for mark in sorted(n) if 2 * n[mark] > len(lines))


# -------------------------------------------------------------------------------------------------- columns


def score_cell(page: Page, line: BoardLine) -> SafeString | str:
    """66.9; on a phone, where there is no column for it, with half of its interval."""
    score = cell(line, page["score_head"])
    if page["is_wide"] or not line.half_width:
        return score
    return format_html('{} <small class="half">± {}</small>', score, line.half_width)


def error_cell(page: Page, line: BoardLine) -> SafeString | str:
    """2.6, or ≤2.6 where it is an upper bound."""
    text = line.cells.get("SE", table.NOTHING)
    if text == table.NOTHING:
        return NONE
    return format_html('{}<span class="unseen"> upper bound</span>', text) if text[0] == "≤" else text


def cost_cell(page: Page, line: BoardLine) -> SafeString | str:
    """$10.40; a dash where it was not stated, or is hidden; a question mark where it is not believed."""
    text = line.cells.get("Cost", table.NOTHING)
    if text == table.NOTHING:
        return HIDDEN if line.entry.cost_basis == words.HIDDEN else NOT_STATED
    return NOT_BELIEVED if text == words.UNBELIEVED else cell(line, "Cost")


def believed_cost(line: BoardLine) -> float | None:
    """What costs are compared by: None where it is not believed, or was stated of some trials alone."""
    is_apart = line.cells.get("Cost") == words.UNBELIEVED or line.entry.cost_basis == words.IN_PART
    return None if is_apart else line.entry.cost_usd


def trials_cell(page: Page, line: BoardLine) -> str:
    return f"{line.entry.n_trials / line.entry.n_tasks:.1f}" if line.entry.n_tasks else table.NOTHING


def icc_cell(page: Page, line: BoardLine) -> SafeString:
    result = line.entry.icc
    if result["icc"] is None:
        return NONE
    around = f"{result['lower']:.2f}–{result['upper']:.2f}" if result["lower"] is not None else ""
    tasks = words.counted(result["n_tasks"], "task") if result.get("n_tasks") else ""
    return format_html('{} <span class="error">{} {}</span>', line.cells["ICC"], around, tasks)


def point_icc(line: BoardLine) -> float | None:
    value: float | None = line.entry.icc["icc"]
    return value


def submissions_cell(page: Page, line: BoardLine) -> str:
    return f"{line.entry.n_submissions:,}"


def organisation_cell(page: Page, line: BoardLine) -> SafeString:
    name = line.entry.organisation
    return format_html("<bdi>{}</bdi>", name) if name else SafeString('<span class="none">not stated</span>')


def date_cell(page: Page, line: BoardLine) -> SafeString | str:
    date = line.entry.submitted_at
    return day(date) if page["is_wide"] else (date or "")[:7] or NOT_STATED


@dataclass(frozen=True)
class TableColumn:
    """A column of the table, right of rank, ranks and agent.

    name: of its class in CSS, and of its order in an address.
    label, more: its head, and what stands small under that; `columns_of` fills what is in braces.
    head: of the column of `selection.standings.table` that it shows, unless it has a `cell` of its own.
    is_optional: left out where that column says nothing.
    order: what agents are sorted by; without it they are not.
    is_wide: shown among all columns alone.
    """

    name: str
    label: str
    more: str = ""
    head: str = ""
    order: Callable[[BoardLine], Any] | None = None
    cell: Callable[[Page, BoardLine], str] | None = None
    is_optional: bool = False
    is_wide: bool = False
    is_text: bool = False

    @property
    def css(self) -> str:
        return f"c-{self.name}{' words' if self.is_text else ''}"

    @property
    def is_sortable(self) -> bool:
        return self.order is not None

    def html(self, page: Page, line: BoardLine) -> str:
        return self.cell(page, line) if self.cell else cell(line, self.head)


def score_at(target: str) -> Callable[[BoardLine], float | None]:
    return lambda line: line.entry.at[target].score


COLUMNS = (
    TableColumn(
        "score",
        "{score}",
        "{tasks}",
        order=lambda line: line.target_result.score,
        cell=score_cell,
    ),
    TableColumn("interval", "95%", "interval", "95% interval"),
    TableColumn("se", "SE", "", "", lambda line: line.target_result.se, error_cell, is_wide=True),
    TableColumn(
        "naive",
        "naive",
        "",
        "naive",
        lambda line: line.target_result.naive_se,
        is_optional=True,
        is_wide=True,
    ),
    TableColumn("full", "All {n_full}", "tasks %", "All %", score_at("full"), is_optional=True),
    TableColumn(
        "subset",
        "On {n_subset}",
        "ranking tasks %",
        "Ranking tasks %",
        score_at("subset"),
        is_optional=True,
    ),
    TableColumn("cost", "Cost", "per full run", "Cost", believed_cost, cost_cell, is_optional=True),
    TableColumn("trials", "Trials", "per task", "", lambda line: line.entry.n_trials, trials_cell),
    TableColumn("icc", "ICC", "95%, tasks", "ICC", point_icc, icc_cell, is_optional=True, is_wide=True),
    TableColumn("ties", "Ties", "", "Ties", lambda line: line.n_tied, is_wide=True),
    TableColumn("tasks", "Tasks", "", "Tasks", lambda line: line.entry.n_tasks, is_wide=True),
    TableColumn(
        "submissions",
        "Submissions",
        "",
        "",
        lambda line: line.entry.n_submissions,
        submissions_cell,
        is_wide=True,
    ),
    TableColumn(
        "organisation",
        "Organisation",
        "",
        "",
        lambda line: line.entry.organisation.casefold() or None,
        organisation_cell,
        is_wide=True,
        is_text=True,
    ),
    TableColumn("marks", "Notes", cell=marks, is_wide=True, is_text=True),
    TableColumn("date", "Date", order=lambda line: line.entry.submitted_at, cell=date_cell),
)
ORDERS: Mapping[str, Callable[[BoardLine], Any]] = {
    "rank": lambda line: line.target_result.rank,
    "agent": lambda line: line.entry.agent.casefold(),
    **{column.name: column.order for column in COLUMNS if column.order},
}


def columns_of(page: Page) -> list[TableColumn]:
    """The columns that a page shows, right of rank, ranks and agent."""
    targets, target = page["standings"].targets, page["target"]
    n_tasks = {name: f"{one.n_tasks:,}" for name, one in targets.items()}
    tasks = UNDER_SCORE[target].format(n=n_tasks[target])
    texts = {
        "score": page["score_head"],
        "tasks": words.task_set(target, 1) if targets[target].n_tasks == 1 else tasks,
        "n_full": n_tasks["full"],
        "n_subset": n_tasks["subset"],
    }
    return [
        replace(column, label=column.label.format(**texts), more=column.more.format(**texts))
        for column in COLUMNS
        if (page["is_wide"] or not column.is_wide)
        and (not column.is_optional or column.head in page["heads"])
        and column.name != target  # its scores stand in the first
    ]
