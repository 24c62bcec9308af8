"""The ASGI application: one endpoint for each line of the table, and its description."""

from __future__ import annotations

import contextlib
import gc
import signal
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from functools import cache
from types import FrameType

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Route

from abex.service.endpoints import Answer, Context, Endpoint, RefusedError, answer, refusal
from abex.service.express import HANDLED, Express
from abex.service.live_page import live_page, live_page_file
from abex.service.openapi import description
from abex.service.routes import PLAYER, ROUTES
from abex.service.settings import Settings
from abex.support.errors import shown

SWITCH = 0.0005  # seconds after which a thread lets another one run: the loop and the desks take turns
EXPRESS = [f"{PLAYER}/{last}" for last in HANDLED]


def create_app(settings: Settings) -> Starlette:
    """The service as an ASGI application, for uvicorn or another server.

    >>> app = create_app(Settings(store="sqlite:///shop.db"))
    >>> [route.path for route in app.routes][:2]
    ['/v1/players/{name}/decisions', '/v1/players/{name}/rewards']
    """
    context = Context(settings)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[dict[str, Express]]:
        gc.collect()
        sys.setswitchinterval(SWITCH)
        gc.freeze()  # what was imported stays: looking through it again and again would hold up requests
        with _told_to_stop(context):
            yield {"express": Express(context, express)}
        await context.directory.close()

    endpoints = [Endpoint(context, one.name, one.role, one.handler) for one in ROUTES]
    routes = [
        Route(one.path, endpoint, methods=[one.method])
        for one, endpoint in zip(ROUTES, endpoints, strict=True)
    ]
    express = {
        one.path.rpartition("/")[2]: endpoint
        for one, endpoint in zip(ROUTES, endpoints, strict=True)
        if one.path in EXPRESS
    }
    for path, handler in (("/openapi.json", _openapi), ("/", live_page), ("/page/{file}", live_page_file)):
        name = handler.__name__.strip("_")
        routes.append(Route(path, Endpoint(context, name, None, handler), methods=["GET"]))
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: _refused})
    app.router.redirect_slashes = False
    app.state.context = context
    return app


@contextlib.contextmanager
def _told_to_stop(context: Context) -> Iterator[None]:
    """Tell open streams when a signal ends the process: the server waits for them, and they would go on for ever."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def stop(number: int, frame: FrameType | None) -> None:
        context.stopping = True
        handler = before[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)

    for number in before:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@cache
def _described() -> dict[str, object]:
    return description()


async def _openapi(context: Context, request: Request) -> Answer:
    """The description of the service."""
    return answer(_described())


async def _refused(request: Request, error: Exception) -> Answer:
    """An address that is not there, or has another method."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    path = shown(request.url.path)
    sentence = (
        f"{path} has no method {shown(request.method)}"
        if status == 405
        else f"there is nothing at {path}; /openapi.json has all addresses"
    )
    headers = (error.headers or {}) if isinstance(error, HTTPException) else {}
    return refusal(RefusedError(status, sentence, **{name.lower(): value for name, value in headers.items()}))
