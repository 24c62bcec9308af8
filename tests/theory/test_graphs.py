"""What the paper says about sweeps on graphs, where it is true and where it is not; lower and published bounds."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from abex import ABE, UserError
from abex.graphs import Graph
from abex.graphs.numbers import regret_lower_bound
from abex.policies import Setting
from abex.support.randomness import stream
from abex.theory import (
    bernoulli_kl,
    bge_bound,
    elp_bound,
    exp3p_bound,
    exp3p_bound_2012,
    lai_robbins,
    ucb1_bound,
)
from tests.needs import DATA, real_data


def found_sweep(reveals: np.ndarray, seed: int) -> int:
    """Length of the exploration sequence that ABE finds by itself on the graph ``reveals``."""
    n_arms = reveals.shape[0]
    policy = ABE(eta=1.0, c=1.0, alpha=0.5)
    state, rng = policy.start(Setting(n_arms)), stream(seed, "sweep")
    for t in range(1, n_arms + 1):
        arm = policy.select(state, t, rng)
        for seen in [*[k for k in np.flatnonzero(reveals[arm]).tolist() if k != arm], arm]:
            policy.update(state, t, arm, seen, 0.5, rng)
        if state.xi.n_hidden == 0:
            break
    return int(policy.report(state)["cover"])


def largest_subset(n_arms: int, good) -> int:
    """Size of the largest subset of the arms that is ``good``, by trying all."""
    return next(
        size for size in range(n_arms, 0, -1) if any(good(s) for s in combinations(range(n_arms), size))
    )


def independence_number(reveals: np.ndarray) -> int:
    """No edge in either direction inside the subset."""
    linked = (reveals | reveals.T) & ~np.eye(len(reveals), dtype=bool)
    return largest_subset(len(reveals), lambda s: not linked[np.ix_(s, s)].any())


def acyclic_number(reveals: np.ndarray) -> int:
    """The largest subset that induces no directed cycle: a nilpotent adjacency matrix."""
    edges = (reveals & ~np.eye(len(reveals), dtype=bool)).astype(float)

    def acyclic(subset: tuple[int, ...]) -> bool:
        inner = edges[np.ix_(subset, subset)]
        return not np.linalg.matrix_power(inner, len(subset)).any()

    return largest_subset(len(reveals), acyclic)


def random_graph(rng: np.random.Generator, directed: bool) -> np.ndarray:
    n_arms = int(rng.integers(2, 9))
    reveals = rng.random((n_arms, n_arms)) < rng.uniform(0.1, 0.7)
    reveals = reveals if directed else reveals | reveals.T
    return reveals | np.eye(n_arms, dtype=bool)


def test_a_sweep_is_no_longer_than_the_independence_number_of_an_undirected_graph() -> None:
    rng = np.random.default_rng(1)
    shorter = 0
    for case in range(60):
        reveals = random_graph(rng, directed=False)
        beta = independence_number(reveals)
        lengths = [found_sweep(reveals, 100 * case + i) for i in range(4)]
        assert max(lengths) <= beta
        shorter += min(lengths) < beta
    assert shorter > 0  # equality is not reached in general


def test_on_digraphs_a_sweep_exceeds_the_independence_number_but_not_the_acyclic_one() -> None:
    rng = np.random.default_rng(2)
    exceeded = 0
    for case in range(40):
        reveals = random_graph(rng, directed=True)
        lengths = [found_sweep(reveals, 100 * case + i) for i in range(4)]
        assert max(lengths) <= acyclic_number(reveals)
        exceeded += max(lengths) > independence_number(reveals)
    assert exceeded >= 10


def test_the_transitive_tournament_is_a_counterexample_to_the_papers_corollary() -> None:
    n_arms, runs = 30, 400
    reveals = np.triu(np.ones((n_arms, n_arms), dtype=bool))  # arm j shows all arms above it: beta = 1
    assert independence_number(reveals[:8, :8]) == 1
    lengths = np.array([found_sweep(reveals, seed) for seed in range(runs)])
    harmonic = sum(1.0 / k for k in range(1, n_arms + 1))  # expected length, as in a record process
    assert abs(lengths.mean() - harmonic) < 4.0 * lengths.std(ddof=1) / math.sqrt(runs)


# -- lower bounds ----------------------------------------------------------------------------------------


def graph_lower_bound(means, matrix) -> float:
    return regret_lower_bound(Graph.from_matrix(matrix), means).upper


def test_lai_robbins_is_the_sum_over_arms() -> None:
    assert lai_robbins([0.75, 0.5, 0.25]) == pytest.approx(
        0.25 / bernoulli_kl(0.5, 0.75) + 0.5 / bernoulli_kl(0.25, 0.75)
    )
    assert lai_robbins([0.5, 0.5]) == 0.0
    assert lai_robbins([1.0, 0.5]) == 0.0  # one failure gives an arm away
    assert bernoulli_kl(0.0, 0.5) == pytest.approx(math.log(2.0))


def test_the_program_on_a_star_pulls_the_hub() -> None:
    star = np.eye(6)
    star[0, :] = star[:, 0] = 1.0  # arm 0 is the hub, arm 5 the best: it shows itself and the hub
    means = [0.3, 0.5, 0.5, 0.5, 0.5, 0.75]
    demand = 1.0 / bernoulli_kl(0.5, 0.75)
    assert graph_lower_bound(means, star) == pytest.approx(demand * min(0.45, 4 * 0.25))
    assert graph_lower_bound([0.6, *means[1:]], star) == pytest.approx(demand * 0.15)


def test_more_feedback_never_raises_the_lower_bound() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        n_arms = int(rng.integers(2, 12))
        means = rng.uniform(0.1, 0.9, n_arms)
        sparse = rng.random((n_arms, n_arms)) < 0.2
        dense = sparse | (rng.random((n_arms, n_arms)) < 0.3)
        low, middle = graph_lower_bound(means, dense), graph_lower_bound(means, sparse)
        assert low <= middle + 1e-9 <= lai_robbins(means) + 2e-9


def test_a_graph_of_another_size_is_refused() -> None:
    with pytest.raises(UserError, match="one entry for each of the 3 arms"):
        graph_lower_bound([0.5, 0.6], np.eye(3))


@real_data("facebook/0.edges")
def test_the_lower_bound_on_ego_facebook_is_a_seventh_of_that_without_the_graph() -> None:
    path = DATA / "facebook/0.edges"
    names, ends = np.unique(np.loadtxt(path, dtype=np.int64), return_inverse=True)
    ends = ends.reshape(-1, 2)
    reveals = np.zeros((names.size, names.size))
    reveals[ends[:, 0], ends[:, 1]] = reveals[ends[:, 1], ends[:, 0]] = 1.0
    values = []
    for best in range(0, names.size, 30):
        means = np.full(names.size, 0.5)
        means[best] = 0.75
        values.append(graph_lower_bound(means, reveals))
    assert lai_robbins([0.75] + [0.5] * 332) == pytest.approx(577, abs=1)
    assert 70 < np.mean(values) < 80  # about 77 ln T


# -- bounds of others, by hand ---------------------------------------------------------------------------


def test_published_bounds_by_hand() -> None:
    assert ucb1_bound([0.5], 1000) == pytest.approx(16 * math.log(1000) + 0.5 * (1 + math.pi**2 / 3))
    assert bge_bound([1.0], 1, scale=1.0, sigma=0.0, free=1.0) == pytest.approx(
        math.exp(0.57721566) + 18 * (1 + math.exp(-0.57721566)) + 1
    )
    log = math.log(2 * 100 / 0.1)
    assert exp3p_bound(2, 100, 0.1) == pytest.approx(
        4 * math.sqrt(200 * log) + 4 * math.sqrt(5 / 3 * 200 * math.log(2)) + 8 * log
    )
    assert exp3p_bound_2012(2, 100, 0.1) == pytest.approx(5.15 * math.sqrt(200 * math.log(20)))
    assert elp_bound(10, 10**6, 3.0) == pytest.approx(2 * math.sqrt(3 * math.log(10) * 3e6))
    with pytest.raises(UserError, match="beta"):
        elp_bound(10, 1000, 3.0, beta=0.2)
