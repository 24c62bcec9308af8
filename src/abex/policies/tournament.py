r"""The exact argmax of indices that only grow with time, without computing all of them: a kinetic tournament.

UCB1, UCB-V, KL-UCB and MOSS give arm k the index :math:`f_k(\ell)`, where the *level* :math:`\ell` grows with time
(such as :math:`\sqrt{a\ln t}`) and :math:`f_k` changes only when k is observed. Leaves of a binary tree hold one to four
arms, which play all against all. Each node knows the winner of its arms and a level up to which that is certain: the loser b
of a match against a at level :math:`\ell_0` cannot win before :math:`f_b` has reached what :math:`f_a` was already then, that
is before :math:`f_b^{-1}(f_a(\ell_0))`, because :math:`f_a` does not fall. All inverses have a closed form; UCB1's indices are
lines in the level, and where two lines cross is known exactly.

**It is exact.** A decision first replays the matches whose certainty has ended (a node knows the earliest of its
subtree), an observation those of its arm; every other match still has the winner it had, so the winner at the root has
the largest index. Ties are broken uniformly, as the plain loop does: a node counts the arms that share its largest index.

**Cost.** An observation replays :math:`\log_2 K` matches, a decision few. The closer a match the sooner it is replayed, but
close matches are few: half of all matches are between arms of a leaf only. 24 bytes a node, two nodes a leaf.
Arms never observed come first, in random order; the tree is first looked at when there are none left.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kernels import kernel, rare_kernel
from abex.policies.indices import divergence, kl_upper_bound, moss_bound, ucb1_bound, variance_bound
from abex.policies.schema import (
    MOST_COUNT,
    Count,
    Fixed,
    MeanOf,
    Permutation,
    Rebuilt,
    Scratch,
    Within,
    agree,
    positions,
)
from abex.randomness import below

WINNER, TIES, UNTIL = 0, 1, 2  # columns of a node: an arm, how many share its index, the level of certainty
UCB, VARIANCE, DIVERGENCE, MINIMAX = 0, 1, 2, 3  # the rules
TOGETHER = {
    UCB: 4,
    VARIANCE: 4,
    DIVERGENCE: 1,
    MINIMAX: 2,
}  # rule -> arms of a leaf, which play all against all
NEVER = 1e300
SAFETY = 1e-12  # by so much rounding, and Newton's method, may err


class IndexState(NamedTuple):
    """What was observed, the tree of bounds, the arms never observed, and the rule with its two parameters."""

    pulls: Annotated[NDArray[np.float64], Count()]  # (K,)
    means: Annotated[NDArray[np.float64], MeanOf("pulls")]  # (K,), +inf before the first observation
    narrow: Annotated[NDArray[np.float64], Rebuilt()]  # (K,), 1/sqrt(pulls)
    spread: Annotated[NDArray[np.float64], Within(0.0, MOST_COUNT)]  # (K,) for UCB-V: sum of (x - mean)^2
    nodes: Annotated[
        NDArray[np.float64], Rebuilt()
    ]  # (2P, 3), P a power of two; 1 is the root, P + k // together the leaf of k
    order: Annotated[NDArray[np.int32], Permutation()]  # (K,), first the arms never observed
    place: Annotated[NDArray[np.int32], Rebuilt()]  # (K,), where an arm stands in it
    fresh: Annotated[NDArray[np.int64], Rebuilt()]  # (1,), how many were never observed
    now: Annotated[
        NDArray[np.float64], Rebuilt()
    ]  # (1,), the level of the last decision that looked at the tree
    stack: Annotated[NDArray[np.int64], Scratch()]
    rule: Annotated[
        tuple[float, ...], Fixed()
    ]  # its length is the rule: known when compiling, so that the other rules drop out
    first: float
    second: float
    together: int  # arms of a leaf

    def restored(self, fresh: IndexState) -> IndexState:
        """The first decision plays all matches: the largest index, and who shares it, is the same in any tree."""
        unseen = self.pulls == 0.0
        count = int(np.count_nonzero(unseen))
        agree(bool(unseen[self.order[:count]].all()), "order must begin with the arms never observed")
        place = positions(self.order, self.order.size, self.place, "order")
        narrow = 1.0 / np.sqrt(np.maximum(self.pulls, 1.0))
        return self._replace(narrow=narrow, place=place, fresh=np.array([count]))


def new_index_state(n_arms: int, rule: int, first: float, second: float = 0.0) -> IndexState:
    """Nothing observed."""
    together = TOGETHER[rule]
    size = 1
    while size * together < n_arms:
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
        now=np.full(1, NEVER),
        stack=np.zeros(256, np.int64),
        rule=(0.0,) * rule,
        first=float(first),
        second=float(second),
        together=together,
    )


@kernel
def level_at(state: Any, t: float) -> float:
    """What the indices of all arms have in common at step t."""
    if len(state.rule) == UCB:
        return math.sqrt(state.first * math.log(t))
    if len(state.rule) == VARIANCE:
        return state.first * math.log(t)  # type: ignore[no-any-return]
    if len(state.rule) == DIVERGENCE:
        level = math.log(t)
        if t >= 3.0:
            level += state.first * math.log(level)
        return max(level, 0.0)
    return (t if math.isnan(state.first) else state.first) / state.means.size  # type: ignore[no-any-return]


@kernel
def index_of(state: Any, arm: int, level: float) -> float:
    """The index of an observed arm."""
    mean, pulls = state.means[arm], state.pulls[arm]
    if len(state.rule) == UCB:
        return ucb1_bound(mean, state.narrow[arm], level)
    if len(state.rule) == VARIANCE:
        return variance_bound(mean, pulls, state.spread[arm], level, state.second)
    if len(state.rule) == DIVERGENCE:
        return kl_upper_bound(mean, level / pulls)
    return moss_bound(mean, pulls, level, state.second)


@kernel
def level_of_reaching(state: Any, arm: int, value: float) -> float:
    """The level at which the index of an arm reaches a value, for rules other than UCB1's."""
    pulls, above = state.pulls[arm], value - state.means[arm]
    level = 0.0
    if above <= 0.0:
        return level
    if len(state.rule) == VARIANCE:  # a quadratic equation in the root of the level
        line = math.sqrt(2.0 * state.spread[arm]) / pulls
        root = line + math.sqrt(line * line + 12.0 * state.second * above / pulls)
        level = 4.0 * above * above / (root * root) if root > 0.0 else NEVER
    elif len(state.rule) == DIVERGENCE:
        level = pulls * divergence(state.means[arm], value) if value < 1.0 else NEVER
    else:
        level = pulls * math.exp(min(pulls * above * above / state.second, 600.0))
    return min(level, NEVER)


