"""What is proved about Evidence holds in every state that it reaches, and its regret grows as Lai and Robbins say."""

import math

import numpy as np
import pytest
from scipy.stats import binom, gamma

from abex import Bernoulli, Evidence, UserError, simulate
from abex.policies.change_test import split_evidence
from abex.policies.policy import Setting
from abex.samplers import draw
from abex.support.divergence import bernoulli_kl
from abex.support.randomness import stream
from abex.theory.evidence import (
    alarm_most,
    draws_most,
    leader_probability_least,
    low_leader_most,
    probability_least,
    probability_most,
    regret_most,
)
from abex.theory.published import lai_robbins
from tests.each import each


@each("mean", [0.05, 0.4, 0.9])
@each("border", [1, 8, 20])
def test_a_look_shows_a_change_that_was_none_no_more_often_than_lemma_7_says(border, mean):
    n, exact = 32, 0.0
    first, second = binom(border, mean), binom(n - border, mean)
    for i in range(border + 1):
        for j in range(n - border + 1):
            value = split_evidence(border, i / border, n - border, j / (n - border), (i + j) / n)
            exact += first.pmf(i) * second.pmf(j) * (value > 4.0 + 1.5 * math.log(n))
    assert exact <= alarm_most(n)
    assert alarm_most(n) == pytest.approx(gamma.sf(4.0 + 1.5 * math.log(n), a=2.0, loc=2.0 * math.log(2.0)))


def states(policy, means, steps, seed):
    state, rng, chance = policy.start(Setting(len(means))), stream(seed, "policy"), stream(seed, "rewards")
    for t in range(1, steps + 1):
        arm = policy.select(state, t, rng)
        policy.update(state, t, arm, arm, float(chance.random() < means[arm]), rng)
        yield t + 1, arm, state


@each("safety", [0.0, 12.0])
@each("means", [[0.3, 0.6], [0.2, 0.5, 0.55, 0.9, 0.1]])
def test_the_probabilities_lie_between_the_bounds_of_lemma_3(means, safety):
    policy, n = Evidence(safety=safety, forget=False), len(means)
    for t, _, state in states(policy, means, 300, 1):
        if state.largest_reward < 1.0:
            continue
        law, lead = np.zeros(n), state.sampler.winners[1]
        policy.probabilities(state, t, law)
        assert law[lead] >= leader_probability_least(n) - 1e-12
        for k in range(n):
            if k != lead and state.observations[k] > 0 and state.means[lead] < 1.0:
                x = state.observations[k] * bernoulli_kl(state.means[k], state.means[lead])
                assert probability_least(x, n) - 1e-12 <= law[k] <= probability_most(x, n) + 1e-12


def test_an_observed_arm_is_not_drawn_more_often_than_lemma_4_says():
    means, slack, horizon = [0.5, 0.8], 0.05, 1500
    counts = []
    for seed in range(12):
        before, drawn = None, 0
        for _, arm, state in states(Evidence(forget=False), means, horizon, seed):
            drawn += int(before is not None and arm == 0 and before[0] <= 0.55 and before[1] >= 0.75)
            before = (state.means[0], state.means.max()) if state.observations[0] > 0 else None
        counts.append(drawn)
    bound = draws_most(0.5, 0.8, 2, horizon, slack)
    assert np.mean(counts) <= bound
    assert bound == pytest.approx(1.0 + math.log(horizon / 2) / bernoulli_kl(0.55, 0.75))
    with pytest.raises(UserError, match="slack"):
        draws_most(0.5, 0.6, 2, 100, 0.05)


