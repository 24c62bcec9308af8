"""Policies that are one kernel: `learn` where a sampler finds the arm, `probabilities` where it is drawn from them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

from abex.kernels import kernel
from abex.policies.policy import Policy, State
from abex.samplers import changed, distribution, draw
from abex.samplers.scan import pick


@kernel
def learn_mean(state: Any, arm: int, reward: float, weight: float) -> None:
    r"""The weighted mean, :math:`N_k \mathrel{+}= w`, :math:`\hat\mu_k \mathrel{+}= (x-\hat\mu_k)\,w/N_k`.

    The first observation takes the place of the initial mean, which returns when no observation is left.
    """
    before = state.observations[arm]
    count = before + weight
    if weight < 0.0 and count <= 0.0:
        state.observations[arm] = 0.0
        state.means[arm] = state.initial
        return
    state.observations[arm] = count
    if before == 0.0:
        state.means[arm] = reward
        return
    mean = state.means[arm] + (reward - state.means[arm]) * weight / count
    if weight < 0.0:  # what leaves may have been rounded otherwise when it came
        mean = min(max(mean, 0.0), 1.0)
    state.means[arm] = mean


@cache
def learned(learn: Callable[..., Any], counted: Callable[..., Any] | None) -> Any:
    """The kernel ``update`` that learns by the kernel ``learn`` and tells the sampler."""

    @kernel
    def update(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        learn(state, seen, reward, 1.0)
        changed(state.sampler, state, seen)

    @kernel
    def update_counted(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        learn(state, seen, counted(state, reward, rng), 1.0)  # type: ignore[misc]
        changed(state.sampler, state, seen)

    return update if counted is None else update_counted


@cache
def drawn_from(probabilities: Callable[..., Any]) -> Any:
    """The kernel ``select`` that draws from the kernel ``probabilities(state, t, out)``, kept in ``state.probabilities``."""

    @kernel
    def select(state: Any, t: int, rng: Any) -> int:
        probabilities(state, t, state.probabilities)
        return pick(state.probabilities, 1.0, rng)

    return select


class DrawnPolicy(Policy[State]):
    """A policy that draws from probabilities in closed form: a subclass gives the kernel `probabilities`.

    Its state has an array ``probabilities`` for them, of the kind `Chance`: rewards are weighed by it.
    """

    @staticmethod
    def select(state: Any, t: int, rng: Any) -> int:
        """A draw from the probabilities: `drawn_from` makes it for each formula."""
        raise NotImplementedError

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if "probabilities" in vars(cls):
            cls.select = staticmethod(drawn_from(cls.probabilities))  # type: ignore[method-assign]
        super().__init_subclass__(**kwargs)


class Learner(Policy[State]):
    """A policy whose arm is found by the ``sampler`` of its state: a subclass gives the kernel `learn`.

    ``learn(state, arm, reward, weight)``: an arm was observed to pay ``reward``, with this weight; with weight -1, an
    observation leaves. `Discounted`, `Windowed` and `Restarting` call it with weights of their own.
    """

    learn: ClassVar[Any]
    #: Kernel ``counted(state, reward, rng)``: the reward as the policy counts it; None: as it is.
    counted: ClassVar[Any] = None

    @staticmethod
    def update(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        """Learn and tell the sampler: `learned` makes it for each way to learn."""
        raise NotImplementedError

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if "learn" in vars(cls) and "update" not in vars(cls):
            cls.update = staticmethod(learned(cls.learn, cls.counted))  # type: ignore[method-assign]
        super().__init_subclass__(**kwargs)

    @staticmethod
    @kernel
    def select(state: Any, t: int, rng: Any) -> int:
        """The arm that the sampler finds."""
        return draw(state.sampler, state, t, rng)

    @staticmethod
    @kernel
    def probabilities(state: Any, t: int, out: Any) -> None:
        """How likely the sampler finds each arm."""
        distribution(state.sampler, state, t, out)
