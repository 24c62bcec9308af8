"""Parts of boosting one by one, by hand: none of these needs a compiled loop."""

import math

import numpy as np
import pytest

from abex.boosting.binning import bin_feature, bin_features, even_bins, midpoints
from abex.boosting.fit import Fit
from abex.boosting.learners import coefficient_of, normaliser
from abex.boosting.loop import make_arms, reward_of
from abex.boosting.predictor import goes_right
from abex.boosting.selection import Candidate
from abex.boosting.settings import Settings
from abex.boosting.stopping import Stop, hold_out
from abex.boosting.weights import first_weights
from abex.policies import Uniform
from tests.each import each


@each("edge", [0.0, 0.05, 0.4, 0.9])
def test_reward_coefficient_and_normaliser_are_those_of_the_exponential_loss(edge):
    assert reward_of(edge) == pytest.approx(-math.log(math.sqrt(1 - edge**2)))
    best = coefficient_of(edge, 0.0)
    assert best == pytest.approx(0.5 * math.log((1 + edge) / (1 - edge)))
    assert normaliser(edge, best) == pytest.approx(math.sqrt(1 - edge**2))
    assert normaliser(edge, best) <= min(normaliser(edge, best + 0.01), normaliser(edge, best - 0.01))
    smooth = coefficient_of(edge, 0.1)
    assert smooth == pytest.approx(0.5 * math.log((0.6 + edge / 2) / (0.6 - edge / 2)))


def test_the_reward_is_at_most_one():
    assert reward_of(0.9298) == pytest.approx(1.0, abs=1e-3)
    assert reward_of(0.93) == reward_of(0.97) == reward_of(1.0) == 1.0


def test_first_weights_are_half_on_the_labels_and_follow_the_examples_own():
    signs = np.array([[1, -1, -1], [1, 1, -1], [-1, -1, -1]], np.int8)
    weights = first_weights(signs, np.array([1.0, 2.0, 1.0]))
    rows = [[1 / 2, 1 / 4, 1 / 4], [1 / 4, 1 / 4, 1 / 2], [1 / 3, 1 / 3, 1 / 3]]
    assert weights == pytest.approx(np.array(rows) * np.array([[1], [2], [1]]) / 4)


def test_arms_hold_the_features_that_vary():
    X = np.column_stack([np.ones(8), np.arange(8), np.zeros(8), np.arange(8) % 2])
    binned = bin_features(X, np.arange(8), np.array([8]))
    for groups, wanted in ((None, [[1], [3]]), ([[0, 1], [2, 3]], [[1], [3]]), ([[1, 3]], [[1, 3]])):
        arms = make_arms(binned, Settings(), Candidate(Uniform()), groups)
        split = np.split(arms.features, arms.start[1:-1])
        assert [part.tolist() for part in split] == wanted
    assert make_arms(binned, Settings(), Candidate(), None).features.tolist() == [1, 3]


@each(
    ("counts", "bins", "alone", "wanted"),
    [
        ([1] * 10, 5, -1, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]),
        ([2, 2, 4, 1, 3], 3, -1, [0, 0, 1, 2, 2]),
        ([1, 9, 1, 1], 2, -1, [0, 0, 1, 1]),  # a value belongs where the middle of its rows does
        ([1, 1, 9, 1], 2, -1, [0, 0, 1, 1]),
        ([9, 1, 1, 1], 2, -1, [0, 1, 1, 1]),
        ([1, 1, 50, 1, 1], 4, 2, [0, 0, 1, 2, 2]),
        ([50, 1, 1, 1, 1], 4, 0, [0, 1, 1, 2, 2]),
        ([1, 1, 1, 1, 50], 4, 4, [0, 0, 1, 1, 2]),
        ([1, 50, 1, 1, 1], 4, 1, [0, 1, 2, 3, 3]),  # it divides a bin
    ],
)
def test_values_are_binned_by_the_middle_of_their_rows(counts, bins, alone, wanted):
    assert even_bins(np.array(counts), bins, alone).tolist() == wanted


