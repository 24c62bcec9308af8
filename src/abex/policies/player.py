"""A policy driven by hand, inside an application."""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
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
from abex.randomness import stream
from abex.samplers.softmax import pick

MOST_PENDING = 100_000
MANY_ARMS = 5_000  # beyond, compiling pays for itself at the first decision


class Decision(NamedTuple):
    """A choice that waits for its reward."""

    id: str
    arm: int


class Pending(NamedTuple):
    """What the player keeps of a decision: its step, its arm, and the state fields that belong to it."""

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
        The same seed and the same rewards give the same decisions. None draws one.
    compiled : bool, optional
        Compile the policy: a few seconds once, then faster from about a hundred arms on. Unless given, it is compiled beyond
        5,000 arms. Decisions do not depend on it.
    max_pending : int
        Decisions that may wait for their reward; beyond that the oldest is forgotten.

    Notes
    -----
    All methods may be called from several threads: each holds the player's lock while it works.

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
            horizon = whole_number("horizon", horizon, least=1)
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
        self._tag = f"{stream(seed, 'tag').integers(2**32):08x}"
        self._steps = 0  # decisions made
        self._pending: dict[int, Pending] = {}  # in the order of the decisions
        self._names = np.arange(n_arms)  # public name of each arm; names are never used again
        self._next_name = n_arms
        self._lock = threading.RLock()

    # -- deciding -------------------------------------------------------------------------------------

    def select(self, k: int | None = None) -> Any:
        """The arm to try next, or a list of ``k`` different arms to try at once."""
        if k is None:
            return self.decide().arm
        return [decision.arm for decision in self.decide_many(k)]

    def decide(self) -> Decision:
        """The arm to try next, with an id under which its reward can be reported later."""
        with self._lock, self._quiet(), arms_exist(self.policy, self.n_arms):
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
        if not law.any() and self.policy.resizable:
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
        self._steps += 1
        memory = tuple(getattr(self._state, name).copy() for name in self.policy.remembers)
        self._pending[self._steps] = Pending(self._steps, arm, memory)
        if len(self._pending) > self._max_pending:
            del self._pending[next(iter(self._pending))]
        return Decision(f"{self._tag}-{self._steps}", int(self._names[arm]))

    def probabilities(self) -> NDArray[np.float64]:
        """The probability of each arm at the next decision, in the order of `arms`."""
        with self._lock:
            if self.policy.probabilities is None:
                raise UserError(f"{self.policy} has no closed form for its probabilities")
            return self._chances(self._steps + 1)

    def _chances(self, t: int) -> NDArray[np.float64]:
        out = np.zeros(self.n_arms)
        with self._quiet():
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
        reward : float
            What it paid.
        also : dict, optional
            Side observations: what other arms paid at the same time.

        Returns
        -------
        bool
            False, with nothing learned, if that decision has had its reward (or is forgotten); else True.
            An id that this player never gave raises an error.
        """
        return self.update_many([(decision, reward)] if also is None else [(decision, reward, also)]) == 1

    def update_many(self, rewards: Iterable[Any]) -> int:
        """Learn several rewards, ``(decision, reward)`` or ``(decision, reward, also)``; all are checked before any is learned.

        Returns how many were new.
        """
        with self._lock:
            checked = [self._checked(*_entry(one)) for one in rewards]
            learned = 0
            done: set[int] = set()
            for step, arm, reward, also in checked:
                if step is None:  # an arm: its latest decision that is still waiting
                    step = next((s for s in reversed(self._pending) if self._pending[s].arm == arm), None)
                elif step not in self._pending or step in done:
                    continue
                self._learn(step, arm, reward, also)
                learned += 1
                if step is not None:
                    done.add(step)
            return learned

    def _checked(
        self, decision: Any, reward: Any, also: Any = None
    ) -> tuple[int | None, int, float, dict[int, float]]:
        """(step of the decision, inner arm, reward, side observations), or an error; nothing changes."""
        reward = real_number("reward", reward, least=0.0, most=1.0)
        step: int | None = None
        if isinstance(decision, Decision):
            decision = decision.id
        if isinstance(decision, str):
            tag, _, number = decision.partition("-")
            known = tag == self._tag and number.isdecimal() and len(number) < 20
            if not known or not 1 <= int(number) <= self._steps:
                raise UserError(f"decision {shown(decision)} was never made by this player")
            step = int(number)
            arm = self._pending[step].arm if step in self._pending else 0
        else:
            arm = self._inner(decision)
        if also is not None and not isinstance(also, Mapping):
            raise UserError(f"also must be a dict of arms and what they paid, got {shown(also)}")
        side = {
            self._inner(k): real_number("reward", r, least=0.0, most=1.0) for k, r in (also or {}).items()
        }
        if arm in side and (step is None or step in self._pending):
            raise UserError(f"arm {int(self._names[arm])} is both the arm tried and a side observation")
        return step, arm, reward, side

    def _learn(self, step: int | None, arm: int, reward: float, also: dict[int, float]) -> None:
        t = max(self._steps, 1)
        if step is not None:
            pending = self._pending.pop(step)
            t = pending.t
            for name, value in zip(self.policy.remembers, pending.memory, strict=True):
                getattr(self._state, name)[:] = value
        elif self.policy.probabilities is not None and "chances" in self.policy.remembers:
            self._weigh_by(self._chances(self._steps + 1), arm)  # tried elsewhere: as if it were tried now
        update = self._kernels(self._setting).update
        with self._quiet():
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
            keep = np.delete(np.arange(self.n_arms), gone)
            self._resize(keep, self.n_arms - 1)
            self._names = self._names[keep]
            self._pending = {
                step: waiting._replace(arm=waiting.arm - (waiting.arm > gone))
                for step, waiting in self._pending.items()
                if waiting.arm != gone
            }

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
            return [
                Decision(f"{self._tag}-{step}", int(self._names[waiting.arm]))
                for step, waiting in self._pending.items()
            ]

    def copy(self) -> Player:
        """An independent player in the same state, with the same random numbers ahead."""
        with self._lock:
            twin = copy.copy(self)
            twin._state = copy.deepcopy(self._state)
            twin._rng = copy.deepcopy(self._rng)
            twin._pending = dict(self._pending)
            twin._lock = threading.RLock()
            return twin

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything, random state and waiting decisions included, to a JSON file; atomic."""
        from abex.policies.saving import save_player

        with self._lock:
            save_player(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str], *, compiled: bool | None = None) -> Player:
        """A player that goes on exactly where `save` left off. Nothing in the file is executed."""
        from abex.policies.saving import load_player

        return load_player(path, compiled)

    def _quiet(self) -> AbstractContextManager[Any]:
        """The 64-bit words that draw a random graph wrap around; interpreted NumPy would warn."""
        return nullcontext() if self._setting.graph is None else np.errstate(over="ignore")

    def _kernels(self, setting: Setting) -> Kernels:
        kernels = self.policy.kernels(setting)
        return compiled_kernels(kernels) if self._compiled else kernels

    def _made(self, kernel: Any) -> Any:
        return fast(kernel) if self._compiled else kernel

    def __repr__(self) -> str:
        return f"<Player of {self.policy} with {self.n_arms} arms after {self._steps} decisions>"


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
