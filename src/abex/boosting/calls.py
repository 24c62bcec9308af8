"""Calls of compiled functions by their addresses.

A function that is called by its name is optimised anew together with every caller; one that is called by its address is
compiled once. The address is handed in, as compiled code from the disk cannot know it.
"""

from __future__ import annotations

from typing import Any

from abex.kernels import before_compiling


def address_of(function: Any, *arguments: Any) -> Any:
    """Where a `compiled` function for arguments like these begins, for `call_at`; it must return a double.

    It is the function itself where nothing is compiled, which `call_at` takes as well.
    """
    if not hasattr(function, "compile"):
        return function
    import numba

    kinds = tuple(numba.typeof(argument) for argument in arguments)
    function.compile(numba.float64(*kinds))  # an int or a float is converted, unless it was compiled before
    found = function.overloads[kinds]
    if found.signature.return_type != numba.float64:
        raise TypeError(
            f"{function.py_func.__qualname__} returns {found.signature.return_type}, a call by address needs a double"
        )
    return int(found.library.get_pointer_to_function(found.fndesc.llvm_func_name))


def call_at(function: Any, arguments: tuple[Any, ...]) -> Any:
    """Call what `address_of` gave for arguments like these; addresses can be called in compiled code alone."""
    if not callable(function):
        raise TypeError("a call by address works in compiled code alone.")
    return function(*arguments)


@before_compiling
def _register_call_at() -> None:
    from llvmlite import ir
    from numba.core import cgutils, types, typing
    from numba.extending import lower_builtin, type_callable

    @type_callable(call_at)  # type: ignore[untyped-decorator]
    def typer(context: Any) -> Any:
        def typed(function: Any, given: Any) -> Any:
            if not isinstance(function, types.Integer):
                return None
            return typing.signature(types.float64, types.intp, types.unliteral(given))  # type: ignore[attr-defined]

        return typed

    @lower_builtin(call_at, types.intp, types.BaseTuple)  # type: ignore[attr-defined, untyped-decorator]
    def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kinds = tuple(signature.args[1])
        kind = context.call_conv.get_function_type(types.float64, kinds)
        function = builder.inttoptr(values[0], ir.PointerType(kind))
        given = cgutils.unpack_tuple(builder, values[1])
        status, result = context.call_conv.call_function(builder, function, types.float64, kinds, given)
        with cgutils.if_unlikely(builder, status.is_error):
            context.call_conv.return_status_propagate(builder, status)
        return result
