"""Nanoseconds of CPU per step against the number of arms, for every policy that does not pay for each of them.

    python benchmarks/many_arms.py                                   the table (about ten minutes)
    python benchmarks/many_arms.py --figure docs/many_arms.svg       the table and its figure
    python benchmarks/many_arms.py --long 1e9                        ABE for so many steps: does anything drift?

Each line has numbers from one process, medians of interleaved runs: the policy as `simulate` plays it (decision, Bernoulli
reward, update; without the first K steps of policies that play every arm once, which are nobody's point), up to a thousand
arms our plain loop over all arms, and the textbook's loop, written here as one would in Numba: every index or weight from
counts and sums, with its square roots and logarithms. It starts with one observation of each arm and is run for as few steps
as half a second allows, ours for 200,000 or 2 K steps (on the graph 300,000). The time to make the record of a policy is not
counted.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import Any

import numba
import numpy as np
from scipy.stats import chisquare

from abex import (
    ABE,
    KLUCB,
    MOSS,
    UCB1,
    UCBV,
    Bernoulli,
    Boltzmann,
    BoltzmannGumbel,
    Exp3,
    Exp3IX,
    Thompson,
)  # fmt: skip
from abex.graphs import erdos_renyi
from abex.kernels import compile_alone
from abex.policies.policy import Setting
from abex.samplers import FEW
from abex.samplers.buckets import TAIL
from abex.simulation import as_checkpoints, play_replication
from abex.support.randomness import stream
from graphs import abe_loop

POLICIES = {
    "ABE": ABE(eta=1.0), "Boltzmann": Boltzmann(eta=1.0), "BoltzmannGumbel": BoltzmannGumbel(), "Thompson": Thompson(),
    "UCB1": UCB1(), "UCBV": UCBV(), "KLUCB": KLUCB(), "MOSS": MOSS(), "AnytimeMOSS": MOSS(anytime=1.35),
    "Exp3": Exp3(gamma=0.1), "Exp3IX": Exp3IX(eta=0.05), "ABE on a graph": ABE(eta=1.0),
}  # fmt: skip
KINDS = {
    "ABE": 0, "Boltzmann": 0, "BoltzmannGumbel": 1, "Thompson": 2, "UCB1": 3, "UCBV": 4, "KLUCB": 5, "MOSS": 6,
    "AnytimeMOSS": 7, "Exp3": 8, "Exp3IX": 9,
}  # fmt: skip
SWEEPING = (BoltzmannGumbel, UCB1, UCBV, KLUCB, MOSS)  # play every arm once before all else
FEW_ARMS = dict(FEW)
NEIGHBOURS = 15  # of an arm, on the graph
REPEATS = 3
BUDGET = 5e8  # nanoseconds of the textbook's loop in each repeat


@numba.njit(error_model="numpy")
def textbook(kind, means, steps, scratch, pulls, sums, rng):
    """The loop of the literature: all arms at every step, after a first sweep over them."""
    n_arms = means.size
    horizon = n_arms + steps
    for t in range(n_arms + 1, horizon + 1):
        arm, top, chance = 0, -math.inf, 1.0
        if kind == 0 or kind >= 8:
            total = 0.0
            if kind == 0:  # Boltzmann
                rate = math.sqrt(t - 1.0)
                for k in range(n_arms):
                    scratch[k] = sums[k] / max(pulls[k], 1.0)
                    top = max(top, scratch[k])
                for k in range(n_arms):
                    scratch[k] = math.exp(rate * (scratch[k] - top))
            for k in range(n_arms):  # of exponential weights one is multiplied in a step
                total += scratch[k]
            if kind == 8 and rng.random() < 0.1:
                arm = int(rng.random() * n_arms)
            else:
                rest = rng.random() * total
                while arm < n_arms - 1 and rest >= scratch[arm]:
                    rest -= scratch[arm]
                    arm += 1
            chance = scratch[arm] / total
        else:
            for k in range(n_arms):
                n = pulls[k]
                if kind == 1:
                    value = sums[k] / n + 0.5 / math.sqrt(n) * -math.log(-math.log(rng.random()))
                elif kind == 2:
                    value = rng.beta(1.0 + sums[k], 1.0 + n - sums[k])
                elif kind == 3:
                    value = sums[k] / n + math.sqrt(2.0 * math.log(t) / n)
                elif kind == 4:
                    mean = sums[k] / n
                    variance = mean * (1.0 - mean)
                    value = mean + math.sqrt(2.4 * variance * math.log(t) / n) + 3.6 * math.log(t) / n
                elif kind == 5:
                    mean = sums[k] / n
                    value, high = mean, 1.0
                    for _ in range(30):
                        q = 0.5 * (value + high)
                        kl = 0.0
                        if mean > 0.0:
                            kl += mean * math.log(mean / q)
                        if mean < 1.0:
                            kl += (1.0 - mean) * math.log((1.0 - mean) / (1.0 - q))
                        if n * kl <= math.log(t):
                            value = q
                        else:
                            high = q
                else:
                    rounds = horizon if kind == 6 else t
                    value = sums[k] / n + math.sqrt(max(math.log(rounds / (n_arms * n)), 0.0) / n)
                if value > top:
                    arm, top = k, value
        reward = 1.0 if rng.random() < means[arm] else 0.0
        pulls[arm] += 1.0
        sums[arm] += reward
        if kind == 8:
            scratch[arm] *= math.exp(0.1 / n_arms * reward / (0.9 * chance + 0.1 / n_arms))
        elif kind == 9:
            scratch[arm] *= math.exp(-0.05 * (1.0 - reward) / (chance + 0.025))
        if scratch[arm] > 1e200:
            for k in range(n_arms):
                scratch[k] *= 1e-200


def set_crossovers(n_arms):
    """Let the plain loop serve up to so many arms; None restores what abex uses."""
    for law, value in FEW_ARMS.items():
        FEW[law] = value if n_arms is None else n_arms


def ours(policy, environment, graph, steps, repeat):
    """CPU ns a step as simulated."""

    def spent(horizon):
        began = time.process_time_ns()
        play_replication(policy, environment, graph, as_checkpoints(2, horizon), 1, repeat)
        return time.process_time_ns() - began

    first = environment.n_arms if isinstance(policy, SWEEPING) else 1
    return (spent(first + steps) - spent(first)) / steps


def plain(policy, environment, graph, steps, repeat):
    set_crossovers(10**9)
    result = ours(policy, environment, graph, steps, repeat)
    set_crossovers(None)
    return result


def naive(name, environment, graph, steps, repeat):
    """CPU ns a step of the textbook's loop."""
    means, rng = environment.true_means, stream(repeat, "naive")
    paid = stream(repeat, "first").random(means.size) < means
    if graph is None:
        arrays = np.ones(means.size), np.ones(means.size), paid.astype(np.float64)
        began = time.process_time_ns()
        textbook(KINDS[name], means, steps, *arrays, rng)
    else:
        links = np.array(graph.links.out_start), np.array(graph.links.out_arms)
        began = time.process_time_ns()
        abe_loop(*links, means, steps, 1.0, rng)
    return (time.process_time_ns() - began) / steps


