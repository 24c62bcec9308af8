"""`abex list`: what there is to choose from."""

from __future__ import annotations

import inspect
from typing import Any

import click

from abex.cli.output import console, table
from abex.environments import __all__ as environment_names
from abex.errors import UserError, nearest
from abex.policies import known_policies

KINDS = ("policies", "environments")


@click.command(
    epilog="Examples:  abex list    abex list policies    abex list ABE    abex list TS-N",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List policies and environments, or explain one of them.

    NAME is "policies", "environments", or the name of one, also as the literature calls it (TS-N, EXP3.P, BGE).
    """
    policies, environments = known_policies(), _environments()
    if name is None or name in KINDS:
        if name in (None, "policies"):
            rows = [(known, ", ".join(cls.also_known_as), summary(cls)) for known, cls in policies.items()]
            console().print(table("Policies", ["name", "also known as", "what it does"], rows))
        if name in (None, "environments"):
            pairs = [(known, summary(cls)) for known, cls in environments.items()]
            console().print(table("Environments", ["name", "what it pays"], pairs))
        return
    aliases = {alias: cls for cls in policies.values() for alias in cls.also_known_as}
    everything: dict[str, Any] = {**aliases, **policies, **environments}
    found = {key.lower(): value for key, value in everything.items()}.get(name.lower())
    if found is None:
        raise UserError(
            f"nothing is called {name!r}{nearest(name, [*everything, *KINDS])}; `abex list` shows all"
        )
    click.echo(f"{found.__name__}{inspect.signature(found)}\n\n{inspect.getdoc(found)}")


def _environments() -> dict[str, Any]:
    import abex.environments

    found = {name: getattr(abex.environments, name) for name in environment_names}
    return {name: value for name, value in found.items() if not inspect.isabstract(value)}


def summary(cls: Any) -> str:
    """First line of the docstring, formulas without their markup."""
    text = (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " ")
    return text.replace(":math:", "").replace("`", "")
