"""Compiled code on disk, and what it was made from.

Loading machine code is running it, and what Numba writes is unpickled, which runs it too: `abex.support.private_cache` sees to
whose it is. Where nothing can be kept, all works as well, compiled once in each process; one warning says why.

The name of an entry is a hash of all that the code depends on: the
function and what it closes over, the types of its arguments, the sources (`sources.stamp_of`), the versions of Python, Numba,
llvmlite and NumPy, the processor, and the options of the compiler.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

from abex.kernels.sources import NAME, stamp_of
from abex.support.private_cache import drop, private_folder, prune, read_entry, user_cache, write_entry

IRRELEVANT = {"NUMBA_NUM_THREADS", "NUMBA_CACHE_DIR"}  # settings of Numba that change no code


class CompilerWarning(UserWarning):
    """Compiling takes a slower way than it could; results are the same."""


@cache
def cache_folder() -> Path | None:
    """The folder of compiled code, the user's own; None, with a warning, where there cannot be one."""
    try:
        return private_folder("kernels")
    except OSError as error:
        _not_kept(
            f"{user_cache() / 'kernels'} cannot be used ({error.strerror}): name a folder of your own in ABEX_CACHE"
        )
        return None


class KernelCache:
    """The compiled versions of one function on disk, in the place of Numba's own cache.

    Parameters
    ----------
    folder : Path
        From `cache_folder`.
    function : function
        What is compiled.
    kernels : functions
        What it is compiled with, beside what it closes over.
    options : str
        How it is compiled.
    """

    _works = True  # until an entry could not be written: then no other is tried

    def __init__(self, folder: Path, function: FunctionType, kernels: Iterable[Any], options: str) -> None:
        self.folder = folder
        name = f"{function.__module__}.{function.__qualname__}"
        self.name = re.sub(r"[^\w.]", "", name.removeprefix(f"{NAME}."))[-100:]
        together = [function, *kernels]
        stamp = stamp_of({one.__module__ for one in functions_in(together)})
        described = "\n".join(
            [repr([description(one) for one in together]), str(stamp), environment(), options]
        )
        self.described = None if stamp is None else described

    @property
    def cache_path(self) -> str:
        """Numba asks for it in its statistics."""
        return str(self.folder)

    def load_overload(self, signature: Any, target: Any) -> Any:
        """The compiled function for arguments of these types, None if it has to be compiled."""
        place = self._place(signature, target.codegen())
        if place is None:
            return None
        path, key = place
        payload = read_entry(path, key)
        if payload is None:
            return None
        from numba.core.compiler import CompileResult

        try:
            written, reduced, names = pickle.loads(payload)
            if written == signature:
                make_callable(names, target)
                return CompileResult._rebuild(target, *reduced)
        except Exception:  # it was whole, but this Numba cannot make anything of it
            pass
        drop(path)
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep what was compiled."""
        if not KernelCache._works or result.lifted or result.library.has_dynamic_globals:
            return
        place = self._place(signature, result.library.codegen)
        if place is None:
            return
        from numba.core.serialize import dumps

        try:
            write_entry(*place, dumps((signature, result._reduce(), names_needed(result.library))))
        except OSError as error:
            KernelCache._works = False
            _not_kept(f"writing to {self.folder} failed ({error.strerror})")
        except Exception as error:
            KernelCache._works = False
            _not_kept(f"this version of Numba does not let us ({type(error).__name__}: {error})")
        else:
            _prune_once(self.folder)

    def flush(self) -> None:
        """Numba calls it before it compiles everything anew: entries are overwritten anyway."""

    def _place(self, signature: Any, codegen: Any) -> tuple[Path, bytes] | None:
        """File and key of the version for these types; None if it would not be recognised in another process."""
        kinds = kinds_described(signature)
        if self.described is None or kinds is None:
            return None
        words, modules = kinds
        records = stamp_of_records(modules)  # `single_dispatch` finds kernels in the modules of the records
        if records is None:
            return None
        text = f"{self.described}\n{words}\n{records}\n{codegen.magic_tuple()}"
        key = hashlib.sha256(text.encode()).digest()
        return self.folder / f"{self.name}-{key.hex()[:32]}.kernel", key


def names_needed(library: Any) -> list[str]:
    """The functions and variables that compiled code expects to be there when it is loaded."""
    from llvmlite import binding

    with binding.parse_assembly(library.get_llvm_str()) as module:
        parts = [*module.functions, *module.global_variables]
        return [part.name for part in parts if part.is_declaration and not part.name.startswith("llvm.")]


def make_callable(names: Iterable[str], target: Any) -> None:
    """Let these names be found by code that is loaded.

    Most are there as soon as Numba is imported and its runtime is running. Only if one is missing is the whole compiler made
    ready, which takes as long as importing Numba does.
    """
    from llvmlite import binding
    from numba.core.runtime import rtsys

    rtsys.initialize(target)
    if not all(binding.address_of_symbol(name) for name in names):
        target.refresh()


@cache
def environment() -> str:
    """What else decides the code: versions, processor, settings of Numba."""
    import llvmlite
    import numba
    import numpy as np
    from llvmlite import binding
    from numba.core import config

    settings = sorted(
        f"{name}={value}" for name, value in os.environ.items()
        if name.startswith("NUMBA_") and name not in IRRELEVANT
    )  # fmt: skip
    parts = [
        sys.implementation.cache_tag, getattr(sys, "abiflags", ""), sys.platform, numba.__version__, llvmlite.__version__,
        np.__version__, binding.get_host_cpu_name(), f"svml={getattr(config, 'USING_SVML', None)}", *settings,
    ]  # fmt: skip
    return " ".join(str(part) for part in parts)


def functions_in(values: Iterable[Any]) -> Iterator[FunctionType]:
    """The Python functions among ``values``, in their closures, and in tuples of either."""
    for value in values:
        function = getattr(value, "py_func", value)  # of a compiled function
        if isinstance(function, FunctionType):
            yield function
            yield from functions_in(cell.cell_contents for cell in function.__closure__ or ())
        elif isinstance(value, tuple | list):
            yield from functions_in(value)


def description(value: Any) -> Any:
    """A function and what it closes over, in words that are the same in every process."""
    function = getattr(value, "py_func", value)
    if isinstance(function, FunctionType):
        code = function.__code__
        body = hashlib.sha256(
            code.co_code + repr([c for c in code.co_consts if not hasattr(c, "co_code")]).encode()
        )
        inside = [description(cell.cell_contents) for cell in function.__closure__ or ()]
        return (function.__module__, function.__qualname__, code.co_firstlineno, body.hexdigest(), inside)
    if isinstance(value, tuple | list):
        return [description(one) for one in value]
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return repr(value)
    from numba.core.serialize import dumps

    return hashlib.sha256(dumps(value)).hexdigest()


@cache
def stamp_of_records(modules: frozenset[str]) -> str | None:
    """The stamp of the modules of record classes."""
    return stamp_of(modules)


def kinds_described(signature: Any) -> tuple[str, frozenset[str]] | None:
    """The types of arguments in words, and the modules of their records.

    None for types that mean something else in another process. Numba's names of named tuples do not say of which class they are.
    """
    from numba.core import types

    from abex.kernels.record_type import RecordType

    modules: set[str] = set()

    def words(kind: Any) -> Iterator[str]:
        if isinstance(kind, types.Dispatcher | types.Function):
            yield ""
            return
        named, record = isinstance(kind, types.BaseNamedTuple), isinstance(kind, RecordType)  # type: ignore[attr-defined]
        if named or record:
            module, name = kind.instance_class.__module__, kind.instance_class.__qualname__
            fields = sorted(kind.words.items()) if record else kind.fields
            modules.add(module)
            yield f"{module}.{name}{fields}" if module.split(".")[0] == NAME else ""
        if record or isinstance(kind, types.BaseTuple):  # type: ignore[attr-defined]
            for inner in kind.kinds.values() if record else kind.types:
                yield from words(inner)
        if not record:
            yield str(kind)

    kinds = getattr(signature, "args", signature)
    found = [word for kind in kinds for word in words(kind)]
    result = getattr(signature, "return_type", None)
    return None if "" in found else (f"{found} -> {result}", frozenset(modules))


@cache
def _prune_once(folder: Path) -> None:
    prune(folder)


def _not_kept(reason: str) -> None:
    warnings.warn(f"compiled code is not kept: {reason}", CompilerWarning, stacklevel=2)
