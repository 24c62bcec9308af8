"""What requests may say: each body is a struct whose types and bounds are the check, and nothing else is looked at."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Word = Annotated[str, Meta(min_length=1, max_length=200)]
PolicyText = Annotated[str, Meta(max_length=1_000)]
Reward = bool | int | float
ArmName = Word | int
SideRewards = Annotated[dict[str, Reward], Meta(max_length=100_000)]
Count = Annotated[int, Meta(ge=1)]
Pair = Annotated[list[int], Meta(min_length=2, max_length=2)]
LONGEST = 3_153_600_000.0  # seconds, a hundred years


def about(text: str) -> Meta:
    """What /openapi.json says of a field."""
    return Meta(description=text)


class Body(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A JSON object without other fields."""


class NewPlayer(Body, frozen=True, kw_only=True):
    """A player to be made."""

    name: Annotated[Word, about("1 to 200 printable characters; in addresses a slash is %2F")]
    policy: Annotated[PolicyText, about('such as "Thompson" or "UCB1(alpha=2.0)"')] = "Evidence"
    arms: Annotated[
        Annotated[list[ArmName], Meta(min_length=1)] | Count,
        about("names of the arms, or their number"),
    ]
    horizon: Annotated[Count | None, about("number of decisions, for policies that are tuned to it")] = None
    rewards: Annotated[tuple[float, float], about("the range of the rewards")] = (0.0, 1.0)
    expire: Annotated[
        Annotated[float, Meta(gt=0.0, le=LONGEST)] | None,
        about(
            "seconds after which a decision without a reward expires; null: never. Where silence is an answer, name a window"
        ),
    ] = 86_400.0
    window: Annotated[
        Annotated[float, Meta(gt=0.0, le=LONGEST)] | None,
        about(
            "seconds within which a conversion comes or silence counts, in the place of expire: until then each decision "
            "counts by how much of its answer is in"
        ),
    ] = None
    conversions: Annotated[
        Literal["first", "sum", "max"], about("of several conversions within a window, what counts")
    ] = "first"
    corrections: Annotated[
        Annotated[float, Meta(gt=0.0, le=LONGEST)] | None,
        about(
            "seconds after its first reward in which a decision can be corrected; null: as long as a window, else not at all"
        ),
    ] = None
    unrewarded: Annotated[
        float | None, about("what an expired decision counts; null: nothing is learned")
    ] = 0.0
    propensities: Annotated[bool, about("keep the probability of every decision, which evaluation needs")] = (
        True
    )
    edges: Annotated[
        Annotated[list[Pair], Meta(max_length=1_000_000)] | None,
        about("a feedback graph: pairs of places of arms, each showing the other's reward"),
    ] = None

    on_new_arms: Annotated[
        Literal["refuse", "add"],
        about("what to do about arms that the player, which is there, does not have"),
    ] = "refuse"
    on_missing_arms: Annotated[
        Literal["refuse", "keep", "retire"], about("what to do about arms of the player that are not given")
    ] = "refuse"


class DecideBody(Body, frozen=True, kw_only=True):
    """One decision."""

    unit: Annotated[
        Word | None, about("for whom: gets the same decision until it is rewarded or expires")
    ] = None
    key: Annotated[Word | None, about("of this request: sent again, it gets the same decision")] = None


class DecideManyBody(Body, frozen=True, kw_only=True):
    """Several decisions: on different arms, or one for each unit."""

    count: Annotated[Count | None, about("decisions on so many different arms")] = None
    units: Annotated[
        Annotated[list[Word | None], Meta(min_length=1)] | None, about("one decision for each")
    ] = None
    key: Annotated[Word | None, about("of this request: sent again, it gets the same decisions")] = None


class RewardBody(Body, frozen=True, kw_only=True):
    """The reward of a decision, or a correction of it."""

    decision: Annotated[Word, about("its id")]
    reward: Reward
    also: Annotated[SideRewards | None, about("side observations: what other arms paid at the same time")] = (
        None
    )
    key: Annotated[
        Word | None,
        about("of this conversion, where a decision may have several: it counts once under its key"),
    ] = None
    corrects: Annotated[
        bool,
        about(
            "the reward is what the conversion under the key really paid; without a key, what the decision paid in all"
        ),
    ] = False


class RewardManyBody(Body, frozen=True, kw_only=True):
    """Rewards of several decisions: all are learned, or none if one is wrong."""

    rewards: Annotated[list[RewardBody], Meta(min_length=1)]


class ObserveBody(Body, frozen=True, kw_only=True):
    """What an arm paid that was tried without a decision of the player."""

    arm: ArmName
    reward: Reward
    also: SideRewards | None = None
    key: Annotated[Word, about("of this observation: sent again, it counts once")]


class ArmBody(Body, frozen=True, kw_only=True):
    """A new arm; numbered arms need no name."""

    name: ArmName | None = None


class RenameBody(Body, frozen=True, kw_only=True):
    """Another name for an arm."""

    name: ArmName


class AliasBody(Body, frozen=True, kw_only=True):
    """Where an alias sends units."""

    split: Annotated[
        dict[Word, Annotated[int, Meta(ge=0, le=100)]],
        Meta(min_length=1, max_length=100, description="whole per cent by player, which sum to 100"),
    ]


class RollbackBody(Body, frozen=True, kw_only=True):
    """A rollback."""

    key: Annotated[Word | None, about("of this request: sent again, it counts once")] = None


class LearnBody(Body, frozen=True, kw_only=True):
    """Another player, whose log is to be learned from."""

    player: Annotated[Word, about("its name")]
    last: Annotated[Count | None, about("only its latest decisions; 5,000 at most")] = None


class EvaluateBody(Body, frozen=True, kw_only=True):
    """Other policies, to be valued on the log of a player."""

    policies: Annotated[list[PolicyText], Meta(min_length=1, max_length=20)]
    learn: Annotated[
        Annotated[float, Meta(gt=0.0, lt=1.0)],
        about("the part of the log that a policy learns from"),
    ] = 0.5
    last: Annotated[Count | None, about("only the latest decisions")] = None
