"""A progress bar in a notebook, without widgets: one piece of HTML that is replaced as the work goes on."""

from __future__ import annotations

import html
import sys
import time
from typing import Any

SECONDS = 0.2  # between two drawings


def in_notebook() -> bool:
    """Whether a Jupyter kernel runs us; one that does has imported IPython already."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


class NotebookBar:
    """What is done, how much of it, what is said beside it, and what is being compiled meanwhile.

    It is made in the thread of the cell, so that it appears there, and may be drawn from any.
    """

    def __init__(self) -> None:
        from IPython.display import HTML, display

        self._html: Any = HTML
        self._shown: Any = display(HTML(""), display_id=True)
        self._last = 0.0

    def draw(self, what: str, done: float, total: float, beside: str, *, now: bool = False) -> None:
        """Replace what is shown, at most a few times a second."""
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
        """Leave nothing behind."""
        self._update("")

    def _update(self, content: str) -> None:
        if self._shown is not None:
            self._shown.update(self._html(content))
