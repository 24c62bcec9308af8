"""Tables and numbers as the command line shows them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from abex.errors import UserError


def console() -> Any:
    """A rich console on standard output; 160 columns wide where the output is no terminal."""
    import sys

    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else 160)


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()
) -> Any:
    """A rich table; the columns numbered in ``right`` are aligned to the right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    result = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for position, column in enumerate(columns):
        result.add_column(column, justify="right" if position in right else "left", overflow="fold")
    for row in rows:
        result.add_row(*(Text(str(cell)) for cell in row))
    return result


def can_be_written(out: str) -> None:
    """Complain before the work, not after, when ``out`` cannot be the name of its results."""
    target = Path(out)
    if target.name in ("", ".."):
        raise UserError(f"--out {out!r} is no name of a file: write one such as result")
    if not target.parent.is_dir():
        raise UserError(f"cannot write {out!r}: there is no folder {str(target.parent)!r}")
