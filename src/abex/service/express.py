"""Decisions and rewards on the shortest way: from uvicorn's connection to the desk and back, without ASGI.

An ASGI application costs a task, a scope and four messages a request, more than a decision does. The two addresses that are
asked most are answered on the connection itself: by the same checks, bodies and sentences (`Endpoint`, `handlers`), for players
whose desk is open. Whatever is unusual (another address, a query, a second request before the first is answered, a client
that does not read) goes the way of all requests.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from abex.service.desk import Desk, Work
from abex.service.endpoints import Answer, Context, Endpoint, check_json, too_long
from abex.service.handlers import LATE, asked, decision_text, learned_text, may_come, told

MOST_ADDRESSES = 10_000  # that are remembered
#: last part of the address -> what a request asks of the desk, and how its answer reads
HANDLED: dict[str, tuple[Callable[[bytes | bytearray], Work], Callable[[Any], bytes]]] = {
    "decisions": (asked, decision_text),
    "rewards": (told, learned_text),
}


class Stop(NamedTuple):
    """Where requests to one address go."""

    endpoint: Endpoint
    desk: Desk
    path: str
    work: Callable[[bytes | bytearray], Work]
    text: Callable[[Any], bytes]


class Express:
    """The addresses that are answered without ASGI."""

    def __init__(self, context: Context, endpoints: Mapping[str, Endpoint]) -> None:
        self._context, self._endpoints = context, endpoints
        self._stops: dict[bytes, Stop] = {}
        self.most = context.settings.max_body
        self._dated: tuple[Any, bytes] = (None, b"")
        settings = context.settings
        # behind a proxy the client that a rate belongs to stands in headers, which uvicorn reads for ASGI
        self.is_open = not settings.behind_proxy or bool(settings.keys) or settings.rate == 0.0

    def stop(self, url: bytes) -> Stop | None:
        """Where requests to an address go; None if not this way."""
        found = self._stops.get(url)
        return self._found(url) if found is None else found

    def _found(self, url: bytes) -> Stop | None:
        parts = url.split(b"/")
        if len(parts) != 5 or parts[:3] != [b"", b"v1", b"players"] or b"?" in url or not url.isascii():
            return None
        last = parts[4].decode()
        name = unquote(parts[3].decode())
        desk = self._context.directory.desks.get(name)
        if desk is None or last not in self._endpoints or "/" in name:
            return None
        found = Stop(self._endpoints[last], desk, f"/v1/players/{name}/{last}", *HANDLED[last])
        if len(self._stops) < MOST_ADDRESSES:
            self._stops[url] = found
        return found

    def head(self, headers: list[tuple[bytes, bytes]]) -> bytes:
        """The beginning of a good answer, up to its length; the server makes new headers every second."""
        if headers is not self._dated[0]:
            lines = [b"%s: %s\r\n" % pair for pair in headers]
            start = (STATUS_LINE[200], *lines, b"content-type: application/json\r\ncontent-length: ")
            self._dated = headers, b"".join(start)
        return self._dated[1]


class _Event:
    """What uvicorn sets to wake up who reads the body: nobody does here."""

    def set(self) -> None:
        """Nothing."""


_NOBODY = _Event()


class Errand:
    """A request under way; uvicorn looks at it as at a cycle of its own."""

    __slots__ = (
        "began", "body", "disconnected", "keep_alive", "message_event", "protocol", "response_complete", "stop", "tried", "work",
    )  # fmt: skip

    def __init__(self, protocol: ExpressProtocol, stop: Stop, keep_alive: bool) -> None:
        self.protocol, self.stop, self.keep_alive = protocol, stop, keep_alive
        self.began = time.perf_counter()
        self.body: bytes | bytearray = b""
        self.message_event = _NOBODY
        self.disconnected = self.response_complete = self.tried = False

    def add(self, part: bytes) -> None:
        """More of the content."""
        if not self.body:
            self.body = part
            return
        if isinstance(self.body, bytes):
            self.body = bytearray(self.body)
        self.body += part

    def run(self) -> None:
        """Everything has come: ask the desk."""
        try:
            if self.body:
                check_json(dict(self.protocol.headers))
            self.work = self.stop.work(self.body)
        except Exception as error:
            self.refuse(error)
        else:
            self._ask()

    def _ask(self) -> None:
        try:
            self.stop.desk.put(self.work, self.answered)
        except Exception as error:
            self.refuse(error)

    def answered(self, found: Any) -> None:
        """The desk has answered."""
        stop = self.stop
        if not isinstance(found, Exception):
            self._finish(None, stop.text(found))
        elif not self.tried and may_come(stop.desk, found):
            self.tried = True
            self.protocol.loop.call_later(LATE, self._ask)
        else:
            self.refuse(found)

    def refuse(self, error: Exception) -> None:
        """Something is wrong."""
        self._finish(self.stop.endpoint.refused(error), b"", error)

    def _finish(self, refusal: Answer | None, text: bytes, error: Exception | None = None) -> None:
        protocol = self.protocol
        self.stop.endpoint.answered(
            "POST", self.stop.path, refusal.status_code if refusal else 200, self.began, error
        )
        self.response_complete = True
        if self.disconnected:
            return
        headers = protocol.server_state.default_headers
        if refusal is None and self.keep_alive:
            protocol.transport.write(b"%s%d\r\n\r\n%s" % (protocol.express.head(headers), len(text), text))
        else:
            protocol.transport.write(self._whole(refusal or Answer(text, 200, {}), headers))
        if not self.keep_alive:
            protocol.transport.close()
        protocol.on_response_complete()

    def _whole(self, answer: Answer, headers: list[tuple[bytes, bytes]]) -> bytes:
        """Status, headers and content."""
        said = [*headers, *answer.raw_headers]
        if (b"connection", b"close") in said:
            self.keep_alive = False
        elif not self.keep_alive:
            said.append((b"connection", b"close"))
        lines = [b"%s: %s\r\n" % pair for pair in said]
        return b"".join((STATUS_LINE[answer.status_code], *lines, b"\r\n", bytes(answer.body)))


class ExpressProtocol(HttpToolsProtocol):
    """uvicorn's protocol of a connection, with a way around ASGI."""

    express: Express
    cycle: Any  # of uvicorn, or an errand

    def on_message_begin(self) -> None:
        """A request begins: what only ASGI needs is made when it is known to go that way."""
        self.url = b""
        self.expect_100_continue = False
        self.headers = []

    def on_headers_complete(self) -> None:
        """Decide which way it goes."""
        former, parser = self.cycle, self.parser
        if (
            parser.get_method() == b"POST"
            and (former is None or former.response_complete)
            and (stop := self._stop()) is not None
            and not parser.should_upgrade()
        ):
            keep_alive = parser.get_http_version() != "1.0" and parser.should_keep_alive()
            errand = self.cycle = Errand(self, stop, keep_alive)
            try:
                stop.endpoint.admit(dict(self.headers), self.client)
            except Exception as error:
                errand.refuse(error)
            return
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.url, self.expect_100_continue = url, expects
        self.headers.extend(headers)
        super().on_headers_complete()

    def _stop(self) -> Stop | None:
        express = self.app_state.get("express")
        if express is None or not express.is_open or self.expect_100_continue:
            return None
        if self.flow.write_paused or self.pipeline or self.transport.is_closing():
            return None
        self.express = express
        found: Stop | None = express.stop(self.url)
        return found

    def on_body(self, body: bytes) -> None:
        """A part of the content."""
        errand = self.cycle
        if not isinstance(errand, Errand):
            super().on_body(body)
        elif not errand.response_complete:
            errand.add(body)
            if len(errand.body) > self.express.most:
                errand.refuse(too_long(self.express.most))

    def on_message_complete(self) -> None:
        """All of it has come."""
        errand = self.cycle
        if not isinstance(errand, Errand):
            super().on_message_complete()
        elif not errand.response_complete:
            errand.run()
