"""When compiled code is stale: hashes of the sources it was made from.

Machine code depends on the functions that it was compiled from and on what they name: other kernels, and constants. These
stand in the module of the function, or come there by an import at the top of it, and so on. The stamp of a function
is therefore a hash of the whole text of every module that can be reached so. It relies on rules to which
`tests/kernels/test_sources.py` holds the package: what a kernel names is imported by statements that begin a line, none of them
relative, and no module assigns to a name of another. An import inside a function binds no name that a kernel could see; so
constants that kernels name are not computed by functions that import something themselves.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
NAME = "abex"

# `import abex.x.y as z` and `from abex.x import a as b, c`, the latter in one line or within brackets
_IMPORT = re.compile(
    rf"^import[^\S\n]+({NAME}\b[^\n#;]*)|^from[^\S\n]+({NAME}(?:\.\w+)*)[^\S\n]+import\s+(\([^)]*\)|[^\n]*)",
    re.MULTILINE,
)
_COMMENT = re.compile(r"#[^\n]*")


@cache
def source_stamp() -> str:
    """First 16 hex digits of the SHA-256 of every source file of the package."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        digest.update(path.relative_to(PACKAGE).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def stamp_of(modules: Iterable[str]) -> str | None:
    """SHA-256 of the sources of ``modules``, of all that they import from this package, and of `abex.kernels`.

    None when a source cannot be read: nobody could tell whether it has changed.

    >>> stamp_of(["abex.support.errors"]) == stamp_of(["abex.support.errors"] * 2) != stamp_of(["abex.support.parameters"])
    True
    >>> stamp_of(["abex.nowhere"]) is None
    True
    """
    digest = hashlib.sha256()
    for module in sorted(reachable([*modules, *_ours()])):
        content = _content(module)
        if content is None:
            return None
        digest.update(f"{module} {len(content)} ".encode())
        digest.update(content)
    return digest.hexdigest()


def reachable(modules: Iterable[str]) -> set[str]:
    """These modules and what they import from this package, directly or not.

    >>> [module in reachable(["abex.support.randomness"]) for module in ("abex.support.errors", "abex.cli")]
    [True, False]
    """
    found: set[str] = set()
    waiting = set(modules)
    while waiting:
        module = waiting.pop()
        found.add(module)
        waiting |= imports(module) - found
    return found


@cache
def imports(module: str) -> frozenset[str]:
    """The modules of this package that ``module`` names in import statements that begin a line."""
    content = _content(module)
    if content is None:
        return frozenset()
    found: set[str] = set()
    for plain, source, names in _IMPORT.findall(content.decode(errors="replace")):
        if plain:
            found.update(part.split()[0] for part in plain.split(",") if part.split())
            continue
        listed = _COMMENT.sub("", names).strip("() \n").split(",")
        for name in (part.split()[0] for part in listed if part.split()):
            submodule = f"{source}.{name}"
            if _file(submodule) is not None:
                found.add(submodule)
                if name.encode() not in (_content(source) or b""):
                    continue  # the package has nothing else of this name
            found.add(source)
    return frozenset(name for name in found if name.split(".")[0] == NAME and name != module)


@cache
def _content(module: str) -> bytes | None:
    path = _file(module)
    try:
        return None if path is None else path.read_bytes()
    except OSError:
        return None


@cache
def _file(module: str) -> Path | None:
    """Where a module's source is, None if it has none here."""
    place = PACKAGE.joinpath(*module.split(".")[1:])
    for path in (place / "__init__.py", place.with_name(f"{place.name}.py")):
        if path.is_file():
            return path
    return None


@cache
def _ours() -> tuple[str, ...]:
    """The modules that decide how anything is compiled."""
    return tuple(f"{__package__}.{path.stem}" for path in Path(__file__).parent.glob("*.py"))
