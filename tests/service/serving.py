"""A service for tests: in this process, or as a command with workers of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import warnings
from contextlib import contextmanager
from pathlib import Path

import httpx

from abex.client import Client
from abex.service import Settings, create_app
from tests.waiting import PATIENCE, wait_until

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

ROOT = Path(__file__).parents[2]
NEVER_MADE = "0190a7c8-5d2f-7000-8000-01f2d3c4b5a6"  # an id of no decision
SOURCES = os.pathsep.join([str(ROOT), *sys.path])  # those of this process: a mutant's are a copy


def service(store, **settings):
    """A client of an application in this process; to be used in a `with`."""
    return TestClient(create_app(Settings(store=store, **settings)), base_url="http://localhost")


@contextmanager
def command(store, *options, log=None, descriptors=None):
    """`abex serve` as a process on a free port, its log in a file; yields the process and its address.

    With ``descriptors`` it may have no more files and connections open.
    """
    environment = os.environ | {"PYTHONPATH": SOURCES}
    words = [sys.executable, "-m", "abex", "serve", "--store", store, "--port", "0", *options]
    if descriptors is not None:
        words = ["sh", "-c", f'ulimit -n {descriptors} && exec "$@"', "sh", *words]
    with contextlib.ExitStack() as stack:
        if log is None:  # a pipe that nobody reads would fill up
            log = stack.enter_context(tempfile.NamedTemporaryFile("w"))
        process = subprocess.Popen(words, env=environment, stderr=log, text=True)
        try:
            address = wait_until(lambda: first_line(log.name), process).split()[-1]
            wait_for(f"{address}/ready")
            yield process, address
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(PATIENCE)
            finally:
                process.kill()
                print(Path(log.name).read_text())  # shown where the test fails


def first_line(path):
    """The first line of a file, "" until it is whole."""
    line, end, _ = Path(path).read_text().partition("\n")
    return line if end else ""


def patient(address):
    """A client of a service that waits for its answers."""
    return Client(address, patience=PATIENCE, timeout=PATIENCE)


def get(address):
    """An answer, however long it takes."""
    return httpx.get(address, timeout=PATIENCE)


def wait_for(address, status=200):
    """Wait until an address answers with a status."""

    def answered():
        try:
            return get(address).status_code == status
        except httpx.TransportError:
            return False

    wait_until(answered)


def workers(pid):
    """The processes of a supervisor that answer requests, the one that began first in front."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            words = (stat.parent / "cmdline").read_bytes()
        except (OSError, IndexError):
            continue
        if parent == pid and b"spawn_main" in words:
            found.append(int(stat.parent.name))
    return sorted(found)
