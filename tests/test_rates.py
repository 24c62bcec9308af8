"""How often a client may ask: tokens are taken, come back at the rate, and belong to one client."""

from types import SimpleNamespace

import pytest

from abex.service import rates
from abex.service.rates import Rates


def served(limit, client, times):
    """Which requests at these times are answered."""
    return [limit.wait(client, now) == 0.0 for now in times]


@pytest.mark.parametrize(("rate", "at_once"), [(4.0, 8), (1.0, 2), (0.75, 1), (0.25, 1)])
def test_requests_of_two_seconds_and_at_least_one_may_come_at_once(rate, at_once):
    limit = Rates(rate)
    assert served(limit, "ann", [7.0] * (at_once + 3)) == [True] * at_once + [False] * 3
    later = 1e6  # however long it was quiet, no more than that is saved
    assert served(limit, "ann", [later] * (at_once + 3)) == [True] * at_once + [False] * 3


def test_who_asks_all_the_time_is_answered_at_the_rate():
    limit = Rates(4.0)
    times = [number / 64 for number in range(640)]  # ten seconds
    answered = served(limit, "ann", times)
    assert (
        sum(answered) == 8 + 39
    )  # those at once, then one each quarter of a second before the tenth is over
    assert all(answered[number] for number in range(16, 640, 16))


def test_the_seconds_to_wait_are_those_until_there_is_a_token():
    limit = Rates(0.25)
    assert limit.wait("ann", 0.0) == 0.0
    assert limit.wait("ann", 0.0) == 4.0
    assert limit.wait("ann", 1.0) == 3.0  # who asks in vain pays nothing
    assert limit.wait("ann", 3.5) == 0.5
    assert limit.wait("ann", 4.0) == 0.0
    assert limit.wait("ann", 5.0) == 3.0


def test_each_client_has_tokens_of_its_own():
    limit = Rates(1.0)
    assert served(limit, "ann", [0.0] * 3) == [True, True, False]
    assert served(limit, "bob", [0.0] * 3) == [True, True, False]


def test_a_rate_of_zero_is_no_limit():
    assert served(Rates(0.0), "ann", [0.0] * 1000) == [True] * 1000


def test_the_client_that_has_been_quiet_for_longest_is_forgotten(monkeypatch):
    monkeypatch.setattr(rates, "MOST_CLIENTS", 2)
    limit = Rates(0.5)
    assert [limit.wait(client, 0.0) for client in ("ann", "bob")] == [0.0, 0.0]
    assert limit.wait("ann", 0.0) == 2.0  # asks again: bob is the quiet one
    assert limit.wait("cid", 0.0) == 0.0
    assert limit.wait("ann", 0.0) == 2.0
    assert limit.wait("cid", 0.0) == 2.0
    assert limit.wait("bob", 0.0) == 0.0
    assert limit.wait("ann", 0.0) == 0.0  # forgotten when bob came back


def test_time_is_the_clock_that_never_goes_back(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(rates, "time", SimpleNamespace(monotonic=lambda: now[0]))
    limit = Rates(1.0)
    assert [limit.wait("ann") for _ in range(3)] == [0.0, 0.0, 1.0]
    now[0] += 0.5
    assert limit.wait("ann") == 0.5
    now[0] += 0.5
    assert limit.wait("ann") == 0.0
