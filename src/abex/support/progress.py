"""Progress bars with rate and time left, on a terminal or in a notebook, for work that takes longer than a second.

A line says what is being compiled meanwhile.
"""

from __future__ import annotations

import html
import math
import sys
import threading
import time
from contextlib import ExitStack
from datetime import timedelta
from types import TracebackType
from typing import Any

from abex.kernels import on_compiling
from abex.support.extras import installed

PATIENCE = 1.0  # seconds before a bar appears
SECONDS = 0.2  # between two drawings in a notebook


class Progress:
    """A count of work done, from any thread; a bar by `rich` once the work has lasted a second.

    Parameters
    ----------
    what : str
        What is being done.
    total : float
        Units of work in all.
    show : bool or None
        None: only on a terminal and in a notebook. False: never. True: also where the output is neither.
    unit : str or None
        What is counted beside the work (`report`), for the rate; none is shown unless given.
    """

    def __init__(self, what: str, total: float, show: bool | None = None, *, unit: str | None = None) -> None:
        self.what, self.total, self.done = what, float(total), 0.0
        self._in_notebook = in_notebook() and show is not False
        terminal = sys.stderr.isatty() if show is None else show
        self._wanted = self._in_notebook or (terminal and installed("rich"))
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._unit, self._count = unit, 0
        self._listening = ExitStack()
        self._bar: Any = None
        self._task: Any = None
        self._page: NotebookBar | None = None

    def advance(self, units: float = 1.0) -> None:
        """Count ``units`` of work as done."""
        with self._lock:
            self.done += units
            self._show()

    def report(self, done: float, total: float, count: int) -> None:
        """Set work done, total work and finished units; the total may change."""
        with self._lock:
            self.done, self.total, self._count = done, total, count
            self._show()

    def rate_and_remaining(self) -> str:
        """Rate and time left as text.

        >>> progress = Progress("sweep", 60.0, show=False, unit="cells")
        >>> progress.report(30.0, 60.0, 10)
        >>> progress.rate_and_remaining().endswith("cells/s, 0:00:00 left")
        True
        """
        elapsed = time.monotonic() - self._began
        rate = f"{self._count / elapsed:.2g} {self._unit}/s" if elapsed > 0 and self._unit else ""
        if not self.done or self.total == math.inf:
            return rate
        left = elapsed * max(0.0, self.total - self.done) / self.done
        return f"{rate}{', ' if rate else ''}{timedelta(seconds=round(left))} left"

    def show(self) -> None:
        """Open the bar now, where there is a terminal and work to do, whatever time has passed."""
        with self._lock:
            if self._page is not None:
                self._draw(now=True)
            elif self._wanted and self._bar is None and self.done < self.total:
                self._open()

    def _show(self) -> None:
        if self._page is not None:
            if time.monotonic() - self._began > PATIENCE:
                self._draw()
        elif self._bar is not None:
            more = {} if self._unit is None else {"total": self.total, "rate": self.rate_and_remaining()}
            self._bar.update(self._task, completed=self.done, **more)
        elif self._wanted and time.monotonic() - self._began > PATIENCE and self.done < self.total:
            self._open()

    def _draw(self, *, now: bool = False) -> None:
        """In a notebook."""
        assert self._page is not None
        self._page.draw(self.what, self.done, self.total, self.rate_and_remaining(), now=now)

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        # rich forgets its speed whenever a total changes: where it may, rate and time left are ours
        ours = (TextColumn("{task.fields[rate]}"),)
        theirs = (TextColumn("left"), TimeRemainingColumn())
        self._bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            *(theirs if self._unit is None else ours),
            console=Console(stderr=True, force_terminal=True),
            transient=True,
        )
        self._task = self._bar.add_task(
            self.what, total=self.total, completed=self.done, rate=self.rate_and_remaining()
        )
        self._bar.start()

    def _say_compiling(self, what: str, kept: bool) -> None:
        line = f"compiling {what} ...{' kept for the next time' if kept else ''}"
        with self._lock:
            if self._page is not None:
                self._page.say(line)
            elif self._bar is None:
                print(line, file=sys.stderr, flush=True)
            else:
                self._bar.console.print(line, markup=False, highlight=False)

    def __enter__(self) -> Progress:
        if self._wanted:
            self._page = NotebookBar() if self._in_notebook else None
            self._listening.enter_context(on_compiling(self._say_compiling))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listening.close()
        if self._bar is not None:
            self._bar.stop()
        if self._page is not None:
            self._page.close()


def in_notebook() -> bool:
    """Whether the program runs in a Jupyter kernel, which has imported IPython already."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


class NotebookBar:
    """A progress bar in a notebook, with a line for what is being compiled.

    It is made in the thread of the cell, so that it appears there, and may be drawn from any thread.
    """

    def __init__(self) -> None:
        from IPython.display import HTML, display

        self._html: Any = HTML
        self._shown: Any = display(HTML(""), display_id=True)
        self._last = 0.0

    def draw(self, what: str, done: float, total: float, beside: str, *, now: bool = False) -> None:
        """Redraw the bar, at most a few times a second."""
        if not now and time.monotonic() - self._last < SECONDS:
            return
        self._last = time.monotonic()
        share = f'value="{min(done / total, 1.0):.4f}"' if 0.0 < total < float("inf") else ""
        words = html.escape(f"{what} {beside}".strip())
        self._update(f"<progress max='1' {share}></progress> {words}")

    def say(self, line: str) -> None:
        """A line, until the bar is drawn again."""
        self._update(f"<small>{html.escape(line)}</small>")

    def close(self) -> None:
        """Remove the bar."""
        self._update("")

    def _update(self, content: str) -> None:
        if self._shown is not None:
            self._shown.update(self._html(content))
