"""Many players of one store: a million that are stored, and ten thousand that are open, in one process and behind the service.

    python -m benchmarks.many_players stored                 # 10^6 players with two events each: size, listing, opening one
    python -m benchmarks.many_players open --players 10000   # threads, connections, memory, decisions, closing
    python -m benchmarks.many_players service                # the same over HTTP
    python -m benchmarks.many_players costs                  # of one player: deciding, applying an event

Each line is a process of its own; `--stores` takes sqlite (commits without `fsync`) and postgresql (a server of its own).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from benchmarks.serve_load import cpu_seconds, family, free_port, resident, running
from tests import postgresql

from abex.players import Player, Store
from abex.players.events import decode
from abex.players.journal import journal_at
from abex.players.player_file import Definition
from abex.players.shared_player import SequenceStream

POLICIES = ("Thompson", "UCB1")
N_ARMS = 3
RANDOM = 20_000  # decisions on random players
COUNT = 20_000  # decisions and rewards of one player
FEW = 300  # players that are opened among many


@contextmanager
def address(kind: str) -> Iterator[tuple[str, Any]]:
    """Of an empty store, and its server if it has one."""
    folder = Path(tempfile.mkdtemp(prefix="abex-many-"))
    server = postgresql.Server() if kind == "postgresql" else None
    try:
        yield server.url() if server else f"sqlite:///{folder}/many.db?synchronous=normal", server
    finally:
        if server:
            server.remove()
        shutil.rmtree(folder, ignore_errors=True)


def alone(what: str, *words: object) -> dict[str, Any]:
    """What a study finds in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.many_players", "alone", what, *map(str, words)]
    return dict(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout))


def told(times: list[float]) -> str:
    """Median and 99th percentile in microseconds."""
    p50, p99 = np.percentile(np.array(times) * 1e6, [50, 99])
    return f"{p50:,.0f} / {p99:,.0f} us"


def connections(url: str) -> int:
    """Files of the store that are open, or connections to its server."""
    links = [os.path.realpath(f"/proc/self/fd/{one}") for one in os.listdir("/proc/self/fd")]
    return sum("socket:" in link if url.startswith("postgres") else link.endswith(".db") for link in links)


def warm(store: Store) -> None:
    """What is imported and compiled, once."""
    for policy in POLICIES:
        player = store.player(f"warm {policy}", policy, n_arms=N_ARMS)
        for _ in range(20):
            player.update_many([(player.decide(), 1.0) for _ in range(20)])
    while any("aside" in thread.name for thread in threading.enumerate()):
        time.sleep(0.05)


# -- stored ---------------------------------------------------------------------------------------------------------


def fill(url: str, players: int) -> None:
    """Copies of one player with a decision and its reward, made by the database."""
    with Store.open(url) as store:
        player = store.player("p0", "Thompson", n_arms=N_ARMS)
        player.update(player.decide(), 1.0)
    numbers = f"generate_series(1, {players - 1}) AS n"
    if url.startswith("sqlite"):
        numbers = f"(WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {players - 1}) SELECT n FROM n)"
    statements = (
        "INSERT INTO abex_players (name, definition, head) SELECT 'p' || n, definition, head"
        f" FROM abex_players, {numbers} WHERE name = 'p0'",
        "INSERT INTO abex_events SELECT p.id, e.seq, e.kind, e.moment, e.body FROM abex_players AS p, abex_events AS e"
        " WHERE e.player = (SELECT id FROM abex_players WHERE name = 'p0') AND p.name <> 'p0' AND p.id > 0",
    )
    if url.startswith("sqlite"):
        with sqlite3.connect(url.removeprefix("sqlite:///").partition("?")[0]) as base:
            [base.execute(statement) for statement in statements]
    else:
        import psycopg

        with psycopg.connect(url, autocommit=True) as connection:
            [connection.execute(statement) for statement in (*statements, "ANALYZE")]


