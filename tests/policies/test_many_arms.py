"""Policies for many arms have the law of the plain loop."""

import math

import numpy as np
import pytest
from scipy.stats import chi2_contingency, chisquare, ks_2samp

from abex import (
    ABE,
    KLUCB,
    MOSS,
    TSU,
    UCB1,
    UCBV,
    Bernoulli,
    Boltzmann,
    BoltzmannGumbel,
    Exp3,
    Exp3IX,
    KLUCBPlusPlus,
    Player,
    Thompson,
    simulate,
)
from abex.kernels import compile_alone, compiled
from abex.kinds import saved
from abex.policies.policy import Kernels, Setting
from abex.samplers import FEW, changed, draw, scan_for
from abex.samplers.bounded_softmax import mass_of, new_bounded_softmax
from abex.samplers.buckets import FRESH, PATIENT, TAIL, new_buckets
from abex.samplers.scan import IndexScan
from abex.samplers.sum_tree import find_leaf, new_sum_tree, set_leaf, sums_of, weight_share
from abex.samplers.tournament import Tournament
from abex.simulation import as_checkpoints, play_replication
from abex.support.randomness import stream
from abex.testing import policy_checks
from tests.each import each
from tests.naive.many_arms import boltzmann_law, index_from_history

INDEXED = [
    UCB1(),
    UCB1(scale=0.5),
    UCBV(),
    KLUCB(),
    KLUCB(c=3.0),
    KLUCBPlusPlus(),
    MOSS(),
    MOSS(anytime=1.35),
]
NOISY = [
    BoltzmannGumbel(),
    Thompson(),
    Thompson(resample=False),
    Thompson(successes=2.5, failures=1.0),
    TSU(epsilon=0.3),
]
MANY = [
    ABE(eta=1.0, c=0.3, alpha=0.5, rounding="carry", initial=1.0),
    ABE(eta=2.0, rounding="ceil", initial=None),
    Boltzmann(eta=2.0, schedule="log"),
    UCB1(),
    UCBV(),
    KLUCB(),
    MOSS(),
    BoltzmannGumbel(),
    Thompson(),
    TSU(epsilon=0.1),
    Exp3(),
    Exp3(gamma=0.2),
    Exp3IX(eta=0.05),
]
#: what depends on the structure that finds an arm
PROMISES = {"is_one_implementation", "select_has_the_stated_law", "resumes_exactly", "takes_and_loses_arms"}
CHECKS = [check for check in policy_checks() if check.__name__ in PROMISES]


def set_crossover(monkeypatch, n_arms):
    for law in FEW:
        monkeypatch.setitem(FEW, law, n_arms)


@pytest.fixture
def always_many(monkeypatch):
    set_crossover(monkeypatch, 0)


@pytest.mark.parametrize("policy", MANY, ids=str)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_policy_for_many_arms_keeps_every_promise(check, policy, always_many):
    check(policy)


# -- buckets: exact draws -------------------------------------------------------------------------------


@compiled(draw)
def counts_of_draws(buckets, values, rate, n, out, rng):
    for _ in range(n):
        out[draw(buckets, values, rate, rng)] += 1


@compiled(changed)
def learn(buckets, values, arm, value):
    values[arm] = value
    changed(buckets, values, arm)


def bounded(observations, scores):
    """Bounds for few arms, made as those for many are."""
    return new_bounded_softmax(observations.size)


def filed(values, observed, initial=0.0, new=new_buckets):
    """Levels of arms with these values, observed one after the other."""
    current = np.full(len(values), initial)
    buckets = new(np.zeros(len(values)), current)
    for arm in np.flatnonzero(observed):
        learn(buckets, current, arm, values[arm])
    return buckets, current


def assert_law(buckets, values, rate, rng, draws=200_000):
    out = np.zeros(values.size, np.int64)
    counts_of_draws(buckets, values, rate, draws, out, rng)
    law = boltzmann_law(values, rate)
    assert not out[law < 1e-12].any()
    likely = law * draws > 10
    expected = np.append(law[likely], law[~likely].sum()) * draws
    found = np.append(out[likely], out[~likely].sum())
    keep = expected > 1e-3 * draws / 200_000
    if keep.sum() > 1:
        assert chisquare(found[keep], expected[keep] * found[keep].sum() / expected[keep].sum()).pvalue > 1e-5


