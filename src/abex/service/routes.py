"""All endpoints: address, role, handler, and what they take and say."""

from __future__ import annotations

from typing import Any

from abex.service import bodies, handlers, monitoring, transfer
from abex.service.endpoint import Route

PLAYER = "/v1/players/{name}"
WHOLE: dict[str, Any] = {"type": "integer", "minimum": 1}
LIMIT = (("limit", WHOLE | {"maximum": handlers.MOST_LISTED}),)
LOG = (("format", {"type": "string", "enum": ["csv", "parquet", "dsjson"]}), ("last", WHOLE))
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
    Route("GET", f"{PLAYER}/export", "admin", handlers.export_player),
    Route("GET", f"{PLAYER}/summary", "read", handlers.summary, query=LIMIT),
    Route("GET", f"{PLAYER}/probabilities", "read", handlers.probabilities, query=LIMIT),
    Route("GET", f"{PLAYER}/arms", "read", handlers.list_arms, query=LIMIT),
    Route("POST", f"{PLAYER}/arms", "admin", handlers.add_arm, bodies.ArmBody, status=201),
    Route("PATCH", f"{PLAYER}/arms/{{arm}}", "admin", handlers.rename_arm, bodies.RenameBody),
    Route("DELETE", f"{PLAYER}/arms/{{arm}}", "admin", handlers.remove_arm),
    Route("POST", f"{PLAYER}/learn", "admin", transfer.learn, bodies.LearnBody),
    Route("GET", f"{PLAYER}/timeline", "read", monitoring.timeline),
    Route("GET", f"{PLAYER}/log", "admin", monitoring.log, query=LOG, media="text/csv"),
    Route("POST", f"{PLAYER}/evaluate", "admin", monitoring.evaluate, bodies.EvaluateBody),
    Route("GET", "/health", None, monitoring.health),
    Route("GET", "/ready", None, monitoring.ready),
    Route("GET", "/metrics", "read", monitoring.metrics, media="text/plain"),
)
