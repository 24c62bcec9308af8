"""How the instances of the arena are written: each function makes one from what sets it apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Spec = dict[str, Any]


@dataclass(frozen=True)
class Instance:
    """One problem of the arena: what is played, for how long, and how often at most."""

    name: str
    group: str
    problem: Spec
    horizon: int = 10_000  # or iterations
    coins: bool = False  # plain Bernoulli rewards of fixed means
    most: int | None = None  # replications, where each takes long


def evenly(low: float, high: float, count: int) -> list[float]:
    """Numbers from low to high at equal distances."""
    return [round(low + (high - low) * k / (count - 1), 6) for k in range(count)]


def coins(name: str, means: list[float], horizon: int = 10_000) -> Instance:
    """Bernoulli arms."""
    return Instance(name, "stochastic", {"environment": {"name": "Bernoulli", "means": means}}, horizon, True)


def special(name: str, n_arms: int, best: float, other: float, horizon: int = 10_000) -> Instance:
    """One good Bernoulli arm among equal ones, at a place that is drawn."""
    environment = {"name": "SpecialArm", "K": n_arms, "best": best, "other": other}
    return Instance(name, "stochastic", {"environment": environment}, horizon, True)


def world(name: str, environment: str, horizon: int = 10_000, **parameters: Any) -> Instance:
    """Any other environment with bandit feedback."""
    return Instance(name, "stochastic", {"environment": {"name": environment, **parameters}}, horizon)


def lots(
    name: str, values: list[list[float]], chances: list[list[float]] | None = None, horizon: int = 10_000
) -> Instance:
    """Arms of a few values each."""
    return world(name, "Discrete", horizon, values=values, probabilities=chances)


def uniforms(centres: list[float], width: float, count: int = 16) -> list[list[float]]:
    """Values that stand for uniform rewards around each centre."""
    return [[round(c + width * ((j + 0.5) / count - 0.5), 9) for j in range(count)] for c in centres]


def paretos(scales: list[float], tail: float, count: int = 40) -> list[list[float]]:
    """Values that stand for Pareto rewards of these scales, cut off at 1."""
    return [
        [round(min(1.0, s * ((j + 0.5) / count) ** (-1.0 / tail)), 9) for j in range(count)] for s in scales
    ]


def two_valued(means: list[float], low: float, high: float) -> tuple[list[list[float]], list[list[float]]]:
    """Coins of two given values with given chances of the higher one."""
    return [[low, high]] * len(means), [[round(1.0 - p, 12), p] for p in means]


def on_graph(name: str, graph: Spec, environment: Spec, horizon: int = 10_000) -> Instance:
    """A feedback graph."""
    return Instance(name, "graphs", {"environment": environment, "graph": graph}, horizon)


def bernoulli(means: list[float]) -> Spec:
    """The environment of Bernoulli arms."""
    return {"name": "Bernoulli", "means": means}


def phases(
    name: str, group: str, means: list[list[float]], lengths: list[int], against: str, horizon: int
) -> Instance:
    """Means that change."""
    environment = {"name": "Phases", "means": means, "lengths": lengths, "against": against}
    return Instance(name, group, {"environment": environment}, horizon)


def delayed(
    name: str, environment: Spec, delay: str, horizon: int = 10_000, graph: Spec | None = None
) -> Instance:
    """Rewards that come some decisions after their own."""
    problem = {"environment": environment, "delay": delay}
    return Instance(name, "late", problem if graph is None else {**problem, "graph": graph}, horizon)


def batched(name: str, environment: Spec, batch: int, horizon: int = 10_000) -> Instance:
    """Rewards that are learned together, after so many decisions."""
    return Instance(name, "late", {"environment": environment, "batch": batch}, horizon)


def boosted(name: str, data: str, base: str, iterations: int, most: int, part: str) -> Instance:
    """A data set: one feature for each stump, or for each split of a tree of eight leaves."""
    problem: Spec = {"data": data, "part": part, "base": base}
    if base == "tree":
        problem["leaves"] = 8
    return Instance(name, "boosting", problem, iterations, most=most)


def turning(means: list[float], count: int, step: int) -> list[list[float]]:
    """The means, handed on by ``step`` arms from phase to phase."""
    n = len(means)
    return [[means[(k - phase * step) % n] for k in range(n)] for phase in range(count)]


def ring(n: int, directed: bool) -> Spec:
    """Every arm shows the next one."""
    return {"name": "edges", "n": n, "edges": [[k, (k + 1) % n] for k in range(n)], "directed": directed}


def hub(n: int) -> Spec:
    """Arm 0 shows all others and is shown by none."""
    return {"name": "edges", "n": n, "edges": [[0, k] for k in range(1, n)], "directed": True}


def one_good(n_arms: int, best: float, other: float) -> Spec:
    """The environment of one good arm at a place that is drawn."""
    return {"name": "SpecialArm", "K": n_arms, "best": best, "other": other}
