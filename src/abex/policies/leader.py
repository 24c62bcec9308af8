"""The arm with the largest mean, without looking at every arm every time.

A record with ``means``, ``lead`` = [leader or -1] and ``runner_up`` = [an upper bound on all other means] remembers the
leader while it is certain: an arm is scanned for again only when the leader has fallen to the bound or is tied.
"""

from __future__ import annotations

from typing import Any

from abex.kernels import kernel
from abex.policies.means import learn_mean
from abex.randomness import argmax


@kernel
def leader(state: Any, rng: Any) -> int:
    """The arm with the largest mean; ties are broken uniformly at random, anew at each call."""
    if state.lead[0] >= 0:
        return int(state.lead[0])
    best = argmax(state.means, rng)
    second = -1.0
    for k in range(state.means.size):
        if k != best and state.means[k] > second:
            second = state.means[k]
    if state.means[best] > second:
        state.lead[0] = best
        state.runner_up[0] = second
    return best


@kernel
def share_among_leaders(means: Any, chance: float, out: Any) -> None:
    """Add ``chance``, in equal parts, to the arms with the largest mean."""
    top = means[0]
    leaders = 0
    for k in range(out.size):
        if means[k] > top:
            top = means[k]
            leaders = 0
        if means[k] == top:
            leaders += 1
    for k in range(out.size):
        if means[k] == top:
            out[k] += chance / leaders


@kernel
def learn_leader(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
    """Learn the mean and whether the leader still leads."""
    learn_mean(state, t, arm, seen, reward, rng)
    if state.lead[0] < 0:
        return
    if seen != state.lead[0] and state.means[seen] > state.runner_up[0]:
        state.runner_up[0] = state.means[seen]
    if state.means[state.lead[0]] <= state.runner_up[0]:
        state.lead[0] = -1
