r"""Almost Boltzmann exploration (Gupta, Kong, Srikant, Wang 2019), Algorithms 1 and 2.

::

    for i = 1, 2, ...                                               open_iteration
        for j = 1, ..., |xi| floor(c i^alpha):                      while the credit pays for an exploration pull
            play xi_j                                                   next_pull
        for j = 1, ..., K 2^i:                                      for each slot
            play k with probability ~ exp(eta sqrt(t - 1) r_k)          draw
        for every arm m that a play shows: tau_m += 1, r_m = mean   learn

With bandit feedback a play shows its arm alone and xi is all arms: Algorithm 1. On a graph xi is found in the first sweep without
knowing the graph (`exploration`). The loops are unrolled into a state that knows where they stand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from abex.kernels import kernel
from abex.kinds import Count, Mean, Number, Whole, agree
from abex.policies.boltzmann import MAX_INITIAL, initial_mean, learn_softmax, root_rate
from abex.policies.exploration import (
    COVERS,
    ORDERS,
    Distribution,
    end_pull,
    exploration_sequence,
    next_pull,
    recount,
    show,
    spread,
)
from abex.policies.learner import Learned, Learner
from abex.policies.means import new_means
from abex.policies.policy import Setting
from abex.policies.schedule import MAX_ALPHA, ROUNDINGS, arms_due, boltzmann_slots, exploration_rate, explores
from abex.samplers import draw
from abex.samplers.scan import softmax
from abex.support.errors import UserError
from abex.support.parameters import HUGE, choice, real

MAX_ITERATIONS = 10_000  # nobody plays the 2^40 K slots of that many


class AbeState(Learned):
    """What is known of the arms, and where the loops of the algorithm stand."""

    observations: Count  # float64 (K,), tau_k
    means: Mean  # float64 (K,), r_k
    iteration: Whole  # i
    due: Number  # arms that the sweeps of this iteration have still to show
    slots: Whole  # Boltzmann slots left in it
    explored: Whole  # exploration pulls so far
    xi: Any  # what the sweeps go through
    initial: float  # r_k of an arm without observations
    eta: float
    c: float
    alpha: float
    rounding: int


@dataclass(frozen=True)
class ABE(Learner[AbeState]):
    r"""Almost Boltzmann exploration, with bandit feedback (Algorithm 1) and on feedback graphs (Algorithm 2).

    Iteration i = 1, 2, ... plays :math:`\lfloor c\,i^\alpha\rfloor` sweeps over an exploration sequence :math:`\xi`, then
    :math:`K\,2^i` slots in which arm k has probability :math:`p_k(t)\propto\exp(\eta\sqrt{t-1}\,r_k)`, :math:`r_k` the mean
    of what was observed of k. The first sweep finds :math:`\xi`: pull a uniform arm among those not yet observed.

    Parameters
    ----------
    eta : float
        Scale of the Boltzmann rate, which decides everything. The paper does not say which it used, its authors' code has 0.4:
        try 1 or 2 for rewards that differ by a quarter, more for smaller rewards.
    c, alpha : float
        Amount of pure exploration. **With the paper's best (0.1, 0.7) the floor is 0 until i = 27**:
        no exploration before step :math:`K(2^{27}-2)`, plain Boltzmann exploration until then.
    rounding : {"floor", "carry", "ceil"}
        ``floor`` is the paper's. ``carry`` counts :math:`c\,i^\alpha K` arms to cover and keeps the fraction
        for the next iteration, so that a small c explores too. ``ceil`` explores in every iteration.
    initial : float or None
        :math:`r_k` before the first observation. The paper's 0 lets an unseen arm starve; 1 is optimistic;
        None plays every arm once before all else.
    cover : {"alpha-sample", "dominating", "lp"}
        Where the sweeps go. ``alpha-sample`` is the paper's :math:`\xi`, found anew where the graph changes. ``dominating``
        sweeps over a greedy dominating set, about half as long on social networks; ``lp`` draws from the best fractional
        one. Both must know the graph, which must not change.
    order : {"random", "index"}
        How the first sweep meets the arms. ``random`` is Algorithm 2's; ``index`` is :math:`j \bmod K` of Algorithm 1, on graphs
        the next arm not yet observed. What is proved holds for both.

    Notes
    -----
    Cost per slot independent of K (`abex.samplers.buckets`), O(K) for a few arms. `report` tells the exploration slots used.
    The schedule advances with the rewards that arrive, so a decision whose reward is late does not count yet.

    References
    ----------
    Gupta, Kong, Srikant, Wang 2019, Algorithms 1 and 2, Theorems 1 and 2: regret
    :math:`O(K\log^{1+\alpha}T)`, on graphs :math:`O(\beta(G)\log^{1+\alpha}T)`, both for fixed K as T grows.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(ABE(eta=1.0, c=1.0, alpha=0.5), n_arms=3, seed=0)
    >>> for _ in range(5):
    ...     _ = player.update(player.select(), reward=1.0)
    >>> player.report()
    {'exploration_slots': 3.0, 'epoch': 1.0, 'cover': 3.0}
    """

    eta: float = real(0.4, above=0.0)
    c: float = real(0.1, least=0.0, most=HUGE)
    alpha: float = real(0.7, least=0.0, most=MAX_ALPHA)
    rounding: str = choice("floor", ROUNDINGS)
    initial: float | None = real(0.0, least=-MAX_INITIAL, most=MAX_INITIAL, or_none=True)
    cover: str = choice("alpha-sample", COVERS)
    order: str = choice("random", ORDERS)
    relative = True
    law = "softmax"
    learn = staticmethod(learn_softmax)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.order == "index" and self.cover != "alpha-sample":
            raise UserError(f"order='index' goes with cover='alpha-sample', not with {self.cover!r}")
        if self.cover != "alpha-sample":  # of this policy, not of the class
            object.__setattr__(self, "needs_graph", True)

    def start(self, setting: Setting) -> AbeState:
        """Nothing observed, the first iteration open."""
        state = new_means(
            AbeState,
            setting.n_arms,
            initial_mean(self.initial),
            xi=exploration_sequence(self, setting, self.cover, self.order),
            eta=self.eta,
            c=self.c,
            alpha=self.alpha,
            rounding=ROUNDINGS.index(self.rounding),
        )
        open_iteration(state)
        return self.prepare(state)

    def prepare(self, state: AbeState) -> AbeState:
        """What xi shows follows from it, and the sampler from the means."""
        agree(state.slots >= 1 and 1 <= state.iteration < MAX_ITERATIONS, "an iteration must be under way")
        recount(state.xi)
        return super().prepare(state)

    @staticmethod
    @kernel
    def select(state: AbeState, t: int, rng: Any) -> int:
        """The next arm of the sweep, or a draw from the Boltzmann distribution."""
        if explores(state.due):
            return next_pull(state.xi, rng)
        return draw(state.sampler, state.means, root_rate(state.eta, t), rng)

    @staticmethod
    @kernel
    def advance(state: AbeState, arm: int, seen: int) -> None:
        """A pull of the sweep pays for what it shows; the last Boltzmann slot opens the next iteration."""
        exploring = explores(state.due)
        if exploring:
            show(state.xi, seen)
        if seen != arm:
            return
        if exploring:
            state.explored += 1
            state.due -= end_pull(state.xi, arm)
            return
        state.slots -= 1
        if state.slots == 0:
            open_iteration(state)

    @staticmethod
    @kernel
    def probabilities(state: AbeState, t: int, out: Any) -> None:
        """The Boltzmann distribution, or the distribution of the next exploration pull."""
        if explores(state.due):
            spread(state.xi, out)
        else:
            softmax(state.means, root_rate(state.eta, t), out)

    def report(self, state: AbeState) -> dict[str, float]:
        """Exploration slots used, outer iteration, and pulls of a sweep (of what is found of it so far)."""
        xi = state.xi
        cover = state.means.size / xi.shows if isinstance(xi, Distribution) else xi.length
        return {
            "exploration_slots": float(state.explored),
            "epoch": float(state.iteration),
            "cover": float(cover),
        }


@kernel
def open_iteration(state: AbeState) -> None:
    """On to i + 1: K floor(c i^alpha) arms to show, then K 2^i Boltzmann slots."""
    n_arms = state.means.size
    state.iteration += 1
    rate = exploration_rate(state.c, state.alpha, state.iteration)
    state.due = arms_due(state.rounding, rate, n_arms, state.due)
    state.slots = boltzmann_slots(n_arms, state.iteration)