def measure(name, n_arms):
    """Medians of ours, plain (nan beyond a thousand arms) and the textbook's loop."""
    policy = POLICIES[name]
    means = stream(0, "means", n_arms).random(n_arms) * 0.5
    means[0] = 0.75
    environment = Bernoulli(means)
    graph = erdos_renyi(n_arms, min(NEIGHBOURS / n_arms, 0.5), seed=1) if "graph" in name else None
    steps = 300_000 if graph else max(200_000, 2 * n_arms)
    ours(policy, environment, graph, 500, 0)  # compiles
    naive(name, environment, graph, 2, 0)
    few = int(min(steps, max(2, BUDGET / naive(name, environment, graph, 3, 0))))
    compare = n_arms <= 1000
    if compare:
        plain(policy, environment, graph, 500, 0)
    rows = [
        (
            ours(policy, environment, graph, steps, r),
            plain(policy, environment, graph, min(steps, 4 * few), r) if compare else math.nan,
            naive(name, environment, graph, few, r),
        )
        for r in range(REPEATS)
    ]
    return tuple(float(x) for x in np.median(rows, axis=0))


def size(part):
    """Bytes of the arrays of a record."""
    if isinstance(part, np.ndarray):
        return part.nbytes
    return sum(size(getattr(part, name)) for name in getattr(part, "_fields", ()))


