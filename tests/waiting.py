"""Waiting for what happens, by the event: a busy machine may take as long as it needs."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from typing import Any

#: seconds after which a test is taken to hang; nothing that works takes so long
PATIENCE = float(os.environ.get("ABEX_TEST_PATIENCE", "600"))
KERNEL_PATIENCE = {
    f"{what}timeout": int(PATIENCE) for what in ("", "startup_", "iopub_")
}  # of a client of notebooks: to start, to work, to print


def wait_until(happened: Callable[[], Any], process: subprocess.Popen[Any] | None = None) -> Any:
    """What is true at last; an error where the process that should bring it about has ended without."""
    until = time.monotonic() + PATIENCE
    while True:
        ended = process is not None and process.poll() is not None
        if found := happened():
            return found
        assert not ended, f"the process ended with {process.returncode}"
        assert time.monotonic() < until, "it never happened"
        time.sleep(0.02)
