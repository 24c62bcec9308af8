"""The loop over steps: the kernels of a policy, an environment and a feedback graph made one function."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.environments.environment import Environment, Rules
from abex.kernels import Record, compiled, is_user_defined, with_present_globals
from abex.policies.policy import NO_SUCH_ARM, Kernels, Policy, arms_exist
from abex.simulation.delay_queue import AT_ONCE, DelayKernels
from abex.support.errors import UserError


class Run(Record):
    """All that one replication plays with, how far it has come, and what went wrong in it."""

    state: Any  # of the policy
    world: Any
    feedback: Any
    pending: Any  # decisions that wait for their reward
    memory: Any  # what of the state belongs to a decision
    checkpoints: NDArray[np.int64]  # (C,)
    regret: NDArray[np.float64]  # (C,), up to each checkpoint
    optimal_pulls: NDArray[np.float64]  # (C,)
    seen: NDArray[np.int64]  # room for the arms that a pull reveals
    rng: np.random.Generator
    n_arms: int
    checkpoint: int  # the next one
    lost: float  # regret of all steps
    optimal: float  # pulls of an optimal arm
    step: int  # where an environment of another package went wrong,
    arm: int
    value: float  # and what it paid there, or counted as regret


def loop(kernels: Kernels, rules: Rules, reveal: Any, delays: DelayKernels = AT_ONCE) -> Any:
    """The steps of one replication as a plain function; `compiled_loop` compiles the same source."""
    select, update = kernels
    enqueue, dequeue, paid = delays
    draw, gap, best = rules
    checked = is_user_defined(kernels)  # ours have been: theirs may select what is not there
    watched = is_user_defined(rules)  # ours have been: theirs may pay what is no reward

    def play(run: Run, first: int, last: int) -> None:
        state, world, feedback = run.state, run.world, run.feedback
        pending, memory, seen, rng = run.pending, run.memory, run.seen, run.rng
        where, lost, optimal = run.checkpoint, run.lost, run.optimal
        for t in range(first, last + 1):
            arm = select(state, t, rng)
            if checked and not 0 <= arm < run.n_arms:
                raise IndexError(NO_SUCH_ARM)
            more = gap(world, t, arm)
            if watched and not math.isfinite(more):
                run.step, run.arm, run.value = t, arm, more
                raise ValueError(NO_REGRET)
            lost += more
            if best(world, t, arm):
                optimal += 1.0
            event = enqueue(pending, memory, state, world, t, arm, rng)
            while event >= 0:  # without delay: this decision, once
                when, pulled, event = dequeue(pending, memory, event, t, arm)
                for j in range(reveal(feedback, when, pulled, seen)):
                    reward = draw(world, when, seen[j])
                    if watched and not 0.0 <= reward <= 1.0:
                        run.step, run.arm, run.value = when, seen[j], reward
                        raise ValueError(NO_REWARD)
                    update(state, when, pulled, seen[j], paid(pending, when, pulled, reward), rng)
            if t == run.checkpoints[where]:
                run.regret[where] = lost
                run.optimal_pulls[where] = optimal
                where += 1
        run.checkpoint, run.lost, run.optimal = where, lost, optimal

    return play


NO_REWARD = "no reward"  # what a loop says when an environment of another package pays what is none
NO_REGRET = "no regret"


@contextmanager
def plays_well(policy: Policy[Any], environment: Environment, run: Run) -> Iterator[None]:
    """Say in a sentence which policy or environment of another package did what it must not, where and when."""
    try:
        with arms_exist(policy, environment.n_arms, environment.rules()):
            yield
    except ZeroDivisionError as error:
        if not is_user_defined([policy.select, policy.update, *environment.rules()]):
            raise
        raise UserError(
            f"a kernel of {short(str(policy), 60)} or of {short(repr(environment), 60)} divides by zero"
        ) from error
    except ValueError as error:
        if str(error) not in (NO_REWARD, NO_REGRET):
            raise
        where = f"arm {run.arm} at step {run.step}"
        says, must = (
            (f"pays {run.value:g} for {where}", "draw must return a number from 0 to 1")
            if str(error) == NO_REWARD
            else (f"counts a regret of {run.value:g} for {where}", "gap must return a finite number")
        )
        raise UserError(f"{short(repr(environment), 60)} {says}: {must}") from None


def compiled_loop(kernels: Kernels, rules: Rules, reveal: Any, delays: DelayKernels = AT_ONCE) -> Any:
    """`loop`, compiled once for each combination, whichever thread asks first."""
    kernels, rules = Kernels(*map(with_present_globals, kernels)), Rules(*map(with_present_globals, rules))
    with _making:
        return _compiled_loop(kernels, rules, with_present_globals(reveal), delays)


_making = threading.Lock()


@cache
def _compiled_loop(kernels: Kernels, rules: Rules, reveal: Any, delays: DelayKernels) -> Any:
    return compiled(*kernels, *rules, reveal, *delays)(loop(kernels, rules, reveal, delays))


def short(text: str, most: int = 200) -> str:
    """A text of at most so many characters, with dots where it was longer."""
    return text if len(text) <= most else f"{text[: most - 3]}..."
