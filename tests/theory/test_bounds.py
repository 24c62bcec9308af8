"""Lemma 4, the corollary and the theorems: against their own sums, against simulation, against the specification."""

from __future__ import annotations

import math
from itertools import pairwise, takewhile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abex import ABE, Bernoulli, UserError, simulate
from abex.theory import (
    Bound,
    Schedule,
    bernoulli_kl,
    corollary_1,
    corollary_1_as_printed,
    finite_time_bound,
    gamma_exponent,
    garivier_kaufmann,
    lemma_4,
    lemma_4_as_printed,
    lemma_4_sharp,
    log2_burn_in,
    log10_first_informative_step,
    theorem_1,
    theorem_1_as_printed,
    theorem_2,
)
from abex.theory.explanation import explain
from abex.theory.lemmas import leak_integral
from tests.each import each
from tests.naive import finite_time as naive

CERTAIN = 4.0  # standard errors: a false alarm in 1 of 30,000


# -- the numbers of the specification --------------------------------------------------------------------


@each(
    ("c", "alpha", "gap", "gamma", "log10"),
    [
        (0.1, 0.7, 1.0, 4.8e3, 1.4e3),
        (0.1, 0.7, 0.25, 2.5e5, 7.6e4),
        (0.2, 0.5, 0.1, 2.8e8, 8.3e7),
        (1.0, 1.0, 0.5, 177, 57),
        (10.0, 1.0, 0.25, 71, 26),
        (100.0, 1.0, 1.0, 0.44, 5.3),
    ],
)
def test_the_burn_in_is_as_long_as_the_specification_says(
    c: float, alpha: float, gap: float, gamma: float, log10: float
) -> None:
    assert gamma_exponent(gap, c, alpha) == pytest.approx(gamma, rel=0.03)
    assert log2_burn_in(gap, 333, c, alpha) * math.log10(2.0) == pytest.approx(log10, rel=0.05)


def test_bounds_far_beyond_floating_point_stay_exact_in_logarithms() -> None:
    bound = theorem_1([0.25] * 332, 10**6, c=0.1, alpha=0.7, eta=0.4)
    assert bound.value == math.inf
    burn_in = math.log10(2.0 * 1.2 * 333) + gamma_exponent(0.25, 0.1, 0.7) * math.log10(2.0)
    assert bound.log10 == pytest.approx(burn_in + math.log10(332 * 0.25), abs=1e-6)
    assert theorem_1([0.25] * 332, 10**6, c=1e-30, alpha=0.1, eta=0.4).log10 == math.inf
    assert Bound(90.0, 1.0, 900.0).log10 == pytest.approx(3.0)
    assert Bound(0.0, -math.inf, 1.0).log10 == pytest.approx(0.0)


# -- the corollary against the sum that it bounds --------------------------------------------------------


@settings(max_examples=60)
@given(
    gap=st.floats(0.2, 1.0), c=st.floats(30.0, 500.0), alpha=st.floats(0.1, 1.0),
    eta=st.floats(0.05, 5.0), n_arms=st.integers(2, 6),
)  # fmt: skip
def test_corollary_1_is_at_least_the_sum_of_lemma_4(
    gap: float, c: float, alpha: float, eta: float, n_arms: int
) -> None:
    bound = corollary_1(gap, n_arms, c, alpha, eta)
    last = 40_000
    steps = np.arange(1, last + 1)
    start = 2.0 ** min(log2_burn_in(gap, n_arms, c, alpha), 60.0)
    leak = np.exp(-eta * gap / 2.0 * np.sqrt(steps - 1.0))
    each = np.minimum(1.0, leak + 128.0 * ((1.0 + 2.0 * c) * n_arms / (gap * steps)) ** 2)
    assert bound.value >= np.where(steps < start, 1.0, each).sum()
    sampled = [t for t in (1, 77, 40_000) if t >= start]
    assert all(
        min(1.0, lemma_4(t, gap, n_arms, c, alpha, eta) or 0.0) == pytest.approx(each[t - 1]) for t in sampled
    )


@each(("a", "start"), [(0.3, 0.0), (0.3, 50.0), (2.0, 4.0)])
def test_the_leak_integral_is_the_integral(a: float, start: float) -> None:
    from scipy.integrate import quad

    value, _ = quad(lambda x: math.exp(-a * math.sqrt(x)), start, math.inf)
    assert leak_integral(a, start) == pytest.approx(value, rel=1e-6)


