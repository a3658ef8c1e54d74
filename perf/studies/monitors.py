"""How often each drift monitor fires on boards that do not change, and on boards that do.

Each monitor is asked at every point at which its state can change: tests at their looks, charts and e-values
once, since they tell when they first fired. A run counts as a warning when the monitor ever warned or
alerted, over all looks. Boards are those of `perf.studies.boards`; for some monitors abilities are flat on
one half of them and slowly rising on the other. Failures, costs and scaffolds are drawn beside them.
Estimates are Ridge's. What the data of a cell can show is told beside it: the rise of the means in their own
standard deviations, or on how many boards a monitor ever saw enough to judge, or what one look could show.
`python -m perf.studies.monitors [BOARDS [MONITOR …]]` prints the table of docs/evidence/monitors.txt.
"""

import math
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import NamedTuple

import numpy as np
from scipy.special import expit
from threadpoolctl import threadpool_limits

from analytics import drift
from analytics.arrays import FloatArray, IndexArray, Mask
from analytics.differences.trial_variances import trial_variance_ratio
from analytics.drift import Audit, Invalid, Monitor, Noise, OnAndOff
from analytics.drift.saturation import N_SURE, FullRunScore
from analytics.resampling import generator
from perf.studies.boards import (
    CHANGED_AT,
    N_LATER,
    REFERENCES,
    SHARES,
    Board,
    Cell,
    Change,
    Share,
    board,
    cells,
    without_outcomes,
)
from selection import full_scores, rasch
from selection.bands import HI, LO, WIDER_BANDS, mid_range
from selection.folds import CompleteAgents, Rule, fold_bands, nested_plan
from selection.held_out import Subsets, choose, hold_out, nested_residuals
from selection.intervals import MIN_FOR_QUANTILE, ScoreInterval, calibrate, intervals

LARGEST_DERIVATIVE = 1e-9  # θ̂ of many agents, to about 1e-10 logits
SEED = 20261
LOOKS = (10, 12, 20, 40, 80, 160)
REFIT_EVERY = 5
SHIFTED_AT = 2 * CHANGED_AT
UNJUDGED, ALERTED = -1, 2
MOST_FALSE_ALERTS = 0.02
N_NAMES = {"calibration": 2}
EDGES = ((LO, HI), *WIDER_BANDS)
AUDIT_SHARE = 0.05
INVALID, COST_CV = 0.02, 0.5
AGENTS = tuple(f"a{i:03d}" for i in range(400))
DAYS = tuple(date(2025, 1, 1) + timedelta(days=i) for i in range(400))

Watch = Callable[[Board, np.random.Generator, bool], Iterator[Monitor]]


# ------------------------------------------------------------------------------------------- what is watched


def rank_fidelity(one: Board, rng: np.random.Generator, changed: bool) -> Iterator[Monitor]:
    reference, since = _nested(one), _on_and_off(one)
    scores = one.means[one.n_ref :].mean(axis=1)
    for n in LOOKS[1:]:
        part = OnAndOff(*(values[:n] for values in since))
        yield drift.subset_fidelity(reference, part, scores[:n], None, AGENTS[:n], DAYS[:n])


def capability(one: Board, rng: np.random.Generator, changed: bool) -> Iterator[Monitor]:
    """A change raises abilities by 1.5 of their standard deviations; means, which are noisy, rise by less."""
    yield _jump(one.means[:, one.tasks].mean(axis=1), one)


def jump_of_means(one: Board, rng: np.random.Generator, changed: bool) -> Iterator[Monitor]:
    """A change raises the means over S by 1.5 of their standard deviations."""
    means = one.means[:, one.tasks].mean(axis=1)
    if changed:
        means[one.n_ref + CHANGED_AT :] += 1.5 * means.std(ddof=1)
    yield _jump(means, one)


def _jump(means: FloatArray, one: Board) -> Monitor:
    n = len(means)
    return drift.capability_jump(means, AGENTS[:n], DAYS[:n], n_reference=one.n_ref)