@each("seed", range(20))
def test_bins_hold_about_equal_counts(seed):
    rng = np.random.default_rng(seed)
    counts, bins = rng.integers(1, 30, 200), int(rng.integers(3, 60))
    for alone in (-1, 0, 199, int(rng.integers(200))):
        of_rank = even_bins(counts, bins, alone)
        others = np.where(np.arange(200) == alone, 0, counts)
        held = np.bincount(of_rank, weights=others)
        assert set(np.diff(of_rank)) <= {0, 1}
        assert held.size <= bins
        assert held.max() <= others.sum() / (bins - 2 * (alone >= 0)) + others.max()
        assert alone < 0 or (of_rank == of_rank[alone]).sum() == 1


@pytest.mark.parametrize("single", [False, True])
def test_thresholds_lie_in_the_middle(single):
    assert midpoints(np.array([-3.0, 1.0, 1.5, 8.0]), single).tolist() == [-1.0, 1.25, 4.75]
    assert midpoints(np.array([2.0]), single).size == 0


def test_thresholds_divide_neighbours_whatever_the_rounding():
    rng = np.random.default_rng(1)
    values = rng.standard_normal(200) * 10.0 ** rng.integers(-300, 300, 200)
    values = np.unique([*values, *np.nextafter(values, np.inf), -1.7e308, 1.7e308, 0.0, 5e-324, -5e-324])
    cuts = midpoints(values, False)
    assert (values[:-1] <= cuts).all()
    assert (cuts < values[1:]).all()


@each(
    ("x", "missing_right", "right"),
    [
        (1.0, False, False),
        (1.0 + 1e-12, False, True),
        (0.5, True, False),
        (math.nan, True, True),
        (math.nan, False, False),
    ],
)
def test_the_side_of_a_value(x, missing_right, right):
    assert goes_right(x, 1.0, missing_right) == right


@each(("share", "count"), [(0.1, 20), (0.25, 50), (0.9, 180)])
def test_as_many_rows_are_held_out_as_told(share, count):
    rows = hold_out(share, 3, 200)
    assert rows.size == count
    assert (np.diff(rows) > 0).all()
    assert rows.max() < 200


@pytest.mark.parametrize("count", [255, 256])
def test_missing_values_have_a_bin_of_their_own_beside_as_many_values_as_fit(count):
    values = np.append(np.arange(count, dtype=float), np.nan)
    column = bin_feature(values, np.array([values.size]), exact=True, single=False)
    assert (column.code == 0).tolist() == np.isnan(values).tolist()
    assert column.code.max() == column.bins - 1 < 256
    assert (np.diff(column.code[:-1].astype(int)) >= 0).all()


class Scripted:
    """A fit, and rows that judge it, whose errors are given."""

    committees, few, held = None, False, 1

    def __init__(self, errors):
        self.errors, self.n_learners, self.done = errors, len(errors), 0

    def advance(self, count):
        self.done += count

    def add_scores_since(self, fit, first):
        """Nothing."""

    def losses(self, multilabel):
        return self.errors[self.done - 1], 0.0


@each("seed", range(10))
def test_early_stopping_keeps_the_least_mean_over_half_the_patience(seed):
    errors = np.linspace(1.0, 0.8, 60) + 0.1 * np.random.default_rng(seed).random(60)
    patience, best, least = 8, 0, np.inf
    for done in range(1, 61):
        mean = errors[max(0, done - patience // 2) : done].mean()
        if mean < least:
            best, least = done, mean
        elif done - best >= patience:
            break
    fit = Scripted(errors)
    stop = Stop(Settings(early_stopping=True, patience=patience), fit, fit.n_learners)
    Fit.run(fit, stop)
    assert (stop.kept(fit), fit.done, stop.errors) == (best, done, errors[:done].tolist())
