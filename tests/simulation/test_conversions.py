"""Conversions that come late and silence that comes later: what is learned, when, and with which weight."""

import math
from itertools import pairwise

import numpy as np
import pytest

from abex import (
    ABE,
    KLUCB,
    UCB1,
    Bernoulli,
    Discounted,
    Discrete,
    Evidence,
    Player,
    Thompson,
    UserError,
    simulate,
)
from abex.graphs import star
from abex.kernels import compile_alone, kernel
from abex.players.open_windows import Weighed
from abex.policies.attribution import (
    bin_of,
    can_weigh,
    enter,
    grow_older,
    new_attribution,
    weigh,
    weighed_decisions,
)
from abex.simulation import as_checkpoints, play_replication
from abex.simulation.delays import (
    LEARNED,
    Conversions,
    Fixed,
    Geometric,
    PerArm,
    Uniform,
    as_delay,
    delay_at,
    delay_table,
)
from abex.support.randomness import counter_key, stream
from abex.testing.policy_contract import same_states
from tests.each import each

RATES = [0.2, 0.5, 0.7, 0.4]
WORLD = Bernoulli(RATES)
SHOP = Conversions(Geometric(12), window=90)


def decisions_of(arms, delays, converted, now, window):
    """Arm, age and delay of the conversion (inf if none has come) of each decision, at the time ``now``: slow and obvious."""
    return [
        (arm, now - t, delay if comes and delay <= min(now - t, window) else math.inf)
        for t, (arm, delay, comes) in enumerate(zip(arms, delays, converted, strict=True))
    ]


def product_limit(decisions, ages):
    """G at the ages, by the definition: from each age on, the share of conversions that were not in the bin."""
    g = np.ones(len(ages))
    for j in range(len(ages) - 2, 0, -1):
        low, high = ages[j], ages[j + 1]
        old = [delay for _, age, delay in decisions if age >= high and delay <= high]
        g[j] = g[j + 1] * (1.0 if not old else 1.0 - sum(delay > low for delay in old) / len(old))
    g[0] = 0.0
    return g


def mean_of_bin(low, high):
    """The mean over a bin of a G whose complement falls at a constant rate, by a fine sum."""
    if high >= 1.0 or low == high:
        return (low + high) / 2
    u = (np.arange(100_000) + 0.5) / 100_000
    return float(np.mean(1.0 - (1.0 - low) ** (1.0 - u) * (1.0 - high) ** u))


def followed(arms, delays, converted, window, until):
    """An `Attribution` that has been told all of this, one step after another."""
    known = new_attribution(max(arms) + 1, window, 0.0)
    steps = np.ceil(known.ages[1:]).astype(int)
    bins = [-1] * len(arms)
    for now in range(until + 1):
        for t in range(min(now, len(arms))):
            if converted[t] and t + delays[t] == now and delays[t] <= window:
                bins[t] = bin_of(known, delays[t])
                known.converted[arms[t]] += 1.0
        for j, step in enumerate(steps):
            if 0 <= now - step < len(arms):
                grow_older(known, arms[now - step], j, bins[now - step])
        if now < len(arms):
            enter(known, arms[now])
    weigh(known)
    return known


@pytest.mark.parametrize(("window", "mean", "until"), [(90, 8, 60), (90, 30, 250), (500, 5, 300), (3, 2, 40)])
def test_weights_are_those_of_the_product_limit_estimate(window, mean, until):
    rng = np.random.default_rng(window + mean)
    arms = rng.integers(0, 3, until).tolist()
    delays, converted = rng.geometric(1.0 / mean, until).tolist(), (rng.random(until) < 0.6).tolist()
    known = followed(arms, delays, converted, window, until)
    decisions = decisions_of(arms, delays, converted, until, window)
    g = product_limit(decisions, known.ages)
    weights = [mean_of_bin(low, high) for low, high in pairwise(g)] + [1.0]
    np.testing.assert_allclose(known.weights, weights, atol=1e-4)
    for arm in range(3):
        ages = [age for one, age, _ in decisions if one == arm]
        sums = sum(weights[np.searchsorted(known.ages, age, side="right") - 1] for age in ages)
        assert weighed_decisions(known, arm) == pytest.approx(sums, abs=1e-3 * len(ages))
        assert known.converted[arm] == sum(one == arm and delay < math.inf for one, _, delay in decisions)


@kernel
def watched(known, rates, mean, steps, moments, chances, delays, due, bins, worth, paid):
    """Arms in turn; at the moments, what their decisions are worth and how many have converted."""
    window, n_arms, look = int(known.ages[-1]), rates.size, 0
    for t in range(chances.size):
        delay = math.ceil(math.log(1.0 - delays[t]) / math.log(1.0 - 1.0 / mean))
        due[t] = t + max(delay, 1) if chances[t] < rates[t % n_arms] and delay <= window else -1
        enter(known, t % n_arms)
        for j in range(steps.size):
            if t >= steps[j]:
                grow_older(known, (t - steps[j]) % n_arms, j, bins[t - steps[j]])
        for made in range(max(t + 1 - window, 0), t + 1):
            if due[made] == t + 1:
                bins[made] = bin_of(known, float(due[made] - made))
                known.converted[made % n_arms] += 1.0
        if look < moments.size and t + 1 == moments[look]:
            weigh(known)
            for k in range(n_arms):
                worth[look, k] = weighed_decisions(known, k)
                paid[look, k] = known.converted[k]
            look += 1


