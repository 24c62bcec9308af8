"""Shared players: latency, throughput, growth, and a storm of killed processes.

Run it from the root of the repository::

    python -m benchmarks.shared_player speed            # SQLite and PostgreSQL, 1 to 8 processes
    python -m benchmarks.shared_player arms             # 10, 10^3 and 10^6 arms
    python -m benchmarks.shared_player opening          # a journal of 10^6 events
    python -m benchmarks.shared_player storm --kills 200 --processes 8 --total 5000

PostgreSQL is a server of its own in a temporary folder (`tests/postgresql.py`), with its default durability.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from tests import postgresql
from tests.players.storm import ON_GRAPHS, RECOMMENDED, TO_CORRECT, Storm, make_players, verify

from abex import Player

SECONDS = 6.0


@contextmanager
def stores(wanted: list[str]) -> Iterator[dict[str, str]]:
    """Addresses by name; the folder and the server are gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="abex-shared-"))
    server = None
    found = {}
    for name in wanted:
        if name == "postgresql":
            server = postgresql.Server()
            found[name] = server.url()
        elif name == "sqlite":
            found[name] = f"sqlite:///{folder}/full.db"
        else:
            found[name] = f"sqlite:///{folder}/normal.db?synchronous=normal"
    try:
        yield found
    finally:
        if server is not None:
            server.remove()
        shutil.rmtree(folder, ignore_errors=True)


def percentiles(times: list[float]) -> dict[str, float]:
    """Microseconds."""
    if not times:
        return {}
    p50, p99 = np.percentile(np.array(times) * 1e6, [50, 99])
    return {"p50": round(float(p50), 1), "p99": round(float(p99), 1)}


def worker(url: str, name: str, threads: int, seconds: float) -> None:
    """Decide and reward in a closed loop on several threads; prints counts and latencies when told to end."""
    player = Player.open(url, name)
    deciding: list[float] = []
    rewarding: list[float] = []
    player.update(player.decide(), 1.0)  # compiles what is compiled
    print("ready", flush=True)
    sys.stdin.readline()
    until = time.perf_counter() + seconds

    def loop() -> None:
        while time.perf_counter() < until:
            began = time.perf_counter()
            decision = player.decide()
            middle = time.perf_counter()
            player.update(decision, 1.0)
            rewarding.append(time.perf_counter() - middle)
            deciding.append(middle - began)

    crowd = [threading.Thread(target=loop) for _ in range(threads)]
    cpu = time.process_time()
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join()
    answer = {"count": len(rewarding), "cpu": time.process_time() - cpu}
    print(json.dumps(answer | {"decide": deciding, "reward": rewarding}), flush=True)
    player.close()


