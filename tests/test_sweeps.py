"""Sweeps: the same bytes on every executor, and nothing lost whatever dies.

The functions that are repeated live in `tests.sweep_functions`, where workers find them.
"""

import dataclasses
import json
import math
import os
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlsim.errors import InputError, StudyError
from dlsim.realtime import model
from dlsim.study import cells, sweeps, workers
from dlsim.study.sweeps import sweep
from tests import sweep_functions as functions
from tests.children import alive, spawn, until, words_of
from tests.scale import SCALE, deep

ROOT = Path(__file__).parent.parent
GRID = {"load": [0.5, 1.0, 2.5], "policy": ["MCDF", "FIFO"]}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Give each test a cache of its own, and no jobs or progress from outside."""
    monkeypatch.setenv("DLSIM_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("DLSIM_JOBS", raising=False)
    monkeypatch.delenv("DLSIM_PROGRESS", raising=False)
    yield tmp_path / "cache"
    for process in relatives(tmp_path / "cache"):
        process.kill()


@pytest.fixture(scope="module", autouse=True)
def _pool():
    """Let the workers stay from one test to the next: each sweep tells them all they need."""
    yield
    workers.close()


@pytest.fixture
def eager(monkeypatch):
    """Start worker processes however little there is to do."""
    monkeypatch.setattr(sweeps, "START_SECONDS", 0.0)
    monkeypatch.setattr(sweeps, "USE_SECONDS", 0.0)
    monkeypatch.setattr(sweeps, "BATCH_SECONDS", 0.0)


@pytest.fixture
def marks(tmp_path):
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder


def files(cache):
    return sorted(cache.rglob("cells/*/*.txt"))


def times(cache):
    return {path: path.stat().st_mtime_ns for path in files(cache)}


def csv(frame):
    return frame.to_csv(index=False, lineterminator="\n")


class Scrambled(ThreadPoolExecutor):
    """Threads that finish in another order than they were asked."""

    def submit(self, function, /, *args):
        return super().submit(self.later, random.random() / 100, function, *args)

    @staticmethod
    def later(delay, function, *args):
        time.sleep(delay)
        return function(*args)


# ------------------------------------------------------------------ what comes out


def test_result_is_tidy_in_grid_order_then_replicate():
    frame = sweep(functions.draw, GRID, replicates=3, jobs=1)
    assert list(frame.columns[:4]) == ["load", "policy", "replicate", "value"]
    expected = [(x, p, r) for x in GRID["load"] for p in GRID["policy"] for r in range(3)]
    keys = frame[["load", "policy", "replicate"]]
    assert list(keys.itertuples(index=False, name=None)) == expected


def test_values_are_what_the_function_returned_to_the_last_bit():
    for _fresh_then_cached in range(2):
        frame = sweep(functions.draw, GRID, replicates=8, jobs=1)
        for row in frame.itertuples():
            seed = np.random.SeedSequence(0, spawn_key=(row.replicate,))
            expected = functions.draw(row.load, row.policy, seed)
            found = {name: getattr(row, name) for name in expected}
            assert repr(found["odd"]) == repr(expected["odd"])
            assert found | {"odd": 0} == expected | {"odd": 0}
        assert frame["count"].dtype == np.int64
        assert frame["flag"].dtype == bool


@given(st.lists(st.floats() | st.integers() | st.text() | st.booleans() | st.none()))
def test_results_read_back_exactly(values):
    text = cells.encode([{"a": value} for value in values], set())
    assert "\n" not in text
    back = json.loads(text).get("a", [])
    assert [(type(value), repr(value)) for value in back] == [(type(v), repr(v)) for v in values]


def test_a_cell_may_return_many_rows_or_none_or_uneven_ones():
    frame = sweep(functions.several, {"load": [2, 0, 1]}, replicates=2)
    assert list(zip(frame.load, frame.replicate, frame.row, strict=True)) == [
        (2, 0, 0), (2, 0, 1), (2, 1, 0), (2, 1, 1), (1, 0, 0), (1, 1, 0),
    ]  # fmt: skip
    frame = sweep(functions.uneven, {"load": [0, 5]}, replicates=1)
    assert list(frame.columns) == ["load", "replicate", "c", "a", "b"]
    assert frame.a.tolist()[1:] == [5, 5]
    assert frame.isna().sum().to_dict() == {"load": 0, "replicate": 0, "c": 2, "a": 1, "b": 2}


def test_points_may_be_listed_and_there_may_be_only_one():
    points = [{"load": 2.0, "policy": "X"}, {"load": 0.5, "policy": "Y"}]
    assert sweep(functions.draw, points, replicates=1).policy.tolist() == ["X", "Y"]
    assert sweep(functions.echo, {}, replicates=2).point.tolist() == ["{}", "{}"]
    numpy = sweep(functions.echo, {"load": np.arange(1, 3) / 2}, replicates=1)
    assert numpy.point.tolist() == ["{'load': 0.5}", "{'load': 1.0}"]


def test_random_numbers_are_common_to_all_points():
    frame = sweep(functions.echo, GRID, replicates=3, seed=17, fixed={"other": 1})
    assert frame.key.tolist() == ["(0,)", "(1,)", "(2,)"] * 6
    assert set(frame.entropy) == {17}


def test_independent_parameters_have_random_numbers_of_their_own():
    def keys(grid):
        frame = sweep(functions.echo, grid, replicates=2, independent=["load"])
        return frame.groupby(["load", "policy"]).key.agg(tuple)

    table = keys(GRID)
    assert len(set(table)) == 3
    assert table[0.5, "MCDF"] == table[0.5, "FIFO"]
    other = keys({"load": [7.0, 2.5], "policy": ["MCDF"]})  # not by place in the grid
    assert other[2.5, "MCDF"] == table[2.5, "FIFO"]


# -------------------------------------------------------------- the same everywhere


def test_one_and_two_jobs_and_any_executor_give_the_same_bytes(eager, cache, monkeypatch):
    found = set()
    with ThreadPoolExecutor(3) as threads, Scrambled(4) as scrambled:
        context = get_context("spawn")
        with ProcessPoolExecutor(2, context) as processes:
            ways = [{"jobs": 1}, {"jobs": 2}, {"jobs": 2, "cache": False}]
            ways += [{"executor": e} for e in (threads, scrambled, processes)]
            ways += [{"executor": scrambled, "jobs": 2, "cache": False}]
            for number, way in enumerate(ways):
                monkeypatch.setenv("DLSIM_CACHE", str(cache / str(number)))
                first = csv(sweep(functions.draw, GRID, **way))
                found |= {first, csv(sweep(functions.draw, GRID, **way))}
                kept = sum(1 for _ in (cache / str(number)).rglob("*.txt"))
                assert kept == (0 if way.get("cache") is False else 60)
    assert len(found) == 1


def test_work_is_shared_by_workers_that_stay(eager):
    first = sweep(functions.whose, {"load": range(8)}, fixed={"wait": 0.02}, jobs=2)
    again = sweep(functions.whose, {"load": range(8)}, fixed={"wait": 0.021}, jobs=2)
    here = os.getpid()
    assert 1 < len(set(first.process) | set(again.process)) <= 3
    assert set(again.process) - {here} <= set(first.process) - {here} | {here}
    assert set(first.jobs[first.process != here]) == {1}  # no workers of workers


def test_small_sweeps_start_no_workers():
    workers.close()
    sweep(functions.draw, GRID, jobs=2)
    assert not workers.is_open()


@deep
def test_a_script_needs_no_guard(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "print('started')\n"
        "from dlsim.study import sweeps\n"
        "sweeps.START_SECONDS = sweeps.BATCH_SECONDS = 0\n"
        "from tests.sweep_functions import whose\n"
        "frame = sweeps.sweep(whose, {'load': range(4)}, fixed={'wait': 0.05}, jobs=2)\n"
        "print(frame.process.nunique() > 1, __file__, __spec__)\n"
    )
    result = subprocess.run(
        [sys.executable, script], cwd=ROOT, env=environment(), capture_output=True, text=True
    )
    assert result.stdout.split() == ["started", "True", str(script), "None"], result.stderr


# ----------------------------------------------------------------------- the cache


def test_finished_cells_are_not_computed_again(marks, cache):
    options = {"fixed": {"marks": str(marks)}, "jobs": 1}
    first = sweep(functions.marked, {"load": [1, 2]}, **options)
    assert (len(list(marks.iterdir())), len(files(cache))) == (20, 20)
    assert csv(sweep(functions.marked, {"load": [1, 2]}, **options)) == csv(first)
    assert len(list(marks.iterdir())) == 20
    sweep(functions.marked, {"load": [3, 2]}, replicates=11, **options)  # 10 of 22 are known
    assert len(list(marks.iterdir())) == 32
    sweep(functions.marked, {"load": [1]}, cache=False, **options)
    assert (len(list(marks.iterdir())), len(files(cache))) == (42, 32)


def test_another_seed_parameter_function_or_source_is_another_cell(cache, monkeypatch):
    def count(function=functions.echo, load=1, **options):
        sweep(function, {"load": [load]}, replicates=1, **options)
        return len(files(cache))

    assert [count(), count(), count(seed=1), count(load=2), count(load=1.0)] == [1, 1, 2, 3, 4]
    assert [count(fixed={"cms": 2}), count(load="1"), count(load=True)] == [5, 6, 7]
    assert count(fixed={"reading": model.Cluster()}) == 8
    assert count(fixed={"reading": model.Cluster(cps=99)}) == 9
    assert count(fixed={"reading": dataclasses.asdict(model.Cluster())}) == 10
    assert count(functions.uneven) == 11
    assert count(independent=["load"]) == 12
    monkeypatch.setattr(sweeps, "source_digest", lambda: "0123456789abcdef")
    assert [count(), count()] == [13, 13]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(VALUES, VALUES)
def test_names_of_cells_are_equal_exactly_where_parameters_are(one, other):
    assert (cells._line(one) == cells._line(other)) == (repr_of(one) == repr_of(other))


def repr_of(value):
    """Tell 1, 1.0 and True apart, but not the order of a dict."""
    if isinstance(value, dict):
        return "dict", sorted((repr(key), repr_of(item)) for key, item in value.items())
    return list(map(repr_of, value)) if isinstance(value, list) else repr(value)


def test_arrays_and_tables_are_named_by_their_contents():
    frame = pd.DataFrame({"arrival": [0.0, 1.0], "sigma": [2, 3], "who": ["a", "b"]})
    values = [frame, frame + frame, frame[["sigma", "arrival", "who"]], frame.set_index("who")]
    values += [frame.astype({"sigma": float}), frame.sigma, frame.sigma.to_numpy(), [2, 3]]
    values += [np.array([[2], [3]]), np.array([2.0, 3.0]), frame.who.to_numpy()]
    names = [json.dumps(cells.canonical(value)) for value in values]
    assert len(set(names)) == len(values)
    assert names == [json.dumps(cells.canonical(value)) for value in values]


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: text[:-1],
        lambda text: text.replace("value", "valve"),
        lambda text: text.replace("[1.", "[2."),
        lambda text: "\0" * len(text),
        lambda text: "é" + text,
        lambda text: "[]\n" * 3,
    ],
)
def test_a_damaged_file_is_computed_anew(damage, marks, cache):
    options = {"fixed": {"marks": str(marks)}, "jobs": 1, "replicates": 3}
    first = sweep(functions.marked, {"load": [1]}, **options)
    victim = files(cache)[1]
    good = victim.read_bytes()
    victim.write_text(damage(good.decode()), encoding="utf-8")
    assert csv(sweep(functions.marked, {"load": [1]}, **options)) == csv(first)
    assert len(list(marks.iterdir())) == 4
    assert victim.read_bytes() == good


def test_a_file_under_another_cells_name_is_refused(cache):
    first = sweep(functions.echo, {"load": [1]}, replicates=2)
    one, other = files(cache)
    other.write_bytes(one.read_bytes())
    assert csv(sweep(functions.echo, {"load": [1]}, replicates=2)) == csv(first)


def test_a_file_says_what_it_is(cache):
    sweep(functions.echo, {"load": [1]}, replicates=1, seed=5)
    identity, result, _checksum = files(cache)[0].read_text().splitlines()
    function, _digest, _fixed, _point, seed = json.loads(identity)
    assert function.startswith("tests.sweep_functions:echo@")
    assert seed == [5, 0]
    assert json.loads(result)["key"] == ["(0,)"]


def test_functions_without_a_name_run_here_and_uncached(cache, capsys):
    def local(load, seed):
        return {"process": os.getpid()}

    nameless = [local, lambda load, seed: local(load, seed), type("Notebook", (), {})]
    nameless[2].__module__ = "__main__"
    for function in nameless[:2]:
        frame = sweep(function, {"load": [1, 2]}, jobs=2)
        assert set(frame.process) == {os.getpid()}
        line = capsys.readouterr().out
        assert line.endswith("runs serially and uncached\n")
        assert line.count("\n") == 1
    assert not cache.exists()
    with ThreadPoolExecutor(1) as threads:  # as a parameter it is known by what it does
        sweep(functions.echo, {"load": [1]}, fixed={"order": local}, executor=threads)
    said = capsys.readouterr().out
    assert "local" in said
    assert said.endswith("runs serially\n")
    for thing in (*nameless, functions.draw.__call__, 3):
        with pytest.raises(LookupError, match="cannot be imported"):
            cells.qualified(thing)


# ------------------------------------------------------------------- deaths, errors


def environment():
    return {**os.environ, "PYTHONPATH": str(ROOT)}


SCRIPT = """
import sys
from dlsim.study import sweeps
from tests.sweep_functions import marked
sweeps.START_SECONDS = 0
grid, fixed = {"load": range(int(sys.argv[2]))}, {"marks": sys.argv[1], "wait": 0.02}
frame = sweeps.sweep(marked, grid, replicates=8, jobs=2, fixed=fixed)
sys.stdout.write(frame.to_csv(index=False, lineterminator="\\n"))
"""


def start(marks, loads):
    return spawn(
        [sys.executable, "-c", SCRIPT, str(marks), str(loads)],
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def resumed(marks, loads):
    """What the script asks for, asked by this process."""
    fixed = {"marks": str(marks), "wait": 0.02}
    return sweep(functions.marked, {"load": range(loads)}, replicates=8, fixed=fixed, jobs=2)


def relatives(cache):
    """Return the processes that work for this cache in a session other than this one."""
    return [p for p in alive(str(cache), "DLSIM_CACHE") if elsewhere(p.pid)]


def elsewhere(pid):
    with suppress(ProcessLookupError):
        return os.getsid(pid) != os.getsid(0)


def assert_all_gone(cache):
    until(lambda: not relatives(cache), within=10.0)


def wait_for(cache, least, process):
    while len(files(cache)) < least and process.poll() is None:
        time.sleep(0.01)


def test_kill_the_parent_at_random_moments_and_resume(eager, marks, cache):
    chance, kills = random.Random(time.time_ns()), max(1, round(3 * SCALE))
    grid, fixed = {"load": range(8 * kills)}, {"marks": str(marks)}
    expected = sweep(functions.marked, grid, replicates=8, fixed=fixed, cache=False)
    for mark in marks.iterdir():
        mark.unlink()
    kept = {}
    for _kill in range(kills):
        process = start(marks, 8 * kills)
        wait_for(cache, len(kept) + chance.randrange(60), process)
        time.sleep(chance.random() / 20)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        assert_all_gone(cache)
        assert kept.items() <= times(cache).items()
        kept = times(cache)
    assert csv(resumed(marks, 8 * kills)) == csv(expected)
    # What was finished has not been touched, and each kill cost what three processes held.
    assert kept.items() <= times(cache).items()
    assert 64 * kills <= len(list(marks.iterdir())) <= 67 * kills


def test_interrupt_keeps_what_is_done_and_says_so(eager, marks, cache):
    process = start(marks, 24)
    wait_for(cache, 30, process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: workers receive it too
    _output, errors = process.communicate(timeout=60)
    assert process.returncode in (-signal.SIGINT, 128 + signal.SIGINT)
    done = len(files(cache))
    assert 30 <= done < 192
    last = errors.strip().splitlines()[-1]
    assert last.startswith("KeyboardInterrupt: marked: ")
    assert last.endswith(" of 192 cells are done; a rerun resumes there")
    assert abs(int(last.split()[2]) - done) <= 2
    assert errors.count("Traceback") == 1, errors
    assert_all_gone(cache)
    assert len(resumed(marks, 24)) == 192
    assert len(list(marks.iterdir())) <= 195


@pytest.mark.parametrize("number", [1, 2])
def test_interrupt_while_workers_start_says_one_sentence(number, marks, cache):
    def started():  # and in the midst of their imports, which take many times as long as to look
        spawned = (p for p in relatives(cache) if any("spawn_main" in w for w in words_of(p)))
        return [p for p in spawned if any("numpy" in one.path for one in p.memory_maps())]

    process = start(marks, 40)
    until(lambda: len(started()) >= number, process)
    os.killpg(process.pid, signal.SIGINT)
    _output, errors = process.communicate(timeout=60)
    assert process.returncode in (-signal.SIGINT, 128 + signal.SIGINT)
    assert errors.strip().splitlines()[-1].startswith("KeyboardInterrupt: marked: "), errors
    assert errors.count("Traceback") == 1, errors
    assert_all_gone(cache)


def test_nothing_of_a_pool_is_left_for_the_end_of_python():
    """Else Python, at its exit, may write to a pipe that a thread of the pool just closed."""
    before = set(threading.enumerate())
    pool = workers.Pool(2)
    pool.submit(time.sleep, 100)
    begun = set(threading.enumerate()) - before
    pool.close()
    assert begun
    assert not any(thread.is_alive() for thread in begun)


@pytest.mark.parametrize("ours", [True, False])
def test_only_a_callers_executor_is_asked_to_cancel(ours, eager, monkeypatch):
    """A pool is ended instead; Python's thread of it fails on what was cancelled before."""

    class Stuck(Executor):
        def __init__(self):
            self.asked = []

        def submit(self, *call):
            self.asked.append(Future())
            if len(self.asked) == 1:
                self.asked[0].set_exception(ValueError("no"))
            return self.asked[-1]

    stuck = Stuck()
    monkeypatch.setattr(workers, "pool", lambda jobs: stuck)
    with pytest.raises(StudyError, match="ValueError: no"):
        sweep(functions.draw, GRID, jobs=2, executor=None if ours else stuck)
    assert len(stuck.asked) == 4
    assert [future.cancelled() for future in stuck.asked[1:]] == [not ours] * 3


