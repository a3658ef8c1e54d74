"""A rule of assignment over a benchmark's own full runs: what it would have saved, and what it got right.

Agents with full runs come in order of (date, name), without dates in random orders. The first `staged_from`
run everything, each later one as the rule says (`selection.staged.histories`), by a fit to those before it,
and teaches from then on; whom a fit recalls runs the rest at once. Board scores are those of the last fit.
Published is what an agent's estimate was when the rule stopped it, also where it was drawn, or recalled
later. Which agents are drawn, and some tasks, depend on the seed, so the history is replayed with several:
figures are means over these, `ranges` their least and largest.

The theory is in ``selection/README.md``, “Staged assignment”.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit

from analytics.arrays import DECIMALS, FloatArray, Mask
from analytics.differences.estimates import wilson
from analytics.differences.trial_variances import finite_variances
from analytics.text import counted
from selection.errors import SelectionError
from selection.folds import CompleteAgents, generator
from selection.staged.histories import Progress, StagedHistory, in_full, on_subset, walked
from selection.staged.model import fit
from selection.staged.teaching import taught
from selection.staged.text import points
from selection.staged.walks import Staging
from selection.standings.words import percent

N_FEWEST, N_SEEDS, N_ORDERS, N_SIMULATED, TOP = 10, 10, 20, 200, 5
SURE = 1.96
ASSIGNMENTS: Mapping[str, Callable[..., StagedHistory]] = {
    "staged": walked,
    "subset": on_subset,
    "full": in_full,
}


def at_random(
    agents: CompleteAgents, order: Sequence[int], staging: Staging, n_tasks: float, seed: int
) -> FloatArray:
    """Return the scores of the last board had each later agent run so many drawn tasks, (n,)."""
    m = agents.outcomes.shape[1]
    k, rows = min(m, max(1, round(n_tasks))), list(order)
    seen, scores = agents.outcomes[rows].copy(), agents.scores[rows].copy()
    for place, i in enumerate(order[staging.staged_from :], staging.staged_from):
        left = generator(seed, "staged random", agents.names[i]).choice(m, m - k, replace=False)
        seen[place, left] = np.nan
        scores[place] = scores[place] if k == m else np.nan
    return taught(seen, scores, (), staging).estimates


def clear(outcomes: FloatArray, scores: FloatArray) -> Mask:
    """Mark the pairs that differ clearly on all tasks, (n, n)."""
    se = np.sqrt(finite_variances(outcomes))
    with np.errstate(invalid="ignore"):
        return np.asarray(np.abs(scores[:, None] - scores) > SURE * se, dtype=np.bool_)


def right(board: FloatArray, truth: FloatArray) -> tuple[FloatArray, Mask]:
    """Return whether the board has each pair in the true order, ties ½, and which pairs have one."""
    shown, true = np.round(board, DECIMALS), np.round(truth, DECIMALS)
    product = np.sign(shown[:, None] - shown) * np.sign(true[:, None] - true)
    return (product + 1.0) / 2.0, np.asarray(true[:, None] != true, dtype=np.bool_)


def best(board: FloatArray, truth: FloatArray, n: int) -> float:
    """Share of the board's first n that are among the true first n."""
    n = min(n, truth.size)
    least = np.sort(np.round(truth, DECIMALS))[-n]
    first = np.argsort(-np.round(board, DECIMALS), kind="stable")[:n]
    return float(np.mean(np.round(truth[first], DECIMALS) >= least))


def ceiling(outcomes: FloatArray, seed: int) -> float:
    """Share of pairs in the same order in two full runs of one trial per task, drawn from a fit to these."""
    model = fit(outcomes)
    passing = expit(model.abilities[:, None] - model.difficulties)
    rng, agreements = generator(seed, "staged ceiling"), list[float]()
    for _ in range(N_SIMULATED):
        one, other = (np.mean(rng.random(passing.shape) < passing, axis=1) for _ in range(2))
        agreed, differ = right(one, other)
        if differ.any():
            agreements.append(float(agreed[differ].mean()))
    if not agreements:
        raise SelectionError("full runs would tell no two agents apart", code="no_replay")
    return float(np.mean(agreements))


@dataclass(frozen=True)
class Figure:
    """A figure of a replay, its jackknife error over agents, and what it rests on (pairs, agents)."""

    value: float
    se: float | None
    n: int


