"""Some thousands of the fuzzer's cases, in a process of their own; and that the fuzzer sees what it should."""

import sys
from collections import Counter
from itertools import islice

import numpy as np
import pytest

from tests.each import each
from tests.fuzz import __main__ as driver
from tests.fuzz import formats, worker
from tests.fuzz.outcomes import check_sentence

CASES = 6000
SEED = 20240607
PLANTED = """
import os, signal, time

def cases(rng):
    number = 0
    while True:
        yield number
        number += 1

def run(case):
    if case == 3:
        raise KeyError("traceback")
    if case == 5:
        os.kill(os.getpid(), signal.SIGSEGV)
    if case == 7:
        while True:
            pass
    if case == 9:
        bytearray(10**12)
    if case == 11:
        return "worked" * (len(b"x" * 100_000_000) > 0)
    return "worked" if case % 2 else "refused"
"""


def test_thousands_of_forged_inputs_work_or_are_refused_in_a_sentence():
    names = [name for name in formats.known() if name != "model files"]  # these have a test of their own
    counts = Counter()
    failures = []
    for name, number, outcome in driver.run_plan(driver.shares(names, CASES), SEED):
        counts[outcome.partition(":")[0]] += 1
        if outcome not in ("worked", "refused"):
            failures.append(f"{name}, case {number}: {outcome}")
    assert not failures, "\n".join(failures[:20])
    assert counts["worked"] > CASES / 10
    assert counts["refused"] > CASES / 3
    assert counts.total() == sum(driver.shares(names, CASES).values())


def test_crashes_hangs_tracebacks_and_hunger_are_found_and_the_rest_goes_on(tmp_path, monkeypatch):
    (tmp_path / "planted.py").write_text(PLANTED)
    (tmp_path / "start.py").write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "import planted\n"
        "sys.modules['tests.fuzz.planted'] = planted\n"
        "from tests.fuzz import formats, worker\n"
        "formats.ALL['planted'] = formats.Format('planted')\n"
        "worker.main()\n"
    )
    monkeypatch.setitem(formats.ALL, "planted", formats.Format("planted"))
    monkeypatch.setattr(driver, "LIMIT", 0.5)
    monkeypatch.setattr(driver, "WORKER", [sys.executable, str(tmp_path / "start.py")])
    found = {number: outcome for _, number, outcome in driver.run_plan({"planted": 14}, 1)}
    assert sorted(found) == list(range(14))
    assert "KeyError" in found.pop(3)
    assert "SIGSEGV" in found.pop(5)
    assert "more than 0.5 s" in found.pop(7)
    assert "MemoryError" in found.pop(9)
    assert "it took 1" in found.pop(11)  # megabytes, of which 60 are allowed
    assert all(outcome == ("worked" if number % 2 else "refused") for number, outcome in found.items())


def test_a_case_is_made_again_by_its_number():
    numbers = [n for n, _ in worker.numbered("edges", 5, 490, 20)]
    assert numbers == list(range(490, 510))
    (number, case), *_ = worker.numbered("edges", 5, 503, 1)
    again = dict(worker.numbered("edges", 5, 490, 20))
    assert again[number] == case
    cases, _ = formats.ALL["edges"].functions()
    assert len(list(islice(cases(np.random.default_rng(0)), 3))) == 3


@each("text", ["", "x" * 200, "two\nlines", "a\rb"])
def test_a_sentence_is_short_and_stands_in_one_line(text):
    with pytest.raises(AssertionError):
        check_sentence(text)


def test_the_table_counts_what_happened():
    counts = {"edges": Counter(worked=3, refused=2, failed=1)}
    rows = driver.table(counts, 7).splitlines()
    assert rows[0].startswith("Seed 7")
    assert rows[-2].startswith("| edges | 6 | 3 | 2 | 1 |")
    assert rows[-1].startswith("| **all** | 6 | 3 | 2 | 1 |")
