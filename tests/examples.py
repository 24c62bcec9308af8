"""Instances of every policy on which its promises are checked: as it is, and with parameters that make it something else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from abex import (
    ABE,
    ELP,
    KLUCB,
    TSU,
    UCB1,
    Boltzmann,
    BoltzmannGumbel,
    Certify,
    Discounted,
    EpsilonGreedy,
    EpsilonThompson,
    Evidence,
    Exp3,
    Exp3DOM,
    Exp3IX,
    Exp3P,
    Exp3S,
    Exp3SET,
    Maillard,
    Policy,
    Restarting,
    Screening,
    Thompson,
    TopTwo,
    TsallisINF,
    Windowed,
)
from abex.policies import CUSUM, GLR, known_policies

INSTANCES: dict[Any, list[Policy[Any]]] = {
    ABE: [
        ABE(eta=1.0),  # without exploration: the paper's best
        ABE(eta=1.0, c=1.0, alpha=0.5),
        ABE(eta=1.0, c=0.3, alpha=0.5, rounding="carry", initial=1.0),
        ABE(eta=2.0, rounding="ceil", initial=None),
        ABE(eta=1.0, c=1.0, alpha=0.5, order="index"),
        ABE(eta=1.0, c=1.0, alpha=0.5, cover="dominating"),
        ABE(eta=1.0, c=1.0, alpha=0.5, cover="lp"),
    ],
    Boltzmann: [
        Boltzmann(eta=1.0),
        Boltzmann(eta=2.0, schedule="log", initial=None),
        Boltzmann(eta=8.0, schedule="constant", initial=1.0),
    ],
    BoltzmannGumbel: [BoltzmannGumbel(), BoltzmannGumbel(scale=0.25, shared_noise=True)],
    Certify: [Certify(), Certify("Thompson", share=0.25)],
    Discounted: [Discounted(UCB1(scale=0.5), gamma=0.995), Discounted(Thompson(), gamma=0.99)],
    ELP: [ELP(), ELP(independence=2.0), ELP(beta=0.05)],
    EpsilonGreedy: [EpsilonGreedy(), EpsilonGreedy(decay=20.0)],
    EpsilonThompson: [EpsilonThompson(), EpsilonThompson(epsilon=0.5, resample=False)],
    Evidence: [Evidence(), Evidence(safety=0.5, forget=False, aim=False)],
    Exp3: [Exp3(), Exp3(gamma=0.2)],
    Exp3DOM: [Exp3DOM(), Exp3DOM(gamma=0.1)],
    Exp3IX: [Exp3IX(), Exp3IX(eta=0.05)],
    Exp3P: [Exp3P(), Exp3P(gamma=0.15, alpha=0.3)],
    Exp3S: [Exp3S(), Exp3S(gamma=0.2, alpha=0.001)],
    Exp3SET: [Exp3SET(), Exp3SET(eta=0.1)],
    Maillard: [Maillard(), Maillard(deviation=1.0), Maillard(divergence="bernoulli")],
    Restarting: [
        Restarting(detector=GLR(delta=0.01, every=5, spacing=5, window=200)),
        Restarting(Thompson(), detector=CUSUM(warm_up=20, threshold=5.0), exploration=0.1, restart="arm"),
    ],
    Screening: [Screening(), Screening(baseline=0.4, half=0.2, width=0.1, memory=100.0, exploration=0.1)],
    TopTwo: [TopTwo(), TopTwo(share=0.3, soft=False)],
    TSU: [TSU(), TSU(epsilon=0.3)],
    Thompson: [Thompson(), Thompson(resample=False)],
    TsallisINF: [TsallisINF(), TsallisINF(estimator="IW")],
    UCB1: [UCB1(), UCB1(scale=0.5)],
    Windowed: [Windowed(KLUCB(), width=200), Windowed(Boltzmann(eta=2.0, initial=1.0), width=100)],
}


def ours() -> list[type[Policy[Any]]]:
    """Every policy of this library, by name."""
    return [cls for cls in known_policies().values() if cls.__module__.startswith("abex.")]


def examples(cls: type[Policy[Any]]) -> list[Policy[Any]]:
    """Instances of a policy."""
    return INSTANCES.get(cls) or [cls()]


def by_class(policies: Iterable[Policy[Any]]) -> dict[str, list[Policy[Any]]]:
    """The policies of each class; of a policy around another, those around it."""
    groups: dict[str, list[Policy[Any]]] = {}
    for policy in policies:
        inside = getattr(policy, "policy", None)
        name = type(policy).__name__ if inside is None else f"around {type(inside).__name__}"
        groups.setdefault(name, []).append(policy)
    return groups


def all_examples() -> list[Policy[Any]]:
    """Instances of every policy."""
    return [example for cls in ours() for example in examples(cls)]