def erosion(one: Board, rng: np.random.Generator, changed: bool) -> Iterator[Monitor]:
    selected, since = one.means[: one.n_ref], one.means[one.n_ref :]
    names, seed = [str(j) for j in range(one.cell.m)], int(rng.integers(2**31))
    for n in (10, 20, 40, 80, 160):
        yield drift.band_erosion(selected, since[:n], names, EDGES, AGENTS[:n], DAYS[:n], seed)


def calibration(one: Board, rng: np.random.Generator, changed: bool) -> Iterator[Monitor]:
    """A change makes a fifth of the intervals miss; 20 agents later it moves y − ŷ by 1.5 sd."""
    errors, missed = _errors(one)
    n = len(errors)
    if changed:
        missed[CHANGED_AT:] = rng.random(missed[CHANGED_AT:].size) < 0.2
        errors[SHIFTED_AT:] += 1.5 * errors.std()
    yield drift.calibration(missed, AGENTS[:n], DAYS[:n])
    yield drift.residuals(errors, AGENTS[:n], DAYS[:n])


def saturation(one: Board, rng: np.random.Generator, changed: bool) -> Iterator[Monitor]:
    """Boards whose best agent is truly below 90% of S; after a change agents pass 97% of all trials."""
    means = one.means.copy()
    if not changed and one.chances[:, one.tasks].mean(axis=1).max() >= 0.9:
        return
    if changed:
        off = np.setdiff1d(np.arange(one.cell.m), one.tasks)
        for tasks in (one.tasks, off):
            solved = rng.binomial(one.cell.n_trials, 0.97, (len(means) - one.n_ref - CHANGED_AT, tasks.size))
            means[one.n_ref + CHANGED_AT :, tasks] = solved / one.cell.n_trials
    yield from _saturated(one, means)


def _saturated(one: Board, means: FloatArray) -> Iterator[Monitor]:
    """Ask of S, and of all tasks, which all agents have run."""
    n_trials, scores = np.full(means.shape, float(one.cell.n_trials)), means.mean(axis=1)
    every = np.arange(one.cell.m)
    omega, of_all = (
        trial_variance_ratio(means[:, part], one.variances[:, part], n_trials[:, part])
        for part in (one.tasks, every)
    )
    on_subset = means[:, one.tasks]
    for n in range(one.n_ref, len(means) + 1, 10):
        best, latest = on_subset[:n].mean(axis=1), on_subset[max(0, n - 20) : n]
        found = drift.saturation(best, n_trials[:n, 0], one.tasks.size, omega, AGENTS[:n], latest)
        score = float(scores[int(np.argmax(best))])
        full = FullRunScore.measured(score, one.cell.m, float(one.cell.n_trials), of_all)
        yield drift.of_benchmark(found, full)


def sure_saturation(one: Board, rng: np.random.Generator, changed: bool) -> Iterator[Monitor]:
    """The same where there are 50 independent outcomes; after a change, of an agent that came after it."""
    changed_agents = AGENTS[one.n_ref + CHANGED_AT :]
    for found in saturation(one, rng, changed):
        if found.evidence["n"] >= N_SURE and (not changed or found.evidence["agent"] in changed_agents):
            yield found


def tuning(one: Board, rng: np.random.Generator, changed: bool) -> Iterator[Monitor]:
    reference, since, seed = _predicted_off(one), _audited(one, rng), int(rng.integers(2**31))
    for n in (10, 20, 40, 80, 160):
        yield drift.subset_tuning(reference, Audit(*(part[:n] for part in since)), AGENTS[:n], DAYS[:n], seed)


def novelty(one: Board, rng: np.random.Generator, changed: bool) -> Iterator[Monitor]:
    """Six, twelve or sixty scaffolds; a change replaces them."""
    n_scaffolds, seed = (6, 12, 60)[int(rng.integers(3))], int(rng.integers(2**31))
    codes = rng.integers(n_scaffolds, size=one.n_ref + N_LATER)
    if changed:
        codes[one.n_ref + CHANGED_AT :] += n_scaffolds
    names = [f"s{code}" for code in codes]
    before, since = names[: one.n_ref], names[one.n_ref :]
    for n in (10, 20, 40, 80, 160):
        yield drift.scaffold_novelty(before, since[:n], AGENTS[:n], DAYS[:n], seed)


