"""What a policy promises.

A policy is a *value*: a frozen dataclass of its hyper-parameters. It plays through two kernels over a
*state record*, a NamedTuple of arrays and numbers that `start` makes:

``select(state, t, rng) -> arm``
    The arm to pull at step t = 1, 2, ... It only reads the state (scratch arrays excepted): asked twice
    with equal streams it answers the same.
``update(state, t, arm, seen, reward, rng)``
    Arm ``seen`` was observed to pay ``reward`` in [0, 1] because ``arm`` was pulled at step t. It is
    called once for every observed arm, **the pulled arm last**: ``seen == arm`` ends the step. Bandit
    feedback is the case in which nothing but the pulled arm is seen; UCB-N, TS-N, KL-UCB-N and BGE-N are
    UCB1, Thompson, KLUCB and BoltzmannGumbel with more calls.

Both are kernels: Python runs them as they are, the simulator compiles the same source. Per-arm arrays of
a state record are annotated `PerArm`, so that arms can be added and removed, and with what they may hold
(`abex.schema`), so that a saved state can be checked. A policy that weighs rewards
by the probability of what it did names the fields holding it in `remembers`; a `Player` keeps them with
each decision whose reward is late.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, ClassVar, Generic, NamedTuple, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

from abex.errors import UserError, nearest
from abex.parameters import check_parameters

State = TypeVar("State", bound=tuple[Any, ...])
PerArm = Annotated[NDArray[Any], "per arm"]
MOST_ARMS = 2**31 - 1


class Setting(NamedTuple):
    """What a policy may know before the first step."""

    n_arms: int
    horizon: int | None = None
    graph: Any = None  # the feedback record of an abex.Graph, None for bandit feedback


NO_SUCH_ARM = "no such arm"  # what a compiled loop says when a policy of another package selects one


@contextmanager
def arms_exist(policy: Any, n_arms: int) -> Iterator[None]:
    """Say in a sentence which policy selected an arm that is not there, or cannot be compiled."""
    try:
        yield
    except IndexError as error:
        if str(error) != NO_SUCH_ARM:
            raise
        raise UserError(
            f"{policy} selected an arm that does not exist: select must return a whole number from 0 to {n_arms - 1}"
        ) from None
    except Exception as error:
        if not type(error).__module__.startswith("numba."):
            raise
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
        raise UserError(
            f"{policy} cannot be compiled ({reason}): select must return a whole number, and kernels may use what Numba knows"
        ) from error


class Kernels(NamedTuple):
    """The functions by which a policy plays in a given setting."""

    select: Callable[..., Any]
    update: Callable[..., Any]


class Policy(ABC, Generic[State]):
    """A rule that chooses which arm to pull next; see the module's text for what it promises."""

    needs_graph: ClassVar[bool] = False  # refuses to start without a feedback graph
    changing_graphs: ClassVar[str] = (
        "any"  # which it plays: "any", "repeating" (a list that repeats) or "none"
    )
    names_matter: ClassVar[bool] = False  # among equal plans the numbers of the arms decide
    resizable: ClassVar[bool] = True  # arms may be added and removed while it plays
    remembers: ClassVar[tuple[str, ...]] = ()  # state fields that belong to a decision
    also_known_as: ClassVar[tuple[str, ...]] = ()  # names in the literature, for `abex list`

    def __post_init__(self) -> None:
        check_parameters(self)

    @property
    def needs_horizon(self) -> bool:
        """Whether `start` refuses a setting without a horizon."""
        return False

    @abstractmethod
    def start(self, setting: Setting) -> State:
        """A fresh state record."""

    @staticmethod
    @abstractmethod
    def select(state: Any, t: int, rng: Any) -> int:
        """The arm to pull at step t (kernel)."""

    @staticmethod
    @abstractmethod
    def update(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Learn that ``seen`` paid ``reward`` when ``arm`` was pulled (kernel)."""

    #: Kernel ``probabilities(state, t, out)``: the law of `select` into ``out``; None if it has no closed form.
    probabilities: ClassVar[Any] = None

    def kernels(self, setting: Setting) -> Kernels:
        """The kernels by which this policy plays."""
        for kernel in (self.select, self.update):
            if inspect.ismethod(kernel):
                raise UserError(
                    f"{type(self).__name__}.{kernel.__name__} must be a static method: a kernel gets the state, not the policy"
                )
        return Kernels(self.select, self.update)

    def simplest(self, setting: Setting) -> Policy[Any]:
        """The simplest policy that is this one up to the horizon of ``setting``: the same arms from the same random numbers."""
        return self

    def report(self, state: State) -> dict[str, float]:
        """Numbers about a played state that a person wants to see beside the regret."""
        return {}

    @classmethod
    def examples(cls) -> Iterator[Policy[Any]]:
        """Instances on which the contract is checked."""
        yield cls()

    # -- arms that come and go ------------------------------------------------------------------------

    def with_sampler(self, state: State) -> State:
        """The state with a sampler (`abex.samplers`) made for the statistics that it holds; policies that have one say which."""
        return state

    def with_arms(self, state: State, setting: Setting, keep: NDArray[np.int64]) -> State:
        """The state for ``setting.n_arms`` arms: first the old arms ``keep``, then arms never seen.

        Per-arm fields go along, samplers are made anew, all others start afresh; a policy for which that is wrong does it itself.
        """
        if not self.resizable:
            raise UserError(f"{type(self).__name__} cannot add or remove arms while it plays")
        fresh = self.start(setting)
        hints = get_type_hints(type(state), include_extras=True)
        for name, old, new in zip(hints, state, fresh, strict=True):
            if "per arm" in getattr(hints[name], "__metadata__", ()):
                new[: keep.size] = old[keep]
        return self.with_sampler(fresh)

    # -- policies are values --------------------------------------------------------------------------

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not cls.__name__.startswith("_"):
            _registry[cls.__name__] = cls

    def __str__(self) -> str:
        """The policy as a person would type it: parameters at their default are left out."""
        shown = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in dataclasses.fields(self)  # type: ignore[arg-type]
            if getattr(self, field.name) != field.default
        ]
        return f"{type(self).__name__}({', '.join(shown)})" if shown else type(self).__name__

    def horizon_of(self, setting: Setting) -> int:
        """The horizon of ``setting``, for policies that cannot play without."""
        if setting.horizon is None:
            raise UserError(
                f"{self} needs to know the horizon: pass horizon=..., or set its parameters explicitly"
            )
        return setting.horizon

    def graph_of(self, setting: Setting) -> Any:
        """The feedback graph of ``setting``, for policies that cannot play without."""
        if setting.graph is None:
            raise UserError(f"{self} needs to know the feedback graph: pass graph=Graph(...)")
        return setting.graph


_registry: dict[str, type[Policy[Any]]] = {}


def known_policies() -> dict[str, type[Policy[Any]]]:
    """Every concrete policy defined so far, ours and the user's, by name."""
    return {name: cls for name, cls in sorted(_registry.items()) if not inspect.isabstract(cls)}


def as_policy(policy: Any) -> Policy[Any]:
    """A policy from a value or from its name."""
    if isinstance(policy, str):
        return parse_policy(policy)
    if not isinstance(policy, Policy):
        raise UserError(f"policies must be values such as UCB1() or their names, got {policy!r}")
    if not dataclasses.is_dataclass(type(policy)):
        raise UserError(
            f"{type(policy).__name__} must be a value: put @dataclass(frozen=True) above the class"
        )
    return policy


def parse_policy(text: str) -> Policy[Any]:
    """The policy written as ``Name`` or ``Name(parameter=value, ...)``. Nothing is evaluated.

    Names of the literature are understood too.

    >>> import abex.policies
    >>> parse_policy("UCB1(scale=0.5)")
    UCB1(scale=0.5)
    >>> parse_policy("UCB-N")
    UCB1(scale=2.0)
    """
    head, _, rest = text.strip().partition("(")
    policies = known_policies()
    names = {alias: name for name, cls in policies.items() for alias in (name, *cls.also_known_as)}
    folded = {alias.lower(): name for alias, name in names.items()}
    head = head.strip()
    if head.lower() not in folded:
        raise UserError(f"unknown policy {head!r}{nearest(head, names)}; `abex list` shows all")
    cls = policies[names.get(head) or folded[head.lower()]]
    return build(cls, _arguments(text, rest))


def build(cls: type[Policy[Any]], arguments: dict[str, Any]) -> Policy[Any]:
    """``cls(**arguments)`` with an error that names a wrong parameter and the nearest right one."""
    fields = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
    for name in arguments:
        if name not in fields:
            known = f"; it has: {', '.join(fields)}" if fields else "; it has none"
            raise UserError(f"{cls.__name__} has no parameter {name!r}{nearest(name, fields)}{known}")
    try:
        return cls(**arguments)
    except TypeError as error:
        raise UserError(f"cannot make {cls.__name__}: {error}") from error


def _arguments(text: str, rest: str) -> dict[str, Any]:
    if not rest:
        return {}
    try:
        call = ast.parse(f"f({rest}", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
            raise ValueError
        if len({word.arg for word in call.keywords}) < len(call.keywords):
            raise ValueError
        return {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        raise UserError(
            f"cannot read the policy {text!r}: write Name(parameter=value, ...), for example ABE(eta=1.0)"
        ) from None
