"""Decisions that had a reward and may have another: several conversions in one window, and corrections.

Conversions of a decision are told apart by their keys; one without a key has the empty one. What a decision pays in all is its
first conversion, their sum or the largest of them, as the settings say, within the range of the rewards. A correction says
what the conversion under a key really was, or, without a key, what the decision paid in all; where it comes before the conversion
that it speaks of, that one is none any more. So conversions and corrections of different keys may come in any order.

Nothing here learns: it says what a decision paid before and after an event, as a function of the events.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec.structs import astuple, replace

from abex.kinds import agree
from abex.players.events import Count, Id, Moment, Rewarded, Share
from abex.support.errors import LONGEST_NAME

if TYPE_CHECKING:
    from abex.players.player_settings import PlayerSettings

MOST_PARTS = 1_000  # conversions of one decision that count
Key = Annotated[str, msgspec.Meta(max_length=LONGEST_NAME)]
Parts = dict[
    Key, Share | None
]  # what each conversion paid; None: the correction of the whole has taken its place


class Answer(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """A decision with what it paid; ``counted`` is that as the policy counts it, None while it is silence that was reported."""

    id: Id
    moment: Moment  # of the decision
    answered: Moment  # when its first reward came
    arm: Count
    parts: Parts
    reward: Share  # in all
    counted: Share | None

    def __deepcopy__(self, memo: object) -> Answer:
        return self


class Answers:
    """The decisions that had a reward lately, in the order of their first one."""

    def __init__(self, settings: PlayerSettings, most: int) -> None:
        self._settings, self._most = settings, most
        self._known: OrderedDict[str, Answer] = OrderedDict()

    def find(self, name: str) -> Answer | None:
        """What a decision has paid, if that may still change."""
        return self._known.get(name)

    def first(self, name: str, moment: int, arm: int, event: Rewarded) -> Answer | None:
        """What a decision pays that has waited until now; None if its window is over, although nobody has said so yet."""
        if self._settings.weighs and event.moment - moment >= (self._settings.expire or 0):
            return None
        parts: Parts = {event.key or "": event.reward}
        return Answer(name, moment, event.moment, arm, parts, event.reward, event.reward)

    def revised(self, before: Answer, event: Rewarded) -> Answer | None:
        """What a decision pays after one more conversion or a correction; None if there is nothing new in it."""
        parts = self._revised(before.parts, event.key or "", event)
        if parts is None or parts == before.parts or len(parts) > MOST_PARTS or self.is_over(before, event):
            return None
        return replace(before, parts=parts, reward=self._total(parts))

    def _revised(self, parts: Parts, key: str, event: Rewarded) -> Parts | None:
        if self._settings.conversions == "first":  # there is one
            return (
                dict.fromkeys(parts, event.reward) if event.corrects and (not key or key in parts) else None
            )
        if not event.corrects:
            return None if key in parts else parts | {key: event.reward}
        return (parts if key else dict.fromkeys(parts)) | {key: event.reward}

    def is_over(self, before: Answer, event: Rewarded) -> bool:
        """Whether the time for conversions or corrections is over."""
        if event.corrects:
            return event.moment - before.answered >= (self._settings.kept or 0)
        return event.moment - before.moment >= (self._settings.expire or 0)

    def _total(self, parts: Parts) -> float:
        """What conversions are worth together, in [0, 1], in whatever order they came."""
        paid = [part for part in parts.values() if part is not None]
        if self._settings.conversions == "sum" and len(paid) > 1:
            settings = self._settings
            total = math.fsum(settings.shown(part) for part in paid)
            return settings.scaled(min(max(total, settings.low), settings.high))
        return max(paid)

    def keep(self, answer: Answer) -> list[str]:
        """Remember what a decision paid; returns the ids of those that are forgotten for it, since many are known."""
        self._known[answer.id] = answer
        return [self._known.popitem(last=False)[0]] if len(self._known) > self._most else []

    def first_end(self) -> int:
        """When the first of them can change no more."""
        return next(iter(self._known.values())).answered + (self._settings.kept or 0)

    def forget(self, moment: int) -> list[str]:
        """Forget those that cannot change any more at this moment; returns their ids."""
        names, end = [], moment - (self._settings.kept or 0)
        for name, one in self._known.items():
            if one.answered > end:
                break
            names.append(name)
        for name in names:
            del self._known[name]
        return names

    # -- in a file ------------------------------------------------------------------------------------

    def written(self) -> list[tuple[object, ...]]:
        """A JSON value."""
        return [astuple(one) for one in self._known.values()]

    def read(self, saved: list[Answer]) -> None:
        """What `written` wrote; what its fields do not say is checked here."""
        agree(len(saved) <= self._most, "answers must be at most max_pending")
        for one in saved:
            agree(one.id not in self._known, "a decision is answered twice")
            agree(0 < len(one.parts) <= MOST_PARTS, "an answer must have conversions")
            paid = any(part is not None for part in one.parts.values())
            agree(paid and one.reward == self._total(one.parts), "an answer must be what its conversions pay")
            self._known[one.id] = one