def failures(one: Board, rng: np.random.Generator, changed: bool) -> Iterator[Monitor]:
    """Of the trials 2% fail, independently; after a change 6%."""
    yield _failures(one, np.full(one.n_ref + N_LATER, INVALID), rng, changed)


def clustered(one: Board, rng: np.random.Generator, changed: bool) -> Iterator[Monitor]:
    """The share that fails differs between agents: Beta with mean 2% and standard deviation 2%."""
    yield _failures(one, rng.beta(0.96, 47.04, one.n_ref + N_LATER), rng, changed)


def noise(one: Board, rng: np.random.Generator, changed: bool) -> Iterator[Monitor]:
    if one.cell.n_trials < 2:
        return
    nested, counted = _chosen(one), np.full(one.means.shape, np.nan)
    for fold, tasks in zip(nested.folds, nested.tasks, strict=True):
        counted[np.ix_(fold.held_out, tasks)] = one.variances[np.ix_(fold.held_out, tasks)]
    counted[one.n_ref :, one.tasks] = one.variances[one.n_ref :, one.tasks]
    all_noise, seed = drift.noise_of(counted, one.means), int(rng.integers(2**31))
    reference = Noise(*(part[: one.n_ref] for part in all_noise))
    for n in (10, 20, 40, 80, 160):
        since = Noise(*(part[one.n_ref : one.n_ref + n] for part in all_noise))
        yield drift.run_noise(reference, since, AGENTS[:n], DAYS[:n], seed)


def cost(one: Board, rng: np.random.Generator, changed: bool) -> Iterator[Monitor]:
    """Log-normal costs with a coefficient of variation of one half; a change doubles them."""
    n = one.n_ref + N_LATER
    costs = rng.lognormal(0, np.sqrt(np.log1p(COST_CV**2)), n)
    if changed:
        costs[one.n_ref + CHANGED_AT :] *= 2
    yield drift.cost_per_task(costs, AGENTS[:n], DAYS[:n], n_reference=one.n_ref)


# -------------------------------------------------------------------------------------------- what they need


def _complete(outcomes: FloatArray) -> CompleteAgents:
    n = len(outcomes)
    return CompleteAgents(AGENTS[:n], outcomes, outcomes.mean(axis=1), DAYS[:n], ("",) * n, ("",) * n)


def _chosen(one: Board) -> Subsets:
    """The subset chosen without each reference agent."""
    agents = _complete(one.means[: one.n_ref])
    return choose(agents, fold_bands(agents, nested_plan(agents, "agent"), Rule()), "mid_range", Rule(), 0)


def _nested(one: Board) -> OnAndOff:
    records = hold_out(_complete(one.means[: one.n_ref]), _chosen(one))
    known = ~np.isnan(records.rest_means)
    return OnAndOff(records.subset_means[known], records.rest_means[known])


def _on_and_off(one: Board) -> OnAndOff:
    later = one.means[one.n_ref :]
    return OnAndOff(later[:, one.tasks].mean(axis=1), later[:, one.outside].mean(axis=1))


def _errors(one: Board) -> tuple[FloatArray, Mask]:
    """Errors y − ŷ of the later agents that were told an interval, and whether y missed it.

    The calibration is made anew every 5 agents. Intervals rest on the residuals of all later agents, each
    predicted when it came; until 19 of them are known, on leaving one out.
    """
    all_errors, told, missed = list[float](), list[float](), list[bool]()
    scores = one.means.mean(axis=1)
    for n in range(one.n_ref, one.n_ref + N_LATER, REFIT_EVERY):
        past = _left_out(one.means[:n]) if len(all_errors) < MIN_FOR_QUANTILE else np.full(n, np.nan)
        fitted = full_scores.fit("ridge", _complete(one.means[:n]), one.tasks)
        made = calibrate(fitted, past, in_time=np.array(all_errors))
        rows = slice(n, n + REFIT_EVERY)
        for y, answer in zip(scores[rows], intervals(made, one.means[rows, one.tasks]), strict=True):
            if isinstance(answer, ScoreInterval):
                told.append(float(y - answer.point))
                missed.append(not answer.lower <= y <= answer.upper)
        all_errors += (scores[rows] - fitted.predict(one.means[rows, one.tasks])).tolist()
    return np.array(told), np.array(missed, dtype=np.bool_)


