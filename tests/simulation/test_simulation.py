"""The simulator: paired rewards, workers that change nothing, prompt stops, clear refusals."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest

from abex import ABE, UCB1, Bernoulli, Curves, EpsilonGreedy, Table, Thompson, Uniform, UserError, simulate
from abex.graphs import complete
from abex.policies.learner import Learner
from abex.policies.means import Means, learn_mean, new_means
from abex.simulation import as_checkpoints, play_replication
from abex.simulation.running import run_in_threads
from abex.support.randomness import counter_key
from tests.each import each
from tests.waiting import PATIENCE

ARMS = Bernoulli([0.3, 0.6, 0.5])
QUICK = {"horizon": 300, "replications": 4, "seed": 5, "progress": False}


@dataclass(frozen=True)
class Recorder(Learner[Means]):
    """Defined here, outside the package: plays round robin and keeps the last reward of each arm."""

    def start(self, setting):
        return new_means(Means, setting.n_arms)

    @staticmethod
    def select(state, t, rng):
        return (t - 1) % state.means.size

    learn = staticmethod(learn_mean)


def test_all_policies_face_the_same_rewards():
    """Reward of arm k at step t in replication r is the environment's, whoever asks: full feedback shows all of them."""
    for replication in (0, 3):
        world = ARMS.open(counter_key(1, replication, "environment"), 50)
        with np.errstate(over="ignore"):
            gained = sum(np.array([ARMS.draw(world, t, arm) for arm in range(3)]) for t in range(1, 51))
        for policy in (UCB1(), EpsilonGreedy(), Thompson()):
            state = play_replication(policy, ARMS, complete(3), as_checkpoints(1, 50), 1, replication).state
            sums = state.successes - 1.0 if isinstance(policy, Thompson) else state.means * state.observations
            assert sums == pytest.approx(gained), policy


def test_adding_a_policy_or_a_replication_changes_no_other_number():
    alone = simulate(UCB1(), ARMS, **QUICK)
    together = simulate([Thompson(), UCB1()], ARMS, **QUICK | {"replications": 7})
    assert np.array_equal(alone.regret[0], together.regret[1, :4])


def test_workers_and_pieces_change_nothing(monkeypatch):
    reference = simulate([UCB1(), Thompson()], ARMS, workers=1, **QUICK)
    monkeypatch.setattr("abex.simulation.replication.FIRST_CHUNK", 21)
    for workers in (1, 2, 8):
        assert np.array_equal(
            simulate([UCB1(), Thompson()], ARMS, workers=workers, **QUICK).regret, reference.regret
        )


def test_checkpoints_do_not_change_the_play():
    few = simulate(UCB1(), ARMS, checkpoints=[10, 300], **QUICK)
    many = simulate(UCB1(), ARMS, checkpoints=300, **QUICK)
    assert few.checkpoints.tolist() == [10, 300]
    assert np.array_equal(few.regret[..., -1], many.regret[..., -1])
    assert np.array_equal(few.regret[..., 0], many.regret[0, :, many.checkpoints.tolist().index(10)][None])


def test_pseudo_regret_counts_pulls_never_observations():
    curves = simulate(Uniform(), Bernoulli([0.0, 1.0]), graph=complete(2), **QUICK)
    assert np.array_equal(
        curves.regret + curves.optimal_pulls, np.broadcast_to(curves.checkpoints, curves.regret.shape)
    )


def test_the_table_knows_its_regret_in_hindsight():
    rewards = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    curves = simulate(
        Recorder(), Table(rewards), horizon=3, replications=1, checkpoints=[1, 2, 3], progress=False
    )
    # plays 0, 1, 0 and gains 0, 0, 1; the best fixed arm has gained 1, 1, 2
    assert curves.regret[0, 0].tolist() == [1.0, 1.0, 1.0]


def test_a_policy_from_outside_the_package_plays_like_ours():
    curves = simulate([Recorder(), UCB1()], ARMS, **QUICK)
    assert curves.regret[0, 0, -1] == pytest.approx(100 * 0.3 + 100 * 0.1)


@each("where", ["workers=2", "executor=ThreadPoolExecutor(2)"])
def test_a_module_that_simulates_with_its_own_policy_can_be_imported(where, tmp_path):
    """While it is being imported, no other thread gets the module from Python, and the compiler asks for it."""
    (tmp_path / "own.py").write_text(f"""
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from abex import Bernoulli, Policy, kernel, simulate
from abex.policies.means import Means, new_means

@dataclass(frozen=True)
class InTurn(Policy[Means]):
    def start(self, setting):
        return new_means(Means, setting.n_arms)

    @staticmethod
    @kernel
    def select(state, t, rng):
        return (t - 1) % 2

    @staticmethod
    @kernel
    def update(state, t, arm, seen, reward, rng):
        pass

print(simulate(InTurn(), Bernoulli([0.5, 0.25]), horizon=100, replications=2, {where}).mean("InTurn")[-1])
""")
    played = subprocess.run(
        [sys.executable, "-c", "import own"], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE
    )
    assert (played.stdout.strip(), played.stderr) == ("12.5", "")


