"""Every environment keeps every promise."""

import inspect

import pytest

import abex.environments
from abex.environments import Environment
from abex.testing import environment_checks

CLASSES = [
    value
    for value in vars(abex.environments).values()
    if inspect.isclass(value) and issubclass(value, Environment) and not inspect.isabstract(value)
]
EXAMPLES = [example for cls in CLASSES for example in cls.examples()]


@pytest.mark.parametrize("environment", EXAMPLES, ids=str)
@pytest.mark.parametrize("check", environment_checks(), ids=lambda check: check.__name__)
def test_environment(check, environment):
    check(environment)


def test_every_environment_is_exported():
    found = {cls.__name__ for cls in CLASSES}
    assert found <= set(abex.__all__)
    assert {type(example) for example in EXAMPLES} == set(CLASSES)