@pytest.mark.parametrize("cached", [True, False])
def test_a_worker_that_dies_costs_nothing_but_its_cell(cached, eager, tmp_path):
    grid, options = {"load": range(40, 60)}, {"replicates": 2, "cache": cached}
    expected = sweep(functions.deadly, grid, fixed={"flag": ""}, jobs=1, replicates=2, cache=False)
    fixed = {"flag": str(tmp_path / "died"), "wait": 0.01}
    assert csv(sweep(functions.deadly, grid, fixed=fixed, jobs=2, **options)) == csv(expected)
    assert (tmp_path / "died").exists()


@deep
def test_workers_that_die_again_and_again_are_an_error(eager, cache):
    grid, fixed = {"load": range(40, 60)}, {"flag": "", "wait": 0.01}
    with pytest.raises(StudyError, match=r"died 3 times.* of 20 cells are done; a rerun resumes"):
        sweep(functions.deadly, grid, replicates=1, fixed=fixed, jobs=2)
    before = len(files(cache))
    assert before >= 8
    assert len(sweep(functions.deadly, grid, replicates=1, fixed=fixed, jobs=1)) == 20


def test_an_executor_that_breaks_is_the_callers(cache):
    with ProcessPoolExecutor(1, get_context("spawn")) as processes:
        grid = {"load": range(48, 53)}
        with pytest.raises(StudyError, match=r"the executor gave up .* of 5 cells are done"):
            sweep(functions.deadly, grid, fixed={"flag": ""}, replicates=1, executor=processes)


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_names_its_cell_and_the_others_stay(jobs, eager, cache):
    with pytest.raises(StudyError) as caught:
        sweep(functions.fails, {"load": range(6)}, replicates=4, jobs=jobs)
    text = "fails failed at load=3, replicate 1: "
    assert str(caught.value).startswith(text)
    assert "UntransportableError: 7 and 8" in str(caught.value)
    assert caught.value.__cause__ is not None
    before = times(cache)
    assert len(before) >= (13 if jobs == 1 else 2)
    assert len(sweep(functions.fails, {"load": [0, 1, 2]}, replicates=4, jobs=1)) == 12
    assert before.items() <= times(cache).items()


