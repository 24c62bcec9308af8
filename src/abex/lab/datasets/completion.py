"""The recommendation experiment from ratings and trust: filter, fit, complete the table, binarise it, split the products."""

from __future__ import annotations

import hashlib
import io
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from abex.environments.ratings import BinaryTable
from abex.kernels import source_stamp
from abex.lab.datasets import source_files
from abex.lab.datasets.registry import keep, load
from abex.lab.datasets.socialmf import Factors, SocialMF, fit, refit
from abex.lab.datasets.types import Edges, Ratings, trust_edges
from abex.support.errors import UserError, one_of, whole_number
from abex.support.files import checksum_of
from abex.support.private_cache import prune
from abex.support.progress import Progress
from abex.support.randomness import stream
from abex.support.reading import arrays_of

BLOCK = 256  # users completed at a time, a multiple of 8: the table is never there as floats
PARTS = ("tuning", "test", "all")
TEST_SHARE = 7  # one product in so many is for the test


def filter_active(ratings: Ratings, more_than: int = 30) -> Ratings:
    """Users and items with more than ``more_than`` rating rows, users only if somebody trusts them.

    (Where there is no trust list at all, nobody needs to be trusted.)

    One pass over the raw table: rows are counted, repeated (user, item) pairs included, and the counts are not
    repeated after removal. This is the reading that gives the paper's 4,711 users, 3,530 products and 48,350
    edges (43,639 distinct trust pairs and one self-loop for each user) on Epinions. In the result each pair
    (user, item) is there once, with the mean of its ratings; trust pairs are distinct, without self-trust.
    """
    more_than = whole_number("more_than", more_than)
    trusted = np.full(ratings.n_users, ratings.trustees.size == 0)
    trusted[ratings.trustees] = True
    keep_user = (np.bincount(ratings.users, minlength=ratings.n_users) > more_than) & trusted
    keep_item = np.bincount(ratings.items, minlength=ratings.n_items) > more_than
    if not keep_user.any() or not keep_item.any():
        raise UserError(
            f"{ratings.name} has no trusted user or no item with more than {more_than} ratings: lower more_than"
        )
    user_of, item_of = np.cumsum(keep_user) - 1, np.cumsum(keep_item) - 1
    rows = keep_user[ratings.users] & keep_item[ratings.items]
    n_items = int(keep_item.sum())
    cell = user_of[ratings.users[rows]] * n_items + item_of[ratings.items[rows]]
    cells, where, repeats = np.unique(cell, return_inverse=True, return_counts=True)
    pairs = keep_user[ratings.trusters] & keep_user[ratings.trustees] & (ratings.trusters != ratings.trustees)
    n_users = int(keep_user.sum())
    trust = np.unique(user_of[ratings.trusters[pairs]] * n_users + user_of[ratings.trustees[pairs]])
    return replace(
        ratings,
        name=f"{ratings.name}, active",
        users=(cells // n_items).astype(np.int32),
        items=(cells % n_items).astype(np.int32),
        ratings=(np.bincount(where, weights=ratings.ratings[rows]) / repeats).astype(np.float32),
        trusters=(trust // n_users).astype(np.int32),
        trustees=(trust % n_users).astype(np.int32),
        user_labels=ratings.user_labels[keep_user],
        item_labels=ratings.item_labels[keep_item],
    )


def binarise(ratings: Ratings, factors: Factors) -> BinaryTable:
    """1 where the rating of the completed table is above its mean, else 0; observed ratings stay, the others are predicted."""
    total = 0.0
    bits = np.empty((ratings.n_items, -(-ratings.n_users // 8)), dtype=np.uint8)
    with Progress("complete the ratings", 2 * ratings.n_users) as bar:
        for first in range(0, ratings.n_users, BLOCK):
            total += float(completed_rows(ratings, factors, first).sum())
            bar.advance(BLOCK)
        level = total / (ratings.n_users * ratings.n_items)
        for first in range(0, ratings.n_users, BLOCK):
            likes = completed_rows(ratings, factors, first) > level
            packed = np.packbits(likes, axis=0, bitorder="little")
            bits[:, first // 8 : first // 8 + packed.shape[0]] = packed.T
            bar.advance(BLOCK)
    return BinaryTable(bits, ratings.n_users, level)


def completed_rows(ratings: Ratings, factors: Factors, first: int) -> NDArray[np.float64]:
    """Ratings of the BLOCK users from ``first`` on, for all items; ``ratings`` are in order of users."""
    last = min(first + BLOCK, ratings.n_users)
    block = factors.rows(first, last)
    known = slice(*np.searchsorted(ratings.users, [first, last]))
    block[ratings.users[known] - first, ratings.items[known]] = ratings.ratings[known]
    return block


def completed_table(ratings: Ratings, model: SocialMF, seed: int) -> BinaryTable:
    """The completed, binarised table of filtered ratings; once made, it is kept under the checksum of all it depends on."""
    values = [ratings.users, ratings.items, ratings.ratings, ratings.trusters, ratings.trustees]
    sizes = (ratings.n_users, ratings.n_items, ratings.lowest, ratings.highest)
    digest = hashlib.sha256(f"{checksum_of(values)} {sizes} {model} {seed}".encode()).hexdigest()
    folder = source_files.cache() / "completed" / source_stamp()
    path = folder / f"{digest[:32]}.npz"
    with suppress(Exception):  # there is none, or it is damaged
        kept = arrays_of(path)
        return BinaryTable(kept["bits"], ratings.n_users, float(kept["level"]))
    table = binarise(ratings, refit(ratings, model, seed, fit(ratings, model, seed).epochs))
    content = io.BytesIO()
    np.savez(content, bits=table.bits, level=table.threshold)
    with suppress(UserError):  # a cache that cannot be written costs time, nothing else
        keep(path, content.getvalue())
    prune(folder.parent, keep=folder)  # those of versions that are no longer used
    return table


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
) -> RecommendationData:
    """The pipeline of the paper's Epinions experiment; a table that was completed before is found again.

    Filter (`active`), fit SocialMF with early stopping (`fit`), fit it to all ratings for the epochs found
    (`refit`), complete and binarise (`binarise`), split the products. The factorisation sees all products: the
    split concerns the bandit's environment.

    Examples
    --------
    >>> from abex.lab.datasets import synthetic_ratings
    >>> problem = recommendation(synthetic_ratings(n_users=60, n_items=70, seed=1), more_than=5, seed=1)
    >>> problem.table.n_products == problem.tuning.size + problem.test.size
    True
    """
    seed = whole_number("seed", seed)
    model = SocialMF() if model is None else model
    ratings = filter_active(load(source) if isinstance(source, str) else source, more_than)
    table = completed_table(ratings, model, seed)
    tuning, test = split_products(ratings.n_items, seed)
    return RecommendationData(ratings.name, table, ratings.trusters, ratings.trustees, tuning, test)