def size(url: str, server: Any) -> float:
    """Megabytes on disk."""
    if server is None:
        return os.path.getsize(url.removeprefix("sqlite:///").partition("?")[0]) / 1e6
    import psycopg

    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT pg_database_size(current_database())").fetchone()
        return float(found[0]) / 1e6 if found else 0.0


def stored(options: argparse.Namespace) -> None:
    print(f"{options.players:,} stored players of {N_ARMS} arms with two events each")
    print(
        "| store | on disk | one more, CPU | opening one, CPU (wall p50 / p99) | decide and reward on it | all names | memory |"
    )
    for kind in options.stores:
        with address(kind) as (url, server):
            fill(url, options.players)
            megabytes = size(url, server)
            one = alone("stored", url, options.players)
            print(
                f"| {kind} | {megabytes:,.0f} MB | {one['made']:.2f} ms | {one['opened']:.2f} ms ({one['wall']}) | {one['used']}"
                f" | {one['names']:.1f} s, {one['list']:,.0f} MB | {one['memory']:,.0f} MB |",
                flush=True,
            )


def study_stored(url: str, players: int) -> dict[str, Any]:
    rng = random.Random(1)
    with Store.open(url) as store:
        warm(store)
        before = resident([os.getpid()])
        began, wall = time.process_time(), []
        opened = []
        for _ in range(FEW):
            at = time.perf_counter()
            opened.append(store.player(f"p{rng.randrange(players)}"))
            wall.append(time.perf_counter() - at)
        cpu = time.process_time() - began
        used = []
        for player in opened:
            at = time.perf_counter()
            player.update(player.decide(), 1.0)
            used.append(time.perf_counter() - at)
        memory = resident([os.getpid()]) - before
        made = time.process_time()
        for number in range(FEW):
            store.player(f"new {number}", "Thompson", n_arms=N_ARMS)
        made = time.process_time() - made
        at, before = time.perf_counter(), resident([os.getpid()])
        assert len(store.names()) == players + FEW + len(POLICIES)
        listing = time.perf_counter() - at
        found = {"opened": 1e3 * cpu / FEW, "wall": told(wall), "used": told(used), "made": 1e3 * made / FEW}
        return found | {"names": listing, "list": resident([os.getpid()]) - before, "memory": memory}


# -- open -----------------------------------------------------------------------------------------------------------


def opened(options: argparse.Namespace) -> None:
    heads = (
        "store",
        "players",
        "threads",
        "connections",
        "descriptors",
        "memory each",
        "CPU to make one",
        "to open one",
    )
    heads += (
        "idle",
        "decide, one in ten rewarded",
        "decisions only",
        "what waits to be written, CPU",
        "closing, CPU (wall)",
    )
    print(f"| {' | '.join(heads)} |")
    for kind in options.stores:
        with address(kind) as (url, _):
            made = alone("make", url, options.players)
            one = alone("open", url, options.players)
            print(
                f"| {kind} | {options.players:,} | {one['threads']} | {one['connections']} | {one['descriptors']}"
                f" | {one['memory']:.1f} kB | {made['cpu']:.2f} ms | {one['cpu']:.2f} ms | {one['idle']:.1%} of a core"
                f" | {one['mixed']} | {one['deciding']} | {one['waiting']} | {one['closing']} |",
                flush=True,
            )


def study_make(url: str, players: int) -> dict[str, Any]:
    with Store.open(url) as store:
        store.player("first", "Thompson", n_arms=N_ARMS).decide()
        began = time.process_time()
        kept = [
            store.player(f"p{number}", POLICIES[number % len(POLICIES)], n_arms=N_ARMS)
            for number in range(players)
        ]
        return {"cpu": 1e3 * (time.process_time() - began) / len(kept)}


