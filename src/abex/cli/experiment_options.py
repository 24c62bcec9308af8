"""What the commands around experiments share: the options that say where results are and who computes, and the store."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from abex.cli.help import WholeNumber
from abex.lab.results import Store
from abex.support.errors import UserError, shown

DEFAULT = "abex-results"
STORE = "cells.sqlite"


def store_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """The option --results."""
    return click.option(
        "--results",
        "folder",
        default=lambda: os.environ.get("ABEX_RESULTS", DEFAULT),
        show_default=f"$ABEX_RESULTS or {DEFAULT}",
        help="Folder of the store, figures and report.",
    )(function)


def work_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of everything that computes."""
    for option in reversed(
        (
            click.option(
                "--workers",
                type=WholeNumber(1),
                default=None,
                help="Threads or processes; all cores unless given.",
            ),
            click.option(
                "--executor",
                default="threads",
                show_default=True,
                help="Where to compute: threads, processes, or the address of a Dask scheduler, tcp://host:port.",
            ),
            click.option("--quiet", is_flag=True, help="Say nothing unless something is wrong."),
            click.option(
                "--json", "as_json", is_flag=True, help="One JSON object a line on standard output."
            ),
        )
    ):
        function = option(function)
    return store_option(function)


def open_store(folder: str, *, must_exist: bool = False) -> Store:
    """The store in a results folder."""
    from abex.support.reading import reader_errors, short_path

    path = Path(folder) / STORE
    with reader_errors(f"open the results in {short_path(folder)}"):
        there = path.exists()
    if must_exist and not there:
        raise no_results(folder)
    return Store(path)


def no_results(folder: str) -> UserError:
    """What is said where there is nothing to show."""
    return UserError(
        f"there are no results in {shown(folder)}: run `abex reproduce --quick` or `abex run` first"
    )


def can_write(folder: str) -> bool:
    """Whether figures and report can be put into a results folder; one that may only be read is no mistake."""
    figures = Path(folder) / "figures"
    return all(os.access(place, os.W_OK) for place in (Path(folder), figures) if place.exists())


def draw_figures(outcome: Any, folder: str, show: bool | None = None) -> list[Path]:
    """The figures of an experiment, in the results folder; none where it may only be read, which is said."""
    from abex.lab.experiments.panels import draw

    if not can_write(folder):
        click.echo(
            f"abex: {outcome.experiment.id} is not drawn: the folder {folder!r} may only be read", err=True
        )
        return []
    try:
        return draw(outcome, Path(folder) / "figures", show)
    except OSError as error:
        raise UserError(f"cannot write figures into {folder!r}: {error.strerror or error}") from error
