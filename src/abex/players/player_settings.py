"""What an application and its player have agreed on: the range of rewards, when a decision is given up, what changes a reward."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from abex.support.errors import UserError, one_of, real_number, shown, true_or_false

CONVERSIONS = ("first", "sum", "max")  # of those within a window, what counts
LONGEST = 36_500 * 86_400.0  # seconds


@dataclass(frozen=True)
class PlayerSettings:
    """Range of rewards, milliseconds until a decision expires (None: never), what it counts then, and propensities.

    ``weighs`` says that this time is an attribution window: silence counts by its age (`abex.players.open_windows`). There a
    decision may have several conversions, and for ``corrections`` milliseconds after its first reward that may be corrected.
    """

    low: float = 0.0
    high: float = 1.0
    expire: int | None = None
    unrewarded: float | None = 0.0
    propensities: bool | None = None
    weighs: bool = False
    conversions: str = "first"
    corrections: int | None = None

    @property
    def kept(self) -> int | None:
        """For how many milliseconds after its first reward a decision may have another one, or a corrected one; None: never."""
        window = self.expire if self.weighs else None
        return max((time for time in (window, self.corrections) if time is not None), default=None)

    def scaled(self, reward: Any, name: str = "reward") -> float:
        """A reward of the application as a number in [0, 1]; clicks are True and False."""
        value = float(reward) if reward is True or reward is False else reward
        if type(value) is float and self.low <= value <= self.high:
            number = value
        else:
            number = real_number(name, value, least=self.low, most=self.high)
        if self.low == 0.0 and self.high == 1.0:
            return number
        return min(1.0, max(0.0, (number - self.low) / (self.high - self.low)))

    def shown(self, value: float) -> float:
        """A number in [0, 1] as a reward of the application."""
        return self.low + value * (self.high - self.low)

    @property
    def expire_seconds(self) -> float | None:
        """After how many seconds a decision without a reward expires; None: never."""
        return None if self.expire is None else self.expire / 1000.0

    @property
    def unrewarded_scaled(self) -> float | None:
        """What an expired decision counts, in [0, 1]."""
        return None if self.unrewarded is None else self.scaled(self.unrewarded)


def terms(
    rewards: Any,
    expire: Any,
    unrewarded: Any,
    propensities: Any,
    window: Any = None,
    conversions: Any = "first",
    corrections: Any = None,
) -> PlayerSettings:
    """Checked terms.

    >>> from datetime import timedelta
    >>> found = terms((-1, 1), timedelta(minutes=5), 0.0, None)
    >>> found.low, found.high, found.expire, found.kept
    (-1.0, 1.0, 300000, None)
    """
    try:
        low, high = rewards
    except (TypeError, ValueError):
        raise UserError(
            f"rewards must be a range of two numbers, the lower one first, got {shown(rewards)}"
        ) from None
    low, high = (
        real_number("rewards", low, most=1e100, least=-1e100),
        real_number("rewards", high, most=1e100),
    )
    if not high > low:
        raise UserError(f"rewards must be a range of two numbers, the lower one first, got {shown(rewards)}")
    name = "expire"
    if window is not None:
        if expire is not None or unrewarded is None:
            raise UserError("a window is when silence counts: give it without expire, and with unrewarded")
        name, expire = "window", window
    milliseconds = _milliseconds(name, expire)
    if one_of("conversions", conversions, CONVERSIONS) != "first" and window is None:
        raise UserError(
            f"conversions={conversions!r} counts what comes within a window: give the player one, such as "
            'window=timedelta(days=7), or leave it at "first"'
        )
    if unrewarded is not None:
        if expire is not None or unrewarded != 0.0:
            PlayerSettings(low, high).scaled(unrewarded, "unrewarded")
        unrewarded = float(unrewarded)
    if propensities is not None:
        propensities = true_or_false("propensities", propensities)
    weighs, corrected = window is not None, _milliseconds("corrections", corrections)
    return PlayerSettings(low, high, milliseconds, unrewarded, propensities, weighs, conversions, corrected)


def _milliseconds(name: str, time: Any) -> int | None:
    """A time that an application gave, or None."""
    if time is None:
        return None
    seconds = time.total_seconds() if isinstance(time, timedelta) else time
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0.0 < seconds <= LONGEST:
        raise UserError(
            f"{name} must be a time in seconds or a timedelta, more than 0 and up to 100 years, got {shown(time)}"
        )
    return max(1, round(seconds * 1000.0))
