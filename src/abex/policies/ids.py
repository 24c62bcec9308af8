"""Information-directed sampling on feedback graphs, for few arms."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.divergence import bernoulli_kl
from abex.errors import UserError
from abex.graphs.feedback import Feedback, reveal
from abex.kernels import kernel
from abex.parameters import truth, whole
from abex.policies.base import PerArm, Policy, Setting
from abex.policies.drawn import DrawnPolicy
from abex.policies.known_graph import known_graph
from abex.policies.thompson import learn_beta
from abex.schema import FixedAtStart, Grown, Rebuilt, Scratch

MOST_ARMS_OF_IDS = 200  # a step costs K^2 times the grid
UNLIKELY = 1e-60  # arms that are best with less probability tell nothing


class InformationState(NamedTuple):
    """Beta posteriors, their shapes on a grid, and what a step works out from them."""

    successes: Annotated[PerArm, Grown()]  # float64 (K,)
    failures: Annotated[PerArm, Grown()]  # float64 (K,)
    density: Annotated[NDArray[np.float64], Rebuilt()]  # (K, grid), posterior probability of a cell
    log_below: Annotated[
        NDArray[np.float64], Rebuilt()
    ]  # (K, grid), log of the probability to be below the middle of a cell
    mean_below: Annotated[NDArray[np.float64], Rebuilt()]  # (K, grid), mean given that
    logs: Annotated[
        NDArray[np.float64], FixedAtStart()
    ]  # (2, grid), ln x and ln(1 - x) in the middle of the cells
    joint: Annotated[NDArray[np.float64], Scratch()]  # (grid,)
    share: Annotated[NDArray[np.float64], Scratch()]  # (K,): probability that the arm is best
    means: Annotated[NDArray[np.float64], Scratch()]  # (K,)
    given: Annotated[NDArray[np.float64], Scratch()]  # (K, K): mean of arm j given that arm k is best
    regret: Annotated[NDArray[np.float64], Scratch()]  # (K,): expected regret of a pull
    told: Annotated[NDArray[np.float64], Scratch()]  # (K,): information in an arm's reward
    gain: Annotated[NDArray[np.float64], Scratch()]  # (K,): information in a pull
    probabilities: Annotated[PerArm, Scratch()]  # float64 (K,)
    who: Annotated[NDArray[np.int32], Scratch()]  # (K,)
    resample: bool
    graph: Feedback

    def restored(self, fresh: InformationState) -> InformationState:
        """The shapes follow from the posteriors."""
        for arm in np.flatnonzero((self.successes != fresh.successes) | (self.failures != fresh.failures)):
            shape_on_grid(self, int(arm))
        return self


@kernel
def shape_on_grid(state: InformationState, arm: int) -> None:
    """Tabulate the posterior of ``arm``."""
    a = state.successes[arm] - 1.0
    b = state.failures[arm] - 1.0
    grid = state.joint.size
    top = -math.inf
    for i in range(grid):
        state.density[arm, i] = a * state.logs[0, i] + b * state.logs[1, i]
        top = max(top, state.density[arm, i])
    total = 0.0
    for i in range(grid):
        state.density[arm, i] = math.exp(state.density[arm, i] - top)
        total += state.density[arm, i]
    below = 0.0
    moment = 0.0
    for i in range(grid):
        x = (i + 0.5) / grid
        cell = state.density[arm, i] / total
        state.density[arm, i] = cell
        half = below + 0.5 * cell
        state.log_below[arm, i] = math.log(max(half, 1e-300))
        state.mean_below[arm, i] = x if half <= 1e-300 else min(x, (moment + 0.5 * cell * x) / half)
        below += cell
        moment += cell * x


@kernel
def weigh_information(state: InformationState, t: int) -> None:
    """Expected regret and information gain of each pull."""
    n_arms, grid = state.density.shape
    for i in range(grid):
        total = 0.0
        for k in range(n_arms):
            total += state.log_below[k, i]
        state.joint[i] = total
    everything = 0.0
    for k in range(n_arms):
        state.share[k] = 0.0
        for i in range(grid):
            state.share[k] += state.density[k, i] * math.exp(state.joint[i] - state.log_below[k, i])
        everything += state.share[k]
    for k in range(n_arms):
        if state.share[k] < UNLIKELY * everything:
            state.share[k] = 0.0
            continue
        for j in range(n_arms):
            state.given[k, j] = 0.0
        for i in range(grid):
            weight = state.density[k, i] * math.exp(state.joint[i] - state.log_below[k, i]) / state.share[k]
            if weight > 0.0:
                for j in range(n_arms):
                    value = (i + 0.5) / grid if j == k else state.mean_below[j, i]
                    state.given[k, j] += weight * value
        state.share[k] /= everything
    for j in range(n_arms):
        state.means[j] = 0.0
        state.regret[j] = (
            0.0  # a sum over who may be best: the difference of two means would drown it in rounding
        )
        state.told[j] = 0.0
        for k in range(n_arms):
            if state.share[k] > 0.0:
                state.means[j] += state.share[k] * state.given[k, j]
                state.regret[j] += state.share[k] * max(state.given[k, k] - state.given[k, j], 0.0)
        for k in range(n_arms):
            if state.share[k] > 0.0:
                state.told[j] += state.share[k] * bernoulli_kl(state.given[k, j], state.means[j])
    for k in range(n_arms):
        state.gain[k] = 0.0
        for j in range(reveal(state.graph, t, k, state.who)):
            state.gain[k] += state.told[state.who[j]]


@kernel
def ratio(state: InformationState, i: int, j: int, q: float) -> float:
    """Information ratio of the distribution that pulls i with probability q and j otherwise."""
    regret = q * state.regret[i] + (1.0 - q) * state.regret[j]
    gain = q * state.gain[i] + (1.0 - q) * state.gain[j]
    if regret <= 0.0:
        return 0.0
    return math.inf if gain <= 0.0 else regret * regret / gain


@kernel
def information_probabilities(state: InformationState, t: int, out: Any) -> None:
    """The distribution on two arms that minimises the information ratio."""
    weigh_information(state, t)
    n_arms = out.size
    first = 0
    second = 0
    share = 1.0
    least = math.inf
    for i in range(n_arms):
        out[i] = 0.0
        if state.regret[i] < state.regret[first]:
            first = i  # where nothing can be learned: the least regret
    for i in range(n_arms):
        for j in range(i, n_arms):
            slope = state.regret[i] - state.regret[j]
            rise = state.gain[i] - state.gain[j]
            q = 1.0
            if slope != 0.0 and rise != 0.0:
                q = min(max(state.regret[j] / slope - 2.0 * state.gain[j] / rise, 0.0), 1.0)
            for choice in (q, 0.0, 1.0):
                value = ratio(state, i, j, choice)
                if value < least:
                    least = value
                    first = i
                    second = j
                    share = choice
    if least == math.inf:
        share = 1.0
    out[first] += share
    out[second] += 1.0 - share


@dataclass(frozen=True)
class IDSN(DrawnPolicy[InformationState]):
    r"""Information-directed sampling that counts what the neighbours tell.

    Minimises :math:`(\pi\cdot\Delta)^2/\pi\cdot Gh` over distributions :math:`\pi` of the pull (two arms suffice):
    :math:`\Delta_k` is the expected regret of pulling k, :math:`h_k` the mutual information between the best arm and the
    reward of k, and :math:`(Gh)_k=\sum_{j\in out(k)}h_j`; all from Beta posteriors on a grid.

    Parameters
    ----------
    grid : int
        Cells of [0, 1].
    resample : bool
        As in `Thompson`.

    Notes
    -----
    Cost O(K^2 grid) per step: at most 200 arms, pleasant up to 50. Plays every graph, shown before the pull.

    References
    ----------
    Liu, Buccapatnam, Shroff 2018, Section 3 (IDS-N), from memory; the integrals follow Russo and Van Roy 2018, Algorithm 2.
    Not verified against the publications.

    Examples
    --------
    >>> from abex import Graph, Player
    >>> star = Graph.from_edges([(0, 1), (0, 2), (0, 3)])
    >>> Player(IDSN(), n_arms=4, graph=star, seed=0).select()
    0
    """

    grid: int = whole(100, least=10, most=10_000)
    resample: bool = truth(True)
    needs_graph = True
    resizable = False
    remembers = ()  # nothing is weighed
    names_matter = True  # of distributions that are as good, the first is taken
    also_known_as = ("IDS-N",)

    def start(self, setting: Setting) -> InformationState:
        """Uniform priors."""
        record, n = known_graph(self, setting), setting.n_arms
        if n > MOST_ARMS_OF_IDS:
            raise UserError(f"{self} plays at most {MOST_ARMS_OF_IDS} arms, got {n}: try UCBMaxN or TSMaxN")
        middle = (np.arange(self.grid) + 0.5) / self.grid
        state = InformationState(
            successes=np.ones(n),
            failures=np.ones(n),
            density=np.zeros((n, self.grid)),
            log_below=np.zeros((n, self.grid)),
            mean_below=np.zeros((n, self.grid)),
            logs=np.log(np.stack([middle, 1.0 - middle])),
            joint=np.zeros(self.grid),
            share=np.zeros(n),
            means=np.zeros(n),
            given=np.zeros((n, n)),
            regret=np.zeros(n),
            told=np.zeros(n),
            gain=np.zeros(n),
            probabilities=np.zeros(n),
            who=np.zeros(n, dtype=np.int32),
            resample=self.resample,
            graph=record,
        )
        for arm in range(n):
            shape_on_grid(state, arm)
        return state

    probabilities = staticmethod(information_probabilities)

    @classmethod
    def examples(cls) -> Iterator[Policy[Any]]:
        """A coarse grid, to be quick."""
        yield cls(grid=10)

    @staticmethod
    @kernel
    def update(state: InformationState, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Count, and tabulate the posterior anew."""
        learn_beta(state, t, arm, seen, reward, rng)
        shape_on_grid(state, seen)
