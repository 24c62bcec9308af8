"""What is valued: a distribution over the arms, or a policy that has learned from the first part of the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.evaluation.batches import chances_of
from abex.evaluation.log import Label, Log
from abex.policies import Uniform
from abex.policies.naming import as_policy
from abex.policies.policy import Policy
from abex.support.errors import UserError, shown

if TYPE_CHECKING:
    from abex.players import Player


class Target(NamedTuple):
    """A distribution with its name, and the rows on which it is valued."""

    name: str
    probabilities: NDArray[np.float64]
    log: Log
    learned: int  # rows from which it was learned, none of them in ``log``
    chances: NDArray[np.float64]  # (sizes, arms): of being in a batch of each size that the log has


def as_target(policy: Any, log: Log, learn: float, rewards: tuple[float, float], graph: Any = None) -> Target:
    """The target of a dict, an array, or a policy (a value or its text)."""
    if isinstance(policy, Mapping):
        return _given("given", _distribution(_of_mapping(policy, log.arms), log.n_arms), log)
    if not isinstance(policy, str | Policy):
        return _given("given", _distribution(policy, log.n_arms), log)
    chosen = as_policy(policy)
    if isinstance(chosen, Uniform):
        return _given(str(chosen), np.full(log.n_arms, 1.0 / log.n_arms), log)
    rows = log.units.first_from(round(learn * len(log)))
    if not 0 < rows < len(log):
        raise UserError(
            f"{chosen} must learn from a part of the log and be valued on the rest: learn={learn:g} leaves none"
        )
    rest = log.rows(slice(rows, None))
    player = learned(chosen, log.rows(slice(0, rows)), rewards, graph)
    chances = np.array([player.probabilities(int(size)) for size in rest.units.sizes])
    return Target(str(chosen), player.probabilities(), rest, rows, chances)


def _given(name: str, distribution: NDArray[np.float64], log: Log) -> Target:
    chances = np.array([chances_of(distribution, int(size)) for size in log.units.sizes])
    return Target(name, distribution, log, 0, chances)


def learned(policy: Policy[Any], log: Log, rewards: tuple[float, float], graph: Any = None) -> Player:
    """A player of the policy that has lived every row of the log: each is a step, with an arm that was tried elsewhere."""
    from abex.players import Player

    low, high = rewards
    player = Player(policy, log.n_arms, graph=graph, horizon=len(log), seed=0)
    scaled = np.clip((log.reward - low) / (high - low), 0.0, 1.0)
    side = log.side
    for row in range(len(log)):
        also = None
        if side is not None and side.start[row] < side.start[row + 1]:
            also = {
                int(side.arm[j]): float(min(max((side.reward[j] - low) / (high - low), 0.0), 1.0))
                for j in range(side.start[row], side.start[row + 1])
            }
        player.update(int(log.arm[row]), float(scaled[row]), also)
    return player


def _of_mapping(given: Mapping[Label, float], arms: Any) -> list[Any]:
    known = {str(label): place for place, label in enumerate(arms)}
    values: list[Any] = [0.0] * len(known)
    for label, value in given.items():
        if str(label) not in known:
            raise UserError(f"the log has no arm {shown(label)}")
        values[known[str(label)]] = value
    return values


def _distribution(values: Any, n_arms: int) -> NDArray[np.float64]:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise UserError(
            f"a policy must be its text, a dict of arms, or an array of probabilities, got {shown(values)}"
        ) from None
    if array.shape != (n_arms,):
        raise UserError(
            f"the distribution needs {n_arms} probabilities, one for each arm, got shape {array.shape}"
        )
    if not np.isfinite(array).all() or (array < 0.0).any() or abs(array.sum() - 1.0) > 1e-6:
        raise UserError(f"probabilities must be at least 0 and sum to 1, got a sum of {array.sum():g}")
    return np.asarray(array / array.sum())
