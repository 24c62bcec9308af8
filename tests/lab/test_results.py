from __future__ import annotations

import math
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

import abex.lab.results.claims
from abex.lab.results import CellResult, Claims, Store, key_of
from abex.lab.results.store import FORMAT, connect, format_of, prepare
from abex.support.errors import UserError
from tests.lab.sweep_cells import dump
from tests.waiting import PATIENCE, wait_until

ROOT = Path(__file__).parents[2]


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "cells.sqlite") as opened:
        yield opened


def some(store: Store, count: int = 5) -> list[dict]:
    cells = [{"kind": "test", "replication": r} for r in range(count)]
    store.put([(cell, CellResult({"x": np.arange(100.0) + r})) for r, cell in enumerate(cells)])
    return cells


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    st.dictionaries(
        st.text(max_size=5), arrays(st.sampled_from([np.float64, np.int32, np.uint8, bool]), array_shapes())
    ),
    st.dictionaries(st.text(max_size=5), st.floats(allow_nan=True, allow_infinity=True)),
)
def test_what_is_stored_comes_back_bit_for_bit(store, stored, numbers):
    store.put([({"kind": "any"}, CellResult(stored, numbers, {"seconds": 1.5}))])
    back = store.get({"kind": "any"})
    assert back.measured == {"seconds": 1.5}
    assert {name: np.float64(x).tobytes() for name, x in back.numbers.items()} == {
        name: np.float64(x).tobytes() for name, x in numbers.items()
    }
    assert back.arrays.keys() == stored.keys()
    for name, array in stored.items():
        assert back.arrays[name].dtype == array.dtype
        assert back.arrays[name].tobytes() == array.tobytes()


def test_the_key_depends_on_content_alone():
    assert key_of({"a": 1, "b": [1, 2]}) == key_of({"b": [1, 2], "a": 1})
    assert key_of({"a": 1}) != key_of({"a": 2})
    with pytest.raises(UserError, match="plain JSON"):
        key_of({"a": math.nan})
    with pytest.raises(UserError, match="plain JSON"):
        key_of({"a": np.arange(3)})


def test_the_dump_does_not_depend_on_order_or_times(tmp_path):
    dumps = []
    for order in (range(5), reversed(range(5))):
        with Store(tmp_path / f"{len(dumps)}.sqlite") as store:
            for r in order:
                store.put(
                    [
                        (
                            {"replication": r},
                            CellResult({"x": np.full(3, r)}, measured={"seconds": len(dumps) + r}),
                        )
                    ]
                )
            dumps.append(dump(store))
    assert dumps[0] == dumps[1]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE cells SET payload = x'00' || payload WHERE key = ?",
        "UPDATE cells SET payload = x'' WHERE key = ?",
        "UPDATE cells SET checksum = 'none' WHERE key = ?",
        "UPDATE cells SET cell = replace(cell, 'test', 'best') WHERE key = ?",
        "UPDATE cells SET cell = 'no json' WHERE key = ?",
        "UPDATE cells SET measured = '{' WHERE key = ?",
    ],
)
def test_a_damaged_entry_is_found_and_named_and_the_others_are_read(store, damage):
    cells = some(store)
    store._base.execute(damage, (key_of(cells[2]),))
    assert store.get(cells[2]) is None
    assert [key for key, _ in store.damaged()] == [key_of(cells[2])]
    assert sum(store.get(cell) is not None for cell in cells) == 4
    if "measured" in damage:
        assert len(list(store.measured())) == 4


def test_a_damaged_schema_whose_bytes_are_no_text_is_one_sentence(tmp_path):
    path = tmp_path / "cells.sqlite"
    Store(path).close()
    content = path.read_bytes()
    assert content.count(b"CREATE TABLE cells") == 1
    path.write_bytes(content.replace(b"CREATE TABLE cells", b"CREATE \xe0ABLE cells"))
    with pytest.raises(UserError, match="the file is damaged or not a store"):
        Store(path)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE experiments SET definition = '{\"name\":\"stady\"}' WHERE name = 'study-v1'",
        "UPDATE experiments SET definition = x'ff' WHERE name = 'study-v1'",
        "UPDATE experiments SET checksum = '' WHERE name = 'study-v1'",
        "UPDATE experiments SET name = 'stUdy-v1' WHERE name = 'study-v1'",
    ],
)
def test_a_damaged_definition_is_left_out_and_named_and_written_again(store, damage):
    store.save_experiment("study-v1", {"name": "study"})
    store.save_experiment("other-v1", {"name": "other"})
    store._base.execute(damage)
    assert list(store.experiments()) == ["other-v1"]
    assert [name.lower() for name in store.damaged_experiments()] == ["study-v1"]
    store.save_experiment("study-v1", {"name": "study"})
    assert store.experiments()["study-v1"] == {"name": "study"}


