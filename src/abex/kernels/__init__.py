"""The boundary to the compiler: what knows Numba and llvmlite, but for the vectors and calls by address of boosting.

A *kernel* is an ordinary Python function in the subset that Numba understands. Python runs it as it is (a `Player`, a
debugger, a test); a function decorated with `compiled` may close over kernels and is compiled together with them. One
source, two faces.

==============  ====================================================================================
`compiling`     kernels and compiled functions
`scalars`       named numbers that kernels may change; `scalar_type` is their type in compiled code
`records`       arrays, numbers and records by name, one pointer in compiled code; `record_type` is their type there
`cache`         compiled code on disk
`sources`       when it is stale
`current`       kernels of other packages with the globals that they name now
`mistakes`      what is wrong with one of them, in a sentence
`watching`      who wants to know that something is being compiled, or wants it to stop
==============  ====================================================================================

Importing this package imports neither Numba nor llvmlite: they come when something is compiled.
"""

from __future__ import annotations

from abex.kernels.cache import CompilerWarning, cache_folder
from abex.kernels.compiling import (
    before_compiling,
    bounds_checked,
    can_compile,
    compiled,
    entry_of,
    fast,
    foreign,
    kernel,
    rare_kernel,
    single_dispatch,
)  # fmt: skip
from abex.kernels.current import current
from abex.kernels.mistakes import check_record, explained
from abex.kernels.records import Record, by_reference, fields_of, laid_out
from abex.kernels.scalars import Scalars
from abex.kernels.sources import source_stamp
from abex.kernels.watching import compile_as, on_compiling

__all__ = [
    "CompilerWarning",
    "Record",
    "Scalars",
    "before_compiling",
    "bounds_checked",
    "by_reference",
    "cache_folder",
    "can_compile",
    "check_record",
    "compile_as",
    "compiled",
    "current",
    "entry_of",
    "explained",
    "fast",
    "fields_of",
    "foreign",
    "kernel",
    "laid_out",
    "on_compiling",
    "rare_kernel",
    "single_dispatch",
    "source_stamp",
]
