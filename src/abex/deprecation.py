"""Names that have changed: the former one works, with a DeprecationWarning, until 0.3."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any


def warn_of(former: str, present: str, stacklevel: int = 3) -> None:
    """Say once for each place that ``former`` is now called ``present``."""
    warnings.warn(f"{former} is now {present}; the former name goes with 0.3", DeprecationWarning, stacklevel)


def moved(module: str, present: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module that has moved: everything of the module ``present``, with a warning."""

    def lookup(name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = getattr(import_module(present), name)
        warnings.warn(f"{module} has moved to {present}", DeprecationWarning, stacklevel=2)
        return value

    return lookup


def former_names(module: str, names: dict[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module whose ``names`` (former: present, or former: "module:present") have changed.

    >>> lookup = former_names("abex.schema", {"Law": "Distribution"})
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     lookup("Law").__name__
    'Distribution'
    """

    def lookup(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        place, _, present = names[name].rpartition(":")
        warn_of(f"{module}.{name}", f"{place or module}.{present}")
        return getattr(import_module(place or module), present)

    return lookup