def test_an_error_on_an_executor_keeps_what_came_back(cache):
    with ThreadPoolExecutor(1) as threads, pytest.raises(StudyError) as caught:
        sweep(functions.fails, {"load": range(6)}, replicates=4, executor=threads, jobs=1)
    assert isinstance(caught.value.__cause__, StudyError)
    assert isinstance(caught.value.__cause__.__cause__, functions.UntransportableError)
    assert len(files(cache)) >= 8


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("number", "must return a dict, a list of dicts or a DataFrame, got int"),
        ("text", "got str"),
        ("list", r"column 'a' must hold numbers or text, got \[1\]"),
        ("time", "column 'a' must hold numbers or text, got datetime"),
        ("clash", r"columns \['load'\] that the grid has too"),
    ],
)
def test_results_that_are_no_table_are_refused(what, message):
    with pytest.raises(StudyError, match=message):
        sweep(functions.wrong, {"load": [1]}, replicates=1, fixed={"what": what})


def test_a_cache_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("DLSIM_CACHE", str(tmp_path / "file"))
    with pytest.raises(InputError, match=r"cache folder .*file.*Not a directory.*DLSIM_CACHE"):
        sweep(functions.echo, {"load": [1]})
    assert len(sweep(functions.echo, {"load": [1]}, cache=False)) == 10


