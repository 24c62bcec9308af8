"""Prometheus metrics: what this instance did, and what the players of the store look like.

What an instance does it counts in plain numbers, each event in the one worker that wrote it, so these add up over instances. With
several workers each keeps its numbers in a file, once a second and when it is asked; who is asked adds up all files, and a worker
that takes the place of another goes on from its numbers. What belongs to a player, not to a process, is read from its state when
somebody looks, and every instance tells the same.
"""

from __future__ import annotations

import math
import os
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from abex.players.player_settings import PlayerSettings
from abex.players.shared_player import SharedPlayer
from abex.players.state import PlayerState
from abex.players.summary import summarise

BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
MOST_ARMS_SHOWN = 50  # of a player, those chosen most


class Counts(msgspec.Struct):
    """What a process has counted."""

    connections: int = 0  # open now
    others: dict[str, dict[str, float]] = {}  # by metric and label
    answers: dict[
        str, dict[int, list[float]]
    ] = {}  # by endpoint and status: in each bucket, beyond all, seconds in all

    def add(self, other: Counts) -> None:
        """Add another process's."""
        self.connections += other.connections
        for metric, found in other.others.items():
            for label, count in found.items():
                self.count(metric, label, count)
        for endpoint, answered in other.answers.items():
            ours = self.answers.setdefault(endpoint, {})
            for status, numbers in answered.items():
                before = ours.get(status, [0.0] * len(numbers))
                ours[status] = [one + more for one, more in zip(before, numbers, strict=True)]

    def count(self, metric: str, label: str, count: float) -> None:
        """Something has happened so many times."""
        found = self.others.setdefault(metric, {})
        found[label] = found.get(label, 0) + count


class Metrics:
    """Counts requests, their latencies, and what they brought; in a file besides where there are several workers."""

    def __init__(self, file: str | None = None) -> None:
        self._file = None if file is None else Path(file)
        self.counts = Counts()
        if self._file is not None and self._file.exists():  # the worker that had this place before
            self.counts = _decode(self._file.read_bytes())
            self.counts.connections = 0

    def count(self, endpoint: str, status: int, seconds: float) -> None:
        """A request was answered."""
        try:
            numbers = self.counts.answers[endpoint][status]
        except KeyError:
            found = self.counts.answers.setdefault(endpoint, {})
            numbers = found[status] = [0.0] * (len(BUCKETS) + 2)
        numbers[bisect_left(BUCKETS, seconds)] += 1.0
        numbers[-1] += seconds

    def add(self, metric: str, label: str, count: float = 1) -> None:
        """Something has happened so many times."""
        self.counts.count(metric, label, count)

    def keep(self) -> None:
        """Write the numbers into the file."""
        if self._file is not None:
            part = self._file.with_suffix(".part")
            part.write_bytes(_encode(self.counts))
            os.replace(part, self._file)

    def text(self, players: Iterable[SharedPlayer]) -> bytes:
        """All metrics in Prometheus' text format."""
        self.keep()
        total = Counts()
        files = [] if self._file is None else self._file.parent.glob("*.json")
        for counts in [file.read_bytes() for file in files] or [_encode(self.counts)]:
            total.add(_decode(counts))
        registry = CollectorRegistry()
        registry.register(_Collected([*_of_instance(total), *_of_players(players)]))
        return generate_latest(registry)


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Counts).decode


class _Collected:
    """Metrics for `prometheus_client` to write down."""

    def __init__(self, families: list[Metric]) -> None:
        self.collect = lambda: families


#: what this instance did: kind, sentence, label
COUNTED: dict[str, tuple[Any, str, str]] = {
    "abex_refused_connections": (CounterMetricFamily, "Connections beyond a limit", "limit"),
    "abex_ended_connections": (CounterMetricFamily, "Connections of slow clients", "waited_for"),
    "abex_instance_decisions": (CounterMetricFamily, "Decisions that this instance wrote", "player"),
    "abex_instance_rewards": (CounterMetricFamily, "Rewards of decisions that this instance wrote", "player"),
    "abex_instance_reward_sum": (GaugeMetricFamily, "Their sum, as they were reported", "player"),
    "abex_instance_corrections": (CounterMetricFamily, "Corrections that this instance wrote", "player"),
}
#: what is read from the state of players: kind, sentence, labels
FAMILIES: dict[str, tuple[Any, str, list[str]]] = {
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
    "abex_arm_share": (GaugeMetricFamily, "Share of the last 1,000 decisions", ["player", "arm"]),
}


def _of_instance(counts: Counts) -> Iterator[Metric]:
    requests = CounterMetricFamily("abex_requests", "Requests answered", labels=["endpoint", "status"])
    latencies = HistogramMetricFamily("abex_request_seconds", "Time to answer", labels=["endpoint"])
    for endpoint, found in counts.answers.items():
        for status, numbers in found.items():
            requests.add_metric([endpoint, str(status)], sum(numbers[:-1]))
        *buckets, seconds = (sum(column) for column in zip(*found.values(), strict=True))
        ends = [*map(str, BUCKETS), "+Inf"]
        latencies.add_metric([endpoint], list(zip(ends, accumulate(buckets), strict=True)), seconds)
    yield requests
    yield latencies
    yield GaugeMetricFamily("abex_connections", "Open connections", counts.connections)
    for name, (kind, sentence, label) in COUNTED.items():
        family = kind(name, sentence, labels=[label])
        for value, count in counts.others.get(name, {}).items():
            family.add_metric([value], count)
        yield family


def _of_players(players: Iterable[SharedPlayer]) -> Iterable[Metric]:
    families = {name: kind(name, text, labels=labels) for name, (kind, text, labels) in FAMILIES.items()}
    for player in players:
        with player.reading() as now:
            for name, arm, value in _samples(now, player.settings):
                families[name].add_metric([player.name, *arm], value)
    return families.values()


def _samples(now: PlayerState, settings: PlayerSettings) -> Iterator[tuple[str, tuple[str, ...], float]]:
    """Metric, arm if it is of one, value; of the arms chosen most."""
    first = next(iter(now.pending.values()), None)
    yield "abex_decisions", (), now.decisions
    yield "abex_rewards", (), now.tallies.rewarded
    yield "abex_expired", (), now.tallies.expired
    yield "abex_late", (), now.tallies.late
    yield "abex_corrections", (), now.tallies.corrected
    yield "abex_open_decisions", (), len(now.pending)
    age = 0.0 if first is None else time.time() - first.moment / 1000.0
    yield "abex_oldest_open_decision_seconds", (), max(0.0, age)
    unknown = np.full(now.n_arms, math.nan)  # probabilities, which may be dear
    for one in summarise(now, settings, "", MOST_ARMS_SHOWN, unknown):
        arm = (str(one.arm),)
        yield "abex_arm_rewards", arm, one.observations
        paid = float(now.tallies.sums[now.arms.place(now.arms.number(one.arm))])
        yield (
            "abex_arm_reward_sum",
            arm,
            settings.low * one.observations + (settings.high - settings.low) * paid,
        )
        yield "abex_arm_share", arm, 0.0 if math.isnan(one.recent_share) else one.recent_share
