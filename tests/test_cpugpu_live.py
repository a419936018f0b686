"""The live run: kernels agree on every device, decisions can be computed again, losses heal.

No wall time is compared; what runs where is up to the machine, and is audited instead.
"""

import ctypes
import json
import math
import os
import shutil
import subprocess
import sys
import types

import numpy as np
import pandas as pd
import pytest

from dlsim.cli import main
from dlsim.cpugpu import Decision, History, Policy, Reading, Store
from dlsim.cpugpu.live import (
    KERNELS,
    Dask,
    LiveJob,
    Log,
    Slot,
    Threads,
    calibrate,
    devices,
    kernel_named,
    run_live,
    slots,
)
from dlsim.cpugpu.live.devices import execute
from dlsim.cpugpu.live.kernels import agree, signature
from dlsim.cpugpu.live.log import Asked, LogFile
from dlsim.cpugpu.live.sizes import Sizes
from dlsim.errors import InputError
from tests import live_kernels as own

NAMES = list(KERNELS)
#: Two devices that compile nothing.
PLAIN = (Slot("gpu0", "numpy", "NumPy as a GPU"), Slot("cpu0", "numpy", "NumPy"))
TWO = [slot.name for slot in PLAIN]


@pytest.fixture(autouse=True)
def _marks(tmp_path, monkeypatch):
    monkeypatch.setenv(own.MARKS, str(tmp_path))