STATES = {
    "warm": lambda rng: rng.random(300),
    "all equal": lambda rng: np.full(300, 0.5),
    "all zero": lambda rng: np.zeros(300),
    "ties": lambda rng: rng.integers(0, 4, 300) / 3,
    "one far ahead": lambda rng: np.append(rng.random(299) * 0.1, 1.0),
    "two ahead": lambda rng: np.append(rng.random(298) * 0.1, [0.99999, 1.0]),
    "close": lambda rng: 0.5 + 1e-6 * rng.random(300),
    "wide": lambda rng: rng.random(300) ** 8,
    "one arm": lambda rng: np.ones(1),
}


@pytest.mark.parametrize("state", STATES)
@each("rate", [0.0, 1e-7, 0.7, 30.0, 3e3, 1e6, 1e8])
def test_draws_from_levels_have_the_boltzmann_law(state, rate):
    rng = stream(1, state, str(rate))
    values = STATES[state](rng)
    buckets, current = filed(values, np.ones(values.size, bool))
    assert_law(buckets, current, rate, rng)


@each("initial", [0.0, 0.6, 1.0, -3.0, 2.0])
@each("rate", [0.0, 2.0, 40.0])
def test_arms_never_observed_have_their_share(initial, rate):
    rng = stream(2, str(initial), str(rate))
    values = rng.random(300)
    buckets, current = filed(values, rng.random(300) < 0.5, initial)
    assert_law(buckets, current, rate, rng)


def test_arms_never_observed_come_first_where_they_stand_at_infinity():
    rng = stream(3, "first")
    buckets, values = filed(rng.random(50), np.arange(50) < 40, math.inf)
    drawn = {draw(buckets, values, 3.0, rng) for _ in range(400)}
    assert drawn == set(range(40, 50))


@pytest.mark.parametrize("seed", range(4))
def test_levels_stay_exact_while_values_and_rates_move(seed):
    """Rates that grow, jump and fall, leaders that rise and sink: the law is right in between, the lists are sound."""
    rng = stream(4, seed)
    n = 120
    buckets, values = filed(rng.random(n), rng.random(n) < 0.7, 0.3)
    rate = 1.0
    for step in range(60):
        for _ in range(int(rng.integers(1, 400))):
            arm = int(rng.integers(n))
            value = rng.random() if rng.random() < 0.3 else values[arm] + 0.02 * rng.standard_normal()
            learn(buckets, values, arm, float(np.clip(value, 0.0, 1.0)))
        rate *= float(rng.choice([1.0, 1.01, 1.1, 3.0, 100.0, 0.02, 1.0 / 3.0]))
        rate = min(max(rate, 1e-3), 1e7)
        if step % 6 == 0:
            assert_law(buckets, values, rate, rng, draws=40_000)
        else:
            draw(buckets, values, rate, rng)
        assert_sound(buckets, values)


# -- bounded scan: the same draws of few arms ----------------------------------------------------------------


@each("state", STATES)
@each("rate", [0.0, 0.7, 30.0, 3e3, 1e8])
def test_draws_from_bounds_have_the_boltzmann_law(state, rate):
    rng = stream(31, state, str(rate))
    values = STATES[state](rng)[-12:]
    scan, current = filed(values, np.ones(values.size, bool), new=bounded)
    assert_law(scan, current, rate, rng)


def test_bounds_let_arms_at_infinity_come_first():
    rng = stream(32, "first")
    scan, values = filed(rng.random(12), np.arange(12) < 8, math.inf, new=bounded)
    assert {draw(scan, values, 3.0, rng) for _ in range(200)} == set(range(8, 12))
    for arm in range(8, 12):
        learn(scan, values, arm, 0.5)
    assert_law(scan, values, 3.0, rng)
    learn(scan, values, 2, math.inf)  # all that was known of it is forgotten
    assert {draw(scan, values, 3.0, rng) for _ in range(20)} == {2}
    assert {draw(scan, values, 0.0, rng) for _ in range(20)} == {2}


