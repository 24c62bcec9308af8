"""What graphs cost: a step of the main policies on ego-Facebook, building large graphs, solving the programs.

    ABEX_DATA=folder python benchmarks/graphs.py          all tables (about two minutes, 2 GB)
    ABEX_DATA=folder python benchmarks/graphs.py steps    the first alone (also: build, quantities, million)

CPU time; each ratio within one run, rounds interleaved, medians. Without the data the first table uses a synthetic
graph of the same size.
"""

from __future__ import annotations

import math
import resource
import sys
import time
from typing import Any

import numpy as np
from numba import njit

from abex import ABE, ELP, UCB1, Graph, SpecialArm, Thompson
from abex.graphs import erdos_renyi, planted_partition, power_law_cluster, random_geometric
from abex.graphs.covers import alpha_sample, greedy_dominating_set, greedy_independent_set
from abex.graphs.numbers import domination_number, fractional_domination, independence_number
from abex.simulation import as_checkpoints, play_replication
from abex.support.randomness import counter_key

HORIZON, ROUNDS = 20_000, 5

# -- the baselines: what one writes in an afternoon ----------------------------------------------------------


@njit
def abe_loop(start, arms, means, steps, eta, rng):
    n = means.size
    seen, mean, weight = np.zeros(n), np.zeros(n), np.zeros(n)
    lost, best = 0.0, means.max()
    for t in range(1, steps + 1):
        top = mean.max()
        total = 0.0
        for k in range(n):
            weight[k] = math.exp(eta * math.sqrt(t - 1.0) * (mean[k] - top))
            total += weight[k]
        rest, arm = rng.random() * total, n - 1
        for k in range(n):
            rest -= weight[k]
            if rest < 0.0:
                arm = k
                break
        lost += best - means[arm]
        for j in range(start[arm], start[arm + 1]):
            k = arms[j]
            reward = 1.0 if rng.random() < means[k] else 0.0
            seen[k] += 1.0
            mean[k] += (reward - mean[k]) / seen[k]
    return lost


@njit
def thompson_loop(start, arms, means, steps, rng):
    n = means.size
    wins, losses = np.ones(n), np.ones(n)
    lost, best = 0.0, means.max()
    for _ in range(steps):
        arm, top = 0, -1.0
        for k in range(n):
            draw = rng.beta(wins[k], losses[k])
            if draw > top:
                arm, top = k, draw
        lost += best - means[arm]
        for j in range(start[arm], start[arm + 1]):
            k = arms[j]
            reward = 1.0 if rng.random() < means[k] else 0.0
            wins[k] += reward
            losses[k] += 1.0 - reward
    return lost


@njit
def ucb_loop(start, arms, means, steps, rng):
    n = means.size
    seen, total = np.zeros(n), np.zeros(n)
    lost, best = 0.0, means.max()
    for t in range(1, steps + 1):
        arm, top = 0, -1.0
        for k in range(n):
            index = (
                math.inf if seen[k] == 0.0 else total[k] / seen[k] + math.sqrt(2.0 * math.log(t) / seen[k])
            )
            if index > top:
                arm, top = k, index
        lost += best - means[arm]
        for j in range(start[arm], start[arm + 1]):
            k = arms[j]
            seen[k] += 1.0
            total[k] += 1.0 if rng.random() < means[k] else 0.0
    return lost


@njit
def elp_loop(start, arms, means, steps, beta, gamma, spread, rng):
    n = means.size
    scores, law = np.zeros(n), np.zeros(n)
    lost, best = 0.0, means.max()
    for _ in range(steps):
        top = scores.max()
        total = 0.0
        for k in range(n):
            law[k] = math.exp(scores[k] - top)
            total += law[k]
        for k in range(n):
            law[k] = (1.0 - gamma) * law[k] / total + gamma * spread[k]
        rest, arm = rng.random(), n - 1
        for k in range(n):
            rest -= law[k]
            if rest < 0.0:
                arm = k
                break
        lost += best - means[arm]
        for j in range(start[arm], start[arm + 1]):
            k = arms[j]
            chance = 0.0
            for i in range(start[k], start[k + 1]):
                chance += law[arms[i]]
            reward = 1.0 if rng.random() < means[k] else 0.0
            scores[k] += beta * reward / chance
    return lost


