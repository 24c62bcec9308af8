"""Environments beyond their contract: reward tables from files, and wrong inputs."""

import numpy as np
import pytest

from abex import Bernoulli, Beta, ClippedGaussian, Drifting, Switching, Table, Uniform, UserError, simulate
from tests.each import each


def test_a_table_may_be_a_file_that_is_mapped_not_read(tmp_path):
    rewards = np.random.default_rng(1).random((500, 3)).astype(np.float32)
    path = tmp_path / "rewards.npy"
    np.save(path, rewards)
    mapped = Table(path)
    assert isinstance(mapped.rewards, np.memmap)
    options = {"horizon": 500, "replications": 2, "progress": False}
    assert np.array_equal(
        simulate(Uniform(), mapped, **options).regret, simulate(Uniform(), Table(rewards), **options).regret
    )


@each("content", [b"", b"\x93NUMPY\x01", b"hello"])
def test_a_damaged_table_is_named(tmp_path, content):
    path = tmp_path / "rewards.npy"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"rewards\.npy"):
        Table(path)


def test_a_table_that_would_execute_code_is_refused(tmp_path):
    path = tmp_path / "rewards.npy"
    np.save(path, np.array([[{"a": 1}]], dtype=object), allow_pickle=True)
    with pytest.raises(UserError, match="cannot read the reward table"):
        Table(path)


@each(
    ("make", "message"),
    [
        (lambda: Table([[0.5, 1.5]]), "got 1.5 at step 1, arm 1"),
        (lambda: Table([[0.5, float("nan")]]), "got nan"),
        (lambda: Table([0.5]), "rows and arms"),
        (lambda: Table([["a"]]), "must hold numbers"),
        (lambda: Table("nowhere.npy"), "nowhere"),
        (lambda: Beta([0.0, 0.5]), "means must lie in"),
        (lambda: Beta([0.5], strength=0), "strength must be >= 1e-100"),
        (lambda: ClippedGaussian([0.5], deviation=-1), "deviation must be >= 1e-100"),
        (lambda: Switching([0.5], period=0), "period must be a whole number >= 1"),
        (lambda: Drifting([0.5], swing=2), "swing must be"),
        (lambda: Bernoulli({}), "means"),
    ],
)
def test_a_wrong_environment_is_refused_in_one_sentence(make, message):
    with pytest.raises(UserError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_a_switching_arm_really_switches():
    environment = Switching([0.0, 1.0], period=10)
    curves = simulate("FollowTheLeader", environment, horizon=2_000, replications=5, progress=False)
    assert (curves.regret[0, :, -1] > 200).all()  # the leader of the past is wrong half of the time
