"""Mistakes in a policy of one's own: a sentence with the line and the reason; what has changed is compiled anew."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

from abex import Bernoulli, Player, Policy, UserError, kernel, simulate
from abex.policies.learner import Learner
from abex.policies.means import Means, learn_mean, new_means
from tests.each import each

RATE = 0
TABLE = np.array([0, 1])


def plain_helper(state):
    return state.means[0]


@kernel
def inner_helper(state):
    return state.nothing_of_this_kind


@kernel
def outer_helper(state):
    return inner_helper(state)


class Base(Learner):
    def start(self, setting):
        return new_means(Means, setting.n_arms)

    learn = staticmethod(learn_mean)


@dataclass(frozen=True)
class Undefined(Base):
    @staticmethod
    def select(state, t, rng):
        return 0 + not_defined_anywhere  # noqa: F821


@dataclass(frozen=True)
class WrongField(Base):
    @staticmethod
    def select(state, t, rng):
        return int(state.pulls_of_mine[0])


@dataclass(frozen=True)
class Misspelt(Base):
    @staticmethod
    def select(state, t, rng):
        return 0

    @staticmethod
    def update(state, t, arm, seen, reward, rng):
        inner_helper(state)


@dataclass(frozen=True)
class WrongSignature(Base):
    @staticmethod
    def select(state, t):
        return 0


@dataclass(frozen=True)
class WrongUpdate(Base):
    @staticmethod
    def select(state, t, rng):
        return 0

    @staticmethod
    def update(state, arm, reward):
        pass


@dataclass(frozen=True)
class DictState(Base):
    def start(self, setting):
        return {"counts": np.zeros(setting.n_arms)}

    @staticmethod
    def select(state, t, rng):
        return 0


class Nested(NamedTuple):
    counts: dict


@dataclass(frozen=True)
class DictField(DictState):
    def start(self, setting):
        return Nested({})


@dataclass(frozen=True)
class PlainHelper(Base):
    @staticmethod
    def select(state, t, rng):
        return 1 if plain_helper(state) > 0.5 else 0


@dataclass(frozen=True)
class DeepHelper(Base):
    @staticmethod
    def select(state, t, rng):
        return int(outer_helper(state))


@dataclass(frozen=True)
class Choice(Base):
    @staticmethod
    def select(state, t, rng):
        return rng.choice(2)


@dataclass(frozen=True)
class TwoTypes(Base):
    @staticmethod
    def select(state, t, rng):
        x = 0
        if t > 5:
            x = "one"
        return x


@dataclass(frozen=True)
class Fraction(Base):
    @staticmethod
    def select(state, t, rng):
        return 0.5


@dataclass(frozen=True)
class BrokenCoins(Bernoulli):
    @staticmethod
    @kernel
    def draw(world, t, arm):
        return world.nothing_like_it


MISTAKES = [
    (Undefined, "not_defined_anywhere", "the name 'not_defined_anywhere' is not defined"),
    (WrongField, "state.pulls_of_mine", "Means has no 'pulls_of_mine'"),
    (PlainHelper, "plain_helper(state) >", "plain_helper is a plain function: put @kernel"),
    (DeepHelper, "return state.nothing_of", "Means has no 'nothing_of_this_kind'"),
    (Choice, "rng.choice(2)", "compiled code has no rng.choice, use rng.random()"),
    (TwoTypes, "return x", "x has different types in different places"),
]


def line_of(text):
    """The line of this file in which a text stands first."""
    with open(__file__) as file:
        return next(number for number, line in enumerate(file, start=1) if text in line)


@pytest.mark.parametrize(("policy", "text", "reason"), MISTAKES, ids=[case[0].__name__ for case in MISTAKES])
def test_a_mistake_is_a_sentence_with_its_line_and_reason(policy, text, reason):
    with pytest.raises(UserError) as caught:
        simulate(policy(), Bernoulli([0.5, 0.6]), horizon=20, replications=1)
    said = str(caught.value)
    assert f"line {line_of(text)} of test_own_mistakes.py" in said
    assert reason in said
    assert len(said) < 300
    assert caught.value.__cause__ is None  # nothing of Numba's lines is shown
    assert caught.value.__suppress_context__


@each(
    ("policy", "sentence"),
    [
        (
            WrongSignature,
            r"WrongSignature.select \(line \d+ of .*\) takes \(state, t\); it must take \(state, t, rng\)",
        ),
        (WrongUpdate, r"takes \(state, arm, reward\); it must take \(state, t, arm, seen, reward, rng\)"),
        (
            DictState,
            "DictState.start returns a dict: compiled code takes a NamedTuple of NumPy arrays and numbers",
        ),
        (DictField, "DictField.start returns a record whose field 'counts' is a dict"),
        (Fraction, "select must return a whole number from 0 to 1"),
    ],
)
def test_wrong_signatures_states_and_arms_are_named(policy, sentence):
    with pytest.raises(UserError, match=sentence):
        simulate(policy(), Bernoulli([0.5, 0.6]), horizon=20, replications=1)


def test_a_compiled_player_and_an_environment_say_the_same():
    with pytest.raises(UserError, match="Means has no 'pulls_of_mine'"):
        Player(WrongField(), 2, compiled=True).select()
    with pytest.raises(UserError, match=r"BrokenCoins.draw \(line \d+ .*has no 'nothing_like_it'"):
        simulate("Uniform", BrokenCoins([0.5, 0.6]), horizon=20, replications=1)


def test_a_notebook_shows_two_lines_not_two_hundred():
    try:
        simulate(WrongField(), Bernoulli([0.5, 0.6]), horizon=20, replications=1)
    except UserError as error:
        shown = error._render_traceback_()
    assert shown[0].startswith("line ")
    assert "simulate(WrongField()" in shown[0]
    assert shown[1].startswith("UserError: WrongField.select (line")
    assert len(shown) == 2


@kernel
def first_arm(state):
    return RATE


@kernel
def through(state):
    return first_arm(state)


@dataclass(frozen=True)
class Follows(Base):
    """Plays what globals and helpers say."""

    @staticmethod
    def select(state, t, rng):
        return through(state)


@dataclass(frozen=True)
class Looks(Base):
    """Plays what an array says."""

    @staticmethod
    def select(state, t, rng):
        return TABLE[0]


def regret(policy):
    return simulate(policy, Bernoulli([0.9, 0.4]), horizon=10, replications=1).regret[0, 0, -1]


class Totals(NamedTuple):
    gains: np.ndarray
    pulls: np.ndarray


@dataclass(frozen=True)
class Arrays(Policy):
    """Whole arrays are divided, added and compared, in the policy and in a helper."""

    def start(self, setting):
        return Totals(np.zeros(setting.n_arms), np.ones(setting.n_arms))

    @staticmethod
    def select(state, t, rng):
        return np.argmax(state.gains / state.pulls + widths(state, t))

    @staticmethod
    def update(state, t, arm, seen, reward, rng):
        state.gains[:] = state.gains + reward * (np.arange(state.gains.size) == seen)
        state.pulls[seen] += 1.0


@kernel
def widths(state, t):
    return np.sqrt(np.log(t) / state.pulls)


def test_arithmetic_on_whole_arrays_compiles_to_what_python_does():
    arms = [played(Arrays(), compiled) for compiled in (True, False)]
    assert arms[0] == arms[1]
    assert set(arms[0]) == {0, 1, 2}
    options = {"horizon": 60, "replications": 2, "seed": 5}
    assert simulate(Arrays(), Bernoulli([0.2, 0.5, 0.4]), **options).regret[0, :, -1].min() > 0.0


def played(policy, compiled):
    """The arms of some decisions."""
    player, arms = Player(policy, 3, seed=1, compiled=compiled), []
    for t in range(60):
        arms.append(player.select())
        player.update(arms[-1], reward=float(t % (arms[-1] + 2) == 0))
    return arms


def test_a_changed_global_or_helper_is_compiled_anew(monkeypatch):
    assert regret(Follows()) == pytest.approx(0.0)
    monkeypatch.setitem(globals(), "RATE", 1)
    assert regret(Follows()) == pytest.approx(5.0)
    assert Player(Follows(), 2, compiled=True).select() == 1
    monkeypatch.setitem(globals(), "RATE", 0)
    assert regret(Follows()) == pytest.approx(0.0)
    assert Player(Follows(), 2, compiled=True).select() == 0

    @kernel
    def second_arm(state):
        return 1

    monkeypatch.setitem(globals(), "first_arm", second_arm)
    assert regret(Follows()) == pytest.approx(5.0)
    assert regret(Looks()) == pytest.approx(0.0)
    monkeypatch.setitem(globals(), "TABLE", np.array([1, 0]))
    assert regret(Looks()) == pytest.approx(5.0)


@pytest.mark.parametrize("kernel", ["select", "update"])
def test_a_mistake_in_an_interpreted_kernel_is_a_sentence_with_policy_kernel_and_line(kernel):
    player = Player(WrongField() if kernel == "select" else Misspelt(), n_arms=2)
    wrong = "pulls_of_mine" if kernel == "select" else "nothing_of_this_kind"
    with pytest.raises(
        UserError, match=rf"{kernel} of \w+ failed at line \d+ of test_own_mistakes.py.*{wrong}"
    ):
        player.update(player.select(), 1.0)
