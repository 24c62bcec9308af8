"""A progress bar with the time left, shown on a terminal when the work takes longer than a second."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Any

PATIENCE = 1.0  # seconds before a bar appears


class Progress:
    """Counts work done from any thread; draws a bar with `rich` once the work has lasted a second.

    Parameters
    ----------
    what : str
        What is being done.
    total : float
        Units of work in all.
    show : bool or None
        None: only on a terminal. False: never. True: also where the output is no terminal.
    """

    def __init__(self, what: str, total: float, show: bool | None = None) -> None:
        self.what, self.total, self.done = what, float(total), 0.0
        self._wanted = sys.stderr.isatty() if show is None else show
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def advance(self, units: float = 1.0) -> None:
        """Count ``units`` as done."""
        with self._lock:
            self.done += units
            if self._bar is not None:
                self._bar.update(self._task, completed=self.done)
            elif self._wanted and time.monotonic() - self._began > PATIENCE and self.done < self.total:
                self._open()

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        self._bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=Console(stderr=True, force_terminal=True),
            transient=True,
        )
        self._task = self._bar.add_task(self.what, total=self.total, completed=self.done)
        self._bar.start()

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
