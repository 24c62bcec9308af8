"""The boundary to the compiler: what is compiled and how, and what arrives when it goes wrong."""

import os
import subprocess
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import abex.kernels.sources
from abex import Bernoulli, simulate
from abex.boosting.loop import address_of, call_at
from abex.kernels import (
    compile_as,
    compiled,
    compiling_progress,
    entry_of,
    on_compiling,
    source_stamp,
)
from abex.kernels.compiling_progress import CompilationStopped
from abex.policies.learner import Learner
from abex.policies.means import Means, learn_mean, new_means
from abex.support.private_cache import prune
from abex.support.progress import Progress
from abex.support.randomness import argmax

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
    heavy = ("numba", "scipy", "matplotlib", "sklearn", "pandas", "tqdm")
    assert run(f"import sys, abex; print([m for m in {heavy} if m in sys.modules])") == "[]"


def test_compiled_code_is_kept_and_used_again(tmp_path):
    first = run(PROGRAM, ABEX_CACHE=str(tmp_path))
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.kernel")}
    assert files
    assert run(PROGRAM, ABEX_CACHE=str(tmp_path)) == first
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.kernel")} == files


def test_the_stamp_follows_the_sources(tmp_path, monkeypatch):
    (tmp_path / "a.py").write_text("x = 1")
    monkeypatch.setattr(abex.kernels.sources, "PACKAGE", tmp_path)
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
        "from abex.policies.learner import Learner\n"
        "from abex.policies.means import learn_mean\n"
        "from abex.policies.means import Means, new_means\n"
        "@dataclass(frozen=True)\n"
        "class Allocating(Learner):\n"
        "    def start(self, setting):\n"
        "        return new_means(Means, setting.n_arms)\n"
        "    @staticmethod\n"
        "    def select(state, t, rng):\n"
        "        scores = np.zeros(state.means.size)\n"
        "        for k in range(scores.size):\n"
        "            scores[k] = state.means[k]\n"
        "        return int(np.argmax(scores))\n"
        "    learn = staticmethod(learn_mean)\n"
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
    return np.float64(record.values[at])


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


def test_an_entry_is_the_function_for_records_of_one_type():
    record, single = Scaled(np.arange(1.0, 4.0), 2.0), Scaled(np.ones(2, np.float32), 0.5)
    entry = entry_of(scaled_item, record, 0)
    assert entry(record, 1) == 4.0
    assert entry(record._replace(factor=3), 1) == 12.0
    with pytest.raises(IndexError, match="beyond the end"):
        entry(record, 3)
    assert entry_of(scaled_item, single, 0)(single, 0) == 0.5
    assert entry_of(len, record) is len  # not compiled


def test_calls_by_address_are_for_compiled_code():
    with pytest.raises(TypeError, match="compiled code"):
        call_at(1, (2.0,))
    assert call_at(scaled_item.py_func, (Scaled(np.ones(1), 3.0), 0)) == 3.0


def test_an_address_is_given_only_for_a_function_that_returns_a_double():
    @compiled()
    def as_it_is(values):
        return values[0]

    single = np.ones(1, np.float32)
    assert as_it_is(single) == 1.0  # compiled: it returns a float
    with pytest.raises(TypeError, match="returns float32, a call by address needs a double"):
        address_of(as_it_is, single)

    @compiled()
    def another(values):
        return values[0]

    assert through_address_alone(address_of(another, single), single) == 1.0  # compiled as a double


@compiled()
def through_address_alone(address, values):
    """A call by address with one argument."""
    return call_at(address, (values,))


def stumble(state, t):
    """A kernel of another package that fails at its fiftieth step."""
    if t == 50:
        raise RuntimeError("mine")
    state[0] += 1.0
    return t


def test_an_exception_of_anothers_kernel_arrives_as_it_is_and_nothing_is_played_again():
    @compiled(stumble)
    def play(state, steps):
        for t in range(steps):
            stumble(state, t)

    state = np.zeros(1)
    with pytest.raises(RuntimeError, match=r"^mine$") as caught:
        play(state, 100)
    assert state[0] == 50
    where = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (where.name, where.line) == ("stumble", 'raise RuntimeError("mine")')


@dataclass(frozen=True)
class Stumbling(Learner):
    def start(self, setting):
        return new_means(Means, setting.n_arms)

    @staticmethod
    def select(state, t, rng):
        if t == 50:
            raise RuntimeError("a policy's own")
        return 0

    learn = staticmethod(learn_mean)


def test_a_policy_that_raises_is_not_played_again():
    with pytest.raises(RuntimeError, match="a policy's own"):
        simulate(Stumbling(), Bernoulli([0.5, 0.5]), horizon=100, replications=1, workers=1)


def reciprocal(values, at):
    """A kernel of another package that may divide by zero."""
    return 1.0 / values[at]


