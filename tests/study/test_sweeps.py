"""Sweeps: the same bytes on every executor, nothing finished is lost, no result of other code."""

import ast
import itertools
import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numba import njit

from dlsim import cache as caches
from dlsim.errors import InputError, StudyError
from dlsim.realtime import execution_time
from dlsim.study import fingerprint as fingerprints
from dlsim.study import sweeps
from dlsim.study.fingerprint import (
    Used,
    digest_used,
    find_used,
    fingerprint,
    parts,
    parts_used,
    ship_by_value,
)
from dlsim.study.sweeps import sweep
from tests.helpers import sweep_functions as functions
from tests.helpers.children import alive

ROOT = Path(__file__).parents[2]
POINTS = {"load": [0.5, 1.0, 2.5], "policy": ["MCDF", "FIFO"]}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Give each test a cache of its own, and no jobs or progress from outside."""
    monkeypatch.setenv("DLSIM_CACHE", str(tmp_path / "cache"))
    for name in ("DLSIM_JOBS", "DLSIM_PROGRESS", "DLSIM_DASK"):
        monkeypatch.delenv(name, raising=False)
    yield tmp_path / "cache"
    for process in alive_elsewhere(tmp_path / "cache"):
        process.kill()


@pytest.fixture(scope="module", autouse=True)
def _pool():
    """Let the workers stay from one test to the next: each sweep sends them all they need."""
    yield
    sweeps.close_pool()


@pytest.fixture
def eager(monkeypatch):
    """Start worker processes after the first cell, however little there is to do."""
    monkeypatch.setattr(sweeps, "SECONDS_BEFORE_WORKERS", 0.0)


@pytest.fixture
def marks(tmp_path):
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder


def alive_elsewhere(cache):
    """Return the processes that work for this cache in a session other than this one."""
    found = []
    for process in alive(str(cache), "DLSIM_CACHE"):
        with suppress(ProcessLookupError):
            if os.getsid(process.pid) != os.getsid(0):
                found.append(process)
    return found


def files(cache):
    return sorted(cache.rglob("cells/*/*.txt"))


def contents(cache):
    return {path: path.stat().st_mtime_ns for path in files(cache)}


def text_of(frame):
    return frame.to_csv(index=False, lineterminator="\n")


# ------------------------------------------------------------------ what comes out


def test_rows_are_in_the_order_of_the_points_with_the_random_numbers_of_their_replicate():
    frame = sweep(functions.draw, POINTS, replicates=2, seed=7, jobs=1)
    places = itertools.product(POINTS["load"], POINTS["policy"], range(2))
    assert list(frame[["load", "policy", "replicate"]].itertuples(index=False)) == list(places)
    assert list(frame)[3:] == ["value", "third", "odd", "count", "name", "flag"]
    for row in frame.itertuples():
        stream = np.random.SeedSequence(7, spawn_key=(row.replicate,))
        assert row.value == row.load * np.random.default_rng(stream).standard_normal()


def test_values_read_back_to_the_last_bit():
    first = sweep(functions.draw, POINTS, replicates=5, jobs=1)
    pd.testing.assert_frame_equal(sweep(functions.draw, POINTS, replicates=5, jobs=1), first)
    assert set(first["name"]) == {"mcdf é\n\u2028", "fifo é\n\u2028"}


def test_a_cell_may_return_many_rows_or_none_or_uneven_ones():
    frame = sweep(functions.several, {"load": [2, 0, 1]}, replicates=1, jobs=1)
    assert frame["load"].tolist() == [2, 2, 1]
    frame = sweep(functions.uneven, {"load": [0, 1]}, replicates=1, jobs=1)
    assert list(frame) == ["load", "replicate", "c", "a", "b"]
    assert frame["b"].isna().tolist() == [True, True, False]


def test_one_and_two_jobs_and_any_executor_give_the_same_bytes(eager, cache, monkeypatch):
    found = {}
    for name, options in {"one": {"jobs": 1}, "two": {"jobs": 2}, "threads": {}}.items():
        monkeypatch.setenv("DLSIM_CACHE", str(cache.with_name(name)))
        with ThreadPoolExecutor(3) as threads:
            more = {"executor": threads} if name == "threads" else options
            found[name] = text_of(sweep(functions.draw, POINTS, replicates=4, **more))
    assert found["one"] == found["two"] == found["threads"]


# ------------------------------------------------------------------ functions of a notebook


def define(source, **names):
    """Define a function `f` as a cell of a notebook would."""
    space = {"__name__": "__main__", "np": np, **names}
    exec(source, space)
    return space["f"]


def test_a_function_of_a_notebook_runs_in_workers_with_its_helpers_and_packages(eager):
    """No worker has imported SimPy, or has workers of its own."""
    source = """
