"""A network that is cut between an application and its database: two hosts of one machine, made of network namespaces."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from abex import Player
from tests import postgresql
from tests.needs import NAMESPACES, POSTGRESQL
from tests.players.test_store import Proxy
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
SERVER, CLIENT = "10.213.7.1", "10.213.7.2"
SHOP = """
import json, sys, time
import abex.players.store
from abex.players import Store, UnavailableError

abex.players.store.SILENT = 1e6

def rounds(player, number):
    told = errors = 0
    for _ in range(number):
        for _ in range(10):
            decision = player.decide()
        try:
            told += player.update(decision, 1.0)
        except UnavailableError as error:
            assert error.kept, error
            told, errors = told + 1, errors + 1
    return told, errors

with Store.open(sys.argv[1], deadline=0.5) as store:
    player = store.player("shop", "UCB1", n_arms=3)
    told, _ = rounds(player, 3)
    print("ready", flush=True)
    sys.stdin.readline()
    more, errors = rounds(player, 5)
    print(errors, flush=True)
    sys.stdin.readline()
    last, _ = rounds(player, 5)
    while True:
        try:
            player.refresh()
            break
        except UnavailableError:
            time.sleep(0.1)
    print(json.dumps([told + more + last, player._state.tallies.rewarded]), flush=True)
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
        # who waits for this network waits for longer than the test does
        url += "?tcp_user_timeout=1000000&keepalives_idle=1000&connect_timeout=1000"
        try:
            command = ["ip", "netns", "exec", name, sys.executable, "-c", SHOP, url]
            with subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
            ) as shop:
                assert shop.stdout.readline() == "ready\n"
                ip("link", "set", cable, "down")
                shop.stdin.write("it is cut\n")
                shop.stdin.flush()
                assert int(shop.stdout.readline()) == 5, (
                    "each reward of a cut network is refused at its deadline"
                )
                ip("link", "set", cable, "up")
                told, _ = shop.communicate("it is mended\n", timeout=PATIENCE)
            reported, rewarded = json.loads(told)
            assert rewarded == reported, "each reward counts once"
            with Player.open(server.url(), "shop") as player:
                assert player._state.tallies.rewarded == reported
        finally:
            proxy.close()
            server.remove()