def _left_out(means: FloatArray) -> FloatArray:
    return nested_residuals(_complete(means))


def _audited(one: Board, rng: np.random.Generator) -> Audit:
    """Audit tasks of each newcomer, 5% of k and two at least, and what the subset predicts of them."""
    difficulties = rasch.fit(one.means[: one.n_ref]).difficulties
    later = one.means[one.n_ref :]
    outcomes = np.full(later.shape, np.nan)
    n_audited, outside = drift.n_audit_tasks(one.tasks.size, AUDIT_SHARE), one.outside
    for i in range(len(later)):
        drawn = rng.choice(outside, n_audited, replace=False)
        outcomes[i, drawn] = later[i, drawn]
    return Audit(outcomes, _expected(later, one.tasks, difficulties))


def _predicted_off(one: Board) -> Audit:
    """Each reference agent outside the band of the others, predicted from its outcomes on that band."""
    means = one.means[: one.n_ref]
    start = rasch.fit(means)
    outcomes, expected = means.copy(), np.empty(means.shape)
    for i, row in enumerate(means):
        others = np.delete(means, i, axis=0)
        fitted = rasch.fit(others, (np.delete(start.abilities, i), start.difficulties))
        tasks = mid_range(others).tasks
        expected[i] = _expected(row[None], tasks, fitted.difficulties)[0]
        outcomes[i, tasks] = np.nan
    return Audit(outcomes, expected)


def _abilities(outcomes: FloatArray, difficulties: FloatArray) -> FloatArray:
    """θ̂ of many agents, each by difficulties of its own, (q, k) to (q,): the steps of `rasch.ability`."""
    level, totals = np.zeros(len(outcomes)), outcomes.sum(axis=1)
    for _ in range(rasch.MAX_ITERATIONS):
        passing = expit(level[:, None] - difficulties)
        expected = passing.sum(axis=1)
        slope = totals - expected - level / rasch.PRIOR_VARIANCE
        if np.abs(slope).max(initial=0.0) < LARGEST_DERIVATIVE:
            return level
        curvature = expected - np.einsum("ij,ij->i", passing, passing)
        step = slope / (curvature + 1.0 / rasch.PRIOR_VARIANCE)
        level = level + np.log1p(np.abs(step)) * np.sign(step)
    raise rasch.RaschUnfinished(f"a derivative is left after {rasch.MAX_ITERATIONS} steps")


def _expected(rows: FloatArray, tasks: IndexArray, difficulties: FloatArray) -> FloatArray:
    """P of all tasks from the outcomes on some, (n_agents, n_tasks)."""
    found = _abilities(rows[:, tasks], difficulties[tasks])
    return np.asarray(expit(found[:, None] - difficulties), dtype=np.float64)


def _failures(one: Board, shares: FloatArray, rng: np.random.Generator, changed: bool) -> Monitor:
    n_trials = np.full(len(shares), one.cell.m * one.cell.n_trials)
    if changed:
        shares = shares.copy()
        shares[one.n_ref + CHANGED_AT :] *= 3
    n_invalid = rng.binomial(n_trials, np.minimum(shares, 1.0))
    before, since = (
        Invalid(n_invalid[part], n_trials[part]) for part in (slice(one.n_ref), slice(one.n_ref, None))
    )
    return drift.harness_failures(before, since, AGENTS[:N_LATER], DAYS[:N_LATER])


# ------------------------------------------------------------------------------------------------- the table


