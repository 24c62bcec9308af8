"""uvicorn around the application: one process, or several with a supervisor that replaces a worker that dies."""

from __future__ import annotations

import gc
import os
import socket
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from typing import Any

import uvicorn
from uvicorn.supervisors import Multiprocess

from abex.players.journal import journal_at
from abex.service.app import create_app
from abex.service.json_logs import LOGGING
from abex.service.metrics import FOLDER
from abex.service.settings import Settings
from abex.support.errors import UserError

SWITCH = 0.0005  # seconds after which a thread lets another one run: the loop and the players take turns
GRACE = 20  # seconds for requests that are under way when the service is told to stop
BACKLOG = 2048
STARTING = 60  # seconds that a worker may take to import all it needs before the supervisor takes it for hung


class Pulse:
    """Asks a worker through its pipe whether it is alive, and waits for no answer.

    uvicorn waits, for up to `STARTING` seconds: on a worker that dies before it answers, or takes its time to start, while it
    notices neither a signal nor what becomes of the others.
    """

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._asked: float | None = None  # when; None once it has answered

    def __call__(self, timeout: float) -> bool:
        """Whether the worker has not been silent for longer than that."""
        if self._asked is not None and self._pipe.poll():
            self._pipe.recv()
            self._asked = None
        if self._asked is None:
            self._asked = time.monotonic()
            self._pipe.send(b"ping")
        return time.monotonic() - self._asked <= timeout


class Supervisor(Multiprocess):
    """uvicorn's supervisor, which replaces workers that die or fall silent, without its waiting."""

    def keep_subprocess_alive(self) -> None:
        """Look at every worker once."""
        for worker in self.processes:
            vars(worker).setdefault("ping", Pulse(worker.parent_conn))
        super().keep_subprocess_alive()


class Factory:
    """Makes the application in the process that serves it; picklable."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def __call__(self) -> Any:
        """The application, in a process that does nothing else."""
        app = create_app(self.settings)
        sys.setswitchinterval(SWITCH)
        gc.collect()
        gc.freeze()  # what was imported stays: looking through it again and again would hold up requests
        return app


def configuration(settings: Settings) -> uvicorn.Config:
    """How uvicorn runs the application."""
    return uvicorn.Config(
        Factory(settings),
        factory=True,
        host=settings.host,
        port=settings.port,
        workers=settings.workers,
        log_config=LOGGING,
        access_log=False,
        server_header=False,
        lifespan="on",
        backlog=BACKLOG,
        timeout_worker_healthcheck=STARTING,
        timeout_graceful_shutdown=GRACE,
        proxy_headers=False,
        h11_max_incomplete_event_size=1 << 16,
    )


def listening_socket(settings: Settings) -> socket.socket:
    """Bound, so that a port that is taken, and a wrong address of the store, is one sentence before anything is served."""
    journal_at(settings.store)  # a store that is away may come back
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((settings.host, settings.port))
        found.listen(BACKLOG)
    except OSError as error:
        found.close()
        why = error.strerror or str(error)
        raise UserError(f"cannot listen on {settings.host} port {settings.port}: {why.lower()}") from None
    return found


def serve(settings: Settings, listening: socket.socket | None = None) -> None:
    """Serve until a signal ends it."""
    listening = listening_socket(settings) if listening is None else listening
    config = configuration(settings)
    if settings.workers == 1:
        uvicorn.Server(config).run(sockets=[listening])
        return
    with tempfile.TemporaryDirectory(prefix="abex-metrics-") as folder:
        os.environ[FOLDER] = folder
        Supervisor(config, [listening]).run()
