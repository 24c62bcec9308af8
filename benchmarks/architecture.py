"""The lists of docs/architecture.md, made from the sources: layers, rooms with their files, and the files that a way crosses.

    python -m benchmarks.architecture [--ways]

It writes between the marks of the page. Layers are those of `.importlinter`, what a room holds is the first sentence of its
package. With ``--ways`` the ways are traced anew (`benchmarks.ways`, about a minute).
`tests/project/test_architecture.py` holds layers, rooms and files against the page.
"""

from __future__ import annotations

import argparse
import ast
import configparser
import re
from pathlib import Path

from benchmarks.lines import BESIDE, PACKAGE, ROOT, Counts, by_room, here

PAGE = ROOT / "docs" / "architecture.md"
CONTRACTS = ("importlinter:contract:layers", "importlinter:contract:laboratory")


def layers() -> str:
    """The layers of the import contracts, the highest first: each may import those below it."""
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter", encoding="utf-8")
    blocks = []
    for name in CONTRACTS:
        rows = contracts[name]["layers"].strip().splitlines()
        blocks.append(
            "\n".join([f"{contracts[name]['containers'].strip()}:", *(f"    {row}" for row in rows)])
        )
    return "```\n" + "\n\n".join(blocks) + "\n```"


def rooms() -> str:
    """What each room holds, in alphabetical order; `benchmarks.lines` counts their lines."""
    lines = ["| room | holds |", "|---|---|"]
    for room in sorted(by_room(here()), key=lambda name: (name == BESIDE, name)):
        lines.append(f"| `{room}` | {holds(room)} |")
    return "\n".join(lines)


def holds(room: str) -> str:
    """The first sentence of a room's package."""
    if room == BESIDE:
        return "What stands in no room."
    text = (
        ast.get_docstring(ast.parse((ROOT / PACKAGE / room / "__init__.py").read_text(encoding="utf-8")))
        or ""
    )
    return re.split(r"(?<=[.?!])\s|\n\n|; see ", " ".join(text.split("\n\n")[0].split()), maxsplit=1)[0]


def files() -> str:
    """The modules of each room."""
    found = by_room(here())
    named = {room: modules(found[room], room) for room in sorted(found)}
    return "\n".join(f"- `{room}`: {', '.join(names)}" for room, names in named.items() if names)


def modules(counts: Counts, room: str) -> list[str]:
    """The modules of a room; packages are told by what they hold."""
    return [
        file.removeprefix(f"{room}/").removesuffix(".py")
        for file in sorted(counts)
        if not file.endswith("__init__.py")
    ]


def ways() -> str:
    """The files of every way, without those that all ways pass."""
    from benchmarks.lines import room_of
    from benchmarks.ways import WAYS, counts, files_of

    lines = ["| the way of | files | which |", "|---|---|---|"]
    for name, (way, _) in WAYS.items():
        own = [file for file in files_of(name) if counts(file)]
        by_rooms: dict[str, list[str]] = {}
        for file in own:
            by_rooms.setdefault(room_of(file), []).append(file.rpartition("/")[2].removesuffix(".py"))
        which = "; ".join(f"`{room}`: {', '.join(found)}" for room, found in by_rooms.items())
        lines.append(f"| {(way.__doc__ or '').strip().rstrip('.')} | {len(own)} | {which} |")
    return "\n".join(lines)


LISTS = {"layers": layers, "rooms": rooms, "files": files, "ways": ways}


def marked(text: str, name: str) -> str:
    """The list of this name in the page."""
    return text.split(f"<!-- {name} -->\n")[1].split(f"<!-- end of {name} -->\n")[0]


def with_list(text: str, name: str, content: str) -> str:
    """The page with another list of this name."""
    mark = f"<!-- {name} -->\n"
    return text.replace(mark + marked(text, name), f"{mark}{content}\n")


def main(page: Path = PAGE) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ways", action="store_true", help="trace the ways anew")
    options = parser.parse_args()
    text = page.read_text(encoding="utf-8")
    for name, made in LISTS.items():
        if name != "ways" or options.ways:
            text = with_list(text, name, made())
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
