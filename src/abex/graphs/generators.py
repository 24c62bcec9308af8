"""Regular and random graphs; a seed names the draws. A million arms take seconds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.graphs.graph import Graph
from abex.kernels import compile_alone, kernel
from abex.support.errors import UserError, real_number, whole_number
from abex.support.extras import needed
from abex.support.parameters import MOST_ARMS
from abex.support.randomness import below, stream
from abex.support.reading import check_size

Numbers = NDArray[np.int64]
MAX_EDGES = 10**9


def _number_of_arms(name: str, n: Any, least: int = 1) -> int:
    """A number of arms that fits into memory."""
    number = whole_number(name, n, least=least, most=MOST_ARMS)
    check_size(8 * number, f"a graph of {number:,} arms")
    return number


def bandit(n: int) -> Graph:
    """The graph of self-loops only: bandit feedback.

    >>> bandit(3).out(1).tolist()
    [1]
    """
    return Graph.from_edges([], _number_of_arms("n", n))


def complete(n: int) -> Graph:
    """The complete graph: full information. Takes memory of order n^2."""
    n = whole_number("n", n, least=1, most=40_000)
    check_size(8 * n * n, f"the complete graph of {n:,} arms")
    low, high = np.triu_indices(n, 1)
    return Graph.from_edges((low.astype(np.int64), high.astype(np.int64)), n)


def star(n: int) -> Graph:
    """A star: arm 0 shows all n - 1 leaves, each leaf shows it."""
    n = _number_of_arms("n", n)
    leaves = np.arange(1, n)
    return Graph.from_edges((np.zeros_like(leaves), leaves), n)


def cliques(count: int, size: int) -> Graph:
    """Disjoint complete graphs: ``count`` of them, of ``size`` arms each.

    >>> cliques(2, 3).out(4).tolist()
    [3, 5, 4]
    """
    count, size = whole_number("count", count, least=1), whole_number("size", size, least=1)
    _number_of_arms("count * size", count * size)
    check_size(8 * count * size * size, f"{count:,} cliques of {size:,} arms")
    low, high = (np.asarray(part, dtype=np.int64) for part in np.triu_indices(size, 1))
    shift = size * np.arange(count)[:, None]
    return Graph.from_edges(((low + shift).ravel(), (high + shift).ravel()), count * size)


def erdos_renyi(n: int, q: float, seed: int = 0, *, directed: bool = False) -> Graph:
    """An Erdos-Renyi graph: each pair of arms is joined with probability ``q``, independently.

    >>> erdos_renyi(1000, 0.01, seed=1)
    <Graph: 1000 arms, 4951 undirected edges>
    """
    n, q = _number_of_arms("n", n), real_number("q", q, least=0.0, most=1.0)
    rng = stream(seed, "erdos_renyi")
    if directed:
        cells = successes(n * (n - 1), q, rng)
        source, rest = np.divmod(cells, max(n - 1, 1))
        return Graph.from_edges((source, rest + (rest >= source)), n, directed=True)
    return Graph.from_edges(unordered(successes(n * (n - 1) // 2, q, rng)), n)


def planted_partition(groups: int, size: int, q_in: float, q_out: float, seed: int = 0) -> Graph:
    """A planted partition: edges have probability ``q_in`` within each of ``groups`` groups of ``size`` arms, ``q_out`` else."""
    groups, size = whole_number("groups", groups, least=1), whole_number("size", size, least=1)
    q_in, q_out = real_number("q_in", q_in, least=0, most=1), real_number("q_out", q_out, least=0, most=1)
    rng = stream(seed, "planted_partition")
    n, inner = _number_of_arms("groups * size", groups * size), size * (size - 1) // 2
    group, cell = np.divmod(successes(groups * inner, q_in, rng), max(inner, 1))
    low, high = unordered(cell)
    left, right = unordered(successes(n * (n - 1) // 2, q_out, rng))
    apart = left // size != right // size
    return Graph.from_edges(
        (
            np.concatenate([low + group * size, left[apart]]),
            np.concatenate([high + group * size, right[apart]]),
        ),
        n,
    )


def random_geometric(n: int, radius: float, seed: int = 0) -> Graph:
    """A random geometric graph: uniform points of the unit square, joined where at most ``radius`` apart."""
    with needed():
        from scipy.spatial import cKDTree

    n, radius = _number_of_arms("n", n), real_number("radius", radius, least=0.0)
    check_size(
        16 * int(n * n * min(1.0, 3.2 * radius * radius)), f"the graph of {n:,} arms and radius {radius:g}"
    )
    points = stream(seed, "random_geometric").random((n, 2))
    pairs = cKDTree(points).query_pairs(radius, output_type="ndarray").astype(np.int64)
    return Graph.from_edges((pairs[:, 0], pairs[:, 1]), n)


def power_law_cluster(n: int, m: int, triangle: float, seed: int = 0) -> Graph:
    """A social network (Holme and Kim 2002): degrees with a power-law tail, and many triangles.

    Each new arm joins ``m`` earlier arms: the first in proportion to their degree; each further one closes a triangle
    with probability ``triangle`` (a neighbour of the arm joined before), else it is again drawn by degree.
    """
    n, m = _number_of_arms("n", n, least=2), whole_number("m", m, least=1)
    triangle = real_number("triangle", triangle, least=0.0, most=1.0)
    if m >= n:
        raise UserError(f"m must be below n = {n}, got {m}")
    edges = m * (n - m)
    check_size(40 * edges, f"a graph of {edges:,} edges")
    ends = np.empty(2 * edges, dtype=np.int32)
    pool = np.empty(8 * edges + 8 * n, dtype=np.int32)
    sizes, room, first = (np.zeros(n, dtype=np.int64) for _ in range(3))
    compile_alone(grow)(n, m, triangle, ends, pool, sizes, room, first, stream(seed, "power_law_cluster"))
    return Graph.from_edges((ends[0::2].astype(np.int64), ends[1::2].astype(np.int64)), n)


def successes(trials: int, q: float, rng: np.random.Generator) -> Numbers:
    """Positions of the successes among ``trials`` trials: sums of geometric waiting times, so failures cost nothing."""
    if q <= 0.0 or trials <= 0:
        return np.empty(0, dtype=np.int64)
    expected = trials * q
    if expected > MAX_EDGES:
        raise UserError(f"a graph of about {expected:.1e} edges is too large, at most {MAX_EDGES:.0e}")
    check_size(int(24 * expected), f"a graph of about {expected:.1e} edges")
    if q >= 1.0:
        return np.arange(trials, dtype=np.int64)
    parts, last = [], -1
    while last < trials:
        waits = rng.geometric(q, size=int(expected + 5.0 * expected**0.5 + 10.0))
        part = last + np.cumsum(np.minimum(waits, trials + 1))
        parts.append(part)
        last = int(part[-1])
        expected = max((trials - last) * q, 0.0)
    found = np.concatenate(parts)
    return found[found < trials]


def unordered(cells: Numbers) -> tuple[Numbers, Numbers]:
    """The pairs low < high numbered by high * (high - 1) / 2 + low."""
    high = ((1.0 + np.sqrt(1.0 + 8.0 * cells)) / 2.0).astype(np.int64)
    high -= high * (high - 1) // 2 > cells  # the square root may round across a whole number
    high += high * (high + 1) // 2 <= cells
    return cells - high * (high - 1) // 2, high


@kernel
def attach(a: int, b: int, pool: Any, sizes: Any, room: Any, first: Any, free: int) -> int:
    """Append b to the list of a, which moves to the end of the pool with doubled room when full."""
    if sizes[a] == room[a]:
        for j in range(sizes[a]):
            pool[free + j] = pool[first[a] + j]
        first[a] = free
        room[a] = max(4, 2 * room[a])
        free += room[a]
    pool[first[a] + sizes[a]] = b
    sizes[a] += 1
    return free


@kernel
def grow(
    n: int, m: int, triangle: float, ends: Any, pool: Any, sizes: Any, room: Any, first: Any, rng: Any
) -> None:
    """The edges of `power_law_cluster` into ``ends``, two entries each; drawing an entry draws an arm by degree."""
    used = 0
    free = 0
    for new in range(m, n):
        start = used
        before = -1
        joined = 0
        while joined < m:
            other = -1
            if before >= 0 and rng.random() < triangle:
                other = pool[first[before] + below(sizes[before], rng)]
            if other < 0 or other == new or taken(ends, start, used, other):
                # the arms 0..m-1 start without an edge: the first newcomer joins them all
                other = joined if new == m else ends[below(start, rng)]
            if taken(ends, start, used, other):
                continue
            ends[used] = new
            ends[used + 1] = other
            used += 2
            free = attach(new, other, pool, sizes, room, first, free)
            free = attach(other, new, pool, sizes, room, first, free)
            before = other
            joined += 1


@kernel
def taken(ends: Any, start: int, used: int, arm: int) -> bool:
    """Whether ``arm`` is among the arms that the newcomer has joined."""
    found = False
    for j in range(start + 1, used, 2):
        found = found or ends[j] == arm
    return found
