"""Kernels are optimised and made machine code once, as part of the function they are compiled with.

Numba compiles every function that a compiled function calls as if it were called from Python, too: it is optimised together
with all that it calls, given a wrapper and made machine code, and then optimised again in each of its callers. Kernels are
never called from Python. Here a kernel stops at the code that LLVM has cleaned up function by function; the compiled function
links all kernels that it reaches and has them optimised together. That halves what LLVM has to do, and the machine code is
as fast. Passes of Numba that concern what our kernels do not have (closures, ``with``, expressions of arrays) are left out, and
so is what Numba does after and around each pass to check and to time it.

Importing this module imports Numba. It uses parts of Numba that are not public: `abex.kernels.interfaces` tries them first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any

from llvmlite import binding
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.environment import lookup_environment
from numba.core.errors import new_error_context  # type: ignore[attr-defined]
from numba.core.event import trigger_event
from numba.core.typed_passes import NativeLowering

from abex.kernels.elements import ELEMENTS
from abex.kernels.garbage import collection_paused
from abex.kernels.registries import without_linear_algebra
from abex.kernels.shortcuts import replaced, shortcuts
from abex.kernels.sources import NAME

#: Passes of Numba that change nothing in functions without closures, ``with`` and constants to unroll over.
NOT_FOR_OURS = frozenset(
    {
        "with_lifting",
        "inline_closure_likes",
        "make_function_op_code_to_jit_function",
        "inline_inlinables",
        "find_literally",
        "literal_unroll",
        "LiteralPropagation",
    }
)
#: How the names of functions begin through which Python calls compiled ones.
WRAPPER = "_ZN7cpython"
#: Beside these, one that fuses expressions of arrays.
NOT_FOR_KERNELS = NOT_FOR_OURS | {"nopython_rewrites"}


class Library(JITCodeLibrary):  # type: ignore[misc]
    """Code of ours."""

    def _optimize_functions(self, module: Any) -> None:
        """Clean up what the module defines; Numba has LLVM look at what it only declares, too."""
        if not hasattr(self._codegen, "_pass_builder"):  # LLVM's former passes, before Numba 0.62
            super()._optimize_functions(module)
            return
        module.data_layout = self._codegen._data_layout
        for function in module.functions:
            if not function.is_declaration:
                passes, builder = self._codegen._function_pass_manager()
                passes.run(function, builder)


class KernelLibrary(Library):
    """The code of a kernel, to be linked; there is no machine code of it."""

    _shared_module: Any

    def finalize(self) -> None:
        """Nothing is added any more."""
        self._raise_if_finalized()
        self._finalize_dynamic_globals()
        self._finalized = True
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == binding.Linkage.external:
                function.linkage = "linkonce_odr"  # it may come several times, and go when nobody calls it

    def _get_module_for_linking(self) -> Any:
        """For callers that link what they call and no more: the kernel with all that it calls."""
        self._ensure_finalized()
        if self._shared_module is None:
            module = self._final_module.clone()
            for library in reached_from(self):
                module.link_in(code_of(library), preserve=True)
            self._shared_module = module
        return self._shared_module


def reached_from(library: Any) -> Iterator[Any]:
    """The libraries that a library links, and those that the kernels among them do, each once."""
    seen = {library}
    waiting = list(library._linking_libraries)
    while waiting:
        one = waiting.pop(0)
        if one not in seen:
            seen.add(one)
            yield one
            if isinstance(one, KernelLibrary):
                waiting.extend(one._linking_libraries)


def code_of(library: Any) -> Any:
    """What a library itself has to be linked."""
    if isinstance(library, KernelLibrary):
        library._ensure_finalized()
        return library._final_module
    return library._get_module_for_linking()


class ProgramLibrary(Library):
    """The code of a compiled function with that of all kernels it reaches."""

    def add_ir_module(self, ir_module: Any) -> None:
        """The function must not become part of its wrapper: there the fields of records, by reference, are still written.

        The wrapper is not optimised: it takes dozens of arrays apart, once for a call that plays thousands of steps.
        """
        for function in ir_module.functions:
            if not function.is_declaration and "alwaysinline" not in function.attributes:
                function.attributes.add("noinline")
                if function.name.startswith(WRAPPER):
                    function.attributes.add("optnone")
        super().add_ir_module(ir_module)

    def finalize(self) -> None:
        """Link the kernels, optimise all together, and make machine code."""
        reached = list(reached_from(self))
        for library in reached:
            if isinstance(library, KernelLibrary):
                if hasattr(library, "_reload_init"):  # since Numba 0.62
                    self._reload_init.update(library._reload_init)
                self._final_module.link_in(code_of(library), preserve=True)
        self._linking_libraries = [one for one in reached if not isinstance(one, KernelLibrary)]
        super().finalize()
        for variable in self._final_module.global_variables:  # constants of kernels that Python keeps
            if variable.name.startswith("_ZN08NumbaEnv") and not variable.is_declaration:
                environment = lookup_environment(variable.name)
                if environment is not None:
                    self._codegen.set_env(variable.name, environment)


@register_pass(mutates_CFG=True, analysis_only=False)
class RareKernelLowering(NativeLowering):  # type: ignore[misc]
    """A kernel that is called."""

    _name = "abex_rare_kernel_lowering"
    inline = False

    def run_pass(self, state: Any) -> bool:
        """Into a library that is only linked."""
        state.library = KernelLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        flags = state.flags
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        # only now: what the kernel calls would inherit it, and be compiled for each case
        flags.forceinline = self.inline
        super().run_pass(state)
        nobody = object().__sizeof__  # Numba files a kernel under its function, which is never called
        state.targetctx.insert_user_function(nobody, state.cr.fndesc, [state.library])
        state.cr = state.cr._replace(cfunc=nobody)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class KernelLowering(RareKernelLowering):
    """A kernel that becomes part of its callers."""

    _name = "abex_kernel_lowering"
    inline = True


@register_pass(mutates_CFG=True, analysis_only=False)
class ProgramLowering(NativeLowering):  # type: ignore[misc]
    """A function that Python calls."""

    _name = "abex_program_lowering"

    def run_pass(self, state: Any) -> bool:
        """Into a library that links what kernels reach."""
        state.library = ProgramLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return bool(super().run_pass(state))


class Passes(PassManager):  # type: ignore[misc]
    """Passes that leave the code of a function in order: it is not analysed anew after each of them, nor are they timed."""

    _ENFORCING = False

    def _runPass(self, index: int, pss: Any, internal_state: Any) -> None:  # noqa: N802 - it is Numba's name
        """Run one, and tell who listens."""
        if self._print_before or self._print_after or self._print_wrap:
            super()._runPass(index, pss, internal_state)
            return
        pss.analysis = self._analysis
        function = internal_state.func_id
        about = {
            "name": f"{pss.name()} [{function.func_qualname}]",
            "qualname": function.func_qualname,
            "module": function.modname,
        }
        with trigger_event("numba:run_pass", data=about), new_error_context("Pass {name}", name=pss.name()):
            pss.run_initialization(internal_state)
            pss.run_pass(internal_state)
            pss.run_finalizer(internal_state)


_passes: dict[tuple[Any, ...], list[PassManager]] = {}  # by what they depend on


def passes(state: Any, lowering: type, skipped: frozenset[str]) -> list[PassManager]:
    """Numba's own passes with another lowering, without those that are not needed."""
    function = state.func_id.func
    # what Numba makes of an expression of arrays belongs to no module
    ours = str(function.__module__).split(".")[0] == NAME
    closures = any(isinstance(constant, CodeType) for constant in function.__code__.co_consts)
    if not ours or closures:
        skipped = frozenset()
    flags = state.flags
    which = (
        lowering,
        skipped,
        ours,
        state.func_ir is None,
        flags.no_rewrites,
        flags.enable_ssa,
        str(flags.auto_parallel),
    )
    if which not in _passes:
        _passes[which] = define_passes(state, lowering, skipped, Passes if ours else PassManager)
    return _passes[which]


