"""A policy's kernels run on its state: draws, batches, probabilities, learning, arms that come and go.

Kernels run interpreted, or compiled; both give the same numbers. Compiled ones get state, random numbers and room for a
distribution by one pointer (`Given`), so that a call costs 0.2 us, where handing over a record and a generator takes 5.
"""

from __future__ import annotations

import copy
import dis
import inspect
import os
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from operator import index
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.graphs.feedback import probability_seen
from abex.kernels import (
    can_compile,
    compile_alone,
    compiled,
    entry_of,
    explain,
    is_user_defined,
    laid_out,
    with_present_globals,
)
from abex.kinds import kept_with_decisions, saved, weighed_by
from abex.policies.policy import NO_SUCH_ARM, Kernels, Setting, arms_exist
from abex.samplers.scan import pick
from abex.support.errors import UserError, brief

WORTH_COMPILING = (
    8e-6  # seconds of CPU of an interpreted decision: 10^5 of them take as long as to load the compiler
)
MANY_ARMS = 1_000  # beyond, no trial is needed
MOST_ROUNDS = 64  # of a trial
_NOTHING = nullcontext()
Memory = tuple[NDArray[Any], ...]


class Given(NamedTuple):
    """What compiled kernels are given."""

    state: Any
    rng: Any
    out: NDArray[np.float64]  # room for a distribution


class Calls(NamedTuple):
    """Compiled kernels as Python calls them."""

    select: Any  # (given, t) -> arm
    update: Any  # (given, t, arm, seen, reward)
    probabilities: Any  # (given, t), into ``given.out``


@cache
def compiled_calls(kernels: Kernels, probabilities: Any) -> Calls:
    """The kernels of a policy, compiled to be called from Python."""
    select, update = kernels

    @compiled(select)
    def run_select(given: Any, t: int) -> int:
        return select(given.state, t, given.rng)  # type: ignore[no-any-return]

    @compiled(update)
    def run_update(given: Any, t: int, arm: int, seen: int, reward: float) -> None:
        update(given.state, t, arm, seen, reward, given.rng)

    if probabilities is None:
        return Calls(run_select, run_update, None)

    @compiled(probabilities)
    def run_probabilities(given: Any, t: int) -> None:
        probabilities(given.state, t, given.out)

    return Calls(run_select, run_update, run_probabilities)


@cache
def reads_last(function: Any) -> bool:
    """Whether a function makes use of its last argument; one that only hands it on says to whom, by ``hands_on_to``.

    >>> reads_last(lambda x, rng: x), reads_last(lambda x, rng: rng.random())
    (False, True)
    """
    function = inspect.unwrap(function)
    if hasattr(function, "hands_on_to"):
        return reads_last(function.hands_on_to)
    code = getattr(function, "__code__", None)
    if code is None or code.co_argcount == 0 or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return True
    last = code.co_varnames[code.co_argcount - 1]
    named = (step.argval for step in dis.get_instructions(code))
    return any(name == last or (isinstance(name, tuple) and last in name) for name in named)


def is_worth_compiling(policy: Any, setting: Setting, with_probabilities: bool) -> bool:
    """Whether an interpreted decision costs so much that a compiler repays itself; found out once in a process.

    Kernels of other packages, which would be compiled anew in every process, are compiled when they are told to be, and where
    there are many arms.
    """
    if not can_compile() or (setting.n_arms <= MANY_ARMS and is_user_defined(policy.kernels())):
        return False
    if setting.n_arms > MANY_ARMS:
        return True
    key = policy, setting.n_arms, setting.graph is None, with_probabilities
    if key not in _costs:
        _costs[key] = _cost_of_decision(policy, setting, with_probabilities)
    return _costs[key] > WORTH_COMPILING


_costs: dict[Any, float] = {}