@pytest.mark.parametrize("seed", range(4))
def test_bounds_stay_exact_while_values_and_rates_move(seed):
    """As for buckets; and no weight exceeds its mass, whose sum is the total, bit for bit."""
    rng = stream(33, seed)
    n = 12
    scan, values = filed(rng.random(n), rng.random(n) < 0.7, 0.3, new=bounded)
    rate = 1.0
    for step in range(120):
        for _ in range(int(rng.integers(1, 40))):
            arm = int(rng.integers(n))
            value = rng.random() if rng.random() < 0.3 else values[arm] + 0.02 * rng.standard_normal()
            learn(scan, values, arm, float(np.clip(value, 0.0, 1.0)))
        rate *= float(rng.choice([1.0, 1.0, 1.01, 1.1, 3.0, 100.0, 0.02, 1.0 / 3.0]))
        rate = min(max(rate, 1e-3), 1e7)
        if step % 10 == 0:
            assert_law(scan, values, rate, rng, draws=40_000)
        else:
            draw(scan, values, rate, rng)
        assert scan.low <= rate <= scan.high
        assert (values <= scan.reach).all()
        assert (scan.mass > scan.one * np.exp(rate * (values - scan.zero))).all()
        assert scan.mass.tolist() == [mass_of(scan, reach) for reach in scan.reach]
        assert scan.total == scan.mass.sum() < 2**53


def test_bounds_that_are_loose_change_no_law():
    """Scores that have moved under their bounds, at another rate of the window: trials must be refused at times."""
    rng = stream(35, "loose")
    scan, values = filed(0.2 * rng.random(8), np.ones(8, bool), new=bounded)
    draw(scan, values, 5.0, rng)
    reach = scan.reach.copy()
    for arm in range(8):
        learn(scan, values, arm, float(values[arm] + (0.49 if arm % 2 else -0.49) * scan.width))
    assert np.array_equal(scan.reach, reach)
    assert_law(scan, values, 5.15, rng)
    assert np.array_equal(scan.reach, reach)


@pytest.mark.parametrize("rate", [40.0, 300.0, 1e5])
def test_arms_far_above_the_levels_wait_in_the_first_one(rate):
    """Among many arms they are not filed anew for an arm that rises soon after, and the law is exact all the same."""
    rng = stream(8, "above")
    n = PATIENT + 5
    buckets, values = filed(0.5 + rng.normal(size=n) / rate, np.ones(n, bool))
    draw(buckets, values, rate, rng)
    anchor = buckets.anchor
    rise = 0.5 + np.array([30.0, 31.0, 29.0, 60.0]) / rate
    for arm, value in enumerate(rise):
        learn(buckets, values, arm, value)
        assert buckets.filed
        assert buckets.bucket[arm] == 0
        assert_law(buckets, values, rate, rng, draws=20)
    assert_law(buckets, values, rate, rng, draws=40)
    learn(buckets, values, 3, 0.5)  # the best one sinks
    assert_law(buckets, values, rate, rng, draws=60)
    assert buckets.anchor == anchor
    learn(buckets, values, 1, rise[1] + 1.0 / rate)  # one in the first bucket rises further
    assert_law(buckets, values, rate, rng)  # so many draws pay for a filing, but nothing asks for one
    assert_sound(buckets, values)
    learn(buckets, values, 2, rise[3] + 10.0 / rate)
    assert not buckets.filed
    assert_law(buckets, values, rate, rng)
    assert buckets.anchor > anchor


def test_levels_of_many_arms_stay_exact_while_outliers_come_and_go():
    rng = stream(9, "outliers")
    n = PATIENT
    buckets, values = filed(rng.random(n) * 0.01, np.ones(n, bool))
    waited = 0
    for step in range(300):
        arm = int(rng.integers(n))
        learn(buckets, values, arm, float(rng.choice([0.005, 0.5, 1.0, 1.5])))
        draw(buckets, values, 200.0, rng)
        waited += int(buckets.drawn) > 1 and buckets.arms[0] > 0
        if step % 60 == 59:
            for top in np.argsort(values)[-5:]:
                learn(buckets, values, int(top), 0.004)
            assert_law(buckets, values, 200.0, rng, draws=20_000)
            assert_sound(buckets, values)
    assert waited > 50


