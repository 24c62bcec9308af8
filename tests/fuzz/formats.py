"""Every format that is fuzzed: its generator, what its cases cost, and what the fuzzer found there."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tests.fuzz.damage import Rng


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package above it
        return False


class Format(NamedTuple):
    """A generator module's functions by name, a case's share of a run, and what was mended."""

    module: str
    cases: str = "cases"
    run: str = "run"
    share: float = 1.0  # of the cases of a run: dear ones get less
    mended: str = ""
    needs: str = ""  # a module of abex without which the format makes no promise yet

    def there(self) -> bool:
        """Whether generator and format are part of this source tree."""
        return _exists(f"tests.fuzz.{self.module}") and (not self.needs or _exists(self.needs))

    def functions(self) -> tuple[Callable[[Rng], Iterator[Any]], Callable[[Any], str]]:
        """``cases(rng)`` and ``run(case)``."""
        module = importlib.import_module(f"tests.fuzz.{self.module}")
        return getattr(module, self.cases), getattr(module, self.run)


ALL: dict[str, Format] = {
    "NumPy npy, npz": Format(
        "arrays",
        mended="headers that promise more than follows, objects and records, packed zeros",
    ),
    "saved curves": Format("arrays", "curves", "run_curves", 0.5, "packed zeros"),
    "CSV, TSV": Format(
        "tables",
        "csv",
        share=0.7,
        mended="packed zeros, wide first lines, one long word, classes beyond 64 bits",
    ),
    "Parquet": Format(
        "tables", "parquet", share=0.3, mended="lists and records as columns, words repeated a million times"
    ),
    "edges": Format("graphs", "edges", "run_edges", 1.5, "packed zeros, files without end, one long word"),
    "ratings and trust": Format("graphs", "ratings", "run_ratings", 0.5, "packed zeros, one long word"),
    "TOML experiments": Format(
        "experiments",
        mended="10^400, 1e12 seeds, 100,000 brackets, dates, numbers for tables and names, unknown keys of boosting problems",
    ),
    "command line": Format(
        "commands",
        share=0.3,
        mended="names of files that are too long, gaps of 1e-300, replications without end",
    ),
    "stores of results": Format(
        "stores",
        share=0.15,
        mended="tables without checksums, texts that are none",
        needs="abex.lab.results.store",
    ),
    "logs of decisions": Format("logs", "tables", share=0.3, needs="abex.evaluation"),
    "dsjson": Format("logs", "events", share=0.5, needs="abex.evaluation"),
    "player files": Format(
        "players",
        share=0.5,
        mended="states of wrong shapes, arms that do not exist, broken graphs",
    ),
    "large logs": Format(
        "large",
        "logs",
        "run_log",
        0.02,
        "words, lines and values of JSON that take many times their bytes",
        "abex.evaluation",
    ),
    "large tables": Format("large", "tables", "run_table", 0.01),
    "large player files": Format("large", "players", "run_player", 0.01, "empty lists by the million"),
    "large requests": Format("large", "bodies", "run_body", 0.01),
    "model files": Format(
        "models", share=0.1, mended="trees in a circle or without end, votes that are no numbers, wrong types"
    ),
}


def known() -> dict[str, Format]:
    """The formats whose generators are there."""
    return {name: one for name, one in ALL.items() if one.there()}
