"""All endpoints: address, role, handler, and what they take and say."""

from __future__ import annotations

from typing import Any, NamedTuple

from abex.service import bodies, handlers, succession, watching_handlers
from abex.service.endpoints import Handler

PLAYER = "/v1/players/{name}"


class Served(NamedTuple):
    """An endpoint."""

    method: str
    path: str
    role: str | None  # None: everybody
    handler: Handler
    body: type[bodies.Body] | None = None
    query: tuple[tuple[str, dict[str, Any]], ...] = ()
    status: int = 200
    media: str = "application/json"

    @property
    def name(self) -> str:
        """Of its handler."""
        name: str = self.handler.__name__
        return name


WHOLE: dict[str, Any] = {"type": "integer", "minimum": 1}
LIMIT = (("limit", WHOLE | {"maximum": handlers.MOST_LISTED}),)
LOG = (("format", {"type": "string", "enum": ["csv", "parquet", "dsjson"]}), ("last", WHOLE))
#: those asked most stand first
ROUTES = (
    Served("POST", f"{PLAYER}/decisions", "decide", handlers.decide, bodies.AskBody),
    Served("POST", f"{PLAYER}/rewards", "reward", handlers.reward, bodies.RewardBody),
    Served("POST", f"{PLAYER}/decisions/batch", "decide", handlers.decide_many, bodies.AskManyBody),
    Served("POST", f"{PLAYER}/rewards/batch", "reward", handlers.reward_many, bodies.RewardManyBody),
    Served("POST", f"{PLAYER}/observations", "reward", handlers.observe, bodies.ObserveBody),
    Served("GET", "/v1/players", "read", handlers.list_players),
    Served("POST", "/v1/players", "admin", handlers.create_player, bodies.NewPlayer, status=201),
    Served("GET", f"{PLAYER}/summary", "read", handlers.summary, query=LIMIT),
    Served("GET", f"{PLAYER}/probabilities", "read", handlers.probabilities, query=LIMIT),
    Served("GET", f"{PLAYER}/arms", "read", handlers.list_arms, query=LIMIT),
    Served("POST", f"{PLAYER}/arms", "admin", handlers.add_arm, bodies.ArmBody, status=201),
    Served("PATCH", f"{PLAYER}/arms/{{arm:path}}", "admin", handlers.rename_arm, bodies.RenameBody),
    Served("DELETE", f"{PLAYER}/arms/{{arm:path}}", "admin", handlers.remove_arm),
    Served("POST", f"{PLAYER}/learn", "admin", succession.learn, bodies.LearnBody),
    Served("GET", f"{PLAYER}/timeline", "read", watching_handlers.timeline),
    Served("GET", f"{PLAYER}/stream", "read", watching_handlers.stream, media="text/event-stream"),
    Served("GET", f"{PLAYER}/log", "admin", watching_handlers.log, query=LOG, media="text/csv"),
    Served("POST", f"{PLAYER}/evaluate", "admin", watching_handlers.evaluate, bodies.EvaluateBody),
    Served("GET", "/health", None, watching_handlers.health),
    Served("GET", "/ready", None, watching_handlers.ready),
    Served("GET", "/metrics", "read", watching_handlers.metrics, media="text/plain"),
)