@each("share", [0.2, 0.5, 0.9])
def test_the_sharp_lemma_4_is_its_formula(share: float) -> None:
    t, gap, n, eta = 5_000, 0.4, 150, 0.7
    leak = math.exp(-eta * (1 - share) * gap * math.sqrt(t - 1))
    wrong = 2 * math.exp(-n * share**2 * gap**2 / 2)
    assert lemma_4_sharp(t, gap, n, eta, share) == pytest.approx(min(1.0, leak + wrong))


def test_the_printed_corollary_forgets_eta_and_vanishes_with_c() -> None:
    assert corollary_1_as_printed(0.5, 4, 1e-3, 1.0).tail < 1e-3
    flat, steep = (corollary_1(1.0, 2, 400.0, 1.0, eta).tail for eta in (1e-3, 1.0))
    assert flat > 1e6 > steep  # 8 / (eta gap)^2, hidden in the paper's O()
    low = lemma_4_as_printed(10**5, 0.5, 4, 100.0, 0.1, 0.01)
    proved = lemma_4(10**5, 0.5, 4, 100.0, 0.1, 0.01)
    assert low is not None
    assert proved is not None
    assert low < proved  # slightly stronger than what the proof gives


def test_theorem_2_charges_exploration_for_the_swept_arms_only() -> None:
    everything = theorem_2([0.5] * 9, [0.5] * 9, 10**5, 100.0, 0.1, 0.4)
    assert everything == theorem_1([0.5] * 9, 10**5, 100.0, 0.1, 0.4)
    star = theorem_2([0.5] * 9, [0.5], 10**5, 100.0, 0.1, 0.4)
    assert star.exploration == pytest.approx(everything.exploration / 9.0)
    assert star.log10_burn_in == everything.log10_burn_in


def test_the_theorem_begins_to_inform_where_it_says() -> None:
    gaps = [0.5, 0.4, 0.4]
    where = 10.0 ** log10_first_informative_step(gaps, 100.0, 0.1, 0.4)
    for factor, informs in ((0.9, False), (1.1, True)):
        horizon = int(where * factor)
        assert (theorem_1(gaps, horizon, 100.0, 0.1, 0.4).value < 0.5 * horizon) == informs


def test_wrong_gaps_are_named() -> None:
    for gaps in ([], [0.0], [1.5]):
        with pytest.raises(UserError, match="gaps"):
            theorem_1(gaps, 100, 1.0, 1.0, 1.0)
    for wrong in ({"c": 0.0}, {"alpha": 0.0}, {"eta": 0.0}):
        with pytest.raises(UserError, match=next(iter(wrong))):
            theorem_1([0.5], 100, **({"c": 1.0, "alpha": 1.0, "eta": 1.0} | wrong))
    with pytest.raises(UserError, match=r"horizon must be at most 1e\+308"):
        finite_time_bound([0.5], 10**400, Schedule(2, 1.0, 1.0), 1.0)
    with pytest.raises(UserError, match="gaps must be those of 2"):
        finite_time_bound([0.5], 100, Schedule(3, 1.0, 1.0), 1.0)


# -- against simulation ----------------------------------------------------------------------------------


def boltzmann_windows(schedule: Schedule, horizon: int) -> list[tuple[int, int]]:
    """(a, b] for each quarter of each Boltzmann phase."""
    windows = []
    for epoch in takewhile(lambda epoch: epoch.last <= horizon, schedule.epochs()):
        cuts = np.linspace(epoch.last_exploration, epoch.last, 5).astype(int)
        windows += [(int(a), int(b)) for a, b in pairwise(cuts)]
    return windows


def wrong_pulls(policy: ABE, means: list[float], windows: list[tuple[int, int]], runs: int):
    """Mean and standard error of the pulls of sub-optimal arms in each window."""
    steps = sorted({t for window in windows for t in window} - {0})
    curves = simulate(
        policy,
        Bernoulli(means),
        horizon=steps[-1],
        replications=runs,
        seed=11,
        checkpoints=steps,
        progress=False,
    )
    optimal = {
        0: np.zeros(runs),
        **{int(t): curves.optimal_pulls[0, :, i] for i, t in enumerate(curves.checkpoints)},
    }
    pulls = np.array([(b - a) - (optimal[b] - optimal[a]) for a, b in windows])
    return pulls.mean(axis=1), pulls.std(axis=1, ddof=1) / math.sqrt(runs)


