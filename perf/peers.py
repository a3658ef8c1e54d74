"""The same work by other programs, in one run: a table of ratios at three sizes for each kind of work.

Processor seconds, one BLAS thread, the least of some turns; a ratio is theirs over ours. Data are simulated.
Beside each ratio stands how far the peer's answer lies from ours. A peer that is not installed is named and
skipped: `pip install choix evalica girth statsmodels`, and R with lme4. Run with `python -m perf.peers`.

Where a peer does less, its name says so: no errors, or a marginal model instead of a joint one. girth gives
abilities a standard deviation of 1, which stretches difficulties; they are compared in standard deviations.
"""

import time
from collections.abc import Callable
from importlib import import_module, metadata
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.special import expit
from sklearn.linear_model import LogisticRegression, Ridge, RidgeCV

from analytics.arrays import FloatArray
from analytics.differences.neyman_draws import task_weights
from analytics.differences.ranks import rank_intervals, resample
from analytics.programs import one_blas_thread
from analytics.reml import fit as fit_reml
from analytics.research.pairwise.bradley_terry import BradleyTerry, fit, fit_wins
from analytics.research.pairwise.comparisons import Comparisons
from perf import reml
from selection import rasch
from selection.leave_out import leave_out

N_TURNS, ENOUGH = 20, 1.0  # seconds after which no further turn is taken
N_RESAMPLES, N_DRAWS = 200, 2_000
SEED = 4_676

Timed = tuple[float, FloatArray]
# with seconds where another process took them; None where that has no lme4
Run = Callable[[], FloatArray | Timed | None]


class Task(NamedTuple):
    """One kind of work at one size; a peer's name begins with that of its program."""

    size: str
    ours: Run
    peers: dict[str, Run]
    difference: Callable[[FloatArray, FloatArray], float]


def installed(program: str) -> bool:
    """Whether a program is there, imported; `reml.lmer` itself finds out about lme4."""
    try:
        return program == "lme4" or bool(import_module(program.replace("scikit-learn", "sklearn")))
    except ModuleNotFoundError:
        return False


def largest(one: FloatArray, other: FloatArray) -> float:
    return float(np.max(np.abs(one - other)))


# ------------------------------------------------------------------------------------------- Bradley-Terry


def comparisons(n_models: int, n_battles: int) -> Comparisons:
    """Battles of one item each, of one judge, without a known order."""
    rng = np.random.default_rng(SEED)
    strengths = rng.normal(0, 0.8, n_models)
    a, b = np.sort([rng.choice(n_models, 2, replace=False) for _ in range(n_battles)], axis=1).T
    nothing = np.zeros(n_battles, dtype=np.int64)
    return Comparisons(
        agents=tuple(f"m{i:03d}" for i in range(n_models)),
        items=tuple(f"i{i:05d}" for i in range(n_battles)),
        judges=(),
        cells=(("j0", "v0", "a"),),
        item=np.arange(n_battles),
        a=a,
        b=b,
        cell=nothing,
        judge=nothing,
        order=np.zeros(n_battles),
        points=(rng.random(n_battles) < expit(strengths[a] - strengths[b])).astype(float),
        categories=("",) * n_battles,
        human=np.full(n_battles, -1.0),
    )


def design(c: Comparisons) -> FloatArray:
    return np.asarray(np.eye(len(c.agents))[c.a] - np.eye(len(c.agents))[c.b], dtype=np.float64)


def pairs(c: Comparisons) -> list[tuple[int, int]]:
    """Winner and loser of each row."""
    winner, loser = np.where(c.points > 0, (c.a, c.b), (c.b, c.a))
    return list(zip(winner.tolist(), loser.tolist(), strict=True))


def centred(strengths: FloatArray) -> FloatArray:
    return np.asarray(strengths - strengths.mean(axis=-1, keepdims=True), dtype=np.float64)


