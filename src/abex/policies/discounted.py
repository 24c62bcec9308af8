"""Observations that count less the older they are."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Scalars, kernel
from abex.policies.forgetting import Forgetting, age, lived, plain_rule, scanned, take_in, with_parts
from abex.policies.klucb import DivergenceRule
from abex.policies.policy import Setting
from abex.policies.statistics import Blank, blank_of, fade, weigh_in
from abex.policies.ucb import UCB1, UcbRule
from abex.samplers import FEW_FADING, scan_for
from abex.samplers.evidence import FadingTournament, MeanTournament
from abex.samplers.indices import (
    certain_until,
    contending_index,
    first_contender,
    index_of,
    level_at,
    level_of_reaching,
    level_of_rest,
    never_differ,
    stretched,
)
from abex.schema import MOST_COUNT, Count, FixedAtStart, Within
from abex.support.parameters import real

SELDOM = 2.0**40  # by so much weights may grow before all are made smaller
FAST = 0.5  # arms over steps of memory: much fades between two observations of an arm


class FadingClock(Scalars):
    """What changes with every step."""

    step: Annotated[int, Count()]  # the decision that the numbers below belong to
    factor: Annotated[float, Within(1.0, MOST_COUNT)]  # the weight of an observation of the step before it
    root: Annotated[float, Within(1.0, MOST_COUNT)]  # its square root
    total: Annotated[float, Within(0.0, MOST_COUNT)]  # 1 + gamma + gamma^2 + ..., a term for each step so far


class Fading(NamedTuple):
    """The discount, and where its clock stands.

    All weights shrink at every step, so they are kept relative to each other: instead, a new observation weighs more. When its
    weight exceeds the limit, all are made smaller at last. The limit is 1, that is at every step, for policies that read counts.
    """

    clock: FadingClock
    gamma: float
    growth: float  # 1 / gamma
    root: float  # sqrt(1 / gamma)
    limit: float
    blank: Annotated[Blank, FixedAtStart()]


@age.register(Fading)
@kernel
def age_fading(memory: Fading, inner: Any, t: int) -> None:
    """A step on, a new observation weighs 1/gamma times as much."""
    clock = memory.clock
    if t == clock.step:
        return
    if t == clock.step + 1:
        clock.factor *= memory.growth
        clock.root *= memory.root
        clock.total = clock.total * memory.gamma + 1.0
    else:
        log = math.log(memory.gamma)
        clock.factor = min(max(clock.factor * math.exp((clock.step - t) * log), 1.0), 1e300)
        clock.root = math.sqrt(clock.factor)
        clock.total = -math.expm1(t * log) / (1.0 - memory.gamma)
    clock.step = t
    if clock.factor > memory.limit:
        fade(inner, memory.blank, 1.0 / clock.factor)
        clock.factor, clock.root = 1.0, 1.0


@lived.register(Fading)
@kernel
def lived_fading(memory: Fading, t: int) -> float:
    """The discounted number of steps."""
    return memory.clock.total


@take_in.register(Fading)
@kernel
def take_in_fading(memory: Fading, inner: Any, t: int, arm: int, seen: int, reward: float) -> None:
    """The weight is that of the decision's step, however late its reward comes."""
    clock = memory.clock
    if t > clock.step:
        age_fading(memory, inner, t)
    weight = clock.factor * memory.growth
    if t < clock.step:
        weight = clock.factor * math.exp((clock.step - 1 - t) * math.log(memory.gamma))
    weigh_in(inner, memory.blank, seen, reward, weight)


class FadingRule(NamedTuple):
    """The rule of an index over counts that are ``clock.factor`` times too large."""

    rule: Any
    clock: FadingClock


@level_at.register(FadingRule)
@kernel
def fading_level(rule: FadingRule, n_arms: int, t: float) -> float:
    """That of the discounted time, for such counts."""
    return stretched(rule.rule, level_at(rule.rule, n_arms, t), rule.clock.factor, rule.clock.root)


@index_of.register(FadingRule)
@kernel
def fading_index(rule: FadingRule, state: Any, arm: int, level: float) -> float:
    """That of the rule inside."""
    return index_of(rule.rule, state, arm, level)


@contending_index.register(FadingRule)
@kernel
def fading_contending(rule: FadingRule, state: Any, arm: int, level: float, best: float) -> float:
    """That of the rule inside."""
    return contending_index(rule.rule, state, arm, level, best)


@first_contender.register(FadingRule)
@kernel
def fading_first(rule: FadingRule, state: Any) -> int:
    """That of the rule inside."""
    return first_contender(rule.rule, state)


@level_of_reaching.register(FadingRule)
@kernel
def fading_reaching(rule: FadingRule, state: Any, arm: int, value: float) -> float:
    """That of the rule inside."""
    return level_of_reaching(rule.rule, state, arm, value)


@level_of_rest.register(FadingRule)
@kernel
def fading_rest(rule: FadingRule, state: Any, arm: int) -> float:
    """That of the rule inside."""
    return level_of_rest(rule.rule, state, arm)