@kernel
def level_of_rest(state: Any, arm: int) -> float:
    """The level up to which the index of an arm does not move: MOSS gives its mean alone beyond a fair share of the steps."""
    return float(state.pulls[arm]) if len(state.rule) == MINIMAX else 0.0


@kernel
def level_of_crossing(state: Any, champion: int, loser: int) -> float:
    """UCB1's indices are lines in the level: where the loser's crosses the champion's, if it is the steeper one."""
    steeper = state.narrow[loser] - state.narrow[champion]
    gap = state.means[champion] - state.means[loser] - SAFETY
    gap = (
        gap if steeper > 0.0 else 1.0
    )  # which of two is the steeper is chance: a choice before the division is no branch
    return float(min(gap / max(steeper, 1.0 / NEVER), NEVER))


@kernel
def alike(state: Any, one: int, two: int) -> bool:
    """Whether two arms have seen the same, in any order (which rounds differently): their indices stay equal."""
    if abs(state.means[one] - state.means[two]) > SAFETY:
        return False
    if len(state.rule) == DIVERGENCE and state.means[one] >= 1.0 and state.means[two] >= 1.0:
        return True
    if len(state.rule) == VARIANCE:
        apart = math.sqrt(state.spread[one]) - math.sqrt(state.spread[two])
        if abs(apart) > SAFETY * state.pulls[one]:
            return False
    return bool(state.pulls[one] == state.pulls[two])


@kernel
def tied(state: Any, one: int, first: float, two: int, second: float) -> bool:
    """Whether two arms share an index."""
    return bool(first == second or (abs(first - second) < 1e-9 and alike(state, one, two)))


@kernel
def match(state: Any, champion: int, first: float, loser: int, second: float) -> tuple[bool, float]:
    """Of two arms and their indices, first >= second: whether they tie, and the level up to which that is certain."""
    level = state.now[0]
    if tied(state, champion, first, loser, second):
        if alike(state, champion, loser):
            return True, NEVER
        return True, max(level, min(level_of_rest(state, champion), level_of_rest(state, loser)))
    if len(state.rule) == UCB:
        certain = level_of_crossing(state, champion, loser)
    else:
        certain = max(level_of_reaching(state, loser, first - SAFETY), level_of_rest(state, loser))
    return False, max(level, certain * (1.0 - SAFETY))


