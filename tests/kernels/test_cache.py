"""Compiled code on disk: nothing foreign or damaged is ever loaded, and nothing that goes wrong with it is an error."""

import os
import pickle
import stat
import threading
import warnings
from collections import namedtuple

import numpy as np
import pytest

import abex.kernels.cache
import abex.kernels.compiling
from abex import UCB1, Bernoulli
from abex.kernels import CompilerWarning, cache_folder, compiled
from abex.kernels.cache import KernelCache, kinds_described, make_callable
from abex.policies.policy import Setting
from abex.support.private_cache import read_entry, write_entry
from tests.kernels.test_kernels import run

KEY = b"k" * 32


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache of its own."""
    monkeypatch.setattr(abex.kernels.compiling, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(KernelCache, "_works", True)
    return tmp_path


def make():
    """A compiled function that counts as ours."""

    def thrice(values, at):
        return values[at] * 3.0

    thrice.__module__ = "abex.support.errors"
    return compiled()(thrice)


def play(function):
    """Its value, and whether it came from the disk."""
    value = function(np.arange(3.0), 2)
    return value, sum(function.stats.cache_hits.values())


def entries(folder):
    return sorted(folder.glob("*.kernel"))


def test_compiled_code_is_kept_and_loaded(folder):
    assert play(make()) == (6.0, 0)
    assert len(entries(folder)) == 1
    assert play(make()) == (6.0, 1)
    assert stat.S_IMODE(entries(folder)[0].stat().st_mode) == 0o600


class Planted:
    """A pickle that writes a file when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_what_is_damaged_or_planted_is_compiled_anew_and_never_unpickled(folder):
    play(make())
    (path,) = entries(folder)
    good = path.read_bytes()
    trap = folder / "trap"
    damaged = [
        b"",
        good[:1],
        good[:40],
        good[:-1],
        good + b"x",
        pickle.dumps(Planted(trap)),
        good[:46] + pickle.dumps(Planted(trap)),
    ]
    for content in damaged:
        path.write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert play(make()) == (6.0, 0)
        assert read_entry(path, b"another key") is None  # and it is deleted then
        assert not path.exists()
        path.write_bytes(good)
    assert not trap.exists()
    assert play(make()) == (6.0, 1)


def test_every_flipped_bit_is_noticed(tmp_path):
    path = tmp_path / "entry"
    write_entry(path, KEY, b"machine code")
    good = path.read_bytes()
    for bit in range(8 * len(good)):
        flipped = bytearray(good)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        assert read_entry(path, KEY) is None
        assert not path.exists()
    path.write_bytes(good)
    assert read_entry(path, KEY) == b"machine code"
    assert read_entry(path, b"another") is None


def test_a_file_of_another_user_is_not_read(tmp_path, monkeypatch):
    path = tmp_path / "entry"
    write_entry(path, KEY, b"machine code")
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    assert read_entry(path, KEY) is None
    assert path.exists()


def test_only_plain_files_are_read(tmp_path):
    path = tmp_path / "entry"
    write_entry(path, KEY, b"machine code")
    (tmp_path / "link").symlink_to(path)
    os.mkfifo(tmp_path / "pipe")  # opening one would wait for a writer
    (tmp_path / "folder").mkdir()
    for name in ("link", "pipe", "folder", "nothing"):
        assert read_entry(tmp_path / name, KEY) is None


def fresh_folder():
    cache_folder.cache_clear()
    try:
        return cache_folder()
    finally:
        cache_folder.cache_clear()


def test_the_folder_is_the_users_own_and_nobody_elses_business(tmp_path, monkeypatch):
    monkeypatch.setenv("ABEX_CACHE", str(tmp_path / "new"))
    folder = fresh_folder()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o755)
    assert fresh_folder() == folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_folder_of_another_user_is_refused_in_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("ABEX_CACHE", str(tmp_path))
    (tmp_path / "kernels").mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: (tmp_path / "kernels").stat().st_uid + 1)
    with pytest.warns(CompilerWarning, match="belongs to another user") as caught:
        assert fresh_folder() is None
    assert len(caught) == 1
    assert "\n" not in str(caught[0].message)


