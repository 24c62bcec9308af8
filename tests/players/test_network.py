"""Networks that are cut, slow, or lead to a server that is gone, between applications and their database."""

import re
from contextlib import ExitStack

import pytest

from abex import Player
from tests.players.hosts import Proxy, Shop, hosts
from tests.waiting import PATIENCE, wait_until

DEADLINE = 0.5  # seconds that `update` waits
SOON = 5.0  # seconds: what waited for the network, a connection or an answer, would take longer; a busy machine does not
PATIENT = "tcp_user_timeout=1000000&keepalives_idle=1000&connect_timeout=1000"  # no connection is given up
HASTY = "tcp_user_timeout=500&keepalives_idle=1&keepalives_interval=1&keepalives_count=1&connect_timeout=2"


@pytest.fixture
def stack():
    with ExitStack() as found:
        yield found


def opened(stack, url, host, options, silent, delay=0.0, deadline=DEADLINE):
    """A shop on a host, and the proxy through which it reaches the server."""
    port = int(re.search(r"127.0.0.1:(\d+)", url)[1])
    proxy = Proxy(port, host.address, delay)
    stack.callback(proxy.close)
    there = url.replace(f"127.0.0.1:{port}", f"{host.address}:{proxy.port}")
    shop = Shop(host, f"{there}&{options}", deadline, silent)
    stack.callback(shop.kill)
    wait_until(lambda: shop.play(1)["kept"] == 0)
    return shop, proxy


def refused(answer, rounds):
    """Each reward was refused at its deadline and kept, and no decision waited."""
    assert (answer["kept"], answer["lost"]) == (rounds, 0)
    assert "what was reported is kept, and written when the store is back" in answer["said"]
    assert answer["decide"] < SOON
    assert answer["update"] < DEADLINE + SOON


def all_there(url, shops):
    """Nothing that was made or reported is lost, and nothing counts twice."""
    last = [shop.play(0) for shop in shops]
    for shop in shops:
        shop.close()
    with Player.open(url, "shop") as player:
        assert player._state.decisions == sum(answer["made"] for answer in last)
        assert player._state.tallies.rewarded == sum(answer["told"] for answer in last)


@pytest.mark.parametrize("options", [PATIENT, HASTY], ids=["connections stay", "connections are given up"])
def test_a_host_that_is_cut_off_goes_on_and_loses_nothing(schema, stack, options):
    (host,) = stack.enter_context(hosts(1))
    shop, _ = opened(stack, schema, host, options, silent=1e6)
    host.cut()
    answer = shop.play(5)
    refused(answer, 5)
    if options == HASTY:  # it is cut off until the connection is given up and no other one can be made
        wait_until(lambda: "cannot open the journal" in shop.play(1)["said"])
    host.mend()
    assert shop.play(1)["decide"] < SOON
    wait_until(lambda: shop.play(1)["kept"] == 0)
    all_there(schema, [shop])


def test_three_hosts_one_cut_off_one_whose_server_fails_over_and_one_far_away(schema, stack):
    """They play one player; what befalls one of them holds up no other."""
    away, failing, far = stack.enter_context(hosts(3))
    cut, _ = opened(stack, schema, away, HASTY, silent=2.0)
    moved, proxy = opened(stack, schema, failing, PATIENT, silent=1.0)
    slow, _ = opened(
        stack, schema, far, PATIENT, 1e6, delay=0.0 if far.slow(0.1) else 0.05, deadline=PATIENCE
    )
    shops = [cut, moved, slow]
    away.cut()
    proxy.fall_silent()  # for the connections that there are; a new one is answered
    for shop in shops:
        shop.begin(2)
    refused(cut.answer(), 2)
    refused(moved.answer(), 2)
    answer = slow.answer()
    assert answer["kept"] == 0
    assert answer["decide"] < SOON
    wait_until(lambda: moved.play(1)["kept"] == 0)  # while the first one is still cut off
    away.mend()
    wait_until(lambda: cut.play(1)["kept"] == 0)
    all_there(schema, shops)


def test_a_stopped_server_process_holds_up_no_decision(server, schema, stack):
    """Its connections stay open, and nobody answers."""
    (host,) = stack.enter_context(hosts(1))
    shop, _ = opened(stack, schema, host, PATIENT, silent=1.0)
    with server.stopped():
        refused(shop.play(5), 5)
    wait_until(lambda: shop.play(1)["kept"] == 0)
    all_there(schema, [shop])
