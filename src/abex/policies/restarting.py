"""A policy that starts anew when a detector says that the world has changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Record, kernel
from abex.kinds import Arms, Count, Series, Whole
from abex.policies.detectors import GLR, Detector, clear, observe
from abex.policies.forgetting import (
    Forgetting,
    Shrinking,
    alarmed,
    enters,
    forced,
    forget,
    leaves,
    lived,
    shrinking,
)
from abex.policies.klucb import KLUCB
from abex.policies.policy import Setting
from abex.samplers.interface import time_of_arm, times_differ
from abex.support.errors import UserError, shown
from abex.support.parameters import choice, real

MAX_ALARMS = 1000  # that are remembered with their step
RESTARTS = ("all", "arm")


class Alarms(Record):
    """The first alarms since arms came or went."""

    count: Whole
    steps: Series  # int64 (MAX_ALARMS,), the decision under way at each alarm
    arms: Arms  # int64 (MAX_ALARMS,), the arm that raised it


class Watched(Record):
    """The detector's record, when each arm was last started anew, and the alarms."""

    step: Whole  # the decision under way
    began: Whole  # the decision that was under way at the last restart of all arms
    alarms: Whole
    starts: Count  # int64 (K,)
    detector: Any
    log: Alarms
    period: int  # every so many steps each arm is tried once; 0: never
    single: bool  # only the arm that raised the alarm is started anew
    next: int  # arm to be started anew,
    last: int  # up to this one, exclusive
    shrinking: Shrinking

    def scans(self, law: str, few: int) -> bool:
        """Whether all arms are looked at: where one cannot be filed as never observed, and where each has a time of its own."""
        return law in ("Gumbel", "softmax") or (self.single and law not in ("Beta", "softmax"))


@leaves.register(Watched)
@kernel
def leave_watched(memory: Watched, t: int, entering: bool) -> tuple[int, float, float]:
    """What was known of arms that are started anew."""
    memory.step = max(memory.step, t)
    if memory.next == memory.last:
        return -1, 0.0, 0.0
    arm = memory.next
    memory.next += 1
    forget(memory.shrinking, arm)
    clear(memory.detector, arm)
    memory.starts[arm] = memory.step
    return arm, 0.0, 0.0


@enters.register(Watched)
@kernel
def enter_watched(memory: Watched, t: int, arm: int, reward: float) -> float:
    """Learn, unless the arm was started anew since; an alarm starts the arm, or all, anew."""
    if t <= memory.starts[arm]:
        return 0.0  # a late reward of the world before the change
    if observe(memory.detector, arm, reward):
        log = memory.log
        if log.count < log.arms.size:
            log.steps[log.count] = memory.step
            log.arms[log.count] = arm
            log.count += 1
        memory.alarms += 1
        memory.next, memory.last = arm, arm + 1
        if not memory.single:
            memory.next, memory.last = 0, memory.starts.size
            memory.began = memory.step
    return 1.0


@alarmed.register(Watched)
@kernel
def alarmed_watched(memory: Watched) -> bool:
    """Whether arms are to be started anew."""
    return memory.next < memory.last


@lived.register(Watched)
@kernel
def lived_watched(memory: Watched, t: int) -> float:
    """The steps since all arms were last started anew."""
    return float(max(t - memory.began, 1))


@forced.register(Watched)
@kernel
def forced_watched(memory: Watched, t: int) -> int:
    """Every period begins with each arm once: detection needs rewards of all."""
    if memory.period > 0:
        arm = (max(t - memory.began, 1) - 1) % memory.period
        if arm < memory.starts.size:
            return int(arm)
    return -1


@times_differ.register(Watched)
@kernel
def times_differ_watched(memory: Watched) -> bool:
    """Where an alarm starts one arm anew."""
    return memory.single


@time_of_arm.register(Watched)
@kernel
def time_since_restart(memory: Watched, arm: int, t: float) -> float:
    """The steps since its own restart."""
    return float(max(t - memory.starts[arm], 1.0))