RUNS, LOOKS = 1_000, 20


def looked_at(rates, mean, window, horizon, first):
    """Of many runs: the moments, what decisions of each arm were worth then, what they had paid, and the true means."""
    moments = np.unique(np.geomspace(first, horizon, LOOKS).astype(int))
    rates, rng, run = np.array(rates), np.random.default_rng(7), compile_alone(watched)
    worth, paid = np.zeros((2, RUNS, moments.size, rates.size))
    for one in range(RUNS):
        known = new_attribution(rates.size, float(window), 0.0)
        steps, none = np.ceil(known.ages[1:]).astype(np.int64), np.full(horizon, -1, np.int64)
        chances, delays = rng.random((2, horizon))
        run(
            known,
            rates,
            float(mean),
            steps,
            moments,
            chances,
            delays,
            none,
            none.copy(),
            worth[one],
            paid[one],
        )
    return moments, worth, paid, rates * (1.0 - (1.0 - 1.0 / mean) ** window)


@each(
    ("rates", "mean", "window", "horizon"),
    [([0.02, 0.05, 0.12], 20, 400, 1_500), ([0.1, 0.2], 10, 200, 600), ([0.05, 0.2], 40, 400, 1_500)],
)
def test_means_are_unbiased_at_every_moment_once_some_delays_have_passed(rates, mean, window, horizon):
    """At 20 moments from five mean delays on, 1,000 runs: within two standard errors, one decision, and what bins of ages cost.

    A decision grows older when the next one is made, and conversions count at once: so the mean of n decisions of all arms is
    too large by the factor 1 + 1/n. Bins and few conversions add less than 2 % at first, and less than 0.5 % soon.
    """
    moments, worth, paid, means = looked_at(rates, mean, window, horizon, 5 * mean)
    errors = paid - means * worth
    scale = means * worth.mean(axis=0)
    found = np.abs(errors.mean(axis=0))
    deviation = errors.std(axis=0, ddof=1) / math.sqrt(RUNS)
    bins = np.where(moments < 10 * mean, 0.02, 0.005)
    assert (found < 2.0 * deviation + scale * (1.0 / moments + bins)[:, None]).all()
    assert (found[-1] < 2.0 * deviation[-1] + scale[-1] * 0.004).all()  # and it passes


