"""`abex serve` as a command: workers that are killed, a database that stops, an orderly end."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

from abex import Player
from abex.service import run
from tests import postgresql
from tests.needs import POSTGRESQL
from tests.service.serving import SOURCES, command, get, patient, wait_for, workers
from tests.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks for processes in /proc")


class Load(threading.Thread):
    """Decides and rewards until it is told to stop, and notes what was acknowledged."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self.client = patient(address)
        self.decided, self.rewarded, self.trouble, self.over = [], [], None, threading.Event()

    def run(self):
        try:
            while not self.over.is_set():
                choice = self.client.decide("x")
                self.decided.append(choice.id)
                self.client.reward("x", choice.id, 1.0)
                self.rewarded.append(choice.id)
        except Exception as error:
            self.trouble = error

    def stop(self):
        self.over.set()
        self.join()
        self.client.close()
        assert self.trouble is None, self.trouble


def check_log(store, loads):
    """Nothing that was acknowledged is missing, nothing counted twice."""
    with Player.open(store, "x") as player:
        log = player.log().set_index("decision")
        tallies = player._state.tallies
    assert log.index.is_unique
    for load in loads:
        assert set(load.decided) <= set(log.index)
        assert (log.loc[load.rewarded, "status"] == "rewarded").all()
    assert tallies.rewarded == tallies.observations.sum() == (log["status"] == "rewarded").sum()


def test_a_killed_worker_is_replaced_and_nothing_acknowledged_is_lost(tmp_path):
    store = f"sqlite:///{tmp_path}/shop.db?synchronous=normal"
    with command(store, "--workers", "2") as (process, address):
        patient(address).create("x", 5, "Thompson")
        wait_until(lambda: len(workers(process.pid)) == 2)
        before = workers(process.pid)
        loads = [Load(address) for _ in range(4)]
        for load in loads:
            load.start()
        wait_until(lambda: sum(len(load.rewarded) for load in loads) > 40)
        os.kill(before[0], signal.SIGKILL)
        wait_until(lambda: len(workers(process.pid)) == 2 and before[0] not in workers(process.pid))
        done = [len(load.rewarded) for load in loads]
        wait_until(
            lambda: all(len(load.rewarded) > count + 5 for load, count in zip(loads, done, strict=True))
        )
        for load in loads:
            load.stop()
        text = get(f"{address}/metrics").text
        assert 'abex_requests_total{endpoint="decide",status="200"}' in text
    assert process.returncode == 0
    check_log(store, loads)


def test_a_worker_that_does_not_answer_holds_up_neither_the_others_nor_the_end(tmp_path):
    with command(f"sqlite:///{tmp_path}/shop.db", "--workers", "2") as (process, _):
        silent, other = wait_until(lambda: (found := workers(process.pid))[1:] and found)
        os.kill(silent, signal.SIGSTOP)
        os.kill(other, signal.SIGKILL)
        replaced = wait_until(lambda: (found := workers(process.pid))[1:] and other not in found and found)
        assert silent in replaced  # long before its silence is over
        os.kill(silent, signal.SIGKILL)
        wait_until(lambda: len(found := workers(process.pid)) == 2 and silent not in found)
        for worker in workers(process.pid):
            os.kill(worker, signal.SIGSTOP)
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: all(signal.SIGTERM in waiting_signals(worker) for worker in workers(process.pid)))
        for worker in workers(process.pid):
            os.kill(worker, signal.SIGCONT)
    assert process.returncode == 0


def waiting_signals(pid):
    """Those that a process has been sent and has not heard."""
    fields = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {number for number in signal.Signals if int(fields["ShdPnd"], 16) >> (number - 1) & 1}


