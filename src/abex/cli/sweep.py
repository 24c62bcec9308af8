"""What the commands that compute share: options that say where results are and who computes, the store, and progress."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from abex.cli.help import WholeNumber
from abex.lab.results import Store
from abex.lab.sweeps.sweep import SweepStatus
from abex.support.errors import UserError, shown

DEFAULT = "abex-results"
STORE = "cells.sqlite"

store_option = click.option(
    "--results",
    "folder",
    default=lambda: os.environ.get("ABEX_RESULTS", DEFAULT),
    show_default=f"$ABEX_RESULTS or {DEFAULT}",
    help="Folder of the store, figures and report.",
)


def work_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of everything that computes."""
    for option in (
        store_option,
        click.option("--json", "as_json", is_flag=True, help="One JSON object a line on standard output."),
        click.option(
            "--executor",
            default="threads",
            show_default=True,
            help="Where to compute: threads, processes, or the address of a Dask scheduler, tcp://host:port.",
        ),
        click.option("--workers", type=WholeNumber(1), help="Threads or processes; all cores unless given."),
    ):
        function = option(function)
    return function


def open_store(folder: str, *, must_exist: bool = False) -> Store:
    """The store in a results folder."""
    from abex.support.reading import reader_errors, short_path

    path = Path(folder) / STORE
    with reader_errors(f"open the results in {short_path(folder)}"):
        there = path.exists()
    if must_exist and not there:
        raise no_results(folder)
    return Store(path)


def no_results(folder: str) -> UserError:
    """What is said where there is nothing to show."""
    return UserError(
        f"there are no results in {shown(folder)}: run `abex reproduce --quick` or `abex run` first"
    )


def can_write(folder: str) -> bool:
    """Whether figures and report can be put into a results folder; one that may only be read is no mistake."""
    figures = Path(folder) / "figures"
    return all(os.access(place, os.W_OK) for place in (Path(folder), figures) if place.exists())


class SweepReporter:
    """The status of the sweeps of an experiment: a bar on a terminal, two lines in a log, JSON lines for machines."""

    def __init__(self, name: str, as_json: bool) -> None:
        self.name, self.as_json = name, as_json
        self._bar: Any = None
        self._phase = ""
        self._began = time.monotonic()
        self._shown = 0.0
        self._waits = False

    def __call__(self, phase: str, status: SweepStatus) -> None:
        """Called after every commit."""
        if phase != self._phase:
            self._close()
            self._phase, self._began = phase, time.monotonic()
            for name in status.damaged:
                click.echo(f"abex: the stored result of {name} is damaged and is computed again", err=True)
            if status.left and not self.as_json:
                self._open(status)
        if self.as_json:
            if status.left == 0 or time.monotonic() - self._shown > 0.5:
                self._print(status)
        elif status.waiting and not self._waits:
            self._waits = True
            click.echo(
                f"abex: another run is computing the last {status.waiting} cells of {self.name}: waiting for them",
                err=True,
            )
        if self._bar is not None:
            self._bar.report(status.work, status.work + status.work_left, status.computed)

    def _open(self, status: SweepStatus) -> None:
        """Say what begins, and show the bar before the first cell is ready: that one may have to be compiled."""
        from abex.support.progress import Progress

        what = f"{self.name} (tuning)" if self._phase == "tuning" else self.name
        click.echo(f"{what}: {status.left} of {status.total} cells to compute", err=True)
        self._bar = Progress(what, total=status.work_left, unit="cells").__enter__()
        self._bar.show()

    def _print(self, status: SweepStatus) -> None:
        self._shown = time.monotonic()
        elapsed = self._shown - self._began
        event = {
            "experiment": self.name, "phase": self._phase, "cells": status.total, "stored": status.stored,
            "computed": status.computed, "shared": status.shared, "failed": len(status.failed),
            "cpu_seconds": round(status.seconds, 3),
            "cells_per_second": round(status.computed / elapsed, 3) if elapsed > 0 else None,
            "seconds_left": round(elapsed * status.work_left / status.work, 1) if status.work else None,
        }  # fmt: skip
        click.echo(json.dumps(event))

    def finish(self, statuses: list[SweepStatus]) -> None:
        """The last word about an experiment."""
        self._close()
        if self.as_json:
            return
        total, computed, shared = (
            sum(getattr(status, name) for status in statuses) for name in ("total", "computed", "shared")
        )
        seconds = sum(status.seconds for status in statuses)
        others = f", {shared} by another run" if shared else ""
        click.echo(
            f"{self.name}: {total} cells, {computed} computed now ({seconds:.1f} s CPU){others}", err=True
        )

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
            self._bar = None
        sys.stderr.flush()
