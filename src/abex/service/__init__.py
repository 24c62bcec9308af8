"""A decision service: players of a store behind HTTP (extra ``serve``; command `abex serve`).

===============  ========================================================================================
`settings`       what a service is told when it starts, and whether that is safe
`keys`           API keys: roles, hashes, constant-time comparison
`bodies`         what requests may say, checked by pydantic
`endpoints`      around every handler: key, rate, size, errors as sentences, metrics, logs
`desk`           the one thread that works with a player; requests that wait share a commit
`directory`      the players of the store, opened when they are asked for
`handlers`       decide, reward, observe, arms, looking
`express`        decisions and rewards on the connection itself, around ASGI
`succession`     a player that learns from the log of the one it replaces
`overview`       summary and probabilities of the arms
`chronicle`      what the journal tells over time: shares, rewards, what uniform choice would have earned
`live_page`      the page at `/`, which shows all this
`exports`        the log as Parquet, CSV or dsjson; other policies valued on it
`openapi`        the description of all of it
`application`    the ASGI application
`launching`      uvicorn, several workers, an orderly end
===============  ========================================================================================
"""

from __future__ import annotations

from typing import Any

from abex.support.extras import needed
from abex.support.plugins import lazy_names

_lookup = lazy_names("abex.service", {"create_app": "application", "Settings": "settings"})


def __getattr__(name: str) -> Any:
    with needed("serve"):
        return _lookup(name)


__all__ = ["Settings", "create_app"]
