"""The probability of every decision: quadrature against exact formulas, SciPy and a million draws."""

import math
from fractions import Fraction
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import betainc, betaln, expit, log_expit
from scipy.stats import chisquare

import abex
from abex import BoltzmannGumbel, EpsilonThompson, Graph, Thompson, TSMaxN, known_policies
from abex.kernels import compile_alone, compiled
from abex.policies.policy import Setting
from abex.samplers.largest_beta import (
    N_NODES,
    NODES,
    RUNNING,
    WEIGHTS,
    largest_beta,
    largest_beta_or_point,
)
from abex.samplers.largest_gumbel import largest_gumbel, largest_line
from abex.support.randomness import stream


def of_betas(a, b):
    a, b, out = np.asarray(a, float), np.asarray(b, float), np.zeros(len(a))
    total = compile_alone(largest_beta)(a, b, out)
    rounding = max(1.0, len(a) / 100) * max(
        1.0, math.sqrt((a + b).max() / 1e6)
    )  # of a steep or a long product
    assert abs(total - 1) < 1e-12 * rounding, (total - 1, a, b)
    return out


def of_gumbels(means, steep):
    out = np.zeros(len(means))
    total = compile_alone(largest_gumbel)(np.asarray(means, float), np.asarray(steep, float), out)
    assert abs(total - 1) < 1e-12, total - 1
    return out


def test_every_policy_of_the_library_tells_its_probabilities():
    ours = [cls for cls in known_policies().values() if cls.__module__.startswith("abex.")]
    assert len(ours) > 30
    assert [cls.__name__ for cls in ours if cls.probabilities is None] == []


def test_the_rule_integrates_polynomials_and_their_antiderivatives():
    for degree in range(2 * N_NODES):
        exact = 2 / (degree + 1) if degree % 2 == 0 else 0.0
        assert NODES**degree @ WEIGHTS == pytest.approx(exact, abs=1e-14)
        if degree < N_NODES:
            exact = (NODES ** (degree + 1) - (-1) ** (degree + 1)) / (degree + 1)
            np.testing.assert_allclose((NODES**degree) @ RUNNING, exact, atol=1e-14)


# -- Beta draws ------------------------------------------------------------------------------------------------


def first_is_larger(a, b, c, d):
    """P(Beta(a, b) > Beta(c, d)) for whole numbers, exactly."""

    def beta(x, y):
        return Fraction(math.factorial(x - 1) * math.factorial(y - 1), math.factorial(x + y - 1))

    total = sum(beta(c + i, b + d) / ((b + i) * beta(1 + i, b) * beta(c, d)) for i in range(a))
    return float(total)


@given(st.tuples(*[st.integers(1, 40)] * 4))
@settings(max_examples=60)
def test_two_beta_draws_agree_with_the_exact_sum(shape):
    a, b, c, d = shape
    assert of_betas([a, c], [b, d])[0] == pytest.approx(first_is_larger(a, b, c, d), rel=1e-10, abs=1e-13)


def by_scipy(a, b, k):
    """The integral over arm k's draw in logit space, by SciPy's adaptive rule and its incomplete Beta function."""

    def integrand(y):
        log = a[k] * log_expit(y) + b[k] * log_expit(-y) - betaln(a[k], b[k])
        return math.exp(log) * np.prod(np.delete(betainc(a, b, expit(y)), k))

    middle, width = math.log(a[k] / b[k]), math.sqrt(1 / a[k] + 1 / b[k])
    cuts = middle + width * np.array([-40, -10, -5, -2, 0, 2, 5, 10, 40])
    return sum(quad(integrand, low, high, epsabs=1e-13, epsrel=1e-10)[0] for low, high in pairwise(cuts))


@given(st.lists(st.tuples(st.floats(-0.3, 3.0), st.floats(-0.3, 3.0)), min_size=1, max_size=6))
@settings(max_examples=10)
def test_beta_draws_agree_with_scipy(logs):
    a, b = 10.0 ** np.array(logs).T
    found = of_betas(a, b)
    for k in range(len(a)):
        assert found[k] == pytest.approx(by_scipy(a, b, k), rel=1e-7, abs=1e-11)