def test_anothers_kernel_that_divides_by_zero_says_so():
    @compiled(reciprocal)
    def run(values, at):
        return reciprocal(values, at)

    values = np.array([4.0, 0.0])
    assert run(values, 0) == 0.25
    with pytest.raises(ZeroDivisionError):
        run(values, 1)


def test_who_wants_to_know_is_told_what_takes_long_to_compile(monkeypatch):
    told, waited = [], []

    class AtOnce(threading.Timer):
        """Rings when it is started, as one does beside a compiler that takes long."""

        def start(self):
            waited.append(self.interval)
            self.function(*self.args)

    monkeypatch.setattr(threading, "Timer", AtOnce)

    def tell(what, kept):
        told.append((what, kept))

    def twice(x):
        return x + x

    for _ in range(2):
        with on_compiling(tell), compile_as("the thing"):
            compiled()(twice)(1.0)
    assert waited == [compiling_progress.PATIENCE] * 2
    assert told == [("the thing", False)] * 2  # once for each who asked; code of other packages is not kept
    compiled()(twice)(1)
    assert len(told) == 2  # nobody asked


def test_a_line_says_so_where_a_bar_would_be_shown(capsys):
    with Progress("work", 1.0, show=True) as bar:
        bar._say_compiling("ABE", True)
        bar._say_compiling("Mine", False)
    with Progress("work", 1.0, show=False) as bar:
        assert bar._listening.pop_all()._exit_callbacks == type(bar._listening._exit_callbacks)()
    said = capsys.readouterr().err
    assert "compiling ABE ... kept for the next time\n" in said
    assert "compiling Mine ...\n" in said


def test_what_is_not_wanted_any_more_is_not_compiled():
    @compiled()
    def twice(x):
        return x + x

    with compile_as("unwanted", lambda: True), pytest.raises(CompilationStopped):
        twice(1.0)
    assert twice(1.0) == 2.0


def test_functions_of_other_people_may_call_our_kernels():
    import numba

    compiled(argmax)(lambda values, rng: argmax(values, rng))(np.arange(3.0), np.random.default_rng(0))

    @numba.njit
    def largest(values, rng):
        return argmax(values, rng) + min(2, 1)

    assert largest(np.array([1.0, 3.0, 2.0]), np.random.default_rng(0)) == 2


def test_kernels_become_part_of_their_callers(tmp_path):
    """A call hands over what the caller holds in registers, at every step; rare kernels alone are called."""
    code = (
        "import re; from abex import ABE, Bernoulli, simulate; from abex.graphs.feedback import reveal_bandit\n"
        "from abex.simulation.loop import compiled_loop\n"
        "policy, world = ABE(), Bernoulli([.4] * 9 + [.6])\n"
        "simulate(policy, world, horizon=50, replications=1, workers=1)\n"
        "(code,) = compiled_loop(policy.kernels(), world.rules(), reveal_bandit).inspect_llvm().values()\n"
        "called = set(re.findall(r' call .*?@(_ZN4abex\\w+)', code))\n"
        "rare = ('4play', 'bound_all_arms', 'scan_arms')\n"
        "print(len(called), [name for name in called if not any(one in name for one in rare)])\n"
    )
    assert run(code, ABEX_CACHE=str(tmp_path)) == "3 []"


def test_nothing_of_the_compiler_is_replaced(tmp_path):
    """Neither while anything is compiled nor afterwards; what is registered by its public interface is added to it."""
    code = (
        "import sys, numba, numba.np.arraymath; from types import FunctionType; from llvmlite import binding\n"
        "from abex import Bernoulli, simulate; from abex.boosting import AdaBoostMHClassifier\n"
        "def functions(scope, of):\n"
        "    for name, value in list(vars(scope).items()):\n"
        "        if isinstance(value, FunctionType): yield (of, name), value\n"
        "        elif isinstance(value, type) and value.__module__ == of: yield from functions(value, f'{of}.{name}')\n"
        "def everything():\n"
        "    names = [name for name in sys.modules if name.split('.')[0] in ('numba', 'llvmlite', 'scipy', 'numpy')]\n"
        "    return {at: value for name in names for at, value in functions(sys.modules[name], name)}\n"
        "before, during, optimise = everything(), {}, numba.core.codegen.CPUCodeLibrary.finalize\n"
        "from numba.core import event\n"
        "class Look(event.Listener):\n"
        "    def on_start(self, e): during or during.update(everything())\n"
        "    def on_end(self, e): pass\n"
        "event.register('numba:llvm_lock', Look())\n"
        "simulate('UCB1', Bernoulli([.4, .6]), horizon=9, replications=1)\n"
        "AdaBoostMHClassifier(3, calibrate=False).fit([[0.0], [1.0], [2.0]], [0, 1, 1])\n"
        "for then in (during, everything()):\n"
        "    print(len(before) > 5000, [at for at in before if then.get(at) is not before[at]])\n"
    )
    assert run(code, ABEX_CACHE=str(tmp_path)).split("\n") == ["True []"] * 2