def assert_sound(buckets, values):
    """Every arm is where its bucket says, and masses are those of the counts."""
    for arm, bucket in enumerate(buckets.bucket):
        if bucket == FRESH:
            assert buckets.order[buckets.place[arm]] == arm
        elif bucket != TAIL:
            assert buckets.pool[buckets.start[bucket] + buckets.place[arm]] == arm
    assert np.array_equal(np.bincount(buckets.bucket, minlength=FRESH + 1), buckets.arms)
    assert buckets.total == buckets.mass.sum()
    assert (buckets.mass == np.floor(buckets.mass)).all()


# -- the tournament: the largest index ------------------------------------------------------------------


@pytest.mark.parametrize("policy", INDEXED, ids=str)
@each("continuous", [False, True])
@each("n_arms", [3, 13, 37])
def test_the_tournament_plays_an_arm_of_the_largest_index(policy, n_arms, continuous, always_many):
    check_largest_index(policy, n_arms, continuous)


@pytest.mark.parametrize("policy", [KLUCB(), KLUCB(c=3.0), KLUCBPlusPlus()], ids=str)
@each("continuous", [False, True])
@each("n_arms", [3, 13])
def test_a_scan_of_divergences_plays_an_arm_of_the_largest_index(policy, n_arms, continuous):
    check_largest_index(policy, n_arms, continuous)


def check_largest_index(policy, n_arms, continuous):
    """Arms never observed first; then no index is larger than that of the arm played."""
    horizon = 700
    setting, rng = Setting(n_arms, horizon), stream(8, str(policy))
    state, (select, update) = policy.start(setting), policy.kernels()
    history = [[] for _ in range(n_arms)]
    for t in range(1, horizon + 1):
        arm = select(state, t, rng)
        if t <= n_arms:
            assert not history[arm]
        elif t < 300 or t % 7 == 0:
            indices = [index_from_history(policy, seen, t, n_arms, horizon) for seen in history]
            assert indices[arm] >= max(indices) - 1e-9
        for seen in {arm, *rng.integers(n_arms, size=int(t % 3 == 0))} - {
            arm
        }:  # now and then a side observation
            if history[seen]:
                history[seen].append(rng.random() if continuous else float(rng.random() < 0.5))
                update(state, t, arm, seen, history[seen][-1], rng)
        history[arm].append(rng.random() if continuous else float(rng.random() < 0.3 + 0.04 * arm))
        update(state, t, arm, arm, history[arm][-1], rng)


@pytest.mark.parametrize("policy", [UCB1(scale=0.5), UCBV(), KLUCB()], ids=str)
@pytest.mark.parametrize("n_arms", [6, 13])
def test_a_scan_plays_as_the_tournament_does(policy, n_arms, monkeypatch):
    """The same arms and distributions where none tie, whatever arm a scan begins with."""
    horizon, played, kinds = 600, [], []
    for few in (0, 14):
        monkeypatch.setitem(FEW, policy.law, few)
        setting, rng, world = Setting(n_arms, horizon), stream(8, str(policy)), stream(9, "world")
        state, (select, update) = policy.start(setting), policy.kernels()
        kinds.append(type(state.sampler))
        for arm in range(n_arms):
            update(state, 1, arm, arm, world.random(), rng)
        arms = []
        for t in range(n_arms + 1, horizon + 1):
            arms.append(select(state, t, rng))
            for seen in [arms[-1], *world.integers(n_arms, size=int(t % 3 == 0))]:
                update(state, t, arms[-1], seen, world.random() ** (1.0 + seen), rng)
            if t % 50 == 0:
                shares = np.zeros(n_arms)
                policy.probabilities(state, t, shares)
                arms.extend(shares)
        played.append(arms)
    assert played[0] == played[1]
    assert kinds == [Tournament, IndexScan]


