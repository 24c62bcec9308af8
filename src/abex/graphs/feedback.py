"""What a pull reveals, as kernels: a feedback record and ``reveal(feedback, t, arm, seen) -> count``.

`reveal` writes the observed arms of step t into ``seen``, the pulled arm last, and says how many they are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kernels import kernel


class Alone(NamedTuple):
    """Bandit feedback: only the pulled arm is seen."""

    n_arms: int


class Links(NamedTuple):
    """A fixed graph in compressed rows: closed neighbourhoods, each row ending with its own arm."""

    out_start: NDArray[np.int64]  # (K + 1,)
    out_arms: NDArray[np.int32]  # (edges + K,): the arms that a pull of k reveals
    in_start: NDArray[np.int64]  # (K + 1,)
    in_arms: NDArray[np.int32]  # (edges + K,): the arms whose pull reveals k


@kernel
def reveal_alone(feedback: Any, t: int, arm: int, seen: Any) -> int:
    """The pulled arm."""
    seen[0] = arm
    return 1


@kernel
def reveal_links(feedback: Any, t: int, arm: int, seen: Any) -> int:
    """The closed out-neighbourhood of the pulled arm."""
    first = feedback.out_start[arm]
    count = int(feedback.out_start[arm + 1] - first)
    for j in range(count):
        seen[j] = feedback.out_arms[first + j]
    return count


def complete_links(n_arms: int) -> Links:
    """Full information: every pull reveals every arm."""
    start = np.arange(n_arms + 1, dtype=np.int64) * n_arms
    rows = np.tile(np.arange(n_arms, dtype=np.int32), (n_arms, 1))
    others = rows[~np.eye(n_arms, dtype=bool)].reshape(n_arms, n_arms - 1)
    arms = np.concatenate([others, np.arange(n_arms, dtype=np.int32)[:, None]], axis=1).ravel()
    return Links(start, arms, start, arms)