def test_a_full_disk_leaves_no_file(cache, monkeypatch):
    def full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(StudyError, match="No space left on device"):
        sweep(functions.echo, {"load": [1]})
    assert [path for path in cache.rglob("*") if path.is_file()] == []


def test_other_sources_in_a_worker_are_refused(monkeypatch):
    job = sweeps.Job(functions.echo, {}, 0, "another digest", None)
    with pytest.raises(StudyError, match="dlsim differs between the processes"):
        sweeps.work(job, cells.cells([{}], 1, 0), 1.0)


# --------------------------------------------------------------- progress, settings


def test_progress_is_told_in_a_file(tmp_path, monkeypatch):
    seen = []

    class Watched(Executor):
        def submit(self, function, /, *args):
            seen.append(json.loads(note.read_text()))
            with ThreadPoolExecutor(1) as one:
                return one.submit(function, *args)

    note = tmp_path / "progress.json"
    monkeypatch.setenv("DLSIM_PROGRESS", str(note))
    sweep(functions.echo, {"load": [1]}, replicates=3)
    monkeypatch.setattr(sweeps, "BATCH_SECONDS", 0.0)
    sweep(functions.whose, {"load": range(4)}, fixed={"wait": 0.1}, replicates=2, cache=False,
          executor=Watched(), jobs=1, label="Figure 4")  # fmt: skip
    assert seen[0] == {"label": "Figure 4", "done": 0, "total": 8}
    assert 0 < seen[-1]["done"] < 8
    assert json.loads(note.read_text()) == {"label": "Figure 4", "done": 8, "total": 8}
    sweep(functions.echo, {"load": [1]}, replicates=3)
    assert json.loads(note.read_text()) == {"label": "echo", "done": 3, "total": 3}
    monkeypatch.setenv("DLSIM_PROGRESS", str(tmp_path))  # a folder: the sweep goes on
    assert len(sweep(functions.echo, {"load": [1]}, replicates=4)) == 4