@each(
    ("rates", "mean", "window", "horizon"),
    [([0.05, 0.2], 20, 400, 1_000), ([0.5, 0.7, 0.9], 20, 300, 600)],
)
def test_intervals_hold_at_all_moments_together_once_some_delays_have_passed(rates, mean, window, horizon):
    """From five mean delays on; as if all decisions had the weight of their mean one, or large rates would leave them."""
    moments, worth, paid, means = looked_at(rates, mean, window, horizon, 5 * mean)
    many = np.array(
        [[(moment + len(rates) - 1 - k) // len(rates) for k in range(len(rates))] for moment in moments]
    )
    counts = np.broadcast_to(many, worth.shape).ravel().astype(float)
    known = Weighed(counts, np.zeros(counts.size), worth.ravel(), paid.ravel(), 0.0)
    low, high = (end.reshape(worth.shape) for end in known.intervals(0.05))
    left = ((low > means) | (high < means)).any(axis=1).mean(axis=0)
    assert (left <= 0.05).all()
    shown = known.means().reshape(worth.shape)
    assert ((low <= shown) & (shown <= high)).all()


@pytest.mark.parametrize("policy", [Thompson(), Evidence(), UCB1(), KLUCB()])
def test_what_was_learned_is_every_conversion_and_the_zeros_that_are_due(policy):
    steps = as_checkpoints([400], 400)
    state = play_replication(policy, WORLD, None, steps, 3, 0, delay=SHOP, interpreted=True).state
    later = play_replication(policy, WORLD, None, as_checkpoints([40_000], 40_000), 3, 0, delay=SHOP).state
    for found, at_least in ((state, 300), (later, 39_000)):
        if isinstance(policy, Thompson):
            counts, wins = found.successes + found.failures - 2.0, found.successes - 1.0
        else:
            counts, wins = (
                found.observations,
                found.observations * np.where(found.observations > 0, found.means, 0),
            )
        assert at_least < counts.sum() <= 40_000
        np.testing.assert_allclose(wins, np.round(wins), atol=1e-6)
    most = int(np.argmax(counts))
    assert abs(wins[most] / counts[most] - RATES[most]) < 4 * math.sqrt(0.25 / counts[most])


def driven(policy, horizon, seed, at_close):
    """A Player that is told each outcome by hand: a conversion when it comes or at close, silence when the window ends."""
    player = Player(policy, 4, horizon=horizon, seed=5)
    player._rng = stream(seed, 0, "policy", repr(policy))
    world = WORLD.open(counter_key(seed, 0, "environment"), horizon)
    table = delay_table(SHOP, counter_key(seed, 0, "delay"), 4)
    waiting, pulls = [], []
    for t in range(1, horizon + 1):
        for _, decision, reward in [one for one in waiting if one[0] == t]:
            player.update(decision, reward)
        decision = player.decide()
        pulls.append(decision.arm)
        late = delay_at(table, t, decision.arm)
        comes = late <= SHOP.window and WORLD.draw(world, t, decision.arm) > 0.0
        waiting.append((t + (late if comes and not at_close else SHOP.window), decision, float(comes)))
    return pulls


@pytest.mark.parametrize("policy", [Thompson(), Evidence(), UCB1(), Discounted(UCB1(), gamma=0.95)])
@pytest.mark.parametrize("learned", LEARNED[1:])
def test_player_and_simulator_agree_event_by_event(policy, learned):
    with np.errstate(over="ignore"):
        pulls = driven(policy, 300, seed=3, at_close=learned == "at close")
    steps = as_checkpoints(range(1, 301), 300)
    delay = Conversions(SHOP.delay, SHOP.window, learned)
    result = play_replication(policy, WORLD, None, steps, 3, 0, delay=delay, interpreted=True)
    assert np.allclose(np.diff(result.regret, prepend=0.0), 0.7 - np.array(RATES)[pulls], atol=1e-12)


@pytest.mark.parametrize("learned", LEARNED)
@pytest.mark.parametrize("batch", [1, 7])
def test_compiled_is_interpreted(learned, batch):
    revenue = Discrete([[0.0, 0.2, 0.9], [0.0, 0.5]], [[0.8, 0.1, 0.1], [0.7, 0.3]])
    for policy in (Thompson(), Evidence()):
        options = {"delay": Conversions(Uniform(1, 60), 40, learned), "batch": batch}
        fast = play_replication(policy, revenue, None, as_checkpoints(20, 300), 2, 1, **options)
        slow = play_replication(
            policy, revenue, None, as_checkpoints(20, 300), 2, 1, interpreted=True, **options
        )
        assert np.array_equal(fast.regret, slow.regret)
        assert same_states(fast.state, slow.state)


def test_a_policy_that_does_not_learn_by_weights_alone_learns_at_close():
    assert can_weigh(Thompson())
    for policy in (ABE(eta=1.0), Discounted(UCB1(), gamma=0.95)):
        assert not can_weigh(policy)
        options = {"horizon": 500, "replications": 2, "seed": 1, "workers": 1}
        weighed = simulate(policy, WORLD, delay=SHOP, **options)
        closed = simulate(policy, WORLD, delay=Conversions(SHOP.delay, 90, "at close"), **options)
        assert np.array_equal(weighed.regret, closed.regret)


def test_counting_early_conversions_alone_is_no_better_than_chance_and_weighing_them_is():
    """Three banners, a window of thirty minutes: uniform choice loses 367 in 10,000 visits."""
    options = {"horizon": 10_000, "replications": 10, "seed": 4, "workers": 1, "checkpoints": 1}
    found = {
        learned: simulate(
            [Evidence(), Thompson()], Bernoulli([0.05, 0.08, 0.12]), delay=Conversions(Geometric(20), 1800, learned), **options
        ).regret[:, :, -1]
        for learned in LEARNED
    }  # fmt: skip
    assert found["as they come"][0].mean() > 250
    for i in (0, 1):
        weighed, closed = found["weighed"][i], found["at close"][i]
        assert weighed.mean() < 60
        assert (closed - weighed).mean() > 3 * (closed - weighed).std(ddof=1) / math.sqrt(10)


@pytest.mark.parametrize(
    "delay",
    [
        SHOP,
        Conversions(Fixed(3), 9, "at close"),
        Conversions(PerArm([1, 2, 3, Geometric(9)]), 20, silence=0.5),
    ],
)
def test_conversions_are_a_value(delay):
    assert as_delay(repr(delay)) == delay
    assert hash(as_delay(repr(delay))) == hash(delay)
    simulate(Thompson(), WORLD, delay=repr(delay), horizon=50, replications=1, workers=1)


@pytest.mark.parametrize(
    ("delay", "message"),
    [
        ("Conversions(Geometric(3))", "Conversions needs its parameter window"),
        ("Conversions(Geometric(3), 0)", "window must be"),
        ("Conversions(Geometric(3), 9, 'never')", "unknown learned"),
        ("Conversions(Conversions(3, 9), 9)", "not Conversions"),
        ("Conversions(PerArm([1, 2]), 9)", "PerArm has 2 delays but there are 4 arms"),
        ("PerArm([Conversions(1, 2)])", "PerArm needs a list with one delay"),
    ],
)
def test_what_are_no_conversions_is_refused_in_one_sentence(delay, message):
    with pytest.raises(UserError) as caught:
        simulate(UCB1(), WORLD, delay=delay, horizon=10, replications=1)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_conversions_have_no_side_observations():
    with pytest.raises(UserError, match="leave the graph out"):
        simulate(UCB1(), WORLD, graph=star(4), delay=SHOP, horizon=10, replications=1, workers=1)