@pytest.mark.parametrize("means", [[0.8, 0.6, 0.4, 0.2], [0.3, 0.2, 0.1]])
def test_the_regret_grows_as_slowly_as_lai_and_robbins_allow(means):
    horizon = 100_000
    curves = simulate(
        Evidence(),
        Bernoulli(means),
        horizon=horizon,
        replications=60,
        seed=5,
        checkpoints=[horizon // 10, horizon],
    )
    growth = (curves.regret[0, :, 1] - curves.regret[0, :, 0]) / (lai_robbins(means) * math.log(10))
    assert growth.mean() < 1.15 + 3 * growth.std(ddof=1) / math.sqrt(growth.size)
    assert growth.mean() > 0.4, "a policy that hardly explores would be locked in one day"


def test_the_largest_mean_is_seldom_too_low_and_the_regret_below_the_theorem():
    means, slack = [0.8, 0.3], 0.2
    low = [
        sum(
            state.means[state.observations > 0].max() < 0.8 - slack
            for _, _, state in states(Evidence(forget=False), means, 500, seed)
        )
        for seed in range(10)
    ]
    assert np.mean(low) <= low_leader_most(0.8, 2, slack)
    run = simulate(
        Evidence(forget=False), Bernoulli(means), horizon=2000, replications=40, seed=2, progress=False
    )
    assert run.regret[0, :, -1].mean() <= regret_most(means, 2000, slack)


def test_the_bound_has_the_slope_of_lai_and_robbins_in_the_limit():
    means = [0.7, 0.5, 0.4]
    for slack in (0.02, 0.005, 0.001):
        slope = (regret_most(means, 10**60, slack) - regret_most(means, 10**30, slack)) / (30 * math.log(10))
    assert slope == pytest.approx(lai_robbins(means), rel=0.02)
    with pytest.raises(UserError, match="slack"):
        low_leader_most(0.5, 2, 0.5)


def test_the_bound_is_the_sum_as_printed():
    """The first draw of an arm and the draws before its mean is nearly right belong to it."""
    means, best, horizon, slack = [0.8, 0.5, 0.3], 0.8, 10_000, 0.1
    total = (best - 0.3) * low_leader_most(best, 3, slack)
    for mean in means[1:]:
        late = math.log(horizon / 3) / bernoulli_kl(mean + slack, best - slack)
        total += (best - mean) * (late + 2.0 + 1.0 / (math.exp(bernoulli_kl(mean + slack, mean)) - 1.0))
    assert regret_most(means, horizon, slack) == pytest.approx(total, rel=1e-9)


def test_the_constant_of_lemma_5_is_the_sum_as_printed():
    a, best, n_arms = 0.6, 0.8, 3
    big, rate = -math.log(1 - a), bernoulli_kl(a, best)
    terms = [
        (math.sqrt(n * big) + math.sqrt(n * big + 2)) * (1 + n * big) * math.exp(-n * rate)
        for n in range(1, 3000)
    ]
    expected = n_arms * (1 + 1 / best + math.sqrt(math.pi) / 2 * math.fsum(terms))
    assert low_leader_most(best, n_arms, best - a) == pytest.approx(expected, rel=1e-9)


class Given:
    """Random numbers that are given."""

    def __init__(self, *numbers):
        self.numbers = list(numbers)

    def random(self):
        return self.numbers.pop(0)


def test_weights_are_drawn_as_multiples_of_2_to_the_minus_53_and_as_0_beyond_700_nats():
    policy, law, rng = Evidence(forget=False), np.zeros(2), stream(0, "rewards")
    state = policy.start(Setting(2))

    def observe(rounds):
        for n in range(rounds):
            for arm in (0, 1):
                policy.update(state, n + 1, arm, arm, float((n % 10 == 0) == (arm == 1)), rng)
        policy.probabilities(state, 1, law)
        return [draw(state.sampler, state, False, Given(0.75, u)) for u in (0.0, 2.0**-53)]

    assert observe(60) == [1, 0]  # arm 1 is looked at, and drawn by the smallest of 2^53 numbers alone
    assert 0.0 < law[1] < 1e-40
    assert observe(350) == [0, 0]  # 720 nats: exp(-720) would still be a number
    assert law[1] == 0.0


def test_below_the_upper_end_there_may_be_more_evidence_than_the_rewards_hold():
    """So Lemma 1 speaks of cautious steps, and of all once a 1 was seen."""
    policy, law, rng = Evidence(forget=False), np.zeros(2), stream(0, "rewards")
    state = policy.start(Setting(2))
    for arm, reward in ((0, 0.3), (1, 0.2)):
        policy.update(state, 1, arm, arm, reward, rng)
    assert draw(state.sampler, state, False, Given(0.75, 0.0)) == 0, "one look, and no doubt is left"
    assert draw(state.sampler, state, True, Given(0.75, 0.5)) == 1, "the next reward may be 1"
    policy.probabilities(state, 10**6, law)
    assert 0.0 < law[1] < 0.5 * 12.0 / 10**3
