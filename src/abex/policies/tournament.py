r"""The exact argmax of indices that only grow with time, without computing all of them: a kinetic tournament.

UCB1, UCB-V, KL-UCB and MOSS give arm k the index :math:`f_k(\ell)`, where the *level* :math:`\ell` grows with time
(such as :math:`\sqrt{a\ln t}`) and :math:`f_k` changes only when k is observed. Each node of a binary tree knows
the winner of its arms and a level up to which that is certain: the loser b of a match against a at level
:math:`\ell_0` cannot win before :math:`f_b` has reached what :math:`f_a` was already then, that is before
:math:`f_b^{-1}(f_a(\ell_0))`, because :math:`f_a` does not fall. All four inverses have a closed form; UCB1's indices are
lines in the level, and where two lines cross is known exactly.

**It is exact.** A decision first replays the matches whose certainty has ended (a node knows the earliest of its
subtree), an observation those of its arm; every other match still has the winner it had, so the winner at the root has
the largest index. Ties are broken uniformly, as the plain loop does: a node counts the arms that share its largest index.

**Cost.** An observation replays :math:`\log_2 K` matches, a decision few. The closer a match the sooner it is replayed, but
close matches are few: half of all matches are between two arms only. 24 bytes a node, two nodes an arm.
Arms never observed come first, in random order.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kernels import kernel, rare_kernel
from abex.policies.indices import divergence, kl_upper_bound, moss_bound, ucb1_bound, variance_bound
from abex.randomness import below

WINNER, TIES, UNTIL = 0, 1, 2  # columns of a node: an arm, how many share its index, the level of certainty
UCB, VARIANCE, DIVERGENCE, MINIMAX = 0, 1, 2, 3  # the rules
NEVER = 1e300
SAFETY = 1e-12  # by so much rounding, and Newton's method, may err


class IndexState(NamedTuple):
    """What was observed, the tree of bounds, the arms never observed, and the rule with its two parameters."""

    pulls: NDArray[np.float64]  # (K,)
    means: NDArray[np.float64]  # (K,), +inf before the first observation
    narrow: NDArray[np.float64]  # (K,), 1/sqrt(pulls)
    spread: NDArray[np.float64]  # (K,) for UCB-V: sum of (x - mean)^2
    nodes: NDArray[np.float64]  # (2P, 3), P >= K a power of two; the root is node 1, arm k is node P + k
    order: NDArray[np.int32]  # (K,), first the arms never observed
    place: NDArray[np.int32]  # (K,), where an arm stands in it
    fresh: NDArray[np.int64]  # (1,), how many were never observed
    now: NDArray[np.float64]  # (1,), the level of the last decision
    stack: NDArray[np.int64]  # scratch
    rule: int
    first: float
    second: float


def new_index_state(n_arms: int, rule: int, first: float, second: float = 0.0) -> IndexState:
    """Nothing observed."""
    size = 1
    while size < n_arms:
        size *= 2
    nodes = np.tile([-1.0, 0.0, NEVER], (2 * size, 1))
    return IndexState(
        pulls=np.zeros(n_arms),
        means=np.full(n_arms, np.inf),
        narrow=np.zeros(n_arms),
        spread=np.zeros(n_arms if rule == VARIANCE else 1),
        nodes=nodes,
        order=np.arange(n_arms, dtype=np.int32),
        place=np.arange(n_arms, dtype=np.int32),
        fresh=np.array([n_arms]),
        now=np.zeros(1),
        stack=np.zeros(256, np.int64),
        rule=rule,
        first=float(first),
        second=float(second),
    )


@kernel
def level_at(state: Any, t: float) -> float:
    """What the indices of all arms have in common at step t."""
    if state.rule == UCB:
        return math.sqrt(state.first * math.log(t))
    if state.rule == VARIANCE:
        return state.first * math.log(t)  # type: ignore[no-any-return]
    if state.rule == DIVERGENCE:
        level = math.log(t)
        if t >= 3.0:
            level += state.first * math.log(level)
        return max(level, 0.0)
    return (t if math.isnan(state.first) else state.first) / state.means.size  # type: ignore[no-any-return]


@kernel
def index_of(state: Any, arm: int, level: float) -> float:
    """The index of an observed arm."""
    mean, pulls = state.means[arm], state.pulls[arm]
    if state.rule == UCB:
        return ucb1_bound(mean, state.narrow[arm], level)
    if state.rule == VARIANCE:
        return variance_bound(mean, pulls, state.spread[arm], level, state.second)
    if state.rule == DIVERGENCE:
        return kl_upper_bound(mean, level / pulls)
    return moss_bound(mean, pulls, level, state.second)


@kernel
def level_of_reaching(state: Any, arm: int, value: float) -> float:
    """The level at which the index of an arm reaches a value."""
    pulls, above = state.pulls[arm], value - state.means[arm]
    level = 0.0
    if above <= 0.0:
        return level
    if state.rule == UCB:
        level = above / state.narrow[arm]
    elif state.rule == VARIANCE:  # a quadratic equation in the root of the level
        line = math.sqrt(2.0 * state.spread[arm]) / pulls
        root = line + math.sqrt(line * line + 12.0 * state.second * above / pulls)
        level = 4.0 * above * above / (root * root) if root > 0.0 else NEVER
    elif state.rule == DIVERGENCE:
        level = pulls * divergence(state.means[arm], value) if value < 1.0 else NEVER
    else:
        level = pulls * math.exp(min(pulls * above * above / state.second, 600.0))
    return min(level, NEVER)


@kernel
def level_of_rest(state: Any, arm: int) -> float:
    """The level up to which the index of an arm does not move: MOSS gives its mean alone beyond a fair share of the steps."""
    return float(state.pulls[arm]) if state.rule == MINIMAX else 0.0


@kernel
def level_of_crossing(state: Any, champion: int, loser: int) -> float:
    """UCB1's indices are lines in the level: where the loser's crosses the champion's, if it is the steeper one."""
    steeper = state.narrow[loser] - state.narrow[champion]
    if steeper <= 0.0:
        return NEVER
    return float(min((state.means[champion] - state.means[loser] - SAFETY) / steeper, NEVER))


