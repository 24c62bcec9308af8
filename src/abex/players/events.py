"""What can happen to a player: one declaration that checks events, writes them as bytes and reads them again.

Each event has an id of its own (a UUID of version 7) and a moment in milliseconds since 1970. Types and bounds of the fields are
checked when an event is read (`decode`), what holds between them and the policy by `PlayerState.check`.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, NamedTuple, Self

import msgspec
from numpy.typing import NDArray

from abex.players.arms import Label
from abex.support.errors import LONGEST_NAME
from abex.support.files import decode_array, encode_array

MOST_MOMENT = 2**48  # milliseconds that an id can hold
Id = Annotated[str, msgspec.Meta(max_length=60)]
Moment = Annotated[int, msgspec.Meta(ge=0, lt=MOST_MOMENT)]
Count = Annotated[int, msgspec.Meta(ge=0, lt=2**62)]
Step = Annotated[int, msgspec.Meta(ge=1, lt=2**62)]
Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Law = Annotated[bytes, msgspec.Meta(max_length=4_000)]
Word = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_NAME)]


class Batch(NamedTuple):
    """Decisions made at once, on different arms: what they share."""

    id: str
    size: int


class Event(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="kind"):
    """What every event has."""

    id: Id
    moment: Moment

    def __deepcopy__(self, memo: object) -> Self:
        return self


class Decided(Event, tag="decision", frozen=True):
    """An arm was chosen, and waits for its reward; ``seen`` is the last event that the one who chose had taken notice of."""

    arm: Count
    t: Step
    memory: tuple[NDArray[Any], ...] = ()
    probability: Share | None = None
    seen: Count = 0
    observed: dict[Count, Share] | None = None  # probability that each arm this one reveals is observed
    unit: Word | None = None  # for whom it was made
    key: Word | None = None  # of the request that asked for it
    batch: Batch | None = None  # of the decisions that were made at once with it
    law: Law = b""  # probabilities of all arms, 4 bytes each, for bets on it
    epoch: Count = 0  # how often arms had come or gone: of which arms they are


class Rewarded(Event, tag="reward", frozen=True):
    """A decision had its reward, or an arm tried elsewhere; rewards are in [0, 1].

    With an arm and a ``key`` it is of an arm tried elsewhere, whatever decisions wait, and counts once under that key. With a
    decision, the key is that of one of its conversions, and an event that ``corrects`` says what that one really was.
    """

    decision: Id | None
    arm: Count | None
    reward: Share
    also: dict[Count, Share] = {}
    key: Word | None = None
    corrects: bool = False


class Expired(Event, tag="expiry", frozen=True):
    """Decisions made up to ``cutoff`` had no reward in time; rewards that may change no more at this moment are final."""

    cutoff: Moment


class ArmAdded(Event, tag="arm added", frozen=True):
    """A new arm; without a name it is called by its number."""

    label: Label | None


class ArmRemoved(Event, tag="arm removed", frozen=True):
    """An arm is gone for ever."""

    arm: Count


class ArmRenamed(Event, tag="arm renamed", frozen=True):
    """An arm has another name."""

    arm: Count
    label: Label


_encoder = msgspec.json.Encoder(enc_hook=encode_array)
_decoder = msgspec.json.Decoder(
    Decided | Rewarded | Expired | ArmAdded | ArmRemoved | ArmRenamed,
    dec_hook=lambda _, saved: decode_array(saved),
)

#: an event as bytes, and as JSON values
encode = _encoder.encode
to_builtins = partial(msgspec.to_builtins, enc_hook=encode_array)


def decode(body: bytes) -> Event:
    """The event that `encode` wrote, with every field of its type and within its bounds; raises ValueError.

    >>> decode(encode(ArmRemoved("one", 7, 2)))
    ArmRemoved(id='one', moment=7, arm=2)
    >>> decode(b'{"kind": "arm removed", "id": "one", "moment": 7, "arm": -1}')
    Traceback (most recent call last):
    ...
    msgspec.ValidationError: Expected `int` >= 0 - at `$.arm`
    """
    event: Event = _decoder.decode(body)
    return event