def test_the_bar_is_silent_where_nobody_looks(capsys):
    sweep(functions.whose, {"load": [1]}, fixed={"wait": 0.06}, jobs=1)
    assert capsys.readouterr() == ("", "")


def test_jobs_come_from_the_argument_then_the_environment_then_the_machine(monkeypatch):
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert (workers.count(), workers.count(3)) == (cores, 3)
    monkeypatch.setenv("DLSIM_JOBS", "5")
    assert (workers.count(), workers.count(3)) == (5, 3)
    for text in ("-1", "two", "1.5"):
        monkeypatch.setenv("DLSIM_JOBS", text)
        with pytest.raises(InputError, match="DLSIM_JOBS must be a whole number"):
            workers.count()


@pytest.mark.parametrize(
    ("grid", "options", "message"),
    [
        ({"load": []}, {}, "no points"),
        ([], {}, "no points"),
        (5, {}, "grid must be a mapping of lists, or a list of points; got 5"),
        ("ab", {}, "grid must be a mapping of lists, or a list of points; got 'ab'"),
        ([{"a": 1}, 2], {}, "point 1 of the grid must be a mapping such as a dict, got 2"),
        ({"a": [1]}, {"fixed": [1]}, r"fixed must be a mapping such as a dict, got \[1\]"),
        ({"policy": "MCDF"}, {}, r"grid\['policy'\] must be a list of values, got 'MCDF'"),
        ({"load": 0.5}, {}, r"write \[value\]"),
        ([{"a": 1}, {"b": 1}], {}, r"point 1 of the grid has parameters \['b'\]"),
        ({"seed": [1]}, {}, "'seed' is reserved"),
        ({"replicate": [1]}, {}, "'replicate' is reserved"),
        ({"a": [1]}, {"fixed": {"a": 1}}, "both in grid and fixed"),
        ({"a": [1]}, {"fixed": {"seed": 1}}, "'seed' is reserved"),
        ({"a": [1]}, {"independent": ["load"]}, r"independent names \['load'\]"),
        ({"a": [object]}, {"independent": ["a"]}, "independent: .* describe it by"),
        ({"a": [1]}, {"replicates": 0}, "replicates must be a whole number of at least 1, got 0"),
        ({"a": [1]}, {"replicates": 2.5}, "replicates must be a whole number"),
        ({"a": [1]}, {"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"a": [1]}, {"jobs": -2}, "jobs must be a whole number, 0 for all cores, got -2"),
        ({"a": [1]}, {"jobs": 1.5}, "jobs must be a whole number"),
    ],
)
def test_bad_input_is_refused(grid, options, message):
    with pytest.raises(InputError, match=message):
        sweep(functions.echo, grid, **options)


def test_overhead_per_cell(capsys):
    count, times = 1000, []
    for options in ({"cache": False}, {}, {}):
        begun = time.perf_counter()
        sweep(functions.echo, {"load": range(count // 10)}, jobs=1, **options)
        times.append((time.perf_counter() - begun) / count * 1e6)
    with capsys.disabled():
        print("\nper cell: {:.0f} us uncached, {:.0f} us written, {:.0f} us read".format(*times))
    assert all(math.isfinite(value) for value in times)
