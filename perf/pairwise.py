"""Bradley and Terry's model by `analytics.research.pairwise` against scikit-learn, choix and evalica.

Simulated battles of the size of the paper's (TEE App. R): 55 models, 4,676 battles, 3 judges × 5 prompts × 2
orders. Figures are ratios of processor time within one run, all programs on one BLAS thread and taking turns,
so that what else a shared machine does falls on all of them. Ours is the whole fit with errors clustered by
item, from arrays of codes; theirs have no error, and start from the same arrays, of which scikit-learn's
design and choix's list are made, or (`fit alone`) from what they take, made before. Run with
`python -m perf.pairwise`.
"""

import time
from collections.abc import Callable

import choix
import evalica
import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from analytics.arrays import FloatArray
from analytics.research.pairwise.bradley_terry import fit, fit_wins
from analytics.research.pairwise.cells import bootstrap_cells
from analytics.research.pairwise.comparisons import Comparisons

N_RUNS, IN_A_TURN = 25, 5
N_MODELS, N_BATTLES = 55, 4_676
JUDGES, PROMPTS, ORDERS = 3, 5, ("a", "b")
SEED = 4_676

Run = Callable[[], FloatArray]


def comparisons(n_cells: int) -> Comparisons:
    """Battles under the first cells; without a known order where there is one cell alone."""
    rng = np.random.default_rng(SEED)
    strengths = rng.normal(0, 0.8, N_MODELS)
    a, b = np.sort([rng.choice(N_MODELS, 2, replace=False) for _ in range(N_BATTLES)], axis=1).T
    cells = [(f"j{j}", f"v{v}", first) for j in range(JUDGES) for v in range(PROMPTS) for first in ORDERS]
    cells = cells[:n_cells]
    shift = rng.normal(0, 0.2, (len(cells), N_MODELS))
    item, cell = (axis.ravel() for axis in np.indices((N_BATTLES, n_cells)))
    order = np.array([1.0 if first == "a" else -1.0 for *_, first in cells])[cell]
    a, b = a[item], b[item]
    x = strengths[a] - strengths[b] + shift[cell, a] - shift[cell, b] + rng.normal(0, 1, N_BATTLES)[item]
    known = n_cells > 1
    return Comparisons(
        agents=tuple(f"m{i:02d}" for i in range(N_MODELS)),
        items=tuple(f"i{i:04d}" for i in range(N_BATTLES)),
        judges=tuple(sorted({judge for judge, *_ in cells})) if known else (),
        cells=tuple(cells),
        item=item,
        a=a,
        b=b,
        cell=cell,
        judge=cell // (PROMPTS * len(ORDERS)) if known else np.zeros_like(cell),
        order=order if known else np.zeros(order.size),
        points=(rng.random(x.size) < expit(x + 0.3 * order * known)).astype(float),
        categories=("",) * N_BATTLES,
        human=np.full(x.size, -1.0),
    )


def design(c: Comparisons) -> FloatArray:
    found = np.zeros((c.a.size, N_MODELS + len(c.judges)))
    rows = np.arange(c.a.size)
    found[rows, c.a], found[rows, c.b] = 1.0, -1.0
    if c.judges:
        found[rows, N_MODELS + c.judge] = c.order
    return found


def pairs(c: Comparisons) -> list[tuple[int, int]]:
    """Winner and loser of each row."""
    winner, loser = np.where(c.points > 0, (c.a, c.b), (c.b, c.a))
    return list(zip(winner.tolist(), loser.tolist(), strict=True))


def logistic(x: FloatArray, y: FloatArray) -> Run:
    def run() -> FloatArray:
        return (
            LogisticRegression(C=1e8, tol=1e-8, fit_intercept=False, max_iter=10_000)
            .fit(x, y)
            .coef_[0, :N_MODELS]
        )

    return run


def fresh(c: Comparisons) -> Comparisons:
    """The same rows without what an earlier fit has kept of them."""
    return Comparisons(**{name: getattr(c, name) for name in c.__dataclass_fields__})


