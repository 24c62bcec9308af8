"""What Numba finds out again and again while it compiles, found out once.

A kernel of ten lines has thirty operations, and Numba goes through a dozen templates for each: when it infers types and
again when it writes code. Before each function it reads its registries, and after most passes it works out anew which variables
are alive where. Within `shortcuts` the answers are remembered. They are the same: what LLVM gets does not change by a letter
(``tests/test_kernels_shortcuts.py``).

A part of Numba that is not there, in another version, is left as it is.
"""

from __future__ import annotations

import dis
import operator
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib import import_module
from types import BuiltinFunctionType, FunctionType
from typing import Any

OPERATORS = frozenset(
    function for function in vars(operator).values() if isinstance(function, BuiltinFunctionType)
)

Replacement = Callable[[Any], Callable[..., Any]]  # what takes the place of a function, given that

_SHORTCUTS: dict[tuple[str, str], Replacement] = {}


def shortcut(owner: str, name: str) -> Callable[[Replacement], Replacement]:
    """Replace a function of Numba, found under a module or a class of one."""

    def add(replacement: Replacement) -> Replacement:
        _SHORTCUTS[owner, name] = replacement
        return replacement

    return add


def shortcuts() -> AbstractContextManager[None]:
    """Within, Numba takes them."""
    return replaced(_SHORTCUTS)


@contextmanager
def replaced(replacements: dict[tuple[str, str], Replacement]) -> Iterator[None]:
    """Within, these stand in Numba. It holds its compiler's lock meanwhile, so no other thread compiles anything."""
    with ExitStack() as undo:
        for (owner, name), replacement in replacements.items():
            module, _, inner = owner.partition(":")
            try:
                place: Any = import_module(module)
                place = getattr(place, inner) if inner else place
                usual = vars(place)[name]
            except (ImportError, AttributeError, KeyError):
                continue
            setattr(place, name, replacement(usual))
            undo.callback(setattr, place, name, usual)
        yield


_signatures: dict[
    int, tuple[Any, dict[Any, Any]]
] = {}  # of operators by their types, which are kept with them


@shortcut("numba.core.types.functions:BaseFunction", "get_call_type")
def operators_typed_once(usual: Any) -> Callable[..., Any]:
    """The signature of an operator for numbers and arrays; what is compiled for some arguments is asked for each time."""

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws or self.typing_key not in OPERATORS:
            return usual(self, context, args, kws)
        known = _signatures.setdefault(id(self), (self, {}))[1]
        which = tuple(map(id, args))  # types are unique
        if which not in known:
            signature = usual(self, context, args, kws)
            if signature is None or self._impl_keys.get(signature.args) is not self.typing_key:
                return signature
            known[which] = args, signature
        return known[which][1]

    return get_call_type


@shortcut("numba.core.typing.context:BaseContext", "resolve_function_type")
def operators_found_at_once(usual: Any) -> Callable[..., Any]:
    """An operator has templates and nothing else."""
    from numba.core import types

    def resolve_function_type(self: Any, func: Any, args: Any, kws: Any) -> Any:
        if isinstance(func, types.Function) and func.typing_key in OPERATORS and not kws:
            found = _signatures.get(id(func))
            if found is not None and (typed := found[1].get(tuple(map(id, args)))) is not None:
                return typed[1]
        return usual(self, func, args, kws)

    return resolve_function_type


@shortcut("numba.core.typing.context:BaseContext", "resolve_value_type")
def functions_are_no_values(usual: Any) -> Callable[..., Any]:
    """A function has the type that it is registered with: Numba looks at everything else first, and raises an exception."""

    def resolve_value_type(self: Any, val: Any) -> Any:
        if type(val) in (FunctionType, BuiltinFunctionType) and not hasattr(val, "_numba_type_"):
            found = self._lookup_global(val)
            if found is not None:
                return found
        return usual(self, val)

    return resolve_value_type


_registrations: dict[int, tuple[Any, int]] = {}  # how many a context has read, -1 if there may be more
_reading: list[Any] = []  # contexts that read their registries at the moment


