"""The same numbers whichever way they are compiled: by public interfaces alone, with bounds checked, for another processor."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import abex.kernels.interfaces
from abex.boosting.weights import sum_products
from abex.kernels import CompilerWarning, compiled
from abex.kernels.interfaces import BEYOND, OLDEST, TRIALS, usable
from abex.kernels.vectors import new_rows, width_of
from tests.test_kernels import run

ROOT = Path(__file__).parents[1]
PROGRAM = "from tests.kernel_program import main; main()"


@pytest.fixture(scope="module")
def usual():
    """What the program prints, compiled as it usually is."""
    return run(PROGRAM)


WAYS = {
    "public interfaces, bounds checked": {"ABEX_PLAIN": "1", "ABEX_BOUNDS": "1"},
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


def test_an_interpreted_fit_tries_nothing_and_warns_of_nothing(tmp_path):
    code = (
        "import warnings; warnings.simplefilter('error')\n"
        "from sklearn.datasets import load_iris\n"
        "from abex.boosting import AdaBoostMHClassifier\n"
        "from abex.kernels.interfaces import TRIALS, usable\n"
        "for name in TRIALS:\n"
        "    TRIALS[name] = lambda: print('tried')\n"
        "x, y = load_iris(return_X_y=True)\n"
        "model = AdaBoostMHClassifier(n_estimators=2).fit(x[::5], y[::5])\n"
        "print(model.score(x, y) > 0.8, any(usable(name) for name in TRIALS))\n"
    )
    assert run(code, NUMBA_DISABLE_JIT="1", ABEX_CACHE=str(tmp_path)) == "True False"


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


@pytest.fixture
def untried(tmp_path, monkeypatch):
    """Nothing has been tried yet, and nothing is remembered."""
    monkeypatch.setattr(abex.kernels.interfaces, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(abex.kernels.interfaces, "bounds_checked", lambda: False)
    for function in (usable, abex.kernels.interfaces.version_is_tested):
        function.cache_clear()
    yield tmp_path
    for function in (usable, abex.kernels.interfaces.version_is_tested):
        function.cache_clear()


def test_each_interface_is_tried_once_and_remembered(untried, monkeypatch):
    @compiled()
    def something(x):  # what is tried may need lowerings that are registered before
        return x

    assert all(usable(name) for name in TRIALS)
    assert len(list(untried.iterdir())) == len(TRIALS)
    for name in TRIALS:
        monkeypatch.setitem(TRIALS, name, lambda: pytest.fail("tried again"))
    usable.cache_clear()
    assert all(usable(name) for name in TRIALS)


@pytest.mark.parametrize("name", TRIALS)
def test_an_interface_that_does_not_work_is_not_used(untried, monkeypatch, name):
    def fail():
        raise AttributeError("gone in this version")

    for trial in (fail, lambda: False):
        usable.cache_clear()
        monkeypatch.setitem(TRIALS, name, trial)
        with pytest.warns(CompilerWarning, match=f"public interfaces .* {name} does not work") as caught:
            assert not usable(name)
        assert len(caught) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert not usable(name)


@pytest.mark.parametrize("version", ["0.60.9", "0.69.0", "1.0.0"])
def test_a_version_that_is_not_tested_gets_the_public_interfaces(untried, monkeypatch, version):
    monkeypatch.setattr("numba.__version__", version)
    with pytest.warns(CompilerWarning, match=f"version {version} is untested") as caught:
        assert not any([usable(name) for name in TRIALS])
    assert len(caught) == 1


def test_the_versions_tested_are_those_that_may_be_installed():
    text = (ROOT / "pyproject.toml").read_text()
    oldest, beyond = re.search(r'"numba>=([\d.]+),<([\d.]+)"', text).groups()
    assert oldest == ".".join(map(str, OLDEST))
    assert beyond == ".".join(map(str, BEYOND))


def test_vector_code_can_be_made_for_another_architecture_and_never_fuses_operations():
    from llvmlite import binding

    @compiled()
    def run_sum(sums, values, slot, factors, width):
        sum_products(sums, values, slot, factors, 0, 0, 2, width)

    sums, values, factors = (new_rows(count, 10, np.float32) for count in (1, 4, 4))
    run_sum(sums, values, np.zeros(4, np.uint8), factors, width_of(10, np.float32))
    if not usable("vectors"):
        pytest.skip("needs vector code (a processor for which there is some)")
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
