"""How a sweep reports to a person: a bar on a terminal, a line at its end in a log, JSON lines for machines."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import click

from abex.cli.output import duration
from abex.lab.sweeps.sweep import SweepStatus


class ProgressReporter:
    """Reports the status of the sweeps of one experiment."""

    def __init__(self, name: str, quiet: bool, as_json: bool) -> None:
        self.name, self.quiet, self.as_json = name, quiet, as_json
        self._bar: Any = None
        self._phase = ""
        self._began = time.monotonic()
        self._shown = 0.0
        self._said = False

    def __call__(self, phase: str, status: SweepStatus) -> None:
        """Called after every commit."""
        if phase != self._phase:
            self._close()
            self._phase, self._began = phase, time.monotonic()
            for name in status.damaged:
                click.echo(f"abex: the stored result of {name} is damaged and is computed again", err=True)
            if status.left and not self.quiet and not self.as_json:
                self._open(phase, status)
        if status.waiting and not (self._said or self.quiet or self.as_json):
            self._said = True
            click.echo(
                f"abex: another run is computing the last {status.waiting} cells of {self.name}: waiting for them",
                err=True,
            )
        if self._bar is not None:
            self._bar.report(status.seconds, status.seconds + status.seconds_left, status.computed)
        if self.as_json and (status.left == 0 or time.monotonic() - self._shown > 0.5):
            self._shown = time.monotonic()
            self._say(phase, status)

    def _open(self, phase: str, status: SweepStatus) -> None:
        """Say what begins, and show the bar before the first cell is ready: that one may have to be compiled."""
        from abex.support.progress import Progress

        what = f"{self.name} ({phase})" if phase == "tuning" else self.name
        time_left = f"{duration(status.seconds_left)} of CPU time once compiled"
        click.echo(f"{what}: {status.left} of {status.total} cells to compute, {time_left}", err=True)
        self._bar = Progress(what, total=status.seconds_left, unit="cells").__enter__()
        self._bar.show()

    def _say(self, phase: str, status: SweepStatus) -> None:
        elapsed = time.monotonic() - self._began
        left = elapsed * status.seconds_left / status.seconds if status.seconds else None
        event = {
            "experiment": self.name, "phase": phase, "cells": status.total, "stored": status.stored,
            "computed": status.computed, "shared": status.shared, "failed": len(status.failed),
            "cpu_seconds": round(status.seconds, 3),
            "cells_per_second": round(status.computed / elapsed, 3) if elapsed > 0 else None,
            "seconds_left": None if left is None else round(left, 1),
        }  # fmt: skip
        click.echo(json.dumps(event))

    def finish(self, statuses: list[SweepStatus]) -> None:
        """The last word about an experiment."""
        self._close()
        if self.quiet or self.as_json:
            return
        total = sum(status.total for status in statuses)
        computed = sum(status.computed for status in statuses)
        seconds = sum(status.seconds for status in statuses)
        shared = sum(status.shared for status in statuses)
        others = f", {shared} by another run" if shared else ""
        click.echo(
            f"{self.name}: {total} cells, {computed} computed now ({seconds:.1f} s CPU){others}", err=True
        )

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
            self._bar = None
        sys.stderr.flush()
