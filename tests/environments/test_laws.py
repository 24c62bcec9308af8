"""Every parameter of every environment: rewards and regret follow it, and another value would be noticed."""

import dataclasses
import math

import numpy as np
import pytest
from scipy.stats import beta, kstest, norm

import abex.environments as rooms
from abex import (
    Bernoulli,
    Beta,
    ClippedGaussian,
    Discrete,
    Drifting,
    Phases,
    SpecialArm,
    Switching,
    Table,
    UserError,
)
from abex.environments import RatingTable
from abex.support.randomness import counter_key

STEPS = 3000
KEY = counter_key(3, 0, "environment")


def opened(environment, steps=STEPS, key=KEY):
    """(world, rewards (steps, K), gaps (steps, K)), interpreted."""
    with np.errstate(over="ignore"):
        world = environment.open(key, steps)
        draw, gap, _ = environment.rules()
        cells = [[(t, arm) for arm in range(environment.n_arms)] for t in range(1, steps + 1)]
        rewards = np.array([[draw(world, *cell) for cell in row] for row in cells])
        gaps = np.array([[gap(world, *cell) for cell in row] for row in cells])
    return world, rewards, gaps


def assert_coins(rewards, means):
    """Rewards of 0 and 1 with these means, step by step, within 4.5 standard errors of their sum."""
    assert set(np.unique(rewards)) <= {0.0, 1.0}
    error = np.sqrt((means * (1 - means)).sum(axis=0))
    assert (np.abs((rewards - means).sum(axis=0)) <= 4.5 * error).all()


@pytest.mark.parametrize("means", [[0.2, 0.7, 0.9], [0.9, 0.7, 0.2]])
def test_bernoulli_arms_have_their_means(means):
    _, rewards, gaps = opened(Bernoulli(means))
    assert_coins(rewards, np.tile(means, (STEPS, 1)))
    assert gaps == pytest.approx(np.tile(0.9 - np.array(means), (STEPS, 1)))


@pytest.mark.parametrize("strength", [2.0, 20.0, 0.5])
def test_beta_arms_have_their_means_and_strength(strength):
    means = [0.3, 0.6]
    _, rewards, gaps = opened(Beta(means, strength=strength))
    for k, mean in enumerate(means):
        assert kstest(rewards[:, k], beta(strength * mean, strength * (1 - mean)).cdf).pvalue > 1e-5
        assert kstest(rewards[:, k], beta(2 * strength * mean, 2 * strength * (1 - mean)).cdf).pvalue < 1e-5
    assert gaps[0] == pytest.approx([0.3, 0.0])


@pytest.mark.parametrize("deviation", [0.25, 0.8])
def test_clipped_gaussian_arms_have_their_centres_and_deviation(deviation):
    centres = [0.2, 0.9]
    environment = ClippedGaussian(centres, deviation=deviation)
    _, rewards, gaps = opened(environment)
    inside = np.linspace(0.01, 0.99, 99)
    for k, centre in enumerate(centres):
        shares = (rewards[:, [k]] <= inside).mean(axis=0)
        wanted = norm(centre, deviation).cdf(inside)
        assert np.abs(shares - wanted).max() < 2.5 / math.sqrt(STEPS)  # Kolmogorov: 1e-5
        assert np.abs(shares - norm(centre, 1.5 * deviation).cdf(inside)).max() > 2.5 / math.sqrt(STEPS)
        x = np.linspace(0, 1, 100_001)
        assert environment.true_means[k] == pytest.approx(np.trapezoid(norm(centre, deviation).sf(x), x))
    assert gaps[0] == pytest.approx(environment.true_means.max() - environment.true_means)


