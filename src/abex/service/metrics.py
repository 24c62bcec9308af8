"""Prometheus metrics: what this process did, and what the players of the store look like.

Requests and their latencies are counted where they happen; with several workers `prometheus_client` adds them up through files in
a folder that the supervisor makes. Decisions, rewards and shares belong to a player, not to a process: they are read from its
state when somebody looks, and every worker gives the same answer.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector

from abex.players.shared_player import SharedPlayer
from abex.players.summary import summarise

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
MOST_ARMS_SHOWN = 50  # of a player, those chosen most


class Metrics:
    """Counts requests and their latencies."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"abex_{name}", text, labels, registry=self.registry)

        self._requests = counter("requests", "Requests answered", "endpoint", "status")
        self._seconds = Histogram(
            "abex_request_seconds", "Time to answer", ["endpoint"], buckets=BUCKETS, registry=self.registry
        )
        self.connections = Gauge(
            "abex_connections", "Open connections", registry=self.registry, multiprocess_mode="livesum"
        )
        self.refused_connections = counter("refused_connections", "Connections beyond a limit", "limit")
        self.ended_connections = counter("ended_connections", "Connections of slow clients", "waited_for")
        self._answered = {
            "decisions": counter("answered_decisions", "Decisions that this instance answered", "player"),
            "rewards": counter("learned_rewards", "Rewards that this instance learned", "player"),
        }
        self._children: dict[Any, Any] = {}

    def count(self, endpoint: str, status: int, seconds: float) -> None:
        """A request was answered."""
        try:
            requests, latencies = self._children[endpoint, status]
        except KeyError:
            requests = self._requests.labels(endpoint, str(status))
            latencies = self._seconds.labels(endpoint)
            self._children[endpoint, status] = requests, latencies
        requests.inc()
        latencies.observe(seconds)

    def add(self, what: str, player: str, count: int) -> None:
        """Decisions or rewards of a player have been answered here; unlike its state, these add up over instances."""
        counter = self._children.get((what, player))
        if counter is None:
            counter = self._children[what, player] = self._answered[what].labels(player)
        counter.inc(count)

    def text(self, players: Iterable[SharedPlayer]) -> bytes:
        """All metrics in Prometheus' text format."""
        registry = CollectorRegistry()
        if os.environ.get(FOLDER):
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
            own = generate_latest(registry)
        else:
            own = generate_latest(self.registry)
        of_players = CollectorRegistry()
        of_players.register(_Players(list(players)))
        return own + generate_latest(of_players)


#: what is read from the state of players: kind, sentence, labels
FAMILIES: dict[str, tuple[Any, str, list[str]]] = {
    "abex_decisions": (CounterMetricFamily, "Decisions made", ["player"]),
    "abex_rewards": (CounterMetricFamily, "Decisions that had their reward", ["player"]),
    "abex_expired": (CounterMetricFamily, "Decisions without a reward in time", ["player"]),
    "abex_open_decisions": (GaugeMetricFamily, "Decisions that wait", ["player"]),
    "abex_oldest_open_decision_seconds": (GaugeMetricFamily, "Age of the oldest of them", ["player"]),
    "abex_arm_rewards": (CounterMetricFamily, "Rewards, side observations included", ["player", "arm"]),
    "abex_arm_reward_sum": (GaugeMetricFamily, "Their sum", ["player", "arm"]),
    "abex_arm_share": (GaugeMetricFamily, "Share of the last 1,000 decisions", ["player", "arm"]),
}


class _Players:
    """Collects the state of players."""

    def __init__(self, players: list[SharedPlayer]) -> None:
        self.players = players

    def collect(self) -> Iterable[Metric]:
        families = {name: kind(name, text, labels=labels) for name, (kind, text, labels) in FAMILIES.items()}
        for player in self.players:
            with player._lock:
                for name, arm, value in _samples(player):
                    families[name].add_metric([player.name, *arm], value)
        return families.values()


def _samples(player: SharedPlayer) -> Iterator[tuple[str, tuple[str, ...], float]]:
    """Metric, arm if it is of one, value; of the arms chosen most."""
    replica = player._state
    first = next(iter(replica.pending.values()), None)
    yield "abex_decisions", (), replica.decisions
    yield "abex_rewards", (), replica.tallies.rewarded
    yield "abex_expired", (), replica.tallies.expired
    yield "abex_open_decisions", (), len(replica.pending)
    age = 0.0 if first is None else time.time() - first.moment / 1000.0
    yield "abex_oldest_open_decision_seconds", (), max(0.0, age)
    unknown = np.full(replica.n_arms, math.nan)  # probabilities, which may be dear
    for one in summarise(replica, player._settings, "", MOST_ARMS_SHOWN, unknown):
        arm = (str(one.arm),)
        yield "abex_arm_rewards", arm, one.observations
        yield "abex_arm_reward_sum", arm, one.observations * one.mean if one.observations else 0.0
        yield "abex_arm_share", arm, 0.0 if math.isnan(one.recent_share) else one.recent_share
