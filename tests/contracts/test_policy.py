"""Every policy keeps every promise."""

import inspect

import pytest

import abex.policies
from abex.policies import known_policies
from abex.policies.base import Policy
from abex.testing import check_documentation, policy_checks

OURS = {name: cls for name, cls in known_policies().items() if cls.__module__.startswith("abex.")}
EXAMPLES = [example for cls in OURS.values() for example in cls.examples()]


@pytest.mark.parametrize("policy", EXAMPLES, ids=str)
@pytest.mark.parametrize("check", [*policy_checks(), check_documentation], ids=lambda check: check.__name__)
def test_policy(check, policy):
    check(policy)


def concrete(cls):
    return {c for sub in cls.__subclasses__() for c in {sub, *concrete(sub)} if not inspect.isabstract(c)}


def test_every_policy_is_exported_and_checked():
    exported = {v for v in vars(abex.policies).values() if inspect.isclass(v) and issubclass(v, Policy)} - {
        Policy
    }
    ours = {cls for cls in concrete(Policy) if cls.__module__.startswith("abex.")}
    assert ours == exported == {type(example) for example in EXAMPLES}
    assert {cls.__name__ for cls in exported} <= set(abex.policies.__all__)
    assert {cls.__name__ for cls in exported} <= set(abex.__all__)
