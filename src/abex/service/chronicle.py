r"""What a journal tells over time: shares of the arms, rewards, and what uniform choice would have earned.

Uniform choice is valued by self-normalised inverse propensities: a decision of probability p among K arms weighs
:math:`w=1/(Kp)`, the mean reward of uniform choice is :math:`\hat v=\sum w r/\sum w`, and over n decisions it would have earned
:math:`n\hat v\pm 1.96\,n\sqrt{\sum w^2(r-\hat v)^2}/\sum w`.
"""

from __future__ import annotations

import math
import time
from collections import deque
from typing import Any

from abex.evaluation.evaluating import LEAST_ASTRAY, LEAST_EFFECTIVE
from abex.players.definitions import Definition
from abex.players.journal import Journal
from abex.players.journal_log import LogReader
from abex.players.named_arms import NamedArms
from abex.service.overview import number

MOST_BUCKETS = 100
FIRST_WIDTH = 1_000  # milliseconds of a bucket at first
MOST_ARMS = 12  # with a share of their own; the others are one
MOST_EVENTS = 500_000  # that are read when somebody looks for the first time
SPEED_SECONDS = 10  # over which events per second are counted
NORMAL = 1.959964


class Sums:
    """Sums over decisions that had their reward."""

    __slots__ = ("n", "paid", "unknown", "w", "w2", "w2r", "w2r2", "wr")

    def __init__(self) -> None:
        self.n = self.unknown = 0
        self.paid = self.w = self.wr = self.w2 = self.w2r = self.w2r2 = 0.0

    def add(self, reward: float, weight: float | None) -> None:
        """One more; without a weight where its probability is not known."""
        self.n += 1
        self.paid += reward
        if weight is None:
            self.unknown += 1
            return
        heavy = weight * weight
        self.w += weight
        self.wr += weight * reward
        self.w2 += heavy
        self.w2r += heavy * reward
        self.w2r2 += heavy * reward * reward

    def merge(self, other: Sums) -> None:
        """Add another's."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def effective(self) -> float:
        """How many decisions of uniform choice they are worth."""
        return self.w * self.w / self.w2 if self.w2 > 0.0 else 0.0

    def uniform(self) -> tuple[float, float, float]:
        """What uniform choice would have earned, with its interval."""
        mean = self.wr / self.w
        spread = math.sqrt(max(0.0, self.w2r2 - 2.0 * mean * self.w2r + mean * mean * self.w2)) / self.w
        return self.n * mean, self.n * (mean - NORMAL * spread), self.n * (mean + NORMAL * spread)

    def why_not(self) -> str | None:
        """Why uniform choice cannot be valued; None if it can."""
        if self.n == 0:
            return "no decision has had its reward yet"
        if self.unknown:
            return f"the probabilities of {self.unknown:,} decisions are not known"
        if self.effective < LEAST_EFFECTIVE:
            return f"{self.n:,} decisions are worth {self.effective:.1f} of uniform choice, fewer than {LEAST_EFFECTIVE:.0f}"
        mean = self.w / self.n
        spread = math.sqrt(max(0.0, self.w2 / self.n - mean * mean) / self.n)
        if abs(mean - 1.0) > max(LEAST_ASTRAY, 4.0 * spread):
            return f"the weights average {mean:.2f}, not 1: this policy at times never chooses some arms"
        return None


class Bucket:
    """A span of time: decisions by the number of their arm, and what rewards came in it."""

    __slots__ = ("chosen", "sums")

    def __init__(self) -> None:
        self.chosen: dict[int, int] = {}
        self.sums = Sums()

    def merge(self, other: Bucket) -> None:
        """Take in the next one."""
        for arm, count in other.chosen.items():
            self.chosen[arm] = self.chosen.get(arm, 0) + count
        self.sums.merge(other.sums)


class Chronicle(LogReader):
    """Follows the journal of a player; each look reads on from the last."""

    def __init__(self, definition: Definition, arms: NamedArms | None = None, after: int = 0) -> None:
        super().__init__(definition, arms)
        self.seq = self.began = after
        self.start, self.width = 0, FIRST_WIDTH
        self.buckets: list[Bucket] = []
        self.names: dict[int, Any] = {}
        self.expired = 0
        self._seconds: deque[list[int]] = deque(maxlen=120)  # second, events in it

    def read_on(self, journal: Journal, player: int) -> None:
        """Take notice of what is new."""
        for seq, row in journal.events(player, self.seq):
            self.seq = seq
            self._tick(row.moment)
            entry = self.follow(row)
            if entry is not None:
                arm = int(row.arm or 0)
                self.names[arm] = entry[1]
                chosen = self._bucket(row.moment).chosen
                chosen[arm] = chosen.get(arm, 0) + 1

    def closed(self, entry: list[Any], moment: int) -> None:
        """A reward came, or none in time."""
        self.expired += entry[6] == "expired"
        reward, probability = entry[3], entry[2]
        if not math.isnan(reward):
            weight = None if not probability else 1.0 / (self.arms.numbers.size * probability)
            self._bucket(moment).sums.add(reward, weight)

    def _tick(self, moment: int) -> None:
        second = moment // 1000
        if self._seconds and self._seconds[-1][0] >= second:
            self._seconds[-1][1] += 1
        else:
            self._seconds.append([second, 1])

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

    def events_per_second(self, now: float | None = None) -> float:
        """Over the last seconds."""
        since = int(time.time() if now is None else now) - SPEED_SECONDS
        return sum(count for second, count in self._seconds if second >= since) / SPEED_SECONDS

    def told(self) -> dict[str, Any]:
        """All of it as JSON."""
        totals: dict[int, int] = {}
        for bucket in self.buckets:
            for arm, count in bucket.chosen.items():
                totals[arm] = totals.get(arm, 0) + count
        shown = sorted(sorted(totals, key=lambda arm: -totals[arm])[:MOST_ARMS])
        running = Sums()
        listed: list[dict[str, Any]] = []
        for place, bucket in enumerate(self.buckets):
            running.merge(bucket.sums)
            decisions = sum(bucket.chosen.values())
            counts = [bucket.chosen.get(arm, 0) for arm in shown]
            counts.append(decisions - sum(counts))
            uniform = (
                running.uniform() if running.effective >= LEAST_EFFECTIVE and not running.unknown else None
            )
            listed.append(
                {
                    "time": self.start + place * self.width,
                    "decisions": decisions,
                    "shares": [count / decisions for count in counts] if decisions else None,
                    "rewards": running.n,
                    "reward": running.paid,
                    "uniform": uniform and [number(end) for end in uniform],
                }
            )
        why = running.why_not()
        if why is not None:
            for one in listed:
                one["uniform"] = None
        return {
            "seq": self.seq,
            "from_event": self.began + 1,
            "bucket_milliseconds": self.width,
            "arms": [self._label(arm) if self.arms.has(arm) else self.names[arm] for arm in shown],
            "others": len(totals) - len(shown),
            "buckets": listed,
            "reward": running.paid,
            "uniform": None if why else [number(end) for end in running.uniform()],
            "uniform_unknown": why,
            "effective": number(running.effective),
            "waiting": len(self.waiting),
            "expired": self.expired,
            "events_per_second": self.events_per_second(),
        }
