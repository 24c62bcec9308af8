"""A policy that earns and a policy that finds the best arm, each for a share of the decisions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.kernels import Record
from abex.kinds import agree, kept_with_decisions
from abex.policies.evidence import Evidence
from abex.policies.learner import Around
from abex.policies.policy import Kernels, Setting
from abex.policies.top_two import TopTwo
from abex.support.errors import UserError
from abex.support.parameters import real

FINDER = TopTwo()  # who finds the best arm


class CertifyState(Record):
    """What both know, room for probabilities, and the share of the one that earns."""

    inner: Any  # of the policy that earns
    finder: Any  # of `TopTwo`
    law: NDArray[np.float64]  # (K,), written anew when probabilities are asked for
    share: float


@cache
def mixed_kernels(select_inside: Callable[..., Any], update_inside: Callable[..., Any]) -> Kernels:
    """The kernels of the mixture, around those of the policy that earns."""
    select_finder, update_finder = FINDER.kernels()

    def select(state: Any, t: int, rng: Any) -> int:
        if rng.random() < state.share:
            return select_inside(state.inner, t, rng)  # type: ignore[no-any-return]
        return select_finder(state.finder, t, rng)  # type: ignore[no-any-return]

    def update(state: Any, t: int, arm: int, seen: int, reward: float, rng: Any) -> None:
        update_inside(state.inner, t, arm, seen, reward, rng)
        update_finder(state.finder, t, arm, seen, reward, rng)

    return Kernels(select, update)


@cache
def mixed_probabilities(inside: Callable[..., Any]) -> Any:
    """The distribution of the mixture."""
    of_finder = FINDER.probabilities

    def probabilities(state: Any, t: int, out: Any) -> None:
        inside(state.inner, t, out)
        of_finder(state.finder, t, state.law)
        for k in range(out.size):
            out[k] = state.share * out[k] + (1.0 - state.share) * state.law[k]

    return probabilities


@dataclass(frozen=True)
class Certify(Around[CertifyState]):
    r"""A policy that earns, and beside it top-two sampling, so that who is best becomes certain soon.

    With probability :math:`\beta` as the policy inside, else as `TopTwo`; both learn from every reward:
    :math:`p_k=\beta\,p_k^{inside}+(1-\beta)\,p_k^{top\,two}`. A policy that minimises regret hardly tries what it believes to be
    worse, so its winner stays uncertain for very long; this one pays half of top-two's regret to know.

    Parameters
    ----------
    policy : Policy
        The policy that earns: Evidence unless given. It must learn in the same way whoever chose the arm.
    share : float
        Its share :math:`\beta` of the decisions.

    Notes
    -----
    Cost: that of the policy inside and O(K) per step.

    References
    ----------
    The mixture is ours; top-two sampling with costs: Jourdan et al. 2022, Section 2.2.

    Examples
    --------
    >>> from abex import Player
    >>> player = Player(Certify("Thompson"), n_arms=2, seed=0)
    >>> player.update_many([(0, 0.0), (1, 1.0)] * 20), player.probabilities().round(3).tolist()
    (40, [0.25, 0.75])
    """

    policy: Any = Evidence()  # noqa: RUF009 - a value
    share: float = real(0.5, least=0.0, most=1.0)
    identifies = True

    def start(self, setting: Setting) -> CertifyState:
        """Both as they start."""
        inner = self.policy.start(setting)
        if not isinstance(inner, Record) or kept_with_decisions(inner):
            raise UserError(
                f"Certify needs a policy that learns in the same way whoever chose the arm, such as Evidence or Thompson, "
                f"got {self.policy}"
            )
        return CertifyState(
            inner=inner, finder=FINDER.start(setting), law=np.zeros(setting.n_arms), share=self.share
        )

    def prepare(self, state: CertifyState) -> CertifyState:
        """As the policy inside."""
        state.inner = self.policy.prepare(state.inner)
        return state

    def resume(self, setting: Setting, values: Any, keep: NDArray[np.int64] | None = None) -> CertifyState:
        """Both go on."""
        agree(
            isinstance(values, dict) and values.keys() == {"inner", "finder"},
            "a mixture must have two states",
        )
        state = self.start(setting)
        state.inner = self.policy.resume(setting, values["inner"], keep)
        state.finder = FINDER.resume(setting, values["finder"], keep)
        return state

    def kernels(self) -> Kernels:
        """Around those of the policy inside."""
        return mixed_kernels(*self.policy.kernels())

    @property
    def probabilities(self) -> Any:
        """The kernel of the distribution, where the policy inside has one."""
        inside = self.policy.probabilities
        return None if inside is None else mixed_probabilities(inside)

    @property
    def cheap_probabilities(self) -> bool:  # type: ignore[override]
        """Whether those of the policy inside are."""
        cheap: bool = self.policy.cheap_probabilities
        return cheap

    def report(self, state: CertifyState) -> dict[str, float]:
        """What the policy inside reports."""
        return dict(self.policy.report(state.inner))
