"""The loop over steps: the kernels of a policy, an environment and a feedback graph made one function."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from abex.environments.environment import Environment, Rules
from abex.kernels import Record, compiled, current, foreign
from abex.policies.policy import NO_SUCH_ARM, Kernels, Policy, arms_exist
from abex.simulation.deliveries import AT_ONCE, Deliveries
from abex.support.errors import UserError


class Tally(Record):
    """How far a replication has come, and what went wrong in it."""

    n_arms: int
    checkpoint: int  # the next one
    regret: float  # of all steps
    optimal: float  # pulls of an optimal arm
    step: int
    arm: int
    value: float  # what an environment of another package paid there, or counted as regret


class Course(Record):
    """All that one replication plays with."""

    state: Any  # of the policy
    world: Any
    feedback: Any
    mail: Any
    memory: Any  # what of the state belongs to a decision
    checkpoints: Any  # (C,)
    regret: Any  # (C,), up to each checkpoint
    optimal_pulls: Any  # (C,)
    tally: Tally
    seen: Any  # room for the arms that a pull reveals
    rng: Any


def loop(kernels: Kernels, rules: Rules, reveal: Any, deliveries: Deliveries = AT_ONCE) -> Any:
    """The steps of one replication as a plain function; `compiled_loop` compiles the same source."""
    select, update = kernels
    post, take = deliveries
    draw, gap, best = rules
    checked = foreign(kernels)  # ours have been: theirs may select what is not there
    watched = foreign(rules)  # ours have been: theirs may pay what is no reward

    def play(course: Course, first: int, last: int) -> None:
        state, world, feedback = course.state, course.world, course.feedback
        mail, memory = course.mail, course.memory
        tally, seen, rng = course.tally, course.seen, course.rng
        where, lost, optimal = tally.checkpoint, tally.regret, tally.optimal
        for t in range(first, last + 1):
            arm = select(state, t, rng)
            if checked and not 0 <= arm < tally.n_arms:
                raise IndexError(NO_SUCH_ARM)
            more = gap(world, t, arm)
            if watched and not math.isfinite(more):
                tally.step, tally.arm, tally.value = t, arm, more
                raise ValueError(NO_REGRET)
            lost += more
            if best(world, t, arm):
                optimal += 1.0
            event = post(mail, memory, t, arm)
            while event >= 0:  # without delay: this decision, once
                when, pulled, event = take(mail, memory, event, t, arm)
                for j in range(reveal(feedback, when, pulled, seen)):
                    reward = draw(world, when, seen[j])
                    if watched and not 0.0 <= reward <= 1.0:
                        tally.step, tally.arm, tally.value = when, seen[j], reward
                        raise ValueError(NO_REWARD)
                    update(state, when, pulled, seen[j], reward, rng)
            if t == course.checkpoints[where]:
                course.regret[where] = lost
                course.optimal_pulls[where] = optimal
                where += 1
        tally.checkpoint, tally.regret, tally.optimal = where, lost, optimal

    return play


NO_REWARD = "no reward"  # what a loop says when an environment of another package pays what is none
NO_REGRET = "no regret"


@contextmanager
def plays_well(policy: Policy[Any], environment: Environment, tally: Tally) -> Iterator[None]:
    """Say in a sentence which policy or environment of another package did what it must not, where and when."""
    try:
        with arms_exist(policy, environment.n_arms, environment.rules()):
            yield
    except ZeroDivisionError as error:
        if not foreign([policy.select, policy.update, *environment.rules()]):
            raise
        raise UserError(
            f"a kernel of {short(str(policy), 60)} or of {short(repr(environment), 60)} divides by zero"
        ) from error
    except ValueError as error:
        if str(error) not in (NO_REWARD, NO_REGRET):
            raise
        where = f"arm {tally.arm} at step {tally.step}"
        says, must = (
            (f"pays {tally.value:g} for {where}", "draw must return a number from 0 to 1")
            if str(error) == NO_REWARD
            else (f"counts a regret of {tally.value:g} for {where}", "gap must return a finite number")
        )
        raise UserError(f"{short(repr(environment), 60)} {says}: {must}") from None


def compiled_loop(kernels: Kernels, rules: Rules, reveal: Any, deliveries: Deliveries = AT_ONCE) -> Any:
    """`loop`, compiled once for each combination, whichever thread asks first."""
    kernels, rules = Kernels(*map(current, kernels)), Rules(*map(current, rules))
    with _making:
        return _compiled_loop(kernels, rules, current(reveal), deliveries)


_making = threading.Lock()


@cache
def _compiled_loop(kernels: Kernels, rules: Rules, reveal: Any, deliveries: Deliveries) -> Any:
    return compiled(*kernels, *rules, reveal, *deliveries)(loop(kernels, rules, reveal, deliveries))


def short(text: str, most: int = 200) -> str:
    """A text of at most so many characters, with dots where it was longer."""
    return text if len(text) <= most else f"{text[: most - 3]}..."
