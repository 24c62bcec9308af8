"""What requests may say: checked by pydantic, strictly, and nothing else is looked at."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
)

from abex.support.errors import UserError, brief

Word = Annotated[StrictStr, Field(min_length=1, max_length=200)]
Paid = StrictBool | StrictFloat | StrictInt
ArmName = Word | StrictInt
Also = Annotated[dict[str, Paid], Field(max_length=100_000)]
Whole = Annotated[StrictInt, Field(ge=1)]
B = TypeVar("B", bound="Body")


class Body(BaseModel):
    """Strict, closed, small."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class NewPlayer(Body):
    """A player to be made."""

    name: Word = Field(description="1 to 200 printable characters, no slash")
    policy: Annotated[StrictStr, Field(max_length=1_000)] = Field(
        "Evidence", description='such as "Thompson" or "UCB1(alpha=2.0)"'
    )
    arms: Annotated[list[ArmName], Field(min_length=1)] | Whole = Field(
        description="names of the arms, or their number"
    )
    horizon: Whole | None = Field(None, description="number of decisions, for policies that are tuned to it")
    rewards: Annotated[list[StrictFloat | StrictInt], Field(min_length=2, max_length=2)] = Field(
        [0.0, 1.0], description="the range of the rewards"
    )
    expire: StrictFloat | StrictInt | None = Field(
        86_400.0,
        description="seconds after which a decision without a reward expires; null: never. Report a missing click as 0 before",
    )
    unrewarded: StrictFloat | StrictInt | None = Field(
        0.0, description="what an expired decision counts; null: nothing is learned"
    )
    propensities: StrictBool = Field(
        True, description="keep the probability of every decision, which evaluation needs"
    )
    edges: (
        Annotated[
            list[Annotated[list[StrictInt], Field(min_length=2, max_length=2)]], Field(max_length=1_000_000)
        ]
        | None
    ) = Field(None, description="a feedback graph: pairs of places of arms, each showing the other's reward")


class AskBody(Body):
    """One decision."""

    unit: Word | None = Field(
        None, description="for whom: gets the same decision until it is rewarded or expires"
    )
    key: Word | None = Field(None, description="of this request: sent again, it gets the same decision")


class AskManyBody(Body):
    """Several decisions: on different arms, or one for each unit."""

    count: Whole | None = Field(None, description="decisions on so many different arms")
    units: Annotated[list[Word | None], Field(min_length=1)] | None = Field(
        None, description="one decision for each"
    )
    key: Word | None = Field(None, description="of this request: sent again, it gets the same decisions")


class RewardBody(Body):
    """The reward of a decision."""

    decision: Word = Field(description="its id")
    reward: Paid
    also: Also | None = Field(None, description="side observations: what other arms paid at the same time")


class RewardManyBody(Body):
    """Rewards of several decisions: all are learned, or none if one is wrong."""

    rewards: Annotated[list[RewardBody], Field(min_length=1)]


class ObserveBody(Body):
    """What an arm paid that was tried without a decision of the player."""

    arm: ArmName
    reward: Paid
    also: Also | None = None
    key: Word = Field(description="of this observation: sent again, it counts once")


class ArmBody(Body):
    """A new arm; numbered arms need no name."""

    name: ArmName | None = None


class RenameBody(Body):
    """Another name for an arm."""

    name: ArmName


class LearnBody(Body):
    """Another player, whose log is to be learned from."""

    player: Word = Field(description="its name")
    last: Whole | None = Field(None, description="only its latest decisions; 5,000 at most")


class EvaluateBody(Body):
    """Other policies, to be valued on the log of a player."""

    policies: Annotated[
        list[Annotated[StrictStr, Field(max_length=1_000)]], Field(min_length=1, max_length=20)
    ]
    learn: Annotated[StrictFloat, Field(gt=0.0, lt=1.0)] = Field(
        0.5, description="the part of the log that a policy learns from"
    )
    last: Whole | None = Field(None, description="only the latest decisions")


def parsed(kind: type[B], content: bytes | bytearray) -> B:
    """The body of a request; an error is one sentence.

    >>> parsed(AskBody, b'{"unit": 7}')
    Traceback (most recent call last):
    ...
    abex.support.errors.UserError: unit: input should be a valid string
    """
    try:
        return kind.model_validate_json(content or b"{}")
    except ValidationError as error:
        first: Any = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(
            str(part) for part in first["loc"] if str(part).isidentifier() or isinstance(part, int)
        )
        said = first["msg"][:1].lower() + first["msg"][1:]
        raise UserError(brief(f"{place}: {said}" if place else said, 200)) from None
