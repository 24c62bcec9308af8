"""Bare endpoints that return a constant, in two frameworks: the floor of `benchmarks.serve`."""

from __future__ import annotations

from typing import Any

CONSTANT = {"id": "01a1ece7-2d3b-7000-8000-01a02bd90503", "arm": 3, "probability": 0.1}
PATH = "/v1/players/{name}/decisions"


def bare() -> Any:
    """Starlette, a constant."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    async def decide(request: Request) -> JSONResponse:
        await request.body()
        return JSONResponse(CONSTANT)

    return Starlette(routes=[Route(PATH, decide, methods=["GET", "POST"])])


def starlette_checked() -> Any:
    """Starlette, the body checked by a pydantic model."""
    from pydantic import BaseModel
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    class Body(BaseModel):
        unit: str | None = None
        key: str | None = None

    async def decide(request: Request) -> JSONResponse:
        Body.model_validate_json(await request.body() or b"{}")
        return JSONResponse(CONSTANT)

    return Starlette(routes=[Route(PATH, decide, methods=["GET", "POST"])])


def fastapi_checked() -> Any:
    """FastAPI, which checks the body and the answer by models."""
    from fastapi import FastAPI
    from pydantic import BaseModel

    class Body(BaseModel):
        unit: str | None = None
        key: str | None = None

    class Choice(BaseModel):
        id: str
        arm: int
        probability: float

    app = FastAPI()

    async def decide(name: str, body: Body | None = None) -> Choice:
        return Choice(**CONSTANT)  # type: ignore[arg-type]

    decide.__annotations__ |= {"body": Body | None, "return": Choice}  # they are local
    app.post(PATH)(decide)
    app.get(PATH)(decide)
    return app