import os, simpy
from dlsim.study.sweeps import count_workers
nodes = 3
def helper(x):
    return nodes * simpy.Environment(x).now
def f(load, seed):
    return {"value": helper(load), "process": os.getpid(), "jobs": count_workers()}
"""
    frame = sweep(define(source), {"load": range(6)}, replicates=2, jobs=2)
    assert frame["value"][::2].tolist() == [0, 3, 6, 9, 12, 15]
    others = frame[frame["process"] != os.getpid()]
    assert 1 <= others["process"].nunique() <= 2
    assert set(others["jobs"]) == {1}


def test_a_changed_function_is_never_answered_from_the_cache():
    def run(factor):
        rule = define(f"k = {factor}\ndef f(x): return k * x")
        return sweep(functions.asked, {"load": [1, 2]}, 1, fixed={"rule": rule})["said"].tolist()

    assert [run(1), run(2), run(1)] == [[1, 2], [2, 4], [1, 2]]


DIFFERENT = [
    "def f(task, n, t, state): return task.due - t",
    "def f(task, n, t, state): return task.due + t",
    "def f(task, n, t, state): return task.sigma - t",
    "def f(task, n, t, state, k=2): return task.due - t",
    "def f(task, n, t, state, *, k=2): return task.due - t",
    "def g(x): return x\ndef f(task, n, t, state): return g(task.due - t)",
    "def g(x): return 2 * x\ndef f(task, n, t, state): return g(task.due - t)",
    "k = 1\ndef f(task, n, t, state): return k * t",
    "k = 2\ndef f(task, n, t, state): return k * t",
    "k = 1.0\ndef f(task, n, t, state): return k * t",
    "k = True\ndef f(task, n, t, state): return k * t",
    "k = {'a', 'b', 'c', 'd', 'e'}\ndef f(task, n, t, state): return k",
    "k = {'a', 'b', 'c', 'd', 'f'}\ndef f(task, n, t, state): return k",
    "k = frozenset({'a', 'b', 'c', 'd', 'e'})\ndef f(task, n, t, state): return 'a' in k",
    "k = np.array([1.0, 2.0])\ndef f(task, n, t, state): return k[0] * t",
    "k = np.array([1.0, 3.0])\ndef f(task, n, t, state): return k[0] * t",
    "def h(k):\n def f(task, n, t, state): return k * t\n return f\nf = h(1)",
    "def h(k):\n def f(task, n, t, state): return k * t\n return f\nf = h(2)",
    "class K:\n def a(self): return 1\ndef f(task, n, t, state): return K().a()",
    "class K:\n def a(self): return 2\ndef f(task, n, t, state): return K().a()",
    "def f(task, n, t, state): return f(task, n, t, state) if t < 0 else 1",
]


def test_functions_that_do_other_things_have_other_digests():
    known = [fingerprint(define(source))[0] for source in DIFFERENT]
    assert len(set(known)) == len(known)
    fast = fingerprint(njit(fastmath=True)(define(DIFFERENT[0])))[0]
    assert len({known[0], fingerprint(njit(define(DIFFERENT[0])))[0], fast}) == 3


def test_where_a_function_stands_and_comments_do_not_count():
    for source in DIFFERENT:
        moved = f"# a comment\n\n\nother = 5\n{source}"
        assert fingerprint(define(moved))[0] == fingerprint(define(source))[0], source


def digests():
    """Return the digests of the functions, and of what they run on."""
    known = [fingerprint(define(source)) for source in DIFFERENT]
    return [f"{digest} {digest_used(find_used(modules))}" for digest, modules in known]


#: Rooms from those that use few others to those that use many.
ROOMS = ("theory", "realtime", "bricks", "steady", "cpugpu", "study", "explore", "papers.mcdf")
IN_A_NEW_PROCESS = """
import importlib, sys
sys.path.insert(0, sys.argv[1])
before = set()
for room in sys.argv[2:]:
    importlib.import_module(f"dlsim.{room}")
    loaded = {name.split(".")[1] for name in sys.modules if name.startswith("dlsim.")}
    print(*loaded - before)
    before = loaded
