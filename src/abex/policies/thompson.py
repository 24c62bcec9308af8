"""Thompson sampling: play an arm with the probability that it is the best one, given what was seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from abex.kernels import kernel, single_dispatch
from abex.kinds import Total
from abex.policies.learner import Learned, Learner
from abex.policies.policy import Setting
from abex.samplers import changed
from abex.support.parameters import real, truth

MAX_PRIOR = 1e9  # observations that a prior may be worth: draws of far heavier ones are no longer told apart


class BetaState(Learned):
    """Parameters of each arm's Beta posterior, what finds the largest draw, and whether fractions are resampled."""

    successes: Total  # float64 (K,), prior included
    failures: Total  # float64 (K,), prior included
    prior_successes: float
    prior_failures: float
    resample: bool


@single_dispatch
def posterior_after(memory: Any, state: Any, arm: int, reward: float, weight: float) -> tuple[float, float]:
    """The posterior of an arm that has another one: by that, unless the memory has sums (kernel)."""
    return state.successes[arm] + weight * reward, state.failures[arm] + weight * (1.0 - reward)


@kernel
def learn_posterior(state: Any, arm: int, reward: float, weight: float) -> None:
    """Weighted successes and failures on top of the prior, never below it."""
    won, lost = posterior_after(state.memory, state, arm, reward, weight)
    state.successes[arm] = max(won, state.prior_successes)
    state.failures[arm] = max(lost, state.prior_failures)
    changed(state.sampler, state, arm)


def prior(n_arms: int, successes: float, failures: float) -> dict[str, Any]:
    """The fields of a state of which nothing is known but the prior."""
    return {
        "successes": np.full(n_arms, float(successes)),
        "failures": np.full(n_arms, float(failures)),
        "prior_successes": successes,
        "prior_failures": failures,
    }


@kernel
def coin(state: Any, reward: float, rng: Any) -> float:
    """A fraction is a coin with that probability, where the policy resamples."""
    if state.resample and 0.0 < reward < 1.0:
        return 1.0 if rng.random() < reward else 0.0
    return reward


@dataclass(frozen=True)
class Thompson(Learner[BetaState]):
    r"""Sample each arm's mean from its posterior, play the largest.

    Draw :math:`\theta_k\sim\mathrm{Beta}(a+S_k,\,b+F_k)` for every arm, play :math:`\arg\max_k\theta_k`.

    Parameters
    ----------
    successes, failures : float
        The prior's a and b; (1, 1) is uniform, the choice of the analysis.
    resample : bool
        A reward x strictly between 0 and 1 counts as a success with probability x (the theorem's rule).
        False adds x to the successes and 1 - x to the failures: less noise, no theorem.

    Notes
    -----
    Cost O(log K) per step, roughly (`abex.samplers.exceedance`); O(K) draws for a few arms or a prior below 1.

    References
    ----------
    Agrawal and Goyal 2012, Algorithms 1 and 2, Theorem 2; on feedback graphs TS-N, Tossou et al. 2017.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(Thompson(), n_arms=2, seed=0)
    >>> player.update_many([(1, 1.0)] * 40 + [(0, 0.0)] * 40)
    80
    >>> player.select()
    1
    """

    successes: float = real(1.0, above=0.0, most=MAX_PRIOR)
    failures: float = real(1.0, above=0.0, most=MAX_PRIOR)
    resample: bool = truth(True)
    also_known_as = ("TS", "TS-N")
    law = "Beta"
    learn = staticmethod(learn_posterior)
    counted = staticmethod(coin)

    def start(self, setting: Setting) -> BetaState:
        """The prior, for every arm."""
        known = prior(setting.n_arms, self.successes, self.failures)
        return self.prepare(BetaState(**known, resample=self.resample))
