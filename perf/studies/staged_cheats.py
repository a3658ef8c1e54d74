"""What cheating against staged assignment gains, and how often a tuned first batch is noticed.

A board as in `perf.studies.staged_boards`, stationary: 40 agents with full runs teach, and each of ten others
comes twice, 20 newcomers a board, each judged by that one fit. An honest newcomer's outcomes are drawn once;
a cheat changes what it must and keeps the rest. A gain is the published score of the cheat less that of the
same newcomer honest, in points, and the places that it moves up among the 40.

======================  ==================================================================================
cheat                   what it does
======================  ==================================================================================
leaves when lucky       is gone after a batch where its estimate lies 3 points or more above its expected
                        score: incomplete, without a rank; the gain of those with a rank is told, against
                        the expected score
shops for names         has an undrawn name: keeps the estimate where it would have been drawn
delivers the better     drawn, runs the rest in secret and delivers it only where that scores higher
two names, one hidden   runs twice, and one account shows the better alone
two names, one line     both stand on the board of one account, which joins them (`standings.versions`);
                        one newcomer a board
finishes the luckiest   begins six versions of one agent and finishes the one that passes most of its first
                        batch; the others stay begun; one newcomer a board, against a line of its own
keeps last batches      runs six versions and delivers the last batch of the best alone; as above
guesses audit tasks     knows ten tasks drawn from outside the first batch; the gain beyond what a full run
                        would gain by them
tuned +5, +10, +20      passes so many more tasks of the first batch that its estimate is to rise by that
                        many points, where that can be had; *full* is what a full run gains by it
======================  ==================================================================================

Flags: *alone* is that of `analytics.drift.tuning` for one agent (z below −3 on five audit tasks or more);
*board* its monitor on all 20 newcomers, at its first look but one, all tuned or all honest. What would be
seen by n audit tasks, and by all tasks beyond the first batch that the agent was asked for, is
z = Σ(x − P)/√(V + V²v), V = ΣP(1 − P), v the variance of the ability from the first batch, below −2.33.
`python -m perf.studies.staged_cheats [BOARDS [LARGE BOARDS]]` prints docs/evidence/staged-cheats.txt.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from analytics.arrays import FloatArray, IndexArray
from analytics.drift import Audit
from analytics.drift.tuning import subset_tuning
from perf.studies.staged_boards import board, record_of, standings
from perf.studies.table import print_table
from selection import history
from selection.folds import CompleteAgents, Fold
from selection.held_out import Subsets
from selection.prior import PriorDecisions
from selection.rules import Rules
from selection.staged.model import estimate
from selection.staged.study import staged_in
from selection.staged.teaching import FullRun, Teaching, taught
from selection.staged.walks import Fit, Stage, Staging, Step, audit_tasks, step
from selection.standings import answer

N_TEACHING, N_TWICE, N_GUESSED = 40, 10, 10
LUCKY = 0.03
LIFTS = (0.05, 0.10, 0.20)
N_AUDITED = (2, 5, 10, 20, 40)
BELOW = -2.326
PRECISION_OF_PRIOR = 1.0 / 9.0

Found = dict[str, list[float]]


@dataclass(frozen=True)
class Newcomer:
    """One walk: the score published at its end, each step, the tasks asked for, and their outcomes."""

    score: float
    steps: tuple[Step, ...]
    asked: tuple[int, ...]
    outcomes: FloatArray

    @property
    def estimate(self) -> float | None:
        """The score with which the rule stopped it, drawn or not; None where it ran on to the end."""
        found = [one.estimate for one in self.steps if one.stage in (Stage.STOPPED, Stage.DRAWN)]
        return found[0].score if found and found[0] else None


def newcomer(fit: Fit, outcomes: FloatArray, name: str, seed: int) -> Newcomer:
    """Let one go through the rule."""
    every = np.ones(fit.n_tasks, dtype=np.bool_)
    asked, steps = list[int](), list[Step]()
    while not steps or steps[-1].batch:
        steps.append(
            step(
                fit,
                assigned_tasks=asked,
                outcomes=outcomes,
                delivered=every,
                active=every,
                seed=seed,
                agent=name,
            )
        )
        asked += steps[-1].batch
    last = steps[-1].estimate
    return Newcomer(last.score if last else float(outcomes.mean()), tuple(steps), tuple(asked), outcomes)


def tuned(fit: Fit, chances: FloatArray, name: str, seed: int, lift: float) -> FloatArray | None:
    """Return P of an agent that knows enough of the first batch to be estimated so much higher."""
    batch = fit.first_batch
    ran = np.union1d(batch, audit_tasks(fit, seed, name))

    def of(share: float) -> tuple[FloatArray, float]:
        passing, seen = chances.copy(), np.full(chances.size, np.nan)
        passing[batch] += share * (1.0 - passing[batch])
        seen[ran] = passing[ran]
        return passing, estimate(fit.model, seen, fit.model.next_mean).score

    honest, low, high = of(0.0)[1], 0.0, 1.0
    if of(1.0)[1] - honest < lift:
        return None
    for _ in range(20):
        middle = (low + high) / 2.0
        low, high = (low, middle) if of(middle)[1] - honest > lift else (middle, high)
    return of(high)[0]


def founders(agents: CompleteAgents) -> Audit:
    """Each teaching agent outside S and the first batch chosen without it, predicted from that batch."""
    folds, batches, outside = list[Fold](), list[IndexArray](), list[IndexArray]()
    for i in range(agents.n):
        kept = np.setdiff1d(np.arange(agents.n), [i])
        found = taught_by_all(agents.take(kept))
        folds.append(Fold(agents.names[i], np.array([i]), kept))
        batches.append(found.first_batch)
        outside.append(found.ranking_tasks)
    audit = history.of_founders(agents, Subsets(tuple(folds), tuple(batches), 0, ""))
    outcomes = audit.outcomes.copy()
    for row, tasks in zip(outcomes, outside, strict=True):
        row[tasks] = np.nan
    return Audit(outcomes, audit.expected)


def taught_by_all(agents: CompleteAgents) -> Teaching:
    """Fit to agents that all ran everything."""
    runs = [FullRun(i, float(y)) for i, y in enumerate(agents.scores)]
    return taught(agents.outcomes, agents.scores, runs, Staging())


def one_board(seed: int, m: int) -> Found:
    """Return figures of a board: means over its newcomers, by cheat and figure."""
    rng = np.random.default_rng([13, m, seed])
    everyone, every_chance = board(rng, 0.0, m)
    agents = everyone.take(np.arange(N_TEACHING))
    found, chances = taught_by_all(agents), np.repeat(every_chance[N_TEACHING:], 2, axis=0)
    fit, told = found.fit, Found()
    names = [f"b{k:02d}" for k in range(2 * N_TWICE)]
    luck = rng.random(chances.shape)
    honest = [
        newcomer(fit, (u < p).astype(np.float64), name, seed)
        for u, p, name in zip(luck, chances, names, strict=True)
    ]

    def rank(score: float) -> int:
        return 1 + int(np.count_nonzero(np.round(found.estimates, 9) > round(score, 9)))

    def gain(cheat: str, score: float, other: float, share: float = 1.0) -> None:
        told.setdefault(f"{cheat}: points", []).append(100.0 * share * (score - other))
        told.setdefault(f"{cheat}: places", []).append(share * (rank(other) - rank(score)))

    outside = np.setdiff1d(np.arange(m), fit.first_batch)
    for k, one in enumerate(honest):
        expected, y = float(chances[k].mean()), float(one.outcomes.mean())
        left = any(s.estimate and s.batch and s.estimate.score >= expected + LUCKY for s in one.steps)
        told.setdefault("leaves when lucky: left", []).append(float(left))
        told.setdefault("honest: points", []).append(100.0 * (one.score - expected))
        if not left:
            gain("leaves when lucky", one.score, expected)
        if one.estimate is not None:
            gain("shops for names", one.estimate, y, fit.share_drawn)
            gain("delivers the better", max(one.estimate, y), y, fit.share_drawn)
        guessed = one.outcomes.copy()
        guessed[rng.choice(outside, N_GUESSED, replace=False)] = 1.0
        other = newcomer(fit, guessed, names[k], seed)
        gain("guesses audit tasks", other.score, one.score + float(guessed.mean()) - y)
    for one, other in zip(honest[::2], honest[1::2], strict=True):
        for single in (one, other):
            gain("two names, one hidden", max(one.score, other.score), single.score)
    if m == SIZES[0]:
        for single, line in _joined(agents, honest[:2]):
            gain("two names, one line", line, single)
        six = [
            newcomer(fit, (rng.random(m) < chances[0]).astype(np.float64), f"c{k:02d}", seed)
            for k in range(6)
        ]
        expected = float(chances[0].mean())
        gain("one of six", six[0].score, expected)
        luckiest = max(six, key=lambda one: one.outcomes[list(one.steps[0].batch)].mean())
        begun = [one.steps[0].batch for one in six]
        gain("finishes the luckiest, plainly", luckiest.score, expected)
        gain("finishes the luckiest", _line(agents, six, six.index(luckiest), begun), expected)
        best = max(six, key=lambda one: one.score)
        begun = [one.asked[: len(one.asked) - len(_last(one))] for one in six]
        gain("keeps last batches, plainly", best.score, expected)
        gain("keeps last batches", _line(agents, six, six.index(best), begun), expected)
    _tuned(told, fit, agents, honest, chances, luck, names, seed, gain)
    return {name: [float(np.mean(values))] for name, values in told.items()}


def _joined(agents: CompleteAgents, both: Sequence[Newcomer]) -> Iterator[tuple[float, float]]:
    """Yield each newcomer's published score by itself, and that of the best line of the two's account."""
    ran = [np.where(np.isin(np.arange(one.outcomes.size), one.asked), one.outcomes, np.nan) for one in both]
    record = record_of((*agents.names, "b00", "b01"), np.vstack([agents.outcomes, *ran]))
    owned = [
        replace(one, account="one", model="one") if one.name.startswith("b") else one for one in record.about
    ]
    joined = standings(replace(record, about=tuple(owned)), Staging())
    lines = [line.at["full"] for line in joined.agents if line.agent.startswith("b")]
    known = [(at, at.score) for at in lines if at.score is not None]
    best = max(score for at, score in known if at.rank is not None)
    for at, score in known:
        yield score + at.correction, best


def _last(one: Newcomer) -> tuple[int, ...]:
    return tuple([step_.batch for step_ in one.steps if step_.batch][-1])


def _line(
    agents: CompleteAgents, six: Sequence[Newcomer], done: int, begun: Sequence[Sequence[int]]
) -> float:
    """Return the score on the board of the version that was finished, the others left after `begun`."""
    names = [f"c{k:02d}" for k in range(len(six))]
    ran = [set(one.asked) if k == done else set(begun[k]) for k, one in enumerate(six)]
    rows = [
        np.where([j in tasks for j in range(one.outcomes.size)], one.outcomes, np.nan)
        for one, tasks in zip(six, ran, strict=True)
    ]
    record = record_of((*agents.names, *names), np.vstack([agents.outcomes, *rows]))
    owned = tuple(
        replace(one, account="one", model="one") if one.name in names else one for one in record.about
    )
    record = replace(record, about=owned)
    staged = {
        name: one if name == names[done] else replace(one, score=None, se=None, lower=None, upper=None)
        for name, one in staged_in(record, Staging()).items()
    }
    given = PriorDecisions(staged=staged, full_runs_only="full scores alone are looked at")
    found = answer(record, Rules(target="full"), given)
    return next(line.at["full"].score or 0.0 for line in found.agents if line.agent == names[done])


def _tuned(
    told: Found,
    fit: Fit,
    agents: CompleteAgents,
    honest: Sequence[Newcomer],
    chances: FloatArray,
    luck: FloatArray,
    names: Sequence[str],
    seed: int,
    gain: Callable[[str, float, float], None],
) -> None:
    """Add what tuning gains, and who is flagged."""
    logits, reference = history.founders_difficulties(agents), founders(agents)
    groups = {"honest": list(enumerate(honest))}
    for lift in LIFTS:
        cheat = f"tuned +{100 * lift:.0f}"
        groups[cheat] = []
        for k, one in enumerate(honest):
            passing = tuned(fit, chances[k], names[k], seed, lift)
            told.setdefault(f"{cheat}: could", []).append(float(passing is not None))
            if passing is None:
                continue
            other = newcomer(fit, (luck[k] < passing).astype(np.float64), names[k], seed)
            groups[cheat].append((k, other))
            gain(cheat, other.score, one.score)
            told.setdefault(f"{cheat}: full", []).append(
                100.0 * float(other.outcomes.mean() - one.outcomes.mean())
            )
            told.setdefault(f"{cheat}: ran all", []).append(float(len(other.asked) == luck.shape[1]))
    for name, group in groups.items():
        outcomes = np.array([one.outcomes for _, one in group])
        audited = np.zeros(outcomes.shape, dtype=np.bool_)
        for row, (k, _) in zip(audited, group, strict=True):
            row[audit_tasks(fit, seed, names[k])] = True
        since = history.of_newcomers(outcomes, audited, fit.first_batch, logits)
        monitor = subset_tuning(reference, since, [names[k] for k, _ in group], [None] * len(group), seed)
        told.setdefault(f"{name}: alone", []).append(len(monitor.evidence["agents"]) / len(group))
        told.setdefault(f"{name}: board", []).append(float(monitor.state == "alert"))
        for (_, one), expected in zip(group, since.expected, strict=True):
            _seen(told, name, fit, one, expected, np.random.default_rng([17, seed]))


def _seen(
    told: Found, name: str, fit: Fit, one: Newcomer, expected: FloatArray, rng: np.random.Generator
) -> None:
    """Add whether z is low on n drawn tasks outside S and the first batch, and on all asked for later."""
    telling = expected * (1.0 - expected)
    v = 1.0 / (float(telling[fit.first_batch].sum()) + PRECISION_OF_PRIOR)
    left = np.setdiff1d(np.arange(fit.n_tasks), np.union1d(fit.first_batch, fit.ranking_tasks))
    drawn = rng.permutation(left)
    parts = {f"{n} audit tasks": drawn[:n] for n in N_AUDITED if n <= left.size}
    parts["all later tasks"] = np.setdiff1d(one.asked, fit.first_batch)
    for what, tasks in parts.items():
        spread = float(telling[tasks].sum())
        z = float((one.outcomes - expected)[tasks].sum()) / np.sqrt(spread + spread**2 * v)
        told.setdefault(f"{name}: {what}", []).append(float(z < BELOW))


SIZES = (100, 500)


def collected(m: int, n_boards: int) -> dict[str, str]:
    """Return each figure with its standard error over boards."""
    found = Found()
    for seed in range(n_boards):
        for name, values in one_board(seed, m).items():
            found.setdefault(name, []).extend(values)
    return {name: _with_error(name, np.array(values)) for name, values in found.items()}


def _with_error(name: str, values: FloatArray) -> str:
    se = values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else float("nan")
    signed = name.endswith(("points", "places", "full"))
    return f"{values.mean():+.2f} ± {se:.2f}" if signed else f"{values.mean():.3f} ± {se:.3f}"


def report(m: int, n_boards: int) -> None:
    """Print the tables of one size."""
    found = collected(m, n_boards)

    def cells(row: str, figures: Sequence[str]) -> list[str]:
        return [row, *(found.get(f"{row}: {figure}", "–") for figure in figures)]

    cheats = list(dict.fromkeys(name.split(": ")[0] for name in found))
    tunings = [f"tuned +{100 * lift:.0f}" for lift in LIFTS]
    gains = ("points", "places", "left", "could", "full", "ran all")
    print_table(f"{m} tasks, {n_boards} boards: gain", ("", *gains), [cells(one, gains) for one in cheats])
    flags = ["alone", "board", *(f"{n} audit tasks" for n in N_AUDITED), "all later tasks"]
    rows = [[flag, *(found.get(f"{name}: {flag}", "–") for name in ("honest", *tunings))] for flag in flags]
    print_table(f"{m} tasks: share flagged", ("", "honest", *tunings), rows)


def main(n_boards: int, n_large: int) -> None:
    """Print the tables."""
    for m, n in zip(SIZES, (n_boards, n_large), strict=True):
        report(m, n)


if __name__ == "__main__":
    given = [int(one) for one in sys.argv[1:]]
    main(*(given + [60, 15][len(given) :]))
