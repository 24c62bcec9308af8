"""`simulate`: every policy and replication over threads, or through an executor that a person hands over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from abex.environments.environment import Environment
from abex.policies.policy import Policy
from abex.simulation import arguments
from abex.simulation.curves import Curves
from abex.simulation.loop import short
from abex.simulation.replication import Replication, play_replication
from abex.support.errors import UserError, whole_number
from abex.support.jobs import LOST, Threads, as_completed, lost
from abex.support.progress import Progress
from abex.support.reading import check_size

BLOCK_STEPS = 500_000  # steps that travel together to a foreign executor: about a quarter of a second


def simulate(
    policies: Policy[Any] | str | Iterable[Policy[Any] | str],
    environment: Environment,
    *,
    graph: Any = None,
    horizon: int,
    delay: Any = None,
    batch: int = 1,
    replications: int = 100,
    seed: int = 0,
    workers: int | None = None,
    executor: Executor | None = None,
    checkpoints: int | Sequence[int] = 100,
    progress: bool | None = None,
) -> Curves:
    """Play each policy ``replications`` times for ``horizon`` steps and return the regret curves.

    Parameters
    ----------
    policies : policy, or list of policies
        Values such as ``ABE(eta=1.0)``, or their names.
    environment : Environment
        Where the rewards come from.
    graph : Graph, optional
        What a pull reveals beside its own reward; None is bandit feedback.
    delay : Delay, str, int or list, optional
        How late rewards come (`abex.simulation.delays`): ``Geometric(200)``, ``Fixed(50)``, its text, or a list with one for each
        arm. The delay of an arm at a step is the same for all policies. A policy that weighs a reward by the probability of
        its decision uses that of the decision, not the present one.
    batch : int
        Rewards are learned after every so many decisions only, those that have come by then.
    horizon, replications, seed : int
        The seed names every random number; see the module's text.
    workers : int, optional
        Threads; None takes all cores of this process. The numbers do not depend on it.
    executor : concurrent.futures.Executor, optional
        Computes the replications instead of threads: processes of this machine, of a Dask cluster, of Ray (`docs/cluster.md`).
        It stays open. The numbers do not depend on it either.
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

    Rewards that come 20 steps late, some of them never:

    >>> late = simulate(UCB1(), Bernoulli([0.9, 0.1]), delay="Fixed(20, never=0.1)", horizon=500, replications=4, seed=1)
    >>> bool(late.mean("UCB1")[-1] > curves.mean("UCB1")[-1])
    True
    """
    chosen = arguments.as_policies(policies)
    horizon = whole_number("horizon", horizon, least=1, most=arguments.MAX_HORIZON)
    replications = whole_number("replications", replications, least=1)
    seed = whole_number("seed", seed, least=0)
    late, batch = arguments.as_late_rewards(delay, batch, environment)
    threads = arguments.workers_or_all(workers)
    steps = arguments.as_checkpoints(checkpoints, horizon)
    check_size(
        100 * len(chosen) * replications * (steps.size + 1), f"the curves of {replications:,} replications"
    )
    arguments.check_setting(chosen, environment, graph, horizon)
    jobs = [(policy, replication) for policy in chosen for replication in range(replications)]
    play = partial(play_job, environment, graph, steps, seed, delay=late, batch=batch)
    with Progress("simulate", total=len(jobs) * horizon, show=progress) as bar:
        if executor is not None:
            results = run_elsewhere(executor, play, jobs, horizon, bar.advance)
        elif threads == 1:
            results = [play(job, advance=bar.advance) for job in jobs]
        else:
            results = run_in_threads(partial(play, advance=bar.advance), compiled_first(play, jobs), threads)
    grid = [results[first : first + replications] for first in range(0, len(jobs), replications)]
    return Curves(
        policies=tuple(str(policy) for policy in chosen),
        checkpoints=steps,
        regret=np.array([[result.regret for result in row] for row in grid]),
        optimal_pulls=np.array([[result.optimal_pulls for result in row] for row in grid]),
        nanoseconds=np.array([[result.nanoseconds for result in row] for row in grid]),
        reports=tuple({key: [r.report[key] for r in row] for key in row[0].report} for row in grid),
        about={
            "environment": short(repr(environment)),
            "arms": environment.n_arms,
            "graph": "" if graph is None else short(repr(graph)),
            "horizon": horizon,
            "replications": replications,
            "seed": seed,
            **({} if late is None else {"delay": short(repr(late))}),
            **({} if batch == 1 else {"batch": batch}),
        },
    )


Job = tuple[Policy[Any], int]  # a policy, and the number of a replication


def play_job(
    environment: Environment, graph: Any, steps: Any, seed: int, job: Job, **more: Any
) -> Replication:
    """The replication that a job names, without the state of the policy at its end."""
    policy, replication = job
    return play_replication(policy, environment, graph, steps, seed, replication, **more)._replace(state=None)


def play_block(play: Callable[[Job], Replication], block: tuple[int, Sequence[Job]]) -> list[Replication]:
    """The jobs of a numbered block, one after the other; what a foreign executor carries out."""
    return [play(job) for job in block[1]]


def compiled_first(play: Callable[..., Any], jobs: Iterable[Job]) -> Iterator[Job]:
    """The jobs, each after the loop of its policy was compiled in the thread that asks for them.

    That thread may hold Python's lock of a module that is being imported; the compiler asks for the module of every kernel, and
    would wait for ever in another thread.
    """
    compiled = None
    for job in jobs:
        if job[0] is not compiled:
            compiled = job[0]
            play(job, only_compile=True)
        yield job


def run_in_threads(play: Callable[..., Any], jobs: Iterable[Any], threads: int) -> list[Any]:
    """``[play(job) for job in jobs]`` over threads; an error or Ctrl-C stops the rest promptly."""
    found: dict[int, Any] = {}
    with Threads(threads) as pool:
        one = partial(play, stopped=pool.stop.is_set)
        for ready in as_completed(
            pool, lambda numbered: one(numbered[1]), enumerate(jobs), lambda: 2 * threads
        ):
            found |= {number: future.result() for (number, _), future in ready}
    return [found[number] for number in sorted(found)]


def run_elsewhere(
    executor: Executor, play: Callable[..., Replication], jobs: Sequence[Job], horizon: int,
    advance: Callable[[int], None],
) -> list[Replication]:  # fmt: skip
    """The same through an executor, in blocks that are worth the way."""
    if not isinstance(executor, Executor):
        raise UserError(f"executor must be a concurrent.futures.Executor, got {type(executor).__name__}")
    if isinstance(executor, ThreadPoolExecutor):
        jobs = list(compiled_first(play, jobs))
    size = max(1, BLOCK_STEPS // horizon)
    found: dict[int, list[Replication]] = {}
    blocks = {first: jobs[first : first + size] for first in range(0, len(jobs), size)}
    try:
        for ready in as_completed(executor, partial(play_block, play), blocks.items()):
            for (first, block), future in ready:
                found[first] = future.result()
                advance(len(block) * horizon)
    except LOST as error:
        raise lost(executor, "start a new one and run again") from error
    return [one for first in blocks for one in found[first]]