@each(
    ("change", "message"),
    [
        ({"horizon": 0}, "horizon must be a whole number >= 1"),
        ({"horizon": 1e12}, "horizon must be at most"),
        ({"horizon": 10.5}, "horizon"),
        ({"replications": 0}, "replications"),
        ({"seed": -3}, "seed must be a whole number >= 0, got -3"),
        ({"workers": 0}, "workers"),
        ({"checkpoints": [0]}, "checkpoints"),
        ({"checkpoints": [301]}, "checkpoints must be at most 300"),
        ({"policies": []}, "policies is empty"),
        ({"policies": [UCB1(), UCB1()]}, "twice"),
        ({"policies": ["UCB9"]}, "did you mean 'UCB'"),
        ({"policies": [3]}, "policies must be"),
        ({"environment": [0.5]}, "environment must be"),
        ({"environment": Table([[0.5, 0.5]])}, "ends at step 1"),
        ({"graph": complete(4)}, "4 nodes but the environment has 3 arms"),
    ],
)
def test_what_cannot_be_played_is_refused_in_one_sentence(change, message):
    arguments = {"policies": UCB1(), "environment": ARMS, **QUICK} | change
    with pytest.raises(UserError, match=message) as caught:
        simulate(arguments.pop("policies"), arguments.pop("environment"), **arguments)
    assert "\n" not in str(caught.value)


@each("means", [[], [0.5, 1.5], [float("nan")], "x", [[0.5]], [-0.1]])
def test_wrong_means_are_refused(means):
    with pytest.raises(UserError, match="means"):
        Bernoulli(means)


def test_an_error_in_a_worker_stops_the_others():
    started, told = [], []

    def one(job, stopped):
        started.append(job)
        told.append(stopped)
        if job == 3:
            raise UserError("job 3")
        return job

    with pytest.raises(UserError, match="job 3"):
        run_in_threads(one, range(10_000), 2)
    assert told[0]()
    assert len(started) < 100


@pytest.mark.parametrize("horizon", [300, 1_000_000])
def test_an_executor_of_ones_own_plays_the_same(horizon):
    """In blocks of many short replications, or of one long one."""
    played = {
        "environment": Bernoulli([0.9, 0.1]),
        "horizon": horizon,
        "replications": 3,
        "seed": 4,
        "delay": "Fixed(3)",
    }
    here = simulate([UCB1(), Thompson()], **played)
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as own:
        there = simulate([UCB1(), Thompson()], **played, executor=own)
    assert there.regret.tolist() == here.regret.tolist()
    assert there.optimal_pulls.tolist() == here.optimal_pulls.tolist()


def test_what_is_no_executor_or_a_broken_one_is_a_sentence():
    with pytest.raises(UserError, match=r"executor must be a concurrent\.futures\.Executor, got str"):
        simulate(UCB1(), Bernoulli([0.9, 0.1]), horizon=10, executor="dask")
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as own:
        own.submit(os.kill, os.getpid(), 0).result()
        with pytest.raises(BrokenExecutor):
            own.submit(os._exit, 1).result()
        with pytest.raises(UserError, match=r"^lost ProcessPoolExecutor: start a new one and run again"):
            simulate(UCB1(), Bernoulli([0.9, 0.1]), horizon=10, executor=own)


def test_ctrl_c_stops_promptly_and_cleanly():
    """A run of many minutes ends within seconds of SIGINT, with KeyboardInterrupt and nothing else."""
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # shells ignore it in the background
        "from abex import simulate, Bernoulli, Uniform\n"
        "simulate(Uniform(), Bernoulli([0.5, 0.6]), horizon=1000)\n"
        "print('ready', flush=True)\n"
        "simulate(Uniform(), Bernoulli([0.5, 0.6]), horizon=10**11, replications=8, workers=2)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )
    try:
        assert process.stdout.readline().strip() == "ready"
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode != 0
    assert error.strip().endswith("KeyboardInterrupt")


def test_progress_appears_only_when_it_takes_long(capsys, monkeypatch):
    monkeypatch.setattr("abex.support.progress.PATIENCE", 1e9)
    simulate(UCB1(), ARMS, **QUICK | {"progress": False})  # what must be compiled would be said
    simulate(UCB1(), ARMS, **QUICK | {"progress": True})
    assert capsys.readouterr().err == ""


def test_a_long_run_shows_a_bar_with_the_time_left(capsys, monkeypatch):
    from abex.support.progress import Progress

    monkeypatch.setattr("abex.support.progress.PATIENCE", 0.0)
    with Progress("work", total=10, show=True) as bar:
        for _ in range(5):
            bar.advance()
            time.sleep(0.03)
    shown = capsys.readouterr().err
    assert "work" in shown
    assert "left" in shown
    assert bar.done == 5


def test_ten_million_steps_leave_every_number_finite():
    result = play_replication(
        ABE(eta=2.0, c=1.0), Bernoulli([0.9, 0.8]), None, as_checkpoints(5, 10_000_000), 1, 0
    )
    assert np.isfinite(result.state.means).all()
    assert result.state.observations.sum() == 10_000_000
    assert abs(result.state.means - [0.9, 0.8]).max() < 0.05


def test_curves_come_back_from_a_file(tmp_path):
    curves = simulate([ABE(eta=1.0), UCB1()], ARMS, **QUICK)
    curves.save(tmp_path / "curves.npz")
    again = Curves.load(tmp_path / "curves.npz")
    assert again.policies == curves.policies
    assert again.about == curves.about
    assert again.reports == curves.reports
    for name in ("checkpoints", "regret", "optimal_pulls", "nanoseconds"):
        assert np.array_equal(getattr(again, name), getattr(curves, name))