def test_lemma_4_bounds_the_chance_of_a_wrong_arm_in_simulation() -> None:
    n_arms, gap, c, alpha, eta = 3, 0.5, 100.0, 0.1, 0.2
    schedule = Schedule(n_arms, c, alpha)
    windows = [
        w
        for w in boltzmann_windows(schedule, 120_000)
        if lemma_4(w[0] + 1, gap, n_arms, c, alpha, eta) is not None
    ]
    mean, error = wrong_pulls(ABE(eta=eta, c=c, alpha=alpha), [0.75, 0.25, 0.25], windows, 40)
    informative = 0
    for (a, b), pulls, se in zip(windows, mean, error, strict=True):
        bound = sum(
            (n_arms - 1) * (lemma_4(t, gap, n_arms, c, alpha, eta) or 1.0) for t in range(a + 1, b + 1)
        )
        assert pulls + CERTAIN * se <= bound
        informative += bound < 0.5 * (b - a)
    assert informative >= 3


@each(("c", "eta"), [(2.0, 0.3), (6.0, 1.0), (1.0, 3.0)])
def test_our_lemma_4_bounds_it_too_and_is_not_far_off(c: float, eta: float) -> None:
    gap, alpha = 0.5, 0.5
    schedule = Schedule(2, c, alpha, "carry")
    windows = boltzmann_windows(schedule, 6_000)
    mean, error = wrong_pulls(ABE(eta=eta, c=c, alpha=alpha, rounding="carry"), [0.75, 0.25], windows, 400)
    ratios = []
    for (a, b), pulls, se in zip(windows, mean, error, strict=True):
        seen = schedule.sweeps(a + 1)
        bound = sum(
            min(lemma_4_sharp(t, gap, seen, eta, share) for share in (0.3, 0.5, 0.7))
            for t in range(a + 1, b + 1)
        )
        assert pulls + CERTAIN * se <= bound + 1e-9
        ratios.append(bound / max(pulls, 1e-9))
    assert min(ratios) < 20.0  # somewhere the bound is within a factor of what happens


def test_theorem_1_bounds_the_regret_where_it_is_not_empty() -> None:
    gaps, c, alpha, eta, horizon = [0.5] * 3, 100.0, 0.1, 0.4, 300_000
    bound = theorem_1(gaps, horizon, c, alpha, eta).value
    assert bound < 0.45 * horizon * 0.5
    curves = simulate(
        ABE(eta=eta, c=c, alpha=alpha),
        Bernoulli([0.75] + [0.25] * 3),
        horizon=horizon,
        replications=12,
        seed=2,
        progress=False,
    )
    regret, error = curves.mean("ABE")[-1], curves.standard_error("ABE")[-1]
    assert regret + CERTAIN * error <= bound
    printed = theorem_1_as_printed(gaps, horizon, c, alpha, hidden=0.0).value
    assert printed < bound  # without its O-term


@each(
    ("n_arms", "gap", "c", "alpha", "rounding", "eta"),
    [(2, 0.5, 5.0, 0.5, "floor", 1.0), (4, 0.5, 8.0, 0.5, "carry", 1.0), (4, 0.8, 1.5, 1.0, "ceil", 0.5),
     (10, 0.4, 20.0, 0.3, "carry", 2.0), (3, 0.3, 40.0, 0.2, "floor", 0.6)],
)  # fmt: skip
def test_our_finite_time_bound_holds_and_says_something(
    n_arms: int, gap: float, c: float, alpha: float, rounding: str, eta: float
) -> None:
    schedule = Schedule(n_arms, c, alpha, rounding)
    policy = ABE(eta=eta, c=c, alpha=alpha, rounding=rounding)
    means = [0.5 + gap / 2.0] + [0.5 - gap / 2.0] * (n_arms - 1)
    curves = simulate(
        policy, Bernoulli(means), horizon=50_000, replications=30, seed=5, checkpoints=20, progress=False
    )
    bounds = np.array(
        [finite_time_bound([gap] * (n_arms - 1), int(t), schedule, eta) for t in curves.checkpoints]
    )
    assert np.all(curves.mean(policy) <= bounds + CERTAIN * curves.standard_error(policy) + 1e-9)
    assert bounds[-1] < 0.5 * 50_000 * gap
    assert bounds[-1] < 5.0 * curves.mean(policy)[-1]