def logistic(c: Comparisons) -> FloatArray:
    model = LogisticRegression(C=1e8, tol=1e-8, fit_intercept=False, max_iter=10_000)
    return centred(model.fit(design(c), c.points).coef_[0])


def fitted(c: Comparisons) -> BradleyTerry:
    """Fit the rows without what an earlier fit has kept of them."""
    return fit(Comparisons(**{name: getattr(c, name) for name in c.__dataclass_fields__}))


def strengths(n_models: int, n_battles: int) -> Task:
    c = comparisons(n_models, n_battles)
    names = np.array(c.agents)
    xs, ys = names[c.a].tolist(), names[c.b].tolist()

    def by_evalica() -> FloatArray:
        evalica = import_module("evalica")
        won = [evalica.Winner.X if point else evalica.Winner.Y for point in c.points]
        found = evalica.bradley_terry(xs, ys, won, tolerance=1e-8, limit=10_000).scores
        return centred(np.log(found[list(c.agents)].to_numpy()))

    return Task(
        f"{n_models} × {n_battles:,}",
        lambda: fitted(c).strengths,
        {
            "scikit-learn LogisticRegression, no errors": lambda: logistic(c),
            "choix ilsr_pairwise, no errors": lambda: centred(
                import_module("choix").ilsr_pairwise(n_models, pairs(c))
            ),
            "evalica bradley_terry, no errors": by_evalica,
        },
        largest,
    )


def strengths_of_wins(n_models: int, n_battles: int) -> Task:
    wins = np.zeros((n_models, n_models))
    np.add.at(wins, tuple(zip(*pairs(comparisons(n_models, n_battles)), strict=True)), 1.0)
    return Task(
        f"{n_models} × {n_battles:,}",
        lambda: fit_wins(wins),
        {"choix ilsr_pairwise_dense": lambda: centred(import_module("choix").ilsr_pairwise_dense(wins))},
        largest,
    )


def strengths_with_errors(n_models: int, n_battles: int) -> Task:
    c = comparisons(n_models, n_battles)
    names = np.array(c.agents)

    def by_evalica() -> FloatArray:
        evalica = import_module("evalica")
        found = evalica.bootstrap(
            evalica.bradley_terry,
            names[c.a].tolist(),
            names[c.b].tolist(),
            [evalica.Winner.X if point else evalica.Winner.Y for point in c.points],
            n_resamples=N_RESAMPLES,
            bootstrap_method="percentile",
            random_state=SEED,
        )
        draws = centred(np.log(found.distribution[list(c.agents)].to_numpy()))
        return np.asarray(draws.std(axis=0, ddof=1), dtype=np.float64)

    return Task(
        f"{n_models} × {n_battles:,}",
        lambda: fitted(c).se,
        {f"evalica bootstrap, {N_RESAMPLES} resamples": by_evalica},
        lambda ours, theirs: float(np.median(np.abs(theirs / ours - 1.0))),
    )


# ------------------------------------------------------------------------------- Rasch, ridge, rank ranges


def outcomes_of(n: int, m: int) -> FloatArray:
    """Rasch outcomes of n agents on m tasks, none all passed or all failed."""
    rng = np.random.default_rng(SEED)
    chance = expit(rng.standard_normal((n, 1)) - rng.standard_normal((1, m)))
    outcomes = (rng.random((n, m)) < chance).astype(np.float64)
    outcomes[0], outcomes[1] = np.arange(m) % 2, 1 - np.arange(m) % 2
    return outcomes


