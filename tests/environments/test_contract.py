"""Every environment keeps every promise."""

import inspect

import numpy as np
import pytest

import abex.environments
from abex.environments import (
    Bernoulli,
    Beta,
    ClippedGaussian,
    Discrete,
    Drifting,
    Environment,
    Phases,
    Published,
    RandomWalk,
    RatingTable,
    SpecialArm,
    Switching,
    Table,
)
from abex.evaluation import Log, LogReplay
from abex.testing import environment_checks

CLASSES = [
    value
    for value in vars(abex.environments).values()
    if inspect.isclass(value) and issubclass(value, Environment) and not inspect.isabstract(value)
]
LIKES = (np.arange(10)[:, None] * np.arange(1, 14) % 7 < 3).astype(np.uint8)
LIKES[4] = LIKES[7] = np.arange(13) % 4 != 0  # two users are best
EXAMPLES = [
    Bernoulli([0.1, 0.9]),
    Bernoulli([0.3]),
    Beta([0.2, 0.7]),
    Beta([0.5, 0.55, 0.6], strength=50.0),
    ClippedGaussian([0.3, 0.6]),
    ClippedGaussian([0.0, 0.9], deviation=1.0),
    Discrete([[0.05], [0.0, 1.0]], [[1.0], [0.8, 0.2]]),
    Discrete([[0.1, 0.2, 0.6], [0.3, 0.4, 0.5], [0.2]]),
    Drifting([0.4, 0.5, 0.6], swing=0.3, period=500.0),
    Phases([[0.2, 0.8, 0.5], [0.9, 0.1, 0.5], [0.3, 0.2, 0.7]], lengths=[100, 150, 50]),
    Published("besson-4"),
    Published("garivier-moulines-2"),
    RandomWalk([0.3, 0.5, 0.7], deviation=0.05, every=20),
    RatingTable(LIKES, products=[0, 2, 3, 5, 6, 7, 8, 11]),
    SpecialArm(5),
    SpecialArm(1),
    SpecialArm(3, best=0.4, other=0.4),
    SpecialArm(4, among=(1, 3)),
    Switching([0.2, 0.5, 0.8], period=50),
    Table((np.sin(np.arange(4000)[:, None] * np.array([[0.1, 0.37, 0.05]])) + 1.0) / 2.0),
]
LOGS = [
    LogReplay(Log([0, 1], [0, 0, 0, 1, 1], [0.5] * 5, [0.0, 1.0, 0.5, 1.0, 1.0])),
    LogReplay(Log(["only"], [0, 0], [1.0, 1.0], [0.25, 0.75])),
]


@pytest.mark.parametrize("environment", [*EXAMPLES, *LOGS], ids=str)
@pytest.mark.parametrize("check", environment_checks(), ids=lambda check: check.__name__)
def test_environment(check, environment):
    check(environment)


def test_every_environment_is_exported():
    found = {cls.__name__ for cls in CLASSES}
    assert found <= set(abex.__all__)
    assert {type(example) for example in EXAMPLES} == set(CLASSES)