@dataclass(frozen=True)
class StagedReplay:
    """What a rule of assignment would have done on a benchmark's own history.

    is_dated: whether agents came in order of date; else in a random order for each seed.
    n_published, n_podium: estimates published; agents that were among the first P when they came, after those
        run in full.
    saved, saved_late, best_five, podium, regret: shares of task runs; shares of places; score.
    pairs, clear_pairs, coverage, bias: None where there is no pair, or no estimate.
    random_pairs, random_best_five, random_regret: the same by random tasks at the same cost.
    ceiling: pairs on which two full runs of one trial per task would agree.
    ranges: the least and the largest over seeds of ``saved``, ``pairs``, ``best_five`` and ``regret``.
    """

    n_agents: int
    n_tasks: int
    n_seeds: int
    is_dated: bool
    n_published: int
    n_podium: int
    saved: float
    saved_late: float
    pairs: Figure | None
    clear_pairs: Figure | None
    best_five: float
    podium: float
    regret: float
    coverage: Figure | None
    bias: Figure | None
    rmse: float | None
    random_pairs: float | None
    random_best_five: float
    random_regret: float
    ceiling: float
    ranges: Mapping[str, tuple[float, float]]


def replay(
    agents: CompleteAgents,
    staging: Staging | None = None,
    *,
    assignment: str = "staged",
    seed: int = 0,
    **how: Any,
) -> StagedReplay:
    """Replay a rule of assignment over full runs.

    agents: loaded full histories, everybody before activation, and drawn agents; never agents that ran
        everything because the rule let them go on, which would flatter.
    **how: as of `histories_of`.
    """
    staging = staging or Staging()
    if assignment == "subset":  # tasks are saved from the first agent on that is asked for a part of them
        staging = replace(staging, staged_from=staging.subset_from)
    orders, histories = histories_of(agents, staging, assignment=assignment, seed=seed, **how)
    return summary(agents, orders, histories, staging, seed)


def histories_of(
    agents: CompleteAgents,
    staging: Staging,
    *,
    assignment: str = "staged",
    seed: int = 0,
    n_seeds: int | None = None,
    progress: Progress | None = None,
    **how: Any,
) -> tuple[list[list[int]], list[StagedHistory]]:
    """Return the order of the agents for each seed, and its history.

    n_seeds: by default 10 where all agents have dates, else 20.
    **how: ``subset`` and ``reselected``, as of `selection.staged.histories.replayed`.
    """
    least = max(N_FEWEST, staging.staged_from + 1)
    if agents.n < least:
        raise SelectionError(
            f"a replay needs {least} agents that ran all tasks; there are {agents.n}", code="no_replay"
        )
    orders = orders_of(agents, seed, n_seeds)

    def progress_of(k: int) -> Progress | None:
        n_before, n_all = k * agents.n, agents.n * len(orders)
        return None if progress is None else lambda done, _: progress(n_before + done, n_all)

    walk = ASSIGNMENTS[assignment]
    return orders, [
        walk(agents, order, staging, seed=seed + k, progress=progress_of(k), **how)
        for k, order in enumerate(orders)
    ]


def orders_of(agents: CompleteAgents, seed: int, n_seeds: int | None = None) -> list[list[int]]:
    """Return for each seed the order of (date, name), or a random one where a date is missing."""
    if None not in agents.dates:
        by_date = sorted(range(agents.n), key=lambda i: (agents.dates[i], agents.names[i]))
        return [by_date] * (n_seeds or N_SEEDS)
    n = n_seeds or N_ORDERS
    return [generator(seed, "staged order", k).permutation(agents.n).tolist() for k in range(n)]


