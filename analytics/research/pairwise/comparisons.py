"""Comparisons: who beat whom on which item, from rows of battles or from outcomes on tasks.

A row is one verdict of one judge on one item: a wins (1 point), b wins (0), or a tie (½). Agents stand in
ascending order of name, and a row is turned so that its a stands before its b. The fit needs of all rows only
their *tallies*: over the rows with the same two agents, judge and order, how many there are and how many
points a has. Order is 1 where a was shown first, −1 where b was, 0 where nobody says.

Source: Bradley & Terry, *Biometrika* 39 (1952) 324-345. Andersen, *JRSS B* 32 (1970) 283-301 (conditional
likelihood). Messing, *Hidden Measurement Error in LLM Pipelines*, App. R.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from analytics.arrays import FloatArray, IndexArray, coded
from analytics.errors import CoreError
from analytics.text import named

REQUIRED = ("item", "a", "b", "winner")
OPTIONAL = ("first", "judge", "prompt_variant", "run", "category")
POINTS = {"a": 1.0, "b": 0.0, "tie": 0.5}
ORDER = {"a": 1.0, "b": -1.0, "": 0.0}
ONE_JUDGE = "all"
NO_VERDICT = -1.0
MAX_KEYS_A_ROW = 8


@dataclass(frozen=True, eq=False)
class Tallies:
    """Comparisons and points of a, by pair a < b, judge (0 where order is 0) and order, (n_tallies,)."""

    a: IndexArray
    b: IndexArray
    judge: IndexArray
    order: FloatArray
    n: FloatArray
    won: FloatArray

    @cached_property
    def _pairs(self) -> dict[int, IndexArray]:
        return {}

    def pair(self, n_agents: int) -> IndexArray:
        """Return the number of the pair a, b among all of `n_agents` squared, shape (n_tallies,)."""
        if n_agents not in self._pairs:
            self._pairs[n_agents] = self.a * n_agents + self.b
        return self._pairs[n_agents]


@dataclass(frozen=True, eq=False)
class Comparisons:
    """Rows of battles.

    agents, items, judges: ascending. `judges`: those with a row of which the order is known.
    cells: judge, prompt variant and who was shown first, as the rows say; ascending.
    item, a, b, cell, judge, order, points: (n_rows,); a < b; `judge` is 0 where `order` is 0.
    categories: length n_items; "" where no row says.
    human: (n_rows,); points that a person gave a; −1 where nobody did.
    """

    agents: tuple[str, ...]
    items: tuple[str, ...]
    judges: tuple[str, ...]
    cells: tuple[tuple[str, str, str], ...]
    item: IndexArray
    a: IndexArray
    b: IndexArray
    cell: IndexArray
    judge: IndexArray
    order: FloatArray
    points: FloatArray
    categories: tuple[str, ...]
    human: FloatArray

    @cached_property
    def _grouped(self) -> tuple[IndexArray, IndexArray]:
        width = len(self.agents)
        key = self.a * width + self.b
        if self.judges:
            key = (key * len(self.judges) + self.judge) * 3 + (self.order + 1).astype(np.intp)
        n_keys = width * width * max(3 * len(self.judges), 1)
        if n_keys > MAX_KEYS_A_ROW * key.size:
            keys, group = np.unique(key, return_inverse=True)
            return keys, group
        keys = np.flatnonzero(np.bincount(key, minlength=n_keys))
        place = np.empty(n_keys, dtype=np.intp)
        place[keys] = np.arange(keys.size)
        return keys, place[key]

    @cached_property
    def tallies(self) -> Tallies:
        """Comparisons added up."""
        return self.weighted(None)

    def weighted(self, weight: FloatArray | None) -> Tallies:
        """Return the tallies with rows that count `weight` times, shape (n_rows,)."""
        keys, group = self._grouped
        pair, judge, order = keys, np.zeros_like(keys), np.zeros(keys.size)
        if self.judges:
            pair, rest = np.divmod(keys, 3 * len(self.judges))
            judge, shown = np.divmod(rest, 3)
            order = shown - 1.0
        a = pair // len(self.agents)
        points = self.points if weight is None else self.points * weight
        return Tallies(
            a=a,
            b=pair - a * len(self.agents),
            judge=judge,
            order=order,
            n=np.bincount(group, weight, keys.size).astype(np.float64),
            won=np.bincount(group, points, keys.size).astype(np.float64),
        )

    def of_cell(self, cell: int) -> "Comparisons":
        """Return the rows of one cell, of which no order is known: it does not vary."""
        mask = self.cell == cell
        names = ("item", "a", "b", "cell", "judge", "order", "points", "human")
        rows = {name: getattr(self, name)[mask] for name in names}
        return replace(self, **rows | {"judges": (), "order": np.zeros(int(mask.sum()))})

    def spread(self, p: FloatArray) -> FloatArray:
        """Return Σ_j u_j u_jᵀ at p of tallies, shape (n_agents + n_judges,) squared."""
        keys, group = self._grouped
        beyond = self.points - p[group]
        if len(self.items) == beyond.size:  # a row an item: tallies tell all
            squares = np.bincount(group, beyond**2, keys.size).astype(np.float64)
            return crossed(self.tallies, squares, len(self.agents), len(self.judges))
        from scipy.sparse import csr_array

        columns = [(self.a, beyond), (self.b, -beyond)]
        if self.judges:
            columns.append((len(self.agents) + self.judge, beyond * self.order))
        values, place = (np.concatenate([column[side] for column in columns]) for side in (1, 0))
        item = np.tile(self.item, len(columns))
        shape = (len(self.items), len(self.agents) + len(self.judges))
        scores = csr_array((values, (item, place)), shape=shape)
        return np.asarray((scores.T @ scores).toarray(), dtype=np.float64)

    @cached_property
    def battles(self) -> tuple[IndexArray, IndexArray]:
        """First row of each battle (an item and its two agents), and the battle of each row."""
        width = len(self.agents)
        _, first, battle = np.unique(
            (self.item * width + self.a) * width + self.b, return_index=True, return_inverse=True
        )
        return first, battle


@dataclass(frozen=True, eq=False)
class OutcomeMatrix:
    """Agents on tasks, 0 to 1, NaN: missing; of any two one wins a task where it is larger."""

    agents: tuple[str, ...]
    items: tuple[str, ...]
    outcomes: FloatArray
    judges: tuple[str, ...] = ()

    @classmethod
    def of(cls, agents: Sequence[str], tasks: Sequence[str], outcomes: FloatArray) -> "OutcomeMatrix":
        """Keep the tasks on which two agents differ."""
        if len(agents) < 2:
            raise CoreError("one agent; a comparison needs two", code="none_decisive")
        largest = np.where(np.isnan(outcomes), -np.inf, outcomes).max(axis=0, initial=-np.inf)
        least = np.where(np.isnan(outcomes), np.inf, outcomes).min(axis=0, initial=np.inf)
        decided = np.flatnonzero(largest > least)
        if not decided.size:
            raise CoreError("no two agents differ on any task", code="none_decisive")
        return cls(tuple(agents), tuple(tasks[j] for j in decided.tolist()), outcomes[:, decided])

    @cached_property
    def tallies(self) -> Tallies:
        """Comparisons added up."""
        wins = np.zeros((len(self.agents),) * 2)
        for column in self.outcomes.T:
            wins += column[:, None] > column
        return tallies_of_wins(wins)

    def spread(self, p: FloatArray) -> FloatArray:
        """Return Σ_j u_j u_jᵀ at p of tallies, shape (n_agents, n_agents)."""
        lost = np.zeros((len(self.agents),) * 2)
        lost[self.tallies.a, self.tallies.b] = 1.0 - p
        lost[self.tallies.b, self.tallies.a] = p
        scores = np.empty(self.outcomes.T.shape)
        for row, column in zip(scores, self.outcomes.T, strict=True):
            beyond = (column[:, None] > column) * lost
            row[:] = beyond.sum(axis=1) - beyond.sum(axis=0)
        return np.asarray(scores.T @ scores, dtype=np.float64)


Battles = Comparisons | OutcomeMatrix


def crossed(tallies: Tallies, weight: FloatArray, n_agents: int, n_judges: int) -> FloatArray:
    """Return Σ weight·x·xᵀ, (n_agents + n_judges,)², of rows 1 at a, −1 at b, o at the judge."""
    n, width = n_agents, n_agents + n_judges
    pairs = np.bincount(tallies.pair(n), weight, n * n).reshape(n, n)
    matrix = np.zeros((width, width))
    np.add(pairs, pairs.T, out=matrix[:n, :n])
    np.negative(matrix[:n, :n], out=matrix[:n, :n])
    matrix.ravel()[: n * (width + 1) : width + 1] = -matrix[:n, :n].sum(axis=1)
    if n_judges:
        turned, size, row = weight * tallies.order, n_judges * n, tallies.judge * n
        cross = np.bincount(row + tallies.a, turned, size) - np.bincount(row + tallies.b, turned, size)
        matrix[n:, :n] = cross.reshape(n_judges, n)
        matrix[:n, n:] = matrix[n:, :n].T
        matrix[n:, n:] = np.diag(np.bincount(tallies.judge, turned * tallies.order, n_judges))
    return matrix


def tallies_of_wins(wins: FloatArray) -> Tallies:
    """Tallies of a matrix of wins, shape (n_agents, n_agents): wins[a, b] of a over b, a tie ½ to each."""
    total = wins + wins.T
    a, b = np.nonzero(np.triu(total, 1))
    none = np.zeros(a.size)
    return Tallies(a=a, b=b, judge=none.astype(np.intp), order=none, n=total[a, b], won=wins[a, b])


def read_comparisons(
    columns: Mapping[str, Sequence[str]], human: str | None = None, *, rows: Sequence[int] | None = None
) -> Comparisons:
    """Make comparisons of columns of text; a refusal names the row at fault, by `rows` or from 1.

    columns: ``item``, ``a``, ``b``, ``winner`` (a, b or tie); if any ``first`` (a, b or empty), ``judge``, ….
    human: column with what a person said: a, b, tie or empty.
    """
    n_rows = len(columns["item"])
    rows = range(1, n_rows + 1) if rows is None else rows
    if not n_rows:
        raise CoreError("there are no comparisons", code="no_rows")
    blank = [""] * n_rows
    for name in ("item", "a", "b"):
        if "" in columns[name]:
            row = rows[list(columns[name]).index("")]
            raise CoreError(f"row {row}: no name in column {name}", code="name_missing")
    agents, sides = coded([*columns["a"], *columns["b"]])
    a, b = sides[:n_rows], sides[n_rows:]
    if (a == b).any():
        row = int(np.argmax(a == b))
        raise CoreError(f"row {rows[row]}: {named(columns['a'][row])} against itself", code="same_agent")
    turned = np.where(a > b, -1.0, 1.0)
    judge_of, first = columns.get("judge", blank), columns.get("first", blank)
    order = _values("first", first, ORDER, rows) * turned
    # judges of whom the order is known
    known = np.flatnonzero(order).tolist()
    judge = np.zeros(n_rows, dtype=np.intp)
    judges, judge[known] = coded([judge_of[row] or ONE_JUDGE for row in known])
    items, item = coded(columns["item"])
    cells, cell = coded(list(zip(judge_of, columns.get("prompt_variant", blank), first, strict=True)))
    categories = [""] * len(items)
    for code, text in zip(item.tolist(), columns.get("category", blank), strict=True):
        categories[code] = categories[code] or text
    points = _values("winner", columns["winner"], POINTS, rows)
    verdicts = blank if human is None else columns[human]
    of_people = _values(human or "human", verdicts, {**POINTS, "": NO_VERDICT}, rows, "human")
    return Comparisons(
        agents=agents,
        items=items,
        judges=judges,
        cells=cells,
        item=item,
        a=np.minimum(a, b),
        b=np.maximum(a, b),
        cell=cell,
        judge=judge,
        order=order,
        points=np.where(turned < 0, 1.0 - points, points),
        categories=tuple(categories),
        human=np.where((turned < 0) & (of_people != NO_VERDICT), 1.0 - of_people, of_people),
    )


def _values(
    name: str, texts: Sequence[str], known: Mapping[str, float], rows: Sequence[int], code: str = ""
) -> FloatArray:
    for row, text in zip(rows, texts, strict=True):
        if text not in known:
            allowed = ", ".join(repr(value) for value in known if value)
            raise CoreError(f"row {row}: {name} is {named(text)}, not one of {allowed}", code=code or name)
    return np.array([known[text] for text in texts], dtype=np.float64)
