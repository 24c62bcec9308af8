"""Names that are imported when they are first asked for: our own, and policies and environments of other packages.

A package offers those by entry points in its ``pyproject.toml``::

    [project.entry-points."abex.policies"]
    MyPolicy = "my_package:MyPolicy"

    [project.entry-points."abex.environments"]
    MyWorld = "my_package:MyWorld"

Then ``abex simulate --policy "MyPolicy(scale=2)"``, `abex.Player.load`, experiments and ``abex list`` know them wherever the
package is installed. Nothing of a package is imported before one of its names is asked for.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

POLICIES, ENVIRONMENTS = "abex.policies", "abex.environments"
NAMES = re.compile(r"[A-Za-z][\w.+-]*(?=\s*\()|^\s*[A-Za-z][\w.+-]*\s*$")


def lazy_names(package: str, homes: dict[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package whose names live in the modules that ``homes`` says.

    >>> lazy_names("abex", {"UserError": "support.errors"})("UserError").__name__
    'UserError'
    """

    def lookup(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return lookup


def register(registry: dict[str, Any], cls: type) -> None:
    """Put a class under its name into the registry. A name of abex means the class of abex, whatever other packages define."""
    holder = registry.get(cls.__name__)
    if holder is None or _is_ours(cls) or not _is_ours(holder):
        registry[cls.__name__] = cls


def _is_ours(cls: type) -> bool:
    return cls.__module__.split(".")[0] == __name__.split(".")[0]


@cache
def offered(group: str) -> dict[str, EntryPoint]:
    """Entry points of installed packages by name; nothing is imported."""
    from importlib.metadata import (
        entry_points,  # slow to import, and needed for names of other packages only
    )

    return {point.name: point for point in entry_points(group=group)}


@cache
def load_plugin(group: str, name: str, kind: type) -> Any:
    """The class that a package offers under this name; None, with a warning, if it is something else."""
    point = offered(group)[name]
    try:
        found = point.load()
    except Exception as error:
        warnings.warn(
            f"{package_of(point)} offers {name}, which cannot be loaded: {type(error).__name__}: {error}",
            stacklevel=2,
        )
        return None
    if not (isinstance(found, type) and issubclass(found, kind)):
        warnings.warn(f"{package_of(point)} offers {name}, which is no {kind.__name__}", stacklevel=2)
        return None
    return found


def loaded(group: str, kind: type, names: list[str] | None = None) -> dict[str, Any]:
    """The classes that packages offer under these names, all of them unless given."""
    wanted = offered(group) if names is None else [name for name in names if name in offered(group)]
    found = {name: load_plugin(group, name, kind) for name in wanted}
    return {name: cls for name, cls in found.items() if cls is not None}


def names_in(text: str) -> list[str]:
    """The names of values in a text.

    >>> names_in("Discounted(MyPolicy(scale=2), gamma=0.9)"), names_in(" UCB-N "), names_in("[0.5, 0.2]")
    (['Discounted', 'MyPolicy'], ['UCB-N'], [])
    """
    return [name.strip() for name in NAMES.findall(text)]


def packages_of(policy: str, environment: str = "") -> dict[str, str]:
    """Versions of the packages whose names stand in a policy's text, or offer the environment: results depend on them.

    >>> packages_of("UCB1(scale=0.5)", "Bernoulli")
    {}
    """
    points = [offered(POLICIES)[name] for name in names_in(policy) if name in offered(POLICIES)]
    points += [offered(ENVIRONMENTS)[environment]] if environment in offered(ENVIRONMENTS) else []
    return {point.dist.name: point.dist.version for point in points if point.dist is not None}


def package_of(point: EntryPoint) -> str:
    """The package of an entry point, in words."""
    return "a package" if point.dist is None else f"the package {point.dist.name} {point.dist.version}"
