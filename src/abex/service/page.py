"""The page at `/`: what the players do, live; its files come from this process alone."""

from __future__ import annotations

import gzip
import hashlib
import json
from functools import cache, lru_cache
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from abex.evaluation.estimators import ESTIMATORS
from abex.policies.naming import known_policies
from abex.service.directory import HTTPError, ServiceState
from abex.support.errors import shown
from abex.support.figures import COLOURS
from abex.web import drawing_script, resource

HERE, SHARED = "abex.service", "abex.web"
HEADERS = {
    # nothing from elsewhere, no inline code or style, no eval, no frame around it
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "cache-control": "no-cache",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
OWN = ("abex.js", "asking.js", "player.js", "page.js", "icon.svg")
MEDIA = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}


class CachedFile(NamedTuple):
    """A file as it is sent."""

    media: str
    tag: str
    plain: bytes
    small: bytes


@lru_cache(maxsize=32)  # names that are asked for may be any
def _packed(name: str) -> CachedFile | None:
    """A file of the page; None if there is none of that name."""
    if name == "style.css":
        text = resource(SHARED, name) + resource(HERE, f"live/{name}")
    elif name == "vega.js":
        text = drawing_script()
    elif name == "charts.js":
        text = resource(SHARED, name)
    elif name in OWN:
        text = resource(HERE, f"live/{name}")
    else:
        return None
    return _pack(text, MEDIA[name.rpartition(".")[2]])


def _pack(text: str, media: str) -> CachedFile:
    plain = text.encode()
    tag = f'"{hashlib.sha256(plain).hexdigest()[:20]}"'
    return CachedFile(f"{media}; charset=utf-8", tag, plain, gzip.compress(plain, 6, mtime=0))


@cache
def _whole(asks_for_keys: bool) -> CachedFile:
    """The page itself; what differs between services is in its data, where nothing can end the script."""
    data = {
        "keys": asks_for_keys,
        "colours": COLOURS,
        "estimators": list(ESTIMATORS),
        "policies": [name for name, policy in known_policies().items() if not policy.needs_graph],
    }
    text = json.dumps(data).replace("<", "\\u003c")
    return _pack(resource(HERE, "live/index.html").replace("<!--data-->", text), "text/html")


async def page(state: ServiceState, request: Request, body: None) -> Response:
    """The page."""
    return _sent(_whole(state.settings.keys is not None), request)


async def page_file(state: ServiceState, request: Request, body: None) -> Response:
    """A script or style sheet of the page."""
    found = _packed(request.path_params["file"])
    if found is None:
        raise HTTPError(404, f"there is no file {shown(request.path_params['file'])} of the page")
    return _sent(found, request)


def _sent(file: CachedFile, request: Request) -> Response:
    headers = HEADERS | {"etag": file.tag, "vary": "accept-encoding"}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    is_small = "gzip" in request.headers.get("accept-encoding", "")
    if is_small:
        headers["content-encoding"] = "gzip"
    return Response(file.small if is_small else file.plain, media_type=file.media, headers=headers)