def test_probabilities_of_34_beta_draws_sum_to_1_whatever_the_posteriors():
    rng = np.random.default_rng(3)
    for most in (0.0, 1.0, 2.0, 4.0, 6.0, 8.0):
        for _ in range(20):
            scale = 10.0 ** rng.uniform(0.0, most)
            mean = rng.uniform(0.0, 1.0) + rng.uniform(0, 10.0**-most, 34)
            mean = np.clip(mean, 0.0, 1.0)
            found = of_betas(1.0 + scale * mean, 1.0 + scale * (1.0 - mean))  # asserts the sum
            assert found.min() >= 0.0
    np.testing.assert_allclose(of_betas(np.ones(34), np.ones(34)), 1 / 34, rtol=1e-12)
    np.testing.assert_allclose(of_betas([7.0], [3.0]), 1.0)


@pytest.mark.parametrize("n_arms", [100, 5_000])
def test_many_alike_arms_share_and_one_better_stands_out(n_arms):
    a, b = np.full(n_arms, 3.0), np.full(n_arms, 5.0)
    np.testing.assert_allclose(of_betas(a, b), 1 / n_arms, rtol=1e-9)
    a[7] = 4.0
    found = of_betas(a, b)
    assert found.argmax() == 7
    np.testing.assert_allclose(np.delete(found, 7), found[0], rtol=1e-9)


def test_priors_far_below_1_tie_at_both_ends_as_rounding_makes_them():
    rng, n = np.random.default_rng(1), 400_000
    for a, b in (([0.01, 0.03, 0.02], [0.02, 0.02, 0.05]), ([1e-12, 1e-12], [1e-12, 2e-12])):
        draws = rng.beta(np.array(a), np.array(b), (n, len(a)))
        top = draws == draws.max(axis=1, keepdims=True)
        share = (top / top.sum(axis=1, keepdims=True)).mean(axis=0)
        np.testing.assert_allclose(of_betas(a, b), share, atol=4.5 * math.sqrt(0.25 / n))


def test_a_draw_or_a_point_is_a_mixture_of_all_who_draw():
    """Two arms: both draw, one does, none does; ties of points are shared."""
    a, b, weight = np.array([3.0, 6.0]), np.array([4.0, 5.0]), 0.3
    for points in (np.array([0.4, 0.5]), np.array([0.5, 0.5]), np.array([0.0, 1.0])):
        out = np.zeros(2)
        total = compile_alone(largest_beta_or_point)(a, b, weight, points, out)
        above = 1.0 - betainc(a, b, points[::-1])  # an arm's draw is above the other's point
        first = 0.5 if points[0] == points[1] else float(points[0] > points[1])
        wanted = weight**2 * of_betas(a, b)[0] + (1 - weight) ** 2 * first
        wanted += weight * (1 - weight) * (above[0] + 1.0 - above[1])
        assert total == pytest.approx(1.0, abs=1e-12)
        assert out[0] == pytest.approx(wanted, abs=1e-12)


# -- Gumbel noise ----------------------------------------------------------------------------------------------


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=40), st.floats(0.0, 300.0))
@settings(max_examples=60)
def test_gumbel_noise_of_one_width_is_the_softmax(means, steep):
    means, steep = np.array(means), steep + 0.01
    weights = np.exp(steep * (means - means.max()))
    np.testing.assert_allclose(
        of_gumbels(means, np.full(means.size, steep)), weights / weights.sum(), atol=1e-12, rtol=1e-9
    )


def test_gumbel_noise_of_different_widths_agrees_with_scipy():
    rng = np.random.default_rng(5)
    for n_arms in (2, 3, 7):
        for _ in range(6):
            means, steep = rng.random(n_arms), 2.0 * np.sqrt(10 ** rng.uniform(0, 3, n_arms))
            found = of_gumbels(means, steep)
            for k in range(n_arms):

                def integrand(z, k=k, means=means, steep=steep):
                    x = means[k] + z / steep[k]
                    return math.exp(-z - np.exp(np.minimum(-steep * (x - means), 700)).sum())

                wanted = sum(quad(integrand, low, low + 1, epsabs=1e-13)[0] for low in range(-5, 45))
                assert found[k] == pytest.approx(wanted, abs=1e-10)
    tiny = of_gumbels([0.5, 0.5, 0.4], [1e290, 1e290, 1e200])  # a scale that no number resolves
    np.testing.assert_allclose(tiny, [0.5, 0.5, 0.0], atol=1e-12)


