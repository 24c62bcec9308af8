"""`abex serve` under fire: hostile requests by the ten thousand, and workers killed while clients go on.

    python -m benchmarks.serve_fire fuzz --requests 1e5     # half of them JSON of the right and wrong kinds, half damaged bytes
    python -m benchmarks.serve_fire kills --kills 20

`fuzz` counts answers by status; there must be no 5xx, and no traceback in the log. `kills` sends SIGKILL to a worker of two
again and again while clients decide and reward, then compares what they were told with the journal.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import socket
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
from tests.service.serving import command, workers
from tests.service.test_fuzz import exchange, hostile
from tests.service.test_processes import Load, check_log
from tests.waiting import wait_until

from abex.client import Client

PATHS = (
    "decisions", "decisions/batch", "rewards", "rewards/batch", "observations", "arms", "arms/red", "arms/1",
    "summary", "probabilities", "evaluate", "timeline", "log", "archive", "restore",
    "log?format=dsjson&last=5", "summary?limit=1e9", "nothing",
    "../../etc/passwd",
)  # fmt: skip
METHODS = ("POST", "POST", "POST", "GET", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS")
WORDS = (
    "",
    "red",
    "green",
    "a" * 300,
    "\x00",
    "\u202e",
    "' OR 1=1 --",
    "${7*7}",
    "__class__",
    "../x",
    "0",
    "-1",
    "NaN",
    "💥",
    "\ud800",
)
FIELDS = (
    "name", "policy", "arms", "horizon", "rewards", "expire", "unrewarded", "propensities", "edges", "unit", "key",
    "count", "units", "decision", "reward", "also", "arm", "policies", "learn", "last", "__proto__",
)  # fmt: skip
POLICIES = (
    "Thompson",
    "UCB1(",
    "UCB1(scale=1e308)",
    "Evidence",
    "ABE(eta=-1)",
    "open('/etc/passwd')",
    "ELP",
    "Uniform",
    "Exp3",
)


def value(rng: random.Random, known: list[str], depth: int = 0) -> str:
    """JSON, or nearly; text, so that it can be what no encoder writes."""
    kind = rng.randrange(12 if depth < 3 else 8)
    if kind < 2:
        return str(rng.choice([0, 1, -1, 2, 3.5, 10**6, 10**30, "1e400", "-0.0", "NaN", "Infinity", "01"]))
    if kind < 3:
        return rng.choice(["true", "false", "null", "nul", "'x'"])
    if kind < 5:
        return quoted(rng.choice(WORDS))
    if kind < 6:
        return quoted(rng.choice(POLICIES))
    if kind < 8:
        return quoted(rng.choice(known)) if known else "null"
    if kind < 10:
        return "[" + ",".join(value(rng, known, depth + 1) for _ in range(rng.choice([0, 1, 2, 3, 30]))) + "]"
    return body(rng, known, depth + 1)


def quoted(word: str) -> str:
    return (
        '"'
        + "".join(
            f"\\u{ord(mark):04x}" if not 32 <= ord(mark) < 127 or mark in '"\\' else mark
            for mark in word
            if ord(mark) < 65536
        )
        + '"'
    )


def body(rng: random.Random, known: list[str], depth: int = 0) -> str:
    fields = rng.sample(FIELDS, rng.choice([0, 1, 2, 3, 4, 8]))
    return "{" + ",".join(f'"{field}":{value(rng, known, depth)}' for field in fields) + "}"


def sensible(rng: random.Random, known: list[str]) -> tuple[str, str]:
    """A request that might be right."""
    decision = rng.choice(known) if known else "0"
    return rng.choice(
        [
            (
                "decisions",
                rng.choice(
                    ["", "{}", f'{{"unit":"u{rng.randrange(50)}"}}', f'{{"key":"k{rng.randrange(50)}"}}']
                ),
            ),
            ("decisions/batch", f'{{"count":{rng.randrange(4)}}}'),
            ("rewards", f'{{"decision":"{decision}","reward":{rng.choice(["0", "1", "true", "2", "0.5"])}}}'),
            ("rewards", f'{{"decision":"{decision}","reward":1,"also":{{"{rng.choice(WORDS[:3])}":1}}}}'),
            ("observations", f'{{"arm":"red","reward":0.5,"key":"o{rng.randrange(99)}"}}'),
        ]
    )


def fuzz(options: argparse.Namespace) -> None:
    os.nice(10)
    rng, found, slowest = random.Random(options.seed), Counter[str](), 0.0
    with tempfile.TemporaryDirectory() as folder, open(f"{folder}/log", "w+") as log:
        store = f"sqlite:///{folder}/shop.db?synchronous=normal"
        limits = ("--limit", "max-arms=1000", "--limit", "max-players=30", "--limit", "max-open=2000")
        with (
            command(store, *limits, log=log) as (process, address),
            httpx.Client(base_url=address, timeout=60.0) as client,
        ):
            for name in ("banner", "x"):
                client.post(
                    "/v1/players", json={"name": name, "arms": ["red", "green"], "expire": 5.0}
                ).raise_for_status()
            host, port = address.removeprefix("http://").split(":")
            known: list[str] = []
            for _ in range(int(options.requests / 2)):
                one, status = described(rng, known, host, int(port))
                known = (known + one)[-500:]
                found[status] += 1
                began = time.monotonic()
                answer = exchange(host, int(port), hostile(rng))
                slowest = max(slowest, time.monotonic() - began)
                found[answer[9:12].decode("latin-1") if answer.startswith(b"HTTP/") else "no HTTP"] += 1
            alive = client.get("/ready").status_code == 200 and process.poll() is None
        text = Path(f"{folder}/log").read_text()
    print(dict(sorted(found.items())), f"slowest damaged request {slowest:.1f} s")
    print(f"{sum(found.values()):,} requests, {sum(n for status, n in found.items() if status.startswith('5')):,} answers 5xx, "
          f"{text.count('Traceback')} tracebacks, the service is {'ready' if alive else 'GONE'}")  # fmt: skip


_line: list[Any] = []


def described(rng: random.Random, known: list[str], host: str, port: int) -> tuple[list[str], str]:
    """An HTTP request whose content may be anything, on a connection that stays; ids of decisions found, and the status."""
    path, content = sensible(rng, known) if rng.random() < 0.4 else (rng.choice(PATHS), body(rng, known))
    method = "POST" if content else rng.choice(METHODS)
    address = rng.choice(["/v1/players/banner/", "/v1/players/banner/", "/v1/players/x/", "/v1/"]) + path
    if rng.random() < 0.1:
        method, address = "POST", "/v1/players"
    data = content.encode()
    kind = "application/json" if rng.random() < 0.95 else "text/plain"
    head = f"{method} {address} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\n\r\n"
    try:
        if not _line:
            connection = socket.create_connection((host, port), timeout=60.0)
            _line.extend((connection, connection.makefile("rb")))
        _line[0].sendall(head.encode() + data)
        status = _line[1].readline()[9:12].decode("latin-1")
        length = 0
        while (line := _line[1].readline()) not in (b"\r\n", b""):
            if line.lower().startswith(b"content-length:"):
                length = int(line[15:])
        said = b"" if method == "HEAD" else _line[1].read(length)
    except OSError:
        _line.clear()
        return [], "no HTTP"
    if not status:
        _line.clear()
        return [], "no HTTP"
    return ([said[7:43].decode()] if said.startswith(b'{"id":"') else []), status


def kills(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = f"sqlite:///{folder}/shop.db"
        with command(store, "--workers", "2") as (process, address):
            Client(address).create("x", 10, "Thompson")
            loads = [Load(address) for _ in range(options.clients)]
            for load in loads:
                load.start()
            rng = random.Random(options.seed)
            for _ in range(options.kills):
                wait_until(lambda: len(workers(process.pid)) == 2)
                done = sum(len(load.rewarded) for load in loads)
                wait_until(lambda done=done: sum(len(load.rewarded) for load in loads) > done + 50)  # type: ignore[misc]
                os.kill(rng.choice(workers(process.pid)), signal.SIGKILL)
                time.sleep(0.5)
            for load in loads:
                load.stop()
        check_log(store, loads)
        told = sum(len(load.rewarded) for load in loads)
        print(
            f"{options.kills} kills, {told:,} decisions and rewards acknowledged: none lost, none counted twice"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("study", choices=["fuzz", "kills"])
    parser.add_argument("--requests", type=float, default=1e4)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    {"fuzz": fuzz, "kills": kills}[options.study](options)


if __name__ == "__main__":
    main()
