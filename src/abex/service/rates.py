"""How often a client may ask: a bucket of tokens each, filled at a steady rate."""

from __future__ import annotations

import time
from collections import OrderedDict

BURST = 2.0  # seconds worth of requests that may come at once
MOST_CLIENTS = 10_000  # remembered; the one that has been quiet for longest is forgotten first


class Rates:
    """Tokens of clients by name.

    >>> rates = Rates(1.0)
    >>> [rates.wait("ann", now) for now in (0.0, 0.0, 0.0, 0.5, 1.0)]
    [0.0, 0.0, 1.0, 0.5, 0.0]
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._most = max(1.0, BURST * rate)
        self._clients: OrderedDict[str, tuple[float, float]] = (
            OrderedDict()
        )  # tokens, and when they were counted

    def wait(self, client: str, now: float | None = None) -> float:
        """Take a token; or the seconds until there is one."""
        if self._rate == 0.0:
            return 0.0
        now = time.monotonic() if now is None else now
        tokens, then = self._clients.pop(client, (self._most, now))
        tokens = min(self._most, tokens + (now - then) * self._rate)
        if len(self._clients) >= MOST_CLIENTS:
            self._clients.popitem(last=False)
        if tokens < 1.0:
            self._clients[client] = tokens, now
            return (1.0 - tokens) / self._rate
        self._clients[client] = tokens - 1.0, now
        return 0.0
