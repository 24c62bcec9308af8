"""Binary ratings as rewards: users who like products, the arms of the recommendation experiment."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.environments.binary_table import BinaryTable
from abex.environments.environment import Environment
from abex.environments.stochastic import mean_best, mean_gap
from abex.kernels import Record, kernel
from abex.support.errors import UserError
from abex.support.randomness import uniform_at


class LikesWorld(Record):
    """The packed table, the products that may be drawn, each user's share of likes, and the key."""

    key: np.uint64
    bits: NDArray[np.uint8]  # (products, ceil(users / 8))
    products: NDArray[np.int64]
    means: NDArray[np.float64]
    top: float


@dataclass(frozen=True, eq=False)
class RatingTable(Environment):
    r"""Each step draws a product uniformly; arm u pays 1 if user u likes it.

    The mean of arm u is the share of the products that u likes, :math:`\mu_u=|P|^{-1}\sum_{p\in P}B_{up}`.
    Rewards are independent in time and, as all users react to the same product, dependent across arms: with
    a feedback graph a pull shows the friends' reactions to that very product. Several users may be best.

    Parameters
    ----------
    table : BinaryTable, or array (users, products) of 0 and 1
        Who likes what, kept as bits.
    products : sequence of int, optional
        The products that are drawn, for example the test part of a split; default all.

    References
    ----------
    The recommendation experiment of "Almost Boltzmann Exploration", supplement; Caron et al. 2012, section 5.

    Examples
    --------
    >>> table = RatingTable([[1, 1, 0], [0, 1, 0]], products=[0, 1])
    >>> table.n_arms, table.true_means.tolist()
    (2, [1.0, 0.5])
    """

    table: Any
    products: Any = None

    def __post_init__(self) -> None:
        table = self.table if isinstance(self.table, BinaryTable) else BinaryTable.of(self.table)
        products = np.arange(table.n_products) if self.products is None else np.asarray(self.products)
        if products.ndim != 1 or products.size == 0 or products.dtype.kind not in "iu":
            raise UserError(f"products must be a non-empty list of whole numbers, got {self.products!r}")
        if products.min() < 0 or products.max() >= table.n_products:
            wrong = products[(products < 0) | (products >= table.n_products)][0]
            raise UserError(f"products must lie in 0..{table.n_products - 1}, got {wrong}")
        products = products.astype(np.int64)
        products.setflags(write=False)
        object.__setattr__(self, "table", table)
        object.__setattr__(self, "products", products)

    @property
    def n_arms(self) -> int:
        """Number of users."""
        return int(self.table.n_users)

    @cached_property
    def true_means(self) -> NDArray[np.float64]:
        """Share of the products that each user likes."""
        means: NDArray[np.float64] = self.table.likes(self.products) / self.products.size
        means.setflags(write=False)
        return means

    def open(self, key: np.uint64, horizon: int) -> LikesWorld:
        """The table; only the key differs between replications."""
        means = self.true_means
        return LikesWorld(key=key, bits=self.table.bits, products=self.products, means=means, top=means.max())

    @staticmethod
    @kernel
    def draw(world: Any, t: int, arm: int) -> float:
        """Whether the user likes the product of step t, which is the same for all users."""
        product = world.products[int(uniform_at(world.key, t, 0) * world.products.size)]
        return float((world.bits[product, arm >> 3] >> (arm & 7)) & 1)

    gap = staticmethod(mean_gap)
    best = staticmethod(mean_best)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RatingTable):
            return NotImplemented
        return self.table == other.table and np.array_equal(self.products, other.products)

    def __hash__(self) -> int:
        return hash((self.table, self.products.tobytes()))

    def __repr__(self) -> str:
        products = f"{self.products.size} of {self.table.n_products} products"
        return f"RatingTable(<{self.n_arms} users, {products}, {self.table.checksum[:12]}>)"
