"""Tables and numbers as the command line shows them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from abex.support.errors import UserError
from abex.support.tables import text_table


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], right: Sequence[int] = ()
) -> None:
    """A table on standard output; the columns numbered in ``right`` are aligned to the right."""
    left = [column for column in range(len(columns)) if column not in right]
    click.echo(f"{title}\n{text_table(columns, [[str(cell) for cell in row] for row in rows], left)}\n")


def check_graph_is_there(policy: Any, graph: Any) -> None:
    """Refuse a policy that must know the feedback graph where none is given."""
    if graph is None and policy.needs_graph:
        raise UserError(f"{policy} needs to know the feedback graph: pass --graph FILE")


def can_be_written(out: str) -> None:
    """Complain before the work, not after, when ``out`` cannot be the name of its results."""
    target = Path(out)
    if target.name in ("", ".."):
        raise UserError(f"--out {out!r} is no name of a file: write one such as result")
    if not target.parent.is_dir():
        raise UserError(f"cannot write {out!r}: there is no folder {str(target.parent)!r}")
