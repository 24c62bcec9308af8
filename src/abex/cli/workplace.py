"""What the commands around experiments share: where results are, who computes, how progress is told."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from abex.results import Store
from abex.sweeps.sweep import EXECUTORS, Progressed

DEFAULT = "abex-results"
STORE = "cells.sqlite"


def store_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """The option --results."""
    return click.option(
        "--results",
        "folder",
        default=lambda: os.environ.get("ABEX_RESULTS", DEFAULT),
        show_default=f"$ABEX_RESULTS or {DEFAULT}",
        help="Folder of the store, figures and report.",
    )(function)


def work_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of everything that computes."""
    for option in reversed(
        (
            click.option(
                "--workers", type=int, default=None, help="Threads or processes; all cores unless given."
            ),
            click.option(
                "--executor",
                type=click.Choice(EXECUTORS),
                default="threads",
                show_default=True,
                help="Where to compute.",
            ),
            click.option("--cluster", default=None, help="Address of a Dask scheduler, tcp://host:port."),
            click.option("--quiet", is_flag=True, help="Say nothing unless something is wrong."),
            click.option(
                "--json", "as_json", is_flag=True, help="One JSON object a line on standard output."
            ),
        )
    ):
        function = option(function)
    return store_option(function)


def open_store(folder: str, *, must_exist: bool = False) -> Store:
    """The store in a results folder."""
    from abex.errors import UserError, shown
    from abex.reading import named, reading

    path = Path(folder) / STORE
    with reading(f"open the results in {named(folder)}"):
        there = path.exists()
    if must_exist and not there:
        raise UserError(
            f"there are no results in {shown(folder)}: run `abex reproduce --quick` or `abex run` first"
        )
    return Store(path)


class Teller:
    """Tells how a sweep goes: a bar on a terminal, a line at the end in a log, JSON lines for machines."""

    def __init__(self, name: str, quiet: bool, as_json: bool) -> None:
        self.name, self.quiet, self.as_json = name, quiet, as_json
        self._bar: Any = None
        self._phase = ""
        self._began = time.monotonic()
        self._shown = 0.0

    def __call__(self, phase: str, state: Progressed) -> None:
        """Called after every commit."""
        if phase != self._phase:
            self._close()
            self._phase, self._began = phase, time.monotonic()
            for name in state.damaged:
                click.echo(f"abex: the stored result of {name} is damaged and is computed again", err=True)
            if not self.quiet and not self.as_json:
                from abex.progress import Progress

                what = f"{self.name} ({phase})" if phase == "tuning" else self.name
                self._bar = Progress(what, total=state.seconds_left, unit="cells")
        if self._bar is not None:
            self._bar.report(state.seconds, state.seconds + state.seconds_left, state.computed)
        if self.as_json and (state.left == 0 or time.monotonic() - self._shown > 0.5):
            self._shown = time.monotonic()
            self._say(phase, state)

    def _say(self, phase: str, state: Progressed) -> None:
        elapsed = time.monotonic() - self._began
        left = elapsed * state.seconds_left / state.seconds if state.seconds else None
        event = {
            "experiment": self.name, "phase": phase, "cells": state.total, "stored": state.stored,
            "computed": state.computed, "failed": len(state.failed), "cpu_seconds": round(state.seconds, 3),
            "cells_per_second": round(state.computed / elapsed, 3) if elapsed > 0 else None,
            "seconds_left": None if left is None else round(left, 1),
        }  # fmt: skip
        click.echo(json.dumps(event))

    def finish(self, states: list[Progressed]) -> None:
        """The last word about an experiment."""
        self._close()
        if self.quiet or self.as_json:
            return
        total = sum(state.total for state in states)
        computed = sum(state.computed for state in states)
        seconds = sum(state.seconds for state in states)
        click.echo(f"{self.name}: {total} cells, {computed} computed now ({seconds:.1f} s CPU)", err=True)

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
            self._bar = None
        sys.stderr.flush()
