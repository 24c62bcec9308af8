r"""What a policy must lose on an instance, unless it loses more on another one: the bound of Lai and Robbins at a finite horizon.

Let arm k have distribution :math:`\nu_k`, mean :math:`\mu_k` and gap :math:`\Delta_k` to the best mean :math:`\mu^*`, and let
a policy lose R in T steps. On the instance where arm k alone is another one, of mean :math:`\mu^*+\delta`, let it lose no
more than R either. Here it plays k at most :math:`R/\Delta_k` times, there any other arm at most :math:`R/\delta` times, and
what tells the two instances from each other is what it saw of k (the fundamental inequality of Garivier, Ménard and Stoltz
2019):

.. math::
   \mathbb E N_k\ \mathcal K(\nu_k,\mu^*+\delta)\ \ge\ \mathrm{kl}\Bigl(\frac R{\Delta_kT},\,1-\frac R{\delta T}\Bigr),
   \qquad\mathcal K(\nu,m)=\inf\{\mathrm{KL}(\nu,\nu'):\nu'\text{ on }[0,1]\text{ of mean above }m\},

where the first argument is below the second. So :math:`R\ge\sum_k\Delta_k\sup_\delta\dots`, whose right side falls as R
grows: **the floor is the R at which both are equal**, and over ln T it tends to Lai and Robbins' constant (of Burnetas and
Katehakis). A policy that loses less here was lucky, or loses more in a world that differs in one arm. It holds for late
rewards and batches, too, and not for feedback graphs, which show more than the arm played.

:math:`\mathcal K(\nu,m)=\max_{0\le\lambda\le1}\mathbb E\ln\bigl(1-\lambda\frac{X-m}{1-m}\bigr)` (Honda and Takemura 2010); of
coins it is kl.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from abex.environments import Bernoulli, Discrete, SpecialArm
from abex.lab.arena.instances import Instance
from abex.lab.sweeps.problems import environment_of

Law = tuple[tuple[float, ...], tuple[float, ...]]  # values and probabilities of an arm
STEPS_EACH = 100  # steps for each arm from which on a policy can be asked to find one good arm among all
#: how far an arm may be raised above the best, as a share of what is left up to 1
RAISES = np.geomspace(1e-6, 0.999, 100)
HALVINGS = 60


def least_regret(instance: Instance) -> float:
    """The floor of an instance; 0 where the laws of the arms are not known or not of a few values, and with too many arms."""
    environment = instance.problem.get("environment")
    if environment is None or "graph" in instance.problem:
        return 0.0
    laws = laws_of(environment_of(environment))
    if laws is None or instance.horizon < STEPS_EACH * len(laws):
        return 0.0
    return lost_on_all(tuple(laws), instance.horizon)


def laws_of(environment: object) -> list[Law] | None:
    """The laws of the arms of an environment that does not change, if they have a few values each."""
    if isinstance(environment, Bernoulli):
        return [coin(mean) for mean in environment.means]
    if isinstance(environment, SpecialArm):
        return [coin(environment.best), *[coin(environment.other)] * (environment.n_arms - 1)]
    if isinstance(environment, Discrete):
        even = [[1.0 / len(values)] * len(values) for values in environment.values]
        chances = environment.probabilities or even
        return [(tuple(v), tuple(p)) for v, p in zip(environment.values, chances, strict=True)]
    return None


def coin(mean: float) -> Law:
    """1 or 0."""
    return (0.0, 1.0), (1.0 - mean, mean)


@lru_cache(maxsize=256)
def lost_on_all(laws: Sequence[Law], horizon: int) -> float:
    """The regret at which a policy may lose as much on every instance where one arm of these is raised above the best.

    >>> round(lost_on_all((coin(0.6), coin(0.5)), 10_000), 1)  # Lai and Robbins: 45.7 = ln(10,000) 0.1 / kl(0.5, 0.6)
    9.9
    """
    means = [math.fsum(x * p for x, p in zip(*law, strict=True)) for law in laws]
    best = max(means)
    if best >= 1.0:
        return 0.0
    raises = (1.0 - best) * RAISES
    worse = {law: best - mean for law, mean in zip(laws, means, strict=True) if best - mean > 1e-12}
    costs = {law: distance(law, best + raises) for law in worse}
    counts = {law: laws.count(law) for law in worse}
    low, high = 1e-12, float(horizon)
    for _ in range(HALVINGS):
        lost = math.sqrt(low * high)
        must = 0.0
        for law, gap in worse.items():
            told = binary_divergence(min(1.0, lost / (gap * horizon)), lost / (raises * horizon))
            must += counts[law] * gap * float((told / costs[law]).max())
        low, high = (lost, high) if must > lost else (low, lost)
    return high


def distance(law: Law, means: NDArray[np.float64]) -> NDArray[np.float64]:
    r""":math:`\mathcal K(\nu,m)` for means m above that of the law and below 1, by bisection of the derivative in lambda."""
    values, chances = (np.array(part)[:, None] for part in law)
    above = (values - means) / (1.0 - means)
    low, high = np.zeros_like(means), np.ones_like(means)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        rising = (chances * above / (1.0 - middle * above)).sum(axis=0) < 0.0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    found: NDArray[np.float64] = (chances * np.log1p(-low * above)).sum(axis=0)
    return found


def binary_divergence(p: float, missing: NDArray[np.float64]) -> NDArray[np.float64]:
    """kl(p, 1 - missing) where p is below 1 - missing, else 0."""
    if p >= 1.0:
        return np.zeros_like(missing)
    missing = np.minimum(missing, 1.0 - p)
    first = p * (math.log(p) - np.log1p(-missing)) if p > 0.0 else 0.0
    return np.asarray(first + (1.0 - p) * (math.log1p(-p) - np.log(missing)))
