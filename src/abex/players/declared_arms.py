"""The arms that an application declares, and those that its shared player has: a deploy brings the one to the other.

What is declared is compared with the arms of *now*. Arms that the player does not have yet are added (``on_new_arms="add"``),
arms that are declared no more stay or go (``on_missing_arms="keep"``, ``"retire"``); what is not said is refused, by name. Two
processes that deploy at the same time add an arm once: the second event finds it there and changes nothing.
"""

from __future__ import annotations

from abex.players.arms import Label, NamedArms
from abex.players.player import Player
from abex.support.errors import UserError, shown

ON_NEW = ("refuse", "add")
ON_MISSING = ("refuse", "keep", "retire")
MOST_NAMED = 8  # arms in a sentence


class OtherArmsError(UserError):
    """Arms are declared that the player does not have, or the other way round: ``option`` says what to do, in ``ways``."""

    def __init__(self, what: str, option: str, ways: dict[str, str]) -> None:
        (first, does), *others = ways.items()
        rest = "".join(f', "{way}" {it_does}' for way, it_does in others)
        super().__init__(f'{what}: {option}="{first}" {does}{rest}')
        self.over_http = f'{what}: "{option}": "{first}" {does}{rest}'


def declare(player: Player, wanted: NamedArms, on_new: str, on_missing: str, where: str) -> None:
    """Bring the arms of ``player``, which ``where`` names, to those ``wanted``."""
    present, following = player.arms, player.next_arm
    if wanted.labels is None and following is not None:
        new: list[Label] = list(range(following, wanted.next_number))
        missing = [arm for arm in present if arm >= wanted.next_number]
    elif wanted.labels is not None and following is None:
        declared, there = set(wanted.all_labels()), set(present)
        new = [arm for arm in wanted.all_labels() if arm not in there]
        missing = [arm for arm in present if arm not in declared]
    else:
        has = "numbered arms" if following is not None else f"the arms {_listed(present)}"
        raise UserError(f"{where} is another one: it has {has}, not {_wanted(wanted)}")
    has = f"{where} has the arms {_listed(present)}, and"
    if new and on_new == "refuse":
        raise OtherArmsError(f"{has} not {_listed(new)}", "on_new_arms", {"add": "adds what is new"})
    if missing and on_missing == "refuse":
        ways = {"keep": "leaves it", "retire": "removes it"}
        raise OtherArmsError(f"{has} {_listed(missing)} is not declared", "on_missing_arms", ways)
    for arm in new:
        _unless_done(player, arm, True)
    for arm in missing if on_missing == "retire" else ():
        _unless_done(player, arm, False)


def _unless_done(player: Player, arm: Label, there: bool) -> None:
    """Add or remove an arm; another process may have done it a moment ago."""
    try:
        if there:
            player.add_arm(arm)
        else:
            player.remove_arm(arm)
    except UserError:
        if (arm in player.arms) is not there:
            raise


def _wanted(arms: NamedArms) -> str:
    return f"{arms.next_number} numbered ones" if arms.labels is None else _listed(arms.all_labels())


def _listed(arms: list[Label]) -> str:
    listed = ", ".join(shown(arm) for arm in arms[:MOST_NAMED])
    return listed if len(arms) <= MOST_NAMED else f"{listed}, ... ({len(arms)} in all)"
