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


def can_write(folder: str) -> bool:
    """Whether figures and report can be put into a results folder; one that may only be read is no mistake."""
    figures = Path(folder) / "figures"
    return all(os.access(place, os.W_OK) for place in (Path(folder), figures) if place.exists())


def draw_figures(outcome: Any, folder: str) -> list[Path]:
    """The figures of an experiment, in the results folder; none where it may only be read, which is said."""
    from abex.errors import UserError
    from abex.experiments.panels import draw

    if not can_write(folder):
        click.echo(
            f"abex: {outcome.experiment.id} is not drawn: the folder {folder!r} may only be read", err=True
        )
        return []
    try:
        return draw(outcome, Path(folder) / "figures")
    except OSError as error:
        raise UserError(f"cannot write figures into {folder!r}: {error.strerror or error}") from error


class Teller:
    """Tells how a sweep goes: a bar on a terminal, a line at the end in a log, JSON lines for machines."""

    def __init__(self, name: str, quiet: bool, as_json: bool) -> None:
        self.name, self.quiet, self.as_json = name, quiet, as_json
        self._bar: Any = None
        self._phase = ""
        self._began = time.monotonic()
        self._shown = 0.0
        self._said = False

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
        if state.waiting and not (self._said or self.quiet or self.as_json):
            self._said = True
            click.echo(
                f"abex: another run is computing the last {state.waiting} cells of {self.name}: waiting for them",
                err=True,
            )
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
            "computed": state.computed, "shared": state.shared, "failed": len(state.failed),
            "cpu_seconds": round(state.seconds, 3),
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
        shared = sum(state.shared for state in states)
        others = f", {shared} by another run" if shared else ""
        click.echo(
            f"{self.name}: {total} cells, {computed} computed now ({seconds:.1f} s CPU){others}", err=True
        )

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
            self._bar = None
        sys.stderr.flush()
