import math

import numpy as np
import pytest
from scipy import linalg, stats

from analytics.differences.groups import Groups, ahead, mean_variance, pair_variances
from analytics.differences.neyman_draws import agent_noise
from analytics.differences.neyman_draws import ahead as ahead_by_tasks
from analytics.differences.neyman_draws import pair_variances as pair_variances_by_tasks
from analytics.differences.ranks import rank_intervals, resample
from analytics.errors import CoreError
from analytics.resampling import resampled_counts, resampled_within
from perf.studies.grouped_tasks import codes, rates_of
from tests.tables import fifths, names

UNEVEN = np.repeat(np.arange(11), [3, 2, 1, 4, 2, 1, 2, 3, 1, 2, 1])
STRATA = np.repeat([0, 1, 2], [7, 9, 6])
# fmt: off
OF_A_PROGRAM = np.array([
    1, 0, .5, .25, 1, 0, 0, .75, 1, .5, .25, 1, 1, 0, 0, .5, 1, .75, .25, 0, .5, 1,
])
# fmt: on


def cr2_by_matrices(y, code):
    """Bell & McCaffrey's definition: residuals times the symmetric root of the inverse of (I − H)_gg."""
    n = len(y)
    x = np.ones((n, 1))
    bread = linalg.inv(x.T @ x)
    residuals, hat = y - x @ (bread @ x.T @ y), x @ bread @ x.T
    meat = np.zeros((1, 1))
    for g in np.unique(code):
        rows = code == g
        adjusted = linalg.sqrtm(linalg.inv(np.eye(rows.sum()) - hat[np.ix_(rows, rows)])).real
        part = x[rows].T @ adjusted @ residuals[rows]
        meat += np.outer(part, part)
    return float((bread @ meat @ bread)[0, 0])


def variance_by_hand(d, code, role):
    """se²_ab of the model, with every task of a draw written out."""
    n = len(d)
    if role == "cluster":
        v = cr2_by_matrices(d, code)
    else:
        v = sum(
            (np.sum(code == h) / n) ** 2 * np.var(d[code == h], ddof=1) / np.sum(code == h) for h in set(code)
        )
    return (n * (n - 1) * v + 1 + 2 * d.mean() ** 2 * n / (n + 2)) / (n + 2) ** 2


# ------------------------------------------------------------------------------------------------- variances


def test_clusters_by_hand(monkeypatch):
    monkeypatch.setattr("analytics.differences.groups.MIN_CLUSTERS", 2)
    # mean ½; sums of deviations ½ + ½ − ½ and −½: (½²/(1 − ¾) + ½²/(1 − ¼))/4²
    result = mean_variance(np.array([1.0, 1.0, 0.0, 0.0]), Groups.of(["a", "a", "a", "b"], "cluster"))
    assert result.variance == pytest.approx((1 + 1 / 3) / 16)
    assert result.df == pytest.approx(1)


def test_strata_by_hand():
    # s² = ½ in both of two tasks, and 0 in the third: (2/6)²·½/2 twice
    values = np.array([1.0, 0.0, 1.0, 0.0, 1.0, 1.0])
    result = mean_variance(values, Groups.of(list("aabbcc"), "stratum"))
    assert result.variance == pytest.approx(2 * (1 / 3) ** 2 / 4)
    assert result.df == pytest.approx(2)  # (2q)²/(q²/1 + q²/1)


def test_clusters_as_by_the_definition_with_matrices():
    y = fifths(3, 1, len(UNEVEN))[0]
    assert mean_variance(y, Groups.of(UNEVEN, "cluster")).variance == pytest.approx(
        cr2_by_matrices(y, UNEVEN)
    )


