"""Decisions and rewards that go around ASGI: the same answers, on connections however they are used."""

import json
import socket
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import uvicorn

from abex import Player
from abex.players.together import together
from abex.service import Settings, rates
from abex.service.endpoints import Endpoint
from abex.service.express import Errand
from abex.service.keys import new_key, parse_keys
from abex.service.launching import configuration, listening_socket
from tests.serving import service
from tests.waiting import PATIENCE, wait_until

DECIDE, REWARD = "/v1/players/banner/decisions", "/v1/players/banner/rewards"
NEVER_MADE = "0190a7c8-5d2f-7000-8000-01f2d3c4b5a6"


@pytest.fixture
def store(tmp_path):
    return f"sqlite:///{tmp_path}/shop.db?synchronous=normal"


@contextmanager
def served(store, **options):
    """A uvicorn server in a thread of this process; yields its port."""
    settings = Settings(store=store, port=0, **options)
    listening = listening_socket(settings)
    server = uvicorn.Server(configuration(settings))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        wait_until(lambda: server.started)
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        assert not thread.is_alive()


@pytest.fixture
def made(store):
    """A store with a player."""
    with Player.open(store, "banner", "UCB1", arms=["red", "green", "blue"]):
        pass
    return store


@pytest.fixture
def short_cut(monkeypatch):
    """Counts the requests that took each way."""
    ways = {"asgi": 0, "express": 0}
    call, run = Endpoint.__call__, Errand.run

    async def through_asgi(self, *arguments):
        ways["asgi"] += 1
        await call(self, *arguments)

    def around(self):
        ways["express"] += 1
        run(self)

    monkeypatch.setattr(Endpoint, "__call__", through_asgi)
    monkeypatch.setattr(Errand, "run", around)
    return ways


def request(path, content=b"{}", method="POST", version="1.1", length=None, **headers):
    headers = {"Host": "localhost", "Content-Type": "application/json"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    headers["Content-Length"] = len(content) if length is None else length
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items() if value is not None)
    return f"{method} {path} HTTP/{version}\r\n{lines}\r\n".encode() + content