def test_no_flipped_bit_anywhere_in_the_file_gives_anything_but_a_sentence(tmp_path):
    path = tmp_path / "cells.sqlite"
    with Store(path) as store:
        wanted = some(store, 8)
        store.save_experiment("study-v1", {"name": "study"})
        whole = {key_of(cell): store.get(cell).arrays["x"].tobytes() for cell in wanted}
    content, luck = path.read_bytes(), random.Random(3)
    refused = 0
    for place in [*range(0, 100), *(luck.randrange(len(content)) for _ in range(300))]:
        path.write_bytes(
            content[:place] + bytes([content[place] ^ 1 << luck.randrange(8)]) + content[place + 1 :]
        )
        try:
            with Store(path) as store:
                found = store.read(whole)
                list(store.measured()), store.experiments(), store.damaged(), store.damaged_experiments()
                assert all(payload.arrays["x"].tobytes() == whole[key] for key, payload in found.items())
        except UserError:
            refused += 1
        path.with_name("cells.sqlite-wal").unlink(missing_ok=True)
    assert 0 < refused < 200


def test_a_full_disk_is_said_in_one_sentence_and_loses_nothing(store):
    cells = some(store)
    pages = store._base.execute("PRAGMA page_count").fetchone()[0]
    store._base.execute(f"PRAGMA max_page_count = {pages}")
    rng = np.random.default_rng(1)
    with pytest.raises(UserError, match="disk is full"):
        store.put([({"big": 1}, CellResult({"x": rng.random(10**5)}))])
    assert all(store.get(cell) is not None for cell in cells)
    store._base.execute("PRAGMA max_page_count = 1000000")
    store.put([({"big": 1}, CellResult({"x": rng.random(10**5)}))])
    assert {"big": 1} in store


def test_a_file_that_is_no_store_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "cells.sqlite"
    path.write_bytes(b"not a database at all, " * 100)
    with pytest.raises(UserError, match=r"cells\.sqlite.*damaged or not a store"):
        Store(path)
    assert path.read_bytes().startswith(b"not a database")


def test_a_store_of_a_newer_version_is_refused(tmp_path):
    base = sqlite3.connect(tmp_path / "cells.sqlite")
    base.execute("PRAGMA user_version = 99")
    base.close()
    with pytest.raises(UserError, match="newer abex"):
        Store(tmp_path / "cells.sqlite")


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="file"):
        Store(tmp_path / "file" / "cells.sqlite")


def test_a_store_that_is_deleted_while_in_use_is_called_so(store):
    some(store)
    store.path.unlink()
    with pytest.raises(UserError, match="deleted or replaced while it was in use"):
        some(store, 6)


# -- repair ---------------------------------------------------------------------------------------------------

KILLED = """
import os, sqlite3, sys
base = sqlite3.connect(sys.argv[1], isolation_level=None)
base.execute("PRAGMA cache_size = 2")  # pages go to the file before the commit
base.execute("BEGIN IMMEDIATE")
base.execute("UPDATE cells SET payload = zeroblob(3000)")
os.kill(os.getpid(), 9)
"""


def a_store(path: Path, count: int = 200) -> bytes:
    with Store(path) as store:
        some(store, count)
        store.save_experiment("study-v1", {"name": "study"})
        return dump(store)


def spoil(path: Path, *shares: float) -> bytes:
    """Overwrite pages, leaves of the tree of keys, about there in the file; returns the file's bytes."""
    content = bytearray(path.read_bytes())
    for share in shares:
        place = int(len(content) * share) // 4096 * 4096
        while content[place] != 0x0A:
            place += 4096
        content[place : place + 4096] = random.Random(place).randbytes(4096)
    path.write_bytes(content)
    return bytes(content)


@pytest.mark.skipif(os.name != "posix", reason="kills")
def test_a_store_whose_writer_was_killed_in_a_commit_is_sound(tmp_path):
    path = tmp_path / "cells.sqlite"
    before = a_store(path)
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    journal = path.with_name("cells.sqlite-journal")
    assert journal.stat().st_size > 512  # it is hot: the file holds half of a commit
    with Store(path) as store:
        assert dump(store) == before
    assert sorted(tmp_path.iterdir()) == [path]


RECOVER = "sqlite3 cells.sqlite .recover | sqlite3 new.sqlite"
DUMP = "(echo 'PRAGMA user_version = 1;'; sqlite3 cells.sqlite .dump | sed 's/^ROLLBACK.*/COMMIT;/') | sqlite3 new.sqlite"


