"""Policies that start anew at an alarm: step by step against the whole history, and what detectors promise."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abex import (
    CUSUM,
    GLR,
    KLUCB,
    UCB1,
    Boltzmann,
    PageHinkley,
    Player,
    Restarting,
    Thompson,
    UserError,
    parse_policy,
)
from abex.graphs import star
from abex.policies.detectors import clear, observe
from abex.policies.policy import Setting
from abex.support.divergence import kl_upper_bound
from abex.support.randomness import stream
from tests.each import each
from tests.naive.detectors import cusum, glr, page_hinkley

DETECTORS = [
    (GLR(delta=0.1, every=3, spacing=2, window=10_000), lambda x: glr(x, 0.1, 3, 2)),
    (GLR(delta=0.05, every=1, spacing=1, window=10_000), lambda x: glr(x, 0.05, 1, 1)),
    (CUSUM(warm_up=8, drift=0.05, threshold=3.017), lambda x: cusum(x, 8, 0.05, 3.017)),
    (PageHinkley(drift=0.02, threshold=2.517), lambda x: page_hinkley(x, 0.02, 2.517)),
]


@each("number", range(len(DETECTORS)))
@each("kind", ["coin", "uniform"])
def test_a_detector_raises_the_alarm_of_its_definition(number, kind):
    value, oracle = DETECTORS[number]
    record, rng, alarms = value.watch(2), stream(1, kind), 0
    rewards = {0: [], 1: []}
    for t in range(600):
        arm = int(rng.random() < 0.3)
        mean = 0.2 if (t // 150) % 2 == arm else 0.8
        x = float(rng.random() < mean) if kind == "coin" else 0.8 * (mean > 0.5) + 0.2 * rng.random()
        rewards[arm].append(x)
        alarm = observe(record, arm, x)
        assert alarm == oracle(rewards[arm]), (t, arm)
        if alarm:
            alarms += 1
            rewards[arm] = []
            clear(record, arm)
    assert alarms > 0


@given(
    st.lists(st.sampled_from([0.0, 0.125, 0.5, 1.0]), min_size=2, max_size=60),
    st.integers(1, 3),
    st.sampled_from([1e-3, 0.3, 1.0]),
)
def test_the_test_without_logarithms_leaves_out_nothing(rewards, spacing, delta):
    record = GLR(delta=delta, every=1, spacing=spacing, window=1000).watch(1)
    for n in range(1, len(rewards) + 1):
        alarm = observe(record, 0, rewards[n - 1])
        margin = (
            glr(rewards[:n], delta * 1.000001, 1, spacing),
            glr(rewards[:n], delta * 0.999999, 1, spacing),
        )
        assert alarm in margin


def test_false_alarms_of_the_test_are_rare():
    """Without any change, in less than 2 delta of the runs; with a change of a half, nearly always and soon."""
    runs, false, found = 200, 0, []
    for run in range(runs):
        rng, value = stream(run, "false alarms"), GLR(delta=0.05, every=5, spacing=5, window=1000)
        record = value.watch(1)
        false += any(observe(record, 0, float(rng.random() < 0.4)) for _ in range(500))
        record = value.watch(1)
        for n in range(400):
            if observe(record, 0, float(rng.random() < (0.2 if n < 200 else 0.7))):
                found.append(n)
                break
    assert false <= 2 * 0.05 * runs
    assert len(found) > 0.97 * runs
    assert 200 <= np.median(found) < 260


def test_a_full_window_drops_its_older_half():
    record = GLR(delta=0.1, every=1, spacing=2, window=100).watch(1)
    for n in range(1, 400):
        assert not observe(record, 0, float(n % 2))
        assert record.counts[0] < 100
        assert record.totals[0] == pytest.approx(record.counts[0] / 2, abs=1.0)
    assert any(observe(record, 0, 1.0) for _ in range(100))


@pytest.mark.parametrize("restart", ["all", "arm"])
@pytest.mark.parametrize(
    "inside",
    [KLUCB(), UCB1(scale=0.5), Thompson(), Boltzmann(eta=1.0), Boltzmann(eta=1.0, initial=None)],
    ids=str,
)
def test_every_decision_knows_what_came_since_the_restart(inside, restart):
    value, oracle = DETECTORS[0]
    policy = Restarting(inside, detector=value, exploration=0.2, restart=restart)
    for n_arms, graph, late in ((3, None, 0), (8, None, 25), (4, star(4), 0)):
        select, update = policy.kernels()
        state, rng, chance = (
            policy.start(Setting(n_arms, None, graph)),
            stream(5, "play"),
            stream(5, "rewards"),
        )
        rewards, starts = {k: [] for k in range(n_arms)}, np.zeros(n_arms, int)
        began, alarms, waiting = 0, [], []
        for t in range(1, 500):
            for _, step, arm, seen in [one for one in waiting if one[0] <= t]:
                for k in seen:
                    x = float(chance.random() < (0.9 if (k + step // 160) % n_arms == 0 else 0.1))
                    update(state, step, arm, k, x, rng)
                    if step <= starts[k]:
                        continue
                    rewards[k].append(x)
                    if oracle(rewards[k]):
                        alarms.append((t - 1, k))
                        for j in [k] if restart == "arm" else range(n_arms):
                            rewards[j], starts[j] = [], t - 1
                        began = began if restart == "arm" else t - 1
            waiting = [one for one in waiting if one[0] > t]
            arm = select(state, t, rng)
            period = int(n_arms / 0.2)
            if (t - began - 1) % period < n_arms:
                assert arm == (t - began - 1) % period
            else:
                counts = np.array([len(rewards[k]) for k in range(n_arms)])
                check_statistics(state, counts, rewards)
                if isinstance(inside, KLUCB | UCB1):
                    own = starts if restart == "arm" else np.full(n_arms, began)
                    best = indices(inside, counts, rewards, t - own)
                    assert best[arm] == best.max() or best[arm] >= best.max() - 1e-9
            shown = [arm] if graph is None else [*(int(k) for k in graph.out(arm) if k != arm), arm]
            waiting.append((t + 1 + int(chance.random() * (late + 1)), t, arm, shown))
        assert policy.alarms(state) == alarms
        assert len(alarms) > 0
        assert policy.report(state)["alarms"] == len(alarms)


def check_statistics(inner, counts, rewards):
    if hasattr(inner, "successes"):
        assert np.array_equal(inner.successes - 1.0, [sum(x) for x in rewards.values()])
        assert np.array_equal(inner.successes + inner.failures - 2.0, counts)
        return
    assert np.array_equal(inner.observations, counts)
    seen = counts > 0
    means = np.array([np.mean(x) if x else 0.0 for x in rewards.values()])
    np.testing.assert_allclose(inner.means[seen], means[seen], atol=1e-12)


def indices(policy, counts, rewards, times):
    found = []
    for k, x in rewards.items():
        log = math.log(max(times[k], 1))
        if not x:
            found.append(math.inf)
        elif isinstance(policy, UCB1):
            found.append(np.mean(x) + math.sqrt(policy.scale * log / counts[k]))
        else:
            found.append(kl_upper_bound(np.mean(x), max(log, 0.0) / counts[k]))
    return np.array(found)


@each(
    "policy",
    [
        Restarting(),
        Restarting(UCB1(), detector=CUSUM(drift=0.2), restart="arm"),
        Restarting("UCB1", PageHinkley(), 0.0),
    ],
)
def test_texts_come_back(policy):
    assert parse_policy(repr(policy)) == policy
    assert parse_policy(str(policy)) == policy


@each(
    ("text", "message"),
    [
        ("Restarting(detector=GRL())", "did you mean 'GLR'"),
        ("Restarting(detector=UCB1)", "detector must be a value such as GLR()"),
        ("Restarting(detector=3)", "detector must be a value such as GLR()"),
        ("Restarting(detector=GLR(delta=0))", "delta must be"),
        ("Restarting(restart='some')", "unknown restart 'some'"),
        ("Restarting(Exp3)", "statistics can be forgotten"),
        ("GLR(delta=0.1)", "is no policy, but a part of one"),
        ("Discounted(GLR)", "policies must be values"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(text, message):
    with pytest.raises(UserError) as caught:
        parse_policy(text)
    assert message in str(caught.value)


def test_more_observations_detect_sooner():
    """On a star whose centre shows all arms, the change of an arm that is never played is noticed sooner."""
    steps = {}
    for name, graph in (("alone", None), ("star", star(6))):
        player = Player(
            Restarting(UCB1(scale=0.5), GLR(delta=0.01, every=1, spacing=1), exploration=0.1),
            6,
            graph=graph,
            seed=3,
        )
        noise = stream(2, "noise")
        for t in range(1, 3000):
            arm = player.select()
            means = [0.6, 0.5, 0.4, 0.3, 0.2, 0.1] if t <= 1000 else [0.6, 0.5, 0.4, 0.3, 0.2, 0.95]
            paid = [float(noise.random() < mean) for mean in means]
            shown = {int(k) for k in graph.out(arm)} - {arm} if graph is not None else set()
            player.update(arm, paid[arm], {k: paid[k] for k in shown})
            if t > 1000 and player.report()["alarms"] > 0:
                break
        steps[name] = t
    assert 1000 < steps["star"] < steps["alone"]
