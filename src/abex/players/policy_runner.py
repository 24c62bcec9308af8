"""A policy's kernels run on its state: draws, batches, probabilities, learning, arms that come and go."""

from __future__ import annotations

import copy
import dis
import inspect
import math
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.graphs.feedback import probability_seen
from abex.kernels import compile_alone, compiled, entry_of, laid_out, with_present_globals
from abex.kinds import kept_with_decisions, saved, weighed_by
from abex.policies.policy import NO_SUCH_ARM, Kernels, Setting, arms_exist
from abex.samplers.scan import pick
from abex.support.errors import UserError

WORTH_COMPILING = 2.0  # seconds: about what it takes to load a compiled kernel
SLOW = 0.001  # seconds for the probabilities of one decision
_NOTHING = nullcontext()
_spent: dict[Any, float] = defaultdict(
    float
)  # kernel -> seconds of CPU that it took because it was not compiled
_slow: set[Any] = set()  # kernels that took long for one decision
Memory = tuple[NDArray[Any], ...]


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


@cache
def reads_last(function: Any) -> bool:
    """Whether a function makes use of its last argument.

    >>> reads_last(lambda x, rng: x), reads_last(lambda x, rng: rng.random())
    (False, True)
    """
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None or code.co_argcount == 0 or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return True
    last = code.co_varnames[code.co_argcount - 1]
    named = (step.argval for step in dis.get_instructions(code))
    return any(name == last or (isinstance(name, tuple) and last in name) for name in named)


