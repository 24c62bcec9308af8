"""Decisions whose attribution window is open: what is learned of their silence, as a function of the events.

A player with a ``window`` learns a reward when it comes, and every decision by how much of its answer is in
(`abex.policies.attribution`). Each event of a decision lets all earlier ones grow older, up to its moment: so copies that have
applied the same events know the same, and nothing here looks at a clock.

Where an application reports silence itself ("no click"), that decision counts in full from then on; and since it is not
silent, so does every decision from its reward on, whatever it was.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from abex.inference.sums import interval
from abex.kinds import MOST_COUNT, agree
from abex.players.answers import Answer
from abex.players.arms import NamedArms
from abex.players.events import Count, Id, Moment
from abex.policies.attribution import (
    HALVINGS,
    Attribution,
    bin_of,
    can_weigh,
    enter,
    grow_older,
    hear_silence,
    new_attribution,
    note_delay,
    weigh,
    weighed_decisions,
)
from abex.support.errors import UserError
from abex.support.files import encode_array

BY_AGE, IN_FULL, GONE = 1, 0, -1  # how a decision counts: GONE, it is not followed any more
Numbers = NDArray[np.float64]
Learn = Callable[[int, float, float], None]  # of an arm's place, a reward, with a weight


Bin = Annotated[int, msgspec.Meta(ge=0, lt=HALVINGS)]


class OpenDecision(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A decision in a file: its bin, how it counts, and the bins of its conversions."""

    id: Id
    moment: Moment
    arm: Count
    bin: Bin
    counts: Literal[-1, 0, 1]
    conversions: list[Bin]


class SavedWindows(msgspec.Struct):
    """The decisions of the last window in a file."""

    reported: bool
    open: list[OpenDecision]
    closed: Numbers
    turn: Count
    excess: Numbers
    converted: Numbers
    zeros: Numbers
    ended: Numbers
    within: Numbers
    weights: Numbers


class Weighed(NamedTuple):
    """Of some arms: decisions whose answer is in and that still wait, and what they are worth together."""

    mature: Numbers
    pending: Numbers
    worth: Numbers  # the sum of G(age) over both
    excess: Numbers  # what they paid beyond silence so far
    silence: float

    def means(self) -> Numbers:
        """What they paid over what they are worth; not a number before the first."""
        beyond = np.divide(
            self.excess, self.worth, out=np.full(self.worth.size, np.nan), where=self.worth > 0.0
        )
        means: Numbers = np.clip(self.silence + beyond, 0.0, 1.0)
        return means

    def intervals(self, risk: float) -> tuple[Numbers, Numbers]:
        r"""Intervals of the means.

        A decision of mean m has paid by age a what has the mean :math:`s+G(a)(m-s)`, s silence. So these are intervals for all n
        decisions, as if each were of the mean weight :math:`ar G` (which is allowed by :math:`\prod(1+cG_i)\le(1+car G)^n`), in
        the units of m: wider than those of :math:`nar G` decisions where means are large and many decisions young.
        """
        counts = self.mature + self.pending
        share = np.divide(self.worth, counts, out=np.zeros(counts.size), where=counts > 0.0)
        ends = interval(counts, np.clip(self.silence * counts + self.excess, 0.0, counts), risk)
        known = share > 0.0
        low, high = (
            np.clip(
                self.silence
                + np.divide(end - self.silence, share, out=np.full(share.size, none), where=known),
                0.0,
                1.0,
            )
            for end, none in zip(ends, (-1.0, 1.0), strict=True)
        )
        return low, high


