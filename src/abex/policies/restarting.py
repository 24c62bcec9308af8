"""A policy that starts anew when a detector says that the world has changed."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Scalars, kernel
from abex.policies.detectors import GLR, Detector, clear, observe
from abex.policies.forgetting import Forgetting, age, forced, lived, plain_rule, scanned, take_in, with_parts
from abex.policies.klucb import KLUCB
from abex.policies.policy import PerArm, Setting
from abex.policies.statistics import Blank, blank_of, forget, weigh_in
from abex.samplers import scan_for
from abex.samplers.indices import index_of, level_at
from abex.schema import ArmNumbers, Count, FixedAtStart
from abex.support.errors import UserError, shown
from abex.support.parameters import choice, real

MOST_ALARMS = 1000  # that are remembered with their step
RESTARTS = ("all", "arm")


class RestartClock(Scalars):
    """Where a restarting policy stands."""

    step: Annotated[int, Count()]  # the decision under way
    began: Annotated[int, Count()]  # the decision that was under way at the last restart of all arms
    alarms: Annotated[int, Count()]


class Watched(NamedTuple):
    """The detector's record, when each arm was last started anew, and the alarms."""

    clock: RestartClock
    detector: Any
    starts: Annotated[PerArm, Count()]  # int64 (K,)
    alarms: Annotated[NDArray[np.int64], Count()]  # (MOST_ALARMS,), the decision under way at each alarm
    alarmed: Annotated[NDArray[np.int64], ArmNumbers()]  # (MOST_ALARMS,), the arm that raised it
    period: int  # every so many steps each arm is tried once; 0: never
    single: bool  # only the arm that raised the alarm is started anew
    blank: Annotated[Blank, FixedAtStart()]

    def restored(self, fresh: Watched) -> Watched:
        """What the detector counts has a place."""
        self.detector.check()
        return self

    def relinked(self, inner: Any) -> Any:
        """The inner state whose rule looks at these restarts."""
        if isinstance(getattr(inner, "rule", None), RestartRule):
            return with_parts(inner, rule=inner.rule._replace(starts=self.starts))
        return inner


@age.register(Watched)
@kernel
def age_watched(memory: Watched, inner: Any, t: int) -> None:
    """Nothing fades."""
    memory.clock.step = max(memory.clock.step, t)


@lived.register(Watched)
@kernel
def lived_watched(memory: Watched, t: int) -> float:
    """The steps since all arms were last started anew."""
    return float(max(t - memory.clock.began, 1))


@forced.register(Watched)
@kernel
def forced_watched(memory: Watched, t: int) -> int:
    """Every period begins with each arm once: detection needs rewards of all."""
    if memory.period > 0:
        arm = (max(t - memory.clock.began, 1) - 1) % memory.period
        if arm < memory.starts.size:
            return int(arm)
    return -1


@take_in.register(Watched)
@kernel
def take_in_watched(memory: Watched, inner: Any, t: int, arm: int, seen: int, reward: float) -> None:
    """Learn, unless the arm was started anew since; an alarm starts the arm, or all, anew."""
    clock = memory.clock
    clock.step = max(clock.step, t)
    if t <= memory.starts[seen]:
        return  # a late reward of the world before the change
    weigh_in(inner, memory.blank, seen, reward, 1.0)
    if not observe(memory.detector, seen, reward):
        return
    if clock.alarms < memory.alarms.size:
        memory.alarms[clock.alarms] = clock.step
        memory.alarmed[clock.alarms] = seen
    clock.alarms += 1
    if memory.single:
        restart_arm(memory, inner, seen)
        return
    clock.began = clock.step
    for k in range(memory.starts.size):
        restart_arm(memory, inner, k)


@kernel
def restart_arm(memory: Watched, inner: Any, arm: int) -> None:
    """Forget what is known of an arm."""
    forget(inner, memory.blank, arm)
    clear(memory.detector, arm)
    memory.starts[arm] = memory.clock.step


class RestartRule(NamedTuple):
    """The rule of an index whose time runs, for each arm, since its own restart; the level is the time itself."""

    rule: Any
    starts: NDArray[np.int64]  # (K,)


@level_at.register(RestartRule)
@kernel
def restart_level(rule: RestartRule, n_arms: int, t: float) -> float:
    """The time."""
    return t


@index_of.register(RestartRule)
@kernel
def restart_index(rule: RestartRule, state: Any, arm: int, level: float) -> float:
    """At the level of the arm's own time."""
    if state.observations[arm] == 0.0:
        return np.inf
    own = max(level - rule.starts[arm], 1.0)
    return index_of(rule.rule, state, arm, level_at(rule.rule, state.means.size, own))


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
        KLUCB (the default), UCB1, Thompson, Evidence, ABE, Boltzmann, IMED, Maillard, or another that is ``forgettable``.
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

    def memory(self, setting: Setting, inner: Any) -> Watched:
        """No alarm yet."""
        n = setting.n_arms
        return Watched(
            clock=RestartClock(),
            detector=self.detector.watch(n),
            starts=np.zeros(n, np.int64),
            alarms=np.zeros(MOST_ALARMS, np.int64),
            alarmed=np.zeros(MOST_ALARMS, np.int64),
            period=int(min(n / self.exploration, 2.0**60)) if self.exploration > 0.0 else 0,
            single=self.restart == "arm",
            blank=blank_of(inner),
        )

    def adapted(self, inner: Any, memory: Watched) -> Any:
        """A scan where an arm cannot be filed as one never observed, and where each has a time of its own."""
        if memory.single and hasattr(inner, "rule"):
            rule, scan = RestartRule(plain_rule(inner), memory.starts), scan_for("index", inner.means.size)
            return with_parts(inner, rule=rule, sampler=scan)
        laws: tuple[str, ...] = ("Gumbel",)
        if not np.isfinite(memory.blank.first):
            laws = ("Gumbel", "softmax")
        return scanned(inner, laws)

    def memory_with_arms(self, memory: Watched, fresh: Watched, keep: NDArray[np.int64]) -> Watched:
        """What was watched of the arms that stay."""
        for old, new in zip(memory.detector, fresh.detector, strict=True):
            if isinstance(new, np.ndarray):
                new[: keep.size] = old[keep]
        fresh.starts[:] = memory.clock.step
        fresh.starts[: keep.size] = memory.starts[keep]
        return fresh._replace(clock=copy.copy(memory.clock))

    def alarms(self, state: Any) -> list[tuple[int, int]]:
        """The alarms of a played state, at most `MOST_ALARMS`: (the decision under way, the arm that raised it)."""
        memory = state.memory
        count = min(int(memory.clock.alarms), MOST_ALARMS)
        return [(int(t), int(k)) for t, k in zip(memory.alarms[:count], memory.alarmed[:count], strict=True)]

    def report(self, state: Any) -> dict[str, float]:
        """How many alarms there were, and what the policy inside reports."""
        return {"alarms": float(state.memory.clock.alarms), **self.policy.report(state.inner)}
