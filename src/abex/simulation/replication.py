"""One replication of a policy in an environment, in pieces between which it can be stopped; how soon it noticed changes."""

from __future__ import annotations

import bisect
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.environments.environment import Environment
from abex.graphs.feedback import BanditFeedback, reveal_bandit
from abex.kernels import check_record, compile_as, is_user_defined, with_present_globals
from abex.policies.policy import Policy, Setting
from abex.simulation.conversions import conversion_queue
from abex.simulation.delay_queue import LATE, as_late, memory_of, new_queue
from abex.simulation.delays import Conversions, Delay, Fixed
from abex.simulation.loop import Run, compiled_loop, loop, plays_well, short
from abex.support.errors import UserError
from abex.support.randomness import counter_key, stream

FIRST_CHUNK = 200_000  # arm-steps of the first kernel call; later calls grow until they last CHUNK_SECONDS
CHUNK_SECONDS = 0.05


class Replication(NamedTuple):
    """What one replication leaves behind."""

    regret: NDArray[np.float64]  # (checkpoints,)
    optimal_pulls: NDArray[np.float64]  # (checkpoints,), pulls of an optimal arm
    report: dict[str, float]
    nanoseconds: float  # of CPU per step, without compiling and starting
    state: Any


def play_replication(
    policy: Policy[Any],
    environment: Environment,
    graph: Any,
    checkpoints: NDArray[np.int64],
    seed: int,
    replication: int,
    *,
    delay: Delay | None = None,
    batch: int = 1,
    advance: Callable[[int], None] = lambda steps: None,
    stopped: Callable[[], bool] = lambda: False,
    interpreted: bool = False,
    only_compile: bool = False,
) -> Replication:
    """Play one replication to the last checkpoint, in pieces between which it can be stopped.

    Rewards come with this delay (`abex.simulation.delays`) and in batches of so many decisions. With ``only_compile`` no step
    is played, but all that a step needs is compiled.
    """
    horizon = int(checkpoints[-1])
    drawn = counter_key(seed, replication, "graph")
    feedback: Any = BanditFeedback(n_arms=environment.n_arms)
    reveal: Any = reveal_bandit
    max_observed = 1
    if graph is not None:
        feedback, reveal, max_observed = graph.feedback(drawn), graph.reveal, graph.max_observed
    setting = Setting(environment.n_arms, horizon, graph, drawn)
    make = loop if interpreted else compiled_loop
    state = policy.start(setting)
    pending: Any = None
    memory: Any = None
    if as_late(delay, batch):
        memory = memory_of(policy, state)
        key = counter_key(seed, replication, "delay")
        waiting = LATE
        if isinstance(delay, Conversions):
            if graph is not None:
                raise UserError(
                    "conversions are those of the arm pulled: with Conversions leave the graph out"
                )
            draw = with_present_globals(environment.draw)
            pending, waiting = conversion_queue(
                delay, policy, draw, batch, horizon, key, environment.n_arms, memory
            )
        else:
            pending = new_queue(delay or Fixed(1), batch, horizon, key, environment.n_arms, memory)
        play = make(policy.kernels(), environment.rules(), reveal, waiting)
    else:
        play = make(policy.kernels(), environment.rules(), reveal)
    world = environment.open(counter_key(seed, replication, "environment"), horizon)
    rng = stream(seed, replication, "policy", repr(policy))
    if is_user_defined([policy.select, policy.update]):
        check_record(f"{type(policy).__name__}.start", state)
    if is_user_defined(environment.rules()):
        check_record(f"{type(environment).__name__}.open", world)
    run = Run(
        state=state,
        world=world,
        feedback=feedback,
        pending=pending,
        memory=memory,
        checkpoints=checkpoints,
        regret=np.zeros(checkpoints.size),
        optimal_pulls=np.zeros(checkpoints.size),
        seen=np.zeros(max_observed, np.int64),
        rng=rng,
        n_arms=environment.n_arms,
    )
    name = short(str(policy))

    def run_chunk(first: int, last: int) -> int:
        """Play these steps; nanoseconds of CPU."""
        began = time.thread_time_ns()
        with (
            np.errstate(over="ignore"),  # words wrap around
            plays_well(policy, environment, run),
            compile_as(name, stopped),
        ):
            play(run, first, last)
        return time.thread_time_ns() - began

    run_chunk(1, 0)  # no step at all: compiles
    overhead = run_chunk(1, 0)  # what a call costs before its first step
    first, chunk, spent = 1, max(FIRST_CHUNK // environment.n_arms, 10), 0
    while first <= horizon and not (only_compile or stopped()):
        last = min(horizon, first + chunk - 1)
        took = run_chunk(first, last)
        spent += max(0, took - overhead)
        if took < CHUNK_SECONDS * 1e9 / 2:
            chunk *= 2 if took > CHUNK_SECONDS * 1e9 / 8 else 8
        advance(last - first + 1)
        first = last + 1
    report = {**policy.report(state), **detection_report(policy, state, environment, first - 1)}
    return Replication(run.regret, run.optimal_pulls, report, spent / max(first - 1, 1), state)


def detection(
    alarms: Sequence[tuple[int, int]], changes: Sequence[int], horizon: int, single: bool
) -> dict[str, float]:
    """Delay of the first alarm after each change, changes without any, and false alarms.

    An alarm is false if nothing has changed before it, or if the same arm (any arm, where all start anew) has raised one since
    the last change.

    Parameters
    ----------
    alarms : list of (step, arm)
        In order.
    changes : list of int
        The first steps of new means, ascending.
    horizon : int
        The last step.
    single : bool
        Whether an alarm concerns its arm alone.

    Examples
    --------
    >>> detection([(50, 0), (120, 1), (130, 1)], [101, 201], 300, single=False)
    {'detection delay': 19.0, 'missed changes': 1.0, 'false alarms': 2.0}
    """
    raised: dict[int, set[int]] = {}
    first: dict[int, int] = {}
    false = 0
    for step, arm in alarms:
        since = bisect.bisect_right(changes, step)  # changes before it
        who = arm if single else 0
        if since == 0 or who in raised.setdefault(since, set()):
            false += 1
        else:
            raised[since].add(who)
            first.setdefault(since, step - changes[since - 1])
    known = [change for change in changes if change <= horizon]
    return {
        "detection delay": float(np.mean(list(first.values()))) if first else float(horizon),
        "missed changes": float(len(known) - len(first)),
        "false alarms": float(false),
    }


def detection_report(policy: Any, state: Any, environment: Any, horizon: int) -> dict[str, float]:
    """What `detection` says of a played state, where the policy raises alarms and the environment knows its changes."""
    alarms = getattr(policy, "alarms", None)
    changes = environment.changes(horizon)
    if alarms is None or not changes:
        return {}
    return detection(alarms(state), changes, horizon, single=getattr(policy, "restart", "all") == "arm")
