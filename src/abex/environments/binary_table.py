"""A large table of likes, one bit a cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.support.errors import UserError
from abex.support.files import checksum_of


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
