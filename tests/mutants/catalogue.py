"""The list of mutants: what is changed where, and which tests should notice.

Each ``*.toml`` file here holds the mutants of a room. A table ``[[file]]`` names a source file (``path``, below
``src/abex``), the tests that should fail (``tests``, a file, with ``compiled = true`` where kernels must be compiled),
and its ``mutants``, one a line:

``name``
    What is wrong, in words.
``in``
    The function or ``Class.method`` that is changed; left out for the top level of the file.
``old``, ``new``
    ``old`` must stand in that definition exactly once: a mutant that no longer applies is a mistake in the list. (A
    definition that has moved to another file is looked for there.)
``k``
    pytest's ``-k``: the narrowest selection that should notice.
``tests``, ``compiled``
    Where they differ from those of the file.
"""

from __future__ import annotations

import ast
import tomllib
from functools import cache
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


def mutated(mutant: Mutant) -> tuple[str, str]:
    """The path and the text of the source file with the mistake in it; ValueError where it does not apply.

    A definition that has moved is found where it is now, if only one file has it.
    """
    where = f"{mutant.room}.toml, {mutant.name!r}"
    found = _apply(mutant, mutant.path)
    if found is None and mutant.within:
        elsewhere = [path for path in _sources() if path != mutant.path and _apply(mutant, path) is not None]
        if len(elsewhere) == 1:
            mutant = mutant._replace(path=elsewhere[0])
            found = _apply(mutant, mutant.path)
    if found is None:
        raise ValueError(
            f"{where}: {mutant.old!r} does not stand once in {mutant.within or 'the text'} of src/abex/{mutant.path}"
        )
    try:
        ast.parse(found)
    except SyntaxError as error:
        raise ValueError(f"{where}: what it makes is no Python: {error}") from error
    return mutant.path, found


def _apply(mutant: Mutant, path: str) -> str | None:
    """The text of a file with the mistake in it; None unless what is to be changed stands in its definition once."""
    file = SOURCE / "abex" / path
    if not file.is_file():
        return None
    text = _read(file)
    if mutant.old not in text:
        return None
    begin, end = _span(text, mutant.within)
    part = text[begin:end]
    if part.count(mutant.old) != 1:
        return None
    return text[:begin] + part.replace(mutant.old, mutant.new) + text[end:]


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
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and child.name == name
        ]
        if not inner:
            return 0, 0
        node = inner[-1]
    lines = text.splitlines(keepends=True)
    first, last = node.lineno, node.end_lineno
    return sum(map(len, lines[: first - 1])), sum(map(len, lines[:last]))


@cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


@cache
def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8")


@cache
def _sources() -> tuple[str, ...]:
    """All source files, below src/abex."""
    folder = SOURCE / "abex"
    return tuple(sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*.py")))
