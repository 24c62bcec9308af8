"""The compiler's room: what is cached, when it is stale, and what happens where nothing can be written."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import abex.kernels
from abex.kernels import address_of, call_at, compiled, prune, source_stamp

PROGRAM = "from abex import *; print(simulate(UCB1(), Bernoulli([.4, .6]), horizon=200, replications=2).regret.sum())"


def run(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_abex_imports_nothing_heavy():
    heavy = ("numba", "scipy", "matplotlib", "sklearn", "pandas", "rich")
    assert run(f"import sys, abex; print([m for m in {heavy} if m in sys.modules])") == "[]"


def test_compiled_code_is_kept_and_used_again(tmp_path):
    first = run(PROGRAM, ABEX_CACHE=str(tmp_path))
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nb?")}
    assert files
    assert run(PROGRAM, ABEX_CACHE=str(tmp_path)) == first
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nb?")} == files


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert run(PROGRAM, ABEX_CACHE=str(blocked)) == run(PROGRAM, ABEX_CACHE=str(tmp_path / "good"))


def test_the_stamp_follows_the_sources(tmp_path, monkeypatch):
    (tmp_path / "a.py").write_text("x = 1")
    monkeypatch.setattr(abex.kernels, "PACKAGE", tmp_path)
    stamps = []
    for text in ("x = 1", "x = 2", "x = 1"):
        (tmp_path / "a.py").write_text(text)
        source_stamp.cache_clear()
        stamps.append(source_stamp())
    source_stamp.cache_clear()
    assert stamps[0] == stamps[2] != stamps[1]


def test_only_stamps_long_unused_are_pruned(tmp_path):
    folders = {name: tmp_path / name for name in ("mine", "old", "recent")}
    for folder in folders.values():
        folder.mkdir()
    long_ago = time.time() - 30 * 86_400
    for name in ("mine", "old"):
        os.utime(folders[name], (long_ago, long_ago))
    prune(tmp_path, keep=folders["mine"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "recent"]
    prune(Path(tmp_path / "nowhere"), keep=folders["mine"])


def test_a_foreign_policy_that_allocates_is_compiled_all_the_same(tmp_path):
    module = tmp_path / "greedy_module.py"
    module.write_text(
        "from dataclasses import dataclass\n"
        "import numpy as np\n"
        "from abex import Policy\n"
        "from abex.policies.means import learn_mean, new_means\n"
        "@dataclass(frozen=True)\n"
        "class Allocating(Policy):\n"
        "    def start(self, setting):\n"
        "        return new_means(setting.n_arms)\n"
        "    @staticmethod\n"
        "    def select(state, t, rng):\n"
        "        scores = np.zeros(state.means.size)\n"
        "        for k in range(scores.size):\n"
        "            scores[k] = state.means[k]\n"
        "        return int(np.argmax(scores))\n"
        "    update = staticmethod(learn_mean)\n"
    )
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from greedy_module import Allocating\n"
        "from abex import simulate, Bernoulli\n"
        "print(simulate(Allocating(), Bernoulli([0.0, 1.0]), horizon=100, replications=2).regret[0, :, -1].tolist())\n"
    )
    assert run(code) == "[1.0, 1.0]"


class Scaled(NamedTuple):
    values: np.ndarray
    factor: float


@compiled()
def scaled_item(record, at):
    """Item ``at`` of a record, which must have one."""
    if at >= record.values.size:
        raise IndexError("beyond the end")
    record.values[at] *= record.factor
    return float(record.values[at])


@compiled()
def through_address(address, record, at):
    """The same, called by address."""
    return call_at(address, (record, at))


def test_a_function_called_by_address_gets_its_records_and_passes_errors_on():
    record = Scaled(np.arange(1.0, 4.0), 2.0)
    address = address_of(scaled_item, record, 0)
    assert through_address(address, record, 1) == 4.0
    assert record.values.tolist() == [1.0, 4.0, 3.0]
    with pytest.raises(IndexError, match="beyond the end"):
        through_address(address, record, 3)
    single = Scaled(np.ones(2, np.float32), 0.5)  # another type is another function
    assert address_of(scaled_item, single, 0) != address
    assert through_address(address_of(scaled_item, single, 0), single, 0) == 0.5


def test_calls_by_address_are_for_compiled_code():
    with pytest.raises(TypeError, match="compiled code"):
        call_at(1, (2.0,))
