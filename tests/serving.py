"""A service for tests: in this process, or as a command with workers of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from contextlib import contextmanager
from pathlib import Path

import httpx

from abex.service import Settings, create_app

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

ROOT = Path(__file__).parents[1]


def service(store, **settings):
    """A client of an application in this process; to be used in a `with`."""
    return TestClient(create_app(Settings(store=store, **settings)), base_url="http://localhost")


@contextmanager
def command(store, *options, log=None):
    """`abex serve` as a process on a free port; yields the process and its address."""
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    words = [sys.executable, "-m", "abex", "serve", "--store", store, "--port", "0", "--rate", "0", *options]
    process = subprocess.Popen(
        words, env=environment, stderr=subprocess.PIPE if log is None else log, text=True
    )
    try:
        address = process.stderr.readline().split()[-1] if log is None else said(log, process)
        wait_for(f"{address}/ready")
        yield process, address
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            raise


def said(log, process):
    """The address, from the first line of a log file."""
    until = time.monotonic() + 30.0
    while time.monotonic() < until and process.poll() is None:
        line = Path(log.name).read_text().partition("\n")
        if line[1]:
            return line[0].split()[-1]
        time.sleep(0.05)
    raise AssertionError(Path(log.name).read_text())


def wait_for(address, status=200, seconds=60.0):
    """Wait until an address answers with a status."""
    until = time.monotonic() + seconds
    while True:
        try:
            if httpx.get(address, timeout=10.0).status_code == status:
                return
        except httpx.TransportError:
            pass
        assert time.monotonic() < until, f"{address} never answered {status}"
        time.sleep(0.1)


def workers(pid):
    """The processes of a supervisor that answer requests."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            words = (stat.parent / "cmdline").read_bytes()
        except (OSError, IndexError):
            continue
        if parent == pid and b"spawn_main" in words:
            found.append(int(stat.parent.name))
    return found