def test_standard_errors_as_by_statsmodels():
    """Made by statsmodels 0.15.0, OLS: "cluster" (groups of two: CR2 is CR1 there), and "HC2" on strata."""
    pairs_of_tasks = Groups.of(np.arange(22) // 2, "cluster")
    assert math.sqrt(mean_variance(OF_A_PROGRAM, pairs_of_tasks).variance) == pytest.approx(
        0.06837095, abs=1e-8
    )
    each = Groups.of(np.arange(22), "cluster")
    assert math.sqrt(mean_variance(OF_A_PROGRAM, each).variance) == pytest.approx(0.0877775, abs=1e-7)
    strata = Groups.of(STRATA, "stratum")
    assert math.sqrt(mean_variance(OF_A_PROGRAM, strata).variance) == pytest.approx(0.09037485068515265)


def df_by_matrices(code):
    """(tr Ω)²/tr Ω², Ω the covariance of the z_g of independent tasks, z = Ay."""
    n = len(code)
    hat = np.full((n, n), 1 / n)
    rows = [code == g for g in np.unique(code)]
    a = np.array(
        [
            np.ones(row.sum())
            @ linalg.sqrtm(linalg.inv((np.eye(n) - hat)[np.ix_(row, row)])).real
            @ (np.eye(n) - hat)[row]
            for row in rows
        ]
    )
    omega = a @ a.T
    return np.trace(omega) ** 2 / np.sum(omega**2)


def test_degrees_of_freedom_as_by_matrices():
    half = codes(60, 12, half=True)
    for code in (UNEVEN, half):
        assert Groups.of(code, "cluster").df == pytest.approx(df_by_matrices(code))
    assert Groups.of(codes(60, 12), "cluster").df == pytest.approx(11)
    assert 3 < Groups.of(half, "cluster").df < 4


def test_labels_of_groups_are_names_alone():
    x, renamed = fifths(12, 3, len(UNEVEN)), (7 * UNEVEN + 3) % 11
    one, other = Groups.of(UNEVEN, "cluster"), Groups.of(renamed, "cluster")
    assert one.df == pytest.approx(other.df)
    assert mean_variance(x[0], one).variance == pytest.approx(mean_variance(x[0], other).variance)
    v = np.zeros(3)
    assert pair_variances(x, v, one) == pytest.approx(pair_variances(x, v, other))


@pytest.mark.parametrize(("labels", "role"), [(np.arange(40), "cluster"), (np.zeros(40), "stratum")])
def test_clusters_of_one_task_and_one_stratum_are_the_plain_error(labels, role):
    x, groups, v = fifths(5, 4, 40), Groups.of(labels, role), np.array([0.0, 0.01, 0.0, 0.02])
    result = mean_variance(x[0], groups)
    assert result.variance == pytest.approx(np.var(x[0], ddof=1) / 40)
    assert result.df == pytest.approx(39)
    assert pair_variances(x, v, groups) == pytest.approx(pair_variances_by_tasks(x, v))


def test_a_group_that_agrees_with_itself_counts_as_one_task():
    alone = fifths(6, 1, 12)[0]
    twice = mean_variance(np.repeat(alone, 5), Groups.of(np.repeat(np.arange(12), 5), "cluster"))
    assert twice.variance == pytest.approx(np.var(alone, ddof=1) / 12)


def test_identical_agents_have_an_error_too():
    x = np.tile(fifths(7, 1, 40), (2, 1))
    for role in ("cluster", "stratum"):
        assert (pair_variances(x, np.zeros(2), Groups.of(np.arange(40) // 4, role)) > 0).all()


@pytest.mark.parametrize(
    ("labels", "role", "told"),
    [
        (np.arange(27) // 3, "cluster", "at least 10 groups, not 9"),
        ([0, 0, 0, 1, 2, 2, 3], "stratum", "2 of 4 strata have a single task"),
    ],
)
def test_what_tells_no_error_is_refused(labels, role, told):
    groups = Groups.of(labels, role)
    x = fifths(8, 3, len(labels))
    for refused in (
        lambda: mean_variance(x[0], groups),
        lambda: pair_variances(x, np.zeros(3), groups),
        lambda: resample(x, names(3), seed=0, n_draws=19, groups=groups),
    ):
        with pytest.raises(CoreError, match=told):
            refused()
    with pytest.raises(CoreError, match="groups of"):
        mean_variance(x[0, 1:], groups)


# ----------------------------------------------------------------------------------------------------- draws


@pytest.mark.parametrize(("code", "role"), [(UNEVEN, "cluster"), (STRATA, "stratum")])
def test_draws_as_with_every_task_written_out(code, role):
    x, v = fifths(9, 3, len(code)), np.array([0.0, 0.001, 0.0])
    n_draws, groups = 40, Groups.of(code, role)
    expected = np.zeros((n_draws, 3))
    noise = agent_noise(names(3), v, 4, n_draws)
    for draw, weights in enumerate(groups.weights(4, n_draws).astype(int)):
        if role == "cluster":
            parts = [np.flatnonzero(code == g) for g in np.repeat(np.arange(len(weights)), weights)]
            drawn = np.concatenate(parts)
            its = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        else:
            drawn = np.repeat(np.arange(len(code)), weights)
            its = code[drawn]
        for a in range(3):
            for b in {0, 1, 2} - {a}:
                d = x[b] - x[a]
                lead = d[drawn].mean() - d.mean() + noise[draw, b] - noise[draw, a]
                se2 = variance_by_hand(d[drawn], its, role) + v[a] + v[b]
                expected[draw, a] = max(expected[draw, a], max(lead, 0) ** 2 / se2)
    assert ahead(x, names(3), v, groups, seed=4, n_draws=n_draws) == pytest.approx(expected)


@pytest.mark.filterwarnings("error")
def test_a_draw_as_large_as_a_cluster_that_is_not_in_it():
    sizes = np.array([22, *[2] * 10])  # eleven draws of two tasks are 22 too
    code = np.repeat(np.arange(11), sizes)
    groups = Groups.of(code, "cluster")
    counts = groups.weights(2, 400)
    assert np.any((counts[:, 0] == 0) & (counts @ sizes == 22))
    result = ahead(fifths(13, 3, len(code)), names(3), np.zeros(3), groups, seed=2, n_draws=400)
    assert np.isfinite(result).all()


def test_draws_of_clusters_of_one_task_are_those_of_tasks():
    x, v = fifths(10, 5, 40), np.zeros(5)
    result = ahead(x, names(5), v, Groups.of(np.arange(40), "cluster"), seed=2, n_draws=99)
    plain = ahead_by_tasks(x, names(5), v, np.ones(5, dtype=bool), seed=2, n_draws=99)
    result = np.where(result >= plain.floor, result, 0.0)
    assert result == pytest.approx(plain.squares, rel=1e-5, abs=1e-12)  # outcomes on a grid of 2⁻²³ there


def test_draws_do_not_depend_on_how_many_are_made_at_once(monkeypatch):
    x, groups = fifths(11, 4, len(UNEVEN)), Groups.of(UNEVEN, "cluster")
    whole = ahead(x, names(4), np.zeros(4), groups, seed=2, n_draws=50)
    monkeypatch.setattr("analytics.differences.groups.N_CELLS", 700)
    assert ahead(x, names(4), np.zeros(4), groups, seed=2, n_draws=50) == pytest.approx(whole, rel=1e-12)


def test_a_draw_within_strata_takes_as_many_as_each_has():
    strata = np.array([2, 0, 0, 2, 1, 2, 1, 0])
    counts = resampled_within(7, "what", strata, 500)
    for h in range(3):
        assert (counts[:, strata == h].sum(axis=1) == np.sum(strata == h)).all()
    assert counts.mean(axis=0) == pytest.approx(np.ones(8), abs=0.15)
    assert (resampled_within(7, "what", strata, 5, first=20) == counts[20:25]).all()
    assert (resampled_within(7, "what", np.zeros(6, dtype=int), 9) == resampled_counts(7, "what", 6, 9)).all()


def test_the_critical_value_is_at_least_that_of_one_pair_with_few_groups():
    x = np.zeros((2, 40))
    result = rank_intervals(
        resample(x, names(2), seed=0, n_draws=19, groups=Groups.of(np.arange(40) // 4, "cluster"))
    )
    assert result.critical == pytest.approx(stats.t.ppf(0.975, 9))


# ----------------------------------------------------------------------------------------------- simulation


def test_equal_agents_that_differ_by_group_are_seldom_ordered():
    result = rates_of(1.5, 20, codes(300, 20), n_agents=6, n_draws=199)
    assert result.independent >= 0.5
    assert result.grouped <= 0.1


@pytest.mark.slow
@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("sd", [0.0, 0.4, 0.8])
def test_orders_among_equal_agents_are_wrong_as_rarely_as_claimed(sd, half):
    found = rates_of(sd, 100, codes(100, 20, half=half))
    print(f"\nagent × group sd {sd}, one has half {half}: {found}")
    assert found.grouped <= 0.07 + 3 * math.sqrt(0.07 * 0.93 / 100)
    assert found.pairs <= 0.07