def numpy_loop(policy: Any, graph: Graph, means: Any, steps: int, spread: Any, rng: Any) -> float:
    """The same four, a few array operations a step."""
    n = graph.n_arms
    rows = [graph.out(k) for k in range(n)]
    seen, total, scores, lost = np.zeros(n), np.zeros(n), np.zeros(n), 0.0
    for t in range(1, steps + 1):
        if isinstance(policy, ABE):
            mean = total / np.maximum(seen, 1.0)
            weight = np.exp(policy.eta * math.sqrt(t - 1.0) * (mean - mean.max()))
            arm = int(rng.choice(n, p=weight / weight.sum()))
        elif isinstance(policy, Thompson):
            arm = int(rng.beta(1.0 + total, 1.0 + seen - total).argmax())
        elif isinstance(policy, UCB1):
            width = np.sqrt(2.0 * math.log(t) / np.maximum(seen, 1.0))
            arm = int(np.where(seen > 0, total / np.maximum(seen, 1.0) + width, np.inf).argmax())
        else:
            law = np.exp(scores - scores.max())
            law = 0.975 * law / law.sum() + 0.025 * spread
            arm = int(rng.choice(n, p=law / law.sum()))
            chance = np.array([law[rows[k]].sum() for k in rows[arm]])
        shown = rows[arm]
        rewards = (rng.random(shown.size) < means[shown]) * 1.0
        seen[shown] += 1.0
        total[shown] += rewards
        if isinstance(policy, ELP):
            scores[shown] += 5e-4 * rewards / chance
        lost += means.max() - means[arm]
    return lost