def seconds(runs: dict[str, Run]) -> dict[str, float]:
    """Processor time of each, the least of turns of a few runs: what else runs only ever adds to it."""
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(N_RUNS):
        for name, run in runs.items():
            for _ in range(IN_A_TURN):
                begin = time.process_time()
                run()
                taken[name].append(time.process_time() - begin)
    return {name: min(values) for name, values in taken.items()}


def agree(runs: dict[str, Run]) -> float:
    """Largest difference of a centred strength from ours, which comes first."""
    found = [strengths - strengths.mean() for strengths in (run() for run in runs.values())]
    return max(float(np.abs(one - found[0]).max()) for one in found[1:])


def compared(title: str, runs: dict[str, Run], least: dict[str, float]) -> None:
    print(f"{title}: strengths differ by {agree(runs):.1e}")
    taken = seconds(runs)
    ours, *rivals = taken
    print(f"  {ours:52} {1e3 * taken[ours]:9.2f} ms")
    for name in rivals:
        asked = f" (at least {least[name]:g})" if name in least else ""
        print(f"  {name:52} {1e3 * taken[name]:9.2f} ms  ratio {taken[name] / taken[ours]:7.1f}{asked}")


def rows_of_battles() -> None:
    c = comparisons(1)
    x = design(c)
    names = np.array(c.agents)
    xs, ys = names[c.a].tolist(), names[c.b].tolist()
    won = [evalica.Winner.X if point else evalica.Winner.Y for point in c.points]

    def by_evalica() -> FloatArray:
        found = evalica.bradley_terry(xs, ys, won, tolerance=1e-8, limit=10_000).scores
        return np.log(found[list(c.agents)].to_numpy())

    compared(
        f"{N_MODELS} models, {N_BATTLES:,} battles",
        {
            "ours, errors by item": lambda: fit(fresh(c)).strengths,
            "scikit-learn LogisticRegression, C=1e8, tol=1e-8": lambda: logistic(design(c), c.points)(),
            "the same, fit alone": logistic(x, c.points),
            "choix.ilsr_pairwise": lambda: choix.ilsr_pairwise(N_MODELS, pairs(c)),
            "evalica.bradley_terry, fit alone": by_evalica,
        },
        {"scikit-learn LogisticRegression, C=1e8, tol=1e-8": 10, "choix.ilsr_pairwise": 10},
    )
    wins = np.zeros((N_MODELS, N_MODELS))
    np.add.at(wins, tuple(zip(*pairs(c), strict=True)), 1.0)
    compared(
        "their matrix of wins, strengths alone",
        {
            "ours": lambda: fit_wins(wins),
            "choix.ilsr_pairwise_dense": lambda: choix.ilsr_pairwise_dense(wins),
        },
        {"choix.ilsr_pairwise_dense": 1},
    )


def cells() -> None:
    """All 300 draws of both pipelines against 30 fits of scikit-learn to the rows, and to one cell's."""
    c, one = comparisons(JUDGES * PROMPTS * len(ORDERS)), comparisons(1)
    taken = {}
    for name, run in (
        ("bootstrap", lambda: bootstrap_cells(c, seed=0)),
        ("the same rows", logistic(design(c), c.points)),
        ("the rows of one cell", logistic(design(one), one.points)),
    ):
        begin = time.process_time()
        run()
        taken[name] = time.process_time() - begin
    print(
        f"300 draws of items and cells, {c.a.size:,} rows, single cells and panel: {taken['bootstrap']:.2f} s"
    )
    for name, least in (("the same rows", " (at least 1)"), ("the rows of one cell", "")):
        ratio = 30 * taken[name] / taken["bootstrap"]
        print(f"  30 fits of scikit-learn to {name:24} {30 * taken[name]:9.2f} s   ratio {ratio:7.1f}{least}")


def main() -> None:
    print(
        f"Bradley-Terry, processor time, the least of {N_RUNS} turns of {IN_A_TURN} runs on a shared machine"
    )
    with threadpool_limits(1, user_api="blas"):
        rows_of_battles()
        cells()


if __name__ == "__main__":
    main()
