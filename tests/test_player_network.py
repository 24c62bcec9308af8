"""A network that is cut between an application and its database: two hosts of one machine, made of network namespaces."""

import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from abex import Player
from tests import postgresql
from tests.needs import NAMESPACES, POSTGRESQL
from tests.test_store import Proxy
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[1]
SERVER, CLIENT = "10.213.7.1", "10.213.7.2"
CUT = 4.0  # seconds

SHOP = """
import json, sys, time
from abex.players import Store, UnavailableError

with Store.open(sys.argv[1], deadline=0.5) as store:
    player = store.player("shop", "UCB1", n_arms=3)
    player.update(player.decide(), 1.0)
    print("ready", flush=True)
    sys.stdin.readline()
    until, slowest, errors, told, longest = time.monotonic() + float(sys.argv[2]), 0.0, 0, 1, 0.0
    while time.monotonic() < until:
        for _ in range(10):
            began = time.monotonic()
            decision = player.decide()
            slowest = max(slowest, time.monotonic() - began)
        began = time.monotonic()
        try:
            told += player.update(decision, 1.0)
        except UnavailableError as error:
            assert error.kept, error
            told, errors = told + 1, errors + 1
        longest = max(longest, time.monotonic() - began)
        time.sleep(0.02)
    while True:
        try:
            player.refresh()
            break
        except UnavailableError:
            time.sleep(0.1)
    print(json.dumps([slowest, longest, errors, told, player._replica.tallies.rewarded]), flush=True)
"""


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


@contextmanager
def hosts():
    """A cable to another host: the names of its namespace and of our end."""
    if shutil.which("ip") is None or not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip(NAMESPACES)
    number = os.getpid()
    name, ours, theirs = f"abex{number}", f"abx{number}a"[:15], f"abx{number}b"[:15]
    try:
        ip("netns", "add", name)
    except subprocess.CalledProcessError:
        pytest.skip(NAMESPACES)
    try:
        ip("link", "add", ours, "type", "veth", "peer", "name", theirs)
        ip("link", "set", theirs, "netns", name)
        ip("addr", "add", f"{SERVER}/30", "dev", ours)
        ip("link", "set", ours, "up")
        ip("-n", name, "addr", "add", f"{CLIENT}/30", "dev", theirs)
        ip("-n", name, "link", "set", theirs, "up")
        yield name, ours
    finally:
        ip("netns", "del", name)  # and the cable with it


def test_an_application_that_is_cut_off_goes_on_and_loses_nothing():
    if postgresql.binaries() is None:
        pytest.skip(POSTGRESQL)
    with hosts() as (name, cable):
        server = postgresql.Server()
        proxy = Proxy(server.port, SERVER)
        url = server.url().replace(f"127.0.0.1:{server.port}", f"{SERVER}:{proxy.port}")
        url += "?tcp_user_timeout=1000&keepalives_idle=1&keepalives_interval=1&keepalives_count=2&connect_timeout=2"
        try:
            command = ["ip", "netns", "exec", name, sys.executable, "-c", SHOP, url, str(CUT + 3.0)]
            with subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
            ) as shop:
                assert shop.stdout.readline() == "ready\n"
                shop.stdin.write("go\n")
                shop.stdin.flush()
                time.sleep(1.0)
                ip("link", "set", cable, "down")
                time.sleep(CUT)
                ip("link", "set", cable, "up")
                told, _ = shop.communicate(timeout=PATIENCE)
            slowest, longest, errors, reported, rewarded = json.loads(told)
            assert slowest < CUT / 2.0, "a decision waited for the network"
            assert longest < CUT / 2.0, "a reward waited beyond its deadline"
            assert errors >= 1
            assert rewarded == reported, "each reward counts once"
            with Player.open(server.url(), "shop") as player:
                assert player._replica.tallies.rewarded == reported
        finally:
            proxy.close()
            server.remove()
