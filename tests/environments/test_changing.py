"""Worlds that change: where, by how much, compared with whom; and who noticed it."""

import dataclasses
import math

import numpy as np
import pytest

from abex import (
    GLR,
    KLUCB,
    UCB1,
    Discounted,
    Drifting,
    Exp3S,
    Phases,
    Published,
    RandomWalk,
    Restarting,
    Switching,
    UserError,
    Windowed,
    simulate,
)  # fmt: skip
from abex.environments.piecewise import PROBLEMS, piece_at
from abex.kernels import compile_alone
from abex.simulation.replication import detection
from abex.support.randomness import counter_key
from tests.each import each


@each("problem", PROBLEMS)
def test_every_step_has_the_means_of_its_piece(problem):
    environment, horizon = Published(problem), 997
    world = environment.open(counter_key(1, "world"), horizon)
    begins, means = PROBLEMS[problem](horizon)
    assert means.shape == (begins.size, environment.n_arms)
    assert ((means >= 0) & (means <= 1)).all()
    for t in range(1, horizon + 1):
        piece = int(np.flatnonzero(begins < t)[-1])
        assert piece_at(world, t) == piece
        for arm in range(environment.n_arms):
            assert environment.gap(world, t, arm) == pytest.approx(means[piece].max() - means[piece, arm])
    for change in environment.changes(horizon):
        assert (means[piece_at(world, change)] != means[piece_at(world, change - 1)]).any()


@pytest.mark.parametrize(
    ("environment", "horizon"),
    [
        (Published("besson-1"), 500),
        (RandomWalk([0.4, 0.6], 0.1), 500),
        (Switching([0.2, 0.5, 0.9], period=37), 500),
        (Switching([0.2, 0.5, 0.9], period=1), 70_000),  # more deals than are looked at together
        (Drifting([0.4, 0.5, 0.6], swing=0.7, period=300.0), 500),  # clipped at both ends
        (Drifting([0.5, 0.5], swing=0.2, period=90_000.0), 70_000),
    ],
    ids=str,
)
def test_the_two_comparisons_differ_by_what_the_best_fixed_arm_loses(environment, horizon):
    """The fixed arm is the one whose means, asked step by step, have the largest sum."""
    fixed = dataclasses.replace(environment, against="fixed arm")
    options = {"horizon": horizon, "replications": 3, "seed": 1}
    first = simulate(UCB1(), environment, **options).regret[0, :, -1]
    second = simulate(UCB1(), fixed, **options)
    gap, best = compile_alone(environment.gap), compile_alone(fixed.best)
    for replication in range(3):
        world = environment.open(counter_key(1, replication, "environment"), horizon)
        rival = fixed.open(counter_key(1, replication, "environment"), horizon)
        gaps = [[gap(world, t, k) for k in range(environment.n_arms)] for t in range(1, horizon + 1)]
        lost = np.sum(gaps, axis=0)  # by each arm, against the best of each step
        assert first[replication] - second.regret[0, replication, -1] == pytest.approx(lost.min())
        assert all(best(rival, t, int(lost.argmin())) for t in range(1, horizon + 1))


def test_a_random_walk_moves_as_told_and_stays_inside():
    walk = RandomWalk([0.5] * 200, deviation=0.01, every=5)
    world = walk.open(counter_key(3, "world"), 100)
    assert world.begins.tolist() == list(range(0, 100, 5))
    moves = np.diff(world.means, axis=0)
    assert abs(moves.std() - 0.01) < 4 * 0.01 / np.sqrt(2 * moves.size)
    wild = RandomWalk([0.1, 0.9], deviation=1.0, every=1).open(counter_key(4, "world"), 2000).means
    assert wild.min() >= 0.0
    assert wild.max() <= 1.0
    assert np.abs(np.corrcoef(wild.T)[0, 1]) < 0.2


def test_environments_know_their_changes():
    assert Phases([[0.1], [0.2], [0.3]], lengths=[10, 20, 5]).changes(25) == [11]
    assert Switching([0.1, 0.9], period=40).changes(120) == [41, 81]
    assert Published("garivier-moulines-2").changes(1000) == []
    with pytest.raises(UserError, match="did you mean 'besson-1'"):
        Published("beson-1")


@pytest.mark.parametrize(
    ("alarms", "single", "expected"),
    [
        ([], False, (300.0, 2.0, 0.0)),
        ([(101, 0)], False, (0.0, 1.0, 0.0)),
        ([(100, 0)], False, (300.0, 2.0, 1.0)),
        ([(110, 0), (111, 1)], False, (9.0, 1.0, 1.0)),
        ([(110, 0), (111, 1)], True, (9.0, 1.0, 0.0)),
        ([(110, 0), (111, 0), (211, 0)], True, (9.5, 0.0, 1.0)),
    ],
)
def test_detection_is_counted(alarms, single, expected):
    found = detection(alarms, [101, 201], 300, single)
    assert tuple(found.values()) == expected
    assert list(found) == ["detection delay", "missed changes", "false alarms"]


def test_a_simulation_reports_detection_where_there_is_any():
    policy = Restarting(KLUCB(), GLR(delta=0.01, every=5, spacing=5), exploration=0.1)
    curves = simulate([policy, UCB1()], Published("besson-3"), horizon=4000, replications=10, seed=1)
    report = curves.report(policy)
    assert 0.0 < report["detection delay"] < 500.0
    assert report["alarms"] >= report["false alarms"]
    assert report["missed changes"] < 2.0
    assert curves.report("UCB1") == {}
    still = simulate(policy, Published("garivier-moulines-2"), horizon=100, replications=1, seed=1)
    assert list(still.report(policy)) == ["alarms"]


def test_what_forgets_comes_first_on_the_first_published_problem():
    """T = 10^4, gamma = 1 - 1/(4 sqrt T), a window of 4 sqrt(T ln T), and one bonus for all: not that of D-UCB's theorem."""
    horizon = 10_000
    policies = [
        Windowed(UCB1(scale=0.5), width=round(4.0 * math.sqrt(horizon * math.log(horizon)))),
        Discounted(UCB1(scale=0.5), gamma=1.0 - 0.25 / math.sqrt(horizon)),
        Exp3S(changes=2),
        UCB1(scale=0.5),
    ]
    world = Published("garivier-moulines-1")
    assert world.changes(horizon) == [3001, 5001]
    curves = simulate(policies, world, horizon=horizon, replications=40, seed=3)
    final = curves.regret[:, :, -1]
    apart = np.diff(final, axis=0)  # paired: all face the same rewards
    errors = apart.std(axis=1, ddof=1) / math.sqrt(apart.shape[1])
    assert (apart.mean(axis=1) > 2.0 * errors).all(), final.mean(axis=1)
