"""Greedy independent sets, dominating sets, clique covers and acyclic sets.

Everything here takes time linear, or nearly, in arms plus edges. The exact numbers are in `abex.graphs.numbers`.
"""

from __future__ import annotations

from graphlib import TopologicalSorter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.graphs.feedback import Edges
from abex.graphs.graph import Graph
from abex.kernels import Record, compile_alone, kernel

Arms = NDArray[np.int64]


def alpha_sample(graph: Graph, rng: np.random.Generator) -> Arms:
    """A random cover (AlphaSample): pull a uniform arm among those not yet observed until all are.

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
    return chosen[: compile_alone(sweep)(graph.links, order, covered, chosen)]


def greedy_independent_set(graph: Graph) -> Arms:
    """A maximal independent set: take an arm of least remaining degree, delete its neighbours, repeat.

    For a directed graph independent means: no edge in either direction.
    """
    links = graph.undirected().links
    chosen = np.empty(graph.n_arms, dtype=np.int64)
    return chosen[: compile_alone(thin_out)(links, new_queue(np.diff(links.out_start)), chosen)]


def greedy_dominating_set(graph: Graph) -> Arms:
    """A dominating set: take an arm that shows most unseen arms until all are seen; at most 1 + ln K times the smallest one.

    >>> from abex.graphs import star
    >>> greedy_dominating_set(star(9)).tolist()
    [0]
    """
    chosen = np.empty(graph.n_arms, dtype=np.int64)
    return chosen[: compile_alone(dominate)(graph.links, new_queue(np.diff(graph.links.out_start)), chosen)]


def greedy_clique_cover(graph: Graph) -> Arms:
    """A greedy partition into cliques (of edges in both directions): the number of each arm's clique.

    The number of cliques bounds the independence number and the largest acyclic set from above.

    >>> from abex.graphs import cliques
    >>> greedy_clique_cover(cliques(2, 3)).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    links = graph.mutual().links
    order = np.argsort(np.diff(links.out_start), kind="stable")
    clique = np.full(graph.n_arms, -1, dtype=np.int64)
    compile_alone(gather_cliques)(links, order, clique)
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
    compile_alone(avoid_cycles)(graph.links, order, inside)
    sources, targets = graph.pairs()
    inner = inside[sources] & inside[targets]
    forward = TopologicalSorter({int(arm): () for arm in np.flatnonzero(inside)})
    for source, target in zip(sources[inner].tolist(), targets[inner].tolist(), strict=True):
        forward.add(target, source)
    return np.array(list(forward.static_order()), dtype=np.int64)


# -- kernels --------------------------------------------------------------------------------------------


class Queue(Record):
    """Arms in buckets by priority, as doubly linked lists; -1 ends a list."""

    priority: Arms
    head: Arms  # first arm of each bucket
    after: Arms
    before: Arms


def new_queue(priority: Any) -> Queue:
    """All arms in their buckets, lowest number first."""
    priority = np.asarray(priority, dtype=np.int64).copy()
    none = np.full(priority.size, -1, dtype=np.int64)
    head = np.full(int(priority.max()) + 1, -1, dtype=np.int64)
    queue = Queue(priority=priority, head=head, after=none, before=none.copy())
    compile_alone(fill_queue)(queue)
    return queue


@kernel
def fill_queue(queue: Queue) -> None:
    """Insert all arms."""
    for arm in range(queue.priority.size - 1, -1, -1):
        insert(queue, arm)


@kernel
def insert(queue: Queue, arm: int) -> None:
    """Put ``arm`` in front of its bucket."""
    first = queue.head[queue.priority[arm]]
    queue.after[arm] = first
    queue.before[arm] = -1
    if first >= 0:
        queue.before[first] = arm
    queue.head[queue.priority[arm]] = arm


@kernel
def remove(queue: Queue, arm: int) -> None:
    """Take ``arm`` out of its bucket."""
    before, after = queue.before[arm], queue.after[arm]
    if before >= 0:
        queue.after[before] = after
    else:
        queue.head[queue.priority[arm]] = after
    if after >= 0:
        queue.before[after] = before


@kernel
def lower(queue: Queue, arm: int) -> None:
    """Move ``arm`` into the bucket below."""
    remove(queue, arm)
    queue.priority[arm] -= 1
    insert(queue, arm)


@kernel
def sweep(links: Edges, order: Any, covered: Any, chosen: Any) -> int:
    """Arms of ``order`` that none before them shows; their number."""
    count = 0
    for arm in order:
        if not covered[arm]:
            chosen[count] = arm
            count += 1
            for j in range(links.out_start[arm], links.out_start[arm + 1]):
                covered[links.out_arms[j]] = True
    return count


@kernel
def thin_out(links: Edges, queue: Queue, chosen: Any) -> int:
    """Greedy independent set of an undirected graph by least degree, which is the priority; its size."""
    start, arms = links.out_start, links.out_arms
    gone = np.zeros(queue.priority.size, dtype=np.bool_)
    count = 0
    left = gone.size
    lowest = 0
    while left > 0:
        while queue.head[lowest] < 0:
            lowest += 1
        arm = queue.head[lowest]
        chosen[count] = arm
        count += 1
        for j in range(start[arm], start[arm + 1]):  # the arm itself is the last of its row
            other = arms[j]
            if not gone[other]:
                gone[other] = True
                left -= 1
                remove(queue, other)
        for j in range(start[arm], start[arm + 1] - 1):
            deleted = arms[j]
            if queue.priority[deleted] < 0:
                continue
            queue.priority[deleted] = -1  # its neighbours lose it once
            for i in range(start[deleted], start[deleted + 1]):
                other = arms[i]
                if not gone[other]:
                    lower(queue, other)
                    lowest = min(lowest, queue.priority[other])
    return count


@kernel
def dominate(links: Edges, queue: Queue, chosen: Any) -> int:
    """Greedy dominating set by the number of arms newly shown, which is the priority; its size."""
    seen = np.zeros(queue.priority.size, dtype=np.bool_)
    left = seen.size
    count = 0
    highest = queue.head.size - 1
    while left > 0:
        while queue.head[highest] < 0:
            highest -= 1
        arm = queue.head[highest]
        chosen[count] = arm
        count += 1
        for j in range(links.out_start[arm], links.out_start[arm + 1]):
            shown = links.out_arms[j]
            if seen[shown]:
                continue
            seen[shown] = True
            left -= 1
            for i in range(links.in_start[shown], links.in_start[shown + 1]):
                lower(queue, links.in_arms[i])
    return count


@kernel
def gather_cliques(links: Edges, order: Any, clique: Any) -> None:
    """Each arm joins the largest clique all of whose members it knows, or founds one."""
    start, arms = links.out_start, links.out_arms
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
def avoid_cycles(links: Edges, order: Any, inside: Any) -> None:
    """Add arms of ``order`` unless one of the arms they show leads back to them within the set."""
    start, arms = links.out_start, links.out_arms
    mark = np.full(order.size, -1, dtype=np.int64)
    stack = np.empty(order.size, dtype=np.int64)
    for arm in order:
        top = 0
        closes = False
        for j in range(start[arm], start[arm + 1] - 1):
            other = arms[j]
            if inside[other] and mark[other] != arm:
                mark[other] = arm
                stack[top] = other
                top += 1
        while top > 0 and not closes:
            top -= 1
            here = stack[top]
            for j in range(start[here], start[here + 1] - 1):
                other = arms[j]
                if other == arm:
                    closes = True
                    break
                if inside[other] and mark[other] != arm:
                    mark[other] = arm
                    stack[top] = other
                    top += 1
        inside[arm] = not closes
