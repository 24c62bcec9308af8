"""Binary ratings as rewards: users who like products, the arms of the recommendation experiment."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.environments.environment import Environment
from abex.environments.stochastic import mean_best, mean_gap
from abex.kernels import Record, kernel
from abex.support.errors import UserError
from abex.support.files import checksum_of
from abex.support.randomness import uniform_at


@dataclass(frozen=True, eq=False, repr=False)
class BinaryTable:
    """Who likes what: bit u of row p says whether user u likes product p.

    Rows are products, so that the reactions of many users to one product lie side by side.

    Examples
    --------
    >>> table = BinaryTable.of([[1, 0, 1], [0, 0, 1]])  # two users, three products
    >>> table
    BinaryTable(2 users x 3 products, 50.0 % likes)
    >>> table.row(2).tolist(), table.likes([0, 2]).tolist()
    ([True, True], [2, 1])
    """

    bits: NDArray[np.uint8]  # (products, ceil(users / 8)), least significant bit first
    n_users: int
    threshold: float = 0.5  # what a rating had to exceed

    def __post_init__(self) -> None:
        if self.bits.ndim != 2 or self.bits.dtype != np.uint8 or self.bits.shape[1] != -(-self.n_users // 8):
            raise UserError(
                f"{self.n_users} users need {-(-self.n_users // 8)} bytes a row, got {self.bits.shape}"
            )
        self.bits.setflags(write=False)

    @classmethod
    def of(cls, likes: Any) -> BinaryTable:
        """Pack an array (users, products) of 0 and 1."""
        array = np.asarray(likes)
        if array.ndim != 2 or array.size == 0:
            raise UserError(f"a table of likes must have users and products, got shape {array.shape}")
        if array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
            raise UserError("a table of likes must hold 0 and 1 only")
        return cls(np.packbits(array.T.astype(bool), axis=1, bitorder="little"), array.shape[0])

    @property
    def n_products(self) -> int:
        """Number of products."""
        return int(self.bits.shape[0])

    def row(self, product: int) -> NDArray[np.bool_]:
        """Which users like ``product``."""
        return np.unpackbits(self.bits[product], count=self.n_users, bitorder="little").astype(bool)

    def likes(self, products: Any = None) -> NDArray[np.int64]:
        """How many of the products each user likes."""
        chosen = np.arange(self.n_products) if products is None else np.asarray(products)
        total = np.zeros(self.n_users, dtype=np.int64)
        for start in range(0, chosen.size, 256):  # never the whole table unpacked
            part = self.bits[chosen[start : start + 256]]
            total += np.unpackbits(part, axis=1, count=self.n_users, bitorder="little").sum(
                axis=0, dtype=np.int64
            )
        return total

    @property
    def share(self) -> float:
        """Share of likes among all cells."""
        return float(self.likes().sum() / (self.n_users * self.n_products))

    @property
    def checksum(self) -> str:
        """SHA-256 of the bits."""
        return checksum_of([self.bits])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BinaryTable):
            return NotImplemented
        return self.n_users == other.n_users and np.array_equal(self.bits, other.bits)

    def __hash__(self) -> int:
        return hash((self.n_users, self.bits.shape, self.bits[0].tobytes()))

    def __repr__(self) -> str:
        return f"BinaryTable({self.n_users:,} users x {self.n_products:,} products, {100 * self.share:.1f} % likes)"


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
