"""Logs of decisions: tables of columns that are nearly right, and dsjson, packed and damaged."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from abex.evaluation import Log, LogReplay, evaluate
from tests.fuzz.damage import Rng, maybe_damaged, one, token
from tests.fuzz.outcomes import File, read_file

NAMES = ("decision", "arm", "probability", "reward", "time", "observed", "also", "item_id", "click", "x")


def _cell(rng: Rng, name: str, tame: bool) -> str:
    if not tame and rng.random() < 0.15:
        return token(rng).replace("\n", " ")
    if name in ("also", "observed"):
        return one(rng, ("", "{}", '"{""1"": 0.5}"', '"{""1"": [2]}"', '"{""9"": 0}"', '"{" * 3', "0.5"))
    numbers = ("0.5", "1", "0.25") if tame else ("0.5", "1", "0", "-1", "1e-300", "nan", "inf", "1e999", "")
    return str(int(rng.integers(0, 4))) if name in ("arm", "item_id") else one(rng, numbers)


def tables(rng: Rng) -> Iterator[File]:
    """CSV files of logs."""
    while True:
        tame = rng.random() < 0.4
        names = list(NAMES[:5]) if tame else [name for name in NAMES if rng.random() < 0.7]
        lines = [",".join(names)]
        lines += [",".join(_cell(rng, name, tame) for name in names) for _ in range(int(rng.integers(0, 40)))]
        content = "\n".join(lines).encode("utf-8", "surrogatepass")
        if not tame:
            content = maybe_damaged(content, rng, 0.3)
        packed = rng.random() < 0.2
        yield File(
            "log.csv.gz" if packed else "log.csv", gzip.compress(content, 1, mtime=0) if packed else content
        )


def events(rng: Rng) -> Iterator[File]:
    """Lines of dsjson."""
    while True:
        tame = rng.random() < 0.4
        lines = []
        for _ in range(int(rng.integers(0, 40))):
            event: dict[str, Any] = {
                "_label_cost": -float(rng.integers(0, 2)),
                "_label_probability": 0.25 + 0.5 * float(rng.random()),
                "_label_Action": int(rng.integers(1, 4)),
                "EventId": str(rng.integers(0, 99)),
                "a": [1, 2, 3],
            }
            if not tame and rng.random() < 0.3:
                strange = one(
                    rng, (None, True, "x", 10**400, -1, 0, 1e308, float("nan"), [], {}, 2**31, [1] * 9)
                )
                event[one(rng, tuple(event))] = strange
            lines.append(json.dumps(event))
        if not tame and rng.random() < 0.1:
            lines.append(one(rng, ("[" * 100_000, "[]", "{}", "1", "null", '{"_label_cost": 1}')))
        content = "\n".join(lines).encode()
        yield File("log.dsjson", content if tame else maybe_damaged(content, rng, 0.3))


def run(case: File) -> str:
    """Read the log, value uniform choice on it, play it; what comes out is sane."""

    def read(path: Path, **options: Any) -> None:
        log = Log.read(path, **options)
        assert len(log) >= 1
        assert np.isfinite(log.reward).all()
        assert (log.probability > 0.0).all()
        if 0.0 <= log.reward.min() <= log.reward.max() <= 1.0:
            for verdict in evaluate(log, "Uniform", estimators=["replay", "IPS", "SNIPS"]).verdicts:
                assert verdict.reason or verdict.interval[0] <= verdict.interval[1]
            if log.counts().min() > 0:
                assert LogReplay(log).n_arms == log.n_arms

    return read_file(case, read)
