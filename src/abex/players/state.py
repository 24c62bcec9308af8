"""The state of a player as a function of its events: decisions, rewards, expiries, arms that come and go.

A player in one process has one state. Of a player that many processes share each process has one, and all are alike after the
same events, bit for bit. So nothing here looks at a clock or draws a number of its own: moments stand in the events, random
numbers that learning needs are an argument. What a policy's *sampler* holds (`abex.samplers`) is no part of that state: it finds
arms faster, changes with every draw, and has no influence on what is learned.

`PlayerState.apply` never fails: what cannot be done any more (a second reward, an arm that is gone) changes nothing, and the
outcome says so.
"""

from __future__ import annotations

import copy
from collections import OrderedDict, deque
from collections.abc import Mapping
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from abex.graphs.feedback import probability_seen, reveal
from abex.inference.betting import MOST_COMPARED
from abex.kinds import agree, check_kept, kept_with_decisions, weighed_by
from abex.players.answers import Answer, Answers
from abex.players.arms import NamedArms
from abex.players.bets import Bets
from abex.players.events import ArmAdded, ArmRemoved, ArmRenamed, Decided, Event, Expired, Rewarded
from abex.players.ids import LIFE_AT, is_id, moment_of
from abex.players.open_windows import OpenWindows, check_weighable
from abex.players.policy_runner import PolicyRunner
from abex.policies.policy import MOST_ARMS, Setting
from abex.support.errors import UserError, checked_name

if TYPE_CHECKING:
    from abex.players.player_settings import PlayerSettings

MOST_SEEN_KEYS = 10_000  # keys of observations that are remembered
MOST_LIVES = 1_000  # lives whose decisions are told from those of other players
MOST_STEPS = 10**18
RECENT = 1_000  # decisions whose share of each arm a summary tells
MOST_KEPT = 100  # arms whose probabilities decisions remember, unless propensities are asked for
LEAST_PROBABILITY = 1e-100  # of what was chosen: nobody will see a rarer choice


PULLS, OBSERVATIONS, SUMS, CONVERSIONS = range(4)  # rows of `Tallies.table`
IN_ALL = ("rewarded", "expired", "late", "corrected")


class Tallies:
    """Counts by the places of the arms; rewards in [0, 1]."""

    def __init__(self, n_arms: int) -> None:
        #: of each arm: decisions; rewards learned, side observations too; their sum; conversions in windows
        self.table: NDArray[np.float64] = np.zeros((4, n_arms))
        self.recent: deque[int] = deque(maxlen=RECENT)  # numbers of the arms of the last decisions
        self.rewarded = 0  # decisions that had their reward
        self.expired = 0  # decisions that had none in time
        self.late = 0  # decisions of which a reward or a correction came too late
        self.corrected = 0  # corrections that changed a reward

    @property
    def pulls(self) -> Any:
        """Decisions by place."""
        return self.table[PULLS]

    @property
    def observations(self) -> Any:
        """Rewards learned by place."""
        return self.table[OBSERVATIONS]

    @property
    def sums(self) -> Any:
        """Their sums."""
        return self.table[SUMS]

    def keep(self, places: NDArray[np.int64], n_arms: int) -> None:
        """Go on with these places and empty ones after them."""
        self.table = np.pad(self.table[:, places], ((0, 0), (0, n_arms - places.size)))


