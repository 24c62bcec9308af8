"""The pages of the reference, made from what the public packages export: nothing public is without a page."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

from abex.policies.naming import RECOMMENDED

#: package -> what it is for; a name is described where it stands first
PUBLIC = {
    "abex.policies": "Policies",
    "abex.environments": "Environments",
    "abex.players": "Players",
    "abex.service": "The service",
    "abex.client": "The client of a service",
    "abex.openfeature": "A provider of OpenFeature",
    "abex.simulation": "Simulation",
    "abex.simulation.curves": "Regret curves",
    "abex.simulation.delays": "Delays of rewards",
    "abex.graphs": "Feedback graphs",
    "abex.evaluation": "Evaluation on logs",
    "abex.boosting": "Boosting",
    "abex.lab.datasets": "Data sets",
    "abex.lab.experiments": "Experiments",
    "abex.lab.results": "The store of results",
    "abex.inference": "Inference that stays valid while one looks",
    "abex.theory": "Theory",
    "abex.support.intervals": "Intervals",
    "abex.lab.arena": "The arena",
    "abex.kinds": "Kinds of what a policy has learned",
    "abex.testing": "The contract of policies and environments",
    "abex.kernels": "Kernels",
    "abex": "Errors and decisions",
}


def names_of(package: str) -> list[str]:
    """The public functions and classes of a package."""
    module = importlib.import_module(package)
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == package and not name.startswith("_")
    ]
    return [
        name
        for name in names
        if inspect.isclass(getattr(module, name)) or inspect.isroutine(getattr(module, name))
    ]


def homes() -> dict[str, list[str]]:
    """Package -> the names that are described there, each object once."""
    seen: set[int] = set()
    found: dict[str, list[str]] = {}
    for package in PUBLIC:
        module: Any = importlib.import_module(package)
        fresh = [name for name in names_of(package) if id(getattr(module, name)) not in seen]
        seen |= {id(getattr(module, name)) for name in fresh}
        found[package] = sorted(fresh)
    return found


def write_reference(folder: Path) -> None:
    """A page for each package with a table of its names, and the page of all of them."""
    folder.mkdir(exist_ok=True)
    described = {package: names for package, names in homes().items() if names}
    for package, names in described.items():
        page = f"# {PUBLIC[package]}: `{package}`\n\n"
        first = [name for name in RECOMMENDED if name in names]
        rest = [name for name in names if name not in first]
        for title, part in (("To try first", first), ("For comparison", rest)) if first else (("", rest),):
            listed = "\n".join(f"   {name}" for name in part)
            page += f"## {title}\n\n" if title else ""
            page += f"```{{eval-rst}}\n.. currentmodule:: {package}\n\n"
            page += f".. autosummary::\n   :toctree: generated\n\n{listed}\n```\n\n"
        write_changed(folder / f"{package}.md", page)
    toc = "\n".join(described)
    write_changed(folder / "index.md", f"# Everything public\n\n```{{toctree}}\n:maxdepth: 1\n\n{toc}\n```\n")


def write_changed(path: Path, text: str) -> None:
    """Only what has changed, so that Sphinx reads no more than it must."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
