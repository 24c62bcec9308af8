"""Who computes a cell: the host, and the versions on which its numbers depend. A worker that differs is refused.

With ``ABEX_MIXED_VERSIONS=1`` only the sources of abex must be the same. Either way the versions stand beside each result.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from functools import cache
from importlib import metadata

import abex
from abex.kernels import source_stamp
from abex.support.errors import UserError

MIXED = "ABEX_MIXED_VERSIONS"
PACKAGES = ("numpy", "numba")


@dataclass(frozen=True)
class CellWorker:
    """A process that computes cells.

    ``sources`` is the stamp of abex's source files, ``versions`` are those of abex and of the packages that compute.
    """

    host: str
    sources: str
    versions: dict[str, str]


@cache
def this_worker() -> CellWorker:
    """The process that asks.

    >>> sorted(this_worker().versions)
    ['abex', 'numba', 'numpy']
    """
    versions = {"abex": abex.__version__, **{name: metadata.version(name) for name in PACKAGES}}
    return CellWorker(socket.gethostname(), source_stamp(), versions)


def check_worker(worker: CellWorker) -> None:
    """Refuse a worker whose numbers may differ from those computed here."""
    here = this_worker()
    differ = [name for name, version in here.versions.items() if worker.versions.get(name) != version]
    there = ", ".join(f"{name} {worker.versions.get(name, 'missing')}" for name in differ)
    ours = ", ".join(f"{name} {here.versions[name]}" for name in differ)
    if worker.sources != here.sources:
        what = f"another version of abex ({there or 'other sources'}{f', here {ours}' if ours else ''})"
        raise UserError(
            f"the worker on {worker.host} runs {what}, its numbers may differ: install the same one there"
        )
    if differ and os.environ.get(MIXED) != "1":
        raise UserError(
            f"the worker on {worker.host} has {there}, here is {ours}, its numbers may differ: install the same versions "
            f"there, or set {MIXED}=1"
        )