# --- kernels and their versions -------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiny():
    """The tiny problem of each kernel with its NumPy result."""
    problems = {name: KERNELS[name].problem(KERNELS[name].tiny, seed=3) for name in NAMES}
    return {
        name: (p, np.asarray(KERNELS[name].vectorised(p), np.float32))
        for name, p in problems.items()
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_version_of_one_element_is_the_vectorised_one(name, tiny):
    p, expected = tiny[name]
    element = KERNELS[name].element
    found = [element(i, p.a, p.b, p.x, p.y) for i in range(p.n)]
    assert len(found) == len(expected) == p.n
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_results_by_other_means(tiny):
    p, words = tiny["word-count"]
    assert words.sum() == len(bytes(p.a).split())
    p, product = tiny["matmul"]
    a, b = (x.reshape(8, 8).astype(float) for x in (p.a, p.b))
    assert product.tolist() == pytest.approx(
        np.einsum("ik,kj->ij", a, b).ravel().tolist(), rel=1e-5
    )
    p, steps = tiny["mandelbrot"]
    for i in range(p.n):
        c, z, count = complex(3 * (i % 16) / 16 - 2, 3 * (i // 16) / 16 - 1.5), 0j, 0
        while count < 100 and abs(z) <= 2:
            z, count = z * z + c, count + 1
        assert steps[i] == count
    p, price = tiny["black-scholes"]
    p2 = p._replace(x=0.0)  # put-call parity without interest, by symmetry: C(S,K)-C(K,S)=S-K
    other = KERNELS["black-scholes"].vectorised(p2._replace(a=p.b, b=p.a))
    np.testing.assert_allclose(
        KERNELS["black-scholes"].vectorised(p2) - other, p.a - p.b, rtol=1e-3, atol=1e-3
    )
    assert (price > 0).all()
    p, value = tiny["saxpy"]  # y = x y + a has the fixed point a / (1 - x)
    np.testing.assert_allclose(value, p.a / 0.5, rtol=1e-5)


@pytest.mark.parametrize("backend", ["numba", "threads"])
def test_the_compiled_version_agrees(backend, tiny):
    p, expected = tiny["n-body"]
    run = execute(KERNELS["n-body"], p, Slot("gpu0", backend, ""))
    np.testing.assert_allclose(run.result, expected, rtol=1e-4)
    assert run.seconds > run.transfer == 0.0
    assert devices.describe(backend).startswith("numba on ")


SHIM = """
#include <math.h>
#define __kernel
#define __global
#define uchar unsigned char
#define log logf
#define exp expf
#define erf erff
#define sqrt sqrtf
static int here;
static int get_global_id(int d) { return here; }
"""
GRID = """
void grid(int n, float *out, const void *a, const void *b, float x, float y) {
    for (here = 0; here < n + 3; here++) run(n, out, a, b, x, y, 0);
}
"""


@pytest.mark.parametrize("name", NAMES if shutil.which("gcc") else [])
def test_the_opencl_source_compiled_as_c_agrees(name, tiny, tmp_path):
    p, expected = tiny[name]
    code, library = tmp_path / "k.c", tmp_path / "k.so"
    code.write_text(SHIM + devices.opencl_source(KERNELS[name], p) + GRID)
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", library, code, "-lm"], check=True)
    out = np.full(p.n + 3, -1, np.float32)
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in (out, p.a, p.b)]
    grid = ctypes.CDLL(str(library)).grid
    grid(ctypes.c_int(p.n), *pointers, ctypes.c_float(p.x), ctypes.c_float(p.y))
    np.testing.assert_allclose(out[:-3], expected, rtol=1e-3, atol=1e-4)
    assert (out[-3:] == -1).all()  # work items beyond the end write nothing


def refusal(backend):
    """Why a back end cannot run here; None where it can."""
    try:
        devices.describe(backend)
    except InputError as error:
        return str(error)
    return None


def test_opencl_runs_here_or_says_why_not(tiny):
    if (why := refusal("opencl")) is not None:
        assert "pip install 'dlsim[opencl]'" in why or "cannot build kernels" in why
        return
    assert devices.describe("opencl").startswith("OpenCL on ")
    for name, (p, expected) in tiny.items():
        run = execute(KERNELS[name], p, Slot("gpu0", "opencl", ""))
        np.testing.assert_allclose(run.result, expected, rtol=1e-3, atol=1e-4)
        assert 0 < run.transfer < run.seconds


class FakeOpenCL(types.ModuleType):
    """pyopencl as far as it is asked before a kernel runs."""

    Error = type("Error", (Exception,), {})
    device_type = types.SimpleNamespace(GPU=4)
    command_queue_properties = types.SimpleNamespace(PROFILING_ENABLE=2)

    def __init__(self, platforms, build=None):
        super().__init__("pyopencl")
        self.platforms, self.failure = platforms, build

    def get_platforms(self):
        if self.platforms is None:
            raise self.Error("clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR")
        return self.platforms

    def Context(self, devices):
        return devices[0]

    def CommandQueue(self, context, properties):
        return types.SimpleNamespace(context=context)

    def Program(self, context, source):
        def build():
            if self.failure:
                raise self.Error(self.failure)

        return types.SimpleNamespace(build=build)


def platform(*kinds):
    found = [
        types.SimpleNamespace(name=f"d{k}", type=k, platform=types.SimpleNamespace(name="P"))
        for k in kinds
    ]
    return types.SimpleNamespace(get_devices=lambda: found)


@pytest.mark.parametrize(
    ("module", "match"),
    [
        (None, "extra opencl"),
        (FakeOpenCL(None), "no OpenCL platform .*PLATFORM_NOT_FOUND"),
        (FakeOpenCL([platform()]), "no device"),
        (FakeOpenCL([platform(2)], "BUILD\nerror: unknown target CPU 'generic'\n"),
         "'d2' cannot build kernels .error: unknown target CPU 'generic'.*--gpu threads"),
    ],
)  # fmt: skip
def test_an_opencl_that_cannot_run_is_refused(monkeypatch, module, match):
    monkeypatch.setitem(sys.modules, "pyopencl", module)
    devices._opencl_queue.cache_clear()
    with pytest.raises(InputError, match=match):
        slots(gpu="opencl")
    devices._opencl_queue.cache_clear()


def test_an_opencl_gpu_comes_first(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyopencl", FakeOpenCL([platform(2), platform(2, 4)]))
    devices._opencl_queue.cache_clear()
    assert slots(gpu="opencl")[0].note == "OpenCL on d4 (P)"
    devices._opencl_queue.cache_clear()


CUDA = """
import numpy as np
from dlsim.cpugpu.live import KERNELS, Slot, devices
for kernel in KERNELS.values():
    p = kernel.problem(min(kernel.tiny, 8), seed=3)
    run = devices.execute(kernel, p, Slot("gpu0", "cuda", ""))
    np.testing.assert_allclose(run.result, kernel.vectorised(p), rtol=1e-3, atol=1e-4)
    assert 0 < run.transfer < run.seconds
print(devices.describe("cuda"))
"""


def test_cuda_versions_agree_on_the_device_or_in_the_simulator():
    why = refusal("cuda")
    assert why is None or "CUDA cannot be used here" in why
    extra = {} if why is None else {"NUMBA_ENABLE_CUDASIM": "1"}
    command = [sys.executable, "-W", "ignore", "-c", CUDA]
    done = subprocess.run(command, env={**os.environ, **extra}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("CUDA on ")


def test_unknown_names_and_sizes_are_refused():
    with pytest.raises(InputError, match=r"one of mandelbrot, saxpy, .*, word-count; got 'fft'"):
        kernel_named("fft")
    with pytest.raises(InputError, match="one of numpy, numba, threads, opencl, cuda; got 'tpu'"):
        slots(gpu="tpu")
    for size in (0, -1, 2**29, 1.5):
        with pytest.raises(InputError, match="size of saxpy must be a whole number"):
            KERNELS["saxpy"].problem(size)


def test_signatures_bear_rounding_and_nothing_more():
    result = np.linspace(1, 5, 100, dtype=np.float32)
    one = signature(result)
    assert len(one) == 16
    assert agree(one, signature(result * np.float32(1 + 1e-5)))
    assert not agree(one, signature(result * 1.01))
    assert not agree(one, one[:-1])
    assert not agree(one, [math.nan, *one[1:]])
    assert not agree(one, [*one[:8], one[8] + 0.02, *one[9:]])
    assert signature(np.array([2.0])) == [2.0]


# --- a live run -----------------------------------------------------------------------------------


def live(kernels, policy="history", store=None, history=None, size=64, **options):
    jobs = [LiveJob(kernel, size) for kernel in kernels]
    with Threads(TWO) as crew:
        return run_live(jobs, crew, PLAIN, policy, store=store, history=history, **options)


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "h.sqlite") as store:
        yield store


def whole(run):
    """Every job ran once, where it was sent, one at a time, and every decision recomputes."""
    jobs = run.jobs
    assert (jobs["error"] == "").all()
    assert jobs["agrees"].all()
    assert (jobs["seconds"] > 0).all()
    assert (jobs["arrival"] <= jobs["decided"]).all()
    assert (jobs["decided"] <= jobs["start"]).all()
    assert (jobs["start"] < jobs["end"]).all()
    for _, mine in jobs.sort_values("start").groupby("device"):
        assert (mine["start"].to_numpy()[1:] >= mine["end"].to_numpy()[:-1]).all()
        assert mine["turn"].is_monotonic_increasing
    assert run.log.audit() == []


def test_the_policy_that_is_simulated_schedules_real_kernels(store):
    run = live([own.DOUBLE, own.TREBLE] * 6, store=store)
    whole(run)
    assert run.jobs["rule"][0] == "R2*"
    assert run.jobs["rule"].isin(["R2", "R2*"]).sum() <= 4
    assert run.log.decisions == 12
    kept = store.table()
    assert len(kept) == 12
    assert sorted(kept["seconds"]) == sorted(run.jobs["seconds"])
    pd.testing.assert_frame_equal(store.history().table(), run.history.table(), check_exact=False)
    assert run.makespan >= run.jobs["seconds"].max()


def test_a_second_run_goes_on_where_the_first_stopped(store):
    live([own.DOUBLE] * 4, store=store)
    with Threads(TWO) as crew:
        known = store.history(crew.host, {"gpu": "numpy", "cpu": "numpy"})
        other = store.history(crew.host, {"gpu": "cuda", "cpu": "numpy"})
    assert known.record("double[64]", "gpu").count >= 1
    assert other.record("double[64]", "gpu").count == 0
    again = live([own.DOUBLE] * 3, store=store)
    tried = {cls: known.record("double[64]", cls).assigned for cls in ("gpu", "cpu")}
    explored = again.jobs["rule"].isin(["R2", "R2*"]).sum()
    assert explored == sum(count == 0 for count in tried.values())


def test_other_policies_need_a_calibration_first(store):
    with pytest.raises(InputError, match=r"needs declared times, and double\[64\] .* calibrate"):
        live([own.DOUBLE], "mct", store)
    with Threads(TWO) as crew:
        table = calibrate([own.DOUBLE], crew, PLAIN, repeats=2, store=store)
    assert table["agrees"].all()
    assert (table["seconds"] > 0).all()
    assert len(store.table()) == 4
    for policy in ("mct", "preferred", "rsc", "asjf", "round-robin"):
        whole(live([own.DOUBLE] * 4, policy, store))
    with pytest.raises(InputError, match="simulate only"):
        live([own.DOUBLE], "ideal", store)


def test_jobs_arrive_while_others_run():
    jobs = [LiveJob(own.DOUBLE, 64, arrival) for arrival in (0.0, 0.02, 0.02, 0.05)]
    with Threads(TWO) as crew:
        run = run_live(jobs, crew, PLAIN, history=History())
        with pytest.raises(InputError, match="sorted by arrival"):
            run_live(jobs[::-1], crew, PLAIN)
        for never in (math.nan, math.inf, -1.0, "x"):  # it was waited for, for ever
            with pytest.raises(InputError, match=r"arrival\[0\] must be a finite number"):
                run_live([LiveJob(own.DOUBLE, 64, never)], crew, PLAIN)
        with pytest.raises(InputError, match="gpu0, cpu0 in this order"):
            run_live(jobs, crew, PLAIN[::-1])
    whole(run)


def test_a_lost_job_is_run_again_and_its_time_is_not_recorded(store):
    run = live([own.LOST_ONCE] * 4, store=store)
    whole(run)
    assert sorted(run.jobs["losses"]) == [0, 0, 0, 1]
    kept = store.table()
    assert sorted(kept["outcome"]) == ["done"] * 4 + ["lost"]
    assert kept[kept["outcome"] == "lost"]["seconds"].isna().all()
    assert run.history.table()["count"].sum() == 4
    assert run.history.table()["assigned"].sum() == 4  # rule 2 may try that class again
    pd.testing.assert_frame_equal(store.history().table(), run.history.table())
    assert run.log.decisions == 5


def test_a_job_that_kills_every_worker_is_given_up(store):
    run = live([own.ALWAYS_LOST, own.DOUBLE], store=store)
    assert run.jobs["losses"].tolist() == [3, 0]
    assert run.jobs["error"].tolist() == ["its worker died 3 times", ""]
    assert run.log.audit() == []
    assert (store.table()["outcome"] == "lost").sum() == 3


def test_a_kernel_that_fails_is_tried_on_the_other_device_and_noted(store):
    unlike = (Slot("gpu0", "numpy", ""), Slot("cpu0", "numba", ""))
    with Threads(TWO) as crew:
        jobs = [LiveJob(own.FAILS, 64)] * 3
        run = run_live(jobs, crew, unlike, store=store)
    whole(run)
    assert set(run.jobs["device"]) == {"cpu0"}
    failed = store.table()[store.table()["outcome"] == "failed"]
    assert set(failed["device"]) == {"numpy"}
    assert failed["note"].str.contains("no such number").all()
    assert store.history().record("fails[64]", "gpu").count == 0
    nowhere = live([own.FAILS], store=store)
    assert nowhere.jobs["error"].tolist() == ["ArithmeticError: no such number"]
    with Threads(TWO) as crew:
        table = calibrate([own.FAILS], crew, unlike, store=store)
    assert table["error"].tolist() == ["ArithmeticError: no such number", ""]
    assert table["seconds"].isna().tolist() == [True, False]


def test_a_result_that_differs_is_seen():
    run = live([own.WRONG_ONCE] * 3)
    assert not run.jobs["agrees"].all()


def test_a_policy_that_lets_a_job_wait_for_ever_is_refused():
    with pytest.raises(InputError, match=r"leaves double\[64\] waiting for ever"):
        live([own.DOUBLE], Policy(lambda state, policy, reading: None))


# --- the log --------------------------------------------------------------------------------------


@pytest.fixture
def log(tmp_path):
    reading, path = Reading(deviations=1.0), tmp_path / "log.sqlite"
    return live([own.DOUBLE, own.TREBLE] * 3, reading=reading, log=path).log


def test_a_log_is_read_back_and_computed_again(log, tmp_path):
    again = Log.read(tmp_path / "log.sqlite")
    assert again == log
    assert again.audit() == []
    assert again.reading.deviations == 1
    pd.testing.assert_frame_equal(again.table(), log.table())
    texts = list(again.explain())
    assert len(texts) == 6
    assert "job 0 double[64] -> gpu0 (R2*: never assigned to this class" in texts[0]
    assert "cpu0: free, 0 waiting, not measured" in texts[0]


def test_a_changed_decision_or_input_is_found(log):
    first = next(place for place, (kind, _) in enumerate(log.rows) if kind == "decision")
    for name, value in (("decision", [0, 1, "R2*", []]), ("main", [[1, 1]])):
        rows = list(log.rows)
        rows[first] = ("decision", {**rows[first][1], name: value})
        other = Log(log.machine, log.name, log.policy, log.reading, log.devices, rows)
        (old, new), *rest = other.audit()
        assert not rest
        assert old != new


def test_a_decision_holds_what_its_rule_used_and_no_more(tmp_path):
    """A long history and a long queue do not make a longer row."""
    long, short = History(), History()
    for k in range(300):
        long.add(f"other{k}[1]", "gpu", 1.0 + k)
        long.add(f"other{k}[1]", "cpu", 1.0 + k)
    for history in (long, short):
        for cls in ("gpu", "cpu"):
            history.add("double[64]", cls, 1e-4)
    lengths = []
    for history in (long, short):
        run = live([own.DOUBLE] * 20, history=history)
        assert run.log.audit() == []
        lengths.append([len(str(row)) for kind, row in run.log.rows if kind == "decision"])
    assert max(map(max, lengths)) < 600


def test_numbers_beyond_json_go_through_it(tmp_path):
    from dlsim.cpugpu import Item, Machine, State
    from dlsim.cpugpu.model import POLICIES

    state, item = State.of(Machine(), History()), Item(0, "A", {"gpu": math.nan, "cpu": 1.0})
    state.main.append(item)
    with LogFile(tmp_path / "l") as file:
        log = Log(Machine(), "mct", POLICIES["mct"], Reading(), {}, file=file)
        log.begin([(item, 0.0)])
        log.write(
            state,
            Decision(0, 1, "mct", (math.inf, 1.0)),
            Asked(Sizes(History()), state, log.policy, Reading()),
        )
        log.add([])
    (entry,) = Log.read(tmp_path / "l").entries()
    assert entry.decision.finishes == (math.inf, 1.0)
    assert math.isnan(entry.state.main[0].declared["gpu"])


def test_what_a_log_cannot_hold(tmp_path):
    with pytest.raises(InputError, match="no such log of a live run; first: dlsim live run"):
        Log.read(tmp_path / "none")
    first = Policy(lambda s, p, r: Decision(s.main[0].job, 0, "first") if s.main else None)
    run = live([own.DOUBLE], first)
    assert run.log.audit() == []
    with pytest.raises(InputError, match="function cannot be written"):
        live([own.DOUBLE], first, log=tmp_path / "l")


def test_a_job_never_ends_twice(log):
    with pytest.raises(InputError, match="job 0 ended before"):
        log.end(0, 99.0, "done", seconds=1.0, transfer=0.0, agrees=True)


# --- Dask -----------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")  # what Dask itself warns of is not ours to mend
def test_a_killed_dask_worker_comes_back_and_its_job_is_run_again(store):
    pytest.importorskip("distributed")
    kernels = [own.DOUBLE, own.KILLED_ONCE, own.DOUBLE, own.KILLED_ONCE, own.DOUBLE]
    with Dask(TWO) as crew:
        run = run_live([LiveJob(k, 64) for k in kernels], crew, PLAIN, store=store)
    whole(run)
    assert run.jobs["losses"].sum() == 1
    assert run.jobs.groupby("app")["losses"].sum()["killed-once[64]"] == 1
    kept = store.table()
    assert sorted(kept["outcome"]) == ["done"] * 5 + ["lost"]
    assert set(kept[kept["outcome"] == "lost"]["app"]) == {"killed-once"}


def test_a_crew_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"extra cluster.*--crew threads"):
        Dask(TWO)


# --- the command ----------------------------------------------------------------------------------


def test_the_command_calibrates_runs_and_explains(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    machine = ["--gpu", "numpy", "--factor", "0.01", "--kernels", "saxpy,word-count"]
    assert main(["live", "calibrate", *machine, "--repeats", "1", "--csv", "a.csv"]) == 0
    assert (tmp_path / "a.csv").read_text().startswith("app,cpu_time,gpu_time\nsaxpy[10486],")
    assert main(["live", "run", *machine, "--jobs", "6", "--policy", "mct"]) == 0
    assert "6 decisions in results/live/log.sqlite, 0 differ" in capsys.readouterr().out
    assert main(["live", "explain"]) == 0
    out = capsys.readouterr().out
    assert "6 decisions of policy mct, 0 differ" in out
    log = tmp_path / "results" / "live" / "log.sqlite"
    with LogFile(log) as file:
        rows = file.rows()
    log.unlink()
    with LogFile(log) as file:  # another log, whole in itself, of another decision
        for kind, body, _ in rows:
            row = json.loads(body)
            if kind == "decision" and row["decision"][0] == 2:
                row["decision"][1] = 1 - row["decision"][1]
            file.append([(kind, json.dumps(row), 0.0)])
    assert main(["live", "explain"]) == 1
    assert "1 differ" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["run", "--kernels", "fft"], "n-body, word-count; got 'fft'"),
        (["run", "--gpu", "tpu"], "numpy, numba, threads, opencl, cuda; got 'tpu'"),
        (["run", "--jobs", "0"], "--jobs must be at least 1"),
        (
            ["run", "--jobs", "-3"],
            "--jobs must be at least 1, at most 10000000 and whole, or the "
            "name of a file of jobs, got -3.0",
        ),
        (["run", "--jobs", "2.5"], "and whole, or the name of a file of jobs, got 2.5"),
        (["run", "--seed", "-1"], "--seed must be a whole number of at least 0, got -1"),
        (["run", "--reading", "sides=both"], "reading switch"),
        (["calibrate", "--factor", "0"], "--factor"),
        (["explain", "--log", "none"], "no such log"),
    ],
)
def test_the_command_refuses_what_it_cannot_use(tmp_path, monkeypatch, capsys, words, match):
    monkeypatch.chdir(tmp_path)
    assert main(["live", *words]) == 2
    assert match in capsys.readouterr().err


def test_the_command_leaves_a_damaged_history_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "h.sqlite").write_text("not a history")
    assert main(["live", "run", "--gpu", "numpy", "--history", "h.sqlite"]) == 2
    assert "left as it is" in capsys.readouterr().err
    assert (tmp_path / "h.sqlite").read_text() == "not a history"