def study_open(url: str, players: int) -> dict[str, Any]:
    rng = random.Random(2)
    threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
    with Store.open(url, deadline=600.0) as store:
        warm(store)
        memory, began = resident([os.getpid()]), time.process_time()
        crowd = [store.player(f"p{number}") for number in range(players)]
        cpu, memory = time.process_time() - began, resident([os.getpid()]) - memory
        found: dict[str, Any] = {"cpu": 1e3 * cpu / players, "memory": 1e3 * memory / players}
        found["threads"] = threading.active_count() - threads
        found["connections"] = connections(url)
        found["descriptors"] = len(os.listdir("/proc/self/fd")) - descriptors
        began = time.process_time()
        time.sleep(5.0)
        found["idle"] = (time.process_time() - began) / 5.0
        for what, every in (("mixed", 10), ("deciding", 10**9)):
            times, rewards = [], [0.0]
            for step in range(RANDOM):
                player = crowd[rng.randrange(players)]
                at = time.perf_counter()
                decision = player.decide()
                times.append(time.perf_counter() - at)
                if step % every == every - 1:
                    at = time.perf_counter()
                    player.update(decision, 1.0)
                    rewards.append(time.perf_counter() - at)
            found[what] = told(times) + (f", rewards {told(rewards)}" if every < RANDOM else "")
        began, waiting = time.process_time(), sum(len(player._follower.own) for player in crowd)
        for player in crowd:
            player.flush()
        found["waiting"] = f"{waiting:,} in {time.process_time() - began:.2f} s"
        began, closing = time.process_time(), time.perf_counter()
    return found | {"closing": f"{time.process_time() - began:.2f} s ({time.perf_counter() - closing:.2f} s)"}


# -- service --------------------------------------------------------------------------------------------------------


def service(options: argparse.Namespace) -> None:
    heads = (
        "store",
        "players",
        "threads",
        "descriptors",
        "memory each",
        "server's CPU to make one",
        "a decision, CPU",
        "p50 / p99",
    )
    print(f"| {' | '.join(heads)} | a decision with its reward, CPU | p50 / p99 | all names | asked again |")
    for kind in options.stores:
        with address(kind) as (url, _):
            port = free_port()
            words = ["-m", "abex", "serve", "--store", url, "--port", str(port), "--limit", "max-players=1e6"]
            with (
                running(*words, port=port) as process,
                httpx.Client(base_url=f"http://127.0.0.1:{port}/v1", timeout=60.0) as client,
            ):
                print(_served(kind, process.pid, client, options.players), flush=True)


