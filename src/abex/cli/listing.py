"""`abex list`: what there is to choose from."""

from __future__ import annotations

import inspect
from typing import Any

import click

from abex.cli.output import console, table
from abex.environments import __all__ as environment_names
from abex.errors import UserError, nearest
from abex.policies import known_policies

KINDS = ("policies", "environments", "experiments", "datasets")


@click.command(
    epilog="Examples:  abex list    abex list policies    abex list ABE    abex list TS-N",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List policies, environments, experiments and data sets, or explain a policy or an environment.

    NAME is "policies", "environments", "experiments", "datasets", or the name of a policy or an environment, also as the
    literature calls it (TS-N, EXP3.P, BGE).
    """
    policies, environments = known_policies(), _environments()
    if name is None or name in KINDS:
        for kind in KINDS if name is None else (name,):
            console().print(_table_of(kind, policies, environments))
        return
    aliases = {alias: cls for cls in policies.values() for alias in cls.also_known_as}
    everything: dict[str, Any] = {**aliases, **policies, **environments}
    found = {key.lower(): value for key, value in everything.items()}.get(name.lower())
    if found is None:
        raise UserError(
            f"nothing is called {name!r}{nearest(name, [*everything, *KINDS])}; `abex list` shows all"
        )
    click.echo(f"{found.__name__}{inspect.signature(found)}\n\n{inspect.getdoc(found)}")


def _table_of(kind: str, policies: dict[str, Any], environments: dict[str, Any]) -> Any:
    if kind == "policies":
        rows = [(known, ", ".join(cls.also_known_as), summary(cls)) for known, cls in policies.items()]
        return table("Policies", ["name", "also known as", "what it does"], rows)
    if kind == "environments":
        return table(
            "Environments",
            ["name", "what it pays"],
            [(known, summary(cls)) for known, cls in environments.items()],
        )
    if kind == "experiments":
        from abex.experiments import known_experiments

        scale = {True: "small, without any download", False: "a panel of the paper, on the real data"}
        names = [(known, scale[known.endswith("-quick")]) for known in known_experiments()]
        return table("Experiments (abex run NAME)", ["name", "scale"], names)
    from abex.datasets.registry import entries

    sets = [(known, entry.rows, entry.description) for known, entry in entries().items()]
    return table("Data sets (abex data)", ["name", "size", "what it holds"], sets)


def _environments() -> dict[str, Any]:
    import abex.environments

    found = {name: getattr(abex.environments, name) for name in environment_names}
    return {name: value for name, value in found.items() if not inspect.isabstract(value)}


def summary(cls: Any) -> str:
    """First line of the docstring, formulas without their markup."""
    text = (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " ")
    return text.replace(":math:", "").replace("`", "")
