"""What is not installed with abex itself: which extra brings a package, and the sentence that says so.

The core needs NumPy; a `Player` needs no more. All else comes with extras (``pip install 'abex[simulate]'``), is imported
where it is used, and is named here once. `tests/test_extras.py` holds the table against ``pyproject.toml``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from abex.errors import UserError

#: package as it is imported -> the extra that brings it, where the place that imports it does not say another
EXTRA_OF = {
    "numba": "simulate",
    "llvmlite": "simulate",
    "scipy": "simulate",
    "matplotlib": "simulate",
    "rich": "simulate",
    "sklearn": "boosting",
    "joblib": "boosting",
    "pandas": "data",
    "pyarrow": "data",
    "networkx": "data",
    "ncompress": "data",
    "pydantic": "report",
    "distributed": "cluster",
    "dask": "cluster",
    "sqlalchemy": "store",
    "psycopg": "store",
    "starlette": "serve",
    "uvicorn": "serve",
    "httpx": "client",
    "prometheus_client": "serve",
    "onnx": "export",
    "treelite": "export",
}


class MissingExtraError(UserError, ImportError):
    """Something that an extra would bring is not installed."""


def how_to_install(package: str, extra: str | None = None) -> str:
    """The sentence for a package that is not there.

    >>> how_to_install("numba")
    "this needs numba, which is not installed: pip install 'abex[simulate]'"
    """
    return f"this needs {package}, which is not installed: pip install 'abex[{extra or EXTRA_OF[package]}]'"


@contextmanager
def needed(extra: str | None = None) -> Iterator[None]:
    """Around imports of what an extra brings: if it is not there, one sentence with the command to type.

    >>> with needed():
    ...     import math
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").split(".")[0]
        if package not in EXTRA_OF or installed(
            package
        ):  # then a part of the package is missing: not our sentence
            raise
        raise MissingExtraError(how_to_install(package, extra)) from None


def installed(package: str) -> bool:
    """Whether a package can be imported; it is not imported.

    >>> installed("numpy")
    True
    """
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):
        return False
