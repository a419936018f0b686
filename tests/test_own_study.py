"""Policies and a workload of one's own; what a cache knows of a function.

That a notebook shows them on every figure is tested with its paper.
"""

import numpy as np
import pandas as pd
import pytest
from numba import njit

from dlsim.errors import InputError
from dlsim.realtime import Cluster
from dlsim.realtime.own import drawn_by, policies_of, workload_of
from dlsim.study.cells import doing
from dlsim.study.sweeps import sweep
from tests import sweep_functions as functions
from tests.executed import FILE


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Give every test an empty cache of cells."""
    monkeypatch.setenv("DLSIM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize(
    ("policies", "message"),
    [
        ("MCDF", "policies must be a list"),
        (["MCFD"], "did you mean MCDF"),
        (["nowhere.py:mine"], "policy 'nowhere.py:mine' must be module:name .*File"),
        ([f"{FILE}:nobody"], "KeyError: 'nobody'"),
        ([f"{FILE}:bursts"], "bursts.* must be a Policy, got <function bursts"),
        (["EDFMN", "EDFMN"], "must have a label of its own"),
        (["EDF-DLT=EDFANNA"], "cannot stand for EDF-DLT"),
    ],
)
def test_policies_that_cannot_be_run_are_refused(policies, message):
    with pytest.raises(InputError, match=message):
        policies_of(policies, ["EDF-DLT"])


@pytest.mark.parametrize("workload", ["math:pi", lambda cluster: None, dict])
def test_a_workload_that_is_no_such_function_is_refused(workload):
    with pytest.raises(InputError, match="workload must be a function"):
        workload_of(workload)


def failing(cluster, load, horizon, seed):
    return 1 / 0


def endless(cluster, load, horizon, seed):
    return pd.DataFrame({"arrival": [0.0], "sigma": np.inf, "deadline": 1.0})


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        (failing, "workload failing must return a table of tasks; got ZeroDivisionError"),
        (endless, "sigma of task 0 must be a finite number above 0, got inf"),
    ],
)
def test_what_a_workload_must_not_do_is_told(workload, message):
    with pytest.raises(InputError, match=message):
        drawn_by(workload, Cluster(), 0.5, 1e4, 1)


def made(source, **names):
    """Define a function `f` as a notebook's cell would."""
    space = {"__name__": "__main__", "np": np, **names}
    exec(source, space)
    return space["f"]


def test_a_function_is_known_by_what_it_does():
    base = "def f(task, n, t, state): return task.due - t"
    assert doing(made(base)) == doing(made(f"\n\n{base}"))  # where it stands does not count
    others = [
        "def f(task, n, t, state): return task.due + t",
        "def f(task, n, t, state): return task.sigma - t",
        "def f(task, n, t, state): return (lambda: task.due - t)()",
        "def f(task, n, t, state, k=1): return task.due - t",
        "def f(task, n, t, state, k=2): return task.due - t",
        "def g(x): return x\ndef f(task, n, t, state): return g(task.due - t)",
        "def g(x): return 2 * x\ndef f(task, n, t, state): return g(task.due - t)",
        "k = 1\ndef f(task, n, t, state): return k * t",
        "k = 2\ndef f(task, n, t, state): return k * t",
        "k = np.array([1.0, 2.0])\ndef f(task, n, t, state): return k[0] * t",
        "k = np.array([1.0, 3.0])\ndef f(task, n, t, state): return k[0] * t",
        "def h(k):\n def f(task, n, t, state): return k * t\n return f\nf = h(1)",
        "def h(k):\n def f(task, n, t, state): return k * t\n return f\nf = h(2)",
        "def f(task, n, t, state): return f(task, n, t, state) if t < 0 else 1",
    ]
    known = [doing(made(source)) for source in [base, *others]]
    assert len(set(known)) == len(known)
    fast = doing(njit(fastmath=True)(made(base)))
    assert len({known[0], doing(njit(made(base))), fast}) == 3
    with pytest.raises(LookupError):
        doing(made("k = object()\ndef f(task, n, t, state): return k"))


def test_a_changed_function_is_never_answered_from_the_cache(capsys):
    def run(factor):
        rule = made(f"k = {factor}\ndef f(x): return k * x")
        return sweep(functions.asked, {"load": [1, 2]}, 1, fixed={"rule": rule})["said"].tolist()

    assert [run(1), run(2), run(1)] == [[1, 2], [2, 4], [1, 2]]
    assert "cannot be imported from an installed module; the sweep runs serially\n" in (
        capsys.readouterr().out
    )


def test_a_module_that_changed_is_not_run_by_another_process(tmp_path, monkeypatch):
    place = tmp_path / "my_rules.py"
    place.write_text("def rule(x):\n    return x\n")
    monkeypatch.syspath_prepend(tmp_path)
    import my_rules

    place.write_text("def rule(x):\n    return 10 * x\n")
    frame = sweep(functions.asked, {"load": [1]}, 1, fixed={"rule": my_rules.rule}, jobs=1)
    assert frame["said"].tolist() == [1]  # what runs here is what was imported
    monkeypatch.delitem(__import__("sys").modules, "my_rules")
    import my_rules as anew

    frame = sweep(functions.asked, {"load": [1]}, 1, fixed={"rule": anew.rule}, jobs=1)
    assert frame["said"].tolist() == [10]