@pytest.mark.parametrize("policy", [KLUCB(), KLUCBPlusPlus()], ids=str)
def test_arms_never_observed_come_first_in_a_scan_of_divergences(policy):
    state, rng, shares = policy.start(Setting(9, 100)), stream(8, "first"), np.zeros(9)
    select, update = policy.kernels()
    for t, arm in enumerate((8, 0, 3, 4), 1):
        update(state, t, arm, arm, 1.0, rng)
    policy.probabilities(state, 5, shares)
    assert shares.tolist() == [0.0, 0.2, 0.2, 0.0, 0.0, 0.2, 0.2, 0.2, 0.0]
    assert {select(state, 5, rng) for _ in range(100)} == {1, 2, 5, 6, 7}


def test_the_tournament_breaks_ties_uniformly(always_many):
    policy, setting, rng = UCB1(), Setting(11), stream(9, "ties")
    state, (select, update) = policy.start(setting), policy.kernels()
    for arm in range(11):
        update(state, arm + 1, arm, arm, float(arm % 2), rng)  # five arms that paid, six that did not
    counts = np.bincount([select(state, 12, rng) for _ in range(5000)], minlength=11)
    assert not counts[::2].any()
    assert chisquare(counts[1::2]).pvalue > 1e-5


# -- exceedances: the largest draw ----------------------------------------------------------------------


@pytest.mark.parametrize("mix", ["cold", "warm", "one far ahead", "alike", "overtaken"])
@pytest.mark.parametrize("policy", NOISY, ids=str)
def test_drawing_only_arms_that_can_win_has_the_law_of_drawing_all(policy, mix, monkeypatch):
    """Both kernels on the same frozen observations: counts of 20000 decisions, chi-square at level 1e-5."""
    rng = stream(10, str(policy), mix)
    n_arms, draws = 40, 20_000
    rounds = {"cold": 1, "warm": 12, "one far ahead": 40, "alike": 30, "overtaken": 60}[mix]
    chances = {"cold": 0.5, "warm": rng.random(n_arms), "one far ahead": 0.2, "alike": 0.5, "overtaken": 0.5}[
        mix
    ]
    rewards = (rng.random((rounds, n_arms)) < chances * np.ones(n_arms)).astype(float)
    if mix == "one far ahead":
        rewards[:, 0] = rng.random(rounds) < 0.9
    if mix == "overtaken":  # two others rise when the first has been the best for long
        rewards[:20, 0] = 1.0
        rewards[20:, 0] = 0.0
        rewards[20:, 1:3] = 1.0
    counts = []
    ways = [(0, 0), (10**9, 10**9)]  # buckets, all arms
    if isinstance(policy, BoltzmannGumbel):
        ways.append((0, 10**9))  # bounds of each arm
    for crossing, few in ways:
        set_crossover(monkeypatch, crossing)
        monkeypatch.setitem(FEW, "softmax", few)
        setting = Setting(n_arms)
        kernels, state = Kernels(*map(compile_alone, policy.kernels())), policy.start(setting)
        for row in rewards:
            for arm in range(n_arms):
                kernels.update(state, 1, arm, arm, row[arm], rng)
            kernels.select(state, 50, rng)  # buckets and leaders are in use while the arms learn
        chosen = [kernels.select(state, 50, rng) for _ in range(draws)]
        counts.append(np.bincount(chosen, minlength=n_arms))
    table = np.array(counts)
    rare = table.sum(axis=0) < 20
    table = np.concatenate([table[:, ~rare], table[:, rare].sum(axis=1, keepdims=True)], axis=1)
    assert chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue > 1e-5


