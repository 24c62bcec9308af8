"""uvicorn around the application: one process, or several with a supervisor that replaces a worker that dies."""

from __future__ import annotations

import gc
import json
import logging
import logging.config
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import time
from multiprocessing.connection import Connection as Pipe
from multiprocessing.connection import wait
from typing import Any

import uvicorn
from prometheus_client import disable_created_metrics
from prometheus_client.multiprocess import mark_process_dead

from abex.players.journal import journal_at
from abex.service.app import path_of, pattern_of
from abex.service.connections import Connection, Guard
from abex.service.metrics import FOLDER
from abex.service.settings import Settings
from abex.support.errors import UserError

SWITCH = 0.0005  # seconds after which a thread lets another one run: the loop and the players take turns
SHUTDOWN_SECONDS = 20  # for requests that are under way when the service is told to stop
SILENT_SECONDS = 60.0  # that a worker may say nothing, its start included, before it is taken for hung
RESTART_SECONDS = 1.0  # between two starts in the place of a worker
BACKLOG = 2048

logger = logging.getLogger("abex.serve")


class JsonLines(logging.Formatter):
    """One line a record: time, level, process, logger, message, and what else is known."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        fields: dict[str, Any] = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "process": os.getpid(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields |= getattr(record, "fields", {})
        if record.exc_info:
            fields["trace"] = self.formatException(record.exc_info)
        return json.dumps(fields, default=str)


#: for `logging.config.dictConfig`, and for uvicorn, which hands it to its workers
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "abex.service.run.JsonLines"}},
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": "json", "stream": "ext://sys.stderr"}
    },
    "loggers": {
        "abex.serve": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
        "uvicorn": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
        "asyncio": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
    },
}


def traced(app: Any) -> Any:
    """The application with a span for each request, named by its route, where the process was set up for OpenTelemetry.

    That is what ``opentelemetry-instrument abex serve`` does; its environment variables say where spans go.
    """
    if "opentelemetry.sdk.trace" not in sys.modules:
        return app
    try:
        from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware
    except ModuleNotFoundError:
        return app

    def named(scope: Any) -> tuple[str, dict[str, str]]:
        route = pattern_of(path_of(scope))[0]
        return f"{scope['method']} {route}", {"http.route": route}

    return OpenTelemetryMiddleware(app, default_span_details=named, exclude_spans=["receive", "send"])


def configuration(guard: Guard) -> uvicorn.Config:
    """How uvicorn runs the application."""
    config = uvicorn.Config(
        traced(guard),
        ws="none",
        log_config=LOGGING,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="on",
        backlog=BACKLOG,
        timeout_keep_alive=guard.settings.idle_timeout,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        h11_max_incomplete_event_size=1 << 16,
    )
    config.load()
    http: Any = config.http_protocol_class

    def connection(**options: Any) -> Connection:
        return Connection(guard, http(**options))

    config.http_protocol_class = connection  # type: ignore[assignment]
    return config


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


def warn_of_store(store: str) -> None:
    """Say why a store cannot be used, without waiting for it: it may come back."""
    journal = journal_at(store)
    try:
        journal.connect(create=True)
        journal.names()
    except UserError as error:
        logger.warning(
            "every request is answered by 503 until this is mended", extra={"fields": {"error": str(error)}}
        )
    finally:
        journal.close()


def work(
    settings: Settings,
    listening: socket.socket,
    supervisor: Pipe | None = None,
) -> None:
    """Answer requests until a signal ends it: all that a process does."""
    disable_created_metrics()  # type: ignore[no-untyped-call]
    server = uvicorn.Server(configuration(Guard(settings, supervisor)))
    sys.setswitchinterval(SWITCH)
    gc.collect()
    gc.freeze()  # what was imported stays: looking through it again and again would hold up requests
    server.run(sockets=[listening])


def serve(settings: Settings, listening: socket.socket | None = None) -> None:
    """Serve until a signal ends it."""
    logging.config.dictConfig(LOGGING)
    listening = listening_socket(settings) if listening is None else listening
    warn_of_store(settings.store)
    if settings.workers == 1:
        work(settings, listening)
        return
    with tempfile.TemporaryDirectory(prefix="abex-metrics-") as folder:
        os.environ[FOLDER] = folder  # for the workers
        supervise(settings, listening)


class Worker:
    """A process that answers requests, watched by its exit and by what it says every second."""

    def __init__(self, settings: Settings, listening: socket.socket) -> None:
        self.began = self.heard = time.monotonic()
        self.pipe, theirs = multiprocessing.Pipe(duplex=False)
        context = multiprocessing.get_context("spawn")
        self.process = context.Process(target=work, args=(settings, listening, theirs))
        self.process.start()
        theirs.close()

    def is_silent(self) -> bool:
        """Whether it has said nothing for too long."""
        while self.pipe.poll():
            try:
                self.pipe.recv_bytes()
            except EOFError:
                break
            self.heard = time.monotonic()
        return time.monotonic() - self.heard > SILENT_SECONDS

    def has_ended(self) -> bool:
        """Whether there is no process any more; one that hangs is ended."""
        if self.process.exitcode is None and self.is_silent():
            logger.error("worker %d says nothing and is killed", self.process.pid)
            self.process.kill()
            self.process.join()
        return self.process.exitcode is not None

    def stop(self) -> None:
        """Wait for its orderly end, but not for ever."""
        self.process.join(SHUTDOWN_SECONDS + 5.0)
        self.process.kill()
        self.process.join()
        self.pipe.close()
        mark_process_dead(self.process.pid)  # type: ignore[no-untyped-call]  # its connections are open no more


def supervise(settings: Settings, listening: socket.socket) -> None:
    """Keep all workers alive until a signal ends this process."""
    stopping = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *signalled: stopping.append(signalled))
    workers = [Worker(settings, listening) for _ in range(settings.workers)]
    while not stopping:
        wait([one.process.sentinel for one in workers if one.process.exitcode is None], timeout=0.5)
        for place, worker in enumerate(workers):
            if worker.has_ended() and time.monotonic() - worker.began >= RESTART_SECONDS:
                logger.warning(
                    "worker %d has ended (%s), another one starts",
                    worker.process.pid,
                    worker.process.exitcode,
                )
                worker.stop()
                workers[place] = Worker(settings, listening)
    for worker in workers:
        worker.process.terminate()
    for worker in workers:
        worker.stop()