def summary(
    agents: CompleteAgents,
    orders: Sequence[Sequence[int]],
    histories: Sequence[StagedHistory],
    staging: Staging,
    seed: int = 0,
) -> StagedReplay:
    """Hold histories against full runs.

    staging: of it P, and from which agent on tasks are saved.
    """
    m, half, later = agents.outcomes.shape[1], agents.n // 2, slice(staging.staged_from, None)
    at_same_cost = [
        (at_random(agents, order, staging, one.n_run[later].mean(), seed + k), one.truth)
        for k, (order, one) in enumerate(zip(orders, histories, strict=True))
    ]
    estimates = [published(one) for one in histories]
    coverage, bias = (_mean_figure([pair[k] for pair in estimates]) for k in range(2))
    errors = np.concatenate([pair[1] for pair in estimates])
    tells = clear(agents.outcomes, agents.scores)
    of_clear = [tells[np.ix_(order, order)] for order in orders]
    each = {
        "saved": [1.0 - float(one.n_run.mean()) / m for one in histories],
        "pairs": [_share(one.board, one.truth) for one in histories],
        "best_five": [best(one.board, one.truth, TOP) for one in histories],
        "regret": [_regret(one.board, one.truth) for one in histories],
    }
    pairs = _pair_figure(histories, None)
    n_podium = []
    for y in (np.round(one.truth, DECIMALS) for one in histories):
        among_first = (
            int((y[: k + 1] > y[k]).sum()) < staging.podium for k in range(staging.staged_from, y.size)
        )
        n_podium.append(sum(among_first))
    return StagedReplay(
        n_agents=agents.n,
        n_tasks=m,
        n_seeds=len(orders),
        is_dated=None not in agents.dates,
        n_published=round(errors.size / len(orders)),
        n_podium=round(float(np.mean(n_podium))),
        saved=float(np.mean(each["saved"])),
        saved_late=1.0 - float(np.mean([one.n_run[half:].mean() / m for one in histories])),
        pairs=pairs,
        clear_pairs=_pair_figure(histories, of_clear),
        best_five=float(np.mean(each["best_five"])),
        podium=float(np.mean([best(one.board, one.truth, staging.podium) for one in histories])),
        regret=float(np.mean(each["regret"])),
        coverage=coverage,
        bias=bias,
        rmse=float(np.sqrt(np.mean(errors**2))) if errors.size else None,
        random_pairs=float(np.mean([_share(*one) for one in at_same_cost])) if pairs else None,
        random_best_five=float(np.mean([best(*one, TOP) for one in at_same_cost])),
        random_regret=float(np.mean([_regret(*one) for one in at_same_cost])),
        ceiling=ceiling(agents.outcomes[list(orders[0])], seed),
        ranges={name: (min(of), max(of)) for name, of in each.items() if name != "pairs" or pairs},
    )


def _share(board: FloatArray, truth: FloatArray) -> float:
    agreed, differ = right(board, truth)
    return float(agreed[differ].mean()) if differ.any() else float("nan")


def published(one: StagedHistory) -> tuple[FloatArray, FloatArray]:
    """Whether each published interval holds the truth, and each estimate less the truth."""
    estimates = [
        (walk.published, y) for walk, y in zip(one.walks, one.truth.tolist(), strict=True) if walk.published
    ]
    holds = [float(round(p.lower - y, DECIMALS) <= 0 <= round(p.upper - y, DECIMALS)) for p, y in estimates]
    return np.array(holds), np.array([p.score - y for p, y in estimates])


def _mean_figure(samples: Sequence[FloatArray]) -> Figure | None:
    known = [one for one in samples if one.size]
    if not known:
        return None
    errors = [float(np.std(one, ddof=1) / np.sqrt(one.size)) for one in known if one.size > 1]
    n = max(1, round(sum(one.size for one in known) / len(samples)))
    return Figure(
        float(np.mean([one.mean() for one in known])), float(np.mean(errors)) if errors else None, n
    )


def _pair_figure(histories: Sequence[StagedHistory], of: Sequence[Mask] | None) -> Figure | None:
    values, errors, n = list[float](), list[float](), 0
    for k, one in enumerate(histories):
        agreed, differ = right(one.board, one.truth)
        compared = differ if of is None else differ & of[k]
        if not compared.any():
            continue
        good, every = np.where(compared, agreed, 0.0), compared.astype(np.float64)
        without = (good.sum() - 2.0 * good.sum(axis=1)) / np.maximum(
            every.sum() - 2.0 * every.sum(axis=1), 1.0
        )
        values.append(float(good.sum() / every.sum()))
        errors.append(
            float(np.sqrt((without.size - 1) / without.size * ((without - without.mean()) ** 2).sum()))
        )
        n = int(every.sum()) // 2
    return Figure(float(np.mean(values)), float(np.mean(errors)), n) if values else None


def _regret(board: FloatArray, truth: FloatArray) -> float:
    return float(truth.max() - truth[int(np.argmax(np.round(board, DECIMALS)))])


# ------------------------------------------------------------------------------------------------ the verdict


QUESTION = "Does the service rank like full runs?"
ONE_SIDED = 1.6448536269514722
N_AGENTS, N_PODIUM, N_PUBLISHED = 20, 5, 19
MIN_SAVED = 0.05
MAX_BIAS, LARGEST_BIAS = 0.01, 0.02
ANSWERS = {
    "yes": f"{QUESTION} Yes.",
    "mostly": f"{QUESTION} Mostly.",
    "mostly (few)": f"{QUESTION} Mostly, but there is little data.",
    "not yet": f"{QUESTION} Not yet.",
    "full runs": "Full runs are better here: the service saves too little.",
}
NUMBERS = ("none", "one", "two", "three", "four", "five")
LEAST = {  # what yes and mostly need
    "pairs in order": (0.95, 0.92),
    "lower bound of pairs in order": (0.93, 0.90),
    "clear pairs in order": (0.99, 0.97),
    "best five found": (0.95, 0.80),
    "coverage of intervals": (0.90, 0.0),
    "upper bound of coverage": (0.95, 0.90),
}
MAX_REGRET = (0.005, 0.015)
WORDS = ("yes", "mostly")


