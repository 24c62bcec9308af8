"""The store of a service under test."""

import pytest

from abex.players import Store


@pytest.fixture
def store(tmp_path):
    return f"sqlite:///{tmp_path}/shop.db?synchronous=normal"


@pytest.fixture
def elsewhere(store):
    """The address of the same store as another process has it: not shared with who opens `store`."""
    found = store.replace("normal", "NORMAL")
    with Store.open(store) as one, Store.open(found) as two:
        assert one is not two
    return found