def test_without_exploration_our_bound_is_that_every_step_is_lost() -> None:
    assert finite_time_bound([0.5] * 3, 1000, Schedule(4, 0.01, 0.5), 1.0) == 500.0
    mixed = finite_time_bound([0.5, 0.6, 0.7], 10**5, Schedule(4, 20.0, 0.5), 1.0)
    assert mixed < finite_time_bound([0.7] * 3, 10**5, Schedule(4, 20.0, 0.5), 1.0)


# -- small gaps and small rates --------------------------------------------------------------------------

decades = st.floats(-12.0, 0.0).map(lambda log10: 10.0**log10)
schedules = st.builds(
    Schedule, st.integers(2, 6), st.floats(0.0, 20.0), st.floats(0.0, 1.5), st.sampled_from(["floor", "carry", "ceil"])
)  # fmt: skip


@settings(max_examples=100)
@given(schedule=schedules, gaps=st.lists(decades, min_size=5, max_size=5), eta=decades, factor=st.floats(1.0, 100.0),
       log10_horizon=st.floats(0.0, 9.0))  # fmt: skip
def test_our_bound_keeps_its_digits_over_twelve_decades(
    schedule: Schedule, gaps: list[float], eta: float, factor: float, log10_horizon: float
) -> None:
    gaps, horizon, eta = gaps[: schedule.n_arms - 1], int(10.0**log10_horizon), eta * factor
    bound = finite_time_bound(gaps, horizon, schedule, eta)
    assert bound == pytest.approx(float(naive.finite_time_bound(gaps, horizon, schedule, eta)), rel=1e-9)
    assert bound >= 0.0
    assert bound >= naive.certain_regret(gaps, horizon, schedule, eta) * (1.0 - 1e-12)


@settings(max_examples=60)
@given(c=st.floats(0.0, 20.0), gap=decades, eta=decades, horizon=st.integers(1, 10**7))
def test_our_bound_is_never_below_what_any_policy_loses(
    c: float, gap: float, eta: float, horizon: int
) -> None:
    gap *= 0.49
    bound = finite_time_bound([gap], horizon, Schedule(2, c, 0.5, "carry"), eta)
    assert bound >= naive.two_point_bound(gap, horizon) * (1.0 - 1e-12)


@settings(max_examples=200)
@given(a=st.floats(-15.0, 2.0), start=st.integers(0, 10**12), length=st.integers(0, 10**12))
def test_the_integral_of_the_leak_keeps_its_digits(a: float, start: int, length: int) -> None:
    import mpmath

    with mpmath.workdps(60):
        exact = float(naive.leak_integral(mpmath.mpf(10.0**a), start, start + length))
    found = float(leak_integral(10.0**a, float(start), float(start + length)))
    assert found == pytest.approx(exact, rel=1e-8 if exact > 1e-250 else 1.0, abs=1e-280)


@pytest.mark.parametrize(
    ("gap", "schedule"), [(1e-4, Schedule(3, 8.0, 0.5)), (1e-3, Schedule(3, 0.5, 0.5, "carry"))]
)
def test_where_softmax_is_nearly_uniform_the_bound_lies_between_two_thirds_and_every_step(
    gap: float, schedule: Schedule
) -> None:
    assert 2.0 / 3.0 * 10**4 * gap < finite_time_bound([gap] * 2, 10**4, schedule, 1e-5) <= 10**4 * gap


@each("gap", [1e-12, 1e-4, 0.01, 0.5, 1.0])
@each("horizon", [1, 10**4, 10**9])
def test_no_sentence_promises_more_regret_than_losing_every_step(gap: float, horizon: int) -> None:
    words = explain(3, horizon, gap, 8.0, 0.5, eta=1e-5)
    paragraph = words.split("\n\n")[-1]
    floor = paragraph.split("ln T (")[1]
    if "here" in floor:
        assert float(floor.split("), ")[1].split(" here")[0].replace(",", "")) < horizon * gap
    else:
        assert "says nothing yet" in floor
    assert "-" not in paragraph.replace("e-", "").replace("finite-time", "").replace("Boltzmann-Gumbel", "")


