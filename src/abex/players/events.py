"""What can happen to a player, as values; `apply` makes a replica take notice.

Each event has an id of its own (a UUID of version 7) and a moment in milliseconds since 1970. To apply one never fails: what
cannot be done any more (a second reward, an arm that is gone) changes nothing, and the outcome says so.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from abex.players.decisions import Batch
from abex.players.named_arms import Label
from abex.players.replica import Pending, Replica
from abex.players.running_policy import Memory
from abex.players.terms import Terms
from abex.support.errors import UserError


class Decided(NamedTuple):
    """An arm was chosen; ``seen`` is the last event that the one who chose had taken notice of."""

    id: str
    moment: int
    arm: int
    t: int
    memory: Memory
    probability: float | None
    seen: int = 0
    observed: dict[int, float] | None = None  # probability that each arm this one reveals is observed
    unit: str | None = None  # for whom it was made
    key: str | None = None  # of the request that asked for it
    batch: Batch | None = None  # of the decisions that were made at once with it


class Rewarded(NamedTuple):
    """A decision had its reward, or an arm tried elsewhere; rewards are in [0, 1].

    With a ``key`` it is of an arm tried elsewhere, whatever decisions wait, and counts once under that key.
    """

    id: str
    moment: int
    decision: str | None
    arm: int | None
    reward: float
    also: dict[int, float]
    key: str | None = None


class Expired(NamedTuple):
    """Decisions made up to ``cutoff`` had no reward in time."""

    id: str
    moment: int
    cutoff: int


class ArmAdded(NamedTuple):
    """A new arm; without a name it is called by its number."""

    id: str
    moment: int
    label: Label | None


class ArmRemoved(NamedTuple):
    """An arm is gone for ever."""

    id: str
    moment: int
    arm: int


class ArmRenamed(NamedTuple):
    """An arm has another name."""

    id: str
    moment: int
    arm: int
    label: Label


Event = Decided | Rewarded | Expired | ArmAdded | ArmRemoved | ArmRenamed


def apply(replica: Replica, event: Event, terms: Terms, rng: Any) -> Any:
    """Let ``event`` happen; returns what came of it, an error as a value if it cannot happen."""
    match event:
        case Decided():
            name, moment, arm, t, memory, probability, _, _, unit, key, _ = event
            return replica.decided(name, Pending(t, arm, memory, moment, probability, unit, key))
        case Rewarded():
            if event.decision is not None:
                return replica.rewarded(event.decision, event.reward, event.also, rng)
            assert event.arm is not None
            if event.key is not None:
                if not replica.arms.has(event.arm) or not replica.tell_once(event.key):
                    return False
                return replica.tried_elsewhere(event.arm, event.reward, event.also, rng)
            latest = replica.waits_for(event.arm)  # an arm stands for its latest decision that waits
            if latest is not None:
                return replica.rewarded(latest, event.reward, event.also, rng)
            return replica.tried_elsewhere(event.arm, event.reward, event.also, rng)
        case Expired():
            return replica.expired(event.cutoff, terms.unrewarded_scaled, rng)
    try:
        return _change_arms(replica, event)
    except UserError as error:
        return error


def _change_arms(replica: Replica, event: ArmAdded | ArmRemoved | ArmRenamed) -> Any:
    replica_arms = replica.arms
    if isinstance(event, ArmAdded):
        replica.check_resize()
        return replica.add_arm(replica_arms.check_new(event.label))
    if not replica_arms.has(event.arm):
        raise UserError("that arm has been removed already")
    if isinstance(event, ArmRemoved):
        replica.check_resize()
        replica.check_remove(event.arm)
        return replica.remove_arm(event.arm)
    if replica_arms.labels is None or event.label != replica_arms.label(event.arm):
        if replica_arms.knows(event.label):
            raise UserError(f"there is an arm {event.label!r} already")
        replica.rename_arm(event.arm, event.label)
    return None
