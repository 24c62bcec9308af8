"""A policy that is played until a test says who is the best arm."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from abex.environments.environment import Environment, Rules
from abex.inference.betting import left_over, new_comparison, take_in
from abex.inference.winner import BETS, SUMS, best_arm
from abex.kernels import Record, compiled, kernel
from abex.policies.policy import Kernels, Policy, Setting
from abex.support.errors import UserError
from abex.support.randomness import counter_key, stream

PACE = 1.01  # from look to look at sums, and from piece to piece of a run


class Course(Record):
    """How far a run has come."""

    law: Any  # (K,), probabilities of the arms, all 0 where they are not known
    regret: float
    found: int  # the arm that was left over, -1 while there are several
    step: int


class Identified(NamedTuple):
    """What came of a run."""

    stop: int  # the step at which a winner was named; the last one where none was
    winner: int  # -1 for none
    regret: float  # up to there


@kernel
def nothing_known(state: Any, t: int, out: Any) -> None:
    """No probabilities."""


@cache
def looking_loop(kernels: Kernels, rules: Rules, law: Any) -> Any:
    """Steps of a policy, up to one after which bets leave one arm over."""
    (select, update), (draw, gap, _) = kernels, rules

    @compiled(select, update, draw, gap, law, take_in, left_over)
    def play(state: Any, world: Any, bets: Any, course: Course, last: int, bar: float, rng: Any) -> None:
        while course.step < last and course.found < 0:
            course.step += 1
            law(state, course.step, course.law)
            arm = select(state, course.step, rng)
            reward = draw(world, course.step, arm)
            course.regret += gap(world, course.step, arm)
            take_in(bets, arm, reward, course.law)
            update(state, course.step, arm, arm, reward, rng)
            course.found = left_over(bets, bar)

    return play


def play_until_winner(
    policy: Policy[Any],
    environment: Environment,
    *,
    horizon: int,
    risk: float,
    method: str,
    seed: int,
    replication: int,
    stopped: Any = lambda: False,
) -> Identified:
    """Play until bets on the propensities name the winner, or sums of rewards, which are looked at every hundredth of the way."""
    if method == BETS and policy.probabilities is None:
        raise UserError(f"the probabilities of {policy} are not known: nothing can be bet on them")
    law = policy.probabilities if method == BETS else nothing_known
    play = looking_loop(policy.kernels(), environment.rules(), law)
    n_arms = environment.n_arms
    state, bets = policy.start(Setting(n_arms, horizon)), new_comparison(n_arms)
    course = Course(law=np.zeros(n_arms), found=-1)
    world = environment.open(counter_key(seed, replication, "environment"), horizon)
    rng = stream(seed, replication, "policy", repr(policy))
    while course.step < horizon and course.found < 0 and not stopped():
        last = min(max(math.ceil(course.step * PACE), course.step + n_arms), horizon)
        with np.errstate(over="ignore"):  # words wrap around
            play(state, world, bets, course, last, 1.0 / risk, rng)
        if method == SUMS:
            course.found = max(best_arm(bets, risk, SUMS), -1)
    return Identified(course.step, course.found, course.regret)
