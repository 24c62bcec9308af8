"""The contract of environments, a function for each promise."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from abex.environments.environment import Environment
from abex.policies import Uniform
from abex.simulation import as_checkpoints, play_replication
from abex.support.randomness import counter_key

STEPS = 2_000


def world_of(environment: Environment, replication: int = 0) -> Any:
    """A world of the environment."""
    return environment.open(counter_key(1, replication, "environment"), STEPS)


def table_of(environment: Environment, world: Any, rule: Any) -> Any:
    """A rule's value for each of the first steps and each arm."""
    with np.errstate(over="ignore"):
        return np.array(
            [[rule(world, t, arm) for arm in range(environment.n_arms)] for t in range(1, STEPS + 1)], float
        )


def check_is_a_value(environment: Environment) -> None:
    """Equal after pickling, and hashable."""
    assert pickle.loads(pickle.dumps(environment)) == environment
    assert isinstance(hash(environment), int)


def check_pays_between_0_and_1(environment: Environment) -> None:
    """Every reward is a number in [0, 1]."""
    rewards = table_of(environment, world_of(environment), environment.draw)
    assert np.isfinite(rewards).all()
    assert rewards.min() >= 0.0
    assert rewards.max() <= 1.0


def check_pays_the_same_to_everyone(environment: Environment) -> None:
    """A reward depends on world, step and arm alone: asked in another order it is the same."""
    world = world_of(environment)
    cells = [(t, arm) for t in range(1, 60) for arm in range(environment.n_arms)]
    with np.errstate(over="ignore"):
        forward = [environment.draw(world, t, arm) for t, arm in cells]
        backward = [environment.draw(world_of(environment), t, arm) for t, arm in reversed(cells)]
    assert forward == backward[::-1]


def check_regret_is_what_was_lost(environment: Environment) -> None:
    """Each arm's mean reward plus its mean gap is the same for all arms: the gain of the best, within 4.5 standard errors."""
    rewards, gaps = [], []
    for replication in range(5):
        world = world_of(environment, replication)
        rewards.append(table_of(environment, world, environment.draw))
        gaps.append(table_of(environment, world, environment.gap))
    reward, gap = np.concatenate(rewards), np.concatenate(gaps)
    level = reward + gap
    spread = level - level.mean(axis=1, keepdims=True)
    error = spread.std(axis=0, ddof=1) / np.sqrt(len(spread))
    assert (np.abs(spread.mean(axis=0)) <= 4.5 * error + 1e-9).all()


def check_best_arms_lose_nothing(environment: Environment) -> None:
    """Where the regret is the gap of means: never negative, and zero exactly for the best arms."""
    if environment.longest_horizon is not None:
        return  # a table's regret is against the best fixed arm in hindsight
    world = world_of(environment)
    gap, best = (table_of(environment, world, rule) for rule in environment.rules()[1:])
    assert gap.min() >= 0.0
    assert ((gap == 0.0) == (best == 1.0)).all()
    assert best.any(axis=1).all()


def check_is_one_implementation(environment: Environment) -> None:
    """Compiled and interpreted runs agree bit for bit."""
    steps = as_checkpoints(10, 500)
    fast = play_replication(Uniform(), environment, None, steps, 1, 0)
    slow = play_replication(Uniform(), environment, None, steps, 1, 0, interpreted=True)
    assert np.array_equal(fast.regret, slow.regret)
    assert np.array_equal(fast.optimal_pulls, slow.optimal_pulls)


def check_replications_differ(environment: Environment) -> None:
    """Replications are independent draws, unless the rewards are a fixed table or there is one arm."""
    if environment.longest_horizon is not None or environment.n_arms == 1:
        return
    rewards = [table_of(environment, world_of(environment, r), environment.draw)[:200] for r in (0, 1)]
    assert not np.array_equal(rewards[0], rewards[1])
