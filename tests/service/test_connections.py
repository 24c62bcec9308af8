"""Connections to the service, however they are used: what one client does never reaches another."""

import asyncio
import json
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import uvicorn

from abex import Player
from abex.players.ids import moment_of
from abex.players.player import UnknownDecisionError
from abex.players.requests import RequestQueue
from abex.service import Settings, connections
from abex.service.connections import Guard
from abex.service.run import configuration, listening_socket
from tests.service.serving import command
from tests.waiting import PATIENCE, wait_until

DECIDE, REWARD = "/v1/players/banner/decisions", "/v1/players/banner/rewards"


@pytest.fixture
def store(tmp_path):
    """A store with a player."""
    found = f"sqlite:///{tmp_path}/shop.db?synchronous=normal"
    with Player.open(found, "banner", "UCB1", arms=["red", "green", "blue"]):
        pass
    return found


@contextmanager
def served(store, **options):
    """A uvicorn server in a thread of this process; yields its port."""
    settings = Settings(store=store, port=0, **options)
    listening = listening_socket(settings)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 14)  # a long answer waits in the service
    server = uvicorn.Server(configuration(Guard(settings)))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        wait_until(lambda: server.started)
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        assert not thread.is_alive()


def request(path, content=b"{}", method="POST", version="1.1", length=None, **headers):
    headers = {"Host": "localhost", "Content-Type": "application/json"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    headers["Content-Length"] = len(content) if length is None else length
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items() if value is not None)
    return f"{method} {path} HTTP/{version}\r\n{lines}\r\n".encode() + content


class Connection:
    """A socket that reads answers one by one."""

    def __init__(self, port, timeout=PATIENCE):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
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
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def ask(self, *arguments, **named):
        self.send(request(*arguments, **named))
        return self.answer()


def unknown_id_of_now(port):
    """An id that a process may be about to write: of this moment, and never made."""
    with Connection(port) as connection:
        made = json.loads(connection.ask(DECIDE)[2])["id"]
    life, _, number = made.rpartition("-")
    found = f"{int(time.time() * 1000):012x}"
    found = f"{found[:8]}-{found[8:]}{life[13:]}-{int(number, 16) ^ 0xFFF:012x}"
    assert abs(moment_of(found) / 1000 - time.time()) < 10
    return found


def test_the_error_of_one_request_does_not_reach_the_others(store):
    """A reward of an id that may still come, a second request and garbage in one packet, while sixteen clients decide."""
    with served(store) as port, ThreadPoolExecutor(16) as pool:
        told = json.dumps({"decision": unknown_id_of_now(port), "reward": 1}).encode()
        poison = request(REWARD, told) + request(DECIDE) + b"\x00 garbage \r\n\r\n"

        def honest(_):
            with Connection(port, timeout=20.0) as connection:
                return [connection.ask(DECIDE)[0] for _ in range(200)]

        answers = [pool.submit(honest, number) for number in range(16)]
        for _ in range(20):
            with Connection(port) as hostile:
                hostile.send(poison)
                time.sleep(0.05)
        assert [answer.result() for answer in answers] == [[200] * 200] * 16


def test_names_of_all_kinds_are_written_as_json_has_them(tmp_path):
    arms = ['"quoted"', "naïve \N{SNOWMAN}\\", 7]
    store = f"sqlite:///{tmp_path}/names.db"
    with Player.open(store, "ba nner", "UCB1", arms=arms):
        pass
    with served(store) as port, Connection(port) as connection:
        found = {json.loads(connection.ask("/v1/players/ba%20nner/decisions")[2])["arm"] for _ in range(20)}
        assert found <= set(arms)
        assert len(found) > 1


def test_requests_on_one_connection_are_answered_in_their_order(store):
    with served(store) as port, Connection(port) as connection:
        units = [f"u{number}" for number in range(20)]
        connection.send(b"".join(request(DECIDE, json.dumps({"unit": unit}).encode()) for unit in units))
        first = [json.loads(connection.answer()[2])["id"] for _ in units]
        again = [
            json.loads(connection.ask(DECIDE, json.dumps({"unit": unit}).encode())[2])["id"] for unit in units
        ]
        assert first == again
        assert len(set(first)) == 20


def test_a_connection_is_closed_when_the_client_wants_it(store):
    with served(store) as port:
        for version, headers in (("1.1", {"Connection": "close"}), ("1.0", {})):
            with Connection(port) as connection:
                status, found, _ = connection.ask(DECIDE, version=version, **headers)
                assert (status, found["connection"]) == (200, "close")
                assert connection.is_closed()


