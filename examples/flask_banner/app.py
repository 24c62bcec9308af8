"""A page whose banner is chosen by a player that all workers share.

gunicorn --workers 4 "examples.flask_banner.app:create_app()"
"""

from __future__ import annotations

import os
import secrets
from datetime import timedelta

from flask import Flask, Response, make_response, redirect, request

from abex import Player, UserError


def create_app() -> Flask:
    """The application, as the environment says: BANNER_STORE, and BANNERS (red,green), to which a deploy may add."""
    app = Flask(__name__)
    player = Player.open(
        os.environ.get("BANNER_STORE", "sqlite:///banner.db"),
        "banner",
        arms=os.environ.get("BANNERS", "red,green").split(","),
        window=timedelta(minutes=30),  # a click comes within half an hour, or silence counts
        on_new_arms="add",
        on_missing_arms="keep",
    )

    @app.get("/")
    def home() -> Response:
        visitor = request.cookies.get("visitor") or secrets.token_hex(8)
        shown = player.decide(unit=visitor)  # the same one until it is clicked, whichever worker answers
        page = make_response(f'<a href="/click/{shown.id}">the {shown.arm} banner</a>')
        page.set_cookie("visitor", visitor, max_age=30 * 24 * 3600, httponly=True, samesite="Lax")
        return page

    @app.get("/click/<decision>")
    def click(decision: str) -> Response:
        try:
            player.update(decision, True)  # late or twice: it counts once
        except UserError as error:  # an id that nobody made, or a store that is away
            app.logger.warning("a click did not count: %s", error)
        return redirect("/")

    @app.get("/summary")
    def summary() -> dict[str, int]:
        player.refresh()
        return {str(row.arm): row.pulls for row in player.summary()}

    return app
