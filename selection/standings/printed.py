"""A board as text for a terminal: headline, table, and a few lines below; explained where asked for."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from textwrap import fill

from analytics.text import WIDTH as WIDTH
from analytics.text import columns_text, enumerated
from selection.schema.board import Standings
from selection.standings import terms, words
from selection.standings.table import HEADS, BoardColumn, BoundsRow, bounds, columns, gaps, rank_columns

BAR = 40  # characters from 0 to 100%
N_BELOW = 5  # lines under a table
BEST = "●"
SAME = ("Cost", "Trials", "Date")  # in one line where all agents have the same
PLAIN = frozenset(
    ("Rank", "95% rank range", "Agent", "Trust", "Score %", "95% interval", "Cost", "Trials", "Date", "Notes")
)


def text(
    board: Standings,
    target: str = "",
    *,
    explain: bool = False,
    more: str = "add --explain",
    width: int = WIDTH,
    command: words.Command = words.flags,
) -> str:
    """Return the board for a target, at most `width` characters a line.

    explain: whether to add the other columns, what all of them mean, and what the intervals leave out.
    more: what to do for that.
    command: what changes a setting of the rules; by default flags of the command that reads a file.
    """
    target = target or board.target
    if not board.targets[target].n_ranked:
        return "\n\n".join(_unranked_parts(board, target, width, command))
    rest = _explained(board, target, width) if explain else _below(board, target, more, width)
    return "\n\n".join((*_parts(board, target, width, command, whole=explain), *rest))


def _unranked_parts(board: Standings, target: str, width: int, command: words.Command) -> Iterator[str]:
    """Yield why nobody is ranked, what to do, and between which scores each agent lies."""
    yield fill(words.headline(board, target), width)
    if step := words.next_step_text(board, command):
        yield step
    rows = bounds(board, target)
    longest = max((len(row.agent) for row in rows), default=0)
    bars = [f"{row.agent:<{longest}}  {row.text:>11}  {_bar(row)}" for row in rows]
    if bars:
        yield "\n".join(["Score % if all missing results failed, and if all passed:", *bars])


def _bar(row: BoundsRow) -> str:
    """Draw the bounds on 0 to 100%."""
    start = min(round(row.low * BAR), BAR - 1)
    end = max(round(row.high * BAR), start + 1)
    return "·" * start + "█" * (end - start) + "·" * (BAR - end)


def ranks(board: Standings, target: str = "", *, width: int = WIDTH) -> str:
    """Return rank ranges for a target, who could be the best and who is tied with whom."""
    target = target or board.target
    shown = rank_columns(board, target)
    target_line = board.targets[target]
    explained = _of_heads(board, target, {one.head for one in shown})
    parts = (
        fill(words.headline(board, target), width),
        words.sentence(words.failed_text(board.n_missing_failed)),
        _table(shown, width),
        _filled(explained, width),
        fill(words.judged_text(target_line), width),
        _gaps(board, target, width),
    )
    return "\n\n".join(part for part in parts if part)


def _parts(
    board: Standings, target: str, width: int, command: words.Command, *, whole: bool
) -> Iterator[str]:
    """Yield the headline, what has to be known before the ranks, and the table."""
    yield fill(words.headline(board, target), width)
    if notices := words.other_notices(board, command):
        yield "\n".join(fill(one, width) for one in notices)
    shown = [one for one in columns(board, target) if one.head in PLAIN or one.head == HEADS[target]]
    best = tuple(BEST if line.agent in _best(board, target) else "" for line in terms.in_order(board, target))
    yield _table(
        [
            *([BoardColumn("", False, best)] if any(best) else []),
            *(one for one in shown if whole or not _is_same(one)),
        ],
        width,
    )


def _best(board: Standings, target: str) -> frozenset[str]:
    """Return who could be the best; empty where nobody is left out."""
    ranked = {line.agent for line in board.agents if line.at[target].rank is not None}
    best = frozenset(board.targets[target].may_be_first)
    return frozenset() if ranked <= best else best


def _is_same(column: BoardColumn) -> bool:
    return column.head in SAME and len(column.cells) > 1 and len(set(column.cells)) == 1


def _below(board: Standings, target: str, more: str, width: int) -> Iterator[str]:
    """Yield what fits into a few lines: how sure ranks are, which tasks scores are on, the validation."""
    lines: list[str] = []
    best = f"{BEST} {words.best_text(board, target)}; other rank ranges can include 1. "
    best = best if _best(board, target) else ""
    same = [f"{one.head} {one.cells[0]}" for one in columns(board, target) if _is_same(one)]
    for part in (
        best + words.confidence_text(board, target),
        words.scores_text(board, target) + (f" The same for all agents: {', '.join(same)}." if same else ""),
        words.trust_text(board),
    ):
        filled = fill(part, width).splitlines()
        lines += filled if len(lines) + len(filled) < N_BELOW else []
    yield "\n".join([*lines, f"To see all columns and methods, {more}"])


def _explained(board: Standings, target: str, width: int) -> Iterator[str]:
    shown = columns(board, target)
    yield _table(
        [one for one in shown if one.head in ("Rank", "Agent") or one.head not in (*PLAIN, HEADS[target])],
        width,
    )
    yield _filled(legend(board, target, shown), width)
    phase = f"Phase: {board.phase.replace('_', ' ')}. {board.why} {words.scores_text(board, target)}"
    texts = (
        *(words.confidence_text(board, target), words.second_run_text(board, target), phase),
        *(words.trust_text(board), words.verdict_text(board), words.covers_text(board, target)),
        *(
            words.measured_text(board),
            words.not_measured_text(board, target),
            words.trials_text(board.trials),
        ),
        words.savings_text(board.savings),
    )
    yield from map(partial(fill, width=width), dict.fromkeys(filter(None, texts)))
    if lacking := _gaps(board, target, width):
        yield lacking
    if flagged := [f"Flagged: {line.agent}: {'; '.join(line.flags)}" for line in board.agents if line.flags]:
        yield "\n".join(fill(one, width, subsequent_indent="  ") for one in flagged)
    if more := [name for name in terms.TARGETS if name != target and board.targets[name].n_ranked]:
        yield f"Other targets: {', '.join(f'--target {name}' for name in more)}"


def _gaps(board: Standings, target: str, width: int) -> str:
    reasons = [f"{gap.what}: {words.first_names(gap.agents)}: {gap.reason}" for gap in gaps(board, target)]
    return "\n".join(fill(one, width, subsequent_indent="  ") for one in reasons)


def legend(board: Standings, target: str, shown: Sequence[BoardColumn]) -> dict[str, str]:
    """Explain the heads, signs and marks that stand in the table, and no others."""
    heads = {column.head for column in shown}
    cells = "".join(cell for column in shown for cell in column.cells)
    signs = {sign for sign in ("~", "≤") if sign in cells}
    signs |= {terms.UNBELIEVED for column in shown if terms.UNBELIEVED in column.cells}
    texts = _of_heads(board, target, heads | signs)
    marks = [mark for mark in terms.MARKS if any(mark in line.marks for line in board.agents)]
    texts |= {mark: words.sentence(terms.MARKS[mark]) for mark in marks}
    if "versions" in marks:
        texts["versions"] = terms.versions_text(board, target)
    methods = sorted({at.method for line in board.agents if (at := line.at[target]).se is not None})
    if any(cell.endswith("?") for column in shown if column.head == "ICC" for cell in column.cells):
        texts["ICC"] += " A ? after it means that it has no interval."
    error = "SE" if "SE" in texts else "95% interval"
    if methods and error in texts:
        texts[error] += " " + " ".join(words.sentence(terms.METHODS[one]) for one in methods)
        varies = [terms.VARIES[one] for one in board.measured if one in terms.VARIES]
        if varies and methods != ["calibration"]:
            texts[error] += f" For a measured score it includes how much agents vary {enumerated(varies)}."
    return texts


def _of_heads(board: Standings, target: str, heads: Collection[str]) -> dict[str, str]:
    """Explain heads and signs, and the levels of trust where there is a column of them."""
    texts, best = {key: text for key, text in terms.LEGEND.items() if key in heads}, "Could be the best"
    if best in texts and (among := words.among_text(board, target)):
        texts[best] = f"The best of the {among} is one of these (95%)."
    return texts | (trust_legend(board) if "Trust" in heads else {})


def trust_legend(board: Standings) -> dict[str, str]:
    """Explain the levels of trust that agents of the board have."""
    levels = {line.trust for line in board.agents}
    return {terms.TRUST[level]: text for level, text in terms.TRUST_MEANS.items() if level in levels}


def _filled(texts: Mapping[str, str], width: int) -> str:
    indent = " " * (2 + max(map(len, texts), default=0))
    return "\n".join(
        fill(f"{key:<{len(indent)}}{one}", width, subsequent_indent=indent) for key, one in texts.items()
    )


def _table(shown: Sequence[BoardColumn], width: int = WIDTH) -> str:
    sides = [column.is_number for column in shown]
    return "\n".join(columns_text([(column.head, *column.cells) for column in shown], sides, width))
