"""The probability of every decision against a million draws, for every policy of the library, and what it costs.

    python -m benchmarks.probabilities [draws] [first policy by name]

Each example of each policy plays 34 arms (on a ring, where it must know a graph), and at two steps its stated distribution is
compared with so many draws of `select` by Pearson's chi-square test. CPU milliseconds are the median of 20 compiled calls.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from scipy.stats import chisquare
from tests.examples import examples

from abex import Graph, known_policies
from abex.kernels import compile_alone, compiled
from abex.policies.policy import Setting
from abex.support.randomness import stream

N_ARMS = 34
STEPS = (20, 400)


def counting(select: Any) -> Any:
    """A loop that counts what is selected."""

    @compiled(select)
    def count(state: Any, t: int, rng: Any, draws: int, counts: Any) -> None:
        for _ in range(draws):
            counts[select(state, t, rng)] += 1

    return count


def checked(policy: Any, draws: int) -> list[tuple[int, float, float, float]]:
    """(step, p-value, how far the sum is from 1, milliseconds) at each of the steps."""
    ring = Graph.from_edges([(k, (k + 1) % N_ARMS) for k in range(N_ARMS)]) if policy.needs_graph else None
    setting = Setting(N_ARMS, 1_000, ring)
    select, update = policy.kernels()
    state, rng, count = policy.start(setting), stream(8, "play"), counting(select)
    tell, found = compile_alone(policy.probabilities), []
    for t in range(1, STEPS[-1] + 1):
        if t in STEPS:
            out, counts, times = np.zeros(N_ARMS), np.zeros(N_ARMS, np.int64), []
            tell(state, t, out)
            for _ in range(20):
                began = time.thread_time()
                tell(state, t, out)
                times.append(time.thread_time() - began)
            count(state, t, rng, draws, counts)
            likely = out * draws > 5
            assert not counts[out == 0.0].any(), f"{policy} plays an arm of probability 0"
            wanted = out[likely] * counts[likely].sum() / out[likely].sum()
            p = float(chisquare(counts[likely], wanted).pvalue) if likely.sum() > 1 else 1.0
            found.append((t, p, abs(float(out.sum()) - 1.0), 1e3 * float(np.median(times))))
        arm = select(state, t, rng)
        update(state, t, arm, arm, float(rng.random() < 0.2 + 0.6 * arm / N_ARMS), rng)
    return found


def main(draws: int, first: str = "") -> None:
    """A table, and the least p-value."""
    least, tests = 1.0, 0
    print(f"{'policy':44} {'step':>5} {'p-value':>9} {'|sum - 1|':>10} {'ms':>8}")
    for name, cls in known_policies().items():
        if not cls.__module__.startswith("abex.") or name < first:
            continue
        for policy in examples(cls):
            for t, p, astray, spent in checked(policy, draws):
                print(f"{str(policy)[:44]:44} {t:5} {p:9.2g} {astray:10.1e} {spent:8.3f}", flush=True)
                least, tests = min(least, p), tests + 1
    print(
        f"{tests} tests of {draws:,} draws: least p-value {least:.2g}, Bonferroni {min(1.0, least * tests):.2g}"
    )


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000, *sys.argv[2:3])
