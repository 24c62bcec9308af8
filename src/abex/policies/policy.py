"""The interface of policies.

A policy is a *value*: a frozen dataclass of its parameters. It plays by kernels over a *state*, a `Record` that `start` makes:

``select(state, t, rng) -> arm``
    The arm to pull at step t = 1, 2, ... It does not change what was learned: asked twice with equal streams it answers the same.
``update(state, t, arm, seen, reward, rng)``
    Arm ``seen`` was observed to pay ``reward`` in [0, 1] because ``arm`` was pulled at step t. It is
    called once for every observed arm, **the pulled arm last**: ``seen == arm`` ends the step. Bandit
    feedback is the case in which nothing but the pulled arm is seen; UCB-N, TS-N, KL-UCB-N and BGE-N are
    UCB1, Thompson, KLUCB and BoltzmannGumbel with more calls.
``probabilities(state, t, out)``
    The distribution of `select`.

Python runs kernels as they are, the simulator compiles the same source. Fields of the state that are annotated with a kind
(`abex.kinds`) are what was learned: a file holds them and nothing else, arms that come and go take their entries along, and
what has the kind `Chance` stays with a decision until its reward comes. `prepare` makes what follows from them, and `resume` is
the one way into a state. A NamedTuple of arrays and numbers plays too, but is not saved.
"""

from __future__ import annotations

import dataclasses
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from abex.graphs.graph import NO_KEY, FeedbackGraph, as_graph
from abex.kernels import Record, explain
from abex.kinds import restore
from abex.support.errors import UserError
from abex.support.parameters import MOST_ARMS as MOST_ARMS
from abex.support.parameters import check_parameters
from abex.support.plugins import register
from abex.support.tables import markdown_of

State = TypeVar("State")
registry: dict[str, type[Policy[Any]]] = {}  # every class so far, by its name


class Setting(NamedTuple):
    """What a policy may know before the first step."""

    n_arms: int
    horizon: int | None = None
    graph: FeedbackGraph | None = None  # None for bandit feedback
    graph_key: np.uint64 = NO_KEY  # names the draws of a graph that is drawn at random


NO_SUCH_ARM = "no such arm"  # what a compiled loop says when a policy of another package selects one


@contextmanager
def arms_exist(policy: Any, n_arms: int, others: Iterable[Callable[..., Any]] = ()) -> Iterator[None]:
    """Say in a sentence which policy selected an arm that is not there, or why it, or one of ``others``, cannot be compiled."""
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
        sentence = explain(error, [policy.select, policy.update, *others])
        # Numba's own hundreds of lines stay in the error's __context__
        raise UserError(
            sentence
            or f"{policy} cannot be compiled: select must return a whole number from 0 to {n_arms - 1}, and not a float or None"
        ) from None


class Kernels(NamedTuple):
    """The functions by which a policy plays."""

    select: Callable[..., Any]
    update: Callable[..., Any]


class Policy(ABC, Generic[State]):
    """A rule that chooses which arm to pull next; see the module's text for what it promises."""

    needs_graph: ClassVar[bool] = False  # refuses to start without a feedback graph
    identifies: ClassVar[bool] = False  # its aim is to know the best arm, at some cost of regret
    #: whether `probabilities` costs no more than `select`: then players work them out with every decision
    cheap_probabilities: ClassVar[bool] = False
    resizable: ClassVar[bool] = True  # arms may be added and removed while it plays
    horizon_sets: ClassVar[
        tuple[str, ...]
    ] = ()  # parameters that follow from the horizon where they are None
    also_known_as: ClassVar[tuple[str, ...]] = ()  # names in the literature, for `abex list`
    variants: ClassVar[dict[str, dict[str, Any]]] = {}  # names in the literature of it with these parameters

    def __post_init__(self) -> None:
        check_parameters(self)

    @property
    def needs_horizon(self) -> bool:
        """Whether `start` refuses a setting without a horizon."""
        return any(getattr(self, name) is None for name in self.horizon_sets)

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

    #: Kernel ``probabilities(state, t, out)``: the distribution of `select` into ``out``. It may integrate and allocate
    #: (`abex.kernels.compile_alone` runs it compiled). All policies of this library have it; None: not known.
    probabilities: ClassVar[Any] = None

    def kernels(self) -> Kernels:
        """The kernels by which this policy plays, in every setting."""
        for kernel in (self.select, self.update):
            if inspect.ismethod(kernel):
                raise UserError(
                    f"{type(self).__name__}.{kernel.__name__} must be a static method: a kernel gets the state, not the policy"
                )
        return Kernels(self.select, self.update)

    def report(self, state: State) -> dict[str, float]:
        """Numbers about a played state that a person wants to see beside the regret."""
        return {}

    # -- what is learned ------------------------------------------------------------------------------

    def prepare(self, state: State) -> State:
        """The state with all that follows from what is learned (`abex.kinds`): samplers, tables. It may be prepared again.

        ValueError where what is learned contradicts itself: it may come from a file.
        """
        return state

    def resume(self, setting: Setting, values: Any, keep: NDArray[np.int64] | None = None) -> State:
        """The state that goes on from what `abex.kinds.saved` gave of another one, or from what it knew of its arms ``keep``."""
        state: Any = self.start(setting)
        restore(state, values, setting.n_arms, keep)
        return self.prepare(state)

    def can_resize(self, state: Any) -> bool:
        """Whether arms may be added to a state and removed from it: only of a `Record` is it known what was learned."""
        return self.resizable and isinstance(state, Record)

    # -- policies are values --------------------------------------------------------------------------

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not cls.__name__.startswith("_"):
            register(registry, cls)

    def __str__(self) -> str:
        """The policy as a person would type it: parameters at their default are left out."""
        shown = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in dataclasses.fields(self)  # type: ignore[arg-type]
            if getattr(self, field.name) != field.default
        ]
        return f"{type(self).__name__}({', '.join(shown)})" if shown else type(self).__name__

    def _repr_markdown_(self) -> str:
        """Name, parameters and rule with its formula, for notebooks."""
        return f"**{self}**. {markdown_of(inspect.getdoc(type(self)) or '')}"

    def horizon_of(self, setting: Setting) -> int:
        """The horizon of ``setting``, for policies that cannot play without."""
        if setting.horizon is None:
            raise UserError(
                f"{self} needs to know the horizon: pass horizon=..., or set its parameters explicitly"
            )
        return setting.horizon

    def graph_of(self, setting: Setting) -> FeedbackGraph:
        """The feedback graph of ``setting``, for policies that cannot play without."""
        if setting.graph is None:
            raise UserError(f"{self} needs to know the feedback graph: pass graph=Graph.from_edges(...)")
        graph = as_graph(setting.graph)
        if graph.n_arms != setting.n_arms:
            raise UserError(
                f"the graph has {graph.n_arms} arms and the setting {setting.n_arms}: they must agree"
            )
        return graph


def plays_on(policy: Policy[Any], graph: FeedbackGraph) -> bool:
    """Whether a policy starts on a graph: one that plans on it refuses graphs that change."""
    try:
        with np.errstate(over="ignore"):  # keys of draws wrap
            policy.start(Setting(graph.n_arms, 1_000, graph))
    except UserError:
        return False
    return True