@kernel
def alike(state: Any, one: int, two: int) -> bool:
    """Whether two arms have seen the same, in any order (which rounds differently): their indices stay equal."""
    if abs(state.means[one] - state.means[two]) > SAFETY:
        return False
    if state.rule == DIVERGENCE and state.means[one] >= 1.0 and state.means[two] >= 1.0:
        return True
    if state.rule == VARIANCE and abs(state.spread[one] - state.spread[two]) > SAFETY * state.pulls[one]:
        return False
    return bool(state.pulls[one] == state.pulls[two])


@kernel
def replay(state: Any, node: int) -> bool:
    """Play the match of a node at the present level; whether anything changed."""
    nodes, level = state.nodes, state.now[0]
    left, right = 2 * node, 2 * node + 1
    until = min(nodes[left, UNTIL], nodes[right, UNTIL])
    winner = left
    if nodes[right, TIES] == 0.0 or nodes[left, TIES] == 0.0:
        winner = left if nodes[right, TIES] == 0.0 else right
        ties = nodes[winner, TIES]
    else:
        one, two = int(nodes[left, WINNER]), int(nodes[right, WINNER])
        first, second = index_of(state, one, level), index_of(state, two, level)
        same = abs(first - second) < 1e-9 and alike(state, one, two)
        if same or first == second:
            ties = nodes[left, TIES] + nodes[right, TIES]
            if not same:
                until = min(until, max(level, min(level_of_rest(state, one), level_of_rest(state, two))))
        else:
            champion, loser = one, two
            if second > first:
                winner, champion, loser, first = right, two, one, second
            ties = nodes[winner, TIES]
            if state.rule == UCB:
                certain = level_of_crossing(state, champion, loser)
            else:
                certain = max(level_of_reaching(state, loser, first - SAFETY), level_of_rest(state, loser))
            until = min(until, max(level, certain * (1.0 - SAFETY)))
    arm = nodes[winner, WINNER]
    changed = nodes[node, WINNER] != arm or nodes[node, TIES] != ties or nodes[node, UNTIL] != until
    nodes[node, WINNER], nodes[node, TIES], nodes[node, UNTIL] = arm, ties, until
    return bool(changed)


@rare_kernel
def catch_up(state: Any, level: float) -> None:
    """Replay all matches that are not certain at this level."""
    nodes, stack = state.nodes, state.stack
    size = nodes.shape[0] // 2
    backwards = level < state.now[0]  # what was certain later need not be so earlier
    state.now[0] = level
    stack[0], depth = 1, 1
    while depth > 0:
        depth -= 1
        node = stack[depth]
        if node < 0:
            replay(state, -node)
        elif node < size and (backwards or nodes[node, UNTIL] < level):
            stack[depth], stack[depth + 1], stack[depth + 2] = -node, 2 * node, 2 * node + 1
            depth += 3


@kernel
def select_index(state: Any, t: int, rng: Any) -> int:
    """The arm with the largest index; ties are broken uniformly."""
    if state.fresh[0] > 0:
        return int(state.order[below(state.fresh[0], rng)])
    nodes = state.nodes
    level = level_at(state, float(t))
    if nodes[1, UNTIL] < level or level < state.now[0]:
        catch_up(state, level)
    if nodes[1, TIES] == 1.0:
        return int(nodes[1, WINNER])
    node = 1
    while 2 * node < nodes.shape[0]:
        ties, left = nodes[node, TIES], nodes[2 * node, TIES]
        if left + nodes[2 * node + 1, TIES] == ties:
            node = 2 * node if rng.random() * ties < left else 2 * node + 1
        else:
            node = 2 * node if nodes[2 * node, WINNER] == nodes[node, WINNER] else 2 * node + 1
    return int(node - nodes.shape[0] // 2)


@kernel
def learn_index(state: Any, seen: int) -> None:
    """An arm was observed: replay its matches."""
    nodes = state.nodes
    leaf = nodes.shape[0] // 2 + seen
    if state.pulls[seen] == 1.0:  # the first time
        last = state.fresh[0] - 1
        moved, where = state.order[last], state.place[seen]
        state.order[where], state.place[moved] = moved, where
        state.order[last], state.place[seen] = seen, last
        state.fresh[0] = last
        nodes[leaf, WINNER], nodes[leaf, TIES] = seen, 1.0
    node = leaf // 2
    while node > 0:
        if not replay(state, node) and nodes[node, WINNER] != seen:
            return  # and nothing changes further up
        node //= 2


def resume_index_state(fresh: IndexState) -> IndexState:
    """A state whose observations were filled in by hand, its tree made to fit: the first decision plays all matches."""
    seen = fresh.pulls > 0.0
    size = fresh.nodes.shape[0] // 2
    leaves = fresh.nodes[size : size + seen.size]
    leaves[seen, WINNER], leaves[seen, TIES] = np.flatnonzero(seen), 1.0
    fresh.now[0] = NEVER
    order = np.concatenate([np.flatnonzero(~seen), np.flatnonzero(seen)]).astype(np.int32)
    fresh.order[:] = order
    fresh.place[order] = np.arange(seen.size, dtype=np.int32)
    fresh.fresh[0] = np.count_nonzero(~seen)
    return fresh
