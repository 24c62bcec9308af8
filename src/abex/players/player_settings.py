"""What an application and its player have agreed on: the range of rewards, when a decision is given up, what changes a reward."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from abex.graphs.graph import as_graph
from abex.kernels import Record, fields_of
from abex.players.arms import NamedArms
from abex.players.policy_runner import is_worth_compiling
from abex.players.state import MOST_KEPT, MOST_STEPS, PlayerState
from abex.policies.evidence import Evidence
from abex.policies.naming import as_policy
from abex.policies.policy import MOST_ARMS, Setting
from abex.support.errors import UserError, one_of, real_number, shown, true_or_false, whole_number

CONVERSIONS = ("first", "sum", "max")  # of those within a window, what counts
LONGEST = 36_500 * 86_400.0  # seconds
FEW = 1_000_000  # so many arms fit anywhere
PER_ARM = 40  # bytes: tallies, names
SHARE = 0.75  # of the memory that a player may take

Number = Annotated[float, msgspec.Meta(ge=-1e100, le=1e100)]
Milliseconds = Annotated[int, msgspec.Meta(ge=1, le=round(LONGEST * 1000.0))]


class PlayerSettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """Range of rewards, milliseconds until a decision expires (None: never), what it counts then, and propensities.

    ``weighs`` says that this time is an attribution window: silence counts by its age (`abex.players.open_windows`). There a
    decision may have several conversions, and for ``corrections`` milliseconds after its first reward that may be corrected.
    """

    low: Number = 0.0
    high: Number = 1.0
    expire: Milliseconds | None = None
    unrewarded: float | None = 0.0
    propensities: bool | None = None
    weighs: bool = False
    conversions: Literal["first", "sum", "max"] = "first"
    corrections: Milliseconds | None = None

    def __post_init__(self) -> None:
        """See what holds between the fields, be they an application's or a file's."""
        if not self.high > self.low:
            raise UserError(
                f"rewards must be a range of two numbers, the lower one first, got {shown(self.low)} and {shown(self.high)}"
            )
        if self.weighs and (self.expire is None or self.unrewarded is None):
            raise UserError("a window is when silence counts: give it without expire, and with unrewarded")
        if self.conversions != "first" and not self.weighs:
            raise UserError(
                f"conversions={self.conversions!r} counts what comes within a window: give the player one, such as "
                'window=timedelta(days=7), or leave it at "first"'
            )
        if self.unrewarded is not None and (self.expire is not None or self.unrewarded != 0.0):
            self.scaled(self.unrewarded, "unrewarded")

    @property
    def as_given(self) -> dict[str, Any]:
        """As an application says it, times in seconds."""
        time = None if self.expire is None else self.expire / 1000.0
        return {
            "rewards": [self.low, self.high],
            "window": time if self.weighs else None,
            "expire": None if self.weighs else time,
            "unrewarded": self.unrewarded,
            "conversions": self.conversions,
            "corrections": None if self.corrections is None else self.corrections / 1000.0,
        }

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
    def unrewarded_scaled(self) -> float | None:
        """What an expired decision counts, in [0, 1]."""
        return None if self.unrewarded is None else self.scaled(self.unrewarded)


def terms(
    rewards: Any = (0.0, 1.0),
    expire: Any = None,
    unrewarded: Any = 0.0,
    propensities: Any = None,
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
    if unrewarded is not None:
        is_click = unrewarded is True or unrewarded is False
        unrewarded = float(unrewarded) if is_click else real_number("unrewarded", unrewarded)
    if window is not None and expire is not None:
        raise UserError("a window is when silence counts: give it without expire, and with unrewarded")
    return PlayerSettings(
        low,
        high,
        _milliseconds("expire", expire) if window is None else _milliseconds("window", window),
        unrewarded,
        None if propensities is None else true_or_false("propensities", propensities),
        window is not None,
        one_of("conversions", conversions, CONVERSIONS),  # type: ignore[arg-type]
        _milliseconds("corrections", corrections),
    )


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


def new_state(
    settings: PlayerSettings,
    policy: Any,
    n_arms: Any,
    arms: Any,
    graph: Any,
    horizon: Any,
    compiled: Any,
    max_pending: Any,
    is_shared: bool = False,
) -> PlayerState:
    """A state that nothing has happened to yet; all arguments are checked.

    Unless told whether to be ``compiled``, it is where decisions, with their probabilities if they are worked out, repay that.
    """
    policy = Evidence() if policy is None else as_policy(policy)
    labels = None
    if arms is not None:
        if isinstance(arms, str | bytes | Mapping) or not isinstance(arms, Iterable):
            raise UserError(f"arms must be a list of names, got {shown(arms)}")
        labels = list(arms)
        if n_arms is not None and n_arms != len(labels):
            raise UserError(f"n_arms is {shown(n_arms)}, but there are {len(labels)} names in arms")
        n_arms = len(labels)
    elif n_arms is None:
        raise UserError('a player needs arms: give n_arms=..., or their names, arms=["...", "..."]')
    n_arms = whole_number("n_arms", n_arms, least=1, most=MOST_ARMS)
    if horizon is not None:
        horizon = whole_number("horizon", horizon, least=1, most=MOST_STEPS)
    if graph is not None and as_graph(graph).n_arms != n_arms:
        raise UserError(f"the graph has {graph.n_arms} nodes but the player has {n_arms} arms")
    setting = Setting(n_arms, horizon, graph)
    if compiled is not None:
        compiled = true_or_false("compiled", compiled)
    max_pending = whole_number("max_pending", max_pending, least=1)
    check_room(policy, setting)
    if compiled is None:
        cheap = is_shared or (policy.cheap_probabilities and n_arms <= MOST_KEPT)
        told = settings.propensities or (settings.propensities is None and cheap)
        compiled = is_worth_compiling(policy, setting, told)
    names = NamedArms(n_arms, labels)
    return PlayerState(
        policy, setting, names, settings, compiled=compiled, max_pending=max_pending, is_shared=is_shared
    )


def check_room(policy: Any, setting: Setting) -> None:
    """Refuse a player that would take more than most of the machine's memory, by what a smaller one takes."""
    if setting.n_arms <= FEW or setting.graph is not None or policy.needs_graph:
        return
    small, double = (_bytes(policy.start(setting._replace(n_arms=n))) for n in (4_096, 8_192))
    needed = (PER_ARM + (double - small) / 4_096) * setting.n_arms
    there = SHARE * memory()
    if needed > there:
        raise UserError(
            f"{setting.n_arms:,} arms of {policy} would take {needed / 1e9:,.1f} GB of memory, "
            f"and a player may take {there / 1e9:,.1f} GB here: use fewer arms"
        )


def memory() -> float:
    """Bytes of the machine, or what its control group allows."""
    found = [float(2**33)]
    try:
        found = [float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")]
        with open("/sys/fs/cgroup/memory.max") as file:
            found.append(float(file.read()))  # "max" is no number
    except (AttributeError, ValueError, OSError):
        pass
    return min(found)


def _bytes(record: Any) -> int:
    if isinstance(record, np.ndarray):
        return record.nbytes
    if isinstance(record, Record):
        return sum(_bytes(getattr(record, name)) for name in fields_of(record))
    if isinstance(record, tuple):
        return sum(_bytes(part) for part in record)
    return 0
