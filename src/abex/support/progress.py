"""Progress bars with rate and time left, on a terminal or in a notebook, for work that takes longer than a second.

A line says what is being compiled meanwhile.
"""

from __future__ import annotations

import math
import sys
import threading
import warnings
from contextlib import ExitStack
from types import TracebackType
from typing import Any

from abex.kernels import on_compiling
from abex.support.extras import installed

PATIENCE = 1.0  # seconds before a bar appears
BAR = "{desc}: {percentage:3.0f}%|{bar:30}| {remaining} left{postfix}"
ENDLESS = "{desc}: {elapsed}"


class Progress:
    """A count of work done, from any thread; a bar by `tqdm` once the work has lasted a second.

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
        self._file = sys.stdout if in_notebook() else sys.stderr  # which a notebook would paint red
        wanted = sys.stderr.isatty() or in_notebook() if show is None else show
        self._wanted = wanted and installed("tqdm")
        self._unit = unit
        self._lock = threading.Lock()
        self._listening = ExitStack()
        self._bar: Any = None

    def advance(self, units: float = 1.0) -> None:
        """Count ``units`` of work as done."""
        with self._lock:
            self.done += units
            self._show()

    def report(self, done: float, total: float, count: int) -> None:
        """Set work done, total work and finished units; the total may change."""
        with self._lock:
            self.done, self.total = done, total
            if self._bar is not None:
                elapsed = self._bar.format_dict["elapsed"]
                rate = f"{count / elapsed:.2g} {self._unit}/s" if elapsed > 0 and self._unit else ""
                self._bar.set_postfix_str(rate, refresh=False)
            self._show()

    def show(self) -> None:
        """Open the bar now, where there is a terminal and work to do, whatever time has passed."""
        with self._lock:
            if self._bar is not None and self.done < self.total:
                self._bar.delay = 0.0
                self._bar.refresh()

    def _show(self) -> None:
        if self._bar is not None:
            if self.total < math.inf:
                self._bar.total = self.total
            self._bar.update(self.done - self._bar.n)

    def _say_compiling(self, what: str, kept: bool) -> None:
        from tqdm import tqdm

        tqdm.write(f"compiling {what} ...{' kept for the next time' if kept else ''}", file=self._file)

    def __enter__(self) -> Progress:
        if self._wanted:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # without ipywidgets a notebook gets a bar of text
                from tqdm.auto import tqdm

                endless = self.total == math.inf
                self._bar = tqdm(
                    desc=self.what, total=None if endless else self.total, bar_format=ENDLESS if endless else BAR,
                    delay=PATIENCE, leave=False, smoothing=0.0, file=self._file, dynamic_ncols=True,
                )  # fmt: skip
            self._listening.enter_context(on_compiling(self._say_compiling))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listening.close()
        if self._bar is not None:
            self._bar.close()


def in_notebook() -> bool:
    """Whether the program runs in a Jupyter kernel, which has imported IPython already."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None
