"""Hosts on one machine, made of network namespaces, and proxies: for networks that are cut or slow, and servers that move."""

from __future__ import annotations

import json
import os
import queue
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.needs import NAMESPACES
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
SHOP = """
import json, sys, time
import abex.players.store
from abex.players import Store, UnavailableError

url, deadline, silent = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
abex.players.store.SILENT = silent
made = told = 0
with Store.open(url, deadline=deadline) as store:
    player = store.player("shop", "UCB1", n_arms=3)
    for line in sys.stdin:
        deciding, rewarding, kept, lost, said = [], [], 0, 0, ""
        for _ in range(int(line)):
            for _ in range(10):
                began = time.monotonic()
                decision = player.decide()
                deciding.append(time.monotonic() - began)
                made += 1
            began = time.monotonic()
            try:
                told += player.update(decision, 1.0)
            except UnavailableError as error:
                said = str(error)
                kept, lost = kept + error.kept, lost + (not error.kept)
            rewarding.append(time.monotonic() - began)
        told += kept
        answer = {"decide": max(deciding, default=0.0), "update": max(rewarding, default=0.0), "kept": kept, "lost": lost}
        print(json.dumps(answer | {"said": said, "made": made, "told": told, "left": len(player.pending())}), flush=True)
    while True:
        try:
            player.refresh()
            break
        except UnavailableError:
            time.sleep(0.05)
"""


class Proxy:
    """Between a client and the server: slow, or silent for connections that there are, as after a fail-over."""

    def __init__(self, port: int, host: str = "127.0.0.1", delay: float = 0.0) -> None:
        self._port, self._delay = port, delay
        self._silent: set[int] = set()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._listener = socket.create_server((host, 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                other = socket.create_connection(("127.0.0.1", self._port))
            except OSError:
                return
            self._pairs.append((client, other))
            for source, target in ((client, other), (other, client)):
                line: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
                number = len(self._pairs)
                threading.Thread(target=self._take, args=(source, line), daemon=True).start()
                threading.Thread(target=self._give, args=(line, target, number), daemon=True).start()

    def _take(self, source: socket.socket, line: queue.SimpleQueue[tuple[float, bytes]]) -> None:
        data = b"begin"
        while data:
            try:
                data = source.recv(65536)
            except OSError:
                data = b""
            line.put((time.monotonic() + self._delay, data))

    def _give(self, line: queue.SimpleQueue[tuple[float, bytes]], target: socket.socket, number: int) -> None:
        while True:
            due, data = line.get()
            time.sleep(max(0.0, due - time.monotonic()))
            try:
                if not data:
                    return target.close()
                if number not in self._silent:
                    target.sendall(data)
            except OSError:
                return None

    def fall_silent(self) -> None:
        """For all connections that there are."""
        self._silent.update(range(1, len(self._pairs) + 1))

    def close(self) -> None:
        """And all connections."""
        self._listener.close()
        for pair in self._pairs:
            for one in pair:
                one.close()


class Host(NamedTuple):
    """A namespace with a cable to this machine."""

    name: str
    cable: str  # our end
    address: str  # of this machine, as the host sees it

    def cut(self) -> None:
        """Nothing arrives any more, and nobody is told."""
        ip("link", "set", self.cable, "down")

    def mend(self) -> None:
        """It does again."""
        ip("link", "set", self.cable, "up")

    def slow(self, seconds: float) -> bool:
        """Whether the system can delay what leaves the host."""
        words = ["tc", "qdisc", "add", "dev", f"{self.cable[:-1]}b", "root", "netem", "delay", f"{seconds}s"]
        found = subprocess.run(["ip", "netns", "exec", self.name, *words], capture_output=True, check=False)
        return found.returncode == 0


def ip(*words: str) -> None:
    """The program of this name."""
    subprocess.run(["ip", *words], check=True, capture_output=True)


@contextmanager
def hosts(count: int) -> Iterator[list[Host]]:
    """So many hosts; a test that may not make them is skipped."""
    if shutil.which("ip") is None or not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip(NAMESPACES)
    with ExitStack() as stack:
        yield [stack.enter_context(_host(number)) for number in range(count)]


@contextmanager
def _host(number: int) -> Iterator[Host]:
    name, cable = f"abex{os.getpid()}-{number}", f"ab{os.getpid() % 10**8}{number}"
    ours, theirs = f"10.213.{7 + number}.1", f"10.213.{7 + number}.2"
    try:
        ip("netns", "add", name)
    except subprocess.CalledProcessError:
        pytest.skip(NAMESPACES)
    try:
        ip("link", "add", f"{cable}a", "type", "veth", "peer", "name", f"{cable}b")
        ip("link", "set", f"{cable}b", "netns", name)
        ip("addr", "add", f"{ours}/30", "dev", f"{cable}a")
        ip("link", "set", f"{cable}a", "up")
        ip("-n", name, "addr", "add", f"{theirs}/30", "dev", f"{cable}b")
        ip("-n", name, "link", "set", f"{cable}b", "up")
        yield Host(name, f"{cable}a", ours)
    finally:
        gone = ["ip", "link", "del", f"{cable}a"]  # at once; with its namespace it would go some time later
        subprocess.run(gone, capture_output=True, check=False)
        ip("netns", "del", name)


class Shop:
    """An application on a host, or on this machine: ten decisions and a reward of the last one, round after round."""

    def __init__(self, host: Host | None, url: str, deadline: float, silent: float) -> None:
        where = [] if host is None else ["ip", "netns", "exec", host.name]
        command = [*where, sys.executable, "-c", SHOP, url, str(deadline), str(silent)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )

    def begin(self, rounds: int) -> None:
        """So many; `answer` tells of them."""
        assert self._process.stdin
        self._process.stdin.write(f"{rounds}\n")
        self._process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """The longest `decide` and `update` in seconds, rewards refused and kept, refused and lost, and all until now."""
        assert self._process.stdout
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        return found

    def play(self, rounds: int) -> dict[str, Any]:
        """Both."""
        self.begin(rounds)
        return self.answer()

    def close(self) -> None:
        """When all that it has made is written."""
        self._process.communicate(timeout=PATIENCE)
        assert self._process.returncode == 0

    def kill(self) -> None:
        """It may wait for ever."""
        self._process.kill()
        self._process.wait()
