"""How often each drift monitor fires on boards that do not change, and on boards that do.

Each monitor is asked at every point at which its state can change: tests at their looks, charts and e-values
once, since they tell when they first fired. A run counts as a warning when the monitor ever warned or
alerted, over all looks. Boards are those of `perf.studies.boards`; for some monitors abilities are flat on
one half of them and slowly rising on the other. Shares of failures, costs and misses are drawn beside them.
`python -m perf.studies.monitors [BOARDS]` prints the table of docs/evidence/monitors.txt.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from analytics import drift
from analytics.arrays import FloatArray, Mask
from analytics.differences.pairs import trial_variance_ratio
from analytics.drift import Invalid, Monitor, Noise, OnAndOff
from analytics.resampling import generator
from perf.studies.boards import CHANGED_AT, N_LATER, Board, Cell, Change, board, cells
from selection import rasch
from selection.bands import HI, LO, WIDER_BANDS
from selection.folds import CompleteAgents, Rule, fold_bands, nested_plan
from selection.held_out import choose, hold_out, nested_residuals
from selection.intervals import Interval, calibrate, intervals

SEED = 20261
LOOKS = (10, 12, 20, 40, 80, 160)
REFIT_EVERY = 5
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
    means = one.means[:, one.tasks].mean(axis=1)
    n = len(means)
    yield drift.capability_jump(means, AGENTS[:n], DAYS[:n], n_reference=one.n_ref)


def erosion(one: Board, rng: np.random.Generator, changed: bool) -> Iterator[Monitor]:
    selected, since = one.means[: one.n_ref], one.means[one.n_ref :]
    names, seed = [str(j) for j in range(one.cell.m)], int(rng.integers(2**31))
    for n in (10, 20, 40, 80, 160):
        yield drift.band_erosion(selected, since[:n], names, EDGES, AGENTS[:n], DAYS[:n], seed)


def misses(one: Board, rng: np.random.Generator, changed: bool) -> Iterator[Monitor]:
    """Misses of the intervals in use, refitted every 5 agents; a change makes a fifth of them miss."""
    missed = _errors(one)[1]
    if changed:
        missed[CHANGED_AT:] = rng.random(N_LATER - CHANGED_AT) < 0.2
    yield drift.calibration(missed, AGENTS[:N_LATER], DAYS[:N_LATER])


def residuals(one: Board, rng: np.random.Generator, changed: bool) -> Iterator[Monitor]:
    """Y − ŷ; a change moves it by 1.5 standard deviations."""
    errors = _errors(one)[0]
    if changed:
        errors[CHANGED_AT:] += 1.5 * errors.std()
    yield drift.residuals(errors, AGENTS[:N_LATER], DAYS[:N_LATER])


def saturation(one: Board, rng: np.random.Generator, changed: bool) -> Iterator[Monitor]:
    """Boards whose best agent is truly below 90%; after a change agents pass 97% of the trials on S."""
    means = one.means[:, one.tasks].copy()
    if not changed and one.chances[:, one.tasks].mean(axis=1).max() >= 0.9:
        return
    if changed:
        size = means[one.n_ref + CHANGED_AT :].shape
        means[one.n_ref + CHANGED_AT :] = rng.binomial(one.cell.n_trials, 0.97, size) / one.cell.n_trials
    n_trials = np.full(means.shape, float(one.cell.n_trials))
    omega = trial_variance_ratio(means, one.variances[:, one.tasks], n_trials)
    for n in range(one.n_ref, len(means) + 1, 10):
        best = means[:n].mean(axis=1)
        latest = means[max(0, n - 20) : n]
        yield drift.saturation(best, n_trials[:n, 0], one.tasks.size, omega, AGENTS[:n], latest)


def tuning(one: Board, rng: np.random.Generator, changed: bool) -> Iterator[Monitor]:
    outcomes, expected = _audited(one, rng)
    for n in (10, 20, 40, 80, 160):
        yield drift.subset_tuning(outcomes[:n], expected[:n], AGENTS[:n], DAYS[:n])


def novelty(one: Board, rng: np.random.Generator, changed: bool) -> Iterator[Monitor]:
    """Twelve scaffolds; a change replaces them."""
    codes = rng.integers(12, size=one.n_ref + N_LATER)
    if changed:
        codes[one.n_ref + CHANGED_AT :] += 12
    names = [f"s{code}" for code in codes]
    known = frozenset(names[: one.n_ref])
    for n in range(10, N_LATER + 1):
        yield drift.scaffold_novelty(names[one.n_ref : one.n_ref + n], known, AGENTS[:n])


def failures(one: Board, rng: np.random.Generator, changed: bool) -> Iterator[Monitor]:
    """Of the trials 2% fail, independently; after a change 6%."""
    yield _failures(one, np.full(one.n_ref + N_LATER, INVALID), rng, changed)


def clustered(one: Board, rng: np.random.Generator, changed: bool) -> Iterator[Monitor]:
    """The share that fails differs between agents: Beta with mean 2% and standard deviation 2%."""
    yield _failures(one, rng.beta(0.96, 47.04, one.n_ref + N_LATER), rng, changed)


def noise(one: Board, rng: np.random.Generator, changed: bool) -> Iterator[Monitor]:
    if one.cell.n_trials < 2:
        return
    whole, seed = drift.noise_of(one.variances, one.means), int(rng.integers(2**31))
    reference = Noise(*(part[: one.n_ref] for part in whole))
    for n in (10, 20, 40, 80, 160):
        since = Noise(*(part[one.n_ref : one.n_ref + n] for part in whole))
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
    return CompleteAgents(
        AGENTS[:n], outcomes, outcomes.mean(axis=1), DAYS[:n], ("",) * n, ("",) * n, np.ones(n)
    )


def _nested(one: Board) -> OnAndOff:
    agents = _complete(one.means[: one.n_ref])
    bands = fold_bands(agents, nested_plan(agents, "agent"), Rule())
    records = hold_out(agents, choose(agents, bands, "mid_range", Rule(), 0))
    known = ~np.isnan(records.rest_means)
    return OnAndOff(records.subset_means[known], records.rest_means[known])


def _on_and_off(one: Board) -> OnAndOff:
    later = one.means[one.n_ref :]
    return OnAndOff(later[:, one.tasks].mean(axis=1), later[:, one.outside].mean(axis=1))


def _errors(one: Board) -> tuple[FloatArray, Mask]:
    """Errors y − ŷ of the later agents, and whether y missed its interval, (N_LATER,); refitted every 5."""
    errors, missed = np.empty(N_LATER), np.empty(N_LATER, np.bool_)
    for start in range(0, N_LATER, REFIT_EVERY):
        n = one.n_ref + start
        agents = _complete(one.means[:n])
        left_out = nested_residuals(agents)
        past = np.where(left_out.usable, left_out.scores - left_out.predictions, np.nan)
        made = calibrate(agents.outcomes[:, one.tasks], agents.scores, past)
        rows = one.means[n : n + REFIT_EVERY]
        for i, answer in enumerate(intervals(made, rows[:, one.tasks]), start):
            assert isinstance(answer, Interval), answer
            y = one.means[one.n_ref + i].mean()
            errors[i], missed[i] = y - answer.point, not answer.lower <= y <= answer.upper
    return errors, missed


def _audited(one: Board, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Audit tasks of each newcomer, 5% of k and one at least, and what the subset predicts."""
    difficulties = rasch.fit(one.means[: one.n_ref]).difficulties
    later = one.means[one.n_ref :]
    outcomes, expected = np.full((2, *later.shape), np.nan)
    n_audited = max(1, round(AUDIT_SHARE * one.tasks.size))
    for i, row in enumerate(later):
        on_subset = np.full(len(row), np.nan)
        on_subset[one.tasks] = row[one.tasks]
        level = rasch.ability(on_subset, difficulties)
        drawn = rng.choice(one.outside, n_audited, replace=False)
        outcomes[i, drawn] = row[drawn]
        expected[i, drawn] = 1 / (1 + np.exp(difficulties[drawn] - level))
    return outcomes, expected


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
    """A monitor, what it needs, whether it is calibrated on rising abilities too, and its change."""

    watch: Watch
    change: Change = ""
    rising: bool = False
    costly: bool = False


