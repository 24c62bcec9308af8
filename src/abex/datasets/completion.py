"""From fitted ratings to the recommendation experiment: complete the table, binarise it, split the products."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from abex.datasets.binary_table import BinaryTable
from abex.datasets.disk_cache import cached_on_disk
from abex.datasets.factorisation import Factors, active, fit, refit
from abex.datasets.registry import load
from abex.datasets.socialmf import SocialMF
from abex.datasets.types import Edges, Ratings, trust_edges
from abex.errors import UserError, one_of, whole_number
from abex.progress import Progress
from abex.randomness import stream

BLOCK = 256  # users completed at a time, a multiple of 8: the table is never there as floats
THRESHOLDS = ("completed", "observed")
PARTS = ("tuning", "test", "all")
TEST_SHARE = 7  # one product in so many is for the test


@cached_on_disk
def binarise(
    ratings: Ratings, factors: Factors, keep_observed: bool = True, threshold: str = "completed"
) -> BinaryTable:
    """1 where the rating of the completed table is above the mean rating, else 0.

    Parameters
    ----------
    keep_observed : bool
        Fill only what is missing; False takes predictions everywhere.
    threshold : "completed" or "observed"
        Mean over the completed table, or over the observed ratings alone.
    """
    one_of("threshold", threshold, THRESHOLDS)
    with Progress("complete the ratings", 2 * ratings.n_users) as bar:
        if threshold == "completed":
            total = 0.0
            for first in range(0, ratings.n_users, BLOCK):
                total += float(completed_rows(ratings, factors, first, keep_observed).sum())
                bar.advance(BLOCK)
            level = total / (ratings.n_users * ratings.n_items)
        else:
            level = float(ratings.ratings.mean(dtype=np.float64))
        bits = np.empty((ratings.n_items, -(-ratings.n_users // 8)), dtype=np.uint8)
        for first in range(0, ratings.n_users, BLOCK):
            likes = completed_rows(ratings, factors, first, keep_observed) > level
            packed = np.packbits(likes, axis=0, bitorder="little")
            bits[:, first // 8 : first // 8 + packed.shape[0]] = packed.T
            bar.advance(BLOCK)
    return BinaryTable(bits, ratings.n_users, level)


def completed_rows(
    ratings: Ratings, factors: Factors, first: int, keep_observed: bool
) -> NDArray[np.float64]:
    """Ratings of the BLOCK users from ``first`` on, for all items; ``ratings`` are in order of users."""
    last = min(first + BLOCK, ratings.n_users)
    block = factors.rows(first, last)
    if keep_observed:
        start, stop = np.searchsorted(ratings.users, [first, last])
        known = slice(start, stop)
        block[ratings.users[known] - first, ratings.items[known]] = ratings.ratings[known]
    return block


def split_products(n_products: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A random 6/7 of the products for tuning and 1/7 for the test, each in order.

    >>> [part.size for part in split_products(3530, seed=0)]
    [3026, 504]
    """
    n_test = n_products // TEST_SHARE
    if n_test < 1:
        raise UserError(f"a split into 6/7 and 1/7 needs at least {TEST_SHARE} products, got {n_products}")
    order = stream(seed, "products", "split").permutation(n_products)
    return np.sort(order[n_test:]), np.sort(order[:n_test])


@dataclass(frozen=True, eq=False)
class RecommendationData:
    """All the recommendation experiment needs: who likes what, who trusts whom, which products are for what."""

    name: str
    table: BinaryTable
    trusters: NDArray[np.int32]
    trustees: NDArray[np.int32]
    tuning: NDArray[np.int64]
    test: NDArray[np.int64]

    @property
    def n_users(self) -> int:
        """Number of users, the arms."""
        return self.table.n_users

    def products(self, part: str) -> NDArray[np.int64]:
        """The products of ``"tuning"``, ``"test"`` or ``"all"``."""
        one_of("part", part, PARTS)
        if part == "all":
            return np.arange(self.table.n_products)
        return self.tuning if part == "tuning" else self.test

    def edges(self, direction: str = "out") -> Edges:
        """Feedback edges (source, target): pulling the source shows the target; see `Ratings.trust_edges`."""
        return trust_edges(self.trusters, self.trustees, direction)


def recommendation(
    source: str | Ratings = "epinions",
    *,
    model: SocialMF | None = None,
    seed: int = 0,
    more_than: int = 30,
    keep_observed: bool = True,
    threshold: str = "completed",
) -> RecommendationData:
    """The pipeline of the paper's Epinions experiment; finished steps are found again.

    Filter (`active`), fit SocialMF with early stopping (`fit`), fit it to all ratings for the epochs found
    (`refit`), complete and binarise (`binarise`), split the products. The factorisation sees all products: the
    split concerns the bandit's environment.

    Examples
    --------
    >>> from abex.datasets import synthetic_ratings
    >>> problem = recommendation(synthetic_ratings(n_users=60, n_items=70, seed=1), more_than=5, seed=1)
    >>> problem.table.n_products == problem.tuning.size + problem.test.size
    True
    """
    seed = whole_number("seed", seed)
    model = SocialMF() if model is None else model
    ratings = active(load(source) if isinstance(source, str) else source, more_than)
    epochs = fit(ratings, model, seed).epochs
    factors = refit(ratings, model, seed, epochs)
    table = binarise(ratings, factors, keep_observed, threshold)
    tuning, test = split_products(ratings.n_items, seed)
    return RecommendationData(ratings.name, table, ratings.trusters, ratings.trustees, tuning, test)
