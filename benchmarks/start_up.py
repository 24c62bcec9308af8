"""CPU seconds to import abex, and to simulate a policy in a new process with an empty and with a warm kernel cache.

With ten arms ABE draws from levels, which is more code to compile than the loop over two arms.

python benchmarks/start_up.py
"""

from __future__ import annotations

import itertools
import os
import resource
import statistics
import subprocess
import sys
import tempfile

SIMULATE = (
    "from abex import {policy}, Bernoulli, simulate;"
    "simulate({policy}(), Bernoulli([0.4] * {losing} + [0.6]), horizon=1000, replications=2)"
)


def cpu(code: str, cache: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "ABEX_CACHE": cache})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        bare = statistics.median(cpu("import numpy", folder) for _ in range(5))
        ours = statistics.median(cpu("import abex", folder) for _ in range(5))
        print(f"import numpy {bare:.2f} s, import abex {ours - bare:.2f} s beyond it")
        for policy, arms in itertools.product(("UCB1", "ABE", "Thompson"), (2, 10)):
            code = SIMULATE.format(policy=policy, losing=arms - 1)
            own = os.path.join(folder, f"{policy}-{arms}")
            cold = cpu(code, own)
            warm = statistics.median(cpu(code, own) for _ in range(3))
            print(f"{policy}, {arms} arms: cold {cold:.2f} s, warm {warm:.2f} s")


if __name__ == "__main__":
    main()
