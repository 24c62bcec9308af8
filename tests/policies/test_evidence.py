"""Evidence: what its sampler, its change test and its arms that come and go promise."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from abex import Evidence, Player, SpecialArm, UserError
from abex.graphs import star
from abex.policies.change_test import append_reward, new_change_test
from abex.policies.policy import Setting
from abex.samplers import sampler_for
from abex.samplers.evidence import leads, surely_above, weight_of
from abex.simulation import as_checkpoints, play_replication
from abex.support.divergence import bernoulli_kl, two_moment_divergence
from abex.support.randomness import stream

UNIT = st.floats(0.0, 1.0)


@given(UNIT, UNIT.filter(lambda goal: goal == 1.0 or goal < 1.0 - 1e-8), UNIT, st.floats(1e-6, 1.0))
def test_the_divergence_is_that_of_coins_in_any_unit(mean, goal, share, unit):
    # another unit rounds a goal, and with it what is left up to the highest reward, by 1e-16
    coin = two_moment_divergence(mean, mean * (1 - mean), goal, 1.0)
    assert coin == pytest.approx(bernoulli_kl(mean, goal) if goal > mean else 0.0, rel=1e-6, abs=1e-12)
    scaled = two_moment_divergence(unit * mean, unit**2 * share, unit * goal, unit)
    assert scaled == pytest.approx(two_moment_divergence(mean, share, goal, 1.0), rel=1e-6, abs=1e-12)


@given(UNIT, UNIT, st.tuples(UNIT, UNIT), st.tuples(UNIT, UNIT))
def test_the_divergence_grows_with_the_goal_and_falls_with_the_highest_reward(mean, variance, goals, tops):
    low, high = sorted(goals)
    lower, upper = (max(mean, top) for top in sorted(tops))
    assert (
        two_moment_divergence(mean, variance, low, 1.0)
        <= two_moment_divergence(mean, variance, high, 1.0) + 1e-12
    )
    assert (
        two_moment_divergence(mean, variance, low, upper)
        <= two_moment_divergence(mean, variance, low, lower) * (1 + 1e-9) + 1e-12
    )


def played(n_arms, steps, seed=1, policy=None, means=None):
    """A state after so many steps of an interpreted run with many kinds of rewards, and the next step."""
    policy = policy or Evidence()
    state, rng, chance = policy.start(Setting(n_arms)), stream(seed, "policy"), stream(seed, "rewards")
    means = np.linspace(0.1, 0.9, n_arms) if means is None else means
    for t in range(1, steps + 1):
        arm = policy.select(state, t, rng)
        policy.update(
            state, t, arm, arm, float(np.clip(means[arm] + 0.4 * (chance.random() - 0.5), 0, 1)), rng
        )
    return state, steps + 1


@pytest.mark.parametrize(("n_arms", "steps"), [(2, 40), (3, 1500), (13, 600), (64, 150), (200, 900)])
def test_the_tournament_knows_who_leads_and_the_cheap_bound_holds_at_every_step(n_arms, steps):
    policy = Evidence()
    state, rng, chance = policy.start(Setting(n_arms)), stream(2, "policy"), stream(2, "rewards")
    used = 0
    for t in range(1, steps + 1):
        arm = policy.select(state, t, rng)
        mean = (arm * 7 % n_arms) / n_arms if t < steps // 2 else 1 - (arm * 7 % n_arms) / n_arms
        policy.update(state, t, arm, arm, float(chance.random() < mean), rng)
        seen = np.flatnonzero(state.observations)
        lead = next(k for k in seen if all(k == j or leads(state, k, j) for j in seen))
        assert state.sampler.winners[1] == lead
        u = chance.random()
        for k in seen[seen != lead]:
            for cautious in (True, False):
                if surely_above(state, k, lead, cautious, u):
                    assert u > weight_of(state, k, lead, cautious)
                    used += 1
    assert used > steps // 10


@pytest.mark.parametrize(("n_arms", "steps"), [(3, 60), (40, 400), (40, 30)])
def test_draws_have_the_stated_probabilities(n_arms, steps):
    state, t = played(n_arms, steps)
    law, rng = np.zeros(n_arms), stream(3, "draws")
    Evidence.probabilities(state, t, law)
    assert law.sum() == pytest.approx(1.0)
    counts = np.bincount([Evidence.select(state, t, rng) for _ in range(20_000)], minlength=n_arms)
    likely = law * 20_000 > 5
    found = np.append(counts[likely], counts[~likely].sum())
    wanted = np.append(law[likely], law[~likely].sum()) * 20_000
    assert chisquare(found[wanted > 0], wanted[wanted > 0]).pvalue > 1e-6


def test_rewards_a_thousand_times_smaller_are_played_alike_without_caution():
    policy, chance = Evidence(safety=0.0), stream(5, "rewards")
    states = [policy.start(Setting(4)) for _ in range(2)]
    for t in range(1, 400):
        laws = np.zeros((2, 4))
        for law, state in zip(laws, states, strict=True):
            policy.probabilities(state, t, law)
        assert laws[1] == pytest.approx(laws[0], rel=1e-6, abs=1e-12)
        arm = int(chance.choice(4, p=laws[0]))
        reward = min(1.0, chance.random() * (0.4 + 0.2 * arm))
        for state, unit in zip(states, (1.0, 0.001), strict=True):
            policy.update(state, t, arm, arm, unit * reward, chance)


def test_blocks_are_at_most_two_of_each_power_of_two_and_hold_every_reward():
    test, chance = new_change_test(), stream(1, "rewards")
    rewards = []
    for n in range(1, 600):
        rewards.append(chance.random())
        append_reward(test, rewards[-1])
        counts = test.blocks[0, : test.n_blocks]
        assert counts.sum() == n
        assert set(np.unique(counts, return_counts=True)[1]) <= {1, 2}
        assert (np.log2(counts) % 1 == 0).all()
        assert (np.diff(counts) <= 0).all()
        ends = np.cumsum(counts).astype(int)
        for j in range(test.n_blocks):
            part = np.array(rewards[ends[j] - int(counts[j]) : ends[j]])
            assert test.blocks[1:, j] == pytest.approx([part.sum(), (part**2).sum()])


def test_an_arm_that_comes_is_explored_and_one_that_goes_leaves_no_trace():
    player = Player(Evidence(), n_arms=3, seed=4)
    player.update_many([(0, 0.2), (1, 0.9), (2, 0.3)] * 30)
    new = player.add_arm()
    assert player.probabilities()[new] == pytest.approx(0.25), "an arm never observed has weight 1 of 4"
    player.update_many([(new, 0.25)] * 10)
    player.remove_arm(1)
    fresh = Player(Evidence(), n_arms=3, seed=4)
    fresh.update_many([(0, 0.2), (1, 0.3)] * 30 + [(2, 0.25)] * 10)
    state, other = player._state.state, fresh._state.state
    for name in ("observations", "means", "squares", "highest", "lowest"):
        assert np.allclose(getattr(state, name), getattr(other, name)), name
    assert state.largest_reward == 0.3


def test_newcomers_are_drawn_as_stated_and_go_along_with_the_arms_that_stay(tmp_path):
    player = Player(Evidence(safety=0.0), n_arms=4, seed=4)
    player.update_many([(0, 0.2), (1, 0.9), (2, 0.3), (3, 0.4)] * 30)
    first, second = player.add_arm(), player.add_arm()
    player.update_many([(first, 0.8), (first, 0.9)])
    law, runner, rng = player.probabilities(), player._state, stream(3, "draws")
    weight = weight_of(runner.state, first, 1, False)
    assert law[[first, second]] == pytest.approx([weight * (1 / 4 + 1 / 12), 1 / 6])
    counts = np.bincount([Evidence.select(runner.state, 123, rng) for _ in range(20_000)], minlength=6)
    likely = law > 1e-3
    assert chisquare(counts[likely], law[likely] / law[likely].sum() * counts[likely].sum()).pvalue > 1e-6
    player.save(tmp_path / "player.json")
    assert Player.load(tmp_path / "player.json").probabilities().tolist() == law.tolist()
    player.remove_arm(2)
    assert player.probabilities()[-1] == pytest.approx(1 / 5), "never observed"
    player.remove_arm(second)
    assert player.probabilities()[-1] == pytest.approx(weight * (1 / 2 + 1 / 8), rel=1e-6), (
        "one of one newcomer"
    )


def after_an_alarm():
    """A player in whose second era three arms have been seen."""
    player, chance = Player(Evidence(), n_arms=3, seed=4), stream(3, "rewards")
    means = np.array([0.2, 0.8, 0.5])
    for t in range(600):
        decision = player.decide()
        player.update(decision, float(chance.random() < means[decision.arm] * (1.0 if t < 400 else 0.4)))
    assert player._state.state.order.unit == 1
    return player


def test_compiled_and_interpreted_replicas_agree_on_the_order_to_the_last_bit():
    orders = []
    for compiled in (True, False):
        player, chance = Player(Evidence(), n_arms=4, seed=4, compiled=compiled), stream(3, "rewards")
        for t in range(1500):
            decision = player.decide()
            mean = (0.2, 0.8, 0.5, 0.7)[decision.arm] * (1.0 if t % 1000 < 500 else 0.5)
            player.update(decision, float(chance.random() < mean))
        orders.append(player._state.state.order)
    one, other = orders
    assert one.unit >= 0
    assert one.newness == other.newness
    assert one.odds.tolist() == other.odds.tolist()


def test_what_is_kept_goes_along_with_the_arms_that_stay():
    player = after_an_alarm()
    before = player.probabilities()
    kept = player._state.state.order.means.copy()
    new = player.add_arm()
    player.remove_arm(2)
    order = player._state.state.order
    assert (order.unit, new) == (1, 3)
    assert order.means.tolist() == [kept[0], kept[1], 0.0]
    assert player.probabilities()[0] == pytest.approx(0.5 * before[0], rel=0.2), (
        "one of three arms as before, of which half the draws take the new one"
    )
    player.remove_arm(1)
    assert player._state.state.order.unit == -1, "who told the level is gone: what is fresh counts"
    assert player.probabilities().sum() == pytest.approx(1.0)


def test_what_is_kept_stands_in_files(tmp_path):
    player = after_an_alarm()
    player.save(tmp_path / "player.json")
    loaded = Player.load(tmp_path / "player.json")
    assert loaded.probabilities().tolist() == player.probabilities().tolist()
    loaded._state.state.order.exposures[0] = 0.0
    with pytest.raises(ValueError, match="order that is kept"):
        loaded.policy.prepare(loaded._state.state)


@settings(max_examples=20)
@given(st.integers(1, 6), st.lists(st.tuples(st.integers(0, 5), UNIT), max_size=60))
def test_any_rewards_keep_the_state_sound(n_arms, updates):
    policy = Evidence()
    state, rng = policy.start(Setting(n_arms)), stream(1, "policy")
    for t, (arm, reward) in enumerate(updates, 1):
        policy.update(state, t, arm % n_arms, arm % n_arms, reward, rng)
        out = np.zeros(n_arms)
        policy.probabilities(state, t, out)
        assert out.sum() == pytest.approx(1.0)
        assert 0 <= policy.select(copy.deepcopy(state), t, rng) < n_arms


def test_the_hub_is_played_to_see_the_leaves():
    policy = Evidence(safety=0.0)
    state = policy.start(Setting(30, None, star(30)))
    out = np.zeros(30)
    policy.probabilities(state, 1, out)
    assert out[0] == pytest.approx(1.0), "before the first step the hub shows all arms, a leaf two"


def test_many_arms_do_not_drift():
    """After many steps the tournament is what the statistics say, and these are sums of what was observed."""
    run = play_replication(Evidence(), SpecialArm(300, 0.6, 0.5), None, as_checkpoints(2, 300_000), 1, 0)
    state = run.state
    assert np.array_equal(sampler_for("evidence", state).winners, state.sampler.winners)
    successes = state.means * state.observations
    assert successes == pytest.approx(np.round(successes), abs=1e-6)
    assert state.squares == pytest.approx(successes * (1.0 - state.means), abs=1e-6)


def test_a_player_without_a_policy_plays_evidence():
    assert Player(n_arms=2).policy == Evidence()
    assert Player(arms=["red", "green"]).policy == Evidence()


def too_many(state):  # none of them would ever be merged
    state.test.blocks[0, :127], state.test.n_blocks, state.observations[state.test.arm] = 3.0, 127, 381.0


@pytest.mark.parametrize(
    "change",
    [
        too_many,
        lambda state: state.test.blocks.__setitem__((0, 1), -1.0),
        lambda state: state.test.blocks.__setitem__((1, 0), np.nan),
    ],
    ids=["too many", "negative", "not a number"],
)
def test_a_file_with_blocks_that_could_outgrow_their_room_is_refused(change, tmp_path, monkeypatch):
    player, path = Player(Evidence(), n_arms=2, seed=1), tmp_path / "player.json"
    player.update_many([(0, 0.5), (1, 0.25)] * 40)
    player.save(path)
    loaded = Player.load(path)
    assert np.array_equal(loaded._state.state.test.blocks, player._state.state.test.blocks)
    change(loaded._state.state)
    with monkeypatch.context() as unchecked:
        unchecked.setattr(Evidence, "prepare", lambda self, state: state)
        loaded.save(path)
    with pytest.raises(UserError):
        Player.load(path)
