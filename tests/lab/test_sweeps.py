from __future__ import annotations

import json
import multiprocessing
import os
import random
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import abex.lab.sweeps.cells
from abex import UCB1, Thompson
from abex.lab.results import CellResult, Claims, Store, key_of
from abex.lab.sweeps.bandit_cells import rows_of
from abex.lab.sweeps.cells import bandit_cell, run_cell, this_worker, work_of
from abex.lab.sweeps.executors import executor_of, outcomes_of
from abex.lab.sweeps.sweep import batched, raise_on_failure, sweep
from abex.support.errors import UserError
from abex.support.jobs import Threads
from tests.lab.sweep_cells import cells, dump
from tests.waiting import PATIENCE, wait_until

ROOT = Path(__file__).parents[2]
PROBLEM = {"environment": {"name": "Bernoulli", "means": [0.7, 0.4, 0.2]}}


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "cells.sqlite") as opened:
        yield opened


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    """Worker processes find the cells of the tests."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *sys.path]))


def bandits(count: int = 4) -> list[dict]:
    return [
        bandit_cell(policy, PROBLEM, horizon=200, checkpoints=10, seed=1, replication=r)
        for policy in (UCB1(), Thompson())
        for r in range(count)
    ]


def undisturbed(tmp_path, wanted) -> bytes:
    with Store(tmp_path / "undisturbed.sqlite") as store:
        with Threads(1) as pool:
            raise_on_failure(sweep(wanted, store, pool))
        return dump(store)


def test_a_cell_is_the_replication_that_simulate_plays():
    from abex import Bernoulli, simulate

    curves = simulate(
        [UCB1()], Bernoulli([0.7, 0.4, 0.2]), horizon=200, replications=4, seed=1, checkpoints=10
    )
    for r, cell in enumerate(bandits()[:4]):
        assert run_cell(cell).arrays["regret"].tolist() == curves.regret[0, r].tolist()


def test_an_executor_of_ones_own_stores_the_same_bytes_and_stays_open(tmp_path, store):
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as own:
        raise_on_failure(sweep(bandits(), store, own))
        assert own.submit(abs, -1).result() == 1
    assert dump(store) == undisturbed(tmp_path, bandits())
    with pytest.raises(UserError, match=r"executor must be a concurrent\.futures\.Executor, got int"):
        sweep(cells(1), store, 4)


def test_a_broken_executor_is_one_sentence_and_what_was_done_stays(store):
    killer = {"kind": "tests.lab.sweep_cells:killer", "seed": 1, "replication": 0, "pause": 0.5}
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as own:
        sweep(cells(3), store, own)
        with pytest.raises(
            UserError, match=r"^lost ProcessPoolExecutor: what was finished is stored, run again"
        ):
            sweep([killer, *cells(5)], store, own)
    assert len(store) >= 3


def test_a_second_run_computes_only_what_is_missing(tmp_path, store):
    diary = tmp_path / "diary"
    wanted = cells(12, diary=str(diary))
    assert sweep(wanted[:8], store).computed == 8
    state = sweep(wanted, store)
    assert (state.stored, state.computed, state.left) == (8, 4, 0)
    assert sorted(map(int, diary.read_text().split())) == list(range(12))


def test_a_damaged_entry_is_named_and_computed_again(tmp_path, store):
    wanted = cells(6)
    sweep(wanted, store)
    store._base.execute("UPDATE cells SET payload = x'01' WHERE key = ?", (key_of(wanted[3]),))
    state = sweep(wanted, store)
    assert (state.stored, state.computed) == (5, 1)
    assert key_of(wanted[3])[:12] in state.damaged[0]
    assert dump(store) == undisturbed(tmp_path, wanted)


def test_a_cell_that_fails_does_not_stop_the_others_and_is_named(store):
    bad = {"kind": "tests.lab.sweep_cells:fails", "seed": 1, "replication": 7}
    state = sweep([bad, *cells(5)], store)
    assert (state.computed, len(state.failed)) == (5, 1)
    with pytest.raises(UserError, match=r"1 of 6 cells failed.*replication 7.*ZeroDivisionError: by intent"):
        raise_on_failure(state)


def test_a_persons_mistake_stops_the_sweep_with_its_sentence(store):
    bad = {**bandits(1)[0], "problem": {"environment": {"name": "Bernouli", "means": [0.1]}}}
    with pytest.raises(UserError, match="did you mean 'Bernoulli'"):
        sweep([bad], store)
    with pytest.raises(UserError, match="did you mean 'bandit'"):
        sweep([{"kind": "bandits"}], store)


def test_processes_store_the_same_bytes_and_one_that_is_killed_is_replaced(tmp_path, store):
    mark = str(tmp_path / "mark")
    once = {"kind": "tests.lab.sweep_cells:killer", "seed": 1, "replication": 0, "mark": mark}
    wanted = [*bandits(), *cells(6, pause=0.01), {**once, "times": 5}, *cells(6, round=2)]
    with executor_of("processes", 2) as processes:
        state = sweep(wanted, store, processes)
    assert (state.computed, state.failed) == (21, [])
    assert Path(mark).read_text() == "xxxxxx"
    assert dump(store) == undisturbed(tmp_path, wanted)


class Mortal(Executor):
    """Carries a batch out at once, unless a cell in it kills its worker."""

    def __init__(self, deadly: int):
        self.deadly, self.batches = deadly, []

    def submit(self, function, batch):
        self.batches.append([cell["replication"] for cell in batch])
        future = Future()
        if self.deadly in self.batches[-1]:
            future.set_exception(RuntimeError("the node is gone"))
        else:
            future.set_result(function(batch))
        return future


def test_quick_replicates_travel_together_and_one_that_always_kills_its_worker_is_given_up_alone(store):
    """How long they take is known once one of the 256 that are under way at first is there."""
    mortal = Mortal(270)
    state = sweep(cells(300), store, mortal)
    assert state.computed == 299
    ((name, failure),) = state.failed
    assert "replication 270" in name
    assert failure.why == "its worker died: the node is gone"
    singles = [[r] for r in range(300)]
    together = [*range(257, 300)]  # the one before was looked at too early
    assert mortal.batches == [*singles[:257], together, *singles[257:], [270], [270]]


@pytest.mark.skipif(os.name != "posix", reason="kills")
def test_workers_whose_parent_was_killed_go_too(tmp_path):
    """They hold the standard error of their parent: whoever reads it would wait for the end of their cells."""
    begun = tmp_path / "begun"
    run = run_as_a_process(
        tmp_path / "cells.sqlite", 2, 10_000, "processes", {"begun": str(begun)}, stderr=subprocess.PIPE
    )
    wait_until(begun.exists, run)
    run.kill()
    run.communicate(timeout=PATIENCE)  # the cell would last for hours


def run_as_a_process(
    path, count: int, pause: float, where: str = "threads", more: dict | None = None, **options
) -> subprocess.Popen:
    arguments = [
        "-m",
        "tests.lab.sweep_cells",
        str(path),
        str(count),
        str(pause),
        where,
        json.dumps(more or {}),
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    return subprocess.Popen([sys.executable, *arguments], env=environment, **options)


def test_runs_killed_at_random_moments_end_in_the_same_store_as_an_undisturbed_one(tmp_path):
    """Really kills: -9 at a random moment, again and again, until a run comes through."""
    path, count, pause = tmp_path / "cells.sqlite", 120, 0.03
    luck = random.Random(7)
    before = 0

    def got_into_its_work(process, before):
        with Store(path) as store:
            return process.poll() is not None or len(store) > before

    for _ in range(6):
        process = run_as_a_process(path, count, pause)
        wait_until(partial(got_into_its_work, process, before))
        time.sleep(luck.random() * 0.15)
        process.kill()
        process.wait()
        with Store(path) as store:
            assert not store.damaged()
            assert len(store) >= before  # nothing that was there is lost
            before = len(store)
    assert before > 0
    assert run_as_a_process(path, count, pause=pause).wait(PATIENCE) == 0
    with Store(path) as store:
        assert dump(store) == undisturbed(tmp_path, cells(count, pause=pause))


def test_two_runs_on_one_store_share_the_cells(tmp_path):
    path, diary = tmp_path / "cells.sqlite", tmp_path / "diary"
    more = {"diary": str(diary)}
    runs = [run_as_a_process(path, 60, 0.03, "threads", more) for _ in range(2)]
    assert [run.wait(PATIENCE) for run in runs] == [0, 0]
    computed = [int(word) for word in diary.read_text().split()]
    assert sorted(set(computed)) == list(range(60))
    assert len(computed) <= 62  # both would be 120
    with Store(path) as store:
        assert dump(store) == undisturbed(tmp_path, cells(60, pause=0.03, **more))


def test_cells_of_another_run_are_waited_for_or_taken_over(store):
    """The other run finishes one of its cells and gives the rest back."""
    wanted = cells(6)
    told = []
    with Claims(store.path) as other:
        other.take(key_of(cell) for cell in wanted[:3])

        def tell(state):
            told.append((state.computed, state.shared, state.waiting))
            if state.waiting == 3:
                store.put([(wanted[0], run_cell(wanted[0]))])
                other.release(key_of(cell) for cell in wanted[:3])

        with Threads(1) as pool:
            state = sweep(wanted, store, pool, tell)
    assert (3, 0, 3) in told
    assert (state.computed, state.shared, state.left, state.waiting) == (5, 1, 0, 0)


def test_an_interrupted_sweep_gives_its_claims_back(store):
    def tell(state):
        if state.computed:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Threads(1) as pool:
        sweep(cells(50, pause=0.01), store, pool, tell)
    with Claims(store.path) as other:
        keys = {key_of(cell) for cell in cells(50, pause=0.01)}
        assert other.take(keys) == keys


def test_the_work_left_is_the_steps_of_the_cells_that_are_not_there(store):
    """After every commit; the cells that another run has stored count as done there, a failed one is not left."""
    wanted = [*bandits(2), {**bandits(1)[0], "horizon": 500, "replications": 3}]
    bad = {"kind": "tests.lab.sweep_cells:fails", "seed": 1, "replication": 7}
    assert [work_of(cell) for cell in [*wanted, bad]] == [200, 200, 200, 200, 1500, 1]
    store.put([(wanted[0], run_cell(wanted[0]))])
    told = []
    with Claims(store.path) as other:
        other.take([key_of(wanted[1])])

        def tell(state):
            told.append((state.work, state.work_left))
            if state.waiting:
                store.put([(wanted[1], run_cell(wanted[1]))])
                other.release([key_of(wanted[1])])

        with Threads(1) as pool:
            state = sweep([*wanted, bad], store, pool, tell)
    assert told[0] == (0, 2101)
    assert all(later[1] <= earlier[1] for earlier, later in pairwise(told))
    assert told[-1] == (1900, 0)
    assert (state.stored, state.shared, state.computed, len(state.failed)) == (1, 1, 3, 1)


def test_the_time_of_a_block_is_shared_by_its_replications():
    block = {**bandits(1)[0], "replication": 50, "replications": 3}
    arrays = {"step": np.array([9]), "regret": np.zeros((3, 1)), "hits": np.zeros((3, 1))}
    rows = rows_of(block, CellResult(arrays, measured={"seconds": 6.0, "nanoseconds": [1.0, 2.0, 3.0]}))
    assert [(number, one.measured) for number, one in rows] == [
        (50 + at, {"seconds": 2.0, "nanoseconds": at + 1.0}) for at in range(3)
    ]


def test_tiny_cells_travel_together_and_long_ones_alone():
    seconds = {r: 1e-9 if r < 1000 else 5.0 for r in range(1002)}
    sizes = [len(batch) for batch in batched(cells(1002), lambda cell: seconds[cell["replication"]])]
    assert sizes == [599, 401, 1, 1]  # half a millisecond each at least, 0.3 s together at most


def test_abandoning_a_sweep_stops_its_threads(store):
    began = threading.active_count()
    long = [{**cell, "horizon": 10**9} for cell in bandits(4)]
    with Threads(2) as pool:
        quick = outcomes_of(pool, [[cell] for cell in (*cells(1), *long)])
        next(quick)
        quick.close()  # must not wait for 10^9 steps
    assert threading.active_count() <= began


def test_a_worker_with_other_sources_is_refused(store, monkeypatch):
    there = replace(this_worker(), host="node7", sources="another")
    monkeypatch.setattr(abex.lab.sweeps.cells, "this_worker", lambda: there)
    with pytest.raises(
        UserError, match=r"the worker on node7 runs another version of abex \(other sources\)"
    ):
        sweep(cells(1), store)
    assert len(store) == 0


def test_a_worker_with_another_numpy_is_refused_unless_allowed_and_stands_in_the_record(store, monkeypatch):
    here = this_worker()
    there = replace(here, host="node7", versions={**here.versions, "numpy": "1.0"})
    monkeypatch.setattr(abex.lab.sweeps.cells, "this_worker", lambda: there)
    sentence = (
        f"the worker on node7 has numpy 1.0, here is numpy {here.versions['numpy']}, its numbers may differ"
    )
    with pytest.raises(UserError, match=re.escape(sentence)):
        sweep(cells(1), store)
    assert len(store) == 0
    monkeypatch.setenv("ABEX_MIXED_VERSIONS", "1")
    sweep(cells(1), store)
    ((_, measured),) = store.measured()
    assert measured["versions"] == there.versions


def test_a_policy_of_ones_own_travels_with_the_cell(tmp_path, store):
    source = (
        "from dataclasses import dataclass\n"
        "from abex import UCB1\n"
        "@dataclass(frozen=True)\n"
        "class Mine(UCB1):\n"
        "    pass\n"
    )
    cell = {**bandits(1)[0], "policy": "Mine(scale=2.0)", "code": {"mine.py": source}}
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as own:
        raise_on_failure(sweep([cell], store, own))
    with pytest.raises(UserError, match=r"mine\.py.*SyntaxError"):
        sweep([{**cell, "code": {"mine.py": "class"}}], store)
