"""The names of a player's arms: whole numbers by default, words or numbers of yours.

Inside, an arm has a *number* that is never used again and a *place* in the policy's arrays. Numbers ascend with the places, so a
place is found by bisection; only arms with names of your own need a table.

**Arms are declared state** (`declare`).
What is declared is compared with the arms of *now*. Arms that the player does not have yet are added (``on_new_arms="add"``),
arms that are declared no more stay or go (``on_missing_arms="keep"``, ``"retire"``); what is not said is refused, by name. Two
processes that deploy at the same time add an arm once: the second event finds it there and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.players.ids import is_id
from abex.support.errors import UserError, among_arms, checked_name, shown, whole_number

Label = int | str
MOST_NUMBER = 2**62
MOST_SUGGESTED = 1000  # names among which the nearest is looked for


def label_of(value: Any) -> Label:
    """``value`` as the name of an arm: a word, or a whole number.

    >>> label_of("red"), label_of(np.int64(7))
    ('red', 7)
    """
    if isinstance(value, str):
        name = checked_name("the name of an arm", value)
        if is_id(name):
            raise UserError(f"the name of an arm must not look like the id of a decision, got {shown(value)}")
        return name
    try:
        return whole_number("the name of an arm", value, least=-MOST_NUMBER, most=MOST_NUMBER)
    except UserError:
        raise UserError(f"the name of an arm must be a word or a whole number, got {shown(value)}") from None


class NamedArms:
    """Which arms there are, under which names."""

    def __init__(self, n_arms: int, labels: Iterable[Any] | None = None) -> None:
        self.numbers: NDArray[np.int64] = np.arange(n_arms)  # of each place, ascending
        self.next_number = n_arms
        self.labels: dict[int, Label] | None = None  # by number; None where names are the numbers
        self._numbers_of: dict[Label, int] = {}
        if labels is not None:
            self.set_labels(dict(enumerate(labels)))

    def set_labels(self, labels: dict[int, Any]) -> None:
        """Give every number its name; all must differ."""
        self.labels = {number: label_of(label) for number, label in labels.items()}
        self._numbers_of = {label: number for number, label in self.labels.items()}
        if len(self._numbers_of) < len(self.labels):
            seen: set[Label] = set()
            twice = next(one for one in self.labels.values() if one in seen or seen.add(one))  # type: ignore[func-returns-value]
            raise UserError(f"two arms are called {shown(twice)}")

    # -- looking --------------------------------------------------------------------------------------

    def number_at(self, place: int) -> int:
        """The number of the arm at a place."""
        return place if self.next_number == self.numbers.size else int(self.numbers[place])

    def label(self, number: int) -> Label:
        """The name of an arm by its number; that number itself where the arm is gone."""
        return number if self.labels is None else self.labels.get(number, number)

    def all_labels(self) -> list[Label]:
        """The names in the order of the places."""
        numbers: list[int] = self.numbers.tolist()
        return list(numbers) if self.labels is None else [self.labels[number] for number in numbers]

    def knows(self, label: Any) -> bool:
        """Whether an arm of this name is there."""
        try:
            self.number(label)
        except UserError:
            return False
        return True

    def number(self, label: Any) -> int:
        """The number of an arm by its name."""
        if self.labels is None:
            number = -1 if isinstance(label, str) else whole_number("arm", label, least=0)
            if not self.has(number):
                raise UserError(f"there is no arm {shown(label)}: arms are {_span(self.numbers)}")
            return number
        try:
            return self._numbers_of[label_of(label)]
        except (KeyError, UserError):
            words = [str(one) for one in list(self._numbers_of)[:MOST_SUGGESTED]]
            found = among_arms(label, words, len(self._numbers_of))
            raise UserError(f"there is no arm {shown(label)}{found}") from None

    def has(self, number: int) -> bool:
        """Whether there is an arm of this number."""
        return self.place(number) >= 0

    def place(self, number: int) -> int:
        """Where the arm of a number stands; -1 where there is none."""
        if self.next_number == self.numbers.size:  # none was ever removed
            return number if 0 <= number < self.next_number else -1
        place = int(np.searchsorted(self.numbers, number))
        return place if place < self.numbers.size and self.numbers[place] == number else -1

    # -- changing -------------------------------------------------------------------------------------

    def check_new(self, label: Any) -> Label | None:
        """A name for a new arm, or None for the next number; refused where there is one of that name."""
        if self.next_number >= MOST_NUMBER:
            raise UserError("this player has had all the arms that it can have")
        if self.labels is None:
            if type(label) is int and 0 <= label < self.next_number:
                raise UserError(f"there is an arm {shown(label)} already, or there was one")
            if label is not None and label != self.next_number:
                raise UserError(
                    f"the arms of this player are numbered: without a name the next one is {self.next_number}, "
                    f"got {shown(label)}"
                )
            return None if label is None else self.next_number
        if label is None:
            raise UserError("the arms of this player have names: give the new one a name")
        new = label_of(label)
        if new in self._numbers_of:
            raise UserError(f"there is an arm {shown(new)} already")
        return new

    def add(self, label: Label | None) -> int:
        """A new arm at the last place; returns its number."""
        number = self.next_number
        self.numbers = np.append(self.numbers, number)
        self.next_number += 1
        if self.labels is not None and label is not None:
            self.labels[number] = label
            self._numbers_of[label] = number
        return number

    def remove(self, number: int) -> None:
        """Take an arm away."""
        self.numbers = np.delete(self.numbers, self.place(number))
        if self.labels is not None:
            del self._numbers_of[self.labels.pop(number)]

    def rename(self, number: int, label: Label) -> None:
        """Call an arm something else."""
        if self.labels is None:
            self.set_labels({int(one): int(one) for one in self.numbers})
        assert self.labels is not None
        del self._numbers_of[self.labels[number]]
        self.labels[number] = label
        self._numbers_of[label] = number


def _span(numbers: NDArray[np.int64]) -> str:
    if numbers.size == numbers[-1] - numbers[0] + 1:
        return f"{numbers[0]} to {numbers[-1]}" if numbers.size > 1 else f"{numbers[0]}"
    listed = ", ".join(str(number) for number in numbers[:8])
    return listed if numbers.size <= 8 else f"{listed}, ... ({numbers.size} in all)"


# -- what an application declares, and what its player has ------------------------------------------------------

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
        self.in_shell = f"{what}: --{option.replace('_', '-')} {first} {does}{rest.replace(chr(34), '')}"


def declare(player: Any, wanted: NamedArms, on_new: str, on_missing: str, where: str) -> None:
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


def _unless_done(player: Any, arm: Label, there: bool) -> None:
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
