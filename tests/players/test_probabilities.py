"""The probability of every decision: of one, of a batch, of an observation on a graph."""

import math
import pickle
from dataclasses import dataclass

import numpy as np
import pytest

from abex import (
    ABE,
    DropOut,
    EpsilonGreedy,
    Exp3,
    Exp3IX,
    Exp3SET,
    FollowTheLeader,
    Player,
    Thompson,
    Uniform,
    UserError,
)
from abex.graphs import erdos_renyi
from abex.graphs.feedback import reveal
from abex.kernels import kernel
from abex.players.batch_probability import by_quadrature, inclusion_probability


def by_enumeration(p, k, place):
    """The probability of being among the first k of by_quadrature sampling, over all orders."""
    if k == 0:
        return 0.0
    total = 0.0
    for first in range(p.size):
        if first == place:
            total += p[first] / p.sum()
        else:
            rest = p.copy()
            rest[first] = 0.0
            total += p[first] / p.sum() * by_enumeration(rest, k - 1, place) if p[first] else 0.0
    return total


@pytest.mark.parametrize("policy", [Exp3(gamma=0.3), ABE(eta=1.0), EpsilonGreedy(epsilon=0.2)], ids=str)
def test_the_probability_of_a_decision_is_that_of_its_arm_when_it_was_made(policy):
    player = Player(policy, n_arms=4, seed=1, propensities=True)
    for step in range(30):
        before = player.probabilities()
        decision = player.decide()
        assert decision.probability == before[decision.arm]
        assert player.pending()[-1].probability == before[decision.arm]
        player.update(decision, float(step % 2))
        assert decision.probability == before[decision.arm]


@dataclass(frozen=True)
class RoundedUp(Uniform):
    """Always the first arm, with a probability that was added up."""

    @staticmethod
    @kernel
    def select(state, t, rng):
        return 0

    @staticmethod
    @kernel
    def probabilities(state, t, out):
        out[0] = 1.0 + 2.0**-52
        out[1] = 0.0


def test_a_probability_that_rounding_takes_above_one_can_be_read_again(tmp_path):
    url = f"sqlite:///{tmp_path}/shop.db"
    with Player.open(url, "banner", RoundedUp(), n_arms=2, compiled=False) as player:
        decision = player.decide()
        assert player.update(decision, 1.0)
        assert decision.probability == player.probabilities()[0] == 1.0
    with Player.open(url, "banner") as player:
        assert player.log()["probability"].tolist() == [1.0]


def test_it_is_worked_out_when_asked_or_never():
    cheap = Player(Exp3(gamma=0.3), n_arms=4, seed=1)
    early = cheap.decide()
    cheap.update(cheap.decide(), 1.0)
    assert early.probability == 0.25, "it costs next to nothing, and is worked out with every decision"
    player = Player("UCB1", n_arms=4, seed=1)
    asked, late = player.decide(), player.decide()
    assert asked.probability == 0.25
    player.update(asked, 1.0)
    assert asked.probability == 0.25
    assert pickle.loads(pickle.dumps(asked)).probability == 0.25
    with pytest.raises(
        UserError,
        match="ask for its probability before the next update, or make the player with propensities=True",
    ):
        late.probability  # noqa: B018
    never = Player(Exp3(gamma=0.3), n_arms=4, seed=1, propensities=False).decide()
    assert never.probability is None
    identity, arm = asked
    assert (identity, arm) == (asked.id, asked.arm)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_successive_sampling_agrees_with_all_orders(k):
    rng = np.random.default_rng(k)
    for _ in range(5):
        p = rng.dirichlet(np.ones(5))
        found = [by_quadrature(p, k, place) for place in range(5)]
        assert found == pytest.approx([by_enumeration(p, k, place) for place in range(5)], abs=1e-12)
        assert sum(found) == pytest.approx(k, abs=1e-11)


@pytest.mark.parametrize("least", [1e-3, 1e-6, 1e-9])
def test_successive_sampling_of_very_unlike_arms(least):
    p = np.array([1.0 - 3 * least, least, 2 * least])
    assert [by_quadrature(p, 2, place) for place in range(3)] == pytest.approx(
        [by_enumeration(p, 2, place) for place in range(3)], rel=1e-9
    )
    many = np.random.default_rng(1).dirichlet(np.full(200, 0.3)) + 1e-12
    assert sum(by_quadrature(many / many.sum(), 12, place) for place in range(200)) == pytest.approx(
        12, abs=1e-7
    )


