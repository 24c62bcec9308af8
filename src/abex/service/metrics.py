"""Prometheus metrics: what this process did, and what the players of the store look like.

Requests and their latencies are counted where they happen; with several workers `prometheus_client` adds them up through files in
a folder that the supervisor makes. Decisions, rewards and shares belong to a player, not to a process: they are read from its
state when somebody looks, and every worker gives the same answer.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector

from abex.players.shared import SharedPlayer

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
MOST_ARMS_SHOWN = 50  # of a player, those chosen most


class Metrics:
    """Counts requests and their latencies."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "abex_requests", "Requests answered", ["endpoint", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "abex_request_seconds", "Time to answer", ["endpoint"], buckets=BUCKETS, registry=self.registry
        )
        self.connections = Gauge(
            "abex_connections", "Open connections", registry=self.registry, multiprocess_mode="livesum"
        )
        self.refused_connections = Counter(
            "abex_refused_connections", "Connections beyond a limit", ["limit"], registry=self.registry
        )
        self.ended_connections = Counter(
            "abex_ended_connections",
            "Connections of clients that took too long",
            ["waited_for"],
            registry=self.registry,
        )
        self._answered = {
            "decisions": Counter(
                "abex_answered_decisions",
                "Decisions that this instance answered",
                ["player"],
                registry=self.registry,
            ),
            "rewards": Counter(
                "abex_learned_rewards",
                "Rewards that this instance learned",
                ["player"],
                registry=self.registry,
            ),
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


class _Players:
    """Collects the state of players."""

    def __init__(self, players: list[SharedPlayer]) -> None:
        self.players = players

    def collect(self) -> Iterable[Metric]:
        decisions = CounterMetricFamily("abex_decisions", "Decisions made", labels=["player"])
        rewards = CounterMetricFamily("abex_rewards", "Decisions that had their reward", labels=["player"])
        expired = CounterMetricFamily("abex_expired", "Decisions without a reward in time", labels=["player"])
        waiting = GaugeMetricFamily("abex_open_decisions", "Decisions that wait", labels=["player"])
        oldest = GaugeMetricFamily(
            "abex_oldest_open_decision_seconds", "Age of the oldest decision that waits", labels=["player"]
        )
        share = GaugeMetricFamily(
            "abex_arm_share",
            "Share of the last 1,000 decisions, of the arms chosen most",
            labels=["player", "arm"],
        )
        observations = CounterMetricFamily(
            "abex_arm_rewards", "Rewards of an arm, side observations included", labels=["player", "arm"]
        )
        sums = GaugeMetricFamily(
            "abex_arm_reward_sum", "Sum of the rewards of an arm", labels=["player", "arm"]
        )
        now = time.time() * 1000.0
        for player in self.players:
            with player._lock:
                replica, tallies, name = player._replica, player._replica.tallies, [player.name]
                decisions.add_metric(name, replica.decisions)
                rewards.add_metric(name, tallies.rewarded)
                expired.add_metric(name, tallies.expired)
                waiting.add_metric(name, len(replica.pending))
                first = next(iter(replica.pending.values()), None)
                oldest.add_metric(name, 0.0 if first is None else max(0.0, (now - first.moment) / 1000.0))
                for arm, part in _shares(replica):
                    share.add_metric([player.name, arm], part)
                for arm, count, total in _rewards(player):
                    observations.add_metric([player.name, arm], count)
                    sums.add_metric([player.name, arm], total)
        return [decisions, rewards, expired, waiting, oldest, share, observations, sums]


def _rewards(player: SharedPlayer) -> Iterable[tuple[str, int, float]]:
    """Of the arms chosen most: name, number of rewards, and their sum."""
    replica, tallies = player._replica, player._replica.tallies
    for place in np.argsort(-tallies.pulls, kind="stable")[:MOST_ARMS_SHOWN].tolist():
        count = int(tallies.observations[place])
        mean = float(tallies.sums[place]) / count if count else 0.0
        yield (
            str(replica.arms.label(int(replica.arms.numbers[place]))),
            count,
            count * player._terms.shown(mean),
        )


def _shares(replica: Any) -> list[tuple[str, float]]:
    counts: dict[int, int] = {}
    for number in replica.tallies.recent:
        counts[number] = counts.get(number, 0) + 1
    most = sorted(counts.items(), key=lambda item: -item[1])[:MOST_ARMS_SHOWN]
    total = max(1, len(replica.tallies.recent))
    return [
        (str(replica.arms.label(number)), count / total) for number, count in most if replica.arms.has(number)
    ]