# -- the same regret -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "policy",
    [
        UCB1(),
        KLUCB(),
        ABE(eta=1.0),
        ABE(eta=0.3, c=0.5, alpha=0.3, initial=1.0),
        Boltzmann(eta=3.0, schedule="log"),
        BoltzmannGumbel(),
        Thompson(),
    ],
    ids=str,
)
def test_regret_has_the_distribution_of_the_plain_loop(policy, monkeypatch):
    """Two samples of 2000 independent runs, Kolmogorov and Smirnov, level 1e-4."""
    environment = Bernoulli(np.linspace(0.1, 0.9, 12))
    options = {"horizon": 300, "replications": 2000, "progress": False}
    set_crossover(monkeypatch, 10**9)
    if isinstance(policy, (ABE, Boltzmann)):  # they bound the weights of few arms, too
        monkeypatch.setattr(
            "abex.policies.learner.sampler_for", lambda law, state: scan_for(law, state.means.size)
        )
    plain = simulate(policy, environment, seed=2, **options).regret[0]
    monkeypatch.undo()
    for crossing in (0, 32):
        set_crossover(monkeypatch, crossing)
        found = simulate(policy, environment, seed=1, **options).regret[0]
        for checkpoint in (20, 60, -1):
            assert ks_2samp(found[:, checkpoint], plain[:, checkpoint]).pvalue > 1e-4


# -- robust --------------------------------------------------------------------------------------------


def test_a_jump_in_time_changes_nothing_but_the_rate():
    policy, n = Boltzmann(eta=1.0), 40
    state, rng = policy.start(Setting(n)), stream(5, "jump")
    select, update = policy.kernels()
    for t in [*range(1, 200), 10**12, 10**6, 10**15]:
        arm = select(state, t, rng)
        update(state, t, arm, arm, float(rng.random() < 0.5), rng)
        assert_sound(state.sampler, state.means)
    assert_law(state.sampler, state.means, 1e3, rng, draws=50_000)


def test_nothing_drifts_in_millions_of_steps():
    """Masses are those of the counts and bounds, sums of rewards whole numbers, the law is the softmax.

    `benchmarks/many_arms.py --long 1e9` does the same for a billion steps.
    """
    policy, steps, n_arms = ABE(eta=0.1, c=1.0, alpha=0.5), 3_000_000, 200
    environment = Bernoulli(np.linspace(0.5, 0.501, n_arms))
    state = play_replication(policy, environment, None, as_checkpoints(2, steps), 6, 0).state
    buckets = state.sampler
    assert_sound(buckets, state.means)
    counts = np.where(np.arange(buckets.arms.size) == TAIL, n_arms, buckets.arms)
    assert np.array_equal(
        buckets.mass, np.where(buckets.arms > 0, np.floor(counts * buckets.upper) + 1.0, 0.0)
    )
    assert state.observations.sum() == steps
    rewards = state.observations * state.means
    assert np.abs(rewards - rewards.round()).max() < 1e-6
    assert_law(buckets, state.means, 0.1 * math.sqrt(steps), stream(6, "long"))


def test_a_player_with_a_million_arms_is_saved_and_loaded(tmp_path):
    player = Player(ABE(eta=1.0, initial=1.0), n_arms=10**6, seed=1)
    for _ in range(50):
        player.update(player.select(), 1.0)
    player.save(tmp_path / "player.json")
    twin = Player.load(tmp_path / "player.json")
    assert [twin.select() for _ in range(20)] == [player.select() for _ in range(20)]


def test_a_million_arms_take_less_than_200_bytes_each():
    for policy in (ABE(), Boltzmann(), UCB1(), UCBV(), BoltzmannGumbel(), Thompson()):
        state = policy.start(Setting(10**6))
        assert sum(leaf.nbytes for leaf in leaves(state)) < 200 * 10**6


def leaves(record):
    if isinstance(record, np.ndarray):
        return [record]
    parts = [getattr(record, name) for name in getattr(record, "_fields", ())]
    return [leaf for part in parts for leaf in leaves(part)]


