"""Policies against their formulas, recomputed from the whole history."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import abex
from abex import ABE, KLUCB, Boltzmann, Player, UserError, parse_policy
from abex.lab.experiments.experiment import simplest_policy
from abex.policies.exp3 import loss_probabilities
from abex.policies.forgetting import Forgetting
from abex.policies.policy import Setting
from abex.samplers import scan_for
from abex.samplers.scan import pick, softmax, softmax_weights
from abex.support.divergence import kl_upper_bound
from abex.support.randomness import stream
from tests.each import each
from tests.examples import all_examples
from tests.naive.graph_policies import abe
from tests.naive.policies import LAWS, kl

PLAIN = [
    example
    for example in all_examples()
    if not example.needs_graph and not isinstance(example, Forgetting)  # tests/policies/test_forgetting.py
]
SAMPLED = (
    "BoltzmannGumbel",
    "EpsilonThompson",
    "TSU",
    "Thompson",
)  # tests/policies/test_laws.py counts their draws
HORIZON = 200


def play(policy, n_arms, steps, seed):
    """Yield (state, history, t) before each step of an interpreted run with some side observations."""
    setting = Setting(n_arms, HORIZON)
    select, update = policy.kernels()
    state, rng, chance = policy.start(setting), stream(seed, "policy"), stream(seed, "rewards")
    history = []
    for t in range(1, steps + 1):
        yield state, history, t
        arm = select(state, t, rng)
        seen = {k: None for k in range(n_arms) if k != arm and chance.random() < 0.3}
        seen[arm] = None  # the pulled arm last
        for k in seen:
            seen[k] = min(1.0, chance.random() * 0.7 + 0.1 * k)
            update(state, t, arm, k, seen[k], rng)
        history.append((arm, dict(seen)))


@each("policy", [p for p in PLAIN if type(getattr(p, "policy", p)).__name__ not in SAMPLED])
def test_the_law_of_every_step_is_the_formula_applied_to_the_whole_history(policy):
    law = abe if isinstance(policy, ABE) else LAWS[type(policy).__name__]
    rng = stream(1, "probe")
    for n_arms, seed in ((2, 1), (4, 2)):
        for state, history, t in play(policy, n_arms, 45, seed):
            expected = law(policy, history, n_arms, HORIZON)
            out = np.zeros(n_arms)
            policy.probabilities(state, t, out)
            np.testing.assert_allclose(out, expected, atol=2e-9, err_msg=f"step {t}")
            chosen = policy.kernels().select(state, t, rng)
            assert expected[chosen] > 0.0, (t, history, expected)


@each(
    ("policy", "horizon", "same"),
    [
        (ABE(eta=0.7, c=0.1, alpha=0.7), 1_000, True),
        (
            ABE(eta=0.7, c=0.2, alpha=0.7, initial=None),
            1_022 * 5,
            True,
        ),  # floor(0.2 i^0.7) = 1 from i = 10 on
        (ABE(eta=0.7, c=0.2, alpha=0.7, initial=None), 1_022 * 5 + 1, False),
        (ABE(eta=0.7, c=0.1, alpha=0.7, rounding="carry"), 1_000, False),
        (ABE(eta=0.7, rounding="ceil"), 10, False),
        (ABE(eta=0.7, c=0.0, cover="alpha-sample", initial=1.0), 1_000, True),
    ],
)
def test_abe_without_an_exploration_slot_is_boltzmann_exploration_draw_by_draw(policy, horizon, same):
    setting = Setting(5, horizon)
    simplest = simplest_policy(policy, 5, horizon)
    assert isinstance(simplest, Boltzmann) == same
    if not same:
        assert simplest is policy
        return
    states, rngs = [one.start(setting) for one in (policy, simplest)], [stream(4, "same") for _ in range(2)]
    chance = stream(5, "same")
    for t in range(1, min(horizon, 300) + 1):
        arms = [
            one.select(state, t, rng)
            for one, state, rng in zip((policy, simplest), states, rngs, strict=True)
        ]
        assert arms[0] == arms[1]
        reward = float(chance.random() < 0.1 * arms[0])
        for one, state, rng in zip((policy, simplest), states, rngs, strict=True):
            one.update(state, t, arms[0], arms[0], reward, rng)


@given(st.floats(0, 1), st.floats(1e-9, 50))
@settings(max_examples=300)
def test_the_divergence_bound_is_the_largest_mean_within_the_level(mean, level):
    q = kl_upper_bound(mean, level)
    assert mean <= q <= 1.0
    if q - 1e-9 > mean:
        assert kl(mean, q - 1e-9) <= level * (1 + 1e-6) + 1e-12
    if q + 1e-9 < 1.0:
        assert kl(mean, q + 1e-9) >= level * (1 - 1e-6) - 1e-12


def test_pruned_divergence_bounds_choose_the_arm_of_the_full_search():
    rng = stream(3, "kl")
    policy = KLUCB(c=3.0)
    for _ in range(200):
        n = int(rng.integers(2, 12))
        state = policy.start(Setting(n))
        state.sampler = scan_for("index", n)
        state.observations[:] = rng.integers(1, 60, n)
        state.means[:] = np.round(rng.random(n) * state.observations) / state.observations
        t = int(rng.integers(3, 10_000))
        level = math.log(t) + 3.0 * math.log(math.log(t))
        bounds = [kl_upper_bound(m, level / p) for m, p in zip(state.means, state.observations, strict=True)]
        assert bounds[KLUCB.select(state, t, rng)] >= max(bounds) - 1e-12


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20), st.floats(0, 1e6))
@settings(max_examples=200)
def test_softmax_never_overflows(values, rate):
    values = np.array(values)
    out = np.zeros(values.size)
    total = softmax_weights(values, rate, out)
    assert np.isfinite(out).all()
    assert 1.0 <= total <= values.size
    assert 0 <= pick(out, total, stream(0, "pick")) < values.size
    loss_probabilities(values, rate, out)
    assert abs(out.sum() - 1.0) < 1e-9


@each(
    ("scores", "weights"),
    [
        ([0.0, math.log(2.0) / 3.0, 0.0], [0.5, 1.0, 0.5]),
        ([7.0, 7.0], [1.0, 1.0]),
        ([-2.0], [1.0]),
        ([1.0, -math.inf, 1.0], [1.0, 0.0, 1.0]),
        ([math.inf, 0.3, math.inf], [1.0, 0.0, 1.0]),
        ([0.9, -math.inf, math.inf, 0.9], [0.0, 0.0, 1.0, 0.0]),
    ],
)
def test_the_largest_scores_have_weight_one_and_infinite_ones_all_of_it(scores, weights):
    scores, out = np.array(scores), np.full(len(scores), math.nan)
    assert softmax_weights(scores, 3.0, out) == pytest.approx(sum(weights))
    assert out.tolist() == pytest.approx(weights)
    softmax(scores, 3.0, out)
    assert out.tolist() == pytest.approx([weight / sum(weights) for weight in weights])


class Drawn:
    """A source that draws one number."""

    def __init__(self, number):
        self.number = number

    def random(self):
        return self.number


def test_pick_never_returns_an_arm_without_weight():
    assert pick(np.array([0.3, 0.7, 0.0]), 1.0 + 1e-9, Drawn(1.0 - 2.0**-53)) == 1
    assert pick(np.array([0.0, 0.3, 0.7]), 1.0, Drawn(0.0)) == 1


def test_pick_goes_through_the_weights_in_their_order():
    weights = np.array([1.0, 0.0, 2.0, 1.0])
    drawn = [pick(weights, 4.0, Drawn((number + 0.5) / 8.0)) for number in range(8)]
    assert drawn == [0, 0, 2, 2, 2, 2, 3, 3]


def test_explore_then_commit_never_changes_its_mind():
    player = Player(abex.ExploreThenCommit(observations=2), n_arms=2, seed=0)
    player.update_many([(0, 1.0), (1, 0.5), (0, 1.0), (1, 0.5)])
    player.update_many([(0, 0.0)] * 50)
    assert player.select() == 0


def test_abe_reports_the_slots_of_its_schedule():
    player = Player(ABE(c=1.0, alpha=1.0), n_arms=3, seed=0)
    slots = []
    for _ in range(60):
        player.update(player.select(), 0.5)
        slots.append(player.report()["exploration_slots"])
    # i=1: 3 slots, then 6 Boltzmann; i=2: 6 slots, then 12; i=3: 9 slots, then 24
    assert slots == [1, 2, 3] + [3] * 6 + list(range(4, 10)) + [9] * 12 + list(range(10, 19)) + [18] * 24


def test_abe_with_the_papers_parameters_never_explores_at_feasible_horizons():
    curves = abex.simulate(ABE(), abex.Bernoulli([0.5] * 16), horizon=100_000, replications=2)
    assert curves.report("ABE")["exploration_slots"] == 0.0


@pytest.mark.parametrize("n_arms", [4, 16])
def test_without_exploration_abe_plays_the_arms_of_boltzmann_exploration(n_arms):
    arms = [
        [arm for arm, _ in list(play(policy, n_arms, 300, 5))[-1][1]]
        for policy in (ABE(), abex.Boltzmann(), abex.Boltzmann(eta=0.8))
    ]
    assert arms[0] == arms[1]
    assert arms[0] != arms[2]


def test_carry_explores_where_floor_does_not():
    slots = {}
    for rounding in ("floor", "carry", "ceil"):
        policy = ABE(c=0.1, alpha=0.7, rounding=rounding)
        curves = abex.simulate(policy, abex.Bernoulli([0.5] * 10), horizon=2_000, replications=1)
        slots[rounding] = curves.report(policy)["exploration_slots"]
    # up to i = 7 carry covers 10 * sum of 0.1 i^0.7 arms
    epochs = [0.1 * i**0.7 for i in range(1, 8)]
    assert slots == {"floor": 0.0, "carry": math.floor(10 * sum(epochs)), "ceil": 70.0}


def test_abe_finds_its_exploration_sequence_without_the_graph():
    """On a star every sweep after the first pull of the centre is one arm; leaves reveal themselves and the centre."""
    for seed in range(20):
        player = Player(ABE(c=2.0, alpha=0.0), n_arms=5, seed=seed)
        pulls = []
        while player.report()["epoch"] == 1.0 and len(pulls) < 14:
            arm = player.select()
            also = {k: 0.5 for k in range(1, 5)} if arm == 0 else {0: 0.5}
            player.update(arm, 0.5, also)
            pulls.append(arm)
        cover = int(player.report()["cover"])
        if pulls[0] == 0:
            assert cover == 1
            assert pulls[1] == 0
        else:
            assert cover == 4
            assert sorted(pulls[:4]) == [1, 2, 3, 4]
            assert pulls[4:8] == pulls[:4]
        assert player.report()["exploration_slots"] == 2 * cover


@each(
    ("text", "message"),
    [
        ("Tompson", "did you mean 'Thompson'"),
        ("ABE(etta=1)", "did you mean 'eta'"),
        ("ABE(eta=__import__('os'))", "cannot read the policy"),
        ("ABE(1.0, eta=2.0)", "parameter .eta. twice"),
        ("ABE(eta=1", "cannot read the policy"),
        ("ABE(eta='x')", "eta must be a finite number"),
        ("ABE(eta=nan)", "cannot read the policy"),
        ("ABE(eta=-1)", "eta must be > 0"),
        ("ABE(rounding='flor')", "did you mean 'floor'"),
        ("Exp3(gamma=2)", "gamma must be"),
        ("", "cannot read the policy"),
    ],
)
def test_a_wrong_policy_text_gets_one_sentence_that_names_the_mistake(text, message):
    with pytest.raises(UserError, match=message.replace("(", r"\(")) as caught:
        parse_policy(text)
    assert "\n" not in str(caught.value)


def test_names_of_the_literature_are_understood():
    assert parse_policy("ts-n") == abex.Thompson()
    assert parse_policy("KL-UCB-N(c=3.0)") == KLUCB(c=3.0)
    assert parse_policy("EXP3.P") == abex.Exp3P()


def test_names_of_the_literature_may_stand_for_parameters():
    assert parse_policy("AnytimeMOSS") == parse_policy("moss-anytime") == abex.MOSS(anytime=1.35)
    assert parse_policy("DecayingEpsilonGreedy(decay=5)") == abex.EpsilonGreedy(decay=5.0)
    assert parse_policy("Discounted(KLMaillard)").policy == abex.Maillard(divergence="bernoulli")
    with pytest.raises(UserError, match="MOSS has no parameter 'a'"):
        parse_policy("MOSS-anytime(a=1.0)")


@pytest.mark.parametrize(
    "policy", [abex.FollowTheLeader(), abex.EpsilonGreedy(), abex.EpsilonGreedy(decay=20.0)], ids=str
)
def test_the_remembered_leader_is_the_leader(policy):
    n_arms = 40  # more than are simply looked at
    for state, history, t in play(policy, n_arms, 300, 8):
        leaders = LAWS["FollowTheLeader"](policy, history, n_arms, HORIZON) > 0
        if state.leader >= 0:
            assert leaders.nonzero()[0].tolist() == [state.leader], t
    assert t == 300


@each("policy", PLAIN)
@given(
    st.integers(1, 40),
    st.lists(st.sampled_from([0.0, 1.0, 0.5, 1e-9, 1.0 - 1e-9]), max_size=30),
    st.integers(0, 99),
)
@settings(max_examples=15)
def test_any_number_of_arms_and_any_rewards_give_a_valid_arm(policy, n_arms, rewards, seed):
    player = Player(policy, n_arms, horizon=100, seed=seed)
    for reward in rewards:
        arm = player.select()
        assert type(arm) is int
        assert 0 <= arm < n_arms
        player.update(arm, reward)
