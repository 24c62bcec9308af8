"""A provider of OpenFeature: the arm of a player as the value of a flag (extra ``openfeature``).

>>> from openfeature import api  # doctest: +SKIP
>>> from abex.openfeature import AbexProvider  # doctest: +SKIP
>>> api.set_provider(AbexProvider(store, events={"clicked": "banner"}))  # doctest: +SKIP
>>> client.get_string_value("banner", "red", EvaluationContext("visitor 17"))  # doctest: +SKIP
'green'
>>> client.track("clicked", EvaluationContext("visitor 17"), TrackingEventDetails(1.0))  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from abex.players import Player, Store
from abex.players.shared_player import SharedPlayer
from abex.support.errors import UserError, shown
from abex.support.extras import needed

with needed():
    from openfeature.evaluation_context import EvaluationContext
    from openfeature.exception import ErrorCode
    from openfeature.flag_evaluation import FlagResolutionDetails, Reason
    from openfeature.provider import AbstractProvider, Metadata
    from openfeature.track import TrackingEventDetails

SWITCH = {"on": True, "off": False, "true": True, "false": False}  # arms that are values of a boolean flag


class AbexProvider(AbstractProvider):  # type: ignore[misc]
    """Players as flags: the value is the arm, the targeting key the unit, events are rewards.

    A unit gets the same arm until it is rewarded or its time is over. The variant is the arm's name; the flag's metadata has the
    ``decision`` (its id) and, where it is known, its ``probability``.

    Parameters
    ----------
    players : Store, or dict of str to Player
        Where the player of a flag is: by its name; in a store also by an alias.
    events : dict of str to str or list of str
        The flags that an event rewards, by the event's name. An event's attribute ``flag`` names one instead.

    Notes
    -----
    ``track(event, context, TrackingEventDetails(value))`` is the reward ``value`` (1 unless given) of the decision that waits for
    the targeting key, or of that whose id is the attribute ``decision``. An event for a unit to which nothing was shown is no
    reward. A boolean flag has arms called on and off or true and false; an integer or float flag numbers; of an object flag the
    value is the entry of the default under the arm's name.

    A flag whose player is not there, or whose store is away when it is opened, has its default value, with a reason, as
    OpenFeature asks. A player that is open decides without its store.
    """

    def __init__(
        self, players: Store | Mapping[str, Player], events: Mapping[str, str | Iterable[str]] | None = None
    ) -> None:
        super().__init__()
        self._players = players
        self._events = {
            name: [flags] if isinstance(flags, str) else list(flags) for name, flags in (events or {}).items()
        }

    def get_metadata(self) -> Metadata:
        """Its name."""
        return Metadata("abex")

    def resolve_boolean_details(
        self, flag_key: str, default_value: bool, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[bool]:
        """The arm on, off, true or false."""
        return self._resolved(
            flag_key, default_value, evaluation_context, lambda arm: SWITCH[str(arm).lower()]
        )

    def resolve_string_details(
        self, flag_key: str, default_value: str, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[str]:
        """The arm's name."""
        return self._resolved(flag_key, default_value, evaluation_context, str)

    def resolve_integer_details(
        self, flag_key: str, default_value: int, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[int]:
        """The arm, a whole number or a name that reads as one."""
        return self._resolved(flag_key, default_value, evaluation_context, int)

    def resolve_float_details(
        self, flag_key: str, default_value: float, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[float]:
        """The arm, a name that reads as a number."""
        return self._resolved(flag_key, default_value, evaluation_context, float)

    def resolve_object_details(
        self, flag_key: str, default_value: Any, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[Any]:
        """The entry of the default value under the arm's name."""
        return self._resolved(
            flag_key, default_value, evaluation_context, lambda arm: default_value[str(arm)]
        )

    def track(
        self,
        tracking_event_name: str,
        evaluation_context: EvaluationContext | None = None,
        tracking_event_details: TrackingEventDetails | None = None,
    ) -> None:
        """Reward the decisions of the flags that this event is about."""
        details = tracking_event_details or TrackingEventDetails()
        about = details.attributes or {}
        reward = 1.0 if details.value is None else details.value
        unit = None if evaluation_context is None else evaluation_context.targeting_key
        flags = [about["flag"]] if "flag" in about else self._events.get(tracking_event_name, [])
        for flag in flags:
            players = list(self._players_of(str(flag), unit))
            for player in players:
                if isinstance(player, SharedPlayer):
                    player.refresh()  # another process may have decided for this unit
                named = about.get("decision")
                if named:
                    decision = named if len(players) == 1 or player.has_made(str(named)) else None
                else:
                    decision = None if unit is None else player.waiting(unit)
                if decision is not None:
                    player.update(decision, reward)
                    break

    def _players_of(self, flag: str, unit: str | None) -> Iterator[Player]:
        """The player of a flag for a unit; where the flag is an alias, the others of before after it."""
        if isinstance(self._players, Store):
            yield from self._players.players_of(flag, unit)
        elif flag in self._players:
            yield self._players[flag]
        else:
            raise UserError(f"there is no player {shown(flag)}; there are: {', '.join(self._players)}")

    def _resolved(
        self, flag: str, default: Any, context: EvaluationContext | None, value_of: Any
    ) -> FlagResolutionDetails[Any]:
        """A decision as the value of a flag, or the default and why."""

        def refused(code: ErrorCode, sentence: object) -> FlagResolutionDetails[Any]:
            return FlagResolutionDetails(default, code, str(sentence), Reason.ERROR)

        unit = None if context is None else context.targeting_key
        try:
            player = next(self._players_of(flag, unit))
        except UserError as error:
            return refused(ErrorCode.FLAG_NOT_FOUND, error)
        try:
            decision = player.decide(unit=unit)
        except UserError as error:
            return refused(ErrorCode.GENERAL, error)
        try:
            value = value_of(decision.arm)
        except (KeyError, ValueError, TypeError):
            return refused(
                ErrorCode.TYPE_MISMATCH,
                f"the arm {shown(decision.arm)} of {shown(flag)} is no {type(default).__name__}",
            )
        about = {"decision": decision.id, "probability": decision.probability}
        known = {name: one for name, one in about.items() if one is not None}
        return FlagResolutionDetails(
            value, reason=Reason.SPLIT, variant=str(decision.arm), flag_metadata=known
        )
