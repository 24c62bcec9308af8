"""The boundary to the compiler: what knows Numba and llvmlite, but for the vectors and calls by address of boosting.

A *kernel* is an ordinary Python function in the subset that Numba understands. Python runs it as it is (a `Player`, a
debugger, a test); a function decorated with `compiled` may close over kernels and is compiled together with them. One
source, two faces.

====================  ================================================================================
`compiling`           kernels and compiled functions; whether anything is compiled, and with bounds checked
`records`             arrays, numbers and records by name, one pointer in compiled code; `record_type` is their type there
`cache`               compiled code on disk
`sources`             when it is stale
`current`             user-defined kernels with the globals that they name now
`compile_errors`      what is wrong with one of them, in a sentence
`compiling_progress`  who wants to know that something is being compiled, or wants it to stop
====================  ================================================================================

Importing this package imports neither Numba nor llvmlite: they come when something is compiled.
"""

from __future__ import annotations

from abex.kernels.cache import CompilerWarning, cache_folder
from abex.kernels.compile_errors import check_record, explain
from abex.kernels.compiling import (
    before_compiling,
    bounds_checked,
    can_compile,
    compile_alone,
    compiled,
    entry_of,
    is_user_defined,
    kernel,
    rare_kernel,
    single_dispatch,
)  # fmt: skip
from abex.kernels.compiling_progress import compile_as, on_compiling
from abex.kernels.current import with_present_globals
from abex.kernels.records import Record, fields_of, laid_out
from abex.kernels.sources import source_stamp

__all__ = [
    "CompilerWarning",
    "Record",
    "before_compiling",
    "bounds_checked",
    "cache_folder",
    "can_compile",
    "check_record",
    "compile_alone",
    "compile_as",
    "compiled",
    "entry_of",
    "explain",
    "fields_of",
    "is_user_defined",
    "kernel",
    "laid_out",
    "on_compiling",
    "rare_kernel",
    "single_dispatch",
    "source_stamp",
    "with_present_globals",
]
