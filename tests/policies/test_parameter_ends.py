"""Every number that a policy or an environment allows plays: the ends are those that the class declares."""

import dataclasses
import itertools
import math
import os
import warnings
from contextlib import contextmanager

import numpy as np
import pytest

import abex.environments
from abex import Player
from abex.environments import Bernoulli, Beta, ClippedGaussian, Drifting, SpecialArm, Switching
from abex.graphs import bandit
from abex.kernels import Record, fields_of
from abex.kinds import kinds_of
from abex.policies import ABE, INF, Boltzmann, EpsilonGreedy
from abex.policies.naming import known_policies
from abex.policies.policy import Setting
from abex.support.errors import UserError
from abex.support.parameters import Range, declared
from tests.each import each, each_group

HORIZON = 1000
STEPS = 60
MANY_STEPS = 32  # with 120 arms
REWARDS = {
    "zeros": lambda t: 0.0,
    "ones": lambda t: 1.0,
    "tiny": lambda t: 1e-300,
    "alternating": lambda t: float(t % 2),
}
POLICIES = {name: cls for name, cls in known_policies().items() if cls.__module__.startswith("abex.")}
RANGES = [
    (name, parameter)
    for name, cls in POLICIES.items()
    for parameter, allowed in declared(cls).items()
    if isinstance(allowed, Range)
]
RANGES_OF = {name: [pair for pair in RANGES if pair[0] == name] for name, _ in RANGES}
WORLDS = {
    "Bernoulli": {"means": [0.0, 1.0, 0.5]},
    "Beta": {"means": [1e-6, 1.0 - 1e-6, 0.5]},
    "ClippedGaussian": {"means": [0.0, 1.0, 0.5]},
    "Switching": {"means": [0.0, 1.0, 0.5]},
    "Drifting": {"means": [0.0, 1.0, 0.5]},
    "SpecialArm": {"K": 3},
    "Discrete": {"values": [[0.0], [1.0], [0.5, 0.2]]},
    "Phases": {"means": [[0.0, 1.0, 0.5]], "lengths": [5]},
    "RandomWalk": {"means": [0.0, 1.0, 0.5]},
    "Published": {},
    "Table": {"rewards": [[0.0, 1.0, 0.5]]},
    "RatingTable": {"table": [[0, 1], [1, 1], [0, 0]]},
}


class HangError(AssertionError):
    """A step drew far more random numbers than any step needs."""


class CountingRng:
    """Random numbers, but only so many for a step: a loop that rejects for ever is told without a clock."""

    def __init__(self, seed, most):
        self.rng, self.most, self.left = np.random.default_rng(seed), most, most

    def __getattr__(self, name):
        def draw(*arguments):
            self.left -= 1
            if self.left < 0:
                raise HangError(f"more than {self.most} random numbers in a step")
            return getattr(self.rng, name)(*arguments)

        return draw


def numbers_in(state):
    """What is learned, and all arrays, in the records within too; not the parameters, where nan may stand for "not given"."""
    if isinstance(state, Record):
        parts = {name: getattr(state, name) for name in fields_of(state)}
        learned = kinds_of(state)
        return [n for name, part in parts.items() for n in ([part] if name in learned else numbers_in(part))]
    if isinstance(state, tuple):
        return [number for part in state for number in numbers_in(part)]
    return [state] if isinstance(state, np.ndarray) and state.dtype.kind == "f" else []


def has_nan(state):
    return any(np.isnan(number).any() for number in numbers_in(state))


@contextmanager
def plays_or_is_refused(names, what):
    """A refusal must name a parameter; everything else that is raised is a failure that says who failed."""
    try:
        yield
    except UserError as error:
        if not any(name in str(error) for name in names) or len(str(error)) >= 200:
            raise
    except Exception as error:
        raise AssertionError(f"{what} fails: {error!r}") from error


def play(policy, n_arms, reward, steps=STEPS, seed=1, law_too=True):
    """Interpreted steps with bandit feedback; every arm exists, nothing is NaN, the law is one."""
    graph = bandit(n_arms) if policy.needs_graph else None
    setting = Setting(n_arms, HORIZON, graph)
    rng = CountingRng(seed, 2000 + 20 * n_arms)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # compiled kernels do not warn
        state = policy.start(setting)
        select, update = policy.kernels()
        for t in range(1, steps + 1):
            rng.left = rng.most
            arm = select(state, t, rng)
            assert arm == int(arm)
            assert 0 <= arm < n_arms
            rare = t == steps or (t in (1, 2, 4) and n_arms <= 3)  # the law is dear when it is interpreted
            if law_too and rare and policy.probabilities is not None:
                law = np.empty(n_arms)
                policy.probabilities(state, t, law)
                assert law.min() >= 0.0
                assert law.sum() == pytest.approx(1.0, abs=1e-6)
            update(state, t, arm, arm, reward(t), rng)
        assert not has_nan(state)


