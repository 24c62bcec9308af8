r"""Proved bounds of `abex.Evidence`; docs/recommended_policy.md has the proofs and what is only conjectured.

Bernoulli arms, bandit feedback, up to the first alarm of the test for changes (with ``forget=False``: for ever). Then
:math:`b=1` once a 1 was seen and the evidence is :math:`x_k=N_k\,\mathrm{kl}(\hat\mu_k,\hat\mu^*)`. All is said of the
rule; the program draws a weight as a multiple of :math:`2^{-53}`, rounded up, and one of more than 700 nats never.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from abex.policies.change_test import FACTOR, OFFSET
from abex.support.divergence import bernoulli_kl
from abex.support.errors import UserError, real_number, whole_number


def leader_probability_least(n_arms: int) -> float:
    r"""Lemma 3: the leader is drawn with probability at least :math:`1/K`, whatever was observed.

    >>> leader_probability_least(10)
    0.1
    """
    return 1.0 / whole_number("n_arms", n_arms, least=1)


def probability_most(evidence: float, n_arms: int) -> float:
    r"""Lemma 3: an observed arm that does not lead is drawn with probability at most :math:`e^{-x}/K`.

    >>> probability_most(2.0, 10)
    0.0135...
    """
    evidence, n_arms = _evidence(evidence), whole_number("n_arms", n_arms, least=1)
    return math.exp(-evidence) / n_arms


def probability_least(evidence: float, n_arms: int) -> float:
    r"""Lemma 3: how likely an observed arm is drawn at least.

    That is :math:`\frac{2}{\sqrt\pi}\,\frac{e^{-x}}{K(\sqrt x+\sqrt{x+2})}`.

    >>> probability_least(2.0, 10) < probability_most(2.0, 10)
    True
    """
    evidence, n_arms = _evidence(evidence), whole_number("n_arms", n_arms, least=1)
    tail = 2.0 / math.sqrt(math.pi) * math.exp(-evidence) / (math.sqrt(evidence) + math.sqrt(evidence + 2.0))
    return tail / n_arms


def draws_most(mean: float, best: float, n_arms: int, horizon: int, slack: float) -> float:
    r"""Lemma 4: how often an observed Bernoulli arm is drawn in expectation while its mean and the best are within ``slack``.

    With :math:`d=\mathrm{kl}(\mu_k+\varepsilon,\mu^*-\varepsilon)` it is at most
    :math:`\frac{\ln_+(T/K)}d+1`, counted over the steps at which the arm has been observed,
    :math:`\hat\mu_k\le\mu_k+\varepsilon` and :math:`\hat\mu^*\ge\mu^*-\varepsilon`. Its first draw comes before them.

    >>> round(draws_most(0.5, 0.75, n_arms=2, horizon=10_000, slack=0.01), 1)
    71.6
    """
    mean, best = (
        real_number("mean", mean, least=0.0, most=1.0),
        real_number("best", best, least=0.0, most=1.0),
    )
    slack = real_number("slack", slack, least=0.0)
    if mean + slack >= best - slack:
        raise UserError(f"slack must be below half the gap {best - mean:g}, got {slack:g}")
    n_arms = whole_number("n_arms", n_arms, least=1)
    horizon = whole_number("horizon", horizon, least=1)
    distance = bernoulli_kl(mean + slack, best - slack)
    return max(math.log(horizon / n_arms), 0.0) / distance + 1.0


def low_leader_most(best: float, n_arms: int, slack: float) -> float:
    r"""Lemma 5: the expected number of steps, for ever, at which the largest mean is below :math:`\mu^*-\varepsilon`.

    With :math:`a=\mu^*-\varepsilon`, :math:`A=-\ln(1-a)` and :math:`\kappa=\mathrm{kl}(a,\mu^*)` it is at most
    :math:`K\big(1+\frac1{\mu^*}+\frac{\sqrt\pi}2\sum_{n\ge1}(\sqrt{nA}+\sqrt{nA+2})(1+nA)e^{-n\kappa}\big)`, whatever the
    other arms are: it does not grow with the horizon.

    >>> round(low_leader_most(0.8, n_arms=2, slack=0.2))
    1307
    """
    best = real_number("best", best, above=0.0, most=1.0)
    slack = real_number("slack", slack, above=0.0)
    if slack >= best:
        raise UserError(f"slack must be below the best mean {best:g}, got {slack:g}")
    n_arms = whole_number("n_arms", n_arms, least=1)
    most, rate = -math.log1p(slack - best), bernoulli_kl(best - slack, best)
    total, n, term = 0.0, 0, math.inf
    while term > 1e-12 * total or n * rate < 10.0:  # terms fall from there on
        n += 1
        x = n * most
        term = (math.sqrt(x) + math.sqrt(x + 2.0)) * (1.0 + x) * math.exp(-n * rate)
        total += term
    return n_arms * (1.0 + 1.0 / best + 0.5 * math.sqrt(math.pi) * total)


def regret_most(means: Iterable[float], horizon: int, slack: float) -> float:
    r"""Theorem 6: the expected regret of `Evidence` on Bernoulli arms (bandit feedback, ``forget=False``) is at most this.

    .. math:: \sum_k\Delta_k\Big(\frac{\ln_+(T/K)}{\mathrm{kl}(\mu_k+\varepsilon,\mu^*-\varepsilon)}+2
        +\frac1{e^{\mathrm{kl}(\mu_k+\varepsilon,\mu_k)}-1}\Big)+\Delta_{\max}\cdot(\text{Lemma 5})

    For every fixed slack the last terms are constants, so the regret over ln T is in the limit at most Lai and Robbins' constant.
    They are large constants: for coins of 0.6 and 0.5 the bound says less than "every step is lost" up to 2.5 million steps.

    >>> 800 < regret_most([0.8, 0.2], 10_000, slack=0.2) < 900
    True
    >>> min(regret_most([0.6, 0.5], 10**6, slack) for slack in (0.04, 0.045, 0.049)) > 0.1 * 10**6
    True
    """
    values = [real_number("means", mean, least=0.0, most=1.0) for mean in means]
    best = max(values)
    total = (best - min(values)) * low_leader_most(best, len(values), slack)
    for mean in values:
        if mean < best:
            own = bernoulli_kl(mean + slack, mean)
            rest = 1.0 / math.expm1(own) if own < 700.0 else 0.0
            total += (best - mean) * (draws_most(mean, best, len(values), horizon, slack) + 1.0 + rest)
    return total


def alarm_most(observations: int) -> float:
    r"""Lemma 7: how likely a look at the n-th reward of a coin shows a change at one border although there was none, at most.

    With the threshold :math:`x=4+\frac32\ln n` it is at most :math:`4(1+x-2\ln2)e^{-x}`, which is of the order
    :math:`n^{-3/2}\ln n`.

    >>> round(alarm_most(1000), 7)
    3.24e-05
    """
    n = whole_number("observations", observations, least=1)
    rest = OFFSET + FACTOR * math.log(n) - 2.0 * math.log(2.0)
    return min(1.0, (1.0 + rest) * math.exp(-rest))


def _evidence(value: float) -> float:
    return float(real_number("evidence", value, least=0.0))