def _served(kind: str, pid: int, client: httpx.Client, players: int) -> str:
    rng, tasks = random.Random(3), Path(f"/proc/{pid}")
    busy: list[str] = []  # that were asked again

    def asked(body: dict[str, Any], *place: str) -> tuple[Any, float]:
        at = time.perf_counter()
        while (answer := client.post("/".join(("players", *place)), json=body)).status_code == 503:
            busy.append(answer.text)
        took = time.perf_counter() - at
        assert answer.status_code in (200, 201), answer.text
        return answer.json(), took

    for policy in POLICIES:
        asked({"name": policy, "policy": policy, "arms": N_ARMS})
        for _ in range(500):
            asked({}, policy, "decisions")
    time.sleep(2.0)  # what is compiled beside it
    memory, cpu = resident([pid]), cpu_seconds([pid])
    for number in range(players):
        asked({"name": f"p{number}", "policy": POLICIES[number % len(POLICIES)], "arms": N_ARMS})
    made = 1e3 * (cpu_seconds([pid]) - cpu) / players
    for number in range(players):
        asked({}, f"p{number}", "decisions")
    memory = 1e3 * (resident([pid]) - memory) / players
    cells = [
        kind,
        f"{players:,}",
        len(os.listdir(tasks / "task")),
        len(os.listdir(tasks / "fd")),
        f"{memory:.1f} kB",
        f"{made:.2f} ms",
    ]
    for rewarded in (False, True):
        cpu, times = cpu_seconds([pid]), []
        for _ in range(RANDOM // 10):
            name = f"p{rng.randrange(players)}"
            decision, took = asked({}, name, "decisions")
            if rewarded:
                took += asked({"decision": decision["id"], "reward": 1}, name, "rewards")[1]
            times.append(took)
        cells += [f"{1e6 * (cpu_seconds([pid]) - cpu) / len(times):,.0f} us", told(times)]
    at = time.perf_counter()
    assert client.get("players").status_code == 200
    return f"| {' | '.join(map(str, cells))} | {time.perf_counter() - at:.2f} s | {len(busy)} |"


# -- one player -----------------------------------------------------------------------------------------------------


def costs(options: argparse.Namespace) -> None:
    """CPU microseconds, `--repeat` times: median (least to largest)."""
    heads = (
        "store",
        "policy",
        "a decision",
        "and its reward",
        "both, shared",
        "an event replayed",
        "an event, server",
    )
    print(f"| {' | '.join(heads)} |")
    for kind in options.stores:
        for policy in ("UCB1", "Thompson", "Evidence"):
            runs = []
            with address(kind) as (url, server):
                for number in range(options.repeat):
                    pids = family(server._process.pid) if server else []
                    cpu = cpu_seconds(pids)
                    runs.append(alone("costs", url, f"{policy} {number}", policy))
                    # connections that have ended count in the process that made them
                    runs[-1]["server"] = 1e6 * (cpu_seconds(pids) - cpu) / (2 * COUNT)
            cells = []
            for name in ("decide", "both", "shared", "replay", "server"):
                times = [run[name] for run in runs]
                cells.append(f"{statistics.median(times):.1f} ({min(times):.1f} to {max(times):.1f})")
            print(f"| {kind} | {policy} | {' | '.join(cells)} |", flush=True)


def study_costs(url: str, name: str, policy: str) -> dict[str, Any]:
    count = COUNT
    player = Player(policy, N_ARMS, seed=1)
    for _ in range(1_000):
        player.update(player.decide(), 1.0)
    began = time.process_time()
    made = [player.decide() for _ in range(count)]
    decide = time.process_time() - began
    began = time.process_time()
    for step, decision in enumerate(made):
        player.update(decision, float(step % 3 == 0))
    update = time.process_time() - began
    with Player.open(url, name, policy, n_arms=N_ARMS, deadline=600.0, snapshot_every=10**9) as shared:
        for _ in range(10):
            shared.update_many([(shared.decide(), 1.0) for _ in range(100)])
        while any("aside" in thread.name for thread in threading.enumerate()):
            time.sleep(0.05)
        began = time.process_time()
        for _ in range(count // 100):
            shared.update_many([(shared.decide(), 1.0) for _ in range(100)])
        together = time.process_time() - began
    journal = journal_at(url)
    journal.connect(create=False)
    record = journal.player(name)
    assert record is not None
    definition = Definition(record.definition, name)
    state, learning = definition.replica(None), SequenceStream(definition.key)
    rows = journal.read(record.id, 0, record.head)
    for replayed in (rows[:1_000], rows[1_000:]):
        began = time.process_time()
        for seq, body in replayed:
            state.apply(decode(body), learning.at(seq))
        replay = (time.process_time() - began) / len(replayed)
    return {
        "decide": 1e6 * decide / count,
        "both": 1e6 * (decide + update) / count,
        "shared": 1e6 * together / count,
        "replay": 1e6 * replay,
    }


def main() -> None:
    if sys.argv[1:2] == ["alone"]:
        what, url, *rest = sys.argv[2:]
        study: Any = {"stored": study_stored, "make": study_make, "open": study_open, "costs": study_costs}[
            what
        ]
        print(json.dumps(study(url, *(int(word) if word.isdigit() else word for word in rest))))
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["stored", "open", "service", "costs"])
    parser.add_argument("--stores", nargs="*", default=["sqlite", "postgresql"])
    parser.add_argument("--players", type=int, default=None)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    options.players = options.players or (1_000_000 if options.what == "stored" else 10_000)
    {"stored": stored, "open": opened, "service": service, "costs": costs}[options.what](options)


if __name__ == "__main__":
    main()
