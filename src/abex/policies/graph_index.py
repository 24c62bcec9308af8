"""Index policies that know the graph: aim at the most promising arm, pull the best arm that shows it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.graphs.feedback import Feedback, observers
from abex.kernels import kernel, single_dispatch
from abex.policies.base import PerArm, Policy, Setting
from abex.policies.known_graph import known_graph
from abex.policies.means import learn_mean
from abex.policies.thompson import MOST_PRIOR, learn_beta
from abex.policies.ucb import inv_sqrt_counts
from abex.samplers import changed, distribution, draw, sampler_for
from abex.samplers.largest_beta import largest_beta
from abex.schema import Count, Grown, MeanOf, Rebuilt, Scratch
from abex.support.parameters import HUGE, real, truth
from abex.support.randomness import argmax, below


@single_dispatch
def promise(state: Any, arm: int) -> float:
    """How good the policy takes an arm to be that may show the one it aims at (kernel)."""
    return 0.0


@kernel
def best_observer(state: Any, t: int, aim: int, rng: Any) -> int:
    """The most promising of the arms that show ``aim``, ties broken uniformly."""
    count = observers(state.graph, t, aim, state.who)
    top = -2.0
    best = aim
    ties = 0
    for j in range(count):
        other = state.who[j]
        value = promise(state, other)
        if value > top:
            top = value
            best = other
            ties = 1
        elif value == top:
            ties += 1
            if rng.random() * ties < 1.0:
                best = other
    return int(best)


@kernel
def share_among_observers(state: Any, t: int, aim: int, share: float, out: Any) -> None:
    """Add ``share``, in equal parts, to the most promising of the arms that show ``aim``."""
    count = observers(state.graph, t, aim, state.who)
    top = -2.0
    ties = 0
    for j in range(count):
        value = promise(state, state.who[j])
        if value > top:
            top = value
            ties = 0
        if value == top:
            ties += 1
    for j in range(count):
        if promise(state, state.who[j]) == top:
            out[state.who[j]] += share / ties


class AimedMeans(NamedTuple):
    """Means with their inv_sqrt_counts, the graph, and room for the arms that show another."""

    observations: Annotated[PerArm, Count()]  # float64 (K,)
    means: Annotated[PerArm, MeanOf("observations")]  # float64 (K,), +inf before the first observation
    inv_sqrt_count: Annotated[PerArm, Rebuilt()]  # float64 (K,), 1/sqrt(observations)
    score: Annotated[PerArm, Scratch()]  # float64 (K,)
    who: Annotated[NDArray[np.int32], Scratch()]  # (K,)
    scale: float
    graph: Feedback

    def restored(self, fresh: AimedMeans) -> AimedMeans:
        """The inv_sqrt_counts follow from the observations."""
        return self._replace(inv_sqrt_count=inv_sqrt_counts(self.observations))


@kernel
def learn_width(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
    """Mean and width of an observed arm."""
    learn_mean(state, t, arm, seen, reward, rng)
    state.inv_sqrt_count[seen] = 1.0 / math.sqrt(state.observations[seen])


@promise.register(AimedMeans)
@kernel
def observed_mean(state: AimedMeans, arm: int) -> float:
    """The mean; an arm never observed comes last."""
    return state.means[arm] if state.observations[arm] > 0.0 else -1.0


@kernel
def write_bounds(state: AimedMeans, t: int) -> None:
    """The upper confidence bounds of all arms."""
    width = math.sqrt(state.scale * math.log(t))
    for k in range(state.means.size):
        state.score[k] = state.means[k] + width * state.inv_sqrt_count[k]


@dataclass(frozen=True)
class UCBMaxN(Policy[AimedMeans]):
    r"""Find the largest upper confidence bound, play the best mean among the arms that reveal it.

    :math:`j=\arg\max_k\hat\mu_k+\sqrt{a\ln t/N_k}`, then :math:`\arg\max_{i\in in(j)}\hat\mu_i`; an arm never observed comes
    first as j and last as i.

    Parameters
    ----------
    scale : float
        The factor a, as in `UCB1`.

    Notes
    -----
    Cost O(K) per step. Plays every graph, shown before the pull.

    References
    ----------
    Caron, Kveton, Lelarge, Bhagat 2012, Algorithm 2 (UCB-MaxN) and Theorem 2.

    Examples
    --------
    >>> from abex import Graph, Player
    >>> player = Player(UCBMaxN(), n_arms=3, graph=Graph.from_edges([(0, 1), (1, 2)]), seed=0)
    >>> player.update(1, 0.9, also={0: 0.5, 2: 0.5}), player.select()
    (True, 1)
    """

    scale: float = real(2.0, least=0.0, most=HUGE)
    needs_graph = True
    resizable = False
    also_known_as = ("UCB-MaxN",)

    def start(self, setting: Setting) -> AimedMeans:
        """Record of means; unseen arms stand at +inf."""
        record, n = known_graph(self, setting), setting.n_arms
        who = np.zeros(n, dtype=np.int32)
        return AimedMeans(
            np.zeros(n), np.full(n, np.inf), np.zeros(n), np.zeros(n), who, float(self.scale), record
        )

    @staticmethod
    @kernel
    def select(state: AimedMeans, t: int, rng: Any) -> int:
        """The best arm that shows the arm with the largest bound."""
        write_bounds(state, t)
        aim = argmax(state.score, rng)
        return best_observer(state, t, aim, rng)

    @staticmethod
    @kernel
    def probabilities(state: AimedMeans, t: int, out: Any) -> None:
        """The largest bounds share, and so do the best arms that show one of them."""
        write_bounds(state, t)
        aims, top = 0, -math.inf
        for k in range(out.size):
            out[k] = 0.0
            if state.score[k] > top:
                aims, top = 0, state.score[k]
            if state.score[k] == top:
                aims += 1
        for k in range(out.size):
            if state.score[k] == top:
                share_among_observers(state, t, k, 1.0 / aims, out)

    update = staticmethod(learn_width)


class AimedBeta(NamedTuple):
    """Beta posteriors, the graph, and room for the arms that show another."""

    successes: Annotated[PerArm, Grown()]  # float64 (K,)
    failures: Annotated[PerArm, Grown()]  # float64 (K,)
    score: Annotated[PerArm, Scratch()]  # float64 (K,)
    who: Annotated[NDArray[np.int32], Scratch()]  # (K,)
    resample: bool
    graph: Feedback


@promise.register(AimedBeta)
@kernel
def posterior_mean(state: AimedBeta, arm: int) -> float:
    """The mean of the posterior."""
    return state.successes[arm] / (state.successes[arm] + state.failures[arm])  # type: ignore[no-any-return]


@dataclass(frozen=True)
class TSMaxN(Policy[AimedBeta]):
    r"""Find the largest posterior draw, play the best posterior mean among the arms that reveal it.

    :math:`\theta_k\sim\mathrm{Beta}(a+S_k,b+F_k)`, :math:`j=\arg\max\theta`, then the largest posterior mean over
    :math:`in(j)`.

    Parameters
    ----------
    successes, failures, resample : float, float, bool
        As in `Thompson`.

    Notes
    -----
    Cost O(K) Beta draws per step. Plays every graph, shown before the pull.

    References
    ----------
    Tossou, Dimitrakakis, Dubhashi 2017, Section 3 (TS-MaxN).

    Examples
    --------
    >>> from abex import Graph, Player
    >>> player = Player(TSMaxN(), n_arms=2, graph=Graph.from_edges([(0, 1)]), seed=0)
    >>> player.update(1, 1.0, also={0: 0.0}), player.select()
    (True, 1)
    """

    successes: float = real(1.0, above=0.0, most=MOST_PRIOR)
    failures: float = real(1.0, above=0.0, most=MOST_PRIOR)
    resample: bool = truth(True)
    needs_graph = True
    resizable = False
    also_known_as = ("TS-MaxN",)

    def start(self, setting: Setting) -> AimedBeta:
        """The prior, for every arm."""
        record, n = known_graph(self, setting), setting.n_arms
        return AimedBeta(
            np.full(n, float(self.successes)),
            np.full(n, float(self.failures)),
            np.zeros(n),
            np.zeros(n, dtype=np.int32),
            self.resample,
            record,
        )

    @staticmethod
    @kernel
    def select(state: AimedBeta, t: int, rng: Any) -> int:
        """The best arm that shows the arm with the largest draw."""
        for k in range(state.score.size):
            state.score[k] = rng.beta(state.successes[k], state.failures[k])
        aim = argmax(state.score, rng)
        return best_observer(state, t, aim, rng)

    @staticmethod
    @kernel
    def probabilities(state: AimedBeta, t: int, out: Any) -> None:
        """What is shown by an arm when the draw of another, to which it leads, is the largest."""
        largest_beta(state.successes, state.failures, state.score)
        for k in range(out.size):
            out[k] = 0.0
        for k in range(out.size):
            if state.score[k] > 0.0:
                share_among_observers(state, t, k, state.score[k], out)

    update = staticmethod(learn_beta)


class MixedBeta(NamedTuple):
    """Beta posteriors, what finds the largest draw, and the share of uniform pulls (nan: it follows the step)."""

    successes: Annotated[PerArm, Grown()]  # float64 (K,)
    failures: Annotated[PerArm, Grown()]  # float64 (K,)
    sampler: Any  # of the largest draw
    prior_successes: float
    prior_failures: float
    resample: bool
    epsilon: float


@kernel
def uniform_share(state: MixedBeta, t: int) -> float:
    """How many of the pulls are uniform at step t."""
    return 1.0 / math.sqrt(t) if math.isnan(state.epsilon) else state.epsilon


@dataclass(frozen=True)
class TSU(Policy[MixedBeta]):
    r"""Thompson sampling for directed graphs: with probability :math:`\epsilon` a uniform arm, else the largest draw.

    The mixture keeps every arm's probability above :math:`\epsilon/K`, which the analysis of directed graphs needs. No graph
    knowledge.

    Parameters
    ----------
    epsilon : float or None
        None takes :math:`1/\sqrt T`, or :math:`1/\sqrt t` at step t where the horizon is not known: our choice.
    successes, failures, resample : float, float, bool
        As in `Thompson`.

    Notes
    -----
    Cost O(log K) per step, roughly (`abex.samplers.exceedance`); O(K) draws for a few arms or a prior below 1.
    Plays every graph.

    References
    ----------
    Liu, Zheng, Shroff 2018, "Analysis of Thompson Sampling for Graphical Bandits Without the Graphs" (TS-U). Of it the abstract
    could be read, which says that Thompson sampling is mixed with uniform exploration; the mixing rate is ours.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(TSU(epsilon=0.0), n_arms=2, seed=0)
    >>> player.update_many([(1, 1.0)] * 40 + [(0, 0.0)] * 40), player.select()
    (80, 1)
    """

    epsilon: float | None = real(None, least=0.0, most=1.0, or_none=True)
    successes: float = real(1.0, above=0.0, most=MOST_PRIOR)
    failures: float = real(1.0, above=0.0, most=MOST_PRIOR)
    resample: bool = truth(True)
    also_known_as = ("TS-U",)

    def start(self, setting: Setting) -> MixedBeta:
        """The prior, for every arm."""
        n = setting.n_arms
        epsilon = self.epsilon
        if epsilon is None:
            epsilon = math.nan if setting.horizon is None else 1.0 / math.sqrt(max(setting.horizon, 1))
        prior = np.full(n, float(self.successes)), np.full(n, float(self.failures))
        return self.with_sampler(
            MixedBeta(*prior, None, self.successes, self.failures, self.resample, float(epsilon))
        )

    def new_sampler(self, state: MixedBeta) -> Any:
        """Find the largest draw."""
        return sampler_for("Beta", state)

    @staticmethod
    @kernel
    def select(state: MixedBeta, t: int, rng: Any) -> int:
        """A uniform arm now and then, else the largest draw."""
        if rng.random() < uniform_share(state, t):
            return below(state.successes.size, rng)
        return draw(state.sampler, state, t, rng)

    @staticmethod
    @kernel
    def probabilities(state: MixedBeta, t: int, out: Any) -> None:
        """The mixture."""
        epsilon = uniform_share(state, t)
        distribution(state.sampler, state, t, out)
        for k in range(out.size):
            out[k] = epsilon / out.size + (1.0 - epsilon) * out[k]

    @staticmethod
    @kernel
    def update(state: MixedBeta, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Count a success or a failure."""
        learn_beta(state, t, arm, seen, reward, rng)
        changed(state.sampler, state, seen)

    @classmethod
    def examples(cls) -> Iterator[Policy[Any]]:
        """The default share of uniform pulls, and a large one."""
        yield cls()
        yield cls(epsilon=0.3)