def difficulties(n: int, m: int) -> Task:
    outcomes = outcomes_of(n, m)

    def by_scikit() -> FloatArray:
        agent, task = (axis.ravel() for axis in np.indices((n, m)))
        rows = np.arange(n * m)
        positions = np.concatenate([agent, n + task])
        signs = np.repeat([1.0, -1.0], n * m)
        x = sp.csr_array((signs, (np.tile(rows, 2), positions)), shape=(n * m, n + m))
        model = LogisticRegression(
            C=rasch.PRIOR_VARIANCE, fit_intercept=False, tol=1e-8, max_iter=10_000, solver="newton-cg"
        )
        return centred(model.fit(x, outcomes.ravel()).coef_[0, n:])

    def by_girth(method: str) -> Run:
        return lambda: getattr(import_module("girth"), method)(outcomes.T.astype(int))["Difficulty"]

    return Task(
        f"{n} × {m:,}",
        lambda: rasch.fit(outcomes).difficulties,
        {
            "scikit-learn LogisticRegression, same penalty": by_scikit,
            "girth rasch_jml": by_girth("rasch_jml"),
            "girth rasch_mml, marginal": by_girth("rasch_mml"),
        },
        lambda ours, theirs: largest(ours / ours.std(), centred(theirs) / theirs.std()),
    )


def ridge(n: int, m: int) -> Task:
    outcomes = outcomes_of(n, m)
    scores, every = outcomes_of(n, 2 * m).mean(axis=1), np.arange(m)
    none = np.empty(0, dtype=np.intp)

    def ours() -> FloatArray:
        found = leave_out(outcomes, scores, every, none)
        left_out = [np.array([i]) for i in range(n)]
        return np.concatenate(found.predictions_each(left_out, np.ones((n, m), dtype=np.bool_)))

    def by_refits() -> FloatArray:
        predicted, agents = np.empty(n), np.arange(n)
        for i in agents:
            model = Ridge(alpha=1.0).fit(outcomes[agents != i], scores[agents != i])
            predicted[i] = model.predict(outcomes[i : i + 1])[0]
        return predicted

    def by_residuals() -> FloatArray:
        model = RidgeCV(alphas=[1.0], scoring=None, store_cv_results=True).fit(outcomes, scores)
        return np.asarray(np.sqrt(model.cv_results_[:, 0]), dtype=np.float64)

    def difference(mine: FloatArray, theirs: FloatArray) -> float:
        return min(largest(mine, theirs), largest(np.abs(mine - scores), theirs))

    return Task(
        f"{n} × {m:,}",
        ours,
        {"scikit-learn Ridge, a refit each": by_refits, "scikit-learn RidgeCV, squared errors": by_residuals},
        difference,
    )


def rank_ranges(n: int, m: int) -> Task:
    outcomes = outcomes_of(n, m)
    names = [f"a{i:03d}" for i in range(n)]

    def ours() -> FloatArray:
        found = rank_intervals(resample(outcomes, names, seed=SEED, n_draws=N_DRAWS))
        return np.array([found.critical])

    def variances(sums: FloatArray, products: FloatArray) -> FloatArray:
        squares, gaps = np.diag(products), sums[:, None] - sums
        spread = squares[:, None] + squares - 2.0 * products + 1.0
        return np.asarray((spread - gaps**2 / (m + 2)) / (m + 2) ** 2, dtype=np.float64)

    def by_numpy() -> FloatArray:
        means, largest_of = outcomes.mean(axis=1), np.empty(N_DRAWS)
        d = means[:, None] - means
        for draw, weights in enumerate(task_weights(m, SEED, N_DRAWS)):
            drawn = outcomes[:, np.repeat(np.arange(m), weights.astype(int))]
            moved = drawn.mean(axis=1)
            moved = moved[:, None] - moved - d
            largest_of[draw] = np.max(moved**2 / variances(drawn.sum(axis=1), drawn @ drawn.T))
        place = int(np.ceil(0.95 * (N_DRAWS + 1)))
        return np.array([np.sqrt(np.sort(largest_of)[place - 1])])

    return Task(f"{n} × {m:,}", ours, {"numpy, loop over draws": by_numpy}, largest)


# -------------------------------------------------------------------------------------------- mixed models


