"""What the simulator says about environments and policies of other packages, and about a run itself."""

import warnings
from collections import namedtuple
from dataclasses import dataclass

import pytest

from abex import MOSS, UCB1, Bernoulli, Player, Uniform, UserError, simulate
from abex.cli import main
from abex.environments import Environment
from abex.graphs import complete
from abex.policies.learner import Learner
from abex.policies.means import Means, learn_mean, new_means
from abex.simulation import as_checkpoints, check_setting, play_replication
from tests.each import each

World = namedtuple("World", "odd first loss")


@dataclass(frozen=True)
class Odd(Environment):
    """Pays ``odd`` for arm 1 from step ``first`` on, 1/2 else; arm 0 loses ``loss``."""

    odd: float
    first: int = 1
    loss: float = 0.0
    n_arms = 2

    def open(self, key, horizon):
        return World(self.odd, self.first, self.loss)

    @staticmethod
    def draw(world, t, arm):
        return world.odd if arm == 1 and t >= world.first else 0.5

    @staticmethod
    def gap(world, t, arm):
        return world.loss if arm == 0 else 0.0

    @staticmethod
    def best(world, t, arm):
        return arm == 1


@dataclass(frozen=True)
class Coin(Odd):
    """Pays True or False."""

    @staticmethod
    def draw(world, t, arm):
        return arm == 1

    odd: float = 1.0


def played(environment, graph=None, interpreted=False, policy=UCB1()):  # noqa: B008
    return play_replication(policy, environment, graph, as_checkpoints(1, 60), 1, 0, interpreted=interpreted)


@each("interpreted", [False, True])
@each(
    ("odd", "shown"),
    [(10.0, "10"), (-3.0, "-3"), (float("nan"), "nan"), (float("inf"), "inf"), (1.0 + 1e-9, "1")],
)
def test_a_reward_outside_0_to_1_is_refused_by_name(odd, shown, interpreted):
    environment = Odd(odd, first=17)
    with pytest.raises(UserError) as caught:
        played(environment, complete(2), interpreted)
    words = f"Odd(odd={odd!r}, first=17, loss=0.0) pays {shown} for arm 1 at step 17: "
    assert str(caught.value) == words + "draw must return a number from 0 to 1"
    assert len(str(caught.value)) < 200


def test_the_simulator_refuses_such_an_environment_in_every_thread():
    with pytest.raises(UserError, match="pays 10 for arm 1 at step"):
        simulate(UCB1(), Odd(10.0), horizon=50, replications=5, workers=2, progress=False)


@each("interpreted", [False, True])
@each("environment", [Odd(0.0), Odd(1.0), Odd(1.0, loss=-0.5), Coin()])
def test_every_reward_from_0_to_1_is_a_reward(environment, interpreted):
    result = played(environment, interpreted=interpreted)
    assert result.state.observations.sum() == 60
    assert result.regret[-1] == environment.loss * (60 - result.optimal_pulls[-1])


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_a_regret_that_is_no_number_is_refused_by_name(loss):
    with pytest.raises(UserError, match=rf"counts a regret of {loss:g} for arm 0 at step \d+: gap must"):
        played(Odd(1.0, loss=loss))


@dataclass(frozen=True)
class Dividing(Learner[Means]):
    """Divides by the step that is left."""

    def start(self, setting):
        return new_means(Means, setting.n_arms)

    @staticmethod
    def select(state, t, rng):
        return int(1.0 / (7 - t)) % 2

    learn = staticmethod(learn_mean)


def test_a_kernel_that_divides_by_zero_is_named():
    with pytest.raises(
        UserError, match=r"a kernel of Dividing or of Bernoulli\(.*\) divides by zero"
    ) as caught:
        played(Bernoulli([0.5, 0.6]), interpreted=True, policy=Dividing())
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_nanoseconds_leave_out_compiling_and_the_start_of_a_call(monkeypatch):
    clock = {"now": 0, "compiled": False}

    def play(run, first, last):
        clock["now"] += 1_000 + 50 * (last - first + 1)
        if not clock["compiled"]:
            clock["now"] += 10**9
            clock["compiled"] = True

    monkeypatch.setattr("abex.simulation.replication.compiled_loop", lambda *kernels: play)
    monkeypatch.setattr("abex.simulation.replication.time.thread_time_ns", lambda: clock["now"])
    for horizon in (1, 10, 3_000_000):
        clock["compiled"] = False
        result = play_replication(Uniform(), Bernoulli([0.5, 0.6]), None, as_checkpoints(1, horizon), 1, 0)
        assert result.nanoseconds == 50.0


def test_a_horizon_that_nobody_can_wait_for_is_refused_wherever_it_comes_from():
    with pytest.raises(UserError, match="horizon must be at most 1e"):
        check_setting([UCB1()], Bernoulli([0.5, 0.6]), None, 10**15)


def test_moss_beyond_its_horizon_says_so(capsys):
    with pytest.warns(UserWarning, match=r"MOSS\(horizon=50\) is tuned for 50 steps and plays 80"):
        curves = simulate(MOSS(horizon=50), Bernoulli([0.5, 0.6]), horizon=80, replications=2, progress=False)
    assert curves.reports[0]["observations past horizon"] == [30.0, 30.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simulate(
            [MOSS(), MOSS(horizon=80)], Bernoulli([0.5, 0.6]), horizon=80, replications=2, progress=False
        )
    player = Player(MOSS(horizon=5), n_arms=2, seed=0)
    for _ in range(8):
        player.update(player.select(), 1.0)
    assert player.report() == {"observations past horizon": 3.0}


def test_the_command_line_warns_in_one_sentence(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        main(
            [
                "simulate",
                "--policy",
                "MOSS(horizon=50)",
                "--arms",
                "0.5,0.6",
                "--horizon",
                "80",
                "--replications",
                "2",
            ]
        )
    err = capsys.readouterr().err
    assert err.startswith("abex: warning: MOSS(horizon=50) is tuned for 50 steps and plays 80: ")
    assert err.count("\n") == 1