@certain_until.register(FadingRule)
@kernel
def fading_certain(rule: FadingRule, state: Any, champion: int, index: float, loser: int) -> float:
    """That of the rule inside."""
    return certain_until(rule.rule, state, champion, index, loser)


@never_differ.register(FadingRule)
@kernel
def fading_differ(rule: FadingRule, state: Any, one: int, two: int) -> bool:
    """That of the rule inside."""
    return never_differ(rule.rule, state, one, two)


@dataclass(frozen=True)
class Discounted(Forgetting):
    r"""A policy whose observations count less the older they are.

    At decision t an observation of step s weighs :math:`\gamma^{t-1-s}`. The policy inside plays by its formula with
    :math:`N_k=\sum_{s<t}\gamma^{t-1-s}1\{k\text{ observed at }s\}`, the means weighted alike, and the discounted time
    :math:`\sum_{s\le t}\gamma^{t-s}` in the place of t. ``Discounted(UCB1(scale))`` is D-UCB, ``Discounted(Thompson())`` is dTS.

    Parameters
    ----------
    policy : Policy
        UCB1 (the default), KLUCB, Thompson, Evidence, ABE, Boltzmann, IMED, Maillard, or another that is ``forgettable``.
    gamma : float
        The discount. For :math:`\Upsilon` changes in T steps, :math:`1-\frac14\sqrt{\Upsilon/T}` gives D-UCB regret
        :math:`O(\sqrt{T\Upsilon}\log T)` (rewards in [0, 1]). The memory reaches back about :math:`1/(1-\gamma)` steps.

    References
    ----------
    Garivier and Moulines 2011, Section 2.1 and Theorem 1 (D-UCB; their bonus :math:`2\sqrt{\xi\ln n_t/N_k}` is
    ``UCB1(scale=4 xi)``, :math:`\xi>1/2`); Raj and Kalyani 2017, Algorithm 1 (dTS).

    Notes
    -----
    A reward that comes late weighs as much as its decision's step does by then. Cost: that of the policy inside in the
    beginning of its run, a million arms included: counts are kept relative to each other. IMED, Maillard, Thompson and
    BoltzmannGumbel look at every arm at every step.

    Examples
    --------
    >>> from abex import Player, UCB1
    >>> player = Player(Discounted(UCB1(scale=0.5), gamma=0.9), n_arms=2, seed=0)
    >>> for t in range(200):
    ...     arm = player.select()
    ...     _ = player.update(arm, reward=float((arm == 0) == (t < 100)))
    >>> player.select()
    1
    """

    policy: Any = UCB1()  # noqa: RUF009 - a value
    gamma: float = real(0.99, least=0.01, most=1.0 - 1e-9)

    def memory(self, setting: Setting, inner: Any) -> Fading:
        """A clock that has not begun."""
        clock = FadingClock(step=0, factor=1.0, root=1.0, total=0.0)
        growth = 1.0 / self.gamma
        relative = hasattr(inner, "rule") or _is_softmax(inner) or _leads(inner)
        limit = SELDOM if relative else 1.0
        return Fading(clock, float(self.gamma), growth, math.sqrt(growth), limit, blank_of(inner))

    def adapted(self, inner: Any, memory: Fading) -> Any:
        """Indices at a level, and evidence, that make up for large counts; a scan where what is filed does not hold."""
        if hasattr(inner, "rule"):
            return with_parts(self.scanned_index(inner), rule=FadingRule(plain_rule(inner), memory.clock))
        if _leads(inner):
            return with_parts(
                inner, sampler=FadingTournament(winners=inner.sampler.winners, clock=memory.clock)
            )
        return scanned(inner, ("Beta", "Gumbel"))

    def scanned_index(self, inner: Any) -> Any:
        """Where counts fade, matches are soon played again: KL-UCB, and UCB1 with a short memory, are scanned for more arms."""
        n_arms, rule = inner.means.size, plain_rule(inner)
        few = isinstance(rule, DivergenceRule) and n_arms <= FEW_FADING["KL-UCB"]
        fast = isinstance(rule, UcbRule) and n_arms * (1.0 - self.gamma) > FAST
        few = few or (fast and n_arms <= FEW_FADING["UCB"])
        return with_parts(inner, sampler=scan_for("index", n_arms)) if few else inner

    def memory_with_arms(self, memory: Fading, fresh: Fading, keep: NDArray[np.int64]) -> Fading:
        """The clock goes on."""
        return fresh._replace(clock=copy.copy(memory.clock))

    also_known_as = ("D-UCB",)


def _leads(state: Any) -> bool:
    """Whether an arm is drawn by evidence, which grows with the counts."""
    return isinstance(getattr(state, "sampler", None), MeanTournament | FadingTournament)


def _is_softmax(state: Any) -> bool:
    """Whether the decisions depend on the means alone."""
    from abex.policies.abe import AbeState
    from abex.policies.boltzmann import BoltzmannState

    return isinstance(state, AbeState | BoltzmannState)
