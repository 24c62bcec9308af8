"""Packages whose names are imported when they are first asked for, so that importing the package itself costs nothing."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


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