def together(url: str, name: str, processes: int, threads: int, seconds: float) -> dict[str, object]:
    """Several workers at once: rewards a second, per process and together, with latencies."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.shared_player",
        "worker",
        url,
        name,
        str(threads),
        str(seconds),
    ]
    crowd = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(processes)
    ]
    for one in crowd:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    for one in crowd:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    answers = [json.loads(one.stdout.readline()) for one in crowd if one.stdout is not None]
    for one in crowd:
        one.wait()
    total = sum(answer["count"] for answer in answers)
    return {
        "processes": processes,
        "threads": threads,
        "rewards/s": round(total / seconds),
        "a process": round(total / seconds / processes),
        "CPU us": round(sum(answer["cpu"] for answer in answers) / max(1, total) * 1e6),
        "decide us": percentiles([one for answer in answers for one in answer["decide"]]),
        "reward us": percentiles([one for answer in answers for one in answer["reward"]]),
    }


def alone(url: str, name: str, count: int) -> dict[str, float]:
    """`decide` when nothing is new: one process, nothing else happens; and what `PRAGMA data_version` or a look costs."""
    times = []
    with Player.open(url, name) as player:
        for _ in range(count):
            began = time.perf_counter()
            player.decide()
            times.append(time.perf_counter() - began)
            if len(player._follower.own) > 5_000:
                player.flush()
    return percentiles(times)


def speed(arguments: argparse.Namespace) -> None:
    with stores(arguments.stores) as addresses:
        for kind, url in addresses.items():
            for policy in ("UCB1", "Exp3(gamma=0.1)", "Thompson"):
                Player.open(url, policy, policy, n_arms=10).close()
                print(kind, policy, "decide alone, us:", alone(url, policy, 20_000), flush=True)
            for crowd in arguments.crowds:
                processes, threads = map(int, crowd.split("x"))
                name = f"{processes} x {threads}"
                Player.open(url, name, "UCB1", n_arms=10).close()
                print(kind, together(url, name, processes, threads, SECONDS), flush=True)


def arms(arguments: argparse.Namespace) -> None:
    with stores(arguments.stores) as addresses:
        for kind, url in addresses.items():
            for n_arms in arguments.arms:
                name = f"{n_arms} arms"
                began = time.process_time()
                Player.open(
                    url, name, "UCB1", n_arms=n_arms, propensities=False, compiled=n_arms > 5000
                ).close()
                opening = time.process_time() - began
                print(kind, name, f"opening {opening:.2f} s of CPU", alone(url, name, 5_000), flush=True)
                print(kind, name, together(url, name, 2, 16, SECONDS), flush=True)


def opening(arguments: argparse.Namespace) -> None:
    with stores(arguments.stores) as addresses:
        for kind, url in addresses.items():
            with Player.open(url, "long", "UCB1", n_arms=20) as player:
                for _ in range(arguments.events // 20_000):
                    decisions = [player.decide() for _ in range(9_900)]
                    player.update_many([(decision, 1.0) for decision in decisions])
                    player.update_many([(3, 0.0)] * 200)
                player.refresh()
                time.sleep(1.0)
                events = player.seq()
            began, cpu = time.perf_counter(), time.process_time()
            with Player.open(url, "long") as player:
                took, cpu = time.perf_counter() - began, time.process_time() - cpu
                assert player.seq() == events
            print(kind, f"{events:,} events: opened in {took:.2f} s ({cpu:.2f} s of CPU)", flush=True)


def storm(arguments: argparse.Namespace) -> None:
    """All policies that are recommended, in one store."""
    with stores(arguments.stores) as addresses:
        for kind, url in addresses.items():
            names = make_players(url, RECOMMENDED, ON_GRAPHS, TO_CORRECT)
            folder = Path(tempfile.mkdtemp(prefix="abex-storm-"))
            began = time.perf_counter()
            one = Storm(url, names, folder, arguments.processes, arguments.total, seed=1)
            one.rage(arguments.kills, arguments.pause, limit=3600.0)
            took = time.perf_counter() - began
            print(
                kind,
                f"{len(names)} players, {one.kills} kills in {took:.0f} s:",
                verify(url, names, folder),
                flush=True,
            )
            shutil.rmtree(folder)


def main() -> None:
    if sys.argv[1:2] == ["worker"]:
        worker(sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5]))
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["speed", "arms", "opening", "storm"])
    parser.add_argument("--stores", nargs="*", default=["sqlite", "sqlite-normal", "postgresql"])
    crowds = ["1x1", "1x32", "2x32", "4x1", "4x8", "4x32", "8x32"]
    parser.add_argument("--crowds", nargs="*", default=crowds, help="processes x threads")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--total", type=int, default=5_000)
    parser.add_argument("--arms", nargs="*", type=int, default=[10, 1_000, 1_000_000])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--pause", type=float, default=0.5)
    parser.add_argument("--events", type=int, default=1_000_000)
    arguments = parser.parse_args()
    {"speed": speed, "arms": arms, "opening": opening, "storm": storm}[arguments.what](arguments)


if __name__ == "__main__":
    main()
