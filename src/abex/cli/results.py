"""`abex results`: what the store holds, as a list or a table for other programs; and making room."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import click

from abex.cli.help import examples
from abex.cli.sweep import open_store, store_option
from abex.lab.results import Store
from abex.support.errors import UserError, one_of
from abex.support.extras import needed


@click.group(
    epilog=examples("abex results", "abex results export results.parquet"),
    invoke_without_command=True,
)
@store_option
@click.pass_context
def command(context: click.Context, folder: str) -> None:
    """List, export and prune stored results."""
    context.obj = folder
    if context.invoked_subcommand is None:
        context.invoke(show)


@command.command("list")
@click.pass_obj
def show(folder: str) -> None:
    """The stored cells by problem and policy, damaged entries by name."""
    from abex.cli.help import print_table
    from abex.lab.experiments.experiment import brief
    from abex.lab.sweeps.cells import length_of, name_of

    with open_store(folder, must_exist=True) as store:
        groups: dict[tuple[str, ...], list[float]] = defaultdict(list)
        for cell, measured in store.measured():
            groups[_where(cell), str(cell.get("policy", "")), str(length_of(cell))].append(
                measured.get("seconds", 0.0)
            )
        rows = [
            (problem, brief(policy), length, str(len(times)), f"{sum(times):.1f}")
            for (problem, policy, length), times in sorted(groups.items())
        ]
        columns = ("problem", "policy", "length", "cells", "CPU s")
        size = store.path.stat().st_size / 1e6
        print_table(f"{len(store)} cells in {store.path} ({size:.1f} MB)", columns, rows, (2, 3, 4))
        for name in store.experiments():
            click.echo(f"experiment {name}")
        for _, cell in store.damaged():
            click.echo(f"damaged: {name_of(cell)}; the next run computes it again", err=True)
        for name in store.damaged_experiments():
            click.echo(f"damaged: the experiment {name}; the next run of it writes it again", err=True)


@command.command(epilog=examples("abex results export results.csv"))
@click.argument("path")
@click.pass_obj
def export(folder: str, path: str) -> None:
    """Write all numbers to PATH (.csv or .parquet). A row is a replication at a checkpoint."""
    from abex.support.files import table_bytes, write_atomically

    kind = Path(path).suffix.lower()
    if kind not in (".csv", ".parquet"):
        raise UserError(f"cannot export to {path!r}: its name must end in .csv or .parquet")
    with open_store(folder, must_exist=True) as store:
        frame = as_frame(store)
    write_atomically(path, table_bytes(frame, kind))
    click.echo(f"{len(frame):,} rows in {path}")


def as_frame(store: Store) -> Any:
    """All cells as one pandas frame; arrays are columns, curves of different kinds leave gaps."""
    with needed():
        import pandas

    from abex.lab.sweeps.bandit_cells import rows_of
    from abex.lab.sweeps.cells import length_of

    frames = []
    for key, cell, payload in store:
        if payload is None:
            continue
        for replication, run in rows_of(cell, payload):
            rows = max((array.size for array in run.arrays.values() if array.ndim == 1), default=1)
            columns = {name: array for name, array in run.arrays.items() if array.shape == (rows,)}
            about = {
                "key": key, "kind": cell.get("kind"), "problem": _where(cell), "policy": cell.get("policy"),
                "length": length_of(cell), "seed": cell.get("seed"), "replication": replication,
                "cpu_seconds": run.measured.get("seconds"),
            }  # fmt: skip
            frames.append(pandas.DataFrame({**about, **columns, **run.numbers}, index=range(rows)))
    return pandas.concat(frames, ignore_index=True) if frames else pandas.DataFrame()


@command.command(epilog=examples("abex results prune --yes", "abex results prune old-comparison-v1 --yes"))
@click.argument("experiments", nargs=-1, metavar="[EXPERIMENT...]")
@click.option("--yes", is_flag=True, help="Do it; without, only say what would go.")
@click.pass_obj
def prune(folder: str, experiments: tuple[str, ...], yes: bool) -> None:
    """Remove what is damaged or not used any more.

    Damaged entries, the EXPERIMENTs named, and the cells that no other stored experiment uses.
    """
    with open_store(folder, must_exist=True) as store:
        kept = store.experiments()
        for name in experiments:
            kept.pop(one_of("experiment", name, kept or {"(the store has none)": {}}))
        doomed = store.keys() - _used(store, kept)
        doomed |= {key for key, _ in store.damaged()}
        if not yes:
            click.echo(f"{len(doomed)} of {len(store)} cells would go; add --yes to remove them")
            return
        removed = store.remove(doomed)
        for name in experiments:
            store.delete_experiment(name)
        click.echo(f"removed {removed} cells, {len(store)} are left")


def _used(store: Store, definitions: dict[str, Any]) -> set[str]:
    from abex.lab.experiments.execution import line_cells, tuning_cells
    from abex.lab.experiments.experiment import Experiment
    from abex.lab.results import key_of

    experiments = [Experiment.from_json(plain) for plain in definitions.values()]
    return {key_of(cell) for one in experiments for cell in (*tuning_cells(one), *line_cells(one, store))}


def _where(cell: dict[str, Any]) -> str:
    """The problem of a cell in a few words."""
    problem = cell.get("problem") or {}
    if "recommendation" in problem:
        spec = problem["recommendation"]
        return f"{spec.get('name')}, {spec.get('part')} products"
    if "data" in problem:
        return f"{problem['data']}, {problem.get('part', 'test')}"
    names = [str((problem.get(part) or {}).get("name", "")) for part in ("environment", "graph")]
    return " on ".join(name for name in names if name)
