"""What all commands share: examples in help texts, options, tables, and checks before the work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from abex.support.errors import UserError, whole_number
from abex.support.tables import text_table


def examples(*lines: str) -> str:
    """The end of a help text: commands to copy, one a line, never broken or joined.

    >>> examples("abex list", "abex list ABE").splitlines()[1:]
    ['Examples:', '  abex list', '  abex list ABE']
    """
    title = "Example:" if len(lines) == 1 else "Examples:"
    return "\n".join(["\b", title, *(f"  {line}" for line in lines)])


def whole(name: str, value: Any, least: int = 0, most: int | None = None) -> int:
    """A whole number as a person writes it.

    >>> whole("--horizon", "1e5")
    100000
    """
    if isinstance(value, str):
        try:
            value = int(value) if value.strip().lstrip("-").isdecimal() else float(value)
        except ValueError:
            raise UserError(f"{name} must be a whole number, got {value!r}") from None
    return whole_number(name, value, least=least, most=most)


if TYPE_CHECKING:
    Integers = click.ParamType[int]
else:
    Integers = click.ParamType


class WholeNumber(Integers):
    """A whole number, also written as 1e5; what is none is one sentence that names the option."""

    name = "integer"

    def __init__(self, least: int = 0, most: int | None = None) -> None:
        self.least, self.most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number, within its bounds."""
        return whole(param.opts[0] if param is not None else "the number", value, self.least, self.most)


def number_option(
    name: str, default: int, text: str, least: int = 1, most: int | None = None
) -> Callable[[Any], Any]:
    """An option that is a whole number and shows what it is unless given."""
    return click.option(name, type=WholeNumber(least, most), default=default, show_default=True, help=text)


own_option = click.option(
    "--own", multiple=True, type=click.Path(dir_okay=False), help="A file of Python with policies or environments of yours."
)  # fmt: skip


def load_own(files: tuple[str, ...]) -> dict[str, str]:
    """Define what a person's own files define, so that it is known by its name; the sources by the names of the files."""
    if not files:
        return {}
    from abex.lab.sweeps.cells import load_code
    from abex.support.files import read_text

    code = {Path(file).name: read_text(file, "policies") for file in files}
    load_code(code)
    return code


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
