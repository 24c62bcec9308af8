"""A policy driven by hand, inside an application."""

from __future__ import annotations

import copy
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from operator import index
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.errors import UserError, real_number, shown, true_or_false, whole_number
from abex.graphs.graph import as_graph
from abex.kernels import compiled, fast
from abex.policies.base import MOST_ARMS, NO_SUCH_ARM, Kernels, Policy, Setting, arms_exist, as_policy
from abex.policies.decision_ids import Life, life_and_number
from abex.randomness import stream
from abex.samplers.softmax import pick

MOST_PENDING = 100_000
MANY_ARMS = 5_000  # beyond, compiling pays for itself at the first decision
MOST_STEPS = 10**18
MOST_LIVES = 1_000  # earlier lives whose decisions are still told from those of other players
CAREFUL_STEPS = 64  # first calls of a loaded policy of another package that run with bounds checks


class Decision(NamedTuple):
    """A choice that waits for its reward."""

    id: str
    arm: int


class Pending(NamedTuple):
    """What the player keeps of a decision: its step, the name of its arm, and the state fields that belong to it."""

    t: int
    arm: int
    memory: tuple[NDArray[Any], ...]


@cache
def compiled_kernels(kernels: Kernels) -> Kernels:
    """Both kernels, compiled to be called from Python."""
    select, update = kernels

    @compiled(select)
    def run_select(state: Any, t: int, rng: Any) -> int:
        return select(state, t, rng)  # type: ignore[no-any-return]

    @compiled(update)
    def run_update(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        update(state, t, arm, seen, reward, rng)

    return Kernels(run_select, run_update)


class Player:
    """A policy that an application asks what to try and tells what came of it.

    Parameters
    ----------
    policy : Policy or str
        Such as ``ABE(eta=1.0)`` or ``"ABE(eta=1.0)"``.
    n_arms : int
        Number of arms; they are called 0, 1, ...
    graph : Graph, optional
        Only policies that must know the feedback graph need it; side observations are passed to `update` anyway.
    horizon : int, optional
        Number of decisions, for policies that are tuned to it.
    seed : int, optional
        The same seed and the same rewards give the same arms. None draws one. Ids of decisions do not depend on it.
    compiled : bool, optional
        Compile the policy: a few seconds once, then faster from about a hundred arms on. Unless given, it is compiled beyond
        5,000 arms. Decisions do not depend on it.
    max_pending : int
        Decisions that may wait for their reward; beyond that the oldest is forgotten.

    Notes
    -----
    All methods may be called from several threads: each holds the player's lock while it works. Ids of decisions are unique
    across processes, restarts and players, and sorted by time; an id of another player, or of a decision that was made
    after the last save and lost with its process, is refused.

    A player in a forked process goes on as an independent one: with ids of its own, and with fresh random numbers, whatever the
    seed, since a server whose workers all try the same arms in the same order explores nothing. Decisions made before the
    fork are known to both; report each reward to one of them.

    Examples
    --------
    >>> from abex import ABE, Player
    >>> player = Player(ABE(eta=1.0), n_arms=3, seed=7)
    >>> arm = player.select()
    >>> player.update(arm, reward=1.0)
    True

    A reward that comes late, or twice:

    >>> decision = player.decide()
    >>> player.update(decision.id, reward=0.0), player.update(decision.id, reward=0.0)
    (True, False)
    """

    def __init__(
        self,
        policy: Policy[Any] | str,
        n_arms: int,
        *,
        graph: Any = None,
        horizon: int | None = None,
        seed: int | None = None,
        compiled: bool | None = None,
        max_pending: int = MOST_PENDING,
    ) -> None:
        self.policy = as_policy(policy)
        n_arms = whole_number("n_arms", n_arms, least=1, most=MOST_ARMS)
        if horizon is not None:
            horizon = whole_number("horizon", horizon, least=1, most=MOST_STEPS)
        if graph is not None and as_graph(graph).n_arms != n_arms:
            raise UserError(f"the graph has {graph.n_arms} nodes but the player has {n_arms} arms")
        self._setting = Setting(n_arms, horizon, None if graph is None else graph.feedback(np.uint64(0)))
        self._state: Any = self.policy.start(self._setting)
        self._compiled = n_arms > MANY_ARMS if compiled is None else true_or_false("compiled", compiled)
        self._max_pending = whole_number("max_pending", max_pending, least=1)
        seed = (
            int.from_bytes(os.urandom(7), "little") if seed is None else whole_number("seed", seed, least=0)
        )
        self._rng = stream(seed, "player")
        self._life = Life()
        self._earlier: dict[str, int] = {}  # decisions that each earlier life has made
        self._steps = 0  # decisions made
        self._pending: OrderedDict[str, Pending] = OrderedDict()  # by id, in the order of the decisions
        self._waiting: dict[int, OrderedDict[str, None]] = {}  # ids in `_pending` by the name of their arm
        self._names = np.arange(n_arms)  # public name of each arm; names are never used again
        self._next_name = n_arms
        self._careful = 0  # calls of the policy that are still to run interpreted, with bounds checks
        self._lock = threading.RLock()
        _players.add(self)

    # -- deciding -------------------------------------------------------------------------------------

    def select(self, k: int | None = None) -> Any:
        """The arm to try next, or a list of ``k`` different arms to try at once."""
        if k is None:
            return self.decide().arm
        return [decision.arm for decision in self.decide_many(k)]

    def decide(self) -> Decision:
        """The arm to try next, with an id under which its reward can be reported later."""
        with self._lock, self._quiet(), arms_exist(self.policy, self.n_arms), self._carefully():
            arm = self._kernels(self._setting).select(self._state, self._steps + 1, self._rng)
            return self._record(self._there(arm))

    def decide_many(self, k: int) -> list[Decision]:
        """``k`` decisions on different arms: each from the policy restricted to the arms not yet in the batch."""
        with self._lock:
            k = whole_number("k", k, least=1, most=self.n_arms)
            decisions = [self.decide()]
            rest = np.arange(self.n_arms)
            while len(decisions) < k:
                rest = rest[self._names[rest] != decisions[-1].arm]
                decisions.append(self._record(self._restricted(rest)))
            return decisions

    def _restricted(self, rest: NDArray[np.int64]) -> int:
        """An arm among ``rest``, as the policy would choose if there were no others."""
        t = self._steps + 1
        law = np.zeros(self.n_arms)
        if self.policy.probabilities is not None:
            law[rest] = self._chances(t)[rest]
        if not law.any() and self.policy.resizable and not self.policy.needs_graph:
            smaller = self._setting._replace(n_arms=int(rest.size))
            state = self.policy.with_arms(self._state, smaller, rest)
            return int(rest[self._kernels(smaller).select(state, t, self._rng)])
        if not law.any():
            law[rest] = 1.0
        law /= law.sum()
        arm = int(self._made(pick)(law, 1.0, self._rng))
        self._weigh_by(law, arm)
        return arm

    def _weigh_by(self, law: NDArray[np.float64], arm: int) -> None:
        """The next reward is weighed by the law that really chose the arm, where the policy does that."""
        if "chances" not in self.policy.remembers:
            return
        chances = self._state.chances
        if chances.size == law.size:
            np.copyto(chances, law, where=law > 0.0)
        else:  # a policy for many arms keeps the chosen arm's probability alone
            chances[0] = law[arm]
            arm = 0
        if chances[arm] <= 0.0:
            chances[arm] = 1.0  # tried elsewhere, where the policy never would: there is nothing to weigh by

    def _there(self, arm: Any) -> int:
        """The arm a policy selected, if there is such a one."""
        try:
            number = index(arm)
        except TypeError:
            raise IndexError(NO_SUCH_ARM) from None
        if not 0 <= number < self.n_arms:
            raise IndexError(NO_SUCH_ARM)
        return number

    def _record(self, arm: int) -> Decision:
        memory = tuple(getattr(self._state, name).copy() for name in self.policy.remembers)
        if self._life.is_full:
            self._begin_life()
        decision = Decision(self._life.next_id(), int(self._names[arm]))
        self._steps += 1
        self._await(decision, Pending(self._steps, decision.arm, memory))
        if len(self._pending) > self._max_pending:
            self._forget(next(iter(self._pending)))
        return decision

    def _await(self, decision: Decision, pending: Pending) -> None:
        self._pending[decision.id] = pending
        self._waiting.setdefault(decision.arm, OrderedDict())[decision.id] = None

    def _forget(self, name: str) -> Pending:
        """A decision waits no more."""
        pending = self._pending.pop(name)
        waiting = self._waiting[pending.arm]
        del waiting[name]
        if not waiting:
            del self._waiting[pending.arm]
        return pending

    def _begin_life(self) -> None:
        """Decisions from now on are told from those made so far, here or in a process that shares the past."""
        self._earlier = self._lives()
        self._life = Life()

    def _lives(self) -> dict[str, int]:
        """The decisions of each life, the present one last; of very many, old ones that nothing waits for are left out."""
        lives = dict(self._earlier)
        if self._life.made:
            lives[self._life.name] = self._life.made
        if len(lives) > MOST_LIVES:
            needed = {(life_and_number(name) or ("",))[0] for name in self._pending}
            needed.update(list(lives)[-MOST_LIVES:])
            lives = {name: made for name, made in lives.items() if name in needed}
        return lives

    def probabilities(self) -> NDArray[np.float64]:
        """The probability of each arm at the next decision, in the order of `arms`."""
        with self._lock:
            if self.policy.probabilities is None:
                raise UserError(f"{self.policy} has no closed form for its probabilities")
            return self._chances(self._steps + 1)

    def _chances(self, t: int) -> NDArray[np.float64]:
        out = np.zeros(self.n_arms)
        with self._quiet(), self._carefully():
            self._made(type(self.policy).probabilities)(self._state, t, out)
        return out

    # -- learning -------------------------------------------------------------------------------------

    def update(
        self, decision: int | str | Decision, reward: float, also: Mapping[int, float] | None = None
    ) -> bool:
        """Learn a reward in [0, 1].

        Parameters
        ----------
        decision : int, str or Decision
            The arm that was tried, or the decision (or its id) whose reward this is. An arm is taken for its latest
            decision that waits for a reward; without one, for something tried outside the player.
        reward : float or bool
            What it paid; True is 1.
        also : dict, optional
            Side observations: what other arms paid at the same time.

        Returns
        -------
        bool
            False, with nothing learned, if that decision has had its reward (or is forgotten); else True.
            An id that this player never gave raises an error, be it of another player or of a decision that was
            made after the save from which this one was loaded.
        """
        return self.update_many([(decision, reward)] if also is None else [(decision, reward, also)]) == 1

    def update_many(self, rewards: Iterable[Any]) -> int:
        """Learn several rewards, ``(decision, reward)`` or ``(decision, reward, also)``; all are checked before any is learned.

        Returns how many were new.
        """
        with self._lock:
            checked = [self._checked(*_entry(one)) for one in rewards]
            learned = 0
            for name, arm, reward, also in checked:
                if name is None:  # an arm: its latest decision that is still waiting
                    waiting = self._waiting.get(int(self._names[arm]))
                    name = next(reversed(waiting)) if waiting else None
                elif name not in self._pending:
                    continue
                self._learn(name, arm, reward, also)
                learned += 1
            return learned

    def _checked(
        self, decision: Any, reward: Any, also: Any = None
    ) -> tuple[str | None, int, float, dict[int, float]]:
        """(id of the decision, inner arm, reward, side observations), or an error; nothing changes."""
        reward = _reward(reward)
        name: str | None = None
        if isinstance(decision, Decision):
            decision = decision.id
        if isinstance(decision, str):
            name = decision
            pending = self._pending.get(name)
            if pending is None:
                self._refuse_unless_made(name)
            arm = -1 if pending is None else self._inner(pending.arm)
        else:
            arm = self._inner(decision)
        if also is not None and not isinstance(also, Mapping):
            raise UserError(f"also must be a dict of arms and what they paid, got {shown(also)}")
        side = {self._inner(k): _reward(r) for k, r in (also or {}).items()}
        if arm in side:
            raise UserError(f"arm {int(self._names[arm])} is both the arm tried and a side observation")
        return name, arm, reward, side

    def _refuse_unless_made(self, name: str) -> None:
        """An error unless ``name`` is the id of a decision that had its reward or was forgotten."""
        life, number = life_and_number(name) or ("", 0)
        made = self._life.made if life == self._life.name else self._earlier.get(life)
        if made is None:
            raise UserError(
                f"decision {shown(name)} was never made by this player: "
                "another one made it, or one that was lost before it was saved"
            )
        if not 1 <= number <= made:
            raise UserError(
                f"decision {shown(name)} was never made by this player: "
                "it was made after the save or copy from which this player goes on"
            )

    def _learn(self, name: str | None, arm: int, reward: float, also: dict[int, float]) -> None:
        t = max(self._steps, 1)
        if name is not None:
            pending = self._forget(name)
            t = pending.t
            for field, value in zip(self.policy.remembers, pending.memory, strict=True):
                getattr(self._state, field)[:] = value
        elif self.policy.probabilities is not None and "chances" in self.policy.remembers:
            self._weigh_by(self._chances(self._steps + 1), arm)  # tried elsewhere: as if it were tried now
        with self._quiet(), self._carefully():
            update = self._kernels(self._setting).update
            for other, seen in also.items():
                update(self._state, t, arm, other, seen, self._rng)
            update(self._state, t, arm, arm, reward, self._rng)

    def _inner(self, arm: Any) -> int:
        name = whole_number("arm", arm, least=0)
        inner = name if self._next_name == self._names.size else int(np.searchsorted(self._names, name))
        if inner >= self._names.size or self._names[inner] != name:
            raise UserError(f"there is no arm {arm!r}: arms are {_span(self._names)}")
        return inner

    # -- arms that come and go ------------------------------------------------------------------------

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return self._setting.n_arms

    @property
    def arms(self) -> list[int]:
        """The names of the arms, ascending."""
        with self._lock:
            return [int(name) for name in self._names]

    def add_arm(self) -> int:
        """Add an arm never seen and return its name."""
        with self._lock:
            self._resize(np.arange(self.n_arms), self.n_arms + 1)
            self._names = np.append(self._names, self._next_name)
            self._next_name += 1
            return self._next_name - 1

    def remove_arm(self, arm: int) -> None:
        """Remove an arm for ever; its decisions that wait for a reward are forgotten."""
        with self._lock:
            gone = self._inner(arm)
            if self.n_arms == 1:
                raise UserError(f"arm {arm} is the last one and cannot be removed")
            removed = int(self._names[gone])
            keep = np.delete(np.arange(self.n_arms), gone)
            self._resize(keep, self.n_arms - 1)
            self._names = self._names[keep]
            for name in list(self._waiting.get(removed, ())):
                self._forget(name)

    def _resize(self, keep: NDArray[np.int64], n_arms: int) -> None:
        if self._setting.graph is not None:
            raise UserError("arms cannot be added or removed while a feedback graph is given")
        setting = self._setting._replace(n_arms=n_arms)
        self._state = self.policy.with_arms(self._state, setting, keep)
        self._setting = setting

    # -- looking and keeping --------------------------------------------------------------------------

    def report(self) -> dict[str, float]:
        """What the policy has to say about itself; ABE: the exploration slots it has used."""
        with self._lock:
            return self.policy.report(self._state)

    def pending(self) -> list[Decision]:
        """The decisions that wait for a reward, oldest first."""
        with self._lock:
            return [Decision(name, waiting.arm) for name, waiting in self._pending.items()]

    def copy(self) -> Player:
        """An independent player in the same state, with the same random numbers ahead.

        Both know the decisions made so far, each gives its next ones ids of its own. `copy.copy` and `copy.deepcopy` do the same.
        """
        with self._lock:
            twin = type(self).__new__(type(self))
            twin.__dict__.update(self.__dict__)
            twin._state = copy.deepcopy(self._state)
            twin._rng = copy.deepcopy(self._rng)
            twin._pending = OrderedDict(self._pending)
            twin._waiting = {arm: OrderedDict(names) for arm, names in self._waiting.items()}
            twin._names = self._names.copy()
            twin._earlier = dict(self._earlier)
            twin._begin_life()
            twin._lock = threading.RLock()
            _players.add(twin)
            return twin

    def __copy__(self) -> Player:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Player:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle holds the text of a saved player, which is checked when it is read."""
        from abex.policies.saving import player_text

        with self._lock:
            return _unpickled, (self.policy, player_text(self), self._compiled)

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything, random state and waiting decisions included, to a JSON file; atomic."""
        from abex.policies.saving import save_player

        with self._lock:
            save_player(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str], *, compiled: bool | None = None) -> Player:
        """A player that goes on exactly where `save` left off, with ids of its own for what it decides from now on.

        Everything in the file is checked before it is played, and nothing in it is executed: the module that defines a policy of
        yours must be imported before. The first steps of such a policy after loading run with bounds checks.
        """
        from abex.policies.saving import load_player

        return load_player(path, compiled)

    def _quiet(self) -> AbstractContextManager[Any]:
        """The 64-bit words that draw a random graph wrap around; interpreted NumPy would warn."""
        return _NOTHING if self._setting.graph is None else np.errstate(over="ignore")

    def _carefully(self) -> AbstractContextManager[None]:
        """Around a call of the policy, which runs with bounds checks soon after loading."""
        return _NOTHING if self._careful == 0 else self._with_bounds_checks()

    @contextmanager
    def _with_bounds_checks(self) -> Iterator[None]:
        """Count a call; say what an index out of range means."""
        try:
            yield
        except IndexError as error:
            if str(error) == NO_SUCH_ARM:
                raise
            raise UserError(f"the loaded state does not fit {self.policy}: {error}") from error
        finally:
            self._careful -= 1

    def _kernels(self, setting: Setting) -> Kernels:
        kernels = self.policy.kernels(setting)
        return compiled_kernels(kernels) if self._is_compiled() else kernels

    def _made(self, kernel: Any) -> Any:
        return fast(kernel) if self._is_compiled() else kernel

    def _is_compiled(self) -> bool:
        return self._compiled and self._careful == 0

    def _after_fork(self) -> None:
        """In the child: a lock that nobody holds, ids of its own, and other random numbers than its parent and siblings."""
        self._lock = threading.RLock()
        self._begin_life()
        self._rng = stream(int.from_bytes(os.urandom(16), "little"), "player")

    def __repr__(self) -> str:
        return f"<Player of {self.policy} with {self.n_arms} arms after {self._steps} decisions>"


