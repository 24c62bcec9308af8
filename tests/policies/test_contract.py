"""Every policy keeps every promise."""

import hashlib
import inspect
import subprocess
import sys

import pytest

import abex.policies
from abex.policies import known_policies
from abex.policies.index import IndexPolicy
from abex.policies.policy import Policy
from abex.testing import check_documentation, policy_checks
from abex.testing.policy_contract import SMALL, check_is_the_same_in_another_process, replicate
from tests.each import each, each_group
from tests.examples import all_examples, by_class, examples

OURS = {name: cls for name, cls in known_policies().items() if cls.__module__.startswith("abex.")}
EXAMPLES = all_examples()


FIRST = [examples(cls)[0] for cls in OURS.values()]  # an example a class: its kernels are those of the others
ONCE_A_CLASS = {
    "treats_arms_alike", "learns", "more_feedback_does_not_hurt", "survives_a_million_steps",
}  # fmt: skip
#: milliseconds a policy: one test tries all of them
QUICK = {
    "is_a_value", "plays_valid_arms", "select_only_reads", "start_is_fresh", "leaves_global_randomness_alone", "resumes_exactly",
    "takes_and_loses_arms", "batches_hold_different_arms", "check_documentation",
}  # fmt: skip
#: among equal plans the numbers of the arms decide
BY_NUMBER = {"ELP", "Exp3DOM", "Restarting"}
CHECKS = {
    check.__name__: check
    for check in [*policy_checks(), check_documentation]
    if check is not check_is_the_same_in_another_process
}
assert set(CHECKS) >= ONCE_A_CLASS | QUICK


@pytest.mark.parametrize("name", [name for name in CHECKS if name not in QUICK | ONCE_A_CLASS])
@each_group("policy", by_class(EXAMPLES))
def test_policy(name, policy):
    CHECKS[name](policy)


@pytest.mark.parametrize("policy", FIRST, ids=str)
@pytest.mark.parametrize("name", sorted(ONCE_A_CLASS))
def test_one_policy_of_a_class(name, policy):
    if not (name == "treats_arms_alike" and type(policy).__name__ in BY_NUMBER):
        CHECKS[name](policy)


@pytest.mark.parametrize("name", sorted(QUICK))
@each("policy", EXAMPLES)
def test_every_policy(name, policy):
    CHECKS[name](policy)


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
    ours = {cls for cls in concrete(Policy) if cls.__module__.startswith("abex.")} - {IndexPolicy}
    assert ours == exported == {type(example) for example in EXAMPLES}
    assert {cls.__name__ for cls in exported} <= set(abex.policies.__all__)
    assert {cls.__name__ for cls in exported} <= set(abex.__all__)
