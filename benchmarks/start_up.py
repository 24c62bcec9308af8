"""CPU seconds to import abex, and to simulate one policy in a new process with an empty and with a warm kernel cache.

python benchmarks/start_up.py
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile

SIMULATE = (
    "from abex import {policy}, Bernoulli, simulate;"
    "simulate({policy}(), Bernoulli([0.4, 0.6]), horizon=1000, replications=2)"
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
        for policy in ("UCB1", "ABE", "Thompson"):
            code = SIMULATE.format(policy=policy)
            cold = cpu(code, os.path.join(folder, policy))
            warm = statistics.median(cpu(code, os.path.join(folder, policy)) for _ in range(3))
            print(f"{policy}: cold {cold:.2f} s, warm {warm:.2f} s")


if __name__ == "__main__":
    main()
