"""The quick experiments, and what commands print as JSON."""

from __future__ import annotations

import contextlib
import io
import json
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.subjects import Part, exact
from benchmarks.subjects.players import fixed_ids

from abex.cli import main

#: of a line of JSON: what depends on the machine and its load
MEASURED = {"cpu_seconds", "cells_per_second", "seconds_left"}


def ran(*words: str) -> str:
    """What a command prints."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code = main(list(words))
    if code:
        raise RuntimeError(f"abex {' '.join(words)} ended with {code}: {said.getvalue()[-500:]}")
    return said.getvalue()


@cache
def reproduced() -> tuple[str, list[tuple[str, Any, Any]], dict[str, Any]]:
    """Lines, cells and the figures' data of `abex reproduce --quick`; one thread, in a folder of its own."""
    from abex.lab.experiments import Experiment, collect
    from abex.lab.report.page import figure_data
    from abex.lab.results import Store

    with tempfile.TemporaryDirectory() as folder:
        lines = ran("reproduce", "--quick", "--json", "--workers", "1", "--results", folder)
        with Store(Path(folder) / "cells.sqlite") as store:
            outcomes = [collect(Experiment.from_json(plain), store) for plain in store.experiments().values()]
            return lines, list(store), {one.experiment.id: figure_data(one) for one in outcomes}


def cells() -> Iterator[Part]:
    """The keys of all cells, and by policy what they hold."""
    held: dict[str, list[str]] = defaultdict(list)
    _, found, _ = reproduced()
    for key, cell, payload in sorted(found, key=lambda one: one[0]):
        arrays = [f"{name} {exact(values)}" for name, values in sorted(payload.arrays.items())]
        held[f"{cell['kind']} {cell['policy']}"].append(
            f"{key} {json.dumps(cell, sort_keys=True)} {arrays} {json.dumps(payload.numbers, sort_keys=True)}"
        )
    yield "keys", "\n".join(sorted(key for key, _, _ in found))
    for name, lines in held.items():
        yield name, "\n".join(lines)


def figures() -> Iterator[Part]:
    """What the report draws, without its axis of seconds."""
    _, _, drawn = reproduced()
    for name, data in drawn.items():
        rows = [{key: value for key, value in row.items() if "seconds" not in key} for row in data["rows"]]
        yield name, json.dumps({**data, "rows": rows}, sort_keys=True)


def commands() -> Iterator[Part]:
    """Every line of JSON that commands print."""
    lines, _, _ = reproduced()
    yield from counted("reproduce", lines)
    with tempfile.TemporaryDirectory() as folder, fixed_ids():
        yield from counted(
            "arena",
            ran(
                "arena", "--grid", "train", "--group", "adversarial", "--only", "UCB1", "--only", "Thompson",
                "--replications", "2", "--json", "--workers", "1", "--results", folder,
            ),
        )  # fmt: skip
        store = ("--store", f"sqlite:///{folder}/shop.db")
        ran("player", "create", "banner", "--policy", "UCB1", "--arm", "red", "--arm", "green", *store)
        for word in ("--json", "--count 2 --json"):
            said = ran("player", "decide", "banner", *word.split(), *store)
            yield f"player decide {word}", said
            for name in re.findall(r'"id": "([^"]*)"', said):
                ran("player", "reward", "banner", name, "0.5", *store)
        yield "player summary banner --json", ran("player", "summary", "banner", "--json", *store)
        yield "player summary --json", ran("player", "summary", "--json", *store)


def counted(command: str, lines: str) -> Iterator[Part]:
    """The lines by their kind; of those that say how far a run is the last one of each phase."""
    last: dict[str, dict[str, Any]] = {}
    for number, text in enumerate(lines.splitlines()):
        line = {key: value for key, value in json.loads(text).items() if key not in MEASURED}
        name = line.get("claim") or line.get("line") or line.get("policy") or line.get("phase") or str(number)
        if "claims" in line:
            name = "summary"
        last[f"{command}: {line.get('experiment', '')} {name}"] = line
    for name, line in last.items():
        yield name, json.dumps(line)
