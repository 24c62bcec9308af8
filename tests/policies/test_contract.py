"""Every policy keeps every promise."""

import hashlib
import inspect
import subprocess
import sys

import pytest

import abex.policies
from abex.policies import known_policies
from abex.policies.policy import Policy
from abex.testing import check_documentation, policy_checks
from abex.testing.policy_contract import SMALL, check_is_the_same_in_another_process, replicate
from tests.examples import all_examples, examples

OURS = {name: cls for name, cls in known_policies().items() if cls.__module__.startswith("abex.")}
EXAMPLES = all_examples()


FIRST = [examples(cls)[0] for cls in OURS.values()]  # an example a class: its kernels are those of the others
ONCE_A_CLASS = {
    "treats_arms_alike", "learns", "more_feedback_does_not_hurt", "survives_a_million_steps", "check_documentation",
}  # fmt: skip
#: among equal plans the numbers of the arms decide
BY_NUMBER = {"ELP", "Exp3DOM", "Restarting"}
CHECKS = [check for check in policy_checks() if check is not check_is_the_same_in_another_process]
assert {check.__name__ for check in [*CHECKS, check_documentation]} >= ONCE_A_CLASS
PAIRS = [
    (check, policy)
    for check in [*CHECKS, check_documentation]
    for policy in (FIRST if check.__name__ in ONCE_A_CLASS else EXAMPLES)
    if not (check.__name__ == "treats_arms_alike" and type(policy).__name__ in BY_NUMBER)
]


@pytest.mark.parametrize(("check", "policy"), PAIRS, ids=lambda one: getattr(one, "__name__", str(one)))
def test_policy(check, policy):
    check(policy)


def test_every_policy_is_the_same_in_another_process():
    """One process for all: `check_is_the_same_in_another_process` starts one for each."""
    policies = [policy for policy in EXAMPLES if not policy.needs_graph]
    code = (
        "import sys; from abex.policies import parse_policy; from tests.policies.test_contract import digest\n"
        "for line in sys.stdin: print(digest(parse_policy(line.strip())))"
    )
    lines = "\n".join(map(repr, policies))
    other = subprocess.run(
        [sys.executable, "-c", code], input=lines, capture_output=True, text=True, check=False
    )
    assert other.returncode == 0, other.stderr
    found = dict(zip(map(repr, policies), other.stdout.split(), strict=True))
    assert found == {repr(policy): digest(policy) for policy in policies}


def digest(policy):
    """Of what a run loses, to the last bit."""
    return hashlib.sha256(replicate(policy, SMALL, 100, interpreted=True).regret.tobytes()).hexdigest()


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