def _cost_of_decision(policy: Any, setting: Setting, with_probabilities: bool) -> float:
    """Seconds of CPU of a decision with its reward, interpreted, after some others."""
    (select, update), state, rng = (
        policy.kernels(),
        policy.start(setting),
        np.random.Generator(np.random.PCG64(0)),
    )
    rounds, cost, out = min(2 * setting.n_arms + 8, MOST_ROUNDS), np.inf, np.zeros(setting.n_arms)
    with np.errstate(over="ignore"):
        for t in range(1, rounds + 1):
            began = time.thread_time()
            arm = select(state, t, rng)
            update(state, t, arm, arm, float(t % 2), rng)
            if with_probabilities and policy.probabilities is not None and t > rounds - 4:
                policy.probabilities(state, t, out)
            if t > rounds - 4:
                cost = min(cost, time.thread_time() - began)
    return cost


class PolicyRunner:
    """A policy with its state; arms are places in its arrays."""

    def __init__(self, policy: Any, setting: Setting, compiled: bool) -> None:
        self.policy = policy
        self.setting = setting
        self.compiled = compiled
        self.n_arms = setting.n_arms
        self.draws_leave_state = False  # even where the policy ages it when it draws
        self.version = 0  # changes whenever the distribution of a decision may
        self._select, self._update = policy.kernels()
        self.draws_to_learn = reads_last(self._update)
        graph = setting.graph
        self.feedback: Any = None if graph is None else graph.feedback(setting.graph_key)
        self.state = policy.start(setting)
        if compiled:
            self.compile()

    @property
    def state(self) -> Any:
        """What the policy has learned."""
        return self._learned

    @state.setter
    def state(self, state: Any) -> None:
        self._learned = state
        self._kept = kept_with_decisions(state)  # fields that belong to a decision
        self._ages = getattr(state, "memory", None) is not None  # draws forget what is too old for their step
        self._out = np.zeros(self.n_arms)
        self._known = -1, -1  # version and step of the distribution in `_out`
        self._given: dict[int, tuple[Calls, Any, Any]] = {}  # by the identity of the random numbers
        self._on_graph = self.setting.graph is not None  # where words of 64 bits wrap around
        self._is_plain = not (self._on_graph or self._kept or self._ages)  # a draw leaves no traces

    # -- drawing --------------------------------------------------------------------------------------

    def draw(self, t: int, rng: Any) -> tuple[int, Memory]:
        """The arm to pull at step t, and what the policy remembers of the choice. The state stays as it is."""
        if self._is_plain:
            return self._drawn(t, rng), ()  # nothing to put back or to look after
        with self._aside():
            before = self._remembered()
            with self._guard():
                arm = self._drawn(t, rng)
            return arm, self._taken_back(before)

    def _drawn(self, t: int, rng: Any) -> int:
        try:
            if self.compiled:
                calls, given, _ = self._given.get(id(rng)) or self._prepared(rng)
                arm = calls.select(given, t)
            else:
                arm = self._select(self._learned, t, rng)
            return arm if type(arm) is int and 0 <= arm < self.n_arms else self._there(arm)
        except Exception as error:
            self._explain(error, self._select)
            raise

    def draw_among(self, rest: NDArray[np.int64], t: int, rng: Any) -> tuple[int, Memory]:
        """An arm among ``rest``, as the policy would choose if there were no others."""
        with self._aside():
            before = self._remembered()
            distribution = self.restricted(rest, t)
            if distribution is None:
                return int(rest[self.alone_with(rest)._drawn(t, rng)]), self._taken_back(before)
            arm = int(self._made(pick)(distribution, 1.0, rng))
            self.set_propensity(distribution, arm)
            return arm, self._taken_back(before)

    def alone_with(self, rest: NDArray[np.int64]) -> PolicyRunner:
        """A runner of the policy that knows the arms ``rest`` alone."""
        smaller = PolicyRunner.__new__(PolicyRunner)
        smaller.__dict__.update(self.__dict__)
        smaller.n_arms = int(rest.size)
        smaller.setting = self.setting._replace(n_arms=smaller.n_arms)
        smaller.state = self.policy.resume(smaller.setting, saved(self.state), rest)
        return smaller

    def restricted(self, rest: NDArray[np.int64], t: int) -> NDArray[np.float64] | None:
        """The distribution of a choice among ``rest``; None where a policy for these arms alone is asked instead."""
        distribution = np.zeros(self.n_arms)
        if self.policy.probabilities is not None:
            distribution[rest] = self.probabilities(t)[rest]
        if not distribution.any():
            if self.policy.can_resize(self.state) and not self.policy.needs_graph:
                return None
            distribution[rest] = 1.0
        distribution /= distribution.sum()
        return distribution

    def set_propensity(self, distribution: NDArray[np.float64], arm: int) -> None:
        """The next reward is weighed by the distribution that really chose the arm, where the policy does that."""
        field = weighed_by(self.state)
        if field is None:
            return
        weights = getattr(self.state, field)
        if weights.size == distribution.size:
            np.copyto(weights, distribution, where=distribution > 0.0)
        else:  # a policy for many arms keeps the chosen arm's probability alone
            weights[0] = distribution[arm]
            arm = 0
        if weights[arm] <= 0.0:
            weights[arm] = 1.0  # tried elsewhere, where the policy never would: there is nothing to weigh by

    def _aside(self) -> AbstractContextManager[None]:
        """Around draws: on a copy of the state where the policy would age it."""
        return self._on_copy() if self.draws_leave_state and self._ages else _NOTHING

    @contextmanager
    def _on_copy(self) -> Iterator[None]:
        kept, self.state = self.state, copy.deepcopy(self.state)
        try:
            yield
        finally:
            self.state = kept

    def _remembered(self) -> Memory:
        return tuple(getattr(self.state, name).copy() for name in self._kept)

    def _taken_back(self, before: Memory) -> Memory:
        """What a draw wrote into the state, which gets back what stood there."""
        if not before:
            return ()
        drawn = self._remembered()
        self.recall(before)
        return drawn

    def recall(self, memory: Memory) -> None:
        """Put what a decision remembers back into the state."""
        for name, value in zip(self._kept, memory, strict=True):
            getattr(self.state, name)[:] = value

    def _there(self, arm: Any) -> int:
        """The arm a policy selected, if there is such a one."""
        try:
            number = index(arm)
        except TypeError:
            raise IndexError(NO_SUCH_ARM) from None
        if not 0 <= number < self.n_arms:
            raise IndexError(NO_SUCH_ARM)
        return number

    # -- probabilities --------------------------------------------------------------------------------

    def probabilities(self, t: int) -> NDArray[np.float64]:
        """The distribution of the choice at step t."""
        return self._distribution(t).copy()

    def probability(self, t: int, place: int) -> float:
        """The probability of one arm at step t; decisions that are made at once share the work."""
        return float(self._distribution(t)[place])

    def _distribution(self, t: int) -> NDArray[np.float64]:
        """The distribution of step t, which stands in `_out` until another is asked for."""
        if self._known == (self.version, t):
            return self._out
        if self.policy.probabilities is None:
            raise UserError(f"{self.policy} has no closed form for its probabilities")
        if self._is_plain:
            self._run_probabilities(t)
        else:
            with self._aside(), self._guard():
                self._run_probabilities(t)
                found = self._out
            self._out[:] = found
        np.minimum(
            self._out, 1.0, out=self._out
        )  # a sum of shares may round up, and is read again as a share
        self._known = self.version, t
        return self._out

    def _run_probabilities(self, t: int) -> None:
        try:
            if self.compiled:
                calls, given, _ = self._given.get(id(None)) or self._prepared(None)
                calls.probabilities(given, t)
            else:
                self.policy.probabilities(self._learned, t, self._out)
        except Exception as error:
            self._explain(error, self.policy.probabilities)
            raise

    def observation_probabilities(self, t: int) -> NDArray[np.float64]:
        """The probability that each arm is observed at step t: that an arm is chosen whose pull reveals it."""
        chosen = self.probabilities(t)
        if self.setting.graph is None:
            return chosen
        graph, seen = self.feedback, self._made(probability_seen)
        with self._guard():
            return np.array([min(1.0, seen(graph, t, arm, chosen)) for arm in range(self.n_arms)])

    # -- learning -------------------------------------------------------------------------------------

    def learn(self, t: int, arm: int, seen: Sequence[tuple[int, float]], rng: Any) -> None:
        """Pulling ``arm`` at step t showed what these arms paid, itself last."""
        self.version += 1
        if self._on_graph:
            with self._guard():
                self._run_update(t, arm, seen, rng)
        else:
            self._run_update(t, arm, seen, rng)

    def _run_update(self, t: int, arm: int, seen: Sequence[tuple[int, float]], rng: Any) -> None:
        try:
            if self.compiled:
                calls, given, _ = self._given.get(id(rng)) or self._prepared(rng)
                for other, reward in seen:
                    calls.update(given, t, arm, other, reward)
            else:
                for other, reward in seen:
                    self._update(self._learned, t, arm, other, reward, rng)
        except Exception as error:
            self._explain(error, self._update)
            raise

    def learn_weighted(self, arm: int, reward: float, weight: float) -> None:
        """An arm was observed to pay this, with this weight: for policies that learn so (`abex.policies.learner`)."""
        self.version += 1
        with self._guard():
            self.policy.learn(self._learned, arm, float(reward), float(weight))

    def counted(self, reward: float, rng: Any) -> float:
        """A reward as such a policy counts it."""
        return float(self.policy.counted(self._learned, reward, rng))

    def check_resize(self) -> None:
        """Refuse to change the arms where that cannot be done."""
        if self.setting.graph is not None:
            raise UserError("arms cannot be added or removed while a feedback graph is given")
        if not self.policy.resizable:
            raise UserError(f"{type(self.policy).__name__} cannot add or remove arms while it plays")
        saved(self.state)  # which says why where nothing is known to be learned

    def resize(self, keep: NDArray[np.int64], n_arms: int) -> None:
        """Go on with the arms ``keep``, followed by new ones."""
        self.check_resize()
        setting = self.setting._replace(n_arms=n_arms)
        state = self.policy.resume(setting, saved(self.state), keep)
        self.setting, self.n_arms = setting, n_arms
        self.state = state
        self.version += 1

    # -- kernels --------------------------------------------------------------------------------------

    def compile(self) -> None:
        """Compile the kernels now, so that no decision waits for it; they are those of all players of this policy."""
        with arms_exist(self.policy, self.n_arms):
            self._prepared(np.random.Generator(np.random.PCG64(0)))
            if self.policy.probabilities is not None:
                self._prepared(None)

    def _prepared(self, rng: Any) -> tuple[Calls, Any, Any]:
        """The compiled kernels for this state and these random numbers: they look at no types when they are called."""
        plain = Kernels(*map(with_present_globals, (self._select, self._update)))
        probabilities = self.policy.probabilities and with_present_globals(self.policy.probabilities)
        calls = compiled_calls(plain, probabilities)
        given = laid_out(Given(self.state, rng, self._out))
        if rng is None:
            calls = calls._replace(probabilities=entry_of(calls.probabilities, given, 1))
        else:
            select, update = entry_of(calls.select, given, 1), entry_of(calls.update, given, 1, 1, 1, 1.0)
            calls = calls._replace(select=select, update=update)
        found = self._given[id(rng)] = calls, given, rng
        return found

    def _made(self, kernel: Any) -> Any:
        return compile_alone(kernel) if self.compiled else kernel

    def _guard(self) -> AbstractContextManager[Any]:
        """Around a call of the policy: on a random graph words of 64 bits wrap around."""
        return np.errstate(over="ignore") if self._on_graph else _NOTHING

    def _explain(self, error: Exception, kernel: Any) -> None:
        """Raise the sentence about an error in a kernel of another package, if it is one."""
        if isinstance(error, UserError):
            return
        if str(error) == NO_SUCH_ARM or type(error).__module__.startswith("numba."):
            with arms_exist(self.policy, self.n_arms):
                raise error
        if is_user_defined([kernel, type(self.policy).start]):
            sentence = explain(error, [kernel])
            if sentence is None:
                frame = traceback.extract_tb(error.__traceback__)[-1]
                where = f"line {frame.lineno} of {os.path.basename(frame.filename)}"
                said = brief(f"{type(error).__name__}: {error}", 200)
                sentence = f"{kernel.__name__} of {self.policy} failed at {where}: {said}"
            raise UserError(sentence) from error
