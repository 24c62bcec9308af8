"""Screening: all arms that pay more than a baseline, and the others ever more rarely."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from abex.kernels import Record, kernel
from abex.kinds import Count, Mean, Score
from abex.policies.policy import Policy, Setting
from abex.samplers import changed, draw, sampler_for
from abex.samplers.sum_tree import share_of
from abex.support.parameters import HUGE, real
from abex.support.randomness import below

TINY_EXCESS = 1e-6


class ScreeningState(Record):
    """Number and recent mean of the observations, logarithms of the weights, what draws by them, and the parameters."""

    observations: Count  # float64 (K,)
    means: Mean  # float64 (K,)
    scores: Score  # float64 (K,)
    total: float  # observations of all arms
    baseline: float
    half: float
    width: float
    memory: float
    exploration: float
    sampler: Any = None


@kernel
def even_share(state: ScreeningState) -> float:
    """The probability of uniform choice."""
    if state.total == 0.0:
        return 1.0
    even = state.exploration * state.means.size
    return float(even / (even + state.total))


@dataclass(frozen=True)
class Screening(Policy[ScreeningState]):
    r"""Play all arms that pay more than a baseline, about equally often, the others ever more rarely.

    Play arm k with probability :math:`p_k=(1-\varepsilon)\,w_k/\sum_j w_j+\varepsilon/K`, where
    :math:`\varepsilon=cK/(cK+N)` after N observations, and

    .. math:: w_k=\frac{x_k^4}{x_k^4+h^4},\qquad x_k=\max\{\hat\mu_k-b,0\}+\frac{\sigma}{\sqrt{N_k}},

    1 for an arm never observed. The mean :math:`\hat\mu_k` moves by :math:`1/N_k` of the difference at each observation of the
    arm, :math:`N_k` being at most m: what is older than its last m observations fades.

    Parameters
    ----------
    baseline : float
        What an arm pays that is good for nothing, b.
    half : float
        What an arm pays above it that is played half as often as the best ones, h.
    width : float
        The doubt :math:`\sigma` in whose favour an arm is judged after one observation.
    memory : float
        Observations of an arm that count, m.
    exploration : float
        The factor c of uniform choice: every arm is chosen by it about :math:`c\ln(1+N/(cK))` times.

    Notes
    -----
    Cost O(log K) per step. Regret is linear: screening is for problems in which all good arms are wanted rather than the best
    one, such as the features of boosted trees (`abex.boosting`).

    References
    ----------
    Ours; Kursa and Rudnicki 2010, Section 2 (Boruta), screen features by their shadows in rounds of random forests. The weight is
    the function of Hill 1910, eq. (1), with exponent 4.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(Screening(exploration=0.0), n_arms=3, seed=0)
    >>> player.update_many([(0, 0.8), (1, 0.9), (2, 0.5)]), player.probabilities().round(2).tolist()
    (3, [0.5, 0.5, 0.0])
    """

    baseline: float = real(0.5, least=0.0, most=1.0)
    half: float = real(0.1, least=TINY_EXCESS, most=1.0)
    width: float = real(0.02, least=TINY_EXCESS, most=1.0)
    memory: float = real(500.0, least=1.0, most=1.0 / TINY_EXCESS)
    exploration: float = real(1.0, least=0.0, most=HUGE)

    def start(self, setting: Setting) -> ScreeningState:
        """Nothing observed: all weights are 1."""
        return self.prepare(ScreeningState.of_arms(setting.n_arms, **vars(self)))

    def prepare(self, state: ScreeningState) -> ScreeningState:
        """Count all observations, and draw by the weights."""
        state.total = float(state.observations.sum())
        state.sampler = sampler_for("weights", state.scores, 1.0)
        return state

    @staticmethod
    @kernel
    def select(state: ScreeningState, t: int, rng: Any) -> int:
        """A draw from the mixture of weights and uniform choice."""
        if rng.random() < even_share(state):
            return below(state.means.size, rng)
        return draw(state.sampler, state.scores, 1.0, rng)

    @staticmethod
    @kernel
    def update(state: ScreeningState, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Learn the recent mean."""
        state.total += 1.0
        state.observations[seen] += 1.0
        step = max(1.0 / state.observations[seen], 1.0 / state.memory)
        state.means[seen] += step * (reward - state.means[seen])
        excess = max(state.means[seen] - state.baseline, 0.0) + state.width * math.sqrt(step)
        square = (state.half / excess) * (state.half / excess)
        state.scores[seen] = -math.log(1.0 + square * square)
        changed(state.sampler, state.scores, seen)

    @staticmethod
    @kernel
    def probabilities(state: ScreeningState, t: int, out: Any) -> None:
        """The mixture."""
        share = even_share(state)
        for k in range(out.size):
            out[k] = (1.0 - share) * share_of(state.sampler, k) + share / out.size
