"""What a service is told when it starts, and whether that is safe."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from abex.service.keys import KeyFile
from abex.support.errors import UserError, real_number, whole_number

#: limit -> the most that it may be
LIMITS = {
    "max_body": 1 << 30, "max_batch": 100_000, "max_open": 10**7, "max_arms": 10**7, "max_players": 10**6, "max_log": 10**8,
    "max_connections": 10**6, "max_client_connections": 10**6, "client_timeout": 86_400, "idle_timeout": 86_400,
}  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """A service as it is to be; picklable, so that every worker gets it as it is.

    Parameters
    ----------
    store : str
        Address of the store.
    host, port
        Where it listens.
    workers : int
        Processes that answer.
    keys : KeyFile, optional
        Who may do what; without keys everybody may do everything, which only loopback or a proxy allows.
    behind_proxy : bool
        A proxy in front decides who may ask.
    max_body : int
        Bytes of a request.
    max_batch : int
        Decisions or rewards in one request.
    max_open : int
        Decisions of a player that may wait for their rewards.
    max_arms, max_players : int
        Of a player, of the store.
    max_log : int
        Decisions of a log that is downloaded or valued, the latest ones.
    max_connections, max_client_connections : int
        Open at a worker, of all clients and of one address; behind a proxy all come from one.
    client_timeout : float
        Seconds in which a client must have sent a request, and in which it must read something of an answer.
    idle_timeout : int
        Seconds that a connection may be open between two requests.
    access_log : bool
        Log every request, not only those that fail.
    """

    store: str
    host: str = "127.0.0.1"
    port: int = 8080
    workers: int = 1
    keys: KeyFile | None = None
    behind_proxy: bool = False
    max_body: int = 1 << 20
    max_batch: int = 1_000
    max_open: int = 100_000
    max_arms: int = 1_000_000
    max_players: int = 1_000
    max_log: int = 200_000
    max_connections: int = 1_000
    max_client_connections: int = 500
    client_timeout: float = 20.0
    idle_timeout: int = 60
    access_log: bool = False

    def __post_init__(self) -> None:
        whole_number("workers", self.workers, least=1, most=1_000)
        for name, most in LIMITS.items():
            if name == "client_timeout":
                real_number(name, self.client_timeout, above=0.0, most=most)
            else:
                whole_number(name, getattr(self, name), least=1, most=most)
        whole_number("port", self.port, least=0, most=65_535)
        if not self.is_local and self.keys is None and not self.behind_proxy:
            raise UserError(
                f"a service on {self.host} can be reached from elsewhere: give it API keys (--keys FILE, made by "
                "`abex serve --new-key ROLE`), or say --behind-proxy where a proxy in front of it decides who may ask"
            )

    @property
    def is_local(self) -> bool:
        """Whether only processes of this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False
