"""How a policy spent its pulls: whether its choice can be told from a uniform one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.support.randomness import stream


@dataclass(frozen=True, eq=False)
class PolicyReport:
    """Choice of arms over a fit, in windows of equal length.

    Entropies are divided by ln K: 1 is uniform choice, 0 a single arm. A sample of uniform pulls has entropy below 1, far
    below when there are fewer pulls than arms; ``uniform_entropy`` and ``uniform_entropy_by_window`` are what uniform
    choice hardly ever falls below with as many pulls: five standard deviations under the mean of twenty seeded samples.
    """

    n_arms: int
    n_pulls: int
    share: NDArray[np.float64]  # (K,) of the pulls
    mean_reward: NDArray[np.float64]  # (K,), nan where never pulled
    entropy: float  # of all pulls
    pulls: NDArray[np.int64]  # (windows,) pulls made by the end of each window
    entropy_by_window: NDArray[np.float64]
    reward_by_window: NDArray[np.float64]
    uniform_entropy: float
    uniform_entropy_by_window: float
    names: tuple[str, ...]  # (K,) of the arms

    @property
    def indistinguishable_from_uniform(self) -> bool:
        """Whether neither all pulls nor most windows are less even than uniform choice."""
        uneven = np.mean(self.entropy_by_window < self.uniform_entropy_by_window)
        return bool(self.entropy >= self.uniform_entropy and uneven <= 0.5)

    def __str__(self) -> str:
        if self.n_arms == 1:
            return f"{self.n_pulls:,} searches, each through all features: there was nothing to choose"
        best = np.argsort(-self.share, kind="stable")[:5]
        favourites = ", ".join(f"{self.names[arm]} ({100 * self.share[arm]:.1f} %)" for arm in best)
        verdict = (
            "cannot be told from uniform choice"
            if self.indistinguishable_from_uniform
            else "preferred some arms: the choice is not uniform"
        )
        windows = "\n".join(
            f"  {pulls:>9,} {entropy:>9.4f} {reward:>12.6f}"
            for pulls, entropy, reward in zip(
                self.pulls, self.entropy_by_window, self.reward_by_window, strict=True
            )
        )
        return (
            f"{self.n_pulls:,} pulls of {self.n_arms} arms; the policy {verdict}\n"
            f"entropy {self.entropy:.4f} of 1 (uniform choice stays above {self.uniform_entropy:.4f}, in a window "
            f"{self.uniform_entropy_by_window:.4f}); "
            f"most pulled: {favourites}\n"
            f"  {'pulls':>9} {'entropy':>9} {'mean reward':>12}\n{windows}"
        )


def policy_report(
    arms: Any, rewards: Any, n_arms: int, windows: int = 10, names: Sequence[str] | None = None
) -> PolicyReport:
    """Summarise pulls (N,) and their rewards; arms are called by number unless there are ``names``.

    >>> report = policy_report([0, 1, 0, 0], [0.1, 0.2, 0.3, 0.2], n_arms=2, windows=2)
    >>> report.share.tolist(), report.entropy_by_window.round(3).tolist()
    ([0.75, 0.25], [1.0, 0.0])
    """
    arms, rewards = np.asarray(arms, np.int64), np.asarray(rewards, np.float64)
    counts = np.bincount(arms, minlength=n_arms)
    sums = np.bincount(arms, weights=rewards, minlength=n_arms)
    parts = [part for part in np.array_split(np.arange(arms.size), windows) if part.size]
    length = max(1, arms.size // windows)
    return PolicyReport(
        n_arms,
        int(arms.size),
        counts / max(1, arms.size),
        np.divide(sums, counts, out=np.full(n_arms, np.nan), where=counts > 0),
        entropy_of(counts),
        np.array([part[-1] + 1 for part in parts], np.int64),
        np.array([entropy_of(np.bincount(arms[part], minlength=n_arms)) for part in parts]),
        np.array([rewards[part].mean() for part in parts]),
        uniform_entropy(int(arms.size), n_arms),
        uniform_entropy(length, n_arms),
        tuple(names or map(str, range(n_arms))),
    )


def uniform_entropy(pulls: int, n_arms: int, samples: int = 20) -> float:
    """What the entropy of uniform pulls hardly ever falls below."""
    rng = stream(0, "coin", pulls, n_arms)
    share = np.full(n_arms, 1.0 / n_arms)
    found = [entropy_of(rng.multinomial(pulls, share)) for _ in range(samples)]
    return float(np.mean(found) - 5.0 * np.std(found))


def entropy_of(counts: NDArray[np.int64]) -> float:
    """Entropy of the shares over its largest value ln K; 1 when there is nothing to choose."""
    if counts.size < 2 or counts.sum() == 0:
        return 1.0
    share = counts[counts > 0] / counts.sum()
    return abs(float((share * np.log(share)).sum())) / math.log(counts.size)
