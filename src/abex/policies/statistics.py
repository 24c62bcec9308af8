"""How an observation enters what a policy knows, with any weight; how it leaves; how all that is known fades.

A plain policy learns every observation once and for ever. Policies around it that forget (`Discounted`, `Windowed`,
`Restarting`) let it read the same fields, with other numbers in them: counts that are sums of weights, means that are weighted.
They do so by the kernels below, which dispatch on the class of the policy's state; a policy whose state they serve says
``forgettable = True``. There is one place for each kind of statistics, and none for each policy.
"""

from __future__ import annotations

from typing import Any

from abex.kernels import kernel, single_dispatch
from abex.samplers import changed
from abex.samplers.pace import set_pace

Blank = tuple[
    float, float
]  # what stands for an arm of which nothing is known: its mean, or both parameters of its prior
LEAST_WEIGHT = 1e-280  # of what was observed ages ago: still more than nothing


def blank_of(state: Any) -> Blank:
    """What a fresh state knows of an arm: the initial mean, or both parameters of the prior."""
    if hasattr(state, "successes"):
        return float(state.successes[0]), float(state.failures[0])
    return float(state.means[0]), 0.0


@single_dispatch
def weigh_in(state: Any, blank: Blank, seen: int, reward: float, weight: float) -> None:
    """Arm ``seen`` was observed to pay ``reward``, with this weight; of weight -1, an observation leaves (kernel)."""
    weigh_mean(state, blank, seen, reward, weight)
    changed(state.sampler, state, seen)


@single_dispatch
def fade(state: Any, blank: Blank, factor: float) -> None:
    """Multiply the weights of all observations, of every arm; samplers are not told (kernel)."""
    fade_counts(state, factor)


@single_dispatch
def forget(state: Any, blank: Blank, arm: int) -> None:
    """Nothing is known of an arm any more (kernel)."""
    weigh_in(state, blank, arm, 0.0, -state.observations[arm])


@single_dispatch
def keep_pace(state: Any, step: int, factor: float, root: float) -> None:
    """All counts are ``factor``, the square of ``root``, times too large at this step: samplers are told (kernel)."""


@kernel
def pace_sampler(state: Any, step: int, factor: float, root: float) -> None:
    """`keep_pace` of states whose sampler is to know."""
    set_pace(state.sampler, step, factor, root)


@single_dispatch
def entering(state: Any, reward: float, rng: Any) -> float:
    """The reward as the policy counts it: Thompson sampling tosses a coin for a fraction (kernel)."""
    return reward


@single_dispatch
def noted(state: Any, arm: int, seen: int) -> None:
    """What the policy does at an observation beside learning: ABE's schedule advances (kernel)."""


@kernel
def weigh_mean(state: Any, blank: Blank, seen: int, reward: float, weight: float) -> None:
    """The weighted mean; `learn_mean` is the case of weight 1. An arm without observations is as it was at the start."""
    before = state.observations[seen]
    count = before + weight
    if count <= 0.0:
        state.observations[seen] = 0.0
        state.means[seen] = blank[0]
        return
    state.observations[seen] = count
    if before == 0.0:
        state.means[seen] = reward
        return
    mean = state.means[seen] + (reward - state.means[seen]) * weight / count
    if weight < 0.0:  # what leaves may have been rounded otherwise when it came
        mean = min(max(mean, 0.0), 1.0)
    state.means[seen] = mean


@kernel
def fade_counts(state: Any, factor: float) -> None:
    """Means stay, counts shrink."""
    for k in range(state.observations.size):
        if state.observations[k] > 0.0:
            state.observations[k] = max(state.observations[k] * factor, LEAST_WEIGHT)
