"""A disk that is really full or read-only, in a process of its own: one sentence, and what was stored stays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from abex.lab.experiments import read_experiment, run_experiment
from abex.lab.results import Store
from tests.lab.sweep_cells import dump
from tests.waiting import PATIENCE

resource = pytest.importorskip("resource", reason="limits on file sizes are a matter of Unix")
FILE = """
name = "disk"
horizon = 300
seeds = 300
checkpoints = 60
policies = ["Uniform"]
[problem.environment]
name = "Bernoulli"
means = [0.9, 0.8, 0.7]
"""


def run(
    folder: Path, out: Path, *, limit: int | None = None, prefix: tuple[str, ...] = ()
) -> subprocess.CompletedProcess:
    """`abex run`, with files that may not grow beyond ``limit`` bytes."""
    (folder / "disk.toml").write_text(FILE)

    def restrict() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    command = [
        sys.executable,
        "-m",
        "abex",
        "run",
        "disk.toml",
        "--results",
        str(out),
        "--workers",
        "1",
        "--json",
    ]
    return subprocess.run(
        [*prefix, *command], cwd=folder, capture_output=True, text=True, timeout=PATIENCE, preexec_fn=restrict,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=False,
    )  # fmt: skip


def computed(folder: Path) -> Path:
    """The folder with all of the experiment's cells in its store; what is compiled for them goes to the cache without a limit."""
    (folder.parent / "disk.toml").write_text(FILE)
    with Store(folder / "cells.sqlite") as store:
        run_experiment(read_experiment(folder.parent / "disk.toml"), store)
    return folder


def check_refusal(done: subprocess.CompletedProcess) -> None:
    assert done.returncode == 2
    assert done.stderr.startswith("abex: cannot write to the store")
    assert done.stderr.count("\n") == 1
    assert "kept" in done.stderr


def test_a_limit_on_file_sizes_stops_a_run_and_the_next_one_goes_on(tmp_path):
    """Works without any privilege: the system refuses to let the store grow, as a quota does."""
    whole, out = computed(tmp_path / "whole"), tmp_path / "out"
    check_refusal(run(tmp_path, out, limit=150_000))
    with Store(out / "cells.sqlite") as store:
        kept = store.keys()
        assert 0 < len(kept) < 300
        assert not store.damaged()
    assert run(tmp_path, out).returncode == 0
    with Store(out / "cells.sqlite") as ours, Store(whole / "cells.sqlite") as theirs:
        assert kept < ours.keys()
        assert dump(ours) == dump(theirs)


def needs_mounts() -> None:
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs mounts of one's own (a machine that permits `unshare -rm`)")


def test_a_folder_that_may_only_be_read_is_enough_where_it_holds_everything(tmp_path):
    """And where a cell is missing, one sentence says why it stays so."""
    needs_mounts()
    out, script = tmp_path / "out", 'mount --bind out out && mount -o remount,bind,ro out && "$@"'
    computed(out)
    done = run(tmp_path, out, prefix=("unshare", "-rm", "sh", "-c", script, "sh"))
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert "may only be read" in done.stderr
    with Store(out / "cells.sqlite") as store:
        store.remove(sorted(store.keys())[:1])
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    done = run(tmp_path, out, prefix=("unshare", "-rm", "sh", "-c", script, "sh"))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "the file or its folder may not be written" in done.stderr
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_a_full_file_system_stops_a_run(tmp_path):
    """A file system of 300 kB, mounted in a name space of its own, where the machine permits that."""
    needs_mounts()
    (tmp_path / "small").mkdir()
    computed(tmp_path / "whole")
    script = 'mount -t tmpfs -o size=300k none small && "$@"; code=$?; cp small/cells.sqlite saved.sqlite; exit $code'
    done = run(tmp_path, Path("small"), prefix=("unshare", "-rm", "sh", "-c", script, "sh"))
    check_refusal(done)
    assert "disk is full" in done.stderr
    with Store(tmp_path / "saved.sqlite") as store:
        assert 0 < len(store) < 300
        assert not store.damaged()