def pairs_of_ends(ranges):
    """Parameters at their ends, such that every two stand at all four pairs of ends: as few as a greedy choice finds."""
    corners = [dict(zip(ranges, corner, strict=True)) for corner in itertools.product(*ranges.values())]
    if len(ranges) < 3 or os.environ.get("ABEX_ALL_CORNERS"):
        return corners
    missing = {pair for corner in corners for pair in itertools.combinations(corner.items(), 2)}
    chosen = []
    while missing:
        best = max(corners, key=lambda corner: len(missing & set(itertools.combinations(corner.items(), 2))))
        missing -= set(itertools.combinations(best.items(), 2))
        chosen.append(best)
    return chosen


@each_group("range_", RANGES_OF)
def test_a_policy_plays_at_both_ends_of_each_parameter(range_):
    name, parameter = range_
    cls = POLICIES[name]
    allowed = declared(cls)[parameter]
    assert not allowed.whole or max(map(abs, allowed.ends())) < 2**63
    for value in allowed.ends():
        policy = cls(**{parameter: value})
        for n_arms, (pattern, reward) in itertools.product((1, 2, 3), REWARDS.items()):
            with plays_or_is_refused([parameter], f"{policy} with {n_arms} arms and {pattern}"):
                play(policy, n_arms, reward)


@pytest.mark.parametrize("name", sorted({name for name, _ in RANGES}))
def test_a_policy_plays_at_pairs_of_ends_with_the_kernels_for_many_arms(name):
    """All corners with ABEX_ALL_CORNERS=1; 120 arms are more than any policy scans."""
    cls = POLICIES[name]
    ranges = {key: allowed.ends() for key, allowed in declared(cls).items() if isinstance(allowed, Range)}
    for number, corner in enumerate(pairs_of_ends(ranges)):
        policy = cls(**corner)
        pattern = list(REWARDS)[number % len(REWARDS)]
        for n_arms, steps in ((2, STEPS), (120, MANY_STEPS)):
            with plays_or_is_refused(ranges, f"{policy} with {n_arms} arms and {pattern}"):
                play(policy, n_arms, REWARDS[pattern], steps)


def beyond(allowed):
    low, high = allowed.ends()
    if allowed.whole:
        return low - 1, high + 1, 10**400, low + 0.5
    return (*(x for x in (math.nextafter(low, -math.inf), math.nextafter(high, math.inf))), math.nan)


@each(("name", "parameter"), RANGES)
def test_what_lies_beyond_is_refused_by_name(name, parameter):
    for value in (*beyond(declared(POLICIES[name])[parameter]), "1", True, [1.0], 10**400):
        with pytest.raises(UserError, match=parameter) as refusal:
            POLICIES[name](**{parameter: value})
        assert len(str(refusal.value)) < 200


def test_every_number_of_every_policy_and_environment_is_declared():
    environments = [getattr(abex.environments, name) for name in WORLDS]
    for cls in (*POLICIES.values(), *environments):
        for field in dataclasses.fields(cls):
            if any(word in str(field.type) for word in ("int", "float", "bool", "str")):
                assert field.name in declared(cls) or "Sequence" in str(field.type), (cls, field.name)


def test_numbers_of_other_libraries_become_pythons():
    assert repr(ABE(eta=np.float64(0.5), c=np.int64(1))) == repr(ABE(eta=0.5, c=1.0))
    assert type(SpecialArm(np.int32(3)).K) is int


@pytest.mark.parametrize("name", sorted(name for name, cls in POLICIES.items() if not cls.needs_graph))
def test_a_policy_plays_with_a_hundred_thousand_arms(name):
    """Two steps, as an interpreted step may look at every arm; policies that solve programs are too dear for it."""
    policy = POLICIES[name]()
    with plays_or_is_refused([], f"{policy} with 100,000 arms"):
        play(policy, 100_000, REWARDS["alternating"], steps=2, law_too=False)


