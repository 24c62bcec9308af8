"""The list of mutants: what is changed where, and which tests should notice.

Each ``*.toml`` file here holds the mutants of a room. A table ``[[file]]`` names a source file (``path``, below
``src/abex``), the tests that should fail (``tests``, a file, with ``compiled = true`` where kernels must be compiled),
and its ``mutants``, one a line:

``name``
    What is wrong, in words.
``in``
    The function or ``Class.method`` that is changed; left out for the top level of the file.
``old``, ``new``
    ``old`` must stand in that definition exactly once: a mutant that no longer applies is a mistake in the list.
``k``
    pytest's ``-k``: the narrowest selection that should notice.
``tests``, ``compiled``
    Where they differ from those of the file.
"""

from __future__ import annotations

import ast
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SOURCE = ROOT / "src"


class Mutant(NamedTuple):
    """A mistake to be made on purpose."""

    room: str
    name: str
    path: str  # below src/abex
    within: str  # definition, "" for the whole file
    old: str
    new: str
    tests: str
    select: str
    compiled: bool


def catalogue() -> list[Mutant]:
    """All mutants, room by room."""
    found = []
    for file in sorted(HERE.glob("*.toml")):
        for entry in tomllib.loads(file.read_text(encoding="utf-8"))["file"]:
            for one in entry["mutants"]:
                given = {**entry, **one}
                mutant = Mutant(
                    file.stem, given["name"], given["path"], given.get("in", ""), given["old"], given["new"],
                    given["tests"], given["k"], given.get("compiled", False),
                )  # fmt: skip
                found.append(mutant)
    return found


def mutated(mutant: Mutant) -> str:
    """The text of the source file with the mistake in it; ValueError where it does not apply."""
    file = SOURCE / "abex" / mutant.path
    where = f"{mutant.room}.toml, {mutant.name!r}"
    if not file.is_file():
        raise ValueError(f"{where}: there is no src/abex/{mutant.path}")
    text = file.read_text(encoding="utf-8")
    begin, end = _span(text, mutant.within)
    if begin == end:
        raise ValueError(f"{where}: {mutant.path} does not define {mutant.within}")
    part = text[begin:end]
    if part.count(mutant.old) != 1:
        raise ValueError(
            f"{where}: {mutant.old!r} stands {part.count(mutant.old)} times in {mutant.path} {mutant.within}"
        )
    changed = text[:begin] + part.replace(mutant.old, mutant.new) + text[end:]
    try:
        ast.parse(changed)
    except SyntaxError as error:
        raise ValueError(f"{where}: what it makes is no Python: {error}") from error
    return changed


def out_of_date(mutants: list[Mutant]) -> list[str]:
    """What is wrong with the list, a sentence each."""
    wrong, names = [], set()
    for mutant in mutants:
        if mutant.name in names:
            wrong.append(f"{mutant.room}.toml: {mutant.name!r} is there twice")
        names.add(mutant.name)
        if not (ROOT / mutant.tests).is_file():
            wrong.append(f"{mutant.room}.toml, {mutant.name!r}: there is no {mutant.tests}")
        try:
            mutated(mutant)
        except ValueError as error:
            wrong.append(str(error))
    return wrong


def _span(text: str, within: str) -> tuple[int, int]:
    """Where a definition begins and ends in a text; (0, 0) if it is not there."""
    if not within:
        return 0, len(text)
    node: ast.AST = _parsed(text)
    for name in within.split("."):
        inner = [
            child
            for child in getattr(node, "body", [])
            if isinstance(child, ast.FunctionDef | ast.ClassDef) and child.name == name
        ]
        if not inner:
            return 0, 0
        node = inner[-1]
    lines = text.splitlines(keepends=True)
    first, last = node.lineno, node.end_lineno
    return sum(map(len, lines[: first - 1])), sum(map(len, lines[:last]))


@lru_cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)
