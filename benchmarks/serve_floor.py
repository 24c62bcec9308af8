"""Bare endpoints that return a constant: the floor of `benchmarks.serve`."""

from __future__ import annotations

import json
from typing import Any

CONSTANT = {"id": "01a1ece7-2d3b-7000-8000-01a02bd90503", "arm": 3, "probability": 0.1}
PATH = "/v1/players/{name}/decisions"


def starlette() -> Any:
    """Starlette, a constant."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    async def decide(request: Request) -> JSONResponse:
        await request.body()
        return JSONResponse(CONSTANT)

    return Starlette(routes=[Route(PATH, decide, methods=["GET", "POST"])])


def plain() -> Any:
    """A plain ASGI callable, a constant."""
    content = json.dumps(CONSTANT).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(content))]

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            while (await receive()).get("more_body"):
                pass
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": content})

    return answer
