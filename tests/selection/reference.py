"""Nested validation the slow and obvious way, by scikit-learn and scipy, fold by fold.

It shares no code with `selection` or `analytics`: pass rates by numpy.nanmean, Ridge by scikit-learn refitted
in every fold, correlations by scipy.stats, pairs by two loops, the line by numpy.polyfit. `information` and
`forecast` need a Rasch fit, here by dense Newton steps; the model of `completion` is solved by scipy.
"""

import functools
import math
from collections import defaultdict

import numpy as np
from scipy import optimize, stats
from scipy.special import expit
from sklearn import config_context
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import r2_score

NAN = math.nan


# --------------------------------------------------------------------------------------------- full scores


def full_score(estimator, outcomes, scores, tasks, row, n_before=None):
    """ŷ of a row on the tasks, by scikit-learn and scipy.optimize alone; no cell outside S decides it.

    `n_before`: how many of the training agents, then in order of time, came before it.
    """
    means = np.nanmean(outcomes[:, tasks], axis=0)
    x = np.where(np.isnan(outcomes[:, tasks]), means, outcomes[:, tasks])
    new = np.where(np.isnan(row), means, row)
    if estimator == "ridge":
        return Ridge(alpha=1.0).fit(x, scores).predict(new[None, :])[0]
    if estimator == "line":
        line = LinearRegression().fit(x.mean(axis=1)[:, None], scores)
        return line.predict([[new.mean()]])[0]
    known = np.full(outcomes.shape[1], NAN)
    known[tasks] = row
    model = joint_model(outcomes, n_before is not None)
    return by_model(model, known, mean_before(model, n_before))[0]


def joint_model(outcomes, in_time):
    """θ, b, τ², φ and the variances of b: the equations of θ and b by scipy, until τ² and φ stay."""
    outcomes = np.ascontiguousarray(outcomes, dtype=float)
    return solved(outcomes.tobytes(), *outcomes.shape, in_time)


@functools.cache
def solved(cells, n, m, in_time):
    outcomes = np.frombuffer(cells).reshape(n, m)
    seen = ~np.isnan(outcomes)
    x = np.where(seen, outcomes, 0.0)
    graded = ((x > 0) & (x < 1)).sum() > seen.sum() / 20
    before = ten_before(n, in_time)
    z, spread, dispersion = np.zeros(n + m), 1.0, 1.0
    first = np.zeros((n, n))  # minus the slope of −μ²/(2·10²), μ the mean of the first agents
    first[:1, :1] = 1 / 100
    if not in_time:
        first[:] = 1 / 100 / n**2

    def beyond(z):
        return seen * (x - expit(z[:n, None] - z[None, n:]))

    def equations(z):
        of_agents = beyond(z).sum(axis=1) - dispersion * (z[:n] - before @ z[:n]) / spread - first @ z[:n]
        return np.concatenate([of_agents, beyond(z).sum(axis=0) + z[n:] / 4])

    def slopes(z):
        w = variances(z)
        of_agents = -np.diag(w.sum(axis=1)) - (np.eye(n) - before) * dispersion / spread - first
        return np.block([[of_agents, w], [-w.T, np.diag(w.sum(axis=0) + 1 / 4)]])

    def variances(z):
        p = expit(z[:n, None] - z[None, n:])
        return seen * p * (1 - p)

    for _ in range(200):
        z = optimize.root(equations, z, jac=slopes, options={"xtol": 1e-13}).x
        assert np.abs(equations(z)).max() < 1e-8
        w, old = variances(z), (spread, dispersion)
        squares = (z[:n] - before @ z[:n]) ** 2 + dispersion / (w.sum(axis=1) + dispersion / spread)
        spread = max((squares.sum() + 5) / (n + 5), 0.3**2)
        dispersion = min((beyond(z) ** 2).sum() / w.sum(), 1.2) if graded else 1.0
        if np.abs(np.subtract(old, (spread, dispersion))).max() < 1e-12:
            return z[:n], z[n:], spread, dispersion, dispersion / (w.sum(axis=0) + dispersion / 4)
    raise AssertionError("the spread and the dispersion have not settled")


def ten_before(n, in_time):
    """Weights of abilities in each μ; of the first one it is its own, and without an order all of them."""
    if not in_time:
        return np.full((n, n), 1 / n)
    before = np.zeros((n, n))
    for i in range(n):
        before[i, max(0, i - 10) : max(i, 1)] = 1 / min(max(i, 1), 10)
    return before


def mean_before(model, n_before):
    """μ of an agent that is not among those of the model; with nobody before it, of all of them."""
    return np.mean(model[0][max(n_before - 10, 0) : n_before] if n_before else model[0])