@pytest.mark.parametrize(
    ("policy", "exact"),
    [(Exp3(gamma=0.5), True), (Exp3IX(eta=0.3), True), (FollowTheLeader(), False)],
    ids=str,
)
def test_arms_are_in_a_batch_as_often_as_their_probability_says(policy, exact):
    """Up to 4.5 standard errors over 3,000 batches."""
    player = Player(policy, n_arms=5, horizon=100, seed=2)
    player.update_many([(0, 1.0), (1, 0.0), (2, 1.0), (3, 0.5), (4, 0.0)])
    batch = player.copy().decide_many(3)
    wanted = np.array([inclusion_probability(player._state, 1, 3, place) for place in range(5)])
    assert [decision.probability for decision in batch] == pytest.approx([wanted[d.arm] for d in batch])
    assert wanted.sum() == pytest.approx(3.0)
    counts, times = np.zeros(5), 3_000
    for seed in range(times):
        twin = player.copy()
        twin._rng = np.random.default_rng(seed)
        counts[twin.select(3)] += 1
    error = np.sqrt(times * wanted * (1.0 - wanted))
    assert (np.abs(counts - times * wanted) <= 4.5 * error + 1e-9).all()


def test_the_batch_of_a_policy_that_breaks_ties_is_followed_way_by_way():
    """A leader, then ties: a batch of two has the leader and one of four equals."""
    player = Player(EpsilonGreedy(epsilon=0.0), n_arms=5, seed=1)
    player.update_many([(0, 0.5), (1, 0.5), (2, 1.0), (3, 0.5), (4, 0.5)])
    batch = player.decide_many(2)
    assert batch[0].arm == 2
    assert [decision.probability for decision in batch] == pytest.approx([1.0, 0.25])
    assert [d.probability for d in player.copy().decide_many(5)] == [1.0] * 5
    tied = Player(EpsilonGreedy(epsilon=0.0), n_arms=5, seed=1)
    tied.update_many([(0, 1.0), (1, 1.0), (2, 1.0), (3, 0.5), (4, 0.5)])
    assert [decision.probability for decision in tied.decide_many(2)] == pytest.approx([2 / 3, 2 / 3])


def test_a_batch_that_would_take_too_long_says_so():
    with pytest.raises(UserError, match="takes too long to work out"):
        by_quadrature(np.full(10**6, 1e-6), 1000, 0)


def test_the_probability_of_an_observation_on_a_graph():
    """Of each arm, the sum over the arms that reveal it; on a graph whose edges come and go, at each step anew."""
    graph = erdos_renyi(12, 0.3, seed=1, directed=True)
    for one in (graph, DropOut(graph, keep=0.6)):
        player = Player(Exp3SET(eta=0.1), n_arms=12, graph=one, seed=1)
        for step in range(5):
            player.update(player.decide(), float(step % 2))
            t, p = player._steps + 1, player.probabilities()
            seen, wanted = np.zeros(12, np.int64), np.zeros(12)
            for arm in range(12):
                with np.errstate(over="ignore"):
                    count = reveal(player._state.feedback, t, arm, seen)
                wanted[seen[:count]] += p[arm]
            assert player.observation_probabilities() == pytest.approx(wanted)
    plain = Player(Uniform(), n_arms=3, seed=1)
    assert plain.observation_probabilities().tolist() == plain.probabilities().tolist()


def test_drawing_leaves_the_state_alone():
    """What a draw writes for its reward is kept with the decision and taken back."""
    player = Player(Exp3(gamma=0.3), n_arms=4, seed=1)
    for step in range(9):
        player.update(player.decide(), float(step % 2))
    before = player._state.state.probabilities.copy()
    decisions = [player.decide() for _ in range(5)] + player.decide_many(3)
    assert np.array_equal(player._state.state.probabilities, before)
    memories = [float(one.memory[0][0]) for one in player._state.pending.values()]
    assert memories[:5] == pytest.approx([decision.probability for decision in decisions[:5]], rel=1e-14)
    assert not math.isclose(memories[0], float(before[0])) or len(set(memories)) > 1


def test_thompson_has_probabilities_or_says_that_it_has_none():
    player = Player(Thompson(), n_arms=3, seed=1)
    if player.policy.probabilities is None:
        with pytest.raises(UserError, match="no closed form"):
            player.decide().probability  # noqa: B018
    else:
        assert player.decide().probability == pytest.approx(1 / 3)
