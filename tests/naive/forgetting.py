"""What a policy that forgets knows at a decision, recomputed from the whole history.

A history is a list of observations ``(step, arm, reward)``.
"""

from fractions import Fraction

import numpy as np


def discounted(history, t, n_arms, gamma):
    """Counts, means and the discounted time of decision t."""
    weights = [gamma ** (t - 1 - step) for step, _, _ in history]
    return (*weighted(history, weights, n_arms), sum(gamma ** (t - s) for s in range(1, t + 1)))


def windowed(history, t, n_arms, width):
    """Counts, means and the length of the window of decision t."""
    weights = [float(t - width <= step) for step, _, _ in history]
    return (*weighted(history, weights, n_arms), min(t, width))


def windowed_exactly(history, t, n_arms, width):
    """Counts and means of the window of decision t, as whole numbers and fractions; None where there is no mean."""
    kept = [
        [Fraction(x) for step, arm, x in history if arm == k and step >= t - width] for k in range(n_arms)
    ]
    return [len(rewards) for rewards in kept], [
        sum(rewards) / len(rewards) if rewards else None for rewards in kept
    ]


def weighted(history, weights, n_arms):
    counts, sums = np.zeros(n_arms), np.zeros(n_arms)
    for (_, arm, reward), weight in zip(history, weights, strict=True):
        counts[arm] += weight
        sums[arm] += weight * reward
    with np.errstate(invalid="ignore"):
        return counts, sums / counts