@pytest.mark.parametrize("period", [40, 100])
def test_switching_arms_deal_their_means_out_after_every_period(period):
    means = np.array([0.1, 0.5, 0.8, 0.95])
    _, rewards, gaps = opened(Switching(means, period=period))
    present = means.max() - gaps
    turns = {tuple(np.roll(means, shift).round(9)) for shift in range(4)}
    rows = [tuple(row) for row in present.round(9)]
    assert set(rows) == turns, "every rotation, and nothing but rotations"
    changed = [t for t in range(1, STEPS) if rows[t] != rows[t - 1]]
    assert all(t % period == 0 for t in changed)
    assert len(changed) > 0.5 * (STEPS // period - 1), "three deals of four change the order"
    assert_coins(rewards, present)


@pytest.mark.parametrize(("swing", "period"), [(0.2, 300.0), (0.35, 300.0), (0.2, 500.0)])
def test_drifting_arms_swing_as_their_sine_waves(swing, period):
    centres = np.array([0.3, 0.5, 0.75])
    world, rewards, gaps = opened(Drifting(centres, swing=swing, period=period))
    t = np.arange(1, STEPS + 1)[:, None]
    present = np.clip(centres + swing * np.sin(2 * math.pi * t / period + world.phases), 0, 1)
    assert gaps == pytest.approx(present.max(axis=1, keepdims=True) - present)
    assert_coins(rewards, present)
    assert len(set(world.phases)) == 3
    assert (world.phases >= 0).all()
    assert (world.phases <= 2 * math.pi).all()


@pytest.mark.parametrize(("n_arms", "best", "other"), [(5, 0.75, 0.5), (3, 0.9, 0.5), (3, 0.75, 0.1)])
def test_one_special_arm_pays_more(n_arms, best, other):
    world, rewards, gaps = opened(SpecialArm(n_arms, best=best, other=other))
    means = np.where(np.arange(n_arms) == world.special, best, other)
    assert_coins(rewards, np.tile(means, (STEPS, 1)))
    assert gaps[7] == pytest.approx(best - means)
    hidden = [
        SpecialArm(n_arms).open(counter_key(3, r, "environment"), 1).special for r in range(200 * n_arms)
    ]
    counts = np.bincount(hidden, minlength=n_arms)
    assert counts.size == n_arms
    assert (np.abs(counts - 200) < 4.5 * math.sqrt(200)).all()


def test_the_special_arm_is_one_of_those_named():
    environment = SpecialArm(6, among=[5, 2])
    assert environment == SpecialArm(6, among=(5, 2))
    hidden = [environment.open(counter_key(3, r, "environment"), 1).special for r in range(400)]
    counts = np.bincount(hidden, minlength=6)
    assert counts[[0, 1, 3, 4]].sum() == 0
    assert abs(counts[2] - 200) < 4.5 * math.sqrt(100)
    for wrong, message in (([], "among is empty"), ([2, 2], "twice"), ([6], "among must be at most 5")):
        with pytest.raises(UserError, match=message):
            SpecialArm(6, among=wrong)


def test_a_table_pays_its_rows():
    table = np.random.default_rng(0).random((50, 3))
    _, rewards, gaps = opened(Table(table), 50)
    assert np.array_equal(rewards, table)
    best = np.cumsum(table, axis=0).max(axis=1)
    assert gaps.cumsum(axis=0) == pytest.approx(best[:, None] - table.cumsum(axis=0))


@pytest.mark.parametrize("products", [None, [1, 4, 5]])
def test_a_rating_table_shows_one_product_to_all(products):
    likes = np.random.default_rng(1).integers(0, 2, (11, 6))
    environment = RatingTable(likes, products=products)
    _, rewards, gaps = opened(environment)
    drawn = likes[:, range(6) if products is None else products]
    rows = [tuple(row) for row in rewards.astype(int)]
    columns = [tuple(column) for column in drawn.T]
    assert set(rows) == set(columns), "what is drawn is a product, and every product is drawn"
    for column in set(columns):
        share = columns.count(column) / len(columns)
        error = math.sqrt(STEPS * share * (1 - share))
        assert abs(rows.count(column) - STEPS * share) <= 4.5 * error
    means = drawn.mean(axis=1)
    assert gaps[0] == pytest.approx(means.max() - means)


def test_the_parameters_are_all_here():
    known = {
        Bernoulli: {"means"},
        Beta: {"means", "strength"},
        ClippedGaussian: {"means", "deviation"},
        Discrete: {"values", "probabilities"},
        Drifting: {"means", "swing", "period", "against"},
        Phases: {"means", "lengths", "against"},
        rooms.Published: {"problem", "against"},  # their distributions are compared in test_changing.py
        rooms.RandomWalk: {"means", "deviation", "every", "against"},
        RatingTable: {"table", "products"},
        SpecialArm: {"K", "best", "other", "among"},
        Switching: {"means", "period", "against"},
        Table: {"rewards"},
    }
    for name in rooms.__all__:
        if name not in ("Environment", "known_environments"):
            cls = getattr(rooms, name)
            assert {field.name for field in dataclasses.fields(cls)} == known[cls], name


@pytest.mark.parametrize("chances", [None, [[0.2, 0.3, 0.5], [0.9, 0.1]]])
def test_discrete_arms_pay_their_values_as_often_as_they_say(chances):
    values = [[0.1, 0.4, 1.0], [0.0, 0.7]]
    environment = Discrete(values, chances)
    _, rewards, gaps = opened(environment)
    expected = chances or [[1 / 3] * 3, [0.5, 0.5]]
    means = [np.dot(one, chance) for one, chance in zip(values, expected, strict=True)]
    for k in (0, 1):
        assert set(np.unique(rewards[:, k])) == set(values[k])
        for value, chance in zip(values[k], expected[k], strict=True):
            error = math.sqrt(STEPS * chance * (1 - chance))
            assert abs((rewards[:, k] == value).sum() - STEPS * chance) < 4.5 * error
    assert gaps == pytest.approx(np.tile(max(means) - np.array(means), (STEPS, 1)))


@pytest.mark.parametrize("against", ["each step", "fixed arm"])
def test_phases_change_the_means_when_they_say(against):
    means, lengths = np.array([[0.2, 0.7, 0.45], [0.9, 0.1, 0.45]]), [2000, 1000]
    _, rewards, gaps = opened(Phases(means, lengths, against))
    present = np.repeat(means, lengths, axis=0)
    assert_coins(rewards, present)
    best = present.max(axis=1) if against == "each step" else present[:, present.sum(axis=0).argmax()]
    assert gaps == pytest.approx(best[:, None] - present)


def test_impossible_discrete_arms_and_phases_are_refused_by_name():
    for make, word in (
        (lambda: Discrete([]), "values"),
        (lambda: Discrete([[0.5, 2.0]]), "values"),
        (lambda: Discrete([[0.5]], [[0.5], [0.5]]), "probabilities"),
        (lambda: Discrete([[0.5, 0.6]], [[0.5, 0.6]]), "sum to 1"),
        (lambda: Phases([], []), "means"),
        (lambda: Phases([[0.5], [0.5, 0.6]], [1, 1]), "same number"),
        (lambda: Phases([[0.5]], [1, 2]), "lengths"),
        (lambda: Phases([[0.5]], [0]), "lengths"),
        (lambda: Phases([[0.5]], [1], "best"), "against"),
    ):
        with pytest.raises(UserError, match=word):
            make()