@each(
    "policy",
    [ABE(initial=end, eta=eta) for end in declared(ABE)["initial"].ends() for eta in (0.4, 1e100)]
    + [Boltzmann(initial=end, schedule="constant", eta=1e3) for end in declared(Boltzmann)["initial"].ends()],
)
def test_initial_means_at_their_ends_do_not_hang_at_a_hundred_thousand_arms(policy):
    play(policy, 100_000, REWARDS["alternating"], steps=4)


def test_named_extremes_play_or_are_refused_by_name():
    cases = [
        (ABE, {"initial": 1e16}), (Boltzmann, {"initial": 1e16}), (ABE, {"c": 1e308}), (ABE, {"alpha": 1e308}),
        (ABE, {"c": 1e308, "rounding": "carry"}), (ABE, {"c": 1e308, "rounding": "ceil"}), (INF, {"eta": 1e-14}),
        (EpsilonGreedy, {"decay": 1e300}),
    ]  # fmt: skip
    for (cls, parameters), n_arms in itertools.product(cases, (1, 2, 3, 120)):
        with plays_or_is_refused(parameters, f"{cls.__name__}({parameters}) with {n_arms} arms"):
            for reward in REWARDS.values():
                play(cls(**parameters), n_arms, reward, steps=200)


def test_huge_exploration_is_the_same_compiled():
    numbers = []
    for compiled in (False, True):
        player = Player(ABE(c=1e100, alpha=100.0), n_arms=4, seed=3, compiled=compiled)
        arms = []
        for t in range(40):
            arms.append(player.select())
            player.update(arms[-1], reward=float(t % 2))
        numbers.append((arms, player.report()))
    assert numbers[0] == numbers[1]
    assert numbers[0][1]["exploration_slots"] == 40


# -- environments ---------------------------------------------------------------------------------------------


def pays(environment, steps=(1, 2, 1000, 10**11)):
    world = environment.open(np.uint64(7), HORIZON)
    draw, gap, best = environment.rules()
    arms = range(environment.n_arms) if environment.n_arms <= 3 else (0, environment.n_arms - 1)
    with np.errstate(over="ignore"):
        for t, arm in itertools.product(steps, arms):
            assert 0.0 <= draw(world, t, arm) <= 1.0
            assert -1.0 <= gap(world, t, arm) <= 1.0
            assert best(world, t, arm) in (True, False)


@each("name", WORLDS)
def test_an_environment_pays_at_both_ends_of_each_parameter(name):
    cls = getattr(abex.environments, name)
    assert set(abex.environments.__all__) == {*WORLDS, "Environment", "known_environments"}
    ranges = {one: allowed for one, allowed in declared(cls).items() if isinstance(allowed, Range)}
    for parameter, allowed in ranges.items():
        for value in allowed.ends():
            who = f"{name} with {parameter}={value}"
            with plays_or_is_refused([parameter, "best"], who), warnings.catch_warnings():
                warnings.simplefilter("error")
                pays(cls(**{**WORLDS[name], parameter: value}))
        for value in (*beyond(allowed), "1", None, 10**400):
            with pytest.raises(UserError, match=parameter):
                cls(**{**WORLDS[name], parameter: value})


@each("cls", [Bernoulli, Beta, ClippedGaussian, Switching, Drifting])
@each("n_arms", [1, 2, 3, 100_000])
def test_means_at_their_ends_pay(cls, n_arms):
    low, high = (1e-6, 1.0 - 1e-6) if cls is Beta else (0.0, 1.0)
    for means in ([low] * n_arms, [high] * n_arms, ([low, high] * n_arms)[:n_arms]):
        pays(cls(means), steps=(1, 10**11))


@each("wrong", [[10**400], [math.nan], [[0.5]], "x", [None], [1e-300, 2.0], []])
def test_means_that_are_none_are_refused(wrong):
    for cls in (Bernoulli, Beta, ClippedGaussian, Switching, Drifting):
        with pytest.raises(UserError, match="means"):
            cls(wrong)


def test_the_smallest_deviation_has_the_centres_as_means():
    low, high = declared(ClippedGaussian)["deviation"].ends()
    assert ClippedGaussian([0.0, 0.3, 1.0], deviation=low).true_means == pytest.approx([0.0, 0.3, 1.0])
    assert ClippedGaussian([0.0, 0.3, 1.0], deviation=high).true_means == pytest.approx([0.5] * 3, abs=1e-5)
