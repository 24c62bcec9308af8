"""The names of policies: of ours, of those of other packages, and of the literature."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any, TypeVar

from abex.policies.policy import Policy, registry
from abex.support.errors import UserError, shown
from abex.support.parameters import parse_value
from abex.support.plugins import POLICIES, loaded, names_in

MAX_TEXT = 10_000  # characters of a text in which names of other packages are looked for
Part = TypeVar("Part")

#: what to try first; all others are there to be compared with
RECOMMENDED = (
    "Evidence", "EpsilonThompson", "Thompson", "IMED", "KLUCB", "ABE", "Restarting", "TsallisINF", "Certify", "TopTwo",
)  # fmt: skip


def known_policies() -> dict[str, type[Policy[Any]]]:
    """Every concrete policy defined so far, ours and the user's, by name."""
    return {name: cls for name, cls in sorted(registry.items()) if dataclasses.is_dataclass(cls)}


def installed_policies(names: list[str] | None = None) -> dict[str, type[Policy[Any]]]:
    """`known_policies`, and those of other installed packages (`abex.support.plugins`): all, or those of these names."""
    known = known_policies()
    unknown = None if names is None else [name for name in names if name not in known]
    if unknown == []:
        return known
    return loaded(POLICIES, Policy, unknown) | known_policies()


def as_policy(policy: Any) -> Policy[Any]:
    """A policy from a value or from its name."""
    if isinstance(policy, str):
        return parse_policy(policy)
    if not isinstance(policy, Policy):
        raise UserError(f"policies must be values such as UCB1() or their names, got {policy!r}")
    if not dataclasses.is_dataclass(type(policy)):
        raise UserError(
            f"{type(policy).__name__} must be a value: put @dataclass(frozen=True) above the class"
        )
    return policy


def parse_policy(text: str) -> Policy[Any]:
    """The policy written as ``Name`` or ``Name(parameter=value, ...)``, also within another one. Nothing is evaluated.

    Names of the literature are understood too.

    >>> import abex.policies
    >>> parse_policy("UCB1(scale=0.5)")
    UCB1(scale=0.5)
    >>> parse_policy("UCB-N")
    UCB1(scale=2.0)
    >>> parse_policy("MOSS-anytime")
    MOSS(horizon=None, anytime=1.35)
    """
    policies = installed_policies(names_in(text[:MAX_TEXT]))
    kinds: dict[str, Any] = {}
    for cls in policies.values():
        kinds |= {alias: cls for alias in cls.also_known_as}
        kinds |= {alias: partial(cls, **parameters) for alias, parameters in cls.variants.items()}
    kinds |= policies
    policy = parse_value(
        text, "policy", kinds | _parts, example="ABE(eta=1.0)", hint="; `abex list` shows all"
    )
    if not isinstance(policy, Policy):
        raise UserError(f"{shown(policy)} is no policy, but a part of one; `abex list` shows all policies")
    return policy


_parts: dict[str, type] = {}


def part_of_policies(cls: type[Part]) -> type[Part]:
    """A decorator for values, such as detectors of changes, that stand in the text of a policy beside numbers."""
    _parts[cls.__name__] = cls
    return cls
