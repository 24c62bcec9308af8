"""Nanoseconds of CPU per step against the number of arms, for every policy that does not pay for each of them.

    python benchmarks/many_arms.py                    the table
    python benchmarks/many_arms.py --figure docs/many_arms.svg

Each line has three numbers from one process, the median of three runs each: the policy as `simulate` plays it
(decision, Bernoulli reward, update), our plain loop over all arms, and the textbook's loop, written here as one would
in Numba: every index or weight from counts and sums, with its square roots and logarithms.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time

import numba
import numpy as np

from abex import ABE, KLUCB, MOSS, UCB1, UCBV, AnytimeMOSS, Bernoulli, Boltzmann, BoltzmannGumbel, Thompson
from abex.policies import crossover
from abex.policies.base import Setting
from abex.randomness import stream
from abex.simulation import as_checkpoints, play_replication

POLICIES = [
    ABE(eta=1.0), Boltzmann(eta=1.0), BoltzmannGumbel(), Thompson(), UCB1(), UCBV(), KLUCB(), MOSS(), AnytimeMOSS(),
]  # fmt: skip
CROSSOVERS = {name: value for name, value in vars(crossover).items() if name.isupper()}
REPEATS = 3


@numba.njit(error_model="numpy")
def textbook(kind, means, steps, scratch, pulls, sums, rng):
    """The loop of the literature: all arms at every step."""
    n_arms = means.size
    for t in range(1, steps + 1):
        arm, top = 0, -math.inf
        if kind == 0:  # Boltzmann
            rate = math.sqrt(t - 1.0)
            for k in range(n_arms):
                scratch[k] = sums[k] / max(pulls[k], 1.0)
                top = max(top, scratch[k])
            total = 0.0
            for k in range(n_arms):
                scratch[k] = math.exp(rate * (scratch[k] - top))
                total += scratch[k]
            rest = rng.random() * total
            while arm < n_arms - 1 and rest >= scratch[arm]:
                rest -= scratch[arm]
                arm += 1
        else:
            for k in range(n_arms):
                n = pulls[k]
                if n == 0.0 and kind != 2:
                    value = math.inf
                elif kind == 1:
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
                    value = sums[k] / n + math.sqrt(max(math.log(t / (n_arms * n)), 0.0) / n)
                if value > top:
                    arm, top = k, value
        pulls[arm] += 1.0
        sums[arm] += 1.0 if rng.random() < means[arm] else 0.0


KINDS = {
    "ABE": 0, "Boltzmann": 0, "BoltzmannGumbel": 1, "Thompson": 2, "UCB1": 3, "UCBV": 4, "KLUCB": 5, "MOSS": 6,
    "AnytimeMOSS": 6,
}  # fmt: skip


def set_crossovers(n_arms):
    for name, value in CROSSOVERS.items():
        setattr(crossover, name, value if n_arms is None else n_arms)


def ours(policy, environment, horizon, n_arms):
    """Ns per step as simulated; ``n_arms`` sets the crossover, None leaves it."""
    set_crossovers(n_arms)
    play_replication(policy, environment, None, as_checkpoints(2, 500), 1, 0)  # compiles
    runs = [play_replication(policy, environment, None, as_checkpoints(2, horizon), 1, r).nanoseconds
            for r in range(REPEATS)]  # fmt: skip
    set_crossovers(None)
    return statistics.median(runs)


def naive(policy, environment, horizon):
    n_arms, kind = environment.n_arms, KINDS[type(policy).__name__]
    runs = []
    for r in range(REPEATS + 1):
        steps = horizon if r else 20
        arrays = np.zeros(n_arms), np.zeros(n_arms), np.zeros(n_arms)
        if kind not in (0, 2):  # the first sweep is nobody's point
            arrays[1][:], arrays[2][:] = 1.0, stream(r, "first").random(n_arms) < environment.true_means
        began = time.process_time_ns()
        textbook(kind, environment.true_means, steps, *arrays, stream(r, "naive"))
        runs.append((time.process_time_ns() - began) / steps)
    return statistics.median(runs[1:])


def memory(policy, n_arms=10**6):
    def size(part):
        return (
            part.nbytes
            if isinstance(part, np.ndarray)
            else sum(map(size, part))
            if isinstance(part, tuple)
            else 0
        )

    return size(policy.start(Setting(n_arms, n_arms))) / n_arms


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arms", default="10,100,1000,10000,1000000")
    parser.add_argument("--policies", default="")
    parser.add_argument("--figure", help="draw ns per step against arms into this file (.svg, .png, .pdf)")
    options = parser.parse_args()
    chosen = [p for p in POLICIES if not options.policies or type(p).__name__ in options.policies.split(",")]
    lines = {}
    print(f"{'policy':<16}{'arms':>8}{'ours ns':>10}{'plain ns':>12}{'textbook ns':>13}{'ratio':>8}")
    for policy in chosen:
        for n_arms in map(int, options.arms.split(",")):
            means = stream(0, "means", n_arms).random(n_arms) * 0.5
            means[0] = 0.75
            environment = Bernoulli(means)
            horizon = min(max(200_000, 10 * n_arms), 2_000_000)
            slow = 100.0 if isinstance(policy, KLUCB) else 10.0  # ns an arm, roughly
            short = int(min(horizon, max(3, 2e9 / slow / n_arms / REPEATS)))
            fast = ours(policy, environment, horizon, None)
            plain = ours(policy, environment, max(short, 5), 10**9)
            text = naive(policy, environment, short)
            lines.setdefault(type(policy).__name__, []).append((n_arms, fast, plain, text))
            name = type(policy).__name__
            print(
                f"{name:<16}{n_arms:>8}{fast:>10.0f}{plain:>12.0f}{text:>13.0f}{text / fast:>8.1f}",
                flush=True,
            )
    print("bytes an arm: " + ", ".join(f"{type(p).__name__} {memory(p):.0f}" for p in chosen))
    if options.figure:
        from abex.figures import step_costs

        step_costs(lines, path=options.figure)


if __name__ == "__main__":
    main()