def test_one_noise_for_all_arms_takes_the_upper_envelope():
    rng = np.random.default_rng(7)
    draws = -np.log(-np.log(rng.random(200_000)))
    for fresh in (0, 2):
        means, observations = rng.random(6).round(1), rng.integers(1, 5, 6).astype(float)
        means[3], observations[3] = means[2], observations[2]
        observations[:fresh] = 0.0
        scores = means + 0.5 / np.sqrt(np.maximum(observations, 1.0)) * draws[:, None]
        scores[:, observations == 0.0] = np.copysign(np.inf, draws[:, None])
        top = scores == scores.max(axis=1, keepdims=True)
        out = np.zeros(6)
        compile_alone(largest_line)(means, observations, 0.5, out)
        assert out.sum() == pytest.approx(1.0, abs=1e-12)
        np.testing.assert_allclose(
            out, (top / top.sum(axis=1, keepdims=True)).mean(axis=0), atol=4.5 * math.sqrt(0.25 / 200_000)
        )


# -- a million draws -------------------------------------------------------------------------------------------


@cache
def counting(select):
    @compiled(select)
    def count(state, t, rng, draws, counts):
        for _ in range(draws):
            counts[select(state, t, rng)] += 1

    return count


MILLION = 1_000_000


@pytest.mark.parametrize(
    ("policy", "n_arms"),
    [
        (Thompson(), 34),
        (Thompson(successes=0.5, failures=0.5), 5),
        (BoltzmannGumbel(), 34),
        (EpsilonThompson(epsilon=0.3), 8),
        (TSMaxN(), 8),
        (abex.UCB1(), 70),
    ],
    ids=str,
)
def test_a_million_draws_have_the_stated_distribution(policy, n_arms):
    """By Pearson's chi-square test; benchmarks/probabilities.py does so for every policy."""
    ring = Graph.from_edges([(k, (k + 1) % n_arms) for k in range(n_arms)]) if policy.needs_graph else None
    setting = Setting(n_arms, 1_000, ring)
    select, update = policy.kernels()
    state, rng = policy.start(setting), stream(8, "play")
    for t in range(1, 3 * n_arms):
        arm = select(state, t, rng)
        update(state, t, arm, arm, float(rng.random() < 0.3 + 0.4 * arm / n_arms), rng)
    out, counts = np.zeros(n_arms), np.zeros(n_arms, np.int64)
    compile_alone(policy.probabilities)(state, 3 * n_arms, out)
    counting(select)(state, 3 * n_arms, rng, MILLION, counts)
    assert out.sum() == pytest.approx(1.0, abs=1e-12)
    assert not counts[out == 0.0].any()
    likely = out * MILLION > 5
    if likely.sum() > 1:
        found, wanted = counts[likely], out[likely] * counts[likely].sum() / out[likely].sum()
        assert chisquare(found, wanted).pvalue > 1e-6
    assert counts[~likely].sum() <= 5 * (~likely).sum() + 30


def test_a_tournament_shares_among_its_ties():
    policy, setting = abex.UCB1(), Setting(200)
    state, rng = policy.start(setting), stream(2, "ties")
    out = np.zeros(200)
    for arm in range(150):
        policy.update(state, arm + 1, arm, arm, 0.5, rng)
    policy.probabilities(state, 151, out)
    assert out[:150].max() == 0.0
    np.testing.assert_allclose(out[150:], 0.02)
    for arm in range(150, 200):
        policy.update(state, arm + 1, arm, arm, 0.5 if arm % 2 else 0.25, rng)
    policy.probabilities(state, 201, out)
    best = np.append(np.arange(150), np.arange(151, 200, 2))
    np.testing.assert_allclose(out[best], 1 / best.size)
    assert out.sum() == pytest.approx(1.0)
    assert set(np.unique([policy.select(state, 201, rng) for _ in range(2_000)])) <= set(best)
