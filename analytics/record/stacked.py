"""The record of a benchmark: one line an agent, stacked in name order, and what is read off it.

The model and the symbols stand in `analytics.record`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from analytics.arrays import CodeArray, CountArray, FloatArray, Mask, columns, read_only
from analytics.errors import CoreError
from analytics.flat_file import FlatFile
from analytics.outcome_table import CellMoments, OutcomeTable
from analytics.record.absent import (
    absent_trials,
    failures_repeated,
    fewer_trials,
    passes_alone,
    repeats_of_failures,
    uneven,
    with_failures,
)
from analytics.record.alike import Repeats
from analytics.record.conditions import (
    N_VOUCHED,
    Compared,
    Voter,
    compare,
    condition_counts,
    voices,
    vouched_alone,
)
from analytics.record.files import contents
from analytics.record.reduction import AgentRow, agent_rows
from analytics.record.rows import (
    MIN_TASKS,
    About,
    Counting,
    Delivery,
    Rows,
    Setting,
    checked,
    holders,
    is_common,
    missing_fails,
    universe,
)
from analytics.trials.flags import originals


@dataclass(frozen=True, eq=False)
class Record:
    """All that is known of a benchmark's agents, in name order; see also `AgentRow` and `About`.

    table: agents with a counted outcome on the active tasks; gaps are missing (or 0 by `Counting.missing`).
    n_missing_failed: missing outcomes that count as failures, of all agents.
    n_left_out: tasks that the universe leaves out.
    n_places, n_gaps, n_invalid, asked, costs: (n_agents, n_tasks).
    operator, arrival, first, completed, settled, n_deliveries: (n_agents,).
    complete: (n_agents,); every place of all active tasks delivered, at most 5% of them gaps (20·n ≤ total),
        not withheld, under the compared conditions, no copy of another, and with a voice: what all share is
        learnt from it.
    compared, left_out, condition, n_elsewhere, in_part: see `Compared`; `compared` is in words.
    universe: which tasks are active and what was left out, in words; empty where all are.
    uneven: what loaded agents lack of trials on tasks that they ran, in words; see `analytics.record.absent`.
    copy_of: the agent whose outcomes it repeats, task by task, where neither an operator loaded or approved
        it nor chance explains it; else empty. It teaches nothing: it is not complete.
    voice: (n_agents,); what all agents share may be learnt from it; see `analytics.record.conditions`.
    n_too_few: (n_agents, n_tasks); places of delivered tasks that an agent lacks of those asked for, gaps all
        of them; None: nobody does.
    graded_share: graded outcomes of complete agents, which others' scores are learnt from, as a share of
        their valid trials.
    groups, categories: what the benchmark says of each active task; empty texts where it says nothing.
    """

    table: OutcomeTable
    about: tuple[About, ...]
    counting: Counting
    n_places: CountArray
    n_gaps: CountArray
    n_invalid: CountArray
    asked: Mask
    operator: Mask
    arrival: CodeArray
    first: CodeArray
    completed: CodeArray
    settled: CodeArray
    complete: Mask
    voice: Mask
    costs: FloatArray
    n_tokens: tuple[float | None, ...]
    seconds: tuple[float | None, ...]
    n_deliveries: CodeArray
    repeats: tuple[Repeats, ...]
    compared: tuple[str, ...] = ()
    left_out: tuple[tuple[str, int], ...] = ()
    condition: tuple[str, ...] = ()
    n_elsewhere: tuple[int, ...] = ()
    in_part: tuple[bool, ...] = ()
    universe: str = ""
    uneven: tuple[str, ...] = ()
    copy_of: tuple[str, ...] = ()
    n_graded: tuple[int, ...] = ()
    n_uncosted: tuple[int, ...] = ()
    n_unconfirmed: tuple[int, ...] = ()
    n_judged_again: tuple[int, ...] = ()
    n_missing_failed: int = 0
    n_left_out: int = 0
    retried: tuple[bool, ...] = ()
    n_too_few: CountArray | None = None
    graded_share: float = 0.0
    groups: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()

    @property
    def n_agents(self) -> int:
        """Number of agents."""
        return self.table.n_agents

    @property
    def n_tasks(self) -> int:
        """Number of active tasks, m."""
        return self.table.n_tasks

    @cached_property
    def fails(self) -> Mask:
        """Agents whose missing outcomes count as failures, (n_agents,)."""
        return missing_fails(self.counting, self.operator)

    @cached_property
    def short(self) -> Mask:
        """Agents that never delivered some place they were asked for: listed, ranked nowhere, (n_agents,).

        What an operator loads is never short: a task without a row is a gap. Agents that ran under other
        conditions are counted by `condition`.
        """
        undelivered = (self.asked & (self.n_places == 0)).any(axis=1)
        if self.n_too_few is not None:
            undelivered |= self.n_too_few.any(axis=1)
        return np.asarray(~self.operator & ~_elsewhere(self.condition) & undelivered, dtype=np.bool_)

    @cached_property
    def ran_all(self) -> Mask:
        """Agents ranked directly on all tasks, each of which they delivered, (n_agents,).

        Where gaps count as failures a submitter's agent may be ranked on tasks it never ran. One that was
        stopped with a few tasks left has not run all.
        """
        direct = self.is_direct(np.arange(self.n_tasks))
        stopped = np.array([one.stopped for one in self.about], dtype=np.bool_)
        return np.asarray(direct & (self.operator | (self.completed >= 0)) & ~stopped, dtype=np.bool_)

    @cached_property
    def n_lacking(self) -> CodeArray:
        """Tasks asked for without an outcome, (n_agents,); 0 where `condition` is empty or nothing ran."""
        ran = (self.n_places + self.n_invalid + self.table.n_valid).any(axis=1)
        # of several that are compared it may have run one on some tasks, and another one on others
        ran |= np.array(self.in_part or (False,), dtype=np.bool_)
        lacking = np.count_nonzero(self.asked & ~self.table.valid(), axis=1)
        return np.where(_elsewhere(self.condition) & ran, lacking, 0) if self.condition else 0 * lacking

    @cached_property
    def _bounds(self) -> dict[bytes, tuple[FloatArray, FloatArray, CodeArray]]:
        return {}

    @cached_property
    def _usual(self) -> CodeArray:
        """Places of most tasks of each agent, the lower median of those delivered, (n_agents,)."""
        delivered = [np.sort(row[row > 0]) for row in self.n_places]
        return np.array([one[(len(one) - 1) // 2] if one.size else 1 for one in delivered], dtype=np.int64)

    @property
    def telling_noise(self) -> Mask:
        """Complete agents by whose trials the noise of others is judged, (n_agents,); see `vouched_alone`."""
        return vouched_alone(self.complete, self.vouched)

    @property
    def telling(self) -> Mask:
        """Agents with a voice by whom sources of error are estimated, (n_agents,).

        Those that are vouched for alone, where five or more of them ran all tasks.
        """
        alone = self.voice & self.vouched
        return alone if np.count_nonzero(alone & self.ran_all) >= N_VOUCHED else self.voice

    @property
    def precedence(self) -> CodeArray:
        """Return what tells the original of equal agents, the lowest, (n_agents,).

        An operator's agents come first, then those that are vouched for, each by `AgentRow.settled`: who
        delivers one task early and copies the rest comes after whom it copies.
        """
        last = self.settled.max(initial=0) + 1
        return np.where(self.operator, -1, self.settled + last * ~self.vouched)

    @property
    def vouched(self) -> Mask:
        """Agents that are verified or of a trusted account, (n_agents,)."""
        return np.array([one.vouched for one in self.about], dtype=np.bool_)

    def is_direct(self, tasks: CodeArray) -> Mask:
        """Agents that are ranked directly on these tasks: every place delivered, at most 5% of them gaps.

        In what an operator loads, a task without a row is all gap, with as many places as a delivered one has
        on average; in a submission it was never delivered, and no share of it is forgiven. An agent that
        never delivered a place it was asked for is ranked nowhere.

        tasks: (k,); positions.
        Returns: (n_agents,); 20·(g·d + (k − d)·P) ≤ P·k, with g gaps among P places on the d tasks delivered.
        """
        n_places, n_gaps = columns(self.n_places, tasks), columns(self.n_gaps, tasks)
        d, k = (n_places > 0).sum(axis=1, dtype=np.int64), len(tasks)
        places, gaps = n_places.sum(axis=1, dtype=np.int64), n_gaps.sum(axis=1, dtype=np.int64)
        enough = (20 * (gaps * d + (k - d) * places) <= places * k) & (places > 0)
        return np.asarray((self.operator | (d == k)) & enough & ~self.short, dtype=np.bool_)

    def bounds(self, tasks: CodeArray) -> tuple[FloatArray, FloatArray, CodeArray]:
        """Manski bounds of the mean on these tasks, and the places without an outcome, (n_agents,) each.

        [Σ/k, (Σ + n)/k] with Σ = Σ_j (1 − g_j)·X_j and n = Σ_j g_j, g_j the share of the places of task j
        that are missing: 1 where nothing was delivered. Of a task without a row as many places count as most
        tasks have (the lower median).
        """
        key = np.asarray(tasks).tobytes()
        if key not in self._bounds:
            cells, places, gaps = (
                columns(one, tasks) for one in (self.table.means, self.n_places, self.n_gaps)
            )
            lower, shares, n_missing = cells.sum(axis=1), np.zeros(len(cells)), np.zeros(len(cells), np.int64)
            lacks = (gaps > 0).any(axis=1) | (places == 0).any(axis=1) | np.isnan(lower)
            if lacks.any():
                cells, places, gaps = cells[lacks], places[lacks], gaps[lacks]
                missing = np.divide(gaps, places, out=np.ones(gaps.shape), where=places > 0)
                lower[lacks] = ((1.0 - missing) * np.nan_to_num(cells)).sum(axis=1)
                shares[lacks] = missing.sum(axis=1) / len(tasks)
                n_missing[lacks] = gaps.sum(axis=1) + (places == 0).sum(axis=1) * self._usual[lacks]
            lower /= len(tasks)
            self._bounds[key] = lower, lower + shares, n_missing
        return self._bounds[key]

    @classmethod
    def of(
        cls,
        about: Sequence[About],
        rows: Rows,
        *,
        tasks: Sequence[str],
        settings: Sequence[Setting],
        deliveries: Sequence[Delivery],
        groups: Sequence[str | None] = (),
        categories: Sequence[str | None] = (),
        counting: Counting | None = None,
    ) -> "Record":
        """Reduce rows on all tasks, ascending by code point: universe → conditions → cells."""
        counting = counting or Counting()
        rows = checked(rows, n_agents=len(about), tasks=tasks, settings=settings, deliveries=deliveries)
        n_holders, n_free = holders(
            rows, n_agents=len(about), n_tasks=len(tasks), deliveries=deliveries, counting=counting
        )
        positions, sentence = universe(tasks, n_holders, n_free, counting)
        rows, active = rows.on(positions, len(tasks)), [tasks[j] for j in positions]
        counts = condition_counts(
            rows,
            n_agents=len(about),
            tasks=active,
            settings=settings,
            deliveries=deliveries,
            counting=counting,
            voters=_voters(about, _first_arrivals(deliveries, len(about))),
        )
        compared = compare(counts, counting)
        reduced = agent_rows(
            rows,
            n_agents=len(about),
            tasks=active,
            settings=settings,
            deliveries=deliveries,
            counting=counting,
            compared=compared,
        )
        return record(
            about,
            reduced,
            tasks=active,
            counting=counting,
            compared=compared,
            universe=sentence,
            n_known=len(tasks),
            groups=[groups[j] for j in positions] if groups else (),
            categories=[categories[j] for j in positions] if categories else (),
        )

    @classmethod
    def from_flat(cls, flat: FlatFile, counting: Counting | None = None) -> "Record":
        """Reduce a flat file, which counts as loaded by an operator, a delivery for each agent and run."""
        from analytics.record.missing import resolve

        counting, parts = counting or Counting(), contents(flat)
        if counting.missing != "auto":
            return cls.of(**parts, counting=counting)
        return resolve(counting, lambda tried: cls.of(**parts, counting=tried)).record

    @classmethod
    def from_frame(cls, frame: Any, counting: Counting | None = None, **options: Any) -> "Record":
        """Reduce a data frame, as `analytics.frames.flat_of` reads it with these options."""
        from analytics.frames import flat_of

        return cls.from_flat(flat_of(frame, **options), counting)

    def compared_table(self) -> OutcomeTable:
        """Return the table of the agents that have any outcome that is compared."""
        return self.table.restrict(agents=self.table.n_valid_tasks() > 0)


def record(
    about: Sequence[About],
    rows: Sequence[AgentRow],
    *,
    tasks: Sequence[str],
    counting: Counting,
    compared: Compared,
    universe: str = "",
    n_known: int = 0,
    groups: Sequence[str | None] = (),
    categories: Sequence[str | None] = (),
) -> Record:
    """Stack agents' lines, with a row on the active tasks (ascending by code point), in name order.

    n_known: tasks with those that the universe leaves out.
    """
    n, n_lines, n_conditions = len(about), len(rows), len(compared.condition)
    if not n == n_lines == n_conditions:
        raise CoreError(f"{n} agents, {n_lines} lines, {n_conditions} conditions differ", code="record")
    heard = voices(_voters(about, [row.first for row in rows]), [row.finished for row in rows])
    present = [i for i, row in enumerate(rows) if row.n_deliveries]
    order = sorted(present, key=lambda i: about[i].name)
    infos, lines = tuple(about[i] for i in order), [rows[i] for i in order]
    condition = tuple(compared.condition[i] for i in order)
    operator = np.array([row.operator for row in lines], dtype=np.bool_)
    n_places = _stack(lines, "n_places", len(tasks), np.int32)
    n_too_few = _stack(lines, "n_too_few", len(tasks), np.int32)
    loaded = operator & ~_elsewhere(condition)
    n_absent, zero = absent_trials(n_places, loaded), counting.missing in ("zero", "zero_loaded")
    n_again = (_judged_again(n_absent, compared) * zero).tolist()
    fails = missing_fails(counting, operator)
    alone = [infos[i].name for i in _without_failures(lines, n_places, ~_elsewhere(condition), fails)]
    names, means = [one.name for one in infos], _stack(lines, "means", len(tasks), np.float64)
    again = loaded & repeats_of_failures(means, n_places)
    n_gaps = _stack(lines, "n_gaps", len(tasks), np.int32)
    stacked = Record(
        table=_table(infos, lines, tasks, n_absent if zero else np.zeros_like(n_absent)),
        about=infos,
        counting=counting,
        n_places=read_only(n_places + n_absent + n_too_few),
        n_gaps=read_only(n_gaps + (0 if zero else n_absent) + n_too_few),
        n_invalid=_stack(lines, "n_invalid", len(tasks), np.int32),
        asked=_stack(lines, "asked", len(tasks), np.bool_),
        operator=operator,
        arrival=np.array([row.arrival for row in lines], dtype=np.int64),
        first=np.array([row.first for row in lines], dtype=np.int64),
        completed=np.array([row.completed for row in lines], dtype=np.int64),
        settled=np.array([row.settled for row in lines], dtype=np.int64),
        complete=np.zeros(len(lines), dtype=np.bool_),
        voice=read_only(heard[order]),
        costs=_stack(lines, "costs", len(tasks), np.float64),
        n_tokens=tuple(row.n_tokens for row in lines),
        seconds=tuple(row.seconds for row in lines),
        n_deliveries=np.array([row.n_deliveries for row in lines], dtype=np.int64),
        repeats=tuple(row.repeats for row in lines),
        compared=compared.words,
        left_out=compared.left_out,
        condition=condition,
        n_elsewhere=tuple(compared.n_elsewhere[i] for i in order),
        in_part=tuple(compared.in_part[i] for i in order) if compared.in_part else (),
        universe=universe,
        n_left_out=max(n_known - len(tasks), 0),
        uneven=(
            *uneven(names, n_places, n_absent, loaded, zero=zero),
            *passes_alone(alone),
            *failures_repeated([name for name, one in zip(names, again, strict=True) if one]),
        ),
        n_graded=tuple(row.n_graded for row in lines),
        n_uncosted=tuple(row.n_uncosted for row in lines),
        n_unconfirmed=tuple(row.n_unconfirmed for row in lines),
        n_judged_again=tuple(row.n_judged_again + n for row, n in zip(lines, n_again, strict=True)),
        n_missing_failed=sum(row.n_missing_failed for row in lines) + int(n_absent.sum()) * zero,
        retried=tuple(row.retried for row in lines),
        n_too_few=n_too_few if n_too_few.any() else None,
        groups=_named(groups, len(tasks)),
        categories=_named(categories, len(tasks)),
    )
    return _with_complete(replace(stacked, copy_of=_copies(stacked)), lines)


def _with_complete(stacked: Record, lines: Sequence[AgentRow]) -> Record:
    """Find the complete agents, and how many of their outcomes are graded."""
    agents = zip(stacked.about, stacked.condition, stacked.copy_of or stacked.condition, strict=True)
    allowed = [not (one.withheld or elsewhere or copied) for one, elsewhere, copied in agents]
    complete = stacked.ran_all & stacked.voice & np.array(allowed, dtype=np.bool_)
    learnt_from = [line for line, is_complete in zip(lines, complete, strict=True) if is_complete]
    n_valid, n_graded = (
        sum(int(one.n_valid.sum()) for one in learnt_from),
        sum(one.n_graded for one in learnt_from),
    )
    return replace(stacked, complete=complete, graded_share=n_graded / n_valid if n_valid else 0.0)


def shared_tasks(record: Record) -> tuple[str, ...]:
    """Name the active tasks with an outcome from at least 95% of the agents that `_choosing_tasks` finds."""
    free = _choosing_tasks(record)
    n_holders = np.asarray(record.table.valid()[free].sum(axis=0), dtype=np.int64)
    return tuple(
        record.table.tasks[j] for j in np.flatnonzero(is_common(n_holders, int(free.sum()))).tolist()
    )


def offer(record: Record) -> str:
    """Offer to rank on the 10 or more common tasks, where under half of the agents have all; else empty."""
    free = _choosing_tasks(record)
    n_complete, n_free, n_shared = (
        int(record.complete[free].sum()),
        int(free.sum()),
        len(shared_tasks(record)),
    )
    if 2 * n_complete >= n_free or not MIN_TASKS <= n_shared < record.n_tasks:
        return ""
    return (
        f"{n_complete} of {n_free} agents are complete on all {record.n_tasks} tasks; all {n_free} share "
        f"{n_shared}: whoever operates the board may have them compared on these"
    )


def _choosing_tasks(record: Record) -> Mask:
    vouched = np.array([one.vouched for one in record.about], dtype=np.bool_)
    return vouched_alone(np.asarray(record.asked.all(axis=1) & record.voice, dtype=np.bool_), vouched)


def _first_arrivals(deliveries: Sequence[Delivery], n_agents: int) -> list[int]:
    first: dict[int, int] = {}
    for one in deliveries:
        first[one.agent] = min(one.arrival, first.get(one.agent, one.arrival))
    return [first.get(i, 0) for i in range(n_agents)]


def _voters(about: Sequence[About], firsts: Sequence[int]) -> list[Voter]:
    both = zip(about, firsts, strict=True)
    return [Voter(one.name, one.account, one.vouched, first) for one, first in both]


def _copies(stacked: Record) -> tuple[str, ...]:
    """Name the original of each copy; none that an operator loaded, which come first, or approved."""
    trusted = stacked.operator | np.array([one.approved for one in stacked.about], dtype=np.bool_)
    originals_of = originals(stacked.table.means, stacked.precedence)
    names = stacked.table.agents
    return tuple(
        "" if of is None or let else names[of] for of, let in zip(originals_of, trusted, strict=True)
    )


def _judged_again(n_absent: CountArray, compared: Compared) -> CodeArray:
    """Count the absent verdicts but for one of each absent trial, (n_agents,): each judge has one on each.

    A rest is of trials that another judge scored.
    """
    n_conditions = max(len(compared.conditions), 1)
    n_trials = n_absent * (1 + compared.unjudged.max(initial=0)) // n_conditions
    return np.asarray((n_absent - n_trials).sum(axis=1), dtype=np.int64)


def _without_failures(
    lines: Sequence[AgentRow], n_places: CountArray, compared: Mask, fails: Mask
) -> list[int]:
    """Find agents with passes alone that lack tasks or trials.

    Where missing outcomes fail, an agent that ran tasks once lacks none: only of repeats the number is open.
    """
    alone = compared & np.array([row.n_failed == 0 for row in lines], dtype=np.bool_)
    if not alone.any():
        return []
    means = _stack(lines, "means", n_places.shape[1], np.float64)
    lacks = (_stack(lines, "asked", n_places.shape[1], np.bool_) & ~(means == 1.0)).any(axis=1)
    lacks &= ~fails | (n_places > 1).any(axis=1)
    lacks |= fewer_trials(n_places, compared & np.array([row.operator for row in lines], dtype=np.bool_))
    return np.flatnonzero(lacks & alone).tolist()


def _named(names: Sequence[str | None], n: int) -> tuple[str, ...]:
    return tuple(one or "" for one in names) if names else ("",) * n


def _elsewhere(condition: Sequence[str]) -> Mask:
    return np.array([bool(one) for one in condition], dtype=np.bool_)


def _table(
    about: Sequence[About], lines: Sequence[AgentRow], tasks: Sequence[str], n_failed: CountArray
) -> OutcomeTable:
    kinds = {"means": np.float64, "n_valid": np.int32, "trial_variances": np.float64, "n_trials": np.float64}
    stacked = CellMoments(**{name: _stack(lines, name, len(tasks), kind) for name, kind in kinds.items()})
    cells = with_failures(stacked, n_failed)
    return OutcomeTable(
        agents=tuple(one.name for one in about),
        tasks=tuple(tasks),
        means=read_only(cells.means),
        n_valid=read_only(cells.n_valid),
        dates=tuple(date.fromisoformat(one.submitted_at[:10]) if one.submitted_at else None for one in about),
        scaffolds=tuple(one.scaffold for one in about),
        models=tuple(one.model for one in about),
        trial_variances=read_only(cells.trial_variances),
        n_trials=read_only(cells.n_trials),
    )


def _stack(lines: Sequence[AgentRow], field: str, n_tasks: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    rows = [getattr(line, field) for line in lines]
    if rows and all(one is rows[0] for one in rows):
        return np.broadcast_to(np.asarray(rows[0], dtype=dtype), (len(rows), n_tasks))  # held once
    return read_only(np.array(rows, dtype=dtype).reshape(len(rows), n_tasks))