class Pending(OrderedDict[str, Decided]):
    """Decisions that wait for their reward, by id, the oldest first."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most  # beyond, the oldest is forgotten
        self.lives: dict[str, str] = {}  # the last decision of each life, be it waiting or not
        self._by_arm: dict[int, OrderedDict[str, None]] = {}  # ids by the number of their arm,
        self._units: dict[str, str] = {}  # by the unit for which they were made,
        self._keys: dict[str, str] = {}  # by the key of their request

    def __reduce__(self) -> Any:  # by which it is copied, too
        return type(self), (self.most,), vars(self), None, iter(self.items())

    def stands_for(self, event: Decided) -> Decided | None:
        """The decision that a void one is answered by; None for a new one, which is known to be made from now on.

        Decisions of one life come in order: one that comes again is void. So is one for a unit or under a key that has a
        decision which waits.
        """
        name = event.id
        life = name[LIFE_AT:]
        last = self.lives.get(life, "")
        if name <= last:
            return event
        self.lives[life] = name
        if not last and len(self.lives) > MOST_LIVES:
            self._trim_lives()
        return None if event.unit is None and event.key is None else self.open_decision(event.unit, event.key)

    def _trim_lives(self) -> None:
        """Leave out old lives that nothing waits for."""
        needed = {name[LIFE_AT:] for name in self}
        needed.update(list(self.lives)[-MOST_LIVES:])
        self.lives = {life: last for life, last in self.lives.items() if life in needed}

    def has_made(self, name: str) -> bool | None:
        """Whether a decision of that id was made; None if its life is unknown."""
        last = self.lives.get(name[LIFE_AT:]) if is_id(name) else None
        return None if last is None else name <= last

    def open_decision(self, unit: str | None, key: str | None) -> Decided | None:
        """The decision that waits under this key, or for this unit."""
        name = self._keys.get(key) if key is not None else None
        if name is None and unit is not None:
            name = self._units.get(unit)
        return None if name is None else self[name]

    def of_arm(self, number: int) -> list[str]:
        """The ids of the decisions on an arm, the oldest first."""
        return list(self._by_arm.get(number, ()))

    def latest_of(self, number: int) -> str | None:
        """The id of the latest decision on an arm."""
        waiting = self._by_arm.get(number)
        return next(reversed(waiting)) if waiting else None

    def due(self, cutoff: int) -> list[str]:
        """The ids of the oldest decisions, up to the first one made after a moment."""
        return [one.id for one in takewhile(lambda one: one.moment <= cutoff, self.values())]

    def add(self, event: Decided) -> Decided | None:
        """Let a decision wait; returns the one that is forgotten for it."""
        name = event.id
        self[name] = event
        if event.unit is not None:
            self._units[event.unit] = name
        if event.key is not None:
            self._keys[event.key] = name
        waiting = self._by_arm.get(event.arm)
        if waiting is None:
            waiting = self._by_arm[event.arm] = OrderedDict()
        waiting[name] = None
        return self.drop(next(iter(self))) if len(self) > self.most else None

    def drop(self, name: str) -> Decided:
        """A decision waits no more."""
        event = self.pop(name)
        waiting = self._by_arm[event.arm]
        del waiting[name]
        if not waiting:
            del self._by_arm[event.arm]
        if event.unit is not None:
            del self._units[event.unit]
        if event.key is not None:
            del self._keys[event.key]
        return event


class PlayerState(PolicyRunner):
    """Policy, what it has learned, arms, pending decisions and tallies of a player."""

    def __init__(
        self,
        policy: Any,
        setting: Setting,
        arms: NamedArms,
        settings: PlayerSettings,
        *,
        compiled: bool,
        max_pending: int,
        is_shared: bool = False,
    ) -> None:
        super().__init__(policy, setting, compiled)
        self.arms, self.settings = arms, settings
        self.draws_leave_state = is_shared  # others age it when they draw, and at other times
        self.tallies = Tallies(setting.n_arms)
        self.steps = 0  # of the policy's life: decisions made, and arms tried elsewhere
        self.elsewhere = 0  # arms tried elsewhere
        self.pending = Pending(max_pending)
        self.seen_keys: OrderedDict[str, None] = OrderedDict()  # of the last observations
        #: whether time brings anything about
        self.is_timed = settings.expire is not None or settings.kept is not None
        self.bets = Bets(arms, compiled, max_pending, in_order=settings.expire is not None)
        #: where silence counts by its age, and where a decision may have another reward
        self.windows: OpenWindows | None = None
        self.answers: Answers | None = None
        if settings.kept is not None:
            check_weighable(policy, setting, settings.weighs)
            self.answers = Answers(settings, max_pending)
        if settings.weighs:
            silence = settings.unrewarded_scaled
            assert settings.expire is not None
            assert silence is not None
            self.windows = OpenWindows(setting.n_arms, settings.expire, silence)
        #: arms up to which probabilities are worked out with every decision
        self._worked_out_up_to = 0
        wanted = settings.propensities
        ages = settings.weighs and is_shared  # others grow older before they are written
        if wanted or (wanted is None and ages):
            self._worked_out_up_to = MOST_ARMS
        elif wanted is None and policy.cheap_probabilities:
            self._worked_out_up_to = MOST_KEPT

    def copy(self) -> PlayerState:
        """An independent state, equal to this one."""
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.state = copy.deepcopy(self.state)
        for name in ("arms", "tallies", "pending", "seen_keys", "windows", "answers"):
            setattr(twin, name, copy.deepcopy(getattr(self, name)))
        twin.bets = self.bets.copy(twin.arms)
        return twin

    @property
    def decisions(self) -> int:
        """How many were made."""
        return self.steps - self.elsewhere

    @property
    def works_out(self) -> bool:
        """Whether probabilities are worked out with every decision: of many arms only where they are needed."""
        return self.n_arms <= self._worked_out_up_to

    # -- silence --------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Let decisions grow older, up to the moment of the last one: due since then, done when somebody looks."""
        if self.windows is not None:
            self.windows.settle(self.arms, self.learn_weighted)

    def law(self, t: int, propensities: bool | None) -> bytes:
        """The distribution of step t as a decision remembers it for bets; nothing where none can be made.

        Of many arms it is kept where propensities are asked for.
        """
        if self.n_arms > (MOST_COMPARED if propensities else MOST_KEPT):
            return b""
        return self._distribution(t).astype("<f4").tobytes()

    # -- events ---------------------------------------------------------------------------------------

    def check(self, event: Event, fresh: Any) -> None:
        """See that the parts of an event fit together and to a policy that starts as ``fresh``; raises ValueError."""
        if isinstance(event, Decided):
            for what, word in (("unit", event.unit), ("key", event.key)):
                agree(word is None or checked_name(what, word) == word, what)
            agree(len(event.law) % 4 == 0, "a law must be 4 bytes an arm")
            if event.batch is not None:
                agree(event.batch.size >= 2, "a batch must be an id and a size")
                checked_name("batch", event.batch.id)
            if event.memory or self._kept:
                self.check_memory(event, fresh)
        elif isinstance(event, Rewarded):
            agree(
                (event.decision is None) != (event.arm is None), "a reward must be of a decision or of an arm"
            )
            agree(not event.corrects or event.arm is None, "a correction must be of a decision")
            if event.key is not None:
                checked_name("key", event.key)

    def check_memory(self, event: Decided, fresh: Any) -> None:
        """See that a decision remembers what its policy keeps with decisions, and a probability that it can divide by."""
        check_kept(fresh, event.memory, self.n_arms)
        place = self.arms.place(event.arm)
        if place < 0:
            return
        for field, array in zip(kept_with_decisions(fresh), event.memory, strict=True):
            if field == weighed_by(fresh):
                probability = array[place] if array.size == self.n_arms else array[0]
                agree(bool(probability >= LEAST_PROBABILITY), "a decision waits that could not be made")

    def apply(self, event: Event, rng: Any) -> Any:
        """Let an event happen; returns what came of it, an error as a value if it cannot happen."""
        if self.windows is not None:
            self.settle()
        kind = type(event)
        if kind is Decided:
            return self._decided(event)  # type: ignore[arg-type]
        if kind is Rewarded:
            return self._rewarded(event, rng)  # type: ignore[arg-type]
        if isinstance(event, Expired):
            self._make_final(event.moment)
            return self._expired(event.cutoff, rng)
        try:
            return self._change_arms(event)
        except UserError as error:
            return error

    def over_at(self) -> int | None:
        """When the time of the first decision ends that waits, or whose reward is to be final; None without one."""
        expire, ends = self.settings.expire, list[int]()
        if expire is not None and self.pending:
            ends.append(next(iter(self.pending.values())).moment + expire)
        if self.answers is not None and self.bets.changing:
            ends.append(self.answers.first_end())
        return min(ends, default=None)

    def _make_final(self, moment: int) -> None:
        """Rewards that cannot change any more at this moment are final."""
        if self.answers is not None:
            for name in self.answers.forget(moment):
                self.bets.final(name)

    def _is_repeated(self, event: Event) -> bool:
        """Whether an event stands in the journal a second time: its first copy was written although a connection broke."""
        return self.draws_leave_state and not self.is_first(event.id)

    def is_first(self, key: str) -> bool:
        """Whether an observation under this key is the first one; of the last ones the keys are remembered."""
        if key in self.seen_keys:
            return False
        self.seen_keys[key] = None
        if len(self.seen_keys) > MOST_SEEN_KEYS:
            self.seen_keys.popitem(last=False)
        return True

    # -- decisions ------------------------------------------------------------------------------------

    def _decided(self, event: Decided) -> Decided:
        """A decision was made and waits for its reward; a void one changes nothing, and what stands for it is returned."""
        standing = self.pending.stands_for(event)
        if standing is not None:
            return standing
        number = event.arm
        self.steps += 1
        if self.answers is not None:
            self._make_final(event.moment)
        place = self.arms.place(number)
        if place >= 0:
            tallies = self.tallies
            tallies.table[PULLS, place] += 1.0
            tallies.recent.append(number)
            oldest = self.pending.add(event)
            if self.bets.in_order:
                self.bets.decided(event.id)
            if self.windows is not None:
                self.windows.decided(event.id, event.moment, number, place)
            if oldest is not None:
                self.bets.late = True
                self.bets.lost(oldest.id)
                if self.windows is not None:
                    self.windows.forgotten(oldest.id, self.arms.place(oldest.arm))
        return event

    def observed_with(self, decision: Decided) -> dict[int, float] | None:
        """On a feedback graph: the arms that a decision reveals, by number, each with its probability of being observed then.

        None without a graph or probabilities, and in a batch.
        """
        place = self.arms.place(decision.arm)
        if self.setting.graph is None or decision.batch is not None or place < 0:
            return None
        try:
            chosen = self.probabilities(decision.t)
        except UserError:
            return None
        graph, seen = self.feedback, np.zeros(self.n_arms, np.int64)
        with np.errstate(over="ignore"):
            count = reveal(graph, decision.t, place, seen)
            return {
                self.arms.number_at(place): min(
                    1.0, float(probability_seen(graph, decision.t, place, chosen))
                )
                for place in seen[:count].tolist()
            }

    # -- rewards --------------------------------------------------------------------------------------

    def _rewarded(self, event: Rewarded, rng: Any) -> bool:
        """A decision had its reward, or an arm tried elsewhere; False if that teaches nothing."""
        name = event.decision
        if name is None:
            number = event.arm
            assert number is not None
            if event.key is None:
                if self._is_repeated(event):
                    return False
                name = self.pending.latest_of(number)  # an arm stands for its latest decision that waits
            elif not self.arms.has(number) or not self.is_first(event.key):
                return False
            if name is None:
                return self._observed_without_decision(number, event.reward, event.also, rng)
        if self.answers is not None and (name in self.pending or self.answers.find(name) is not None):
            return self._answered(name, event, rng)
        return self._close(name, event.reward, event.also, rng) or self._came_late(name, event)

    def _came_late(self, name: str, event: Rewarded) -> bool:
        """A decision that waits no more had a reward: it teaches nothing, and is counted once if its time is over."""
        known = None if self.answers is None else self.answers.find(name)
        if self.answers is not None and known is not None:
            late = self.answers.is_over(known, event) and (
                event.corrects or (event.key or "") not in known.parts
            )
        else:
            time = self.settings.expire or self.settings.kept
            late = (
                time is not None
                and event.moment - moment_of(name) >= time
                and bool(self.pending.has_made(name))
            )
        if late and self.is_first(f"late {name}"):
            self.tallies.late += 1
        return False

    def _answered(self, name: str, event: Rewarded, rng: Any) -> bool:
        """A decision had a conversion, or it is corrected what it paid; False if there is nothing new in it."""
        assert self.answers is not None
        before, pending = self.answers.find(name), self.pending.get(name)
        if event.corrects and self._is_repeated(event):
            return False
        if before is not None:
            after = self.answers.revised(before, event)
        else:
            assert pending is not None
            after = self.answers.first(name, pending.moment, pending.arm, event)
        if after is None or (place := self.arms.place(after.arm)) < 0:
            return self._came_late(name, event)
        if pending is not None:
            self._overtake(name)
            self.pending.drop(name)
            self.bets.answered(pending, after.reward, event.also)
            if self.settings.conversions == "first" and self.settings.corrections is None:
                self.bets.final(name)
            self.tallies.rewarded += 1
            self._count(place, after.reward)
            self._observed_at_once(event.also, rng)
        if before is not None:
            self.bets.revised(name, after.reward)
            table = self.tallies.table
            total = table[SUMS, place] + (after.reward - before.reward)
            table[SUMS, place] = min(max(total, 0.0), table[OBSERVATIONS, place])
        self.tallies.corrected += event.corrects
        for forgotten in self.answers.keep(self._learn_answer(before, after, place, event, rng)):
            self.bets.final(forgotten)
        return True

    def _learn_answer(
        self, before: Answer | None, after: Answer, place: int, event: Rewarded, rng: Any
    ) -> Answer:
        """Learn the difference between what a decision paid and what it pays; returns that as it was counted."""
        windows, was = self.windows, None if before is None else before.counted
        is_silence = windows is not None and after.reward == windows.attribution.silence
        changed = before is None or before.reward != after.reward
        if not changed or (is_silence and was is None):
            after = replace(after, counted=was)
        else:
            after = replace(after, counted=self.counted(after.reward, rng))
        if windows is not None:
            if not event.corrects:
                silent = event.reward == windows.attribution.silence
                self.tallies.table[CONVERSIONS, place] += not silent
                windows.heard(after, event.moment, silent and before is None, changed and not silent)
            windows.answered(before, after, place)
        if changed:
            for reward, weight in ((was, -1.0), (after.counted, 1.0)):
                if reward is not None:
                    self.learn_weighted(place, reward, weight)
        if windows is not None:
            windows.hear(place, self.learn_weighted)
        return after

    def _observed_at_once(self, seen: Mapping[int, float], rng: Any) -> None:
        """Arms were seen without a decision that waits."""
        for number, reward in seen.items():
            place = self.arms.place(number)
            if place >= 0:
                self._count(place, reward)
                if self.windows is not None:
                    self.windows.observed(place, reward)
                    self.tallies.table[CONVERSIONS, place] += 1.0
                self.learn_weighted(place, self.counted(reward, rng), 1.0)

    def _count(self, place: int, reward: float) -> None:
        table = self.tallies.table
        table[OBSERVATIONS, place] += 1.0
        table[SUMS, place] += reward

    def _overtake(self, name: str) -> None:
        """A decision has a reward, perhaps before earlier ones."""
        if len(self.pending) > 1 and not self.bets.in_order:
            self.bets.late |= name != next(iter(self.pending))

    def _close(self, name: str, reward: float, also: Mapping[int, float], rng: Any) -> bool:
        """A decision had its reward in [0, 1], and other arms were seen with it; False if it does not wait for one."""
        if name not in self.pending:
            return False
        self._overtake(name)
        pending = self.pending.drop(name)
        if pending.memory:
            self.recall(pending.memory)
        self.tallies.rewarded += 1
        self.bets.rewarded(pending, reward, also)
        self._observed(pending.t, pending.arm, reward, also, rng)
        return True

    def _observed_without_decision(
        self, number: int, reward: float, also: Mapping[int, float], rng: Any
    ) -> bool:
        """An arm was tried without a decision of the player: a step of the policy's life as if it had been chosen now."""
        place = self.arms.place(number)
        if place < 0:
            return False
        step = self.steps + 1
        if self._kept:
            self._remember_choice(step, place)
        self.steps, self.elsewhere = step, self.elsewhere + 1
        self.bets.observed(f"#{step}", number, reward, also)
        self._observed(step, number, reward, also, rng)
        return True

    def _remember_choice(self, step: int, place: int) -> None:
        """What a decision at this step on this arm remembers: only the arm's own probability is a matter of the arm."""
        _, memory = self.draw(step, np.random.Generator(np.random.PCG64(0)))
        self.recall(memory)
        field = weighed_by(self.state)
        if field is None or self.policy.probabilities is None:
            return
        weights = getattr(self.state, field)
        if weights.size != self.n_arms or weights[place] <= 0.0:
            self.set_propensity(self.probabilities(step), place)

    def _expired(self, cutoff: int, rng: Any) -> list[str]:
        """The oldest decisions, up to the first one made after ``cutoff``, had no reward in time; returns their ids.

        They count as `PlayerSettings.unrewarded`, or teach nothing if that is None.
        """
        names = [] if self.settings.expire is None else self.pending.due(cutoff)
        unrewarded = self.settings.unrewarded_scaled
        for name in names:
            self.tallies.expired += 1
            if unrewarded is None:
                self.pending.drop(name)
                self.bets.late = True
                self.bets.lost(name)
            elif self.windows is not None:  # which has heard of it, or will when it is old enough
                silent = self.pending.drop(name)
                self._count(self.arms.place(silent.arm), unrewarded)
                self.bets.rewarded(silent, unrewarded, {})
            else:
                self._close(name, unrewarded, {}, rng)
                self.tallies.rewarded -= 1
        return names

    def _observed(self, t: int, number: int, reward: float, also: Mapping[int, float], rng: Any) -> None:
        """An arm pulled at step t paid this, and others that; the pulled arm is learned last."""
        if self.answers is not None:
            self._observed_at_once({**also, number: reward}, rng)
            return
        seen = []
        for other, paid in (*also.items(), (number, reward)):
            place = self.arms.place(other)
            if place >= 0:
                self._count(place, paid)
                seen.append((place, paid))
        self.learn(t, place, seen, rng)

    # -- arms -----------------------------------------------------------------------------------------

    def _change_arms(self, event: Event) -> Any:
        """An arm comes, goes or has another name; an error where that cannot be done."""
        arms = self.arms
        if isinstance(event, ArmAdded):
            self.check_resize()
            label = arms.check_new(event.label)
            if event.label is None and self._is_repeated(event):
                return None
            self._keep_arms(np.arange(self.n_arms), self.n_arms + 1)
            return arms.add(label)
        assert isinstance(event, ArmRemoved | ArmRenamed)
        if not arms.has(event.arm):
            raise UserError("that arm has been removed already")
        if isinstance(event, ArmRemoved):
            self.check_remove(event.arm)
            self._keep_arms(np.delete(np.arange(self.n_arms), arms.place(event.arm)), self.n_arms - 1)
            arms.remove(event.arm)
            for name in self.pending.of_arm(event.arm):
                self.pending.drop(name)
                self.bets.lost(name)
        elif arms.labels is None or event.label != arms.label(event.arm):
            if arms.knows(event.label):
                raise UserError(f"there is an arm {event.label!r} already")
            arms.rename(event.arm, event.label)
        return None

    def check_remove(self, number: int) -> None:
        """Refuse to remove the last arm, or any where arms cannot go."""
        self.check_resize()
        if self.n_arms == 1:
            raise UserError(f"arm {self.arms.label(number)!r} is the last one and cannot be removed")

    def _keep_arms(self, places: NDArray[np.int64], n_arms: int) -> None:
        self.resize(places, n_arms)
        self.tallies.keep(places, n_arms)
        if self.windows is not None:
            self.windows.resize(places, n_arms)
        self.bets.resize(places, n_arms)