class Case(NamedTuple):
    """What asks the monitors, on which change, and how many boards a row of 100 asked for.

    `size` names the change that a monitor measures, larger where more has changed.
    """

    watch: Watch
    change: Change = ""
    still: float = 2.0
    moved: float = 1.0
    rising: tuple[bool, ...] = (False,)
    shares: tuple[Share, ...] = SHARES
    needs_outcomes: bool = True
    by_reference: bool = False
    size: str = ""


BOTH = (False, True)
CASES = {
    "rank fidelity": Case(rank_fidelity, "lost", 4.0, 2.0, rising=BOTH, by_reference=True),
    "order lost at once": Case(rank_fidelity, "lost at once", 1.0, 4.0, by_reference=True),
    "capability jump": Case(capability, "jump", 5.0),
    "jump of the means": Case(jump_of_means, ""),
    "band erosion": Case(erosion, "solved"),
    "calibration": Case(calibration, "", rising=BOTH),
    "saturation": Case(saturation, "", 5.0),
    "sure saturation": Case(sure_saturation, "", 5.0),
    "tuning to the subset": Case(tuning, "tuned", size="gap"),
    "tuning, easy tasks": Case(tuning, "tuned", shares=("an easy tenth",), size="gap"),
    "scaffold novelty": Case(novelty, "", needs_outcomes=False),
    "harness failures": Case(failures, "", 4.0, needs_outcomes=False),
    "clustered failures": Case(clustered, "", 4.0, needs_outcomes=False),
    "run-to-run noise": Case(noise, "noisy", rising=BOTH, size="rise"),
    "cost per task": Case(cost, "", 8.0, needs_outcomes=False),
}
TITLES = {
    "order lost at once": "  an order lost from the first agent on",
    "clustered failures": "  shares that differ between agents",
    "jump of the means": "  means that rise by 1.5 of their sd",
    "sure saturation": "  where n is 50 or more",
    "tuning, easy tasks": "  where most tasks outside S are solved",
}
SIZES: dict[str, Callable[[Monitor], float]] = {
    "gap": lambda found: -found.evidence["gap"],
    "rise": lambda found: found.evidence["since"] - found.evidence["before"],
}


@dataclass(frozen=True)
class Fired:
    """Boards, on how many a monitor ever saw enough, ever warned or alerted, and ever alerted.

    `sizes` are those of the change at the last look of each board, where the monitor measures it.
    """

    judged: int = 0
    warned: int = 0
    alerted: int = 0
    n: int = 0
    sizes: tuple[float, ...] = ()

    def __add__(self, other: "Fired") -> "Fired":
        return Fired(
            self.judged + other.judged,
            self.warned + other.warned,
            self.alerted + other.alerted,
            self.n + other.n,
            self.sizes + other.sizes,
        )

    def share(self, n_fired: int) -> tuple[float, float]:
        """The share, and its Monte Carlo standard error, with one more of each kind so that it is not 0."""
        near = (n_fired + 1) / (self.n + 2)
        return n_fired / self.n, math.sqrt(near * (1 - near) / self.n)


def fired(label: str, cell: Cell, n_boards: int, *, changed: bool = False) -> dict[str, Fired]:
    """Watch so many boards of a cell; by monitor, without those that have nothing to look at."""
    case, found, sizes = CASES[label], Counter[tuple[str, int]](), list[float]()
    for number in range(n_boards):
        place = (cell.m, *cell.share.encode(), cell.n_trials, cell.n_ref, cell.rising, changed, number)
        rng = generator(SEED, label, *map(int, place))
        one = (
            board(cell, rng, case.change if changed else "")
            if case.needs_outcomes
            else without_outcomes(cell)
        )
        worst: dict[str, int] = {}
        for monitor in case.watch(one, rng, changed):
            worst[monitor.name] = max(worst.get(monitor.name, UNJUDGED), level_of(monitor))
            if not case.size and min(worst.values()) == ALERTED and len(worst) == N_NAMES.get(label, 1):
                break
        found.update(worst.items())
        sizes += [SIZES[case.size](monitor)] if case.size and worst else []
    return {name: _counted(found, name, tuple(sizes)) for name in sorted({name for name, _ in found})}


