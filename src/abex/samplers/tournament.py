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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Record, kernel, rare_kernel
from abex.samplers.interface import (
    NEVER,
    SAFETY,
    changed,
    distribution,
    draw,
    flat_until,
    index_of,
    level_of,
    same_forever,
    unseen_first,
    winner_certain_until,
)
from abex.support.randomness import below

WINNER, TIES, UNTIL = 0, 1, 2  # columns of a node: an arm, how many share its index, the level of certainty


class Tournament(Record):
    """The tree of matches, and the arms never observed."""

    nodes: NDArray[np.float64]  # (2P, 3), P a power of two; 1 is the root, P + k // leaf_size the leaf of k
    order: NDArray[np.int32]  # (K,), first the arms never observed
    place: NDArray[np.int32]  # (K,), where an arm stands in it
    stack: NDArray[np.int64]
    fresh: int  # how many arms were never observed
    now: float  # the level of the last decision that looked at the tree
    leaf_size: int  # arms of a leaf, which play all against all


def new_tournament(observations: NDArray[np.float64], leaf_size: int) -> Tournament:
    """The tournament of arms observed so often; the first decision plays all matches."""
    size = 1
    while size * leaf_size < observations.size:
        size *= 2
    order, place, fresh = unseen_first(observations)
    return Tournament(
        nodes=np.tile([-1.0, 0.0, NEVER], (2 * size, 1)),
        order=order,
        place=place,
        stack=np.zeros(256, np.int64),
        fresh=fresh,
        now=NEVER,
        leaf_size=leaf_size,
    )


@kernel
def alike(state: Any, one: int, two: int) -> bool:
    """Whether two arms have seen the same, in any order (which rounds differently): their indices stay equal."""
    if abs(state.means[one] - state.means[two]) > SAFETY:
        return False
    return same_forever(state, one, two)


@kernel
def tied(state: Any, one: int, first: float, two: int, second: float) -> bool:
    """Whether two arms share an index."""
    return bool(first == second or (abs(first - second) < 1e-9 and alike(state, one, two)))


@kernel
def match(
    tree: Tournament, state: Any, champion: int, first: float, loser: int, second: float
) -> tuple[bool, float]:
    """Of two arms and their indices, first >= second: whether they tie, and the level up to which that is certain."""
    level = tree.now
    if tied(state, champion, first, loser, second):
        if alike(state, champion, loser):
            return True, NEVER
        return True, max(level, min(flat_until(state, champion), flat_until(state, loser)))
    certain = winner_certain_until(state, champion, first, loser)
    return False, max(level, certain * (1.0 - SAFETY))


