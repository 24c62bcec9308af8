"""What can happen to a player: one declaration that checks events, writes them as bytes and reads them again.

Each event has an id of its own (a UUID of version 7) and a moment in milliseconds since 1970. Types and bounds of the fields are
checked when an event is read (`decode`), what holds between them and the policy by `check`. To apply an event never
fails: what cannot be done any more (a second reward, an arm that is gone) changes nothing, and the outcome says so.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import numpy as np

from abex.kinds import agree, check_kept
from abex.players.arms import Label
from abex.players.decisions import Batch
from abex.players.player_file import MOST_MOMENT, check_memory
from abex.players.player_settings import PlayerSettings
from abex.players.state import Pending, PlayerState
from abex.support.errors import LONGEST_NAME, UserError, checked_name
from abex.support.files import decode_array, encode_array

Id = Annotated[str, msgspec.Meta(max_length=60)]
Moment = Annotated[int, msgspec.Meta(ge=0, lt=MOST_MOMENT)]
Count = Annotated[int, msgspec.Meta(ge=0, lt=2**62)]
Step = Annotated[int, msgspec.Meta(ge=1, lt=2**62)]
Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Word = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_NAME)]


class Event(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="kind"):
    """What every event has."""

    id: Id
    moment: Moment

    @property
    def kind(self) -> str:
        """Such as "decision"."""
        return str(self.__struct_config__.tag)


class Decided(Event, tag="decision", frozen=True):
    """An arm was chosen; ``seen`` is the last event that the one who chose had taken notice of."""

    arm: Count
    t: Step
    memory: tuple[np.ndarray[Any, Any], ...] = ()
    probability: Share | None = None
    seen: Count = 0
    observed: dict[Count, Share] | None = None  # probability that each arm this one reveals is observed
    unit: Word | None = None  # for whom it was made
    key: Word | None = None  # of the request that asked for it
    batch: Batch | None = None  # of the decisions that were made at once with it


class Rewarded(Event, tag="reward", frozen=True):
    """A decision had its reward, or an arm tried elsewhere; rewards are in [0, 1].

    With a ``key`` it is of an arm tried elsewhere, whatever decisions wait, and counts once under that key.
    """

    decision: Id | None
    arm: Count | None
    reward: Share
    also: dict[Count, Share] = {}
    key: Word | None = None


class Expired(Event, tag="expiry", frozen=True):
    """Decisions made up to ``cutoff`` had no reward in time."""

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

#: an event as bytes
encode = _encoder.encode


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


def check(event: Event, replica: PlayerState, fresh: Any) -> None:
    """See that the parts of an event fit together and to a replica whose policy starts as ``fresh``; raises ValueError."""
    if isinstance(event, Decided):
        for what, word in (("unit", event.unit), ("key", event.key)):
            agree(word is None or checked_name(what, word) == word, what)
        if event.batch is not None:
            agree(event.batch.size >= 2, "a batch must be an id and a size")
            checked_name("batch", event.batch.id)
        check_kept(fresh, event.memory, replica.n_arms)
        if event.memory and replica.arms.has(event.arm):
            check_memory(replica, event.memory, event.arm, fresh)
    elif isinstance(event, Rewarded):
        agree((event.decision is None) != (event.arm is None), "a reward must be of a decision or of an arm")
        agree(event.key is None or event.arm is not None, "a reward under a key must be of an arm")
        if event.key is not None:
            checked_name("key", event.key)


def apply(replica: PlayerState, event: Event, terms: PlayerSettings, rng: Any) -> Any:
    """Let ``event`` happen; returns what came of it, an error as a value if it cannot happen."""
    if isinstance(event, Decided):
        pending = Pending(
            event.t, event.arm, event.memory, event.moment, event.probability, event.unit, event.key
        )
        return replica.decided(event.id, pending)
    if isinstance(event, Rewarded):
        return _rewarded(replica, event, rng)
    if isinstance(event, Expired):
        return replica.expired(event.cutoff, terms.unrewarded_scaled, rng)
    try:
        return _change_arms(replica, event)
    except UserError as error:
        return error


def _rewarded(replica: PlayerState, event: Rewarded, rng: Any) -> bool:
    if event.decision is not None:
        return replica.rewarded(event.decision, event.reward, event.also, rng)
    assert event.arm is not None
    if event.key is None:
        if _is_repeated(replica, event):
            return False
        latest = replica.waits_for(event.arm)  # an arm stands for its latest decision that waits
        if latest is not None:
            return replica.rewarded(latest, event.reward, event.also, rng)
    elif not replica.arms.has(event.arm) or not replica.is_first(event.key):
        return False
    return replica.observed_without_decision(event.arm, event.reward, event.also, rng)


def _is_repeated(replica: PlayerState, event: Event) -> bool:
    """Whether an event stands in the journal a second time: a connection broke, and the first copy was written all the same."""
    return replica.draws_leave_state and not replica.is_first(event.id)


def _change_arms(replica: PlayerState, event: Event) -> Any:
    arms = replica.arms
    if isinstance(event, ArmAdded):
        replica.check_resize()
        label = arms.check_new(event.label)
        if event.label is None and _is_repeated(replica, event):
            return None
        return replica.add_arm(label)
    assert isinstance(event, ArmRemoved | ArmRenamed)
    if not arms.has(event.arm):
        raise UserError("that arm has been removed already")
    if isinstance(event, ArmRemoved):
        replica.check_resize()
        replica.check_remove(event.arm)
        return replica.remove_arm(event.arm)
    if arms.labels is None or event.label != arms.label(event.arm):
        if arms.knows(event.label):
            raise UserError(f"there is an arm {event.label!r} already")
        replica.rename_arm(event.arm, event.label)
    return None
