"""Streams are independent and repeatable; the counter-based source is uniform in every direction."""

import math

import numpy as np
import pytest
from scipy import stats

from abex import Bernoulli, Beta, ClippedGaussian, UserError
from abex.support.randomness import (
    GOLDEN,
    STEP,
    argmax,
    counter_key,
    gamma_from,
    normal_from,
    stream,
    uniform_at,
    word_at,
)
from tests.each import each

LEVEL = 1e-6


@pytest.fixture(autouse=True)
def wrap_around():
    with np.errstate(over="ignore"):
        yield


def test_streams_are_named_by_their_key():
    assert stream(1, 2, "a").random() == stream(1, 2, "a").random()
    keys = [(1, 2, "a"), (1, 2, "b"), (1, 3, "a"), (2, 2, "a"), (1, 2), (1, "a", 2)]
    assert len({stream(*key).random() for key in keys}) == len(keys)


@each("seed", [-1, 1.5, "x", None, True])
def test_wrong_seeds_are_refused(seed):
    with pytest.raises(UserError, match="seed"):
        stream(seed)


def test_rewards_are_uniform_along_steps_and_along_arms():
    key = counter_key(1, 0)
    for cells in (
        [(t, 3) for t in range(20_000)],
        [(7, arm) for arm in range(20_000)],
        [(t, t) for t in range(20_000)],
    ):
        values = np.array([uniform_at(key, t, arm) for t, arm in cells])
        assert stats.kstest(values, "uniform").pvalue > LEVEL
        pairs, _, _ = np.histogram2d(values[:-1], values[1:], bins=8, range=[[0, 1], [0, 1]])
        assert stats.chisquare(pairs.ravel()).pvalue > LEVEL


def test_every_bit_of_a_word_is_fair_and_neighbouring_cells_are_independent():
    key = counter_key(2, 0)
    words = np.array(
        [[int(word_at(key, t, arm)) for arm in range(64)] for t in range(1, 129)], dtype=np.uint64
    )
    bits = (words[..., None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    counts = bits.reshape(-1, 64).sum(axis=0).astype(np.int64)
    assert np.abs(counts - 4096).max() < 5 * math.sqrt(8192) / 2 * 1.2
    assert len(np.unique(words)) == words.size
    for left, right in ((words[:-1], words[1:]), (words[:, :-1], words[:, 1:])):
        same = sum(int(word).bit_count() for word in (left ^ right).ravel())
        assert abs(same - left.size * 32) < 5 * math.sqrt(left.size * 16)


def test_normal_and_gamma_numbers_have_their_law():
    key = counter_key(3, 0)
    normal = [normal_from(word_at(key, t, 0)) for t in range(5_000)]
    assert stats.kstest(normal, "norm").pvalue > LEVEL
    for shape in (0.3, 1.0, 4.5):
        gamma = [gamma_from(word_at(key, t, 1), shape) for t in range(40_000)]
        assert stats.kstest(gamma, "gamma", args=(shape,)).pvalue > LEVEL


def test_environments_pay_by_their_law():
    key = counter_key(4, 0)
    world = Beta([0.2, 0.7], strength=3.0).open(key, 1)
    for arm, mean in enumerate((0.2, 0.7)):
        values = [Beta.draw(world, t, arm) for t in range(4_000)]
        assert stats.kstest(values, "beta", args=(3 * mean, 3 * (1 - mean))).pvalue > LEVEL
    gaussian = ClippedGaussian([0.1, 0.8], deviation=0.5)
    world = gaussian.open(key, 1)
    for arm in range(2):
        values = np.array([gaussian.draw(world, t, arm) for t in range(8_000)])
        assert abs(values.mean() - gaussian.true_means[arm]) < 4.5 * values.std() / math.sqrt(8_000)
        assert gaussian.true_means[arm] != pytest.approx(gaussian.means[arm], abs=1e-3)
    world = Bernoulli([0.25]).open(key, 1)
    assert abs(np.mean([Bernoulli.draw(world, t, 0) for t in range(8_000)]) - 0.25) < 4.5 * math.sqrt(
        0.1875 / 8_000
    )


def test_ties_are_broken_evenly():
    rng = stream(5, "ties")
    counts = np.bincount(
        [argmax(np.array([1.0, 3.0, 3.0, 2.0, 3.0]), rng) for _ in range(6_000)], minlength=5
    )
    assert counts[0] == counts[3] == 0
    assert stats.chisquare(counts[[1, 2, 4]]).pvalue > LEVEL


def test_no_two_arms_share_a_stretch_of_the_reward_sequence():
    """STEP * difference = GOLDEN * distance (mod 2^64) has no solution with a small distance."""
    inverse = pow(int(GOLDEN), -1, 2**64)
    factor = np.uint64(int(STEP) * inverse % 2**64)
    distances = np.arange(1, 1_000_001, dtype=np.uint64) * factor  # in steps, modulo 2^64
    nearest = np.minimum(distances, np.uint64(0) - distances)
    assert int(nearest.min()) > 10**9
