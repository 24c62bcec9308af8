"""Kernels are optimised and made machine code once, as part of the function they are compiled with.

Numba compiles every function that a compiled function calls as if it were called from Python, too: it is optimised together
with all that it calls, given a wrapper and made machine code, and then optimised again in each of its callers. Kernels are
never called from Python. Here a kernel stops at the code that LLVM has cleaned up function by function; the compiled function
links all kernels that it reaches and has them optimised together. That halves what LLVM has to do, and the machine code is
as fast.

Importing this module imports Numba. It uses parts of Numba that are not public: `abex.kernels.interfaces` tries them first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import binding
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.environment import lookup_environment
from numba.core.typed_passes import NativeLowering

from abex.kernels.garbage import collection_paused

#: How the names of functions begin through which Python calls compiled ones.
WRAPPER = "_ZN7cpython"


class KernelLibrary(JITCodeLibrary):  # type: ignore[misc]
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


class ProgramLibrary(JITCodeLibrary):  # type: ignore[misc]
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


def passes(state: Any, lowering: type) -> list[PassManager]:
    """Numba's own passes with another lowering."""
    manager = PassManager("nopython")
    for one, why in DefaultPassBuilder.define_nopython_pipeline(state).passes:
        manager.add_pass(lowering if one is NativeLowering else one, why)
    manager.finalize()
    return [manager]


class RareKernelCompiler(CompilerBase):  # type: ignore[misc]
    """How a `rare_kernel` is compiled."""

    def define_pipelines(self) -> list[PassManager]:
        """One."""
        return passes(self.state, RareKernelLowering)


class KernelCompiler(CompilerBase):  # type: ignore[misc]
    """How a `kernel` is compiled."""

    def define_pipelines(self) -> list[PassManager]:
        """One."""
        return passes(self.state, KernelLowering)


class ProgramCompiler(CompilerBase):  # type: ignore[misc]
    """How a `compiled` function is compiled."""

    def define_pipelines(self) -> list[PassManager]:
        """One."""
        return passes(self.state, ProgramLowering)

    def compile_extra(self, func: Any) -> Any:
        """Compile, while Python does not look for garbage: it would go over all that Numba has made, again and again."""
        with collection_paused(), everything_linked():
            return super().compile_extra(func)


@contextmanager
def everything_linked() -> Iterator[None]:
    """Within, functions of Numba that a kernel calls (``min``, ``rng.beta``) become part of it, as kernels do.

    Numba holds its compiler's lock meanwhile, so no other thread compiles anything.
    """
    usual = Compiler.define_pipelines

    def define_pipelines(self: Any) -> list[PassManager]:
        return passes(self.state, KernelLowering)

    Compiler.define_pipelines = define_pipelines
    try:
        yield
    finally:
        Compiler.define_pipelines = usual
