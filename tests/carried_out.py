"""Requests of a shared player, in one commit."""

from __future__ import annotations

import asyncio

from abex.players.requests import RequestQueue


def carried_out(player, *requests, most_open=None):
    """The answer to each request, or the error that says why there is none."""

    async def answers():
        queue = RequestQueue(player, most_open)
        return await asyncio.gather(*map(queue.submit, requests), return_exceptions=True)

    return asyncio.run(answers())
