"""Optional dependencies: which extra brings a package, and the sentence that says so.

The core needs NumPy; a `Player` needs no more. All else comes with extras (``pip install '.[simulate]'`` in a clone), is
imported where it is used, and is named here once. `tests/support/test_extras.py` holds the table against ``pyproject.toml``.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from abex.support.errors import UserError

_COMPILED = ("numba", "llvmlite", "scipy")
_BOOSTING = (*_COMPILED, "sklearn", "joblib", "tqdm")
_DATA = (*_BOOSTING, "pandas", "pyarrow", "ncompress", "networkx")
_REPORT = (*_DATA, "matplotlib", "jinja2")

#: extra -> the packages that it brings, as they are imported
PACKAGES_OF = {
    "simulate": (*_COMPILED, "matplotlib", "tqdm"),
    "boosting": _BOOSTING,
    "data": _DATA,
    "report": _REPORT,
    "cluster": (*_REPORT, "distributed", "dask"),
    "store": ("psycopg",),
    "client": ("httpx",),
    "serve": (
        *("starlette", "uvicorn", "httptools", "uvloop", "prometheus_client"),
        *("pandas", "pyarrow", "scipy"),
    ),
    "export": (*_BOOSTING, "onnx"),
    "openfeature": ("openfeature",),
    "trace": tuple(f"opentelemetry.{name}" for name in ("distro", "instrumentation.asgi", "sdk")),
}

#: package -> the first extra that brings it, which is named where no other is said
EXTRA_OF = {package: extra for extra, brought in reversed(PACKAGES_OF.items()) for package in brought}


class MissingExtraError(UserError, ImportError):
    """A package of an extra is not installed."""

    def __init__(self, package: str, extra: str | None = None) -> None:
        super().__init__(how_to_install(package, extra))
        self.package, self.extra = package, extra

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.package, self.extra)


def how_to_install(package: str, extra: str | None = None) -> str:
    """The sentence for a package that is not there; ``extra`` is named if it brings the package.

    >>> how_to_install("numba", "boosting")
    "this needs numba, which is not installed: pip install ...[boosting]'..."
    """
    if extra is None or package not in PACKAGES_OF[extra]:
        extra = EXTRA_OF[package]
    return f"this needs {package}, which is not installed: {install_command(extra)}"


def install_command(extra: str) -> str:
    """The command that installs an extra, by the way in which abex itself was installed."""
    origin = origin_of_abex()
    if origin is None:
        return f"pip install 'abex[{extra}]'"
    if "dir_info" in origin:
        folder = Path(url2pathname(urlsplit(origin["url"]).path))
        if not (folder / "pyproject.toml").is_file():
            return f"pip install '.[{extra}]' in a clone of abex"
        place = "." if folder == Path.cwd() else str(folder)
        editable = "-e " if origin["dir_info"].get("editable") else ""
        return f"pip install {editable}{shlex.quote(f'{place}[{extra}]')}"
    url = origin["url"]
    if version := origin.get("vcs_info"):
        url = f"{version['vcs']}+{url}@{version['commit_id']}"
    return f"pip install {shlex.quote(f'abex[{extra}] @ {url}')}"


def origin_of_abex() -> dict[str, Any] | None:
    """The folder, file or repository that abex was installed from (PEP 610); None if it came from an index."""
    try:
        noted = distribution("abex").read_text("direct_url.json")
    except PackageNotFoundError:  # its sources are on the path
        return {"url": Path(__file__).parents[3].as_uri(), "dir_info": {"editable": True}}
    return None if noted is None else dict(json.loads(noted))


@contextmanager
def needed(extra: str | None = None) -> Iterator[None]:
    """A context for imports of an extra: if a package is missing, one sentence with the command that installs it.

    Of nested ones the outer names the extra, if it brings the package: around a whole command it says what is enough for all
    of it, whichever package is missed first.

    >>> with needed():
    ...     import math
    """
    try:
        yield
    except MissingExtraError as error:
        if extra is None or error.package not in PACKAGES_OF[extra]:
            raise
        raise MissingExtraError(error.package, extra) from None
    except ModuleNotFoundError as error:
        package = (error.name or "").split(".")[0]
        if package not in EXTRA_OF or installed(
            package
        ):  # then a part of the package is missing: not our sentence
            raise
        raise MissingExtraError(package, extra) from None


def demand(extra: str) -> None:
    """Refuse at once, not after an hour's work, if a package of an extra is missing."""
    for package in PACKAGES_OF[extra]:
        if not installed(package):
            raise MissingExtraError(package, extra)


def installed(package: str) -> bool:
    """Whether a package can be imported; it is not imported.

    >>> installed("numpy")
    True
    """
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):
        return False
