"""Slow, obvious versions of what policies for many arms compute."""

import math

import numpy as np


def boltzmann_law(values, rate):
    """softmax(rate * values)."""
    weights = np.exp(rate * (values - values.max()))
    return weights / weights.sum()


def kl(p, q):
    """Divergence of two coins."""
    q = min(max(q, 1e-15), 1 - 1e-15)
    return sum(a * math.log(a / b) for a, b in ((p, q), (1 - p, 1 - q)) if a > 0)


def kl_index(mean, level):
    """Largest q with kl(mean, q) <= level, by bisection."""
    low, high = mean, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if kl(mean, middle) <= level else (low, middle)
    return low


def index_from_history(policy, rewards, t, n_arms, horizon):
    """The index of an arm from all that it paid, by the formulas of the literature."""
    n, mean, variance = len(rewards), np.mean(rewards), np.var(rewards)
    name = type(policy).__name__
    if name == "UCB1":
        return mean + math.sqrt(policy.scale * math.log(t) / n)
    if name == "UCBV":
        level = policy.zeta * math.log(t)
        return mean + math.sqrt(2 * variance * level / n) + 3 * policy.c * level / n
    if name == "KLUCB":
        level = math.log(t) + (policy.c * math.log(math.log(t)) if t >= 3 else 0.0)
        return kl_index(mean, max(level, 0.0) / n)
    if name == "KLUCBPlusPlus":
        fair = horizon / (n_arms * n)
        return kl_index(mean, max(math.log(fair * (1 + max(math.log(fair), 0.0) ** 2)), 0.0) / n)
    if policy.anytime is None:
        return mean + math.sqrt(max(math.log(horizon / (n_arms * n)), 0.0) / n)
    return mean + math.sqrt((1 + policy.anytime) / 2 * max(math.log(t / (n_arms * n)), 0.0) / n)
