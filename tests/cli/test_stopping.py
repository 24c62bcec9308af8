"""Commands end soon after a signal, whatever they are doing, with a word, and what was finished is stored."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from abex.lab.results import Store
from tests.waiting import PATIENCE, wait_until

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals")

#: `abex run` of an experiment that is two cells of the tests: a quick one, and one in the depths of compiled code
COMMAND = """
import signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it in the background
import abex.cli.run
from abex.cli import main
from abex.lab.sweeps.executors import executor_of
from abex.lab.sweeps.sweep import sweep
from tests.lab.sweep_cells import cells, deaf

place, folder, begun = sys.argv[1:]
long = {"kind": "tests.lab.sweep_cells:deaf", "seed": 1, "begun": begun}

def work(experiment, store, **options):
    sweep(cells(1), store)
    if place == "main":
        deaf(long, None)
    if place == "adrift":  # as when the signal comes while a pool starts a thread: nobody joins it
        threading.Thread(target=deaf, args=(long, None)).start()
        time.sleep(10_000)
    with executor_of(place, 1) as executor:
        sweep([long], store, executor)

abex.cli.run.run_one = work
abex.cli.run.find = lambda what: what
main(["run", "any", "--results", folder])
"""


@pytest.mark.parametrize(
    ("place", "number", "code", "word"),
    [
        ("main", signal.SIGINT, 130, "stopped\n"),
        ("adrift", signal.SIGINT, 130, "stopped\n"),
        ("adrift", signal.SIGTERM, 143, "abex: stopped by SIGTERM; what was finished is kept\n"),
        ("threads", signal.SIGINT, 130, "stopped\n"),
        ("threads", signal.SIGTERM, 143, "abex: stopped by SIGTERM; what was finished is kept\n"),
        ("processes", signal.SIGTERM, 143, "abex: stopped by SIGTERM; what was finished is kept\n"),
    ],
)
def test_a_signal_ends_a_run_that_cannot_listen(tmp_path, place, number, code, word):
    begun = tmp_path / "begun"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    arguments = [sys.executable, "-c", COMMAND, place, str(tmp_path), str(begun)]
    process = subprocess.Popen(arguments, env=environment, stderr=subprocess.PIPE, text=True)
    wait_until(begun.exists, process)
    process.send_signal(number)
    error = process.communicate(timeout=PATIENCE)[1]  # the cell would last for hours
    assert process.returncode == code
    assert error.lstrip("\n") == word
    with Store(tmp_path / "cells.sqlite") as store:
        assert len(store) == 1