def test_a_content_may_come_in_pieces_or_chunks(store):
    with served(store) as port, Connection(port) as connection:
        for byte in request(DECIDE, b'{"unit": "ann"}'):
            connection.send(bytes([byte]))
        first = json.loads(connection.answer()[2])["id"]
        head = request(DECIDE, b"", length=None).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
        connection.send(head + b'5\r\n{"uni\r\n4\r\nt": \r\n6\r\n"ann"}\r\n0\r\n\r\n')
        assert json.loads(connection.answer()[2])["id"] == first
        connection.send(request(DECIDE, b'{"unit": "ann"}', Expect="100-continue"))
        assert connection.head().startswith("HTTP/1.1 100")  # the answer may come with it
        assert json.loads(connection.answer()[2])["id"] == first


def test_a_client_that_has_gone_leaves_nothing_behind(store):
    with served(store) as port, Connection(port) as connection:
        for _ in range(10):
            with Connection(port) as other:
                other.send(request(DECIDE))
            with Connection(port) as other:
                other.send(request(DECIDE)[:-1])
        assert connection.ask(DECIDE)[0] == 200


def test_what_goes_wrong_inside_is_no_end_of_the_service(store, monkeypatch):
    with served(store) as port, Connection(port) as connection:
        assert connection.ask(DECIDE)[0] == 200

        def broken(*arguments):
            raise ZeroDivisionError

        with monkeypatch.context() as patch:
            patch.setattr(RequestQueue, "_propose", broken)
            status, _, said = connection.ask(DECIDE)
            assert (status, json.loads(said)) == (500, {"error": "Something went wrong inside the service"})
        assert connection.ask(DECIDE)[0] == 200


def test_a_decision_made_a_moment_ago_elsewhere_can_be_rewarded(store, monkeypatch):
    calls, submit = [], RequestQueue.submit

    def late(self, request):
        calls.append(submit(self, request))
        if len(calls) > 1:
            return calls[-1]
        refused = asyncio.get_running_loop().create_future()
        refused.set_exception(UnknownDecisionError("not yet", decision.id))
        return refused

    with served(store) as port, Connection(port) as connection, Player.open(store, "banner") as elsewhere:
        assert connection.ask(DECIDE)[0] == 200
        decision = elsewhere.decide()
        elsewhere.flush()
        monkeypatch.setattr(RequestQueue, "submit", late)
        told = json.dumps({"decision": decision.id, "reward": 1}).encode()
        assert (
            connection.ask(REWARD, told)[2] == b'{"learned":false}'
        )  # the first time it was, but said nothing
        assert len(calls) == 2


# -- clients that take their time -------------------------------------------------------------------------

QUICK = {"client_timeout": 1.0}


def metric(port, name):
    """The value of a metric."""
    with Connection(port) as connection:
        text = connection.ask("/metrics", b"", method="GET")[2].decode()
    return sum(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(name))


def test_a_request_whose_header_never_ends_is_ended(store):
    with served(store, **QUICK) as port, Connection(port) as silent, Connection(port) as slow:
        slow.send(b"POST /v1/players HTTP/1.1\r\nHost: localhost\r\n")
        for drop in b"X-Header: " + b"x" * 1_000:
            try:
                slow.send(bytes([drop]))
            except ConnectionError:
                break
            time.sleep(0.05)
        else:
            pytest.fail("it went on for ever")
        assert silent.answer()[0] == 408
        assert silent.is_closed()
        assert metric(port, 'abex_ended_connections_total{waited_for="request"}') == 2.0


def test_a_request_whose_body_never_ends_is_ended(store):
    with served(store, **QUICK) as port, Connection(port) as slow:
        slow.send(request(DECIDE, b'{"unit": "ann"}')[:-5])
        assert slow.answer()[0] == 408
        with Connection(port) as pipelined:  # the second request waits for its body
            pipelined.send(request(DECIDE) + request(DECIDE, b'{"unit": "ann"}')[:-5])
            assert pipelined.answer()[0] == 200
            assert pipelined.answer()[0] == 408


def test_an_answer_that_nobody_reads_is_given_up(store):
    with served(store, **QUICK) as port:
        with Connection(port) as api:
            new = {"name": "wide", "arms": [f"{number:0200}" for number in range(4_000)], "policy": "UCB1"}
            assert api.ask("/v1/players", json.dumps(new).encode())[0] == 201
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.connect(("127.0.0.1", port))
            deaf.sendall(b"".join(request("/v1/players/wide/arms", b"", method="GET") for _ in range(20)))
            wait_until(lambda: metric(port, 'abex_ended_connections_total{waited_for="answer"}') == 1.0)
        with Connection(port) as honest:
            assert honest.ask(DECIDE)[0] == 200


