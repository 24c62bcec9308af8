"""Sets of arms found by rule, each with its own proof: independent sets, dominating sets, clique covers, acyclic sets.

Everything here takes time linear (or nearly) in arms plus edges. The exact numbers are in `abex.graphs.numbers`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.graphs.graph import Graph
from abex.kernels import fast, kernel

Arms = NDArray[np.int64]


def alpha_sample(graph: Graph, rng: np.random.Generator) -> Arms:
    """One AlphaSample pass: pull a uniform arm among those not yet observed until all are.

    On an undirected graph a random maximal independent set. On a directed one it may be larger than every independent
    set; it induces no cycle, so it is at most the largest acyclic set.
    References: Cohen, Hazan, Koren 2016, Algorithm 1; the paper's xi (Algorithm 2).

    >>> from abex.graphs import complete
    >>> alpha_sample(complete(5), np.random.default_rng(0)).size
    1
    """
    order = rng.permutation(graph.n_arms)  # the next unseen arm of a random order is uniform among the unseen
    chosen = np.empty(graph.n_arms, dtype=np.int64)
    covered = np.zeros(graph.n_arms, dtype=bool)
    return chosen[: fast(sweep)(graph.links.out_start, graph.links.out_arms, order, covered, chosen)]


def greedy_independent_set(graph: Graph) -> Arms:
    """Take an arm of least remaining degree, delete its neighbours, repeat: a maximal independent set.

    For a directed graph independent means: no edge in either direction.
    """
    links = graph.undirected().links
    chosen = np.empty(graph.n_arms, dtype=np.int64)
    degree, head, after, before = _new_queue(np.diff(links.out_start))
    size = fast(thin_out)(links.out_start, links.out_arms, degree, head, after, before, chosen)
    return chosen[:size]


def greedy_dominating_set(graph: Graph) -> Arms:
    """Take an arm that shows most unseen arms until all are seen; at most 1 + ln K times the smallest such set.

    >>> from abex.graphs import star
    >>> greedy_dominating_set(star(9)).tolist()
    [0]
    """
    chosen = np.empty(graph.n_arms, dtype=np.int64)
    gain, head, after, before = _new_queue(np.diff(graph.links.out_start))
    return chosen[: fast(dominate)(*graph.links, gain, head, after, before, chosen)]


def greedy_clique_cover(graph: Graph) -> Arms:
    """The number of a clique for each arm: a partition into cliques (of edges in both directions), made greedily.

    Their number is an upper bound on the independence number, and on the largest acyclic set.

    >>> from abex.graphs import cliques
    >>> greedy_clique_cover(cliques(2, 3)).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    links = graph.mutual().links
    degrees = np.diff(links.out_start)
    order = np.argsort(degrees, kind="stable")
    clique = np.full(graph.n_arms, -1, dtype=np.int64)
    fast(gather_cliques)(links.out_start, links.out_arms, order, clique)
    return np.unique(clique, return_inverse=True)[1].astype(np.int64)


def greedy_acyclic_set(graph: Graph) -> Arms:
    """A maximal set of arms that induces no directed cycle, in an order in which every edge goes forward.

    An edge with its reverse is a cycle: on an undirected graph this is a maximal independent set.
    """
    if not graph.is_directed:
        return greedy_independent_set(graph)
    degrees = np.minimum(np.diff(graph.links.out_start), np.diff(graph.links.in_start))
    order = np.argsort(degrees, kind="stable")
    inside = np.zeros(graph.n_arms, dtype=bool)
    fast(avoid_cycles)(graph.links.out_start, graph.links.out_arms, order, inside)
    return _topological(graph, inside)


# -- certificates ---------------------------------------------------------------------------------------


def is_independent(graph: Graph, arms: Any) -> bool:
    """Whether no two of ``arms`` are joined, in either direction."""
    inside = _members(graph, arms)
    sources, targets = graph.pairs()
    return not bool(np.any(inside[sources] & inside[targets]))


