"""The client: what it asks for, and that what it repeats counts once."""

import asyncio
from types import SimpleNamespace

import httpx
import pytest

from abex.client import AsyncClient, Choice, Client, ServiceError
from tests.service.serving import service


class Flaky(httpx.BaseTransport):
    """Hands requests to a service in this process; by a plan, answers are lost, requests are, or "later" is said."""

    def __init__(self, app, plan=()):
        self.app, self.plan, self.asked = app, list(plan), 0

    def handle_request(self, request):
        self.asked += 1
        trouble = self.plan.pop(0) if self.plan else None
        if trouble == "request lost":
            raise httpx.ConnectError("refused")
        if trouble == "later":
            return httpx.Response(503, json={"error": "the store is away"}, headers={"retry-after": "0"})
        headers = dict(request.headers) | {"host": "localhost"}
        answer = self.app.request(request.method, str(request.url), content=request.read(), headers=headers)
        if trouble == "answer lost":
            raise httpx.ReadError("connection reset")
        return httpx.Response(answer.status_code, content=answer.content, headers=answer.headers)

    async def handle_async_request(self, request):
        return self.handle_request(request)

    async def aclose(self):
        pass


class AsyncFlaky(Flaky, httpx.AsyncBaseTransport):
    """The same for asyncio."""


@pytest.fixture
def app(tmp_path):
    with service(f"sqlite:///{tmp_path}/shop.db?synchronous=normal") as found:
        yield found


def client_of(app, plan=(), **options):
    return Client("http://localhost", transport=Flaky(app, plan), **options)


def test_a_client_does_what_the_service_does(app):
    with client_of(app) as client:
        assert client.create("shop front", ["red", "green"], "Thompson", expire=60.0)["created"]
        assert client.players() == ["shop front"]
        choice = client.decide("shop front", unit="ann")
        assert isinstance(choice, Choice)
        assert client.decide("shop front", unit="ann") == choice
        assert client.reward(
            "shop front", choice.id, 1.0, also={"green" if choice.arm == "red" else "red": 0.0}
        )
        several = client.decide_many("shop front", 2)
        assert {one.arm for one in several} == {"red", "green"}
        assert client.reward_many("shop front", [(one.id, 0.5) for one in several]) == [True, True]
        assert len(client.decide_many("shop front", units=["a", None])) == 2
        assert client.observe("shop front", "red", 1.0)
        assert client.add_arm("shop front", "a/b") == "a/b"
        client.rename_arm("shop front", "a/b", "c d")
        assert sum(client.probabilities("shop front").values()) == pytest.approx(1.0)
        client.remove_arm("shop front", "c d")
        assert client.summary("shop front")["decisions"] == 5
        assert client.log("shop front", last=3).count(b"\n") == 4
        assert client.evaluate("shop front", ["Uniform"])["rows"] == 3
        assert client.winner("shop front", risk=0.1)["method"] in ("bets", "sums")
        export = client.export("shop front")
        assert b"abex-player" in export.content
        client.archive("shop front", export.tag)
        assert client.players() == []
        client.restore("shop front")
        assert client.decide("shop front").arm in ("red", "green")
        client.delete("shop front", client.export("shop front").tag)
        assert client.players() == []


@pytest.mark.parametrize("trouble", ["answer lost", "request lost", "later"])
def test_what_is_repeated_counts_once(app, trouble):
    plan = []
    with client_of(app, plan) as client:
        client.create("x", 3, "Thompson")
        transport = client._http._transport
        for number in range(5):
            transport.plan = [trouble, trouble]
            choice = client.decide("x", unit=f"u{number}" if number % 2 else None)
            transport.plan = [trouble]
            client.reward("x", choice.id, 1.0)
            transport.plan = [trouble]
            client.observe("x", 1, 0.0)
            transport.plan = [trouble]
            several = client.decide_many("x", 2)
            transport.plan = [trouble]
            client.reward_many("x", [(one.id, 1.0) for one in several])
        summary = client.summary("x")
        assert (summary["decisions"], summary["rewarded"], summary["waiting"]) == (15, 15, 0)
        assert sum(arm["observations"] for arm in summary["arms"]) == 20


def test_what_could_count_twice_is_sent_once(app):
    with client_of(app) as client:
        client.create("x", 2, "UCB1")
        client._http._transport.plan = ["answer lost"]
        with pytest.raises(ServiceError, match="cannot reach the service"):
            client.add_arm("x")
        assert client.summary("x")["n_arms"] == 3
        client._http._transport.plan = ["later"]  # the service says that it did nothing
        assert client.add_arm("x") == 3


def test_mistakes_are_sentences_and_are_not_repeated(app):
    with client_of(app) as client:
        client.create("x", 2, "UCB1")
        transport = client._http._transport
        asked = transport.asked
        with pytest.raises(ServiceError, match="There is no player 'y'") as refused:
            client.decide("y")
        assert (refused.value.status, transport.asked) == (404, asked + 1)
        with pytest.raises(ServiceError, match="Reward must be"):
            client.reward("x", client.decide("x").id, 7.0)


def test_patience_ends(app, monkeypatch):
    now = [0.0]
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda pause: now.__setitem__(0, now[0] + pause))
    monkeypatch.setattr("abex.client.time", clock)
    with client_of(app, ["later"] * 1000, patience=10.0) as client:
        with pytest.raises(ServiceError, match="the store is away") as refused:
            client.decide("x")
        assert refused.value.status == 503
        assert 8.0 < now[0] <= 10.0  # pauses grow up to two seconds
        assert 5 <= client._http._transport.asked < 30


def test_the_same_in_asyncio(app):
    async def play():
        async with AsyncClient("http://localhost", transport=AsyncFlaky(app)) as client:
            await client.create("x", 3, "Thompson")
            client._http._transport.plan = ["answer lost", "later"]
            choices = [await client.decide("x"), *await client.decide_many("x", units=["a", "b"])]
            client._http._transport.plan = ["answer lost"]
            assert (await client.reward("x", choices[0].id, 1.0)) is False  # the lost answer said True
            assert await client.reward_many("x", [(one.id, 1.0) for one in choices]) == [False, True, True]
            assert await client.observe("x", 0, 1.0)
            return await client.summary("x")

    summary = asyncio.run(play())
    assert (summary["decisions"], summary["rewarded"]) == (3, 3)
