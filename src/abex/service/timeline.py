r"""What a journal tells over time: shares of the arms, rewards, and what uniform choice would have earned.

Uniform choice is valued as `abex.evaluation` does it, by self-normalised inverse propensities with the interval that holds at
every moment: one of k decisions made at once among K arms, whose probability is p, weighs :math:`w=k/(Kp)`, and over n decisions
uniform choice would have earned :math:`n\sum wr/\sum w`. Beyond `MAX_BLOCKS` decisions, which are valued in blocks, the interval
holds at each look.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.evaluation.estimators import Contributions, self_normalised
from abex.evaluation.evaluating import LEVEL, MIN_EFFECTIVE, refusal_reason
from abex.evaluation.uncertainty import at_every_moment
from abex.players.arms import NamedArms
from abex.players.events import Decided, decode
from abex.players.journal_log import LogReader
from abex.players.player_file import Definition
from abex.players.player_settings import PlayerSettings
from abex.players.shared_player import SharedPlayer

MOST_BUCKETS = 100
FIRST_WIDTH = 1_000  # milliseconds of a bucket at first
MOST_ARMS = 12  # with a share of their own; the others are one
MOST_EVENTS = 500_000  # that are read when somebody looks for the first time
MAX_BLOCKS = 2_000  # of consecutive decisions, for the interval: a long journal takes no longer than that

Value = tuple[float, float, float]


class UniformChoice:
    """What uniform choice would have earned, after any number of decisions that had their reward."""

    def __init__(self, terms: PlayerSettings) -> None:
        self.span = terms.low, terms.high
        self.weights, self.rewards = array("d"), array("d")
        self.units = array("q")  # decisions made at once have one
        self.batches: dict[str, int] = {}
        self.unknown = 0  # decisions whose probability is not known
        self.known: dict[int, Value] = {}

    def revise(self, place: int, reward: float) -> None:
        """One of them paid something else."""
        self.rewards[place] = reward
        self.known.clear()

    def add(self, reward: float, weight: float | None, batch: str | None) -> None:
        """One more; without a weight where its probability is not known."""
        self.unknown += weight is None
        unit = len(self.units)
        self.units.append(unit if batch is None else self.batches.setdefault(batch, unit))
        self.weights.append(weight or 0.0)
        self.rewards.append(reward)

    def contributions(self, count: int, most: int | None = None) -> Contributions:
        """Of the first ``count`` decisions: in units of what was decided at once, or in blocks of consecutive units."""
        _, unit = np.unique(np.array(self.units[:count]), return_inverse=True)
        units = int(unit.max(initial=0)) + 1
        parts = min(units, most or units)
        weights = np.array(self.weights[:count])
        gains = weights * np.array(self.rewards[:count])
        part = unit * parts // units

        def by_part(values: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.bincount(part, values, parts).astype(np.float64) * (parts / count)

        return self_normalised(by_part(weights), by_part(gains))

    def earned(self, count: int) -> Value | None:
        """By the first ``count`` decisions, with its interval; None where the log is too short to tell."""
        if count == 0:
            return None
        if count not in self.known:
            if self.contributions(count).effective < MIN_EFFECTIVE:
                return None
            given = self.contributions(count, MAX_BLOCKS)
            low, high = at_every_moment(given, self.span, LEVEL)
            self.known[count] = count * given.value(), count * low, count * high
        return self.known[count]

    def refusal_reason(self) -> str | None:
        """Why uniform choice cannot be valued; None if it can."""
        n = len(self.weights)
        if n == 0:
            return "no decision has had its reward yet"
        if self.unknown:
            return f"the probabilities of {self.unknown:,} decisions are not known"
        return refusal_reason(self.contributions(n), self.span, f"{n:,} decisions") or None


class Bucket:
    """A span of time: decisions by the number of their arm, and what rewards came in it."""

    __slots__ = ("chosen", "paid", "rewards")

    def __init__(self) -> None:
        self.chosen: dict[int, int] = {}
        self.rewards, self.paid = 0, 0.0

    def merge(self, other: Bucket) -> None:
        """Take in the next one."""
        for arm, count in other.chosen.items():
            self.chosen[arm] = self.chosen.get(arm, 0) + count
        self.rewards += other.rewards
        self.paid += other.paid


class Timeline(LogReader):
    """Follows the journal of a player; each look reads on from the last."""

    def __init__(self, definition: Definition, arms: NamedArms | None = None, after: int = 0) -> None:
        super().__init__(definition, arms)
        self.seq = self.began = after
        self.start, self.width = 0, FIRST_WIDTH
        self.buckets: list[Bucket] = []
        self.names: dict[int, Any] = {}
        self.uniform = UniformChoice(definition.terms)
        self.offered: dict[str, int] = {}  # how many arms there were, for waiting decisions
        self.places: dict[str, int] = {}  # in `uniform`, of decisions whose reward may change

    def read_on(self, player: SharedPlayer) -> None:
        """Take notice of what is new."""
        for seq, body in player.events(self.seq):
            self.seq = seq
            self.follow(decode(body))

    def _decided(self, event: Decided) -> list[Any]:
        self.offered[event.id] = self.arms.numbers.size
        entry = super()._decided(event)
        self.names[event.arm] = entry[1]
        chosen = self._bucket(event.moment).chosen
        chosen[event.arm] = chosen.get(event.arm, 0) + 1
        return entry

    def closed(self, entry: list[Any], moment: int) -> None:
        """A reward came, or none in time."""
        name, probability, reward, (batch, size) = entry[0], entry[2], entry[3], entry[9:11]
        offered = self.offered.pop(name)
        if not math.isnan(reward):
            self.uniform.add(reward, size / (offered * probability) if probability else None, batch)
            bucket = self._bucket(moment)
            bucket.rewards += 1
            bucket.paid += reward
            if self.answers is not None and entry[6] == "rewarded":
                self.places[name] = len(self.uniform.rewards) - 1

    def revised(self, entry: list[Any], before: float, moment: int) -> None:
        """A reward is another: the difference was earned now."""
        self._bucket(moment).paid += entry[3] - before
        self.uniform.revise(self.places[entry[0]], entry[3])

    def _forget(self, names: Iterable[str]) -> None:
        names = list(names)
        super()._forget(names)
        for name in names:
            self.places.pop(name, None)

    def _bucket(self, moment: int) -> Bucket:
        """The bucket of a moment; there are never more than `MOST_BUCKETS`, two become one where there would be."""
        if not self.buckets:
            self.start = moment - moment % FIRST_WIDTH
        place = max(0, (moment - self.start) // self.width)
        while place >= MOST_BUCKETS:
            pairs = self.buckets[::2]
            for left, right in zip(pairs, self.buckets[1::2], strict=False):
                left.merge(right)
            self.buckets, self.width, place = pairs, 2 * self.width, place // 2
        while place >= len(self.buckets):
            self.buckets.append(Bucket())
        return self.buckets[place]

    def as_json(self) -> dict[str, Any]:
        """All of it as JSON."""
        totals: dict[int, int] = {}
        for bucket in self.buckets:
            for arm, count in bucket.chosen.items():
                totals[arm] = totals.get(arm, 0) + count
        shown = sorted(sorted(totals, key=lambda arm: -totals[arm])[:MOST_ARMS])
        rewards, paid, why = 0, 0.0, self.uniform.refusal_reason()
        uniform: Value | None = None
        listed: list[dict[str, Any]] = []
        for place, bucket in enumerate(self.buckets):
            rewards, paid = rewards + bucket.rewards, paid + bucket.paid
            decisions = sum(bucket.chosen.values())
            counts = [bucket.chosen.get(arm, 0) for arm in shown]
            counts.append(decisions - sum(counts))
            uniform = None if why else self.uniform.earned(rewards)
            listed.append(
                {
                    "time": self.start + place * self.width,
                    "decisions": decisions,
                    "shares": [count / decisions for count in counts] if decisions else None,
                    "rewards": rewards,
                    "reward": paid,
                    "uniform": uniform,
                }
            )
        return {
            "seq": self.seq,
            "from_event": self.began + 1,
            "bucket_milliseconds": self.width,
            "arms": [self.arms.label(arm) if self.arms.has(arm) else self.names[arm] for arm in shown],
            "others": len(totals) - len(shown),
            "buckets": listed,
            "reward": paid,
            "uniform": uniform,
            "uniform_unknown": why,
        }