def verdict(replay: StagedReplay) -> dict[str, Any]:
    """Judge a replay.

    Returns: ``word``: yes, mostly, mostly (few), not yet or full runs; ``reasons``: what falls short of yes;
        ``text``.
    """
    reasons = _short(replay, 0)
    word = next((name for k, name in enumerate(WORDS) if not _short(replay, k)), "not yet")
    counts = (
        (replay.n_agents, N_AGENTS, "agent", ""),
        (replay.n_podium, N_PODIUM, "agent", " that entered the top places"),
        (replay.n_published, N_PUBLISHED, "estimate", ""),
    )
    few = [
        f"{counted(n, noun)}{which} (at least {least} needed)"
        for n, least, noun, which in counts
        if n < least
    ]
    if round(replay.saved - MIN_SAVED, DECIMALS) < 0:
        little = f"{percent(replay.saved)}% of trials saved (at least {MIN_SAVED:.0%} needed)"
        word, reasons = "full runs", [little]
    elif word != "not yet" and few:
        word, reasons = "mostly (few)", [*reasons, *few]
    return {"word": word, "reasons": reasons, "text": f"{ANSWERS[word]} {sentence(replay)}"}


def sentence(replay: StagedReplay) -> str:
    """Say what the service would have saved, and what it would have got right."""
    is_mean = replay.n_seeds > 1
    low, high = (f"{100 * share:.0f}" for share in replay.ranges["saved"])
    spread = "" if low == high else f" ({low} to {high}% in {replay.n_seeds} replays)"
    saved = f"On past results, the service would have saved {replay.saved:.0%} of the trials{spread}."
    if replay.pairs is None or replay.random_pairs is None:
        return f"{saved} All full runs have the same score, so there is no order to check."
    first = "It would have ranked the best agent first" + (" in every replay" if is_mean else "")
    if replay.regret >= 5e-10:
        mean = " on average" if is_mean else ""
        first = f"Its first agent would have been {percent(replay.regret)} points below the best{mean}"
    five = replay.best_five * TOP
    many = "all" if five == TOP else NUMBERS[round(five)] if abs(five - round(five)) < 1e-9 else f"{five:.1f}"
    return (
        f"{saved} {first}. It would have found {many} of the best five (random tasks: "
        f"{TOP * replay.random_best_five:.1f}). It would have ordered {percent(replay.pairs.value)}% of "
        f"pairs as full runs do (random tasks at the same cost: {percent(replay.random_pairs)}%)."
    )


def _short(replay: StagedReplay, k: int) -> list[str]:
    pairs, clear, coverage = replay.pairs, replay.clear_pairs, replay.coverage
    values = {
        "pairs in order": pairs.value if pairs else None,
        "lower bound of pairs in order": pairs.value - ONE_SIDED * pairs.se
        if pairs and pairs.se is not None
        else None,
        "clear pairs in order": clear.value if clear else None,
        "best five found": replay.best_five,
        "coverage of intervals": coverage.value if coverage else None,
        "upper bound of coverage": wilson(coverage.value, coverage.n, 0.95)[1] if coverage else None,
    }
    low = [
        f"{name} {percent(value)}% (at least {LEAST[name][k]:.0%} needed)"
        for name, value in values.items()
        if value is not None and round(value - LEAST[name][k], DECIMALS) < 0
    ]
    if pairs is None:
        low.append("all full runs have the same score")
    if round(replay.regret - MAX_REGRET[k], DECIMALS) > 0:
        low.append(
            f"first agent {percent(replay.regret)} points below the best (at most {100 * MAX_REGRET[k]:g} "
            "allowed)"
        )
    if WORDS[k] == "yes" and replay.bias is not None:
        most = min(max(MAX_BIAS, 2.0 * (replay.bias.se or 0.0)), LARGEST_BIAS)
        if round(abs(replay.bias.value) - most, DECIMALS) > 0:
            low.append(f"mean error {points(replay.bias.value)} (at most {100 * most:.1f} allowed)")
    return low
