"""Players that many processes share, and the service: states, logs, descriptions, answers of commands."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from unittest import mock

from benchmarks.subjects import Absent, Part

from abex import Player
from abex.support.randomness import stream

MOMENT = 1_700_000_000.0
#: who plays, and how many events at least
PLAYERS = {"ABE(eta=1.0)": 10_000, "Evidence()": 2_000, "Exp3(gamma=0.2)": 2_000}


@contextmanager
def fixed_ids() -> Iterator[None]:
    """What the system gives at random and the time of day are the same in every process; no thread works in the background."""
    asked: Counter[int] = Counter()

    def urandom(size: int) -> bytes:
        asked[size] += 1
        return (asked[size] * 0x9E3779B97F4A7C15).to_bytes(size + 8, "little")[:size]

    with (
        mock.patch("os.urandom", urandom),
        mock.patch("time.time", return_value=MOMENT),
        mock.patch("time.time_ns", return_value=int(MOMENT) * 10**9),
        mock.patch("abex.players.store.SOON", 10**6),
        mock.patch("abex.players.store.TICK", 10**6),
    ):
        yield


def sqlite_states() -> Iterator[Part]:
    """On a file."""
    with tempfile.TemporaryDirectory() as folder:
        yield from states(f"sqlite:///{folder}/shop.db?synchronous=normal")


def postgresql_states() -> Iterator[Part]:
    """On a server of our own."""
    from tests import postgresql

    if postgresql.binaries() is None:
        raise Absent(postgresql.MISSING)
    server = postgresql.Server()
    try:
        yield from states(server.url())
    finally:
        server.remove()


def states(url: str) -> Iterator[Part]:
    """State and log of each player."""
    for number, (policy, events) in enumerate(PLAYERS.items()):
        with fixed_ids():
            name, time = f"player {number}", Clock()
            with Player.open(
                url, name, policy, arms=["red", "green", "blue", "white"], horizon=events, expire=timedelta(minutes=1),
                unrewarded=0.25, seed=1, clock=time, snapshot_every=10**9, freshness=3600.0,
            ) as player:  # fmt: skip
                live(player, events, time)
                state, log = player.text(), player.log().to_csv(index=False)
            with Player.open(url, name, clock=time, freshness=3600.0) as again:
                reopened = again.text()
        yield f"state of {policy}", state
        yield f"state of {policy}, reopened", reopened
        yield f"log of {policy}", log


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = MOMENT

    def __call__(self) -> float:
        """The time."""
        return self.now


def live(player: Any, events: int, time: Clock) -> None:
    """Decisions, rewards in any order, side observations, arms told of, arms that come, go and change their names, expiries."""
    rng, waiting, step = stream(1, "events"), [], 0
    while player.seq() < events:
        step += 1
        made = player.decide_many(2) if step % 10 == 0 else [player.decide()]
        player.flush()
        waiting += [one.id for one in made]
        time.now += 0.5
        player.refresh()  # lets decisions expire
        rewards: list[Any] = []
        while len(waiting) > 8:
            name = waiting.pop(int(rng.integers(len(waiting))))
            if rng.random() < 0.95:  # the others expire
                rewards.append((name, int(rng.integers(5)) / 4.0))
        if step % 9 == 0:
            rewards.append((player.arms[-1], 0.75))
        if step % 17 == 0:
            rewards.append((player.arms[0], 0.5, {player.arms[1]: 1.0}))
        player.update_many(rewards)
        if player.policy.resizable and step % 400 == 0:
            player.add_arm(f"arm {step}")
            player.remove_arm(player.arms[1])
            player.rename_arm(player.arms[0], f"first {step}")


def openapi() -> Iterator[Part]:
    """The description that the service gives of itself."""
    from tests.service.serving import service

    with tempfile.TemporaryDirectory() as folder, service(f"sqlite:///{folder}/shop.db") as client:
        answer = client.get("/openapi.json")
    assert answer.status_code == 200, answer.text
    yield "/openapi.json", answer.text
