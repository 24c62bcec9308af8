r"""The exploration sequence :math:`\xi` of Algorithm 2, found while it is played; and two that know the graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Record, kernel, single_dispatch
from abex.kinds import Arms, Whole, agree
from abex.policies.known_graph import dominating_set, exploration_distribution, only_graph
from abex.policies.policy import Policy, Setting
from abex.samplers.interface import swap_remove
from abex.samplers.scan import pick
from abex.support.randomness import below

COVERS = ("alpha-sample", "dominating", "lp")
ORDERS = ("random", "index")


class Sequence(Record):
    """In its first sweep a random arm among those not yet shown, later the same arms again."""

    arms: Arms  # int32 (K,), xi, then -1
    revealer: Arms  # int32 (K,), place in xi of the pull that was the first to show an arm, -1 while none has
    at: Whole  # place in xi of the next pull
    length: int  # of xi so far
    shows: NDArray[np.int32]  # (K,), arms that each pull of xi is the first to show
    hidden: NDArray[np.int32]  # (K,), the arms not shown yet in its first n_hidden places
    place: NDArray[np.int32]  # (K,), where an arm stands in `hidden`, -1 once it is shown
    n_hidden: int
    refind: bool  # the graph changes: find xi again in every sweep
    by_index: bool  # meet the arms by their numbers, as Algorithm 1 does


class Distribution(Record):
    """In the place of the sequence: draws from the distribution under which the least seen arm is seen most often."""

    weights: NDArray[np.float64]  # (K,)
    shows: float  # arms that a pull shows on average


def exploration_sequence(policy: Policy[Any], setting: Setting, cover: str, order: str) -> Any:
    """What the sweeps of ABE go through: found while they do, or planned on a graph that is known."""
    if cover == "dominating":
        return sequence_over(dominating_set(only_graph(policy, setting)), only_graph(policy, setting))
    if cover == "lp":
        weights, value = exploration_distribution(only_graph(policy, setting))
        return Distribution(weights=weights, shows=setting.n_arms * value)
    changes = setting.graph is not None and policy.graph_of(setting).period != 1
    return new_sequence(setting.n_arms, changes, order == "index")


def new_sequence(n_arms: int, refind: bool, by_index: bool) -> Sequence:
    """Nothing found."""
    none, every = np.full(n_arms, -1, np.int32), np.arange(n_arms, dtype=np.int32)
    return Sequence(
        arms=none,
        revealer=none.copy(),
        shows=np.zeros(n_arms, np.int32),
        hidden=every,
        place=every.copy(),
        n_hidden=n_arms,
        refind=refind,
        by_index=by_index,
    )


def sequence_over(arms: NDArray[np.int64], graph: Any) -> Sequence:
    """A dominating set that is known before the first pull."""
    xi = new_sequence(graph.n_arms, False, False)
    for place, arm in enumerate(arms):
        shown = graph.out(int(arm))
        xi.arms[place] = arm
        xi.revealer[shown[xi.revealer[shown] < 0]] = place
    recount(xi)
    return xi


def recount(xi: Any) -> None:
    """What follows from the arms of xi and from who was the first to show whom; ValueError where that cannot be."""
    if isinstance(xi, Distribution):
        return
    shown, n_arms = xi.revealer >= 0, xi.arms.size
    length, hidden = int((xi.arms >= 0).sum()), np.flatnonzero(~shown)
    agree(bool((xi.arms[:length] >= 0).all()), "arms must come first, then -1")
    last = length - (hidden.size == 0)  # the pull that is being added, if any
    agree(xi.at <= last < n_arms and int(xi.revealer.max()) <= last, "the sweep must be on its sequence")
    xi.shows[:] = np.bincount(xi.revealer[shown], minlength=n_arms)
    agree(bool((xi.shows[:length] > 0).all()), "each arm of the sequence must be the first to show one")
    xi.length, xi.n_hidden = length, hidden.size
    xi.hidden[: hidden.size] = hidden
    xi.place[:] = -1
    xi.place[hidden] = np.arange(hidden.size)


@single_dispatch
def next_pull(xi: Any, rng: Any) -> int:
    """The next arm of xi; while it is being found, one that it does not show yet (kernel)."""
    raise TypeError


@single_dispatch
def show(xi: Any, arm: int) -> None:
    """An arm was observed because of an exploration pull (kernel)."""


@single_dispatch
def end_pull(xi: Any, arm: int) -> float:
    """An exploration pull is over: the number of arms that it paid for (kernel)."""
    raise TypeError


@single_dispatch
def spread(xi: Any, out: Any) -> None:
    """The distribution of `next_pull` (kernel)."""
    raise TypeError


@next_pull.register(Distribution)
@kernel
def drawn_pull(xi: Distribution, rng: Any) -> int:
    """A draw."""
    return pick(xi.weights, 1.0, rng)


@end_pull.register(Distribution)
@kernel
def shown_on_average(xi: Distribution, arm: int) -> float:
    """Any pull pays for what one shows on average."""
    return xi.shows


@spread.register(Distribution)
@kernel
def spread_as_drawn(xi: Distribution, out: Any) -> None:
    """Its weights."""
    for k in range(out.size):
        out[k] = xi.weights[k]


@next_pull.register(Sequence)
@kernel
def pull_of_sequence(xi: Sequence, rng: Any) -> int:
    """The arm of its place, or one that is hidden."""
    if xi.at < xi.length:
        return int(xi.arms[xi.at])
    return next_by_index(xi) if xi.by_index else int(xi.hidden[below(xi.n_hidden, rng)])


@kernel
def next_by_index(xi: Sequence) -> int:
    """The hidden arm that follows the last one of xi, 0 after K - 1; over a whole sweep K steps."""
    arm = int(xi.arms[xi.length - 1]) if xi.length > 0 else 0
    while xi.place[arm] < 0:
        arm = arm + 1 if arm + 1 < xi.place.size else 0
    return arm


@show.register(Sequence)
@kernel
def show_in_sequence(xi: Sequence, arm: int) -> None:
    """A pull that is being added shows an arm for the first time."""
    if xi.at == xi.length and xi.place[arm] >= 0:
        xi.n_hidden = swap_remove(xi.hidden, xi.place, xi.n_hidden, arm)
        xi.revealer[arm] = xi.length
        xi.shows[xi.length] += 1


@end_pull.register(Sequence)
@kernel
def end_pull_of_sequence(xi: Sequence, arm: int) -> float:
    """On to the next place; after the last one to the first, or to a new sequence."""
    shows = xi.shows[xi.at]
    if xi.at == xi.length:
        if shows == 0:
            return 0.0  # a pull that somebody else chose and that showed nothing new is no part of xi
        xi.arms[xi.length] = arm
        xi.length += 1
    xi.at += 1
    if xi.n_hidden == 0 and xi.at == xi.length:
        xi.at = 0
        if xi.refind:
            forget_sequence(xi)
    return float(shows)


@kernel
def forget_sequence(xi: Sequence) -> None:
    """All arms are hidden again."""
    for k in range(xi.arms.size):
        xi.arms[k] = -1
        xi.revealer[k] = -1
        xi.shows[k] = 0
        xi.hidden[k] = k
        xi.place[k] = k
    xi.length = 0
    xi.n_hidden = xi.arms.size


@spread.register(Sequence)
@kernel
def spread_over_sequence(xi: Sequence, out: Any) -> None:
    """The arm of its place, or all that are hidden alike."""
    known = xi.at < xi.length or xi.by_index
    for k in range(out.size):
        out[k] = 1.0 / xi.n_hidden if not known and xi.place[k] >= 0 else 0.0
    if known:
        out[xi.arms[xi.at] if xi.at < xi.length else next_by_index(xi)] = 1.0
