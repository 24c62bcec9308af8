"""Stores for tests: a file, and a schema of its own on a PostgreSQL server that all tests share."""

import pytest

from tests import postgresql
from tests.needs import POSTGRESQL


@pytest.fixture(scope="session")
def server():
    """A server, when a test asks for one."""
    if postgresql.binaries() is None:
        pytest.skip(POSTGRESQL)
    pytest.importorskip("psycopg")
    found = postgresql.Server()
    yield found
    found.remove()


@pytest.fixture
def schema(server, request):
    """The address of a schema of its own."""
    import psycopg

    name = f"test_{abs(hash(request.node.nodeid))}"
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{server.url()}?options=-csearch_path%3D{name}"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """The address of a store, once in each database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/shop.db?synchronous=normal"
    return request.getfixturevalue("schema")
