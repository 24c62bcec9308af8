"""A decision service: players of a store behind HTTP (extra ``serve``; command `abex serve`).

=============  =======================================================================================
`settings`     what a service is told when it starts, and whether that is safe
`keys`         API keys: roles, hashes, constant-time comparison
`app`          the ASGI application; around every handler: key, size, errors as sentences, metrics, log
`routes`       every endpoint: address, role, handler, body
`bodies`       what requests may say: structs whose types are the check
`directory`    what handlers share: the store and its players, each with a queue for its requests once it is asked for
`handlers`     players, decisions, rewards, observations, arms, summary
`watching`     timeline, log, other policies valued on it, health, readiness, metrics
`timeline`     what the journal tells over time: shares, rewards, what uniform choice would have earned
`transfer`     a player that learns from the log of the one it replaces
`metrics`      Prometheus
`openapi`      the description of all of it
`page`         the page at `/`, which shows all this
`connections`  deadlines for clients, limits of connections
`run`          uvicorn, several workers, an orderly end, lines of JSON in the log
=============  =======================================================================================
"""

from __future__ import annotations

from typing import Any

from abex.support.extras import needed
from abex.support.plugins import lazy_names

_lookup = lazy_names("abex.service", {"create_app": "app", "Settings": "settings"})


def __getattr__(name: str) -> Any:
    with needed("serve"):
        return _lookup(name)


__all__ = ["Settings", "create_app"]