@kernel
def play_block(tree: Tournament, state: Any, leaf: int) -> tuple[int, float, float, float]:
    """All arms of a leaf against all at the present level: the winner, its index, how many share it, certain until."""
    nodes, level = tree.nodes, tree.now
    begin = (leaf - nodes.shape[0] // 2) * tree.leaf_size
    end = min(begin + tree.leaf_size, state.means.size)
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
            tie, certain = match(tree, state, best, top, k, index_of(state, k, level))
            ties += 1.0 if tie else 0.0
            until = min(until, certain)
    return best, top, ties, until


@kernel
def play_sibling(
    tree: Tournament, state: Any, child: int, best: int, top: float, ties: float, until: float
) -> tuple[int, float, float, float]:
    """A child's winner, with its index, ties and certainty, meets that of its sibling; returns those of the parent."""
    nodes, other = tree.nodes, child ^ 1
    others = nodes[other, TIES]
    until = min(until, nodes[other, UNTIL])
    if others == 0.0:
        return best, top, ties, until
    rival = int(nodes[other, WINNER])
    index = index_of(state, rival, tree.now)
    ahead = top >= index
    if ahead:
        champion, first = best, top
        tie, certain = match(tree, state, best, top, rival, index)
    else:
        champion, first = rival, index
        tie, certain = match(tree, state, rival, index, best, top)
    if tie:
        ties += others
    else:
        ties = ties if ahead else others
    return champion, first, ties, min(until, certain)


@kernel
def write_node(tree: Tournament, node: int, best: int, ties: float, until: float) -> bool:
    """Note the outcome of a match; whether it is news."""
    nodes = tree.nodes
    news = (nodes[node, WINNER] != best) | (nodes[node, TIES] != ties) | (nodes[node, UNTIL] != until)
    nodes[node, WINNER], nodes[node, TIES], nodes[node, UNTIL] = best, ties, until
    return bool(news)


@rare_kernel
def catch_up(tree: Tournament, state: Any, level: float) -> None:
    """Replay all matches that are not certain at this level."""
    nodes, stack = tree.nodes, tree.stack
    size = nodes.shape[0] // 2
    backwards = level < tree.now  # what was certain later need not be so earlier
    tree.now = level
    stack[0], depth = 1, 1
    while depth > 0:
        depth -= 1
        node = stack[depth]
        if node < 0:
            left = -2 * node
            arm = int(nodes[left, WINNER])
            index = index_of(state, arm, level) if arm >= 0 else -math.inf
            arm, _, ties, until = play_sibling(
                tree, state, left, arm, index, nodes[left, TIES], nodes[left, UNTIL]
            )
            write_node(tree, -node, arm, ties, until)
        elif backwards or nodes[node, UNTIL] < level:
            if node >= size:
                arm, _, ties, until = play_block(tree, state, node)
                write_node(tree, node, arm, ties, until)
            else:
                stack[depth], stack[depth + 1], stack[depth + 2] = -node, 2 * node, 2 * node + 1
                depth += 3


@draw.register(Tournament)
@kernel
def largest_of_tournament(tree: Tournament, state: Any, t: int, rng: Any) -> int:
    """The arm with the largest index; ties are broken uniformly."""
    if tree.fresh > 0:
        return int(tree.order[below(tree.fresh, rng)])
    nodes = tree.nodes
    level = level_of(state, float(t))
    if nodes[1, UNTIL] < level or level < tree.now:
        catch_up(tree, state, level)
    if nodes[1, TIES] == 1.0:
        return int(nodes[1, WINNER])
    return one_of_ties(tree, state, level, float(below(int(nodes[1, TIES]), rng)))


@distribution.register(Tournament)
@kernel
def law_of_tournament(tree: Tournament, state: Any, t: int, out: Any) -> None:
    """1 over the ties; arms never observed come first."""
    for k in range(out.size):
        out[k] = 0.0
    for j in range(tree.fresh):
        out[tree.order[j]] = 1.0 / tree.fresh
    if tree.fresh > 0:
        return
    level = level_of(state, float(t))
    if tree.nodes[1, UNTIL] < level or level < tree.now:
        catch_up(tree, state, level)
    ties = int(tree.nodes[1, TIES])
    for j in range(ties):
        out[one_of_ties(tree, state, level, float(j))] += 1.0 / ties


@rare_kernel
def one_of_ties(tree: Tournament, state: Any, level: float, rest: float) -> int:
    """Number ``rest`` of the arms that share the largest index; no branch depends on chance."""
    nodes = tree.nodes
    node, ties = 1, nodes[1, TIES]
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
    begin = best // tree.leaf_size * tree.leaf_size
    for k in range(begin, min(begin + tree.leaf_size, state.means.size)):
        index = index_of(state, k, level)
        if tied(state, best, top, k, index):
            if rest == 0.0:
                return k
            rest -= 1.0
    return best


@kernel
def swap_into_unseen(tree: Tournament, arm: int, edge: int) -> None:
    """Swap ``arm`` with the one at the edge of those never observed; the next decision plays all matches."""
    moved, where = tree.order[edge], tree.place[arm]
    tree.order[where], tree.place[moved] = moved, where
    tree.order[edge], tree.place[arm] = arm, edge
    tree.now = NEVER


@changed.register(Tournament)
@kernel
def replay_matches(tree: Tournament, state: Any, seen: int) -> None:
    """An arm was observed, or all that was known of it is forgotten: it stands among its like, and its matches are replayed."""
    nodes, fresh, where = tree.nodes, tree.fresh, tree.place[seen]
    # a branch, for the processor to run ahead of what memory holds of a million arms
    if state.observations[seen] > 0.0:
        if where < fresh:  # the first time
            swap_into_unseen(tree, seen, fresh - 1)
            tree.fresh = fresh - 1
    elif where >= fresh:  # all that was known is forgotten
        swap_into_unseen(tree, seen, fresh)
        tree.fresh = fresh + 1
    if tree.now == NEVER:  # no decision has needed the tree yet: the first one plays all matches
        return
    node = nodes.shape[0] // 2 + seen // tree.leaf_size
    arm, index, ties, until = play_block(tree, state, node)
    while write_node(tree, node, arm, ties, until) or arm == seen:  # else nothing changes further up
        if node == 1:
            return
        arm, index, ties, until = play_sibling(tree, state, node, arm, index, ties, until)
        node //= 2
