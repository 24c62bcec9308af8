"""Measure again and write what the pages show: every benchmark by one command, with the machine and the date beside the figures.

    python -m benchmarks.tables                     all of them, many hours; `make benchmarks-docs`
    python -m benchmarks.tables steps graphs        some of them
    python -m benchmarks.tables --list              what there is, and how old each result is

What a benchmark prints goes to ``docs/benchmarks/NAME.txt``, which the page ``docs/benchmarks.md`` includes; some write tables or
figures of other pages themselves. A benchmark that fails leaves its former result in place.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "benchmarks"


class Benchmark(NamedTuple):
    """What is measured, by which arguments of ``python``, and the page that speaks about it."""

    command: str
    what: str
    page: str


BENCHMARKS = {
    "steps": Benchmark(
        "benchmarks/policies.py", "ns a step of every policy beside a hand-written Numba loop", "many_arms"
    ),
    "many-arms": Benchmark(
        "benchmarks/many_arms.py --figure docs/many_arms.svg", "ns a step, ten to a million arms", "many_arms"
    ),
    "start-up": Benchmark(
        "benchmarks/start_up.py", "CPU seconds of a first call, cold and warm", "compiling"
    ),
    "graphs": Benchmark(
        "benchmarks/graphs.py", "steps on feedback graphs, building and solving them", "graphs"
    ),
    "facebook": Benchmark(
        "benchmarks/facebook.py 24", "regret on the Facebook network of the paper", "graphs"
    ),
    "evidence": Benchmark(
        "benchmarks/evidence_theory.py", "regret of Evidence over what is possible", "recommended_policy"
    ),
    "shop-silence": Benchmark(
        "benchmarks/shop.py silence", "clicks a visitor where silence expires", "late_rewards"
    ),
    "shop-newcomer": Benchmark(
        "benchmarks/shop.py newcomer", "what a bad new banner gets where silence expires", "late_rewards"
    ),
    "changes-of-order": Benchmark(
        "benchmarks/changes_of_order.py --half test --runs 20",
        "regret where levels move and orders change",
        "recommended_policy",
    ),
    "new-arms": Benchmark(
        "benchmarks/new_arms.py --half test --runs 200", "regret after arms have come", "recommended_policy"
    ),
    "changing": Benchmark(
        "-m benchmarks.changing", "regret in worlds that change, table and figures", "changing_worlds"
    ),
    "forgetting": Benchmark(
        "-m benchmarks.forgetting", "ns a step of policies that forget", "changing_worlds"
    ),
    "arena": Benchmark(
        "-m abex arena",
        "every policy on every instance",
        "which_policy",
    ),
    "probabilities": Benchmark(
        "-m benchmarks.probabilities", "stated probabilities against a million draws", "evaluation"
    ),
    "who-won": Benchmark(
        "-m benchmarks.who_won --out docs/why_one_may_look_tables.md",
        "false winners, times to a winner, widths of intervals",
        "why_one_may_look",
    ),
    "evaluation": Benchmark(
        "-m benchmarks.evaluation steady 1000", "bias and coverage of estimators on logs", "evaluation"
    ),
    "shared-players": Benchmark(
        "-m benchmarks.shared_player speed", "shared players: latency, rewards a second", "players"
    ),
    "serve": Benchmark("-m benchmarks.serve load", "the service beside a bare endpoint", "service"),
    "serve-floor": Benchmark("-m benchmarks.serve floor", "CPU beside constants", "service"),
    "boosting": Benchmark(
        "benchmarks/boosting.py", "us an iteration of boosting beside plain loops", "boosting"
    ),
    "boosting-errors": Benchmark(
        "benchmarks/boosting_errors.py", "test errors beside the published ones", "boosting"
    ),
    "boosting-front": Benchmark(
        "benchmarks/boosting_front.py --out docs/boosting_front",
        "error, CPU time and ranks of seven classifiers on thirteen tables",
        "boosting",
    ),
    "boosting-large": Benchmark("benchmarks/boosting_large.py", "a million rows of two classes", "boosting"),
    "boosting-probabilities": Benchmark(
        "benchmarks/boosting_probabilities.py small --splits 10",
        "logarithmic loss in cross-validation",
        "boosting",
    ),
    "boosting-bandit": Benchmark("benchmarks/boosting_bandit.py", "when choosing features pays", "boosting"),
    "boosting-robust": Benchmark("benchmarks/boosting_robust.py test", "wrong labels", "boosting"),
    "boosting-export": Benchmark(
        "benchmarks/boosting_export.py", "exported models: differences, time of a row", "boosting"
    ),
    "boosting-categories": Benchmark(
        "benchmarks/boosting_categories.py", "three codings of categories", "boosting"
    ),
    "data": Benchmark("benchmarks/data.py", "CPU seconds of loaders and of the Epinions pipeline", "data"),
}
#: scripts that others use, or that were run once to choose something
NO_TABLE = {
    "tables",
    "architecture",
    "lines",
    "same",
    "ways",
    "hand_written",
    "serve_load",
    "serve_floor",
    "serve_fire",
    "boosting_defaults",
    "interval_coverage",
    "bandit_logs",
    "boosting_figures",
    "boosting_policies",
    "conversions",
    "many_players",
    "network_cut",
    "paper",
    "players",
    "recommendation",
}


def machine() -> str:
    """Processor, cores and versions, in a line."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        processor = platform.processor() or platform.machine()
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba"))
    return f"{processor}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}, {packages}"


def commit() -> str:
    """The commit that is measured; with a plus where files have been changed since."""
    found = subprocess.run(
        ["git", "describe", "--always", "--dirty=+"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return found.stdout.strip() or "unknown"


def measure(name: str) -> bool:
    """Run a benchmark and keep what it prints; False if it fails."""
    command = BENCHMARKS[name].command
    before = os.getloadavg()[0]
    done = subprocess.run(
        [sys.executable, *shlex.split(command)], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        print(f"{name}: failed with exit code {done.returncode}; its former result stays", file=sys.stderr)
        return False
    today = datetime.datetime.now(datetime.UTC).date()
    head = f"$ python {command}\n{today}, commit {commit()}, load {before:.0f} to {os.getloadavg()[0]:.0f}\n{machine()}\n\n"
    RESULTS.mkdir(exist_ok=True)
    text = "\n".join(line.rstrip() for line in done.stdout.splitlines())
    (RESULTS / f"{name}.txt").write_text(f"{head}{text}\n", encoding="utf-8")
    print(f"{name}: written")
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="by default all")
    parser.add_argument("--list", action="store_true", help="what there is, and how old each result is")
    options = parser.parse_args()
    if unknown := sorted(set(options.names) - set(BENCHMARKS)):
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    names = options.names or list(BENCHMARKS)
    if options.list:
        for name in names:
            result = RESULTS / f"{name}.txt"
            measured = (
                result.read_text(encoding="utf-8").splitlines()[1] if result.exists() else "not measured yet"
            )
            print(f"{name:24}{BENCHMARKS[name].what}; {measured}")
        return
    sys.exit(sum(not measure(name) for name in names))


if __name__ == "__main__":
    main()
