"""Kernels as files, what becomes of damaged ones, and an engine's core at two speeds."""

import sys
from pathlib import Path

import numba
import pytest

from dlsim import compiled
from dlsim.compiled import Core
from dlsim.errors import InputError

ROOT = Path(__file__).parents[1]


def test_kernels_are_keyed_by_the_sources_of_their_own_core():
    """A changed comment in the command line, or in another engine, compiles nothing anew."""
    for engine in compiled.CORES:
        sources = set(compiled.core_sources(f"dlsim.{engine}.core.any"))
        core = set((ROOT / "dlsim" / engine / "core").glob("*.py"))
        assert core < sources
        assert {path.parent for path in sources - core} == {ROOT / "dlsim"}


# --- two speeds ---------------------------------------------------------------------------------

jit = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="NUMBA_DISABLE_JIT is set")


@jit
def test_a_core_is_imported_a_second_time_without_the_compiler():
    core, before = Core("dlsim.steady.core", work=10, seconds=3), dict(sys.modules)
    plain, fast = core.python, core.compiled
    assert sys.modules["dlsim.steady.core.greedy"] is fast.greedy
    assert {name for name in before if sys.modules.get(name) is not before[name]} == set()
    assert not hasattr(plain.greedy.allocate_greedily, "py_func")
    assert hasattr(fast.greedy.allocate_greedily, "py_func")
    assert vars(plain.greedy).keys() == vars(fast.greedy).keys()


def test_small_work_is_done_uncompiled_until_there_is_much(capsys):
    core = Core("dlsim.steady.core", work=10, seconds=3)

    def speed(engine, work):
        with core.at_speed(engine, work) as modules:
            return "python" if modules is core.python else "compiled"

    if numba.config.DISABLE_JIT:
        assert speed("compiled", 1) == "python"
        return
    assert [speed("auto", 6), speed("auto", 4)] == ["python", "python"]
    assert capsys.readouterr().err == ""
    assert speed("auto", 1) == "compiled"
    assert speed("auto", 1) == "compiled"
    assert speed("python", 1000) == "python"
    assert capsys.readouterr().err == ""


def test_an_engine_that_is_not_there_is_refused():
    with pytest.raises(InputError, match=r"engine must be .*auto.*got 'fast'"):
        Core("dlsim.steady.core", 1, 1).at_speed("fast", 1).__enter__()