@pytest.mark.parametrize(
    ("unread", "ended"),
    [
        ([900, 800, 700, 600, 500], [None] * 5),  # it is read slowly
        ([900, 900, 900, 900, 900], [None, None, "answer", "answer", "answer"]),  # nobody reads it
        ([900, 0, 900, 900, 800], [None] * 5),  # another answer follows
    ],
)
def test_an_answer_is_given_up_where_nothing_of_it_is_read_for_the_whole_time(unread, ended):
    async def looked():
        guard = SimpleNamespace(settings=Settings(store="sqlite:///shop.db", client_timeout=2.5))
        http = SimpleNamespace(eof_received=None, pause_writing=None, resume_writing=None)
        connection = connections.Connection(guard, http)
        sizes = iter(unread)
        connection._transport = SimpleNamespace(get_write_buffer_size=lambda: next(sizes), abort=lambda: None)
        began = asyncio.get_running_loop().time()
        return [connection.late(began + second, 2.5) for second in range(1, 6)]

    assert asyncio.run(looked()) == ended


def test_a_handler_may_take_longer_than_a_client(store, monkeypatch):
    carry_out = RequestQueue._carry_out

    async def slow(self, batch):
        await asyncio.sleep(2.5)
        await carry_out(self, batch)

    with served(store, client_timeout=0.5) as port, Connection(port) as connection:
        monkeypatch.setattr(RequestQueue, "_carry_out", slow)
        assert connection.ask(DECIDE)[0] == 200
        assert connection.ask(DECIDE)[0] == 200


def test_a_connection_that_asks_for_nothing_more_is_closed(store):
    with served(store, idle_timeout=1) as port, Connection(port) as idle:
        assert idle.ask(DECIDE)[0] == 200
        assert idle.is_closed()


def test_a_thousand_unfinished_connections_of_an_address_leave_descriptors_for_others(store):
    resource = pytest.importorskip("resource")
    if sys.platform != "linux":
        pytest.skip("needs more than one address of its own")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] != resource.RLIM_INFINITY and before[1] < 4_096:
        pytest.skip("this process may not have 2,000 connections")
    resource.setrlimit(resource.RLIMIT_NOFILE, (4_096, before[1]))
    opened = []
    try:
        with command(store, descriptors=1_024) as (_, address):
            port = int(address.rpartition(":")[2])
            for _ in range(1_010):
                opened.append(socket.create_connection(("127.0.0.1", port), PATIENCE, ("127.0.0.2", 0)))
                opened[-1].sendall(b"POST /v1/players HTTP/1.1\r\n")
            with Connection(port) as honest:
                assert honest.ask(DECIDE)[0] == 200
            assert metric(port, 'abex_refused_connections_total{limit="client"}') >= 510.0
    finally:
        for one in opened:
            one.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_two_hundred_unfinished_connections_leave_room_for_others(store):
    with served(store, client_timeout=5.0, max_connections=250, max_client_connections=220) as port:
        opened = [Connection(port) for _ in range(200)]
        for connection in opened:
            connection.send(b"POST /v1/players HTTP/1.1\r\n")
        with Connection(port) as honest:
            assert honest.ask(DECIDE)[0] == 200
            more = [Connection(port) for _ in range(30)]
            assert more[-1].answer()[0] == 503  # one address may have 220
            assert more[-1].is_closed()
            assert honest.ask(DECIDE)[0] == 200
            wait_until(lambda: metric(port, 'abex_ended_connections_total{waited_for="request"}') >= 200.0)
            assert metric(port, 'abex_refused_connections_total{limit="client"}') >= 10.0
        for connection in (*opened, *more):
            connection.socket.close()
        wait_until(lambda: metric(port, "abex_connections ") == 1.0)
        with Connection(port) as honest:
            assert honest.ask(DECIDE)[0] == 200


def test_all_connections_have_a_limit_that_fits_into_the_descriptors(store, monkeypatch):
    monkeypatch.setattr(connections, "descriptors", lambda: 216)
    with served(store) as port:
        opened = [Connection(port) for _ in range(20)]
        assert opened[-1].answer()[0] == 503
        for connection in opened:
            connection.socket.close()
        wait_until(lambda: metric(port, 'abex_refused_connections_total{limit="total"}') >= 1.0)


def test_connections_without_an_address_are_counted_and_end(tmp_path):
    """One that was reset before it was accepted has no address any more: two of them are not one."""

    async def ended():
        guard = Guard(Settings(store=f"sqlite:///{tmp_path}/shop.db"))
        clients = [guard.admit(object(), ("", 0)) for _ in range(2)]
        for _ in clients:
            guard.remove(("", 0))
        return clients, dict(guard._open), dict(guard._clients)

    assert asyncio.run(ended()) == ([True, True], {}, {})
