"""`simulate`: every policy and replication over threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from abex.environments.environment import Environment
from abex.policies.policy import Policy
from abex.simulation import arguments
from abex.simulation.curves import Curves
from abex.simulation.loop import short
from abex.simulation.replication import Replication, play_replication
from abex.support.errors import whole_number
from abex.support.progress import Progress
from abex.support.reading import check_size
from abex.support.threads import as_completed


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
                delay=late,
                batch=batch,
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


def run_in_threads(
    one: Callable[[Any], Any], jobs: Sequence[Any], threads: int, stop: threading.Event
) -> list[Any]:
    """``[one(job) for job in jobs]`` over threads; an error or Ctrl-C stops the rest promptly."""
    if threads == 1:
        return [one(job) for job in jobs]
    numbered = as_completed(lambda job: one(job[1]), enumerate(jobs), threads, stop)
    found = {index: result for ready in numbered for (index, _), result in ready}
    return [found[index] for index in range(len(jobs))]