def left_out_errors(outcomes, tasks, groups, in_time, of=slice(None)):
    """(y − est)/se of full runs cut down to the tasks, each by the model of the other groups."""
    everybody, groups = joint_model(outcomes, in_time), np.array(groups)
    means, errors = ten_before(len(outcomes), in_time) @ everybody[0], []
    for i, row in enumerate(outcomes):
        known = np.full(row.size, NAN)
        known[tasks] = row[tasks]
        score, se = by_model(joint_model(outcomes[groups != groups[i]], in_time), known, means[i], of)
        errors.append((row[of].mean() - score) / se)
    return np.array(errors)


def by_model(model, row, mu, of=slice(None)):
    """The score of a row, NaN where not run, on some tasks or all, and its standard error, c = 1."""
    _, b, spread, dispersion, of_tasks = model
    seen = ~np.isnan(row)

    def slope(level):
        return np.sum(row[seen] - expit(level - b[seen])) - dispersion * (level - mu) / spread

    level = optimize.brentq(slope, -60, 60, xtol=1e-14, rtol=1e-14)
    p = expit(level - b)
    w = p * (1 - p)
    rest = (np.where(seen, 0.0, w))[of]
    of_level = rest.sum() ** 2 * dispersion / (w[seen].sum() + dispersion / spread)
    variance = dispersion * rest.sum() + of_level + np.sum(rest**2 * of_tasks[of])
    return np.where(seen, row, p)[of].mean(), np.sqrt(variance) / rest.size


# ------------------------------------------------------------------------------------------------- subsets


def in_band(p, lo, hi):
    return np.array([j for j in range(len(p)) if lo - 1e-9 <= p[j] <= hi + 1e-9], dtype=int)


def mid_range(train):
    """Indices, or None for a fold without a subset."""
    if len(train) < 5:
        return None
    p, m = rates(train), train.shape[1]
    for lo, hi in ((0.30, 0.70), (0.25, 0.75), (0.15, 0.85)):
        tasks = in_band(p, lo, hi)
        if 10 * len(tasks) >= m:
            return tasks
    return None


def rates(train):
    """The mean of each column; NaN where nobody ran it."""
    found, seen = np.full(train.shape[1], np.nan), ~np.isnan(train).all(axis=0)
    found[seen] = np.nanmean(train[:, seen], axis=0)
    return found


def by_key(key, k, tasks):
    return np.sort(np.array(sorted(tasks, key=lambda j: (round(key[j], 9), j))[:k], dtype=int))


def easiest(train, y, dates, k):
    p = rates(train)
    return by_key(-p, k, np.flatnonzero(~np.isnan(p)))


def hardest(train, y, dates, k):
    p = rates(train)
    return by_key(p, k, np.flatnonzero(~np.isnan(p)))


def spread(train, y, dates, k):
    p = rates(train)
    inner = [j for j in range(len(p)) if 0.02 < round(p[j], 9) < 0.98]
    ordered = sorted(inner, key=lambda j: (round(p[j], 9), j))
    return np.sort(np.array([ordered[int(np.round(x))] for x in np.linspace(0, len(ordered) - 1, k)]))


def greedy(train, y, dates, k):
    """Forward selection by leave-one-out R², the hat matrix solved anew for every candidate."""
    filled = SimpleImputer().fit_transform(train)
    centred, n = filled - filled.mean(axis=0), len(y)
    gram, free, chosen = np.zeros((n, n)), list(range(train.shape[1])), []
    total = np.sum((y - y.mean()) ** 2)
    for _ in range(k):
        columns = centred[:, free].T
        kernels = gram + columns[:, :, None] * columns[:, None, :]
        # 11'/n and the kernel's part are orthogonal: the intercept is the mean.
        hats = 1.0 / n + kernels @ np.linalg.inv(kernels + np.eye(n))
        residuals = (y - hats @ y) / (1.0 - np.diagonal(hats, axis1=1, axis2=2))
        r2 = np.round(1.0 - np.sum(residuals**2, axis=1) / total, 9)
        best = free[int(np.argmax(r2))]
        chosen.append(best)
        free.remove(best)
        gram = gram + np.outer(centred[:, best], centred[:, best])
    return np.sort(chosen)


@functools.cache
def rasch(cells, n, m):
    """θ, b of the penalised joint likelihood by Newton's method on all of them at once; b centred after."""
    train = np.frombuffer(cells).reshape(n, m)
    seen = ~np.isnan(train)
    x, z = np.where(seen, train, 0.0), np.zeros(n + m)
    for _ in range(100):
        p = seen / (1.0 + np.exp(-(z[:n, None] - z[None, n:])))
        slope = np.concatenate([(p - x).sum(axis=1), -(p - x).sum(axis=0)]) + z / 9
        if np.abs(slope).max() < 1e-12 * n * m:
            return z[:n] - z[n:].mean(), z[n:] - z[n:].mean()
        w = p * (1 - p)
        hessian = np.block([[np.diag(w.sum(axis=1)), -w], [-w.T, np.diag(w.sum(axis=0))]])
        z = z - np.linalg.solve(hessian + np.eye(n + m) / 9, slope)
    raise AssertionError("Newton's method has not ended")