def is_dominating(graph: Graph, arms: Any) -> bool:
    """Whether pulling each of ``arms`` once shows every arm."""
    inside = _members(graph, arms)
    seen = inside.copy()
    sources, targets = graph.pairs()
    seen[targets[inside[sources]]] = True
    return bool(seen.all())


def is_clique_cover(graph: Graph, clique: Any) -> bool:
    """Whether arms with the same number are pairwise joined in both directions."""
    numbers = np.asarray(clique)
    sources, targets = graph.pairs()
    within = int(np.count_nonzero(numbers[sources] == numbers[targets]))
    sizes = np.unique(numbers, return_counts=True)[1]
    return numbers.size == graph.n_arms and within == int((sizes * (sizes - 1)).sum())


def is_acyclic(graph: Graph, arms: Any) -> bool:
    """Whether every edge among ``arms`` leads forward in their order, which proves that there is no cycle."""
    arms = np.asarray(arms, dtype=np.int64)
    place = np.full(graph.n_arms, -1, dtype=np.int64)
    place[arms] = np.arange(arms.size)
    sources, targets = graph.pairs()
    inner = (place[sources] >= 0) & (place[targets] >= 0)
    return bool(np.all(place[sources[inner]] < place[targets[inner]]))


def _members(graph: Graph, arms: Any) -> NDArray[np.bool_]:
    inside = np.zeros(graph.n_arms, dtype=bool)
    inside[np.asarray(arms, dtype=np.int64)] = True
    return inside


def _topological(graph: Graph, inside: NDArray[np.bool_]) -> Arms:
    sources, targets = graph.pairs()
    inner = inside[sources] & inside[targets]
    degree = np.bincount(targets[inner], minlength=graph.n_arms)
    order: list[int] = [int(arm) for arm in np.flatnonzero(inside & (degree == 0))]
    for arm in order:  # grows while it is read
        for other in graph.out(arm)[:-1]:
            if inside[other]:
                degree[other] -= 1
                if degree[other] == 0:
                    order.append(int(other))
    return np.array(order, dtype=np.int64)


# -- kernels --------------------------------------------------------------------------------------------


def _new_queue(priority: Any) -> tuple[Arms, Arms, Arms, Arms]:
    """Arms in buckets by priority, as doubly linked lists: (priority, head, after, before)."""
    priority = np.asarray(priority, dtype=np.int64).copy()
    head = np.full(int(priority.max()) + 1, -1, dtype=np.int64)
    after, before = np.full(priority.size, -1, dtype=np.int64), np.full(priority.size, -1, dtype=np.int64)
    fast(fill_queue)(priority, head, after, before)
    return priority, head, after, before


@kernel
def push(arm: int, priority: Any, head: Any, after: Any, before: Any) -> None:
    """Put ``arm`` in front of its bucket."""
    first = head[priority[arm]]
    after[arm] = first
    before[arm] = -1
    if first >= 0:
        before[first] = arm
    head[priority[arm]] = arm


@kernel
def drop(arm: int, priority: Any, head: Any, after: Any, before: Any) -> None:
    """Take ``arm`` out of its bucket."""
    if before[arm] >= 0:
        after[before[arm]] = after[arm]
    else:
        head[priority[arm]] = after[arm]
    if after[arm] >= 0:
        before[after[arm]] = before[arm]


@kernel
def fill_queue(priority: Any, head: Any, after: Any, before: Any) -> None:
    """All arms into their buckets, lowest number first."""
    for arm in range(priority.size - 1, -1, -1):
        push(arm, priority, head, after, before)


@kernel
def sweep(out_start: Any, out_arms: Any, order: Any, covered: Any, chosen: Any) -> int:
    """Arms of ``order`` that none before them shows; their number."""
    count = 0
    for arm in order:
        if not covered[arm]:
            chosen[count] = arm
            count += 1
            for j in range(out_start[arm], out_start[arm + 1]):
                covered[out_arms[j]] = True
    return count


