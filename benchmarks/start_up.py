"""CPU seconds of a first call: to import abex, to simulate or to fit in a new process with an empty and with a warm kernel cache.

    python benchmarks/start_up.py [--policies ABE Thompson ...] [--arms 10] [--rounds 3] [--against /path/to/another/src]
    python benchmarks/start_up.py --fit

For each policy: *cold*, the first `simulate` of a process with an empty cache, all imports included; *another*, the
same in a process that has compiled and simulated another policy already; *warm*,
with what was compiled kept on disk, beyond importing Numba. Modules are there as bytecode, as after installing them. Processes
are run in turn, the smallest of several rounds is shown: a machine that does other work makes CPU time longer, never
shorter. ``--against`` measures other sources of abex, such as a worktree of an older commit, in turn with these.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

OURS = str(Path(__file__).resolve().parents[1] / "src")
BYTECODE = tempfile.TemporaryDirectory()  # as after installing, modules are read as bytecode
FIRST = "FollowTheLeader"
SIMULATE = "simulate({policy!r}, Bernoulli([0.4] * {losing} + [0.6]), horizon=1000, replications=2);"
FIT = """
import numpy as np
from abex.boosting import AdaBoostMHClassifier
X = np.random.default_rng(0).normal(size=(300, 10))
AdaBoostMHClassifier(random_state=0).fit(X, X[:, 0] * X[:, 1] > 0.0)
"""
POLICIES = (
    "Uniform", "EpsilonGreedy", "UCB1", "UCBV", "KLUCB", "MOSS", "Thompson", "Boltzmann(eta=1.0)", "ABE(eta=1.0)",
    "BoltzmannGumbel", "Exp3", "Exp3IX", "Exp3P", "Exp3PlusPlus", "TsallisINF",
)  # fmt: skip


def cpu(code: str, cache: str, sources: str) -> float:
    """CPU seconds of a process that runs this code."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {
        **os.environ,
        "ABEX_CACHE": cache,
        "PYTHONPATH": sources,
        "PYTHONPYCACHEPREFIX": BYTECODE.name,
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def start_up(policy: str, arms: int, sources: str) -> tuple[float, float, float]:
    """Cold, another and warm, in CPU seconds of whole processes."""
    imports = "from abex import Bernoulli, simulate;"
    code, first = (SIMULATE.format(policy=name, losing=arms - 1) for name in (policy, FIRST))
    with ExitStack() as stack:
        cold, one, two = (stack.enter_context(tempfile.TemporaryDirectory()) for _ in range(3))
        return (
            cpu(imports + code, cold, sources),
            cpu(imports + first + code, two, sources) - cpu(imports + first, one, sources),
            cpu(imports + code, cold, sources),
        )


def first_fit(sources: str) -> tuple[float, float]:
    """Cold and warm, of the classifier as it is unless told otherwise; reading scikit-learn included."""
    with tempfile.TemporaryDirectory() as folder:
        return cpu(FIT, folder, sources), cpu(FIT, folder, sources)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--policies", nargs="+", default=list(POLICIES))
    parser.add_argument("--arms", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--against", help="the src folder of other sources of abex")
    parser.add_argument("--fit", action="store_true", help="measure a first fit instead")
    options = parser.parse_args()
    places = {"here": OURS} | ({"there": options.against} if options.against else {})
    if options.fit:
        fits = [{name: first_fit(sources) for name, sources in places.items()} for _ in range(options.rounds)]
        libraries = min(cpu("import numba, sklearn.base", ".", OURS) for _ in range(options.rounds))
        for name in places:
            cold, warm = (min(column) for column in zip(*(fit[name] for fit in fits), strict=True))
            print(
                f"first fit ({name}): cold {cold:.2f} s, warm {warm:.2f} s; Numba and scikit-learn alone {libraries:.2f} s"
            )
        return
    with tempfile.TemporaryDirectory() as folder:
        rounds = range(options.rounds)
        for sources in places.values():
            cpu(
                "import numba; from abex import Bernoulli, simulate;"
                + SIMULATE.format(policy=FIRST, losing=1),
                folder,
                sources,
            )
        numpy, numba = (
            min(cpu(f"import {name}", folder, OURS) for _ in rounds) for name in ("numpy", "numba")
        )
        print(f"import numpy {numpy:.2f} s, import numba {numba:.2f} s")
        for name, sources in places.items():
            abex = min(cpu("import abex", folder, sources) for _ in rounds)
            print(f"import abex {abex - numpy:.2f} s beyond numpy ({name})")
    print(f"{'policy':20}{'arms':>6}{'':>8}{'cold':>8}{'another':>9}{'warm beyond numba':>19}")
    for policy in options.policies:
        found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in places}
        for _ in rounds:
            for name, sources in places.items():
                found[name].append(start_up(policy, options.arms, sources))
        for name, figures in found.items():
            cold, another, warm = (min(column) for column in zip(*figures, strict=True))
            print(f"{policy:20}{options.arms:>6}{name:>8}{cold:>8.2f}{another:>9.2f}{warm - numba:>19.2f}")


if __name__ == "__main__":
    main()
