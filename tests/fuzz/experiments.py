"""Experiments in TOML: wrong keys, kinds, numbers and nesting, and damaged text. Nothing is computed or fetched."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from datetime import date
from typing import Any
from unittest import mock

from abex.lab.experiments import read_experiment
from abex.support.errors import UserError
from tests.fuzz.damage import PLAIN, Rng, maybe_damaged, one
from tests.fuzz.outcomes import File, read_file

ENVIRONMENTS: tuple[dict[str, Any], ...] = (
    {"name": "Bernoulli", "means": [0.9, 0.1]}, {"name": "Beta", "means": [0.3, 0.6], "strength": 10.0},
    {"name": "SpecialArm", "K": 5},
    {"name": "ClippedGaussian", "means": [0.3], "deviation": 0.2}, {"name": "Switching", "means": [0.2, 0.8], "period": 50},
    {"name": "Drifting", "means": [0.2, 0.8], "swing": 0.1, "period": 9.0}, {"name": "Table", "rewards": [[0.0, 1.0]]},
    {"name": "RatingTable", "table": [[0, 1], [1, 1]]},
)  # fmt: skip
GRAPHS: tuple[dict[str, Any], ...] = (
    {"name": "star", "n": 5}, {"name": "bandit", "n": 3}, {"name": "complete", "n": 3},
    {"name": "cliques", "count": 2, "size": 2},
    {"name": "erdos_renyi", "n": 5, "q": 0.5, "seed": 1}, {"name": "random_geometric", "n": 5, "radius": 0.5},
    {"name": "planted_partition", "groups": 2, "size": 3, "q_in": 0.5, "q_out": 0.1}, {"name": "facebook-0"},
)  # fmt: skip
POLICIES = (
    "UCB1",
    "Thompson",
    "ABE(eta=1.0)",
    "full search",
    "no such",
    "UCB1(",
    "UCB1(scale=1e400)",
    "ABE(eta=" + "9" * 500 + ")",
)


def whole(rng: Rng) -> dict[str, Any]:
    """A sound experiment."""
    plain: dict[str, Any] = {"name": "mine", "policies": ["UCB1", {"policy": "Thompson", "label": "TS"}]}
    if rng.random() < 0.3:
        return plain | {"kind": "boosting", "iterations": 10, "problem": {"data": "digits", "part": "test"}}
    problem: dict[str, Any] = {"environment": dict(one(rng, ENVIRONMENTS))}
    if rng.random() < 0.5:
        problem["graph"] = dict(one(rng, GRAPHS))
    if rng.random() < 0.1:
        problem = {"recommendation": {"name": "synthetic", "n_users": 20, "n_items": 20, "seed": 1}}
    claims = [{"text": "it is better", "rule": "better", "first": "UCB1", "second": ["TS"], "margin": 0.1}]
    return plain | {"horizon": 100, "seeds": 2, "checkpoints": 10, "problem": problem, "claims": claims}


def changed(value: Any, rng: Rng, depth: int = 0) -> Any:
    """The same with one thing exchanged, taken away or added somewhere."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = one(rng, list(value))
        kind = rng.random()
        if kind < 0.1:
            return {k: v for k, v in value.items() if k != key}
        if kind < 0.2:
            return {
                **value,
                one(rng, ("x", "seeds", "validation_seeds", "version", "tuned_at", "data", "n", "")): one(
                    rng, PLAIN
                ),
            }
        return {**value, key: changed(value[key], rng, depth + 1)}
    if isinstance(value, list) and value and rng.random() < 0.6:
        at = int(rng.integers(len(value)))
        return [*value[:at], changed(value[at], rng, depth + 1), *value[at + 1 :]]
    return one(rng, (*PLAIN, *POLICIES, date(1979, 5, 27), [[[[[[[[[[1]]]]]]]]]], "9" * 100))


def toml(value: Any) -> str:
    """A value as TOML, tables in one line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if value != value else "inf" if value > 0 else "-inf"
    if isinstance(value, str):
        return (
            '"'
            + "".join(c if c.isprintable() and c not in '"\\' else f"\\u{ord(c):04X}" for c in value)
            + '"'
        )
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml(k)} = {toml(v)}" for k, v in value.items()) + "}"
    return str(value)


def cases(rng: Rng) -> Iterator[File]:
    """Sound experiments, changed in up to three places, some of them with damaged text."""
    while True:
        plain: Any = whole(rng)
        for _ in range(int(rng.integers(0, 4))):
            plain = changed(plain, rng)
            if not isinstance(plain, dict):
                plain = whole(rng)
        text = "\n".join(f"{toml(key)} = {toml(value)}" for key, value in plain.items())
        if rng.random() < 0.02:
            text += "\nx = " + one(rng, ("[", "{a=", "[[", '"')) * int(rng.integers(1, 100_000))
        yield File("e.toml", maybe_damaged(text.encode("utf-8", "surrogatepass"), rng, 0.1))


@functools.cache
def quietly() -> None:
    """Nothing is fetched and no table is completed: both take long and are no part of reading."""

    def refuse(*arguments: Any, **options: Any) -> Any:
        raise UserError("not here")

    mock.patch("abex.lab.datasets.source_files.fetch", refuse).start()
    mock.patch("abex.lab.datasets.recommendation", refuse).start()


def run(case: File) -> str:
    """Read the experiment."""
    quietly()
    return read_file(case, read_experiment)
