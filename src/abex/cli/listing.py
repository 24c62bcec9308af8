"""`abex list`: what there is to choose from."""

from __future__ import annotations

import inspect
from typing import Any

import click

from abex.cli.help import examples, print_table
from abex.environments import known_environments
from abex.policies.naming import RECOMMENDED, installed_policies
from abex.support.errors import UserError, nearest

KINDS = ("policies", "environments", "experiments", "datasets")


@click.command(
    epilog=examples("abex list", "abex list policies", "abex list ABE", "abex list TS-N"),
)
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List policies, environments, experiments and data sets, or explain a policy or an environment.

    NAME is "policies", "environments", "experiments", "datasets", or the name of a policy or an environment, also as the
    literature calls it (TS-N, EXP3.P, BGE).
    """
    policies, environments = installed_policies(), known_environments(installed=True)
    if name is None or name in KINDS:
        for kind in KINDS if name is None else (name,):
            for table in _tables_of(kind, policies, environments):
                print_table(*table)
        return
    aliases = {alias: cls for cls in policies.values() for alias in (*cls.also_known_as, *cls.variants)}
    everything: dict[str, Any] = {**aliases, **policies, **environments}
    found = {key.lower(): value for key, value in everything.items()}.get(name.lower())
    if found is None:
        raise UserError(
            f"nothing is called {name!r}{nearest(name, [*everything, *KINDS])}; `abex list` shows all"
        )
    click.echo(explained(found, policy=found in policies.values()))


def _tables_of(kind: str, policies: dict[str, Any], environments: dict[str, Any]) -> list[Any]:
    """Title, columns and rows of each table."""
    if kind == "policies":
        rows = {
            known: (known, ", ".join((*cls.also_known_as, *cls.variants)), summary(cls))
            for known, cls in policies.items()
        }
        columns = ["name", "also known as", "what it does"]
        first = [rows.pop(known) for known in RECOMMENDED]
        return [("Policies to try first", columns, first), ("For comparison", columns, rows.values())]
    if kind == "environments":
        known = [(name, summary(cls)) for name, cls in environments.items()]
        return [("Environments", ["name", "what it pays"], known)]
    if kind == "experiments":
        from abex.lab.experiments import known_experiments

        scale = {True: "small, without any download", False: "a panel of the paper, on the real data"}
        names = [(known, scale[known.endswith("-quick")]) for known in known_experiments()]
        return [("Experiments (abex run NAME)", ["name", "scale"], names)]
    from abex.lab.datasets.registry import entries

    sets = [(known, entry.rows, entry.description) for known, entry in entries().items()]
    return [("Data sets (abex data)", ["name", "size", "what it holds"], sets)]


def summary(cls: Any) -> str:
    """First sentence of the docstring."""
    return (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " ")


def explained(cls: Any, *, policy: bool) -> str:
    """A class with its parameters and their defaults, what its docstring says, and how a command uses it."""
    parameters = [
        name if one.default is inspect.Parameter.empty else f"{name}={one.default!r}"
        for name, one in inspect.signature(cls).parameters.items()
    ]
    text = f"{cls.__name__}({', '.join(parameters)})\n\n{inspect.getdoc(cls) or ''}"
    if not policy:
        return text
    given = f'abex simulate --policy "{cls.__name__}({"".join(parameters[:1])})"'
    return f"{text}\n\nOn the command line\n-------------------\n{given}"
