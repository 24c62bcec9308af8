"""Many replications of policies in one environment, at compiled speed.

**Common random numbers.** Replication r of environment E has a 64-bit key made of (seed, r). The reward of arm k
at step t is a function of (key, t, k) alone, so all policies of a call, and of any later call with the same
seed, face the very same rewards, whatever they pull; differences between policies are paired and therefore precise.
Each policy draws its own choices from a stream named by (seed, r, policy): adding a policy or a
replication changes no other number, nor does the number of workers.
"""

from __future__ import annotations

import math
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.curves import Curves
from abex.environments.base import Environment, Rules
from abex.errors import UserError, shown, whole_number
from abex.graphs.feedback import Alone, reveal_alone
from abex.graphs.graph import as_graph
from abex.kernels import compile_as, compiled, foreign
from abex.policies.base import MOST_ARMS, NO_SUCH_ARM, Kernels, Policy, Setting, arms_exist, as_policy
from abex.progress import Progress
from abex.randomness import counter_key, stream
from abex.reading import check_size

MOST_WORKERS = 10_000
LONGEST_HORIZON = 10**11  # at 10 ns a step that is a quarter of an hour
FIRST_CHUNK = 200_000  # arm-steps of the first kernel call; later calls grow until they last CHUNK_SECONDS
CHUNK_SECONDS = 0.05


def loop(kernels: Kernels, rules: Rules, reveal: Any) -> Any:
    """The steps of one replication as a plain function; `compiled_loop` compiles the same source."""
    select, update = kernels
    draw, gap, best = rules
    checked = foreign(kernels)  # ours have been: theirs may select what is not there
    watched = foreign(rules)  # ours have been: theirs may pay what is no reward

    def play(
        state: Any, world: Any, feedback: Any, first: int, last: int,
        checkpoints: Any, regret: Any, hits: Any, cursor: Any, totals: Any, seen: Any, rng: Any,
    ) -> None:  # fmt: skip
        where = cursor[0]
        lost = totals[0]
        right = totals[1]
        for t in range(first, last + 1):
            arm = select(state, t, rng)
            if checked and not 0 <= arm < cursor[1]:
                raise IndexError(NO_SUCH_ARM)
            more = gap(world, t, arm)
            if watched and not math.isfinite(more):
                cursor[2], cursor[3], totals[2] = t, arm, more
                raise ValueError(NO_REGRET)
            lost += more
            if best(world, t, arm):
                right += 1.0
            for j in range(reveal(feedback, t, arm, seen)):
                reward = draw(world, t, seen[j])
                if watched and not 0.0 <= reward <= 1.0:
                    cursor[2], cursor[3], totals[2] = t, seen[j], reward
                    raise ValueError(NO_REWARD)
                update(state, t, arm, seen[j], reward, rng)
            if t == checkpoints[where]:
                regret[where] = lost
                hits[where] = right
                where += 1
        cursor[0] = where
        totals[0] = lost
        totals[1] = right

    return play


NO_REWARD = "no reward"  # what a loop says when an environment of another package pays what is none
NO_REGRET = "no regret"


@contextmanager
def plays_well(policy: Policy[Any], environment: Environment, cursor: Any, totals: Any) -> Iterator[None]:
    """Say in a sentence which policy or environment of another package did what it must not, where and when."""
    try:
        with arms_exist(policy, environment.n_arms):
            yield
    except ZeroDivisionError as error:
        if not foreign([policy.select, policy.update, *environment.rules()]):
            raise
        raise UserError(
            f"a kernel of {_short(str(policy), 60)} or of {_short(repr(environment), 60)} divides by zero"
        ) from error
    except ValueError as error:
        if str(error) not in (NO_REWARD, NO_REGRET):
            raise
        where = f"arm {int(cursor[3])} at step {int(cursor[2])}"
        says, must = (
            (f"pays {totals[2]:g} for {where}", "draw must return a number from 0 to 1")
            if str(error) == NO_REWARD
            else (f"counts a regret of {totals[2]:g} for {where}", "gap must return a finite number")
        )
        raise UserError(f"{_short(repr(environment), 60)} {says}: {must}") from None


def compiled_loop(kernels: Kernels, rules: Rules, reveal: Any) -> Any:
    """`loop`, compiled once for each combination, whichever thread asks first."""
    with _making:
        return _compiled_loop(kernels, rules, reveal)


_making = threading.Lock()


@cache
def _compiled_loop(kernels: Kernels, rules: Rules, reveal: Any) -> Any:
    return compiled(*kernels, *rules, reveal)(loop(kernels, rules, reveal))


