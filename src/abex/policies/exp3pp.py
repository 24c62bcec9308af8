"""EXP3++: exponential weights that explore an arm less, the more clearly it is bad."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Record, kernel
from abex.kinds import Chance, Count, Mean, Score
from abex.policies.learner import DrawnPolicy
from abex.policies.means import smallest
from abex.policies.policy import Setting
from abex.samplers.scan import loss_probabilities
from abex.support.parameters import HUGE, TINY, real


class GapState(Record):
    """Estimated losses, plain means of the losses, the distribution of the last decision, and the constants."""

    losses: Score  # float64 (K,), importance-weighted sums
    pulls: Count  # float64 (K,)
    mean_losses: Mean  # float64 (K,), unweighted
    probabilities: Chance  # float64 (K,)
    floors: NDArray[np.float64]  # (K,), exploration rate of each arm, written anew at every decision
    untried: int  # arms that were never pulled
    first: float
    second: float


def gap_state(n_arms: int, first: float, second: float) -> GapState:
    """No loss yet."""
    even = np.full(n_arms, 1.0 / n_arms)
    return GapState.of_arms(n_arms, probabilities=even, untried=n_arms, first=first, second=second)


@kernel
def floored_probabilities(state: GapState, rate: float, given: float, out: Any) -> None:
    """(1 - given) softmax(-rate * losses) + floors, ``given`` the sum of the floors."""
    loss_probabilities(state.losses, rate, out)
    for k in range(out.size):
        out[k] = (1.0 - given) * out[k] + state.floors[k]


@kernel
def half_rate(n_arms: int, t: int) -> float:
    """Learning rate and cap of the floors, (1/2) sqrt(ln K / (t K))."""
    return 0.5 * math.sqrt(math.log(n_arms) / (t * n_arms))


@dataclass(frozen=True)
class Exp3PlusPlus(DrawnPolicy[GapState]):
    r"""EXP3++ with confidence-bound gap estimates (2017).

    :math:`p_k=(1-\sum_j\epsilon_j)\,\rho_k+\epsilon_k`, :math:`\rho=\mathrm{softmax}(-\eta_t\hat L)`,
    :math:`\eta_t=\frac12\sqrt{\ln K/(tK)}`, :math:`\epsilon_k=\min\{\frac1{2K},\eta_t,\xi_k\}`,
    :math:`\xi_k=b\ln t/(t\hat\Delta_k^2)`. The gap is
    :math:`\hat\Delta_k=\max\{0,\mathrm{LCB}_k-\min_j\mathrm{UCB}_j\}`, bounds of the mean losses with radius
    :math:`\sqrt{a\ln(tK^{1/a})/(2N_k)}`. Every arm is played once first.

    Parameters
    ----------
    a, b : float
        3 and 256 are the theorem's.

    Notes
    -----
    Cost O(K) per step.

    References
    ----------
    Seldin and Lugosi 2017, Algorithm 1 and Theorem 2: :math:`O(\sum_k(\ln T)^2/\Delta_k)` for stochastic
    rewards, :math:`4\sqrt{TK\ln K}` for adversarial ones.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(Exp3PlusPlus(), n_arms=2, seed=0)
    >>> player.update_many([(0, 0.0), (1, 1.0)])
    2
    >>> player.probabilities().round(2).tolist()
    [0.47, 0.53]
    """

    a: float = real(3.0, least=TINY, most=HUGE)
    b: float = real(256.0, least=TINY, most=HUGE)
    resizable = False
    also_known_as = ("EXP3++",)

    def start(self, setting: Setting) -> GapState:
        """No loss yet."""
        return gap_state(setting.n_arms, self.a, self.b)

    def prepare(self, state: GapState) -> GapState:
        """Count the arms that were never pulled."""
        state.untried = int(np.count_nonzero(state.pulls == 0.0))
        return state

    @staticmethod
    @kernel
    def probabilities(state: GapState, t: int, out: Any) -> None:
        """Uniform over unplayed arms while there are any, then the floored softmax."""
        n_arms = out.size
        if state.untried > 0:
            for k in range(n_arms):
                out[k] = 1.0 / state.untried if state.pulls[k] == 0.0 else 0.0
            return
        logarithm = math.log(t)
        level = 0.5 * (state.first * logarithm + math.log(n_arms))
        lowest = 1.0
        for k in range(n_arms):
            state.floors[k] = math.sqrt(level / state.pulls[k])
            lowest = min(lowest, state.mean_losses[k] + state.floors[k])
        rate = half_rate(n_arms, t)
        cap = min(0.5 / n_arms, rate)
        given = 0.0
        for k in range(n_arms):
            gap = max(0.0, state.mean_losses[k] - state.floors[k]) - lowest
            floor = cap if gap <= 0.0 else min(cap, state.second * logarithm / (t * gap * gap))
            state.floors[k] = floor
            given += floor
        floored_probabilities(state, rate, given, out)

    @staticmethod
    @kernel
    def update(state: GapState, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Weighted and plain loss of the pulled arm; its first pull was certain, not weighted."""
        if seen == arm:
            loss = 1.0 - reward
            first_pull = state.pulls[arm] == 0.0
            if first_pull:
                state.untried -= 1
            state.pulls[arm] += 1.0
            state.mean_losses[arm] += (loss - state.mean_losses[arm]) / state.pulls[arm]
            state.losses[arm] += loss if first_pull else loss / state.probabilities[arm]


@dataclass(frozen=True)
class Exp3PlusPlus2014(DrawnPolicy[GapState]):
    r"""EXP3++ as first published: gaps estimated from the importance-weighted losses.

    As `Exp3PlusPlus`, with :math:`\hat\Delta_k=\min\{1,(\hat L_k-\min_j\hat L_j)/t\}` and
    :math:`\xi_k=c\,(\ln t)^2/(t\hat\Delta_k^2)`, no first sweep.

    Parameters
    ----------
    c : float
        1/32 is the authors' practice, 18 the theorem's (neither verified against the publication).

    Notes
    -----
    Cost O(K) per step.

    References
    ----------
    Seldin and Slivkins 2014, Algorithm 1 and Theorem 3: :math:`O(\sum_k(\ln T)^3/\Delta_k)`.

    Examples
    --------
    >>> from abex import Player
    >>> Player(Exp3PlusPlus2014(), n_arms=2, seed=0).probabilities().tolist()
    [0.5, 0.5]
    """

    c: float = real(1.0 / 32.0, least=TINY, most=HUGE)
    resizable = False

    def start(self, setting: Setting) -> GapState:
        """No loss yet."""
        return gap_state(setting.n_arms, self.c, 0.0)

    @staticmethod
    @kernel
    def probabilities(state: GapState, t: int, out: Any) -> None:
        """The floored softmax."""
        least = smallest(state.losses)
        rate = half_rate(out.size, t)
        cap = min(0.5 / out.size, rate)
        level = state.first * math.log(t) * math.log(t) / t
        given = 0.0
        for k in range(out.size):
            gap = min(1.0, (state.losses[k] - least) / t)
            floor = cap if gap <= 0.0 else min(cap, level / (gap * gap))
            state.floors[k] = floor
            given += floor
        floored_probabilities(state, rate, given, out)

    @staticmethod
    @kernel
    def update(state: GapState, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Weighted loss of the pulled arm."""
        if seen == arm:
            state.losses[arm] += (1.0 - reward) / state.probabilities[arm]
