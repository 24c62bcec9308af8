"""The floor of a score: what a policy must lose on an instance unless it loses more on another one."""

import math

import numpy as np
import pytest

from abex.lab.arena.instances import Instance, grid_of
from abex.lab.arena.least_regret import binary_divergence, coin, distance, least_regret, lost_on_all
from abex.theory import lai_robbins
from tests.naive import least_regret as naive


@pytest.mark.parametrize(
    ("values", "chances"),
    [
        ((0.0, 1.0), (0.7, 0.3)),
        ((0.2,), (1.0,)),
        ((0.0, 0.1, 0.5), (0.5, 0.3, 0.2)),
        ((0.0, 0.001), (0.4, 0.6)),
    ],
)
def test_the_distance_is_the_least_divergence_to_a_law_of_that_mean(values, chances):
    means = np.array([0.35, 0.5, 0.9])
    np.testing.assert_allclose(
        distance((values, chances), means),
        [naive.distance(np.array(values), np.array(chances), mean) for mean in means],
        rtol=1e-4,
    )
    if values == (0.0, 1.0):
        np.testing.assert_allclose(distance(coin(0.3), means), binary_divergence(0.3, 1.0 - means))


@pytest.mark.parametrize(
    ("means", "horizon"), [((0.6, 0.5), 10_000), ((0.02, 0.01, 0.015), 50_000), ((0.9, 0.2, 0.2, 0.8), 2_000)]
)
def test_the_floor_is_the_least_regret_that_suffices_on_all_raised_instances(means, horizon):
    raises = np.geomspace(1e-4, 0.99, 200) * (1.0 - max(means))
    regrets = np.geomspace(0.5, horizon / 4, 300)
    slow = naive.lost_on_all(means, horizon, regrets, raises)
    assert lost_on_all(tuple(map(coin, means)), horizon) == pytest.approx(slow, rel=0.04)


def test_its_growth_is_lai_and_robbins():
    means = (0.6, 0.5, 0.5, 0.3)
    early, late = (lost_on_all(tuple(map(coin, means)), 10.0**power) for power in (60, 120))
    assert (late - early) / (60 * math.log(10)) == pytest.approx(lai_robbins(means), rel=0.02)


def test_it_is_known_of_arms_of_few_values_without_a_graph_and_never_more_than_uniform_choice_loses():
    coins = {"environment": {"name": "Bernoulli", "means": [0.6, 0.5]}}
    assert least_regret(Instance("coins", "stochastic", coins)) == pytest.approx(9.9, abs=0.1)
    assert least_regret(Instance("late", "late", {**coins, "delay": "Fixed(9)"})) > 9.0
    assert least_regret(Instance("graph", "graphs", {**coins, "graph": {"name": "star", "n": 2}})) == 0.0
    assert least_regret(Instance("few steps", "stochastic", coins, horizon=199)) == 0.0
    seasons = next(one for one in grid_of("test") if one.name == "season of a day, four arms")
    assert least_regret(seasons) == 0.0
    plain = [one for one in grid_of("test") if one.plain_bernoulli and "means" in one.problem["environment"]]
    for one in plain:
        means = np.array(one.problem["environment"]["means"])
        assert least_regret(one) < one.horizon * (means.max() - means.mean())


def test_luck_does_not_count_where_the_best_arm_is_sure():
    (one,) = [one for one in grid_of("test") if one.name == "noisy runners-up"]
    assert (
        10.0 < least_regret(one) < 30.0
    )  # `FollowTheLeader` lost 0.6 there, and 0.1 % of uniform choice's are 0.45