class Replication(NamedTuple):
    """What one replication leaves behind."""

    regret: NDArray[np.float64]  # (checkpoints,)
    hits: NDArray[np.float64]  # (checkpoints,), pulls of a best arm
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
    advance: Callable[[int], None] = lambda steps: None,
    stopped: Callable[[], bool] = lambda: False,
    interpreted: bool = False,
) -> Replication:
    """Play one replication to the last checkpoint, in pieces between which it can be stopped."""
    horizon = int(checkpoints[-1])
    feedback: Any = Alone(environment.n_arms)
    reveal: Any = reveal_alone
    widest = 1
    if graph is not None:
        feedback, reveal, widest = (
            graph.feedback(counter_key(seed, replication, "graph")),
            graph.reveal,
            graph.widest,
        )
    setting = Setting(environment.n_arms, horizon, None if graph is None else feedback)
    make = loop if interpreted else compiled_loop
    play = make(policy.kernels(setting), environment.rules(), reveal)
    state = policy.start(setting)
    world = environment.open(counter_key(seed, replication, "environment"), horizon)
    rng = stream(seed, replication, "policy", repr(policy))
    regret, hits = np.zeros(checkpoints.size), np.zeros(checkpoints.size)
    # the next checkpoint; how many arms there are; step and arm of what went wrong, its value among the totals
    cursor = np.array([0, environment.n_arms, 0, 0])
    totals, seen = np.zeros(3), np.zeros(widest, np.int64)
    tail = (checkpoints, regret, hits, cursor, totals, seen, rng)
    name = _short(str(policy))

    def piece(first: int, last: int) -> int:
        """Play these steps; nanoseconds of CPU."""
        began = time.thread_time_ns()
        with (
            np.errstate(over="ignore"),  # words wrap around
            plays_well(policy, environment, cursor, totals),
            compile_as(name, stopped),
        ):
            play(state, world, feedback, first, last, *tail)
        return time.thread_time_ns() - began

    piece(1, 0)  # no step at all: compiles
    idle = piece(1, 0)  # what a call costs before its first step
    first, chunk, spent = 1, max(FIRST_CHUNK // environment.n_arms, 10), 0
    while first <= horizon and not stopped():
        last = min(horizon, first + chunk - 1)
        took = piece(first, last)
        spent += max(0, took - idle)
        if took < CHUNK_SECONDS * 1e9 / 2:
            chunk *= 2 if took > CHUNK_SECONDS * 1e9 / 8 else 8
        advance(last - first + 1)
        first = last + 1
    return Replication(regret, hits, policy.report(state), spent / max(first - 1, 1), state)


def simulate(
    policies: Policy[Any] | str | Iterable[Policy[Any] | str],
    environment: Environment,
    *,
    graph: Any = None,
    horizon: int,
    replications: int = 100,
    seed: int = 0,
    workers: int | None = None,
    checkpoints: int | Sequence[int] = 100,
    progress: bool | None = None,
) -> Curves:
    """Play each policy ``replications`` times for ``horizon`` steps and return the regret curves.

    Parameters
    ----------
    policies : policy, or list of policies
        Values such as ``ABE(eta=1.0)``, or their names.
    environment : Environment
        What pays.
    graph : Graph, optional
        What a pull reveals beside its own reward; None is bandit feedback.
    horizon, replications, seed : int
        The seed names every random number; see the module's text.
    workers : int, optional
        Threads; None takes all cores of this process. The numbers do not depend on it.
    checkpoints : int or sequence of int
        About how many log-spaced steps to record, or the steps themselves (the horizon is always one).
    progress : bool, optional
        Show a progress bar; None shows it on a terminal when the run takes longer than a second.

    Examples
    --------
    >>> from abex import UCB1, Bernoulli, Uniform, simulate
    >>> curves = simulate([UCB1(), Uniform()], Bernoulli([0.9, 0.1]), horizon=500, replications=4, seed=1)
    >>> bool(curves.mean("UCB1")[-1] < curves.mean("Uniform")[-1])
    True
    """
    chosen = as_policies(policies)
    horizon = whole_number("horizon", horizon, least=1, most=LONGEST_HORIZON)
    replications = whole_number("replications", replications, least=1)
    seed = whole_number("seed", seed, least=0)
    threads = workers_or_all(workers)
    steps = as_checkpoints(checkpoints, horizon)
    check_size(
        100 * len(chosen) * replications * (steps.size + 1), f"the curves of {replications:,} replications"
    )
    check_setting(chosen, environment, graph, horizon)
    stop = threading.Event()
    with Progress("simulate", total=len(chosen) * replications * horizon, show=progress) as bar:

        def one(job: tuple[int, int]) -> Replication:
            policy, replication = job
            return play_replication(
                chosen[policy],
                environment,
                graph,
                steps,
                seed,
                replication,
                advance=bar.advance,
                stopped=stop.is_set,
            )

        jobs = [(policy, replication) for policy in range(len(chosen)) for replication in range(replications)]
        results = dict(zip(jobs, run_in_threads(one, jobs, threads, stop), strict=True))
    grid = [[results[p, r] for r in range(replications)] for p in range(len(chosen))]
    return Curves(
        policies=tuple(str(policy) for policy in chosen),
        checkpoints=steps,
        regret=np.array([[result.regret for result in row] for row in grid]),
        hits=np.array([[result.hits for result in row] for row in grid]),
        nanoseconds=np.array([[result.nanoseconds for result in row] for row in grid]),
        reports=tuple({key: [r.report[key] for r in row] for key in row[0].report} for row in grid),
        about={
            "environment": _short(repr(environment)),
            "arms": environment.n_arms,
            "graph": "" if graph is None else _short(repr(graph)),
            "horizon": horizon,
            "replications": replications,
            "seed": seed,
        },
    )


def run_in_threads(
    one: Callable[[Any], Any], jobs: Sequence[Any], threads: int, stop: threading.Event
) -> list[Any]:
    """``[one(job) for job in jobs]`` over threads; an error or Ctrl-C stops the rest promptly."""
    results: list[Any] = [None] * len(jobs)
    if threads == 1:
        return [one(job) for job in jobs]
    with ThreadPoolExecutor(threads) as pool:
        waiting = iter(enumerate(jobs))
        running: dict[Future[Any], int] = {}
        try:
            while True:
                for index, job in waiting:
                    running[pool.submit(one, job)] = index
                    if len(running) >= 2 * threads:
                        break
                if not running:
                    return results
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    results[running.pop(future)] = future.result()
        finally:
            stop.set()
            for future in running:
                future.cancel()


def as_policies(policies: Any) -> list[Policy[Any]]:
    """A list of distinct policies from what a person passes."""
    if not isinstance(policies, Policy | str | Iterable):
        raise UserError(f"policies must be a policy, its text, or a list of them, got {shown(policies)}")
    several = [policies] if isinstance(policies, Policy | str) else list(policies)
    if not several:
        raise UserError("policies is empty: name at least one")
    chosen = [as_policy(policy) for policy in several]
    for policy in chosen:
        if chosen.count(policy) > 1:
            raise UserError(f"policies holds {policy} twice")
    return chosen


def as_checkpoints(checkpoints: int | Sequence[int], horizon: int) -> NDArray[np.int64]:
    """Steps at which curves are recorded, ending at the horizon: about so many log-spaced ones, or those given.

    >>> as_checkpoints(5, 1000).tolist()
    [1, 6, 32, 178, 1000]
    """
    if isinstance(checkpoints, int | float | np.integer):
        count = whole_number("checkpoints", checkpoints, least=1)
        steps = (
            np.unique(np.round(np.geomspace(1, horizon, count)).astype(np.int64)) if count > 1 else [horizon]
        )
    else:
        if not isinstance(checkpoints, Iterable):
            raise UserError(f"checkpoints must be a number or steps, got {shown(checkpoints)}")
        steps = [whole_number("checkpoints", step, least=1, most=horizon) for step in checkpoints]
    return np.union1d(np.asarray(steps, np.int64), [horizon])


def check_setting(
    policies: Sequence[Policy[Any]], environment: Environment, graph: Any, horizon: int
) -> None:
    """Refuse early what could not be played."""
    if not isinstance(environment, Environment):
        raise UserError(
            f"environment must be an Environment such as Bernoulli([0.5, 0.6]), got {environment!r}"
        )
    whole_number("horizon", horizon, least=1, most=LONGEST_HORIZON)
    whole_number("the environment's number of arms", environment.n_arms, least=1, most=MOST_ARMS)
    longest = environment.longest_horizon
    if longest is not None and horizon > longest:
        raise UserError(f"horizon {horizon} is longer than the environment, which ends at step {longest}")
    if graph is not None and as_graph(graph).n_arms != environment.n_arms:
        raise UserError(
            f"the graph has {graph.n_arms} nodes but the environment has {environment.n_arms} arms"
        )
    for policy in policies:
        if policy.needs_graph and graph is None:
            raise UserError(f"{policy} needs to know the feedback graph: pass graph=Graph(...)")
        tuned = getattr(policy, "horizon", None)
        if isinstance(tuned, int) and horizon > tuned:
            warnings.warn(
                f"{policy} is tuned for {tuned:,} steps and plays {horizon:,}: beyond its horizon its bound on the "
                "regret does not hold; leave its horizon out to tune it for the run",
                stacklevel=3,
            )


def workers_or_all(workers: int | None) -> int:
    """The number of threads to use; None means all cores this process may use."""
    if workers is not None:
        return whole_number("workers", workers, least=1, most=MOST_WORKERS)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _short(text: str, most: int = 200) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."
