"""The ASGI application: finds the endpoint of a request.

An endpoint is what stands around a handler: who may ask, how much; errors as one JSON sentence; a count and a line in the log.
"""

from __future__ import annotations

import contextlib
import logging
import traceback
from collections.abc import AsyncIterator, Callable, Mapping
from functools import lru_cache
from time import perf_counter
from typing import Any
from urllib.parse import quote, unquote

import msgspec
from prometheus_client import Counter, Histogram
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Router
from starlette.types import Receive, Scope, Send

from abex.players.changes import AliasError, UnknownAliasError, working_for
from abex.players.journal import ArchivedError, UnavailableError
from abex.players.player import UnknownDecisionError
from abex.players.requests import TooManyPendingError
from abex.service.directory import HTTPError, JSONAnswer, ServiceState, capital, encode
from abex.service.keys import KeyFile
from abex.service.routes import ALIAS, PAGE, PLAYER, ROUTES, Route
from abex.service.settings import Settings
from abex.support.errors import UserError, brief, shown

logger = logging.getLogger("abex.serve")
#: what a mistake of the library is called in HTTP; any other one 400
STATUS: tuple[tuple[type[UserError], int], ...] = (
    (UnavailableError, 503),
    (UnknownDecisionError, 404),
    (UnknownAliasError, 404),
    (ArchivedError, 409),
    (AliasError, 409),
    (TooManyPendingError, 429),
)
#: what is told of a store that is away; the log says why, with its address
AWAY = "the store cannot be reached just now: send the request again, nothing counts twice"
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
RETRY_AFTER = {429: "1", 503: "1"}
IS_JSON = b"content-type", b"application/json"
PLAYERS, ALIASES = PLAYER.partition("{")[0], ALIAS.partition("{")[0]


def create_app(settings: Settings) -> Service:
    """The service as an ASGI application, for uvicorn or another server, or to be mounted in an application of your own.

    >>> app = create_app(Settings(store="sqlite:///shop.db"))
    >>> app.find("POST", "/v1/players/home%2Fbanner/decisions")[1]
    {'name': 'home/banner'}
    """
    return Service(settings)


