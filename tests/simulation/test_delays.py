"""Rewards that come late and in batches: the same for everyone, and as a Player would learn them."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from abex import (
    ABE,
    CUSUM,
    KLUCB,
    UCB1,
    Bernoulli,
    Discounted,
    Evidence,
    Exp3,
    Exp3PlusPlus,
    Exp3S,
    PageHinkley,
    Player,
    Restarting,
    Thompson,
    TsallisINF,
    UserError,
    Windowed,
    simulate,
)  # fmt: skip
from abex.graphs import star
from abex.kinds import kept_with_decisions
from abex.policies import Exp3DOM, Exp3IX
from abex.simulation import as_checkpoints, delays, play_replication
from abex.simulation.delays import Fixed, Geometric, PerArm, Uniform, as_delay, delay_at, delay_table
from abex.support.randomness import counter_key, stream
from abex.testing.policy_contract import same_states
from tests.each import each

ENVIRONMENT = Bernoulli([0.2, 0.5, 0.7, 0.4])
LATE = [
    (Fixed(7), 1),
    (Geometric(20.0), 1),
    (Uniform(0, 30, never=0.2), 1),
    (PerArm([Fixed(1), Geometric(40), Uniform(3, 5), Fixed(9, never=0.5)]), 8),
    (None, 16),
]


def driven_by_hand(policy, graph, delay, batch, horizon, seed):
    """The oracle: a Player that is told each reward when it comes, from a list of who waits."""
    player = Player(policy, 4, graph=graph, horizon=horizon, seed=5)
    player._rng = stream(seed, 0, "policy", repr(policy))
    world = ENVIRONMENT.open(counter_key(seed, 0, "environment"), horizon)
    table = delay_table(delay or Fixed(1), counter_key(seed, 0, "delay"), 4)
    reveals = {k: [k] for k in range(4)}
    if graph is not None:
        reveals = {k: [int(j) for j in graph.out(k)] for k in range(4)}
    waiting, pulls = [], []
    for t in range(1, horizon + 1):
        ready = (t - 1) % batch == 0
        for comes, when, decision in sorted(waiting, key=lambda one: one[1]) if ready else []:
            if comes <= t:
                also = {
                    k: ENVIRONMENT.draw(world, when, k) for k in reveals[decision.arm] if k != decision.arm
                }
                player.update(decision, ENVIRONMENT.draw(world, when, decision.arm), also)
        waiting = [one for one in waiting if not (ready and one[0] <= t)]
        decision = player.decide()
        pulls.append(decision.arm)
        late = delay_at(table, t, decision.arm)
        if late > 0:
            waiting.append((t + late, t, decision))
    return player, pulls


@each(
    "policy",
    [
        UCB1(), Thompson(), ABE(eta=1.0, c=1.0, alpha=0.5), Exp3(), Exp3PlusPlus(), TsallisINF(),
        Discounted(UCB1(), gamma=0.95), Discounted(Evidence(), gamma=0.95), Windowed(Thompson(), width=40), Exp3S(),
        Restarting(KLUCB(), PageHinkley(threshold=2.0)), Restarting(UCB1(), CUSUM(warm_up=10, threshold=2.0), restart="arm"),
    ],
)  # fmt: skip
@each("graph", [None, star(4)])
@each("number", range(len(LATE)))
def test_player_and_simulator_agree_event_by_event(policy, graph, number):
    delay, batch = LATE[number]
    horizon = 150
    with np.errstate(over="ignore"):
        player, pulls = driven_by_hand(policy, graph, delay, batch, horizon, seed=3)
    steps = list(range(1, horizon + 1))
    result = play_replication(
        policy,
        ENVIRONMENT,
        graph,
        as_checkpoints(steps, horizon),
        3,
        0,
        delay=delay,
        batch=batch,
        interpreted=True,
    )
    gaps = 0.7 - np.array(ENVIRONMENT.means)[pulls]
    assert np.allclose(np.diff(result.regret, prepend=0.0), gaps, atol=1e-12)
    for name in kept_with_decisions(
        result.state
    ):  # of the decision learned last, or made last: the next one writes it
        getattr(result.state, name)[:] = getattr(player._state.state, name)
    assert same_states(result.state, player._state.state)


@pytest.mark.parametrize("policy", [UCB1(), Exp3PlusPlus(), Exp3DOM()])
def test_compiled_is_interpreted(policy):
    graph = star(4) if policy.needs_graph else None
    for delay, batch in LATE[1:4]:
        options = {"delay": delay, "batch": batch}
        steps = as_checkpoints(20, 300)
        fast = play_replication(policy, ENVIRONMENT, graph, steps, 2, 1, **options)
        slow = play_replication(policy, ENVIRONMENT, graph, steps, 2, 1, interpreted=True, **options)
        assert np.array_equal(fast.regret, slow.regret)
        assert same_states(fast.state, slow.state)


@each("delay", [None, 1, Fixed(0), Uniform(0, 1), "Uniform(1, 1)", Geometric(1.0), [1] * 4])
def test_a_delay_of_one_step_is_none_bit_for_bit(delay):
    options = {"horizon": 400, "replications": 3, "seed": 8, "workers": 1}
    policies = [UCB1(), Exp3IX()]
    plain = simulate(policies, ENVIRONMENT, **options)
    late = simulate(policies, ENVIRONMENT, delay=delay, batch=1, **options)
    assert np.array_equal(plain.regret, late.regret)
    assert np.array_equal(plain.optimal_pulls, late.optimal_pulls)


def test_threads_and_other_policies_change_nothing():
    options = {"horizon": 500, "replications": 4, "seed": 8, "delay": Geometric(50, never=0.05), "batch": 4}
    alone = simulate(UCB1(), ENVIRONMENT, workers=1, **options)
    together = simulate([Exp3(), UCB1()], ENVIRONMENT, workers=3, **options)
    assert np.array_equal(alone.regret[0], together.regret[1])
    assert together.about["delay"] == "Geometric(mean=50, never=0.05)"
    assert together.about["batch"] == 4


def test_late_rewards_cost_regret_and_lost_ones_too():
    options = {"horizon": 2000, "replications": 40, "seed": 1}
    at_once = simulate(UCB1(scale=0.5), ENVIRONMENT, **options).regret[0, :, -1]
    late = simulate(UCB1(scale=0.5), ENVIRONMENT, delay=Fixed(200), **options).regret[0, :, -1]
    batched = simulate(UCB1(scale=0.5), ENVIRONMENT, batch=200, **options).regret[0, :, -1]
    never = simulate(UCB1(scale=0.5), ENVIRONMENT, delay=Fixed(1, never=1.0), **options).regret[0, :, -1]
    assert at_once.mean() < late.mean() < never.mean()
    assert at_once.mean() < batched.mean() < never.mean()
    assert abs(never.mean() - 2000 * (0.7 - 0.45)) < 4 * never.std() / math.sqrt(40) + 1e-9  # all arms unseen


@pytest.mark.parametrize("delay", [Geometric(5.0), Uniform(2, 9), Geometric(3.0, never=0.25)])
def test_delays_have_their_distribution(delay):
    table = delay_table(delay, counter_key(1, "delay"), 1)
    with np.errstate(over="ignore"):
        drawn = np.array([delay_at(table, t, t % 7) for t in range(1, 20_001)])
    values = np.arange(1, 60)
    if isinstance(delay, Geometric):
        law = (1 - 1 / delay.mean) ** (values - 1) / delay.mean
    else:
        law = np.where((values >= 2) & (values <= 9), 1 / 8, 0.0)
    expected = np.concatenate([[delay.never], law * (1 - delay.never)])
    counts = np.concatenate([[np.sum(drawn == -1)], [np.sum(drawn == v) for v in values]])
    rest = [1.0 - expected.sum(), drawn.size - counts.sum()]
    expected, counts = np.append(expected, rest[0]) * drawn.size, np.append(counts, rest[1])
    likely = expected > 5
    assert not counts[expected < 1e-9].any()
    f = counts[likely].sum() / expected[likely].sum()
    assert chisquare(counts[likely], expected[likely] * f).pvalue > 1e-6


def test_every_arm_has_a_delay_of_its_own():
    table = delay_table(PerArm([Fixed(1), Uniform(40, 40), Fixed(9)]), counter_key(1, "delay"), 3)
    with np.errstate(over="ignore"):
        assert [delay_at(table, t, arm) for t in (1, 7) for arm in range(3)] == [1, 40, 9] * 2


@given(st.floats(1.0, 1e9), st.integers(0, 2**64 - 1), st.integers(1, 10**9), st.integers(0, 10**6))
def test_no_delay_is_longer_than_the_longest(mean, key, t, arm):
    delay = Geometric(mean)
    with np.errstate(over="ignore"):
        assert 1 <= delay_at(delay_table(delay, np.uint64(key), 1), t, arm) <= delay.longest
    smallest = 1 + int(delay.scale * math.log(delays.SMALLEST_UNIFORM))
    assert smallest <= delay.longest


@each("delay", [Fixed(3), Uniform(0, 9, never=0.5), Geometric(2.5), PerArm([Fixed(1), Geometric(3)])])
def test_a_delay_is_a_value(delay):
    assert as_delay(repr(delay)) == delay
    assert hash(as_delay(repr(delay))) == hash(delay)
    with pytest.raises(dataclasses.FrozenInstanceError):
        delay.never = 0.1


@each(
    ("delay", "message"),
    [
        ("Geometrc(3)", "unknown delay 'Geometrc' (did you mean 'Geometric'?)"),
        ("Geometric(0.5)", "mean must be"),
        ("Geometric(mean=3, never=2)", "never must be"),
        ("Uniform(5, 2)", "least <= most"),
        ("Fixed(-1)", "steps must be"),
        ("Fixed(1, 2, 3)", "no 3. parameter"),
        ("Fixed(steps=1, stps=2)", "did you mean 'steps'"),
        ("Fixed(__import__('os'))", "cannot read the delay"),
        ("Fixed", "Fixed needs its parameter steps"),
        ([1, 2], "PerArm has 2 delays but there are 4 arms"),
        ([], "one delay"),
        (1.5, "delay must be a value"),
        (True, "delay must be a value"),
        ("PerArm([[1]])", "PerArm needs a list with one delay"),
    ],
)  # fmt: skip
def test_what_is_no_delay_is_refused_in_one_sentence(delay, message):
    with pytest.raises(UserError) as caught:
        simulate(UCB1(), ENVIRONMENT, delay=delay, horizon=10, replications=1)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_batch_is_a_whole_number_and_memory_is_checked_before_it_is_taken(monkeypatch):
    with pytest.raises(UserError, match="batch must be"):
        simulate(UCB1(), ENVIRONMENT, batch=0, horizon=10, replications=1)
    monkeypatch.setenv("ABEX_MAX_BYTES", "1000000")
    with pytest.raises(
        UserError, match="decisions that wait for rewards up to 10,000,000 steps late would take"
    ):
        simulate(UCB1(), ENVIRONMENT, delay=10**9, horizon=10**7, replications=1, workers=1)


def test_an_experiment_and_the_command_line_know_delays(tmp_path, monkeypatch, capsys):
    from abex.cli import main
    from abex.lab.experiments import read_experiment
    from abex.lab.sweeps.cells import bandit_cell, run_cell

    problem = {
        "environment": {"name": "Bernoulli", "means": list(ENVIRONMENT.means)},
        "delay": "Geometric(20)",
        "batch": 4,
    }
    payload = run_cell(bandit_cell(UCB1(), problem, horizon=300, checkpoints=5, seed=4, replication=0))
    same = play_replication(
        UCB1(), ENVIRONMENT, None, as_checkpoints(5, 300), 4, 0, delay=Geometric(20), batch=4
    )
    assert np.array_equal(payload.arrays["regret"], same.regret)
    text = (
        'name = "late"\nhorizon = 100\npolicies = ["UCB1"]\n[problem]\ndelay = "Geometric(20)"\nbatch = 4\n'
        '[problem.environment]\nname = "Bernoulli"\nmeans = [0.9, 0.1]\n'
    )
    path = tmp_path / "late.toml"
    path.write_text(text)
    assert read_experiment(path).problem["delay"] == "Geometric(20)"
    path.write_text(text.replace("Geometric(20)", "Geometric(x)"))
    with pytest.raises(UserError, match="cannot read the delay"):
        read_experiment(path)
    monkeypatch.chdir(tmp_path)
    arguments = [
        "simulate",
        "--policy",
        "UCB1",
        "--arms",
        "0.9,0.1",
        "--horizon",
        "100",
        "--replications",
        "2",
    ]
    main([*arguments, "--delay", "Uniform(0, 40)", "--batch", "8"])
    printed = capsys.readouterr().out
    assert "delay Uniform(0, 40)" in printed
    assert "batches of 8" in printed
