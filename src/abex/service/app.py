"""The ASGI application: every endpoint, with its address, role, handler and body; lifespan."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterable
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote

from starlette.requests import Request
from starlette.routing import Router
from starlette.types import Receive, Scope, Send

from abex.service import bodies, handlers, transfer, watching
from abex.service.desks import HTTPError, ServiceState
from abex.service.endpoint import Endpoint, Handler, Route
from abex.service.metrics import Metrics
from abex.service.openapi import description
from abex.service.page import page, page_file
from abex.service.settings import Settings
from abex.support.errors import shown

PLAYER = "/v1/players/{name}"
WHOLE: dict[str, Any] = {"type": "integer", "minimum": 1}
LIMIT = (("limit", WHOLE | {"maximum": handlers.MOST_LISTED}),)
LOG = (("format", {"type": "string", "enum": ["csv", "parquet", "dsjson"]}), ("last", WHOLE))
WINNER = (
    ("risk", {"type": "number", "exclusiveMinimum": 0, "maximum": 0.5}),
    ("at_least", {"type": "number", "exclusiveMinimum": 0}),
)
#: those asked most stand first
ROUTES = (
    Route("POST", f"{PLAYER}/decisions", "decide", handlers.decide, bodies.DecideBody),
    Route("POST", f"{PLAYER}/rewards", "reward", handlers.reward, bodies.RewardBody),
    Route("POST", f"{PLAYER}/decisions/batch", "decide", handlers.decide_many, bodies.DecideManyBody),
    Route("POST", f"{PLAYER}/rewards/batch", "reward", handlers.reward_many, bodies.RewardManyBody),
    Route("POST", f"{PLAYER}/observations", "reward", handlers.observe, bodies.ObserveBody),
    Route("GET", "/v1/players", "read", handlers.list_players, query=LIMIT),
    Route("POST", "/v1/players", "admin", handlers.create_player, bodies.NewPlayer, status=201),
    Route("DELETE", PLAYER, "admin", handlers.delete_player),
    Route("POST", f"{PLAYER}/archive", "admin", handlers.archive_player),
    Route("POST", f"{PLAYER}/restore", "admin", handlers.restore_player),
    Route("GET", f"{PLAYER}/export", "admin", handlers.export_player),
    Route("GET", f"{PLAYER}/summary", "read", handlers.summary, query=LIMIT, has_tag=True),
    Route("GET", f"{PLAYER}/probabilities", "read", handlers.probabilities, query=LIMIT),
    Route("GET", f"{PLAYER}/arms", "read", handlers.list_arms, query=LIMIT),
    Route("POST", f"{PLAYER}/arms", "admin", handlers.add_arm, bodies.ArmBody, status=201),
    Route("PATCH", f"{PLAYER}/arms/{{arm}}", "admin", handlers.rename_arm, bodies.RenameBody),
    Route("DELETE", f"{PLAYER}/arms/{{arm}}", "admin", handlers.remove_arm),
    Route("POST", f"{PLAYER}/learn", "admin", transfer.learn, bodies.LearnBody),
    Route("GET", f"{PLAYER}/timeline", "read", watching.timeline),
    Route("GET", f"{PLAYER}/winner", "read", watching.winner, query=WINNER),
    Route("GET", f"{PLAYER}/log", "admin", watching.log, query=LOG, media="text/csv"),
    Route("POST", f"{PLAYER}/evaluate", "admin", watching.evaluate, bodies.EvaluateBody),
    Route("GET", "/health", None, watching.health),
    Route("GET", "/ready", None, watching.ready),
    Route("GET", "/metrics", "read", watching.metrics, media="text/plain"),
)
PLAYERS = PLAYER.partition("{")[0]


def create_app(settings: Settings) -> Service:
    """The service as an ASGI application, for uvicorn or another server, or to be mounted in an application of your own.

    >>> app = create_app(Settings(store="sqlite:///shop.db"))
    >>> app.find("POST", "/v1/players/home%2Fbanner/decisions")[1]
    {'name': 'home/banner'}
    """
    return Service(settings)


class Service:
    """The ASGI application: finds the endpoint of a request, and nothing else. It changes nothing of its process."""

    def __init__(self, settings: Settings, metrics: Metrics | None = None) -> None:
        self.state = ServiceState(settings, metrics or Metrics())
        self._endpoints: dict[str, dict[str, Endpoint]] = {}
        for route in (*ROUTES, *PAGE):
            self._endpoints.setdefault(route.path, {})[route.method] = Endpoint(self.state, route)
        self._nothing_here = Endpoint(self.state, Route("", "", None, nothing_here))
        self._others = {
            path: Endpoint(self.state, Route("", path, None, others_than(methods)))
            for path, methods in self._endpoints.items()
        }
        self._router = Router(lifespan=self._lifespan)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request to its endpoint."""
        if scope["type"] == "lifespan":
            await self._router.lifespan(scope, receive, send)
        elif scope["type"] == "http":
            # as it was sent: a name may have a slash in it
            path = scope["raw_path"].decode("latin-1") if scope.get("raw_path") else quote(scope["path"])
            path = path.removeprefix(quote(scope.get("root_path", "")))
            endpoint, scope["path_params"] = self.find(scope["method"], path)
            await endpoint(scope, receive, send)
        else:
            await send({"type": "websocket.close"})

    def find(self, method: str, path: str) -> tuple[Endpoint, dict[str, str]]:
        """The endpoint of an address as it is sent, and the names in it."""
        pattern, names = pattern_of(path)
        methods = self._endpoints.get(pattern)
        if methods is None:
            return self._nothing_here, names
        return methods.get("GET" if method == "HEAD" else method, self._others[pattern]), names

    async def close(self) -> None:
        """Write what waits and leave the store: for who mounts the application, whose server does not tell it of the end."""
        await self.state.close()

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: Any) -> AsyncIterator[None]:
        yield
        await self.close()


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
    if path.startswith("/page/"):
        return "/page/{file}", {"file": path[6:]}
    return path, {}


async def nothing_here(state: ServiceState, request: Request, body: None) -> None:
    """An address that is not there."""
    raise HTTPError(404, f"there is nothing at {shown(request.url.path)}; /openapi.json has all addresses")


def others_than(methods: Iterable[str]) -> Handler:
    """The answer to methods that an address does not have."""

    async def wrong_method(state: ServiceState, request: Request, body: None) -> None:
        path, method = shown(request.url.path), shown(request.method)
        raise HTTPError(405, f"the address {path} has no method {method}", allow=", ".join(methods))

    return wrong_method


async def openapi(state: ServiceState, request: Request, body: None) -> dict[str, Any]:
    """The description of the service."""
    return description(ROUTES)


#: what is not part of the description
PAGE = (
    Route("GET", "/openapi.json", None, openapi),
    Route("GET", "/", None, page),
    Route("GET", "/page/{file}", None, page_file),
)
