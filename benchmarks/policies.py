"""Nanoseconds of CPU per step of every policy, against a hand-written Numba loop of the same policy in the same run.

    python benchmarks/policies.py [--arms 10 100] [--milliseconds 50]

The baseline is what an expert writes in an afternoon: one njit function with policy, Bernoulli rewards and regret fused,
arrays as arguments, NumPy's generator. Rounds are interleaved, the median of several is shown. A ratio of 1 or more means
that abex is at least as fast.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from abex import Bernoulli, parse_policy
from abex.simulation import as_checkpoints, play_replication
from abex.support.randomness import counter_key, stream
from hand_written import LOOPS

POLICIES = {
    "Uniform": "Uniform",
    "EpsilonGreedy": "EpsilonGreedy",
    "UCB1": "UCB1",
    "UCBV": "UCBV",
    "KLUCB": "KLUCB",
    "MOSS": "MOSS",
    "Thompson": "Thompson",
    "Boltzmann": "Boltzmann(eta=1.0)",
    "ABE": "ABE(eta=1.0)",
    "BoltzmannGumbel": "BoltzmannGumbel",
    "Exp3": "Exp3",
    "Exp3IX": "Exp3IX",
    "Exp3P": "Exp3P",
    "Exp3PlusPlus": "Exp3PlusPlus",
    "TsallisINF": "TsallisINF",
}


def ours(policy, environment, steps, seed):
    before = time.process_time_ns()
    play_replication(policy, environment, None, as_checkpoints(100, steps), seed, 0)
    return (time.process_time_ns() - before) / steps


def theirs(loop, means, steps, seed):
    rng = stream(seed, "baseline")
    checkpoints = as_checkpoints(100, steps)
    curve = np.zeros(checkpoints.size)
    before = time.process_time_ns()
    loop(means, steps, checkpoints, curve, rng)
    return (time.process_time_ns() - before) / steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arms", type=int, nargs="+", default=[10, 100])
    parser.add_argument("--milliseconds", type=float, default=50.0, help="length of each baseline run")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", nargs="*", default=list(POLICIES))
    options = parser.parse_args()
    print(f"{'policy':18}{'arms':>6}{'hand-written ns':>17}{'abex ns':>10}{'ratio':>8}")
    for name in options.only:
        policy, loop = parse_policy(POLICIES[name]), LOOPS[name]
        for arms in options.arms:
            means = np.array([0.75] + [0.5] * (arms - 1))
            environment = Bernoulli(means)
            environment.open(counter_key(0), 1)
            ours(policy, environment, 1000, 0)
            theirs(loop, means, 1000, 0)
            steps = int(options.milliseconds * 1e6 / theirs(loop, means, 20_000, 0))
            pairs = [
                (theirs(loop, means, steps, r), ours(policy, environment, steps, r))
                for r in range(options.rounds)
            ]
            baseline, mine = np.median(pairs, axis=0)
            ratio = float(np.median([b / m for b, m in pairs]))
            print(f"{name:18}{arms:>6}{baseline:>17.0f}{mine:>10.0f}{ratio:>8.2f}")


if __name__ == "__main__":
    main()