def most_informative(train, k, latest):
    rated = np.flatnonzero(~np.isnan(train).all(axis=0))
    kept = np.ascontiguousarray(train[:, rated])
    theta, b = rasch(kept.tobytes(), *kept.shape)
    p = 1.0 / (1.0 + np.exp(-(theta[latest][:, None] - b[None, :])))
    total = np.full(train.shape[1], np.nan)
    total[rated] = np.sum(p * (1 - p), axis=0)
    return by_key(-total, k, rated)


def information(train, y, dates, k):
    return most_informative(train, k, np.arange(len(y)))


def forecast(train, y, dates, k):
    latest = sorted(sorted(range(len(y)), key=lambda i: (dates[i], i))[-10:])
    return most_informative(train, k, latest)


STRATEGIES = {
    "mid_range": None,
    "greedy": greedy,
    "easiest": easiest,
    "hardest": hardest,
    "information": information,
    "spread": spread,
    "forecast": forecast,
}


# --------------------------------------------------------------------------------------------------- folds


def protocol_folds(protocol, scaffolds, models, dates, splits):
    """(held out, training, pool) for each fold; `splits` are the random test sets, drawn elsewhere."""
    everyone = list(range(len(scaffolds)))

    def rest(held, among=everyone):
        return [i for i in among if i not in held]

    def groups(labels):
        return [[i for i in everyone if labels[i] == name] for name in sorted(set(labels))]

    if protocol == "loao":
        return [([i], rest([i]), "") for i in everyone]
    if protocol == "within_scaffold":
        large = [g for g in groups(scaffolds) if len(g) >= 10]
        return [([i], rest([i], g), scaffolds[i]) for g in large for i in g]
    if protocol == "random_80_20":
        return [(list(test), rest(set(test)), str(s)) for s, test in enumerate(splits)]
    if protocol == "temporal":
        return [
            (
                [i for i in everyone if dates[i] == day],
                [i for i in everyone if dates[i] < day],
                "",
            )
            for day in sorted(set(dates))
            if sum(d < day for d in dates) >= 10
        ]
    members = groups(scaffolds if protocol == "loso" else models)
    folds = [(g, rest(g), "") for g in members]
    if sum(len(g) >= 2 for g in members) < 2:
        return []
    return [f for f in folds if protocol == "lomo" or len(f[1]) >= 5]


# ------------------------------------------------------------------------------------------------- figures


def ridge(x, y, train, tasks):
    """The outcomes on the tasks, filled in, and by Ridge of them every agent's score."""
    whole = SimpleImputer().fit(x[np.ix_(train, tasks)]).transform(x[:, tasks])
    return whole, Ridge(alpha=1.0).fit(whole[train], y[train]).predict(whole)


def completion(x, i, train, tasks, dates):
    """By the model of the training agents; without all dates their order is not known."""
    in_time = dates is not None and None not in dates
    ordered = sorted(train, key=lambda j: (dates[j], j)) if in_time else train
    n_before = sum((dates[j], j) < (dates[i], i) for j in train) if in_time else None
    known = np.full(x.shape[1], NAN)
    known[tasks] = x[i, tasks]
    model = joint_model(x[ordered], in_time)
    return by_model(model, known, mean_before(model, n_before))[0]


def estimates(x, y, i, train, tasks, dates, filled):
    """The full score of agent i by each estimator, trained on `train`."""
    whole, score_by_ridge = filled
    r = whole.mean(axis=1)
    flat = np.ptp(np.round(r[train], 9)) == 0
    slope, level = (0.0, y[train].mean()) if flat else np.polyfit(r[train], y[train], 1)
    return {
        "completion": completion(x, i, train, tasks, dates),
        "ridge": score_by_ridge[i],
        "line": level + slope * r[i],
    }


@config_context(assume_finite=True, skip_parameter_validation=True)
def fold_records(x, y, held, train, tasks, dates, estimator="completion"):
    """One record for each held-out agent that may be scored; the pairs as a list of (j, agrees)."""
    filled = ridge(x, y, train, tasks)
    shares, ys = rates(x[:, tasks].T).round(9), y.round(9)
    outside = np.setdiff1d(np.arange(x.shape[1]), tasks)
    records = []
    for i in held:
        row = x[i, tasks]
        if 10 * np.isnan(row).sum() > len(tasks):
            continue
        r = shares[i]
        pairs = []
        for j in train:
            r_j = shares[j]
            if ys[i] == ys[j] or np.isnan(r_j):
                continue
            agrees = 0.5 if r == r_j else float((r > r_j) == (y[i] > y[j]))
            pairs.append((j, agrees))
        rest = np.nanmean(x[i, outside]) if len(outside) and not np.isnan(x[i, outside]).all() else NAN
        told = estimates(x, y, i, list(train), tasks, dates, filled)
        own, full = round(told[estimator], 9), []
        for j in train:
            if ys[i] != ys[j]:
                full.append((j, 0.5 if own == ys[j] else float((own > ys[j]) == (y[i] > y[j]))))
        record = {"i": i, "r": r, "y": y[i], "p": told["ridge"], "rest": rest, "pairs": pairs}
        records.append(record | {"full": full, "told": told})
    return records


