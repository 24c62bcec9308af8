"""The same numbers whichever way they are compiled: with bounds checked, for another processor."""

import re

import numpy as np
import pytest

from abex.boosting.vectors import new_rows, width_of
from abex.boosting.weights import sum_products
from abex.kernels import compiled
from abex.kernels.compiling import bounds_checked
from tests.kernels.test_kernels import run

PROGRAM = "from tests.kernels.program import main; main()"


@pytest.fixture(scope="module")
def usual():
    """What the program prints, compiled as it usually is."""
    return run(PROGRAM)


WAYS = {
    "bounds checked": {
        "ABEX_BOUNDS": "1",
        "NUMBA_OPT": "0",
    },  # optimising the checks takes LLVM half a minute
    "another processor": {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""},
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_the_numbers_do_not_depend_on_the_way_they_are_compiled(usual, way):
    assert run(PROGRAM, **way) == usual


def test_everything_runs_without_the_compiler():
    code = (
        "from abex.boosting.splitter import new_split_search\n"
        "from abex.kernels import compiled, kernel\n"
        "@kernel\n"
        "def twice(x):\n"
        "    return 2 * x\n"
        "@compiled(twice)\n"
        "def run(x):\n"
        "    return twice(x)\n"
        "print(run(21))\n"
    )
    assert run(code, NUMBA_DISABLE_JIT="1") == "42"


def test_an_interpreted_fit_warns_of_nothing(tmp_path):
    code = (
        "import warnings; warnings.simplefilter('error')\n"
        "from sklearn.datasets import load_iris\n"
        "from abex.boosting import AdaBoostMHClassifier\n"
        "x, y = load_iris(return_X_y=True)\n"
        "model = AdaBoostMHClassifier(n_estimators=2).fit(x[::5], y[::5])\n"
        "print(model.score(x, y) > 0.8)\n"
    )
    assert run(code, NUMBA_DISABLE_JIT="1", ABEX_CACHE=str(tmp_path)) == "True"


def test_bounds_are_checked_when_asked_for():
    code = (
        "from abex.kernels import compiled, kernel\n"
        "import numpy as np\n"
        "@kernel\n"
        "def item(values, at):\n"
        "    return values[at]\n"
        "@compiled(item)\n"
        "def beyond(values):\n"
        "    return item(values, values.size + 1)\n"
        "try:\n"
        "    beyond(np.zeros(3))\n"
        "    print('not noticed')\n"
        "except IndexError:\n"
        "    print('noticed')\n"
    )
    assert run(code, ABEX_BOUNDS="1") == "noticed"


def test_vector_code_can_be_made_for_another_architecture_and_never_fuses_operations():
    from llvmlite import binding

    @compiled()
    def run_sum(sums, values, slot, factors, width):
        sum_products(sums, values, slot, factors, 0, 0, 2, width)

    sums, values, factors = (new_rows(count, 10, np.float32) for count in (1, 4, 4))
    run_sum(sums, values, np.zeros(4, np.uint8), factors, width_of(10, np.float32))
    if bounds_checked():
        pytest.skip("needs vector code (run without ABEX_BOUNDS)")
    (code,) = run_sum.inspect_llvm().values()
    code = re.sub(
        r"(tail )?call i8 @llvm\.x86\.atomic.*", "add i8 0, 0", code
    )  # how Numba counts references here
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    for triple, vector, fused in (
        ("aarch64-unknown-linux-gnu", r"fmul\s+v\d+\.4s", r"\bfml[as]\b|\bfn?m(add|sub)\b"),
        ("x86_64-unknown-linux-gnu", r"mulps", r"vfn?m(add|sub)"),
    ):
        module = binding.parse_assembly(re.sub('target (triple|datalayout) = ".*"', "", code))
        machine = binding.Target.from_triple(triple).create_target_machine(
            cpu="generic", features="+fma,+avx2" if "x86" in triple else "", opt=3
        )
        module.triple, module.data_layout = triple, str(machine.target_data)
        assembly = machine.emit_assembly(module)
        assert re.search(vector, assembly)
        assert not re.search(fused, assembly)