# -- sums of weights -----------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [Exp3(gamma=0.1), Exp3IX(eta=0.02)], ids=str)
def test_the_tree_holds_the_weights_after_many_moves_of_the_reference(policy, always_many):
    """Rewards that differ by far let log-weights grow beyond every double: the tree stays the softmax of the scores."""
    n_arms = 13
    curves = play_replication(
        policy, Bernoulli([0.5] + [0.0] * (n_arms - 1)), None, as_checkpoints(1, 60_000), 3, 0
    )
    state = curves.state
    moved = state.sampler.reference
    assert moved > 100.0, "the run was meant to be long enough to move the reference"
    law = np.zeros(n_arms)
    policy.probabilities(state, 60_001, law)
    size = state.sampler.tree.size // 2
    leaves = state.sampler.tree[size : size + n_arms] / state.sampler.tree[1]
    mixing = getattr(state, "mixing", 0.0)
    np.testing.assert_allclose((1 - mixing) * leaves + mixing / n_arms, law, rtol=1e-9, atol=1e-300)
    for node in range(1, size):
        assert state.sampler.tree[node] == state.sampler.tree[2 * node] + state.sampler.tree[2 * node + 1]
    assert policy.kernels().select(state, 60_001, stream(0, "x")) in range(n_arms)


@pytest.mark.parametrize("rate", [1.0, -1.0])
def test_the_reference_is_the_score_of_the_largest_weight(rate):
    """Also of losses, of which the smallest has it, and where the others are so far away that they have no weight."""
    sampler, scores = new_sum_tree(np.zeros(3), rate), np.zeros(3)
    for arm, far in enumerate((-300.0, -301.0, -2000.0)):
        scores[arm] = far / rate
        changed(sampler, scores, arm)
    shares = [weight_share(sampler, arm) for arm in range(3)]
    assert shares == pytest.approx([1.0 / (1.0 + math.exp(-1.0)), 1.0 / (1.0 + math.exp(1.0)), 0.0])


def test_a_walk_down_the_tree_meets_no_arm_without_weight():
    tree = sums_of(np.ones(5))
    assert [find_leaf(tree, rest) for rest in (0.0, 0.999, 1.0, 4.5, 4.999999)] == [0, 0, 1, 4, 4]
    assert find_leaf(tree, 5.0) == 4  # a rest that rounding left at the total
    set_leaf(tree, 4, 0.0)
    set_leaf(tree, 0, 0.0)
    assert tree[1] == 3.0
    assert [find_leaf(tree, rest) for rest in (0.0, 3.0)] == [1, 3]
    assert find_leaf(sums_of(np.ones(1)), 0.5) == 0


@pytest.mark.parametrize("policy", INDEXED, ids=str)
def test_the_last_arm_keeps_what_was_observed(policy, always_many):
    setting, rng = Setting(2, 100), stream(3, "last")
    state, (select, update) = policy.start(setting), policy.kernels()
    for t in range(1, 19):
        update(state, t, t % 2, t % 2, float(t % 2), rng)
    alone = policy.resume(Setting(1, 100), saved(state), np.array([1]))
    assert alone.observations.tolist() == [9.0]
    assert alone.means.tolist() == [1.0]
    assert select(alone, 19, rng) == 0


def test_arms_of_hardly_different_spread_are_told_apart(always_many):
    policy, setting, rng = UCBV(), Setting(2), stream(4, "spread")
    state, (select, update) = policy.start(setting), policy.kernels()
    for t, (arm, reward) in enumerate([(0, 0.5), (0, 0.5), (1, 0.5 - 0.99e-6), (1, 0.5 + 0.99e-6)], 1):
        update(state, t, arm, arm, reward, rng)
    select(state, 1, rng)
    assert {select(state, 1_000_000, rng) for _ in range(20)} == {1}


@pytest.mark.parametrize(
    "policy", [Boltzmann(eta=1e17), ABE(eta=1e300), Boltzmann(eta=1e300, schedule="constant")], ids=str
)
@pytest.mark.parametrize("n_arms", [4, 10, 300])
def test_no_rate_is_too_large(policy, n_arms):
    means = stream(0, "steep").random(n_arms)
    steps = as_checkpoints(2, 3000)
    regret = play_replication(policy, Bernoulli(means), None, steps, 1, 0)[0]
    assert (np.diff(regret, prepend=0.0) >= 0.0).all()
    assert (regret <= steps * (means.max() - means.min())).all()