def test_the_floor_is_told_where_it_says_something() -> None:
    assert "ln T (Bernoulli 0.75 against 0.5), 7,972 here" in explain(333, 10**6, 0.25, 0.1, 0.7)
    small = explain(3, 10**4, 1e-4, 8.0, 0.5, eta=1e-5)
    assert "92,103" not in small
    assert "UCB1 no better than losing every step" in small


@each("gap", [1e-300, 1e-160, 1e-80])
@each("eta", [1e-300, 1e-80, 1e300])
def test_the_smallest_and_largest_numbers_are_no_accident(gap: float, eta: float) -> None:
    assert (
        theorem_1([gap] * 2, 10**6, 8.0, 0.5, eta).log10 >= theorem_1([1e-3] * 2, 10**6, 8.0, 0.5, 1.0).log10
    )
    assert 0.0 <= finite_time_bound([gap] * 2, 10**6, Schedule(3, 8.0, 0.5), eta) <= 10**6 * gap
    assert "Theorem 1" in explain(3, 10**6, 0.1, 8.0, 0.5, eta)
    with pytest.raises(UserError, match="gap must be >= 1e-12"):
        explain(3, 10**6, gap, 8.0, 0.5, eta)


def test_the_divergence_of_the_smallest_probabilities() -> None:
    assert bernoulli_kl(5e-324, 1.0) == math.inf
    assert bernoulli_kl(5e-324, 0.5) == pytest.approx(math.log(2.0))
    assert bernoulli_kl(0.9, 1e-300) == pytest.approx(0.9 * math.log(0.9e300) + 0.1 * math.log(0.1))


@settings(max_examples=200)
@given(p=st.floats(0.0, 1.0), shift=st.floats(-12.0, 0.0), up=st.booleans())
def test_the_divergence_keeps_its_digits(p: float, shift: float, up: bool) -> None:
    import mpmath

    q = min(1.0, p + 10.0**shift) if up else max(0.0, p - 10.0**shift)
    with mpmath.workdps(80):
        terms = [
            mpmath.mpf(x) * mpmath.log(mpmath.mpf(x) / y) if y else mpmath.inf
            for x, y in ((mpmath.mpf(p), mpmath.mpf(q)), (1 - mpmath.mpf(p), 1 - mpmath.mpf(q))) if x
        ]  # fmt: skip
        exact = float(sum(terms))
    # 1 - p is rounded: where q is nearly 1 that is what is left of the digits
    assert bernoulli_kl(p, q) == pytest.approx(exact, rel=1e-9, abs=1e-40)
    assert bernoulli_kl(p, q) >= 0.0


@pytest.mark.parametrize("means", [[0.6, 0.5], [0.02, 0.1], [0.3, 0.7, 0.5], [0.2, 0.25, 0.1]])
def test_the_least_time_to_a_winner_is_that_of_the_best_shares(means):
    """The best of all shares on a grid, refined: nobody's proof is faster, and none of the grid's is."""
    risk, lead = 0.05, int(np.argmax(means))
    n, steps = len(means), 400

    def rate(w):
        found = []
        for k in range(n):
            if k != lead:
                m = (w[lead] * means[lead] + w[k] * means[k]) / (w[lead] + w[k])
                found.append(w[lead] * bernoulli_kl(means[lead], m) + w[k] * bernoulli_kl(means[k], m))
        return min(found)

    shares = (
        [(x / steps, 1 - x / steps) for x in range(1, steps)]
        if n == 2
        else [(x / 100, y / 100, 1 - (x + y) / 100) for x in range(1, 99) for y in range(1, 99 - x)]
    )
    found = garivier_kaufmann(means, risk)
    fastest = bernoulli_kl(risk, 1 - risk) / max(rate(w) for w in shares)
    assert fastest == pytest.approx(found, rel=6e-3)
    assert fastest >= found * (1 - 1e-9)


@pytest.mark.parametrize("means", [[0.5], [0.5, 0.5], [0.5, 1.5], []])
def test_means_without_a_best_arm_have_no_least_time(means):
    with pytest.raises(UserError, match="one is the largest"):
        garivier_kaufmann(means, 0.05)