def print_law(policy, state, t, draws):
    """Whether draws from a state have the probabilities that the policy states."""
    law, rng = np.zeros(state.observations.size), stream(1, "long")
    policy.probabilities(state, t, law)
    select = compile_alone(policy.kernels().select)
    drawn = np.bincount([select(state, t, rng) for _ in range(draws)], minlength=law.size)
    likely = law * draws > 10
    test = chisquare(drawn[likely], law[likely] / law[likely].sum() * drawn[likely].sum())
    print(
        f"law at the end: {likely.sum()} arms, the largest probability {law.max():.2g}, chi-square p = {test.pvalue:.2f}"
    )


def long_run(steps, n_arms=1000, draws=400_000):
    """ABE for very many steps: whether masses, lists and means are what a recomputation gives, and the law the softmax."""
    policy = ABE(eta=0.03, c=1.0, alpha=0.5)
    environment = Bernoulli(0.5 + 1e-4 * stream(0, "long").random(n_arms))
    state, cost = play_replication(policy, environment, None, as_checkpoints(2, steps), 1, 0)[-1:-3:-1]
    print(f"ABE, {n_arms} arms, {steps:.0e} steps: {cost:.1f} ns a step")
    buckets = state.sampler
    arms = np.bincount(buckets.bucket, minlength=buckets.arms.size)
    counts = np.where(np.arange(arms.size) == TAIL, n_arms, arms)
    mass = np.where(arms > 0, np.floor(counts * buckets.upper) + 1.0, 0.0)
    recomputed = np.array_equal(mass, buckets.mass) and mass.sum() == buckets.total
    print(f"arms of a bucket: {'as counted' if np.array_equal(arms, buckets.arms) else 'WRONG'}; masses: "
          f"{'as recomputed' if recomputed else 'WRONG'}")  # fmt: skip
    sums = state.observations * state.means
    seen = state.observations
    print(f"observations {seen.min():.3g} to {seen.max():.3g}, together {seen.sum():.0f}; a sum of rewards is "
          f"{np.abs(sums - sums.round()).max():.1e} from a whole number at most")  # fmt: skip
    print_law(policy, state, steps + 1, draws)


def step_costs(lines: dict[str, list[tuple[int, float, float]]], *, path: str | Path | None = None) -> Any:
    """Nanoseconds per step over the number of arms: each policy as it plays (solid) and the textbook's loop (dotted).

    ``lines`` has for each policy rows ``(arms, ours, textbook)``.
    """
    from abex.support.figures import canvas, entitle, save, style_of

    figure, axes = canvas()
    for position, (label, rows) in enumerate(lines.items()):
        colour = style_of(position)["color"]
        arms = [row[0] for row in rows]
        axes.plot(arms, [row[1] for row in rows], label=label, color=colour, marker="o", markersize=3)
        axes.plot(arms, [row[2] for row in rows], color=colour, linestyle=":", linewidth=1.0, alpha=0.7)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("arms")
    axes.set_ylabel("nanoseconds of CPU per step")
    entitle(axes, "What a step costs", "decision, Bernoulli reward and update; dotted: a loop over all arms")
    axes.legend(
        fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False
    )  # dotted lines fill the corners
    return save(figure, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arms", default="10,100,1000,10000,100000,1000000")
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--figure", help="draw ns per step against arms into this file (.svg, .png, .pdf)")
    parser.add_argument("--long", type=float, metavar="STEPS", help="instead: one run of so many steps")
    options = parser.parse_args()
    if options.long:
        return long_run(int(options.long))
    lines = {}
    print(f"{'policy':<16}{'arms':>8}{'ours ns':>10}{'plain ns':>12}{'textbook ns':>14}{'ratio':>9}")
    for name in options.policies.split(","):
        for n_arms in map(int, options.arms.split(",")):
            fast, slow, text = measure(name, n_arms)
            lines.setdefault(name, []).append((n_arms, fast, text))
            print(
                f"{name:<16}{n_arms:>8}{fast:>10.0f}{slow:>12.0f}{text:>14.0f}{text / fast:>9.1f}", flush=True
            )
    setting = Setting(10**6, 10**6)
    print("bytes an arm: " + ", ".join(f"{n} {size(POLICIES[n].start(setting)) / 1e6:.0f}" for n in lines))
    if options.figure:
        step_costs(lines, path=options.figure)


if __name__ == "__main__":
    main()
