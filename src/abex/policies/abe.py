"""Almost Boltzmann exploration: Boltzmann exploration with short, ever rarer sweeps over all arms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.errors import UserError
from abex.graphs.graph import Graph
from abex.kernels import Scalars, kernel
from abex.parameters import HUGE, choice, real
from abex.policies.base import PerArm, Policy, Setting
from abex.policies.boltzmann import MOST_INITIAL, Boltzmann, initial_mean, root_rate
from abex.policies.known_graph import dominating_set, exploration_distribution, only_graph
from abex.policies.means import learn_mean
from abex.policies.statistics import Known, noted, weigh_in, weigh_mean
from abex.randomness import below
from abex.samplers import changed, draw
from abex.samplers.arm_lists import swap_remove
from abex.samplers.softmax import new_softmax, pick, softmax
from abex.schema import (
    HAIR,
    MOST_COUNT,
    ArmNumbers,
    Count,
    Distribution,
    MeanOf,
    Rebuilt,
    UpToArms,
    Within,
    agree,
    positions,
)
from abex.theory.schedule import (
    MOST_POWER,
    ROUNDINGS,
    Schedule,
    arms_due,
    boltzmann_slots,
    exploration_rate,
    is_paid,
)

COVERS = ("alpha-sample", "dominating", "lp")
ORDERS = ("random", "index")
MOST_EPOCHS = 10_000  # nobody plays the 2^40 K slots of that many


class AbeClock(Scalars):
    """Where the schedule stands."""

    epoch: Annotated[int, Count()]  # outer iteration i of the paper
    slots: Annotated[int, Count()]  # Boltzmann slots left in this iteration
    found: Annotated[int, Count()]  # arms of the exploration sequence xi found so far
    missing: Annotated[
        int, Count()
    ]  # arms that no pull of xi has revealed yet; xi is complete when there is none
    next: Annotated[int, Count()]  # position in xi of the next exploration pull
    explored: Annotated[int, Count()]  # exploration slots used so far
    due: Annotated[float, Within()]  # arms still to be covered before Boltzmann slots begin


class AbeState(NamedTuple):
    """Means, the exploration sequence xi with what is still to be covered, and the clock."""

    observations: Annotated[PerArm, Count()]  # float64 (K,)
    means: Annotated[PerArm, MeanOf("observations")]  # float64 (K,)
    sampler: Any  # of the softmax of the means
    sequence: Annotated[NDArray[np.int32], ArmNumbers()]  # (K,), xi in its first clock.found places
    covers: Annotated[
        NDArray[np.int32], UpToArms()
    ]  # (K,), arms that the j-th pull of xi was the first to reveal
    missing: Annotated[
        NDArray[np.int32], ArmNumbers()
    ]  # (K,), the arms not yet revealed in its first clock.missing places
    place: Annotated[NDArray[np.int32], Rebuilt()]  # (K,), where an arm stands in `missing`, -1 once revealed
    clock: AbeClock
    exploration: Annotated[
        NDArray[np.float64], Distribution()
    ]  # (K,), distribution of the exploration pulls under cover="lp", else empty
    covered: Annotated[float, Within(0.0, MOST_COUNT)]  # arms that such a pull covers on average
    afresh: bool  # the graph changes: find a new xi in every sweep
    by_index: bool  # xi goes through the arms by their numbers
    eta: float
    c: float
    alpha: float
    rounding: int

    def restored(self, fresh: AbeState) -> AbeState:
        """What xi covers and what it misses are all arms; the places follow from the list of those missed."""
        clock, n_arms = self.clock, self.means.size
        agree(clock.found <= n_arms and clock.missing <= n_arms, "clock must count arms")
        agree(
            clock.next < clock.found or (clock.next == clock.found and clock.missing > 0),
            "clock must stand within the sequence",
        )
        agree(1 <= clock.epoch < MOST_EPOCHS and clock.slots >= 1, "clock must name an epoch")
        covers = self.covers[: clock.found]
        agree(bool((covers > 0).all()), "covers must be positive along the sequence")
        agree(
            int(self.covers.sum()) == n_arms - clock.missing,
            "covers must add up to the arms that are covered",
        )
        agree(int(covers.sum()) == n_arms - clock.missing, "covers must be 0 beyond the sequence")
        agree(self.exploration.size == 0 or self.covered >= 1.0 - HAIR, "covered must be at least an arm")
        return self._replace(place=positions(self.missing, clock.missing, self.place, "missing"))


@kernel
def is_exploring(state: AbeState) -> bool:
    """Whether the next slot belongs to pure exploration."""
    return is_paid(state.clock.due)


@kernel
def next_epoch(state: AbeState) -> None:
    """Open the next outer iteration: its exploration, counted in arms to cover, then K 2^i Boltzmann slots."""
    n_arms = state.means.size
    state.clock.epoch += 1
    epoch = state.clock.epoch
    rate = exploration_rate(state.c, state.alpha, epoch)
    state.clock.due = arms_due(state.rounding, rate, n_arms, state.clock.due)
    state.clock.slots = boltzmann_slots(n_arms, epoch)


@kernel
def reveal_arm(state: AbeState, arm: int) -> None:
    """Take ``arm`` out of the arms that xi does not cover yet and count it for the pull under way."""
    if state.place[arm] >= 0:
        state.clock.missing = swap_remove(state.missing, state.place, state.clock.missing, arm)
        state.covers[state.clock.found] += 1


@kernel
def end_of_slot(state: AbeState, arm: int) -> None:
    """Count the slot that ends with the pull of ``arm``."""
    clock = state.clock
    if not is_exploring(state):
        clock.slots -= 1
        if clock.slots == 0:
            next_epoch(state)
        return
    clock.explored += 1
    if state.exploration.size > 0:
        state.clock.due -= state.covered
        return
    covered = state.covers[clock.next]
    if clock.next == clock.found:
        if covered == 0:
            return  # a pull that somebody else chose and that revealed nothing new is no part of xi
        state.sequence[clock.found] = arm
        clock.found += 1
    state.clock.due -= covered
    clock.next += 1
    if clock.missing == 0 and clock.next == clock.found:
        clock.next = 0
        if state.afresh:
            forget_sequence(state)


@kernel
def forget_sequence(state: AbeState) -> None:
    """Start the search for xi again."""
    for k in range(state.means.size):
        state.covers[k] = 0
        state.missing[k] = k
        state.place[k] = k
    state.clock.found = 0
    state.clock.missing = state.means.size


@kernel
def next_by_index(state: AbeState) -> int:
    """The arm not yet covered that follows the last one of xi, 0 after K - 1; over a whole sweep K steps."""
    n_arms = state.means.size
    arm = 0
    if state.clock.found > 0:
        arm = int(state.sequence[state.clock.found - 1])
    while state.place[arm] < 0:
        arm = arm + 1 if arm + 1 < n_arms else 0
    return arm


@kernel
def next_of_sweep(state: AbeState, rng: Any) -> int:
    """The next arm of xi; while xi is being found, one not yet covered; under cover="lp", a draw from its distribution."""
    if state.exploration.size > 0:
        return pick(state.exploration, 1.0, rng)
    if state.clock.next < state.clock.found:
        return int(state.sequence[state.clock.next])
    if state.by_index:
        return next_by_index(state)
    return int(state.missing[below(state.clock.missing, rng)])


@kernel
def advance(state: AbeState, arm: int, seen: int) -> None:
    """Count an observation; a discovery pull of xi covers what it reveals."""
    if is_exploring(state) and state.clock.next == state.clock.found and state.exploration.size == 0:
        reveal_arm(state, seen)
    if seen == arm:
        end_of_slot(state, arm)


@weigh_in.register(AbeState)
@kernel
def weigh_in_abe(state: AbeState, blank: Known, seen: int, reward: float, weight: float) -> None:
    """The weighted mean; the softmax is that of the means."""
    weigh_mean(state, blank, seen, reward, weight)
    changed(state.sampler, state.means, seen)


@noted.register(AbeState)
@kernel
def noted_by_abe(state: AbeState, arm: int, seen: int) -> None:
    """The schedule advances."""
    advance(state, arm, seen)


@dataclass(frozen=True)
class ABE(Policy[AbeState]):
    r"""Almost Boltzmann exploration, with bandit feedback (Algorithm 1) and on feedback graphs (Algorithm 2).

    Outer iteration i = 1, 2, ... plays :math:`\lfloor c\,i^\alpha\rfloor` sweeps over an exploration sequence
    :math:`\xi`, then :math:`K\,2^i` slots in which arm k has probability
    :math:`p_k(t)\propto\exp(\eta\sqrt{t-1}\,r_k)`, :math:`r_k` the mean of what was observed of k. The sequence is
    found in the first sweep, without knowing the graph: pull a uniform arm among those not yet observed in
    this sweep until there is none. With bandit feedback :math:`\xi` is a random order of all arms (see ``order``).

    Parameters
    ----------
    eta : float
        Scale of the Boltzmann rate. The paper does not say which it used; 0.4 stands in its authors' code.
        It decides everything: try 1 or 2 for rewards that differ by a quarter, more for smaller rewards.
    c, alpha : float
        Amount of pure exploration. **With the paper's best (0.1, 0.7) the floor is 0 until i = 27**:
        no exploration before step :math:`K(2^{27}-2)`, plain Boltzmann exploration until then.
    rounding : {"floor", "carry", "ceil"}
        ``floor`` is the paper's. ``carry`` counts :math:`c\,i^\alpha K` arms to cover and keeps the fraction
        for the next iteration, so that a small c explores too. ``ceil`` explores in every iteration.
    cover : {"alpha-sample", "dominating", "lp"}
        Where the sweeps go. ``alpha-sample`` is the paper's :math:`\xi`, which needs no knowledge of the graph; on a graph
        that changes it is found anew in every sweep. ``dominating`` sweeps over a greedy dominating set, about half as
        long on social networks; ``lp`` draws from the best fractional one. Both must know the graph, which
        must not change.
    initial : float or None
        :math:`r_k` before the first observation. The paper's 0 lets an unseen arm starve; 1 is optimistic;
        None plays every arm once before all else.
    order : {"random", "index"}
        In which order the first sweep meets the arms. ``random``, the default, is Algorithm 2's. Algorithm 1 of the paper
        plays :math:`j \bmod K`, the arms by their numbers: that is ``index``, on graphs the next arm not yet observed.
        What is proved holds for both; with ``index`` the numbers of the arms matter.

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
    alpha: float = real(0.7, least=0.0, most=MOST_POWER)
    rounding: str = choice("floor", ROUNDINGS)
    initial: float | None = real(0.0, least=-MOST_INITIAL, most=MOST_INITIAL, or_none=True)
    cover: str = choice("alpha-sample", COVERS)
    order: str = choice("random", ORDERS)
    forgettable = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.order == "index":
            if self.cover != "alpha-sample":
                raise UserError(f"order='index' goes with cover='alpha-sample', not with {self.cover!r}")
            object.__setattr__(self, "names_matter", True)
        if self.cover != "alpha-sample":  # of this policy, not of the class
            object.__setattr__(self, "needs_graph", True)
            object.__setattr__(self, "changing_graphs", "none")
            object.__setattr__(self, "names_matter", True)

    def start(self, setting: Setting) -> AbeState:
        """Nothing observed, no sequence found, the first outer iteration open."""
        n = setting.n_arms
        state = AbeState(
            observations=np.zeros(n),
            means=np.full(n, initial_mean(self.initial)),
            sampler=None,
            sequence=np.zeros(n, np.int32),
            covers=np.zeros(n, np.int32),
            missing=np.arange(n, dtype=np.int32),
            place=np.arange(n, dtype=np.int32),
            clock=AbeClock(missing=n),
            exploration=np.zeros(0),
            covered=0.0,
            afresh=setting.graph is not None and self.graph_of(setting).period != 1,
            by_index=self.order == "index",
            eta=float(self.eta),
            c=float(self.c),
            alpha=float(self.alpha),
            rounding=ROUNDINGS.index(self.rounding),
        )
        if self.cover == "dominating":
            self._sweep_over(state, only_graph(self, setting))
        elif self.cover == "lp":
            distribution, value = exploration_distribution(only_graph(self, setting))
            state = state._replace(exploration=distribution, covered=n * value)
        next_epoch(state)
        return self.with_sampler(state)

    def new_sampler(self, state: AbeState) -> Any:
        """Draw from the softmax of the means."""
        return new_softmax(state.observations, initial_mean(self.initial))

    def _sweep_over(self, state: AbeState, graph: Graph) -> None:
        """Make a dominating set the exploration sequence, with the arms that each is the first to reveal."""
        arms = dominating_set(graph)
        for position, arm in enumerate(arms):
            shown = graph.out(arm)
            new = shown[state.place[shown] >= 0]
            state.sequence[position] = arm
            state.covers[position] = new.size
            state.place[new] = -1
        state.clock.found, state.clock.missing = arms.size, 0

    @staticmethod
    @kernel
    def select(state: AbeState, t: int, rng: Any) -> int:
        """The next arm of the sweep, or a draw from the Boltzmann distribution."""
        if is_exploring(state):
            return next_of_sweep(state, rng)
        return draw(state.sampler, state.means, root_rate(state.eta, t), rng)

    @staticmethod
    @kernel
    def update(state: AbeState, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Learn the mean; a discovery pull of xi covers what it reveals."""
        learn_mean(state, t, arm, seen, reward, rng)
        changed(state.sampler, state.means, seen)
        advance(state, arm, seen)

    @staticmethod
    @kernel
    def probabilities(state: AbeState, t: int, out: Any) -> None:
        """The Boltzmann distribution, or the distribution of the next exploration pull."""
        if not is_exploring(state):
            softmax(state.means, root_rate(state.eta, t), out)
            return
        for k in range(out.size):
            out[k] = state.exploration[k] if state.exploration.size > 0 else 0.0
        if state.exploration.size > 0:
            return
        if state.clock.next < state.clock.found:
            out[state.sequence[state.clock.next]] = 1.0
        elif state.by_index:
            out[next_by_index(state)] = 1.0
        else:
            for j in range(state.clock.missing):
                out[state.missing[j]] = 1.0 / state.clock.missing

    def simplest(self, setting: Setting) -> Policy[Any]:
        """Boltzmann exploration of the same rate if no step up to the horizon is an exploration slot, else itself."""
        if setting.horizon is None:
            return self
        schedule = Schedule(setting.n_arms, self.c, self.alpha, self.rounding)
        silent = schedule.exploration_slots(setting.horizon) == 0
        return Boltzmann(self.eta, "sqrt", self.initial) if silent else self

    def report(self, state: AbeState) -> dict[str, float]:
        """Exploration slots used, outer iteration, and pulls of a sweep (of what is found of it so far)."""
        return {
            "exploration_slots": float(state.clock.explored),
            "epoch": float(state.clock.epoch),
            "cover": float(state.means.size / state.covered if state.exploration.size else state.clock.found),
        }

    def with_arms(self, state: AbeState, setting: Setting, keep: NDArray[np.int64]) -> AbeState:
        """Means go along; the sequence is found anew, and the iteration under way goes on."""
        fresh = super().with_arms(state, setting, keep)
        clock = fresh.clock
        clock.epoch, clock.slots, clock.explored = state.clock.epoch, state.clock.slots, state.clock.explored
        clock.due = state.clock.due * (setting.n_arms / state.means.size)
        return fresh

    @classmethod
    def examples(cls) -> Iterator[Policy[Any]]:
        """Without exploration (the paper's best), with it, and each rounding."""
        yield cls(eta=1.0)
        yield cls(eta=1.0, c=1.0, alpha=0.5)
        yield cls(eta=1.0, c=0.3, alpha=0.5, rounding="carry", initial=1.0)
        yield cls(eta=2.0, rounding="ceil", initial=None)
        yield cls(eta=1.0, c=1.0, alpha=0.5, order="index")
        yield cls(eta=1.0, c=1.0, alpha=0.5, cover="dominating")
        yield cls(eta=1.0, c=1.0, alpha=0.5, cover="lp")
