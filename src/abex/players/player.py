"""A policy driven by hand, inside an application."""

from __future__ import annotations

import html
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from abex.inference.winner import Winner
from abex.players import forking
from abex.players.arms import Label, label_of
from abex.players.batch_probability import inclusion_probabilities, inclusion_probability
from abex.players.events import ArmAdded, ArmRemoved, ArmRenamed, Batch, Decided, Event, Expired, Rewarded
from abex.players.ids import Life, is_id
from abex.players.player_settings import PlayerSettings, new_state, terms
from abex.players.state import PlayerState
from abex.players.summary import Summary, summarise, winner_of
from abex.policies.policy import Policy
from abex.support.errors import UserError, checked_name, shown, whole_number
from abex.support.files import read_text, write_atomically
from abex.support.randomness import stream

if TYPE_CHECKING:
    from abex.players.shared_player import SharedPlayer

MOST_PENDING = 100_000
LATEST = 2**48 / 1000.0  # seconds since 1970 that an id can hold
MOST_IN_TABLE = 1_000  # arms of a player that a notebook shows as a table


class UnknownDecisionError(UserError):
    """A reward for a decision that the player never made."""

    def __init__(self, sentence: object = "", name: str = "") -> None:
        super().__init__(sentence)
        self.id = name


class _Pair(NamedTuple):
    id: str
    arm: Label


class Decision(_Pair):
    """A choice that waits for its reward: ``id``, ``arm``, the ``probability`` of choosing it, and its ``batch``.

    It unpacks into id and arm; two decisions of the same id and arm are equal. ``batch`` is that of `Player.decide_many`, with
    ``batch.id`` and ``batch.size``; None for a decision by itself.
    """

    batch: Batch | None = None
    _probability: float | None = None
    #: where the probability can be worked out: the state, its version, the step, the place of the arm, decisions made at once
    _source: Any = None

    def __new__(
        cls, id: str, arm: Label, probability: float | None = None, batch: Batch | None = None
    ) -> Decision:
        """A decision whose probability is known, or not."""
        self = super().__new__(cls, id, arm)
        self._probability, self.batch = probability, batch
        return self

    @property
    def probability(self) -> float | None:
        """The probability with which the player chose this arm; of a batch, that the arm is in it.

        It is worked out when it is asked for, which must be before the player learns something new: after an `update`
        it is an error. ``Player(propensities=True)`` works it out with every decision, so that it is known ever after;
        ``propensities=False`` never: then it is None.
        """
        if self._probability is None and self._source is not None:
            state, version, t, place, size = self._source
            if state.version != version:
                raise UserError(
                    "the player has learned since this decision: ask for its probability before the next update, "
                    "or make the player with propensities=True"
                )
            alone = size == 1
            self._probability = (
                state.probability(t, place) if alone else inclusion_probability(state, t, size, place)
            )
        return self._probability

    def __str__(self) -> str:
        """Arm, probability where it can be told, id.

        >>> print(Decision("01a1", "red", 0.25))
        red, chosen with probability 0.25 (decision 01a1)
        """
        chance = self.compute_probability()
        how = "" if chance is None else f", chosen with probability {chance:.3g}"
        return f"{self.arm}{how} (decision {self.id})"

    def compute_probability(self) -> float | None:
        """The probability, worked out now; None if it is too late, turned off, not known, or takes too long."""
        try:
            return self.probability
        except UserError:
            return None

    def work_out(self, propensities: bool | None) -> tuple[float | None, bytes, int]:
        """The probability, and of a decision by itself the law of its draw and its epoch, as an event has them.

        Nothing is worked out later.
        """
        probability, source = self.compute_probability(), self._source
        self._source = None
        if probability is None or probability >= 1.0 or source is None:
            return probability, b"", 0
        state, version, t, _, size = source
        if state.version != version or size > 1:
            return probability, b"", 0
        law = state.law(t, propensities)
        return probability, law, state.bets.epoch if law else 0

    def join(self, batch: Batch) -> None:
        """Become one of several decisions made at once, before the probability is asked for."""
        self.batch = batch
        if self._source is not None:
            self._source = *self._source[:4], batch.size

    def __reduce__(self) -> Any:
        return type(self), (self.id, self.arm, self._probability, self.batch)