CASES = {
    "rank fidelity": Case(rank_fidelity, "lost", rising=True),
    "capability jump": Case(capability, "jump"),
    "band erosion": Case(erosion, "solved", costly=True),
    "calibration": Case(misses, rising=True, costly=True),
    "calibration residuals": Case(residuals, rising=True, costly=True),
    "saturation": Case(saturation),
    "tuning to the subset": Case(tuning, "tuned", costly=True),
    "scaffold novelty": Case(novelty),
    "harness failures": Case(failures),
    "  differing between agents": Case(clustered),
    "run-to-run noise": Case(noise, "noisy", rising=True),
    "cost per task": Case(cost),
}


@dataclass(frozen=True)
class Fired:
    """Shares of boards on which a monitor warned or alerted, and on which it alerted."""

    warned: float
    alerted: float
    n: int


def fired(name: str, cell: Cell, n_boards: int, *, changed: bool = False) -> Fired | None:
    """Watch so many boards of a cell; None where the monitor has nothing to look at."""
    case, seen = CASES[name], []
    for number in range(n_boards):
        place = (cell.m, len(cell.share), cell.n_trials, cell.n_ref, cell.rising, changed, number)
        rng = generator(SEED, name, *map(int, place))
        one = board(cell, rng, case.change if changed else "")
        states = [_worst(found) for found in case.watch(one, rng, changed)]
        if states:
            seen.append(max(states))
    levels = np.array(seen)
    return Fired(float(np.mean(levels >= 1)), float(np.mean(levels >= 2)), len(levels)) if seen else None