def test_a_worker_that_was_silent_for_too_long_is_given_up(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(run, "time", SimpleNamespace(monotonic=lambda: now[0]))
    worker = run.Worker.__new__(run.Worker)
    worker.pipe, theirs = Pipe(duplex=False)
    worker.heard = 0.0

    def silent(at):
        now[0] = at
        return worker.is_silent()

    assert [silent(0.0), silent(60.0), silent(61.0)] == [False, False, True]
    theirs.send_bytes(b".")
    assert [silent(70.0), silent(130.0), silent(131.0)] == [False, False, True]
    theirs.close()
    assert silent(132.0)  # the end of the pipe is no word


def test_a_worker_killed_while_it_starts_is_noticed_by_its_exit(tmp_path):
    with command(f"sqlite:///{tmp_path}/shop.db", "--workers", "2") as (process, address):
        known = set(wait_until(lambda: (found := workers(process.pid))[1:] and found))
        began = time.monotonic()
        for _ in range(2):
            os.kill(max(known & set(workers(process.pid))), signal.SIGKILL)
            (fresh,) = wait_until(lambda: set(workers(process.pid)) - known)
            known.add(fresh)
            os.kill(fresh, signal.SIGKILL)  # it has hardly begun
            (fresh,) = wait_until(lambda: set(workers(process.pid)) - known)
            known.add(fresh)
        assert time.monotonic() - began < 2 * run.SILENT_SECONDS, "each of four took a silence to be noticed"
        wait_for(f"{address}/ready")
    assert process.returncode == 0


def test_a_stopped_database_is_503_and_then_it_goes_on():
    if postgresql.binaries() is None:
        pytest.skip(POSTGRESQL)
    pytest.importorskip("psycopg")
    server = postgresql.Server()
    try:
        with command(server.url()) as (_, address):
            patient(address).create("x", 3, "UCB1")
            load = Load(address)
            load.start()
            wait_until(lambda: len(load.rewarded) > 20)
            server.stop()
            wait_for(f"{address}/ready", 503)
            refused = httpx.post(f"{address}/v1/players/x/decisions", timeout=PATIENCE)
            assert refused.status_code == 503
            assert refused.json()["error"].startswith("The store cannot be reached")
            assert get(f"{address}/health").status_code == 200
            server.start()
            done = len(load.rewarded)
            wait_until(lambda: len(load.rewarded) > done + 10)
            load.stop()
        check_log(server.url(), [load])
    finally:
        server.remove()


def test_a_silent_database_is_503_within_its_deadline_and_holds_up_nothing_else():
    if postgresql.binaries() is None:
        pytest.skip(POSTGRESQL)
    pytest.importorskip("psycopg")
    server = postgresql.Server()
    try:
        with command(server.url()) as (_, address):
            client = patient(address)
            client.create("x", 3, "UCB1")
            choice = client.decide("x")

            def status(method, path, **body):
                return httpx.request(method, f"{address}{path}", timeout=PATIENCE, **body).status_code

            with server.stopped():
                told = {"decision": choice.id, "reward": 1}
                for request in (
                    ("POST", "/v1/players/x/decisions"),
                    ("GET", "/v1/players/x/summary"),
                    ("GET", "/ready"),
                ):
                    assert status(*request) == 503, request
                assert status("POST", "/v1/players/x/rewards", json=told) == 503
                assert status("GET", "/health") == 200
            assert client.reward("x", choice.id, 1.0)  # it is asked again until the store answers
            assert client.decide("x").arm in range(3)
    finally:
        server.remove()


def test_an_orderly_end_answers_what_is_under_way(tmp_path):
    store = f"sqlite:///{tmp_path}/shop.db?synchronous=normal"
    answers = []
    with command(store) as (process, address):
        patient(address).create("x", 3, "Thompson")

        def last_ones():
            for _ in range(40):
                try:
                    answers.append(httpx.post(f"{address}/v1/players/x/decisions", timeout=PATIENCE))
                except httpx.TransportError:
                    return

        asking = [threading.Thread(target=last_ones) for _ in range(4)]
        for one in asking:
            one.start()
        wait_until(lambda: len(answers) > 4)
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)
        for one in asking:
            one.join()
    assert process.returncode == 0
    assert {answer.status_code for answer in answers} <= {200, 503}
    with Player.open(store, "x") as player:
        made = set(player.log()["decision"])
    assert {answer.json()["id"] for answer in answers if answer.status_code == 200} <= made


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--host", "0.0.0.0"], "can be reached from elsewhere"),
        (["--store", "mysql://x"], "a store must be an address"),
        (["--keys", "nowhere.txt"], "cannot read the file of keys"),
        (["--host", "203.0.113.1", "--behind-proxy"], "cannot listen on"),
        (["--new-key", "boss"], "unknown role 'boss'"),
    ],
)
def test_a_wrong_start_is_one_sentence(tmp_path, options, sentence):
    environment = os.environ | {"PYTHONPATH": SOURCES}
    words = [sys.executable, "-m", "abex", "serve", "--port", "0", *options]
    done = subprocess.run(
        words, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") <= 2


def test_a_store_that_is_not_there_is_a_warning_at_the_start(tmp_path):
    with open(tmp_path / "log", "w+") as log:
        words = [
            sys.executable,
            "-m",
            "abex",
            "serve",
            "--port",
            "0",
            "--store",
            f"sqlite:///{tmp_path}/no/shop.db",
        ]
        environment = os.environ | {"PYTHONPATH": SOURCES}
        with subprocess.Popen(words, env=environment, stderr=log) as process:
            written = tmp_path / "log"
            first, line = wait_until(
                lambda: (
                    (lines := written.read_text().splitlines())[1:] and "warning" in lines[1] and lines[:2]
                )
            )
            assert "503" in json.loads(line)["message"]
            address = first.split()[-1]
            wait_for(f"{address}/ready", 503)
            process.terminate()