def _counted(found: Counter[tuple[str, int]], name: str, sizes: tuple[float, ...]) -> Fired:
    unjudged, quiet, warned, alerted = (found[name, level] for level in range(UNJUDGED, ALERTED + 1))
    n = unjudged + quiet + warned + alerted
    return Fired(quiet + warned + alerted, warned + alerted, alerted, n, sizes)


def at_most(still: Fired, moved: Fired) -> Fired:
    """Changed boards whose change at the last look is beyond that of 98% of the others.

    No rule on this figure that alerts on 2% of boards does better there, though it looked only once and
    knew how the figure is distributed.
    """
    beyond = float(np.quantile(still.sizes, 1 - MOST_FALSE_ALERTS))
    return Fired(alerted=sum(size > beyond for size in moved.sizes), n=len(moved.sizes))


def level_of(found: Monitor) -> int:
    """What a monitor says, or said before where it tells when it first fired: −1 (too little), 0, 1, 2."""
    if found.evidence.get("alarms") or found.state == "alert" or found.evidence.get("first_alert"):
        return ALERTED
    if found.evidence.get("warned") or found.state == "warn":
        return ALERTED - 1
    return UNJUDGED if found.state == "insufficient" else 0


def rows_of(label: str, n_boards: int) -> Iterator[tuple[str, tuple[str, ...], Fired, Fired]]:
    """Monitor, place (empty: all cells), still and changed boards."""
    case = CASES[label]
    still: dict[tuple[str, tuple[str, ...]], Fired] = defaultdict(Fired)
    moved: dict[tuple[str, tuple[str, ...]], Fired] = defaultdict(Fired)
    for counted, share, rising in ((still, case.still, case.rising), (moved, case.moved, (False,))):
        n = max(1, round(share * n_boards / len(REFERENCES) / len(rising)))
        for cell in cells(rising=rising, shares=case.shares):
            place = (f"m {cell.m:3}", f"k {cell.share:13}", f"R {cell.n_trials}")
            place = (*place, f"after {cell.n_ref}") if case.by_reference else place
            for name, one in fired(label, cell, n, changed=counted is moved).items():
                counted[name, ()] += one
                counted[name, place] += one
    for name, place in sorted(still):
        yield name, place, still[name, place], moved[name, place]


def print_table(n_boards: int, labels: Sequence[str]) -> None:
    for label in labels:
        start = time.process_time()
        for name, place, quiet, loud in rows_of(label, n_boards):
            title = "  " + "  ".join(place) if place else TITLES.get(label, name)
            told = f"{_shown(quiet)}   changed {_shown(loud)}{_bound(quiet, loud, place)}"
            print(f"{title:41}{told}", flush=True)
        print(f"  {time.process_time() - start:.0f} s", file=sys.stderr, flush=True)


def _shown(found: Fired) -> str:
    if not found.n:
        return "      –"
    warned, alerted = (found.share(n) for n in (found.warned, found.alerted))
    n = f"{found.n:5} ({found.judged / found.n:.2f})"
    return f"{n}  warn {warned[0]:.3f} ±{warned[1]:.3f}  alert {alerted[0]:.3f} ±{alerted[1]:.3f}"


def _bound(quiet: Fired, loud: Fired, place: tuple[str, ...]) -> str:
    """Told of one cell: figures of several have no common scale."""
    if not place or not loud.sizes:
        return ""
    best = at_most(quiet, loud)
    share, error = best.share(best.alerted)
    return f"  at most {share:.3f} ±{error:.3f}"


def main() -> None:
    n_boards = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    print(f"{N_LATER} agents after 15 or 30. Boards (share on which the monitor ever saw enough to judge);")
    print("shares on which it ever warned, or alerted, and ever alerted, ± one Monte Carlo standard error:")
    print("boards that do not change, and boards that do. At most: what one look at the end could show that")
    print("knew how its figure is distributed on boards that do not change, with 2% false alerts")
    with threadpool_limits(1, user_api="blas"):
        print_table(n_boards, sys.argv[2:] or list(CASES))


if __name__ == "__main__":
    main()
