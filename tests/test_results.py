from __future__ import annotations

import math
import os
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from abex.errors import UserError
from abex.results import Payload, Store, key_of, salvage


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "cells.sqlite") as opened:
        yield opened


def some(store: Store, count: int = 5) -> list[dict]:
    cells = [{"kind": "test", "replication": r} for r in range(count)]
    store.put([(cell, Payload({"x": np.arange(100.0) + r})) for r, cell in enumerate(cells)])
    return cells


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(
        st.text(max_size=5), arrays(st.sampled_from([np.float64, np.int32, np.uint8, bool]), array_shapes())
    ),
    st.dictionaries(st.text(max_size=5), st.floats(allow_nan=True, allow_infinity=True)),
)
def test_what_is_stored_comes_back_bit_for_bit(store, stored, numbers):
    store.put([({"kind": "any"}, Payload(stored, numbers, {"seconds": 1.5}))])
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
                            Payload({"x": np.full(3, r)}, measured={"seconds": len(dumps) + r}),
                        )
                    ]
                )
            dumps.append(store.dump())
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


def test_a_full_disk_is_said_in_one_sentence_and_loses_nothing(store):
    cells = some(store)
    pages = store._base.execute("PRAGMA page_count").fetchone()[0]
    store._base.execute(f"PRAGMA max_page_count = {pages}")
    rng = np.random.default_rng(1)
    with pytest.raises(UserError, match="disk is full"):
        store.put([({"big": 1}, Payload({"x": rng.random(10**5)}))])
    assert all(store.get(cell) is not None for cell in cells)
    store._base.execute("PRAGMA max_page_count = 1000000")
    store.put([({"big": 1}, Payload({"x": rng.random(10**5)}))])
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


def test_salvage_copies_what_a_torn_file_still_holds(tmp_path):
    path = tmp_path / "cells.sqlite"
    with Store(path) as store:
        cells = some(store, 200)
        store.remember("study-v1", {"name": "study-v1"})
    content = bytearray(path.read_bytes())
    middle = len(content) // 2 // 4096 * 4096
    content[middle : middle + 4096] = os.urandom(4096)
    path.write_bytes(content)
    copied, _ = salvage(path, tmp_path / "new.sqlite")
    with Store(tmp_path / "new.sqlite") as new:
        assert len(new) == copied >= 150
        assert not new.damaged()
        assert sum(cell in new for cell in cells) == copied


def test_two_processes_write_to_one_store_without_loss(tmp_path):
    path = tmp_path / "cells.sqlite"
    script = (
        "import sys, numpy as np; from abex.results import Store, Payload\n"
        "with Store(sys.argv[1]) as store:\n"
        "    for r in range(int(sys.argv[2]), int(sys.argv[2]) + 30):\n"
        "        store.put([({'replication': r}, Payload({'x': np.arange(50.0) + r}))])\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", script, str(path), str(15 * i)]) for i in range(3)]
    assert [writer.wait(120) for writer in writers] == [0, 0, 0]
    with Store(path) as store:
        assert len(store) == 60  # the ranges overlap
        assert not store.damaged()
        assert store._base.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