class Service:
    """The ASGI application: finds the endpoint of a request, and nothing else. It changes nothing of its process."""

    def __init__(self, settings: Settings) -> None:
        self.state = ServiceState(settings)
        self._endpoints = {
            (route.path, route.method): Endpoint(self.state, route) for route in (*ROUTES, *PAGE)
        }
        self._nothing_here = Endpoint(self.state, Route("", "", None, self.nothing_here))
        self._router = Router(lifespan=self._lifespan)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request to its endpoint."""
        if scope["type"] == "lifespan":
            await self._router.lifespan(scope, receive, send)
        elif scope["type"] == "http":
            endpoint, scope["path_params"] = self.find(scope["method"], path_of(scope))
            await endpoint(scope, receive, send)
        else:
            await send({"type": "websocket.close"})

    def find(self, method: str, path: str) -> tuple[Endpoint, dict[str, str]]:
        """The endpoint of an address as it is sent, and the names in it."""
        pattern, names = pattern_of(path)
        return self._endpoints.get(
            (pattern, "GET" if method == "HEAD" else method), self._nothing_here
        ), names

    async def nothing_here(self, state: ServiceState, request: Request, body: None) -> None:
        """An address that is not there, or has not that method."""
        pattern, _ = pattern_of(path_of(request.scope))
        path, methods = shown(request.url.path), [way for place, way in self._endpoints if place == pattern]
        if methods:
            sentence = f"the address {path} has no method {shown(request.method)}"
            raise HTTPError(405, sentence, allow=", ".join(methods))
        raise HTTPError(404, f"there is nothing at {path}; /openapi.json has all addresses")

    async def close(self) -> None:
        """Write what waits and leave the store: for who mounts the application, whose server does not tell it of the end."""
        await self.state.close()

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: Any) -> AsyncIterator[None]:
        yield
        await self.close()


def path_of(scope: Scope) -> str:
    """The address of a request as it was sent: a name may have a slash in it."""
    path = scope["raw_path"].decode("latin-1") if scope.get("raw_path") else quote(scope["path"])
    return path.removeprefix(quote(scope.get("root_path", "")))


@lru_cache(maxsize=4096)
def pattern_of(path: str) -> tuple[str, dict[str, str]]:
    """An address as the table of routes has it, and the names in it, in which slashes are sent as %2F.

    >>> pattern_of("/v1/players/banner/arms/a%2Fb")
    ('/v1/players/{name}/arms/{arm}', {'name': 'banner', 'arm': 'a/b'})
    """
    if path.startswith(PLAYERS):
        name, slash, rest = path[len(PLAYERS) :].partition("/")
        if rest.startswith("arms/"):
            return f"{PLAYER}/arms/{{arm}}", {"name": unquote(name), "arm": unquote(rest[5:])}
        return PLAYER + slash + rest, {"name": unquote(name)}
    if path.startswith(ALIASES):
        name, slash, rest = path[len(ALIASES) :].partition("/")
        return ALIAS + slash + rest, {"name": unquote(name)}
    if path.startswith("/page/"):
        return "/page/{file}", {"file": path[6:]}
    return path, {}


class Endpoint:
    """A handler as an ASGI application of its own, for those who have a role."""

    def __init__(self, state: ServiceState, route: Route) -> None:
        self._state, self._route, self._name = state, route, route.name
        self._counts: dict[int, tuple[Counter, Histogram]] = {}  # by status
        self._changes = route.method != "GET"
        self._decode = None if route.body is None else msgspec.json.Decoder(route.body).decode

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        began, route, failed = perf_counter(), self._route, None
        answer: Any
        try:
            headers = dict(scope["headers"])
            who = self._authorize(headers)
            if route.role == "admin":
                working_for.set(who or address_of(scope))
            decode = self._decode
            body = None if decode is None else decoded(decode, await self._content(headers, receive))
            answer = await route.handler(self._state, Request(scope), body)
        except ClientDisconnect:
            return
        except Exception as error:
            answer, failed = self._refused(error), error
        if isinstance(answer, Response):
            self._record(scope, answer.status_code, began, failed)
            await answer(scope, receive, send)
            return
        content = encode(answer)
        self._record(scope, route.status, began, None)
        length = b"content-length", b"%d" % len(content)
        await send({"type": "http.response.start", "status": route.status, "headers": [IS_JSON, length]})
        await send({"type": "http.response.body", "body": content})

    def _authorize(self, headers: Mapping[bytes, bytes]) -> str:
        """Refuse who may not ask; whose key it is."""
        keys, role = self._state.settings.keys, self._route.role
        if keys is None:
            self._check_page(headers)
        elif role is not None:
            return self._check_key(keys, headers.get(b"authorization", b"").decode("latin-1"), role)
        return ""

    def _check_page(self, headers: Mapping[bytes, bytes]) -> None:
        """Refuse what a web page elsewhere can have a browser send; a key no browser sends by itself."""
        settings = self._state.settings
        host = headers.get(b"host", b"").decode("latin-1")
        if not settings.behind_proxy and not is_own_name(host, settings.host):
            raise HTTPError(421, f"this service does not answer for the host {shown(host)}")
        if self._changes and is_foreign(headers, settings.behind_proxy):
            raise HTTPError(403, "a web page of another site may change nothing here")

    def _check_key(self, keys: KeyFile, header: str, role: str) -> str:
        scheme, _, key = header.partition(" ")
        known = scheme.lower() == "bearer" and key.strip() != ""
        allowed = keys.allows(key.strip(), role) if known else None
        if allowed is None:
            needed = "an API key is needed: send the header Authorization: Bearer KEY"
            raise HTTPError(401, "this API key is not known" if known else needed, www_authenticate="Bearer")
        if not allowed:
            raise HTTPError(403, f"this API key may not do that: it needs the role {role}")
        return allowed

    async def _content(self, headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
        """The content of a request, if it is JSON and not too long."""
        most, more = self._state.settings.max_body, True
        parts: list[bytes] = []
        length = 0
        while more:
            message = await receive()
            if message["type"] != "http.request":
                raise ClientDisconnect
            more = message.get("more_body", False)
            if part := message.get("body", b""):
                parts.append(part)
                length += len(part)
                if length > most:
                    raise HTTPError(413, f"a request may have {most:,} bytes", connection="close")
        if parts or b"content-type" in headers:
            _check_json(headers)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _refused(self, error: Exception) -> JSONAnswer:
        """What went wrong as an answer; what should not have is written down with its trace."""
        if isinstance(error, UserError):
            return error_response(error)
        trace = "".join(traceback.format_exception(error))
        logger.error("failed", extra={"fields": {"trace": trace, "endpoint": self._name}})
        return JSONAnswer({"error": "Something went wrong inside the service"}, 500)

    def _record(self, scope: Scope, status: int, began: float, error: Exception | None) -> None:
        """Count a request; log it where it failed, or all are logged."""
        seconds = perf_counter() - began
        if status not in self._counts:
            metrics, name = self._state.metrics, self._name
            self._counts[status] = metrics.requests.labels(name, str(status)), metrics.seconds.labels(name)
        count, latency = self._counts[status]
        count.inc()
        latency.observe(seconds)
        if error is None and not self._state.settings.access_log:
            return
        fields = {
            "endpoint": self._name,
            "method": scope["method"],
            "path": scope["path"][:300],
            "status": status,
            "milliseconds": round(1000.0 * seconds, 2),
        }
        if error is not None:
            fields["error"] = str(error) if isinstance(error, UserError) else repr(error)
        logger.log(logging.ERROR if status >= 500 else logging.INFO, "request", extra={"fields": fields})


def address_of(scope: Scope) -> str:
    """Who asks, where there are no keys."""
    return f"client {scope['client'][0]}" if scope.get("client") else "a client"


@lru_cache(maxsize=1024)
def is_own_name(host: str, ours: str) -> bool:
    """Whether the Host header of a request names this service: a web page elsewhere must not stand in for it.

    >>> is_own_name("[::1]:8080", "127.0.0.1"), is_own_name("shop.example", "127.0.0.1")
    (True, False)
    """
    name, _, port = host.rpartition(":")
    return (name if port.isdigit() else host).strip("[]").lower() in (*LOOPBACK_NAMES, ours.lower())


def is_foreign(headers: Mapping[bytes, bytes], behind_proxy: bool) -> bool:
    """Whether a web page of another site sent a request."""
    site = headers.get(b"sec-fetch-site", b"none")
    if behind_proxy:
        return site == b"cross-site"
    here = headers.get(b"host", b"").lower()
    is_from_here = b"origin" not in headers or headers[b"origin"].partition(b"://")[2].lower() == here
    return site not in (b"none", b"same-origin") or not is_from_here


def decoded(decode: Callable[[bytes], Any], content: bytes) -> Any:
    """The body of a request; an error is one sentence.

    >>> from abex.service.bodies import DecideBody
    >>> decoded(msgspec.json.Decoder(DecideBody).decode, b'{"unit": 7}')
    Traceback (most recent call last):
    ...
    abex.support.errors.UserError: the field "unit" is wrong: expected `str | null`, got `int`
    >>> decoded(msgspec.json.Decoder(DecideBody).decode, b"{unit: 7}")
    Traceback (most recent call last):
    ...
    abex.support.errors.UserError: JSON is malformed: object keys must be strings (byte 1)
    """
    try:
        return decode(content or b"{}")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        said, _, place = str(error).partition(" - at `$")
        said = said if said.startswith("JSON ") else said[:1].lower() + said[1:]
        place = place.strip("`.")
        raise UserError(brief(f'the field "{place}" is wrong: {said}' if place else said, 200)) from None


def _check_json(headers: Mapping[bytes, bytes]) -> None:
    """Refuse a content that does not call itself JSON."""
    kind = headers.get(b"content-type", b"")
    if kind != b"application/json" and kind.partition(b";")[0].strip().lower() != b"application/json":
        # a web page elsewhere cannot send this type without the browser's asking us first
        raise HTTPError(415, "send JSON, with the header Content-Type: application/json")


def error_response(error: UserError) -> JSONAnswer:
    """A mistake as a sentence."""
    headers: dict[str, str] = {}
    if isinstance(error, HTTPError):
        status, headers = error.status, error.headers
    else:
        status = next((code for kind, code in STATUS if isinstance(error, kind)), 400)
    if status in RETRY_AFTER:
        headers = {"retry-after": RETRY_AFTER[status]} | headers
    said = AWAY if isinstance(error, UnavailableError) else str(error)
    return JSONAnswer({"error": capital(said)}, status, headers)