def residuals(x, y, held, train, tasks):
    """What Ridge leaves of each held-out score, y − ŷ, where every outcome is known."""
    model = Ridge(alpha=1.0).fit(x[np.ix_(train, tasks)], y[train])
    return y[held] - model.predict(x[np.ix_(held, tasks)])


def neyman(x, i, j):
    d = (x[i] - x[j])[~np.isnan(x[i] - x[j])]
    return math.sqrt(np.var(d, ddof=1) / len(d))


@functools.cache
def clear_pairs(cells, n, m, standard_error):
    """Whether the scores of two agents differ by over 1.96 standard errors."""
    x = np.frombuffer(cells).reshape(n, m)
    scores = rates(x.T).round(9)
    return functools.cache(lambda i, j: abs(scores[i] - scores[j]) > 1.96 * standard_error(x, i, j))


def figures(records, x, left_out=(), standard_error=neyman):
    """All figures of one pool; `left_out`: agents without records and comparisons."""
    kept = [q for q in records if q["i"] not in left_out]
    r, y, p, rest = (np.array([q[key] for q in kept]) for key in ("r", "y", "p", "rest"))
    r, yr, pr, rest = (np.round(v, 9) for v in (r, y, p, rest))
    known = ~np.isnan(rest)

    def shares(is_counted, pairs="pairs"):
        answers = []
        for q in kept:
            used = [a for j, a in q[pairs] if j not in left_out and is_counted(q["i"], j)]
            if used:
                answers.append(np.mean(used))
        return np.mean(answers) if answers else None

    is_clear = clear_pairs(np.ascontiguousarray(x).tobytes(), *x.shape, standard_error)

    has_order = len(kept) > 1 and np.ptp(yr) > 0
    full, of_subset = shares(lambda i, j: True, "full"), shares(lambda i, j: True)
    return {
        "pairs_correct_full": full,
        "pairs_clear_full": shares(is_clear, "full"),
        "full_difference": None if full is None or of_subset is None else full - of_subset,
        **{
            f"rmse_{name}": math.sqrt(np.mean([(q["y"] - q["told"][name]) ** 2 for q in kept]))
            if kept
            else None
            for name in ("completion", "ridge", "line")
        },
        "rho": stats.spearmanr(r, yr).statistic if has_order and np.ptp(r) > 0 else None,
        "tau": stats.kendalltau(r, yr).statistic if has_order and np.ptp(r) > 0 else None,
        "rho_calibrated": stats.spearmanr(pr, yr).statistic if has_order and np.ptp(pr) > 0 else None,
        "r2": r2_score(y, p) if has_order else None,
        "pairs_correct": shares(lambda i, j: True),
        "pairs_clear": shares(is_clear),
        "rho_rest": stats.spearmanr(r[known], rest[known]).statistic
        if known.sum() > 1 and np.ptp(r[known]) > 0 and np.ptp(rest[known]) > 0
        else None,
    }


def validate(x, scaffolds, models, dates, protocol, strategy, splits=(), standard_error=neyman):
    """(figures, records by pool, number of skipped folds, sizes), or None without folds."""
    y = np.array([np.nanmean(row) for row in x])
    by_pool, n_skipped, sizes = defaultdict(list), 0, []
    folds = protocol_folds(protocol, scaffolds, models, dates, splits)
    for held, train, pool in folds:
        tasks = mid_range(x[train])
        if tasks is None:
            n_skipped += 1
            continue
        if strategy != "mid_range":
            tasks = STRATEGIES[strategy](x[train], y[train], [dates[i] for i in train], len(tasks))
        sizes.append(len(tasks))
        by_pool[pool] += fold_records(x, y, held, train, tasks, dates)
    if 5 * len(sizes) < 4 * len(folds) or not sizes:
        return None
    pools = [figures(records, x, standard_error=standard_error) for records in by_pool.values()]
    if protocol == "random_80_20":
        constant = ("rho", "tau", "rho_calibrated", "r2")
        pools = [pool for pool in pools if all(pool[name] is not None for name in constant)]
    answer = {name: mean_known([pool[name] for pool in pools]) for name in pools[0]}
    return answer, by_pool, n_skipped, sizes


def mean_known(values):
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
