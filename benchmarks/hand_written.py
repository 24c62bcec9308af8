"""Fused Numba loops of the policies, as written by hand without this package: the baselines of `policies.py`."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit
def uniform(means, steps, checkpoints, curve, rng):
    K = means.size
    best = means.max()
    regret, c = 0.0, 0
    for t in range(1, steps + 1):
        k = int(rng.random() * K)
        reward = 1.0 if rng.random() < means[k] else 0.0
        regret += best - means[k]
        if reward < 0.0:
            regret += reward
        if t == checkpoints[c]:
            curve[c] = regret
            c += 1


@njit
def epsilon_greedy(means, steps, checkpoints, curve, rng):
    K = means.size
    best = means.max()
    n, m = np.zeros(K), np.zeros(K)
    regret, c = 0.0, 0
    for t in range(1, steps + 1):
        if t <= K:
            k = t - 1
        elif rng.random() < 0.1:
            k = int(rng.random() * K)
        else:
            k = 0
            for j in range(1, K):
                if m[j] > m[k]:
                    k = j
        reward = 1.0 if rng.random() < means[k] else 0.0
        n[k] += 1
        m[k] += (reward - m[k]) / n[k]
        regret += best - means[k]
        if t == checkpoints[c]:
            curve[c] = regret
            c += 1


@njit
def ucb1(means, steps, checkpoints, curve, rng):
    K = means.size
    best = means.max()
    n, s = np.zeros(K), np.zeros(K)
    regret, c = 0.0, 0
    for t in range(1, steps + 1):
        if t <= K:
            k = t - 1
        else:
            k, top = 0, -1.0
            for j in range(K):
                index = s[j] / n[j] + math.sqrt(2.0 * math.log(t) / n[j])
                if index > top:
                    k, top = j, index
        reward = 1.0 if rng.random() < means[k] else 0.0
        n[k] += 1
        s[k] += reward
        regret += best - means[k]
        if t == checkpoints[c]:
            curve[c] = regret
            c += 1


@njit
def ucbv(means, steps, checkpoints, curve, rng):
    K = means.size
    best = means.max()
    n, s, q = np.zeros(K), np.zeros(K), np.zeros(K)
    regret, c = 0.0, 0
    for t in range(1, steps + 1):
        if t <= K:
            k = t - 1
        else:
            level = 1.2 * math.log(t)
            k, top = 0, -1.0
            for j in range(K):
                mean = s[j] / n[j]
                variance = q[j] / n[j] - mean * mean
                index = mean + math.sqrt(2.0 * max(variance, 0.0) * level / n[j]) + 3.0 * level / n[j]
                if index > top:
                    k, top = j, index
        reward = 1.0 if rng.random() < means[k] else 0.0
        n[k] += 1
        s[k] += reward
        q[k] += reward * reward
        regret += best - means[k]
        if t == checkpoints[c]:
            curve[c] = regret
            c += 1


@njit
def klucb(means, steps, checkpoints, curve, rng):
    K = means.size
    best = means.max()
    n, s = np.zeros(K), np.zeros(K)
    regret, c = 0.0, 0
    for t in range(1, steps + 1):
        if t <= K:
            k = t - 1
        else:
            k, top = 0, -1.0
            for j in range(K):
                p = min(max(s[j] / n[j], 1e-15), 1.0 - 1e-15)
                d = math.log(t) / n[j]
                low, high = p, min(1.0 - 1e-15, p + math.sqrt(d / 2.0))
                for _ in range(30):
                    q = 0.5 * (low + high)
                    if p * math.log(p / q) + (1.0 - p) * math.log((1.0 - p) / (1.0 - q)) <= d:
                        low = q
                    else:
                        high = q
                if low > top:
                    k, top = j, low
        reward = 1.0 if rng.random() < means[k] else 0.0
        n[k] += 1
        s[k] += reward
        regret += best - means[k]
        if t == checkpoints[c]:
            curve[c] = regret
            c += 1


@njit
def moss(means, steps, checkpoints, curve, rng):
    K = means.size
    best = means.max()
    n, s = np.zeros(K), np.zeros(K)
    regret, c = 0.0, 0
    for t in range(1, steps + 1):
        if t <= K:
            k = t - 1
        else:
            k, top = 0, -1.0
            for j in range(K):
                index = s[j] / n[j] + math.sqrt(max(math.log(steps / (K * n[j])), 0.0) / n[j])
                if index > top:
                    k, top = j, index
        reward = 1.0 if rng.random() < means[k] else 0.0
        n[k] += 1
        s[k] += reward
        regret += best - means[k]
        if t == checkpoints[c]:
            curve[c] = regret
            c += 1


@njit
def thompson(means, steps, checkpoints, curve, rng):
    K = means.size
    best = means.max()
    a, b = np.ones(K), np.ones(K)
    regret, c = 0.0, 0
    for t in range(1, steps + 1):
        k, top = 0, -1.0
        for j in range(K):
            theta = rng.beta(a[j], b[j])
            if theta > top:
                k, top = j, theta
        if rng.random() < means[k]:
            a[k] += 1
        else:
            b[k] += 1
        regret += best - means[k]
        if t == checkpoints[c]:
            curve[c] = regret
            c += 1


@njit
def boltzmann(means, steps, checkpoints, curve, rng):
    K = means.size
    best = means.max()
    n, m, w = np.zeros(K), np.zeros(K), np.zeros(K)
    regret, c = 0.0, 0
    for t in range(1, steps + 1):
        rate = math.sqrt(t - 1.0)
        top = m.max()
        total = 0.0
        for j in range(K):
            w[j] = math.exp(rate * (m[j] - top))
            total += w[j]
        u = rng.random() * total
        k = K - 1
        for j in range(K):
            u -= w[j]
            if u < 0.0:
                k = j
                break
        reward = 1.0 if rng.random() < means[k] else 0.0
        n[k] += 1
        m[k] += (reward - m[k]) / n[k]
        regret += best - means[k]
        if t == checkpoints[c]:
            curve[c] = regret
            c += 1


@njit
def gumbel(means, steps, checkpoints, curve, rng):
    K = means.size
    best = means.max()
    n, m = np.zeros(K), np.zeros(K)
    regret, c = 0.0, 0
    for t in range(1, steps + 1):
        if t <= K:
            k = t - 1
        else:
            k, top = 0, -1e300
            for j in range(K):
                index = m[j] - 0.5 / math.sqrt(n[j]) * math.log(rng.standard_exponential())
                if index > top:
                    k, top = j, index
        reward = 1.0 if rng.random() < means[k] else 0.0
        n[k] += 1
        m[k] += (reward - m[k]) / n[k]
        regret += best - means[k]
        if t == checkpoints[c]:
            curve[c] = regret
            c += 1


@njit
def draw(p, rng):
    u = rng.random()
    for k in range(p.size):
        u -= p[k]
        if u < 0.0:
            return k
    return p.size - 1


@njit
def exp3(means, steps, checkpoints, curve, rng):
    K = means.size
    best = means.max()
    g = min(1.0, math.sqrt(K * math.log(K) / ((math.e - 1.0) * steps)))
    w, p = np.zeros(K), np.zeros(K)
    regret, c = 0.0, 0
    for t in range(1, steps + 1):
        top, total = w.max(), 0.0
        for j in range(K):
            p[j] = math.exp(w[j] - top)
            total += p[j]
        for j in range(K):
            p[j] = (1.0 - g) * p[j] / total + g / K
        k = draw(p, rng)
        if rng.random() < means[k]:
            w[k] += g / K / p[k]
        regret += best - means[k]
        if t == checkpoints[c]:
            curve[c] = regret
            c += 1


@njit
def exp3ix(means, steps, checkpoints, curve, rng):
    K = means.size
    best = means.max()
    losses, p = np.zeros(K), np.zeros(K)
    regret, c = 0.0, 0
    for t in range(1, steps + 1):
        eta = math.sqrt(math.log(K) / (K * t))
        least, total = losses.min(), 0.0
        for j in range(K):
            p[j] = math.exp(-eta * (losses[j] - least))
            total += p[j]
        for j in range(K):
            p[j] /= total
        k = draw(p, rng)
        if rng.random() >= means[k]:
            losses[k] += 1.0 / (p[k] + 0.5 * eta)
        regret += best - means[k]
        if t == checkpoints[c]:
            curve[c] = regret
            c += 1


@njit
def exp3p(means, steps, checkpoints, curve, rng):
    K = means.size
    best = means.max()
    g = min(0.6, 2.0 * math.sqrt(0.6 * K * math.log(K) / steps))
    alpha = 2.0 * math.sqrt(math.log(K * steps / 0.05))
    w, p = np.zeros(K), np.zeros(K)
    regret, c = 0.0, 0
    for t in range(1, steps + 1):
        top, total = w.max(), 0.0
        for j in range(K):
            p[j] = math.exp(w[j] - top)
            total += p[j]
        for j in range(K):
            p[j] = (1.0 - g) * p[j] / total + g / K
        k = draw(p, rng)
        if rng.random() < means[k]:
            w[k] += g / (3.0 * K) / p[k]
        for j in range(K):
            w[j] += g / (3.0 * K) * alpha / (p[j] * math.sqrt(K * steps))
        regret += best - means[k]
        if t == checkpoints[c]:
            curve[c] = regret
            c += 1


@njit
def exp3pp(means, steps, checkpoints, curve, rng):
    K = means.size
    best = means.max()
    losses, p, e = np.zeros(K), np.zeros(K), np.zeros(K)
    n, m = np.zeros(K), np.zeros(K)
    regret, c = 0.0, 0
    for t in range(1, steps + 1):
        if t <= K:
            k = t - 1
            p[k] = 1.0
        else:
            eta = 0.5 * math.sqrt(math.log(K) / (t * K))
            lowest = 1.0
            for j in range(K):
                lowest = min(lowest, m[j] + math.sqrt(3.0 * math.log(t * K ** (1.0 / 3.0)) / (2.0 * n[j])))
            given = 0.0
            for j in range(K):
                gap = max(0.0, m[j] - math.sqrt(3.0 * math.log(t * K ** (1.0 / 3.0)) / (2.0 * n[j]))) - lowest
                e[j] = min(0.5 / K, eta)
                if gap > 0.0:
                    e[j] = min(e[j], 256.0 * math.log(t) / (t * gap * gap))
                given += e[j]
            least, total = losses.min(), 0.0
            for j in range(K):
                p[j] = math.exp(-eta * (losses[j] - least))
                total += p[j]
            for j in range(K):
                p[j] = (1.0 - given) * p[j] / total + e[j]
            k = draw(p, rng)
        loss = 0.0 if rng.random() < means[k] else 1.0
        losses[k] += loss / p[k]
        n[k] += 1.0
        m[k] += (loss - m[k]) / n[k]
        regret += best - means[k]
        if t == checkpoints[c]:
            curve[c] = regret
            c += 1


@njit
def tsallis(means, steps, checkpoints, curve, rng):
    K = means.size
    best = means.max()
    losses, p = np.zeros(K), np.zeros(K)
    regret, c = 0.0, 0
    for t in range(1, steps + 1):
        eta = 4.0 / math.sqrt(t)
        x = losses.min() - 2.0 / eta
        total = 2.0
        while total - 1.0 > 1e-12:
            total, slope = 0.0, 0.0
            for j in range(K):
                r = 2.0 / (eta * (losses[j] - x))
                p[j] = r * r
                total += p[j]
                slope += r * r * r
            x -= (total - 1.0) / (eta * slope)
        for j in range(K):
            p[j] /= total
        k = draw(p, rng)
        loss = 0.0 if rng.random() < means[k] else 1.0
        base = 0.5 if p[k] >= eta * eta else 0.0
        for j in range(K):
            if p[j] >= eta * eta:
                losses[j] += 0.5
        losses[k] += (loss - base) / p[k]
        regret += best - means[k]
        if t == checkpoints[c]:
            curve[c] = regret
            c += 1


LOOPS = {
    "Uniform": uniform,
    "EpsilonGreedy": epsilon_greedy,
    "UCB1": ucb1,
    "UCBV": ucbv,
    "KLUCB": klucb,
    "MOSS": moss,
    "Thompson": thompson,
    "Boltzmann": boltzmann,
    "ABE": boltzmann,
    "BoltzmannGumbel": gumbel,
    "Exp3": exp3,
    "Exp3IX": exp3ix,
    "Exp3P": exp3p,
    "Exp3PlusPlus": exp3pp,
    "TsallisINF": tsallis,
}