@dataclass(frozen=True)
class Restarting(Forgetting):
    r"""A policy that starts anew when the rewards of an arm have changed.

    A detector watches the rewards of every arm since its last restart :math:`\tau_k`; at an alarm, all arms or that one are as
    if never observed. The policy inside plays with :math:`t-\tau` in the place of t. In every
    :math:`\lfloor K/\alpha\rfloor` steps each arm is tried once, whatever the policy would do, since a change is only seen in an
    arm that is tried. ``Restarting(KLUCB(), detector=GLR())`` is GLR-klUCB.

    Parameters
    ----------
    policy : Policy
        KLUCB (the default), UCB1, Thompson, Evidence, ABE, Boltzmann, IMED, Maillard, or another `Learner`.
    detector : Detector
        `GLR` (the default), `CUSUM` or `PageHinkley`.
    exploration : float
        The share :math:`\alpha` of forced exploration; :math:`\sqrt{\Upsilon\ln T/T}` for :math:`\Upsilon` changes in T steps. 0
        forces nothing, which may do where a feedback graph shows enough.
    restart : {"all", "arm"}
        What an alarm starts anew. With "arm", the time of an index (UCB1, KLUCB) runs for each arm since its own restart.

    References
    ----------
    Besson, Kaufmann, Maillard, Seznec 2022, Algorithm 1, Theorems 5 and 9 (GLR-klUCB, global and local restarts): regret
    :math:`O(\sqrt{\Upsilon T\log T})` (constants not verified against the publication); Liu, Lee, Shroff 2018 (CUSUM-UCB).

    Notes
    -----
    A reward that comes after a restart, of a decision before it, is not learned. On graphs side observations are watched too:
    the more are seen, the sooner a change is noticed. `report` tells the alarms. Cost: that of the policy and of the detector,
    constant a step for CUSUM and Page-Hinkley, for GLR with sub-sampling far below a microsecond; with "arm", index policies look
    at every arm. An alarm costs O(K). A million arms: yes with CUSUM and Page-Hinkley; GLR needs a short window then.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(Restarting(detector=GLR(delta=0.05, every=1, spacing=1)), n_arms=2, seed=0)
    >>> for t in range(400):
    ...     arm = player.select()
    ...     _ = player.update(arm, reward=float((arm == 0) == (t < 200)))
    >>> player.select(), player.report()
    (1, {'alarms': 1.0})
    """

    policy: Any = KLUCB()  # noqa: RUF009 - a value
    detector: Any = GLR()  # noqa: RUF009 - a value
    exploration: float = real(0.05, least=0.0, most=1.0)
    restart: str = choice("all", RESTARTS)
    also_known_as = ("GLR-klUCB",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.detector, Detector):
            raise UserError(f"detector must be a value such as GLR() or CUSUM(), got {shown(self.detector)}")

    def memory(self, setting: Setting, state: Any) -> Watched:
        """No alarm yet."""
        n = setting.n_arms
        return Watched(
            starts=np.zeros(n, np.int64),
            detector=self.detector.watch(n),
            log=Alarms(steps=np.zeros(MAX_ALARMS, np.int64), arms=np.full(MAX_ALARMS, -1, np.int64)),
            period=int(min(n / self.exploration, 2.0**60)) if self.exploration > 0.0 else 0,
            single=self.restart == "arm",
            shrinking=shrinking(state),
        )

    def prepare(self, state: Any) -> Any:
        """What the detector counts has a place."""
        state.memory.detector.check()
        return super().prepare(state)

    def resume(self, setting: Setting, values: Any, keep: NDArray[np.int64] | None = None) -> Any:
        """The time of arms that come begins now."""
        state = super().resume(setting, values, keep)
        if keep is not None:
            state.memory.starts[keep.size :] = state.memory.step
        return state

    def alarms(self, state: Any) -> list[tuple[int, int]]:
        """The first `MAX_ALARMS` alarms of a played state: (the decision under way, the arm that raised it)."""
        log = state.memory.log
        return list(zip(log.steps[: log.count].tolist(), log.arms[: log.count].tolist(), strict=True))

    def report(self, state: Any) -> dict[str, float]:
        """How many alarms there were, and what the policy inside reports."""
        return {"alarms": float(state.memory.alarms), **self.policy.report(state)}
