"""Servers and a closed loop of clients for `benchmarks.serve`."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
CONNECTIONS = 32  # of each client process
CLIENTS = 2
STAGGER = 0.005  # seconds between the connections of a client
LATE = 2  # decisions until the reward of one is reported


# -- servers --------------------------------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def cpu_seconds(pids: list[int]) -> float:
    """CPU time of processes, children that have ended included."""
    total = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(int(field) for field in fields[11:15])
    return total / os.sysconf("SC_CLK_TCK")


def resident(pids: list[int]) -> float:
    """Megabytes in memory, most of a process."""
    found = [0.0]
    for pid in pids:
        try:
            found.append(
                int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
            )
        except OSError:
            continue
    return max(found)


def family(pid: int) -> list[int]:
    """A process and its children that answer requests."""
    found = [pid]
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
            words = (path.parent / "cmdline").read_bytes()
        except (OSError, IndexError):
            continue
        if parent == pid and b"resource_tracker" not in words:
            found.append(int(path.parent.name))
    return found


@contextmanager
def running(*words: str, port: int, path: str = "/health") -> Iterator[subprocess.Popen[bytes]]:
    """A server, from when it answers until it is told to stop."""
    environment = os.environ | {"PYTHONPATH": f"{ROOT}/src:{ROOT}"}
    log = tempfile.TemporaryFile()  # noqa: SIM115
    process = subprocess.Popen([sys.executable, *words], env=environment, stdout=log, stderr=log)
    try:
        until = time.monotonic() + 60.0
        while True:
            try:
                status, _ = asyncio.run(once(port, "GET", path))
                if status == 200:
                    break
            except OSError:
                pass
            if process.poll() is not None or time.monotonic() > until:
                log.seek(0)
                raise RuntimeError(log.read().decode()[-3000:])
            time.sleep(0.1)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def service(store: str, port: int, workers: int) -> Any:
    words = [
        "-m",
        "abex",
        "serve",
        "--store",
        store,
        "--port",
        str(port),
        "--workers",
        str(workers),
    ]
    return running(*words, "--limit", "max-open=1e6", port=port)


def bare(port: int, workers: int, which: str = "starlette") -> Any:
    words = [
        "-m",
        "uvicorn",
        "--factory",
        f"benchmarks.serve_floor:{which}",
        "--port",
        str(port),
        "--workers",
        str(workers),
        "--lifespan",
        "off",
    ]
    return running(
        *words, "--no-access-log", "--log-level", "warning", port=port, path="/v1/players/x/decisions"
    )


# -- clients --------------------------------------------------------------------------------------------------------


def request_bytes(method: str, path: str, body: bytes = b"") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def answer_of(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    lower = head.lower()
    start = lower.index(b"content-length:") + 15
    length = int(lower[start : lower.index(b"\r\n", start)])
    return int(head[9:12]), await reader.readexactly(length)


async def once(port: int, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request_bytes(method, path, b"" if body is None else json.dumps(body).encode()))
        return await answer_of(reader)
    finally:
        writer.close()


async def connection(
    place: int, port: int, until: float, took: list[float], rewards: bool, most: int, errors: list[int]
) -> None:
    await asyncio.sleep(place * STAGGER)  # else the first worker that wakes takes all of them
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    ask = request_bytes("POST", "/v1/players/x/decisions", b"{}")
    waiting: deque[str] = deque()
    clock = time.perf_counter
    while time.time() < until and len(took) < most:
        began = clock()
        writer.write(ask)
        status, content = await answer_of(reader)
        took.append(clock() - began)
        errors.append(status) if status != 200 else None
        if rewards:
            waiting.append(content[7:43].decode())
            if len(waiting) > LATE:
                told = f'{{"decision":"{waiting.popleft()}","reward":{len(took) & 1}}}'.encode()
                began = clock()
                writer.write(request_bytes("POST", "/v1/players/x/rewards", told))
                status, _ = await answer_of(reader)
                took.append(clock() - began)
                errors.append(status) if status != 200 else None
    writer.close()


def client(
    port: int, start: float, seconds: float, rewards: bool, connections: int, most: int, out: Any
) -> None:
    async def all_of_them() -> None:
        took: list[float] = []
        errors: list[int] = []
        await asyncio.sleep(max(0.0, start - time.time()))
        until = start + seconds
        await asyncio.gather(
            *(connection(place, port, until, took, rewards, most, errors) for place in range(connections))
        )
        out.send((np.array(took), len(errors)))

    asyncio.run(all_of_them())


def wrk(
    port: int, seconds: float, rewards: bool, pids: list[int], connections: int = CONNECTIONS
) -> dict[str, float]:
    """The same load by wrk (apt install wrk): requests/s, CPU microseconds of the server a request."""
    words = [
        "wrk",
        f"-t{CLIENTS}",
        f"-c{CLIENTS * connections}",
        f"-d{seconds:g}s",
        "-s",
        str(ROOT / "benchmarks/serve.lua"),
    ]
    words += [f"http://127.0.0.1:{port}", "--", *(["rewards"] if rewards else [])]
    before = cpu_seconds(pids)
    said = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
    spent = cpu_seconds(pids) - before
    (count,) = re.findall(r"(\d+) requests in", said)
    (rate,) = re.findall(r"Requests/sec: +([\d.]+)", said)
    failed = re.findall(r"Non-2xx or 3xx responses: (\d+)", said)
    return {
        "rate": float(rate),
        "cpu": 1e6 * spent / int(count),
        "n": int(count),
        "errors": int(failed[0]) if failed else 0,
    }


def load(
    port: int,
    seconds: float,
    rewards: bool,
    pids: list[int],
    connections: int = CONNECTIONS,
    most: float = np.inf,
) -> dict[str, float]:
    """Requests/s, latencies in milliseconds, CPU microseconds of the server a request."""
    start = time.time() + 0.8
    pipes, processes = [], []
    for _ in range(CLIENTS):
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context("fork").Process(
            target=client, args=(port, start, seconds, rewards, connections, most, theirs)
        )
        process.start()
        pipes.append(ours)
        processes.append(process)
    before = cpu_seconds(pids)
    found = [pipe.recv() for pipe in pipes]
    spent = cpu_seconds(pids) - before
    elapsed = time.time() - start
    for process in processes:
        process.join()
    took = np.concatenate([one for one, _ in found])
    p50, p99, p999 = np.quantile(took, [0.5, 0.99, 0.999]) * 1000.0
    return {
        "rate": took.size / elapsed, "p50": p50, "p99": p99, "p999": p999, "cpu": 1e6 * spent / took.size, "n": took.size,
        "errors": sum(errors for _, errors in found),
    }  # fmt: skip
