"""`abex serve` under load on loopback: requests/s and latencies beside a bare endpoint of the same framework in the same run.

    python -m benchmarks.serve load                  # 10, 1,000 and 100,000 arms, SQLite and PostgreSQL, 1 and 2 workers
    python -m benchmarks.serve floor --rounds 8      # CPU a request, beside constants by Starlette and by a plain ASGI callable
    python -m benchmarks.serve floor --wrk --seconds 2   # the same, asked by wrk
    python -m benchmarks.serve memory --requests 1e6

A closed loop: client processes of several connections each; a connection asks for a decision, and reports the reward of the
decision before the last one. Rounds of the bare endpoint and of the service take turns, so that both see the same machine.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from contextlib import ExitStack
from typing import Any

import numpy as np
from benchmarks.serve_load import (
    CLIENTS,
    CONNECTIONS,
    bare,
    family,
    free_port,
    load,
    once,
    resident,
    service,
    wrk,
)

# -- studies --------------------------------------------------------------------------------------------------------


def study_load(options: argparse.Namespace) -> None:
    from tests.postgresql import Server

    heads = ("workers", "arms", "what", "req/s", "p50", "p99", "p99.9", "CPU us")
    print(f"{'store':<11} " + " ".join(f"{head:>7}" for head in heads) + "  of bare")
    server = Server() if "postgresql" in options.stores else None
    try:
        for workers in options.workers:
            for store in options.stores:
                for n_arms in options.arms:
                    with tempfile.TemporaryDirectory() as folder:
                        url = f"sqlite:///{folder}/shop.db{options.query}"
                        if server and store == "postgresql":
                            url = fresh(server, f"shop_{workers}_{n_arms}")
                        one_load(url, store, workers, n_arms, options)
    finally:
        if server:
            server.remove()


def fresh(server: Any, name: str) -> str:
    """An empty database."""
    import psycopg

    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return str(server.url(name))


def study_floor(options: argparse.Namespace) -> None:
    """CPU of the server a request: a constant by Starlette, by a plain ASGI callable, and decide + reward; least and median."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        ports = {name: free_port() for name in ("starlette", "plain", "abex")}
        pids = {name: stack.enter_context(bare(ports[name], 1, name)).pid for name in ("starlette", "plain")}
        ours = service(f"sqlite:///{folder}/shop.db{options.query}", ports["abex"], 1)
        pids["abex"] = stack.enter_context(ours).pid
        new = {"name": "x", "policy": options.policy, "arms": 3}
        asyncio.run(once(ports["abex"], "POST", "/v1/players", new))
        found: dict[str, list[dict[str, float]]] = {name: [] for name in ports}
        for _ in range(options.rounds + 1):
            for name, port in ports.items():
                rewards = name == "abex"
                run = wrk if options.wrk else load
                found[name].append(run(port, options.seconds, rewards, [pids[name]], options.connections))
        print(f"{'':<10} {'CPU us':>7} {'median':>7} {'of Starlette':>13} {'req/s':>7} {'MB':>5}")
        floor = np.array([one["cpu"] for one in found["starlette"][1:]])
        for name, rounds in found.items():
            cpu = np.array([one["cpu"] for one in rounds[1:]])
            rate = max(one["rate"] for one in rounds[1:])
            ratios = f"{cpu.min() / floor.min():>6.2f} {np.median(cpu / floor):>6.2f}"
            memory, failed = resident([pids[name]]), sum(one["errors"] for one in rounds)
            assert failed == 0, failed
            print(f"{name:<10} {cpu.min():>7.1f} {np.median(cpu):>7.1f} {ratios} {rate:>7.0f} {memory:>5.0f}")


def study_memory(options: argparse.Namespace) -> None:
    """Megabytes of the worker while requests go on and on; each block as many as the one before."""
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        with service(f"sqlite:///{folder}/shop.db?synchronous=normal", port, 1) as ours:
            asyncio.run(
                once(port, "POST", "/v1/players", {"name": "x", "policy": options.policy, "arms": 10})
            )
            blocks, done = 10, 0.0
            print(f"{'requests':>9} {'MB':>6} {'req/s':>7} {'p99 ms':>7}")
            for _ in range(blocks):
                share = options.requests / blocks / CLIENTS
                found = load(port, 3600.0, True, [ours.pid], CONNECTIONS, share)
                done += found["n"]
                megabytes = resident([ours.pid])
                print(
                    f"{done:>9.0f} {megabytes:>6.1f} {found['rate']:>7.0f} {found['p99']:>7.1f}", flush=True
                )


def one_load(url: str, store: str, workers: int, n_arms: int, options: argparse.Namespace) -> None:
    floor_port, port = free_port(), free_port()
    with bare(floor_port, workers) as floor, service(url, port, workers) as ours:
        new = {"name": "x", "policy": options.policy, "arms": n_arms}
        status, said = asyncio.run(once(port, "POST", "/v1/players", new))
        if status not in (200, 201):
            raise RuntimeError(said.decode())
        pids, floor_pids = family(ours.pid), family(floor.pid)
        load(port, options.warm, True, pids, options.connections)
        found: dict[str, list[dict[str, float]]] = {"bare": [], "service": []}
        for _ in range(options.rounds):
            found["bare"].append(load(floor_port, options.seconds, False, floor_pids, options.connections))
            found["service"].append(load(port, options.seconds, True, pids, options.connections))
        means = {
            what: {key: float(np.median([one[key] for one in rounds])) for key in rounds[0]}
            for what, rounds in found.items()
        }
        for what, one in means.items():
            shares = {key: one[key] / means["bare"][key] for key in ("rate", "p99", "cpu")}
            ratio = f"{shares['rate']:.2f} of the rate, {shares['p99']:.1f} x p99, {shares['cpu']:.2f} x CPU"
            print(
                f"{store:<11} {workers:>7} {n_arms:>7} {what:>7} {one['rate']:>7.0f} {one['p50']:>7.1f} {one['p99']:>7.1f} "
                f"{one['p999']:>7.1f} {one['cpu']:>7.0f}  {ratio if what != 'bare' else ''}"
                + (f" ({one['errors']:.0f} errors)" if one["errors"] else ""),
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("study", choices=["load", "floor", "memory"])
    parser.add_argument("--arms", type=int, nargs="+", default=[10, 1_000, 100_000])
    parser.add_argument("--stores", nargs="+", default=["sqlite", "postgresql"])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--policy", default="Evidence")
    parser.add_argument(
        "--query", default="", help="options of the SQLite address, such as ?synchronous=normal"
    )
    parser.add_argument("--seconds", type=float, default=3.0, help="of a round")
    parser.add_argument("--warm", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=float, default=1e5, help="of the memory study")
    parser.add_argument(
        "--connections", type=int, default=CONNECTIONS, help="of each of the two client processes"
    )
    parser.add_argument(
        "--wrk", action="store_true", help="let wrk ask, in the place of the floor's own clients"
    )
    options = parser.parse_args()
    {"load": study_load, "floor": study_floor, "memory": study_memory}[options.study](options)


if __name__ == "__main__":
    main()