def define_passes(
    state: Any, lowering: type, skipped: frozenset[str], kind: type[PassManager]
) -> list[PassManager]:
    """Numba's own passes with another lowering, without those that are not needed."""
    manager = kind("nopython")
    pruned = False
    for one, why in DefaultPassBuilder.define_nopython_pipeline(state).passes:
        if one is NativeLowering:
            manager.add_pass(lowering, why)
        elif one._name not in skipped and not (skipped and pruned and one._name == "dead_branch_prune"):
            manager.add_pass(one, why)
            pruned |= one._name == "dead_branch_prune"  # once is enough
    manager.finalize()
    return [manager]


class RareKernelCompiler(CompilerBase):  # type: ignore[misc]
    """How a `rare_kernel` is compiled."""

    def define_pipelines(self) -> list[PassManager]:
        """One."""
        return passes(self.state, RareKernelLowering, NOT_FOR_KERNELS)


class KernelCompiler(CompilerBase):  # type: ignore[misc]
    """How a `kernel` is compiled."""

    def define_pipelines(self) -> list[PassManager]:
        """One."""
        return passes(self.state, KernelLowering, NOT_FOR_KERNELS)


class ProgramCompiler(CompilerBase):  # type: ignore[misc]
    """How a `compiled` function is compiled."""

    def __init__(self, *terms: Any) -> None:
        without_linear_algebra()
        with shortcuts():
            super().__init__(*terms)

    def define_pipelines(self) -> list[PassManager]:
        """One."""
        return passes(self.state, ProgramLowering, NOT_FOR_OURS)

    def compile_extra(self, func: Any) -> Any:
        """Compile, while Python does not look for garbage: it would go over all that Numba has made, again and again."""
        with collection_paused(), shortcuts(), replaced(ELEMENTS), everything_linked(), lock_untimed():
            return super().compile_extra(func)


@contextmanager
def lock_untimed() -> Iterator[None]:
    """Within, Numba is not told of every call of LLVM, of which it keeps the time for each function under way."""
    lock = binding.ffi.lib._lock
    callbacks, lock._cblist = lock._cblist, []
    try:
        yield
    finally:
        lock._cblist = callbacks


@contextmanager
def everything_linked() -> Iterator[None]:
    """Within, functions of Numba that a kernel calls (``min``, ``rng.beta``) become part of it, as kernels do.

    Numba holds its compiler's lock meanwhile, so no other thread compiles anything.
    """
    usual = Compiler.define_pipelines

    def define_pipelines(self: Any) -> list[PassManager]:
        return passes(self.state, KernelLowering, frozenset())

    Compiler.define_pipelines = define_pipelines
    try:
        yield
    finally:
        Compiler.define_pipelines = usual
