"""A small web shop that learns which banner to show.

uvicorn --factory examples.shop.app:create_app --workers 4

All workers share one player in a store: SQLite for the processes of a machine, PostgreSQL for many machines. A visitor has a
cookie and sees one banner until that is clicked or its window ends, whichever worker answers. A click comes late or never: half
an hour of silence is no click.
"""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Annotated

from fastapi import Cookie, FastAPI
from fastapi.responses import HTMLResponse, RedirectResponse

from abex import Player
from abex.players import UnavailableError
from abex.players.shared_player import SharedPlayer
from abex.support.errors import UserError

BANNERS = ("red", "green", "blue")
WINDOW = timedelta(minutes=30)
PAGE = """<!doctype html><title>Shop</title><h1>Today</h1>
<a href="/click/{decision}" style="display: block; padding: 3em; background: {banner}; color: white">Our offer</a>"""


def open_player(
    store: str, banners: tuple[str, ...], silence: str = "window", clock: Callable[[], float] | None = None
) -> SharedPlayer:
    """The player of this shop.

    A deploy that names another banner adds it; a worker of the old deploy that starts late takes none away.
    ``silence="expire"`` is the wrong recipe: clicks count when they come, and silence not before half an hour has gone.
    """
    return Player.open(
        store,
        "banner",
        arms=banners,
        on_new_arms="add",
        on_missing_arms="keep",
        clock=clock,
        **{silence: WINDOW},
    )


def create_app(clock: Callable[[], float] | None = None) -> FastAPI:
    """The shop, as the environment says: SHOP_STORE, SHOP_BANNERS (red,green,blue), SHOP_SILENCE (window)."""
    store = os.environ.get("SHOP_STORE", "sqlite:///shop.db")
    banners = tuple(os.environ.get("SHOP_BANNERS", ",".join(BANNERS)).split(","))
    silence = os.environ.get("SHOP_SILENCE", "window")

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        with open_player(store, banners, silence, clock) as player:
            app.state.player = player
            yield

    app = FastAPI(title="Shop", lifespan=life)

    @app.get("/")
    def home(visitor: Annotated[str | None, Cookie()] = None) -> HTMLResponse:
        visitor = visitor or secrets.token_hex(8)
        decision = app.state.player.decide(unit=visitor)
        page = HTMLResponse(PAGE.format(decision=decision.id, banner=decision.arm))
        page.set_cookie("visitor", visitor, max_age=30 * 24 * 3600, httponly=True, samesite="lax")
        page.headers["x-decision"], page.headers["x-banner"] = decision.id, decision.arm
        return page

    @app.get("/click/{decision}")
    def click(decision: str) -> RedirectResponse:
        try:
            counted = str(app.state.player.update(decision, True))
        except (
            UnavailableError
        ) as error:  # the store is away: this process keeps the click, or says that it does not
            counted = "later" if error.kept else "lost"
        except (
            UserError
        ):  # a made-up id, or one of a worker that was killed before it had written the decision
            counted = "unknown"
        return RedirectResponse("/product", status_code=303, headers={"x-counted": counted})

    @app.get("/product")
    def product() -> HTMLResponse:
        return HTMLResponse("<!doctype html><title>Shop</title><h1>Our offer</h1><a href='/'>Back</a>")

    @app.get("/banners")
    def banners_now() -> dict[str, dict[str, float | None]]:
        player = app.state.player
        player.refresh()
        return {
            str(row.arm): {"shown": row.pulls, "rate": None if math.isnan(row.mean) else row.mean}
            for row in player.summary()
        }

    return app