def test_a_link_that_another_user_laid_is_refused(tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    (tmp_path / "kernels").symlink_to(tmp_path / "mine")
    monkeypatch.setenv("ABEX_CACHE", str(tmp_path))
    if os.geteuid() != 0:
        pytest.skip("needs root (who alone can give a link away)")
    os.chown(tmp_path / "kernels", 12345, -1, follow_symlinks=False)
    with pytest.warns(CompilerWarning, match="belongs to another user"):
        assert fresh_folder() is None


def test_a_file_in_the_place_of_the_folder_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("ABEX_CACHE", str(tmp_path / "file"))
    with pytest.warns(CompilerWarning, match="name a folder of your own"):
        assert fresh_folder() is None


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), TypeError("private")])
def test_a_full_disk_or_another_numba_costs_a_warning_and_no_more(folder, monkeypatch, error):
    def fail(*arguments):
        raise error

    monkeypatch.setattr(abex.kernels.cache, "write_entry", fail)
    with pytest.warns(CompilerWarning, match="compiled code is not kept"):
        assert play(make()) == (6.0, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is said once
        assert play(make()) == (6.0, 0)
    assert list(folder.iterdir()) == []


def test_a_write_that_fails_leaves_nothing_behind(tmp_path, monkeypatch):
    def fail(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        write_entry(tmp_path / "entry", KEY, b"machine code")
    assert list(tmp_path.iterdir()) == []


def test_readers_and_writers_at_once_see_whole_entries(tmp_path):
    path = tmp_path / "entry"
    contents = {bytes([n]) * 20_000 for n in range(4)}
    seen = set()

    def write(content):
        for _ in range(30):
            write_entry(path, KEY, content)
            seen.add(read_entry(path, KEY))

    threads = [threading.Thread(target=write, args=[content]) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen <= contents
    assert [p.name for p in tmp_path.iterdir()] == ["entry"]


class Codegen:
    def __init__(self, cpu):
        self.cpu = cpu

    def magic_tuple(self):
        return ("triple", self.cpu, "+avx")


def test_the_key_knows_options_processor_and_types(tmp_path):
    import numba

    function, types = make().py_func, (numba.float64,)
    places = {
        KernelCache(tmp_path, function, [], options)._place(kinds, Codegen(cpu))
        for options in ("plain", "boundscheck")
        for cpu in ("generic", "znver4")
        for kinds in (types, (numba.float32,), numba.float64(numba.float64))
    }
    assert len(places) == 12


def test_records_of_other_classes_are_not_mistaken_for_ours():
    import numba

    one = namedtuple("Pair", "left right")
    other = namedtuple("Pair", "right left")
    one.__module__ = other.__module__ = "abex.support.errors"
    kinds = [(numba.typeof(pair(1.0, 2.0)),) for pair in (one, other)]
    assert str(kinds[0]) == str(kinds[1])  # Numba's names are alike
    assert kinds_described(kinds[0]) != kinds_described(kinds[1])
    one.__module__ = "__main__"
    assert kinds_described(kinds[0]) is None


def test_code_from_the_disk_does_not_make_the_whole_compiler_ready(tmp_path):
    """Its names are there without; `numba.np.arraymath` is what Numba imports only to compile."""
    code = (
        "import sys; from abex import *; simulate('ABE', Bernoulli([.4, .6]), horizon=50, replications=1);"
        "print('numba.np.arraymath' in sys.modules)"
    )
    assert [run(code, ABEX_CACHE=str(tmp_path)) for _ in range(2)] == ["True", "False"]


def test_code_from_the_disk_that_names_what_is_missing_gets_the_whole_compiler():
    class Target:
        refreshed = 0

        def refresh(self):
            Target.refreshed += 1

    from numba.core.registry import cpu_target
    from numba.core.runtime import rtsys

    rtsys.initialize(cpu_target.target_context)  # once a process, by whoever comes first
    target = Target()
    target.__dict__.update(vars(cpu_target.target_context))
    make_callable(["Py_DecRef", "PyExc_IndexError"], target)
    assert Target.refreshed == 0
    make_callable(["Py_DecRef", "no_such_function"], target)
    assert Target.refreshed == 1


def test_compiled_code_is_stale_when_the_module_of_a_record_changes():
    """The formula of an index stands beside its state, in a module that the kernel of `select` does not import."""
    import numba

    state = UCB1().start(Setting(3))
    _, modules = kinds_described((numba.typeof(state),))
    assert {"abex.policies.ucb", "abex.samplers.scan"} <= modules
    assert Bernoulli.__module__ not in modules
