"""The connections of a worker: deadlines for what clients send and read, and limits of their number.

A guard stands on both sides of uvicorn's protocol. Before it, as the `asyncio.Protocol` of a connection, it sees bytes come and
wait; behind it, around the application, it sees requests begin and end. It knows nothing of HTTP.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import signal
from collections import Counter
from multiprocessing.connection import Connection as Pipe
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from abex.service.app import Service
from abex.service.settings import Settings

EVERY = 1.0  # seconds between two looks at all connections
RESERVED = 200  # descriptors for players, store and logs


def refusal(status: bytes, sentence: bytes) -> bytes:
    """An answer that is given without looking at a request."""
    content = b'{"error":"%s"}' % sentence
    head = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\nretry-after: 1\r\nconnection: close\r\n\r\n"
    return head % (status, len(content)) + content


BUSY = refusal(b"503 Service Unavailable", b"Too many connections are open: try again")
LATE = refusal(b"408 Request Timeout", b"The request did not come in time")


class Guard:
    """Watches the connections of a worker."""

    def __init__(self, settings: Settings, supervisor: Pipe | None = None) -> None:
        self.settings, self._supervisor = settings, supervisor
        self.most = min(settings.max_connections, max(16, descriptors() - RESERVED))
        self._app = Service(settings)
        self.metrics = self._app.state.metrics
        self._open: dict[Any, Connection] = {}  # by their clients
        self._clients: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; its connection must have sent all of it in time."""
        if scope["type"] == "lifespan":
            watching = asyncio.create_task(self._watch())
            try:
                await self._app(scope, receive, send)
            finally:
                watching.cancel()
            return
        connection = self._open.get(scope["client"])
        if connection is None:
            await self._app(scope, receive, send)
            return
        if connection.due == math.inf:
            connection.begin()
        connection.deadline = math.inf

        async def received() -> Message:
            connection.deadline = connection.due
            message = await receive()
            connection.deadline = math.inf
            return message

        try:
            await self._app(scope, received, send)
        finally:
            connection.due = math.inf

    def admit(self, connection: Connection, client: Any) -> bool:
        """Whether a new connection may stay."""
        if len(self._open) >= self.most:
            refused = "total"
        elif (
            self._clients[client[0]] >= self.settings.max_client_connections
            and not self.settings.behind_proxy
        ):
            refused = "client"
        else:
            self._open[client] = connection
            self._clients[client[0]] += 1
            self.metrics.connections.inc()
            return True
        self.metrics.refused.labels(refused).inc()
        return False

    def remove(self, client: Any) -> None:
        """A connection has ended."""
        self._open.pop(client, None)  # those that were reset before they were accepted have no address
        self._clients[client[0]] -= 1
        if not self._clients[client[0]]:
            del self._clients[client[0]]
        self.metrics.connections.dec()

    async def _watch(self) -> None:
        """End connections whose clients take too long, and tell the supervisor that this process lives."""
        while True:
            await asyncio.sleep(EVERY)
            now = asyncio.get_running_loop().time()
            for connection in list(self._open.values()):
                late = connection.late(now, self.settings.client_timeout)
                if late is not None:
                    self.metrics.ended.labels(late).inc()
            if self._supervisor is not None:
                try:
                    self._supervisor.send_bytes(b".")
                except BrokenPipeError:  # it was killed
                    self._supervisor = None
                    signal.raise_signal(signal.SIGTERM)


class Connection:
    """The `asyncio.Protocol` of a connection: hands all to the one that speaks HTTP, notes when the client has to be ready."""

    def __init__(self, guard: Guard, http: Any) -> None:
        self._guard, self._http = guard, http
        self._loop = asyncio.get_running_loop()
        self.due = math.inf  # when all of the request must be there, as long as one is coming
        self.deadline = math.inf  # the same, while somebody waits for it
        self._unread, self._unread_since = 0, self._loop.time()
        self.eof_received = http.eof_received
        self.pause_writing, self.resume_writing = http.pause_writing, http.resume_writing

    def connection_made(self, transport: Any) -> None:
        """It begins, if there is room for it."""
        self._transport = transport
        self._client = tuple((transport.get_extra_info("peername") or ("", 0))[:2])
        self._admitted = self._guard.admit(self, self._client)
        if self._admitted:
            self.begin()
            self._http.connection_made(transport)
        else:
            transport.write(BUSY)
            transport.close()

    def data_received(self, data: bytes) -> None:
        """Bytes have come: the first of a request, or more of it."""
        if self._admitted:
            if self.due == math.inf:
                self.begin()
            self._http.data_received(data)

    def connection_lost(self, error: Exception | None) -> None:
        """It has ended."""
        if self._admitted:
            self._guard.remove(self._client)
            self._http.connection_lost(error)

    def begin(self) -> None:
        """A request is coming."""
        self.due = self.deadline = self._loop.time() + self._guard.settings.client_timeout

    def late(self, now: float, most: float) -> str | None:
        """End the connection if its client takes too long; says for what."""
        unread = self._transport.get_write_buffer_size()
        if unread == 0 or unread < self._unread:  # it reads
            self._unread_since = now
        self._unread = unread
        if unread and now - self._unread_since > most:
            self._transport.abort()
            return "answer"
        if now > self.deadline:
            self._transport.write(LATE)
            self._transport.close()
            self.deadline = math.inf
            return "request"
        return None


def descriptors() -> int:
    """How many files and connections this process may have open."""
    with contextlib.suppress(ImportError):
        import resource

        return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 1 << 20 if os.name == "posix" else 512
