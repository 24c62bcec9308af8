"""How a policy spent its pulls: whether the bandit learned anything or was as good as a coin."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class PolicyReport:
    """Choice of arms over a fit, in windows of equal length.

    Entropies are divided by ln K: 1 is uniform choice, 0 a single arm. A sample of N uniform pulls has entropy
    a little below 1, about 1 - (K - 1)/(2 N ln K); ``coin`` is that value for a window.
    """

    n_arms: int
    n_pulls: int
    share: NDArray[np.float64]  # (K,) of the pulls
    mean_reward: NDArray[np.float64]  # (K,), nan where never pulled
    entropy: float  # of all pulls
    pulls: NDArray[np.int64]  # (windows,) pulls made by the end of each window
    entropy_by_window: NDArray[np.float64]
    reward_by_window: NDArray[np.float64]
    coin: float

    @property
    def as_good_as_a_coin(self) -> bool:
        """Whether no window's entropy is clearly below that of uniform choice."""
        return bool((self.entropy_by_window > self.coin - 0.02).all())

    def __str__(self) -> str:
        best = np.argsort(-self.share, kind="stable")[:5]
        favourites = ", ".join(f"{arm} ({100 * self.share[arm]:.1f} %)" for arm in best)
        verdict = (
            "chose like a coin"
            if self.as_good_as_a_coin
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
            f"entropy {self.entropy:.4f} of 1 (a coin's window: {self.coin:.4f}); most pulled: {favourites}\n"
            f"  {'pulls':>9} {'entropy':>9} {'mean reward':>12}\n{windows}"
        )


def policy_report(arms: Any, rewards: Any, n_arms: int, windows: int = 10) -> PolicyReport:
    """Summarise pulls (N,) and their rewards.

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
        1.0 - (n_arms - 1) / (2 * length * math.log(n_arms)) if n_arms > 1 else 1.0,
    )


def entropy_of(counts: NDArray[np.int64]) -> float:
    """Entropy of the shares over its largest value ln K; 1 when there is nothing to choose."""
    if counts.size < 2 or counts.sum() == 0:
        return 1.0
    share = counts[counts > 0] / counts.sum()
    return abs(float((share * np.log(share)).sum())) / math.log(counts.size)