@kernel
def thin_out(start: Any, arms: Any, degree: Any, head: Any, after: Any, before: Any, chosen: Any) -> int:
    """Greedy independent set by least degree (closed neighbourhoods of an undirected graph); its size."""
    gone = np.zeros(degree.size, dtype=np.bool_)
    count = 0
    left = degree.size
    lowest = 0
    while left > 0:
        while head[lowest] < 0:
            lowest += 1
        arm = head[lowest]
        chosen[count] = arm
        count += 1
        for j in range(start[arm], start[arm + 1]):  # the arm itself is the last of its row
            other = arms[j]
            if not gone[other]:
                gone[other] = True
                left -= 1
                drop(other, degree, head, after, before)
        for j in range(start[arm], start[arm + 1] - 1):
            deleted = arms[j]
            if degree[deleted] < 0:
                continue
            degree[deleted] = -1  # its neighbours lose it once
            for i in range(start[deleted], start[deleted + 1]):
                other = arms[i]
                if not gone[other]:
                    drop(other, degree, head, after, before)
                    degree[other] -= 1
                    push(other, degree, head, after, before)
                    lowest = min(lowest, degree[other])
    return count


@kernel
def dominate(
    out_start: Any, out_arms: Any, in_start: Any, in_arms: Any,
    gain: Any, head: Any, after: Any, before: Any, chosen: Any,
) -> int:  # fmt: skip
    """Greedy dominating set by the number of arms newly shown; its size."""
    seen = np.zeros(gain.size, dtype=np.bool_)
    left = gain.size
    count = 0
    highest = head.size - 1
    while left > 0:
        while head[highest] < 0:
            highest -= 1
        arm = head[highest]
        chosen[count] = arm
        count += 1
        for j in range(out_start[arm], out_start[arm + 1]):
            shown = out_arms[j]
            if seen[shown]:
                continue
            seen[shown] = True
            left -= 1
            for i in range(in_start[shown], in_start[shown + 1]):
                other = in_arms[i]
                drop(other, gain, head, after, before)
                gain[other] -= 1
                push(other, gain, head, after, before)
    return count


@kernel
def gather_cliques(start: Any, arms: Any, order: Any, clique: Any) -> None:
    """Each arm joins the largest clique all of whose members it knows, or founds one."""
    size = np.zeros(order.size, dtype=np.int64)
    known = np.zeros(order.size, dtype=np.int64)
    found = 0
    for arm in order:
        home = -1
        for j in range(start[arm], start[arm + 1] - 1):
            number = clique[arms[j]]
            if number >= 0:
                known[number] += 1
                if known[number] == size[number] and (home < 0 or size[number] > size[home]):
                    home = number
        for j in range(start[arm], start[arm + 1] - 1):
            if clique[arms[j]] >= 0:
                known[clique[arms[j]]] = 0
        if home < 0:
            home = found
            found += 1
        clique[arm] = home
        size[home] += 1


@kernel
def avoid_cycles(out_start: Any, out_arms: Any, order: Any, inside: Any) -> None:
    """Add arms of ``order`` unless one of the arms they show leads back to them within the set."""
    mark = np.full(order.size, -1, dtype=np.int64)
    stack = np.empty(order.size, dtype=np.int64)
    for arm in order:
        top = 0
        closes = False
        for j in range(out_start[arm], out_start[arm + 1] - 1):
            other = out_arms[j]
            if inside[other] and mark[other] != arm:
                mark[other] = arm
                stack[top] = other
                top += 1
        while top > 0 and not closes:
            top -= 1
            here = stack[top]
            for j in range(out_start[here], out_start[here + 1] - 1):
                other = out_arms[j]
                if other == arm:
                    closes = True
                    break
                if inside[other] and mark[other] != arm:
                    mark[other] = arm
                    stack[top] = other
                    top += 1
        inside[arm] = not closes