def registrations(context: Any) -> int:
    """How many things are registered where a context reads."""
    return sum(
        len(getattr(registry, name))
        for registry, loader in context._registries.items()
        for name in loader.registry_items
    )


def registries_read_when_they_grow(usual: Any) -> Callable[..., Any]:
    """A context has read its registries if nothing was registered since.

    A template that is registered asks for all to be read once more, and registers something: hundreds do when Numba reads all of
    them for the first time. Who has read most of them reads the rest when that is over.
    """

    def refresh(self: Any) -> None:
        key, before = id(self._registries), registrations(self)
        seen, count = _registrations.get(key, (None, -1))
        if seen is self._registries and (count == before or _reading):
            return
        _reading.append(self)
        try:
            usual(self)
        finally:
            _reading.pop()
        _registrations[key] = self._registries, before if registrations(self) == before else -1

    return refresh


shortcut("numba.core.typing.context:BaseContext", "refresh")(registries_read_when_they_grow)
shortcut("numba.core.base:BaseContext", "refresh")(registries_read_when_they_grow)


@shortcut("numba.core.postproc:PostProcessor", "run")
def lifetimes_worked_out_when_needed(usual: Any) -> Callable[..., Any]:
    """Which variables are alive at the start of a block is a question of generators and of the last pass alone."""
    from numba.core import transforms
    from numba.core.postproc import VariableLifetime

    def run(self: Any, emit_dels: bool = False, **options: Any) -> None:
        code = self.func_ir
        if emit_dels or code.is_generator:
            usual(self, emit_dels, **options)
            return
        code.blocks = transforms.canonicalize_cfg(code.blocks)
        code.variable_lifetime = VariableLifetime(code.blocks)  # it works them out when it is asked
        code.generator_info = None

    return run


@shortcut("numba.core.interpreter", "peep_hole_delete_with_exit")
def no_with_no_exit(usual: Any) -> Callable[..., Any]:
    """What ``with`` leaves behind is looked for in every statement, twice, of functions that have none."""
    names = ("BEFORE_WITH", "SETUP_WITH", "LOAD_SPECIAL")  # by the versions of Python
    marks = {dis.opmap[name] for name in names if name in dis.opmap}

    def peep_hole_delete_with_exit(func_ir: Any) -> Any:
        if marks.isdisjoint(func_ir.func_id.func.__code__.co_code[::2]):
            return func_ir
        return usual(func_ir)

    return peep_hole_delete_with_exit


def remembered(usual: Any) -> Callable[..., Any]:
    """What a function says of an object, as long as everything is compiled."""
    known: dict[Any, Any] = {}

    def ask(subject: Any) -> Any:
        try:
            return known[subject]
        except KeyError:
            found = known[subject] = usual(subject)
            return found
        except TypeError:
            return usual(subject)

    return ask


shortcut("numba.core.utils", "pysignature")(remembered)
shortcut("numba.core.base", "_has_loc")(remembered)


@shortcut("numba.core.base:BaseContext", "get_abi_sizeof")
def sizes_remembered(usual: Any) -> Callable[..., Any]:
    """LLVM reads a module for each type whose size is wanted."""
    known: dict[str, int] = {}

    def get_abi_sizeof(self: Any, ty: Any) -> int:
        name = str(ty)
        if name not in known:
            known[name] = usual(self, ty)
        return known[name]

    return get_abi_sizeof


@shortcut("numba.core.targetconfig:TargetConfig", "__eq__")
def options_compared_as_they_were_set(usual: Any) -> Callable[..., Any]:
    """The same options were set to the same values, or all are compared."""

    def equal(self: Any, other: Any) -> Any:
        if type(self) is type(other) and self._values == other._values:
            return True
        return usual(self, other)

    return equal


@shortcut("numba.core.targetconfig:TargetConfig", "__hash__")
def hash_of_class(usual: Any) -> Callable[..., Any]:
    """Numba hashes the names of all options, which are those of the class."""
    known: dict[type, int] = {}

    def hash_of(self: Any) -> int:
        kind = type(self)
        if kind not in known:
            known[kind] = usual(self)
        return known[kind]

    return hash_of
