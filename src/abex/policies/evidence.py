"""The policy to start with: Boltzmann exploration whose energy is the evidence against each arm."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kernels import kernel
from abex.policies.aiming import Aim, NoAim, aimed, spread_aimed
from abex.policies.base import PerArm, Policy, Setting
from abex.policies.known_graph import known_graph
from abex.policies.watch import (
    MOST_BLOCKS,
    WatchClock,
    forget_before,
    look_for_change,
    push_reward,
    watch_arm,
)
from abex.samplers import changed, draw
from abex.samplers.evidence import MeanTournament, leading_arm, new_tournament, play_all
from abex.schema import MOST_COUNT, Checked, Count, FixedAtStart, MeanOf, Within, agree
from abex.support.parameters import HUGE, real, truth

KEPT = 4.0  # observations that an arm keeps after a change


class EvidenceState(NamedTuple):
    """Number, mean, squared deviations and highest reward of each arm, what draws from them, and what is watched."""

    observations: Annotated[PerArm, Count()]  # float64 (K,), observations that count: a change leaves few
    means: Annotated[PerArm, MeanOf("observations")]  # float64 (K,)
    squares: Annotated[PerArm, Within(0.0, MOST_COUNT)]  # float64 (K,), sum of (x - mean)^2
    tops: Annotated[PerArm, Within(0.0, 1.0)]  # float64 (K,), highest reward
    lows: Annotated[PerArm, Within(0.0, 1.0)]  # float64 (K,), lowest reward
    sampler: Any  # who leads, and draws
    clock: WatchClock
    blocks: Annotated[NDArray[np.float64], Checked()]  # (3, MOST_BLOCKS), rewards of the watched arm
    aim: Annotated[Any, FixedAtStart()]  # the graph, if it is known
    safety: float
    forgets: bool

    def restored(self, fresh: EvidenceState) -> EvidenceState:
        """The blocks must hold the rewards of the watched arm."""
        clock = self.clock
        count, total = self.blocks[0, : clock.blocks], self.blocks[1, : clock.blocks]
        squares = self.blocks[2, : clock.blocks]
        younger = count[
            1:
        ]  # the oldest block may have any size; of the others there are two of each power of two at most
        fine = np.isfinite(self.blocks).all() and (count >= 1.0).all() and (count == np.floor(count)).all()
        fine = (
            fine
            and (np.exp2(np.floor(np.log2(younger))) == younger).all()
            and (younger[2:] < younger[:-2]).all()
        )
        fine = fine and (squares >= 0.0).all() and bool((np.abs(total) <= count * (1.0 + 1e-6)).all())
        agree(bool(fine), "blocks must hold counts, sums and squares of rewards")
        agree(clock.lowest <= clock.highest, "lowest must not be above highest")
        if self.forgets and clock.watched >= 0:
            agree(
                count.sum() == self.observations[clock.watched],
                "blocks must hold the rewards of the watched arm",
            )
        return self


@kernel
def caution(state: EvidenceState, t: int) -> float:
    """The probability of a cautious step."""
    return float(min(1.0, state.safety / math.sqrt(t)))


@dataclass(frozen=True)
class Evidence(Policy[EvidenceState]):
    r"""Boltzmann exploration by evidence: an arm is drawn in proportion to how little speaks against it being the best.

    With :math:`N_k,\hat\mu_k,V_k` number, mean and variance of what was observed of arm k, :math:`\hat\mu^*` the
    largest mean (its arm leads), and b the highest reward seen so far, the evidence against k is
    :math:`x_k=N_k\,D(\hat\mu_k,V_k,\hat\mu^*,b)`, where D is the least divergence between a distribution with this
    mean and variance on :math:`(-\infty,b]` and one with mean :math:`\hat\mu^*`
    (`abex.support.divergence.two_moment_divergence`). Arm k is drawn with probability :math:`w_k/K`,
    :math:`w_k=\mathrm{erfc}\sqrt{x_k}\approx e^{-x_k}/\sqrt{\pi x_k}`, the leader with what is left; an arm never
    observed has weight 1.

    With probability :math:`\min\{1,c/\sqrt t\}` the step is cautious: b is the upper end of rewards, 1, so that a
    rare large reward not yet seen cannot fool it. (Where a reward of 1 has been seen, as with coins, it is no other step.)

    On a known graph, having drawn k, it plays the leader if that shows k, else the arm that shows k at the least loss
    :math:`\hat\mu^*-\hat\mu_i` for the weight :math:`\sum w_j` of all arms that i shows.

    The most observed arm is watched for changes (`abex.policies.watch`): when its rewards are no longer what they
    were, what is older is forgotten, and every other arm keeps four observations.

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
    The divergence: Honda and Takemura 2012, Theorem 3. Drawing by it: minimum empirical divergence, Honda and
    Takemura 2010; Maillard sampling, Bian and Jun 2021; KL-Maillard, Qin, Jun and Zhang 2023, Algorithm 1, of which
    this is the relative without a known scale.

    Notes
    -----
    Cost O(log K) per step (`abex.samplers.evidence`): a draw looks at one arm, and who leads is known. With a known graph
    that is aimed on, O(K + edges) for the steps on which an arm is drawn that the leader does not show. Needs neither
    horizon nor scale: it plays rewards a thousand times smaller the same. `probabilities` is exact in all cases, up to the
    :math:`2^{-53}` in which random numbers are counted.

    The watch takes any change of the leader's rewards for news about which arm is best. Where all arms move together, as with
    the hours of a day, or where rewards of 1 come sooner than those of 0 (clicks, and silence that expires), it forgets in
    vain and the regret is several times that of ``forget=False``.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(Evidence(), n_arms=2, seed=0)
    >>> player.update_many([(0, 0.0), (1, 1.0)] * 20), player.probabilities().round(3).tolist()
    (40, [0.0, 1.0])
    """

    safety: float = real(12.0, least=0.0, most=HUGE)
    forget: bool = truth(True)
    aim: bool = truth(True)
    also_known_as = ("EBE",)

    def start(self, setting: Setting) -> EvidenceState:
        """Nothing observed."""
        n = setting.n_arms
        known = self.aim and setting.graph is not None
        state = EvidenceState(
            observations=np.zeros(n),
            means=np.zeros(n),
            squares=np.zeros(n),
            tops=np.zeros(n),
            lows=np.ones(n),
            sampler=None,
            clock=WatchClock(lowest=0.0, highest=0.0, watched=-1),
            blocks=np.zeros((3, MOST_BLOCKS)),
            aim=Aim.on(known_graph(self, setting), n) if known else NoAim(n),
            safety=float(self.safety),
            forgets=self.forget,
        )
        return self.with_sampler(state)

    def new_sampler(self, state: EvidenceState) -> MeanTournament:
        """Who leads."""
        return new_tournament(state)

    def with_arms(self, state: EvidenceState, setting: Setting, keep: NDArray[np.int64]) -> EvidenceState:
        """What is watched goes on being watched; if it goes, the most observed arm left is, its rewards one block."""
        kept, before = super().with_arms(state, setting, keep), state.clock
        clock, seen = kept.clock, kept.observations > 0.0
        clock.changes = before.changes
        if not seen.any():
            return kept
        clock.lowest, clock.highest = float(kept.lows[seen].min()), float(kept.tops[seen].max())
        if before.watched in keep:
            clock.watched, clock.blocks = int(np.flatnonzero(keep == before.watched)[0]), before.blocks
            kept.blocks[:] = state.blocks
        elif before.watched >= 0:
            clock.watched, clock.blocks = int(kept.observations.argmax()), 1
            n, mean, squares = (part[clock.watched] for part in (kept.observations, kept.means, kept.squares))
            kept.blocks[:, 0] = n, n * mean, squares + n * mean * mean
        return kept

    @staticmethod
    @kernel
    def select(state: EvidenceState, t: int, rng: Any) -> int:
        """Draw an arm, and play who shows it best."""
        cautious = rng.random() < caution(state, t)
        arm = draw(state.sampler, state, cautious, rng)
        return aimed(state.aim, state, t, arm, cautious)

    @staticmethod
    @kernel
    def update(state: EvidenceState, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Learn mean and variance (Welford); watch the most observed arm."""
        clock = state.clock
        n = state.observations[seen] + 1.0
        if clock.watched < 0:
            clock.lowest = clock.highest = reward
        clock.lowest, clock.highest = min(clock.lowest, reward), max(clock.highest, reward)
        state.lows[seen] = min(state.lows[seen], reward)
        state.tops[seen] = max(state.tops[seen], reward)
        apart = reward - state.means[seen]
        state.observations[seen] = n
        state.means[seen] += apart / n
        state.squares[seen] += apart * (reward - state.means[seen])
        if clock.watched < 0 or (seen != clock.watched and n > state.observations[clock.watched]):
            watch_arm(state, seen, reward)
        older = 0
        if state.forgets and seen == clock.watched:
            push_reward(state.blocks, clock, reward)
            older = look_for_change(state)
        changed(state.sampler, state, seen)
        if older > 0:
            forget_before(state, older, KEPT)
            play_all(state.sampler, state)

    @staticmethod
    @kernel
    def probabilities(state: EvidenceState, t: int, out: Any) -> None:
        """The mixture of both kinds of steps, each handed on to the arms that are played."""
        lead = leading_arm(state.sampler)
        for k in range(out.size):
            out[k] = 0.0
        share = caution(state, t)
        spread_aimed(state.aim, state, t, lead, True, share, out)
        spread_aimed(state.aim, state, t, lead, False, 1.0 - share, out)

    def report(self, state: EvidenceState) -> dict[str, float]:
        """How often a change was found."""
        return {"changes found": float(state.clock.changes)}

    @classmethod
    def examples(cls) -> Iterator[Policy[Any]]:
        """As it is, and bare."""
        yield cls()
        yield cls(safety=0.5, forget=False, aim=False)
