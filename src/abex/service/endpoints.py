"""Around every handler: who asks, how often, how much; errors as one JSON sentence; a count and a line in the log."""

from __future__ import annotations

import json
import logging
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from abex.players.journal import UnavailableError
from abex.players.player import UnknownDecisionError
from abex.players.together import CrowdedError
from abex.service.directory import ConflictError, Directory, FullError, UnknownPlayerError
from abex.service.measuring import Meter
from abex.service.rates import Rates
from abex.service.settings import Settings
from abex.support.errors import UserError, shown

logger = logging.getLogger("abex.serve")
#: what a mistake is called in HTTP; the first that fits
STATUS: tuple[tuple[type[UserError], int], ...] = (
    (UnavailableError, 503),
    (UnknownDecisionError, 404),
    (UnknownPlayerError, 404),
    (ConflictError, 409),
    (CrowdedError, 429),
    (FullError, 429),
)
MOST_NAMES = 100
RETRY_AFTER = {429: "1", 503: "1"}


class RefusedError(UserError):
    """A request that is answered by a status of its own."""

    def __init__(self, status: int, sentence: str, **headers: str) -> None:
        super().__init__(sentence)
        self.status, self.headers = status, {name.replace("_", "-"): value for name, value in headers.items()}


class Context:
    """What all handlers of a process share."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.directory = Directory(settings)
        self.meter = Meter()
        self.rates = Rates(settings.rate)
        self.own_names: set[bytes] = set()  # Host headers that were found to name this service
        self.stopping = False  # streams end


Handler = Callable[[Context, Request], Awaitable[Response]]


class Answer(Response):
    """A short JSON answer: what Starlette's `Response` would send, with less around it."""

    def __init__(self, content: bytes, status: int, headers: Mapping[str, str]) -> None:
        self.status_code, self.body = status, content
        self.raw_headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(content))]
        self.raw_headers += [
            (name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body})


def answer(content: Any, status: int = 200, **headers: str) -> Answer:
    """JSON; there is nothing in it that is not a number."""
    return Answer(_encode(content).encode(), status, headers)


_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


def refusal(error: UserError) -> Answer:
    """A mistake as a sentence."""
    headers: dict[str, str] = {}
    if isinstance(error, RefusedError):
        status, headers = error.status, error.headers
    else:
        status = next((code for kind, code in STATUS if isinstance(error, kind)), 400)
    if status in RETRY_AFTER:
        headers = {"retry-after": RETRY_AFTER[status]} | headers
    return answer({"error": str(error)}, status, **headers)


class Endpoint:
    """A handler as an ASGI application of its own, for those who have a role."""

    def __init__(self, context: Context, name: str, role: str | None, handler: Handler) -> None:
        self._context, self._name, self._role, self._handler = context, name, role, handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        began = time.perf_counter()
        failed = None
        response: Response
        try:
            self.admit(dict(scope["headers"]), scope.get("client"))
            response = await self._handler(self._context, Request(scope, receive))
        except ClientDisconnect:
            return
        except Exception as error:
            response, failed = self.refused(error), error
        self.answered(scope["method"], scope["path"], response.status_code, began, failed)
        await response(scope, receive, send)

    def admit(self, headers: Mapping[bytes, bytes], client: Sequence[Any] | None) -> None:
        """Refuse who may not ask, or asks too often."""
        context = self._context
        host = headers.get(b"host", b"")
        if host not in context.own_names:
            name = host.decode("latin-1")
            if not context.settings.is_own_name(name):
                raise RefusedError(421, f"this service does not answer for the host {shown(name)}")
            if len(context.own_names) < MOST_NAMES:
                context.own_names.add(host)
        if self._role is None:
            return
        who = str(client[0]) if client else ""
        if context.settings.keys:
            who = self._known(headers.get(b"authorization", b"").decode("latin-1"), self._role)
        wait = context.rates.wait(who)
        if wait > 0.0:
            raise RefusedError(429, "too many requests: ask more slowly", retry_after=f"{wait:.3f}")

    def refused(self, error: Exception) -> Answer:
        """What went wrong as an answer; what should not have is written down with its trace."""
        if isinstance(error, UserError):
            return refusal(error)
        trace = "".join(traceback.format_exception(error))
        logger.error("failed", extra={"told": {"trace": trace, "endpoint": self._name}})
        return answer({"error": "something went wrong inside the service"}, 500)

    def answered(
        self, method: str, path: str, status: int, began: float, error: Exception | None = None
    ) -> None:
        """Count a request; log it where it failed, or all are logged."""
        seconds = time.perf_counter() - began
        self._context.meter.count(self._name, status, seconds)
        if error is None and not self._context.settings.access_log:
            return
        told = {
            "endpoint": self._name,
            "method": method,
            "path": path[:300],
            "status": status,
            "milliseconds": round(1000.0 * seconds, 2),
        }
        if error is not None:
            told["error"] = str(error) if isinstance(error, UserError) else repr(error)
        logger.log(logging.ERROR if status >= 500 else logging.INFO, "request", extra={"told": told})

    def _known(self, header: str, role: str) -> str:
        scheme, _, key = header.partition(" ")
        allowed = (
            self._context.settings.keys.allows(key.strip(), role) if scheme.lower() == "bearer" else None
        )
        if allowed is None:
            raise RefusedError(
                401,
                "an API key is needed: send the header Authorization: Bearer KEY",
                www_authenticate="Bearer",
            )
        if not allowed:
            raise RefusedError(403, f"this API key may not do that: it needs the role {role}")
        return key


async def body_of(context: Context, request: Request) -> bytes:
    """The content of a request, if it is JSON and not too long."""
    most = context.settings.max_body
    content, more = b"", True
    while more:
        message = await request.receive()
        if message["type"] != "http.request":
            raise ClientDisconnect
        content = content + message["body"] if content else message["body"]
        more = message.get("more_body", False)
        if len(content) > most:
            raise too_long(most)
    if content:
        check_json(dict(request.scope["headers"]))
    return content


def check_json(headers: Mapping[bytes, bytes]) -> None:
    """Refuse a content that does not call itself JSON."""
    kind = headers.get(b"content-type", b"")
    if kind != b"application/json" and kind.partition(b";")[0].strip().lower() != b"application/json":
        # a web page elsewhere cannot send this type without the browser's asking us first
        raise RefusedError(415, "send JSON, with the header Content-Type: application/json")


def too_long(most: int) -> RefusedError:
    """The content of a request has more bytes than it may have."""
    return RefusedError(413, f"a request may have {most:,} bytes", connection="close")