def components(n_items: int, random: str) -> Task:
    columns = reml.arena(0.02, n_items)
    y = np.array(columns["score"], dtype=np.float64)

    def by_statsmodels() -> FloatArray:
        data = pd.DataFrame(columns | {"score": y})
        random = {"re_formula": "1", "vc_formula": {"prompt": "0 + C(prompt)"}}
        mixedlm = import_module("statsmodels.formula.api").mixedlm
        found = mixedlm("score ~ C(judge)", data, groups=columns["item"], **random).fit(reml=True)
        return np.array([-2.0 * found.llf])

    peers: dict[str, Run] = {"lme4 lmer": lambda: reml.lmer(columns, "score", random, "judge")}
    if random == NESTED:
        peers["statsmodels MixedLM"] = by_statsmodels
    return Task(
        f"{n_items:,} items",
        lambda: np.array([fit_reml(columns, y, random=random, fixed="judge").criterion]),
        peers,
        lambda ours, theirs: float(theirs.item() - ours.item()),
    )


# ------------------------------------------------------------------------------------------------- the table


def timed(run: Run) -> Timed | None:
    """Processor time of a run, the least of some turns, and its answer."""
    taken, answer = list[float](), np.empty(0)
    while len(taken) < N_TURNS and sum(taken) < ENOUGH:
        begin = time.process_time()
        found = run()
        taken.append(time.process_time() - begin)
        if found is None or isinstance(found, tuple):
            return found
        answer = found
    return min(taken), answer


def compare(title: str, tasks: list[Task]) -> None:
    """Print a row for each peer, a column for each size: ratio, and how far its answer lies from ours."""
    print(f"\n{title}\n  {'':46}" + "".join(f"{task.size:>21}" for task in tasks))
    ours = [timed(task.ours) or (0.0, np.empty(0)) for task in tasks]
    print(f"  {'ours, ms':46}" + "".join(f"{1e3 * taken:21,.2f}" for taken, _ in ours))
    for name in tasks[0].peers:
        row = ""
        for task, (taken, answer) in zip(tasks, ours, strict=True):
            theirs = timed(task.peers[name]) if installed(name.split()[0].rstrip(",")) else None
            if theirs:
                row += f"{theirs[0] / taken:12,.1f} ({task.difference(answer, theirs[1]):.0e})"
        print(f"  {name:46}{row or '   not installed'}", flush=True)


BATTLES = ((20, 1_000), (55, 4_676), (150, 30_000))
TABLES = ((50, 200), (150, 500), (400, 1_000))
BOARDS = ((20, 100), (50, 300), (150, 500))
ITEMS = (100, 500, 2_000)
NESTED, CROSSED = "item + item:prompt", reml.ARENA


def main() -> None:
    packages = ("scikit-learn", "choix", "evalica", "girth", "statsmodels")
    versions = [f"{name} {metadata.version(name)}" for name in packages if installed(name)]
    print(f"Processor time, theirs over ours, and how far apart the answers are. {', '.join(versions)}")
    with one_blas_thread():
        compare(
            "Bradley-Terry from battles, strengths with errors; largest difference of a strength",
            [strengths(*size) for size in BATTLES],
        )
        compare(
            "Bradley-Terry from a matrix of wins, strengths alone; largest difference",
            [strengths_of_wins(*size) for size in BATTLES],
        )
        compare(
            "Bradley-Terry, standard errors; median relative difference",
            [strengths_with_errors(*size) for size in BATTLES],
        )
        compare(
            "Rasch, difficulties; largest difference in their standard deviations",
            [difficulties(*size) for size in TABLES],
        )
        compare("Ridge leaving out each agent; largest difference", [ridge(*size) for size in TABLES])
        compare(
            f"Simultaneous rank ranges, {N_DRAWS:,} draws; difference of the critical value",
            [rank_ranges(*size) for size in BOARDS],
        )
        for title, random in (("item + item:prompt", NESTED), ("items, prompts and judges crossed", CROSSED)):
            compare(
                f"REML of {title}, 2% missing; how far above ours its criterion ends",
                [components(n_items, random) for n_items in ITEMS],
            )


if __name__ == "__main__":
    main()