def _worst(found: Monitor) -> int:
    """0, 1 or 2: what a monitor says, or said before where it tells when it first fired."""
    if found.evidence.get("alarms") or found.state == "alert":
        return 2
    return int(bool(found.evidence.get("warned")) or found.state == "warn")


def pooled(parts: Sequence[Fired | None]) -> Fired | None:
    known = [part for part in parts if part is not None]
    n = sum(part.n for part in known)
    if not n:
        return None
    mean = [sum(getattr(part, what) * part.n for part in known) / n for what in ("warned", "alerted")]
    return Fired(mean[0], mean[1], n)


def print_table(n_boards: int, n_costly: int, names: Sequence[str] = tuple(CASES)) -> None:
    for name in names:
        start, case = time.perf_counter(), CASES[name]
        n = n_costly if case.costly else n_boards
        still = {
            cell: fired(name, cell, n) for cell in cells(rising=(False, True) if case.rising else (False,))
        }
        moved = {cell: fired(name, cell, n, changed=True) for cell in cells()}
        print(f"{name:28}{_shown(pooled(list(still.values())), pooled(list(moved.values())))}", end="")
        print(f"   {time.perf_counter() - start:6.0f} s")
        for m in (60, 500):
            for share in ("a tenth", "a half"):
                for n_trials in (1, 5):
                    chosen = (m, share, n_trials)
                    quiet, loud = (
                        pooled([f for c, f in by.items() if (c.m, c.share, c.n_trials) == chosen])
                        for by in (still, moved)
                    )
                    if quiet is not None:
                        print(f"    m {m:3}, k {share:7}, R {n_trials}   {_shown(quiet, loud)}", flush=True)


def _shown(still: Fired | None, moved: Fired | None) -> str:
    if still is None or moved is None:
        return "nothing to look at"
    return (
        f"{still.n:6} boards: warn {still.warned:.3f}, alert {still.alerted:.3f}   "
        f"changed, {moved.n:5}: warn {moved.warned:.2f}, alert {moved.alerted:.2f}"
    )


def main() -> None:
    n_boards = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    names = sys.argv[2:] or list(CASES)
    print(
        f"{N_LATER} agents after 15 or 30; shares of boards on which a monitor ever warned, and ever alerted"
    )
    with threadpool_limits(1, user_api="blas"):
        print_table(n_boards, max(1, n_boards // 6), names)


if __name__ == "__main__":
    main()
