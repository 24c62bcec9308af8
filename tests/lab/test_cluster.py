"""A real Dask scheduler and worker processes on the loopback interface."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from abex.lab.results import Claims, Store, key_of
from abex.lab.sweeps.executors import at_address
from abex.lab.sweeps.sweep import raise_on_failure, sweep
from abex.support.errors import UserError
from tests.each import each
from tests.lab.sweep_cells import cells, dump
from tests.waiting import PATIENCE, wait_until

pytest.importorskip("distributed", reason="the extra 'cluster' (Dask) is not installed")
ROOT = Path(__file__).parents[2]


class Cluster:
    """A scheduler and some workers, each its own process."""

    def __init__(self, folder: Path, workers: int = 2, *options: str) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "10",
        }
        self.processes: list[subprocess.Popen] = []
        self.scheduler = self.start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        self.address = self.wait_for("scheduler", r"Scheduler at:\s+(tcp://\S+)")
        self.workers = [self.add_worker(i, *options) for i in range(workers)]
        for i in range(workers):
            self.wait_for(f"worker{i}", r"(Registered to)")

    def start(self, name: str, *arguments: str) -> subprocess.Popen:
        module = "scheduler" if name == "scheduler" else "worker"
        log = open(self.folder / f"{name}.log", "w")  # noqa: SIM115 - the process keeps it
        process = subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.dask_{module}", *arguments],
            stdout=log, stderr=log, env=self.environment, cwd=self.folder,
        )  # fmt: skip
        self.processes.append(process)
        return process

    def add_worker(self, i: int, *more: str) -> subprocess.Popen:
        options = ["--no-nanny", "--nthreads", "1", "--no-dashboard", "--death-timeout", str(PATIENCE)]
        return self.start(f"worker{i}", self.address, *options, *more)

    def wait_for(self, name: str, pattern: str) -> str:
        log = self.folder / f"{name}.log"
        return wait_until(lambda: re.search(pattern, log.read_text()), self.processes[-1])[1]

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """A scheduler may take its time to answer; a cell that waits for its gate takes no other one along."""
    monkeypatch.setattr("abex.lab.sweeps.executors.CONNECT_SECONDS", PATIENCE)
    monkeypatch.setattr(sys.modules[sweep.__module__], "BATCH_SECONDS", 0.0)


@pytest.fixture
def cluster(tmp_path):
    running = Cluster(tmp_path)
    yield running
    running.close()


def test_a_killed_worker_loses_nothing_and_doubles_nothing(tmp_path, cluster):
    gate = tmp_path / "gate"
    wanted = [*cells(20), *cells(40, gate=str(gate))]
    killed = []

    def tell(state):
        if state.computed >= 10 and not killed:
            cluster.workers[0].kill()
            killed.append(state.computed)
            gate.touch()

    with Store(tmp_path / "cells.sqlite") as store:
        with at_address(cluster.address) as workers:
            state = sweep(wanted, store, workers, tell)
        raise_on_failure(state)
        assert 10 <= killed[0] <= 20
        assert state.computed == len(store) == 60
        with Store(tmp_path / "local.sqlite") as local:
            sweep(wanted, local)
            assert dump(store) == dump(local)


def test_a_lost_scheduler_is_one_sentence_and_what_was_done_stays(tmp_path, cluster):
    gate = tmp_path / "gate"
    wanted = [*cells(10), *cells(50, gate=str(gate))]

    def tell(state):
        if state.computed >= 5 and cluster.scheduler.poll() is None:
            cluster.scheduler.kill()

    with Store(tmp_path / "cells.sqlite") as store:
        with (
            pytest.raises(UserError, match=r"lost the scheduler at tcp://.*what was finished is stored"),
            at_address(cluster.address) as workers,
        ):
            sweep(wanted, store, workers, tell)
        assert 5 <= len(store) <= 10
        gate.touch()
        state = sweep(wanted, store)
        assert state.stored + state.computed == 60


def test_a_cluster_without_workers_is_said_and_the_first_one_begins(tmp_path, monkeypatch):
    monkeypatch.setattr("abex.lab.sweeps.executors.WORD_SECONDS", 0.0)
    monkeypatch.setattr("abex.lab.sweeps.executors.WORKER_SECONDS", PATIENCE)
    cluster, said = Cluster(tmp_path, 0), []

    def say(message):
        said.append(message)
        cluster.add_worker(0)

    try:
        with Store(tmp_path / "cells.sqlite") as store, at_address(cluster.address, say) as workers:
            assert sweep(cells(3), store, workers).computed == 3
    finally:
        cluster.close()
    assert len(said) == 1
    assert f"{cluster.address} has no worker" in said[0]


def test_the_wait_for_workers_has_an_end(tmp_path, monkeypatch):
    """As after the death of a scheduler whose workers have ended with it: the same command, on a new scheduler."""
    monkeypatch.setattr("abex.lab.sweeps.executors.WORKER_SECONDS", 0.0)
    cluster = Cluster(tmp_path, 0)
    sentence = (
        rf"{cluster.address} has had no worker for 0 seconds: start one with `dask worker {cluster.address}`"
    )
    try:
        with (
            Store(tmp_path / "cells.sqlite") as store,
            at_address(cluster.address) as workers,
            pytest.raises(UserError, match=sentence),
        ):
            sweep(cells(3), store, workers)
        with Claims(tmp_path / "cells.sqlite") as other:
            assert len(other.take(key_of(cell) for cell in cells(3))) == 3
    finally:
        cluster.close()


def test_a_worker_without_abex_is_named(tmp_path):
    (tmp_path / "block.py").write_text("import sys\nsys.modules['abex'] = None\n")
    cluster = Cluster(tmp_path, 1, "--preload", str(tmp_path / "block.py"))
    try:
        with (
            Store(tmp_path / "cells.sqlite") as store,
            at_address(cluster.address) as workers,
            pytest.raises(UserError, match=r"the worker tcp://\S+ cannot run abex .*install"),
        ):
            sweep(cells(3), store, workers)
    finally:
        cluster.close()


def test_a_worker_with_another_numpy_is_named_with_its_host(tmp_path):
    other = "from importlib import metadata\nmetadata.version = lambda name: '1.0'\n"
    (tmp_path / "other.py").write_text(other)
    cluster = Cluster(tmp_path, 1, "--preload", str(tmp_path / "other.py"))
    try:
        with (
            Store(tmp_path / "cells.sqlite") as store,
            at_address(cluster.address) as workers,
            pytest.raises(UserError, match=rf"the worker on {socket.gethostname()} has numpy 1.0, numba 1.0"),
        ):
            sweep(cells(3), store, workers)
    finally:
        cluster.close()


def test_a_scheduler_lost_while_all_wait_prints_nothing_of_its_own(tmp_path, cluster):
    arguments = ["-c", LOSER, str(tmp_path / "cells.sqlite"), cluster.address, str(tmp_path / "begun")]
    client = subprocess.Popen(
        [sys.executable, *arguments], env=cluster.environment, stderr=subprocess.PIPE, text=True
    )
    wait_until((tmp_path / "begun").exists, client)
    cluster.scheduler.kill()
    error = client.communicate(timeout=PATIENCE)[1]
    assert error.startswith("lost the scheduler at")
    assert error.count("\n") == 1


LOSER = """
import sys
from abex.support.errors import UserError
from abex.lab.results import Store
from abex.lab.sweeps.executors import at_address
from abex.lab.sweeps.sweep import sweep
from tests.lab.sweep_cells import cells
try:
    with Store(sys.argv[1]) as store, at_address(sys.argv[2]) as workers:
        sweep(cells(2, pause=10_000, begun=sys.argv[3]), store, workers)
except UserError as error:
    print(error, file=sys.stderr)
"""


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "ucx://x:1", "tcp://127.0.0.1:99999"])
def test_where_nobody_answers_is_one_sentence(address, monkeypatch):
    monkeypatch.setattr("abex.lab.sweeps.executors.CONNECT_SECONDS", 1)
    with pytest.raises(UserError, match="no Dask scheduler answers at"), at_address(address):
        pass


@each("address", ["", "nonsense", "tcp://", "http://x:80", "nonsense://x", "ucx://x", "x:8786"])
def test_what_is_no_address_is_one_sentence(address):
    with (
        pytest.raises(UserError, match=r"is no address of a Dask scheduler: write tcp://HOST"),
        at_address(address),
    ):
        pass
