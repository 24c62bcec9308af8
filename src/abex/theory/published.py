"""Published regret bounds of the policies that ABE is compared with, constants included, and what none can beat."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from abex.kernels import compile_alone
from abex.policies.policy import Setting
from abex.policies.tracking import DTracking, write_proof_weights
from abex.support.divergence import bernoulli_kl
from abex.support.errors import UserError, real_number, whole_number
from abex.theory.bounds import check_gaps

EULER = 0.5772156649015329


def ucb1_bound(gaps: Iterable[float], horizon: int) -> float:
    r"""UCB1 (Auer, Cesa-Bianchi, Fischer 2002, Theorem 1), as published.

    .. math:: \mathbb{E}[R(T)] \le 8\sum_k\frac{\ln T}{\Delta_k} + \Big(1 + \frac{\pi^2}{3}\Big)\sum_k\Delta_k

    >>> round(ucb1_bound([0.25] * 9, 10**5))
    3325
    """
    gaps = check_gaps(gaps)
    horizon = whole_number("horizon", horizon, least=1)
    return float(8.0 * math.log(horizon) * np.sum(1.0 / gaps) + (1.0 + math.pi**2 / 3.0) * np.sum(gaps))


def bge_bound(
    gaps: Iterable[float], horizon: int, scale: float = 0.5, sigma: float = 0.5, free: float | None = None
) -> float:
    r"""Boltzmann-Gumbel exploration (Cesa-Bianchi, Gentile, Lugosi, Neu 2017, Theorem 3).

    .. math:: R(T) \le \sum_k\Big[\frac{9C^2\ln_+^2(T\Delta_k^2/c^2)}{\Delta_k}
              + \frac{c^2e^\gamma + 18C^2e^{\sigma^2/2C^2}(1+e^{-\gamma})}{\Delta_k} + \Delta_k\Big]

    for rewards that are :math:`\sigma^2`-subgaussian (1/2 for [0, 1]), noise of scale C and any ``free`` c > 0
    (C unless given); gamma is Euler's constant. Constants from a secondary source and re-derived in order
    only: treat them as indicative.

    >>> round(bge_bound([0.25] * 9, 10**5))
    8742
    """
    gaps = check_gaps(gaps)
    scale = real_number("scale", scale, above=0.0)
    c = scale if free is None else real_number("free", free, above=0.0)
    logs = np.log(np.maximum(horizon * gaps**2 / c**2, 1.0))
    noise = 18.0 * scale**2 * math.exp(sigma**2 / (2.0 * scale**2)) * (1.0 + math.exp(-EULER))
    return float(np.sum((9.0 * scale**2 * logs**2 + c**2 * math.exp(EULER) + noise) / gaps + gaps))


def exp3p_bound(n_arms: int, horizon: int, delta: float = 0.05) -> float:
    r"""EXP3.P (Auer, Cesa-Bianchi, Freund, Schapire 2002, Theorem 6.3), with probability :math:`1-\delta`.

    .. math:: R(T) \le 4\sqrt{KT\ln\frac{KT}{\delta}} + 4\sqrt{\tfrac53 KT\ln K} + 8\ln\frac{KT}{\delta}

    >>> round(exp3p_bound(10, 10**5))
    24371
    """
    log = math.log(n_arms * horizon / real_number("delta", delta, above=0.0, most=1.0))
    root = math.sqrt(n_arms * horizon)
    return 4.0 * root * (math.sqrt(log) + math.sqrt(5.0 / 3.0 * math.log(n_arms))) + 8.0 * log


def exp3p_bound_2012(n_arms: int, horizon: int, delta: float = 0.05) -> float:
    r"""EXP3.P as in Bubeck and Cesa-Bianchi 2012, Theorem 3.3: :math:`5.15\sqrt{TK\ln(K/\delta)}` w.p. 1 - delta.

    >>> round(exp3p_bound_2012(10, 10**5))
    11854
    """
    log = math.log(n_arms / real_number("delta", delta, above=0.0, most=1.0))
    return 5.15 * math.sqrt(horizon * n_arms * log)


def elp_bound(n_arms: int, horizon: int, independence_number: float, beta: float | None = None) -> float:
    r"""ELP (Mannor and Shamir 2011): :math:`R(T) \le 3\beta\,T\,\alpha(G) + \ln K/\beta`, for :math:`\beta \le 1/2K`.

    The default is :math:`\beta = \min\{\sqrt{\ln K/(3\alpha T)}, 1/2K\}`: :math:`2\sqrt{3\alpha T\ln K}` once T is large.
    For digraphs the clique-cover number takes the place of :math:`\alpha(G)`.

    >>> round(elp_bound(333, 50_000, independence_number=120))
    20450
    """
    size = real_number("independence_number", independence_number, least=1.0)
    log = math.log(max(n_arms, 2))
    step = min(math.sqrt(log / (3.0 * size * horizon)), 0.5 / n_arms) if beta is None else beta
    step = real_number("beta", step, above=0.0, most=0.5 / n_arms)
    return 3.0 * step * horizon * size + log / step


def garivier_kaufmann(means: Iterable[float], risk: float) -> float:
    r"""Observations that nobody can do without who names the best Bernoulli arm with this risk, :math:`T^*\,kl(\delta,1-\delta)`.

    Garivier and Kaufmann 2016, Theorem 1: it bounds the mean stop of every rule that is wrong with probability at most
    :math:`\delta` whatever the means are. :math:`1/T^*` is the largest, over shares w of the arms, of the least over rivals k of
    :math:`w_l\,kl(\mu_l,m)+w_k\,kl(\mu_k,m)`, l the best arm and m the mean of both with their shares.

    >>> round(garivier_kaufmann([0.6, 0.5], 0.01))
    890
    """
    mu = np.asarray(list(means), dtype=np.float64)
    if (
        mu.ndim != 1
        or mu.size < 2
        or not bool(np.all((mu >= 0.0) & (mu <= 1.0)))
        or (mu == mu.max()).sum() > 1
    ):
        raise UserError("means must be at least two numbers in [0, 1], of which one is the largest")
    risk = real_number("risk", risk, above=0.0, most=0.5)
    state = DTracking().start(Setting(mu.size))
    state.means[:] = mu
    compile_alone(write_proof_weights)(state)
    w, lead = state.weights, int(np.argmax(mu))
    rates = [
        w[lead] * bernoulli_kl(mu[lead], m) + w[k] * bernoulli_kl(mu[k], m)
        for k in range(mu.size)
        for m in [(w[lead] * mu[lead] + w[k] * mu[k]) / (w[lead] + w[k])]
        if k != lead
    ]
    return float(bernoulli_kl(risk, 1.0 - risk) / min(rates))


def lai_robbins(means: Iterable[float]) -> float:
    r"""The constant C of :math:`\liminf R(T)/\ln T \ge C = \sum_k\Delta_k/\mathrm{kl}(\mu_k,\mu^*)`.

    Lai and Robbins 1985, for Bernoulli arms under bandit feedback; asymptotic, not a floor at finite T. With side observations:
    `abex.graphs.numbers.regret_lower_bound`.

    >>> round(lai_robbins([0.75] + [0.5] * 332))
    577
    """
    mu = np.asarray(list(means), dtype=np.float64)
    if mu.ndim != 1 or mu.size == 0 or not bool(np.all((mu >= 0.0) & (mu <= 1.0))):
        raise UserError("means must be a non-empty list of numbers in [0, 1]")
    top = float(mu.max())
    return math.fsum((top - m) / bernoulli_kl(m, top) for m in mu[mu < top].tolist())
