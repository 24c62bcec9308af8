"""What a player knows for who asks who won, as a function of its events: sums of its arms, and bets on its decisions.

A decision remembers the probabilities of all arms with which it was drawn (its *law*, 4 bytes an arm), where they are known. When
it has its reward, the bets on it are settled (`abex.inference.betting`), by the leader of the rewards that were settled before.

**Late rewards.** Where decisions expire, rewards are settled in the order of the decisions, up to the first that is open: else
conversions would count at once and silence at the end, and every interval would be wrong. Where decisions wait for ever, rewards
are settled as they come, and `late` says whether one ever came after that of a later decision.

**Valid** is that because the draw of a decision is independent of all that was settled before it: rewards of other decisions,
whenever they were told. So the leader need not be fixed with the decision, but when its reward is settled.

**Arms that come and go.** A law is of the arms at the time of its decision, which `epoch` names. When an arm goes that ever led,
all bets begin anew: what was won against it says nothing of the others.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Mapping
from functools import cache, partial
from types import SimpleNamespace
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from abex.inference.betting import MOST_COMPARED, Comparison, new_comparison, take_in
from abex.kernels import compiled, entry_of, fields_of, laid_out
from abex.kinds import agree, read, restore, saved, written
from abex.players.arms import NamedArms
from abex.players.events import Count, Decided, Id, Law, Share
from abex.support.files import encode_array

MOST_EPOCHS = 8  # former sets of arms of which laws are still understood
Whole = NDArray[np.int64]
Numbers = NDArray[np.float64]


class Settled(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """A reward that waits for those of earlier decisions; what other arms paid at the same time."""

    arm: Count  # its number
    reward: Share
    law: Law = b""
    epoch: Count = 0
    also: dict[Count, Share] = {}


def _settled(decision: Decided, reward: float, also: Mapping[int, float]) -> Settled:
    return Settled(decision.arm, reward, decision.law, decision.epoch, dict(also))


class SavedBets(msgspec.Struct):
    """What `Bets` has in a file."""

    known: dict[str, Any]  # a `Comparison`
    bet: Count
    counted: Count
    late: bool
    epoch: Count
    former: Annotated[dict[Count, Whole], msgspec.Meta(max_length=MOST_EPOCHS)]
    order: list[Id]
    closed: dict[Id, Settled | None]
    passed: list[Id]
    changing: dict[Id, Settled]


class KnownAndLaw(NamedTuple):
    """What the compiled kernel is given: what is known, and the law of the decision that is settled."""

    known: Comparison
    chances: NDArray[np.float32]


@cache
def compiled_take_in() -> Any:
    """The kernel, compiled to be called from Python, of any number of arms."""

    @compiled(take_in)
    def run_take_in(given: Any, arm: int, reward: float) -> None:
        take_in(given.known, arm, reward, given.chances)

    return entry_of(run_take_in, laid_out(KnownAndLaw(new_comparison(1), np.zeros(1, np.float32))), 1, 1.0)


class Bets:
    """Sums of the arms, bets on decisions, and the rewards that wait for those of earlier decisions."""

    __slots__ = (
        "_chances",
        "_is_clear",
        "_is_whole",
        "_known",
        "_lists",
        "_nothing",
        "_take",
        "arms",
        "bet",
        "changing",
        "closed",
        "compiled",
        "counted",
        "epoch",
        "former",
        "in_order",
        "late",
        "most",
        "order",
        "passed",
    )

    def __init__(self, arms: NamedArms, compiled: bool, most: int, in_order: bool) -> None:
        self.arms, self.compiled = arms, compiled
        self.most = most  # ids in `order`: beyond, the first one is not waited for
        if compiled:
            compiled_take_in()  # now, so that no reward waits for it
        self.in_order = in_order  # whether rewards are settled in the order of the decisions
        self._known: Comparison | None = None  # from the first reward on
        self.bet = 0  # decisions that were bet on,
        self.counted = 0  # of so many that were settled
        self.late = False  # whether what was settled, or when, may have to do with the rewards
        self.epoch = 0  # how often arms came or went
        self.former: dict[int, Whole] = {}  # the numbers of the arms in epochs before
        #: ids of decisions whose bets are not settled, oldest first, where rewards are settled in that order
        self.order: deque[str] | None = None
        #: those among them that wait no more, None without a reward
        self.closed: dict[str, Settled | None] = {}
        self.changing: dict[str, Settled] = {}  # answers that may still change
        self.passed: dict[str, None] = {}  # decisions that wait, and that others did not wait for
        self._take: Callable[[int, float], None] | None = None
        self._lists: Any = None  # what is known, where nothing is compiled
        self._chances, self._nothing = memoryview(b""), b""  # the law of the decision that is settled; no law
        self._is_whole = True  # whether no arm was ever removed, so that numbers are places
        self._is_clear = True  # whether no probabilities stand in `_chances`

    def copy(self, arms: NamedArms) -> Bets:
        """The same, to go on independently."""
        twin = Bets(arms, self.compiled, self.most, self.in_order)
        twin._known = copy.deepcopy(self.known)
        twin.bet, twin.counted, twin.late, twin.epoch = self.bet, self.counted, self.late, self.epoch
        twin.former, twin.order = dict(self.former), copy.copy(self.order)
        twin.closed, twin.passed = dict(self.closed), dict(self.passed)
        twin.changing = dict(self.changing)
        return twin

    @property
    def known(self) -> Comparison | None:
        """What is known by now; None before the first reward."""
        if self._lists is None:
            return self._known
        return Comparison(**{name: np.array(values) for name, values in vars(self._lists).items()})

    def comparison(self) -> Comparison:
        """What is known by now."""
        known = self.known
        return new_comparison(self.arms.numbers.size) if known is None else known

    # -- what happens ---------------------------------------------------------------------------------

    def decided(self, name: str) -> None:
        """A decision was made, in order: later ones wait for its reward."""
        if self.order is None:
            self.order = deque()
        self.order.append(name)
        self._pass_on()

    def _pass_on(self) -> None:
        """Wait no longer for the first decision, if too much waits for it."""
        if self.order is not None and len(self.order) > self.most:
            self.passed[self.order.popleft()] = None
            self.late = True
            self._go_on()

    def rewarded(self, decision: Decided, reward: float, also: Mapping[int, float]) -> None:
        """A decision has its reward for good, and other arms were seen with it."""
        if self.in_order:
            self._close(decision.id, _settled(decision, reward, also))
        else:
            self.settle(decision.arm, reward, also, decision.law, decision.epoch)

    def answered(self, decision: Decided, reward: float, also: Mapping[int, float]) -> None:
        """A decision has a reward, which may change until it is `final`."""
        self.changing[decision.id] = _settled(decision, reward, also)

    def revised(self, name: str, reward: float) -> None:
        """What a decision has paid is something else; what is settled stays."""
        waiting: Any = self.changing if name in self.changing else self.closed
        one = waiting.get(name)
        if one is not None:
            waiting[name] = replace(one, reward=reward)

    def final(self, name: str) -> None:
        """The reward of a decision changes no more."""
        one = self.changing.pop(name, None)
        if one is not None and self.in_order:
            self._close(name, one)
        elif one is not None:
            self.settle(one.arm, one.reward, one.also, one.law, one.epoch)

    def _close(self, name: str, one: Settled) -> None:
        if name in self.passed:
            del self.passed[name]
        else:
            self.closed[name] = one
            self._go_on()

    def lost(self, name: str) -> None:
        """A decision will have no reward."""
        if name in self.passed:
            del self.passed[name]
        elif self.in_order:
            self.closed[name] = None
            self._go_on()

    def observed(self, name: str, arm: int, reward: float, also: Mapping[int, float]) -> None:
        """An arm was tried without a decision, under a name that no decision has."""
        if self.order:
            self.order.append(name)
            self.closed[name] = Settled(arm, reward, also=dict(also))
            self._pass_on()
        else:
            self.settle(arm, reward, also)

    def _go_on(self) -> None:
        """Settle the rewards that waited for others."""
        while self.order and self.order[0] in self.closed:
            one = self.closed.pop(self.order.popleft())
            if one is not None:
                self.settle(one.arm, one.reward, one.also, one.law, one.epoch)

    def settle(
        self, arm: int, reward: float, also: Mapping[int, float], law: bytes = b"", epoch: int = 0
    ) -> None:
        """Settle the bets on a decision, and count what was observed."""
        take, arms = self._take or self._prepared(), self.arms
        place = arm if self._is_whole else arms.place(arm)
        if place >= 0:
            self.counted += 1
            if law:
                self._lay(law, epoch)
            take(place, reward)
            if not self._is_clear:
                self._chances[:] = self._nothing
                self._is_clear = True
        for other, paid in also.items():
            if (beside := arms.place(other)) >= 0:
                take(beside, paid)

    def _prepared(self) -> Callable[[int, float], None]:
        """Lay out what the kernel reads: Python reads lists faster than arrays."""
        n_arms = self.arms.numbers.size
        few = n_arms <= MOST_COMPARED
        self._is_whole = self.arms.next_number == n_arms
        known: Any = new_comparison(n_arms) if self._known is None else self._known
        chances: Any = np.zeros(n_arms if few else 0, np.float32)
        self._chances, self._nothing = memoryview(chances).cast("B"), bytes(chances.nbytes)
        if self.compiled:
            self._known, given = known, laid_out(KnownAndLaw(known, chances))
            self._take = partial(compiled_take_in(), given)
        else:
            if few:
                lists = {name: getattr(known, name).tolist() for name in fields_of(Comparison)}
                self._known, known = None, SimpleNamespace(**lists)
                self._lists = known
            else:
                self._known = known
            run, view = take_in, memoryview(chances)
            self._take = lambda place, reward: run(known, place, reward, view)
        return self._take

    def _lay(self, law: bytes, epoch: int) -> None:
        """Put the probabilities of a law at the places of its arms; nothing where it is not known which those were."""
        if epoch != self.epoch:
            law = self._moved(law, epoch)
        if len(law) == len(self._nothing):
            self._chances[:] = law
            self._is_clear = False
            self.bet += 1

    def _moved(self, law: bytes, epoch: int) -> bytes:
        """A law of former arms as one of those that are there."""
        before, numbers = self.former.get(epoch), self.arms.numbers
        chances, now = np.frombuffer(law, "<f4"), np.zeros(numbers.size, "<f4")
        if before is None or chances.size != before.size:
            return b""
        stays = np.isin(before, numbers)
        now[np.searchsorted(numbers, before[stays])] = chances[stays]
        return now.tobytes()

    def resize(self, keep: Whole, n_arms: int) -> None:
        """Go on with the arms at these places, followed by new ones."""
        numbers = self.former[self.epoch] = self.arms.numbers.copy()
        if len(self.former) > MOST_EPOCHS:
            del self.former[min(self.former)]
        self.epoch += 1
        before = self.known
        self._take = self._lists = None
        if before is None:
            return
        known = self._known = new_comparison(n_arms)
        restore(known, saved(before), n_arms, keep)
        gone = np.setdiff1d(np.arange(numbers.size), keep)
        if before.led.size and before.led[gone].any():
            known.wealth[:], known.evidence[:], known.led[:] = 1.0, 1.0, 0.0

    # -- in a file ------------------------------------------------------------------------------------

    def written(self) -> dict[str, Any]:
        """A JSON value."""
        return {
            "known": written(saved(self.comparison())),
            "former": {epoch: encode_array(one) for epoch, one in self.former.items()},
            "closed": msgspec.to_builtins(self.closed),
            "changing": msgspec.to_builtins(self.changing),
            "order": list(self.order or ()),
            "passed": list(self.passed),
            **{name: getattr(self, name) for name in ("bet", "counted", "late", "epoch")},
        }

    def read(self, bets: SavedBets) -> None:
        """What `written` wrote; what its fields do not say is checked here."""
        n_arms = self.arms.numbers.size
        known = self._known = new_comparison(n_arms)
        restore(known, read(bets.known, known), n_arms)
        agree(bool((known.wealth >= 0.0).all()), "wealth must be numbers >= 0")
        most = known.observations * (1.0 + 1e-9)
        agree(bool(((known.sums <= most) & (known.squares <= most)).all()), "sums must be of rewards up to 1")
        self.bet, self.counted, self.late, self.epoch = bets.bet, bets.counted, bets.late, bets.epoch
        self.former = bets.former
        agree(all(one.ndim == 1 for one in self.former.values()), "former arms must be numbers")
        self.order = deque(bets.order) if bets.order else None
        self.closed, self.passed = bets.closed, dict.fromkeys(bets.passed)
        self.changing = bets.changing
        agree(len(set(bets.order)) == len(bets.order), "a decision is in order twice")
        agree(set(self.closed) <= set(bets.order), "closed decisions must be in order")
        agree(not bets.order or bets.order[0] not in self.closed, "the first decision must be open")

    def check(self, pending: Mapping[str, Decided]) -> None:
        """See that it waits for the decisions that wait, where it does so in their order."""
        open_ = {*(name for name in self.order or () if name not in self.closed), *self.passed}
        waiting = {*pending, *self.changing} if self.in_order else set()
        agree(open_ == waiting, "bets must wait for the waiting decisions")