@kernel
def play_block(state: Any, leaf: int) -> tuple[int, float, float, float]:
    """All arms of a leaf against all at the present level: the winner, its index, how many share it, certain until."""
    nodes, level = state.nodes, state.now[0]
    begin = (leaf - nodes.shape[0] // 2) * state.together
    end = min(begin + state.together, state.means.size)
    if begin >= end:
        return -1, -math.inf, 0.0, NEVER  # a leaf that fills the tree up
    best, top = begin, -math.inf
    for k in range(begin, end):
        index = index_of(state, k, level)
        if index > top:
            best, top = k, index
    ties, until = 1.0, NEVER
    for k in range(begin, end):
        if k != best:
            tie, certain = match(state, best, top, k, index_of(state, k, level))
            ties += 1.0 if tie else 0.0
            until = min(until, certain)
    return best, top, ties, until


@kernel
def play_sibling(
    state: Any, child: int, best: int, top: float, ties: float, until: float
) -> tuple[int, float, float, float]:
    """A child's winner, with its index, ties and certainty, meets that of its sibling; returns those of the parent."""
    nodes, other = state.nodes, child ^ 1
    others = nodes[other, TIES]
    until = min(until, nodes[other, UNTIL])
    if others == 0.0:
        return best, top, ties, until
    rival = int(nodes[other, WINNER])
    index = index_of(state, rival, state.now[0])
    ahead = top >= index
    if ahead:
        champion, first = best, top
        tie, certain = match(state, best, top, rival, index)
    else:
        champion, first = rival, index
        tie, certain = match(state, rival, index, best, top)
    if tie:
        ties += others
    else:
        ties = ties if ahead else others
    return champion, first, ties, min(until, certain)


@kernel
def write_node(state: Any, node: int, best: int, ties: float, until: float) -> bool:
    """Note the outcome of a match; whether it is news."""
    nodes = state.nodes
    changed = (nodes[node, WINNER] != best) | (nodes[node, TIES] != ties) | (nodes[node, UNTIL] != until)
    nodes[node, WINNER], nodes[node, TIES], nodes[node, UNTIL] = best, ties, until
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
            left = -2 * node
            arm = int(nodes[left, WINNER])
            index = index_of(state, arm, level) if arm >= 0 else -math.inf
            arm, _, ties, until = play_sibling(state, left, arm, index, nodes[left, TIES], nodes[left, UNTIL])
            write_node(state, -node, arm, ties, until)
        elif backwards or nodes[node, UNTIL] < level:
            if node >= size:
                arm, _, ties, until = play_block(state, node)
                write_node(state, node, arm, ties, until)
            else:
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
    return one_of_ties(state, level, rng)


@rare_kernel
def one_of_ties(state: Any, level: float, rng: Any) -> int:
    """One of the arms that share the largest index, by its number among them; no branch depends on chance."""
    nodes = state.nodes
    node, ties = 1, nodes[1, TIES]
    rest = float(below(int(ties), rng))
    while 2 * node < nodes.shape[0]:
        left, right = nodes[2 * node, TIES], nodes[2 * node + 1, TIES]
        won = nodes[2 * node, WINNER] == nodes[node, WINNER]
        share = left if left + right == ties or won else 0.0  # of them on the left
        goes_right = rest >= share
        rest -= share if goes_right else 0.0
        ties = right if goes_right else left
        node = 2 * node + int(goes_right)
    best = int(nodes[node, WINNER])
    top = index_of(state, best, level)
    begin = best // state.together * state.together
    for k in range(begin, min(begin + state.together, state.means.size)):
        index = index_of(state, k, level)
        if tied(state, best, top, k, index):
            if rest == 0.0:
                return k
            rest -= 1.0
    return best


@kernel
def learn_index(state: Any, seen: int) -> None:
    """An arm was observed: replay its matches."""
    nodes = state.nodes
    if state.pulls[seen] == 1.0:  # the first time
        last = state.fresh[0] - 1
        moved, where = state.order[last], state.place[seen]
        state.order[where], state.place[moved] = moved, where
        state.order[last], state.place[seen] = seen, last
        state.fresh[0] = last
        state.now[0] = NEVER
    if state.now[0] == NEVER:  # no decision has needed the tree yet: the first one plays all matches
        return
    node = nodes.shape[0] // 2 + seen // state.together
    arm, index, ties, until = play_block(state, node)
    while write_node(state, node, arm, ties, until) or arm == seen:  # else nothing changes further up
        if node == 1:
            return
        arm, index, ties, until = play_sibling(state, node, arm, index, ties, until)
        node //= 2


def resume_index_state(fresh: IndexState) -> IndexState:
    """A state whose observations were filled in by hand: the first decision plays all matches."""
    seen = fresh.pulls > 0.0
    order = np.concatenate([np.flatnonzero(~seen), np.flatnonzero(seen)]).astype(np.int32)
    fresh.order[:] = order
    fresh.place[order] = np.arange(seen.size, dtype=np.int32)
    fresh.fresh[0] = np.count_nonzero(~seen)
    return fresh