_NOTHING = nullcontext()
_players: weakref.WeakSet[Player] = weakref.WeakSet()
_forking = threading.local()  # the locks that the forking thread holds


def _all_players() -> list[Player]:
    """Every player of this process, always in the same order: two threads may fork at once."""
    while True:
        try:
            return sorted(_players, key=id)
        except RuntimeError:  # another thread has just made one
            continue


def _before_fork() -> None:
    """Let every player finish its step, so that no child gets half of one."""
    _forking.held = []
    for player in _all_players():
        player._lock.acquire()
        _forking.held.append(player._lock)


def _after_fork_in_parent() -> None:
    while _forking.held:
        _forking.held.pop().release()


def _after_fork_in_child() -> None:
    for player in _all_players():
        player._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
    )


def _unpickled(policy: Policy[Any], text: str, compiled: bool) -> Player:
    """The player of a pickle. Its policy stands in it for the module that defines it to be imported."""
    from abex.policies.saving import read_player

    return read_player(text, "the pickled player", compiled)


def _reward(value: Any) -> float:
    """A reward in [0, 1]; clicks are True and False."""
    return real_number(
        "reward", float(value) if value is True or value is False else value, least=0.0, most=1.0
    )


def _entry(one: Any) -> tuple[Any, ...]:
    """A reward as it is passed to `Player.update_many`."""
    if not isinstance(one, tuple | list) or not 2 <= len(one) <= 3:
        raise UserError(f"a reward must be (decision, reward) or (decision, reward, also), got {shown(one)}")
    return tuple(one)


def _span(names: NDArray[np.int64]) -> str:
    if names.size == names[-1] - names[0] + 1:
        return f"{names[0]} to {names[-1]}" if names.size > 1 else f"{names[0]}"
    shown = ", ".join(str(name) for name in names[:8])
    return shown if names.size <= 8 else f"{shown}, ... ({names.size} in all)"