class OpenWindows:
    """The decisions of the last window, by age, and what follows from them."""

    def __init__(self, n_arms: int, window: int, silence: float) -> None:
        self.window = window  # milliseconds
        self.attribution: Attribution = new_attribution(n_arms, float(window), silence)
        self.excess = np.zeros(n_arms)  # sum of what conversions paid beyond silence
        self.queues: list[deque[tuple[str, int, int]]] = [deque() for _ in range(HALVINGS)]  # id, moment, arm
        self.standing: dict[str, list[Any]] = {}  # id -> its bin, how it counts, bins of its conversions
        self.reported = False  # whether silence ever was
        self.due: int | None = None  # up to which moment decisions are still to grow older

    # -- what happens ---------------------------------------------------------------------------------

    def decided(self, name: str, moment: int, number: int, place: int) -> None:
        """A decision was made: up to its moment all others will have grown older."""
        enter(self.attribution, place)
        self.queues[0].append((name, moment, number))
        self.standing[name] = [0, BY_AGE, []]
        self.due = moment

    def settle(self, arms: NamedArms, learn: Learn) -> None:
        """Let decisions grow older, and hear their silence."""
        if self.due is None:
            return
        moment, self.due = self.due, None
        touched: dict[int, None] = {}
        for j, queue in enumerate(self.queues):
            end = self.attribution.ages[j + 1]
            while queue and moment - queue[0][1] >= end:
                older = queue.popleft()
                self._grow(older, j, arms, touched)
        weigh(self.attribution)
        for place in (*touched, self.attribution.turn):
            self.hear(place, learn)
        self.attribution.turn = (self.attribution.turn + 1) % arms.numbers.size

    def _grow(self, older: tuple[str, int, int], j: int, arms: NamedArms, touched: dict[int, None]) -> None:
        name, _, number = older
        _, counts, conversions = self.standing[name]
        place = arms.place(number)
        if counts == GONE or place < 0:
            del self.standing[name]
            return
        grow_older(self.attribution, place, j, -1)
        for conversion in conversions:
            note_delay(self.attribution, j, conversion)
        if counts == BY_AGE:
            touched[place] = None
        else:  # in full already: only its delay is news
            self.attribution.decisions[place, j] += 1.0
            self.attribution.decisions[place, j + 1] -= 1.0
        if j + 1 < HALVINGS:
            self.queues[j + 1].append(older)
            self.standing[name][0] = j + 1
        else:
            del self.standing[name]

    def heard(self, answer: Answer, moment: int, silence: bool, pays: bool) -> None:
        """The ``silence`` of a decision was reported, or it had a conversion, which ``pays`` or changes nothing."""
        self.reported |= silence
        standing = self.standing.get(answer.id)
        if standing is not None and pays:
            standing[2].append(bin_of(self.attribution, float(max(moment - answer.moment, 0))))

    def answered(self, before: Answer | None, after: Answer, place: int) -> None:
        """What a decision pays is another: by a conversion, a correction, or silence that was reported."""
        known, standing = self.attribution, self.standing.get(after.id)
        if after.counted is None:
            if standing is not None:
                self._count(standing, place, GONE)
        elif before is None or before.counted is None:
            known.converted[place] += 1.0
            self.excess[place] += after.reward - known.silence
            if standing is not None and self.reported:
                self._count(standing, place, IN_FULL)
        else:
            self.excess[place] += after.reward - before.reward

    def _count(self, standing: list[Any], place: int, how: int) -> None:
        """A decision that counted by its age counts in full."""
        if standing[1] == BY_AGE:
            self.attribution.decisions[place, standing[0]] -= 1.0
            self.attribution.decisions[place, HALVINGS] += 1.0
        standing[1] = how

    def observed(self, place: int, reward: float) -> None:
        """An arm was seen without a decision that waits: an answer that is there at once."""
        self.attribution.decisions[place, HALVINGS] += 1.0
        self.attribution.converted[place] += 1.0
        self.excess[place] += reward - self.attribution.silence

    def forgotten(self, name: str, place: int) -> None:
        """A decision counts no more."""
        standing = self.standing.get(name)
        if standing is not None:
            self.attribution.decisions[place, standing[0]] -= 1.0
            standing[1] = GONE

    def hear(self, place: int, learn: Learn) -> None:
        """Learn the silence of an arm."""
        more = hear_silence(self.attribution, place)
        if more != 0.0:
            learn(place, self.attribution.silence, more)

    def resize(self, keep: Any, n_arms: int) -> None:
        """Go on with the arms at these places, followed by new ones."""
        known = self.attribution
        for name in ("decisions", "converted", "zeros"):
            old = getattr(known, name)
            new = np.zeros((n_arms, *old.shape[1:]))
            new[: keep.size] = old[keep]
            setattr(known, name, new)
        self.excess = np.append(self.excess[keep], np.zeros(n_arms - keep.size))
        known.turn = 0

    def weighed(self, places: Any) -> Weighed:
        """What is known of these arms by now."""
        known = self.attribution
        worth = np.array([weighed_decisions(known, place) for place in places.tolist()])
        mature, pending = known.decisions[places, HALVINGS], known.decisions[places, :HALVINGS].sum(axis=1)
        return Weighed(mature, pending, worth, self.excess[places], known.silence)

    # -- in a file ------------------------------------------------------------------------------------

    def written(self) -> dict[str, Any]:
        """A JSON value."""
        known = self.attribution
        return {
            "reported": self.reported,
            "open": [[*one, *self.standing[one[0]]] for queue in self.queues for one in queue],
            "closed": encode_array(known.decisions[:, HALVINGS].copy()),
            "turn": known.turn,
            "excess": encode_array(self.excess),
        } | {
            name: encode_array(getattr(known, name))
            for name in ("converted", "zeros", "ended", "within", "weights")
        }

    def read(self, saved: SavedWindows, arms: NamedArms) -> None:
        """What `written` wrote; what its fields do not say is checked here."""
        known = self.attribution
        for name in ("converted", "zeros", "ended", "within", "weights"):
            _fill(getattr(known, name), getattr(saved, name), name)
        agree(
            bool((known.ended <= known.within).all() and (known.weights <= 1.0).all()),
            "weights must be shares",
        )
        _fill(self.excess, saved.excess, "excess", signed=True)
        closed = np.zeros(self.excess.size)
        _fill(closed, saved.closed, "closed")
        known.decisions[:, HALVINGS] = closed
        agree(saved.turn < self.excess.size, "turn must be an arm")
        known.turn, self.reported = saved.turn, saved.reported
        for one in saved.open:
            agree(one.id not in self.standing, "a decision is open twice")
            self.queues[one.bin].append((one.id, one.moment, one.arm))
            self.standing[one.id] = [one.bin, one.counts, one.conversions]
            if one.counts == BY_AGE and (place := arms.place(one.arm)) >= 0:
                known.decisions[place, one.bin] += 1.0


def _fill(target: Numbers, values: Numbers, name: str, signed: bool = False) -> None:
    low = -MOST_COUNT if signed else 0.0
    fine = values.shape == target.shape and bool(np.all((values >= low) & (values <= MOST_COUNT)))
    agree(fine, f"{name} must be numbers")
    target[...] = values


def check_weighable(policy: Any, setting: Any, silence: bool = True) -> None:
    """Refuse a policy that does not learn by weighted observations alone."""
    if setting.graph is None and can_weigh(policy):
        return
    if silence:
        raise UserError(
            f"{policy} cannot weigh silence by its age: leave the window out and report silence, or play Evidence or Thompson "
            "without a graph"
        )
    raise UserError(
        f"{policy} cannot take back what it has learned: leave corrections out, or play Evidence or Thompson without a graph"
    )
