"""What the store promises about writing twice, writing half, and cells under another's key."""

import numpy as np
import pytest

from abex.lab.results import CellResult, Store, key_of
from abex.support.errors import UserError

CELL, OTHER = {"kind": "test", "replication": 0}, {"kind": "test", "replication": 1}


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "cells.sqlite") as opened:
        yield opened


def test_a_cell_put_again_has_its_latest_result(store):
    for value in (1.0, 2.0):
        store.put([(CELL, CellResult({"x": np.full(3, value)}, {"n": value}))])
    assert store.get(CELL).arrays["x"].tolist() == [2.0] * 3
    assert store.get(CELL).numbers == {"n": 2.0}
    assert len(store) == 1


def test_cells_are_stored_all_or_none(store):
    store._base.execute(
        "CREATE TRIGGER refuse BEFORE INSERT ON cells WHEN NEW.cell LIKE '%:1}' "
        "BEGIN SELECT RAISE(ABORT, 'refused'); END"
    )
    with pytest.raises(UserError, match="refused"):
        store.put([(CELL, CellResult({"x": np.ones(1)})), (OTHER, CellResult({"x": np.ones(1)}))])
    assert len(store) == 0
    store.put([(CELL, CellResult({"x": np.ones(1)}))])
    assert len(store) == 1


def test_a_result_under_another_key_is_damaged(store):
    """Bytes and checksums fit each other, but not the key under which they lie."""
    store.put([(CELL, CellResult({"x": np.ones(1)}))])
    store._base.execute("UPDATE cells SET key = ?", (key_of(OTHER),))
    assert store.get(OTHER) is None
    assert [key for key, _ in store.damaged()] == [key_of(OTHER)]


def test_what_is_damaged_is_missing(store):
    store.put([(CELL, CellResult({"x": np.ones(1)}))])
    assert CELL in store
    store._base.execute("UPDATE cells SET checksum = 'none'")
    assert CELL not in store
    assert key_of(CELL) in store.keys()  # noqa: SIM118 - the method of a store, not of a dict