@pytest.mark.parametrize(("command", "table"), [(RECOVER, "sqlite_dbpage"), (DUMP, "sqlite_master")])
def test_what_is_said_about_a_file_with_a_bad_page_brings_back_the_others(tmp_path, command, table):
    probe = ["sqlite3", ":memory:", f"SELECT count(*) FROM {table}"]
    if not shutil.which("sqlite3") or subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("the command sqlite3 is missing, or built without that")
    path, new = tmp_path / "cells.sqlite", tmp_path / "new.sqlite"
    before = a_store(path)
    content = spoil(path, 0.5)
    with Store(path) as store, pytest.raises(UserError, match="damaged or not a store") as refusal:
        list(store)
    assert f"`{RECOVER}`" in str(refusal.value)
    assert command in (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
    subprocess.run(command, shell=True, cwd=tmp_path, check=False, capture_output=True)
    assert path.read_bytes() == content
    with Store(new) as store:
        lines = set(dump(store).splitlines())
        assert 180 <= len(lines) < 200
        assert lines < set(before.splitlines())
        assert store.experiments() == {"study-v1": {"name": "study"}}


# -- claims ---------------------------------------------------------------------------------------------------


def other_run(path: Path, machine: str, process: int, key: str) -> sqlite3.Connection:
    """A run of which nothing but its traces is there."""
    base = sqlite3.connect(f"{path}.claims", isolation_level=None)
    base.execute("INSERT INTO owners VALUES ('other', ?, ?, 1)", (machine, process))
    base.execute("INSERT INTO claims VALUES (?, 'other')", (key,))
    return base


def test_what_a_dead_run_has_claimed_is_taken_over_at_once(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    with Claims(tmp_path / "cells.sqlite") as ours:
        other_run(tmp_path / "cells.sqlite", abex.lab.results.claims.machine(), dead.pid, "a").close()
        assert ours.take(["a", "b"]) == {"a", "b"}


def test_a_run_elsewhere_lives_as_long_as_it_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(abex.lab.results.claims, "LEASE", 0.05)
    with Claims(tmp_path / "cells.sqlite") as ours:
        base = other_run(tmp_path / "cells.sqlite", "another machine", 1, "a")
        for _ in range(3):
            assert ours.take(["a"]) == set()
            time.sleep(0.1)
            base.execute("UPDATE owners SET beats = beats + 1")
        assert ours.take(["a"]) == set()
        time.sleep(0.1)
        assert ours.take(["a"]) == {"a"}
        base.close()


def test_a_run_that_was_buried_alive_goes_on_and_shows_itself_again(tmp_path, monkeypatch):
    monkeypatch.setattr(abex.lab.results.claims, "BEAT", 0.02)
    with Claims(tmp_path / "cells.sqlite") as ours:
        ours.take(["a"])
        base = sqlite3.connect(f"{tmp_path / 'cells.sqlite'}.claims", isolation_level=None)
        base.execute("DELETE FROM owners")
        wait_until(lambda: base.execute("SELECT * FROM owners").fetchall())
        base.close()
        assert ours.take(["b"]) == {"b"}


def test_a_file_of_claims_that_is_damaged_or_gone_stops_nobody(tmp_path):
    path = tmp_path / "cells.sqlite"
    Path(f"{path}.claims").write_bytes(b"no claims at all" * 100)
    with Claims(path) as ours, Claims(path) as theirs:
        assert ours.take(["a"]) == {"a"}
        assert theirs.take(["a"]) == set()
        Path(f"{path}.claims").unlink()
        assert theirs.take(["b"]) == {"b"}
    with Claims(tmp_path / "no folder" / "cells.sqlite") as alone:
        assert alone.take(["a"]) == {"a"}


def test_a_store_that_another_process_is_making_is_not_damaged(tmp_path):
    path = tmp_path / "cells.sqlite"
    ours, theirs = connect(path), connect(path, patience=0.0)

    class Slow:
        """A connection before whose look at the tables the other process makes them, where it can."""

        def __getattr__(self, name):
            return getattr(ours, name)

        def execute(self, statement):
            if "sqlite_master" in statement:
                with suppress(sqlite3.OperationalError):
                    prepare(theirs, path)
            return ours.execute(statement)

    prepare(Slow(), path)
    assert format_of(ours, path) == FORMAT


def test_two_processes_write_to_one_store_without_loss(tmp_path):
    path = tmp_path / "cells.sqlite"
    script = (
        "import sys, numpy as np; from abex.lab.results import Store, CellResult\n"
        "with Store(sys.argv[1]) as store:\n"
        "    for r in range(int(sys.argv[2]), int(sys.argv[2]) + 30):\n"
        "        store.put([({'replication': r}, CellResult({'x': np.arange(50.0) + r}))])\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", script, str(path), str(15 * i)]) for i in range(3)]
    assert [writer.wait(PATIENCE) for writer in writers] == [0, 0, 0]
    with Store(path) as store:
        assert len(store) == 60  # the ranges overlap
        assert not store.damaged()
        assert store._base.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
