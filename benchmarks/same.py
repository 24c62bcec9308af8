"""One SHA-256 for each thing that a rebuilding may leave as it is: regret, decisions, states, logs, models, answers, figures.

    python -m benchmarks.same [--only NAME ...] [--out FILE]    NAME is a subject or part of its name
    python -m benchmarks.same --against FILE                    what differs from the commit before; exit code 1 if any

A subject has parts, such as policies or tables, each with a hash of its own: ``--detail`` prints them, and a comparison names
those that differ. Hashes depend on the processor and its libraries, so the FILE must come from the same machine. What is left
out of them: clocks, process ids, versions, paths and random ids.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.subjects import Absent, Part, boosting, laboratory, players, policies

Parts = dict[str, str]  # part -> hash


class Subject(NamedTuple):
    """What is hashed."""

    parts: Callable[[], Iterator[Part]]
    what: str
    needs_data: bool = False


SUBJECTS = {
    "regret": Subject(policies.regret, "regret and optimal pulls of every policy, compiled"),
    "regret-interpreted": Subject(policies.interpreted_regret, "the same on more instances, interpreted"),
    "decisions": Subject(
        policies.decisions, "every decision of a Player on a fixed stream, saved on the way"
    ),
    "shared-sqlite": Subject(players.sqlite_states, "state and log of shared players after mixed events"),
    "shared-postgresql": Subject(players.postgresql_states, "the same on a PostgreSQL server of our own"),
    "openapi": Subject(players.openapi, "/openapi.json"),
    "models": Subject(boosting.default_models, "default models of ten tables of scikit-learn"),
    "cells": Subject(laboratory.cells, "cells of the quick experiments"),
    "figures": Subject(laboratory.figures, "what the report of the quick experiments draws"),
    "commands": Subject(laboratory.commands, "every line of --json of the commands"),
    "published-models": Subject(boosting.published_models, "models of the published data sets", True),
}


def hashed(subject: Subject) -> Parts:
    """The hash of each part of a subject."""
    found: Parts = {}
    for name, content in subject.parts():
        if name in found:
            raise ValueError(f"two parts are called {name!r}")
        found[name] = hashlib.sha256(content.encode()).hexdigest()
    return found


def together(parts: Parts) -> str:
    """One hash of all parts, whatever their order."""
    return hashlib.sha256(json.dumps(sorted(parts.items())).encode()).hexdigest()


def differences(before: Parts, now: Parts) -> list[str]:
    """The parts that are not the same, in words."""
    return [
        *(f"differs: {name}" for name in now if name in before and before[name] != now[name]),
        *(f"gone: {name}" for name in before if name not in now),
        *(f"new: {name}" for name in now if name not in before),
    ]


def measure(names: list[str], detail: bool) -> dict[str, Parts]:
    """Hash the subjects and say so; those whose data are not here are left out."""
    found = {}
    for name in names:
        began = time.process_time()
        try:
            found[name] = hashed(SUBJECTS[name])
        except Absent as reason:
            print(f"{name:24}not here: {reason}", flush=True)
            continue
        spent = f"{len(found[name])} parts, {time.process_time() - began:.0f} s of CPU"
        print(f"{name:24}{together(found[name])}  {spent}", flush=True)
        if detail:
            for part, hash_ in found[name].items():
                print(f"    {hash_[:16]}  {part}")
    return found


def compare(before: dict[str, Parts], now: dict[str, Parts]) -> bool:
    """Say what differs; whether nothing does."""
    same = True
    for name in before.keys() ^ now.keys():
        print(f"{name}: {'hashed now' if name in now else 'in the file'} only, so not compared")
    for name, parts in now.items():
        if name not in before:
            continue
        found = differences(before[name], parts)
        same = same and not found
        print(f"{name}: " + (f"not the same in {len(found)} of {len(parts)} parts" if found else "the same"))
        for line in found:
            print(f"    {line}")
    return same


def chosen(words: list[str]) -> list[str]:
    """The subjects whose names contain one of the words; all without any."""
    return [name for name in SUBJECTS if not words or any(word in name for word in words)]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="subjects, or parts of names")
    parser.add_argument("--no-data", action="store_true", help="leave out what needs the published data sets")
    parser.add_argument("--list", action="store_true", help="name the subjects")
    parser.add_argument("--detail", action="store_true", help="the hash of every part as well")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write all hashes as JSON")
    parser.add_argument("--against", type=Path, metavar="FILE", help="name what differs from such a file")
    options = parser.parse_args(arguments)
    if unknown := [word for word in options.only if not chosen([word])]:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(SUBJECTS)}")
    names = [name for name in chosen(options.only) if not (options.no_data and SUBJECTS[name].needs_data)]
    if options.list:
        for name in names:
            print(f"{name:24}{SUBJECTS[name].what}")
        return 0
    saved: dict[str, Any] = json.loads(options.against.read_text()) if options.against else {}
    before = {name: parts for name, parts in saved.items() if name in names}
    now = measure(names, options.detail)
    if options.out:
        options.out.write_text(json.dumps(now, indent=1) + "\n")
    return 0 if not options.against or compare(before, now) else 1


if __name__ == "__main__":
    sys.exit(main())
