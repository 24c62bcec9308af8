"""The contract as somebody else runs it: what a policy does, what it tells, and all that is wrong."""

from dataclasses import dataclass

import numpy as np
import pytest

from abex import UCB1, Bernoulli, UserError
from abex.policies.learner import Learner
from abex.policies.means import Means, learn_mean, new_means
from abex.support.extras import MissingExtraError
from abex.testing import check_documentation, check_environment, check_policy, policy_checks


@dataclass(frozen=True)
class Plain(Learner):
    """The arm with the best mean so far."""

    prior: float = 0.5

    def start(self, setting):
        return new_means(Means, setting.n_arms)

    @staticmethod
    def select(state, t, rng):
        best = 0
        for k in range(state.means.size):
            if state.observations[k] == 0:
                return k
            if state.means[k] > state.means[best]:
                best = k
        return best

    learn = staticmethod(learn_mean)


@dataclass(frozen=True)
class Broken(Plain):
    """Plays an arm that is not there, draws from NumPy's own generator, and cannot be copied."""

    def __hash__(self):
        raise TypeError("no hash")

    @staticmethod
    def select(state, t, rng):
        return int(state.means.size) + int(np.random.random())  # noqa: NPY002


CHEAP = {"is_a_value", "plays_valid_arms", "select_only_reads", "start_is_fresh", "resumes_exactly"}


def test_a_policy_without_documentation_keeps_its_promises(monkeypatch):
    checks = policy_checks()
    assert not [check for check in checks if "document" in check.__name__]
    cheap = [check for check in checks if check.__name__ in CHEAP]
    assert len(cheap) == len(CHEAP)
    monkeypatch.setattr("abex.testing.policy_checks", lambda: cheap)
    check_policy(Plain())


def test_everything_that_a_docstring_lacks_is_said_at_once():
    with pytest.raises(AssertionError) as caught:
        check_documentation(Plain())
    for part in ("Plain lacks", "formula", "References", "Theorem", "example", "Cost", "parameter prior"):
        assert part in str(caught.value)
    check_documentation(UCB1())


def test_every_broken_promise_is_reported_each_with_its_reason():
    promises = ["is_a_value", "plays_valid_arms", "leaves_global_randomness_alone", "is_documented_elsewhere"]
    with pytest.raises(UserError, match="unknown check 'is_documented_elsewhere'"):
        check_policy(Broken(), only=promises)
    with pytest.raises(AssertionError) as caught:
        check_policy(Broken(), only=[*promises[:3], "start_is_fresh"])
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("Broken(prior=0.5) breaks 4 of 4 promises")
    assert [line.split(":")[0].strip() for line in lines[1:]] == [*promises[:3], "start_is_fresh"]
    assert "TypeError: no hash" in lines[1]
    assert len(caught.value.__cause__.exceptions) == 4


def test_a_check_without_words_of_its_own_says_what_was_promised():
    @dataclass(frozen=True)
    class Pays(Bernoulli):
        @staticmethod
        def draw(world, t, arm):
            return 2.0

    with pytest.raises(
        AssertionError, match=r"breaks 1 of 1 .*\n  pays_between_0_and_1: not so: Every reward is"
    ):
        check_environment(Pays([0.5, 0.5]), only=["pays_between_0_and_1"])


def test_what_is_no_policy_or_environment_is_one_sentence():
    with pytest.raises(UserError, match="policies must be values"):
        check_policy(7)
    with pytest.raises(UserError, match="must be an Environment"):
        check_environment([0.5, 0.6])


def test_a_package_that_is_missing_is_not_held_against_the_policy(monkeypatch):
    def missing(*_, **__):
        raise MissingExtraError("numba")

    monkeypatch.setattr("abex.testing.policy_contract.play_replication", missing)
    with pytest.raises(MissingExtraError):
        check_policy(UCB1(), only=["is_one_implementation"])