class Player:
    """A policy that an application asks what to try and tells what came of it.

    Parameters
    ----------
    policy : Policy or str, optional
        Such as ``ABE(eta=1.0)`` or ``"ABE(eta=1.0)"``; `Evidence` unless given.
    n_arms : int, optional
        Number of arms, which are called 0, 1, ... Not needed where ``arms`` names them.
    arms : list of str or int, optional
        The names of the arms.
    graph : Graph, optional
        Only policies that must know the feedback graph need it; side observations are passed to `update` anyway.
    horizon : int, optional
        Number of decisions, for policies that are tuned to it.
    rewards : (float, float)
        The range of the rewards. Policies see them rescaled to [0, 1].
    expire : timedelta or float, optional
        Decisions without a reward expire after this time (a number: seconds). Without it they wait for ever (up to
        ``max_pending``). It is for rewards that got lost. Where silence is an answer, it is ``window`` that is wanted.
    window : timedelta or float, optional
        The attribution window: a conversion comes within this time, or silence counts as ``unrewarded``. Until then each
        decision counts by how much of its answer is in (`abex.policies.attribution`), so that early conversions are never
        counted without the silence beside them. For policies that learn by weighted observations alone: `Evidence` (which
        then does not look for changes), `Thompson`, the indices.
    conversions : {"first", "sum", "max"}
        Of several conversions within a window, what counts: the first one, their sum (within the range of ``rewards``), or the
        largest one. Each is reported under a key of its own.
    corrections : timedelta or float, optional
        How long after its first reward a decision can be corrected (`correct`), and is remembered for it. Unless given, as
        long as a window; without a window, not at all. It takes a policy that learns by weighted observations, as a window does.
    unrewarded : float or None
        The reward that an expired decision counts as; None forgets it without learning.
    seed : int, optional
        The same seed and the same rewards give the same arms. None draws one. Ids of decisions do not depend on it.
    propensities : bool, optional
        True works out the probability of every decision when it is made, False never. Unless given, it is so of up to 100 arms
        where that costs next to nothing (`Evidence`, `TopTwo`, ...); elsewhere `Decision.probability` is worked out when it is
        asked for.
    compiled : bool, optional
        Compile the policy: a few seconds once on a machine, half a second in later processes, and then 5 us of CPU for a
        decision with its reward. Unless given, a short trial when the player is made decides, where Numba is installed
        (the extra ``simulate``): what takes more than 8 us interpreted is compiled. Policies of your own are compiled when
        told to be, or beyond 1,000 arms. Decisions do not depend on it; a program that makes a few may say False.
    max_pending : int
        Decisions that may wait for their reward; beyond that the oldest is forgotten.
    clock : callable, optional
        Returns the time in seconds since 1970; `time.time` unless given. Ids and expiry look at it, what is chosen does not.

    Notes
    -----
    All methods may be called from several threads: each holds the player's lock while it works. Ids of decisions are unique
    across processes, restarts and players, and sorted by time; an id of another player, or of a decision that was made
    after the last save and lost with its process, is refused.

    A player in a forked process goes on as an independent one: with ids of its own, and with fresh random numbers, whatever the
    seed, since a server whose workers all try the same arms in the same order explores nothing. Decisions made before the
    fork are known to both; report each reward to one of them. `Player.open` gives one player to many processes instead.

    Examples
    --------
    >>> from abex import ABE, Player
    >>> player = Player(ABE(eta=1.0), arms=["red", "green", "blue"], seed=7)
    >>> arm = player.select()
    >>> player.update(arm, reward=True)
    True

    A reward that comes late, or twice:

    >>> decision = player.decide()
    >>> player.update(decision.id, reward=0.0), player.update(decision.id, reward=0.0)
    (True, False)
    """

    def __init__(
        self,
        policy: Policy[Any] | str | None = None,
        n_arms: int | None = None,
        *,
        arms: Iterable[Label] | None = None,
        graph: Any = None,
        horizon: int | None = None,
        rewards: tuple[float, float] = (0.0, 1.0),
        expire: timedelta | float | None = None,
        window: timedelta | float | None = None,
        conversions: str = "first",
        corrections: timedelta | float | None = None,
        unrewarded: float | None = 0.0,
        seed: int | None = None,
        propensities: bool | None = None,
        compiled: bool | None = None,
        max_pending: int = MOST_PENDING,
        clock: Callable[[], float] | None = None,
    ) -> None:
        settings = terms(rewards, expire, unrewarded, propensities, window, conversions, corrections)
        self._state = new_state(settings, policy, n_arms, arms, graph, horizon, compiled, max_pending)
        seed = (
            int.from_bytes(os.urandom(7), "little") if seed is None else whole_number("seed", seed, least=0)
        )
        self._begin(stream(seed, "player"), clock)

    _deciding = 0  # decisions that are not yet in the state

    def _begin(self, rng: np.random.Generator, clock: Callable[[], float] | None) -> None:
        """What every player has beside its state."""
        self._rng, self._clock = rng, clock
        self._life = Life()
        self._others = Life()  # gives ids to events that are no decisions
        self._lock = threading.RLock()
        forking.watch(self)

    @property
    def policy(self) -> Policy[Any]:
        """The policy that decides."""
        policy: Policy[Any] = self._state.policy
        return policy

    # -- deciding -------------------------------------------------------------------------------------

    @overload
    def select(self) -> Any: ...
    @overload
    def select(self, k: int) -> list[Any]: ...
    def select(self, k: int | None = None) -> Any:
        """The arm to try next, or a list of ``k`` different arms to try at once."""
        if k is None:
            return self.decide().arm
        return [decision.arm for decision in self.decide_many(k)]

    def decide(self, unit: str | None = None) -> Decision:
        """The arm to try next, with an id under which its reward can be reported later.

        Parameters
        ----------
        unit : str, optional
            For whom, such as a visitor: the same decision is given again until it is rewarded, expires or is forgotten.

        Returns
        -------
        Decision
            With ``id``, ``arm``, and the ``probability`` of this choice.

        Examples
        --------
        >>> player = Player("UCB1", arms=["red", "green"], seed=1)
        >>> first = player.decide(unit="ann")
        >>> player.decide(unit="ann") == first, player.update(first, True), player.decide(unit="ann") == first
        (True, True, False)
        """
        with self._lock:
            self._catch_up()
            if unit is not None:
                standing = self._open_decision(checked_name("unit", unit))
                if standing is not None:
                    return standing
            t = self._steps + 1
            place, memory = self._state.draw(t, self._rng)
            event, decision = self._chosen(place, memory, t, t, self._state.works_out, unit)
            self._note(event, decision)
            return decision

    def waiting(self, unit: str) -> Decision | None:
        """The decision of a unit that waits for its reward; None if nothing was decided for it, or all has its reward.

        >>> player = Player(arms=["red", "green"], seed=0)
        >>> player.waiting("ann"), player.decide(unit="ann") == player.waiting("ann")
        (None, True)
        """
        with self._lock:
            self._catch_up()
            return self._open_decision(checked_name("unit", unit))

    def has_made(self, decision: str) -> bool:
        """Whether this player is known to have made the decision of an id, be it waiting or not."""
        with self._lock:
            return decision in self._state.pending or bool(self._state.pending.has_made(decision))

    def _open_decision(self, unit: str) -> Decision | None:
        """The decision for a unit that waits for its reward."""
        found = self._state.pending.open_decision(unit, None)
        return None if found is None else self._handed_out(found)

    def _handed_out(self, event: Decided) -> Decision:
        """A decision of before, as the application gets it."""
        return Decision(event.id, self._state.arms.label(event.arm), event.probability)

    def decide_many(self, k: int) -> list[Decision]:
        """``k`` decisions on different arms: each from the policy restricted to the arms not yet in the batch.

        The ``probability`` of each is that its arm is in the batch, and its ``batch`` is what a log needs beside it.
        """
        with self._lock:
            self._catch_up()
            state = self._state
            k = whole_number("k", k, least=1, most=state.n_arms)
            t, batch = self._steps + 1, self._batch_of(k)
            now = state.works_out
            if state.windows is not None and state.settings.propensities is None:
                now = True  # the first of them lets others grow older: then it is too late
            made = [
                self._chosen(place, memory, t + step, t, now, batch=batch)
                for step, (place, memory) in enumerate(self._drawn(t, k))
            ]
            for event, decision in made:
                self._note(event, decision)
            return [decision for _, decision in made]

    def _drawn(self, t: int, k: int) -> list[tuple[int, Any]]:
        """Places of ``k`` different arms, each with what the policy remembers of the choice."""
        state, rest, drawn = self._state, np.arange(self._state.n_arms), list[tuple[int, Any]]()
        for _ in range(k):
            drawn.append(state.draw_among(rest, t, self._rng) if drawn else state.draw(t, self._rng))
            rest = rest[rest != drawn[-1][0]]
        return drawn

    def _batch_of(self, k: int) -> Batch | None:
        """What ``k`` decisions made at once share; None for one by itself."""
        return Batch(self._others.next_id(self._moment()), k) if k > 1 else None

    def _chosen(
        self,
        place: int,
        memory: Any,
        step: int,
        drawn_at: int,
        now: bool,
        unit: str | None = None,
        key: str | None = None,
        batch: Batch | None = None,
        seen: int = 0,
    ) -> tuple[Decided, Decision]:
        """A choice as an event, and as the application gets it; its probability is worked out ``now``, or may be later."""
        state, life = self._state, self._life
        name = life.next_id(self._moment())
        number = state.arms.number_at(place)
        decision: Decision = _new_decision(Decision, (name, state.arms.label(number)))
        found: Any = None, b"", 0
        wanted = state.settings.propensities
        if wanted is not False:
            decision._source = state, state.version, drawn_at, place, 1
            if batch is not None:
                decision.join(batch)
            if now:
                found = decision.work_out(wanted)
        elif batch is not None:
            decision.batch = batch
        probability, law, epoch = found
        event = Decided(
            name, life.latest, number, step, memory, probability, seen, None, unit, key, batch, law, epoch
        )
        return event, decision

    def probabilities(self, k: int = 1) -> NDArray[np.float64]:
        """The probability of each arm at the next decision, or of being among ``k`` made at once, in the order of `arms`."""
        with self._lock:
            self._catch_up()
            k = whole_number("k", k, least=1, most=self._state.n_arms)
            return inclusion_probabilities(self._state, self._steps + 1, k)

    def observation_probabilities(self) -> NDArray[np.float64]:
        """The probability that each arm is observed with the next decision: that one is chosen which reveals it.

        Without a graph that is `probabilities`.
        """
        with self._lock:
            self._catch_up()
            return self._state.observation_probabilities(self._steps + 1)

    # -- learning -------------------------------------------------------------------------------------

    def update(
        self,
        decision: Label | Decision,
        reward: float,
        also: Mapping[Any, float] | None = None,
        key: str | None = None,
    ) -> bool:
        """Learn a reward within the range of the player's rewards.

        Parameters
        ----------
        decision : int, str or Decision
            The arm that was tried, or the decision (or its id) whose reward this is. An arm is taken for its latest
            decision that waits for a reward; without one, for something tried outside the player, which is a step of the
            policy's life like a decision: its clock moves, and what it forgets ages.
        reward : float or bool
            What it paid; True is 1.
        also : dict, optional
            Side observations: what other arms paid at the same time.
        key : str, optional
            Of this conversion, such as an order's number, where a decision may have several (``conversions``): it counts once
            under its key. With an arm, it is of something tried outside the player, whatever decisions wait, and counts once.

        Returns
        -------
        bool
            False, with nothing learned, if that decision has had its reward (or has expired, or is forgotten); else True.
            What comes after the window, or after `expire`, is counted among ``late`` in the summary's caption.
            An id that this player never gave raises an error, be it of another player or of a decision that was
            made after the save from which this one was loaded.
        """
        with self._lock:
            self._catch_up()
            event = self._checked(decision, reward, also, key)
            return self._state.apply(event, self._rng) is True

    def update_many(self, rewards: Iterable[Any]) -> int:
        """Learn several rewards, ``(decision, reward)``, with ``also`` and ``key`` behind it if wanted; all are checked first.

        Returns how many were new.
        """
        return sum(self._learned([_entry(one) for one in rewards]))

    def correct(self, decision: str | Decision, reward: float, key: str | None = None) -> bool:
        """Say what a decision really paid: an order that was sent back has paid nothing, half an order half.

        Parameters
        ----------
        decision : str or Decision
            The decision, or its id.
        reward : float or bool
            What it paid in all; with a ``key``, what the conversion paid that was reported under it.
        key : str, optional
            Of one of several conversions.

        Returns
        -------
        bool
            False if that was known, or its time is over (``corrections``); else True: the difference has been learned, and the
            state is, but for rounding, as if the right reward had been reported at once. (Evidence remembers the least and the
            largest reward that it has seen; where Thompson tosses a coin for a fraction, it is tossed anew.)

        Examples
        --------
        >>> player = Player("UCB1", arms=["red", "green"], window=3600, seed=1)
        >>> sold = player.decide()
        >>> player.update(sold, 1.0), player.correct(sold, 0.0), player.correct(sold, 0.0)
        (True, True, False)
        """
        return self._learned([(decision, reward, None, key, True)])[0]

    def _learned(self, rewards: list[tuple[Any, ...]]) -> list[bool]:
        """Learn rewards or corrections; returns whether each was new."""
        with self._lock:
            self._catch_up()
            events = [self._checked(*one) for one in rewards]
        return [outcome is True for outcome in self._happen(events)]

    def _checked(
        self, decision: Any, reward: Any, also: Any = None, key: Any = None, corrects: bool = False
    ) -> Rewarded:
        """The event of a reward, or an error; nothing changes."""
        if key is not None:
            checked_name("a key", key)
        if corrects and self.settings.kept is None:
            raise UserError(
                "the rewards of this player are final: make it with corrections=timedelta(days=30), or with a window"
            )
        state = self._state
        value = state.settings.scaled(reward)
        name, number = decision.id if isinstance(decision, Decision) else decision, None
        if type(name) is str and (pending := state.pending.get(name)) is not None:
            about: int | None = pending.arm
        elif isinstance(name, str) and is_id(name):
            about = self._arm_of(name)
        else:
            if corrects:
                raise UserError(f"what is corrected must be a decision or its id, got {shown(name)}")
            try:
                number = about = state.arms.number(name)
            except UserError as error:
                raise UserError(f"{error}; nor is it the id of a decision") from None
            name = None
        side = {}
        if also is not None:
            side = self._checked_side(also)
            if about in side:
                raise UserError(
                    f"arm {state.arms.label(about)!r} is both the arm tried and a side observation"
                )
        event_id, moment = self._event_id()
        return Rewarded(event_id, moment, name, number, value, side, key, corrects)

    def _checked_side(self, also: Any) -> dict[int, float]:
        """Side observations by the numbers of the arms."""
        if not isinstance(also, Mapping):
            raise UserError(f"also must be a dict of arms and what they paid, got {shown(also)}")
        arms, scaled = self._state.arms, self._state.settings.scaled
        return {arms.number(label): scaled(paid) for label, paid in also.items()}

    def _arm_of(self, name: str) -> int | None:
        """The number of the arm of a waiting decision; None if it waits no more, an error if it was never made."""
        pending = self._state.pending.get(name)
        if pending is not None:
            return pending.arm
        made = self._state.pending.has_made(name)
        if not made:
            why = (
                "another one made it, or one that was lost before it was saved"
                if made is None
                else "it was made after the save or copy from which this player goes on"
            )
            raise UnknownDecisionError(f"decision {shown(name)} was never made by this player: {why}", name)
        return None

    # -- arms that come and go ------------------------------------------------------------------------

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return self._state.n_arms

    @property
    def arms(self) -> list[Any]:
        """The names of the arms; numbers ascend, names of yours stand in the order in which the arms came."""
        with self._lock:
            return self._state.arms.all_labels()

    @property
    def next_arm(self) -> int | None:
        """The number of the next arm, or None where arms have names."""
        arms = self._state.arms
        return arms.next_number if arms.labels is None else None

    def add_arm(self, name: Label | None = None) -> Any:
        """Add an arm never seen and return its name; numbered arms get the next number, which may be given."""
        with self._lock:
            self._catch_up()
            self._state.check_resize()
            event = ArmAdded(*self._event_id(), self._state.arms.check_new(name))
        number = self._change(event)
        return number if event.label is None else event.label

    def remove_arm(self, name: Label) -> None:
        """Remove an arm for ever; its decisions that wait for a reward are forgotten."""
        with self._lock:
            self._catch_up()
            number = self._state.arms.number(name)
            self._state.check_remove(number)
            event = ArmRemoved(*self._event_id(), number)
        self._change(event)

    def rename_arm(self, name: Label, new: Label) -> None:
        """Call an arm something else; what is known of it stays, as do its waiting decisions."""
        with self._lock:
            self._catch_up()
            number, label = self._state.arms.number(name), label_of(new)
            if self._state.arms.knows(label) and self._state.arms.number(label) != number:
                raise UserError(f"there is an arm {label!r} already")
            event = ArmRenamed(*self._event_id(), number, label)
        self._change(event)

    def _change(self, event: Event) -> Any:
        (outcome,) = self._happen([event])
        if isinstance(outcome, UserError):
            raise outcome
        return outcome

    # -- what happens ---------------------------------------------------------------------------------

    @property
    def _steps(self) -> int:
        """Steps of the policy's life so far, decisions on their way to a journal included."""
        return self._state.steps + self._deciding

    def _moment(self) -> int | None:
        """Milliseconds since 1970 by the clock that was given."""
        if self._clock is None:
            return None
        now = self._clock()
        if not isinstance(now, int | float | np.number) or not 0.0 <= now < LATEST:
            raise UserError(f"clock must return the seconds since 1970, as time.time does, got {shown(now)}")
        return int(now * 1000.0)

    def _event_id(self) -> tuple[str, int]:
        """Id and moment of an event that is no decision; nobody asks for its id unless it goes into a journal."""
        moment = self._moment()
        return "", time.time_ns() // 1_000_000 if moment is None else moment

    def _note(self, event: Decided, decision: Decision) -> None:
        """A decision was made."""
        self._state.apply(event, self._rng)

    def _happen(self, events: list[Any]) -> list[Any]:
        """Let events happen; returns what came of each."""
        with self._lock:
            return [self._state.apply(event, self._rng) for event in events]

    def _catch_up(self) -> None:
        """Before anything else: decisions grow older, those whose time is over expire, and rewards become final."""
        state = self._state
        if not state.is_timed:
            return
        state.settle()
        end = state.over_at()
        if end is not None:
            name, moment = self._event_id()
            if end <= moment:
                self._happen([Expired(name, moment, max(0, moment - (state.settings.expire or 0)))])

    # -- looking and keeping --------------------------------------------------------------------------

    @property
    def settings(self) -> PlayerSettings:
        """The range of the rewards, and when a decision expires."""
        return self._state.settings

    @contextmanager
    def reading(self) -> Iterator[PlayerState]:
        """The state, for who looks at several things at once: nothing changes within the block."""
        with self._lock:
            yield self._state

    def report(self) -> dict[str, float]:
        """What the policy has to say about itself; ABE: the exploration slots it has used."""
        with self._lock:
            return self.policy.report(self._state.state)

    def winner(
        self, risk: float = 0.05, at_least: float | None = None, control: Label | None = None
    ) -> Winner:
        """Which arm is the best, wrong in at most ``risk`` of such experiments however often one asks; or what is missing.

        Parameters
        ----------
        risk : float
            At most this share of such experiments names a wrong winner, and leaves an interval.
        at_least : float, optional
            The difference of rewards that matters: where no arm can be better than the leader by so much, one may stop too.
        control : str or int, optional
            The arm that lifts are against.

        Returns
        -------
        Winner
            It prints as a sentence; `Winner.table` shows the arms.

        Notes
        -----
        It bets on the probabilities with which decisions were drawn (`abex.inference.betting`), which holds though levels move
        together. They are known of every decision with ``propensities=True``, of policies whose probabilities cost nothing to
        work out (`Evidence`, `TopTwo`, `EpsilonGreedy`, all that draw from them), and of shared players, where a policy has
        them; of more than 100 arms only with ``propensities=True``, of more than 1,000 never. Elsewhere, and for policies that
        draw nothing, it goes by sums of rewards, assuming that no level moves; the sentence says so.

        Batches are counted and not bet on, as are side observations and arms tried elsewhere. Where decisions expire, rewards
        count in the order of the decisions, up to the first that is open. Where they may change (``corrections``, several
        ``conversions``) they count when they can change no more.

        Examples
        --------
        >>> player = Player("TopTwo", arms=["red", "blue"], seed=0)
        >>> for _ in range(60):
        ...     decision = player.decide()
        ...     _ = player.update(decision, decision.arm == "blue")
        >>> print(player.winner())
        blue is best (wrong in at most 5 % of such experiments)
        """
        with self._lock:
            self._catch_up()
            return winner_of(self._state, risk, at_least, control)

    def summary(self) -> Summary:
        """A table of the arms: pulls, observations, mean with interval, probability now, share of the last 1,000 decisions.

        Returns
        -------
        Summary
            A tuple with one `ArmSummary` for each arm; it prints as a table, in a notebook too, and has a ``frame()``.

        Examples
        --------
        >>> from abex import EpsilonGreedy, Player
        >>> player = Player(EpsilonGreedy(epsilon=0.1), arms=["red", "green"], seed=1)
        >>> player.update_many([("red", 1), ("green", 0), ("red", 1)])
        3
        >>> print(player.summary())
        EpsilonGreedy, 2 arms, 0 decisions, 0 rewarded, 0 waiting, 0 expired
        arm    pulls  observations   mean        interval  probability  recent share
        red        0             2  1.000  0.047 to 1.000       95.0 %             -
        green      0             1  0.000  0.000 to 1.000        5.0 %             -
        """
        with self._lock:
            self._catch_up()
            state, tallies = self._state, self._state.tallies
            found = summarise(state)
            open_now = f"{len(state.pending):,} waiting"
            if state.windows is not None:
                open_now = f"{sum(one.pending or 0 for one in found):,} pending"
            found.caption = (
                f"{self.policy}, {state.n_arms:,} arms, {state.decisions:,} decision{'s' * (state.decisions != 1)}, "
                f"{tallies.rewarded:,} rewarded, {open_now}, {tallies.expired:,} expired"
            )
            more = {"late": tallies.late, "corrected": tallies.corrected}
            found.caption += "".join(f", {count:,} {name}" for name, count in more.items() if count)
            return found

    def _repr_html_(self) -> str:
        """The table of the arms, for notebooks; of very many arms one line, since each of them would be looked at."""
        return self.summary()._repr_html_() if self.n_arms <= MOST_IN_TABLE else html.escape(repr(self))

    def pending(self) -> list[Decision]:
        """The decisions that wait for a reward, oldest first."""
        with self._lock:
            self._catch_up()
            return [self._handed_out(event) for event in self._state.pending.values()]

    def copy(self) -> Player:
        """An independent player in the same state, with the same random numbers ahead.

        Both know the decisions made so far, each gives its next ones ids of its own. `copy.copy` and `copy.deepcopy` do the same.
        """
        import copy

        with self._lock:
            twin = Player.__new__(Player)
            twin._state = self._state.copy()
            twin._begin(copy.deepcopy(self._rng), self._clock)
            return twin

    def __copy__(self) -> Player:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Player:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle holds the text of a saved player, which is checked when it is read."""
        from abex.players.player_file import player_text

        with self._lock:
            return _unpickled, (self.policy, player_text(self), self._state.compiled)

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything, random state and waiting decisions included, to a JSON file; atomic."""
        from abex.players.player_file import player_text

        with self._lock:
            write_atomically(path, player_text(self).encode())

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        *,
        compiled: bool | None = None,
        clock: Callable[[], float] | None = None,
    ) -> Player:
        """A player that goes on exactly where `save` left off, with ids of its own for what it decides from now on.

        Everything in the file is checked before it is played, and nothing in it is executed: the module that defines a policy of
        yours must be imported before, and runs interpreted, which looks at every index, unless ``compiled`` says that you trust
        the file.
        """
        from abex.players.player_file import read_player

        return read_player(read_text(path, "player"), f"the player {str(path)!r}", compiled, clock)

    @classmethod
    def open(
        cls,
        url: str,
        name: str,
        policy: Policy[Any] | str | None = None,
        n_arms: int | None = None,
        *,
        arms: Iterable[Label] | None = None,
        graph: Any = None,
        horizon: int | None = None,
        rewards: tuple[float, float] = (0.0, 1.0),
        expire: timedelta | float | None = None,
        window: timedelta | float | None = None,
        conversions: str = "first",
        corrections: timedelta | float | None = None,
        unrewarded: float | None = 0.0,
        seed: int | None = None,
        propensities: bool | None = None,
        compiled: bool | None = None,
        max_pending: int = MOST_PENDING,
        clock: Callable[[], float] | None = None,
        on_new_arms: str = "refuse",
        on_missing_arms: str = "refuse",
        deadline: float = 2.0,
        freshness: float = 0.05,
        snapshot_every: int = 10_000,
    ) -> SharedPlayer:
        """The player ``name`` of a store, which many processes may share; it is made if there is none.

        Parameters
        ----------
        url : str
            ``sqlite:///shop.db`` (a file, all processes on one machine) or ``postgresql://user:password@host/database``.
        name : str
            Of the player; a store may hold many.
        policy, n_arms, arms, graph, horizon, rewards, expire, window, conversions, corrections, unrewarded, max_pending
            As for `Player`. A new player needs its arms at least; for one that is there what is given must agree with it.
        seed : int, optional
            Of this process's random numbers. Unless given they are fresh ones in every process.
        propensities : bool, optional
            False leaves the probabilities of decisions out of the journal.
        compiled, clock
            As for `Player`.
        on_new_arms : {"refuse", "add"}
            What to do about arms that are given and that the player, which is there, does not have. A deploy with one banner
            more is ``"add"``: processes that start at the same time add it once.
        on_missing_arms : {"refuse", "keep", "retire"}
            What to do about arms that the player has and that are not given: ``"retire"`` removes them.
        deadline, freshness, snapshot_every
            As for `Store.open`.

        Returns
        -------
        SharedPlayer
            A `Player` with `refresh`, `flush`, `log`, `compact` and `close` besides.

        Examples
        --------
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> url = f"sqlite:///{folder.name}/shop.db"
        >>> with Player.open(url, "banner", "Thompson", arms=["red", "green"]) as player:
        ...     decision = player.decide()
        ...     player.update(decision, True)
        True
        >>> with Player.open(url, "banner") as again:
        ...     again.update(decision.id, True), again.arms
        (False, ['red', 'green'])
        """
        from abex.players.store import Store, wanted_player

        wanted = wanted_player(
            policy, n_arms, arms=arms, graph=graph, horizon=horizon, rewards=rewards, expire=expire,
            window=window, conversions=conversions, corrections=corrections, unrewarded=unrewarded,
            propensities=propensities, max_pending=max_pending,
            on_new_arms=on_new_arms, on_missing_arms=on_missing_arms,
        )  # fmt: skip
        store = Store.open(url, deadline=deadline, freshness=freshness, snapshot_every=snapshot_every)
        try:
            player = store.follow(name, wanted, seed, compiled, clock)
        except BaseException:
            store.close()
            raise
        player.ends_store = True
        return player

    def _locks(self) -> list[Any]:
        """What must be held while the process forks."""
        return [self._lock]

    def _after_fork(self) -> None:
        """In the child: a lock that nobody holds, ids of its own, and other random numbers than its parent and siblings."""
        self._lock = threading.RLock()
        self._life, self._others = Life(), Life()
        self._rng = stream(int.from_bytes(os.urandom(16), "little"), "player")

    def __repr__(self) -> str:
        return f"<Player of {self.policy} with {self.n_arms} arms after {self._state.decisions} decisions>"

    def __str__(self) -> str:
        """The summary: arms and means."""
        return str(self.summary())


_new_decision = tuple.__new__  # what `Decision` does with its arguments costs more than the decision


def _unpickled(policy: Policy[Any], text: str, compiled: bool) -> Player:
    """The player of a pickle. Its policy stands in it for the module that defines it to be imported."""
    from abex.players.player_file import read_player

    return read_player(text, "the pickled player", compiled)


def _entry(one: Any) -> tuple[Any, ...]:
    """A reward as it is passed to `Player.update_many`."""
    if not isinstance(one, tuple | list) or not 2 <= len(one) <= 4:
        raise UserError(
            f"a reward must be (decision, reward), with also and key behind it if wanted, got {shown(one)}"
        )
    return tuple(one)
