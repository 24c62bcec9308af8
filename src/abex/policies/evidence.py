"""The policy to start with: evidence-weighted Boltzmann exploration, whose energy is the evidence against each arm."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from abex.kernels import kernel
from abex.kinds import Count, Mean, Number, Score, Total, agree
from abex.policies.aiming import aim_on, observer_of, observer_probabilities
from abex.policies.change_test import ChangeTest, change_found, check_blocks, go_on, new_change_test
from abex.policies.kept_order import KeptOrder, begin_era, check_order, keep_arms, learn_relative, new_order
from abex.policies.known_graph import known_graph
from abex.policies.learner import Learned, Learner
from abex.policies.policy import Setting
from abex.policies.ucbv import learn_squares
from abex.samplers import draw, sampler_for
from abex.samplers.evidence import leading_arm
from abex.support.parameters import HUGE, real, truth


class EvidenceState(Learned):
    """Number, mean, squared deviations and range of the rewards of each arm, what draws from them, and what is tested."""

    observations: Count  # float64 (K,), observations that count: a change leaves few
    means: Mean  # float64 (K,)
    squares: Total  # float64 (K,), sum of (x - mean)^2
    lowest: Score  # float64 (K,), lowest reward
    highest: Score  # float64 (K,), highest reward
    least_reward: Number  # of all arms
    largest_reward: Number
    learned: Number  # weight of the observations so far
    came: Score  # float64 (K,), how many there were when an arm came
    test: ChangeTest
    order: KeptOrder
    initial: float  # the mean of an arm without observations
    safety: float
    forgets: bool
    aim: Any = None  # the graph, if it is known


def newcomers(came: NDArray[np.float64]) -> int:
    """How many of the last arms came in the second half of the time before the last one did.

    >>> newcomers(np.zeros(3)), newcomers(np.array([0.0, 0.0, 40.0, 90.0, 100.0]))
    (0, 2)
    """
    settled = np.flatnonzero(came <= 0.5 * came.max())
    return came.size - 1 - int(settled.max(initial=-1))


@kernel
def upper_end_probability(state: EvidenceState, t: int) -> float:
    """The probability of a cautious step, which allows for the largest possible reward."""
    return float(min(1.0, state.safety / math.sqrt(t)))


@kernel
def learn_moments(state: EvidenceState, arm: int, reward: float, weight: float) -> None:
    """Weighted mean and squared deviations (Welford), and the range of the rewards."""
    if leading_arm(state.sampler) < 0:
        state.least_reward = state.largest_reward = reward
    state.learned += weight
    if weight > 0.0:
        state.least_reward = min(state.least_reward, reward)
        state.largest_reward = max(state.largest_reward, reward)
        state.lowest[arm] = min(state.lowest[arm], reward)
        state.highest[arm] = max(state.highest[arm], reward)
    learn_squares(state, arm, reward, weight)


@dataclass(frozen=True)
class Evidence(Learner[EvidenceState]):
    r"""Evidence-weighted Boltzmann exploration (EBE), a relative of MED, Maillard and KL-MS sampling.

    An arm is drawn by how little speaks against its being the best. With :math:`N_k,\hat\mu_k,V_k` number, mean and
    variance of what was observed of arm k, :math:`\hat\mu^*` the largest mean (its arm leads), and b the highest reward
    seen so far, the evidence against k is
    :math:`x_k=N_k\,D(\hat\mu_k,V_k,\hat\mu^*,b)`, where D is the least divergence between a distribution with this
    mean and variance on :math:`(-\infty,b]` and one with mean :math:`\hat\mu^*`
    (`abex.support.divergence.two_moment_divergence`). Arm k is drawn with probability :math:`w_k/K`,
    :math:`w_k=\mathrm{erfc}\sqrt{x_k}\approx e^{-x_k}/\sqrt{\pi x_k}`, the leader with what is left; an arm never
    observed has weight 1.

    Arms that come to a player that has learned something are *newcomers*: every second time an arm is taken among them
    alone. So of n newcomers one is drawn with probability :math:`(\frac1{2n}+\frac1{2K})w_k`, any other arm that does not
    lead with :math:`\frac{w_k}{2K}`. They cease to be when others come after as long a time.

    With probability :math:`\min\{1,c/\sqrt t\}` the step is cautious: b is the upper end of rewards, 1, so that a
    rare large reward not yet seen cannot fool it. (Where a reward of 1 has been seen, as with coins, it is no other step.)

    On a known graph, having drawn k, it plays the leader if that shows k, else the arm that shows k at the least loss
    :math:`\hat\mu^*-\hat\mu_i` for the weight :math:`\sum w_j` of all arms that i shows.

    The most observed arm is tested for changes (`abex.policies.change_test`). When its rewards are no longer what they were,
    either all arms have moved together or their order is new: arms are drawn from what is fresh with the probability that the
    order is new, else from all that was observed, relative to the level (`abex.policies.kept_order`).

    Parameters
    ----------
    safety : float
        The factor c of cautious steps; 0 takes none.
    forget : bool
        Whether changes are looked for.
    aim : bool
        Whether a known graph is used to choose who shows the arm drawn; observations are used in any case.

    References
    ----------
    The divergence: Honda and Takemura 2012, Theorem 3. Drawing by it: minimum empirical divergence (MED), Honda and
    Takemura 2010; Maillard sampling, Bian and Jun 2021; KL-MS (KL-Maillard), Qin, Jun and Zhang 2023, Algorithm 1, of
    which this is the relative without a known scale.

    Notes
    -----
    Cost O(log K) per step (`abex.samplers.evidence`): a draw looks at one arm, and who leads is known. With a known graph
    that is aimed on, O(K + edges) for the steps on which an arm is drawn that the leader does not show. Needs neither
    horizon nor scale: it plays rewards a thousand times smaller the same. `probabilities` is exact in all cases, up to the
    :math:`2^{-53}` in which random numbers are counted.

    What is kept is relative to a level that multiplies the rewards of all arms. Where all arms move together, as with the hours
    of a day, the test still costs something: ``forget=False`` takes none.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(Evidence(), n_arms=2, seed=0)
    >>> player.update_many([(0, 0.0), (1, 1.0)] * 20), player.probabilities().round(3).tolist()
    (40, [0.0, 1.0])
    """

    cheap_probabilities: ClassVar[bool] = True

    safety: float = real(12.0, least=0.0, most=HUGE)
    forget: bool = truth(True)
    aim: bool = truth(True)
    also_known_as = ("EBE",)

    relative = True
    learn = staticmethod(learn_moments)

    def start(self, setting: Setting) -> EvidenceState:
        """Nothing observed."""
        n = setting.n_arms
        known = self.aim and setting.graph is not None
        state = EvidenceState.of_arms(
            n,
            lowest=np.ones(n),
            test=new_change_test(),
            order=new_order(n if self.forget else 0),
            safety=self.safety,
            forgets=self.forget,
            aim=aim_on(known_graph(self, setting), n) if known else None,
        )
        return self.prepare(state)

    def prepare(self, state: EvidenceState) -> EvidenceState:
        """Who leads; rewards are within [0, 1], and the test has those of its arm."""
        fine = bool((state.lowest >= 0.0).all() and (state.highest <= 1.0).all())
        agree(
            fine and 0.0 <= state.least_reward <= state.largest_reward <= 1.0,
            "the range of rewards must be within 0 to 1",
        )
        check_blocks(state.test, state.observations if state.forgets else None)
        check_order(state.order)
        state.sampler = sampler_for("evidence", state)
        state.order.sampler = sampler_for("evidence", state.order)
        state.sampler.newcomers = state.order.sampler.newcomers = newcomers(state.came)
        return state

    def resume(self, setting: Setting, values: Any, keep: NDArray[np.int64] | None = None) -> EvidenceState:
        """Of the arms that stay, the one that is tested goes on; if it goes, the most observed one is, its rewards one block."""
        state = super().resume(setting, values, keep)
        seen = state.observations > 0.0
        if keep is None or not seen.any():
            return state
        state.came[keep.size :] = state.learned
        state.least_reward = float(state.lowest[seen].min())
        state.largest_reward = float(state.highest[seen].max())
        go_on(state.test, state, values["test"], keep)
        keep_arms(state.order, values["order"], keep)
        return self.prepare(state)

    @staticmethod
    @kernel
    def select(state: EvidenceState, t: int, rng: Any) -> int:
        """Draw an arm by what is fresh or by what is kept, and play who shows it best."""
        cautious = rng.random() < upper_end_probability(state, t)
        order = state.order
        if order.unit >= 0 and rng.random() >= order.newness:
            target = draw(order.sampler, order, cautious, rng)
            return observer_of(state.aim, order, t, target, cautious)
        target = draw(state.sampler, state, cautious, rng)
        return observer_of(state.aim, state, t, target, cautious)

    @staticmethod
    @kernel
    def update(state: EvidenceState, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Learn mean and variance; test the most observed arm for a change."""
        learn_moments(state, seen, reward, 1.0)
        if state.forgets:
            if state.order.unit >= 0:
                learn_relative(state.order, seen, reward, state.largest_reward)
            older = change_found(state.test, state, seen, reward)
            if older > 0:
                begin_era(state.order, state, state.test, older)

    @staticmethod
    @kernel
    def probabilities(state: EvidenceState, t: int, out: Any) -> None:
        """The mixture of both tables and both kinds of steps, each handed on to the arms that are played."""
        for k in range(out.size):
            out[k] = 0.0
        order = state.order
        fresh = order.newness if order.unit >= 0 else 1.0
        for cautious in (True, False):
            share = upper_end_probability(state, t)
            if not cautious:
                share = 1.0 - share
            lead = leading_arm(state.sampler)
            observer_probabilities(state.aim, state, t, lead, cautious, fresh * share, out)
            if order.unit >= 0:
                lead = leading_arm(order.sampler)
                observer_probabilities(state.aim, order, t, lead, cautious, (1.0 - fresh) * share, out)

    def report(self, state: EvidenceState) -> dict[str, float]:
        """How often a change was found."""
        return {"changes found": float(state.test.changes)}
