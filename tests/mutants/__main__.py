"""Make each mistake in a copy of the sources and run the tests that should notice.

Kernels run as plain Python (``NUMBA_DISABLE_JIT``) unless a mutant asks for compiled ones: a mistake in a kernel
is a mistake in both, and interpreting it takes no compiler. Before the mutants, the same tests run on the sources as they
are: a test that fails anyway notices nothing.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutants.catalogue import ROOT, SOURCE, Mutant, catalogue, mutated, out_of_date

GOAL = 95.0  # per cent of the mutants that must be noticed
TIMEOUT = 300.0  # seconds for one mutant; an endless loop counts as noticed
PATIENCE = 20.0  # seconds for which its tests wait for what a mistake may keep from happening
CAUGHT, SURVIVED, BROKEN = "caught", "SURVIVED", "NO ANSWER"


def run_tests(copy: Path, tests: str, select: str, compiled: bool) -> tuple[str, str]:
    """What the tests say about the sources in ``copy``, and the last lines they print."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(copy / "src"),
        "PYTHONDONTWRITEBYTECODE": "",  # sources are compiled once for all mutants
        "ABEX_CACHE": str(copy / "cache"),
        "NUMBA_DISABLE_JIT": "0" if compiled else "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(copy / "hypothesis"),
        "ABEX_TEST_PATIENCE": str(PATIENCE),
    }
    command = [
        sys.executable, "-m", "pytest", "-q", "-x", "--tb=line", "-p", "no:cacheprovider", tests, "-k", select,
    ]  # fmt: skip
    if not compiled:  # words of 64 bits wrap around, of which interpreted NumPy would warn
        command += ["-W", "ignore:overflow encountered:RuntimeWarning"]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        return CAUGHT, f"no end after {TIMEOUT:.0f} s"
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    told = next(
        (line for line in lines if line.startswith("FAILED")), lines[-1] if lines else done.stderr[-300:]
    )
    if done.returncode < 0:  # a kernel that writes where it must not ends the process
        return CAUGHT, f"crashed: {told}"
    return {0: SURVIVED, 1: CAUGHT}.get(done.returncode, BROKEN), told


def new_copy(folder: Path, number: int) -> Path:
    """A copy of the sources to make mistakes in."""
    copy = folder / str(number)
    shutil.copytree(SOURCE, copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def try_mutant(mutant: Mutant, copy: Path) -> tuple[str, str, float]:
    """Make the mistake, ask the tests, take it back."""
    began = time.monotonic()
    path, changed = mutated(mutant)
    file = copy / "src" / "abex" / path
    whole = file.read_text(encoding="utf-8")
    compiled = Path(importlib.util.cache_from_source(str(file)))
    try:
        file.write_text(changed, encoding="utf-8")
        compiled.unlink(missing_ok=True)  # Python tells sources apart by the second they were written in
        answer, told = run_tests(copy, mutant.tests, mutant.select, mutant.compiled)
    finally:
        file.write_text(whole, encoding="utf-8")
        compiled.unlink(missing_ok=True)
    return answer, told, time.monotonic() - began


def failing_without_a_mutant(mutants: list[Mutant], copy: Path) -> list[str]:
    """Selections that do not pass on the sources as they are."""
    selections = defaultdict(set)
    for mutant in mutants:
        selections[mutant.tests, mutant.compiled].add(mutant.select)
    wrong = []
    for (tests, compiled), selected in sorted(selections.items()):
        answer, told = run_tests(copy, tests, " or ".join(f"({one})" for one in sorted(selected)), compiled)
        print(f"  {'passes' if answer == SURVIVED else 'FAILS'}: {tests}", flush=True)
        if answer != SURVIVED:
            wrong.append(f"{tests}: {told}")
    return wrong


def table(answers: list[tuple[Mutant, str, str, float]]) -> str:
    """The report, as Markdown."""
    lines = ["| room | caught | of |", "|---|---|---|"]
    for room in sorted({mutant.room for mutant, *_ in answers}):
        inside = [answer for mutant, answer, *_ in answers if mutant.room == room]
        lines.append(f"| {room} | {inside.count(CAUGHT)} | {len(inside)} |")
    caught = sum(answer == CAUGHT for _, answer, *_ in answers)
    lines.append(f"| all | {caught} | {len(answers)} |")
    lines += ["", "| answer | room | mutant | file | seconds |", "|---|---|---|---|---|"]
    for mutant, answer, _, seconds in sorted(answers, key=lambda one: (one[1] == CAUGHT, one[0].room)):
        lines.append(f"| {answer} | {mutant.room} | {mutant.name} | {mutant.path} | {seconds:.0f} |")
    return "\n".join(lines)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--only", default="", help="run mutants whose room, file or name contains this text")
    parser.add_argument("--check", action="store_true", help="only see whether every mutant still applies")
    parser.add_argument(
        "--goal", type=float, default=GOAL, help="per cent that must be caught (default %(default)s)"
    )
    parser.add_argument("--workers", type=int, default=1, help="mutants tried at once")
    parser.add_argument("--report", type=Path, help="write the table to this file too")
    options = parser.parse_args()
    mutants = catalogue()
    wrong = out_of_date(mutants)
    if wrong:
        print("The list of mutants is out of date; point these to the code as it is now:", *wrong, sep="\n- ")
        return 2
    print(f"{len(mutants)} mutants apply.")
    if options.check:
        return 0
    mutants = [m for m in mutants if options.only.lower() in f"{m.room} {m.path} {m.name}".lower()]
    if not mutants:
        print(f"No mutant is called {options.only!r}.")
        return 2
    with tempfile.TemporaryDirectory(prefix="abex-mutants-") as folder:
        copies: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for number in range(options.workers):
            copies.put(new_copy(Path(folder), number))
        copy = copies.get()
        print("The tests on the sources as they are:", flush=True)
        wrong = failing_without_a_mutant(mutants, copy)
        copies.put(copy)
        if wrong:
            print("These fail without any mutant; mend them first:", *wrong, sep="\n- ")
            return 2
        answers = []

        def one(mutant: Mutant) -> None:
            copy = copies.get()
            try:
                answer, told, seconds = try_mutant(mutant, copy)
            finally:
                copies.put(copy)
            answers.append((mutant, answer, told, seconds))
            print(f"{answer:9} {seconds:4.0f} s  {mutant.room}: {mutant.name}", flush=True)
            if answer != CAUGHT:
                print(f"               {told}", flush=True)

        with ThreadPoolExecutor(options.workers) as pool:
            list(pool.map(one, mutants))
    report = table(answers)
    if options.report:
        options.report.write_text(report + "\n", encoding="utf-8")
    caught = sum(answer == CAUGHT for _, answer, *_ in answers)
    share = 100.0 * caught / len(answers)
    print(
        f"\n{report}\n\n{caught} of {len(answers)} mutants are caught, {share:.1f} % (goal {options.goal:g} %)."
    )
    return 0 if share >= options.goal else 1


if __name__ == "__main__":
    sys.exit(main())
