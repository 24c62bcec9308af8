"""What Numba remembers while it compiles for us changes nothing that it makes."""

import pytest

from abex.kernels.interfaces import usable
from abex.kernels.shortcuts import _SHORTCUTS, shortcuts
from tests.test_kernels import run as run_in_process

PROGRAM = """
from llvmlite import binding
import abex.kernels.shortcuts
from abex import Bernoulli, simulate
parsed, usual = [], binding.parse_assembly
def parse_assembly(text, context=None):
    parsed.append(text)
    return usual(text, context)
binding.parse_assembly = parse_assembly
{before}
for policy in {policies}:
    curves = simulate(policy, Bernoulli([0.4] * 9 + [0.6]), horizon=200, replications=1, progress=False)
    parsed.append(str(curves.regret.sum()))
import hashlib, re
large = [text for text in parsed if "define" in text or len(text) < 40]
large = [re.sub(r"pickle(data|buf)[.][0-9]+", "", text) for text in large]  # an address, before Numba 0.62
print(len(large), hashlib.sha256("".join(large).encode()).hexdigest())
"""
POLICIES = ["Evidence", "ABE", "Thompson", "UCBV"]


def test_what_llvm_gets_is_the_same_to_the_letter(tmp_path):
    if not usable("options"):
        pytest.skip("needs private interfaces (run without ABEX_PLAIN)")
    found = [
        run_in_process(PROGRAM.format(before=before, policies=POLICIES), ABEX_CACHE=str(tmp_path / name))
        for name, before in {"with": "", "without": "abex.kernels.shortcuts._SHORTCUTS.clear()"}.items()
    ]
    assert found[0] == found[1]
    assert int(found[0].split()[0]) > 50


def test_numba_is_as_it_was_afterwards():
    import numba.core.utils
    from numba.core.targetconfig import TargetConfig

    before = numba.core.utils.pysignature, TargetConfig.__eq__
    with shortcuts():
        assert numba.core.utils.pysignature is not before[0]
        assert TargetConfig.__eq__ is not before[1]
    assert (numba.core.utils.pysignature, TargetConfig.__eq__) == before


def test_what_another_numba_does_not_have_is_left_alone(monkeypatch):
    monkeypatch.setitem(_SHORTCUTS, ("numba.core.nowhere", "at_all"), lambda usual: usual)
    monkeypatch.setitem(_SHORTCUTS, ("numba.core.utils:Nobody", "at_all"), lambda usual: usual)
    monkeypatch.setitem(_SHORTCUTS, ("numba.core.utils", "nothing"), lambda usual: usual)
    with shortcuts():
        pass


def test_functions_registered_while_something_is_compiled_are_found():
    """Numba's own overloads do it: they define helpers in their bodies."""
    from numba.extending import overload, register_jitable

    from abex.kernels import compiled

    def twice(x):
        raise NotImplementedError

    @overload(twice)
    def choose(x):
        @register_jitable
        def helper(x):
            return 2 * x

        return lambda x: helper(x)

    assert compiled()(lambda x: twice(x) + 1)(20) == 41