class Connection:
    """A socket that reads answers one by one."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self.rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def answer(self):
        """Status, headers, content."""
        first, *lines = self.head().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        while len(self.rest) < int(headers["content-length"]):
            self._more()
        size = int(headers["content-length"])
        content, self.rest = self.rest[:size], self.rest[size:]
        return int(first.split()[1]), headers, content

    def head(self):
        """The lines up to an empty one."""
        while b"\r\n\r\n" not in self.rest:
            self._more()
        head, _, self.rest = self.rest.partition(b"\r\n\r\n")
        return head.decode()

    def _more(self):
        part = self.socket.recv(65536)
        assert part, "the connection was closed"
        self.rest += part

    def is_closed(self):
        return self.socket.recv(1) == b""

    def ask(self, *arguments, **named):
        self.send(request(*arguments, **named))
        return self.answer()


@contextmanager
def opened(store, **options):
    """A connection to a server whose desk of the player is open."""
    with served(store, **options) as port, Connection(port) as connection:
        assert connection.ask(DECIDE)[0] == 200
        yield connection


def test_decisions_and_rewards_go_around_asgi(made, short_cut):
    with opened(made) as connection:
        assert short_cut == {"asgi": 1, "express": 0}  # the first request opens the desk
        for content in (b"", b"{}", b'{"unit":"ann"}', b'{"key":"k"}'):
            status, headers, said = connection.ask(DECIDE, content)
            decision = json.loads(said)
            assert status == 200
            assert list(decision) == ["id", "arm", "probability"]
            assert said == json.dumps(decision, separators=(",", ":")).encode()
            assert headers["content-type"] == "application/json"
            assert "date" in headers
        told = json.dumps({"decision": decision["id"], "reward": True}).encode()
        assert connection.ask(REWARD, told)[2] == b'{"learned":true}'
        assert connection.ask(REWARD, told)[2] == b'{"learned":false}'
        assert short_cut == {"asgi": 1, "express": 6}
        assert connection.ask(f"{DECIDE}?x=1")[0] == 200
        assert connection.ask(DECIDE.replace("nn", "%6E%6E"))[0] == 200
        assert short_cut == {"asgi": 2, "express": 7}
        connection.send(request("/metrics", b"", method="GET"))
        counted = connection.answer()[2].decode()
        assert 'abex_requests_total{endpoint="decide",status="200"} 7.0' in counted
        assert 'abex_request_seconds_count{endpoint="reward"} 2.0' in counted


def test_names_of_all_kinds_are_written_as_json_has_them(store, short_cut):
    arms = ['"quoted"', "naïve \N{SNOWMAN}\\", 7]
    with Player.open(store, "ba nner", "UCB1", arms=arms):
        pass
    with served(store) as port, Connection(port) as connection:
        found = set()
        for _ in range(4):
            found.add(json.loads(connection.ask("/v1/players/ba%20nner/decisions")[2])["arm"])
        assert short_cut == {"asgi": 1, "express": 3}
        assert found <= set(arms)
        assert len(found) > 1


WRONG = [
    (DECIDE, b'{"unit": 7}', {}),
    (DECIDE, b'{"unit": "a\\u0000"}', {}),
    (DECIDE, b'{"who": "ann"}', {}),
    (DECIDE, b"[[[", {}),
    (DECIDE, b"\xff", {}),
    (DECIDE, b"{}", {"Content_Type": "text/plain"}),
    (DECIDE, b"{}", {"Content_Type": None}),
    (DECIDE, b"{}", {"Host": "evil.example"}),
    (DECIDE, b"x" * 5_000, {}),
    (REWARD, b"", {}),
    (REWARD, b'{"decision": "no", "reward": 1}', {}),
    (REWARD, b'{"decision": "%s", "reward": 1}' % NEVER_MADE.encode(), {}),
    (REWARD, b'{"decision": "%s", "reward": 2}' % NEVER_MADE.encode(), {}),
    (REWARD, b'{"decision": "%s", "reward": NaN}' % NEVER_MADE.encode(), {}),
    (REWARD, b'{"decision": "%s", "reward": "1"}' % NEVER_MADE.encode(), {}),
    (REWARD, b'{"decision": "%s", "reward": 1, "also": {"pink": 1}}' % NEVER_MADE.encode(), {}),
]


def test_what_is_wrong_gets_the_same_sentence_on_both_ways(made, short_cut):
    asgi = []
    with service(made, max_body=4_000) as client:
        for path, content, headers in WRONG:
            named = {"Host": "localhost", "Content-Type": "application/json"} | {
                name.replace("_", "-"): value for name, value in headers.items()
            }
            named = {name: value for name, value in named.items() if value is not None}
            found = client.post(path, content=content, headers=named)
            asgi.append((found.status_code, found.content, found.headers.get("connection")))
    short_cut["asgi"] = 0
    with opened(made, max_body=4_000) as connection:
        port = connection.socket.getpeername()[1]
        for (path, content, headers), (status, said, closes) in zip(WRONG, asgi, strict=True):
            with Connection(port) as other:
                found = other.ask(path, content, **headers)
                assert (found[0], found[2], found[1].get("connection")) == (status, said, closes), content
                assert 400 <= status < 500
                if closes:
                    assert other.is_closed()
        assert json.loads(connection.ask(DECIDE)[2])["arm"]  # and it goes on
    assert short_cut["asgi"] == 1


def test_keys_and_rates_hold_on_the_short_way(made, short_cut, monkeypatch):
    (decide, line), (reward, other) = new_key("decide"), new_key("reward")
    keys = parse_keys(f"{line}\n{other}\n", "keys")
    with served(made, keys=keys) as port, Connection(port) as connection:
        bearer = f"Bearer {decide}"
        assert connection.ask(DECIDE, Authorization=bearer)[0] == 200
        assert connection.ask(DECIDE, Authorization=bearer)[0] == 200
        status, headers, _ = connection.ask(DECIDE)
        assert (status, headers["www-authenticate"]) == (401, "Bearer")
        assert connection.ask(DECIDE, Authorization=f"Bearer {reward}")[0] == 403
        assert connection.ask(DECIDE, Authorization=bearer)[0] == 200
    assert short_cut == {"asgi": 1, "express": 2}
    monkeypatch.setattr(rates, "time", SimpleNamespace(monotonic=lambda: 7.0))
    with served(made, rate=2.0) as port, Connection(port) as connection:
        found = [connection.ask(DECIDE) for _ in range(6)]
        assert [status for status, _, _ in found] == [200] * 4 + [429] * 2
        assert found[-1][1]["retry-after"] == "0.500"


def test_behind_a_proxy_a_rate_belongs_to_the_client_that_it_names(made, short_cut):
    with opened(made, behind_proxy=True, rate=1.0) as connection:
        for client in ("10.0.0.1", "10.0.0.2", "10.0.0.3"):
            assert connection.ask(DECIDE, X_Forwarded_For=client)[0] == 200
    assert short_cut["express"] == 0


def test_requests_on_one_connection_are_answered_in_their_order(made, short_cut):
    with opened(made) as connection:
        units = [f"u{number}" for number in range(20)]
        connection.send(b"".join(request(DECIDE, json.dumps({"unit": unit}).encode()) for unit in units))
        first = [json.loads(connection.answer()[2])["id"] for _ in units]
        again = [
            json.loads(connection.ask(DECIDE, json.dumps({"unit": unit}).encode())[2])["id"] for unit in units
        ]
        assert first == again
        assert len(set(first)) == 20
        assert short_cut["express"] > 20


def test_a_connection_is_closed_when_the_client_wants_it(made):
    with served(made) as port:
        for version, headers in (("1.1", {"Connection": "close"}), ("1.0", {})):
            for _ in range(2):
                with Connection(port) as connection:
                    status, found, _ = connection.ask(DECIDE, version=version, **headers)
                    assert (status, found["connection"]) == (200, "close")
                    assert connection.is_closed()


def test_a_content_may_come_in_pieces_or_chunks(made, short_cut):
    with opened(made) as connection:
        whole = request(DECIDE, b'{"unit": "ann"}')
        for byte in whole:
            connection.send(bytes([byte]))
        first = json.loads(connection.answer()[2])["id"]
        head = request(DECIDE, b"", length=None).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
        connection.send(head + b'5\r\n{"uni\r\n4\r\nt": \r\n6\r\n"ann"}\r\n0\r\n\r\n')
        assert json.loads(connection.answer()[2])["id"] == first
        connection.send(request(DECIDE, b'{"unit": "ann"}', Expect="100-continue"))
        assert connection.head().startswith("HTTP/1.1 100")  # the answer may come with it
        assert json.loads(connection.answer()[2])["id"] == first
        assert short_cut == {"asgi": 2, "express": 2}


def test_a_client_that_has_gone_leaves_nothing_behind(made, short_cut):
    with opened(made) as connection:
        port = connection.socket.getpeername()[1]
        for _ in range(10):
            with Connection(port) as other:
                other.send(request(DECIDE))
            with Connection(port) as other:
                other.send(request(DECIDE)[:-1])
        assert connection.ask(DECIDE)[0] == 200


def test_what_goes_wrong_inside_is_no_end_of_the_service(made, short_cut, monkeypatch):
    with opened(made) as connection:

        def broken(*arguments):
            raise ZeroDivisionError

        with monkeypatch.context() as patch:
            patch.setattr("abex.service.desk.together", broken)
            status, _, said = connection.ask(DECIDE)
            assert (status, json.loads(said)) == (500, {"error": "something went wrong inside the service"})
        assert connection.ask(DECIDE)[0] == 200


def test_a_decision_made_a_moment_ago_elsewhere_can_be_rewarded(made, short_cut, monkeypatch):
    calls = []

    def late(player, work, most_open):
        calls.append(work)
        if len(calls) == 1:  # the decision is not there yet
            from abex.players.player import UnknownDecisionError

            return [UnknownDecisionError("not yet", work[0].rewards[0][0])]
        return together(player, work, most_open)

    with opened(made) as connection, Player.open(made, "banner") as elsewhere:
        decision = elsewhere.decide()
        elsewhere.flush()
        monkeypatch.setattr("abex.service.desk.together", late)
        told = json.dumps({"decision": decision.id, "reward": 1}).encode()
        assert connection.ask(REWARD, told)[2] == b'{"learned":true}'
        assert len(calls) == 2
        assert short_cut["express"] == 1
