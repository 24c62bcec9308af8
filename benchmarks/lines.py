"""Lines of code by room of src/abex, now or before and now.

    python -m benchmarks.lines [--files] [--against REV]

A line of code holds a token of the language: blank lines, comments and docstrings do not count, every line of a text that is a
value does. A room is a folder of src/abex, with all below it; the modules beside the folders count as one. The core is all but
the rooms in `OUTER`.
"""

from __future__ import annotations

import argparse
import ast
import io
import subprocess
import tarfile
import tokenize
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "src/abex"
BESIDE = "(beside the rooms)"
SUMS = ("the core", "the other rooms", "all")
#: players and what is built on them, boosting, evaluation, inference, the laboratory, the commands
OUTER = {
    "boosting", "cli", "datasets", "evaluation", "experiments", "inference", "lab", "players", "report", "results",
    "service", "sweeps", "web",
}  # fmt: skip
SILENT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.ENCODING,
}  # fmt: skip
Counts = dict[str, int]  # file -> lines of code


def code_lines(source: str) -> int:
    r"""Lines that hold code.

    >>> code_lines('"A docstring."\n\nx = 1  # one\ny = (\n    2,\n)\n')
    4
    """
    spoken = docstring_starts(ast.parse(source))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in SILENT and token.start not in spoken:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines)


def docstring_starts(tree: ast.Module) -> set[tuple[int, int]]:
    """Where the docstrings of a module, its classes and functions begin."""
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    firsts = [node.body[0] for node in ast.walk(tree) if isinstance(node, owners) and node.body]
    return {
        (first.lineno, first.col_offset)
        for first in firsts
        if isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    }


def here() -> Counts:
    """The files of the package as they stand."""
    folder = ROOT / PACKAGE
    return {
        path.relative_to(folder).as_posix(): code_lines(path.read_text(encoding="utf-8"))
        for path in sorted(folder.rglob("*.py"))
    }


def at(revision: str) -> Counts:
    """The files of the package in a commit."""
    packed = subprocess.run(
        ["git", "archive", revision, PACKAGE], cwd=ROOT, stdout=subprocess.PIPE, check=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        return {
            entry.name.removeprefix(f"{PACKAGE}/"): code_lines(archive.extractfile(entry).read().decode())
            for entry in archive
            if entry.name.endswith(".py")
        }


def room_of(file: str) -> str:
    """The room of a file.

    >>> room_of("service/live/page.py"), room_of("client.py")
    ('service', '(beside the rooms)')
    """
    folder, _, below = file.partition("/")
    return folder if below else BESIDE


def by_room(counts: Counts) -> dict[str, Counts]:
    """The files of each room, the largest room first."""
    rooms: dict[str, Counts] = defaultdict(dict)
    for file, lines in counts.items():
        rooms[room_of(file)][file] = lines
    return dict(sorted(rooms.items(), key=lambda room: -sum(room[1].values())))


def totals(rooms: dict[str, Counts]) -> dict[str, Counts]:
    """The rooms, then the core, the other rooms, and all."""
    core = {file: n for room, files in rooms.items() if room not in OUTER for file, n in files.items()}
    outer = {file: n for room, files in rooms.items() if room in OUTER for file, n in files.items()}
    return {**rooms, **dict(zip(SUMS, (core, outer, {**core, **outer}), strict=True))}


def show(after: Counts, files: bool) -> None:
    """A line for each room; with its files, where they are asked for."""
    print(f"{'room':32}{'code':>8}{'files':>7}")
    for room, counts in totals(by_room(after)).items():
        print(f"{room:32}{sum(counts.values()):>8,}{len(counts):>7}")
        if files and room not in SUMS:
            for file, lines in sorted(counts.items(), key=lambda one: -one[1]):
                print(f"    {file:28}{lines:>8,}")


def compare(before: Counts, after: Counts, files: bool) -> None:
    """A line for each room before and after; with the files that changed, where they are asked for."""
    old, new = totals(by_room(before)), totals(by_room(after))
    print(f"{'room':32}{'before':>8}{'now':>8}{'change':>8}{'files before':>14}{'now':>6}")
    for room in list(new) + [room for room in old if room not in new]:
        was, now = old.get(room, {}), new.get(room, {})
        first, second = sum(was.values()), sum(now.values())
        print(f"{room:32}{first:>8,}{second:>8,}{second - first:>+8,}{len(was):>14}{len(now):>6}")
        if files and room not in SUMS:
            for file in sorted(was.keys() | now.keys()):
                if was.get(file) != now.get(file):
                    print(f"    {file:28}{was.get(file, 0):>8,}{now.get(file, 0):>8,}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", action="store_true", help="the files of each room as well")
    parser.add_argument("--against", metavar="REV", help="a commit: before and now")
    options = parser.parse_args()
    if options.against:
        compare(at(options.against), here(), options.files)
    else:
        show(here(), options.files)


if __name__ == "__main__":
    main()