from tests.study.test_sweeps import digests
print(*digests(), sep="\\n")
"""


@pytest.fixture(scope="module")
def said_by_a_new_process():
    """What each import loads of dlsim, then the digests, in a process of another hash seed."""
    seed = "77" if os.environ.get("PYTHONHASHSEED") != "77" else "0"
    command = [sys.executable, "-W", "ignore", "-c", IN_A_NEW_PROCESS, str(ROOT), *ROOMS]
    environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
    said = subprocess.check_output(command, env=environment, text=True).splitlines()
    return said[: len(ROOMS)], said[len(ROOMS) :]


def test_digests_are_the_same_in_every_process(said_by_a_new_process):
    """Orders of sets and identities of texts differ between processes with other hash seeds."""
    _, found = said_by_a_new_process
    assert found == digests()
    assert len(set(found)) == len(DIFFERENT)


def test_the_parts_that_a_part_uses_are_those_that_its_import_loads(said_by_a_new_process):
    """More may be used: some modules are imported when a function needs them."""
    loaded, _ = said_by_a_new_process
    for room, new in zip(ROOMS, loaded, strict=True):
        part = room.partition(".")[0]
        assert part in new.split(), room
        assert set(new.split()) <= parts_used([part]), room
    assert "cli" not in parts_used(parts().keys() - {"cli", "__main__"})


def test_a_file_of_the_user_counts_as_it_was_imported(tmp_path, monkeypatch, eager):
    """Workers run what this process has in memory, and a file that was imported anew counts."""
    place = tmp_path / "my_rules.py"
    place.write_text("factor = 1\ndef rule(x):\n    return factor * x\n")
    monkeypatch.syspath_prepend(tmp_path)

    def run(rule):
        loads = {"load": [1, 2, 3, 4]}
        return sweep(functions.asked, loads, 1, fixed={"rule": rule}, jobs=2)["said"].tolist()

    import my_rules

    place.write_text("factor = 10\ndef rule(x):\n    return factor * x\n")
    assert run(my_rules.rule) == [1, 2, 3, 4]
    monkeypatch.delitem(sys.modules, "my_rules")
    import my_rules as anew

    assert run(anew.rule) == [10, 20, 30, 40]
    assert run(my_rules.rule) == [1, 2, 3, 4]


def simple(seed):
    return {"name": execution_time.__name__}


def late(seed):
    from dlsim import bricks

    return {"name": bricks.__name__}


def measured(seed):
    import dlsim.papers.mcdf

    return {"name": dlsim.papers.mcdf.__name__}


def plain(seed):
    return {"a": 1}


def whole(seed):
    import dlsim

    return {"a": dlsim.__version__}


USERS = {function.__name__: function for function in (simple, late, measured, plain, whole)}
#: Which of these functions use a file of the package.
USED_BY = {
    "cli.py": "whole",
    "theory/algebra.py": "whole",
    "study/results.py": "measured whole",
    "papers/mcdf.py": "measured whole",
    "bricks/core/loop.py": "late measured whole",
    "realtime/core/formulas.py": "simple measured whole",
    "joblog/swf.py": "simple measured whole",
    "rounding.py": "simple late measured whole",
    "__init__.py": "whole",
}


@pytest.fixture
def edit(tmp_path, monkeypatch):
    """Add a comment to a file of a copy of the package, whose sources are digested from now on."""
    copy = tmp_path / "copy"
    shutil.copytree(ROOT / "dlsim", copy, ignore=shutil.ignore_patterns("__pycache__"))
    for module in (caches, fingerprints):
        monkeypatch.setattr(module, "PACKAGE_ROOT", copy)
    remembered = fingerprints._parts_imported.cache_clear, digest_used.cache_clear

    def forget():
        for clear in remembered:
            clear()

    def edited(name):
        with (copy / name).open("a") as stream:
            stream.write("\n# a comment\n")
        forget()

    forget()
    yield edited
    forget()


def test_only_sources_that_a_function_uses_count(edit):
    """An edit changes the digests of the functions that use the file, and of no other one."""
    ship_by_value()
    used = {name: find_used(fingerprint(function)[1]) for name, function in USERS.items()}
    for edited, users in USED_BY.items():
        before = {name: digest_used(known) for name, known in used.items()}
        edit(edited)
        after = {name: digest_used(known) for name, known in used.items()}
        assert [name for name in USERS if after[name] != before[name]] == users.split(), edited


def test_an_edit_of_an_engine_computes_the_cells_anew_and_one_of_the_command_line_does_not(
    edit, cache
):
    counts = []
    for edited in ("cli.py", "realtime/core/formulas.py"):
        sweep(simple, {}, 2, jobs=1)
        edit(edited)
        sweep(simple, {}, 2, jobs=1)
        counts.append(len(files(cache)))
    assert counts == [2, 4]


def test_every_import_of_a_source_is_found():
    """Those that its syntax tree has, wherever they stand; few others, of docstrings."""
    for source in (path for paths in parts().values() for path in paths):
        wanted = set()
        for node in ast.walk(ast.parse(source.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                wanted |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                wanted |= {f"{node.module}.{alias.name}" for alias in node.names}
        found = {name for name in fingerprints._names_imported(source) if name[-1] != "."}
        assert wanted <= found, source
        assert len(found - wanted) <= 3, source


def test_a_text_that_names_a_module_counts_as_an_import(tmp_path):
    """Also the beginning of a text that is made when it is needed."""
    source = tmp_path / "source.py"
    source.write_text(
        'import_module("dlsim.theory")\nname = f"dlsim.papers.{paper}"\n"dlsim.live"\n'
    )
    assert list(fingerprints._names_imported(source)) == ["dlsim.theory", "dlsim.papers."]


def test_what_cannot_be_sent_runs_here_and_is_not_kept(cache, capsys):
    run = define("def f(load, seed): return {'free': not lock.locked()}", lock=threading.Lock())
    frame = sweep(run, {"load": [1, 2]}, 1, jobs=2)
    assert frame["free"].tolist() == [True, True]
    assert "cannot be sent to workers" in capsys.readouterr().out
    assert not files(cache)


# ------------------------------------------------------------------ finished cells


def test_finished_cells_are_not_computed_again(marks, cache):
    fixed = {"marks": str(marks)}
    first = sweep(functions.marked, {"load": [1, 2]}, 3, jobs=1, fixed=fixed)
    before = contents(cache)
    assert len(before) == 6
    assert text_of(sweep(functions.marked, {"load": [1, 2]}, 3, fixed=fixed)) == text_of(first)
    sweep(functions.marked, {"load": [2, 3]}, 4, jobs=1, fixed=fixed)
    assert len(list(marks.iterdir())) == 6 + 1 + 4  # a fourth replicate, a third load
    assert before.items() <= contents(cache).items()


def test_another_seed_point_or_argument_is_another_cell(cache):
    options = {"replicates": 1, "jobs": 1}
    sweep(functions.echo, {"a": [1]}, **options)
    for point, more in [
        ({"a": [1.0]}, {}),
        ({"a": [True]}, {}),
        ({"a": ["1"]}, {}),
        ({"b": [1]}, {}),
        ({"a": [1]}, {"seed": 1}),
        ({"a": [1]}, {"fixed": {"b": 1}}),
    ]:
        before = len(files(cache))
        sweep(functions.echo, point, **options, **more)
        assert len(files(cache)) == before + 1


DAMAGES = {
    "empty": lambda text: "",
    "half": lambda text: text[: len(text) // 2],
    "without its end": lambda text: text[:-1],
    "another name": lambda text: text.replace("value", "valve"),
    "another number": lambda text: text.replace("[1.", "[2."),
    "zeros": lambda text: "\0" * len(text),
    "not ASCII": lambda text: "é" + text,
    "JSON of another kind": lambda text: "[]\n" * 2,
}


def test_a_damaged_file_is_computed_anew(marks, cache):
    options = {"fixed": {"marks": str(marks)}, "jobs": 1, "replicates": 3}
    first = sweep(functions.marked, {"load": [1]}, **options)
    victim = files(cache)[1]
    good = victim.read_bytes()
    for number, (name, damage) in enumerate(DAMAGES.items(), start=1):
        victim.write_text(damage(good.decode()), encoding="utf-8")
        assert text_of(sweep(functions.marked, {"load": [1]}, **options)) == text_of(first), name
        assert len(list(marks.iterdir())) == 3 + number, name
        assert victim.read_bytes() == good, name


def test_a_full_disk_is_an_error_and_leaves_no_file(cache, monkeypatch):
    def full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    remedy = r"No space left on device.; free some space on the disk and run again, or name"
    with pytest.raises(StudyError, match=remedy):
        sweep(functions.echo, {"load": [1]}, jobs=1)
    assert [path for path in cache.rglob("*") if path.is_file()] == []


# ------------------------------------------------------------------ deaths, interrupts, errors


def test_a_worker_that_dies_costs_nothing_but_its_cell(eager, tmp_path):
    points = {"load": range(45, 55)}
    fixed = {"flag": str(tmp_path / "died"), "wait": 0.01}
    frame = sweep(functions.deadly, points, 2, fixed=fixed, jobs=2)
    assert (tmp_path / "died").exists()
    assert frame["load"].tolist() == frame["value"].tolist()
    assert frame["draw"].nunique() == 2


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_names_its_cell_and_the_others_stay(jobs, eager, cache):
    with pytest.raises(StudyError) as caught:
        sweep(functions.fails, {"load": range(6)}, replicates=4, jobs=jobs)
    said = "fails failed at load=3, replicate 1: UntransportableError: 7 and 8"
    assert str(caught.value) == said
    before = contents(cache)
    assert before
    assert len(sweep(functions.fails, {"load": [0, 1, 2]}, replicates=4, jobs=1)) == 12
    assert before.items() <= contents(cache).items()


NO_TABLES = {
    "number": "must return a dict, a list of dicts or a DataFrame, got int",
    "list": r"column 'a' must hold numbers or text, got \[1\]",
    "time": "column 'a' must hold numbers or text, got datetime",
    "clash": r"columns \['load'\] that the points have too",
}


@pytest.mark.parametrize("what", NO_TABLES)
def test_results_that_are_no_table_are_refused(what):
    with pytest.raises(StudyError, match=NO_TABLES[what]):
        sweep(functions.wrong, {"load": [1]}, replicates=1, fixed={"what": what})


def test_workers_with_another_dlsim_are_refused():
    nothing = Used(frozenset(), frozenset())
    with pytest.raises(StudyError, match="restart the kernel, and the workers"):
        sweeps.call_in_worker(b"", b"", 0, 0, nothing, "another digest")


@pytest.mark.parametrize(
    ("points", "options", "message"),
    [
        ({"load": []}, {}, "no points"),
        (5, {}, "points must be a mapping of lists, or a list of mappings; got 5"),
        ([{"a": 1}, 2], {}, "point 1 must be a mapping such as a dict, got 2"),
        ({"a": [1]}, {"fixed": [1]}, r"fixed must be a mapping such as a dict, got \[1\]"),
        ({"policy": "MCDF"}, {}, r"points\['policy'\] must be a list of values, got 'MCDF'"),
        ([{"a": 1}, {"b": 1}], {}, r"point 1 has parameters \['b'\]"),
        ({"seed": [1]}, {}, "'seed' is reserved"),
        ({"replicate": [1]}, {}, "'replicate' is reserved"),
        ({"a": [1]}, {"fixed": {"a": 1}}, "both in points and fixed"),
        ({"a": [1]}, {"replicates": 0}, "replicates must be a whole number of at least 1, got 0"),
        ({"a": [1]}, {"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"a": [1]}, {"jobs": 1.5}, "jobs must be a whole number"),
    ],
)
def test_bad_input_is_refused(points, options, message):
    with pytest.raises(InputError, match=message):
        sweep(functions.echo, points, **options)


def test_jobs_come_from_the_argument_then_the_environment_then_the_machine(monkeypatch):
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert (sweeps.count_workers(), sweeps.count_workers(3)) == (cores, 3)
    monkeypatch.setenv("DLSIM_JOBS", "5")
    assert (sweeps.count_workers(), sweeps.count_workers(3)) == (5, 3)
    monkeypatch.setenv("DLSIM_JOBS", "two")
    with pytest.raises(InputError, match="DLSIM_JOBS must be a whole number"):
        sweeps.count_workers()


class Counting(ThreadPoolExecutor):
    """One worker; `kept` tells how many cells were kept when each was sent."""

    def __init__(self):
        super().__init__(1)
        self.kept = []

    def submit(self, function, /, *arguments):
        self.kept.append(len(files(Path(os.environ["DLSIM_CACHE"]))))
        return super().submit(function, *arguments)


class AllAtOnce(Executor):
    """So many workers that the first one answers when the last one has a cell."""

    def __init__(self, workers):
        self.workers, self.calls = workers, []

    def submit(self, function, /, *arguments):
        future = Future()
        self.calls.append((future, function, arguments))
        if len(self.calls) == self.workers:
            for each, function, arguments in self.calls:
                each.set_result(function(*arguments))
        return future


def test_results_are_kept_before_the_last_cells_are_sent(monkeypatch):
    monkeypatch.setattr(sweeps, "SECONDS_FOR_A_RESULT", 60.0)
    with Counting() as executor:
        sweep(functions.whose, {"load": range(100)}, 1, fixed={"wait": 0.01}, executor=executor)
    assert len(executor.kept) == 100
    assert all(sent - kept < 32 + kept / 4 for sent, kept in enumerate(executor.kept))


def test_any_number_of_workers_get_a_cell(monkeypatch):
    monkeypatch.setattr(sweeps, "SECONDS_FOR_A_RESULT", 0.01)
    frame = sweep(functions.draw, {"load": range(200)}, replicates=1, executor=AllAtOnce(200))
    assert len(frame) == 200
