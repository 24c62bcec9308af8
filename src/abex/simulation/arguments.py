"""What a person passes to `abex.simulate`, checked before anything is played."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.environments.environment import Environment, as_environment
from abex.graphs.graph import as_graph
from abex.policies.naming import as_policy
from abex.policies.policy import Policy
from abex.simulation.delays import Conversions, Delay, PerArm, as_delay, delay_table
from abex.support.errors import UserError, shown, whole_number
from abex.support.parameters import MOST_ARMS

MAX_WORKERS = 10_000
MAX_HORIZON = 10**11  # at 10 ns a step that is a quarter of an hour


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
    as_environment(environment)
    whole_number("horizon", horizon, least=1, most=MAX_HORIZON)
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
            raise UserError(f"{policy} needs to know the feedback graph: pass graph=Graph.from_edges(...)")
        tuned = getattr(policy, "horizon", None)
        if isinstance(tuned, int) and horizon > tuned:
            warnings.warn(
                f"{policy} is tuned for {tuned:,} steps and plays {horizon:,}: beyond its horizon its bound on the "
                "regret does not hold; leave its horizon out to tune it for the run",
                stacklevel=3,
            )


def as_late_rewards(delay: Any, batch: Any, environment: Environment) -> tuple[Delay | None, int]:
    """What a person passes as ``delay`` and ``batch``, checked for the arms of the environment."""
    batch = whole_number("batch", batch, least=1, most=MAX_HORIZON)
    if delay is None:
        return None, batch
    value = as_delay(delay)
    if isinstance(value, PerArm | Conversions) and isinstance(environment, Environment):
        delay_table(value, np.uint64(0), environment.n_arms)
    return value, batch


def workers_or_all(workers: int | None) -> int:
    """The number of threads to use; None means all cores this process may use."""
    if workers is not None:
        return whole_number("workers", workers, least=1, most=MAX_WORKERS)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
