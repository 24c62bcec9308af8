"""Requests that nobody would send: made from the description of the service, and bytes that are no HTTP at all."""

import json
import random
import socket

import httpx
import pytest

from tests.service.serving import command, service
from tests.waiting import PATIENCE

schemathesis = pytest.importorskip("schemathesis")
hypothesis = pytest.importorskip("hypothesis")

EXAMPLES = 25  # of each endpoint, half of them wrong on purpose
BYTES = 400


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return f"sqlite:///{tmp_path_factory.mktemp('fuzz')}/shop.db?synchronous=normal"


@pytest.fixture(scope="module")
def app(store):
    with service(store, max_arms=1_000, max_players=50) as client:
        client.post("/v1/players", json={"name": "banner", "arms": ["red", "green"]})
        client.put("/v1/aliases/home", json={"split": {"banner": 100}})
        yield client


def schema_of(app):
    return schemathesis.openapi.from_dict(app.get("/openapi.json").json())


def sent(app, case):
    """A case of schemathesis, sent to the application in this process."""
    words = case.as_transport_kwargs(base_url="http://localhost")
    content = words.get("data")
    if "json" in words:
        content = json.dumps(words["json"]).encode()
    content = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    headers = {name: value for name, value in words["headers"].items() if name.lower() != "host"}
    headers = {name.encode(): value.encode("latin-1", "replace") for name, value in headers.items()}
    return app.request(
        words["method"], words["url"], params=words.get("params"), headers=headers, content=content
    )


@pytest.mark.slow
def test_no_described_request_breaks_the_service(app):
    schema, statuses = schema_of(app), {}
    modes = list(schemathesis.GenerationMode)
    for found in schema.get_all_operations():
        operation = found.ok()
        for mode in modes:

            @hypothesis.settings(
                max_examples=EXAMPLES,
                derandomize=True,
                database=None,
                suppress_health_check=list(hypothesis.HealthCheck),
            )
            @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
            def send(case):
                if case.path_parameters and "name" in case.path_parameters and random.random() < 0.7:
                    is_alias = "aliases" in case.path or random.random() < 0.2
                    case.path_parameters["name"] = "home" if is_alias else "banner"
                answer = sent(app, case)
                assert answer.status_code < 500, (case.method, case.path, answer.text)
                if answer.status_code >= 400 and case.method != "HEAD":
                    assert isinstance(answer.json()["error"], str)
                statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1

            random.seed(1)
            try:
                send()
            except hypothesis.errors.Unsatisfiable:
                continue
    assert sum(statuses.values()) > 300
    assert {200, 400, 404} <= set(statuses)


@pytest.mark.parametrize("there", [False, True], ids=["no player", "a player"])
def test_no_bytes_break_the_service(tmp_path, there):
    rng = random.Random(1)
    with open(tmp_path / "log", "w+") as log:
        with command(f"sqlite:///{tmp_path}/shop.db?synchronous=normal", log=log) as (process, address):
            host, port = address.removeprefix("http://").split(":")
            if there:  # then decisions are answered around ASGI
                httpx.post(
                    f"{address}/v1/players", json={"name": "x", "arms": 2}, timeout=PATIENCE
                ).raise_for_status()
            for _ in range(BYTES):
                answer = exchange(host, int(port), hostile(rng))
                assert not answer.startswith(b"HTTP/1.1 5"), answer
            good = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            assert exchange(host, int(port), good).startswith(b"HTTP/1.1 200")
            assert process.poll() is None
        assert "Traceback" not in (tmp_path / "log").read_text()


def hostile(rng):
    """A request, damaged somewhere; or noise."""
    body = rng.choice([b"{}", b'{"unit":"a"}', b"[[[[" * 50, b"\x00\xff" * 20, b'{"reward":1e400}'])
    path = rng.choice(
        [
            b"/v1/players/x/decisions",
            b"/v1/players",
            b"/v1/aliases/x",
            b"/v1/changes?before=%00",
            b"/%2e%2e/%00",
            b"/" + b"a" * 3000,
            b"*",
            b"http://a/b",
        ]
    )
    head = (
        b"%s %s HTTP/1.%d\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
        % (
            rng.choice([b"GET", b"POST", b"PUT", b"BREW", b"DELETE", b"CONNECT"]),
            path,
            rng.choice([0, 1, 1, 1, 7]),
            rng.choice([b"localhost", b"localhost", b"evil", b"\xff", b""]),
            rng.choice([len(body), len(body), len(body) - 1, 2**40]),
        )
    )
    data = bytearray(head + body)
    for _ in range(rng.choice([0, 0, 1, 3, 30])):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data) if rng.random() < 0.9 else rng.randbytes(rng.randrange(1, 400))


def exchange(host, port, data):
    """Send bytes, say that there are no more, read what comes."""
    with socket.create_connection((host, port), timeout=PATIENCE) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            found = b""
            while part := connection.recv(65536):
                found += part
                if len(found) > 10**6:
                    break
            return found
        except (ConnectionError, TimeoutError):
            return b""
