"""Every endpoint: address, role, handler, body."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from starlette.requests import Request

from abex.service import bodies, handlers, transfer, watching
from abex.service.directory import ServiceState
from abex.service.openapi import description
from abex.service.page import page, page_file

Handler = Callable[[ServiceState, Request, Any], Awaitable[Any]]


class Route(NamedTuple):
    """An endpoint as the table of routes has it."""

    method: str
    path: str
    role: str | None  # None: everybody
    handler: Handler
    body: type[bodies.Body] | None = None
    query: tuple[tuple[str, dict[str, Any]], ...] = ()
    status: int = 200
    media: str = "application/json"
    has_tag: bool = False  # an ETag, by which who asks again learns that nothing has happened

    @property
    def name(self) -> str:
        """Of its handler."""
        name: str = self.handler.__name__
        return name


PLAYER = "/v1/players/{name}"
ALIAS = "/v1/aliases/{name}"
WHOLE: dict[str, Any] = {"type": "integer", "minimum": 1}
LIMIT = (("limit", WHOLE | {"maximum": handlers.MOST_LISTED}),)
LOG = (("format", {"type": "string", "enum": ["csv", "parquet", "dsjson"]}), ("last", WHOLE))
WINNER = (
    ("risk", {"type": "number", "exclusiveMinimum": 0, "maximum": 0.5}),
    ("at_least", {"type": "number", "exclusiveMinimum": 0}),
    ("control", {"type": "string"}),
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
    Route("PUT", ALIAS, "admin", handlers.set_alias, bodies.AliasBody),
    Route("POST", f"{ALIAS}/rollback", "admin", handlers.roll_back, bodies.RollbackBody),
    Route("DELETE", ALIAS, "admin", handlers.remove_alias),
    Route("GET", "/v1/changes", "read", handlers.changes, query=(*LIMIT, ("before", WHOLE))),
    Route("GET", f"{PLAYER}/timeline", "read", watching.timeline),
    Route("GET", f"{PLAYER}/winner", "read", watching.winner, query=WINNER),
    Route("GET", f"{PLAYER}/log", "admin", watching.log, query=LOG, media="text/csv"),
    Route("POST", f"{PLAYER}/evaluate", "admin", watching.evaluate, bodies.EvaluateBody),
    Route("GET", "/health", None, watching.health),
    Route("GET", "/ready", None, watching.ready),
    Route("GET", "/metrics", "read", watching.metrics, media="text/plain"),
)


async def openapi(state: ServiceState, request: Request, body: None) -> dict[str, Any]:
    """The description of the service."""
    return description(ROUTES)


#: what is not part of the description
PAGE = (
    Route("GET", "/openapi.json", None, openapi),
    Route("GET", "/", None, page),
    Route("GET", "/page/{file}", None, page_file),
)
