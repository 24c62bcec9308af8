"""Observations that count less the older they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from abex.kernels import Record, kernel
from abex.kinds import Number, Whole, agree
from abex.policies.forgetting import (
    Forgetting,
    Shrinking,
    enters,
    is_known,
    leaves,
    lived,
    shrink,
    shrinking,
)
from abex.policies.policy import Setting
from abex.policies.ucb import UCB1
from abex.samplers.interface import stretch_of
from abex.support.parameters import real

SELDOM = 2.0**40  # by so much weights may grow before all are made smaller
FAST = 0.5  # arms over steps of memory: much fades between two observations of an arm


class Fading(Record):
    """The discount, and where it stands.

    All weights shrink at every step, so they are kept relative to each other: instead, a new observation weighs more. When its
    weight exceeds the limit, all are made smaller at last. The limit is 1, that is at every step, for policies that read counts.
    """

    step: Whole  # the decision that the numbers below belong to
    factor: Number  # the weight of an observation of the step before it
    total: Number  # 1 + gamma + gamma^2 + ..., a term for each step so far
    gamma: float
    growth: float  # 1 / gamma
    limit: float
    next: int  # arm to be told that all counts have been made smaller, the number of arms if all have been
    n_arms: int
    shrinking: Shrinking

    def scans(self, law: str, few: int) -> bool:
        """Whether all arms are looked at: where all change at every step; up to ``few`` where matches are soon played again."""
        fast = self.n_arms * (1.0 - self.gamma) > FAST or law != "UCB"
        return self.limit == 1.0 or (fast and self.n_arms <= few)


@leaves.register(Fading)
@kernel
def leave_fading(memory: Fading, t: int, entering: bool) -> tuple[int, float, float]:
    """Nothing does; but when all counts are made smaller, the policy is told of each."""
    if t > memory.step or (t < memory.step and not entering):
        age(memory, t)
    while memory.next < memory.n_arms:
        arm = memory.next
        memory.next += 1
        if is_known(memory.shrinking, arm):
            return arm, 0.0, 0.0
    return -1, 0.0, 0.0


@kernel
def age(memory: Fading, t: int) -> None:
    """A step on, a new observation weighs 1/gamma times as much."""
    if t == memory.step + 1:
        memory.factor *= memory.growth
        memory.total = memory.total * memory.gamma + 1.0
    else:
        log = math.log(memory.gamma)
        memory.factor = min(max(memory.factor * math.exp((memory.step - t) * log), 1.0), 1e300)
        memory.total = -math.expm1(t * log) / (1.0 - memory.gamma)
    memory.step = t
    if memory.factor > memory.limit:
        shrink(memory.shrinking, 1.0 / memory.factor)
        memory.factor = 1.0
        memory.next = 0


@enters.register(Fading)
@kernel
def enter_fading(memory: Fading, t: int, arm: int, reward: float) -> float:
    """The weight is that of the decision's step, however late its reward comes."""
    if t == memory.step:
        return memory.factor * memory.growth
    return memory.factor * math.exp((memory.step - 1 - t) * math.log(memory.gamma))


@lived.register(Fading)
@kernel
def lived_fading(memory: Fading, t: int) -> float:
    """The discounted number of steps."""
    return memory.total


@stretch_of.register(Fading)
@kernel
def stretch_of_fading(memory: Fading) -> float:
    """The weight of a new observation."""
    return memory.factor


@dataclass(frozen=True)
class Discounted(Forgetting):
    r"""A policy whose observations count less the older they are.

    At decision t an observation of step s weighs :math:`\gamma^{t-1-s}`. The policy inside plays by its formula with
    :math:`N_k=\sum_{s<t}\gamma^{t-1-s}1\{k\text{ observed at }s\}`, the means weighted alike, and the discounted time
    :math:`\sum_{s\le t}\gamma^{t-s}` in the place of t. ``Discounted(UCB1(scale))`` is D-UCB, ``Discounted(Thompson())`` is dTS.

    Parameters
    ----------
    policy : Policy
        UCB1 (the default), KLUCB, Thompson, Evidence, ABE, Boltzmann, IMED, Maillard, or another `Learner`.
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
    beginning of its run, a million arms included: counts are kept relative to each other. IMED, Maillard, Thompson,
    BoltzmannGumbel, MOSS and KL-UCB++ look at every arm at every step.

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

    def memory(self, setting: Setting, state: Any) -> Fading:
        """A clock that has not begun."""
        n = setting.n_arms
        return Fading(
            factor=1.0,
            gamma=self.gamma,
            growth=1.0 / self.gamma,
            limit=SELDOM if self.policy.relative else 1.0,
            next=n,
            n_arms=n,
            shrinking=shrinking(state),
        )

    def prepare(self, state: Any) -> Any:
        """The clock must be one that was wound up by steps."""
        memory = state.memory
        longest = 1.0 / (1.0 - self.gamma) * (1.0 + 1e-9)
        agree(1.0 <= memory.factor <= memory.limit, "factor must be a weight that new observations may have")
        agree(
            (memory.total == 0.0 and memory.step == 0) or 1.0 <= memory.total <= longest,
            "total must be a discounted time",
        )
        return super().prepare(state)

    also_known_as = ("D-UCB",)
