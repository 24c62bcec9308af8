"""Prometheus metrics: what this instance did, and what the players of the store look like.

What an instance does it counts, each event in the one worker that wrote it, so these add up over instances. Several workers
have their numbers in files of one folder, as `prometheus_client` does it: who is asked adds up all of them, and what a worker
counted stays when it dies. What belongs to a player, not to a process, is read from its state when somebody looks, and every
instance tells the same.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Iterator

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from abex.players.changes import Aliases
from abex.players.shared_player import SharedPlayer
from abex.players.state import PlayerState
from abex.players.summary import summarise

FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # set where several workers share a folder
BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
MOST_ARMS_SHOWN = 50  # of a player, those chosen most


class Metrics:
    """What an instance counts."""

    def __init__(self) -> None:
        self._registry = own = CollectorRegistry()
        self.requests = Counter("abex_requests", "Requests answered", ["endpoint", "status"], registry=own)
        self.seconds = Histogram(
            "abex_request_seconds", "Time to answer", ["endpoint"], buckets=BUCKETS, registry=own
        )
        self.connections = Gauge(
            "abex_connections", "Open connections", multiprocess_mode="livesum", registry=own
        )
        self.refused = Counter(
            "abex_refused_connections", "Connections beyond a limit", ["limit"], registry=own
        )
        self.ended = Counter(
            "abex_ended_connections", "Connections of slow clients", ["waited_for"], registry=own
        )
        about, by = "decisions that this instance wrote", ["player"]
        self.decisions = Counter("abex_instance_decisions", f"The {about}", by, registry=own)
        self.rewards = Counter("abex_instance_rewards", f"Rewards of {about}", by, registry=own)
        self.reward_sum = Gauge(
            "abex_instance_reward_sum", "Their sum", by, multiprocess_mode="sum", registry=own
        )
        self.corrections = Counter("abex_instance_corrections", f"Corrections of {about}", by, registry=own)

    def text(self, players: Iterable[SharedPlayer], aliases: Aliases) -> bytes:
        """All metrics in Prometheus' text format."""
        registry = self._registry
        if FOLDER in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        looked_at = CollectorRegistry()
        looked_at.register(_Players(players, aliases))
        return generate_latest(registry) + generate_latest(looked_at)


#: what is read from the state of players: kind, sentence, labels
FAMILIES: dict[str, tuple[type[CounterMetricFamily | GaugeMetricFamily], str, list[str]]] = {
    "abex_decisions": (CounterMetricFamily, "Decisions in the journal", ["player"]),
    "abex_rewards": (CounterMetricFamily, "Decisions in the journal that had their reward", ["player"]),
    "abex_expired": (CounterMetricFamily, "Decisions in the journal without a reward in time", ["player"]),
    "abex_late": (
        CounterMetricFamily,
        "Decisions of which a reward or a correction came too late",
        ["player"],
    ),
    "abex_corrections": (CounterMetricFamily, "Corrections that changed a reward", ["player"]),
    "abex_open_decisions": (GaugeMetricFamily, "Decisions that wait", ["player"]),
    "abex_oldest_open_decision_seconds": (GaugeMetricFamily, "Age of the oldest of them", ["player"]),
    "abex_arm_rewards": (CounterMetricFamily, "Rewards, side observations included", ["player", "arm"]),
    "abex_arm_reward_sum": (GaugeMetricFamily, "Their sum", ["player", "arm"]),
    "abex_arm_mean_low": (GaugeMetricFamily, "Lower end of the 95 % interval of its mean", ["player", "arm"]),
    "abex_arm_mean_high": (GaugeMetricFamily, "Upper end; both hold at every moment", ["player", "arm"]),
    "abex_arm_share": (GaugeMetricFamily, "Share of the last 1,000 decisions", ["player", "arm"]),
    "abex_alias_share": (
        GaugeMetricFamily,
        "Share of the units that it sends to a player",
        ["alias", "player"],
    ),
}


class _Players(Collector):
    """What the states of players tell, and where aliases send units."""

    def __init__(self, players: Iterable[SharedPlayer], aliases: Aliases) -> None:
        self._players, self._aliases = players, aliases

    def collect(self) -> Iterable[Metric]:
        """For `prometheus_client` to write down."""
        families = {name: kind(name, text, labels=labels) for name, (kind, text, labels) in FAMILIES.items()}
        for player in self._players:
            with player.reading() as now:
                for name, arm, value in _samples(now):
                    families[name].add_metric([player.name, *arm], value)
        for name, alias in list(self._aliases.present.items()):
            for one, percent in alias.split.items():
                families["abex_alias_share"].add_metric([name, one], percent / 100)
        return families.values()


def _samples(now: PlayerState) -> Iterator[tuple[str, tuple[str, ...], float]]:
    """Metric, arm if it is of one, value; of the arms chosen most."""
    settings, first = now.settings, next(iter(now.pending.values()), None)
    yield "abex_decisions", (), now.decisions
    yield "abex_rewards", (), now.tallies.rewarded
    yield "abex_expired", (), now.tallies.expired
    yield "abex_late", (), now.tallies.late
    yield "abex_corrections", (), now.tallies.corrected
    yield "abex_open_decisions", (), len(now.pending)
    age = 0.0 if first is None else time.time() - first.moment / 1000.0
    yield "abex_oldest_open_decision_seconds", (), max(0.0, age)
    unknown = np.full(now.n_arms, math.nan)  # probabilities, which may be dear
    for one in summarise(now, MOST_ARMS_SHOWN, unknown):
        arm, place = (str(one.arm),), now.arms.place(now.arms.number(one.arm))
        total = (
            float(now.tallies.sums[place]) * (settings.high - settings.low) + one.observations * settings.low
        )
        yield "abex_arm_rewards", arm, one.observations
        yield "abex_arm_reward_sum", arm, total
        yield "abex_arm_mean_low", arm, one.low
        yield "abex_arm_mean_high", arm, one.high
        yield "abex_arm_share", arm, 0.0 if math.isnan(one.recent_share) else one.recent_share
