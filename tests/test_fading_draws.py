"""Samplers that keep pace with fading counts draw from the distribution of the moment, at every step."""

import numpy as np
import pytest

from abex import Bernoulli, BoltzmannGumbel, Discounted, Player, Thompson
from abex.kernels import fast
from abex.policies.base import Setting
from abex.samplers.fading_beta import FadingBeta, digamma_bound, norm_bounds, trigamma_bound
from abex.samplers.fading_gumbel import FadingGumbel
from abex.simulation import as_checkpoints, play_replication
from abex.support.randomness import stream
from abex.testing.policy_contract import same_states

CASES = [
    (Thompson(), FadingBeta, 14, 0.9),
    (Thompson(successes=2.0, failures=1.5), FadingBeta, 30, 0.99),
    (Thompson(), FadingBeta, 30, 0.999),
    (BoltzmannGumbel(), FadingGumbel, 18, 0.9),
    (BoltzmannGumbel(), FadingGumbel, 30, 0.995),
    (BoltzmannGumbel(), FadingGumbel, 8, 0.9995),
]


@pytest.mark.parametrize(("inside", "kind", "n_arms", "gamma"), CASES, ids=str)
def test_what_is_drawn_has_the_distribution_of_the_moment(inside, kind, n_arms, gamma):
    """The sum of (drawn - probability) over all steps, in standard deviations, for each arm and for the arms by rank."""
    policy = Discounted(inside, gamma=gamma)
    state = policy.start(Setting(n_arms))
    assert isinstance(state.inner.sampler, kind)
    select, update = policy.kernels()
    probabilities = fast(policy.probabilities)
    rng, chance = stream(5, "policy"), stream(6, "rewards")
    means, out = np.linspace(0.2, 0.8, n_arms), np.zeros(n_arms)
    apart, variance = np.zeros((2, n_arms)), np.zeros((2, n_arms))
    for t in range(1, 1500):
        arm = select(state, t, rng)
        probabilities(state, t, out)
        rank = np.argsort(np.argsort(-out, kind="stable"), kind="stable")
        for row, place, law in ((0, arm, out), (1, rank[arm], np.sort(out)[::-1])):
            apart[row] -= law
            apart[row, place] += 1.0
            variance[row] += law * (1.0 - law)
        if t % 3:  # steps without an observation: only time passes
            update(state, t, arm, arm, float(chance.random() < means[arm]), rng)
    enough = variance > 3.0
    assert enough.sum() > 5
    assert np.abs(apart[enough] / np.sqrt(variance[enough])).max() < 4.5


@pytest.mark.parametrize(("inside", "kind", "n_arms", "gamma"), CASES, ids=str)
def test_bounds_hold_until_they_are_renewed(inside, kind, n_arms, gamma):
    """What is filed of an arm is at least what it has, at every step until its turn comes."""
    from abex.samplers.beta import log_envelope, log_norm, shapes_of
    from abex.samplers.gumbel import NOWHERE, log_exceeding

    policy = Discounted(inside, gamma=gamma)
    state = policy.start(Setting(n_arms))
    select, update = policy.kernels()
    rng, chance = stream(7, "policy"), stream(8, "rewards")
    checked = 0
    for t in range(1, 400):
        arm = select(state, t, rng)
        inner, sampler = state.inner, state.inner.sampler
        for k in range(n_arms):
            if kind is FadingBeta:
                a, b = shapes_of(sampler, inner, k)
                threshold = sampler.threshold
                height = log_norm(a, b) + (a - 1.0) * threshold.log + (b - 1.0) * threshold.log_rest
                slope = (b - 1.0) / threshold.rest - (a - 1.0) / threshold.level
                assert height <= sampler.heights[k]
                if sampler.filed[k] > 0:
                    low, high = norm_bounds(sampler, k, a, b)
                    assert low <= log_norm(a, b) <= high
                assert slope >= sampler.slopes[k] - 1e-9
                assert (
                    log_envelope(slope, threshold.rest)
                    <= log_envelope(sampler.slopes[k], threshold.rest) + 1e-9
                )
                checked += 1
            elif sampler.threshold.level != NOWHERE and k != sampler.threshold.leader:
                assert log_exceeding(sampler, inner, k) <= sampler.logs[k] + 1e-12
                checked += 1
        if t % 3:
            update(state, t, arm, arm, float(chance.random() < 0.3 + 0.4 * (arm % 2)), rng)
    assert checked > 1000


@pytest.mark.parametrize(
    ("inside", "n_arms", "gamma"),
    [
        (Thompson(), 20, 0.98),
        (BoltzmannGumbel(), 20, 0.98),
        (BoltzmannGumbel(), 20, 0.9),
        (BoltzmannGumbel(), 5, 0.9995),
    ],
    ids=str,
)
def test_compiled_is_interpreted(inside, n_arms, gamma):
    policy, environment = Discounted(inside, gamma=gamma), Bernoulli(np.linspace(0.1, 0.9, n_arms))
    fast_run = play_replication(policy, environment, None, as_checkpoints(20, 500), 1, 0)
    slow_run = play_replication(policy, environment, None, as_checkpoints(20, 500), 1, 0, interpreted=True)
    assert np.array_equal(fast_run.regret, slow_run.regret)
    assert same_states(fast_run.state, slow_run.state)


def test_the_derivatives_of_ln_gamma_lie_within_their_bounds():
    from scipy.special import digamma, polygamma

    for x in np.geomspace(1.0, 1e6, 200):
        assert (
            polygamma(1, x)
            <= trigamma_bound(1.0 / x) * (1.0 + 1e-14)
            <= polygamma(1, x) + 0.04 / x**5 + 1e-14
        )
        assert digamma_bound(x, False) - 1e-14 <= digamma(x) <= digamma_bound(x, True) + 1e-14


@pytest.mark.parametrize(("inside", "kind", "n_arms", "gamma"), CASES, ids=str)
def test_a_saved_player_goes_on_exactly_where_it_was(inside, kind, n_arms, gamma, tmp_path):
    player = Player(Discounted(inside, gamma=gamma), n_arms, seed=3)
    for _ in range(90):
        arm = player.select()
        player.update(arm, float(arm % 3 == 0))
    player.save(tmp_path / "player.json")
    again = Player.load(tmp_path / "player.json")
    for _ in range(60):
        arms = player.select(), again.select()
        assert arms[0] == arms[1]
        player.update(arms[0], float(arms[0] % 2))
        again.update(arms[0], float(arms[0] % 2))
