"""Detectors by their definitions, from the list of all rewards since the last restart."""

import math

from tests.naive.policies import kl


def glr(rewards, delta, every, spacing):
    n = len(rewards)
    if n % every:
        return False
    whole = sum(rewards) / n
    best = 0.0
    for s in range(spacing, n, spacing):
        first, second = sum(rewards[:s]) / s, sum(rewards[s:]) / (n - s)
        best = max(best, s * kl(first, whole) + (n - s) * kl(second, whole))
    return best >= math.log(3 * n * math.sqrt(n) / delta)


def cusum(rewards, warm_up, drift, threshold):
    if len(rewards) <= warm_up:
        return False
    mean = sum(rewards[:warm_up]) / warm_up
    up = down = 0.0
    for x in rewards[warm_up:]:
        up, down = max(0.0, up + x - mean - drift), max(0.0, down + mean - x - drift)
    return max(up, down) > threshold


def page_hinkley(rewards, drift, threshold):
    up = down = 0.0
    for n in range(1, len(rewards) + 1):
        apart = rewards[n - 1] - sum(rewards[:n]) / n
        up, down = max(0.0, up + apart - drift), max(0.0, down - apart - drift)
    return max(up, down) > threshold