class PolicyRunner:
    """A policy with its state; arms are places in its arrays."""

    def __init__(self, policy: Any, setting: Setting, compiled: bool) -> None:
        self.policy = policy
        self.setting = setting
        self.state: Any = policy.start(setting)
        self.compiled = compiled
        self.careful = 0  # calls of the policy that are still to run interpreted, with bounds checks
        self.draws_leave_state = False  # draws leave the state alone even where the policy ages it
        self.version = 0  # changes whenever the distribution of a decision may
        self._known: tuple[int, int, NDArray[np.float64]] | None = None  # version, step, distribution
        self._entries: dict[
            Any, tuple[Any, Any]
        ] = {}  # compiled function -> a state, its entry for that state
        self._laid_out: tuple[Any, Any] = None, None  # a state, and as compiled code takes it
        self._plain: Kernels = policy.kernels()
        self.draws_to_learn = reads_last(self._plain.update)
        graph = setting.graph
        self.feedback: Any = None if graph is None else graph.feedback(setting.graph_key)

    @property
    def drawing_ages(self) -> bool:
        """Whether a draw forgets what is too old for its step: the policy has a memory (`abex.policies.forgetting`)."""
        return getattr(self.state, "memory", None) is not None

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return self.setting.n_arms

    # -- drawing --------------------------------------------------------------------------------------

    def draw(self, t: int, rng: Any) -> tuple[int, Memory]:
        """The arm to pull at step t, and what the policy remembers of the choice. The state stays as it is."""
        if (
            not (kept_with_decisions(self.state) or self.drawing_ages or self.careful)
            and self.setting.graph is None
        ):
            return self._drawn(t, rng), ()  # nothing to put back or to look after
        with self._aside():
            before = self._remembered()
            with self._quiet(), self._carefully():
                arm = self._drawn(t, rng)
            return arm, self._taken_back(before)

    def _drawn(self, t: int, rng: Any) -> int:
        try:
            return self._there(self._entered(self._kernels().select, t, rng)(self._given(), t, rng))
        except Exception:
            with arms_exist(self.policy, self.n_arms):
                raise

    def draw_among(self, rest: NDArray[np.int64], t: int, rng: Any) -> tuple[int, Memory]:
        """An arm among ``rest``, as the policy would choose if there were no others."""
        with self._aside():
            before = self._remembered()
            distribution = self.restricted(rest, t)
            if distribution is None:
                smaller = self.setting._replace(n_arms=int(rest.size))
                state = self.policy.resume(smaller, saved(self.state), rest)
                return int(rest[self._kernels().select(state, t, rng)]), self._taken_back(before)
            arm = int(self._made(pick)(distribution, 1.0, rng))
            self.set_propensity(distribution, arm)
            return arm, self._taken_back(before)

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
        return self._on_a_copy() if self.draws_leave_state and self.drawing_ages else _NOTHING

    @contextmanager
    def _on_a_copy(self) -> Iterator[None]:
        kept, self.state = self.state, copy.deepcopy(self.state)
        try:
            yield
        finally:
            self.state = kept

    def _remembered(self) -> Memory:
        return tuple(getattr(self.state, name).copy() for name in kept_with_decisions(self.state))

    def _taken_back(self, before: Memory) -> Memory:
        """What a draw wrote into the state, which gets back what stood there."""
        if not before:
            return ()
        drawn = self._remembered()
        for name, value in zip(kept_with_decisions(self.state), before, strict=True):
            getattr(self.state, name)[:] = value
        return drawn

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
        if self.policy.probabilities is None:
            raise UserError(f"{self.policy} has no closed form for its probabilities")
        out = np.zeros(self.n_arms)
        kernel = self.policy.probabilities
        compiles = self._is_compiled() or (self.careful == 0 and _spent[kernel] > WORTH_COMPILING)
        with self._aside(), self._quiet(), self._carefully():
            if compiles:
                self._entered(compile_alone(kernel), t, out)(self._given(), t, out)
                return out
            began = time.thread_time()
            kernel(self.state, t, out)
            took = time.thread_time() - began
        _spent[kernel] += took
        if took > SLOW:
            _slow.add(kernel)
        return out

    def probability(self, t: int, place: int) -> float:
        """The probability of one arm at step t; decisions that are made at once share the work."""
        if self._known is None or self._known[:2] != (self.version, t):
            self._known = self.version, t, self.probabilities(t)
        return float(self._known[2][place])

    def is_worth_warming(self) -> bool:
        """Whether the probabilities of a decision are slow, and nobody in this process has had their kernel compiled."""
        return self.policy.probabilities in _slow and not self._is_compiled()

    def warm_up(self) -> None:
        """Compile the kernel of the probabilities, which all players of this process use from then on."""
        kernel, t, out = self.policy.probabilities, self.n_arms + 1, np.zeros(self.n_arms)
        if _spent[kernel] >= 0.0:
            _spent[kernel] = -math.inf  # nobody waits for the compiler, nor asks it again
            self._entered(compile_alone(kernel), t, out)(self._given(), t, out)
            _spent[kernel] = math.inf
            _slow.discard(kernel)

    def observation_probabilities(self, t: int) -> NDArray[np.float64]:
        """The probability that each arm is observed at step t: that an arm is chosen whose pull reveals it."""
        chosen = self.probabilities(t)
        if self.setting.graph is None:
            return chosen
        graph, seen = self.feedback, self._made(probability_seen)
        with self._quiet():
            return np.array([min(1.0, seen(graph, t, arm, chosen)) for arm in range(self.n_arms)])

    # -- learning -------------------------------------------------------------------------------------

    def learn(self, t: int, arm: int, seen: Sequence[tuple[int, float]], rng: Any) -> None:
        """Pulling ``arm`` at step t showed what these arms paid, itself last."""
        self.version += 1
        with self._quiet(), self._carefully():
            update, given = self._entered(self._kernels().update, t, arm, arm, 1.0, rng), self._given()
            for other, reward in seen:
                update(given, t, arm, other, float(reward), rng)

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
        self.state = self.policy.resume(setting, saved(self.state), keep)
        self.setting = setting
        self.version += 1

    # -- kernels --------------------------------------------------------------------------------------

    def _quiet(self) -> AbstractContextManager[Any]:
        """The 64-bit words that draw a random graph wrap around; interpreted NumPy would warn."""
        return _NOTHING if self.setting.graph is None else np.errstate(over="ignore")

    def _carefully(self) -> AbstractContextManager[None]:
        """Around a call of the policy, which runs with bounds checks soon after loading."""
        return _NOTHING if self.careful == 0 else self._with_bounds_checks()

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
            self.careful -= 1

    def _entered(self, function: Any, *arguments: Any) -> Any:
        """A kernel for a state like ours: compiled, it does not look at the state's types at every call."""
        if not self._is_compiled() and not hasattr(function, "py_func"):
            return function
        state, entry = self._entries.get(function, (None, None))
        if state is not self.state:
            entry = entry_of(function, self._given(), *arguments)
            self._entries[function] = self.state, entry
        return entry

    def _given(self) -> Any:
        """The state as the kernels of now take it."""
        if not self._is_compiled():
            return self.state
        if self._laid_out[0] is not self.state:
            self._laid_out = self.state, laid_out(self.state)
        return self._laid_out[1]

    def _kernels(self) -> Kernels:
        plain = self._plain
        return compiled_kernels(Kernels(*map(with_present_globals, plain))) if self._is_compiled() else plain

    def _made(self, kernel: Any) -> Any:
        return compile_alone(kernel) if self._is_compiled() else kernel

    def _is_compiled(self) -> bool:
        return self.compiled and self.careful == 0