def cpu(work: Any) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def timed(
    policy: Any, loop: Any, environment: Any, graph: Graph, steps: Any, means: Any, spread: Any
) -> list[Any]:
    """CPU seconds of (abex, the njit loop, NumPy), ROUNDS times in turn; NumPy plays a tenth of the steps."""

    def ours() -> None:
        play_replication(policy, environment, graph, steps, 1, 0)

    def by_hand() -> None:
        loop(np.random.default_rng(1))

    def arrays() -> None:
        numpy_loop(policy, graph, means, HORIZON // 10, spread, np.random.default_rng(1))

    ours()
    by_hand()  # both are compiled now
    return [(cpu(ours), cpu(by_hand), 10 * cpu(arrays)) for _ in range(ROUNDS)]


def steps_table() -> None:
    try:
        from facebook import facebook_graph

        graph = facebook_graph()
    except SystemExit:
        graph = power_law_cluster(333, 8, 0.6, seed=1)
    print(f"\nOne step on {graph}, T = {HORIZON:,}: nanoseconds, and how many times as much the others take")
    environment, steps = SpecialArm(graph.n_arms), as_checkpoints([HORIZON], HORIZON)
    means = np.full(graph.n_arms, 0.5)
    means[environment.open(counter_key(1, 0, "environment"), HORIZON).special] = (
        0.75  # the very arm that abex looks for
    )
    start, arms = np.array(graph.links.out_start), np.array(graph.links.out_arms)
    cover = fractional_domination(graph)
    spread = cover.weights / cover.upper
    loops: dict[Any, Any] = {
        ABE(): lambda rng: abe_loop(start, arms, means, HORIZON, 0.4, rng),
        Thompson(): lambda rng: thompson_loop(start, arms, means, HORIZON, rng),
        UCB1(): lambda rng: ucb_loop(start, arms, means, HORIZON, rng),
        ELP(independence=120): lambda rng: elp_loop(start, arms, means, HORIZON, 5e-4, 0.025, spread, rng),
    }
    print(f"{'policy':24s}{'abex':>9s}{'njit loop':>12s}{'NumPy':>10s}")
    for policy, loop in loops.items():
        times = np.array(timed(policy, loop, environment, graph, steps, means, spread))
        middle = np.median(times, axis=0)
        njit_ratio, numpy_ratio = np.median(times[:, 1] / times[:, 0]), np.median(times[:, 2] / times[:, 0])
        print(f"{policy!s:24s}{middle[0] / HORIZON * 1e9:9.0f}{njit_ratio:11.2f}x{numpy_ratio:9.1f}x")


def build_table() -> None:
    print("\nLarge graphs: CPU seconds to make (generator and rows)")
    power_law_cluster(100, 2, 0.5)
    makers = {
        "erdos_renyi(10^6, 2e-5)": lambda: erdos_renyi(10**6, 2e-5, 1),
        "erdos_renyi(10^6, 1e-5, directed)": lambda: erdos_renyi(10**6, 1e-5, 1, directed=True),
        "power_law_cluster(10^6, 10, 0.5)": lambda: power_law_cluster(10**6, 10, 0.5, 1),
        "planted_partition(10^4, 100, ...)": lambda: planted_partition(10**4, 100, 0.1, 1e-5, 1),
        "random_geometric(10^6, 0.0025)": lambda: random_geometric(10**6, 0.0025, 1),
    }
    for name, make in makers.items():
        began = time.process_time()
        graph = make()
        print(f"{name:36s}{time.process_time() - began:6.1f}  {graph}")


def quantities_table() -> None:
    print("\nQuantities: CPU seconds")
    rng = np.random.default_rng(0)
    graphs = {
        "power law, K = 4711": power_law_cluster(4711, 10, 0.5, seed=1),
        "regular, K = 4711": erdos_renyi(4711, 50 / 4711, seed=1),
        "power law, K = 300,000": power_law_cluster(300_000, 5, 0.5, seed=1),
    }
    try:
        from facebook import facebook_graph

        graphs = {"ego-Facebook, K = 333": facebook_graph(), **graphs}
    except SystemExit:
        pass
    alpha_sample(graphs["regular, K = 4711"], rng), greedy_independent_set(graphs["regular, K = 4711"])
    greedy_dominating_set(graphs["regular, K = 4711"])
    for name, graph in graphs.items():
        print(f"{name}: AlphaSample {cpu(lambda: alpha_sample(graph, rng)):.3f}, "  # noqa: B023
              f"greedy independent {cpu(lambda: greedy_independent_set(graph)):.3f}, "  # noqa: B023
              f"greedy dominating {cpu(lambda: greedy_dominating_set(graph)):.3f}")  # noqa: B023  # fmt: skip
        if graph.n_arms < 10_000:
            began = time.process_time()
            cover = fractional_domination(graph)
            print(f"    fractional domination {cover.lower:.6g}..{cover.upper:.6g} by {cover.method}, "
                  f"{time.process_time() - began:.2f} s")  # fmt: skip
        if graph.n_arms < 1000:
            for number in (independence_number, domination_number):
                began = time.process_time()
                print(f"    {number.__name__} {number(graph)}, {time.process_time() - began:.2f} s")


def million_table() -> None:
    graph = erdos_renyi(10**6, 1e-5, seed=1)
    policy, steps = ABE(eta=1.0, c=1.0, alpha=0.5), as_checkpoints([300], 300)
    spent = cpu(lambda: play_replication(policy, SpecialArm(10**6), graph, steps, 1, 0))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"\nABE on {graph}: 300 steps in {spent:.2f} s, peak memory of the process {peak:.2f} GB (graph made included)"
    )


def main() -> None:
    tables = {
        "million": million_table,
        "steps": steps_table,
        "build": build_table,
        "quantities": quantities_table,
    }
    for name in sys.argv[1:] or tables:
        tables[name]()


if __name__ == "__main__":
    main()
