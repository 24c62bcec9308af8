"""Intervals against their definitions, and how often they cover the truth: plain runs, strata, heavy tails, two-way tables."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from abex.simulation.curves import interval_of_mean
from abex.support.errors import UserError
from abex.support.intervals import Estimate, Strata, difference_of, holm, mean_of, quantile_of, two_way
from tests.naive.intervals import pigeonhole_error

HONEST = 0.93  # of nominal 95 %


def covers(estimate: Estimate, truth: float) -> bool:
    low, high = estimate.interval()
    return bool(low <= truth <= high)


def test_plain_runs_have_students_interval():
    values = np.random.default_rng(1).normal(size=(12, 3))
    expected = stats.t.interval(0.95, 11, loc=values.mean(axis=0), scale=stats.sem(values))
    np.testing.assert_allclose(mean_of(values).interval(), expected)


def test_paired_runs_have_the_interval_of_their_differences_in_any_order():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(2, 30))
    y += 0.9 * x
    order = rng.permutation(30)
    found = difference_of(x, range(30), y[order], order)
    np.testing.assert_allclose(found.interval(), mean_of(x - y).interval())


def test_runs_that_only_one_line_has_are_used_too():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=1_000), rng.normal(size=10)
    apart = difference_of(x, range(1_000), y, range(5_000, 5_010))
    welch = stats.ttest_ind(x, y, equal_var=False)
    assert apart.mean / apart.error == pytest.approx(welch.statistic)
    assert apart.freedom == pytest.approx(welch.df)
    common = difference_of(x, range(1_000), y, range(10))
    assert common.mean == pytest.approx(apart.mean)
    assert common.error == pytest.approx(apart.error, rel=0.01)  # ten of a thousand runs pair little


def test_the_runs_that_two_lines_share_are_paired():
    rng = np.random.default_rng(10)
    x, y = rng.normal(size=(2, 40))
    y = (0.9 * x + 0.3 * y)[:10]
    covariance = np.cov(x[:10], y)[0, 1]
    expected = x.var(ddof=1) / 40 + y.var(ddof=1) / 10 - 2.0 * 10 * covariance / 400
    assert difference_of(x, range(40), y, range(10)).error == pytest.approx(np.sqrt(expected))


def test_more_runs_of_one_line_cover_as_often_as_they_say():
    """Line A has 40 runs with heavy pairs, B the first 10 of them: nominal 95 % over 800 panels."""
    rng = np.random.default_rng(4)
    inside = 0
    for _ in range(800):
        shared = rng.normal(size=40)
        a, b = shared + rng.normal(size=40), shared[:10] + rng.normal(size=10) + 1.0
        inside += covers(difference_of(a, range(40), b, range(10)), -1.0)
    assert inside / 800 >= HONEST


def test_strata_count_with_their_weights():
    of = np.array([0] * 6 + [1] * 4)
    values = np.array([1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 100.0, 110.0, 90.0, 100.0])
    found = mean_of(values, Strata(of, np.array([0.97, 0.03])))
    assert found.mean == pytest.approx(0.97 * 2.0 + 0.03 * 100.0)
    parts = [0.97**2 * values[:6].var(ddof=1) / 6, 0.03**2 * values[6:].var(ddof=1) / 4]
    assert found.error == pytest.approx(np.sqrt(sum(parts)))
    assert found.freedom == pytest.approx(sum(parts) ** 2 / (parts[0] ** 2 / 5 + parts[1] ** 2 / 3))
    assert np.isnan(
        mean_of(values[:7], Strata(of[:7], np.array([0.97, 0.03])), 5).error
    )  # one run tells nothing


def locked_panel(rng, size: int, rare: float, locked: float) -> np.ndarray:
    """Regrets as Boltzmann exploration has them: a good run near 1,150, a locked one at 12,500."""
    good = rng.normal(1_150.0, 100.0, size)
    disaster = rng.random(size) < np.where(rng.random(size) < rare, locked, 0.008)
    return np.where(disaster, 12_500.0, good)


def test_strata_cover_where_twenty_plain_runs_do_not():
    """Nine of 333 arms lock 79 % of their runs, the others 0.8 %: the panels of the Facebook experiment."""
    rng = np.random.default_rng(5)
    weight = np.array([324 / 333, 9 / 333])
    truth = 1_150.0 + (weight[0] * 0.008 + weight[1] * 0.79) * (12_500.0 - 1_150.0)
    of = np.repeat([0, 1], [8_000, 2_000])
    few = stratified = 0
    for _ in range(400):
        few += covers(mean_of(locked_panel(rng, 20, 9 / 333, 0.79)), truth)
        runs = np.concatenate([locked_panel(rng, 8_000, 0.0, 0.0), locked_panel(rng, 2_000, 1.0, 0.79)])
        stratified += covers(mean_of(runs, Strata(of, weight)), truth)
    assert few / 400 < 0.6
    assert stratified / 400 >= HONEST


def test_two_way_is_the_spread_over_rows_and_runs_that_resampling_both_has():
    rng = np.random.default_rng(6)
    table = rng.normal(size=(20, 1)) * 0.3 + rng.normal(size=(1, 400)) + rng.normal(size=(20, 400)) * 0.5
    found = two_way(table)
    assert found.mean == pytest.approx(table.mean())
    assert found.error == pytest.approx(pigeonhole_error(table, 2_000, rng), rel=0.08)
    assert found.error > mean_of(table.mean(axis=1)).error  # runs alone know one test set only


@pytest.mark.parametrize("of_rows", [0.0, 0.3, 3.0])
def test_two_way_covers_the_truth_of_new_rows_and_new_seeds(of_rows):
    rng = np.random.default_rng(7)
    inside = 0
    for _ in range(500):
        runs, rows = rng.normal(size=(20, 1)) * 0.1, rng.normal(size=(1, 200)) * of_rows
        inside += covers(two_way(1.0 + runs + rows + rng.normal(size=(20, 200))), 1.0)
    assert inside / 500 >= HONEST


@pytest.mark.parametrize("runs", [2, 4, 8])
def test_few_replications_of_a_simulation_have_a_band_that_covers(runs):
    rng = np.random.default_rng(8)
    values = rng.normal(3.0, 2.0, size=(runs, 2_000))
    low, high = interval_of_mean(values)
    assert np.mean((low <= 3.0) & (high >= 3.0)) >= HONEST


def test_p_values_are_where_intervals_touch():
    found = Estimate(-1.0, 0.5, 9.0)
    assert found.interval(1.0 - found.p_below())[1] == pytest.approx(
        0.0, abs=1e-10
    )  # what SciPy before 1.15 can
    assert found.interval(1.0 - found.p_below(-0.2))[1] == pytest.approx(-0.2)
    assert Estimate(1.0, 0.5, 9.0).p_above() == pytest.approx(found.p_below())
    assert found.p_above() == 1.0
    assert Estimate(np.nan, np.nan, 1.0).p_below() == 1.0


def test_holm_is_that_of_the_textbook_and_rarely_errs_on_true_nulls():
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    rng = np.random.default_rng(9)
    wrong = sum(min(holm(rng.random(40).tolist())) <= 0.05 for _ in range(1_000))
    assert wrong <= 50 + 4 * np.sqrt(1_000 * 0.05 * 0.95)


def test_quantiles_weigh_runs():
    of = np.array([0] * 99 + [1] * 99)
    values = np.concatenate([np.full(99, 1.0), np.full(99, 9.0)])
    assert quantile_of(values, 0.95, Strata(of, np.array([0.98, 0.02]))) == 1.0
    assert quantile_of(values, 0.95) == 9.0
    assert np.isnan(quantile_of(values[:99], 0.5, Strata(of[:99], np.array([0.9, 0.1]))))


def test_lines_of_other_strata_are_not_compared():
    one, other = Strata(np.zeros(5, int), np.ones(1)), Strata(np.zeros(5, int), np.array([0.5, 0.5]))
    with pytest.raises(UserError, match="same weights"):
        difference_of(np.zeros(5), range(5), np.zeros(5), range(5), one, other)
