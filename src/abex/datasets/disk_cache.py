"""A cache on disk for the steps of a pipeline: functions from value to value, their results kept by content.

A result is filed under a hash of everything it depends on: the sources of this package, the values
of the arguments. A pipeline that was killed finds the finished steps and goes on with the next one.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import inspect
import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

from abex.datasets import source_files
from abex.datasets.registry import keep_arrays, kept_arrays
from abex.datasets.types import checksum_of
from abex.kernels import prune, source_stamp

Parameters = ParamSpec("Parameters")
Value = TypeVar("Value")


def cached_on_disk(function: Callable[Parameters, Value]) -> Callable[Parameters, Value]:
    """Keep the results of ``function``: arguments and result are dataclasses of arrays and plain values."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Value:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        path = results_folder() / f"{function.__name__}-{key_of(function, bound.arguments)[:32]}.npz"
        kept = kept_arrays(path)
        if kept is not None:
            with suppress(Exception):  # what was damaged is computed again
                return thaw(get_type_hints(function)["return"], kept)  # type: ignore[no-any-return]
        value = function(*args, **kwargs)
        keep_arrays(path, freeze(value))
        with suppress(OSError):
            os.utime(path.parent)
        prune(path.parent.parent, keep=path.parent)
        return value

    return run


def results_folder() -> Path:
    """Results of this version's pipelines; folders of versions that are no longer used are deleted in time."""
    return source_files.cache() / "stages" / source_stamp()


def key_of(function: Callable[..., Any], arguments: dict[str, Any]) -> str:
    """The hash under which a result is filed."""
    digest = hashlib.sha256(f"{function.__module__}.{function.__name__}".encode())
    for name, value in arguments.items():
        digest.update(f"{name}={fingerprint(value)};".encode())
    return digest.hexdigest()


def fingerprint(value: Any) -> str:
    """The content of an argument as text: arrays by checksum, the rest as Python writes it."""
    if isinstance(value, np.ndarray):
        return checksum_of([value])
    if dataclasses.is_dataclass(value):
        fields = [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
        return f"{type(value).__name__}({', '.join(f'{name}={fingerprint(part)}' for name, part in fields)})"
    return repr(value)


def freeze(value: Any) -> dict[str, NDArray[Any]]:
    """A dataclass as arrays: what is not an array goes into one of JSON text."""
    arrays: dict[str, NDArray[Any]] = {}
    plain: dict[str, Any] = {}
    for field in dataclasses.fields(value):
        content = getattr(value, field.name)
        if isinstance(content, np.ndarray):
            arrays[field.name] = content
        else:
            plain[field.name] = content
    return {**arrays, "_plain": np.frombuffer(json.dumps(plain).encode(), dtype=np.uint8)}


def thaw(kind: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """The dataclass that `freeze` took apart."""
    plain = json.loads(arrays["_plain"].tobytes())
    return kind(**plain, **{name: array for name, array in arrays.items() if name != "_plain"})
